//! What people are told of upstream sessions: lines, and what there is to see of them. A worker that writes to a
//! terminal or a pipe waits for it, so workers leave lines here and whoever has the other end prints them. What is not
//! printed in time is lost, and never waited for.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
    mpsc::{Receiver, SyncSender, sync_channel},
};

use weir_proto::soup::Name;

use super::{application::Gateway, upstream::Upstream};

/// Lines that may wait to be printed.
const WAITING_MAX: usize = 64;

/// Between two lines about one upstream session.
const EVERY_NS: u64 = 1_000_000_000;

/// Where lines are left.
#[derive(Debug)]
pub(super) struct Notices {
    lines: SyncSender<String>,
    /// Its other end, until somebody takes it.
    receiver: Mutex<Option<Receiver<String>>>,
    /// By upstream session: when the next line may be left.
    next_ns: Vec<AtomicU64>,
}

impl Notices {
    pub(super) fn new(sessions: usize) -> Self {
        let (lines, receiver) = sync_channel(WAITING_MAX);
        let next_ns = (0..sessions).map(|_| AtomicU64::new(0)).collect();
        Self { lines, receiver: Mutex::new(Some(receiver)), next_ns }
    }

    /// Leaves a line.
    pub(super) fn say(&self, line: String) {
        // One too many is lost.
        let _ = self.lines.try_send(line);
    }

    /// Leaves a line about an upstream session, unless there was one just before. Called by its worker only.
    pub(super) fn tell(&self, session: usize, now_ns: u64, line: impl FnOnce() -> String) {
        let Some(next_ns) = self.next_ns.get(session) else { return };
        if now_ns >= next_ns.load(Ordering::Relaxed) {
            next_ns.store(now_ns.saturating_add(EVERY_NS), Ordering::Relaxed);
            self.say(line());
        }
    }

    /// The other end; once.
    pub(super) fn take(&self) -> Option<Receiver<String>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The sessions that an exchange has begun, one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun {
    /// The one there is.
    pub(super) session: Option<Name<10>>,
    /// How often it was another than the one before, since the start.
    pub(super) times_anew: u64,
    /// Orders that expired with that.
    pub(super) expired: u64,
}

impl Gateway {
    /// Tells people something about an upstream session.
    pub(super) fn notice(&self, upstream: &Upstream, what: &str) {
        let (common, worker) = (&self.common, self.worker);
        let line = || format!("venue {}, worker {worker}: {what}", common.venues[upstream.venue]);
        common.notices.tell(upstream.index, self.store.now().as_nanos(), line);
    }

    /// Shows which session of an exchange there is, and how many orders expired if it is another than before.
    pub(super) fn show_session(&self, upstream: &Upstream, session: Name<10>, expired: Option<u64>) {
        let mut all = self.common.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(begun) = all.get_mut(upstream.index) else { return };
        begun.session = Some(session);
        begun.times_anew += u64::from(expired.is_some());
        begun.expired += expired.unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_and_session_and_no_more_than_may_wait() {
        let notices = Notices::new(2);
        let lines = notices.take().expect("nobody has it");
        assert!(notices.take().is_none());
        for (session, now_ns) in [(0, 5), (0, 5 + EVERY_NS - 1), (1, 6), (0, 5 + EVERY_NS), (2, 7)] {
            notices.tell(session, now_ns, || format!("{session} at {now_ns}"));
        }
        let found: Vec<String> = lines.try_iter().collect();
        assert_eq!(found, ["0 at 5".to_owned(), "1 at 6".to_owned(), format!("0 at {}", 5 + EVERY_NS)]);
        for second in 10..10 + 2 * WAITING_MAX as u64 {
            notices.tell(0, second * EVERY_NS, || second.to_string());
        }
        assert_eq!(lines.try_iter().count(), WAITING_MAX);
    }
}
