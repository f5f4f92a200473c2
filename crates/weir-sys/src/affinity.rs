//! Pinning threads to CPUs, and parsing sets of CPUs as people write them. Other code decides which CPUs are a good
//! choice.

use std::{collections::BTreeSet, io};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Highest CPU number plus one that a thread can be pinned to here.
pub const CPUS_MAX: usize = CpuSet::MAX_CPU;

/// One above the highest number of a CPU on any Linux (`NR_CPUS`). A higher one is a mistake in a range.
const NUMBERS_MAX: usize = 8_192;

/// Restricts the calling thread to these CPUs; threads it starts later inherit that.
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

/// CPUs the calling thread may run on, ascending.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CPUS_MAX).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Parses a set of CPUs such as `0-1,3`: each once, ascending. `None` for a text that is not such a set, including an
/// empty one.
pub fn cpu_set(text: &str) -> Option<Vec<usize>> {
    let mut found = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= NUMBERS_MAX {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_cpus_has_each_once_and_rising() {
        assert_eq!(cpu_set("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_set("5, 1-2,2 - 3"), Some(vec![1, 2, 3, 5]));
        assert_eq!(cpu_set("8191,0-8191").map(|cpus| cpus.len()), Some(8_192));
        for text in ["", "a", "2-1", "0-8192", "0-99999", "1,,2", "1-2-3", "-1"] {
            assert_eq!(cpu_set(text), None, "{text}");
        }
    }

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
