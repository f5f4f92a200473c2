//! The ring's file table: a socket in it is named by its place, and no operation looks a descriptor up.
//!
//! A socket's place has the number of its slot. Its descriptor stays open, for the calls that need one; the kernel
//! closes the socket when both are gone, so the place is cleared first. A socket beyond the end of the table (there
//! are as many places as the process may have descriptors, when the driver starts), or for which the kernel has no
//! memory, is named by its descriptor.
//!
//! Before 6.13 a file that left a table stayed open until all older operations had ended: one receive that waits for
//! data would keep open every connection that is closed after it. Distributions backport fixes, so the driver tests
//! this when it starts, and refuses the option on a kernel with the defect.

use std::{
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use io_uring::{squeue::Flags, types::Fd};
use rustix::process::{Resource, getrlimit};
use weir_engine_types::kernel::KernelFeature;

use super::{plain_entry::PlainEntry, ring::Ring};
use crate::{clock::monotonic, config::Config, counters::Counters, driver::error};

/// Places that the kernel allows.
const PLACES_MAX: u64 = 1 << 20;
/// How long the trial at the start may take.
const TRIAL: Duration = Duration::from_secs(1);

/// The name of a socket in submissions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// The descriptor, or the place in the table.
    pub(super) fd: Fd,
    /// Whether it is a descriptor or a place.
    pub(super) flags: Flags,
}

impl Target {
    pub(super) fn descriptor(descriptor: &OwnedFd) -> Self {
        Self { fd: Fd(descriptor.as_raw_fd()), flags: Flags::empty() }
    }

    fn place(index: u32) -> Self {
        Self { fd: Fd(index as i32), flags: Flags::FIXED_FILE }
    }

    pub(super) fn is_place(self) -> bool {
        self.flags.contains(Flags::FIXED_FILE)
    }
}

/// The table.
pub(super) struct FileTable {
    /// Zero: there is no table.
    pub(super) places: u32,
}

impl FileTable {
    /// Registers a table for the maximum number of sockets, if the options ask for it.
    ///
    /// # Errors
    /// If the kernel has no table that releases a file at once, or lacks memory.
    pub(super) fn new(config: &Config, ring: &mut Ring) -> io::Result<Self> {
        if !config.uring.fixed_files {
            return Ok(Self { places: 0 });
        }
        let what = "a table of files that lets go of one at once";
        let missing = || error::missing(KernelFeature::FixedFiles, what);
        if config.masked().hides(KernelFeature::FixedFiles) {
            return Err(missing());
        }
        let open_max = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // The test needs two.
        let places = (config.limits.sockets_max as u64).clamp(2, open_max.clamp(2, PLACES_MAX)) as u32;
        match ring.submitter().register_files_sparse(places) {
            // Tables exist since 5.1, empty ones since 5.19.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => return Err(missing()),
            outcome => outcome?,
        }
        if lets_go_at_once(ring)? { Ok(Self { places }) } else { Err(missing()) }
    }

    /// Whether a slot has a place.
    pub(super) fn has_place(&self, index: u32) -> bool {
        index < self.places
    }

    /// Puts a new socket into its place.
    pub(super) fn place(&self, index: u32, descriptor: &OwnedFd, ring: &Ring, counters: &Counters) -> Target {
        match update(index, descriptor.as_raw_fd(), ring, counters) {
            Ok(()) => Target::place(index),
            Err(_) => Target::descriptor(descriptor),
        }
    }

    /// Clears the place of a socket that has nothing in flight.
    pub(super) fn clear(&self, index: u32, target: Target, ring: &Ring, counters: &Counters) {
        if target.is_place() {
            // This needs no memory, and the place exists. After any other error the next socket of this slot
            // overwrites the place.
            let _ = update(index, -1, ring, counters);
        }
    }
}

fn update(index: u32, descriptor: RawFd, ring: &Ring, counters: &Counters) -> io::Result<()> {
    counters.setup_calls.increment();
    match ring.submitter().register_files_update(index, &[descriptor])? {
        1 => Ok(()),
        _ => Err(io::ErrorKind::Other.into()),
    }
}

/// Whether a file that is removed from the table is closed at once although an older operation is in flight.
fn lets_go_at_once(ring: &mut Ring) -> io::Result<bool> {
    let counters = Counters::default();
    let (idle, idle_peer) = UnixStream::pair()?;
    let (closed, mut closed_peer) = UnixStream::pair()?;
    closed_peer.set_nonblocking(true)?;
    ring.submitter().register_files_update(0, &[idle.as_raw_fd(), closed.as_raw_fd()])?;
    ring.push(PlainEntry::poll(Target::place(0), libc::POLLIN), &counters);
    // Its completion shows that the poll before it is in flight.
    ring.push(PlainEntry::nothing(), &counters);
    await_completion(ring, &counters)?;
    ring.submitter().register_files_update(1, &[-1])?;
    drop(closed);
    let is_closed = closed_peer.read(&mut [0]).is_ok();
    // Ends the poll.
    drop(idle_peer);
    await_completion(ring, &counters)?;
    ring.submitter().register_files_update(0, &[-1])?;
    Ok(is_closed)
}

/// Waits for the next completion of a trial.
fn await_completion(ring: &mut Ring, counters: &Counters) -> io::Result<()> {
    let deadline = monotonic() + TRIAL;
    let mut completions = Vec::new();
    while completions.is_empty() {
        let rest = deadline.since(monotonic());
        if rest.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        ring.turn(Some(Some(rest)), counters)?;
        ring.reap(&mut completions);
    }
    Ok(())
}
