//! The programs that count the system calls of a run by kind, and nothing else: those of a process that the launcher
//! forks, from the exec on by which it becomes the command, and those of everything below it.
//!
//! A call counts when it returns, as it does for `strace -c`. So the call that ends a process counts in neither, and
//! the exec that begins the run counts in both.

use weir_sys::syscalls::EXECVE;

use super::{FRESH, NUMBER, OF_32_BITS, REGISTER, REPLACE, TASK, argument, begin, current_ids, update};
use crate::ladder::{
    assembler::{
        Assembled, Assembler, Atomic, Condition, Helper, Label, Operation,
        Register::{Frame, R0, R1, R2, R3, R7, R9},
        Width::{Eight, Four},
    },
    kernel::Kernel,
    tables::{CALLS_BEYOND, CALLS_OF_32_BITS, RUN_AWAITS, RUN_IN_CALL, RUN_LOST, RUN_OUTSIDE, Table},
};

/// A task that was made, on the stack.
const CHILD: i16 = REGISTER;

/// The programs for the runs of a launcher, in the order in which they are to begin: who follows threads begins before
/// who counts.
pub(in crate::ladder) fn all(kernel: Kernel, launcher: u32) -> [(&'static str, Assembled); 5] {
    [
        ("sched_process_free", free()),
        ("sched_process_fork", fork(kernel, launcher)),
        ("sched_process_exec", exec()),
        ("sys_exit", leave_call()),
        ("sys_enter", enter_call()),
    ]
}

/// `R9 =` the address of the state of the thread that runs; goes to `not_ours` for threads of no run.
fn current(it: &mut Assembler, not_ours: Label) {
    it.call(Helper::CurrentTask);
    it.store(Eight, Frame, TASK, R0);
    it.lookup(Table::RunThreads, TASK);
    it.jump_if(Condition::Equal, R0, 0, not_ours);
    it.copy(R9, R0);
}

/// Arguments: the thread that runs, the one it made.
fn fork(kernel: Kernel, launcher: u32) -> Assembled {
    let mut it = begin().on(kernel);
    let (leave, stranger, known) = (it.label(), it.label(), it.label());
    argument(&mut it, R1, 1);
    it.store(Eight, Frame, CHILD, R1);
    it.store_number(Eight, Frame, FRESH, RUN_OUTSIDE);
    current(&mut it, stranger);
    it.load(Eight, R1, R9, 0);
    it.jump_if(Condition::Equal, R1, RUN_AWAITS, leave);
    it.jump(known);
    it.bind(stranger);
    it.store_number(Eight, Frame, FRESH, RUN_AWAITS);
    current_ids(&mut it);
    it.with_number(Operation::ShiftRight, R0, 32);
    it.jump_if(Condition::NotEqual, R0, launcher as i32, leave);
    it.bind(known);
    update(&mut it, Table::RunThreads, CHILD, FRESH, REPLACE);
    it.jump_if(Condition::Equal, R0, 0, leave);
    it.set(R7, RUN_LOST as i32);
    count(&mut it);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// The thread that runs has become another program, within the call that asked for it.
fn exec() -> Assembled {
    let mut it = begin();
    let leave = it.label();
    current(&mut it, leave);
    it.load(Eight, R1, R9, 0);
    it.jump_if(Condition::NotEqual, R1, RUN_AWAITS, leave);
    it.store_number(Eight, R9, 0, EXECVE as i32 + RUN_IN_CALL);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// Arguments: registers, number of the call.
fn enter_call() -> Assembled {
    let mut it = begin();
    let (leave, is_known) = (it.label(), it.label());
    current(&mut it, leave);
    it.load(Eight, R1, R9, 0);
    it.jump_if(Condition::Equal, R1, RUN_AWAITS, leave);
    argument(&mut it, R7, 1);
    // The place of calls of 32 bits is theirs alone.
    it.jump_if(Condition::Equal, R7, CALLS_OF_32_BITS as i32, is_known);
    it.jump_if(Condition::Above, R7, CALLS_OF_32_BITS as i32, is_known);
    number_of_32_bits(&mut it);
    let fits = it.label();
    it.jump(fits);
    it.bind(is_known);
    it.set(R7, CALLS_BEYOND as i32);
    it.bind(fits);
    it.with_number(Operation::Add, R7, RUN_IN_CALL);
    it.store(Eight, R9, 0, R7);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// `R7 =` the place of calls of 32 bits, where the thread is of such a program: its numbers mean something else.
fn number_of_32_bits(it: &mut Assembler) {
    let Some((place, of_32_bits)) = OF_32_BITS else { return };
    let keeps = it.label();
    it.store_number(Eight, Frame, REGISTER, 0);
    argument(it, R3, 0);
    it.with_number(Operation::Add, R3, place);
    it.address(R1, REGISTER);
    it.set(R2, 8);
    it.call(Helper::ReadKernel);
    it.load(Eight, R1, Frame, REGISTER);
    it.jump_if(Condition::NotEqual, R1, of_32_bits, keeps);
    it.set(R7, CALLS_OF_32_BITS as i32);
    it.bind(keeps);
}

/// Arguments: registers, answer.
fn leave_call() -> Assembled {
    let mut it = begin();
    let (leave, in_call) = (it.label(), it.label());
    current(&mut it, leave);
    it.load(Eight, R7, R9, 0);
    it.jump_if(Condition::Above, R7, RUN_OUTSIDE, in_call);
    it.jump(leave);
    it.bind(in_call);
    it.store_number(Eight, R9, 0, RUN_OUTSIDE);
    it.with_number(Operation::Add, R7, -RUN_IN_CALL);
    count(&mut it);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// Adds 1 at the place in `R7`, of this CPU; `R0` to `R5` are lost.
fn count(it: &mut Assembler) {
    let absent = it.label();
    it.store(Four, Frame, NUMBER, R7);
    it.lookup(Table::RunCalls, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
    it.set(R1, 1);
    it.atomically(Atomic::Add, R0, 0, R1);
    it.bind(absent);
}

/// Argument: a thread that ended, whose address may be another one's from here on.
fn free() -> Assembled {
    let mut it = begin();
    argument(&mut it, R1, 0);
    it.store(Eight, Frame, TASK, R1);
    it.table(R1, Table::RunThreads);
    it.address(R2, TASK);
    it.call(Helper::MapDelete);
    it.exit();
    it.finish()
}

#[cfg(test)]
mod tests {
    use weir_sys::bpf::INSTRUCTIONS_MAX;

    use super::*;
    use crate::ladder::{interpreter::Interpreter, kernel::PidNamespace};

    const HERE: Kernel = Kernel { namespace: None, opcode_offset: None };
    const LAUNCHER: u32 = 40;
    /// Tasks: the launcher, what it forks, a child of that, and a stranger.
    const PARENT: u64 = 0x7000;
    const OWN: u64 = 0x8000;
    const CHILD_OF_OWN: u64 = 0x9000;
    const OTHER: u64 = 0xa000;
    const READ: u64 = 0;

    struct Scene(Interpreter);

    impl Scene {
        fn new() -> Self {
            Self(Interpreter::new())
        }

        fn event(&mut self, task: u64, program: &Assembled, arguments: &[u64]) -> &mut Self {
            self.0.task = task;
            let process = if task == PARENT { LAUNCHER } else { 99 };
            self.0.ids = u64::from(process) << 32 | u64::from(process);
            self.0.run(program, arguments);
            self
        }

        fn forks(&mut self, task: u64, child: u64) -> &mut Self {
            self.event(task, &fork(HERE, LAUNCHER), &[task, child])
        }

        fn calls(&mut self, task: u64, number: u64) -> &mut Self {
            self.event(task, &enter_call(), &[0, number]).event(task, &leave_call(), &[0, 0])
        }

        fn counted(&mut self, number: u64) -> u64 {
            let key = (number as u32).to_ne_bytes();
            let value = self.0.value(Table::RunCalls, &key).expect("an array").as_slice();
            u64::from_ne_bytes(value.try_into().expect("eight bytes"))
        }
    }

    #[test]
    fn every_program_is_short_and_ends() {
        let namespace = Some(PidNamespace { device: 4, inode: 0xf000_0001 });
        for kernel in [HERE, Kernel { namespace, opcode_offset: None }] {
            for (name, program) in all(kernel, LAUNCHER) {
                let words = program.linked(|_| 1);
                assert!(words.len() < INSTRUCTIONS_MAX / 8, "{name}: {}", words.len());
                assert_eq!(words.last().map(|word| word & 0xff), Some(0x95), "{name}");
            }
        }
    }

    #[test]
    fn what_the_launcher_starts_is_counted_from_its_exec_on() {
        let mut scene = Scene::new();
        let execve = u64::from(EXECVE);
        scene.forks(PARENT, OWN).calls(OWN, READ).calls(PARENT, READ);
        assert_eq!(scene.counted(READ), 0, "it has not begun");
        scene.event(OWN, &enter_call(), &[0, execve]).event(OWN, &exec(), &[]);
        scene.event(OWN, &leave_call(), &[0, 0]);
        assert_eq!(scene.counted(execve), 1, "its own exec counts");
        scene.calls(OWN, READ).calls(OWN, READ).calls(OTHER, READ).calls(PARENT, READ);
        assert_eq!(scene.counted(READ), 2);
        scene.event(OWN, &enter_call(), &[0, 231]);
        assert_eq!(scene.counted(231), 0, "a call that does not return is none");
    }

    #[test]
    fn children_are_counted_and_come_back_from_no_call_of_their_own() {
        let mut scene = Scene::new();
        let clone = 56;
        scene.forks(PARENT, OWN).event(OWN, &exec(), &[]).event(OWN, &leave_call(), &[0, 0]);
        scene.event(OWN, &enter_call(), &[0, clone]).forks(OWN, CHILD_OF_OWN);
        scene.event(CHILD_OF_OWN, &leave_call(), &[0, 0]).event(OWN, &leave_call(), &[0, 0]);
        assert_eq!(scene.counted(clone), 1);
        scene.calls(CHILD_OF_OWN, READ);
        scene.event(CHILD_OF_OWN, &enter_call(), &[0, EXECVE.into()]).event(CHILD_OF_OWN, &exec(), &[]);
        scene.event(CHILD_OF_OWN, &leave_call(), &[0, 0]);
        assert_eq!((scene.counted(READ), scene.counted(EXECVE.into())), (1, 2));
        scene.event(OTHER, &free(), &[CHILD_OF_OWN]).calls(CHILD_OF_OWN, READ);
        assert_eq!(scene.counted(READ), 1, "the next thread at its address is a stranger");
    }

    #[test]
    fn numbers_beyond_all_places_are_one_kind() {
        let mut scene = Scene::new();
        scene.forks(PARENT, OWN).event(OWN, &exec(), &[]).event(OWN, &leave_call(), &[0, 0]);
        for number in [CALLS_OF_32_BITS.into(), CALLS_BEYOND.into(), 100_000, u64::MAX] {
            scene.calls(OWN, number);
        }
        assert_eq!((scene.counted(CALLS_BEYOND.into()), scene.counted(CALLS_OF_32_BITS.into())), (4, 0));
    }
}
