//! The CPU-time clocks of processes and of this thread. Do not use them as a source of time for waiting.

use std::io;

/// Largest process number of any kernel (`PID_MAX_LIMIT`).
const PID_MAX: libc::pid_t = 4 << 20;

/// Nanoseconds of CPU that all threads of a process have used since it started, including ended threads.
///
/// The kernel sums the run time of the living threads (`sum_exec_runtime`, the number `schedstat` prints) and that of
/// ended threads. Children are not included. A thread that is on another CPU at this moment is counted up to its last
/// switch or tick, so the value may lag by one tick. `pid` 0 is the calling process.
pub fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    // A clock number has no room for larger ones: it would silently name another clock.
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid <= PID_MAX);
    let Some(pid) = pid else { return Err(io::Error::from_raw_os_error(libc::ESRCH)) };
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is a valid place for one clockid_t, and the call keeps no pointer.
    let error = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    read(clock)
}

/// Nanoseconds of CPU the calling thread has used since it started.
pub fn thread_cpu_ns() -> io::Result<u64> {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The local date and time: `2026-02-09 13:09:25`; `None` if the time zone is not available.
pub fn local_time() -> Option<String> {
    let mut parts = std::mem::MaybeUninit::<libc::tm>::uninit();
    // SAFETY: `time` gets no place for its result, and `localtime_r` writes all of `parts` unless it returns null;
    // neither keeps a pointer.
    let parts = unsafe {
        let now = libc::time(std::ptr::null_mut());
        if libc::localtime_r(&now, parts.as_mut_ptr()).is_null() {
            return None;
        }
        parts.assume_init()
    };
    let libc::tm { tm_year, tm_mon, tm_mday, tm_hour, tm_min, tm_sec, .. } = parts;
    let (year, month) = (i64::from(tm_year) + 1_900, tm_mon + 1);
    Some(format!("{year:04}-{month:02}-{tm_mday:02} {tm_hour:02}:{tm_min:02}:{tm_sec:02}"))
}

fn read(clock: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for one timespec, and the call keeps no pointer.
    if unsafe { libc::clock_gettime(clock, &mut time) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_moves_the_clock_of_this_process() {
        let pid = std::process::id();
        let before = process_cpu_ns(pid).expect("own clock");
        let start = std::time::Instant::now();
        let mut sum = 0_u64;
        while start.elapsed().as_millis() < 5 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        assert!(process_cpu_ns(pid).expect("own clock") > before);
    }

    #[test]
    fn the_clock_of_a_thread_is_its_own() {
        let used = std::thread::spawn(thread_cpu_ns).join().expect("it does not panic").expect("own clock");
        assert!(used > 0 && used <= process_cpu_ns(std::process::id()).expect("own clock"));
    }

    #[test]
    fn a_process_that_cannot_exist_is_an_error() {
        assert!(process_cpu_ns(u32::MAX).is_err());
        assert!(process_cpu_ns(i32::MAX as u32).is_err());
        assert!(process_cpu_ns(1 << 29).is_err());
    }
}
