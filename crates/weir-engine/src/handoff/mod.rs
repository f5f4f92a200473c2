//! Handing work from one worker to another: bounded queues between the runtimes of one process, and the wake-ups
//! between them.
//!
//! [`group`] makes one [`Port`] for each worker. A port is moved to its worker's thread and attached to the runtime
//! there; from then on [`Port::push`] hands a message to another worker and [`Port::take`] returns messages from
//! others. Nothing blocks and nothing is allocated in steady state.
//!
//! ```no_run
//! use weir_engine::{Config, Runtime, handoff::{self, Priority, Options}};
//!
//! let mut ports = handoff::group::<u64>(2, &Options::default());
//! let (other, own) = (ports.pop().expect("two"), ports.pop().expect("two"));
//! std::thread::spawn(move || {
//!     Runtime::new(&Config::default()).expect("a driver").block_on(async {
//!         other.attach().expect("inside a runtime");
//!         loop {
//!             other.ready().await;
//!             while let Some((from, message)) = other.take() {
//!                 println!("worker {from} says {message}");
//!             }
//!         }
//!     })
//! });
//! Runtime::new(&Config::default()).expect("a driver").block_on(async {
//!     own.attach().expect("inside a runtime");
//!     own.push(1, Priority::Request, 7).expect("there is room");
//! });
//! ```
//!
//! # Rules
//! - Messages of one producer, one consumer and one priority arrive once and in the order pushed, with every
//!   strategy.
//! - Responses are taken before requests, so that work in progress finishes before more begins.
//! - A full queue never blocks. Messages that do not fit wait in the producer's memory, up to
//!   [`Options::overflow_max`] for each destination and priority, and move on at the end of each turn; above that
//!   `push` returns the message. While messages wait, [`Port::is_congested`] is true: a worker that reads requests
//!   from outside then stops until [`Port::room`].
//! - Two workers must never wait for each other. So a worker whose response was returned takes no more requests until
//!   there is room, but continues with [`Port::take_response`]. Then responses always move, and so does everything
//!   else. Meanwhile it waits for [`Port::room`] and [`Port::ready_response`]: [`Port::ready`] would also report the
//!   requests that remain in the queue. (A request that arrives still wakes its runtime, which then finds nothing to
//!   do.)
//! - A worker ends with its port or its runtime. From then on messages pushed to it are returned, messages that
//!   waited for it are dropped, and tasks that wait for room there get an error ([`WorkerEnded`]). Messages in its
//!   queues are dropped with them. All of these stay in `depth` forever, because they were never taken.
//!
//! # Wakes
//! A worker that sleeps in its driver must be woken (`wake_targets.rs`), and only that should cost a system call:
//! - `mesh`, `mesh-spin` and `msgring` publish once for each turn and destination, after the tasks have run, and then
//!   announce it with the runtime's own flag (`wake_flag.rs`): one read-modify-write, and an eventfd (or a message to
//!   the other's ring) only if the other sleeps. It is the same flag as for mailboxes: both sides change the same
//!   word, so there are not two words (a queue and a flag) to order. The consumer pays for it once a turn, not once a
//!   message.
//! - `armed` needs no flag: the word of its queue shows that the consumer sleeps (`armed.rs`).
//! - `edge` writes the eventfd whenever a message finds the queue empty, `naive` for each message. Both do so whether
//!   the consumer sleeps or not: they are the baseline for the others.
//!
//! `armed`, `edge` and `naive` are there to be compared, and need the feature `lab`.
//!
//! While a port with peers is attached its runtime wakes at least once a second and checks: work that was not
//! announced counts in `wakes_recovered`, which must stay zero. A runtime without a port pays one branch a turn.

use std::{fmt, str::FromStr, time::Duration};

use crate::config::OptionError;

mod adaptive_spin;
#[cfg(any(test, feature = "lab"))]
mod armed;
mod counters;
#[cfg(any(test, feature = "lab"))]
mod locked;
#[cfg(test)]
mod model;
mod port;
mod queue_ends;
mod ring;
#[cfg(any(test, feature = "lab"))]
mod study_ends;
#[cfg(test)]
mod tests;
mod waiting;
mod wake_targets;

pub use counters::HandoffCounters;
pub use port::Port;
pub use waiting::{Ready, Room};

/// How work moves between workers. Those that are only there to be compared are behind the feature `lab`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// It does not move: every worker does the work that arrives at it. Pushing is an error.
    Owner,
    /// A locked queue, one message at a time, and an eventfd written for each.
    #[cfg(any(test, feature = "lab"))]
    Naive,
    /// A queue whose own word shows that the consumer sleeps.
    #[cfg(any(test, feature = "lab"))]
    Edge,
    /// A queue whose own word says that the consumer sleeps.
    #[cfg(any(test, feature = "lab"))]
    Armed,
    /// A ring between each pair of workers, published and announced once a turn.
    #[default]
    Mesh,
    /// As `Mesh`; the consumer polls memory for a while before it sleeps.
    MeshSpin,
    /// As `Mesh`; a sleeper is woken by a message to its ring. On io_uring only.
    MsgRing,
}

impl Strategy {
    /// Every strategy, in the order in which documentation lists them.
    pub const ALL: [Strategy; if cfg!(any(test, feature = "lab")) { 7 } else { 4 }] = [
        Strategy::Owner,
        #[cfg(any(test, feature = "lab"))]
        Strategy::Naive,
        #[cfg(any(test, feature = "lab"))]
        Strategy::Edge,
        #[cfg(any(test, feature = "lab"))]
        Strategy::Armed,
        Strategy::Mesh,
        Strategy::MeshSpin,
        Strategy::MsgRing,
    ];

    /// Name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Owner => "owner",
            #[cfg(any(test, feature = "lab"))]
            Strategy::Naive => "naive",
            #[cfg(any(test, feature = "lab"))]
            Strategy::Edge => "edge",
            #[cfg(any(test, feature = "lab"))]
            Strategy::Armed => "armed",
            Strategy::Mesh => "mesh",
            Strategy::MeshSpin => "mesh-spin",
            Strategy::MsgRing => "msgring",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| OptionError {
            name: "handoff".into(),
            value: name.into(),
            expected: Strategy::ALL.map(Strategy::name).join(", "),
        })
    }
}

/// A worker no longer takes messages: its port is gone, or its runtime has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("worker {0} has ended")]
pub struct WorkerEnded(pub usize);

/// The configuration of a group of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How work moves.
    pub strategy: Strategy,
    /// `mesh-spin` only: how long a consumer polls memory before it sleeps. Zero: [`SPIN_DEFAULT`], and no polling if
    /// the workers use every CPU of the machine, because a spinning worker then occupies the CPU that the producer
    /// needs. An explicit time always applies. In both cases it polls only while messages are expected within that
    /// time.
    pub spin: Duration,
    /// Places in the queue between two workers, for each priority. Rings round the number up to a power of two.
    pub ring_slots: usize,
    /// Messages that may wait with the producer for each destination and priority when the queue is full.
    pub overflow_max: usize,
}

/// The default time that `mesh-spin` polls memory before a sleep.
pub const SPIN_DEFAULT: Duration = Duration::from_micros(50);

impl Default for Options {
    fn default() -> Self {
        Self { strategy: Strategy::default(), spin: Duration::ZERO, ring_slots: 256, overflow_max: 4096 }
    }
}

/// The two queues to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Priority {
    /// The result of a request: taken first.
    Response,
    /// New work.
    Request,
}

impl Priority {
    /// Both, in the order in which they are taken.
    pub const BOTH: [Priority; 2] = [Priority::Response, Priority::Request];

    fn index(self) -> usize {
        match self {
            Priority::Response => 0,
            Priority::Request => 1,
        }
    }
}

/// One port for each worker, in their order; move each to its worker's thread.
pub fn group<T: Send + 'static>(workers: usize, options: &Options) -> Vec<Port<T>> {
    port::group(workers, options)
}
