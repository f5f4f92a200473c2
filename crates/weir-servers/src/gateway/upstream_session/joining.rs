//! Decides which messages of which session to request from an exchange at a login, and what an accepted login means.
//! Pure: no socket, no clock.
//!
//! An exchange gives the same refusal to a request for something it does not have and to a login while somebody else
//! is logged in. So a refusal is followed by a probe: a login that requests nothing, which is answered with the
//! current session and its position. Only that shows whether the exchange began anew. The protocol lets an exchange
//! answer a probe with its last message, and many answer with the next one. So a session that has the last message
//! that was received, and seems to have no further one, may be the known one: the next message is requested again. If
//! that is refused although the probe was not, and the next probe has the same answer, the exchange has begun anew. The
//! gateway logs out after a probe, so that the probe is not what the next login is refused for.
//!
//! After a restart more messages may be requested than were lost, even all of them. A session that has begun anew
//! under its old name would have the first message too. So the first login requests the messages after the last one
//! that any client has received: a session that has that message is the known one. Between that login and the one
//! that requests earlier messages the exchange may also begin anew. So until the last message that any client has
//! received has come again, nothing is sent in the session, and a session that stops sending before that is
//! questioned again. A session that has just begun cannot send that message: it is an answer to an order.
//!
//! Answers to the account query are in the stream like any other message, and come again with it. The state of the
//! unanswered orders depends on which one is the answer to this connection's query, and its content does not show
//! that: the number in it may be the same, the time stamp is from another clock, an exchange may send heartbeats in
//! the middle of a replay, and it is unknown how many queries a killed gateway has left behind. An exchange does have
//! to send its messages in order. So an answer after every message that existed before the query is ours, and a probe
//! shows how many those are. If an older answer may come and orders depend on it, a probe precedes the login; if
//! orders depend on it only later, the connection is closed for a probe. If every query has been answered none is
//! pending, and the next answer is ours. An exchange that refuses probes leaves the question open: then only an
//! answer to an order that was sent after the query shows that everything older has come. A probe is also refused
//! while somebody else is logged in. If the login after it is refused as well, that was the reason; if not, the
//! connection is closed once to probe again, in case somebody was logged in and has left since.

use std::cmp::Ordering;

use weir_proto::soup::Name;

/// How a session is joined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joining {
    is_look: bool,
    /// Since when every probe has found the session and every login for the next messages was refused.
    withheld_since_ns: Option<u64>,
    proof: Proof,
    /// The next login is a probe: it requests only the session's position.
    is_measure: bool,
    /// This connection's query is unanswered.
    is_query_pending: bool,
    older: Older,
    /// Connections that were closed because a probe had been refused, since one was accepted.
    left_untold: u32,
}

/// At most this many connections are closed for that: an exchange may refuse every probe.
const LEFT_UNTOLD_MAX: u32 = 1;

/// The state of answers to the queries of earlier connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Older {
    /// All of them have been heard.
    #[default]
    Heard,
    /// Some may come.
    Owed,
    /// They come before this message, which was the session's next one at the probe. If an exchange reports its last
    /// message there, nothing was behind it.
    Before(u64),
    /// Some may come, and a probe was refused.
    Untold,
}

/// The query that an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryAnswer {
    /// The query of this connection: everything older has come.
    Own,
    /// An earlier query.
    Older,
    /// Unknown.
    Unsure,
}

/// Whether the session is the known one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Proof {
    /// It is the known one.
    #[default]
    Given,
    /// It must have this message, the last one that any client has received; the messages after it are requested.
    Questioned { heard: u64, beats_max: u32 },
    /// It has that message. Either earlier messages are requested at the next login, or that login was accepted and
    /// the message has not come yet. `beats` counts the heartbeats since its last message.
    Awaited { heard: u64, beats_max: u32, is_joined: bool, beats: u32 },
}

/// This many consecutive heartbeats without a message make a session doubtful. The number doubles each time that it
/// still proves itself: an exchange may be slow to read the messages that it sends again.
const DOUBTFUL_BEATS: u32 = 2;
/// The maximum of that number.
const DOUBTFUL_BEATS_MAX: u32 = 64;

/// The session may be another one than the known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubtful;

/// The meaning of an accepted login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginOutcome {
    /// The session continues where it was.
    Continued,
    /// It is the known session: the next messages have to be requested.
    Proven,
    /// The session continues, and this many of its messages are not available.
    Gap(u64),
    /// The session exists and is further ahead: the next messages have to be requested again.
    Probed,
    /// The session's position is known: the next messages have to be requested.
    Measured,
    /// It is another session, even if it has the same name.
    NewSession,
}

impl Joining {
    /// `next` is the message to request, and `heard` the last one that is known to exist. Zero: there is none.
    pub(super) fn after(next: u64, heard: u64) -> Self {
        let is_known = heard == 0 || heard < next;
        let questioned = Proof::Questioned { heard, beats_max: DOUBTFUL_BEATS };
        Self { proof: if is_known { Proof::Given } else { questioned }, ..Self::default() }
    }

    /// Queries of earlier starts may have unheard answers.
    pub(super) fn with_older_answers(self) -> Self {
        Self { older: Older::Owed, ..self }
    }

    /// Starts a connection; `depends`: whether it matters which answers have come.
    pub(super) fn begin(&mut self, depends: bool) {
        self.is_measure = depends && self.older == Older::Owed && !self.is_look;
    }

    /// Handles an answer to an account query, with this message number.
    pub(super) fn answered(&mut self, sequence: u64) -> QueryAnswer {
        match self.older {
            Older::Before(next) if sequence < next => QueryAnswer::Older,
            Older::Owed | Older::Untold => QueryAnswer::Unsure,
            Older::Heard | Older::Before(_) => {
                self.note_all_heard();
                QueryAnswer::Own
            }
        }
    }

    /// Records that all messages from before this connection's query have come.
    pub(super) fn note_all_heard(&mut self) {
        (self.older, self.is_query_pending) = (Older::Heard, false);
    }

    /// Whether all messages from before this connection's query have come.
    pub(super) fn has_heard_all(&self) -> bool {
        self.older == Older::Heard && !self.is_query_pending
    }

    /// Called when orders depend on that, it is unknown, and the session has nothing else to send: returns whether to
    /// close the connection, so that the next one probes.
    pub(super) fn leaves_to_look(&mut self) -> bool {
        match self.older {
            Older::Owed => true,
            Older::Untold if self.left_untold < LEFT_UNTOLD_MAX => {
                self.left_untold += 1;
                true
            }
            Older::Heard | Older::Before(_) | Older::Untold => false,
        }
    }

    /// The request for the known session, whose next message has this number.
    pub(super) fn wanted(&self, session: Option<Name<10>>, next: u64) -> (Name<10>, u64) {
        match self.proof {
            _ if self.is_look || self.is_measure => (Name::default(), 0),
            Proof::Questioned { heard, .. } => (session.unwrap_or_default(), heard + 1),
            Proof::Given | Proof::Awaited { .. } => (session.unwrap_or_default(), next),
        }
    }

    /// Whether the session has not yet proved that it is the known one: nothing is sent in it.
    pub(super) fn is_open(&self) -> bool {
        self.proof != Proof::Given
    }

    /// Records a message of the session; `is_answer`: it answers an order.
    pub(super) fn heard(&mut self, sequence: u64, is_answer: bool) -> Result<(), Doubtful> {
        if let Proof::Awaited { heard, beats, .. } = &mut self.proof {
            *beats = 0;
            match sequence.cmp(heard) {
                Ordering::Less => {}
                Ordering::Equal if !is_answer => return Err(Doubtful),
                Ordering::Equal | Ordering::Greater => self.proof = Proof::Given,
            }
        }
        Ok(())
    }

    /// Records a heartbeat.
    pub(super) fn beaten(&mut self) -> Result<(), Doubtful> {
        if let Proof::Awaited { beats_max, is_joined: true, beats, .. } = &mut self.proof {
            *beats += 1;
            if *beats >= *beats_max {
                *beats_max = beats_max.saturating_mul(2).min(DOUBTFUL_BEATS_MAX);
                return Err(Doubtful);
            }
        }
        Ok(())
    }

    /// Records that the connection is gone. A session that has not proved itself on it is questioned again.
    pub(super) fn left(&mut self) {
        if std::mem::take(&mut self.is_query_pending) {
            self.older = Older::Owed;
        }
        if let Proof::Awaited { heard, beats_max, is_joined: true, .. } = self.proof {
            self.proof = Proof::Questioned { heard, beats_max };
        }
    }

    /// Records that the login was refused.
    pub(super) fn refused(&mut self) {
        if std::mem::take(&mut self.is_measure) {
            self.older = Older::Untold;
            return;
        }
        if self.is_look {
            // A login that requests nothing is refused only if somebody else is logged in, or if nobody can log in.
            self.withheld_since_ns = None;
        } else if self.older == Older::Untold {
            // So the previous probe may have been refused because of another login.
            self.older = Older::Owed;
        }
        self.is_look = !self.is_look;
    }

    /// Records that the login was accepted into this session, at this message. Messages that are withheld for longer
    /// than `patience_ns` while nobody else is logged in are given up.
    pub(super) fn accepted(
        &mut self,
        known: Option<(Name<10>, u64)>,
        (session, next): (Name<10>, u64),
        now_ns: u64,
        patience_ns: u64,
    ) -> LoginOutcome {
        let (is_look, is_measure) = (std::mem::take(&mut self.is_look), std::mem::take(&mut self.is_measure));
        if is_look || is_measure {
            self.left_untold = 0;
        }
        let expected = known.filter(|(name, _)| name.eq_ignore_case(&session)).map(|(_, expected)| expected);
        if (is_look || is_measure) && expected.is_some() && self.older != Older::Heard {
            self.older = Older::Before(next);
        }
        if is_measure && expected.is_some() {
            return self.measured(next);
        }
        let joined = self.joined(expected, is_look, next, (now_ns, patience_ns));
        match joined {
            LoginOutcome::NewSession => (self.older, self.is_query_pending) = (Older::Heard, true),
            LoginOutcome::Continued | LoginOutcome::Gap(_) => self.is_query_pending = true,
            LoginOutcome::Proven | LoginOutcome::Probed | LoginOutcome::Measured => {}
        }
        joined
    }

    /// Records the session's position. A session that is not far enough may be another one, but an exchange may
    /// report the last message or the next one: the login for that message decides.
    fn measured(&mut self, next: u64) -> LoginOutcome {
        match self.proof {
            Proof::Questioned { heard, beats_max } if next > heard => {
                self.proof = Proof::Awaited { heard, beats_max, is_joined: false, beats: 0 };
                LoginOutcome::Proven
            }
            _ => LoginOutcome::Measured,
        }
    }

    /// The meaning of being let in at message `next` of a session in which `expected` was requested; none: it is
    /// another session.
    fn joined(
        &mut self,
        expected: Option<u64>,
        is_look: bool,
        next: u64,
        (now_ns, patience_ns): (u64, u64),
    ) -> LoginOutcome {
        let is_first_look = is_look && self.withheld_since_ns.is_none();
        let since_ns = self.withheld_since_ns.take().unwrap_or(now_ns);
        let is_patient = now_ns.saturating_sub(since_ns) <= patience_ns;
        let joined = match (self.proof, expected) {
            (_, None) => LoginOutcome::NewSession,
            (Proof::Questioned { heard, beats_max }, Some(_)) if next > heard => {
                self.proof = Proof::Awaited { heard, beats_max, is_joined: false, beats: 0 };
                return LoginOutcome::Proven;
            }
            (Proof::Questioned { heard, .. }, Some(_)) if is_first_look && next == heard => {
                LoginOutcome::Probed
            }
            (Proof::Questioned { .. }, Some(_)) => LoginOutcome::NewSession,
            // A probe returns the session's position, and any other login the requested message.
            (Proof::Awaited { heard, .. }, Some(_)) if is_look && next < heard => LoginOutcome::NewSession,
            (_, Some(expected)) => continued(expected, next, is_first_look, is_look && is_patient),
        };
        if joined == LoginOutcome::Probed {
            self.withheld_since_ns = Some(since_ns);
        }
        match (joined, &mut self.proof) {
            (LoginOutcome::NewSession, proof) => *proof = Proof::Given,
            (LoginOutcome::Continued | LoginOutcome::Gap(_), Proof::Awaited { heard, .. })
                if next > *heard =>
            {
                self.proof = Proof::Given
            }
            (LoginOutcome::Continued | LoginOutcome::Gap(_), Proof::Awaited { is_joined, .. }) => {
                *is_joined = true
            }
            _ => {}
        }
        joined
    }
}

/// The meaning of being let in at message `next` of a session with the known name, in which `expected` is the next
/// message.
fn continued(expected: u64, next: u64, is_first_look: bool, is_to_ask_again: bool) -> LoginOutcome {
    match next.checked_sub(expected) {
        // The last message that was received may be what the exchange has said.
        None if is_first_look && next + 1 == expected => LoginOutcome::Probed,
        // It has fewer messages than were received from it.
        None => LoginOutcome::NewSession,
        Some(0) => LoginOutcome::Continued,
        Some(_) if is_to_ask_again => LoginOutcome::Probed,
        Some(missing) => LoginOutcome::Gap(missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE_NS: u64 = 30;

    fn day() -> Name<10> {
        "DAY".parse().expect("a name")
    }

    fn known(next: u64) -> Option<(Name<10>, u64)> {
        Some((day(), next))
    }

    #[test]
    fn a_taken_seat_is_waited_for_and_nothing_is_skipped() {
        let mut joining = Joining::default();
        for _ in 0..100 {
            assert_eq!(joining.wanted(Some(day()), 7), (day(), 7));
            joining.refused();
            assert_eq!(joining.wanted(Some(day()), 7), (Name::default(), 0));
            joining.refused();
        }
        // The login becomes free just when it probes, long after the first refusal.
        joining.refused();
        assert_eq!(joining.accepted(known(7), (day(), 9), 1_000, PATIENCE_NS), LoginOutcome::Probed);
        assert_eq!(joining.wanted(Some(day()), 7), (day(), 7));
        assert_eq!(joining.accepted(known(7), (day(), 7), 1_001, PATIENCE_NS), LoginOutcome::Continued);
    }

    #[test]
    fn messages_are_given_up_only_after_the_free_seat_did_not_give_them_for_long() {
        let mut joining = Joining::default();
        for now_ns in [0, 10, 20, 30] {
            joining.refused();
            assert_eq!(joining.accepted(known(7), (day(), 9), now_ns, PATIENCE_NS), LoginOutcome::Probed);
        }
        // Somebody else was logged in meanwhile: the time starts again.
        joining.refused();
        joining.refused();
        for now_ns in [40, 70] {
            joining.refused();
            assert_eq!(joining.accepted(known(7), (day(), 9), now_ns, PATIENCE_NS), LoginOutcome::Probed);
        }
        joining.refused();
        assert_eq!(joining.accepted(known(7), (day(), 9), 71, PATIENCE_NS), LoginOutcome::Gap(2));
        assert_eq!(joining.wanted(Some(day()), 9), (day(), 9));
    }

    #[test]
    fn an_exchange_that_answers_a_look_with_its_last_message_is_asked_for_the_next_one_again() {
        // The seat was taken, and nothing has come since.
        let mut joining = Joining::default();
        joining.refused();
        assert_eq!(joining.accepted(known(7), (day(), 6), 0, PATIENCE_NS), LoginOutcome::Probed);
        assert_eq!(joining.wanted(Some(day()), 7), (day(), 7));
        assert_eq!(joining.accepted(known(7), (day(), 7), 1, PATIENCE_NS), LoginOutcome::Continued);
        // The same before the session has proved itself: its last message is the last one that a client has.
        let mut joining = Joining::after(1, 9);
        joining.refused();
        assert_eq!(joining.accepted(known(1), (day(), 9), 0, PATIENCE_NS), LoginOutcome::Probed);
        assert_eq!((joining.is_open(), joining.wanted(Some(day()), 1)), (true, (day(), 10)));
        assert_eq!(joining.accepted(known(1), (day(), 10), 1, PATIENCE_NS), LoginOutcome::Proven);
        // A login itself is answered with the requested message: this one was not.
        let mut joining = Joining::default();
        assert_eq!(joining.accepted(known(7), (day(), 6), 0, PATIENCE_NS), LoginOutcome::NewSession);
    }

    #[test]
    fn a_session_that_has_just_one_message_less_is_another_one_if_the_free_seat_does_not_give_the_next() {
        for (joining, next, found) in [(Joining::default(), 7, 6), (Joining::after(1, 9), 1, 9)] {
            let mut joining = joining;
            let look = |joining: &mut Joining| joining.accepted(known(next), (day(), found), 0, PATIENCE_NS);
            joining.refused();
            assert_eq!(look(&mut joining), LoginOutcome::Probed);
            // Somebody else was logged in meanwhile: the seat was not free.
            joining.refused();
            joining.refused();
            joining.refused();
            assert_eq!(look(&mut joining), LoginOutcome::Probed);
            joining.refused();
            assert_eq!(look(&mut joining), LoginOutcome::NewSession);
            assert!(!joining.is_open());
        }
    }

    /// As after a start that knows the session, whose next message is the seventh.
    fn with_older_answers() -> Joining {
        let mut joining = Joining::after(7, 6).with_older_answers();
        joining.begin(true);
        assert_eq!(joining.wanted(Some(day()), 7), (Name::default(), 0));
        joining
    }

    #[test]
    fn an_answer_is_ours_when_it_comes_behind_everything_that_a_look_has_found() {
        // Some exchanges report the last message, and some the next one.
        for found in [6, 7, 9] {
            let mut joining = with_older_answers();
            assert_eq!(joining.accepted(known(7), (day(), found), 0, PATIENCE_NS), LoginOutcome::Measured);
            joining.left();
            joining.begin(true);
            assert_eq!(joining.wanted(Some(day()), 7), (day(), 7));
            assert_eq!(joining.accepted(known(7), (day(), 7), 0, PATIENCE_NS), LoginOutcome::Continued);
            for sequence in 7..found {
                assert_eq!(joining.answered(sequence), QueryAnswer::Older, "{sequence} of {found}");
                assert!(!joining.has_heard_all());
            }
            assert_eq!(joining.answered(found.max(7)), QueryAnswer::Own, "{found}");
            assert!(joining.has_heard_all());
            joining.left();
            joining.begin(true);
            assert_eq!(joining.wanted(Some(day()), 10), (day(), 10), "every query has had its answer");
        }
    }

    #[test]
    fn a_query_without_an_answer_makes_the_next_connection_look_where_it_matters() {
        let mut joining = Joining::default();
        assert_eq!(joining.accepted(None, (day(), 1), 0, PATIENCE_NS), LoginOutcome::NewSession);
        assert_eq!(joining.answered(1), QueryAnswer::Own);
        joining.left();
        joining.begin(true);
        assert_eq!(joining.accepted(known(2), (day(), 2), 0, PATIENCE_NS), LoginOutcome::Continued);
        joining.left();
        for (depends, wanted) in [(false, (day(), 2)), (true, (Name::default(), 0))] {
            joining.begin(depends);
            assert_eq!(joining.wanted(Some(day()), 2), wanted);
        }
        joining.begin(false);
        assert_eq!(joining.accepted(known(2), (day(), 2), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert_eq!((joining.answered(2), joining.has_heard_all()), (QueryAnswer::Unsure, false));
        joining.note_all_heard();
        assert!(joining.has_heard_all());
    }

    #[test]
    fn an_exchange_that_refuses_looks_is_joined_all_the_same_and_nothing_is_taken_for_sure() {
        let mut joining = with_older_answers();
        joining.left();
        joining.refused();
        joining.begin(true);
        assert_eq!(joining.wanted(Some(day()), 7), (day(), 7));
        assert_eq!(joining.accepted(known(7), (day(), 7), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert_eq!((joining.answered(7), joining.has_heard_all()), (QueryAnswer::Unsure, false));
        joining.left();
        joining.begin(true);
        assert_eq!(joining.wanted(Some(day()), 8), (Name::default(), 0), "that was another connection");
    }

    #[test]
    fn a_connection_that_does_not_tell_what_has_come_is_left_for_a_look_once_orders_depend_on_it() {
        let mut joining = Joining::after(7, 6).with_older_answers();
        joining.begin(false);
        assert_eq!(joining.wanted(Some(day()), 7), (day(), 7), "none does yet");
        assert_eq!(joining.accepted(known(7), (day(), 7), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert_eq!((joining.answered(7), joining.leaves_to_look()), (QueryAnswer::Unsure, true));
        joining.left();
        joining.begin(true);
        assert_eq!(joining.wanted(Some(day()), 8), (Name::default(), 0));
        assert_eq!(joining.accepted(known(8), (day(), 8), 0, PATIENCE_NS), LoginOutcome::Measured);
        joining.left();
        joining.begin(true);
        assert_eq!(joining.accepted(known(8), (day(), 8), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert_eq!((joining.answered(8), joining.leaves_to_look()), (QueryAnswer::Own, false));
        assert!(joining.has_heard_all());
    }

    /// A probe is refused, and the login after it is accepted.
    fn refuse_look(joining: &mut Joining, next: u64) {
        joining.begin(true);
        assert_eq!(joining.wanted(Some(day()), next), (Name::default(), 0));
        joining.left();
        joining.refused();
        joining.begin(true);
        assert_eq!(joining.accepted(known(next), (day(), next), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert_eq!(joining.answered(next), QueryAnswer::Unsure);
    }

    #[test]
    fn a_refused_look_is_tried_once_more_and_the_exchange_is_taken_at_its_word_then() {
        let mut joining = Joining::after(7, 6).with_older_answers();
        refuse_look(&mut joining, 7);
        assert!(joining.leaves_to_look(), "somebody may have been there and have left since");
        joining.left();
        for next in [8, 9] {
            refuse_look(&mut joining, next);
            assert!(!joining.leaves_to_look(), "it refuses all of them");
            joining.left();
        }
        // A login is accepted, and the connection is lost before the query is answered.
        joining.begin(true);
        assert_eq!(joining.accepted(known(10), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Measured);
        joining.left();
        joining.begin(true);
        assert_eq!(joining.accepted(known(10), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Continued);
        joining.left();
        refuse_look(&mut joining, 10);
        assert!(joining.leaves_to_look(), "it does not refuse all of them");
    }

    #[test]
    fn who_finds_the_seat_taken_looks_when_it_is_free() {
        let mut joining = with_older_answers();
        // The probe is refused, the login after it, and the probe after that.
        for wanted in [(day(), 7), (Name::default(), 0), (Name::default(), 0)] {
            joining.left();
            joining.refused();
            joining.begin(true);
            assert_eq!(joining.wanted(Some(day()), 7), wanted);
        }
        assert_eq!(joining.accepted(known(7), (day(), 7), 0, PATIENCE_NS), LoginOutcome::Measured);
        joining.left();
        joining.begin(true);
        assert_eq!(joining.accepted(known(7), (day(), 7), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert_eq!((joining.answered(7), joining.has_heard_all()), (QueryAnswer::Own, true));
    }

    #[test]
    fn a_look_that_has_come_far_enough_proves_a_session_and_one_that_has_not_decides_nothing() {
        let other = "NEXT".parse().expect("a name");
        for (found, joined) in [
            ((day(), 10), LoginOutcome::Proven),
            ((day(), 9), LoginOutcome::Measured),
            ((other, 10), LoginOutcome::NewSession),
        ] {
            let mut joining = Joining::after(1, 9).with_older_answers();
            joining.begin(true);
            assert_eq!(joining.accepted(known(1), found, 0, PATIENCE_NS), joined, "{found:?}");
        }
    }

    #[test]
    fn who_knows_nothing_asks_for_nothing() {
        assert_eq!(Joining::after(0, 0).wanted(None, 0), (Name::default(), 0));
        let accepted = Joining::after(0, 0).accepted(None, (day(), 7), 0, PATIENCE_NS);
        assert_eq!(accepted, LoginOutcome::NewSession);
    }

    #[test]
    fn a_session_has_to_have_come_as_far_as_any_client_knows_before_it_is_asked_for_less() {
        let name = "NEXT".parse().expect("a name");
        for (found, is_look, joined) in [
            ((day(), 10), false, LoginOutcome::Proven),
            ((day(), 10), true, LoginOutcome::Proven),
            ((day(), 12), true, LoginOutcome::Proven),
            ((day(), 8), true, LoginOutcome::NewSession),
            ((day(), 1), true, LoginOutcome::NewSession),
            ((name, 9), true, LoginOutcome::NewSession),
            ((name, 10), true, LoginOutcome::NewSession),
        ] {
            let mut joining = Joining::after(1, 9);
            assert_eq!(joining.wanted(Some(day()), 1), (day(), 10));
            if is_look {
                joining.refused();
                assert_eq!(joining.wanted(Some(day()), 1), (Name::default(), 0));
            }
            assert_eq!(joining.accepted(known(1), found, 0, PATIENCE_NS), joined, "{found:?}");
            assert_eq!(joining.wanted(Some(day()), 1), (day(), 1), "that is known now");
            assert_eq!(joining.is_open(), joined == LoginOutcome::Proven);
        }
        assert_eq!(Joining::after(10, 9).wanted(Some(day()), 10), (day(), 10));
        assert_eq!(
            Joining::after(10, 9).accepted(known(10), (day(), 10), 0, PATIENCE_NS),
            LoginOutcome::Continued
        );
    }

    /// It has proved itself by having the tenth message, and was let in at the first one.
    fn let_in_to_the_first() -> Joining {
        let mut joining = Joining::after(1, 9);
        assert_eq!(joining.accepted(known(1), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Proven);
        joining.left();
        assert_eq!(joining.wanted(Some(day()), 1), (day(), 1));
        assert_eq!(joining.accepted(known(1), (day(), 1), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert!(joining.is_open(), "a session that has begun since has a first message too");
        joining
    }

    #[test]
    fn a_session_is_the_known_one_when_the_last_message_that_a_client_had_has_come_again() {
        let mut joining = let_in_to_the_first();
        for sequence in 1..9 {
            assert_eq!((joining.heard(sequence, sequence > 1), joining.is_open()), (Ok(()), true));
            assert_eq!(joining.beaten(), Ok(()), "it takes its time");
        }
        assert_eq!((joining.heard(9, true), joining.is_open()), (Ok(()), false));
        for _ in 0..100 {
            assert_eq!(joining.beaten(), Ok(()));
        }
        joining.left();
        assert_eq!(joining.wanted(Some(day()), 10), (day(), 10));
    }

    #[test]
    fn a_session_that_has_nothing_to_say_before_is_questioned_anew() {
        let mut joining = let_in_to_the_first();
        assert_eq!(joining.heard(1, false), Ok(()));
        assert_eq!((joining.beaten(), joining.beaten()), (Ok(()), Err(Doubtful)));
        joining.left();
        assert_eq!(joining.wanted(Some(day()), 2), (day(), 10));
        joining.refused();
        assert_eq!(joining.accepted(known(2), (day(), 2), 0, PATIENCE_NS), LoginOutcome::NewSession);
        assert!(!joining.is_open());
    }

    #[test]
    fn one_that_is_slow_proves_itself_again_and_has_more_time_each_time() {
        let mut joining = let_in_to_the_first();
        for beats in [2, 4, 8, 16, 32, 64, 64] {
            assert!((1..beats).all(|_| joining.beaten() == Ok(())), "{beats}");
            assert_eq!(joining.beaten(), Err(Doubtful));
            joining.left();
            assert_eq!(joining.wanted(Some(day()), 1), (day(), 10));
            assert_eq!(joining.accepted(known(1), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Proven);
            joining.left();
            assert_eq!(joining.accepted(known(1), (day(), 1), 0, PATIENCE_NS), LoginOutcome::Continued);
        }
        (1..=9).for_each(|sequence| assert_eq!(joining.heard(sequence, true), Ok(())));
        assert!(!joining.is_open());
    }

    #[test]
    fn what_is_no_answer_to_an_order_proves_nothing() {
        let mut joining = let_in_to_the_first();
        (1..9).for_each(|sequence| assert_eq!(joining.heard(sequence, true), Ok(())));
        assert_eq!((joining.heard(9, false), joining.is_open()), (Err(Doubtful), true));
    }

    #[test]
    fn a_session_that_was_lost_before_it_was_let_in_to_less_is_seen_by_a_look() {
        for (found, joined) in [
            (1, LoginOutcome::NewSession),
            (8, LoginOutcome::NewSession),
            (9, LoginOutcome::Probed),
            (10, LoginOutcome::Probed),
        ] {
            let mut joining = Joining::after(2, 9);
            assert_eq!(joining.accepted(known(2), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Proven);
            joining.left();
            joining.refused();
            assert_eq!(joining.accepted(known(2), (day(), found), 0, PATIENCE_NS), joined, "{found}");
            assert_eq!(joining.is_open(), joined == LoginOutcome::Probed);
        }
        // The messages that it no longer provides are missing, and it is far enough.
        let mut joining = Joining::after(2, 9);
        assert_eq!(joining.accepted(known(2), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Proven);
        assert_eq!(joining.accepted(known(2), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Gap(8));
        assert!(!joining.is_open());
    }

    #[test]
    fn a_session_that_has_come_less_far_is_another_one_whatever_its_name() {
        let other = "NEXT".parse().expect("a name");
        for is_look in [false, true] {
            for found in [(day(), 5), (day(), 1), (other, 1), (other, 6), (other, 7), (other, 100)] {
                let mut joining = Joining::default();
                if is_look {
                    joining.refused();
                }
                assert_eq!(
                    joining.accepted(known(7), found, 0, PATIENCE_NS),
                    LoginOutcome::NewSession,
                    "{found:?}"
                );
            }
        }
        let same = "day".parse().expect("a name");
        assert_eq!(Joining::default().accepted(known(7), (same, 7), 0, PATIENCE_NS), LoginOutcome::Continued);
        assert_eq!(Joining::default().accepted(None, (day(), 7), 0, PATIENCE_NS), LoginOutcome::NewSession);
        assert_eq!(Joining::default().accepted(known(7), (day(), 8), 0, PATIENCE_NS), LoginOutcome::Gap(1));
    }
}
