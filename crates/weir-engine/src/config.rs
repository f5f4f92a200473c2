//! The configuration of a runtime: the driver, its options, the limits. Plain data, validated at the edge.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use weir_engine_types::kernel::{AS_ON_KERNEL, FEATURES, KernelFeature, KernelVersion};

/// An I/O model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// io_uring: operations are submitted and completed in batches through shared rings.
    Uring,
    /// `epoll`: the kernel keeps the interest list.
    Epoll,
    /// `poll`: the whole interest list is passed in every call.
    Poll,
    /// `select`: like poll, for descriptors below 1024.
    Select,
    /// One thread and one runtime for each connection; every operation blocks its thread.
    Blocking,
    /// A simulated kernel with virtual time, seeded latency and faults.
    Sim,
}

impl Driver {
    /// Every driver, in the order in which documentation lists them.
    pub const ALL: [Driver; 6] =
        [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Blocking, Driver::Sim];

    /// Name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Uring => "uring",
            Driver::Epoll => "epoll",
            Driver::Poll => "poll",
            Driver::Select => "select",
            Driver::Blocking => "blocking",
            Driver::Sim => "sim",
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A named driver, or the best one that the kernel allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DriverChoice {
    /// The first of uring, epoll and poll that passes its start-up test.
    #[default]
    Auto,
    /// Exactly this one, or an error.
    Named(Driver),
}

impl FromStr for DriverChoice {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        if name == "auto" {
            return Ok(DriverChoice::Auto);
        }
        // The kernel's name for it; the storage engine has this name too.
        let known = if name == "io_uring" { "uring" } else { name };
        let found = Driver::ALL.into_iter().find(|driver| driver.name() == known);
        found.map(DriverChoice::Named).ok_or_else(|| OptionError {
            name: "driver".into(),
            value: name.into(),
            expected: "auto, uring, epoll, poll, select, blocking or sim".into(),
        })
    }
}

/// Why receive buffers are not filled arrival by arrival (`IOU_PBUF_RING_INC`). A completion names the buffer but not
/// the position in it, so the position follows only from the order of all completions of that buffer. The kernel
/// guarantees that order only for the completions of a single request; 6.13.11 to 6.14.8 did not keep it (liburing's
/// issues 1409 and 1423).
const NOT_INCREMENTAL: &str = "auto, multishot, bundle or single: the kernel does not say where in a \
     shared buffer an arrival begins, and one connection could be given the bytes of another \
     (docs/guide/io-models.md)";

/// An option that does not exist or has a value out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {value:?} is not possible here; expected {expected}")]
pub struct OptionError {
    /// The option's name.
    pub name: String,
    /// The value given.
    pub value: String,
    /// The values that are accepted.
    pub expected: String,
}

/// What a panic in a task ends. The message of the panic is printed in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskPanic {
    /// That task: its values are dropped, the panic is counted (`tasks_panicked`), and a task that awaits its handle
    /// panics as well. A panic of the driver, or of a call from another thread, ends the runtime.
    #[default]
    Task,
    /// Its runtime: `block_on` panics. For programs whose tasks share state that a panic may leave half changed, and
    /// for tests, where an assertion in a task must fail the test.
    Runtime,
}

/// Everything a runtime needs to know before it starts.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// I/O model.
    pub driver: DriverChoice,
    /// Receive buffers, all drivers.
    pub buffers: BufferOptions,
    /// How long to look for events without sleeping before a wait sleeps; zero sleeps at once. All drivers.
    pub spin: Duration,
    /// Congestion control for TCP sockets, by the kernel's name for the algorithm; `None` leaves it to the kernel.
    /// All drivers.
    pub congestion_control: Option<Arc<str>>,
    /// io_uring only.
    pub uring: UringOptions,
    /// epoll only.
    pub epoll: EpollOptions,
    /// Upper limits, all drivers.
    pub limits: Limits,
    /// Simulated kernel only.
    pub sim: SimOptions,
    /// Use only what this older kernel offers; the start fails on a kernel that is older than it.
    pub as_on_kernel: Option<KernelVersion>,
    /// Pretend that these kernel features do not exist; io_uring and epoll. File operations are not masked.
    pub masked: KernelMask,
    /// What a panic in a task ends, all drivers.
    pub task_panic: TaskPanic,
}

/// The name of the option, which applies to both ends of a connection.
const CONGESTION_CONTROL: &str = "congestion-control";

/// Longest name of a congestion control algorithm (`TCP_CA_NAME_MAX`, less its terminator).
const CONGESTION_NAME_MAX: usize = 15;

/// Options of the receive buffers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferOptions {
    /// Fixed size of every receive buffer; `None` adapts each connection's size to its arrivals.
    pub bytes: Option<u32>,
    /// Buffers at the start; `None` chooses a number and lets the pool grow to its maximum. A fixed count never
    /// grows.
    pub count: Option<u32>,
}

/// How receives are started on io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveMode {
    /// `Multishot` on kernels whose multishot receives report every end of a connection, `Single` on others.
    #[default]
    Auto,
    /// One submission stays armed and takes a provided buffer for each arrival (6.0 and later). Many kernels from
    /// before the spring of 2026 never report a reset, or the end of a Unix socket, that comes right behind data.
    /// Bytes behind urgent data (`MSG_OOB`) may be received only when more arrive.
    Multishot,
    /// As `Multishot`, with the same missed reports on many kernels; one completion may fill several buffers (6.10
    /// and later): fewer completions where much arrives at once. One arrival may then be as long as a socket's
    /// receive queue, regardless of the input limit.
    Bundle,
    /// One submission per arrival; takes a provided buffer (5.19 and later).
    Single,
}

/// Options of the io_uring driver. The defaults are the fastest correct set for the running kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UringOptions {
    /// How receives are started.
    pub receive: ReceiveMode,
    /// Enter the kernel after each submission instead of once a turn, as naive ports do. This option is an
    /// experiment.
    pub submit_each: bool,
    /// Run completions only when the runtime asks for them (`IORING_SETUP_DEFER_TASKRUN`, 6.1 and later).
    pub defer_taskrun: bool,
    /// Entries of the submission queue; the completion queue has four times as many.
    pub entries: u32,
    /// A sleep lasts at least this long, or until there are as many completions as the runtime has connections: fewer
    /// wake-ups, each for more (6.12 and later). The kernel does not distinguish a wake-up by another thread from a
    /// completion, so such a wake-up may come that much later. Timers stay punctual. Zero: the first completion ends
    /// the sleep.
    pub minimum_wait: Duration,
    /// Sockets are in the ring's file table, so that no operation looks its descriptor up. Opening and closing each
    /// cost one more call. 6.13 and later: on older kernels a socket that was removed from the table stays open until
    /// every earlier operation has ended.
    pub fixed_files: bool,
    /// Chunks of at least this many bytes are sent by zero-copy sends, on sockets that support them (TCP; 6.0 and
    /// later) and whose peer has a large window. Receive buffers are never sent this way: a peer that does not read
    /// would keep them. `None`: every send is copied into the socket.
    pub zero_copy_bytes_min: Option<u32>,
    /// A kernel thread polls for submissions, and sleeps when there have been none for this many milliseconds (5.13
    /// and later): no call is needed to submit, but the thread uses a CPU. The kernel thread may run on the same CPUs
    /// as the runtime's thread, so it needs a spare one among them. Completions then run on the kernel thread,
    /// whatever `defer_taskrun` says. `None`: each submission is a call.
    pub poll_idle_ms: Option<u32>,
}

impl Default for UringOptions {
    fn default() -> Self {
        Self {
            receive: ReceiveMode::Auto,
            submit_each: false,
            defer_taskrun: true,
            entries: 1024,
            minimum_wait: Duration::ZERO,
            fixed_files: false,
            zero_copy_bytes_min: None,
            poll_idle_ms: None,
        }
    }
}

/// Kernel features to leave unused although they exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelMask(u32);

impl KernelMask {
    /// Kernel versions that differ in which of the features that the io_uring driver uses by default they lack,
    /// newest first; below the last one the driver does not run.
    pub const LADDER: [KernelVersion; 8] = [
        KernelVersion::new(6, 12),
        KernelVersion::new(6, 1),
        KernelVersion::new(6, 0),
        KernelVersion::new(5, 19),
        KernelVersion::new(5, 18),
        KernelVersion::new(5, 17),
        KernelVersion::new(5, 15),
        KernelVersion::new(5, 11),
    ];

    /// Hides every feature that came after this version.
    pub fn as_on(version: KernelVersion) -> Self {
        let newer = FEATURES.iter().filter(|row| row.since > version);
        newer.fold(Self::default(), |mask, row| mask.with(row.feature))
    }

    /// Hides this feature too.
    pub fn with(self, feature: KernelFeature) -> Self {
        Self(self.0 | 1 << feature as u32)
    }

    /// Whether the feature is to stay unused.
    pub fn hides(self, feature: KernelFeature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }
}

/// Options of the epoll driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollOptions {
    /// Edge-triggered, registered once for both directions; otherwise level-triggered.
    pub edge: bool,
    /// Read until the kernel returns `EAGAIN` instead of treating a short read as drained. Edge-triggered, a Unix
    /// socket needs it if peers pass descriptors: a receive stops behind the bytes that carry one, and the bytes that
    /// follow are otherwise received only when more arrive.
    pub drain_to_eagain: bool,
    /// Leave accepted sockets blocking: a reply is one call that returns when the kernel has taken all of it, and the
    /// whole runtime waits meanwhile. Some servers do this; the option is an experiment. A peer that does not read
    /// then stops every other one, and no time limit applies to it.
    pub blocking_writes: bool,
}

impl Default for EpollOptions {
    fn default() -> Self {
        Self { edge: true, drain_to_eagain: false, blocking_writes: false }
    }
}

/// Options of the simulated kernel. The same seed gives the same run, bit for bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Seed of latencies, faults and order.
    pub seed: u64,
    /// Smallest one-way delivery time.
    pub latency_min: Duration,
    /// Largest one-way delivery time.
    pub latency_max: Duration,
    /// Chance in 1000 that a send or receive is short.
    pub short_per_mille: u16,
    /// Chance in 1000 that a connection is reset at a send.
    pub reset_per_mille: u16,
    /// Chance in 1000 of a spurious wake-up: a task that begins to wait for a socket is woken although nothing has
    /// happened.
    pub spurious_per_mille: u16,
    /// Chance in 1000 of a transient error: a signal, a shortage of memory or descriptors, a connection that is lost
    /// before it is accepted. With the same chance a wait reports only a part of what is ready.
    pub error_per_mille: u16,
    /// Readiness is reported at each arrival, as by epoll's edge trigger; otherwise for as long as it lasts, as by
    /// poll or select.
    pub edge: bool,
    /// Bytes a simulated socket buffers in each direction.
    pub socket_buffer_bytes: u32,
    /// Sockets the simulated process may have open: beyond that, accepting waits and opening is `EMFILE`.
    pub descriptors_max: u32,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            latency_min: Duration::from_micros(5),
            latency_max: Duration::from_micros(50),
            short_per_mille: 0,
            reset_per_mille: 0,
            spurious_per_mille: 10,
            error_per_mille: 0,
            edge: true,
            socket_buffer_bytes: 64 << 10,
            descriptors_max: 1 << 20,
        }
    }
}

/// Upper limits. Each is enforced and tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sockets of one runtime, listeners included.
    pub sockets_max: usize,
    /// Descriptors of the process that accepting leaves to files and everything else. The reserve is at most half of
    /// the descriptors that are free when the runtime starts, plus two, and at least one fewer than are free.
    pub descriptors_reserved: usize,
    /// Tasks of one runtime.
    pub tasks_max: usize,
    /// Timers of one runtime; the default is eight for each task. Unused ones take no memory.
    pub timers_max: usize,
    /// Receive memory of one runtime for each buffer size.
    pub pool_bytes_max: usize,
    /// A send waits while more than this many bytes are queued on the connection.
    pub output_high_water_bytes: usize,
    /// … until at most this many are left.
    pub output_low_water_bytes: usize,
    /// A connection's receive stops while more than this many bytes wait for the handler.
    pub input_high_water_bytes: usize,
    /// Bytes that one connection may receive, and send, in one turn before other connections are served.
    pub turn_bytes_max: usize,
    /// How long a dropped connection may take to send its queue. A TCP peer sees a reset if bytes are left then, or
    /// when the runtime ends; the peer of a Unix socket sees the end of the stream.
    pub linger: Duration,
    /// Wake-ups and calls from other threads that may wait for one runtime.
    pub remote_queue_max: usize,
    /// Operations on files in flight in one runtime; more wait for their turn.
    pub file_operations_max: usize,
    /// Threads of one runtime for calls on files that may block (epoll, poll and select); none before the first such
    /// call.
    pub file_threads_max: usize,
    /// Threads of one runtime for [`spawn_blocking`](crate::spawn_blocking()); none before its first call.
    pub blocking_threads_max: usize,
    /// Closures that may wait for such a thread; `spawn_blocking` waits for a place when there are more.
    pub blocking_queue_max: usize,
    /// How long such a thread waits for a closure before it ends.
    pub blocking_idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sockets_max: 1 << 17,
            descriptors_reserved: 16,
            tasks_max: 1 << 17,
            timers_max: 1 << 20,
            pool_bytes_max: 64 << 20,
            output_high_water_bytes: 256 << 10,
            output_low_water_bytes: 64 << 10,
            input_high_water_bytes: 256 << 10,
            turn_bytes_max: 1 << 20,
            linger: Duration::from_secs(5),
            remote_queue_max: 4096,
            file_operations_max: 1024,
            file_threads_max: 4,
            blocking_threads_max: 4,
            blocking_queue_max: 256,
            blocking_idle: Duration::from_secs(10),
        }
    }
}

impl Config {
    /// A configuration with this driver and every default.
    pub fn with_driver(driver: Driver) -> Self {
        Self { driver: DriverChoice::Named(driver), ..Self::default() }
    }

    /// As [`Self::with_driver`], for tests: a panic in any task ends the runtime, so that an assertion that fails in a
    /// task fails the test.
    pub fn for_test(driver: Driver) -> Self {
        Self { task_panic: TaskPanic::Runtime, ..Self::with_driver(driver) }
    }

    /// Every option a study can vary: name, accepted values, effect.
    pub const OPTIONS: [(&'static str, &'static str, &'static str); 15] = [
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
        (
            "send-zc-bytes",
            "16384 to 16777216",
            "io_uring: send chunks from this size on without a copy (6.0)",
        ),
        (
            "sqpoll-idle-ms",
            "1 to 10000",
            "io_uring: a kernel thread submits, and sleeps after so long (5.13)",
        ),
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
    pub fn option_applies(name: &str, driver: Driver) -> bool {
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
    pub fn set_option(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        let entry = Self::OPTIONS.iter().find(|(known, _, _)| *known == name);
        let Some((_, expected, _)) = entry else {
            let known: Vec<&str> = Self::OPTIONS.iter().map(|(known, _, _)| *known).collect();
            return Err(OptionError {
                name: "option".into(),
                value: name.into(),
                expected: known.join(", "),
            });
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
            "buffer-bytes" => self.buffers.bytes = Some(number(64, 1 << 20)?),
            "buffer-count" => self.buffers.count = Some(number(1, 4096)?),
            "spin-us" => self.spin = Duration::from_micros(number(0, 1_000_000)?.into()),
            CONGESTION_CONTROL => {
                let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
                let is_name = (1..=CONGESTION_NAME_MAX).contains(&value.len()) && value.chars().all(is_plain);
                self.congestion_control = Some(is_name.then_some(value).ok_or_else(wrong)?.into());
            }
            "receive" => {
                self.uring.receive = match value {
                    "auto" => ReceiveMode::Auto,
                    "multishot" => ReceiveMode::Multishot,
                    "bundle" => ReceiveMode::Bundle,
                    "single" => ReceiveMode::Single,
                    "incremental" => return Err(OptionError { expected: NOT_INCREMENTAL.into(), ..wrong() }),
                    _ => return Err(wrong()),
                };
            }
            "submit" => self.uring.submit_each = choice("operation", "turn")?,
            "defer-taskrun" => self.uring.defer_taskrun = choice("on", "off")?,
            "minimum-wait-us" => {
                self.uring.minimum_wait = Duration::from_micros(number(0, 100_000)?.into());
            }
            "fixed-files" => self.uring.fixed_files = choice("on", "off")?,
            "send-zc-bytes" => self.uring.zero_copy_bytes_min = Some(number(16 << 10, 16 << 20)?),
            "sqpoll-idle-ms" => self.uring.poll_idle_ms = Some(number(1, 10_000)?),
            "trigger" => self.epoll.edge = choice("edge", "level")?,
            "drain" => self.epoll.drain_to_eagain = choice("eagain", "short-read")?,
            "write" => self.epoll.blocking_writes = choice("blocking", "try")?,
            AS_ON_KERNEL => {
                let version = value.parse().ok().filter(|version| *version >= KernelVersion::OLDEST);
                let version = version.ok_or_else(wrong)?;
                (self.as_on_kernel, self.masked) = (Some(version), KernelMask::as_on(version));
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use weir_engine_types::kernel::FeatureRow;

    use super::*;

    #[test]
    fn every_option_that_a_feature_is_asked_for_by_is_one_of_the_table() {
        for row in FEATURES {
            let is_known = |option: &str| Config::OPTIONS.iter().any(|(name, _, _)| *name == option);
            assert!(row.option.is_none_or(is_known), "{}", row.name);
        }
    }

    #[test]
    fn every_listed_option_is_understood_and_every_other_is_refused() {
        let of_uring = ["single", "operation", "off", "50", "on", "16384", "20"];
        let values =
            [&["2048", "8", "20", "reno"][..], &of_uring, &["level", "eagain", "blocking", "5.19"]].concat();
        assert_eq!(values.len(), Config::OPTIONS.len());
        let mut config = Config::default();
        for ((name, _, _), value) in Config::OPTIONS.iter().zip(values) {
            config.set_option(name, value).unwrap();
            let error = config.set_option(name, "purple?").unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("purple?"), "{error}");
        }
        assert_eq!(config.buffers, BufferOptions { bytes: Some(2048), count: Some(8) });
        assert!(!config.epoll.edge && config.uring.submit_each && !config.uring.defer_taskrun);
        assert!(config.epoll.drain_to_eagain && config.epoll.blocking_writes);
        assert!(config.uring.minimum_wait == Duration::from_micros(50) && config.uring.fixed_files);
        assert_eq!((config.uring.zero_copy_bytes_min, config.uring.poll_idle_ms), (Some(16384), Some(20)));
        assert!(config.set_option("bufer-bytes", "1").unwrap_err().to_string().contains("buffer-bytes"));
        assert!(config.set_option("buffer-bytes", "63").is_err());
        assert_eq!(config.congestion_control.as_deref(), Some("reno"));
        assert!(config.set_option("congestion-control", "a-name-of-sixteen").is_err());
        assert!(config.set_option("as-on-kernel", "4.13").is_err());
        assert!(config.masked.hides(KernelFeature::MultishotReceive));
        assert!(!config.masked.hides(KernelFeature::BufferRing));
    }

    #[test]
    fn incremental_receive_buffers_are_refused_with_the_reason() {
        let refused = Config::default().set_option("receive", "incremental");
        let error = refused.expect_err("a completion does not say where its bytes are").to_string();
        assert!(error.contains("bundle") && error.contains("the bytes of another"), "{error}");
    }

    #[test]
    fn the_ladder_has_a_rung_for_every_set_of_features_that_io_uring_can_lack() {
        let oldest = FEATURES.iter().find(|row| row.feature == KernelFeature::WaitArguments);
        let oldest = oldest.expect("it is in the table").since;
        let is_of_ring = |row: &&FeatureRow| row.driver == Driver::Uring.name() && row.option.is_none();
        let of_ring = || FEATURES.iter().filter(is_of_ring);
        let since: std::collections::BTreeSet<KernelVersion> =
            of_ring().map(|row| row.since).filter(|since| *since > oldest).collect();
        let lacking: std::collections::BTreeSet<usize> = KernelMask::LADDER
            .iter()
            .map(|version| of_ring().filter(|row| KernelMask::as_on(*version).hides(row.feature)).count())
            .collect();
        assert!(KernelMask::LADDER.windows(2).all(|two| two[0] > two[1]));
        assert_eq!((lacking.len(), KernelMask::LADDER.last()), (since.len(), Some(&oldest)));
    }

    #[test]
    fn every_listed_option_means_something_to_a_driver() {
        for (name, _, _) in Config::OPTIONS {
            let means_something = |driver: &Driver| Config::option_applies(name, *driver);
            assert!(Driver::ALL.iter().any(means_something), "{name}");
        }
    }

    #[test]
    fn driver_names_round_trip() {
        for driver in Driver::ALL {
            assert_eq!(driver.name().parse(), Ok(DriverChoice::Named(driver)));
        }
        assert_eq!("auto".parse(), Ok(DriverChoice::Auto));
        assert!("kqueue".parse::<DriverChoice>().is_err());
    }
}
