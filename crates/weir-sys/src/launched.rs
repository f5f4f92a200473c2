//! Starts processes to be measured: each may start in a control group, reports its resource use up to its exec, and
//! its total use is read when it is reaped.
//!
//! Invariants:
//! 1. Between fork and exec a child runs only system calls that are safe after a fork: no allocation, no lock and no
//!    panic.
//! 2. What the child needs is built before the fork, and the pointers to it are used before [`launch`] returns.
//! 3. The death signal is set before the parent is checked. A parent that died in between is then noticed by the
//!    check; one that dies later is noticed by the kernel.
//! 4. A child that shares its parent's memory has its own stack, and the parent's thread is suspended until the
//!    child has another memory or is gone (`CLONE_VM` with `CLONE_VFORK`). What it writes to is a structure that its
//!    parent lends it.

use std::{
    ffi::{CStr, CString, c_char},
    io::{self, Read, Write},
    mem,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    ptr,
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, set_parent_process_death_signal};

/// Description of a process to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The file that is executed; without one the child exits at that point.
    pub program: Option<&'a CStr>,
    /// Its arguments, the program's name first.
    pub words: &'a [CString],
    /// Its environment, as `NAME=value`.
    pub environment: &'a [CString],
    /// Its working directory.
    pub folder: Option<&'a CStr>,
    /// Its input.
    pub input: BorrowedFd<'a>,
    /// Its output.
    pub output: BorrowedFd<'a>,
    /// Its error output.
    pub errors: BorrowedFd<'a>,
    /// Its control group.
    pub group: Membership<'a>,
}

/// How a child enters a control group.
#[derive(Clone, Copy, Debug)]
pub enum Membership<'a> {
    /// It stays in its parent's group.
    Inherited,
    /// It is created in the group (`CLONE_INTO_CGROUP`): the group's folder, cgroup version 2.
    Born(BorrowedFd<'a>),
    /// It moves itself: the group's `tasks` or `cgroup.procs` file, open for writing.
    Joins(BorrowedFd<'a>),
}

/// Resource use of a child up to its exec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BeforeExec {
    /// Time of the report, on the monotonic clock.
    pub at_ns: u64,
    /// CPU since the fork.
    pub cpu_ns: u64,
    /// CPU used before it entered its group.
    pub cpu_ns_outside: u64,
    /// Minor page faults.
    pub faults_minor: u64,
    /// Major page faults.
    pub faults_major: u64,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_involuntary: u64,
    /// Peak resident memory, inherited from the parent by the fork. The peak of the process is never lower.
    pub memory_bytes_max: u64,
    /// Bytes that it read: the parent's signal to continue.
    pub read_bytes: u64,
    /// Bytes that it wrote: its report, and the write that moved it into a group.
    pub written_bytes: u64,
}

/// Numbers in a report, each of eight bytes.
const REPORT_NUMBERS: usize = 10;
const REPORT_BYTES: usize = REPORT_NUMBERS * 8;

/// Length of a failure report: the step and the error number.
const FAILURE_BYTES: usize = 8;

/// The step that failed between fork and exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The fork, or the parent's preparation.
    Fork,
    /// Creating a session that ends with its parent.
    Session,
    /// Joining its control group.
    Group,
    /// Changing its working directory.
    Folder,
    /// Its input and outputs.
    Streams,
    /// The exec.
    Exec,
}

impl Step {
    const IN_CHILD: [Self; 5] = [Self::Session, Self::Group, Self::Folder, Self::Streams, Self::Exec];

    fn number(self) -> u32 {
        match self {
            Self::Fork => 0,
            Self::Session => 1,
            Self::Group => 2,
            Self::Folder => 3,
            Self::Streams => 4,
            Self::Exec => 5,
        }
    }

    fn of(number: u32) -> Self {
        Self::IN_CHILD.into_iter().find(|step| step.number() == number).unwrap_or(Self::Fork)
    }
}

/// A process was not started.
#[derive(Debug)]
pub struct LaunchFailure {
    /// Where it failed.
    pub step: Step,
    /// The system's error.
    pub source: io::Error,
}

/// Signal that lets a child continue.
const GO: &[u8] = b".";

/// Starts a process in a new session, with default signals; the kernel kills it when the calling *thread* ends. The
/// process waits while `held` is called with its pid. Files that the parent opens below its `/proc` entry then stay
/// readable after its end; users other than root cannot open them at that time. Returns after the exec. Reap it by
/// its pid.
pub fn launch(launch: &Launch, held: impl FnOnce(Pid)) -> Result<(Pid, BeforeExec), LaunchFailure> {
    let of_fork = |source| LaunchFailure { step: Step::Fork, source };
    let (mut report, report_of_child) = io::pipe().map_err(of_fork)?;
    let (go_of_child, mut go) = io::pipe().map_err(of_fork)?;
    let child = Child {
        program: launch.program.map_or(ptr::null(), CStr::as_ptr),
        words: &pointers(launch.words),
        environment: &pointers(launch.environment),
        folder: launch.folder.map_or(ptr::null(), CStr::as_ptr),
        streams: [launch.input, launch.output, launch.errors].map(|stream| stream.as_raw_fd()),
        joins: match launch.group {
            Membership::Joins(tasks) => Some(tasks.as_raw_fd()),
            Membership::Inherited | Membership::Born(_) => None,
        },
        parent: getpid(),
        go: go_of_child.as_raw_fd(),
        go_of_parent: go.as_raw_fd(),
        report: report_of_child.as_raw_fd(),
    };
    let born_in = match launch.group {
        Membership::Born(folder) => Some(folder.as_raw_fd()),
        Membership::Inherited | Membership::Joins(_) => None,
    };
    // SAFETY: invariants 1 and 2: the child calls `become_program`, which only makes system calls and never returns,
    // with pointers into `launch` and the lists above, which its copy of this memory contains.
    let forked = unsafe {
        match fork(born_in) {
            Ok(None) => become_program(&child),
            Ok(Some(pid)) => Ok(pid),
            Err(error) => Err(error),
        }
    };
    let pid = forked.map_err(of_fork)?;
    drop((report_of_child, go_of_child));
    held(pid);
    // Fails only when the child is gone, which the missing report shows as well.
    let _ = go.write_all(GO);
    let mut said = Vec::with_capacity(REPORT_BYTES + FAILURE_BYTES);
    let heard = report.read_to_end(&mut said).map_err(of_fork);
    match heard.and_then(|_| outcome(&said)) {
        Ok(before) => Ok((pid, before)),
        Err(failure) => {
            // It has ended, or is about to; without this it would remain a zombie.
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            Err(failure)
        }
    }
}

/// Bytes of the stack of a child that shares its parent's memory: for a few system calls.
const STACK_BYTES: usize = 64 << 10;

/// Starts a process as [`launch`] does, without a copy of this one's memory: the child uses it until its exec, and has
/// nothing to let go of then. It is not held, it joins its group by a file, and its peak of memory begins with all of
/// this process's. So it is for finding out what the copy costs.
///
/// # Errors
/// As [`launch`]; a group in which it is to be born is not possible.
pub fn launch_sharing(launch: &Launch) -> Result<(Pid, BeforeExec), LaunchFailure> {
    let of_fork = |source| LaunchFailure { step: Step::Fork, source };
    let joins = match launch.group {
        Membership::Joins(tasks) => Some(tasks.as_raw_fd()),
        Membership::Inherited => None,
        Membership::Born(_) => return Err(of_fork(io::ErrorKind::Unsupported.into())),
    };
    let child = Child {
        program: launch.program.map_or(ptr::null(), CStr::as_ptr),
        words: &pointers(launch.words),
        environment: &pointers(launch.environment),
        folder: launch.folder.map_or(ptr::null(), CStr::as_ptr),
        streams: [launch.input, launch.output, launch.errors].map(|stream| stream.as_raw_fd()),
        joins,
        parent: getpid(),
        go: -1,
        go_of_parent: -1,
        report: -1,
    };
    let mut sharing = Sharing { child: &child, before: BeforeExec::default(), failed: None };
    // Aligned as every calling convention wants it.
    let mut stack = vec![0_u128; STACK_BYTES / mem::size_of::<u128>()];
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: invariants 1, 2 and 4: the stack and the structure live until the child has another memory or is gone,
    // because this thread is suspended until then; the stack grows down from its end.
    let number = unsafe {
        let end = stack.as_mut_ptr_range().end;
        libc::clone(become_sharing, end.cast(), flags, (&raw mut sharing).cast())
    };
    let pid = match Pid::from_raw(number) {
        Some(pid) if number > 0 => pid,
        _ => return Err(of_fork(io::Error::last_os_error())),
    };
    // It is read after the child wrote it, through the pointer that was given away.
    // SAFETY: `sharing` is alive, and nobody else has it any more.
    let (before, failed) =
        unsafe { ((&raw const sharing.before).read_volatile(), (&raw const sharing.failed).read_volatile()) };
    let Some((step, error)) = failed else { return Ok((pid, before)) };
    // It has ended; without this it would stay as a zombie.
    let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
    Err(LaunchFailure { step, source: io::Error::from_raw_os_error(error) })
}

/// What a child that shares its parent's memory is given, and says.
struct Sharing<'a> {
    child: &'a Child<'a>,
    before: BeforeExec,
    failed: Option<(Step, i32)>,
}

/// Runs in a child that shares its parent's memory, until the exec.
extern "C" fn become_sharing(sharing: *mut libc::c_void) -> libc::c_int {
    // SAFETY: invariant 4: it is what `launch_sharing` lent to this child; pointers and lists in it are valid as there.
    unsafe {
        let sharing = &mut *sharing.cast::<Sharing>();
        let child = sharing.child;
        let failed = match prepare(child) {
            Ok(before) => {
                sharing.before = before;
                if child.program.is_null() {
                    libc::_exit(0);
                }
                libc::execve(child.program, child.words.as_ptr(), child.environment.as_ptr());
                (Step::Exec, errno())
            }
            Err(failed) => failed,
        };
        sharing.failed = Some(failed);
        libc::_exit(127)
    }
}

/// Reads what a child said until its exec closed the pipe.
fn outcome(said: &[u8]) -> Result<BeforeExec, LaunchFailure> {
    let failure = match said.len() {
        REPORT_BYTES => return Ok(BeforeExec::read(said)),
        FAILURE_BYTES => said,
        // It reached the exec.
        length if length == REPORT_BYTES + FAILURE_BYTES => &said[REPORT_BYTES..],
        _ => {
            let source = io::Error::other("the process was killed before it became the program");
            return Err(LaunchFailure { step: Step::Fork, source });
        }
    };
    let number =
        |at: usize| u32::from_ne_bytes([failure[at], failure[at + 1], failure[at + 2], failure[at + 3]]);
    let source = io::Error::from_raw_os_error(i32::try_from(number(4)).unwrap_or(0));
    Err(LaunchFailure { step: Step::of(number(0)), source })
}

impl BeforeExec {
    fn numbers(&self) -> [u64; REPORT_NUMBERS] {
        [
            self.at_ns,
            self.cpu_ns,
            self.cpu_ns_outside,
            self.faults_minor,
            self.faults_major,
            self.switches_voluntary,
            self.switches_involuntary,
            self.memory_bytes_max,
            self.read_bytes,
            self.written_bytes,
        ]
    }

    fn read(said: &[u8]) -> Self {
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&said[at * 8..at * 8 + 8]);
            u64::from_ne_bytes(bytes)
        };
        Self {
            at_ns: number(0),
            cpu_ns: number(1),
            cpu_ns_outside: number(2),
            faults_minor: number(3),
            faults_major: number(4),
            switches_voluntary: number(5),
            switches_involuntary: number(6),
            memory_bytes_max: number(7),
            read_bytes: number(8),
            written_bytes: number(9),
        }
    }
}

/// A null-terminated list for `execve`.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// The child's data between fork and exec, in types that need no conversion there.
struct Child<'a> {
    program: *const c_char,
    words: &'a [*const c_char],
    environment: &'a [*const c_char],
    folder: *const c_char,
    streams: [RawFd; 3],
    joins: Option<RawFd>,
    parent: Pid,
    go: RawFd,
    go_of_parent: RawFd,
    report: RawFd,
}

/// `fork(2)`, or `clone3(2)` directly into a control group. Returns `None` in the child.
///
/// # Safety
/// The child must obey invariant 1.
unsafe fn fork(born_in: Option<RawFd>) -> io::Result<Option<Pid>> {
    let number = match born_in {
        // SAFETY: the caller vouches for the rules of a child after fork.
        None => i64::from(unsafe { libc::fork() }),
        // SAFETY: the same; without a separate stack the child continues on a copy of this one, as after fork.
        Some(folder) => unsafe { clone_into(folder) },
    };
    match number {
        0 => Ok(None),
        1.. => {
            i32::try_from(number).ok().and_then(Pid::from_raw).map(Some).ok_or_else(io::Error::last_os_error)
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The kernel's `struct clone_args` up to `cgroup`.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// `CLONE_INTO_CGROUP`.
const INTO_GROUP: u64 = 0x2_0000_0000;

/// # Safety
/// As for [`fork`].
unsafe fn clone_into(folder: RawFd) -> i64 {
    let arguments = CloneArguments {
        flags: INTO_GROUP,
        exit_signal: libc::SIGCHLD.unsigned_abs().into(),
        cgroup: u64::from(folder.unsigned_abs()),
        ..CloneArguments::default()
    };
    // SAFETY: `arguments` is a valid structure of the length passed, and the call keeps no pointer. The child shares
    // no memory with its parent.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, mem::size_of::<CloneArguments>()) }
}

/// Runs in the child, between fork and exec.
///
/// # Safety
/// Call only in a child of [`fork`], with pointers that are valid there.
unsafe fn become_program(child: &Child) -> ! {
    // SAFETY: system calls with plain numbers, and with the pointers and lists that the caller vouches for; each list
    // ends with a null pointer.
    unsafe {
        let held = wait_for_parent(child).map_err(|error| (Step::Session, error));
        let (step, error) = match held.and_then(|()| prepare(child)) {
            Ok(before) => {
                say(child.report, &before.numbers());
                if child.program.is_null() {
                    libc::_exit(0);
                }
                libc::execve(child.program, child.words.as_ptr(), child.environment.as_ptr());
                (Step::Exec, errno())
            }
            Err(failed) => failed,
        };
        say(child.report, &[step.number(), error.unsigned_abs()]);
        libc::_exit(127)
    }
}

/// Runs everything up to the exec, and returns the resources used.
///
/// # Safety
/// As for [`become_program`].
unsafe fn prepare(child: &Child) -> Result<BeforeExec, (Step, i32)> {
    begin_session(child.parent).map_err(|error| (Step::Session, error))?;
    // SAFETY: numbers of descriptors that this process has, and a folder that the caller vouches for.
    unsafe {
        if !child.folder.is_null() && libc::chdir(child.folder) != 0 {
            return Err((Step::Folder, errno()));
        }
        for (target, stream) in (0..).zip(child.streams) {
            if libc::dup2(stream, target) < 0 {
                return Err((Step::Streams, errno()));
            }
        }
    }
    let cpu_ns_outside = match child.joins {
        None => 0,
        Some(tasks) => {
            let before = cpu_ns();
            // SAFETY: the bytes are valid for the length passed. "0" names the writing process.
            if unsafe { libc::write(tasks, c"0".as_ptr().cast(), 1) } != 1 {
                return Err((Step::Group, errno()));
            }
            before
        }
    };
    let usage = own_usage();
    let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
    Ok(BeforeExec {
        at_ns: time_ns(libc::CLOCK_MONOTONIC),
        cpu_ns: cpu_ns(),
        cpu_ns_outside,
        faults_minor: count(usage.ru_minflt),
        faults_major: count(usage.ru_majflt),
        switches_voluntary: count(usage.ru_nvcsw),
        switches_involuntary: count(usage.ru_nivcsw),
        memory_bytes_max: count(usage.ru_maxrss).saturating_mul(1 << 10),
        read_bytes: GO.len() as u64,
        written_bytes: REPORT_BYTES as u64 + u64::from(child.joins.is_some()),
    })
}

/// Waits until the parent lets it continue, or is gone.
///
/// # Safety
/// As for [`become_program`].
unsafe fn wait_for_parent(child: &Child) -> Result<(), i32> {
    let mut word = [0_u8; GO.len()];
    // SAFETY: both are this process's own copies, and no other code uses them; the place is valid for its length. If
    // the parent's end were open here as well, the parent's death would go unnoticed.
    let read = unsafe {
        libc::close(child.go_of_parent);
        libc::read(child.go, word.as_mut_ptr().cast(), word.len())
    };
    match read {
        0 => Err(libc::ESRCH),
        1.. => Ok(()),
        _ => Err(errno()),
    }
}

/// Starts a session that ends with its parent, with the signal settings that programs expect.
fn begin_session(parent: Pid) -> Result<(), i32> {
    // SAFETY: plain calls on this process; the set is a valid place, which `sigemptyset` fills.
    unsafe {
        if libc::setsid() < 0 {
            return Err(errno());
        }
        // Rust programs ignore SIGPIPE, and the new program would inherit that.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none = mem::MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.raw_os_error())?;
    match getppid() == Some(parent) {
        true => Ok(()),
        // Invariant 3: the parent is gone, and no signal will come.
        false => Err(libc::ESRCH),
    }
}

/// Writes numbers to the parent. The parent notices an incomplete report.
///
/// # Safety
/// `T` must be a plain number.
unsafe fn say<T: Copy>(report: RawFd, numbers: &[T]) {
    // SAFETY: a slice of plain numbers is valid bytes of that length. A pipe takes less than a page at once.
    unsafe { libc::write(report, numbers.as_ptr().cast(), mem::size_of_val(numbers)) };
}

fn errno() -> i32 {
    // `last_os_error` reads a number and allocates nothing.
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn cpu_ns() -> u64 {
    time_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn time_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for one timespec, and the call keeps no pointer. If the clock cannot be read,
    // it stays zero.
    unsafe { libc::clock_gettime(clock, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The current time, on the clock of [`BeforeExec::at_ns`].
pub fn now_ns() -> u64 {
    time_ns(libc::CLOCK_MONOTONIC)
}

fn own_usage() -> libc::rusage {
    let mut usage = mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for one rusage, the call keeps no pointer, and all-zero bytes are a valid one.
    unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// A child that ended, with the resource use of it and of the children that it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reaped {
    /// Its number.
    pub pid: Pid,
    /// Its exit status, if it exited.
    pub status: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// CPU in user mode.
    pub user_ns: u64,
    /// CPU in the kernel.
    pub system_ns: u64,
    /// Peak resident memory of the largest of these processes.
    pub memory_bytes_max: u64,
    /// Minor page faults.
    pub faults_minor: u64,
    /// Major page faults.
    pub faults_major: u64,
    /// Voluntary context switches.
    pub switches_voluntary: u64,
    /// Involuntary context switches.
    pub switches_involuntary: u64,
}

/// Result of a check for ended children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaping {
    /// One had ended, and is reaped now.
    Ended(Reaped),
    /// There are children, and none has ended.
    Running,
    /// There are no children.
    Childless,
}

/// Reaps a child that has ended, this one or any, without waiting.
pub fn reap(child: Option<Pid>) -> io::Result<Reaping> {
    let which = child.map_or(-1, |pid| pid.as_raw_nonzero().get());
    let mut status = 0;
    let mut usage = mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both are valid places, and the call keeps no pointer.
    let pid = unsafe { libc::wait4(which, &mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    if pid < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ECHILD) { Ok(Reaping::Childless) } else { Err(error) };
    }
    let Some(pid) = Pid::from_raw(pid) else { return Ok(Reaping::Running) };
    // SAFETY: all-zero bytes are a valid rusage, and the kernel has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Reaping::Ended(Reaped::of(pid, status, &usage)))
}

impl Reaped {
    fn of(pid: Pid, status: i32, usage: &libc::rusage) -> Self {
        let number = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        let ns = |time: libc::timeval| {
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            let rest = u64::try_from(time.tv_usec).unwrap_or(0);
            seconds.saturating_mul(1_000_000_000).saturating_add(rest.saturating_mul(1_000))
        };
        Self {
            pid,
            status: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
            signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            memory_bytes_max: number(usage.ru_maxrss).saturating_mul(1 << 10),
            faults_minor: number(usage.ru_minflt),
            faults_major: number(usage.ru_majflt),
            switches_voluntary: number(usage.ru_nvcsw),
            switches_involuntary: number(usage.ru_nivcsw),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, os::fd::AsFd};

    use rustix::{
        event::{PollFd, PollFlags, poll},
        process::{PidfdFlags, pidfd_open},
    };

    use super::*;

    fn launched(program: Option<&CStr>, words: &[&CStr]) -> Result<(Pid, BeforeExec), LaunchFailure> {
        let null = File::open("/dev/null").expect("it is always there");
        let words: Vec<CString> = words.iter().map(|word| (*word).to_owned()).collect();
        launch(
            &Launch {
                program,
                words: &words,
                environment: &[c"A=b".to_owned()],
                folder: Some(c"/"),
                input: null.as_fd(),
                output: null.as_fd(),
                errors: null.as_fd(),
                group: Membership::Inherited,
            },
            |_| {},
        )
    }

    fn ended(pid: Pid) -> Reaped {
        let life = pidfd_open(pid, PidfdFlags::empty()).expect("it is not reaped");
        poll(&mut [PollFd::new(&life, PollFlags::IN)], None).expect("it ends");
        match reap(Some(pid)).expect("it is ours") {
            Reaping::Ended(reaped) => reaped,
            other => panic!("it has ended: {other:?}"),
        }
    }

    #[test]
    fn a_launched_program_has_its_words_its_folder_its_environment_and_a_session_of_its_own() {
        // Field 6 of its line in /proc is its session.
        let script =
            c"test \"$PWD$A$1\" = /bc && read -r _ _ _ _ _ session _ < /proc/$$/stat && test $session = $$";
        let (pid, before) =
            launched(Some(c"/bin/sh"), &[c"sh", c"-c", script, c"sh", c"c"]).expect("there is a shell");
        let reaped = ended(pid);
        assert_eq!((reaped.pid, reaped.status, reaped.signal), (pid, Some(0), None));
        assert!(before.cpu_ns > 0 && before.faults_minor > 0 && before.at_ns <= now_ns(), "{before:?}");
        assert!(reaped.faults_minor >= before.faults_minor, "{reaped:?}");
        assert!(reaped.user_ns + reaped.system_ns + 2_000 >= before.cpu_ns, "{reaped:?} {before:?}");
        assert!(
            before.memory_bytes_max > 0 && reaped.memory_bytes_max >= before.memory_bytes_max / 2,
            "{reaped:?}"
        );
    }

    #[test]
    fn a_launch_without_a_program_ends_where_the_exec_would_be() {
        let (pid, _) = launched(None, &[]).expect("a fork");
        assert_eq!(ended(pid).status, Some(0));
        assert_eq!(reap(Some(pid)).expect("an answer"), Reaping::Childless);
    }

    #[test]
    fn a_process_that_shares_memory_until_its_exec_is_started_and_its_failures_are_told() {
        let null = File::open("/dev/null").expect("it is always there");
        let words = [c"sh", c"-c", c"exit 3"].map(CStr::to_owned);
        let of = |program, folder, group| {
            launch_sharing(&Launch {
                program: Some(program),
                words: &words,
                environment: &[],
                folder,
                input: null.as_fd(),
                output: null.as_fd(),
                errors: null.as_fd(),
                group,
            })
        };
        let (pid, before) = of(c"/bin/sh", Some(c"/"), Membership::Inherited).expect("there is a shell");
        assert_eq!(ended(pid).status, Some(3));
        assert!(before.cpu_ns > 0 && before.at_ns <= now_ns(), "{before:?}");
        for (program, folder, group, step) in [
            (c"/no/such/program", None, Membership::Inherited, Step::Exec),
            (c"/bin/sh", Some(c"/no/such/folder"), Membership::Inherited, Step::Folder),
            (c"/bin/sh", None, Membership::Joins(null.as_fd()), Step::Group),
            (c"/bin/sh", None, Membership::Born(null.as_fd()), Step::Fork),
        ] {
            assert_eq!(of(program, folder, group).expect_err("it fails").step, step);
        }
    }

    #[test]
    fn a_process_waits_while_it_is_held() {
        let null = File::open("/dev/null").expect("it is always there");
        let mut seen = None;
        let nothing = Launch {
            program: None,
            words: &[],
            environment: &[],
            folder: None,
            input: null.as_fd(),
            output: null.as_fd(),
            errors: null.as_fd(),
            group: Membership::Inherited,
        };
        let held = |pid: Pid| seen = Some((pid, reap(Some(pid)).expect("it is ours")));
        let (pid, before) = launch(&nothing, held).expect("a fork");
        assert_eq!(seen, Some((pid, Reaping::Running)), "it has not ended");
        assert_eq!((before.read_bytes, before.written_bytes), (1, REPORT_BYTES as u64));
        assert_eq!(ended(pid).status, Some(0));
    }

    #[test]
    fn what_fails_in_the_child_is_said_with_its_step_and_leaves_no_child() {
        let failure = launched(Some(c"/no/such/program"), &[c"x"]).expect_err("it is not there");
        assert_eq!((failure.step, failure.source.raw_os_error()), (Step::Exec, Some(libc::ENOENT)));
        let null = File::open("/dev/null").expect("it is always there");
        let failure = launch(
            &Launch {
                program: Some(c"/bin/sh"),
                words: &[],
                environment: &[],
                folder: Some(c"/no/such/folder"),
                input: null.as_fd(),
                output: null.as_fd(),
                errors: null.as_fd(),
                group: Membership::Inherited,
            },
            |_| {},
        );
        let failure = failure.expect_err("the folder is not there");
        assert_eq!((failure.step, failure.source.raw_os_error()), (Step::Folder, Some(libc::ENOENT)));
        let failure = launch(
            &Launch {
                program: Some(c"/bin/sh"),
                words: &[],
                environment: &[],
                folder: None,
                input: null.as_fd(),
                output: null.as_fd(),
                errors: null.as_fd(),
                group: Membership::Joins(null.as_fd()),
            },
            |_| {},
        );
        let failure = failure.expect_err("nobody joins by a file that is open for reading");
        assert_eq!((failure.step, failure.source.raw_os_error()), (Step::Group, Some(libc::EBADF)));
    }

    #[test]
    fn a_report_reads_as_it_was_written_and_a_broken_one_is_a_failure() {
        let before = BeforeExec {
            at_ns: 1,
            cpu_ns: 2,
            cpu_ns_outside: 3,
            faults_minor: 4,
            faults_major: 5,
            switches_voluntary: 6,
            switches_involuntary: 7,
            memory_bytes_max: 8,
            read_bytes: 9,
            written_bytes: 10,
        };
        let mut bytes: Vec<u8> = before.numbers().iter().flat_map(|number| number.to_ne_bytes()).collect();
        assert_eq!(outcome(&bytes).expect("a report"), before);
        bytes.extend([Step::Exec.number(), 2].iter().flat_map(|number: &u32| number.to_ne_bytes()));
        assert_eq!(outcome(&bytes).expect_err("the exec failed").step, Step::Exec);
        assert_eq!(outcome(&bytes[REPORT_BYTES..]).expect_err("a step failed").step, Step::Exec);
        for length in [0, 1, FAILURE_BYTES - 1, REPORT_BYTES - 1, REPORT_BYTES + 1] {
            assert_eq!(outcome(&bytes[..length]).expect_err("it is cut").step, Step::Fork, "{length}");
        }
    }
}
