//! How long the laboratory waits for another host: each wait has a limit, and an interruption of the session has a
//! shorter one. Pure: the caller reads the clock.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// The limits of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    /// Longest wait.
    pub(super) longest: Duration,
    /// Set when the session is interrupted.
    pub(super) interrupt: &'a AtomicBool,
    /// Longest wait from the interruption on.
    pub(super) interrupted: Duration,
}

impl<'a> Limits<'a> {
    /// Limits of a wait that an interruption ends at once.
    pub(super) fn new(longest: Duration, interrupt: &'a AtomicBool) -> Self {
        Self { longest, interrupt, interrupted: Duration::ZERO }
    }
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    TooLate,
    Interrupted,
}

/// A wait that has begun.
pub(super) struct Wait<'a> {
    limits: Limits<'a>,
    began: Instant,
    /// When the interruption was noticed.
    interrupted: Option<Instant>,
}

impl<'a> Wait<'a> {
    pub(super) fn new(limits: Limits<'a>, now: Instant) -> Self {
        Self { limits, began: now, interrupted: None }
    }

    /// Its longest length.
    pub(super) fn longest(&self) -> Duration {
        self.limits.longest
    }

    /// Whether it is over, and why.
    pub(super) fn over(&mut self, now: Instant) -> Option<Over> {
        if self.limits.interrupt.load(Ordering::Relaxed) {
            let noticed = *self.interrupted.get_or_insert(now);
            if now.saturating_duration_since(noticed) >= self.limits.interrupted {
                return Some(Over::Interrupted);
            }
        }
        (now.saturating_duration_since(self.began) >= self.limits.longest).then_some(Over::TooLate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_interruption_has_its_own_limit_and_never_lengthens_a_wait() {
        let (interrupt, began) = (AtomicBool::new(false), Instant::now());
        let limits = Limits { longest: 100 * SECOND, interrupt: &interrupt, interrupted: 5 * SECOND };
        let mut wait = Wait::new(limits, began);
        let at = |second: u32| began + second * SECOND;
        assert_eq!([wait.over(at(0)), wait.over(at(99))], [None, None]);
        assert_eq!(Wait::new(limits, began).over(at(100)), Some(Over::TooLate));
        interrupt.store(true, Ordering::Relaxed);
        assert_eq!([wait.over(at(40)), wait.over(at(44))], [None, None], "the servers are being ended");
        assert_eq!(wait.over(at(45)), Some(Over::Interrupted));
        let mut late = Wait::new(limits, began);
        assert_eq!([late.over(at(98)), late.over(at(100))], [None, Some(Over::TooLate)]);
        let mut at_once = Wait::new(Limits::new(100 * SECOND, &interrupt), began);
        assert_eq!(at_once.over(at(0)), Some(Over::Interrupted));
    }
}
