//! The configuration of a runtime: the driver, its options, the limits. Plain data.
//!
//! What only the laboratory sets is behind the feature `lab`: options that slow a server down in a known way, and those
//! that leave features of the kernel unused.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use weir_engine_types::kernel::KernelFeature;
#[cfg(any(test, feature = "lab"))]
use weir_engine_types::kernel::{FEATURES, KernelVersion};

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
    /// The kernel that this one stands for; the start fails on a kernel that is older than it.
    #[cfg(any(test, feature = "lab"))]
    pub as_on_kernel: Option<KernelVersion>,
    /// Pretend that these kernel features do not exist; io_uring and epoll. File operations are not masked.
    #[cfg(any(test, feature = "lab"))]
    pub masked: KernelMask,
    /// What a panic in a task ends, all drivers.
    pub task_panic: TaskPanic,
}

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
    #[cfg(any(test, feature = "lab"))]
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
            #[cfg(any(test, feature = "lab"))]
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

#[cfg(any(test, feature = "lab"))]
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
}

impl KernelMask {
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
    #[cfg(any(test, feature = "lab"))]
    pub blocking_writes: bool,
}

impl Default for EpollOptions {
    fn default() -> Self {
        Self {
            edge: true,
            drain_to_eagain: false,
            #[cfg(any(test, feature = "lab"))]
            blocking_writes: false,
        }
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

    /// Uses only what this older kernel offers; the start fails on a kernel that is older than it.
    #[cfg(any(test, feature = "lab"))]
    pub fn like_kernel(self, version: KernelVersion) -> Self {
        Self { as_on_kernel: Some(version), masked: KernelMask::as_on(version), ..self }
    }

    /// The kernel features that stay unused although they exist.
    #[cfg(any(test, feature = "lab"))]
    pub(crate) fn masked(&self) -> KernelMask {
        self.masked
    }

    /// The kernel features that stay unused although they exist: none.
    #[cfg(not(any(test, feature = "lab")))]
    pub(crate) fn masked(&self) -> KernelMask {
        KernelMask::default()
    }
}

#[cfg(test)]
mod tests {
    use weir_engine_types::kernel::FeatureRow;

    use super::*;

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
    fn driver_names_round_trip() {
        for driver in Driver::ALL {
            assert_eq!(driver.name().parse(), Ok(DriverChoice::Named(driver)));
        }
        assert_eq!("auto".parse(), Ok(DriverChoice::Auto));
        assert!("kqueue".parse::<DriverChoice>().is_err());
    }
}
