//! `select`: two bit sets of descriptors below 1024, copied in and out in every call. Level-triggered.

use std::{
    collections::BTreeMap,
    io,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    time::Duration,
};

use weir_sys::readiness::{self, DescriptorSet};

use super::readiness::{Backend, Interest, Linux, Ready};
use crate::call_clock::CallClock;

/// The interest sets, and the socket of each descriptor.
#[derive(Default)]
pub(crate) struct Select {
    read: DescriptorSet,
    write: DescriptorSet,
    tokens: BTreeMap<RawFd, u64>,
}

impl Backend<Linux> for Select {
    fn is_edge_triggered(&self) -> bool {
        false
    }

    fn check(&self, socket: &OwnedFd) -> io::Result<()> {
        DescriptorSet::check(socket.as_raw_fd())
    }

    fn watch_wake_up(&mut self, wake: &OwnedFd, token: u64) -> io::Result<()> {
        self.add(wake, token, Interest { read: true, write: false }, false)
    }

    fn add(&mut self, socket: &OwnedFd, token: u64, interest: Interest, _exclusive: bool) -> io::Result<()> {
        self.check(socket)?;
        self.tokens.insert(socket.as_raw_fd(), token);
        self.change(socket, token, interest)
    }

    fn change(&mut self, socket: &OwnedFd, _token: u64, interest: Interest) -> io::Result<()> {
        self.read.set(socket.as_raw_fd(), interest.read)?;
        self.write.set(socket.as_raw_fd(), interest.write)
    }

    fn remove(&mut self, socket: &OwnedFd) {
        let descriptor = socket.as_raw_fd();
        if self.tokens.remove(&descriptor).is_some() {
            // In range: otherwise it could not have been added.
            let _ = self.read.set(descriptor, false);
            let _ = self.write.set(descriptor, false);
        }
    }

    fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>, clock: &CallClock) -> io::Result<()> {
        let (mut read, mut write) = (self.read.clone(), self.write.clone());
        let end = self.tokens.last_key_value().map_or(0, |(descriptor, _)| descriptor + 1);
        let mut left = clock.call(|| readiness::select(end, &mut read, &mut write, limit))?;
        for (&descriptor, &token) in &self.tokens {
            if left == 0 {
                break;
            }
            let (readable, writable) = (read.contains(descriptor), write.contains(descriptor));
            left -= usize::from(readable) + usize::from(writable);
            if readable || writable {
                // select reports an end or an error as readable and writable and does not distinguish them: so a
                // short read never means drained for good, but the next call reports again.
                ready.push(Ready { token, readable, writable, ended: false });
            }
        }
        Ok(())
    }
}
