//! Resource use of a thread, or of a process's children, as the kernel accounts it. Do not use it as a clock: user
//! plus system time is exact, but the kernel samples the division between the two at ticks.

use std::io;

/// CPU time, context switches and page faults of one thread since it started, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU in user mode.
    pub user_ns: u64,
    /// CPU in the kernel.
    pub system_ns: u64,
    /// Voluntary context switches.
    pub context_switches_voluntary: u64,
    /// Involuntary context switches.
    pub context_switches_involuntary: u64,
    /// Major page faults, which waited for a device.
    pub page_faults_major: u64,
    /// Minor page faults.
    pub page_faults_minor: u64,
}

impl ThreadUsage {
    /// The difference to an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            context_switches_voluntary: self
                .context_switches_voluntary
                .saturating_sub(earlier.context_switches_voluntary),
            context_switches_involuntary: self
                .context_switches_involuntary
                .saturating_sub(earlier.context_switches_involuntary),
            page_faults_major: self.page_faults_major.saturating_sub(earlier.page_faults_major),
            page_faults_minor: self.page_faults_minor.saturating_sub(earlier.page_faults_minor),
        }
    }
}

/// The calling thread's use so far (`getrusage(2)`, `RUSAGE_THREAD`).
pub fn thread_usage() -> io::Result<ThreadUsage> {
    usage_of(libc::RUSAGE_THREAD)
}

/// The use of all children of this process that ended and were waited for, including those that they had waited for
/// (`RUSAGE_CHILDREN`).
pub fn children_usage() -> io::Result<ThreadUsage> {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(whom: libc::c_int) -> io::Result<ThreadUsage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for one rusage, and the call keeps no pointer.
    if unsafe { libc::getrusage(whom, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero bytes are a valid rusage, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0) * 1_000
    };
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    Ok(ThreadUsage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        context_switches_voluntary: count(usage.ru_nvcsw),
        context_switches_involuntary: count(usage.ru_nivcsw),
        page_faults_major: count(usage.ru_majflt),
        page_faults_minor: count(usage.ru_minflt),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_touched_for_the_first_time_is_a_fault_of_the_thread_that_touches_it() {
        let before = thread_usage().expect("own usage");
        // Larger than any freed memory, so each of its pages is new.
        let pages = std::hint::black_box(vec![1_u8; 64 << 20]);
        let used = thread_usage().expect("own usage").since(&before);
        assert!(used.page_faults_minor > 0 && pages[1] == 1, "{used:?}");
    }

    #[test]
    fn work_is_used_by_the_thread_that_does_it() {
        let before = thread_usage().expect("own usage");
        let start = std::time::Instant::now();
        let mut sum = 0_u64;
        while start.elapsed().as_millis() < 5 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        let after = thread_usage().expect("own usage");
        let used = after.since(&before);
        assert!(used.user_ns + used.system_ns > 0);
        assert_eq!(before.since(&after).user_ns, 0);
        let fresh = std::thread::spawn(|| thread_usage().expect("own usage")).join().expect("the thread");
        assert!(fresh.user_ns + fresh.system_ns < after.user_ns + after.system_ns);
    }
}
