//! The simulated readiness call, edge- or level-triggered according to the options.

use std::{io, os::fd::OwnedFd, time::Duration};

use super::{
    descriptors::Trigger,
    kernel::{SharedMachine, SimSocket, Simulated},
};
use crate::{
    call_clock::CallClock,
    driver::readiness::{Backend, Interest, Ready},
};

/// The readiness call.
#[derive(Debug)]
pub(crate) struct Poller {
    pub(super) machine: SharedMachine,
}

impl Backend<Simulated> for Poller {
    fn is_edge_triggered(&self) -> bool {
        self.machine.borrow().trigger == Trigger::Edge
    }

    /// It is real, so virtual time cannot wait for it: the machine checks it before it would report a deadlock.
    fn watch_wake_up(&mut self, _wake: &OwnedFd, token: u64) -> io::Result<()> {
        self.machine.borrow_mut().wake_token = token;
        Ok(())
    }

    fn add(
        &mut self,
        socket: &SimSocket,
        token: u64,
        interest: Interest,
        _exclusive: bool,
    ) -> io::Result<()> {
        Ok(self.machine.borrow_mut().watch(socket.number, token, interest)?)
    }

    fn change(&mut self, socket: &SimSocket, token: u64, interest: Interest) -> io::Result<()> {
        Ok(self.machine.borrow_mut().watch(socket.number, token, interest)?)
    }

    fn remove(&mut self, socket: &SimSocket) {
        self.machine.borrow_mut().unwatch(socket.number);
    }

    fn wait(&mut self, limit: Option<Duration>, ready: &mut Vec<Ready>, clock: &CallClock) -> io::Result<()> {
        clock.call(|| self.machine.borrow_mut().wait(limit, ready))
    }
}
