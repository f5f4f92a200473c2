//! Waits that are not a socket operation: for several descriptors at once, by `poll`.

use std::{io, os::fd::AsFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
};

use super::Blocking;
use crate::{clock::monotonic, counters::Counters, slab::SlotId};

impl Blocking {
    /// Waits for time, another thread's wake-up, and lingering sockets only.
    pub(super) fn idle(&mut self, limit: Option<Duration>) -> io::Result<()> {
        // A lingering socket may have lacked a resource since the limit was chosen.
        let pause = self.retry_at.map(|at| at.since(monotonic()));
        let limit = [limit, pause].into_iter().flatten().min();
        let mut list = vec![PollFd::new(&*self.parts.wake, PollFlags::IN)];
        if self.retry_at.is_none() {
            for socket in self.lingering.ids().filter_map(|id| self.sockets.get(id)) {
                let flags = if socket.send.queue.is_empty() { PollFlags::IN } else { PollFlags::OUT };
                list.push(PollFd::new(&socket.descriptor, flags));
            }
        }
        let is_woken = wait_for_any(&mut list, limit, &self.parts.counters)? && !list[0].revents().is_empty();
        if is_woken {
            self.parts.take_wake_up();
        }
        Ok(())
    }

    /// Waits for input of an idle connection, or for another thread. False: there is no input.
    pub(super) fn await_input(&mut self, id: SlotId, limit: Option<Duration>) -> io::Result<bool> {
        let Some(socket) = self.sockets.get(id) else { return Ok(false) };
        let mut list =
            [PollFd::new(&*self.parts.wake, PollFlags::IN), PollFd::new(&socket.descriptor, PollFlags::IN)];
        if !wait_for_any(&mut list, limit, &self.parts.counters)? {
            return Ok(false);
        }
        let has_input = !list[1].revents().is_empty();
        if !list[0].revents().is_empty() {
            self.parts.take_wake_up();
        }
        Ok(has_input)
    }
}

/// Waits for one of several descriptors. False: none is ready.
fn wait_for_any(list: &mut [PollFd<'_>], limit: Option<Duration>, counters: &Counters) -> io::Result<bool> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    counters.poll_calls.increment();
    match counters.clock.call(|| rustix::event::poll(list, limit.as_ref())) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a socket takes bytes, or until a connection attempt has ended.
pub(super) fn wait_writable(
    socket: impl AsFd,
    limit: Option<Duration>,
    counters: &Counters,
) -> io::Result<bool> {
    wait_for_any(&mut [PollFd::new(&socket, PollFlags::OUT)], limit, counters)
}
