//! Operators who connect to a server that runs: each is answered by a thread of its own, so many at a time.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// How long accepting rests after an error, such as descriptors having run out.
pub(crate) const REST: Duration = Duration::from_millis(20);

/// A caller that is being answered.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers those who come, for as long as they do. One more than `callers_max` is closed at once.
pub(crate) fn answer_each<S: Send + 'static>(
    incoming: impl Iterator<Item = io::Result<S>>,
    (thread_name, callers_max): (&str, usize),
    answer: impl Fn(S) + Clone + Send + 'static,
) {
    let callers = Arc::new(AtomicUsize::new(0));
    for caller in incoming {
        let Ok(caller) = caller else {
            thread::park_timeout(REST);
            continue;
        };
        let is_full = callers.fetch_add(1, Ordering::Relaxed) >= callers_max;
        let open = Open(Arc::clone(&callers));
        if is_full {
            continue;
        }
        let answer = answer.clone();
        let run = move || {
            let _open = open;
            answer(caller);
        };
        // Without a thread the caller is closed; there may be one for the next.
        let _ = thread::Builder::new().name(thread_name.into()).spawn(run);
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
            // Until the test drops its end.
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
}
