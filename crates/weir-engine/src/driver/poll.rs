//! `poll`: the whole list of descriptors is passed to the kernel in every call. Level-triggered.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::Duration,
};

use weir_sys::readiness::{self, PollFd};

use super::readiness::{Backend, Interest, Linux, Ready};
use crate::call_clock::CallClock;

const ENDED: i16 = libc::POLLHUP | libc::POLLERR | libc::POLLRDHUP | libc::POLLNVAL;

/// The descriptor list, with a token for each entry.
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

impl Backend<Linux> for Poll {
    fn is_edge_triggered(&self) -> bool {
        false
    }

    fn watch_wake_up(&mut self, wake: &OwnedFd, token: u64) -> io::Result<()> {
        self.add(wake, token, Interest { read: true, write: false }, false)
    }

    fn add(&mut self, socket: &OwnedFd, token: u64, interest: Interest, _exclusive: bool) -> io::Result<()> {
        let descriptor = socket.as_raw_fd();
        self.places.insert(descriptor, self.descriptors.len());
        self.descriptors.push(PollFd { fd: descriptor, events: mask(interest), revents: 0 });
        self.tokens.push(token);
        Ok(())
    }

    fn change(&mut self, socket: &OwnedFd, _token: u64, interest: Interest) -> io::Result<()> {
        let place = self.places.get(&socket.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        self.descriptors[*place].events = mask(interest);
        Ok(())
    }

    fn remove(&mut self, socket: &OwnedFd) {
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
