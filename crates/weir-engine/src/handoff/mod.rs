//! Handing work from one worker to another: bounded queues between the runtimes of one process, and who wakes whom.
//!
//! [`group`] makes one [`Port`] for each worker. A port is moved to its worker's thread and attached to the runtime
//! there; from then on [`Port::push`] hands a message to another worker and [`Port::take`] gives what others have
//! handed to this one. Nothing blocks and nothing is allocated in steady state.
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
//! - Messages of one producer, one consumer and one priority arrive once and in the order pushed, whatever the
//!   strategy.
//! - Responses are taken before requests, so that work that is under way is finished before more begins.
//! - A full queue never blocks. What does not fit waits in the producer's memory, up to [`Options::overflow_max`] for
//!   each destination and priority, and moves on at the end of each turn; above that `push` gives the message back.
//!   [`Port::is_congested`] says that something waits: whoever reads requests from outside stops until [`Port::room`].
//! - So that two workers never wait for each other: a worker whose response is given back takes no more requests until
//!   there is room, but goes on with [`Port::take_response`]. Responses then always move, and with them everything.
//!   Meanwhile it waits for [`Port::room`] and [`Port::ready_response`]: [`Port::ready`] counts the requests that are
//!   left standing. (A request that arrives wakes its runtime all the same, and the runtime finds nothing to do.)
//! - A worker ends with its port or its runtime. From then on what is pushed to it is given back, what waited for it
//!   is dropped, and who waits for room there is told ([`WorkerEnded`]). What is in its queues is dropped with them;
//!   all of it counts in `depth` for ever, because nobody has taken it.
//!
//! # Wakes
//! A worker that sleeps in its driver must be woken (`wake_targets.rs`), and nothing but that should cost a system
//! call:
//! - `mesh`, `mesh-spin` and `msgring` publish once for each turn and destination, after the tasks have run, and then
//!   announce it with the runtime's own flag (`wake_flag.rs`): one read-modify-write, and an eventfd (or a message to
//!   the other's ring) only if the other sleeps. The flag is the one that mailboxes use: both sides change the same
//!   word, so there is no order of a queue and a flag to get wrong, and the consumer pays for it once a turn, not once
//!   a message.
//! - `armed` needs no flag: the word of its queue says that the consumer sleeps (`armed.rs`).
//! - `edge` writes the eventfd whenever a message finds the queue empty, `naive` for each message, both whether the
//!   consumer sleeps or not: they are what the others are measured against.
//!
//! While a port with peers is attached its runtime wakes at least once a second and looks: work that nobody had
//! announced counts in `wakes_recovered`, which must stay zero. A runtime without a port pays one branch a turn.

use std::{fmt, str::FromStr, time::Duration};

use crate::config::OptionError;

mod adaptive_spin;
mod armed;
mod counters;
mod locked;
#[cfg(test)]
mod model;
mod port;
mod queue_ends;
mod ring;
#[cfg(test)]
mod tests;
mod waiting;
mod wake_targets;

pub use counters::HandoffCounters;
pub use port::Port;
pub use waiting::{Ready, Room};

/// How work crosses between workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// It does not: every worker does what arrives at it. Pushing is an error.
    Owner,
    /// A locked queue, one message at a time, and an eventfd written for each.
    Naive,
    /// A locked queue that is swapped out whole, and an eventfd written when it was empty.
    Edge,
    /// A queue whose own word says that the consumer sleeps.
    Armed,
    /// A ring between each two workers, published and announced once a turn.
    #[default]
    Mesh,
    /// As `Mesh`; the consumer looks at memory for a while before it sleeps.
    MeshSpin,
    /// As `Mesh`; a sleeper is woken by a message to its ring. On io_uring only.
    MsgRing,
}

impl Strategy {
    /// Every strategy, in the order in which documentation lists them.
    pub const ALL: [Strategy; 7] = [
        Strategy::Owner,
        Strategy::Naive,
        Strategy::Edge,
        Strategy::Armed,
        Strategy::Mesh,
        Strategy::MeshSpin,
        Strategy::MsgRing,
    ];

    /// Name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Owner => "owner",
            Strategy::Naive => "naive",
            Strategy::Edge => "edge",
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

/// A worker takes nothing any more: its port is gone, or its runtime has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("worker {0} has ended")]
pub struct WorkerEnded(pub usize);

/// What a group of ports is asked to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How work crosses.
    pub strategy: Strategy,
    /// `mesh-spin` only: how long a consumer looks at memory before it sleeps. Zero: [`SPIN_DEFAULT`], and not at all
    /// where workers reach the CPUs of the machine, because the one that spins then has the CPU that the producer
    /// needs. A time that is named is taken at its word. Either way only while messages are expected within it.
    pub spin: Duration,
    /// Places of the queue between two workers, for each priority. Rings round it up to a power of two.
    pub ring_slots: usize,
    /// Messages that may wait with the producer for each destination and priority when the queue is full.
    pub overflow_max: usize,
}

/// Time that `mesh-spin` looks at memory before a sleep, where no other is asked for.
pub const SPIN_DEFAULT: Duration = Duration::from_micros(50);

impl Default for Options {
    fn default() -> Self {
        Self { strategy: Strategy::default(), spin: Duration::ZERO, ring_slots: 256, overflow_max: 4096 }
    }
}

/// Which of the two queues to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Something that came of a request: taken first.
    Response,
    /// Something new.
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

/// One port for each worker, in their order; each is to be moved to its worker's thread.
pub fn group<T: Send + 'static>(workers: usize, options: &Options) -> Vec<Port<T>> {
    port::group(workers, options)
}
