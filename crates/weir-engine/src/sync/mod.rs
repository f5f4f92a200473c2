//! Waiting for other tasks of the same thread: [`Notify`] and [`Signal`] for events, [`Semaphore`] for permits,
//! [`oneshot()`] for one value, [`channel()`] for many, and [`Waiters`] to build more. For messages from other threads
//! there is [`mailbox`](crate::mailbox).
//!
//! None of them is `Send`: they take no lock, touch no atomic and need no runtime, so they also work under any other
//! executor that stays on one thread. One list of waiting tasks is their base (`wait_list.rs`), and its contract is
//! theirs:
//!
//! - **Fair.** Tasks go on in the order in which they began to wait.
//! - **Cancel-safe.** Each future may be dropped at any await. It leaves no entry behind, and what had been handed to
//!   it, a permit or a place for a message, goes to the next in line.
//! - **Bounded.** A list has one entry for each future that waits, and no other. A channel holds at most its capacity.
//! - **Reentrant.** A waker may run any code when it is woken or dropped, also code that calls the same object.
//!   Nothing is borrowed at that moment.
//! - **Free of charge when idle.** Memory is allocated when a first task has to wait, and reused from then on.

mod channel;
mod notify;
mod oneshot;
mod semaphore;
mod signal;
mod wait_list;
mod waiters;

pub use channel::{Receiver, Sender, TrySendError, channel};
pub use notify::{Notified, Notify, Until};
pub use oneshot::{OneshotReceiver, OneshotSender, SenderGone, oneshot};
pub use semaphore::{Acquire, Permit, Semaphore};
pub(crate) use semaphore::{FairSemaphore, GivenUp};
pub use signal::Signal;
pub(crate) use wait_list::{Ticket, WaitList};
pub use waiters::{Place, Waiters};
