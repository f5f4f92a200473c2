//! epoll: the kernel keeps the interest list. By default edge-triggered and registered once for both directions, so
//! that a message costs no `epoll_ctl`.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use weir_engine_types::kernel::KernelFeature;
use weir_sys::readiness::{self, EpollEvent};

use super::readiness::{Backend, Interest, Linux, Ready};
use crate::{
    call_clock::CallClock,
    config::{EpollOptions, KernelMask},
};

/// Events taken in one call. Further events stay in the kernel for the next call.
const EVENTS_MAX: usize = 512;

const IN: u32 = libc::EPOLLIN as u32;
const OUT: u32 = libc::EPOLLOUT as u32;
const URGENT: u32 = libc::EPOLLPRI as u32;
const PEER_CLOSED: u32 = libc::EPOLLRDHUP as u32;
const ENDED: u32 = (libc::EPOLLHUP | libc::EPOLLERR | libc::EPOLLRDHUP) as u32;
const EDGE: u32 = libc::EPOLLET as u32;
const EXCLUSIVE: u32 = libc::EPOLLEXCLUSIVE as u32;

/// One epoll instance.
pub(crate) struct Epoll {
    epoll: OwnedFd,
    events: Vec<EpollEvent>,
    options: EpollOptions,
    /// Accepts timeouts that are not whole milliseconds.
    is_precise: bool,
}

impl Epoll {
    pub(crate) fn new(options: EpollOptions, masked: KernelMask) -> io::Result<Self> {
        let events = vec![EpollEvent { events: 0, u64: 0 }; EVENTS_MAX];
        let is_precise = !masked.hides(KernelFeature::EpollPwait2);
        Ok(Self { epoll: readiness::epoll_create()?, events, options, is_precise })
    }

    fn mask(&self, interest: Interest) -> u32 {
        if self.options.edge {
            return IN | OUT | URGENT | PEER_CLOSED | EDGE;
        }
        let read = if interest.read { IN | PEER_CLOSED } else { 0 };
        read | if interest.write { OUT } else { 0 }
    }
}

impl Backend<Linux> for Epoll {
    fn is_edge_triggered(&self) -> bool {
        self.options.edge
    }

    fn enters_for_interest(&self) -> bool {
        true
    }

    fn trusts_short_reads(&self) -> bool {
        !self.options.drain_to_eagain
    }

    #[cfg(any(test, feature = "lab"))]
    fn blocks_on_writes(&self) -> bool {
        self.options.blocking_writes
    }

    fn watch_wake_up(&mut self, wake: &OwnedFd, token: u64) -> io::Result<()> {
        self.add(wake, token, Interest { read: true, write: false }, false)
    }

    fn add(&mut self, socket: &OwnedFd, token: u64, interest: Interest, exclusive: bool) -> io::Result<()> {
        // EPOLLEXCLUSIVE allows only some flags: not EPOLLRDHUP, and no later change (`epoll_ctl(2)`).
        let mask = if exclusive { IN | EXCLUSIVE | self.mask(interest) & EDGE } else { self.mask(interest) };
        readiness::epoll_add(self.epoll.as_fd(), socket.as_fd(), mask, token)
    }

    fn change(&mut self, socket: &OwnedFd, token: u64, interest: Interest) -> io::Result<()> {
        readiness::epoll_modify(self.epoll.as_fd(), socket.as_fd(), self.mask(interest), token)
    }

    fn remove(&mut self, socket: &OwnedFd) {
        // Fails only if the descriptor is not watched, which is the goal.
        let _ = readiness::epoll_remove(self.epoll.as_fd(), socket.as_fd());
    }

    fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>, clock: &CallClock) -> io::Result<()> {
        let wait = if self.is_precise { readiness::epoll_wait } else { readiness::epoll_wait_milliseconds };
        let count = clock.call(|| wait(self.epoll.as_fd(), &mut self.events, limit))?;
        ready.extend(self.events[..count].iter().map(|event| Ready {
            token: event.u64,
            readable: event.events & IN != 0,
            writable: event.events & OUT != 0,
            ended: event.events & (ENDED | URGENT) != 0,
        }));
        Ok(())
    }
}
