//! Both sides of Little's law. The mean number in flight is an integral over time, computed without any latency;
//! throughput times mean service time comes from the histogram. If the two disagree, messages were lost, counted
//! twice or timed wrongly, and no other number of the run can be trusted.
//!
//! Pure: time is an argument.

use weir_record::load::LittlesLaw;

/// Number in flight, and its integral over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    now: u64,
    since_ns: u64,
    area: u128,
}

impl InFlight {
    /// Messages in flight now.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Counts messages that start at `at_ns`.
    #[inline]
    pub fn started(&mut self, at_ns: u64, messages: u64) {
        self.advance(at_ns);
        self.now += messages;
    }

    /// Counts messages that end at `at_ns`, however they ended.
    #[inline]
    pub fn ended(&mut self, at_ns: u64, messages: u64) {
        self.advance(at_ns);
        self.now = self.now.saturating_sub(messages);
    }

    /// Resets the integral and starts a new one at `at_ns`.
    pub fn restart(&mut self, at_ns: u64) {
        self.advance(at_ns);
        self.area = 0;
    }

    /// The integral from the last restart to `at_ns`, in message-nanoseconds.
    pub fn area_until(&mut self, at_ns: u64) -> u128 {
        self.advance(at_ns);
        self.area
    }

    #[inline]
    fn advance(&mut self, at_ns: u64) {
        if at_ns > self.since_ns {
            self.area += u128::from(self.now) * u128::from(at_ns - self.since_ns);
            self.since_ns = at_ns;
        }
    }
}

/// Both sides of the law over a window in which `messages` were completed with this mean service time.
pub fn littles_law(area: u128, window_ns: u64, messages: u64, service_ns_mean: f64) -> LittlesLaw {
    if window_ns == 0 {
        return LittlesLaw::default();
    }
    let window_ns = window_ns as f64;
    LittlesLaw {
        in_flight_mean: area as f64 / window_ns,
        throughput_times_latency: messages as f64 / window_ns * service_ns_mean,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_integral_is_clipped_to_the_window() {
        let mut in_flight = InFlight::default();
        in_flight.started(100, 3);
        in_flight.restart(200);
        in_flight.ended(300, 1);
        assert_eq!(in_flight.area_until(400), 3 * 100 + 2 * 100);
        assert_eq!(in_flight.now(), 2);
    }

    #[test]
    fn an_empty_window_is_zero_on_both_sides() {
        assert_eq!(littles_law(5, 0, 7, 3.0), LittlesLaw::default());
    }

    proptest! {
        #[test]
        fn both_sides_agree_when_every_message_lies_inside_the_window(
            spans in prop::collection::vec((0_u64..1000, 1_u64..500), 1..60),
        ) {
            let mut events: Vec<(u64, bool)> = spans
                .iter()
                .flat_map(|(start, length)| [(*start, true), (start + length, false)])
                .collect();
            events.sort_unstable();
            let mut in_flight = InFlight::default();
            for (at, starts) in events {
                if starts { in_flight.started(at, 1) } else { in_flight.ended(at, 1) }
            }
            let mean = spans.iter().map(|(_, length)| *length as f64).sum::<f64>() / spans.len() as f64;
            let law = littles_law(in_flight.area_until(2000), 2000, spans.len() as u64, mean);
            prop_assert!((law.in_flight_mean - law.throughput_times_latency).abs() < 1e-9);
            prop_assert_eq!(in_flight.now(), 0);
        }
    }
}
