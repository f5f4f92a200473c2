//! Operator information about upstream sessions: events, and their current state. Each kind of event has a separate
//! rate limit in each session, so that none displaces another; omitted events are counted, and the next one of the
//! kind reports their number.

use std::{
    fmt,
    sync::{
        PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use weir_engine::time;
use weir_proto::{
    ouch::{DecodeError, Outbound},
    soup::Name,
};

use super::{
    upstream::{Ended, Upstream},
    upstream_session::{End, Why},
    worker::Gateway,
};
use crate::orders::{Budgets, Event, EventKind, Events};

/// The destination of events. Methods for a session are called only by its worker.
#[derive(Debug)]
pub(super) struct Notices {
    events: Events,
    /// Rate limits by upstream session.
    budgets: Vec<Budgets>,
    /// By upstream session: whether its loss was reported.
    is_missed: Vec<AtomicBool>,
}

impl Notices {
    pub(super) fn new(sessions: usize) -> Self {
        Self {
            events: Events::default(),
            budgets: (0..sessions).map(|_| Budgets::default()).collect(),
            is_missed: (0..sessions).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Events without a rate limit.
    pub(super) fn events(&self) -> &Events {
        &self.events
    }

    /// Leaves an event about an upstream session, unless there was one of its kind shortly before. False: it is left
    /// out.
    fn tell(&self, session: usize, kind: EventKind, now_ns: u64, event: impl FnOnce() -> Event) -> bool {
        let Some(budgets) = self.budgets.get(session) else { return false };
        budgets.of(kind).tell(&self.events, (now_ns, kind.pace()), event)
    }

    /// Records that the session is lost, or back. Returns whether its loss was reported.
    fn miss(&self, session: usize, is_missed: bool) -> bool {
        let Some(missed) = self.is_missed.get(session) else { return false };
        if !is_missed {
            // The next loss is reported at once.
            self.budgets[session].of(EventKind::VenueUnavailable).renew();
        }
        missed.swap(is_missed, Ordering::Relaxed)
    }
}

/// The sessions of an exchange, one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct Begun {
    /// The current one.
    pub(super) session: Option<Name<10>>,
    /// How often it differed from the previous one, since the start.
    pub(super) times_anew: u64,
    /// Orders that expired because of that.
    pub(super) expired: u64,
}

impl Gateway {
    /// Leaves an event about an upstream session.
    pub(super) fn notice(&self, upstream: &Upstream, kind: EventKind, what: fmt::Arguments<'_>) {
        let (common, worker) = (&self.common, self.worker);
        let event =
            || Event::new(kind, what.to_string()).at_venue(&common.venues[upstream.venue]).at_worker(worker);
        if !common.notices.tell(upstream.index, kind, time::now().as_nanos(), event) {
            self.counters.lines_left_out.add(1);
        }
    }

    /// Shows whether a session accepts orders.
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

    /// Stores why a session is unavailable, and reports it.
    pub(super) fn tell_trouble(&self, upstream: &Upstream, ended: &Ended, was_up: bool) {
        {
            let text =
                format!("venue {}, worker {}: {ended}", self.common.venues[upstream.venue], self.worker);
            let mut troubles = self.common.troubles.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = troubles.get_mut(upstream.index) {
                *place = Some(text);
            }
        }
        if let Ended::Session(End::Proven | End::Measured | End::Unmeasured) = ended {
            // This is the normal way to rejoin a continuing session after a restart.
            return;
        }
        self.common.notices.miss(upstream.index, true);
        if was_up {
            self.notice(upstream, EventKind::VenueLost, format_args!("the session is lost: {ended}"));
        } else {
            let what = format_args!("there is no session: {ended}; the gateway goes on trying");
            let is_uncounted = matches!(ended, Ended::Session(End::Uncounted));
            let kind = if is_uncounted { EventKind::VenueUncounted } else { EventKind::VenueUnavailable };
            self.notice(upstream, kind, what);
        }
    }

    /// Reports that a session is back, and how many unanswered messages are resent in it.
    pub(super) fn tell_up(&self, upstream: &Upstream, again: u64) {
        if self.common.notices.miss(upstream.index, false) {
            self.notice(upstream, EventKind::VenueBack, format_args!("the session is back"));
        }
        if again > 0 {
            let what = format_args!("{again} orders, cancels and changes without an answer are sent again");
            self.notice(upstream, EventKind::OrdersResent, what);
        }
    }

    /// Reports that a session continues after messages that it no longer provides.
    pub(super) fn tell_gap(&self, upstream: &Upstream, messages: u64, (session, next): (Name<10>, u64)) {
        let what = format_args!(
            "{messages} messages are missing: of session {session} the exchange gives what comes from {next} on, and \
             what it said before is not known"
        );
        self.notice(upstream, EventKind::MessagesMissing, what);
    }

    /// Reports that an exchange has begun another session, and that orders of the former one have expired. Clients of
    /// all of them cannot be informed if a journal has failed.
    pub(super) fn tell_anew(
        &self,
        upstream: &Upstream,
        (session, before): (Name<10>, Name<10>),
        expired: usize,
        all: usize,
    ) {
        let rest = if expired == all {
            ""
        } else {
            ", and others do when the gateway is started again: a journal has failed"
        };
        let what = format_args!(
            "the exchange has begun session {session} after {before}; {expired} orders expired{rest}"
        );
        self.notice(upstream, EventKind::VenueSessionNew, what);
    }

    /// Reports that this many orders are refused because they were not sent, or not resent.
    pub(super) fn tell_refused(&self, upstream: &Upstream, why: Why, refused: usize) {
        match why {
            Why::SessionOver | Why::Cancelled | Why::GivenUp => {}
            Why::Stale if refused == 0 => {}
            Why::Stale => self.notice(
                upstream,
                EventKind::OrdersStale,
                format_args!(
                    "{refused} orders were too old or are to be cancelled, and are refused instead of sent again"
                ),
            ),
            Why::Late => self.notice(
                upstream,
                EventKind::OrdersStale,
                format_args!("{refused} orders were too old when they could be sent, and are refused"),
            ),
        }
    }

    /// Reports a malformed message of an exchange.
    #[cold]
    pub(super) fn tell_malformed(&self, upstream: &Upstream, sequence: u64, error: DecodeError) {
        let what = format_args!("message {sequence} of the exchange is passed over: {error}");
        self.notice(upstream, EventKind::VenueMessageMalformed, what);
    }

    /// Reports that an unknown order was traded, or that such a trade was broken. No client is informed.
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
                self.notice(upstream, EventKind::TradeUnknown, what);
            }
            Outbound::BrokenTrade(broken) => {
                let (order, trade) = (broken.user_ref_num, broken.match_number);
                let what = format_args!(
                    "trade {trade} of order {order}, which is not known, is broken: the journal has it, and no client"
                );
                self.notice(upstream, EventKind::TradeUnknown, what);
            }
            _ => {}
        }
    }

    /// Shows the current session of an exchange, and how many orders expired if it differs from the previous one.
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
    use crate::orders::Pace;

    #[test]
    fn each_kind_of_each_session_has_a_line_a_second_and_what_is_left_out_is_told() {
        let notices = Notices::new(2);
        let events = notices.events().take().expect("nobody has it");
        let told = [
            (0, EventKind::VenueLost, 5),
            (0, EventKind::VenueLost, 4 + Pace::SECOND_NS),
            (0, EventKind::VenueLost, 4 + Pace::SECOND_NS),
            (0, EventKind::VenueSessionNew, 6),
            (1, EventKind::VenueLost, 6),
            (0, EventKind::VenueLost, 5 + Pace::SECOND_NS),
            (2, EventKind::VenueLost, 7),
        ]
        .map(|(session, kind, now_ns)| {
            notices
                .tell(session, kind, now_ns, || Event::new(kind, format!("{session}: {kind:?} at {now_ns}")))
        });
        assert_eq!(told, [true, false, false, true, true, true, false]);
        let found: Vec<String> = events.try_iter().map(|event| event.to_string()).collect();
        assert_eq!(
            found,
            [
                "0: VenueLost at 5",
                "0: VenueSessionNew at 6",
                "1: VenueLost at 6",
                "0: VenueLost at 1000000005; 2 lines like this one were left out before"
            ]
        );
    }

    #[test]
    fn that_a_session_cannot_be_had_is_told_once_a_minute_and_at_once_when_it_is_lost_again() {
        let notices = Notices::new(1);
        let tell = |now_ns| {
            let kind = EventKind::VenueUnavailable;
            notices.tell(0, kind, now_ns, || Event::new(kind, ""))
        };
        assert!(!notices.miss(0, true), "nobody was told before");
        assert_eq!([tell(1), tell(2), tell(59 * Pace::SECOND_NS)], [true, false, false]);
        assert!(notices.miss(0, true));
        assert!(!tell(59 * Pace::SECOND_NS));
        assert!(notices.miss(0, false) && !notices.miss(0, false));
        assert!(tell(3));
    }
}
