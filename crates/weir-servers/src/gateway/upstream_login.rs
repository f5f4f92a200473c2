//! Which messages of which session an exchange is asked for at a login, and what it means that it lets us in. Pure: no
//! socket, no clock.
//!
//! An exchange says the same to who asks for something it does not have and to who comes while somebody is logged in.
//! So a refusal is followed by a look: a login that asks for nothing, which is answered with the session there is and
//! how far it has come. Only that tells whether the exchange began anew.
//!
//! After a restart more may be asked for again than was lost, even everything, and a session that has begun anew under
//! its old name would have the first message too. So the first login asks for what comes behind the last message that
//! any client has had: who has that is the one that is known. Between that login and the one that asks for less the
//! exchange may begin anew too. So until the last message that any client has had has come again, nothing is sent in
//! the session, and one that has nothing more to say before is questioned anew. A session that has just begun cannot
//! give that message: it is an answer to an order.
//!
//! Answers to the account query are in the stream like anything else, and come again with it. Which one is the
//! answer to the query of this connection decides what is known of the orders without an answer, and nothing in it
//! says so: the number in it may be the same, the clock is another one, an exchange may beat in the middle of what
//! it says again, and how many queries a killed gateway has left behind nobody knows. What an exchange has to do is
//! to say things in order. So an answer behind everything that there was before the query is ours, and how much that
//! is a look tells. Where an older answer may come and orders depend on it, the login is preceded by a look;
//! where they come to depend on it later, the connection is left for one. Where every query has had its
//! answer none is owed, and the next one is ours. An exchange that refuses looks leaves it open: then only an
//! answer to an order that was sent behind the query shows that everything older has come. A look that finds
//! somebody logged in is refused too. If the login behind it is refused as well, that was it; if not, the
//! connection is left once to look again, should that have been somebody who has left since.

use std::cmp::Ordering;

use weir_proto::soup::Name;

/// How a session is joined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joining {
    is_look: bool,
    /// Since when every look has found the session and every login that asked for what comes next was refused.
    withheld_since_ns: Option<u64>,
    proof: Proof,
    /// The next login asks how far the session has come, and for nothing else.
    is_measure: bool,
    /// The query of this connection has no answer yet.
    is_query_pending: bool,
    older: Older,
    /// Connections that were left because a look had been refused, since one was let in.
    left_untold: u32,
}

/// More connections are not left for that: an exchange may refuse every look.
const LEFT_UNTOLD_MAX: u32 = 1;

/// What is known of answers to the queries of earlier connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Older {
    /// There is none that was not heard.
    #[default]
    Heard,
    /// Some may come.
    Owed,
    /// They come before this message, which is the next one that the session had to say when it was looked at. Where
    /// an exchange means its last message by that, nothing was behind it.
    Before(u64),
    /// Some may come, and a look was refused.
    Untold,
}

/// Whose an answer to the account query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryAnswer {
    /// It answers the query of this connection: everything older has come.
    Own,
    /// That of an earlier one.
    Older,
    /// Nobody knows.
    Unsure,
}

/// What is known of whether the session is the one that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Proof {
    /// It is.
    #[default]
    Given,
    /// It has to have this message, the last one that any client has had, and what comes behind it is asked for.
    Questioned { heard: u64, beats_max: u32 },
    /// It has that, and is asked for less at the next login, or was let in to that and has not said it yet. `beats` are
    /// the heartbeats since its last message.
    Awaited { heard: u64, beats_max: u32, is_joined: bool, beats: u32 },
}

/// So many heartbeats without a message between them make a session doubtful. Twice as many each time it proves itself
/// all the same: an exchange may take its time to read what it has to say again.
const DOUBTFUL_BEATS: u32 = 2;
/// More heartbeats are never waited for.
const DOUBTFUL_BEATS_MAX: u32 = 64;

/// The session may be another one than the one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Doubtful;

/// What an accepted login means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoginOutcome {
    /// The session goes on where it was.
    Continued,
    /// It is the session that is known: what comes next is to be asked for.
    Proven,
    /// The session goes on, and so many messages of it cannot be had.
    Gap(u64),
    /// The session is there and has come farther: what comes next is to be asked for again.
    Probed,
    /// It is known how far the session has come: what comes next is to be asked for.
    Measured,
    /// It is another session, although it may have the same name.
    NewSession,
}

impl Joining {
    /// The message `next` is wanted, and `heard` is the last one that is known to have been there. Zero: none is.
    pub(super) fn after(next: u64, heard: u64) -> Self {
        let is_known = heard == 0 || heard < next;
        let questioned = Proof::Questioned { heard, beats_max: DOUBTFUL_BEATS };
        Self { proof: if is_known { Proof::Given } else { questioned }, ..Self::default() }
    }

    /// Queries of earlier starts may have answers that nobody has heard.
    pub(super) fn with_older_answers(self) -> Self {
        Self { older: Older::Owed, ..self }
    }

    /// A connection begins; `depends`: it matters which answers have come.
    pub(super) fn begin(&mut self, depends: bool) {
        self.is_measure = depends && self.older == Older::Owed && !self.is_look;
    }

    /// The session has answered an account query with this message.
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

    /// Everything that the session had to say before the query of this connection has come.
    pub(super) fn note_all_heard(&mut self) {
        (self.older, self.is_query_pending) = (Older::Heard, false);
    }

    /// Whether that is known.
    pub(super) fn has_heard_all(&self) -> bool {
        self.older == Older::Heard && !self.is_query_pending
    }

    /// Orders depend on that, it is not known, and the session has nothing else to say: whether the
    /// connection is to be left, so that the next one looks.
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

    /// What to ask for of the session that is known, whose next message has this number.
    pub(super) fn wanted(&self, session: Option<Name<10>>, next: u64) -> (Name<10>, u64) {
        match self.proof {
            _ if self.is_look || self.is_measure => (Name::default(), 0),
            Proof::Questioned { heard, .. } => (session.unwrap_or_default(), heard + 1),
            Proof::Given | Proof::Awaited { .. } => (session.unwrap_or_default(), next),
        }
    }

    /// Whether the session has not shown yet that it is the one that is known: nothing is sent in it.
    pub(super) fn is_open(&self) -> bool {
        self.proof != Proof::Given
    }

    /// The session has said this; `is_answer`: to an order.
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

    /// The session has nothing to say.
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

    /// The connection is gone. A session that has not proved itself on it is questioned anew.
    pub(super) fn left(&mut self) {
        if std::mem::take(&mut self.is_query_pending) {
            self.older = Older::Owed;
        }
        if let Proof::Awaited { heard, beats_max, is_joined: true, .. } = self.proof {
            self.proof = Proof::Questioned { heard, beats_max };
        }
    }

    /// The login was refused.
    pub(super) fn refused(&mut self) {
        if std::mem::take(&mut self.is_measure) {
            self.older = Older::Untold;
            return;
        }
        if self.is_look {
            // Who asks for nothing is refused when somebody else is logged in, or when nobody can.
            self.withheld_since_ns = None;
        } else if self.older == Older::Untold {
            // So the look before may have been refused because of somebody who is logged in.
            self.older = Older::Owed;
        }
        self.is_look = !self.is_look;
    }

    /// The login was accepted into this session, at this message. What is withheld for longer than `patience_ns` while
    /// nobody else is logged in is given up.
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

    /// It is known how far the session has come. A session that may be another one is one that has not come far enough,
    /// but an exchange may count the last message or the next one: that is left to the login that asks for it.
    fn measured(&mut self, next: u64) -> LoginOutcome {
        match self.proof {
            Proof::Questioned { heard, beats_max } if next > heard => {
                self.proof = Proof::Awaited { heard, beats_max, is_joined: false, beats: 0 };
                LoginOutcome::Proven
            }
            _ => LoginOutcome::Measured,
        }
    }

    /// What it means to be let in to the message `next` of a session in which `expected` is wanted; none: it is another
    /// session.
    fn joined(
        &mut self,
        expected: Option<u64>,
        is_look: bool,
        next: u64,
        (now_ns, patience_ns): (u64, u64),
    ) -> LoginOutcome {
        let since_ns = self.withheld_since_ns.take();
        let joined = match (self.proof, expected) {
            (_, None) => LoginOutcome::NewSession,
            (Proof::Questioned { heard, beats_max }, Some(_)) if next > heard => {
                self.proof = Proof::Awaited { heard, beats_max, is_joined: false, beats: 0 };
                return LoginOutcome::Proven;
            }
            (Proof::Questioned { .. }, Some(_)) => LoginOutcome::NewSession,
            // A look says how far the session has come, and any other login what was asked for.
            (Proof::Awaited { heard, .. }, Some(_)) if is_look && next <= heard => LoginOutcome::NewSession,
            (_, Some(expected)) => self.continued(
                next.checked_sub(expected),
                is_look,
                since_ns.unwrap_or(now_ns),
                (now_ns, patience_ns),
            ),
        };
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

    /// A session of the same name lacks so many of the messages that are wanted; none: it has not come that far.
    fn continued(
        &mut self,
        missing: Option<u64>,
        is_look: bool,
        since_ns: u64,
        (now_ns, patience_ns): (u64, u64),
    ) -> LoginOutcome {
        match missing {
            // Of its own messages it has fewer than we have heard.
            None => LoginOutcome::NewSession,
            Some(0) => LoginOutcome::Continued,
            Some(missing) if !is_look => LoginOutcome::Gap(missing),
            Some(missing) => {
                if now_ns.saturating_sub(since_ns) > patience_ns {
                    return LoginOutcome::Gap(missing);
                }
                self.withheld_since_ns = Some(since_ns);
                LoginOutcome::Probed
            }
        }
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
        // The seat gets free just when it looks, long after the first refusal.
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
        // Somebody else was there meanwhile: the time begins anew.
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

    /// As after a start that knows the session, whose next message is the seventh.
    fn with_older_answers() -> Joining {
        let mut joining = Joining::after(7, 6).with_older_answers();
        joining.begin(true);
        assert_eq!(joining.wanted(Some(day()), 7), (Name::default(), 0));
        joining
    }

    #[test]
    fn an_answer_is_ours_when_it_comes_behind_everything_that_a_look_has_found() {
        // Some exchanges tell the last message there is, and some the next one.
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

    /// A look is refused, and the login behind it is let in.
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
        // One is let in, and the connection behind it is lost before the query has an answer.
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
        // The look is refused, the login behind it, and the look behind that.
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
            ((day(), 9), true, LoginOutcome::NewSession),
            ((day(), 1), true, LoginOutcome::NewSession),
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

    /// It has proved itself by having the tenth message, and was let in to the first one.
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
        for (found, joined) in
            [(9, LoginOutcome::NewSession), (10, LoginOutcome::Probed), (1, LoginOutcome::NewSession)]
        {
            let mut joining = Joining::after(2, 9);
            assert_eq!(joining.accepted(known(2), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Proven);
            joining.left();
            joining.refused();
            assert_eq!(joining.accepted(known(2), (day(), found), 0, PATIENCE_NS), joined, "{found}");
            assert_eq!(joining.is_open(), joined == LoginOutcome::Probed);
        }
        // What it does not give any more is missing, and it has come far enough.
        let mut joining = Joining::after(2, 9);
        assert_eq!(joining.accepted(known(2), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Proven);
        assert_eq!(joining.accepted(known(2), (day(), 10), 0, PATIENCE_NS), LoginOutcome::Gap(8));
        assert!(!joining.is_open());
    }

    #[test]
    fn a_session_that_has_come_less_far_is_another_one_whatever_its_name() {
        let other = "NEXT".parse().expect("a name");
        for is_look in [false, true] {
            for found in [(day(), 6), (day(), 1), (other, 1), (other, 7), (other, 100)] {
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
