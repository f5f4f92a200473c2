//! The specification of a run. Plain data without defaults.

use std::time::Duration;

use weir_engine::{Config, net::Address};
use weir_evidence::edge::Beside;

use crate::{
    error::{LoadError, invalid, within},
    recorder::Sections,
};

mod protocol;

pub use protocol::Protocol;
pub(crate) use protocol::{Facts, ProtocolSpec};

/// Most connections, idle ones included: the sockets of one runtime.
pub const CONNECTIONS_MAX: u32 = 100_000;
/// Most threads.
pub const WORKERS_MAX: u32 = 256;
/// Most messages in flight on one connection.
pub const DEPTH_MAX: u32 = 4096;
/// Largest message.
pub const MESSAGE_BYTES_MAX: u32 = 16 << 20;
/// Most bytes in flight over all connections.
pub const IN_FLIGHT_BYTES_MAX: u64 = 4 << 30;
/// Longest window, warm-up, time limit, ramp and think time.
pub const DURATION_MAX: Duration = Duration::from_secs(86_400);
/// Highest rate.
pub const RATE_PER_SECOND_MAX: f64 = 1e8;

/// How messages are started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// A message starts when an earlier one of its connection has returned.
    Closed {
        /// Pause between the return of a message and the start of the next.
        think: Duration,
    },
    /// Messages start at intended times, independent of the server.
    Open {
        /// Messages a second over all connections.
        rate_per_second: f64,
        /// Exponential gaps; otherwise equal ones.
        poisson: bool,
        /// How long before an intended start a worker stops sleeping and spins on the clock, while its CPU is free.
        /// Zero always sleeps.
        spin: Duration,
    },
}

/// A run, complete.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// Address of the server: `IPV4:PORT`, `[IPV6]:PORT`, `unix:/path` or `@name`. Names are resolved before.
    pub target: String,
    /// Connections that carry messages.
    pub connections: u32,
    /// Further connections that are opened and stay silent.
    pub idle_connections: u32,
    /// Messages in flight per connection; the maximum in an open loop.
    pub depth: u32,
    /// How messages are started.
    pub arrivals: Arrivals,
    /// Threads, each with a runtime and its part of the connections.
    pub workers: u32,
    /// CPUs to pin the threads to, one each in turn; empty for no pinning.
    pub pin: Vec<usize>,
    /// Seed of payloads and arrivals.
    pub seed: u64,
    /// Length of the window; with `messages`, its maximum.
    pub duration: Duration,
    /// Start exactly this many messages and end when they are answered, without a warm-up.
    pub messages: Option<u64>,
    /// Longest warm-up; zero for none.
    pub warmup_max: Duration,
    /// Time over which the connections are opened one after the other; zero opens them all before the start.
    pub ramp_up: Duration,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest wait for a response.
    pub response_timeout: Duration,
    /// Driver and options of the generator's own runtimes.
    pub engine: Config,
    /// Process whose CPU, context switches and memory are read at both bounds of the window, including its
    /// descendants.
    pub observe_pid: Option<u32>,
    /// Processes that belong to the target's side and are read as well, at most [`weir_evidence::edge::BESIDE_MAX`].
    /// Their CPU does not count as foreign.
    pub observe_beside: Vec<Beside>,
    /// Abstract Unix socket (`@name`) that answers a line with the target's engine counters.
    pub observe_stats: Option<String>,
    /// What is sent.
    pub protocol: Protocol,
}

impl LoadSpec {
    /// Checks every field and returns the address of the target.
    pub fn validate(&self) -> Result<Address, LoadError> {
        let target = self.target.parse().map_err(|error: weir_engine::net::AddressError| {
            LoadError::Invalid { field: "target", reason: error.to_string() }
        })?;
        within("connections", self.connections, 1, CONNECTIONS_MAX)?;
        within("idle-connections", self.idle_connections, 0, CONNECTIONS_MAX - self.connections)?;
        within("depth", self.depth, 1, DEPTH_MAX)?;
        within("workers", self.workers, 1, WORKERS_MAX.min(self.connections))?;
        self.protocol.0.validate(self, &target)?;
        let (request_bytes, field) = self.protocol.0.request_bytes_max();
        let in_flight_bytes = u64::from(self.connections) * u64::from(self.depth) * request_bytes as u64;
        if in_flight_bytes > IN_FLIGHT_BYTES_MAX {
            let reason = format!(
                "connections times depth times message size is {in_flight_bytes} bytes in flight; \
                 the most is {IN_FLIGHT_BYTES_MAX}"
            );
            return invalid(field, reason);
        }
        self.validate_times()?;
        self.validate_arrivals()?;
        Ok(target)
    }

    fn validate_times(&self) -> Result<(), LoadError> {
        let positive = Duration::from_millis(1);
        duration_within("duration", self.duration, positive)?;
        duration_within("warmup-max", self.warmup_max, Duration::ZERO)?;
        duration_within("ramp-up", self.ramp_up, Duration::ZERO)?;
        duration_within("connect-timeout", self.connect_timeout, positive)?;
        duration_within("response-timeout", self.response_timeout, positive)?;
        match self.messages {
            Some(0) => invalid("messages", "at least one message is needed"),
            Some(_) if !self.warmup_max.is_zero() => invalid(
                "warmup-max",
                "a counted run has no warm-up: all its messages are measured; set it to 0",
            ),
            Some(_) | None => Ok(()),
        }
    }

    fn validate_arrivals(&self) -> Result<(), LoadError> {
        match self.arrivals {
            Arrivals::Closed { think } => duration_within("think", think, Duration::ZERO),
            Arrivals::Open { rate_per_second, spin, .. } => {
                if !(rate_per_second > 0.0 && rate_per_second <= RATE_PER_SECOND_MAX) {
                    return invalid("rate", "must be above 0 and at most 100000000 messages a second");
                }
                duration_within("spin", spin, Duration::ZERO)
            }
        }
    }

    /// Connections of all kinds.
    pub(crate) fn sockets(&self) -> u32 {
        self.connections + self.idle_connections
    }

    /// Bytes of the largest message that is sent.
    pub(crate) fn request_bytes_max(&self) -> usize {
        self.protocol.0.request_bytes_max().0
    }

    /// What the run notes besides service times.
    pub(crate) fn sections(&self) -> Sections {
        Sections { paced: matches!(self.arrivals, Arrivals::Open { .. }), ..self.protocol.0.facts().sections }
    }
}

fn duration_within(field: &'static str, value: Duration, least: Duration) -> Result<(), LoadError> {
    if (least..=DURATION_MAX).contains(&value) {
        return Ok(());
    }
    let reason = format!("{value:?} is not possible; use {least:?} to {DURATION_MAX:?}");
    invalid(field, reason)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::echo::EchoSpec;

    pub(crate) fn spec() -> LoadSpec {
        LoadSpec {
            target: "127.0.0.1:7007".into(),
            connections: 10,
            idle_connections: 0,
            depth: 1,
            arrivals: Arrivals::Closed { think: Duration::ZERO },
            workers: 1,
            pin: Vec::new(),
            seed: 1,
            duration: Duration::from_secs(1),
            messages: None,
            warmup_max: Duration::ZERO,
            ramp_up: Duration::ZERO,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            engine: Config::default(),
            observe_pid: None,
            observe_beside: Vec::new(),
            observe_stats: None,
            protocol: EchoSpec { message_bytes: 64, connection_per_message: false }.into(),
        }
    }

    fn refused(change: impl FnOnce(&mut LoadSpec)) -> String {
        let mut changed = spec();
        change(&mut changed);
        changed.validate().expect_err("an impossible value").to_string()
    }

    #[test]
    fn a_sensible_specification_is_accepted() {
        assert_eq!(spec().validate().expect("valid").to_string(), "127.0.0.1:7007");
    }

    #[test]
    fn each_impossible_value_is_refused_by_the_name_of_its_field() {
        let open = |rate_per_second| Arrivals::Open { rate_per_second, poisson: true, spin: Duration::ZERO };
        assert!(refused(|spec| spec.target = "nowhere".into()).starts_with("target: "));
        assert_eq!(refused(|spec| spec.connections = 0), "connections: 0 is not possible; use 1 to 100000");
        assert!(refused(|spec| spec.idle_connections = CONNECTIONS_MAX).starts_with("idle-connections: "));
        assert!(refused(|spec| spec.depth = 4097).starts_with("depth: "));
        let empty = EchoSpec { message_bytes: 0, connection_per_message: false };
        assert!(refused(|spec| spec.protocol = empty.into()).starts_with("message-bytes: "));
        assert!(
            refused(|spec| spec.workers = 11).starts_with("workers: 11 is not possible; each worker needs")
        );
        assert!(refused(|spec| spec.duration = Duration::ZERO).starts_with("duration: "));
        assert!(refused(|spec| spec.connect_timeout = Duration::ZERO).starts_with("connect-timeout: "));
        assert!(refused(|spec| spec.messages = Some(0)).starts_with("messages: "));
        assert!(refused(|spec| spec.arrivals = open(0.0)).starts_with("rate: "));
        assert!(refused(|spec| spec.arrivals = open(f64::NAN)).starts_with("rate: "));
        assert!(refused(|spec| spec.arrivals = open(f64::INFINITY)).starts_with("rate: "));
        let think = Duration::from_secs(86_401);
        assert!(refused(|spec| spec.arrivals = Arrivals::Closed { think }).starts_with("think: "));
    }

    #[test]
    fn limits_that_belong_together_are_checked_together() {
        let counted = |spec: &mut LoadSpec| {
            spec.messages = Some(10);
            spec.warmup_max = Duration::from_secs(1);
        };
        assert!(refused(counted).starts_with("warmup-max: a counted run has no warm-up"));
        let large = |spec: &mut LoadSpec| {
            (spec.protocol, spec.depth) =
                (EchoSpec { message_bytes: MESSAGE_BYTES_MAX, connection_per_message: false }.into(), 100);
        };
        assert!(refused(large).contains("bytes in flight"));
    }
}
