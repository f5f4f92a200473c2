//! System calls by kind. Each command runs a few times more, and the calls of all its processes are counted from its
//! exec on. Programs in the kernel count them where it accepts such programs, and otherwise `strace -c -f`. These runs
//! are part of no other figure, because counting makes every call slow.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::OpenOptions,
    io::{self, ErrorKind, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::atomic::AtomicBool,
    time::Duration,
};

use weir_record::commands::{CallKind, NoCalls, SystemCalls};

use crate::{
    asked::{Around, Asked, AskedCommand},
    machine::Launch,
    private_folder::PrivateFolder,
    run::{OutputTo, RunEnd, RunError, RunSpec},
};

/// Runs of each command: two whose counts agree are worth more than one.
const RUNS: u32 = 2;

/// Longest time that a run under `strace` may take, which makes every call slow.
const TRACED_MAX: Duration = Duration::from_secs(60);

/// Kinds that are kept.
const KINDS_MAX: usize = 64;

/// Most bytes of a table that are read: kernels have fewer than a thousand calls, one on each line.
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// The program that counts.
const STRACE: &str = "strace";

/// The name of programs in the kernel in the record.
const PROGRAMS: &str = "kernel-programs";

/// One run's counts.
type Counts = BTreeMap<String, u64>;

/// Counts the calls of every command that runs.
pub(crate) fn counted(
    asked: &Asked,
    are_alive: &[bool],
    leaves_processes: bool,
    launch: &mut dyn Launch,
    stop: &AtomicBool,
) -> Result<SystemCalls, NoCalls> {
    let programs = match launch.counts_calls() {
        true => all(asked, are_alive, &mut |command| by_programs(asked, command, launch, stop))?,
        false => None,
    };
    let (counted_by, by_command) = match programs {
        Some(by_command) => (PROGRAMS, by_command),
        // `strace` would wait for them.
        None if leaves_processes => return Err(NoCalls::LeavesProcesses),
        None => {
            let folder = PrivateFolder::below(&std::env::temp_dir()).map_err(|_| NoCalls::Refused)?;
            launch.hold_folder(folder.path());
            let file = folder.path().join("table");
            let by_strace =
                &mut |command: &AskedCommand| by_strace(asked, command, &file, launch, stop).map(Some);
            ("strace -c -f", all(asked, are_alive, by_strace)?.unwrap_or_default())
        }
    };
    Ok(SystemCalls { counted_by: counted_by.to_owned(), runs: RUNS, kinds: kinds(&by_command) })
}

/// Some runs of every command. None where one of them could not be counted this way.
fn all(
    asked: &Asked,
    are_alive: &[bool],
    one: &mut dyn FnMut(&AskedCommand) -> Result<Option<Counts>, NoCalls>,
) -> Result<Option<Vec<Vec<Counts>>>, NoCalls> {
    let mut by_command = vec![Vec::new(); asked.commands.len()];
    for _ in 0..RUNS {
        for (place, command) in asked.commands.iter().enumerate().filter(|(place, _)| are_alive[*place]) {
            match one(command)? {
                Some(counts) => by_command[place].push(counts),
                None => return Ok(None),
            }
        }
    }
    Ok(Some(by_command))
}

/// The commands around a run also run around these runs. Otherwise these would meet the traces of the run before.
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

/// A run whose calls the kernel counts; none where the kernel does not count them.
fn by_programs(
    asked: &Asked,
    command: &AskedCommand,
    launch: &mut dyn Launch,
    stop: &AtomicBool,
) -> Result<Option<Counts>, NoCalls> {
    around(asked, command.around(Around::Prepare), launch, stop)?;
    let counted = launch.run_counted(&spec(asked, command), stop);
    // Also after a run that was not counted, or was stopped: what ran before it has its counterpart.
    around(asked, command.around(Around::Conclude), launch, &AtomicBool::new(false))?;
    let Some(counted) = counted else { return Ok(None) };
    let (outcome, counts) = counted.map_err(why_not)?;
    let is_over = matches!(outcome.end, RunEnd::Exited(_));
    if counts.is_empty() || !is_over { Err(NoCalls::Refused) } else { Ok(Some(counts)) }
}

/// A run under `strace`.
fn by_strace(
    asked: &Asked,
    command: &AskedCommand,
    file: &Path,
    launch: &mut dyn Launch,
    stop: &AtomicBool,
) -> Result<Counts, NoCalls> {
    around(asked, command.around(Around::Prepare), launch, stop)?;
    let prefix = [STRACE, "-c", "-f", "-q", "-o"].map(OsString::from);
    let traced = prefix.into_iter().chain([file.as_os_str().to_owned(), OsString::from("--")]);
    let own = spec(asked, command);
    let words = traced.chain(own.words.iter().cloned()).collect();
    let spec = RunSpec { words, limit: own.limit.min(TRACED_MAX), ..own };
    let outcome = launch.run(&spec, stop);
    // Also after a run that failed or was stopped: what ran before it has its counterpart.
    around(asked, command.around(Around::Conclude), launch, &AtomicBool::new(false))?;
    let outcome = outcome.map_err(why_not)?;
    let is_over = matches!(outcome.end, RunEnd::Exited(_));
    let counts =
        if is_over { table(file).map(|text| read(&text)).unwrap_or_default() } else { Counts::new() };
    if counts.is_empty() { Err(NoCalls::Refused) } else { Ok(counts) }
}

/// A counted run. Its output goes where it disturbs no other output.
fn spec(asked: &Asked, command: &AskedCommand) -> RunSpec {
    let own = asked.spec(&command.words);
    let output = match own.output {
        OutputTo::File(_) | OutputTo::Log(_) | OutputTo::Inherit => OutputTo::Discard,
        other => other,
    };
    RunSpec { output, ..own }
}

fn why_not(error: RunError) -> NoCalls {
    match error {
        RunError::Missing(_) => NoCalls::NotInstalled,
        RunError::Stopped => NoCalls::NotReached,
        _ => NoCalls::Refused,
    }
}

/// Reads a file that the command may have changed meanwhile: follows no link, waits for no pipe.
fn table(path: &Path) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > TABLE_BYTES_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(TABLE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The table of `strace -c`: `% time, seconds, usecs/call, calls, [errors], syscall`.
fn read(text: &str) -> Counts {
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
fn kinds(by_command: &[Vec<Counts>]) -> Vec<CallKind> {
    let mut names: Vec<&String> = by_command.iter().flatten().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name: &String| {
        let range = |runs: &Vec<Counts>| {
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

/// Distance of a command's counts from all of the baseline's.
fn apart(kind: &CallKind) -> u64 {
    let Some(((least, most), others)) = kind.counts.split_first() else { return 0 };
    let of = |(low, high): &(u64, u64)| low.saturating_sub(*most).max(least.saturating_sub(*high));
    others.iter().map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::symlink,
        process::Command,
    };

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
    fn a_table_is_a_file_of_at_most_so_many_bytes() {
        let folder = PrivateFolder::below(&std::env::temp_dir()).expect("it can be made");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("table"), TABLE).expect("it is ours");
        assert_eq!(table(&at("table")).expect("it is one"), TABLE);
        symlink(at("table"), at("link")).expect("it is ours");
        assert!(table(&at("link")).is_err(), "no link is followed");
        assert!(Command::new("mkfifo").arg(at("fifo")).status().expect("coreutils are everywhere").success());
        assert!(table(&at("fifo")).is_err(), "no pipe is waited for");
        let of = |bytes: u64| {
            File::create(at("long")).and_then(|file| file.set_len(bytes)).expect("it is ours");
            table(&at("long")).map(|text| text.len() as u64).ok()
        };
        assert_eq!((of(TABLE_BYTES_MAX), of(TABLE_BYTES_MAX + 1)), (Some(TABLE_BYTES_MAX), None));
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
