//! A process that is watched with all its descendants, and whether it has ended.

use std::os::fd::OwnedFd;

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use weir_sys::process_stat::{self, ProcessStat};

use crate::{files, parse};

/// Most processes with a pidfd each; further ones are checked in /proc.
const DESCRIPTORS_MAX: usize = 64;
/// Field of `/proc/PID/stat`.
const STARTED: usize = 22;

/// A watched process, see the head of this file.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) pid: u32,
    /// Identifies the process together with its number.
    pub(super) started_ticks: u64,
    pub(super) descriptor: Option<OwnedFd>,
    /// A zombie still has its last figures in /proc.
    pub(super) has_ended: bool,
}

impl Root {
    /// The process with this number, next to `others` processes that have a pidfd; `None` if it is gone.
    pub(super) fn of(pid: u32, others: usize) -> Option<Self> {
        let open = |pid| pidfd_open(pid, PidfdFlags::empty()).ok();
        let descriptor = Pid::from_raw(i32::try_from(pid).ok()?).filter(|_| others < DESCRIPTORS_MAX);
        let descriptor = descriptor.and_then(open);
        let line = process_stat::read(pid)?;
        let started_ticks = ProcessStat::parse(&line)?.number(STARTED)?;
        Some(Self { pid, started_ticks, descriptor, has_ended: false })
    }

    /// Another process next to these.
    pub(super) fn beside(pid: u32, roots: &[Self]) -> Option<Self> {
        Self::of(pid, roots.iter().filter(|root| root.descriptor.is_some()).count())
    }

    /// Whether it has ended, with all its threads, reaped or not. An ended process needs no pidfd any more.
    pub(super) fn notice_end(&mut self) -> bool {
        self.has_ended = self.has_ended
            || match &self.descriptor {
                Some(descriptor) => {
                    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
                    matches!(poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&now)), Ok(1..))
                }
                None => is_over(self.pid),
            };
        if self.has_ended {
            self.descriptor = None;
        }
        self.has_ended
    }
}

fn is_over(pid: u32) -> bool {
    let text = files::read_text(format!("/proc/{pid}/status")).unwrap_or_default();
    parse::field(&text, "State").is_none_or(|state| state.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_not_ended_with_or_without_a_descriptor_and_no_number_is_no_process() {
        let own = std::process::id();
        for others in [0, DESCRIPTORS_MAX] {
            let mut root = Root::of(own, others).expect("it lives");
            assert!(!root.notice_end() && root.descriptor.is_some() == (others == 0));
        }
        let mut beside: Vec<Root> = (0..DESCRIPTORS_MAX).filter_map(|others| Root::of(own, others)).collect();
        let has_one =
            |beside: &[Root]| Root::beside(own, beside).is_some_and(|root| root.descriptor.is_some());
        assert!(!has_one(&beside));
        // An ended one makes room for another.
        beside[3].has_ended = true;
        assert!(beside[3].notice_end() && has_one(&beside));
        assert!(Root::of(1 << 29, 0).is_none() && Root::of(u32::MAX, 0).is_none() && is_over(1 << 29));
    }
}
