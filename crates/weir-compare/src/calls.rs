//! System calls by kind: each command runs a few times more under `strace -c -f`, which counts those of all its
//! processes. These runs are part of no other figure, because `strace` makes every call slow.

use std::{collections::BTreeMap, ffi::OsString, fs, path::Path, sync::atomic::AtomicBool, time::Duration};

use weir_record::commands::{CallKind, NoCalls, SystemCalls};

use crate::{
    asked::{Around, Asked, AskedCommand},
    machine::Launch,
    run::{OutputTo, RunEnd, RunError, RunSpec},
};

/// Runs of each command: two of which all counts agree are worth more than one.
const RUNS: u32 = 2;

/// Longest that a run may take under `strace`.
const LIMIT_MAX: Duration = Duration::from_secs(60);

/// Kinds that are kept.
const KINDS_MAX: usize = 64;

/// The program that counts.
const STRACE: &str = "strace";

/// Counts the calls of every command that runs.
pub(crate) fn counted(
    asked: &Asked,
    are_alive: &[bool],
    launch: &mut dyn Launch,
    stop: &AtomicBool,
) -> Result<SystemCalls, NoCalls> {
    let file = std::env::temp_dir().join(format!("weir-compare-calls-{}", std::process::id()));
    let mut by_command = vec![Vec::new(); asked.commands.len()];
    let mut all = || {
        for _ in 0..RUNS {
            for (place, command) in asked.commands.iter().enumerate().filter(|(place, _)| are_alive[*place]) {
                by_command[place].push(one(asked, command, &file, launch, stop)?);
            }
        }
        Ok(())
    };
    let done = all();
    // It is this process's own, and was perhaps never made.
    let _ = fs::remove_file(&file);
    done.map(|()| SystemCalls {
        counted_by: "strace -c -f".to_owned(),
        runs: RUNS,
        kinds: kinds(&by_command),
    })
}

/// What runs around a command runs around these runs too, or they would meet what the run before left.
fn around(
    asked: &Asked,
    words: &[OsString],
    launch: &mut dyn Launch,
    stop: &AtomicBool,
) -> Result<(), NoCalls> {
    if words.is_empty() {
        return Ok(());
    }
    match launch.run(&asked.spec_around(words), stop) {
        Ok(outcome) if outcome.end == RunEnd::Exited(0) => Ok(()),
        Err(RunError::Stopped) => Err(NoCalls::NotReached),
        _ => Err(NoCalls::Refused),
    }
}

/// One run's counts by kind.
fn one(
    asked: &Asked,
    command: &AskedCommand,
    file: &Path,
    launch: &mut dyn Launch,
    stop: &AtomicBool,
) -> Result<BTreeMap<String, u64>, NoCalls> {
    let (words, own) = (&command.words, asked.spec(&command.words));
    around(asked, command.around(Around::Prepare), launch, stop)?;
    let prefix = [STRACE, "-c", "-f", "-q", "-o"].map(OsString::from);
    let traced = prefix.into_iter().chain([file.as_os_str().to_owned(), OsString::from("--")]);
    let output = match own.output {
        OutputTo::File(_) | OutputTo::Inherit => OutputTo::Discard,
        other => other,
    };
    let spec = RunSpec {
        words: traced.chain(words.iter().cloned()).collect(),
        output,
        limit: own.limit.min(LIMIT_MAX),
        ..own
    };
    let outcome = launch.run(&spec, stop).map_err(|error| match error {
        RunError::Missing(_) => NoCalls::NotInstalled,
        RunError::Stopped => NoCalls::NotReached,
        _ => NoCalls::Refused,
    })?;
    around(asked, command.around(Around::Conclude), launch, stop)?;
    let is_over = matches!(outcome.end, RunEnd::Exited(_));
    let text = fs::read_to_string(file).unwrap_or_default();
    let counts = read(&text);
    if is_over && !counts.is_empty() { Ok(counts) } else { Err(NoCalls::Refused) }
}

/// The table of `strace -c`: `% time, seconds, usecs/call, calls, [errors], syscall`.
fn read(text: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = *words.last()?;
        let calls = words.get(3)?.parse().ok()?;
        let is_call = (5..=6).contains(&words.len()) && name != "total";
        is_call.then(|| (name.to_owned(), calls))
    };
    text.lines().filter_map(row).collect()
}

/// Kinds with the fewest and most calls of each command, those first in which a command differs most from the baseline.
fn kinds(by_command: &[Vec<BTreeMap<String, u64>>]) -> Vec<CallKind> {
    let mut names: Vec<&String> = by_command.iter().flatten().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &String| {
        let range = |runs: &Vec<BTreeMap<String, u64>>| {
            let counts = || runs.iter().map(|counts| counts.get(name).copied().unwrap_or(0));
            (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
        };
        CallKind { name: name.clone(), counts: by_command.iter().map(range).collect() }
    };
    let mut found: Vec<CallKind> = names.into_iter().map(of).collect();
    found.sort_by_key(|kind| std::cmp::Reverse((apart(kind), kind.counts.iter().map(|it| it.1).max())));
    found.truncate(KINDS_MAX);
    found
}

/// How far the counts of a command lie from all of the baseline's.
fn apart(kind: &CallKind) -> u64 {
    let Some(((least, most), others)) = kind.counts.split_first() else { return 0 };
    let of = |(low, high): &(u64, u64)| low.saturating_sub(*most).max(least.saturating_sub(*high));
    others.iter().map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 52.11    0.000321          12        26           mmap
 20.00    0.000100           5        18         3 openat
  0.00    0.000000           0         1           execve
------ ----------- ----------- --------- --------- ----------------
100.00    0.000421           9        45         3 total
";

    #[test]
    fn the_table_of_strace_is_read_with_and_without_errors() {
        let counts = read(TABLE);
        assert_eq!(counts.len(), 3, "{counts:?}");
        assert_eq!((counts["mmap"], counts["openat"], counts["execve"]), (26, 18, 1));
        assert!(read("strace: no permission\n").is_empty());
    }

    #[test]
    fn kinds_that_differ_stand_first_and_there_are_so_many_and_no_more() {
        let run = |reads: u64, opens: u64| {
            BTreeMap::from([
                ("read".to_owned(), reads),
                ("openat".to_owned(), opens),
                ("mmap".to_owned(), 900),
            ])
        };
        let found = kinds(&[vec![run(5, 10), run(5, 12)], vec![run(9, 11), run(9, 11)]]);
        let names: Vec<&str> = found.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(names, ["read", "mmap", "openat"], "9 against 5; the others lie within what they vary by");
        assert_eq!(found[2].counts, [(10, 12), (11, 11)]);
        let many: BTreeMap<String, u64> =
            (0..KINDS_MAX as u64 + 5).map(|it| (format!("call{it}"), it)).collect();
        assert_eq!(kinds(&[vec![many]]).len(), KINDS_MAX);
    }
}
