//! `poll`: the whole list of descriptors is passed to the kernel in every call. Level-triggered.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    time::Duration,
};

use weir_sys::readiness::{self, PollFd};

use super::readiness::{Backend, Interest, Ready};
use crate::call_clock::CallClock;

const ENDED: i16 = libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP | libc::POLLNVAL;

/// The descriptor list, with tokens beside it.
#[derive(Default)]
pub(crate) struct Poll {
    descriptors: Vec<PollFd>,
    tokens: Vec<u64>,
    places: HashMap<RawFd, usize>,
}

fn mask(interest: Interest) -> i16 {
    let read = if interest.read { libc::POLLIN | libc::POLLRDHUP } else { 0 };
    read | if interest.write { libc::POLLOUT } else { 0 }
}

impl Backend for Poll {
    fn is_edge_triggered(&self) -> bool {
        false
    }

    fn add(
        &mut self,
        socket: BorrowedFd<'_>,
        token: u64,
        interest: Interest,
        _exclusive: bool,
    ) -> io::Result<()> {
        let descriptor = socket.as_raw_fd();
        self.places.insert(descriptor, self.descriptors.len());
        self.descriptors.push(PollFd { fd: descriptor, events: mask(interest), revents: 0 });
        self.tokens.push(token);
        Ok(())
    }

    fn change(&mut self, socket: BorrowedFd<'_>, _token: u64, interest: Interest) -> io::Result<()> {
        let place = self.places.get(&socket.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        self.descriptors[*place].events = mask(interest);
        Ok(())
    }

    fn remove(&mut self, socket: BorrowedFd<'_>) {
        let Some(place) = self.places.remove(&socket.as_raw_fd()) else { return };
        self.descriptors.swap_remove(place);
        self.tokens.swap_remove(place);
        if let Some(moved) = self.descriptors.get(place) {
            self.places.insert(moved.fd, place);
        }
    }

    fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>, clock: &CallClock) -> io::Result<()> {
        let mut left = clock.call(|| readiness::poll(&mut self.descriptors, limit))?;
        for (descriptor, token) in self.descriptors.iter().zip(&self.tokens) {
            if left == 0 {
                break;
            }
            if descriptor.revents != 0 {
                left -= 1;
                ready.push(Ready {
                    token: *token,
                    readable: descriptor.revents & libc::POLLIN != 0,
                    writable: descriptor.revents & libc::POLLOUT != 0,
                    ended: descriptor.revents & ENDED != 0,
                });
            }
        }
        Ok(())
    }
}
