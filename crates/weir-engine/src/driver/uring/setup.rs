//! Setting up a ring: every flag that the kernel grants; fewer of them on an older kernel.
//!
//! The kernel refuses a set of flags as a whole, so sets are tried, newest first. A driver reports what was granted;
//! nothing is left out silently.

use std::io;

use io_uring::IoUring;
use weir_engine_types::kernel::KernelFeature;

use crate::{
    config::{KernelMask, UringOptions},
    driver::error,
};

/// Flags of io_uring_setup that are requested together.
#[derive(Clone, Copy)]
pub(super) struct SetupFlags {
    pub(super) single_issuer: bool,
    pub(super) defer_taskrun: bool,
    pub(super) cooperative: bool,
    pub(super) submit_all: bool,
    pub(super) no_sqarray: bool,
}

/// The newest set of flags. Its kernels, from set 0 on: 5.11, 5.18, 5.19, 6.0, 6.1, 6.6.
const NEWEST: u8 = 5;

impl SetupFlags {
    /// The set with this number; each one works on older kernels than the next.
    const fn of(set: u8) -> Self {
        Self {
            submit_all: set >= 1,
            cooperative: set >= 2,
            single_issuer: set >= 3,
            defer_taskrun: set >= 4,
            no_sqarray: set >= 5,
        }
    }

    /// The flags without those that the options switch off.
    fn without(self, options: &UringOptions, masked: KernelMask) -> Self {
        Self {
            single_issuer: self.single_issuer && !masked.hides(KernelFeature::SingleIssuer),
            defer_taskrun: self.defer_taskrun
                && options.defer_taskrun
                && options.poll_idle_ms.is_none()
                && !masked.hides(KernelFeature::DeferredTaskRun),
            // Completions run on the kernel's thread if that thread submits.
            cooperative: self.cooperative
                && options.poll_idle_ms.is_none()
                && !masked.hides(KernelFeature::CooperativeTaskRun),
            submit_all: self.submit_all && !masked.hides(KernelFeature::SubmitAll),
            no_sqarray: self.no_sqarray && !masked.hides(KernelFeature::NoIndexArray),
        }
    }

    fn build(self, entries: u32, poll_idle_ms: Option<u32>) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize(entries.saturating_mul(4)).dontfork();
        if let Some(idle_ms) = poll_idle_ms {
            builder.setup_sqpoll(idle_ms);
        }
        if self.single_issuer {
            builder.setup_single_issuer();
        }
        if self.defer_taskrun && self.single_issuer {
            builder.setup_defer_taskrun();
        }
        if self.cooperative {
            builder.setup_coop_taskrun().setup_taskrun_flag();
        }
        if self.submit_all {
            builder.setup_submit_all();
        }
        if self.no_sqarray {
            builder.setup_no_sqarray();
        }
        builder.build(entries)
    }
}

/// A ring with everything that the kernel grants and the options do not switch off.
pub(super) fn set_up(options: &UringOptions, masked: KernelMask) -> io::Result<(IoUring, SetupFlags)> {
    let entries = options.entries.clamp(2, 1 << 15);
    let missing =
        || error::missing(KernelFeature::SubmissionPolling, "IORING_SETUP_SQPOLL without privileges");
    if options.poll_idle_ms.is_some() && masked.hides(KernelFeature::SubmissionPolling) {
        return Err(missing());
    }
    for set in (0..=NEWEST).rev() {
        let flags = SetupFlags::of(set).without(options, masked);
        match flags.build(entries, options.poll_idle_ms) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            // Is it the option, or io_uring?
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && options.poll_idle_ms.is_some() => {
                return Err(if flags.build(entries, None).is_ok() { missing() } else { error });
            }
            other => return other.map(|ring| (ring, flags)),
        }
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}
