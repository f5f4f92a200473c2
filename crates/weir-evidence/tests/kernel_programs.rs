//! Kernel programs count exactly the known calls of a child.
//!
//! If the kernel accepts no programs the tests are skipped, by name and with the reason; with
//! `WEIR_REQUIRE_EVIDENCE=programs` that is a failure.

#![expect(clippy::print_stdout, reason = "says why a test was skipped")]

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    os::unix::fs::FileExt,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::{
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair},
    process::{getegid, geteuid, getgid, getppid, getpriority_process, getuid},
    system::uname,
    thread::sched_yield,
};
use weir_evidence::{
    ladder::{
        Group, cost,
        strace::Strace,
        tables::Side,
        tracer::{KernelCounts, Tracer},
    },
    process::{ProcessTree, family_of},
};
use weir_sys::{
    block_ring::{BlockRing, RingOptions, SetupError, TaskRun},
    blocks::{Operation, OperationKind},
};

/// How often the child makes each kind of call: all numbers differ. None queries the session or the process group,
/// which are 0 if the first program of the machine created none, and which rustix considers impossible.
const TIMES: [(libc::c_long, u64); 10] = [
    (libc::SYS_getppid, 1000),
    (libc::SYS_getuid, 3),
    (libc::SYS_geteuid, 5),
    (libc::SYS_getgid, 7),
    (libc::SYS_getegid, 11),
    (libc::SYS_uname, 13),
    (libc::SYS_getpriority, 17),
    (libc::SYS_sched_yield, 19),
    (libc::SYS_sendto, 23),
    // One for each byte, and the last one finds none.
    (libc::SYS_recvfrom, 24),
];

/// Operations that the child submits to its own ring, and datagrams it sends to itself.
const RING_OPERATIONS: u64 = 37;
const DATAGRAMS: u64 = 200;
const BLOCK_BYTES: u32 = 4096;
/// `NET_RX` among softirqs (`include/linux/interrupt.h`).
const NET_RX: u32 = 3;

/// A ring on an endless file.
fn ring() -> Result<BlockRing, SetupError> {
    let options = RingOptions {
        submission_thread: false,
        polled: false,
        polled_hybrid: false,
        fixed_buffers: false,
        fixed_file: false,
        task_run: TaskRun::Interrupting,
    };
    BlockRing::new(File::open("/dev/zero").expect("every Linux has it"), 1, BLOCK_BYTES, options)
}

/// Calls around which the child reads the clock: long ones, and the shortest possible one. Few per look, so that some
/// looks are undisturbed on a busy machine.
const LONG_CALLS: u64 = 4;
const SHORT_CALLS: u64 = 100;
/// Bytes that a long call fills, which takes hundreds of microseconds.
const LONG_BYTES: usize = 4 << 20;

/// The time of this many calls by the clock around each.
fn clocked(times: u64, mut call: impl FnMut()) -> u64 {
    let now_ns = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let [seconds, ns] = [now.tv_sec, now.tv_nsec].map(|it| u64::try_from(it).expect("it began at 0"));
        seconds * 1_000_000_000 + ns
    };
    let of_one = |_| {
        let begun_ns = now_ns();
        call();
        now_ns() - begun_ns
    };
    (0..times).map(of_one).sum()
}

/// Both kinds, in nanoseconds.
fn clocked_calls() -> [u64; 2] {
    let zeros = File::open("/dev/zero").expect("every Linux has it");
    let mut bytes = vec![0; LONG_BYTES];
    let long = || assert_eq!(zeros.read_at(&mut bytes, 0).expect("it is endless"), LONG_BYTES);
    [clocked(LONG_CALLS, long), clocked(SHORT_CALLS, || _ = getppid())]
}

fn times(number: libc::c_long) -> u64 {
    TIMES.iter().find(|(known, _)| *known == number).expect("a kind of the list").1
}

fn known_calls() {
    let repeat = |number, call: fn()| (0..times(number)).for_each(|_| call());
    repeat(libc::SYS_getppid, || _ = getppid());
    repeat(libc::SYS_getuid, || _ = getuid());
    repeat(libc::SYS_geteuid, || _ = geteuid());
    repeat(libc::SYS_getgid, || _ = getgid());
    repeat(libc::SYS_getegid, || _ = getegid());
    repeat(libc::SYS_uname, || _ = uname());
    repeat(libc::SYS_getpriority, || _ = getpriority_process(None));
    repeat(libc::SYS_sched_yield, sched_yield);
    let (one, other) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
    for _ in 0..times(libc::SYS_sendto) {
        assert_eq!(send(&one, &[7], SendFlags::empty()), Ok(1));
    }
    let mut byte = [0];
    while recv(&other, &mut byte, RecvFlags::empty()).is_ok() {}
}

/// The code that runs in the child. It makes its calls between two bytes of input, and ends at the end of its input.
#[test]
fn child_that_is_observed() {
    let Ok(body) = std::env::var("WEIR_OBSERVED_CHILD") else { return };
    let say = |text: &[u8]| {
        let mut stdout = std::io::stdout();
        stdout.write_all(text).and_then(|()| stdout.flush()).expect("the parent reads");
    };
    let is_told = || std::io::stdin().read(&mut [0]).expect("its input can be read") > 0;
    let gate = || {
        say(b"!");
        is_told()
    };
    while gate() {
        match body.as_str() {
            "calls" => known_calls(),
            "threads" => {
                let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(known_calls)).collect();
                threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
            }
            "children" => {
                let status = Command::new(std::env::current_exe().expect("a path"))
                    .args(["--exact", "child_that_is_observed", "--nocapture"])
                    .env("WEIR_OBSERVED_CHILD", "calls")
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn();
                let mut grandchild = Observed::around(status.expect("this program starts"));
                grandchild.go_on();
                grandchild.end();
            }
            "ring" => {
                let mut ring = ring().expect("there was one a moment ago");
                let mut completed = Vec::new();
                for _ in 0..RING_OPERATIONS {
                    let read =
                        Operation { slot: 0, kind: OperationKind::Read, offset_bytes: 0, bytes: BLOCK_BYTES };
                    assert_eq!(ring.submit_and_wait(&[read], &mut completed).expect("it completes"), 1);
                }
                assert_eq!(completed.len() as u64, RING_OPERATIONS);
            }
            "loopback" => {
                let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
                let address = receiver.local_addr().expect("it is bound");
                let sender = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
                for _ in 0..DATAGRAMS {
                    sender.send_to(&[7], address).expect("it is sent");
                    receiver.recv(&mut [0]).expect("it comes");
                }
            }
            "clocked" => {
                let [long_ns, short_ns] = clocked_calls();
                say(format!("{long_ns} {short_ns} ").as_bytes());
            }
            "wait" => {}
            "hold" => {
                let tracer = Tracer::start(&[std::process::id()], &Group::ALL).expect("it starts");
                let ids = tracer.program_ids();
                let list = ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
                say(format!("{list}\n").as_bytes());
                // Until a signal that cannot be handled.
                is_told();
                drop(tracer);
            }
            other => panic!("nothing is called {other}"),
        }
    }
}

/// A child between two gates.
struct Observed(Child);

impl Observed {
    fn start(body: &str) -> Self {
        let child = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "child_that_is_observed", "--nocapture", "--test-threads=1"])
            .env("WEIR_OBSERVED_CHILD", body)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        Self::around(child)
    }

    fn around(child: Child) -> Self {
        let mut observed = Self(child);
        observed.wait_for_gate();
        observed
    }

    /// Its output up to the gate: before the first gate also the test's own output.
    fn wait_for_gate(&mut self) -> String {
        let stdout = self.0.stdout.as_mut().expect("a pipe");
        let (mut byte, mut said) = ([0], Vec::new());
        while byte != *b"!" {
            stdout.read_exact(&mut byte).expect("the child is there");
            said.extend(byte);
        }
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Lets the child do its calls once, and waits until it has.
    fn go_on(&mut self) {
        self.go_on_and_tell();
    }

    /// The same, with the child's output about them.
    fn go_on_and_tell(&mut self) -> String {
        self.0.stdin.as_mut().expect("a pipe").write_all(b".").expect("the child reads");
        self.wait_for_gate()
    }

    fn end(mut self) {
        drop(self.0.stdin.take());
        // Reads the rest, because its output must not block on a full pipe.
        let _ = std::io::copy(self.0.stdout.as_mut().expect("a pipe"), &mut std::io::sink());
        assert!(self.0.wait().expect("it can be reaped").success());
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

/// A tracer of these processes, or `None` with a reason to skip.
fn tracer(members: &[u32]) -> Option<Tracer> {
    match Tracer::start(members, &Group::ALL) {
        Ok(tracer) => Some(tracer),
        Err(error) => {
            let required = std::env::var("WEIR_REQUIRE_EVIDENCE").unwrap_or_default();
            assert!(!required.split(',').any(|rung| rung == "programs"), "WEIR_REQUIRE_EVIDENCE: {error:?}");
            println!("skipped: {error}");
            None
        }
    }
}

fn assert_exact(counts: &KernelCounts, factor: u64) {
    for (number, times) in TIMES {
        let call = counts.calls.get(&(number as u32)).copied().unwrap_or_default();
        assert_eq!(call.count, factor * times, "call {number}");
        assert_eq!(call.buckets.iter().sum::<u64>(), call.count, "call {number}");
        assert!(call.on_cpu_ns > call.softirq_ns + call.probe.ns, "call {number}: {call:?}");
    }
    let sent = counts.calls[&(libc::SYS_sendto as u32)];
    let received = counts.calls[&(libc::SYS_recvfrom as u32)];
    assert_eq!((sent.returned, sent.errors, sent.again), (factor * 23, 0, 0));
    assert_eq!((received.returned, received.errors, received.again), (factor * 23, 0, factor));
    assert!(received.again_ns > 0 && received.again_ns < received.on_cpu_ns);
    assert_eq!((counts.threads_lost, counts.wakes_lost, counts.misses), (0, 0, 0), "nothing is lost");
}

#[test]
fn ten_kinds_of_calls_are_counted_exactly() {
    let mut child = Observed::start("calls");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    assert!(tracer.left_out().iter().all(|it| it.group == Group::Uring), "{:?}", tracer.left_out());
    let before = tracer.read().expect("tables can be read");
    child.go_on();
    let first = tracer.read().expect("tables can be read");
    assert_exact(&first.since(&before), 1);
    child.go_on();
    let counts = tracer.finish().expect("tables can be read");
    assert_exact(&counts.since(&first), 1);
    assert_exact(&counts.since(&before), 2);
    child.end();
}

#[test]
fn operations_of_a_ring_are_counted_exactly() {
    if let Err(error) = ring() {
        println!("skipped: no io_uring here: {error}");
        return;
    }
    let mut child = Observed::start("ring");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    if let Some(left_out) = tracer.left_out().iter().find(|it| it.group == Group::Uring) {
        println!("skipped: {left_out:?}");
        return child.end();
    }
    let tracer_knows_operations = tracer.knows_operations();
    let before = tracer.read().expect("tables can be read");
    child.go_on();
    let counts = tracer.finish().expect("tables can be read").since(&before);
    let own = |event| counts.uring.get(event).map_or(0, |(own, _)| *own);
    let entered = counts.calls[&(libc::SYS_io_uring_enter as u32)];
    assert_eq!((own("io_uring_submit_req"), own("io_uring_complete")), (RING_OPERATIONS, RING_OPERATIONS));
    assert_eq!((entered.count, entered.returned), (RING_OPERATIONS, RING_OPERATIONS));
    let (submitted, to_workers) =
        counts.operations.values().fold((0, 0), |sum, kind| (sum.0 + kind.0, sum.1 + kind.1));
    if tracer_knows_operations {
        assert_eq!((submitted, to_workers), (RING_OPERATIONS, own("io_uring_queue_async_work")));
        assert_eq!(counts.operations.len(), 1, "all of one kind: {:?}", counts.operations);
    } else {
        println!("skipped: this kernel does not describe operations of io_uring");
    }
    child.end();
}

#[test]
fn what_loopback_delivers_within_a_send_is_softirq_time_of_that_call() {
    let mut child = Observed::start("loopback");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    if let Some(left_out) = tracer.left_out().iter().find(|it| it.group == Group::Softirqs) {
        println!("skipped: {left_out:?}");
        return child.end();
    }
    let before = tracer.read().expect("tables can be read");
    child.go_on();
    let counts = tracer.finish().expect("tables can be read").since(&before);
    let [own, _] = counts.softirqs.get(&NET_RX).copied().unwrap_or_default();
    let sent = counts.calls[&(libc::SYS_sendto as u32)];
    // A burst may be left to the kernel's softirq thread.
    assert!(own.count > DATAGRAMS / 2 && own.ns > 0, "{:?}", counts.softirqs);
    assert_eq!(sent.count, DATAGRAMS);
    assert!(sent.softirq_ns > 0 && sent.softirq_ns < sent.on_cpu_ns, "{sent:?}");
    child.end();
}

#[test]
fn strace_counts_the_same_calls() {
    let mut child = Observed::start("calls");
    let strace = match Strace::attach(child.pid(), &[]) {
        Ok(strace) => strace,
        Err(error) => {
            println!("skipped: {error}");
            return child.end();
        }
    };
    child.go_on();
    let rows = strace.finish().expect("a table");
    for (number, times) in TIMES {
        let name = weir_sys::syscalls::name(number as u32).expect("it has one");
        let calls = rows.iter().find(|row| row.name == name).map_or(0, |row| row.calls);
        assert_eq!(calls, times, "{name}: {rows:?}");
    }
    child.end();
}

#[test]
fn perf_counts_the_same_calls() {
    // Calls that perf itself does not make.
    let kinds = [libc::SYS_getppid, libc::SYS_sched_yield, libc::SYS_getpriority, libc::SYS_sendto];
    let names = kinds.map(|number| weir_sys::syscalls::name(number as u32).expect("it has one"));
    let events = names.map(|name| format!("syscalls:sys_exit_{name}"));
    let table = std::env::temp_dir().join(format!("weir-perf-{}", std::process::id()));
    let perf = || {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", &events.join(","), "-o"]).arg(&table).arg("--");
        command
    };
    if !perf().arg("true").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: perf cannot count system calls here");
        return;
    }
    let started = perf()
        .arg(std::env::current_exe().expect("a path"))
        .args(["--exact", "child_that_is_observed", "--nocapture", "--test-threads=1"])
        .env("WEIR_OBSERVED_CHILD", "calls")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = Observed::around(started.expect("it started a moment ago"));
    let tracer = tracer(&family_of(child.pid()).expect("it lives"));
    child.go_on();
    let counts = tracer.map(|tracer| tracer.finish().expect("tables can be read"));
    child.end();
    let text = std::fs::read_to_string(&table).expect("perf wrote it");
    for ((number, name), event) in kinds.into_iter().zip(names).zip(&events) {
        let line = text.lines().find(|line| line.contains(event.as_str())).expect("each event has a line");
        assert_eq!(line.split(',').next(), Some(times(number).to_string().as_str()), "{name}: {text}");
        if let Some(counts) = &counts {
            assert_eq!(counts.calls[&(number as u32)].count, times(number), "{name}");
        }
    }
    std::fs::remove_file(&table).expect("it can be removed");
}

/// Number of looks at the clocked calls, in turns, each after a measurement of the way into the kernel and back.
const TURNS: usize = 6;
const LOOKS: usize = 50;

/// The interval between the programs' clock readings lies within the child's, and the rest is the way into the kernel
/// and back. Any disturbance between two clocks only lengthens the rest and the way: so the shortest of each is the
/// least disturbed one, and it alone decides.
#[test]
fn times_of_calls_are_those_that_the_clock_shows_around_them() {
    const LONG_APART_MAX: f64 = 0.02;
    const SHORT_APART_NS_MAX: f64 = 300.0;
    let mut child = Observed::start("clocked");
    let Some(tracer) = tracer(&[]) else { return child.end() };
    let [mut long, mut short_ns, mut way_ns] = [f64::INFINITY; 3];
    for _ in 0..TURNS {
        way_ns = way_ns.min(way_of_a_call_ns(&tracer));
        // The measurement of the way leaves nobody observed.
        tracer.add_members(&[child.pid()], Side::First).expect("there is room");
        for _ in 0..LOOKS {
            let [of_long, of_short_ns] = beyond_calls(&tracer, &mut child);
            (long, short_ns) = (long.min(of_long), short_ns.min(of_short_ns));
        }
    }
    assert!(long.abs() <= LONG_APART_MAX, "{long} of the time of long calls");
    let apart_ns = (short_ns - way_ns).abs();
    assert!(apart_ns <= SHORT_APART_NS_MAX, "{short_ns} beside a short call, {way_ns} expected");
    child.end();
}

/// Time from a clock before a call of this process to the programs' clock, and from theirs to one behind the call.
fn way_of_a_call_ns(tracer: &Tracer) -> f64 {
    let probe = cost::tried(tracer, &cost::untraced()).expect("they count").cost;
    probe.traced_ns - probe.inside_ns + cost::of_clock_ns()
}

/// Difference between the child's clocks and the programs': as a share of the time of long calls, and in nanoseconds
/// for a short one.
fn beyond_calls(tracer: &Tracer, child: &mut Observed) -> [f64; 2] {
    let before = tracer.read().expect("tables can be read");
    let said = child.go_on_and_tell();
    let counts = tracer.read().expect("tables can be read").since(&before);
    let clocked: Vec<u64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [long, short] = [libc::SYS_pread64, libc::SYS_getppid].map(|it| counts.calls[&(it as u32)]);
    assert_eq!((long.count, short.count, clocked.len()), (LONG_CALLS, SHORT_CALLS, 2), "{said}");
    let [long_ns, short_ns] =
        [(0, long), (1, short)].map(|(at, call)| clocked[at] as f64 - call.wall_ns() as f64);
    [long_ns / clocked[0] as f64, short_ns / SHORT_CALLS as f64]
}

#[test]
fn threads_that_come_and_go_are_counted() {
    let mut child = Observed::start("threads");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    child.go_on();
    let counts = tracer.finish().expect("tables can be read");
    assert_exact(&counts, 4);
    child.end();
}

/// The kernel reuses the address of a thread, for any process, a moment after it ended.
#[test]
fn threads_that_ended_are_forgotten_where_switches_are_not_looked_at_too() {
    const PATIENCE: Duration = Duration::from_secs(20);
    let mut child = Observed::start("threads");
    let Some(mut tracer) = tracer(&[child.pid()]) else { return child.end() };
    tracer.attach(&[Group::Calls]).expect("it did with all of them");
    let before = tracer.read().expect("tables can be read");
    child.go_on();
    let begun = Instant::now();
    let counts = loop {
        let counts = tracer.read().expect("tables can be read");
        if counts.threads.len() <= 1 {
            break counts;
        }
        assert!(begun.elapsed() < PATIENCE, "they are known still: {:?}", counts.threads);
        std::thread::yield_now();
    };
    assert_exact(&counts.since(&before), 4);
    child.end();
}

#[test]
fn children_of_the_observed_are_observed() {
    let mut child = Observed::start("children");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    child.go_on();
    let counts = tracer.finish().expect("tables can be read");
    for (number, times) in TIMES {
        // The grandchild's start and end have a few of these too.
        let count = counts.calls.get(&(number as u32)).map_or(0, |call| call.count);
        assert!((times..times + 20).contains(&count), "call {number}: {count}");
    }
    child.end();
}

#[test]
fn what_others_do_is_not_counted() {
    // A child rather than this process, in which other tests start tracers, which make calls to measure their own
    // cost.
    let (traced, mut other) = (Observed::start("wait"), Observed::start("calls"));
    if let Some(tracer) = tracer(&[traced.pid()]) {
        let before = tracer.read().expect("tables can be read");
        other.go_on();
        let counts = tracer.finish().expect("tables can be read").since(&before);
        let counted = |(number, _): &&(libc::c_long, u64)| counts.calls.contains_key(&(*number as u32));
        assert_eq!(TIMES.iter().find(counted), None, "{counts:?}");
    }
    traced.end();
    other.end();
}

#[test]
fn a_call_that_is_still_blocked_is_in_flight_and_its_sleep_has_a_waker() {
    let mut child = Observed::start("wait");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    child.go_on();
    // It is at its gate again, in `read` or about to be.
    let blocked = loop {
        let counts = tracer.read().expect("tables can be read");
        if counts.threads.iter().any(|it| it.parked_since_ns.is_some() && it.in_call.is_some()) {
            break counts;
        }
        std::thread::yield_now();
    };
    let thread = blocked.threads.iter().find(|it| it.in_call.is_some()).expect("the one that reads");
    assert_eq!((thread.pid, thread.in_call.map(|it| it.0)), (child.pid(), Some(libc::SYS_read as u32)));
    child.go_on();
    let counts = tracer.finish().expect("tables can be read").since(&blocked);
    let read = counts.calls[&(libc::SYS_read as u32)];
    assert_eq!(read.count, 1, "the call that was in flight came back");
    assert!(read.blocked_ns > 0);
    let woken: u64 =
        counts.wakes.iter().filter(|it| it.waker_pid == std::process::id()).map(|it| it.count).sum();
    assert_eq!(woken, 1, "this process woke it: {:?}", counts.wakes);
    child.end();
}

#[test]
fn switches_agree_with_those_the_kernel_always_counts() {
    let mut child = Observed::start("calls");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    let settled = |tracer: &Tracer, pid: u32| loop {
        // Nothing changed between two readings, so both sides belong to one moment.
        let process = ProcessTree::snapshot(pid).expect("it lives");
        let counts = tracer.read().expect("tables can be read");
        if process == ProcessTree::snapshot(pid).expect("it lives") {
            break (process, counts);
        }
    };
    child.go_on();
    let (process_before, before) = settled(&tracer, child.pid());
    (0..20).for_each(|_| child.go_on());
    let (process_after, after) = settled(&tracer, child.pid());
    let kernel = ProcessTree::delta(&process_before, &process_after);
    let counts = after.since(&before);
    let sleeps: u64 = counts.threads.iter().map(|it| it.sleeps).sum();
    let preemptions: u64 = counts.threads.iter().map(|it| it.preemptions).sum();
    assert_eq!(
        (sleeps, preemptions),
        (kernel.context_switches_voluntary, kernel.context_switches_involuntary)
    );
    // Between two moments at which it went to sleep it ran, slept, or waited for a CPU.
    for thread in &counts.threads {
        let since = |counts: &KernelCounts| {
            counts.threads.iter().find(|it| it.tid == thread.tid).and_then(|it| it.parked_since_ns)
        };
        let (Some(from), Some(to)) = (since(&before), since(&after)) else { panic!("it sleeps: {thread:?}") };
        assert_eq!(thread.ran_ns + thread.blocked_ns + thread.queued_ns, to - from, "{thread:?}");
        assert!(thread.in_calls.on_cpu_ns < thread.ran_ns && thread.switch_probe_ns > 0, "{thread:?}");
    }
    child.end();
}

#[test]
fn programs_that_are_detached_do_not_run_and_count_again_when_they_are_attached() {
    let mut child = Observed::start("calls");
    let Some(mut tracer) = tracer(&[child.pid()]) else { return child.end() };
    let Ok(_counting) = weir_sys::bpf::count_runs() else {
        println!("skipped: this kernel does not count runs");
        return child.end();
    };
    let runs = |tracer: &Tracer| tracer.runs().iter().map(|(_, count, _)| count).sum::<u64>();
    child.go_on();
    tracer.stop();
    // A run in progress on another CPU ends.
    let stopped = loop {
        let before = runs(&tracer);
        std::thread::yield_now();
        if runs(&tracer) == before {
            break before;
        }
    };
    assert!(stopped > 1_000, "{stopped} runs of {:?}", tracer.runs());
    let before = tracer.read().expect("tables can be read");
    child.go_on();
    assert_eq!(runs(&tracer), stopped, "nothing runs them");
    assert_eq!(tracer.read().expect("tables can be read").since(&before).calls, BTreeMap::new());
    tracer.attach(&[Group::Calls]).expect("it did before");
    child.go_on();
    let counts = tracer.finish().expect("tables can be read").since(&before);
    assert_exact(&counts, 1);
    let softirqs = counts.softirqs.values().flatten().map(|it| it.count).sum::<u64>();
    assert_eq!((counts.wakes.len(), softirqs), (0, 0), "those groups rest");
    child.end();
}

#[test]
fn what_the_programs_took_of_a_thread_is_kept_with_the_call_in_which_they_ran() {
    let mut child = Observed::start("wait");
    let Some(tracer) = tracer(&[child.pid()]) else { return child.end() };
    let before = tracer.read().expect("tables can be read");
    (0..50).for_each(|_| child.go_on());
    let counts = tracer.finish().expect("tables can be read").since(&before);
    // Each time it sleeps in its read, which is a switch. Its write wakes this process, if that is asleep by then and
    // the kernel does not leave the wake-up to this one's CPU; such a program times itself.
    let of = |number: libc::c_long| counts.calls[&(number as u32)].probe;
    let (read, write) = (of(libc::SYS_read), of(libc::SYS_write));
    assert!(read.runs > 0 && (write.runs == 0 || write.ns > 0), "{read:?} {write:?}");
    let all = counts.calls.values().map(|call| call.probe.runs).sum::<u64>();
    let [thread] = counts.threads.as_slice() else { panic!("it has one thread: {:?}", counts.threads) };
    assert_eq!(thread.in_calls.probe.runs, all);
    assert!(thread.probe.runs >= all && thread.probe.ns >= thread.in_calls.probe.ns, "{thread:?}");
    let on_cpu_ns = counts.calls.values().map(|call| call.on_cpu_ns).sum::<u64>();
    assert_eq!(thread.in_calls.on_cpu_ns, on_cpu_ns);
    assert!(thread.in_calls.probe.ns < on_cpu_ns, "{thread:?}");
    child.end();
}

#[test]
fn a_process_on_which_their_cost_was_tried_is_observed_no_more_though_it_bears_threads() {
    let Some(tracer) = tracer(&[]) else { return };
    let is_over = AtomicBool::new(false);
    let tried = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                std::thread::spawn(|| ()).join().expect("it ends");
            }
        });
        let tried: Vec<_> = (0..20).map(|_| cost::tried(&tracer, &cost::untraced())).collect();
        is_over.store(true, Ordering::Relaxed);
        tried
    });
    for tried in tried {
        let tried = tried.expect("they count");
        assert!(tried.counted >= tried.made, "{tried:?}");
    }
    known_calls();
    let followed = tracer.read().expect("it can be read").threads;
    assert!(followed.iter().all(|thread| thread.pid != std::process::id()), "{followed:?}");
}

#[test]
fn nothing_is_left_of_a_process_that_was_killed() {
    if tracer(&[std::process::id()]).is_none() {
        return;
    }
    let mut child = Observed::start("hold");
    child.0.stdin.as_mut().expect("a pipe").write_all(b".").expect("the child reads");
    let mut line = Vec::new();
    let stdout = child.0.stdout.as_mut().expect("a pipe");
    let mut byte = [0];
    while byte != *b"\n" {
        stdout.read_exact(&mut byte).expect("the child lives");
        line.push(byte[0]);
    }
    let text = String::from_utf8(line).expect("numbers");
    let ids: Vec<u32> = text.split_whitespace().map(|id| id.parse().expect("a number")).collect();
    assert!(!ids.is_empty());
    let there = || weir_sys::bpf::programs().expect("programs can be listed");
    assert!(ids.iter().all(|id| there().contains(id)), "they run: {ids:?}");
    child.0.kill().expect("it can be killed");
    child.0.wait().expect("it can be reaped");
    // The kernel frees them when no CPU can be running them any more.
    while ids.iter().any(|id| there().contains(id)) {
        std::thread::yield_now();
    }
}

#[test]
fn of_members_it_is_said_whether_one_of_them_is_new() {
    let child = Observed::start("wait");
    let Some(tracer) = tracer(&[]) else { return child.end() };
    let add = |side| tracer.add_members(&[child.pid()], side).expect("there is room");
    assert!(add(Side::First) && !add(Side::First));
    assert!(add(Side::Second) && !add(Side::Second), "it changed sides");
    tracer.forget(child.pid()).expect("it can be forgotten");
    let found = tracer.add_families(&[(child.pid(), Side::First)]).expect("it lives");
    assert_eq!((found, add(Side::First)), (vec![child.pid()], false));
    child.end();
}

#[test]
fn two_processes_are_counted_apart_by_the_same_programs() {
    let (mut one, mut other) = (Observed::start("calls"), Observed::start("threads"));
    let Some(mut tracer) = tracer(&[one.pid()]) else {
        one.end();
        return other.end();
    };
    tracer.add_members(&[other.pid()], Side::Second).expect("there is room");
    let before = Side::ALL.map(|side| tracer.read_side(side).expect("tables can be read"));
    one.go_on();
    other.go_on();
    one.go_on();
    tracer.stop();
    let after = Side::ALL.map(|side| tracer.read_side(side).expect("tables can be read"));
    assert_exact(&after[0].since(&before[0]), 2);
    assert_exact(&after[1].since(&before[1]), 4);
    assert_eq!(after[1].since(&before[1]).threads_ended, 4, "they are those of the second");
    assert_eq!(after[0].since(&before[0]).threads_ended, 0);
    for (counts, pid) in after.iter().zip([one.pid(), other.pid()]) {
        assert!(!counts.threads.is_empty() && counts.threads.iter().all(|thread| thread.pid == pid));
    }
    one.end();
    other.end();
}
