//! How to write a program on this engine: its model, its limits, what a dropped future means, backpressure, tests on a
//! simulated kernel, and which driver to choose. There is nothing in this module but text.
//!
//! # The model
//!
//! A [`Runtime`](crate::Runtime) belongs to the thread that made it. It has tasks, timers and one driver, which is one
//! way of waiting for the kernel. Tasks never move to another thread, so they share data in an `Rc<RefCell<…>>` without
//! a lock. A program that wants two cores starts two runtimes, or a [`Server`](crate::serve::Server) with two workers.
//!
//! One *turn* of a runtime runs every task that is ready, hands what they have sent to the kernel, and then waits for
//! events. So a send is queued at once and leaves at the end of the turn, with everything else that was queued in it:
//! many small sends on a connection are one system call, and on io_uring the sends of all connections are.
//!
//! ```
//! use weir_engine::{Config, Runtime, net::{Listener, Stream}, spawn};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = Runtime::new(&Config::default())?;
//! let answer = runtime.block_on(async {
//!     let listener = Listener::bind(&"127.0.0.1:0".parse()?, Default::default())?;
//!     let address = listener.local_address()?;
//!     spawn(async move {
//!         let stream = listener.accept().await?;
//!         while let Some(bytes) = stream.recv().await? {
//!             stream.send(bytes).await?;
//!         }
//!         std::io::Result::Ok(())
//!     });
//!     let client = Stream::connect(&address).await?;
//!     client.send(&b"hello"[..]).await?;
//!     let answer = client.recv().await?.expect("the other side is open");
//!     Ok::<_, Box<dyn std::error::Error>>(answer.to_vec())
//! })?;
//! assert_eq!(answer, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! A receive gives whatever has arrived, in a buffer of the engine's (a [`Lease`](crate::Lease)): a part of a message,
//! or many. What must be kept is copied; a lease that is held keeps its buffer from others. Sent as it is, it costs no
//! copy.
//!
//! Other threads reach a runtime through a [`Remote`](crate::Remote), which runs a closure or starts a task there;
//! through a [`mailbox`](crate::mailbox); and, from runtime to runtime, through the [hand-off](crate::handoff).
//!
//! # Limits
//!
//! Every queue, pool and table has a maximum, in [`Limits`](crate::Limits). What happens at it:
//!
//! | limit | at the limit |
//! | --- | --- |
//! | `output_high_water_bytes` | `send` waits until the queue is below `output_low_water_bytes` |
//! | `input_high_water_bytes` | the connection is not read: TCP slows its sender down |
//! | `turn_bytes_max` | the other connections have their turn first |
//! | `pool_bytes_max` | what no handler has asked for yet is copied out; where handlers hold all, receives wait |
//! | descriptors of the process, less `descriptors_reserved` | accepting waits; connections queue in the kernel |
//! | `sockets_max` | an accepted connection is closed and counted; `connect` is an error |
//! | `tasks_max` | [`try_spawn`](crate::try_spawn) is an error, [`spawn`](crate::spawn) panics |
//! | `timers_max` | a sleep panics |
//! | `remote_queue_max` | [`Remote::call`](crate::Remote::call) is an error |
//! | `file_operations_max` | operations on files wait for their turn |
//! | `linger` | what a dropped connection has not sent by then is lost, and the connection reset |
//!
//! # Cancellation safety
//!
//! A future of this crate may be dropped at any await, by [`timeout`](crate::time::timeout), by a `select!` of any
//! make, or with its task. What that means for each:
//!
//! - [`recv`](crate::net::Stream::recv): no byte is lost. What arrives belongs to the connection, and the next call
//!   gives it.
//! - [`send`](crate::net::Stream::send): all of the bytes are queued, or (it waited above the high-water mark) none.
//! - [`flush`](crate::net::Stream::flush), [`shutdown`](crate::net::Stream::shutdown): the bytes and the end of the
//!   stream still leave.
//! - [`accept`](crate::net::Listener::accept): no connection is lost, the next call gives it.
//! - [`connect`](crate::net::Stream::connect), [`connect_from`](crate::net::Stream::connect_from): the
//!   attempt is given up.
//! - Reads of a [`File`](crate::fs::File): the answer is given up. Writes and syncs that have been begun go on to their
//!   end; those that wait for their turn are not begun.
//! - [`sleep`](crate::time::sleep): the timer is taken out.
//! - [`TaskGroup::finish`](crate::TaskGroup::finish): the tasks of the group end. A dropped
//!   [`JoinHandle`](crate::JoinHandle) leaves its task running.
//!
//! The kernel never writes into memory that has been given up: a buffer in flight belongs to the engine until the
//! operation is over, on every driver.
//!
//! # Backpressure
//!
//! A handler that awaits its sends needs nothing else. When the peer does not read, `send` waits, so the handler does
//! not receive, so the connection's input fills up to its high-water mark, so the kernel's window closes, and the
//! sender at the other end waits. Memory for a connection is bounded by the two high-water marks and one message.
//!
//! It is lost by whoever takes the bytes out of that chain: a handler that starts a task for every request, or puts
//! requests into a list of its own, has to bound these itself.
//! [`Stream::try_send_slice`](crate::net::Stream::try_send_slice) and [`Port::push`](crate::handoff::Port::push) say
//! that there is no room instead of waiting.
//!
//! # Tests on a simulated kernel
//!
//! [`Driver::Sim`](crate::Driver::Sim) runs the same program with virtual time, and with latencies, faults and the
//! order of events drawn from a seed. A test of a time limit takes no time; a test of reordering runs hundreds of seeds
//! a second, and a seed that fails is run again as often as it takes:
//!
//! ```
//! use std::time::Duration;
//! use weir_engine::{Config, Driver, Runtime, SimOptions, net::{Listener, Stream}, spawn, time};
//!
//! for seed in 0..50 {
//!     let sim = SimOptions { seed, short_per_mille: 500, ..SimOptions::default() };
//!     let runtime = Runtime::new(&Config { sim, ..Config::with_driver(Driver::Sim) }).unwrap();
//!     runtime.block_on(async {
//!         let address = "127.0.0.1:80".parse().unwrap();
//!         let listener = Listener::bind(&address, Default::default()).unwrap();
//!         spawn(async move {
//!             let stream = listener.accept().await.unwrap();
//!             time::sleep(Duration::from_secs(3600)).await;
//!             stream.send(&b"sorry for the delay"[..]).await.unwrap();
//!         });
//!         let client = Stream::connect(&address).await.unwrap();
//!         let mut all = Vec::new();
//!         while let Some(bytes) = client.recv().await.unwrap() {
//!             all.extend_from_slice(&bytes);
//!         }
//!         assert_eq!(all, b"sorry for the delay", "seed {seed}");
//!     });
//! }
//! ```
//!
//! What runs there is the state machine of epoll, poll and select; the kernel below it is simulated. So besides the
//! program, [`SimOptions`](crate::SimOptions) tries the engine: calls that fail for reasons that pass
//! (`error_per_mille`), readiness that is told once or as long as it lasts (`edge`), few descriptors.
//!
//! When every task waits and nothing can happen any more, the run ends with an error that lists who waits for what.
//! The example `key_value` tests a whole server so.
//!
//! # Choosing a driver
//!
//! `auto` takes io_uring where the kernel lets it, else epoll, else poll; the program is the same on all of them, and
//! [`Runtime::driver`](crate::Runtime::driver) says which one runs.
//!
//! - `uring`: for many connections that are busy at the same time, and for files. Containers and some distributions
//!   refuse it; `auto` then goes on with epoll.
//! - `epoll`: where io_uring is refused or the kernel is older than 5.11. It is level with io_uring where each turn has
//!   few events.
//! - `poll`: for some tens of connections, or to see what epoll brings: its cost grows with open connections, idle ones
//!   too.
//! - `select`: for comparison, and nothing else. It knows descriptors below 1024.
//! - `blocking`: for some tens of connections with a thread each. A handler that waits for two things at once does not
//!   run there.
//! - `sim`: for tests.
//!
//! Some options of io_uring pay with one load and cost with another: `send-zc-bytes`, `minimum-wait-us`,
//! `receive=bundle`, `sqpoll-idle-ms` and `fixed-files`. They are set by name
//! ([`Config::set_option`](crate::Config::set_option)), and one that the kernel lacks is refused with the reason when
//! the runtime starts. Incremental buffer rings are not offered. `docs/guide/io-models.md` says of each what it does,
//! which kernel it needs and which study measures it, and of the last why.
//!
//! Which one is faster depends on the machine, the kernel and the load. Measure it with the program that will run:
//! `weir study` compares any two commands that listen on a port.
