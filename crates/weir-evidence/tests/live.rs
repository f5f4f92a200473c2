//! The real /proc, with processes and threads that really end. The tests burn CPU by the clock of this process, so a
//! busy test machine makes them slower, not wrong.

use std::{
    hint::black_box,
    io::{Read, Write},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use weir_evidence::{
    edge::{Beside, Edge},
    process::ProcessTree,
};

/// Locked by each test: they watch the process they all run in.
static ALONE: Mutex<()> = Mutex::new(());

const TICK: Duration = Duration::from_millis(10);

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn burn(cpu: Duration) {
    let used = thread_cpu;
    let end = used() + cpu;
    let mut state = 1_u64;
    while used() < end {
        for _ in 0..10_000 {
            state = black_box(state.wrapping_mul(31).wrapping_add(7));
        }
    }
}

/// CPU of the calling thread.
fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn own_tree() -> ProcessTree {
    ProcessTree::snapshot(std::process::id()).expect("own process")
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a short time")
}

#[test]
#[expect(clippy::print_stdout, reason = "says why the test was skipped")]
fn burnt_cpu_appears_in_the_process_and_in_the_living_thread() {
    let _alone = alone();
    let before = own_tree();
    burn(Duration::from_millis(30));
    let after = own_tree();
    let delta = ProcessTree::delta(&before, &after);
    // Both edges are read by the burning thread, whose clock the kernel updates at the query.
    assert!(delta.cpu_ns >= ns(Duration::from_millis(29)), "{delta:?}");
    assert!(delta.rss_anon_bytes > 0 && delta.threads >= 1);
    let thread = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let cpu_of = |tree: &ProcessTree| {
        let threads = tree.processes[0].threads.iter();
        threads.filter(|sample| sample.tid == thread).map(|sample| sample.cpu_ns).sum::<u64>()
    };
    if cpu_of(&after) == 0 {
        println!("skipped: no schedstat on this kernel");
        return;
    }
    assert!(cpu_of(&after) - cpu_of(&before) >= ns(Duration::from_millis(20)));
}

#[test]
fn a_thread_born_and_ended_inside_the_window_is_not_lost() {
    let _alone = alone();
    let before = own_tree();
    thread::spawn(|| burn(Duration::from_millis(30))).join().expect("a thread that burns");
    let delta = ProcessTree::delta(&before, &own_tree());
    assert!(delta.cpu_ns >= ns(Duration::from_millis(29)), "{delta:?}");
    assert!(delta.ended_cpu_ns >= ns(Duration::from_millis(29)), "{delta:?}");
}

#[test]
fn a_child_is_in_the_tree_while_it_lives_and_its_cpu_stays_after_it_ended() {
    let _alone = alone();
    // The shell waits for a line, burns, reports that it is done, and waits for its input to end.
    let mut child = Command::new("sh")
        .args(["-c", "read line; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh");
    let before = own_tree();
    child.stdin.as_mut().expect("piped").write_all(b"go\n").expect("a waiting shell");
    let mut said = [0; 4];
    child.stdout.as_mut().expect("piped").read_exact(&mut said).expect("the shell's word");
    let during = own_tree();
    let sample =
        during.processes.iter().find(|process| process.pid == child.id()).expect("a living child").clone();
    assert_eq!((sample.parent, sample.threads.len()), (std::process::id(), 1));
    assert!(sample.cpu_ns > 0);

    let root = ProcessTree::snapshot(child.id()).expect("a living child");
    assert_eq!(root.processes.len(), 1);

    drop(child.stdin.take());
    child.wait().expect("the shell ends");
    let after = own_tree();
    assert!(after.processes.iter().all(|process| process.pid != child.id()));
    let start_ns =
        before.processes.iter().find(|process| process.pid == child.id()).expect("it waited").cpu_ns;
    let burnt_ns = sample.cpu_ns - start_ns;
    let delta = ProcessTree::delta(&before, &after);
    assert!(delta.cpu_ns + 2 * ns(TICK) >= burnt_ns, "{delta:?} {burnt_ns}");
    assert!(ProcessTree::snapshot(child.id()).is_err());
}

#[test]
fn an_edge_counts_the_target_and_calls_neither_it_nor_us_foreign() {
    let _alone = alone();
    let first = Edge::read(std::process::id()).expect("own process");
    burn(Duration::from_millis(60));
    let window = first.until(&Edge::read(std::process::id()).expect("own process"));
    assert!(window.cpu_ns >= ns(Duration::from_millis(59)));
    assert!(window.noise.window_ns >= ns(Duration::from_millis(59)));
    assert!(window.noise.machine_busy_ns + 3 * ns(TICK) >= ns(Duration::from_millis(60)), "{window:?}");
    assert_eq!(window.noise.run_delay_ns, window.run_delay_ns);
    assert!(window.engine.is_none());
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    let _alone = alone();
    assert!(Edge::read(u32::MAX).is_err());
    assert!(ProcessTree::snapshot(0).is_err());
}

#[test]
fn threads_of_a_process_beside_the_target_are_its_own() {
    let _alone = alone();
    let mut child =
        Command::new("sh").args(["-c", "read go"]).stdin(Stdio::piped()).spawn().expect("a shell starts");
    let beside = [Beside { node: "exchange".to_owned(), pid: child.id() }];
    let read = || Edge::read_with(std::process::id(), &beside).expect("own process");
    let first = read();
    burn(Duration::from_millis(20));
    let threads = first.threads_until(&read(), 20_000_000);
    drop(child.stdin.take());
    child.wait().expect("the shell ends");
    let [own, .., exchange] = threads.processes.as_slice() else { panic!("{threads:?}") };
    assert_eq!((own.node.as_str(), own.pid), ("", std::process::id()));
    assert!(own.threads.iter().any(|thread| thread.cpu_ns >= 15_000_000), "{own:?}");
    assert_eq!((exchange.node.as_str(), exchange.pid), ("exchange", child.id()));
    assert_eq!((exchange.threads.len(), exchange.threads_left_out), (1, 0));
    assert_eq!(threads.ended_local.len(), "2026-02-09 13:09:25".len(), "{}", threads.ended_local);
}
