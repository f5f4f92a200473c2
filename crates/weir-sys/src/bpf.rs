//! Small programs that the kernel runs at its tracepoints, and the maps they share with this process: `bpf(2)`.
//!
//! The author decides what a program does; the kernel's verifier checks it before it runs. Every descriptor is closed
//! on exec and on drop. A program, its maps and its attachments end with their last descriptor, so a killed process
//! leaves nothing in the kernel.
//!
//! Invariants:
//! 1. Structures passed to the kernel have the layout of `union bpf_attr` in `include/uapi/linux/bpf.h`; their size
//!    is passed as well, and the kernel takes missing fields for zero.
//! 2. The kernel reads or writes exactly `key_bytes` at the address of a key, and `read_bytes` at the address of a
//!    value that it fills in: these are the sizes the table was created with, times the number of possible CPUs for a
//!    per-CPU table. Buffers of another length never reach it.

use std::{
    collections::HashSet,
    ffi::CString,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// Most instructions of a program here; the kernel's limit for privileged users is higher.
pub const INSTRUCTIONS_MAX: usize = 4096;

/// The verifier gives up with `EAGAIN` while a signal, or io_uring work, is pending for the thread. Both are handled
/// on the return to user mode, and a later try succeeds. libbpf makes five tries (`PROG_LOAD_ATTEMPTS`). While the
/// kernel tears down rings of the thread, such work keeps arriving for some milliseconds, which took up to 52 tries.
const LOAD_TRIES: u32 = 1000;

/// Most programs that [`programs`] lists.
const PROGRAMS_MAX: usize = 65_536;
/// Length of the verifier's log of a refused program.
const LOG_BYTES: usize = 1 << 16;
/// Most walks through a table for its keys.
const WALKS_MAX: usize = 4;
/// Longest name of a table or a program in the kernel, including its final zero.
const NAME_BYTES: usize = 16;
/// The programs may be used under either licence; the kernel gives some of its functions only to GPL programs.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";

const MAP_CREATE: u32 = 0;
const MAP_LOOKUP: u32 = 1;
const MAP_UPDATE: u32 = 2;
const MAP_DELETE: u32 = 3;
const MAP_NEXT_KEY: u32 = 4;
const PROGRAM_LOAD: u32 = 5;
const PROGRAM_NEXT_ID: u32 = 11;
const INFO_BY_DESCRIPTOR: u32 = 15;
const RAW_TRACEPOINT_OPEN: u32 = 17;
const ENABLE_STATISTICS: u32 = 32;
const STATISTICS_OF_RUNS: u32 = 0;
const PROGRAM_TYPE_RAW_TRACEPOINT: u32 = 17;

/// Kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Any key; one value for all CPUs.
    Hash,
    /// Keys are numbers below the number of entries; all values exist from the start, and are zero.
    Array,
    /// Like `Array`, with one value per CPU.
    PerCpuArray,
}

/// Shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// Kind of the table.
    pub kind: MapKind,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Most entries.
    pub entries_max: u32,
}

/// A table that programs and this process share.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    shape: MapShape,
    read_bytes: usize,
}

impl Map {
    /// Creates an empty table; arrays are zero-filled.
    ///
    /// # Errors
    /// `EPERM` without the privilege, `ENOSYS` if the kernel has no BPF, `EINVAL` for a refused shape.
    pub fn new(name: &str, shape: MapShape) -> io::Result<Self> {
        let copies = match shape.kind {
            MapKind::PerCpuArray => cpus_possible()?,
            MapKind::Hash | MapKind::Array => 1,
        };
        // A per-CPU value is read with its length rounded up, as the kernel stores it.
        let stride = if copies == 1 { shape.value_bytes } else { shape.value_bytes.next_multiple_of(8) };
        let read_bytes = (stride as usize).checked_mul(copies).ok_or(io::ErrorKind::InvalidInput)?;
        let attributes = MapCreate {
            kind: match shape.kind {
                MapKind::Hash => 1,
                MapKind::Array => 2,
                MapKind::PerCpuArray => 6,
            },
            key_bytes: shape.key_bytes,
            value_bytes: shape.value_bytes,
            entries_max: shape.entries_max,
            flags: 0,
            inner: 0,
            numa_node: 0,
            name: kernel_name(name),
        };
        // SAFETY: invariant 1; the structure holds no addresses.
        let descriptor = unsafe { new_descriptor(MAP_CREATE, &attributes) }?;
        Ok(Self { descriptor, shape, read_bytes })
    }

    /// Its shape.
    pub fn shape(&self) -> MapShape {
        self.shape
    }

    /// Number that instructions use for the table while it is open in this process.
    pub fn number(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Bytes that [`Self::read`] fills: the value, or one per possible CPU, each padded to eight bytes.
    pub fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    /// Copies the value of `key`; returns false if there is none. `value` must be [`Self::read_bytes`] long.
    pub fn read(&self, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
        if value.len() != self.read_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let element = self.element(key, value.as_mut_ptr())?;
        // SAFETY: invariants 1 and 2: both lengths were checked.
        found(unsafe { call(MAP_LOOKUP, &element) })
    }

    /// Sets the value of `key`, in a table with one value for all CPUs.
    pub fn write(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if value.len() != self.shape.value_bytes as usize || value.len() != self.read_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let element = self.element(key, value.as_ptr().cast_mut())?;
        // SAFETY: invariants 1 and 2: both lengths were checked, and the kernel only reads the value.
        unsafe { call(MAP_UPDATE, &element) }.map(drop)
    }

    /// Removes `key`; returns false if it was not there.
    pub fn remove(&self, key: &[u8]) -> io::Result<bool> {
        let element = self.element(key, std::ptr::null_mut())?;
        // SAFETY: invariants 1 and 2; this command only reads the key.
        found(unsafe { call(MAP_DELETE, &element) })
    }

    /// All keys. Keys that are added or removed meanwhile may be missing; none is returned twice.
    ///
    /// The table is walked until a walk finds nothing new. A single walk may miss a key that was present all the
    /// time: the element of a removed key is reused at once, and a walk that stands on it continues in another chain
    /// (Linux, `htab_map_get_next_key`).
    pub fn keys(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut keys = HashSet::new();
        for _ in 0..WALKS_MAX {
            let known = keys.len();
            self.walk(&mut keys)?;
            if keys.len() == known {
                break;
            }
        }
        Ok(keys.into_iter().collect())
    }

    /// Adds the keys of one walk from the first to the last one.
    fn walk(&self, keys: &mut HashSet<Vec<u8>>) -> io::Result<()> {
        let mut last: Option<Vec<u8>> = None;
        let mut next = vec![0_u8; self.shape.key_bytes as usize];
        // A removed key restarts the walk at the first one, so the number of steps is bounded.
        for _ in 0..u64::from(self.shape.entries_max) * 4 + 4 {
            let mut element = Element { map: self.number() as u32, ..Element::default() };
            element.key = last.as_ref().map_or(0, |key| key.as_ptr() as u64);
            element.value_or_next_key = next.as_mut_ptr() as u64;
            // SAFETY: invariants 1 and 2: the last key came from this table, and `next` is as long.
            if !found(unsafe { call(MAP_NEXT_KEY, &element) })? {
                break;
            }
            keys.insert(next.clone());
            last = Some(next.clone());
        }
        Ok(())
    }

    fn element(&self, key: &[u8], value: *mut u8) -> io::Result<Element> {
        if key.len() != self.shape.key_bytes as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Element {
            map: self.number() as u32,
            padding: 0,
            key: key.as_ptr() as u64,
            value_or_next_key: value as u64,
            flags: 0,
        })
    }
}

/// Why a program was refused.
#[derive(Debug)]
pub struct Refused {
    /// The kernel's error.
    pub error: io::Error,
    /// The end of the verifier's log; empty if there is none.
    pub log: String,
}

/// A program for raw tracepoints that the verifier has accepted.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
}

impl Program {
    /// Loads the instructions into the kernel; they name tables by [`Map::number`].
    ///
    /// # Errors
    /// Contains the verifier's log if it refused them.
    pub fn load(name: &str, instructions: &[u64]) -> Result<Self, Refused> {
        let quiet = load(name, instructions, &mut []);
        let error = match quiet {
            Ok(descriptor) => return Ok(Self { descriptor }),
            Err(error) => error,
        };
        // Only a refusal has a useful log, and a log that is too small would itself be refused.
        if !matches!(error.raw_os_error(), Some(libc::EACCES | libc::EINVAL)) {
            return Err(Refused { error, log: String::new() });
        }
        let mut log = vec![0_u8; LOG_BYTES];
        let _ = load(name, instructions, &mut log);
        let length = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let text = String::from_utf8_lossy(&log[..length]);
        let skipped = text.lines().count().saturating_sub(20);
        let log = text.lines().skip(skipped).collect::<Vec<_>>().join("\n");
        Err(Refused { error, log })
    }

    /// Runs the program at each event of this tracepoint until the attachment is dropped.
    ///
    /// # Errors
    /// `ENOENT` if the kernel lacks the tracepoint, `EINVAL` if it has fewer arguments than the program reads.
    pub fn attach(&self, tracepoint: &str) -> io::Result<Attachment> {
        let name = CString::new(tracepoint)?;
        let attributes = RawTracepoint {
            name: name.as_ptr() as u64,
            program: self.descriptor.as_raw_fd() as u32,
            padding: 0,
        };
        // SAFETY: invariant 1; the name is a string that outlives the call.
        let descriptor = unsafe { new_descriptor(RAW_TRACEPOINT_OPEN, &attributes) }?;
        Ok(Attachment { _descriptor: descriptor })
    }

    /// The kernel's id of the program.
    pub fn id(&self) -> io::Result<u32> {
        self.info().map(|info| info.id)
    }

    /// Events at which it did not run because it was already running on that CPU; 0 if the kernel does not count
    /// them.
    pub fn misses(&self) -> io::Result<u64> {
        self.info().map(|info| info.recursion_misses)
    }

    /// Number and total nanoseconds of its runs while [`count_runs`] was in force.
    pub fn runs(&self) -> io::Result<(u64, u64)> {
        self.info().map(|info| (info.run_count, info.run_time_ns))
    }

    fn info(&self) -> io::Result<ProgramInfo> {
        let mut info = ProgramInfo::default();
        let mut attributes = InfoByDescriptor {
            descriptor: self.descriptor.as_raw_fd() as u32,
            info_bytes: size_of::<ProgramInfo>() as u32,
            info: &raw mut info as u64,
        };
        // SAFETY: invariant 1; `info` has room for as many bytes as are requested, and is zero, so that it requests
        // no lists. The kernel also writes to the structure itself.
        unsafe { call_mut(INFO_BY_DESCRIPTOR, &mut attributes) }?;
        Ok(info)
    }
}

/// An attached program; dropping this detaches it.
#[derive(Debug)]
pub struct Attachment {
    _descriptor: OwnedFd,
}

/// While this exists, the kernel counts the runs of all programs and reads its clock twice for each.
#[derive(Debug)]
pub struct CountedRuns {
    _descriptor: OwnedFd,
}

/// Starts counting; needs Linux 5.8.
///
/// # Errors
/// `EPERM` without the privilege, `EINVAL` if the kernel does not support it.
pub fn count_runs() -> io::Result<CountedRuns> {
    // SAFETY: invariant 1: the structure of this command is one number.
    let descriptor = unsafe { new_descriptor(ENABLE_STATISTICS, &STATISTICS_OF_RUNS) }?;
    Ok(CountedRuns { _descriptor: descriptor })
}

/// Ids of the programs that are loaded now, ascending.
///
/// # Errors
/// `EPERM` without the privilege.
pub fn programs() -> io::Result<Vec<u32>> {
    let mut ids = Vec::new();
    while ids.len() < PROGRAMS_MAX {
        let mut attributes = NextId { start: ids.last().copied().unwrap_or(0), next: 0, flags: 0 };
        // SAFETY: invariant 1; the kernel writes the next number into the structure, which is ours alone.
        let known = unsafe { call_mut(PROGRAM_NEXT_ID, &mut attributes) };
        if !found(known)? {
            break;
        }
        ids.push(attributes.next);
    }
    Ok(ids)
}

/// Number of possible CPUs of this machine, which is the number of values of a per-CPU table.
pub fn cpus_possible() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    // The list counts from 0 (`0-3`, `0,2-5`), and tables have a value for every number up to the last.
    let last = text.trim().rsplit([',', '-']).next().and_then(|number| number.parse::<usize>().ok());
    let last = last.filter(|last| *last < 1 << 16);
    last.map(|last| last + 1).ok_or_else(|| io::Error::other("the list of possible CPUs makes no sense"))
}

#[repr(C)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
    inner: u32,
    numa_node: u32,
    name: [u8; NAME_BYTES],
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value_or_next_key: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME_BYTES],
}

#[repr(C)]
struct RawTracepoint {
    name: u64,
    program: u32,
    padding: u32,
}

#[repr(C)]
struct NextId {
    start: u32,
    next: u32,
    flags: u32,
}

#[repr(C)]
struct InfoByDescriptor {
    descriptor: u32,
    info_bytes: u32,
    info: u64,
}

/// The start of `struct bpf_prog_info`; unused fields are not named.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    _not_used: [u64; 23],
    run_time_ns: u64,
    run_count: u64,
    recursion_misses: u64,
}

const _: () = assert!(size_of::<MapCreate>() == 44);
const _: () = assert!(size_of::<ProgramLoad>() == 64);
const _: () = assert!(std::mem::offset_of!(ProgramInfo, recursion_misses) == 208);

fn load(name: &str, instructions: &[u64], log: &mut [u8]) -> io::Result<OwnedFd> {
    if instructions.len() > INSTRUCTIONS_MAX {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let attributes = ProgramLoad {
        kind: PROGRAM_TYPE_RAW_TRACEPOINT,
        instruction_count: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_bytes: log.len() as u32,
        log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        kernel_version: 0,
        flags: 0,
        name: kernel_name(name),
    };
    // SAFETY: invariant 1; instructions, licence and log outlive the call and have the lengths it names.
    let once = || unsafe { new_descriptor(PROGRAM_LOAD, &attributes) };
    let is_interrupted = |error: &io::Error| error.raw_os_error() == Some(libc::EAGAIN);
    for _ in 1..LOAD_TRIES {
        match once() {
            Err(error) if is_interrupted(&error) => {}
            other => return other,
        }
    }
    once()
}

/// A name as the kernel accepts it: letters, digits, `_` and `.`, with a final zero.
fn kernel_name(name: &str) -> [u8; NAME_BYTES] {
    let mut bytes = [0; NAME_BYTES];
    for (byte, character) in bytes[..NAME_BYTES - 1].iter_mut().zip(name.bytes()) {
        *byte = if character.is_ascii_alphanumeric() { character } else { b'_' };
    }
    bytes
}

/// Whether the element was found.
fn found(result: io::Result<u32>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// # Safety
/// As for [`call`], and the command must return a descriptor.
unsafe fn new_descriptor<T>(command: u32, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for it.
    let number = unsafe { call(command, attributes) }?;
    // SAFETY: the kernel has just returned this descriptor; no other code knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number as i32) })
}

/// # Safety
/// `attributes` must have the command's layout (invariant 1), and each address in it must be valid for what the
/// command reads and writes there.
unsafe fn call<T>(command: u32, attributes: &T) -> io::Result<u32> {
    let address = std::ptr::from_ref(attributes);
    // SAFETY: the caller vouches for it; these commands only read the structure itself.
    answer(unsafe { libc::syscall(libc::SYS_bpf, command, address, size_of::<T>()) })
}

/// # Safety
/// As for [`call`], for a command that also writes to the structure.
unsafe fn call_mut<T>(command: u32, attributes: &mut T) -> io::Result<u32> {
    let address = std::ptr::from_mut(attributes);
    // SAFETY: the caller vouches for it.
    answer(unsafe { libc::syscall(libc::SYS_bpf, command, address, size_of::<T>()) })
}

fn answer(result: libc::c_long) -> io::Result<u32> {
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use io_uring::IoUring;

    use super::*;

    #[test]
    fn names_are_cut_and_hold_only_what_the_kernel_takes() {
        assert_eq!(&kernel_name("weir calls-of-all-threads"), b"weir_calls_of_a\0");
        assert_eq!(kernel_name(""), [0; NAME_BYTES]);
    }

    #[test]
    fn this_machine_has_a_possible_cpu() {
        assert!(cpus_possible().expect("sysfs is mounted") >= 1);
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says why a test was skipped")]
    fn keys_that_stay_are_all_found_while_others_come_and_go() {
        let shape = MapShape { kind: MapKind::Hash, key_bytes: 4, value_bytes: 8, entries_max: 128 };
        let map = match Map::new("weir_churn", shape) {
            Ok(map) => map,
            Err(error) => return println!("skipped: the kernel gives no table: {error}"),
        };
        let key = |number: u32| number.to_ne_bytes();
        (0..32).for_each(|number| map.write(&key(number), &[0; 8]).expect("there is room"));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in (32..96).cycle() {
                    map.write(&key(number), &[0; 8]).expect("there is room");
                    map.remove(&key(number)).expect("it can be removed");
                    if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let missing = (0..10_000).find_map(|_| {
                let keys = map.keys().expect("it can be walked");
                (0..32).find(|number| !keys.contains(&key(*number).to_vec()))
            });
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(missing, None);
        });
    }

    /// Returns 0.
    const NOTHING: [u64; 2] = [0xB7, 0x95];

    #[test]
    #[expect(clippy::print_stdout, reason = "says why a test was skipped")]
    fn a_program_is_loaded_while_work_waits_for_the_thread() {
        if let Err(refused) = Program::load("weir_nothing", &NOTHING) {
            return println!("skipped: the kernel takes no program: {refused:?}");
        }
        // Closing a ring leaves work for the thread that created it.
        for round in 0..2000 {
            match IoUring::new(8) {
                Ok(ring) => drop(ring),
                Err(error) => return println!("skipped: no io_uring here: {error}"),
            }
            let loaded = Program::load("weir_nothing", &NOTHING);
            assert!(loaded.is_ok(), "round {round}: {loaded:?}");
        }
    }

    #[test]
    fn a_program_that_is_too_long_never_reaches_the_kernel() {
        let refused = Program::load("long", &vec![0; INSTRUCTIONS_MAX + 1]).expect_err("it is too long");
        assert_eq!((refused.error.raw_os_error(), refused.log.as_str()), (Some(libc::E2BIG), ""));
    }
}
