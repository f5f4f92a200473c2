//! Lines for operators. A thread that writes to a terminal or a pipe may block. So workers leave lines here, and the
//! owner of the other end prints them. Lines that are not printed in time are lost. The next line reports how many;
//! workers never wait.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
    mpsc::{Receiver, SyncSender, sync_channel},
};

/// Lines that may wait to be printed.
const LINES_WAITING_MAX: usize = 64;

/// The place where a server's workers leave lines. Clones share it.
#[derive(Clone, Debug)]
pub struct Lines(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    sender: SyncSender<String>,
    /// Until it is taken.
    receiver: Mutex<Option<Receiver<String>>>,
    /// Lines lost since the last one that found room.
    lost: AtomicU64,
}

impl Default for Lines {
    fn default() -> Self {
        let (sender, receiver) = sync_channel(LINES_WAITING_MAX);
        Self(Arc::new(Ends { sender, receiver: Mutex::new(Some(receiver)), lost: AtomicU64::new(0) }))
    }
}

impl Lines {
    /// Leaves a line. False: it is lost, because too many wait.
    pub(crate) fn leave(&self, mut line: String) -> bool {
        let Ends { sender, lost, .. } = &*self.0;
        let before = lost.swap(0, Ordering::Relaxed);
        if before > 0 {
            line.push_str(&format!("; {before} lines before this one are lost"));
        }
        let is_left = sender.try_send(line).is_ok();
        if !is_left {
            lost.fetch_add(before + 1, Ordering::Relaxed);
        }
        is_left
    }

    /// Takes the other end; possible once.
    pub(crate) fn take(&self) -> Option<Receiver<String>> {
        self.0.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Rate limit for lines of one kind, with a count of those omitted since the last one. Used by one thread.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    next_ns: AtomicU64,
    left_out: AtomicU64,
}

impl Budget {
    /// The minimum time between two lines of a kind, except after [`Self::renew`].
    pub(crate) const EVERY_NS: u64 = 1_000_000_000;

    /// Leaves a line, unless there was one shortly before. False: it is omitted, or lost.
    pub(crate) fn tell(
        &self,
        lines: &Lines,
        (now_ns, every_ns): (u64, u64),
        line: impl FnOnce() -> String,
    ) -> bool {
        if now_ns < self.next_ns.load(Ordering::Relaxed) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.next_ns.store(now_ns.saturating_add(every_ns), Ordering::Relaxed);
        let mut line = line();
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            line.push_str(&format!("; {left_out} lines like this one were left out before"));
        }
        lines.leave(line)
    }

    /// Allows the next line at once.
    pub(crate) fn renew(&self) {
        self.next_ns.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_wait_and_how_many_were_lost_is_told_with_the_next_one() {
        let lines = Lines::default();
        let printed = lines.take().expect("nobody has it");
        assert!(lines.clone().take().is_none());
        let left = (0..LINES_WAITING_MAX + 3).filter(|number| lines.leave(number.to_string())).count();
        assert_eq!(left, LINES_WAITING_MAX);
        assert_eq!(printed.try_iter().count(), LINES_WAITING_MAX);
        assert!(lines.leave("next".into()) && lines.leave("last".into()));
        let found: Vec<String> = printed.try_iter().collect();
        assert_eq!(found, ["next; 3 lines before this one are lost", "last"]);
    }
}
