//! Pinning threads to CPUs. Which CPUs are a good choice is decided elsewhere.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Highest CPU number plus one that a thread can be pinned to here.
pub const CPUS_MAX: usize = CpuSet::MAX_CPU;

/// Allows the calling thread these CPUs only; threads it starts later inherit that.
///
/// An empty list, a CPU the machine lacks or one outside the process's CPU set is an error, and then nothing changes:
/// the kernel itself would silently drop unknown CPUs from a set that has others.
pub fn pin_current_thread(cpus: &[usize]) -> io::Result<()> {
    let before = sched_getaffinity(None)?;
    let mut wanted = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CPUS_MAX {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        wanted.set(cpu);
    }
    sched_setaffinity(None, &wanted)?;
    let granted = sched_getaffinity(None)?;
    if granted != wanted {
        sched_setaffinity(None, &before)?;
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(())
}

/// CPUs the calling thread may run on, rising.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CPUS_MAX).filter(|&cpu| set.is_set(cpu)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_is_allowed_that_cpu_alone_and_refuses_impossible_ones() {
        std::thread::spawn(|| {
            let first = allowed_cpus().expect("own affinity")[0];
            pin_current_thread(&[first]).expect("an allowed cpu");
            assert_eq!(allowed_cpus().expect("own affinity"), [first]);
            assert!(pin_current_thread(&[]).is_err());
            assert!(pin_current_thread(&[CPUS_MAX]).is_err());
            assert!(pin_current_thread(&[first, CPUS_MAX - 1]).is_err());
            assert_eq!(allowed_cpus().expect("own affinity"), [first]);
        })
        .join()
        .expect("the thread that was pinned");
    }
}
