//! Servers on another host: the laboratory starts an agent there, which is the same program, and asks it to do what
//! the laboratory would do itself with local servers.
//!
//! The interface is [`RoundServers`](super::hosted::RoundServers): one command, one answer. On this machine
//! [`HostedRound`](super::hosted::HostedRound) carries a command out. For another host [`link`] sends it to an agent
//! ([`agent`]), which has its own `HostedRound` and returns the answer. So each mechanism exists once, and a study
//! with remote servers reads clocks, programs and sockets beside the servers, as a study of one machine does. Plan,
//! verdict, store, report and generator stay here.
//!
//! The transport is a command that ends in a shell on the other host ([`transport`]): the system's `ssh`, so that the
//! user's configuration, keys, jump hosts and known hosts apply, or a replacement (`ip netns exec b`,
//! `docker exec -i c`). Only the servers listen there. Standard input and output are the whole connection:
//!
//! 1. The laboratory starts `TRANSPORT sh` and sends a script ([`bootstrap`]). The shell answers with a line that no
//!    login shell prints. The output before that line becomes part of the error, if there is one.
//! 2. The shell reports what machine it is on, and whether the program is there: in a cache folder that is named after
//!    the program's SHA-256. If it is not, the laboratory sends its bytes. The shell checks the program by that hash
//!    each time before it replaces itself with it (`exec`).
//! 3. From then on lines of JSON go both ways ([`codec`]): a numbered question, then its answer, one at a time. Each
//!    line has a bounded length, and each answer a deadline, which an interruption shortens ([`wait`]). The laboratory
//!    counts on an answer only if it fits its question ([`fit`]), and text of the other side is escaped ([`escape`]).
//!
//! Clocks of two hosts are never subtracted. CPU time is a difference of two readings of the agent's clocks; the
//! generator measures latency. The agent reads a clock only after the generator has reported that nothing is in flight,
//! so no figure contains the round trip of a question. The round trip is measured and reported, and slices are made
//! long compared with it.
//!
//! The end of the connection, for any cause, ends the servers. The agent reads its input on a separate thread. At the
//! end of its input it drops the round with all its processes, and its temporary files. If the agent itself is killed,
//! the kernel kills Weir's own servers with it and supervisors end the foreign ones, as they do for a laboratory; its
//! files are removed when the next agent begins. A lock lets one agent at a time work for a user on a host.
//!
//! Several hosts can load one target ([`load_run`]): each agent starts a generator as its child, hands orders to it and
//! its answers on, and the coordinator here starts them together and merges what they measured ([`generators`]).
//!
//! A host can also run a whole study ([`whole`]), for a study of many machines: the agent starts it as its child, hands
//! on its lines, and returns the bytes of its store.
//!
//! If a host is lost in a round, that round is excluded with the reason. The next round makes a new connection; if
//! that fails, the session ends with the blocks it has stored and can be resumed. Each round begins with a question, so
//! that a connection that was lost since the last one costs no round. An agent that is asked nothing for long ends.

mod agent;
mod bootstrap;
mod codec;
mod escape;
mod fit;
mod generators;
mod host;
mod link;
mod load_run;
mod transport;
mod wait;
mod whole;

pub use agent::{Agent, AgentError, Facts};
pub use generators::GeneratorError;
pub use host::RemoteHost;
pub use link::OwnProgram;
pub use load_run::{SpreadLoad, SpreadObserver, SpreadProgress, spread_load};
pub use transport::{Transport, TransportError};
pub use whole::{StudyThere, WholeEnd, WholeStudy};

pub(crate) use codec::RoundStarted;
pub(crate) use host::{Prepared, ServersThere, StudyAsked};
