//! Connections of operators to a running server: a separate thread answers each, up to a maximum. If a caller asks
//! only once, a caller beyond the maximum is closed; if callers stay and ask again, it replaces an idle one.

use std::{
    io,
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long accepting pauses after an error, such as running out of descriptors.
const REST: Duration = Duration::from_millis(20);

/// A caller being answered.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers each caller, as long as connections arrive. A caller beyond `callers_max` is closed at once.
pub(crate) fn answer_each<S: Send + 'static>(
    incoming: impl Iterator<Item = io::Result<S>>,
    (thread_name, callers_max): (&str, usize),
    answer: impl Fn(S) + Clone + Send + 'static,
) {
    let callers = Arc::new(AtomicUsize::new(0));
    thread_for_each(incoming, thread_name, |caller| {
        let is_full = callers.fetch_add(1, Ordering::Relaxed) >= callers_max;
        let open = Open(Arc::clone(&callers));
        let answer = answer.clone();
        (!is_full).then_some(move || {
            let _open = open;
            answer(caller);
        })
    });
}

/// Serves callers that may ask repeatedly, for as long as the process lives. A caller beyond `callers_max` replaces
/// the one that has been idle for longest; while all of them are being answered it is closed.
pub(crate) fn talk_to_each(
    listener: &UnixListener,
    (thread_name, callers_max): (&str, usize),
    may_ask: impl Fn(&UnixStream) -> bool,
    talk: impl Fn(UnixStream, &CallerSlot) + Clone + Send + 'static,
) {
    let callers = Arc::new(Mutex::new(Vec::new()));
    let mut numbers = 0..;
    thread_for_each(listener.incoming(), thread_name, |caller| {
        if !may_ask(&caller) {
            return None;
        }
        let stream = caller.try_clone().ok()?;
        let slot = CallerSlot { number: numbers.next()?, callers: Arc::clone(&callers) };
        let talk = talk.clone();
        slot.take(stream, callers_max).then_some(move || talk(caller, &slot))
    });
}

/// Runs the function that `admit` returns for each caller on a separate thread; callers without one are closed.
fn thread_for_each<S, T: FnOnce() + Send + 'static>(
    incoming: impl Iterator<Item = io::Result<S>>,
    thread_name: &str,
    mut admit: impl FnMut(S) -> Option<T>,
) {
    for caller in incoming {
        let Ok(caller) = caller else {
            thread::park_timeout(REST);
            continue;
        };
        if let Some(run) = admit(caller) {
            // Without a thread the caller is closed, and its place is free; the next one may get a thread.
            let _ = thread::Builder::new().name(thread_name.into()).spawn(run);
        }
    }
}

/// A connected caller.
struct Caller {
    number: u64,
    asked: Instant,
    is_being_answered: bool,
    stream: UnixStream,
}

/// The place of one caller, until it is dropped.
pub(crate) struct CallerSlot {
    number: u64,
    callers: Arc<Mutex<Vec<Caller>>>,
}

impl CallerSlot {
    /// Answers a caller's request: meanwhile it is not replaced.
    pub(crate) fn answer<T>(&self, work: impl FnOnce() -> T) -> T {
        self.mark(|caller| (caller.asked, caller.is_being_answered) = (Instant::now(), true));
        let answer = work();
        self.mark(|caller| caller.is_being_answered = false);
        answer
    }

    /// False: there is no place.
    fn take(&self, stream: UnixStream, callers_max: usize) -> bool {
        let mut list = self.list();
        if list.len() >= callers_max {
            let silent = (0..list.len()).filter(|place| !list[*place].is_being_answered);
            let Some(longest) = silent.min_by_key(|place| list[*place].asked) else { return false };
            // Its thread ends when it next reads or writes.
            let _ = list.swap_remove(longest).stream.shutdown(Shutdown::Both);
        }
        list.push(Caller { number: self.number, asked: Instant::now(), is_being_answered: false, stream });
        true
    }

    fn mark(&self, change: impl FnOnce(&mut Caller)) {
        if let Some(caller) = self.list().iter_mut().find(|caller| caller.number == self.number) {
            change(caller);
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Caller>> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallerSlot {
    fn drop(&mut self) {
        self.list().retain(|caller| caller.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    #[test]
    fn so_many_are_answered_at_a_time_and_a_failed_accept_ends_nothing() {
        let (told, calls) = channel();
        let (done, ends): (Sender<()>, Receiver<()>) = channel();
        let ends = Arc::new(std::sync::Mutex::new(ends));
        let answer = move |caller: u32| {
            told.send(caller).expect("the test listens");
            // Blocks until the test drops its end.
            let _ = ends.lock().expect("nobody panics with it").recv();
        };
        let incoming =
            (0..4).map(|number| if number == 1 { Err(io::ErrorKind::Other.into()) } else { Ok(number) });
        answer_each(incoming, ("test", 2), answer);
        let mut answered = [calls.recv(), calls.recv()].map(|call| call.expect("two are answered"));
        answered.sort_unstable();
        assert_eq!(answered, [0, 2], "the fourth was one too many");
        drop(done);
        assert!(calls.recv().is_err(), "nobody else was answered");
    }

    #[test]
    fn whoever_is_being_answered_keeps_its_slot_and_of_the_others_the_one_silent_for_longest_leaves() {
        let callers = Arc::new(Mutex::new(Vec::new()));
        let slot = |number| CallerSlot { number, callers: Arc::clone(&callers) };
        let slots: Vec<CallerSlot> = (0..4).map(slot).collect();
        let (ours, _theirs) = UnixStream::pair().expect("descriptors");
        let take = |number: usize| slots[number].take(ours.try_clone().expect("a descriptor"), 2);
        let numbers = || {
            let mut numbers: Vec<u64> = slots[0].list().iter().map(|caller| caller.number).collect();
            numbers.sort_unstable();
            numbers
        };
        assert!(take(0) && take(1));
        let is_refused = slots[0].answer(|| {
            assert!(take(2), "the second is silent");
            assert_eq!(numbers(), [0, 2]);
            slots[2].answer(|| !take(3))
        });
        assert!(is_refused && take(3));
        assert_eq!(numbers(), [2, 3], "the first has asked before");
        drop(slots);
        assert!(callers.lock().expect("nobody panics with it").is_empty());
    }
}
