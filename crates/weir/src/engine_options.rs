//! The options of the engine's drivers as people type them, and what each sets in the engine's configuration.

use std::time::Duration;

use weir_engine::{Config, Driver, OptionError, ReceiveMode};
use weir_record::kernel::{AS_ON_KERNEL, KernelVersion};

/// Why receive buffers are not filled arrival by arrival (`IOU_PBUF_RING_INC`). A completion names the buffer but not
/// the position in it, so the position follows only from the order of all completions of that buffer. The kernel
/// guarantees that order only for the completions of a single request; 6.13.11 to 6.14.8 did not keep it (liburing's
/// issues 1409 and 1423).
const NOT_INCREMENTAL: &str = "auto, multishot, bundle or single: the kernel does not say where in a \
     shared buffer an arrival begins, and one connection could be given the bytes of another \
     (docs/guide/io-models.md)";

/// The name of the option, which applies to both ends of a connection.
const CONGESTION_CONTROL: &str = "congestion-control";

/// Longest name of a congestion control algorithm (`TCP_CA_NAME_MAX`, less its terminator).
const CONGESTION_NAME_MAX: usize = 15;

/// Every option a study can vary: name, accepted values, effect.
pub(crate) const OPTIONS: [(&str, &str, &str); 15] = [
    ("buffer-bytes", "64 to 1048576", "fixed receive buffer size (default: adapts)"),
    ("buffer-count", "1 to 4096", "fixed number of receive buffers (default: grows)"),
    ("spin-us", "0 to 1000000", "look for events this long before sleeping"),
    (
        CONGESTION_CONTROL,
        "a name of net.ipv4.tcp_available_congestion_control: cubic",
        "TCP: how sending is slowed down (default: the kernel's)",
    ),
    (
        "receive",
        "auto, multishot, bundle or single",
        "io_uring: how receives are started (auto: tried at start; bundle: 6.10)",
    ),
    ("submit", "turn or operation", "io_uring: enter once a turn or after every operation"),
    ("defer-taskrun", "on or off", "io_uring: run completions only when asked for"),
    (
        "minimum-wait-us",
        "0 to 100000",
        "io_uring: sleep this long unless every connection has something (6.12)",
    ),
    ("fixed-files", "on or off", "io_uring: sockets are in the ring's table of files (6.13)"),
    ("send-zc-bytes", "16384 to 16777216", "io_uring: send chunks from this size on without a copy (6.0)"),
    ("sqpoll-idle-ms", "1 to 10000", "io_uring: a kernel thread submits, and sleeps after so long (5.13)"),
    ("trigger", "edge or level", "epoll: edge- or level-triggered"),
    ("drain", "short-read or eagain", "epoll: when a socket counts as drained"),
    ("write", "try or blocking", "epoll: try a write and wait for room, or block the worker in one call"),
    (
        AS_ON_KERNEL,
        "an older kernel's version, from 4.14 on: 5.19",
        "io_uring and epoll: leave unused what later kernels brought",
    ),
];

/// Whether an option has an effect on a driver; setting one that does not would silently do nothing.
pub(crate) fn applies(name: &str, driver: Driver) -> bool {
    match name {
        "buffer-bytes" | "buffer-count" | CONGESTION_CONTROL => driver != Driver::Sim,
        "spin-us" => !matches!(driver, Driver::Blocking | Driver::Sim),
        "receive" | "submit" | "defer-taskrun" | "minimum-wait-us" | "fixed-files" | "send-zc-bytes"
        | "sqpoll-idle-ms" => driver == Driver::Uring,
        "trigger" | "drain" | "write" => driver == Driver::Epoll,
        AS_ON_KERNEL => matches!(driver, Driver::Uring | Driver::Epoll),
        _ => false,
    }
}

/// Sets one option from its text form, as given on the command line or in a study file.
pub(crate) fn set(config: &mut Config, name: &str, value: &str) -> Result<(), OptionError> {
    let entry = OPTIONS.iter().find(|(known, _, _)| *known == name);
    let Some((_, expected, _)) = entry else {
        let known: Vec<&str> = OPTIONS.iter().map(|(known, _, _)| *known).collect();
        return Err(OptionError { name: "option".into(), value: name.into(), expected: known.join(", ") });
    };
    let wrong = || OptionError { name: name.into(), value: value.into(), expected: (*expected).into() };
    let number = |low: u32, high: u32| {
        value.parse::<u32>().ok().filter(|number| (low..=high).contains(number)).ok_or_else(wrong)
    };
    let choice = |yes: &str, no: &str| match value {
        _ if value == yes => Ok(true),
        _ if value == no => Ok(false),
        _ => Err(wrong()),
    };
    match name {
        "buffer-bytes" => config.buffers.bytes = Some(number(64, 1 << 20)?),
        "buffer-count" => config.buffers.count = Some(number(1, 4096)?),
        "spin-us" => config.spin = Duration::from_micros(number(0, 1_000_000)?.into()),
        CONGESTION_CONTROL => {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            let is_name = (1..=CONGESTION_NAME_MAX).contains(&value.len()) && value.chars().all(is_plain);
            config.congestion_control = Some(is_name.then_some(value).ok_or_else(wrong)?.into());
        }
        "receive" => {
            config.uring.receive = match value {
                "auto" => ReceiveMode::Auto,
                "multishot" => ReceiveMode::Multishot,
                "bundle" => ReceiveMode::Bundle,
                "single" => ReceiveMode::Single,
                "incremental" => return Err(OptionError { expected: NOT_INCREMENTAL.into(), ..wrong() }),
                _ => return Err(wrong()),
            };
        }
        "submit" => config.uring.submit_each = choice("operation", "turn")?,
        "defer-taskrun" => config.uring.defer_taskrun = choice("on", "off")?,
        "minimum-wait-us" => {
            config.uring.minimum_wait = Duration::from_micros(number(0, 100_000)?.into());
        }
        "fixed-files" => config.uring.fixed_files = choice("on", "off")?,
        "send-zc-bytes" => config.uring.zero_copy_bytes_min = Some(number(16 << 10, 16 << 20)?),
        "sqpoll-idle-ms" => config.uring.poll_idle_ms = Some(number(1, 10_000)?),
        "trigger" => config.epoll.edge = choice("edge", "level")?,
        "drain" => config.epoll.drain_to_eagain = choice("eagain", "short-read")?,
        "write" => config.epoll.blocking_writes = choice("blocking", "try")?,
        AS_ON_KERNEL => {
            let version = value.parse().ok().filter(|version| *version >= KernelVersion::OLDEST);
            let version = version.ok_or_else(wrong)?;
            *config = std::mem::take(config).like_kernel(version);
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_engine::BufferOptions;
    use weir_record::kernel::{FEATURES, KernelFeature};

    use super::*;

    #[test]
    fn every_option_that_a_feature_is_asked_for_by_is_one_of_the_table() {
        for row in FEATURES {
            let is_known = |option: &str| OPTIONS.iter().any(|(name, _, _)| *name == option);
            assert!(row.option.is_none_or(is_known), "{}", row.name);
        }
    }

    #[test]
    fn every_listed_option_is_understood_and_every_other_is_refused() {
        let of_uring = ["single", "operation", "off", "50", "on", "16384", "20"];
        let values =
            [&["2048", "8", "20", "reno"][..], &of_uring, &["level", "eagain", "blocking", "5.19"]].concat();
        assert_eq!(values.len(), OPTIONS.len());
        let mut config = Config::default();
        for ((name, _, _), value) in OPTIONS.iter().zip(values) {
            set(&mut config, name, value).unwrap();
            let error = set(&mut config, name, "purple?").unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("purple?"), "{error}");
        }
        assert_eq!(config.buffers, BufferOptions { bytes: Some(2048), count: Some(8) });
        assert!(!config.epoll.edge && config.uring.submit_each && !config.uring.defer_taskrun);
        assert!(config.epoll.drain_to_eagain && config.epoll.blocking_writes);
        assert!(config.uring.minimum_wait == Duration::from_micros(50) && config.uring.fixed_files);
        assert_eq!((config.uring.zero_copy_bytes_min, config.uring.poll_idle_ms), (Some(16384), Some(20)));
        assert_eq!(config.congestion_control.as_deref(), Some("reno"));
        assert!(config.masked.hides(KernelFeature::MultishotReceive));
        assert!(!config.masked.hides(KernelFeature::BufferRing));
        let mut refused = |name, value| set(&mut config, name, value).unwrap_err().to_string();
        assert!(refused("bufer-bytes", "1").contains("buffer-bytes"));
        refused("buffer-bytes", "63");
        refused("congestion-control", "a-name-of-sixteen");
        refused("as-on-kernel", "4.13");
    }

    #[test]
    fn incremental_receive_buffers_are_refused_with_the_reason() {
        let refused = set(&mut Config::default(), "receive", "incremental");
        let error = refused.expect_err("a completion does not say where its bytes are").to_string();
        assert!(error.contains("bundle") && error.contains("the bytes of another"), "{error}");
    }

    #[test]
    fn every_listed_option_means_something_to_a_driver() {
        for (name, _, _) in OPTIONS {
            assert!(Driver::ALL.iter().any(|driver| applies(name, *driver)), "{name}");
        }
    }
}
