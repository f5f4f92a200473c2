//! Epochs as in the kernel's block statistics: the first completion starts the timer, and the samples gathered when
//! it fires become the statistics. Between two epochs no timer runs, however long that takes.

/// The timer.
#[derive(Clone, Debug)]
pub struct Epoch {
    length_ns: u64,
    end_ns: Option<u64>,
}

impl Epoch {
    /// Creates it without a running epoch.
    pub fn new(length_ns: u64) -> Self {
        Self { length_ns, end_ns: None }
    }

    /// Whether an epoch has ended since the last call. If so, none is running.
    pub fn has_ended(&mut self, now_ns: u64) -> bool {
        let ended = self.end_ns.is_some_and(|end_ns| now_ns >= end_ns);
        if ended {
            self.end_ns = None;
        }
        ended
    }

    /// Notes a completion.
    pub fn note_completion(&mut self, now_ns: u64) {
        if self.end_ns.is_none() {
            self.end_ns = Some(now_ns.saturating_add(self.length_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_begins_with_a_completion_and_ends_once() {
        let mut epoch = Epoch::new(100);
        assert!(!epoch.has_ended(1_000));
        epoch.note_completion(1_000);
        epoch.note_completion(1_050);
        assert!(!epoch.has_ended(1_099));
        assert!(epoch.has_ended(1_100));
        assert!(!epoch.has_ended(9_000));
    }
}
