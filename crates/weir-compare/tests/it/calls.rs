//! Programs in the kernel count the same system calls as `strace`.

use std::{collections::BTreeMap, env, fs, sync::atomic::AtomicBool};

use weir_compare::{
    machine::{Launch, Machine},
    run::{RunError, RunSpec},
};

use crate::runner::{runner, shell, skipped, spec};

type Counts = BTreeMap<String, u64>;

/// The counts of `strace -c -f` for a run; none where it cannot trace.
fn by_strace(machine: &mut Machine, run: &RunSpec) -> Option<Counts> {
    let file = env::temp_dir().join(format!("weir-compare-strace-{}", std::process::id()));
    let words = ["strace", "-c", "-f", "-q", "-o"].map(Into::into).into_iter();
    let words = words.chain([file.clone().into_os_string(), "--".into()]).chain(run.words.iter().cloned());
    let outcome = machine.run(&RunSpec { words: words.collect(), ..run.clone() }, &AtomicBool::new(false));
    if let Err(error) = outcome {
        assert!(matches!(error, RunError::Missing(_)), "{error}");
        return None;
    }
    let text = fs::read_to_string(&file).ok()?;
    fs::remove_file(&file).ok()?;
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = *words.last()?;
        let calls = words.get(3)?.parse().ok()?;
        ((5..=6).contains(&words.len()) && name != "total").then(|| (name.to_owned(), calls))
    };
    Some(text.lines().filter_map(row).collect()).filter(|counts: &Counts| !counts.is_empty())
}

#[test]
fn the_kernel_counts_what_strace_counts_from_the_exec_on() {
    let mut machine = Machine::new(runner(None));
    if !machine.counts_calls() {
        let required = env::var("WEIR_REQUIRE_EVIDENCE").unwrap_or_default();
        assert!(!required.split(',').any(|rung| rung == "programs"), "WEIR_REQUIRE_EVIDENCE");
        skipped("the kernel takes no programs from this user");
        return;
    }
    // A single program, one with its own folder, and a shell with children one after the other.
    let alone = spec(["cat", "/etc/passwd", "/etc/hostname"].map(Into::into).to_vec());
    let elsewhere =
        RunSpec { folder: Some("/".into()), ..spec(["ls", "-l", "dev/null"].map(Into::into).to_vec()) };
    let children = shell("ls / >/dev/null; /bin/echo one; (exec /bin/echo two); exit 3");
    for run in [alone, elsewhere, children] {
        let stop = AtomicBool::new(false);
        let counted = |machine: &mut Machine| {
            let run = machine.run_counted(&run, &stop).expect("it counts");
            run.expect("it can be started").1
        };
        let own = counted(&mut machine);
        assert!(own.contains_key("execve"), "its own exec counts: {own:?}");
        assert_eq!(own, counted(&mut machine), "the program does the same in each run");
        match by_strace(&mut machine, &run) {
            Some(expected) => assert_eq!(own, expected, "{:?}", run.words),
            None => skipped("strace is missing or cannot trace here"),
        }
    }
}
