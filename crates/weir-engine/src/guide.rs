//! How to write a program on this engine: its model, its limits, the effect of a dropped future, backpressure, tests
//! on a simulated kernel, and the choice of a driver. This module contains only text.
//!
//! # The model
//!
//! A [`Runtime`](crate::Runtime) belongs to the thread that made it. It has tasks, timers and one driver, which is
//! one way to wait for the kernel. Tasks never move to another thread, so they share data in an `Rc<RefCell<…>>`
//! without a lock. A program that uses two cores starts two runtimes, or a [`Server`](crate::serve::Server) with two
//! workers.
//!
//! One *turn* of a runtime runs every task that is ready, hands their sends to the kernel, and then waits for events.
//! So a send is queued at once and leaves at the end of the turn, with everything else that was queued in that turn:
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
//! A receive returns whatever has arrived, in an engine buffer (a [`Lease`](crate::Lease)): a part of a message, or
//! many. Copy what must be kept; a lease that is held keeps its buffer from other connections. Sending a lease as it
//! is costs no copy.
//!
//! Tasks of one runtime wait for each other with [`sync`](crate::sync): events, permits, one value, a bounded channel.
//! All of it is fair, bounded, and safe to drop at any await.
//!
//! A call that blocks, or a long computation, holds up every task of its runtime. Give it to
//! [`spawn_blocking`](crate::spawn_blocking()), which runs it on a thread beside the runtime and wakes the task that
//! waits for the result.
//!
//! Other threads reach a runtime through a [`Remote`](crate::Remote), which runs a closure or starts a task there;
//! through a [`mailbox`](crate::mailbox); and, from runtime to runtime, through the [hand-off](crate::handoff).
//!
//! # Limits
//!
//! Every queue, pool and table has a maximum, in [`Limits`](crate::Limits). The effect of reaching it:
//!
//! | limit | at the limit |
//! | --- | --- |
//! | `output_high_water_bytes` | `send` waits until the queue is below `output_low_water_bytes` |
//! | `input_high_water_bytes` | the connection is not read, and TCP flow control slows the sender down |
//! | `turn_bytes_max` | the other connections are served first |
//! | `pool_bytes_max` | bytes that no handler has asked for are copied out; if handlers hold all of it, receives wait |
//! | descriptors of the process, less `descriptors_reserved` | accepting waits; connections queue in the kernel |
//! | `sockets_max`; on select, descriptor 1023 | an accepted connection is closed and counted; `connect` is an error |
//! | `tasks_max` | [`try_spawn`](crate::try_spawn) is an error, [`spawn`](crate::spawn) panics |
//! | `timers_max` | a sleep panics |
//! | `remote_queue_max` | [`Remote::call`](crate::Remote::call) is an error |
//! | `file_operations_max` | file operations wait for their turn |
//! | `blocking_threads_max` | closures of [`spawn_blocking`](crate::spawn_blocking()) wait in their queue |
//! | `blocking_queue_max` | `spawn_blocking` waits for a place in the queue |
//! | `linger` | a dropped connection loses its unsent bytes and is reset |
//!
//! # Cancellation safety
//!
//! A future of this crate may be dropped at any await, by [`timeout`](crate::time::timeout), by any `select!`, or
//! with its task. The effect is:
//!
//! - [`recv`](crate::net::Stream::recv): no byte is lost. Bytes that arrive belong to the connection, and the next
//!   call returns them.
//! - [`send`](crate::net::Stream::send): all of the bytes are queued, or none if it was waiting above the high-water
//!   mark.
//! - [`flush`](crate::net::Stream::flush), [`shutdown`](crate::net::Stream::shutdown): the bytes and the end of the
//!   stream still leave.
//! - [`accept`](crate::net::Listener::accept): no connection is lost; the next call returns it.
//! - [`connect`](crate::net::Stream::connect), [`connect_from`](crate::net::Stream::connect_from): the attempt is
//!   abandoned.
//! - Reads of a [`File`](crate::fs::File): the answer is discarded. Writes and syncs that have begun run to their
//!   end; those that wait for their turn are not begun.
//! - [`spawn_blocking`](crate::spawn_blocking()): the closure runs if it was queued, and is dropped if not. A dropped
//!   [`BlockingHandle`](crate::BlockingHandle) discards the result.
//! - [`sleep`](crate::time::sleep): the timer is removed.
//! - [`TaskGroup::finish`](crate::TaskGroup::finish): the tasks of the group end. A dropped
//!   [`JoinHandle`](crate::JoinHandle) leaves its task running.
//!
//! The kernel never writes into memory that has been freed: a buffer in flight belongs to the engine until the
//! operation is over, on every driver.
//!
//! # Backpressure
//!
//! A handler that awaits its sends needs nothing else. When the peer does not read, `send` waits, so the handler does
//! not receive, so the connection's input fills up to its high-water mark, so the kernel's window closes, and the
//! sender at the other end waits. Memory for a connection is bounded by the two high-water marks and one message.
//!
//! Two kinds of handler lose this bound: one that starts a task for every request, and one that puts requests into
//! its own list. They must limit these themselves. [`Stream::try_send_slice`](crate::net::Stream::try_send_slice) and
//! [`Port::push`](crate::handoff::Port::push) report that there is no room, instead of waiting.
//!
//! # Panics
//!
//! A panic in a task ends that task: its message is printed, its values are dropped, which closes its connections, and
//! the counter `tasks_panicked` rises. The others and the runtime go on. A task that awaits its
//! [`JoinHandle`](crate::JoinHandle) panics too, with the same payload. A server counts its handlers in the same way,
//! on the blocking driver as well.
//!
//! [`TaskPanic::Runtime`](crate::TaskPanic) makes such a panic end the runtime instead. Choose it where tasks share
//! state that a panic may leave half changed. Tests take [`Config::for_test`](crate::Config::for_test), which sets it:
//! otherwise an assertion that fails in a task would fail no test.
//!
//! A panic in a closure of `spawn_blocking` is an error of its handle, whatever `TaskPanic` says. Nothing else ends.
//!
//! A panic of the future that `block_on` runs, in a call from another thread, or inside a driver always ends the
//! runtime.
//!
//! # Tests on a simulated kernel
//!
//! [`Driver::Sim`](crate::Driver::Sim) runs the same program with virtual time, and with latencies, faults and the
//! order of events drawn from a seed. A test of a timeout takes no time; a test of reordering runs hundreds of seeds
//! a second, and a failing seed can be replayed as often as needed:
//!
//! ```
//! use std::time::Duration;
//! use weir_engine::{Config, Driver, Runtime, SimOptions, net::{Listener, Stream}, spawn, time};
//!
//! for seed in 0..50 {
//!     let sim = SimOptions { seed, short_per_mille: 500, ..SimOptions::default() };
//!     let runtime = Runtime::new(&Config { sim, ..Config::for_test(Driver::Sim) }).unwrap();
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
//! The simulator runs the state machine of epoll, poll and select; the kernel below it is simulated. So
//! [`SimOptions`](crate::SimOptions) tests the engine as well as the program: transient call errors
//! (`error_per_mille`), edge- or level-triggered readiness (`edge`), few descriptors.
//!
//! When every task waits and no event can come, the run ends with an error that lists each waiting task and its
//! operation. The example `key_value` tests a whole server this way.
//!
//! # Choosing a driver
//!
//! `auto` takes io_uring if the kernel allows it, else epoll, else poll; the program is the same on all of them, and
//! [`Runtime::driver`](crate::Runtime::driver) says which one runs.
//!
//! - `uring`: for many connections that are busy at the same time, and for files. Containers and some distributions
//!   refuse it; `auto` then continues with epoll.
//! - `epoll`: where io_uring is refused or the kernel is older than 5.11. It performs as io_uring does when each turn
//!   has few events.
//! - `poll`: for some tens of connections, or to measure the benefit of epoll: its cost grows with open connections,
//!   idle ones too.
//! - `select`: for comparison only. It supports only descriptors below 1024.
//! - `blocking`: for some tens of connections with a thread each. A handler that waits for two operations at once
//!   does not run there.
//! - `sim`: for tests.
//!
//! Some io_uring options gain with one load and cost with another: zero-copy sends, a minimum wait, bundled receives, a
//! polling kernel thread and fixed files. They are fields of [`UringOptions`](crate::UringOptions). When the runtime
//! starts, it refuses an option that the kernel lacks and gives the reason. For each option
//! `docs/guide/io-models.md` says what it does, which kernel it needs and which study measures it. It also says why
//! incremental buffer rings are not offered.
//!
//! The feature `lab` adds what only measurements need: options that slow a server down in a known way, drivers as on an
//! older kernel, and hand-offs between workers that are there to be compared.
//!
//! Which one is faster depends on the machine, the kernel and the load. Measure it with the program that will run:
//! `weir study` compares any two commands that listen on a port.
