//! Short sleeps: the thread's timer slack, and a timer with a descriptor. Other code decides which sleep is best.

use std::{io, num::NonZeroU64, os::fd::OwnedFd, time::Duration};

use rustix::{
    thread::{current_timer_slack, set_current_timer_slack},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

/// The timer slack of the calling thread: how much later than requested the kernel may end a sleep, to save wake-ups.
pub fn timer_slack_ns() -> io::Result<u64> {
    Ok(current_timer_slack()?)
}

/// Sets the slack of the calling thread (`PR_SET_TIMERSLACK`); the default is 50 µs. At least 1.
pub fn set_timer_slack_ns(slack_ns: NonZeroU64) -> io::Result<()> {
    Ok(set_current_timer_slack(Some(slack_ns))?)
}

/// A timer on the monotonic clock; a thread sleeps by reading it.
#[derive(Debug)]
pub struct Timer {
    descriptor: OwnedFd,
}

impl Timer {
    /// An unarmed timer.
    pub fn new() -> io::Result<Self> {
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        Ok(Self { descriptor })
    }

    /// Sleeps for `length`, also when signals arrive.
    pub fn sleep(&self, length: Duration) -> io::Result<()> {
        // Zero would disarm the timer, and the read would never return.
        let length = length.max(Duration::from_nanos(1));
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: length.subsec_nanos().into(),
            },
        };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &once)?;
        let mut expirations = [0_u8; 8];
        loop {
            match rustix::io::read(&self.descriptor, &mut expirations) {
                Err(rustix::io::Errno::INTR) => {}
                result => return Ok(result.map(drop)?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_timer_is_never_early() {
        let timer = Timer::new().expect("a timer");
        for length in [Duration::ZERO, Duration::from_micros(50), Duration::from_millis(2)] {
            let start = Instant::now();
            timer.sleep(length).expect("it sleeps");
            assert!(start.elapsed() >= length);
        }
    }

    #[test]
    fn the_slack_of_a_thread_is_its_own() {
        let before = timer_slack_ns().expect("a slack");
        std::thread::spawn(|| {
            set_timer_slack_ns(NonZeroU64::MIN).expect("allowed");
            assert_eq!(timer_slack_ns().expect("a slack"), 1);
        })
        .join()
        .expect("the thread");
        assert_eq!(timer_slack_ns().expect("a slack"), before);
    }
}
