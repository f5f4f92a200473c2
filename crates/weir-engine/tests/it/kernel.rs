//! Kernel functions that the cases need besides sockets: signals to one thread, a sandbox without a system call,
//! descriptor limits, the process's memory. The only file of these tests with unsafe code.

use std::{fs, io, sync::Once};

use rustix::{
    process::{Resource, Rlimit, Uid, getrlimit, setrlimit},
    thread::{CapabilitySet, capabilities, set_capabilities, set_thread_res_uid},
};

/// Installs a handler for SIGUSR1 that does nothing, without `SA_RESTART`: system calls that it interrupts end in
/// `EINTR`.
pub fn install_empty_signal_handler() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let handler: extern "C" fn(libc::c_int) = nothing;
        // SAFETY: all-zero is a valid `sigaction`; the handler touches nothing and is therefore safe in a signal.
        let outcome = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut())
        };
        assert_eq!(outcome, 0, "{}", io::Error::last_os_error());
    });
}

/// The kernel's number of the calling thread.
pub fn thread_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Sends SIGUSR1 to one thread of this process; false when it has ended.
pub fn signal_thread(thread: i32) -> bool {
    // SAFETY: no pointers are passed; a thread that has ended is an error, and only threads of this process count.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGUSR1) == 0 }
}

/// Makes the system call `number` fail with `error` in this thread and those it starts, as a container's sandbox does.
/// It cannot be undone: use it only in a separate thread or process.
pub fn deny(number: libc::c_long, error: i32) {
    let instruction = |code: u32, jump_true: u8, jump_false: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_true,
        jf: jump_false,
        k: value,
    };
    // The system call's number is the first word of the filter's input.
    let mut filter = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, number as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program and its instructions live until the calls return; the kernel copies them.
    let outcome = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    assert_eq!(outcome, 0, "the filter could not be installed: {}", io::Error::last_os_error());
}

/// Runs `action` when the process ends normally.
pub fn at_exit(action: extern "C" fn()) {
    // SAFETY: the function lives as long as the program and unwinds nowhere.
    let outcome = unsafe { libc::atexit(action) };
    assert_eq!(outcome, 0, "no room for another exit action");
}

/// Descriptors this process has open.
pub fn open_descriptors() -> usize {
    let entries = fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    // One of them is for the folder being read.
    entries.count() - 1
}

/// The soft limit of descriptors.
pub fn descriptor_limit() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| limit as usize)
}

/// Sets the soft limit of descriptors.
pub fn set_descriptor_limit(limit: usize) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit as u64), maximum })
        .expect("the limit may be moved below the hard one");
}

/// Raises the soft limit to the hard one, or to `wanted` if that is less; returns the limit now in effect.
pub fn raise_descriptor_limit(wanted: usize) -> usize {
    let hard = getrlimit(Resource::Nofile).maximum.map_or(usize::MAX, |limit| limit as usize);
    if descriptor_limit() < wanted {
        set_descriptor_limit(wanted.min(hard));
    }
    descriptor_limit()
}

/// Prevents this process from starting threads, and the kernel from starting any for it. It cannot be undone: use it
/// only in a separate process. An error says why threads can still be started here.
pub fn allow_no_more_threads() -> Result<(), String> {
    // The kernel counts threads by the real user; root, and processes that may exceed limits, are exempt.
    if rustix::process::getuid().is_root() {
        let nobody = Uid::from_raw(61_000 + std::process::id() % 4_000);
        set_thread_res_uid(nobody, None, None).map_err(|error| format!("the user stays root: {error}"))?;
    }
    let mut sets = capabilities(None).map_err(|error| format!("capabilities cannot be read: {error}"))?;
    sets.effective -= CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets).map_err(|error| format!("capabilities stay: {error}"))?;
    let maximum = getrlimit(Resource::Nproc).maximum;
    setrlimit(Resource::Nproc, Rlimit { current: Some(0), maximum }).expect("a limit may be lowered");
    match std::thread::Builder::new().spawn(|| {}) {
        Ok(_) => Err("a thread can be started beyond the limit".to_owned()),
        Err(_) => Ok(()),
    }
}

/// Anonymous memory of this process that is resident, in bytes.
pub fn anonymous_memory_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux 4.5 or later");
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kibibytes << 10
}

/// CPU time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
