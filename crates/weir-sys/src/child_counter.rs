//! Counts events of programs that this thread starts (`perf_event_open(2)`): from the exec on, with all their threads
//! and children, in user mode. It does not count this thread itself. The kernel or the machine may not support a
//! counter.

use std::{
    fs::File,
    io::{self, Read},
    mem,
    os::fd::FromRawFd,
};

/// The counted event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Instructions, counted by the processor. Most virtual machines lack this counter.
    Instructions,
    /// Page faults, counted by the kernel on every machine.
    PageFaults,
}

impl Counted {
    /// `PERF_TYPE_HARDWARE` with `PERF_COUNT_HW_INSTRUCTIONS`; `PERF_TYPE_SOFTWARE` with `PERF_COUNT_SW_PAGE_FAULTS`.
    fn numbers(self) -> (u32, u64) {
        match self {
            Self::Instructions => (0, 1),
            Self::PageFaults => (1, 2),
        }
    }
}

/// The first version of the kernel's `struct perf_event_attr`; newer kernels accept it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

const _: () = assert!(mem::size_of::<Attributes>() == 64);

/// Disabled in this thread, inherited by children, and enabled at an exec; excludes the kernel and the hypervisor.
const FLAGS: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 12;

/// Never enabled, and not inherited. While a thread has such an event, the kernel does not exchange the thread's events
/// with those of a child at a context switch (`perf_event_context_sched_out`). Between fork and exec it would otherwise
/// do so: the counter went to the child, ended with it, and did not count the next one.
const FLAGS_ANCHOR: u64 = 1 | 1 << 5 | 1 << 6;

/// A read returns the count and the times for which it was enabled and for which it actually ran.
const READ_FORMAT: u64 = 1 | 1 << 1;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: u64 = 1 << 3;

/// A counter of the programs that this thread starts from now on.
#[derive(Debug)]
pub struct ChildCounter {
    event: File,
    /// Keeps the counter with this thread.
    _anchor: File,
}

impl ChildCounter {
    /// Opens one for the calling thread.
    ///
    /// # Errors
    /// Fails when the machine lacks this counter, or this user may not use it.
    pub fn open(counted: Counted) -> io::Result<Self> {
        Ok(Self { _anchor: opened(counted, FLAGS_ANCHOR)?, event: opened(counted, FLAGS)? })
    }

    /// The count of all programs so far. `None` if the counter was multiplexed meanwhile, so that it missed events.
    pub fn count(&mut self) -> Option<u64> {
        let mut numbers = [0; 24];
        self.event.read_exact(&mut numbers).ok()?;
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&numbers[at * 8..at * 8 + 8]);
            u64::from_ne_bytes(bytes)
        };
        let (count, enabled, ran) = (number(0), number(1), number(2));
        (ran >= enabled).then_some(count)
    }
}

/// An event of the calling thread.
fn opened(counted: Counted, flags: u64) -> io::Result<File> {
    let (kind, config) = counted.numbers();
    let size = u32::try_from(mem::size_of::<Attributes>()).map_err(io::Error::other)?;
    let attributes =
        Attributes { kind, size, config, read_format: READ_FORMAT, flags, ..Attributes::default() };
    // SAFETY: `attributes` is a valid structure of the size that it names, and the call keeps no pointer. The other
    // arguments are this thread, any CPU and no group.
    let event =
        unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, 0, -1, -1, CLOSE_ON_EXEC) };
    match i32::try_from(event) {
        // SAFETY: the kernel has just given this descriptor to this process alone.
        Ok(event @ 0..) => Ok(unsafe { File::from_raw_fd(event) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    #[expect(clippy::print_stdout, reason = "says why the test was skipped")]
    fn programs_are_counted_from_their_exec_on_and_this_thread_is_not() {
        let mut counter = match ChildCounter::open(Counted::PageFaults) {
            Ok(counter) => counter,
            Err(error) => {
                println!("skipped: no counter can be opened: {error}");
                return;
            }
        };
        // Touches memory that has no pages yet.
        let touched = vec![1_u8; 4 << 20];
        assert_eq!(counter.count(), Some(0), "{} bytes here", touched.len());
        let run =
            || assert!(Command::new("sh").args(["-c", "true & wait"]).status().expect("a shell").success());
        run();
        let once = counter.count().expect("it is not shared");
        assert!(once > 10, "a program maps some pages: {once}");
        run();
        let twice = counter.count().expect("it is not shared");
        assert!(twice > once + once / 2, "{once}, then {twice}");
    }

    #[test]
    fn what_the_machine_does_not_count_is_an_error() {
        // A supported counter must count; an unsupported one must fail with an error.
        match ChildCounter::open(Counted::Instructions) {
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
            Ok(mut counter) => {
                assert_eq!(counter.count(), Some(0));
                assert!(Command::new("true").status().expect("it is everywhere").success());
                assert!(counter.count().is_none_or(|count| count > 1_000));
            }
        }
    }
}
