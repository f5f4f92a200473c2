//! The programs on an interpreter, with events as the kernel reports them and as some kernels do not.

use weir_sys::bpf::INSTRUCTIONS_MAX;

use super::*;
use crate::ladder::{
    interpreter::{Interpreter, POINTED_AT},
    kernel::PidNamespace,
    tables::{self, SIZE_BUCKETS, TracedThread},
};

/// A kernel without version-specific features.
const HERE: Kernel = Kernel { namespace: None, opcode_offset: None };

#[test]
fn every_program_is_short_and_ends() {
    let groups = Group::ALL.into_iter().chain([Group::Descriptors]);
    let namespace = Some(PidNamespace { device: 4, inode: 0xf000_0001 });
    let kernels = [HERE, Kernel { namespace, opcode_offset: Some(64) }];
    let programs = kernels.into_iter().flat_map(|kernel| {
        let all = groups.clone().flat_map(move |group| group.programs(kernel));
        all.chain(family(kernel))
    });
    let groups = programs;
    for (name, program) in groups {
        let words = program.linked(|_| 1);
        assert!(words.len() < INSTRUCTIONS_MAX / 8, "{name}: {}", words.len());
        assert_eq!(words.last().map(|word| word & 0xff), Some(0x95), "{name}");
    }
}

/// The observed thread, the one that wakes it, and its call.
const OWN: u64 = 0x7000;
const OTHER: u64 = 0x8000;
const IDS: u64 = 7 << 32 | 7;
const CALL: u32 = 202;
/// The state of a stopping thread: it sleeps (`TASK_INTERRUPTIBLE`).
const SLEEPS: u64 = 1;

/// A CPU on which one thread of process 7 is observed.
struct Scene(Interpreter);

impl Scene {
    fn new() -> Self {
        let mut cpu = Interpreter::new();
        let word = cpu.value(Table::Members, &0_u32.to_ne_bytes()).expect("an array");
        word.copy_from_slice(&(1_u64 << 14).to_ne_bytes());
        Self(cpu)
    }

    fn event(&mut self, at_ns: u64, task: u64, program: Assembled, arguments: &[u64]) -> &mut Self {
        self.0.now_ns = at_ns;
        self.0.task = task;
        self.0.ids = if task == OWN { IDS } else { 9 << 32 | 9 };
        self.0.run(&program, arguments);
        self
    }

    fn enters(&mut self, at_ns: u64) -> &mut Self {
        self.event(at_ns, OWN, sys_enter(HERE), &[0, CALL.into()])
    }

    fn leaves(&mut self, at_ns: u64) -> &mut Self {
        self.event(at_ns, OWN, sys_exit(HERE), &[0, 0])
    }

    fn sleeps(&mut self, at_ns: u64) -> &mut Self {
        self.event(at_ns, OWN, scheduling::switch(HERE), &[0, OWN, OTHER, SLEEPS])
    }

    fn is_preempted(&mut self, at_ns: u64) -> &mut Self {
        self.event(at_ns, OWN, scheduling::switch(HERE), &[1, OWN, OTHER, 0])
    }

    fn is_woken(&mut self, at_ns: u64) -> &mut Self {
        self.event(at_ns, OTHER, scheduling::waking(HERE), &[OWN])
    }

    fn goes_on(&mut self, at_ns: u64) -> &mut Self {
        self.event(at_ns, OTHER, scheduling::switch(HERE), &[0, OTHER, OWN, SLEEPS])
    }

    fn thread(&mut self) -> TracedThread {
        TracedThread::decode(self.0.value(Table::Threads, &OWN.to_ne_bytes()).expect("it is followed"))
    }

    /// Times on a CPU, asleep, waiting for a CPU in calls that returned; missed switches.
    fn times(&mut self) -> ([u64; 3], u64) {
        let call = self.0.value(Table::Calls, &CALL.to_ne_bytes()).expect("an array");
        let call = tables::TracedCall::decode(call);
        let missed = (Counter::SwitchesMissed as u32).to_ne_bytes();
        let missed = tables::decode_counter(self.0.value(Table::Counters, &missed).expect("an array"));
        ([call.on_cpu_ns, call.blocked_ns, call.queued_ns], missed)
    }
}

#[test]
fn a_call_is_split_into_work_sleep_and_waiting() {
    let mut scene = Scene::new();
    scene.enters(100).sleeps(110).is_woken(1_110).goes_on(1_115).leaves(1_135);
    assert_eq!(scene.times(), ([30, 1_000, 5], 0));
    scene.enters(2_000).is_preempted(2_010).goes_on(2_510).leaves(2_520);
    assert_eq!(scene.times(), ([50, 1_000, 505], 0));
    let thread = scene.thread();
    assert_eq!((thread.blocked_ns, thread.queued_ns, thread.sleeps, thread.preemptions), (1_000, 505, 1, 1));
    scene.sleeps(2_600);
    assert_eq!(scene.thread().ran_ns, 10 + (2_010 - 1_115) + (2_600 - 2_510));
}

#[test]
fn a_thread_that_leaves_a_call_has_a_cpu_although_no_switch_to_it_was_announced() {
    let mut scene = Scene::new();
    scene.enters(100).sleeps(110).is_woken(1_110).leaves(1_135);
    assert_eq!(scene.times(), ([10, 1_000, 25], 1));
    // An unseen sleep would start during the last one, and be counted as work.
    scene.enters(2_000).sleeps(2_010).is_woken(9_010).goes_on(9_010).leaves(9_020);
    assert_eq!(scene.times(), ([30, 8_000, 25], 1));
}

#[test]
fn a_thread_that_is_switched_from_had_a_cpu_although_no_switch_to_it_was_announced() {
    let mut scene = Scene::new();
    scene.enters(100).sleeps(110).is_woken(510).sleeps(1_110).is_woken(2_110).goes_on(2_110).leaves(2_120);
    assert_eq!(scene.times(), ([20, 1_400, 600], 1));
}

#[test]
fn a_thread_that_enters_a_call_has_a_cpu_although_no_switch_to_it_was_announced() {
    let mut scene = Scene::new();
    scene.enters(100).leaves(110).is_preempted(200).enters(1_200).sleeps(1_210).goes_on(5_210).leaves(5_215);
    assert_eq!(scene.times(), ([25, 4_000, 0], 1));
    assert_eq!(scene.thread().queued_ns, 1_000);
}

#[test]
fn a_thread_that_is_switched_to_had_lost_its_cpu_although_that_was_not_announced() {
    let mut scene = Scene::new();
    scene.enters(100).is_woken(900).goes_on(1_100).leaves(1_120);
    assert_eq!(scene.times(), ([20, 1_000, 0], 1));
    scene.sleeps(1_200);
    assert_eq!(scene.thread().ran_ns, 1_200 - 1_100);
}

#[test]
fn a_wake_by_a_timer_is_nobodys_although_a_thread_runs() {
    let mut scene = Scene::new();
    scene.enters(100).sleeps(110).is_woken(200).goes_on(210).sleeps(300);
    scene.event(500, OTHER, scheduling::timer_begins(), &[0]).is_woken(500);
    scene.event(501, OTHER, scheduling::timer_ends(), &[0]).goes_on(510);
    let wakes = scene.0.values_of(Table::Wakes);
    let mut wakes: Vec<_> = wakes.map(|(key, value)| tables::TracedWake::decode(key, value)).collect();
    wakes.sort_by_key(|wake| wake.waker_tid);
    let figures = |wake: &tables::TracedWake| {
        (wake.waker_tid, wake.waker_name.clone(), wake.context, wake.count, wake.blocked_ns)
    };
    let by_timer = (0, String::new(), Some(tables::WakeContext::Timer), 1, 200);
    let by_thread = (9, "x".to_owned(), None, 1, 90);
    assert_eq!(wakes.iter().map(figures).collect::<Vec<_>>(), [by_timer, by_thread]);
}

#[test]
fn whoever_has_the_address_of_a_thread_that_is_gone_is_not_taken_for_it() {
    let mut scene = Scene::new();
    scene.enters(100).event(200, OTHER, scheduling::free(), &[OWN]);
    assert!(scene.0.value(Table::Threads, &OWN.to_ne_bytes()).is_none(), "its address is free");
    let members = scene.0.value(Table::Members, &0_u32.to_ne_bytes()).expect("an array");
    assert_eq!(members[..], [0_u8; 8], "the number of its process is, too");
    // A thread of another process now has the address.
    (scene.0.now_ns, scene.0.task, scene.0.ids) = (300, OWN, 9 << 32 | 9);
    scene.0.run(&sys_enter(HERE), &[0, CALL.into()]);
    scene.0.run(&sys_exit(HERE), &[0, 0]);
    assert!(scene.0.value(Table::Threads, &OWN.to_ne_bytes()).is_none(), "it is nobody's");
    assert_eq!(scene.times(), ([0; 3], 0));
}

#[test]
fn threads_that_were_not_seen_yet_are_followed_though_the_first_one_of_their_process_ended() {
    const LATE: u64 = 0x9000;
    let mut scene = Scene::new();
    let dies = [0, OWN, OTHER, u64::from(TASK_DEAD.unsigned_abs())];
    scene.enters(100).event(200, OWN, scheduling::switch(HERE), &dies);
    assert_eq!(scene.thread().tid, 0, "it is not reported any more");
    (scene.0.now_ns, scene.0.task, scene.0.ids) = (300, LATE, 7 << 32 | 8);
    scene.0.run(&sys_enter(HERE), &[0, CALL.into()]);
    let late = scene.0.value(Table::Threads, &LATE.to_ne_bytes()).expect("it is followed");
    assert_eq!(TracedThread::decode(late).calls, 1);
    scene.event(400, OTHER, scheduling::free(), &[LATE]);
    let is_member = |scene: &mut Scene| {
        let members = scene.0.value(Table::Members, &0_u32.to_ne_bytes()).expect("an array");
        members[..] != [0_u8; 8]
    };
    assert!(is_member(&mut scene), "that was not its first one");
    scene.event(500, OTHER, scheduling::free(), &[OWN]);
    assert!(!is_member(&mut scene), "its number is free");
    assert_eq!(scene.0.values_of(Table::Threads).count(), 0);
}

#[test]
fn whoever_has_the_number_of_a_child_that_ended_is_not_taken_for_it() {
    const CHILD: u64 = 0x9000;
    const STRANGER: u64 = 0xa000;
    const IDS_OF_CHILD: u64 = 8 << 32 | 8;
    let mut scene = Scene::new();
    scene.enters(100).event(110, OWN, scheduling::fork(HERE), &[OWN, CHILD]).leaves(120);
    let of_child = |scene: &mut Scene, at_ns, program: Assembled, arguments: &[u64]| {
        (scene.0.now_ns, scene.0.task, scene.0.ids) = (at_ns, CHILD, IDS_OF_CHILD);
        scene.0.run(&program, arguments);
    };
    // It returns from the call that created it, makes its own call and ends.
    of_child(&mut scene, 200, sys_exit(HERE), &[0, 0]);
    of_child(&mut scene, 210, sys_enter(HERE), &[0, CALL.into()]);
    of_child(&mut scene, 220, sys_exit(HERE), &[0, 0]);
    assert_eq!(scene.times().0, [20 + 10, 0, 0], "its call is counted");
    let dies = [0, CHILD, OTHER, u64::from(TASK_DEAD.unsigned_abs())];
    of_child(&mut scene, 300, scheduling::switch(HERE), &dies);
    // The kernel frees its task after it has reused its number for a foreign process.
    (scene.0.now_ns, scene.0.task, scene.0.ids) = (310, STRANGER, IDS_OF_CHILD);
    scene.0.run(&sys_enter(HERE), &[0, CALL.into()]);
    scene.0.run(&sys_exit(HERE), &[0, 0]);
    assert!(scene.0.value(Table::Threads, &STRANGER.to_ne_bytes()).is_none(), "it is nobody's");
    scene.event(400, OTHER, scheduling::free(), &[CHILD]);
    assert_eq!(scene.thread().calls, 1, "its parent is followed");
}

/// Saved registers of a program, with the one that determines 32 or 64 bits.
fn registers(of_32_bits: bool) -> Vec<u8> {
    let mut bytes = vec![0; 168];
    bytes[136] = if of_32_bits { 0x23 } else { 0x33 };
    bytes
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_a_program_of_32_bits_have_a_place_of_their_own_and_so_have_those_of_its_children() {
    const CHILD: u64 = 0x9000;
    let count = |scene: &mut Scene, call: u32| {
        let call = scene.0.value(Table::Calls, &call.to_ne_bytes()).expect("an array");
        tables::TracedCall::decode(call).count
    };
    let exec = |scene: &mut Scene, of_32_bits| {
        scene.0.pointed_at = registers(of_32_bits);
        scene.event(100, OWN, sys_enter(HERE), &[POINTED_AT, EXECVE.into()]);
        scene.event(110, OWN, sys_exit(HERE), &[POINTED_AT, 0]);
    };
    let mut scene = Scene::new();
    exec(&mut scene, false);
    scene.enters(200).leaves(210);
    assert_eq!([EXECVE, CALL, CALLS_OF_32_BITS].map(|call| count(&mut scene, call)), [1, 1, 0]);
    exec(&mut scene, true);
    scene.event(300, OWN, sys_enter(HERE), &[POINTED_AT, CALL.into()]);
    scene.event(310, OWN, scheduling::fork(HERE), &[OWN, CHILD]);
    scene.event(320, OWN, sys_exit(HERE), &[POINTED_AT, 8]);
    (scene.0.now_ns, scene.0.task, scene.0.ids) = (400, CHILD, 8 << 32 | 8);
    for (program, arguments) in [
        (sys_exit(HERE), [POINTED_AT, 0]),
        (sys_enter(HERE), [POINTED_AT, CALL.into()]),
        (sys_exit(HERE), [POINTED_AT, 0]),
    ] {
        scene.0.run(&program, &arguments);
    }
    assert_eq!([EXECVE, CALL, CALLS_OF_32_BITS].map(|call| count(&mut scene, call)), [2, 1, 2]);
    scene.0.pointed_at = registers(false);
    scene.event(500, OWN, sys_enter(HERE), &[POINTED_AT, 11]).event(
        510,
        OWN,
        sys_exit(HERE),
        &[POINTED_AT, 0],
    );
    scene.enters(600).leaves(610);
    assert_eq!(count(&mut scene, CALL), 2, "it is one of 64 bits again");
}

#[test]
fn errors_are_counted_by_call_and_number_and_nothing_to_do_is_none() {
    let mut scene = Scene::new();
    for answer in [-2_i64, -2, -13, -11, 0, 7, -5_000] {
        scene.enters(100).event(110, OWN, sys_exit(HERE), &[0, answer as u64]);
    }
    let errors = scene.0.values_of(Table::Errors);
    let mut errors: Vec<_> =
        errors.map(|(key, value)| (tables::decode_error(key), tables::decode_counter(value))).collect();
    errors.sort_by_key(|((_, call, error), _)| (*call, *error));
    let first = tables::Side::First;
    assert_eq!(errors, [((first, CALL, 2), 2), ((first, CALL, 13), 1)]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn files_are_counted_by_the_name_they_were_opened_by_if_that_says_which_they_are() {
    use weir_sys::syscalls::{OPEN, OPENAT, OPENAT2};
    const NAME_AT: u64 = POINTED_AT + 168;
    const OWN_FOLDER: u64 = -100_i64 as u64;
    let mut scene = Scene::new();
    let mut opens = |call: u32, name: &str, [second, first]: [u64; 2], answer: i64| {
        let mut memory = registers(false);
        memory[104..112].copy_from_slice(&second.to_ne_bytes());
        memory[112..120].copy_from_slice(&first.to_ne_bytes());
        memory.extend_from_slice(name.as_bytes());
        memory.push(0);
        scene.0.pointed_at = memory;
        scene.event(100, OWN, sys_enter(HERE), &[POINTED_AT, call.into()]);
        scene.event(110, OWN, sys_exit(HERE), &[POINTED_AT, answer as u64]);
    };
    for call in [OPENAT, OPENAT2] {
        opens(call, "/etc/hosts", [NAME_AT, 7], 3);
    }
    opens(OPEN.expect("it was kept here"), "/etc/hosts", [0o644, NAME_AT], 3);
    opens(OPENAT, "here", [NAME_AT, OWN_FOLDER], 3);
    // Relative to an unknown folder, failed, too long, not an open, and an unreadable name.
    opens(OPENAT, "there", [NAME_AT, 7], 3);
    opens(OPENAT, "/etc/hosts", [NAME_AT, 7], -2);
    opens(OPENAT, &format!("/{}", "x".repeat(247)), [NAME_AT, 7], 3);
    opens(CALL, "/etc/hosts", [NAME_AT, 7], 3);
    opens(OPENAT, "/etc/hosts", [1, 7], 3);
    let opened = scene.0.values_of(Table::Opened);
    let mut opened: Vec<_> =
        opened.map(|(key, value)| (tables::decode_name(key), tables::decode_counter(value))).collect();
    opened.sort_by_key(|((_, name), _)| name.clone());
    let first = tables::Side::First;
    assert_eq!(opened, [((first, "/etc/hosts".to_owned()), 3), ((first, "here".to_owned()), 1)]);
}

#[test]
fn numbers_beyond_the_table_count_as_one_kind() {
    let mut scene = Scene::new();
    for number in [u64::from(CALLS_OF_32_BITS), u64::from(CALLS_BEYOND), 100_000, 1 << 30] {
        scene.event(100, OWN, sys_enter(HERE), &[0, number]).leaves(110);
    }
    let call = scene.0.value(Table::Calls, &CALLS_BEYOND.to_ne_bytes()).expect("an array");
    assert_eq!(tables::TracedCall::decode(call).count, 4);
}

#[test]
fn what_a_thread_did_is_kept_beyond_its_end() {
    let mut scene = Scene::new();
    scene.enters(100).sleeps(110).is_woken(210).goes_on(220).is_preempted(240).goes_on(250).leaves(260);
    let dies = [0, OWN, OTHER, u64::from(TASK_DEAD.unsigned_abs())];
    scene.event(300, OWN, scheduling::switch(HERE), &dies);
    let mut kept = |counter: Counter| {
        let key = (counter as u32).to_ne_bytes();
        tables::decode_counter(scene.0.value(Table::Counters, &key).expect("an array"))
    };
    let ran_ns = (110 - 100) + (240 - 220) + (300 - 250);
    assert_eq!(kept(Counter::EndedRanNs), ran_ns);
    assert_eq!(
        (kept(Counter::EndedSleeps), kept(Counter::EndedPreemptions)),
        (2, 1),
        "its end is the second"
    );
}

#[test]
fn what_the_programs_took_of_a_thread_is_kept_beyond_its_end() {
    let mut scene = Scene::new();
    scene.enters(100).sleeps(110).is_woken(210).goes_on(220).leaves(230);
    let runs = scene.thread().probe.runs;
    assert!(runs > 0, "one ran on the way to it");
    let dies = [0, OWN, OTHER, u64::from(TASK_DEAD.unsigned_abs())];
    scene.event(300, OWN, scheduling::switch(HERE), &dies);
    let key = (Counter::EndedProbeRuns as u32).to_ne_bytes();
    let kept = scene.0.value(Table::Counters, &key).expect("an array");
    assert_eq!(tables::decode_counter(kept), runs);
}

#[test]
fn no_order_of_events_makes_parts_larger_than_their_call() {
    for seed in 0..20_000_u64 {
        let mut scene = Scene::new();
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut wall_ns = 0;
        let (mut at_ns, mut entered_ns) = (1_000, None);
        for _ in 0..12 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at_ns += (random >> 40) % 50;
            match (random >> 33) % 7 {
                0 if entered_ns.is_none() => {
                    entered_ns = Some(at_ns);
                    scene.enters(at_ns)
                }
                1 => {
                    wall_ns += entered_ns.take().map_or(0, |began_ns| at_ns - began_ns);
                    scene.leaves(at_ns)
                }
                2 => scene.sleeps(at_ns),
                3 => scene.is_preempted(at_ns),
                4 => scene.is_woken(at_ns),
                _ => scene.goes_on(at_ns),
            };
        }
        let ([on_cpu_ns, blocked_ns, queued_ns], _) = scene.times();
        let parts = [on_cpu_ns, blocked_ns, queued_ns];
        assert!(parts.iter().all(|part| *part <= wall_ns), "seed {seed}: {parts:?} of {wall_ns}");
        assert_eq!(parts.iter().sum::<u64>(), wall_ns, "seed {seed}: {parts:?}");
    }
}

/// A call at its exit, with its first three arguments: input of the descriptors program.
fn moves(scene: &mut Scene, number: u32, arguments: [u64; 3], answer: i64) {
    let mut registers = [0_u64; 21];
    // `dx`, `si` and `di` of `struct pt_regs`.
    (registers[14], registers[13], registers[12]) = (arguments[0], arguments[1], arguments[2]);
    scene.0.pointed_at = registers.iter().flat_map(|register| register.to_ne_bytes()).collect();
    scene.event(100, OWN, sys_enter(HERE), &[0, number.into()]);
    scene.event(200, OWN, descriptors::exit(HERE), &[POINTED_AT, answer.cast_unsigned()]);
    scene.event(300, OWN, sys_exit(HERE), &[POINTED_AT, answer.cast_unsigned()]);
}

fn descriptor(scene: &Scene, number: u32) -> Option<tables::TracedDescriptor> {
    let all = scene.0.values_of(Table::Descriptors);
    all.map(|(key, value)| tables::TracedDescriptor::decode(key, value))
        .find(|it| (it.pid, it.descriptor) == (7, number))
}

#[cfg(target_arch = "x86_64")]
#[test]
fn bytes_are_those_of_the_descriptors_that_a_call_was_given() {
    use weir_sys::syscalls::{COPY_FILE_RANGE, READS, SENDFILE, SPLICES, TEE, WRITES};
    let mut scene = Scene::new();
    let (read, write) = (READS[0], WRITES[0]);
    // The upper half of a register does not belong to a descriptor.
    moves(&mut scene, read, [0xdead << 32 | 5, 0, 0], 100);
    moves(&mut scene, read, [5, 0, 0], 0);
    moves(&mut scene, read, [5, 0, 0], -11);
    moves(&mut scene, write, [6, 0, 0], 1);
    moves(&mut scene, CALL, [5, 0, 0], 9_999);
    let of = |scene: &Scene, number| descriptor(scene, number).expect("it moved something");
    let five = of(&scene, 5);
    assert_eq!((five.read.calls, five.read.failed, five.read.bytes, five.closes), (2, 1, 100, 0));
    assert_eq!((five.read.buckets[0], five.read.buckets[7], five.written), (1, 1, Default::default()));
    assert_eq!((of(&scene, 6).written.bytes, of(&scene, 6).written.buckets[1]), (1, 1));
    moves(&mut scene, SENDFILE, [8, 9, 0], 4096);
    assert_eq!(
        (of(&scene, 8).written.bytes, of(&scene, 9).read.bytes, of(&scene, 9).written.bytes),
        (4096, 4096, 0)
    );
    let splice = SPLICES.iter().copied().find(|number| *number != TEE).expect("there is one");
    for (number, from) in [(splice, 10), (COPY_FILE_RANGE, 20)] {
        moves(&mut scene, number, [from, 99, from + 1], 7);
        let from = from as u32;
        assert_eq!((of(&scene, from).read.bytes, of(&scene, from + 1).written.bytes), (7, 7));
    }
    moves(&mut scene, TEE, [30, 31, 0], 3);
    assert_eq!((of(&scene, 30).read.bytes, of(&scene, 31).written.bytes), (3, 3));
    moves(&mut scene, write, [6, 0, 0], i64::MAX);
    assert_eq!(of(&scene, 6).written.buckets[SIZE_BUCKETS - 1], 1);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_number_that_is_closed_is_marked_and_one_that_moved_nothing_has_no_place() {
    use weir_sys::syscalls::{CLOSE, DUP3, READS};
    let mut scene = Scene::new();
    moves(&mut scene, READS[0], [5, 0, 0], 1);
    for (number, argument, answer) in
        [(CLOSE, 5, 0), (CLOSE, 5, -9), (CLOSE, 5, -4), (DUP3, 4, 5), (DUP3, 5, -9)]
    {
        moves(&mut scene, number, [argument, 0, 0], answer);
    }
    let five = descriptor(&scene, 5).expect("it moved a byte");
    assert_eq!(five.closes, 3, "also where the close was interrupted");
    assert_eq!((five.users_ended, five.is_in_use), (1, false), "only the first had moved anything");
    moves(&mut scene, CLOSE, [6, 0, 0], 0);
    assert_eq!(descriptor(&scene, 6), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_number_that_is_put_aside_and_back_has_as_many_users_as_moved_something() {
    use weir_sys::syscalls::{CLOSE, DUP2, DUP3, WRITES};
    /// A shell does this for each command whose output goes to a file.
    const COMMANDS: u64 = 8;
    let (write, dup2) = (WRITES[0], DUP2.expect("it was kept here"));
    let mut scene = Scene::new();
    for _ in 0..COMMANDS {
        moves(&mut scene, CLOSE, [1, 0, 0], 0);
        moves(&mut scene, dup2, [3, 0, 0], 1);
        moves(&mut scene, write, [1, 0, 0], 7);
        moves(&mut scene, DUP3, [10, 0, 0], 1);
    }
    let one = |scene: &Scene| descriptor(scene, 1).expect("it moved something");
    assert_eq!((one(&scene).users_ended, one(&scene).is_in_use), (COMMANDS, false));
    moves(&mut scene, write, [1, 0, 0], 7);
    moves(&mut scene, dup2, [1, 0, 0], 1);
    assert_eq!((one(&scene).users_ended, one(&scene).is_in_use), (COMMANDS, true), "it stays itself");
    moves(&mut scene, write, [1, 0, 0], -9);
    moves(&mut scene, CLOSE, [1, 0, 0], 0);
    moves(&mut scene, write, [1, 0, 0], -9);
    moves(&mut scene, CLOSE, [1, 0, 0], -4);
    assert_eq!((one(&scene).users_ended, one(&scene).is_in_use), (COMMANDS + 1, false));
}

#[test]
fn a_call_that_began_unseen_moves_nothing_through_a_descriptor() {
    let mut scene = Scene::new();
    scene.0.pointed_at = vec![0; 168];
    scene.event(100, OWN, descriptors::exit(HERE), &[POINTED_AT, 5]);
    assert_eq!(scene.0.values_of(Table::Descriptors).count(), 0);
}

/// The observer's namespace, and a nested one.
const NAMESPACE: PidNamespace = PidNamespace { device: 4, inode: 0xf000_0001 };
const BELOW_IT: [u32; 2] = [4, 0xf000_0002];
const NAMESPACED: Kernel = Kernel { namespace: Some(NAMESPACE), ..HERE };

impl Scene {
    /// The same event, for a thread with these ids in the first namespace and those in its own.
    fn namespaced(
        &mut self,
        task: u64,
        ids: u64,
        own: ([u32; 2], u64),
        program: Assembled,
        arguments: &[u64],
    ) {
        (self.0.task, self.0.ids, self.0.namespaced) = (task, ids, own);
        self.0.run(&program, arguments);
    }
}

#[test]
fn in_a_namespace_threads_have_its_numbers_and_those_of_others_have_none() {
    const STRANGER: u64 = 0xa000;
    let here = [NAMESPACE.device, NAMESPACE.inode];
    // In the first namespace they have other ids, which no program may use.
    let (own, waker) = ((here, IDS), (here, 9 << 32 | 9));
    let mut scene = Scene::new();
    scene.0.now_ns = 100;
    scene.namespaced(OWN, 70 << 32 | 70, own, sys_enter(NAMESPACED), &[0, CALL.into()]);
    scene.0.now_ns = 110;
    scene.namespaced(OWN, 70 << 32 | 70, own, sys_exit(NAMESPACED), &[0, 0]);
    assert_eq!((scene.thread().pid, scene.thread().tid, scene.times().0), (7, 7, [10, 0, 0]));
    for (waker, ids) in [(waker, 90 << 32 | 90), ((BELOW_IT, 1 << 32 | 1), 91 << 32 | 91)] {
        scene.sleeps(120);
        scene.0.now_ns = 130;
        scene.namespaced(OTHER, ids, waker, scheduling::waking(NAMESPACED), &[OWN]);
        scene.goes_on(140);
    }
    let wakes = scene.0.values_of(Table::Wakes);
    let wakes: Vec<_> = wakes.map(|(key, value)| tables::TracedWake::decode(key, value)).collect();
    let mut wakers: Vec<_> = wakes.iter().map(|wake| (wake.waker_pid, wake.waker_tid)).collect();
    wakers.sort_unstable();
    assert_eq!(wakers, [(0, tables::OUTSIDE), (9, 9)]);
    // A foreign process with a member's number in the first namespace is not a member.
    scene.namespaced(STRANGER, IDS, (BELOW_IT, IDS), sys_enter(NAMESPACED), &[0, CALL.into()]);
    assert!(scene.0.value(Table::Threads, &STRANGER.to_ne_bytes()).is_none(), "it is nobody's");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn descriptors_of_processes_in_namespaces_further_below_are_kept_apart() {
    use weir_sys::syscalls::READS;
    let mut scene = Scene::new();
    let here = ([NAMESPACE.device, NAMESPACE.inode], IDS);
    scene.0.now_ns = 100;
    scene.namespaced(OWN, 70 << 32 | 70, here, sys_enter(NAMESPACED), &[0, CALL.into()]);
    // Two children in separate namespaces, each of which reads from its descriptor 5.
    for (child, ids, bytes) in [(0x9000, 71 << 32 | 71, 10_u64), (0xb000, 72 << 32 | 72, 30)] {
        scene.namespaced(OWN, 70 << 32 | 70, here, scheduling::fork(NAMESPACED), &[OWN, child]);
        let below = (BELOW_IT, 1 << 32 | 1);
        let mut registers = [0_u64; 21];
        registers[14] = 5;
        scene.0.pointed_at = registers.iter().flat_map(|register| register.to_ne_bytes()).collect();
        scene.namespaced(child, ids, below, sys_exit(NAMESPACED), &[POINTED_AT, 0]);
        scene.namespaced(child, ids, below, sys_enter(NAMESPACED), &[0, READS[0].into()]);
        scene.namespaced(child, ids, below, descriptors::exit(NAMESPACED), &[POINTED_AT, bytes]);
    }
    let all = scene.0.values_of(Table::Descriptors);
    let all: Vec<_> = all.map(|(key, value)| tables::TracedDescriptor::decode(key, value)).collect();
    let mut read: Vec<_> = all.iter().map(|it| (it.descriptor, it.read.bytes, it.is_below())).collect();
    read.sort_unstable();
    assert_eq!(read, [(5, 10, true), (5, 30, true)]);
}

#[test]
fn an_operation_is_counted_by_its_kind_and_again_when_a_worker_has_it() {
    const OPCODE_AT: i32 = 64;
    let kernel = Kernel { opcode_offset: Some(OPCODE_AT), ..HERE };
    let event = |name: &str| URING_EVENTS.iter().position(|known| *known == name).expect("it is counted");
    let mut scene = Scene::new();
    scene.0.pointed_at = vec![0xff; 100];
    for (opcode, name) in [
        (22, "io_uring_submit_req"),
        (22, "io_uring_submit_req"),
        (22, "io_uring_queue_async_work"),
        (255, "io_uring_submit_req"),
        (22, "io_uring_complete"),
    ] {
        scene.0.pointed_at[OPCODE_AT as usize] = opcode;
        scene.event(100, OWN, uring_event(kernel, event(name)), &[POINTED_AT, 0]);
        scene.event(100, OTHER, uring_event(kernel, event(name)), &[POINTED_AT, 0]);
    }
    let mut of = |kind: u32| {
        tables::decode_operation(scene.0.value(Table::Operations, &kind.to_ne_bytes()).expect("an array"))
    };
    assert_eq!((of(22), of(OPERATIONS_MAX - 1), of(0)), ((2, 1), (1, 0), (0, 0)));
}
