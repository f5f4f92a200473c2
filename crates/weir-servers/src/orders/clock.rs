//! One worker's time: read once for each receive, and converted to the time of day without another reading.
//!
//! All waits use the engine's clock, which is never set. The wall clock's offset from it is measured once a second,
//! for time stamps only; a step of the wall clock is reported.

use std::{cell::Cell, time::Duration};

use weir_engine::time::{self, Instant};

const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// How often the wall clock is read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A change of the offset by more than this is a step: slewing changes both clocks.
const STEP_NS_MIN: i64 = 200_000_000;

/// The two clocks.
#[derive(Debug)]
pub(super) struct Clock {
    wall: fn(Instant) -> u64,
    now: Cell<Instant>,
    look_at: Cell<Instant>,
    /// The wall clock's offset, modulo 2^64.
    ahead_ns: Cell<u64>,
    has_stepped: Cell<bool>,
}

impl Clock {
    /// `wall` gives the wall clock's time at an instant; by default the kernel's, and on the simulator both clocks
    /// are the same.
    pub(super) fn new(wall: Option<fn(Instant) -> u64>, is_simulated: bool) -> Self {
        let default = if is_simulated { Instant::as_nanos } else { kernel };
        let (wall, now) = (wall.unwrap_or(default), time::now());
        Self {
            wall,
            now: Cell::new(now),
            look_at: Cell::new(now + LOOK_EVERY),
            ahead_ns: Cell::new(wall(now).wrapping_sub(now.as_nanos())),
            has_stepped: Cell::new(false),
        }
    }

    /// Reads the clock.
    #[inline]
    pub(super) fn tick(&self) -> Instant {
        let now = time::now();
        self.now.set(now);
        if now >= self.look_at.get() {
            self.look(now);
        }
        now
    }

    #[cold]
    fn look(&self, now: Instant) {
        self.look_at.set(now + LOOK_EVERY);
        let ahead_ns = (self.wall)(now).wrapping_sub(now.as_nanos());
        let moved_ns = ahead_ns.wrapping_sub(self.ahead_ns.replace(ahead_ns)) as i64;
        if moved_ns.unsigned_abs() >= STEP_NS_MIN.unsigned_abs() {
            self.has_stepped.set(true);
        }
    }

    /// The time of the last tick.
    #[inline]
    pub(super) fn now(&self) -> Instant {
        self.now.get()
    }

    /// Whether the wall clock has been stepped since the last call.
    #[inline]
    pub(super) fn take_stepped(&self) -> bool {
        self.has_stepped.get() && self.has_stepped.replace(false)
    }

    /// Nanoseconds since 1970.
    #[inline]
    pub(super) fn epoch_ns(&self, now: Instant) -> u64 {
        now.as_nanos().wrapping_add(self.ahead_ns.get())
    }

    /// Nanoseconds since midnight UTC.
    #[inline]
    pub(super) fn time_of_day_ns(&self, now: Instant) -> u64 {
        self.epoch_ns(now) % DAY_NS
    }
}

/// Number of readings of both clocks for one comparison.
const READINGS: usize = 5;

/// The kernel's wall clock at a recent instant.
fn kernel(instant: Instant) -> u64 {
    let read = || {
        let before = time::monotonic();
        let wall = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let wall_ns = (wall.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(wall.tv_nsec as u64);
        (before, wall_ns, time::monotonic())
    };
    instant.as_nanos().wrapping_add(ahead_ns(read))
}

/// The wall clock's offset, from readings between two readings of the other clock. The reading with the shortest
/// interval counts: a thread that is descheduled between two readings would take that time for an offset.
fn ahead_ns(read: impl FnMut() -> (Instant, u64, Instant)) -> u64 {
    let readings = std::iter::repeat_with(read).take(READINGS);
    let shortest = readings.min_by_key(|(before, _, after)| after.since(*before));
    shortest.map_or(0, |(before, wall_ns, after)| {
        let middle_ns = before.as_nanos() + after.since(before).as_nanos() as u64 / 2;
        wall_ns.wrapping_sub(middle_ns)
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use weir_engine::{Config, Driver, Runtime};

    use super::*;

    #[test]
    fn who_is_not_scheduled_between_two_readings_is_not_ahead() {
        // The other clock is read, then the wall clock, which is 1000 ahead, and the other one again.
        let mut readings =
            [(0, 50, 90), (100, 1000, 4000), (5000, 5010, 5020), (6000, 6000, 9000), (9100, 9150, 9200)]
                .map(|(before, at, after)| {
                    (Instant::from_nanos(before), at + 1000, Instant::from_nanos(after))
                })
                .into_iter();
        assert_eq!(ahead_ns(|| readings.next().expect("as many as are read")), 1000);
        assert!(readings.next().is_none());
    }

    #[test]
    fn a_step_of_the_wall_clock_moves_time_stamps_and_nothing_else() {
        static STEP_NS: AtomicU64 = AtomicU64::new(0);
        const HOUR_NS: u64 = 3600 * 1_000_000_000;
        let wall = |now: Instant| now.as_nanos() + 5 * DAY_NS + STEP_NS.load(Relaxed);
        let runtime = Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
            let clock = Clock::new(Some(wall), true);
            let start = clock.tick();
            let before_ns = clock.time_of_day_ns(start);
            time::sleep(Duration::from_secs(5)).await;
            let now = clock.tick();
            assert_eq!(now.since(start), Duration::from_secs(5));
            assert_eq!(clock.time_of_day_ns(now), before_ns + 5_000_000_000);
            assert!(!clock.take_stepped());
            STEP_NS.store(HOUR_NS, Relaxed);
            time::sleep(Duration::from_secs(1)).await;
            let later = clock.tick();
            assert_eq!(later.since(now), Duration::from_secs(1));
            assert_eq!(clock.time_of_day_ns(later), before_ns + 6_000_000_000 + HOUR_NS);
            assert!(clock.take_stepped() && !clock.take_stepped());
        });
    }
}
