//! Tests of the mailbox's contract: in use, between threads, and in every interleaving of the model checker.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;
use std::thread;

use proptest::prelude::*;

use super::*;

/// Counts wakes, and unparks the thread that created it.
struct Parker {
    thread: thread::Thread,
    wakes: AtomicUsize,
}

impl Parker {
    fn new() -> Arc<Self> {
        Arc::new(Self { thread: thread::current(), wakes: AtomicUsize::new(0) })
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Ordering::SeqCst)
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Parker::new());
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Polls a fresh receive once and drops it.
fn poll_once<T>(receiver: &mut MailboxReceiver<T>) -> Poll<Option<T>> {
    pin!(receiver.recv()).poll(&mut Context::from_waker(Waker::noop()))
}

const fn is_send_sync_and_clone<T: Send + Sync + Clone>() {}
const fn is_send<T: Send>() {}
const _: () = is_send_sync_and_clone::<MailboxSender<std::cell::Cell<u8>>>();
const _: () = is_send::<MailboxReceiver<std::cell::Cell<u8>>>();

#[test]
fn a_pending_receive_is_woken_once_until_it_is_polled_again() {
    let (sender, mut receiver) = mailbox(4);
    let parker = Parker::new();
    let waker = Waker::from(parker.clone());
    let mut context = Context::from_waker(&waker);
    sender.try_send(1).unwrap();
    assert_eq!(parker.wakes(), 0, "nobody waits");
    assert_eq!(receiver.try_recv(), Some(1));
    let mut receive = pin!(receiver.recv());
    assert!(receive.as_mut().poll(&mut context).is_pending());
    sender.try_send(2).unwrap();
    sender.try_send(3).unwrap();
    assert_eq!(parker.wakes(), 1);
    assert_eq!(receive.as_mut().poll(&mut context), Poll::Ready(Some(2)));
    sender.try_send(4).unwrap();
    assert_eq!(parker.wakes(), 1, "the receive has returned");
}

#[test]
fn the_latest_poll_decides_which_task_is_woken() {
    let (sender, mut receiver) = mailbox(1);
    let (first, second) = (Parker::new(), Parker::new());
    let mut receive = pin!(receiver.recv());
    for parker in [&first, &second] {
        let waker = Waker::from(parker.clone());
        assert!(receive.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(Arc::strong_count(&first), 1, "the first waker is let go");
    sender.try_send(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

#[test]
fn a_dropped_receive_leaves_no_waker_and_loses_no_message() {
    let (sender, mut receiver) = mailbox(1);
    let parker = Parker::new();
    let waker = Waker::from(parker.clone());
    {
        let mut receive = pin!(receiver.recv());
        assert!(receive.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(waker);
    assert_eq!(Arc::strong_count(&parker), 1);
    sender.try_send(1).unwrap();
    assert_eq!(parker.wakes(), 0);
    assert_eq!(poll_once(&mut receiver), Poll::Ready(Some(1)));
    {
        let mut receive = pin!(receiver.recv());
        assert!(receive.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        sender.try_send(2).unwrap();
    }
    assert_eq!(poll_once(&mut receiver), Poll::Ready(Some(2)), "woken for it, and dropped");
}

#[test]
fn a_receive_that_overtakes_the_wake_of_its_message_is_not_woken_for_it() {
    let (sender, mut receiver) = mailbox(1);
    let parker = Parker::new();
    let waker = Waker::from(parker.clone());
    let mut context = Context::from_waker(&waker);
    let mut receive = pin!(receiver.recv());
    assert!(receive.as_mut().poll(&mut context).is_pending());
    // The two halves of a send, with a poll between them.
    sender.channel.queue.push(1).unwrap();
    assert_eq!(receive.as_mut().poll(&mut context), Poll::Ready(Some(1)));
    sender.channel.wake_receiver();
    assert_eq!(parker.wakes(), 0);
}

#[test]
fn the_last_sender_to_leave_wakes_the_receiver() {
    let (sender, mut receiver) = mailbox::<u8>(1);
    let other = sender.clone();
    let parker = Parker::new();
    let waker = Waker::from(parker.clone());
    let mut context = Context::from_waker(&waker);
    let mut receive = pin!(receiver.recv());
    assert!(receive.as_mut().poll(&mut context).is_pending());
    drop(sender);
    assert_eq!(parker.wakes(), 0);
    drop(other);
    assert_eq!(parker.wakes(), 1);
    assert_eq!(receive.as_mut().poll(&mut context), Poll::Ready(None));
}

#[test]
fn the_error_names_its_reason_and_hands_the_message_back() {
    let (sender, receiver) = mailbox(1);
    sender.try_send(1).unwrap();
    let full = sender.try_send(2).unwrap_err();
    assert_eq!((full, full.to_string().as_str()), (SendError::Full(2), "the mailbox is full"));
    drop(receiver);
    assert!(sender.is_closed());
    let closed = sender.try_send(3).unwrap_err();
    assert_eq!((closed, closed.to_string().as_str()), (SendError::Closed(3), "the mailbox is closed"));
    assert_eq!(closed.into_inner(), 3);
}

#[test]
fn the_stated_capacity_is_reached_and_not_passed() {
    let (sender, mut receiver) = mailbox(CAPACITY_MAX);
    for message in 0..CAPACITY_MAX {
        sender.try_send(message).unwrap();
    }
    assert_eq!(sender.try_send(0), Err(SendError::Full(0)));
    assert_eq!(receiver.len(), CAPACITY_MAX);
    assert_eq!(receiver.try_recv(), Some(0));
    sender.try_send(0).unwrap();
    assert!(std::panic::catch_unwind(|| mailbox::<u8>(CAPACITY_MAX + 1)).is_err());
    assert!(std::panic::catch_unwind(|| mailbox::<u8>(0)).is_err());
}

#[test]
fn the_stated_number_of_senders_is_reached_and_not_passed() {
    let (sender, mut receiver) = mailbox::<u8>(1);
    let senders: Vec<_> = (1..SENDERS_MAX).map(|_| sender.clone()).collect();
    assert!(!sender.channel.add_sender());
    drop(senders);
    assert!(poll_once(&mut receiver).is_pending(), "the refused one was not counted");
    drop(sender);
    assert_eq!(poll_once(&mut receiver), Poll::Ready(None));
}

/// Every message arrives once and in its sender's order while receives are dropped at every opportunity.
#[test]
fn four_threads_send_while_receives_are_dropped() {
    const SENDERS: u32 = 4;
    const MESSAGES: u32 = 20_000;
    let (sender, mut receiver) = mailbox(16);
    let threads: Vec<_> = (0..SENDERS)
        .map(|from| {
            let sender = sender.clone();
            thread::spawn(move || {
                for number in 0..MESSAGES {
                    let mut message = (from, number);
                    while let Err(refused) = sender.try_send(message) {
                        message = refused.into_inner();
                        thread::yield_now();
                    }
                }
            })
        })
        .collect();
    drop(sender);
    let mut expected = [0; SENDERS as usize];
    loop {
        let received = match poll_once(&mut receiver) {
            Poll::Ready(received) => received,
            Poll::Pending => block_on(receiver.recv()),
        };
        let Some((from, number)) = received else { break };
        assert_eq!(number, expected[from as usize], "sender {from}");
        expected[from as usize] += 1;
    }
    assert_eq!(expected, [MESSAGES; SENDERS as usize]);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Senders race the close: while they still hold the mailbox, all messages are dropped, each once.
#[test]
fn a_close_that_races_sends_drops_each_message_once() {
    for round in 0..2_000 {
        let (sender, mut receiver) = mailbox(8);
        let message = Arc::new(());
        let threads = [(); 2].map(|()| {
            let (sender, message) = (sender.clone(), message.clone());
            thread::spawn(
                move || {
                    while !matches!(sender.try_send(message.clone()), Err(SendError::Closed(_))) {}
                },
            )
        });
        for _ in 0..round % 20 {
            receiver.try_recv();
        }
        drop(receiver);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(Arc::strong_count(&message), 1, "round {round}");
        assert!(sender.channel.queue.is_empty());
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Send,
    Receive,
    TryReceive,
    AddSender,
    DropSender,
    DropReceiver,
}

fn step() -> impl Strategy<Value = Step> {
    use Step::{AddSender, DropReceiver, DropSender, Receive, Send, TryReceive};
    prop_oneof![12 => Just(Send), 6 => Just(Receive), 3 => Just(TryReceive), 3 => Just(AddSender),
        3 => Just(DropSender), 1 => Just(DropReceiver)]
}

proptest! {
    #[test]
    fn the_mailbox_agrees_with_a_queue(capacity in 1..6usize, steps in prop::collection::vec(step(), 1..80)) {
        let life = Arc::new(());
        let (sender, receiver) = mailbox(capacity);
        let (mut senders, mut receiver) = (vec![sender], Some(receiver));
        let mut queued = VecDeque::new();
        for (number, step) in steps.into_iter().enumerate() {
            let alive = receiver.is_some();
            match (step, &mut receiver) {
                (Step::Send, _) => if let Some(sender) = senders.last() {
                    let sent = sender.try_send((number, life.clone())).map_err(|error| match error {
                        SendError::Full((number, _)) => SendError::Full(number),
                        SendError::Closed((number, _)) => SendError::Closed(number),
                    });
                    prop_assert_eq!(sent, match queued.len() {
                        _ if !alive => Err(SendError::Closed(number)),
                        full if full == capacity => Err(SendError::Full(number)),
                        _ => { queued.push_back(number); Ok(()) }
                    });
                }
                (Step::Receive, Some(receiver)) => {
                    let received = poll_once(receiver).map(|message| message.map(|(number, _)| number));
                    prop_assert_eq!(received, match queued.pop_front() {
                        None if !senders.is_empty() => Poll::Pending,
                        front => Poll::Ready(front),
                    });
                }
                (Step::TryReceive, Some(receiver)) => {
                    prop_assert_eq!(receiver.try_recv().map(|(number, _)| number), queued.pop_front());
                }
                (Step::AddSender, _) => senders.extend(senders.last().cloned()),
                (Step::DropSender, _) => drop(senders.pop()),
                (Step::DropReceiver, _) => {
                    receiver = None;
                    queued.clear();
                }
                (Step::Receive | Step::TryReceive, None) => {}
            }
            prop_assert_eq!(Arc::strong_count(&life), 1 + queued.len());
            prop_assert_eq!(receiver.as_ref().map_or(0, MailboxReceiver::len), queued.len());
        }
    }
}

/// The channel on the model checker's primitives, in every interleaving.
mod every_interleaving {
    use loom::sync::atomic::AtomicU32;

    use super::super::*;
    use crate::wake_flag::model::EventCount;

    struct Model;

    impl Primitives<u32> for Model {
        type Queue = RelaxedSlots;
        type Cell = loom::sync::Mutex<Option<Waker>>;
        type Word = AtomicU32;
    }

    /// Two places for numbers above zero. All accesses are relaxed, so that it guarantees no more than any queue: a
    /// push is seen late unless something else orders it.
    #[derive(Default)]
    struct RelaxedSlots([AtomicU32; 2]);

    impl Queue<u32> for RelaxedSlots {
        fn push(&self, message: u32) -> Result<(), u32> {
            let relaxed = Ordering::Relaxed;
            let placed = |slot: &AtomicU32| slot.compare_exchange(0, message, relaxed, relaxed).is_ok();
            if self.0.iter().any(placed) { Ok(()) } else { Err(message) }
        }

        fn pop(&self) -> Option<u32> {
            let filled = self.0.iter().find(|slot| slot.load(Ordering::Relaxed) != 0)?;
            Some(filled.swap(0, Ordering::Relaxed)).filter(|&message| message != 0)
        }
    }

    impl WakerCell for loom::sync::Mutex<Option<Waker>> {
        fn set(&self, waker: &Waker) {
            *self.lock().unwrap() = Some(waker.clone());
        }

        fn get(&self) -> Option<Waker> {
            self.lock().unwrap().clone()
        }

        fn clear(&self) {
            *self.lock().unwrap() = None;
        }
    }

    struct Task(EventCount);

    impl std::task::Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.write();
        }
    }

    type Shared = loom::sync::Arc<Channel<u32, Model>>;

    /// Receives as an executor does: polls when woken. `None` ends it.
    fn receive_all(channel: &Shared) -> Vec<u32> {
        let task = Arc::new(Task(EventCount::new()));
        let waker = Waker::from(task.clone());
        let mut received = Vec::new();
        loop {
            match channel.poll_receive(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(message)) => received.push(message),
                Poll::Ready(None) => break,
                Poll::Pending => task.0.wait(),
            }
        }
        received.sort_unstable();
        received
    }

    /// Tries every interleaving, or only those with at most this many preemptions if all would take minutes.
    fn check(preemptions_max: Option<usize>, body: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions_max;
        builder.check(body);
    }

    fn send_and_leave(channel: &Shared, message: u32) -> loom::thread::JoinHandle<()> {
        let channel = channel.clone();
        loom::thread::spawn(move || {
            channel.send(message).unwrap();
            channel.remove_sender();
        })
    }

    #[test]
    fn one_sender_is_received_and_its_leaving_seen() {
        check(None, || {
            let channel = Shared::new(Channel::new(RelaxedSlots::default()));
            let sender = send_and_leave(&channel, 7);
            assert_eq!(receive_all(&channel), [7]);
            sender.join().unwrap();
        });
    }

    #[test]
    fn two_senders_are_received_and_their_leaving_seen() {
        check(Some(2), || {
            let channel = Shared::new(Channel::new(RelaxedSlots::default()));
            assert!(channel.add_sender());
            let senders = [1, 2].map(|message| send_and_leave(&channel, message));
            assert_eq!(receive_all(&channel), [1, 2]);
            senders.into_iter().for_each(|sender| sender.join().unwrap());
        });
    }

    #[test]
    fn a_receive_dropped_while_a_send_races_it_loses_nothing() {
        check(Some(3), || {
            let channel = Shared::new(Channel::new(RelaxedSlots::default()));
            let sender = send_and_leave(&channel, 7);
            let mut received = Vec::new();
            match channel.poll_receive(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(message) => received.extend(message),
                Poll::Pending => channel.cancel(),
            }
            received.extend(receive_all(&channel));
            assert_eq!(received, [7]);
            sender.join().unwrap();
        });
    }

    #[test]
    fn a_close_that_races_a_send_leaves_nothing_queued() {
        check(None, || {
            let channel = Shared::new(Channel::new(RelaxedSlots::default()));
            let sender = {
                let channel = channel.clone();
                loom::thread::spawn(move || {
                    channel.send(7).map_err(|refused| assert_eq!(refused.into_inner(), 7))
                })
            };
            channel.close();
            let sent = sender.join().unwrap();
            assert_eq!(channel.queue.pop(), None, "sent: {sent:?}");
        });
    }
}
