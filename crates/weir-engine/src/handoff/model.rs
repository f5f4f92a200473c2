//! The wake protocols on the model checker's primitives: one consumer and up to two producers with up to two messages
//! each, in every interleaving with up to three preemptions. Each protocol is also run with one step removed, and
//! must then fail.

use std::sync::{Arc, atomic::Ordering};

use loom::sync::atomic::AtomicU32 as ModelWord;

use super::{
    Priority,
    armed::{self, queue},
    ring::ring,
};
use crate::wake_flag::{AtomicWord, WakeFlag, model::EventCount};

/// Most messages of one producer.
const EACH_MAX: u32 = 2;

/// The order of a producer's steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    PublishFirst,
    /// The order of a careless implementation.
    AnnounceFirst,
}

/// The size of one check.
#[derive(Clone, Copy)]
struct Size {
    producers: u32,
    each: u32,
    preemptions_max: usize,
}

/// Each takes about a second.
const SIZES: [Size; 3] = [
    Size { producers: 1, each: 2, preemptions_max: 3 },
    Size { producers: 2, each: 1, preemptions_max: 3 },
    Size { producers: 2, each: 2, preemptions_max: 2 },
];

/// Two producers with two messages each, which takes a minute, if slow tests are requested; otherwise smaller sizes.
/// Queues with many words have many more interleavings: one preemption fewer keeps them from taking hours.
fn sizes(preemptions_less: usize) -> Vec<Size> {
    if std::env::var("WEIR_SLOW_TESTS").is_ok_and(|value| value == "1") {
        return vec![Size { producers: 2, each: 2, preemptions_max: 3 - preemptions_less }];
    }
    let smaller = |size: Size| Size { preemptions_max: size.preemptions_max - preemptions_less, ..size };
    SIZES.into_iter().map(smaller).collect()
}

/// The consumer's observations.
struct Seen {
    size: Size,
    /// By producer: messages that arrived.
    counts: [u32; 2],
    /// Written before a message is pushed, without any ordering.
    written: Arc<[ModelWord; 2]>,
}

impl Seen {
    fn new(size: Size) -> Self {
        let written = Arc::new(std::array::from_fn(|_| ModelWord::new(0)));
        Self { size, counts: [0; 2], written }
    }

    fn is_all(&self) -> bool {
        self.counts.iter().sum::<u32>() == self.size.producers * self.size.each
    }

    fn note(&mut self, number: u32) {
        let (producer, number) = (number / EACH_MAX, number % EACH_MAX);
        let written = self.written[producer as usize].load(Ordering::Relaxed);
        assert!(written > number, "a message is seen with what was written before it");
        let count = &mut self.counts[producer as usize];
        assert_eq!(number, *count, "in the order pushed");
        *count += 1;
    }
}

fn check(preemptions_max: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(body);
}

/// Parks the consumer as a wait for an eventfd does: an earlier write ends it at once. A wait that never ends is a
/// deadlock, which the model checker reports. A wait that nothing ends is a deadlock, which the model checker
/// reports.
fn wait() {
    loom::thread::park();
}

/// `mesh`: rings, and the runtime's flag.
fn mesh<W: AtomicWord + Send + Sync + 'static>(order: Order, size: Size) {
    check(size.preemptions_max, move || {
        let (flag, consumer) = (Arc::new(WakeFlag::<W>::on_word()), loom::thread::current());
        let (mut seen, mut receivers, mut threads) = (Seen::new(size), Vec::new(), Vec::new());
        for producer in 0..size.producers {
            let (mut sender, receiver) = ring::<u32, W>(EACH_MAX as usize);
            receivers.push(receiver);
            let (flag, consumer, written) = (Arc::clone(&flag), consumer.clone(), Arc::clone(&seen.written));
            threads.push(loom::thread::spawn(move || {
                for number in 0..size.each {
                    written[producer as usize].store(number + 1, Ordering::Relaxed);
                    sender.push(producer * EACH_MAX + number).expect("there is room");
                    if order == Order::PublishFirst {
                        sender.publish();
                    }
                    let sleeps = flag.notify();
                    sender.publish();
                    if sleeps {
                        consumer.unpark();
                    }
                }
            }));
        }
        while !seen.is_all() {
            for receiver in &mut receivers {
                while let Some(number) = receiver.pop() {
                    seen.note(number);
                }
            }
            if !seen.is_all() && flag.prepare_sleep() {
                wait();
                flag.woke();
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// `armed`: one queue whose word is the flag.
fn armed<W: AtomicWord + Send + Sync + 'static>(size: Size) {
    check(size.preemptions_max, move || {
        let consumer = loom::thread::current();
        let mut seen = Seen::new(size);
        let (senders, mut receiver): (Vec<armed::Sender<u32, W>>, _) =
            queue(size.producers as usize, 4 * EACH_MAX as usize);
        let producers = senders.into_iter().zip(0..).map(|(mut sender, producer)| {
            let (consumer, written) = (consumer.clone(), Arc::clone(&seen.written));
            loom::thread::spawn(move || {
                for number in 0..size.each {
                    written[producer as usize].store(number + 1, Ordering::Relaxed);
                    let message = producer * EACH_MAX + number;
                    if sender.push(Priority::Request, message).expect("there are nodes") {
                        consumer.unpark();
                    }
                }
            })
        });
        let threads: Vec<_> = producers.collect();
        while !seen.is_all() {
            while let Some((_, number)) = receiver.pop(Priority::Request) {
                seen.note(number);
            }
            if !seen.is_all() && receiver.arm() {
                wait();
                receiver.disarm();
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// `edge`: a count under a lock stands for the queue, with an eventfd on the edge. `early`: the edge is checked
/// before taking the lock under which the message is added.
fn edge(early: bool) {
    let size = SIZES[2];
    check(size.preemptions_max, move || {
        let shared = loom::sync::Arc::new((loom::sync::Mutex::new(0_u32), EventCount::new()));
        let threads: Vec<_> = (0..size.producers)
            .map(|_| {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    for _ in 0..size.each {
                        let before = early.then(|| *shared.0.lock().unwrap());
                        let mut queued = shared.0.lock().unwrap();
                        let was_empty = before.unwrap_or(*queued) == 0;
                        *queued += 1;
                        drop(queued);
                        if was_empty {
                            shared.1.write();
                        }
                    }
                })
            })
            .collect();
        let mut taken = 0;
        while taken < size.producers * size.each {
            let queued = std::mem::take(&mut *shared.0.lock().unwrap());
            taken += queued;
            if queued == 0 {
                shared.1.wait();
            }
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A full ring: its producer waits for room at the moment when the consumer returns some.
fn room<W: AtomicWord + Send + Sync + 'static>() {
    loom::model(|| {
        let (mut sender, mut receiver) = ring::<u32, W>(1);
        sender.push(1).expect("there is room for one");
        sender.publish();
        let producer = loom::thread::spawn(move || {
            while sender.push(2).is_err() {
                if sender.await_room() {
                    wait();
                }
            }
        });
        assert_eq!(receiver.pop(), Some(1));
        if receiver.return_room() {
            producer.thread().unpark();
        }
        producer.join().unwrap();
    });
}

/// As `room`, with nodes.
fn nodes<W: AtomicWord + Send + Sync + 'static>() {
    loom::model(|| {
        let (mut senders, mut receiver) = queue::<u32, W>(1, 1);
        let mut sender = senders.pop().expect("one producer");
        assert!(sender.push(Priority::Request, 1).is_ok());
        let producer = loom::thread::spawn(move || {
            while sender.push(Priority::Request, 2).is_err() {
                if sender.await_room(Priority::Request) {
                    wait();
                }
            }
        });
        assert_eq!(receiver.pop(Priority::Request), Some((0, 1)));
        let mut room_waiters = Vec::new();
        receiver.return_room(&mut room_waiters);
        room_waiters.iter().for_each(|_| producer.thread().unpark());
        producer.join().unwrap();
    });
}

/// A worker is attached while another publishes for it: one of the two sees the other.
fn attaching<W: AtomicWord + Send + Sync + 'static>() {
    loom::model(|| {
        let words = Arc::new((W::new(0), W::new(0)));
        let producer = {
            let words = Arc::clone(&words);
            loom::thread::spawn(move || {
                words.0.store(1, Ordering::Release);
                W::full_fence();
                words.1.load(Ordering::Acquire) == 1
            })
        };
        words.1.store(1, Ordering::Release);
        W::full_fence();
        let is_seen = words.0.load(Ordering::Acquire) == 1;
        assert!(producer.join().unwrap() || is_seen, "neither sees the other");
    });
}

/// A worker ends while another finds a queue to it full and would sleep until there is room.
fn ending<W: AtomicWord + Send + Sync + 'static>() {
    loom::model(|| {
        let words = Arc::new((W::new(0), W::new(0)));
        let flag = Arc::new(WakeFlag::<W>::on_word());
        let producer = loom::thread::current();
        let consumer = {
            let (words, flag) = (Arc::clone(&words), Arc::clone(&flag));
            loom::thread::spawn(move || {
                words.1.swap(1, Ordering::AcqRel);
                W::full_fence();
                if words.0.load(Ordering::Relaxed) == 1 && flag.notify() {
                    producer.unpark();
                }
            })
        };
        let has_ended = || words.1.load(Ordering::Acquire) == 1;
        while !has_ended() {
            words.0.store(1, Ordering::Relaxed);
            W::full_fence();
            if !has_ended() && flag.prepare_sleep() {
                wait();
                flag.woke();
            }
        }
        consumer.join().unwrap();
    });
}

/// `armed`: a consumer that waits only for responses leaves requests in the queue, which must neither keep it awake
/// nor hide a response. `late`: requests are set aside after the check for responses.
fn armed_for_responses<W: AtomicWord + Send + Sync + 'static>(late: bool) {
    check(3, move || {
        let consumer = loom::thread::current();
        let (mut senders, mut receiver) = queue::<u32, W>(1, 2);
        let mut sender = senders.pop().expect("one producer");
        let producer = loom::thread::spawn(move || {
            for (priority, message) in
                [(Priority::Request, 1), (Priority::Response, 2), (Priority::Request, 3)]
            {
                if sender.push(priority, message).expect("there are nodes") {
                    consumer.unpark();
                }
            }
        });
        while !receiver.has_some_of(Priority::Response) {
            receiver.drain();
            let is_there = !late && receiver.has_some_of(Priority::Response);
            if !is_there && receiver.arm() {
                wait();
                receiver.disarm();
            }
        }
        assert_eq!(receiver.pop(Priority::Response), Some((0, 2)));
        producer.join().unwrap();
        assert_eq!([(); 2].map(|()| receiver.pop(Priority::Request)), [Some((0, 1)), Some((0, 3))]);
    });
}

/// Defines a word that differs from the model checker's in the given methods.
macro_rules! weakened {
    ($name:ident, $note:literal, load $load:expr, store $store:expr, fence $fence:expr,
     swap $swap:expr, compare $compare:expr) => {
        #[doc = $note]
        struct $name(ModelWord);

        impl AtomicWord for $name {
            fn new(value: u32) -> Self {
                Self(ModelWord::new(value))
            }

            fn load(&self, order: Ordering) -> u32 {
                let load: fn(&ModelWord, Ordering) -> u32 = $load;
                load(&self.0, order)
            }

            fn store(&self, value: u32, order: Ordering) {
                let store: fn(&ModelWord, u32, Ordering) = $store;
                store(&self.0, value, order);
            }

            fn full_fence() {
                let fence: fn() = $fence;
                fence();
            }

            fn swap(&self, value: u32, order: Ordering) -> u32 {
                let swap: fn(&ModelWord, u32, Ordering) -> u32 = $swap;
                swap(&self.0, value, order)
            }

            fn compare_exchange(&self, old: u32, new: u32, order: Ordering, _: Ordering) -> Result<u32, u32> {
                let compare: fn(&ModelWord, u32, u32, Ordering) -> Result<u32, u32> = $compare;
                compare(&self.0, old, new, order)
            }

            fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
                self.0.fetch_add(value, order)
            }

            fn fetch_sub(&self, value: u32, order: Ordering) -> u32 {
                self.0.fetch_sub(value, order)
            }
        }
    };
}

fn full_fence() {
    loom::sync::atomic::fence(Ordering::SeqCst);
}

weakened!(
    Unfenced,
    "Its full fence is none.",
    load | word,
    order | word.load(order),
    store | word,
    value,
    order | word.store(value, order),
    fence || {},
    swap | word,
    value,
    order | word.swap(value, order),
    compare | word,
    old,
    new,
    order | word.compare_exchange(old, new, order, Ordering::Relaxed)
);

weakened!(Unordered, "Nothing it does orders anything else.",
    load |word, _| word.load(Ordering::Relaxed),
    store |word, value, _| word.store(value, Ordering::Relaxed),
    fence full_fence,
    swap |word, value, _| word.swap(value, Ordering::Relaxed),
    compare |word, old, new, _| word.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed));

weakened!(Split, "Its read-modify-writes are a load and a store.",
load |word, _| word.load(Ordering::SeqCst),
store |word, value, _| word.store(value, Ordering::SeqCst),
fence full_fence,
swap |word, value, _| {
    let before = word.load(Ordering::SeqCst);
    word.store(value, Ordering::SeqCst);
    before
},
compare |word, old, new, _| match word.load(Ordering::SeqCst) {
    before if before == old => {
        word.store(new, Ordering::SeqCst);
        Ok(before)
    }
    before => Err(before),
});

#[test]
fn mesh_loses_no_wake_and_no_order() {
    sizes(0).into_iter().for_each(|size| mesh::<ModelWord>(Order::PublishFirst, size));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mesh_that_announces_before_it_publishes_loses_a_wake() {
    mesh::<ModelWord>(Order::AnnounceFirst, SIZES[1]);
}

#[test]
#[should_panic]
fn mesh_whose_words_order_nothing_fails() {
    mesh::<Unordered>(Order::PublishFirst, SIZES[0]);
}

#[test]
fn armed_loses_no_wake_and_no_order() {
    sizes(1).into_iter().for_each(armed::<ModelWord>);
}

#[test]
#[should_panic]
fn armed_whose_exchanges_are_split_fails() {
    armed::<Split>(SIZES[1]);
}

#[test]
#[should_panic(expected = "written before it")]
fn armed_whose_exchanges_order_nothing_shows_messages_too_early() {
    armed::<Unordered>(SIZES[0]);
}

#[test]
fn edge_loses_no_wake() {
    edge(false);
}

#[test]
#[should_panic(expected = "deadlock")]
fn edge_that_is_looked_for_before_the_lock_loses_a_wake() {
    edge(true);
}

#[test]
fn a_producer_that_waits_for_room_is_woken() {
    room::<ModelWord>();
    nodes::<ModelWord>();
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fences_a_producer_waits_for_room_for_ever() {
    room::<Unfenced>();
}

#[test]
#[should_panic(expected = "deadlock")]
fn with_split_exchanges_a_producer_waits_for_nodes_for_ever() {
    nodes::<Split>();
}

#[test]
fn who_waits_for_room_is_woken_by_the_end_of_the_other_worker() {
    ending::<ModelWord>();
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fences_the_end_of_a_worker_wakes_nobody() {
    ending::<Unfenced>();
}

#[test]
fn armed_for_responses_sleeps_beside_requests_and_loses_no_wake() {
    armed_for_responses::<ModelWord>(false);
}

#[test]
#[should_panic(expected = "deadlock")]
fn armed_that_takes_aside_after_its_look_for_responses_sleeps_beside_one() {
    armed_for_responses::<ModelWord>(true);
}

#[test]
fn a_worker_that_is_attached_meanwhile_is_seen_or_sees() {
    attaching::<ModelWord>();
}

#[test]
#[should_panic(expected = "neither sees the other")]
fn without_the_fences_neither_is_seen() {
    attaching::<Unfenced>();
}
