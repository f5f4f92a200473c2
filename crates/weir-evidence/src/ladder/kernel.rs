//! What the programs need to know about this kernel: the offset of the opcode in an io_uring operation, and the PID
//! namespace of the process numbers that this process sees.

use std::{fs, os::unix::fs::MetadataExt, path::Path, sync::OnceLock};

use super::btf;

/// The first PID namespace of every kernel (`PROC_PID_INIT_INO`), whose numbers kernel programs see.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// The kernel's type information.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Most bytes of it that are read; a kernel with everything built in has a tenth.
const TYPES_BYTES_MAX: u64 = 64 << 20;
/// Events whose first argument is an operation, since Linux 5.19 and 6.0.
const OPERATION_EVENTS: [&str; 2] = ["btf_trace_io_uring_submit_req", "btf_trace_io_uring_queue_async_work"];

/// Facts about the kernel, see the head of this file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kernel {
    /// `None` in the first namespace.
    pub(super) namespace: Option<PidNamespace>,
    /// Offset of the opcode in an io_uring operation; `None` if the kernel does not reveal it.
    pub(super) opcode_offset: Option<i32>,
}

/// A PID namespace as kernel programs name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PidNamespace {
    pub(super) device: u32,
    pub(super) inode: u32,
}

impl Kernel {
    /// The kernel of this machine, as seen by this process.
    pub(super) fn here() -> Self {
        static OPCODE_OFFSET: OnceLock<Option<i32>> = OnceLock::new();
        Self { opcode_offset: *OPCODE_OFFSET.get_or_init(opcode_offset), ..Self::numbering() }
    }

    /// The same without facts that take time to find.
    pub(super) fn numbering() -> Self {
        let namespace = if is_first_pid_namespace() { None } else { pid_namespace() };
        Self { namespace, opcode_offset: None }
    }
}

/// Whether this process is in the first PID namespace.
pub(super) fn is_first_pid_namespace() -> bool {
    is_namespace("pid", FIRST_PID_NAMESPACE)
}

pub(super) fn is_namespace(kind: &str, known: &str) -> bool {
    fs::read_link(format!("/proc/self/ns/{kind}")).is_ok_and(|name| name == Path::new(known))
}

fn pid_namespace() -> Option<PidNamespace> {
    let found = fs::metadata("/proc/self/ns/pid").ok()?;
    let (major, minor) = (rustix::fs::major(found.dev()), rustix::fs::minor(found.dev()));
    // The kernel's internal device numbers differ from those it shows.
    Some(PidNamespace { device: major << 20 | minor, inode: u32::try_from(found.ino()).ok()? })
}

fn opcode_offset() -> Option<i32> {
    if fs::metadata(TYPES).ok()?.len() > TYPES_BYTES_MAX {
        return None;
    }
    let bytes = fs::read(TYPES).ok()?;
    let types = btf::Types::parse(&bytes)?;
    let is_operation = |event: &&str| types.parameter_structure(event, 1) == Some("io_kiocb");
    if !OPERATION_EVENTS.iter().all(is_operation) {
        return None;
    }
    i32::try_from(types.member_offset("io_kiocb", "opcode")?).ok()
}
