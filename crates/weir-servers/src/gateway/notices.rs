//! What people are told of upstream sessions: lines, and what there is to see of them. Each kind of line has a budget
//! of its own in each session, so that none takes another's place; what is left out is counted, and told with the next
//! line of its kind.

use std::{
    fmt,
    sync::{
        PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use weir_engine::time;
use weir_proto::{ouch::Outbound, soup::Name};

use super::{
    upstream::{Ended, Upstream},
    worker::Gateway,
};
use crate::orders::{Budget, Lines};

/// Between two lines that an upstream session still cannot be had.
const FAILING_EVERY_NS: u64 = 60 * Budget::EVERY_NS;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoticeKind {
    /// The session is lost.
    Lost,
    /// It cannot be had.
    Failing,
    /// It cannot be had before an operator does something.
    Uncounted,
    /// It is back.
    Back,
    /// Messages of it cannot be had any more.
    Gap,
    /// Orders are sent again.
    Resent,
    /// The exchange has begun another one.
    NewSession,
    /// Orders were too old to be sent again.
    Stale,
    /// More was executed of an order than was left.
    Overfill,
    /// Something was traded of an order that is not known.
    Unknown,
    /// A message cannot be read.
    Malformed,
}

impl NoticeKind {
    const COUNT: usize = Self::Malformed as usize + 1;

    fn every_ns(self) -> u64 {
        if matches!(self, Self::Failing | Self::Uncounted) { FAILING_EVERY_NS } else { Budget::EVERY_NS }
    }
}

/// Where lines are left. What concerns a session is called by its worker only.
#[derive(Debug)]
pub(super) struct Notices {
    lines: Lines,
    /// By upstream session and kind.
    budgets: Vec<[Budget; NoticeKind::COUNT]>,
    /// By upstream session: people were told that it is not there.
    is_missed: Vec<AtomicBool>,
}

impl Notices {
    pub(super) fn new(sessions: usize) -> Self {
        Self {
            lines: Lines::default(),
            budgets: (0..sessions).map(|_| Default::default()).collect(),
            is_missed: (0..sessions).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// What is told without a budget.
    pub(super) fn lines(&self) -> &Lines {
        &self.lines
    }

    /// Leaves a line about an upstream session, unless there was one of its kind just before. False: there is none.
    fn tell(&self, session: usize, kind: NoticeKind, now_ns: u64, line: impl FnOnce() -> String) -> bool {
        let Some(budget) = self.budgets.get(session).map(|kinds| &kinds[kind as usize]) else { return false };
        budget.tell(&self.lines, (now_ns, kind.every_ns()), line)
    }

    /// The session is not there, or is again. Says whether people were told that it is not.
    fn miss(&self, session: usize, is_missed: bool) -> bool {
        let Some(missed) = self.is_missed.get(session) else { return false };
        if !is_missed {
            // When it is lost the next time that is news at once.
            self.budgets[session][NoticeKind::Failing as usize].renew();
        }
        missed.swap(is_missed, Ordering::Relaxed)
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
    pub(super) fn notice(&self, upstream: &Upstream, kind: NoticeKind, what: fmt::Arguments<'_>) {
        let (common, worker) = (&self.common, self.worker);
        let line = || format!("venue {}, worker {worker}: {what}", common.venues[upstream.venue]);
        if !common.notices.tell(upstream.index, kind, time::now().as_nanos(), line) {
            self.counters.lines_left_out.add(1);
        }
    }

    /// Shows whether orders can be sent by a session.
    pub(super) fn show(&self, upstream: &Upstream) {
        let was_open = self.common.open[upstream.index].swap(upstream.is_up(), Ordering::Relaxed);
        match (was_open, upstream.is_up()) {
            (false, true) => self.counters.upstreams_open.add(1),
            (true, false) => {
                self.counters.upstreams_open.set(self.counters.upstreams_open.get() - 1);
                self.counters.upstreams_lost.add(1);
            }
            _ => {}
        }
    }

    /// Keeps for people why a session is not there, and tells them.
    pub(super) fn tell_trouble(&self, upstream: &Upstream, ended: &Ended, was_up: bool) {
        {
            let text =
                format!("venue {}, worker {}: {ended}", self.common.venues[upstream.venue], self.worker);
            let mut troubles = self.common.troubles.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = troubles.get_mut(upstream.index) {
                *place = Some(text);
            }
        }
        if matches!(ended, Ended::Proven | Ended::Measured | Ended::Unmeasured) {
            // That is how a session that goes on is joined after a restart.
            return;
        }
        self.common.notices.miss(upstream.index, true);
        if was_up {
            self.notice(upstream, NoticeKind::Lost, format_args!("the session is lost: {ended}"));
        } else {
            let what = format_args!("there is no session: {ended}; the gateway goes on trying");
            let is_uncounted = matches!(ended, Ended::Uncounted);
            let kind = if is_uncounted { NoticeKind::Uncounted } else { NoticeKind::Failing };
            self.notice(upstream, kind, what);
        }
    }

    /// Tells people that a session is there again, and how many messages without an answer are sent again in it.
    pub(super) fn tell_up(&self, upstream: &Upstream, again: u64) {
        if self.common.notices.miss(upstream.index, false) {
            self.notice(upstream, NoticeKind::Back, format_args!("the session is back"));
        }
        if again > 0 {
            let what = format_args!("{again} orders, cancels and changes without an answer are sent again");
            self.notice(upstream, NoticeKind::Resent, what);
        }
    }

    /// Tells people that a session goes on behind messages that it does not give any more.
    pub(super) fn tell_gap(&self, upstream: &Upstream, messages: u64, (session, next): (Name<10>, u64)) {
        let what = format_args!(
            "{messages} messages are missing: of session {session} the exchange gives what comes from {next} on, and \
             what it said before is not known"
        );
        self.notice(upstream, NoticeKind::Gap, what);
    }

    /// Tells people that an exchange has said something that is no message.
    #[cold]
    pub(super) fn tell_malformed(&self, upstream: &Upstream, sequence: u64, payload: &[u8]) {
        let Err(error) = Outbound::decode(payload) else { return };
        let what = format_args!("message {sequence} of the exchange is passed over: {error}");
        self.notice(upstream, NoticeKind::Malformed, what);
    }

    /// Tells people that something was traded, or is not any more, of an order that is not known. Nobody else hears it.
    #[cold]
    pub(super) fn tell_unknown(&self, upstream: &Upstream, message: &Outbound) {
        match message {
            Outbound::Executed(executed) => {
                let (order, shares, trade) =
                    (executed.user_ref_num, executed.quantity, executed.match_number);
                let what = format_args!(
                    "an execution of {shares} shares of order {order}, which is not known (trade {trade}): the journal \
                     has it, and no client"
                );
                self.notice(upstream, NoticeKind::Unknown, what);
            }
            Outbound::BrokenTrade(broken) => {
                let (order, trade) = (broken.user_ref_num, broken.match_number);
                let what = format_args!(
                    "trade {trade} of order {order}, which is not known, is broken: the journal has it, and no client"
                );
                self.notice(upstream, NoticeKind::Unknown, what);
            }
            _ => {}
        }
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
    fn each_kind_of_each_session_has_a_line_a_second_and_what_is_left_out_is_told() {
        let notices = Notices::new(2);
        let lines = notices.lines().take().expect("nobody has it");
        let told = [
            (0, NoticeKind::Lost, 5),
            (0, NoticeKind::Lost, 5 + Budget::EVERY_NS - 1),
            (0, NoticeKind::Lost, 5 + Budget::EVERY_NS - 1),
            (0, NoticeKind::NewSession, 6),
            (1, NoticeKind::Lost, 6),
            (0, NoticeKind::Lost, 5 + Budget::EVERY_NS),
            (2, NoticeKind::Lost, 7),
        ]
        .map(|(session, kind, now_ns)| {
            notices.tell(session, kind, now_ns, || format!("{session}: {kind:?} at {now_ns}"))
        });
        assert_eq!(told, [true, false, false, true, true, true, false]);
        let found: Vec<String> = lines.try_iter().collect();
        assert_eq!(
            found,
            [
                "0: Lost at 5",
                "0: NewSession at 6",
                "1: Lost at 6",
                "0: Lost at 1000000005; 2 lines like this one were left out before"
            ]
        );
    }

    #[test]
    fn that_a_session_cannot_be_had_is_told_once_a_minute_and_at_once_when_it_is_lost_again() {
        let notices = Notices::new(1);
        let tell = |now_ns| notices.tell(0, NoticeKind::Failing, now_ns, String::new);
        assert!(!notices.miss(0, true), "nobody was told before");
        assert_eq!([tell(1), tell(2), tell(FAILING_EVERY_NS)], [true, false, false]);
        assert!(notices.miss(0, true));
        assert!(!tell(FAILING_EVERY_NS));
        assert!(notices.miss(0, false) && !notices.miss(0, false));
        assert!(tell(3));
    }
}
