//! Other programs on this machine that would be measured with what is recorded: builds and other studies.

use std::{collections::BTreeSet, fs, process};

use weir_sys::process_stat::{self, ProcessStat};

/// Programs beside which nothing is recorded, by the names that the kernel has of them.
const LOUD: [&str; 9] = ["cargo", "rustc", "cc1", "cc1plus", "ld", "rust-lld", "weir", "make", "ninja"];

/// Load average from which the machine is not quiet.
const LOAD_MAX: f64 = 0.5;

/// Longest line of ancestors that is followed.
const ANCESTORS_MAX: usize = 64;

/// Names of loud programs that run here, without those that started this one.
pub fn loud() -> BTreeSet<String> {
    let own = ancestors();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let named = numbers.filter(|number| !own.contains(number)).filter_map(name);
    named.filter(|name| LOUD.contains(&name.as_str())).collect()
}

fn name(process: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{process}/comm")).ok()?.trim().to_owned())
}

/// This process and those it descends from: `cargo xtask` is started by a cargo that waits.
fn ancestors() -> Vec<u32> {
    let mut found = vec![process::id()];
    while let Some(parent) = found.last().and_then(|last| parent(*last)).filter(|parent| *parent > 0)
        && found.len() < ANCESTORS_MAX
    {
        found.push(parent);
    }
    found
}

fn parent(process: u32) -> Option<u32> {
    ProcessStat::parse(&process_stat::read(process)?)?.parent()
}

/// The load average of the last minute where it is too high for a quiet machine.
pub fn load_average() -> Option<f64> {
    too_high(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn too_high(line: &str) -> Option<f64> {
    line.split_whitespace().next()?.parse().ok().filter(|load| *load > LOAD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_started_this_process_is_no_company() {
        let own = ancestors();
        assert_eq!(own.first(), Some(&process::id()));
        assert!(own.len() > 1, "a test has a parent: {own:?}");
    }

    #[test]
    fn a_machine_that_is_busy_is_not_quiet() {
        assert_eq!(too_high("3.18 1.99 1.03 4/190 1234"), Some(3.18));
        assert_eq!(too_high("0.50 1.99 1.03 4/190 1234"), None);
        assert_eq!(too_high(""), None);
    }
}
