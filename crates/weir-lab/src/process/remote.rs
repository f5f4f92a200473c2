//! Servers on another host: the laboratory starts an agent there, which is the same program, and asks it for what it
//! would do itself if the servers were here.
//!
//! The seam is [`RoundServers`](super::hosted::RoundServers): one command, one answer. On this machine
//! [`HostedRound`](super::hosted::HostedRound) carries a command out. From another host [`link`] brings it to an agent
//! ([`agent`]), which has a `HostedRound` of its own and hands the answer back. So each mechanism is there once, and a
//! study from another host reads clocks, programs and sockets as a study of one machine does: beside the servers. Plan,
//! verdict, store and report stay here, and so does the generator.
//!
//! The way there is a command that ends in a shell on the other host ([`transport`]): the system's `ssh`, so that the
//! user's configuration, keys, jump hosts and known hosts apply, or whatever takes its place (`ip netns exec b`,
//! `docker exec -i c`). Nothing listens there but the servers. Standard input and output are the whole connection:
//!
//! 1. The laboratory starts `TRANSPORT sh` and says a script ([`bootstrap`]). The shell answers with a line that no
//!    login shell prints; what came before it becomes part of an error, if there is one.
//! 2. The shell says what machine it is on, and whether the program is there: in a folder of the cache that is named
//!    after the program's SHA-256. Where it is not, the laboratory sends its bytes. The shell checks them by that hash
//!    each time before it runs them, in its own place.
//! 3. From there on lines of JSON go both ways ([`codec`]): a numbered question, then its answer. One at a time, each
//!    line of bounded length, each answer within a deadline.
//!
//! Clocks of two hosts are never subtracted. CPU is a difference that the agent takes of its own clocks; latency is
//! timed by the generator. The generator says that nothing is in flight before the agent is asked to read a clock, so
//! that the time a question takes is in no figure; it is measured, told, and slices are made long against it.
//!
//! Whatever ends the connection ends the servers. The agent reads its input on a thread of its own: at its end it drops
//! the round, and with it everything below it, and its temporary files. If the agent itself is killed, the kernel kills
//! Weir's own servers with it and supervisors end the foreign ones, as they do for a laboratory; its files go when the
//! next agent begins. A lock lets one agent at a time work for a user on a host.
//!
//! What is lost in a round excludes that round by name. The next one begins a new connection; if there is none, the
//! session ends with what it has stored and can be resumed.

mod agent;
mod bootstrap;
mod codec;
mod host;
mod link;
mod transport;

pub use agent::{Agent, AgentError, Facts};
pub use host::RemoteHost;
pub use transport::{Transport, TransportError};

pub(crate) use codec::RoundStarted;
pub(crate) use host::{Prepared, ServersThere, StudyAsked};
