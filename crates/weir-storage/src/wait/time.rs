//! The clocks and sleeps for waiting, behind a trait so that the loop can be tested in virtual time.
//!
//! A sleep here is never cut short. `clock_nanosleep` is late by up to the thread's timer slack, so a thread that
//! uses it sets its slack to 1 ns; the time limit of `io_uring_enter` and `timerfd` have no slack.

use std::{io, num::NonZeroU64, time::Duration};

use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec, clock_gettime},
};
use weir_record::storage::SleepPrimitive;
use weir_sys::timer::{Timer, set_timer_slack_ns};

use crate::engine::Engine;

/// The clock and sleep of one thread.
pub trait Time {
    /// Monotonic, in nanoseconds; a real clock has the origin of `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64;

    /// CPU this thread has used.
    fn thread_cpu_ns(&self) -> u64;

    /// Passes a moment without sleeping.
    fn relax(&self) {
        std::hint::spin_loop();
    }

    /// Sleeps for `length_ns` from now, whatever becomes complete meanwhile.
    fn sleep(&mut self, engine: &mut dyn Engine, length_ns: u64) -> io::Result<()>;
}

/// The kernel's clocks, and one way to sleep. Create it in the thread that uses it: the timer slack is per thread.
#[derive(Debug)]
pub struct RealTime {
    sleeper: Sleeper,
}

#[derive(Debug)]
enum Sleeper {
    ClockNanosleep,
    RingTimeout,
    Timerfd(Timer),
}

impl RealTime {
    /// Sleeps with `primitive`; [`SleepPrimitive::Auto`] means `clock_nanosleep`, which exists everywhere.
    pub fn new(primitive: SleepPrimitive) -> io::Result<Self> {
        set_timer_slack_ns(NonZeroU64::MIN)?;
        let sleeper = match primitive {
            SleepPrimitive::Auto | SleepPrimitive::ClockNanosleep => Sleeper::ClockNanosleep,
            SleepPrimitive::RingTimeout => Sleeper::RingTimeout,
            SleepPrimitive::Timerfd => Sleeper::Timerfd(Timer::new()?),
        };
        Ok(Self { sleeper })
    }
}

impl Time for RealTime {
    #[inline]
    fn now_ns(&self) -> u64 {
        now_ns()
    }

    fn thread_cpu_ns(&self) -> u64 {
        thread_cpu_ns()
    }

    fn sleep(&mut self, engine: &mut dyn Engine, length_ns: u64) -> io::Result<()> {
        if length_ns == 0 {
            return Ok(());
        }
        match &self.sleeper {
            Sleeper::ClockNanosleep => sleep_until(now_ns().saturating_add(length_ns)),
            Sleeper::RingTimeout => {
                engine.sleep_whole(Duration::from_nanos(length_ns)).unwrap_or_else(|| {
                    Err(io::Error::new(io::ErrorKind::Unsupported, "this engine has no ring to sleep in"))
                })
            }
            Sleeper::Timerfd(timer) => timer.sleep(Duration::from_nanos(length_ns)),
        }
    }
}

/// Now, by the monotonic clock.
#[inline]
pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// CPU time of this thread, cumulative.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

/// Sleeps until a time of the monotonic clock.
pub fn sleep_until(deadline_ns: u64) -> io::Result<()> {
    let deadline = timespec(deadline_ns);
    loop {
        match clock_nanosleep_absolute(ClockId::Monotonic, &deadline) {
            Err(rustix::io::Errno::INTR) => {}
            other => return other.map_err(io::Error::from),
        }
    }
}

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    // Clocks of the kernel are never negative.
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::fake::FakeEngine;

    #[test]
    fn a_sleep_is_never_shorter_than_asked() {
        let mut engine = FakeEngine::idle();
        for primitive in [SleepPrimitive::ClockNanosleep, SleepPrimitive::Timerfd] {
            let mut time = RealTime::new(primitive).expect("both are everywhere");
            for length_ns in [0, 1, 40_000] {
                let before_ns = time.now_ns();
                time.sleep(&mut engine, length_ns).expect("a sleep");
                assert!(time.now_ns() - before_ns >= length_ns, "{primitive:?} {length_ns}");
            }
        }
    }

    #[test]
    fn an_engine_without_a_ring_cannot_be_slept_in() {
        let mut time = RealTime::new(SleepPrimitive::RingTimeout).expect("nothing to open");
        let error = time.sleep(&mut FakeEngine::without_a_ring(), 1).expect_err("there is no ring");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn the_clock_of_the_thread_moves_with_its_work() {
        let time = RealTime::new(SleepPrimitive::Auto).expect("a clock");
        let (before_ns, start_ns) = (time.thread_cpu_ns(), time.now_ns());
        while time.now_ns() - start_ns < 3_000_000 {
            std::hint::spin_loop();
        }
        assert!(time.thread_cpu_ns() > before_ns);
    }
}
