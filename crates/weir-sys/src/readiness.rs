//! The three readiness calls, with nanosecond time limits and raw descriptors.
//!
//! `EINTR` returns zero events: the caller's loop decides again what to wait for.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    time::Duration,
};

pub use libc::{epoll_event as EpollEvent, pollfd as PollFd};

/// Largest descriptor number (exclusive) that `select` can watch.
pub const SELECT_LIMIT: usize = libc::FD_SETSIZE;

fn timespec(timeout: Option<Duration>) -> Option<libc::timespec> {
    timeout.map(|limit| libc::timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    })
}

fn pointer<T>(value: &Option<T>) -> *const T {
    value.as_ref().map_or(std::ptr::null(), std::ptr::from_ref)
}

fn events(result: libc::c_int) -> io::Result<usize> {
    if result >= 0 {
        return Ok(result as usize);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        error => Err(error),
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A new epoll instance, closed on exec.
pub fn epoll_create() -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    check(descriptor)?;
    // SAFETY: the kernel has just returned this descriptor and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Adds a descriptor with an interest set and a token.
pub fn epoll_add(
    epoll: BorrowedFd<'_>,
    descriptor: BorrowedFd<'_>,
    events: u32,
    token: u64,
) -> io::Result<()> {
    epoll_change(epoll, libc::EPOLL_CTL_ADD, descriptor, events, token)
}

/// Replaces a descriptor's interest set.
pub fn epoll_modify(
    epoll: BorrowedFd<'_>,
    descriptor: BorrowedFd<'_>,
    events: u32,
    token: u64,
) -> io::Result<()> {
    epoll_change(epoll, libc::EPOLL_CTL_MOD, descriptor, events, token)
}

/// Removes a descriptor.
pub fn epoll_remove(epoll: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    epoll_change(epoll, libc::EPOLL_CTL_DEL, descriptor, 0, 0)
}

fn epoll_change(
    epoll: BorrowedFd<'_>,
    operation: libc::c_int,
    descriptor: BorrowedFd<'_>,
    events: u32,
    token: u64,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: token };
    // SAFETY: `event` is valid for the call; both descriptors are borrowed and therefore open.
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, descriptor.as_raw_fd(), &raw mut event) })
}

/// Waits for events; `None` waits without a limit. Returns how many of `buffer` were filled. A limit is exact to the
/// nanosecond if the kernel has `epoll_pwait2` (5.11), and is otherwise rounded up to milliseconds. A sandbox without
/// that call answers `EPERM` or `ENOSYS`; the call itself never fails with either.
pub fn epoll_wait(
    epoll: BorrowedFd<'_>,
    buffer: &mut [EpollEvent],
    timeout: Option<Duration>,
) -> io::Result<usize> {
    let Some(limit) = timeout.filter(|limit| !limit.is_zero()) else {
        return epoll_wait_milliseconds(epoll, buffer, timeout);
    };
    let time = timespec(Some(limit));
    // SAFETY: `buffer` is valid for its length, `time` for the call; no signal mask is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            buffer.as_mut_ptr(),
            capacity(buffer),
            pointer(&time),
            std::ptr::null::<libc::sigset_t>(),
            size_of::<u64>(),
        )
    };
    if result < 0 && matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) {
        return epoll_wait_milliseconds(epoll, buffer, timeout);
    }
    events(result as libc::c_int)
}

/// Like [`epoll_wait`] before Linux 5.11: a limit is rounded up to milliseconds.
pub fn epoll_wait_milliseconds(
    epoll: BorrowedFd<'_>,
    buffer: &mut [EpollEvent],
    timeout: Option<Duration>,
) -> io::Result<usize> {
    let rounded = timeout.map(|limit| limit.as_nanos().div_ceil(1_000_000));
    let milliseconds = rounded.map_or(-1, |limit| libc::c_int::try_from(limit).unwrap_or(libc::c_int::MAX));
    // SAFETY: `buffer` is valid for its length.
    events(unsafe {
        libc::epoll_wait(epoll.as_raw_fd(), buffer.as_mut_ptr(), capacity(buffer), milliseconds)
    })
}

fn capacity(buffer: &[EpollEvent]) -> libc::c_int {
    libc::c_int::try_from(buffer.len()).unwrap_or(libc::c_int::MAX)
}

/// `ppoll` over raw descriptors; entries with a negative descriptor are skipped by the kernel.
///
/// A descriptor that is not open is reported as `POLLNVAL`, never an error.
pub fn poll(descriptors: &mut [PollFd], timeout: Option<Duration>) -> io::Result<usize> {
    let time = timespec(timeout);
    // SAFETY: the slice is valid for its length, `time` for the call; no signal mask is passed.
    events(unsafe {
        libc::ppoll(
            descriptors.as_mut_ptr(),
            descriptors.len() as libc::nfds_t,
            pointer(&time),
            std::ptr::null(),
        )
    })
}

/// A set of descriptors below [`SELECT_LIMIT`].
#[derive(Clone)]
pub struct DescriptorSet(libc::fd_set);

impl Default for DescriptorSet {
    fn default() -> Self {
        let mut set = std::mem::MaybeUninit::<libc::fd_set>::uninit();
        // SAFETY: FD_ZERO initialises the whole set.
        Self(unsafe {
            libc::FD_ZERO(set.as_mut_ptr());
            set.assume_init()
        })
    }
}

impl DescriptorSet {
    /// Adds or removes one descriptor; refuses numbers `select` cannot hold (they would write out of bounds).
    pub fn set(&mut self, descriptor: RawFd, present: bool) -> io::Result<()> {
        Self::check(descriptor)?;
        // SAFETY: the number was checked against the set's size.
        unsafe {
            if present {
                libc::FD_SET(descriptor, &raw mut self.0);
            } else {
                libc::FD_CLR(descriptor, &raw mut self.0);
            }
        }
        Ok(())
    }

    /// Whether the descriptor is in the set; numbers out of range never are.
    pub fn contains(&self, descriptor: RawFd) -> bool {
        // SAFETY: the number is checked first.
        Self::check(descriptor).is_ok() && unsafe { libc::FD_ISSET(descriptor, &raw const self.0) }
    }

    /// Refuses descriptors that `select` cannot watch.
    pub fn check(descriptor: RawFd) -> io::Result<()> {
        if (0..SELECT_LIMIT as RawFd).contains(&descriptor) {
            return Ok(());
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "select cannot watch descriptor {descriptor}: its limit is {SELECT_LIMIT}; use poll or epoll"
            ),
        ))
    }
}

/// `pselect` on the descriptors below `limit`; the sets are replaced by what is ready.
pub fn select(
    limit: RawFd,
    read: &mut DescriptorSet,
    write: &mut DescriptorSet,
    timeout: Option<Duration>,
) -> io::Result<usize> {
    let limit = limit.clamp(0, SELECT_LIMIT as RawFd);
    let time = timespec(timeout);
    // SAFETY: the sets are valid and `limit` is inside them; no exception set and no signal mask are passed.
    let result = events(unsafe {
        libc::pselect(
            limit,
            &raw mut read.0,
            &raw mut write.0,
            std::ptr::null_mut(),
            pointer(&time),
            std::ptr::null(),
        )
    })?;
    if result == 0 {
        *read = DescriptorSet::default();
        *write = DescriptorSet::default();
    }
    Ok(result)
}
