//! Watches of real processes that the tests start.

use super::*;
use crate::process::family_of;

#[test]
fn a_process_that_is_not_there_is_told() {
    let plan = Plan { rung: Rung::Process, groups: &[] };
    let error = Watch::begin(1 << 29, None, plan).expect_err("no such number");
    assert_eq!(error.to_string(), format!("no process {}", 1 << 29));
}

#[test]
fn one_that_ends_meanwhile_leaves_its_last_figures() {
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("cat, waiting for its input");
    let plan = Plan { rung: Rung::Process, groups: &[] };
    let mut watch = Watch::begin(child.id(), None, plan).expect("it lives");
    drop(child.stdin.take());
    let ending = watch.run(None, &AtomicBool::new(false));
    assert_eq!(ending, Ending::TargetEnded);
    child.wait().expect("it can be reaped");
    let observation = watch.end(ending);
    let interval_ns = INTERVAL.as_nanos() as u64;
    let note = Note::EndedBetween { interval_ns, by_programs: false };
    assert!(observation.notes.contains(&note), "{:?}", observation.notes);
    assert_eq!((observation.rung, observation.totals.threads), (Rung::Process, 1));
}

#[test]
#[expect(clippy::print_stdout, reason = "says why the test was skipped")]
fn what_it_did_between_its_last_reading_and_its_end_is_in_the_whole_where_it_is_traced() {
    // Byte by byte: far more than the window contains before it.
    let mut child = becoming("dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none");
    let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
    let mut watch = Watch::begin(child.id(), None, plan).expect("it lives");
    drop(child.stdin.take());
    // It is reaped before the next reading.
    child.wait().expect("it can be reaped");
    let observation = watch.run(None, &AtomicBool::new(false));
    let observation = watch.end(observation);
    let Some(trace) = observation.trace.as_ref().filter(|trace| trace.is_split) else {
        println!("skipped: nothing is traced here: {:?}", observation.notes);
        return;
    };
    let reads = trace.calls.iter().find(|call| call.name == "read").map_or(0, |call| call.count);
    assert!(reads >= 200_000, "{reads}");
    assert!(observation.totals.cpu_ns >= trace.ran_ns / 2 && trace.ran_ns > 0, "{:?}", observation.totals);
    let is_known = |note: &Note| matches!(note, Note::EndedBetween { by_programs: true, .. });
    assert!(observation.notes.iter().any(is_known), "{:?}", observation.notes);
    // They belonged to the shell before, which used next to nothing.
    // Both sides include what watching added: its measured cost is too high while other programs take the CPU.
    let in_calls_ns: u64 = trace.calls.iter().map(|call| call.on_cpu_ns).sum();
    let cpu_ns = observation.totals.cpu_ns;
    assert!(trace.switches_missed > 0 || in_calls_ns < 2 * cpu_ns, "{in_calls_ns} ns of {cpu_ns} ns");
}

#[test]
fn switches_that_no_reading_has_are_the_programs_and_fewer_are_not_taken() {
    let trace = Trace { sleeps: 20, preemptions: 5, ran_ns: 90, window_ns: 70, ..Trace::default() };
    let read = Totals { cpu_ns: 10, context_switches_voluntary: 3, ..Totals::default() };
    let mut notes = vec![Note::EndedBetween { interval_ns: 9, by_programs: false }];
    let (totals, window_ns) = beyond_readings((read, 50), &trace, false, &mut notes);
    assert_eq!((totals.context_switches_voluntary, totals.context_switches_involuntary), (20, 5));
    assert_eq!((totals.cpu_ns, window_ns, notes.len()), (10, 50, 2), "it was read at its end");
    let (late, window_ns) = beyond_readings((totals, 50), &trace, true, &mut notes);
    assert_eq!((late.cpu_ns, late.ended_cpu_ns, window_ns, notes.len()), (90, 80, 70, 2));
    assert_eq!(notes[0], Note::EndedBetween { interval_ns: 9, by_programs: true });
}

#[test]
fn short_intervals_are_read_at_their_ends_and_all_processes_are_looked_at_once_a_second() {
    const INTERVALS: u32 = 100;
    let length = Duration::from_millis(100);
    let began = Instant::now();
    let (mut second, mut of_second, mut of_interval) = (began + INTERVAL, 0, 0);
    for index in 1..=INTERVALS {
        let due = began + length * index;
        let found = Due::at(due, &mut second, Some(due));
        of_second += u32::from(found.of_second);
        of_interval += u32::from(found.of_interval);
    }
    assert_eq!((of_second, of_interval), (INTERVALS / 10, INTERVALS));
    let without = Due::at(began, &mut second, None);
    assert_eq!(without, Due { of_second: false, of_interval: false });
}

#[test]
fn a_stop_ends_the_watch_and_keeps_what_was_seen() {
    let plan = Plan { rung: Rung::Process, groups: &[] };
    let mut watch = Watch::begin(std::process::id(), None, plan).expect("it lives");
    let ending = watch.run(Some(Duration::from_secs(3600)), &AtomicBool::new(true));
    assert_eq!(ending, Ending::Interrupted);
    let observation = watch.end(ending);
    assert!(!observation.threads.is_empty() && observation.totals.system_ns.is_none());
}

/// A shell that waits for a line and then becomes another program.
fn becoming(program: &str) -> std::process::Child {
    std::process::Command::new("sh")
        .args(["-c", &format!("read line; exec {program}")])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("sh, waiting for its input")
}

/// Sends the line, and waits until it is the other program.
fn let_it_become(child: &mut std::process::Child, name: &str) {
    use std::io::Write;
    child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
    let comm = format!("/proc/{}/comm", child.id());
    while std::fs::read_to_string(&comm).is_ok_and(|now| now.trim() != name) {
        std::thread::yield_now();
    }
}

fn end(mut child: std::process::Child) {
    child.kill().and_then(|()| child.wait()).expect("it can be ended");
}

#[test]
fn an_exec_meanwhile_is_told_and_nothing_is_lost() {
    let mut child = becoming("cat");
    let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
    let watch = Watch::begin(child.id(), None, plan).expect("it lives");
    let_it_become(&mut child, "cat");
    let observation = watch.end(Ending::Time);
    let note = Note::BecameAnother { from: "sh".to_owned(), to: "cat".to_owned() };
    assert!(observation.notes.contains(&note), "{:?}", observation.notes);
    if let Some(trace) = &observation.trace {
        // It is tried in each folder of `PATH`.
        let exec = trace.calls.iter().find(|call| call.name == "execve").expect("it did");
        assert_eq!(exec.count - exec.errors, 1, "{exec:?}");
    }
    end(child);
}

/// The smallest 32-bit program: it pauses forever.
fn program_of_32_bits(path: &std::path::Path) {
    use std::{io::Write, process::Stdio};
    const BASE: u32 = 0x0804_8000;
    const CODE: [u8; 9] = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let bytes = 52 + 32 + CODE.len() as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0".to_vec();
    for word in [1, BASE + 84, 52, 0, 0, 52 | 32 << 16, 1, 0] {
        file.extend(u32::to_le_bytes(word));
    }
    for word in [1, 0, BASE, BASE, bytes, bytes, 5, 0x1000] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(CODE);
    // Another process writes it, as in `Named`.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "cat >\"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = command.spawn().expect("a shell");
    writer.stdin.take().expect("a pipe").write_all(&file).expect("it reads");
    assert!(writer.wait().expect("it ends").success(), "a file can be written");
}

#[test]
#[expect(clippy::print_stdout, reason = "says why the test was skipped")]
fn programs_of_32_bits_are_not_traced_and_one_that_became_such_is_told() {
    let path = std::env::temp_dir().join(format!("weir32-{}", std::process::id()));
    program_of_32_bits(&path);
    let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
    let started = std::process::Command::new(&path).spawn();
    let Ok(child) = started else {
        println!("skipped: this machine runs no programs of 32 bits: {started:?}");
        return;
    };
    let watch = Watch::begin(child.id(), None, plan).expect("it lives");
    let refused = !watch.is_traced();
    let observation = watch.end(Ending::Time);
    let obstacle = observation.notes.iter().find(|note| matches!(note, Note::NotTraced { .. }));
    assert!(refused && obstacle.is_some(), "{:?}", observation.notes);
    end(child);

    let name = path.file_name().and_then(|name| name.to_str()).expect("text");
    let mut child = becoming(path.to_str().expect("text"));
    let watch = Watch::begin(child.id(), None, plan).expect("it lives");
    let is_traced = watch.is_traced();
    let_it_become(&mut child, &name[..name.len().min(15)]);
    let observation = watch.end(Ending::Time);
    assert_eq!(observation.notes.contains(&Note::Became32Bits), is_traced, "{:?}", observation.notes);
    end(child);
    std::fs::remove_file(&path).expect("it can be removed");
}

/// A shell that runs a program between a first line and a second, and waits for a third.
fn running(program: &std::path::Path) -> std::process::Child {
    let script = format!("read line; {} & read line; kill $!; wait; read line", program.display());
    std::process::Command::new("sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("sh, waiting for its input")
}

/// Sends the next line, and waits until a 32-bit program is among its processes, or none.
fn let_it_go_on(child: &mut std::process::Child, has_32_bits: bool) {
    use std::io::Write;
    child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
    let begun = Instant::now();
    let has_now = || family_of(child.id()).unwrap_or_default().into_iter().any(is_of_32_bits);
    while has_now() != has_32_bits {
        assert!(begun.elapsed() < Duration::from_secs(30), "its program begins and ends");
        std::thread::yield_now();
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "says why the test was skipped")]
fn a_child_of_32_bits_that_ends_before_the_window_does_is_told() {
    let path = std::env::temp_dir().join(format!("weir32-child-{}", std::process::id()));
    program_of_32_bits(&path);
    let started = std::process::Command::new(&path).spawn();
    let Ok(alone) = started else {
        println!("skipped: this machine runs no programs of 32 bits: {started:?}");
        return;
    };
    end(alone);
    for counts in [Some(KernelCounts::default()), None] {
        let mut shell = running(&path);
        let is_traced = counts.is_some();
        let mut subject = Subject::of(&Selection::pid(shell.id()), INTERVAL).expect("it lives");
        subject.begin(counts).expect("it lives");
        let_it_go_on(&mut shell, true);
        assert!(subject.look());
        let_it_go_on(&mut shell, false);
        assert!(subject.look());
        assert_eq!(subject.had_32_bits, is_traced, "numbers of calls matter to a trace alone");
        end(shell);
    }
    std::fs::remove_file(&path).expect("it can be removed");
}

#[test]
fn a_thousand_threads_are_followed() {
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    std::thread::scope(|scope| {
        for _ in 0..1_000 {
            let body = || drop(held.lock().map(|held| held.recv()));
            std::thread::Builder::new().stack_size(1 << 16).spawn_scoped(scope, body).expect("room");
        }
        let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
        let watch = Watch::begin(std::process::id(), None, plan).expect("it lives");
        let observation = watch.end(Ending::Time);
        drop(release);
        assert!(observation.threads.len() > 1_000 && observation.threads_left_out == 0);
        assert!(observation.trace.is_none_or(|trace| trace.threads_lost == 0));
    });
}

#[test]
fn of_two_the_one_that_ends_ends_the_window_of_both() {
    let (mut one, mut other) = (becoming("true"), becoming("true"));
    let plan = Plan { rung: Rung::Process, groups: &[] };
    let mut watch = Watch::begin(one.id(), Some(other.id()), plan).expect("both live");
    drop(other.stdin.take());
    let ending = watch.run(None, &AtomicBool::new(false));
    let observation = watch.end(ending);
    let beside = observation.beside.as_ref().expect("there were two");
    assert_eq!((observation.ending, beside.ending), (Ending::OtherEnded, Ending::TargetEnded));
    assert_eq!((observation.pid, beside.pid), (one.id(), other.id()));
    drop(one.stdin.take());
    for child in [&mut one, &mut other] {
        child.wait().expect("it ends with its input");
    }
}

#[test]
fn relatives_are_not_compared() {
    let child = becoming("true");
    let (own, child_pid) = (std::process::id(), child.id());
    let plan = Plan { rung: Rung::Process, groups: &[] };
    let begin = |pid, beside| Watch::begin(pid, Some(beside), plan).map(drop);
    assert!(matches!(begin(own, own), Err(WatchError::SameProcess(pid)) if pid == own));
    for (pid, beside) in [(own, child_pid), (child_pid, own)] {
        let error = begin(pid, beside).expect_err("children are observed with their parent");
        assert!(
            matches!(error, WatchError::Relatives { child, parent } if (child, parent) == (child_pid, own))
        );
    }
    assert!(matches!(begin(child_pid, 1 << 29), Err(WatchError::NoSuchProcess(_))));
    end(child);
}

/// A copy of `cat` with a unique name, which is removed with the test.
struct Named(std::path::PathBuf);

impl Named {
    fn new(kind: &str) -> Self {
        let path = std::env::var_os("PATH").expect("there is a path");
        let cat = std::env::split_paths(&path).map(|folder| folder.join("cat")).find(|path| path.is_file());
        let copy = std::env::temp_dir().join(format!("w{kind}{}", std::process::id()));
        // Another process copies it. A child that another test has forked keeps this process's open files for a moment,
        // and a file that is open for writing cannot be run.
        let words = [cat.expect("every system has it"), copy.clone()];
        let copied = std::process::Command::new("cp").args(words).status().expect("coreutils are everywhere");
        assert!(copied.success(), "it can be copied");
        Self(copy)
    }

    fn name(&self) -> String {
        self.0.file_name().expect("it has one").to_string_lossy().into_owned()
    }

    /// Echoes what it is given.
    fn start(&self) -> std::process::Child {
        use std::os::unix::process::CommandExt;
        let mut command = std::process::Command::new(&self.0);
        let piped = std::process::Stdio::piped;
        command.arg0("cat").stdin(piped()).stdout(piped()).spawn().expect("it starts")
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Makes it echo this many bytes, one at a time.
fn echo(child: &mut std::process::Child, times: u64) {
    use std::io::{Read, Write};
    let (input, output) = (child.stdin.as_mut().expect("a pipe"), child.stdout.as_mut().expect("a pipe"));
    for _ in 0..times {
        input.write_all(b"x").and_then(|()| output.read_exact(&mut [0])).expect("it echoes");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "says why the test was skipped")]
fn calls_of_several_processes_and_of_one_that_joins_are_counted_exactly() {
    const BEFORE: u64 = 50;
    const FIRST: u64 = 300;
    const SECOND: u64 = 40;
    const JOINED: u64 = 700;
    let named = Named::new("join");
    let (mut one, mut other) = (named.start(), named.start());
    let wanted = crate::selection::Wanted::Name(named.name());
    for child in [&mut one, &mut other] {
        // They are that program by now, and wait for input.
        echo(child, BEFORE);
    }
    let selected = Selection::find(&wanted).expect("they run");
    let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
    let mut watch = Watch::begin_told(&selected, None, plan, &|_| ()).expect("they live");
    echo(&mut one, FIRST);
    echo(&mut other, SECOND);
    let mut third = named.start();
    while watch.subjects[0].selection().expect("by name").joined == 0 {
        assert!(!matches!(watch.step(None), Step::Over(_)), "they live");
    }
    echo(&mut third, JOINED);
    let observation = watch.end(Ending::Time);
    assert_eq!(observation.totals.processes, 3);
    for child in [one, other, third] {
        end(child);
    }
    let Some(trace) = &observation.trace else {
        println!("skipped: nothing is traced here: {:?}", observation.notes);
        return;
    };
    let writes = trace.calls.iter().find(|call| call.name == "write").map_or(0, |call| call.count);
    assert_eq!(writes, FIRST + SECOND + JOINED, "{:?}", trace.calls);
}

#[test]
#[expect(clippy::print_stdout, reason = "says why the test was skipped")]
fn bytes_by_descriptor_are_counted_exactly() {
    const BEFORE: u64 = 30;
    const ECHOES: u64 = 500;
    let named = Named::new("file");
    let mut child = named.start();
    echo(&mut child, BEFORE);
    let groups: Vec<Group> = Group::ALL.into_iter().chain([Group::Descriptors]).collect();
    let plan = Plan { rung: Rung::Programs, groups: &groups };
    let mut watch = Watch::begin(child.id(), None, plan).expect("it lives");
    echo(&mut child, ECHOES);
    while watch.step(None) == Step::Waited {}
    let observation = watch.end(Ending::Time);
    let pid = child.id();
    end(child);
    let Some(trace) = &observation.trace else {
        println!("skipped: nothing is traced here: {:?}", observation.notes);
        return;
    };
    let Some(table) = trace.descriptors.as_ref().filter(|_| crate::ladder::DESCRIPTORS_ARE_KNOWN) else {
        println!("skipped: descriptors are not counted here: {:?}", observation.notes);
        return;
    };
    let of = |descriptor: u32| {
        let found = table.rows.iter().find(|row| (row.pid, row.descriptor) == (pid, descriptor));
        found.unwrap_or_else(|| panic!("{descriptor}: {table:?}"))
    };
    let (input, output) = (of(0), of(1));
    // It was in its first read when the window started.
    assert_eq!((input.read.calls, input.read.bytes), (ECHOES - 1, ECHOES - 1));
    assert_eq!((output.written.calls, output.written.bytes, output.written.failed), (ECHOES, ECHOES, 0));
    assert_eq!(output.written.sizes, [0, ECHOES], "each of one byte");
    for row in [input, output] {
        assert!(row.name.as_deref().is_some_and(|name| name.starts_with("pipe:[")), "{row:?}");
        assert_eq!((row.state, row.users), (weir_record::observation::DescriptorMark::Open, 1));
    }
    let reads = trace.calls.iter().find(|call| call.name == "read").map_or(0, |call| call.count);
    assert_eq!(reads, input.read.calls, "the two programs see the same calls");
}

#[test]
fn what_is_done_in_each_interval_is_the_whole() {
    let named = Named::new("time");
    let mut child = named.start();
    echo(&mut child, 1);
    let plan = Plan { rung: Rung::Programs, groups: &Group::ALL };
    let mut watch = Watch::begin(child.id(), None, plan).expect("it lives");
    watch.keep_intervals(Duration::from_millis(100));
    for _ in 0..3 {
        echo(&mut child, 200);
        while watch.step(None) == Step::Waited {}
    }
    let observation = watch.end(Ending::Time);
    end(child);
    let series = observation.series.as_ref().expect("it was asked for");
    assert!(series.intervals.len() >= 3, "{series:?}");
    let cpu_ns: u64 = series.intervals.iter().map(|it| it.cpu_ns).sum();
    assert_eq!(cpu_ns, observation.totals.cpu_ns);
    let Some(trace) = &observation.trace else {
        assert!(series.kinds.is_empty() && series.intervals.iter().all(|it| it.traced.is_none()));
        return;
    };
    let calls = |of: fn(&weir_record::observation::IntervalCalls) -> u64| -> u64 {
        series.intervals.iter().filter_map(|it| it.traced.as_ref()).map(of).sum()
    };
    let all: u64 = trace.calls.iter().map(|call| call.count).sum();
    assert_eq!(calls(|it| it.sum.calls), all);
    assert_eq!(calls(|it| it.written_bytes), 600);
    let write = series.kinds.iter().position(|name| name == "write").expect("it did");
    let writes: u64 =
        series.intervals.iter().filter_map(|it| Some(it.traced.as_ref()?.kinds[write].calls)).sum();
    assert_eq!(writes, 600);
}

#[test]
fn one_that_ended_and_was_not_waited_for_has_the_figures_of_its_end() {
    let mut child = becoming("true");
    let plan = Plan { rung: Rung::Process, groups: &[] };
    let mut watch = Watch::begin(child.id(), None, plan).expect("it lives");
    drop(child.stdin.take());
    let ending = watch.run(None, &AtomicBool::new(false));
    let observation = watch.end(ending);
    child.wait().expect("it can be reaped");
    let is_late = |note: &Note| matches!(note, Note::EndedBetween { .. });
    assert!(
        ending == Ending::TargetEnded && !observation.notes.iter().any(is_late),
        "{:?}",
        observation.notes
    );
}
