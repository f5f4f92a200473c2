//! Which messages of which session an exchange is asked for at a login, and what it means that it lets us in. Pure: no
//! socket, no clock.
//!
//! An exchange says the same to who asks for something it does not have and to who comes while somebody is logged in.
//! So a refusal is followed by a look: a login that asks for nothing, which is answered with the session there is and
//! how far it has come. Only that tells whether the exchange began anew.
//!
//! After a restart more may be asked for again than was lost, even everything, and a session that has begun anew under
//! its old name would have the first message too. So the first login asks for what comes behind the last message that
//! any client has had: who has that is the one that is known.

use weir_proto::soup::Name;

/// How a session is joined.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joining {
    is_look: bool,
    /// Since when every look has found the session and every login that asked for what comes next was refused.
    withheld_since_ns: Option<u64>,
    /// How far the session has to have come to be the one that is known, as long as that is not seen.
    unproven: Option<u64>,
}

/// What an accepted login means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// The session goes on where it was.
    On,
    /// It is the session that is known: what comes next is to be asked for.
    Proven,
    /// The session goes on, and so many messages of it cannot be had.
    Without(u64),
    /// The session is there and has come farther: what comes next is to be asked for again.
    Looked,
    /// It is another session, although it may have the same name.
    Anew,
}

impl Joining {
    /// The message `next` is wanted, and `heard` is the last one that is known to have been there. Zero: none is.
    pub(super) fn after(next: u64, heard: u64) -> Self {
        Self { unproven: (heard > 0 && heard >= next).then_some(heard + 1), ..Self::default() }
    }

    /// What to ask for of the session that is known, whose next message has this number.
    pub(super) fn wanted(&self, session: Option<Name<10>>, next: u64) -> (Name<10>, u64) {
        match (self.is_look, session) {
            (false, session) => (session.unwrap_or_default(), self.unproven.unwrap_or(next)),
            (true, _) => (Name::default(), 0),
        }
    }

    /// The login was refused.
    pub(super) fn refused(&mut self) {
        if self.is_look {
            // Who asks for nothing is refused when somebody else is logged in, or when nobody can.
            self.withheld_since_ns = None;
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
    ) -> Joined {
        let is_look = std::mem::take(&mut self.is_look);
        let since_ns = self.withheld_since_ns.take();
        let expected = known.filter(|(name, _)| name.eq_ignore_case(&session)).map(|(_, expected)| expected);
        if let (Some(has_come_to), Some(_)) = (self.unproven.take(), expected) {
            return if next < has_come_to { Joined::Anew } else { Joined::Proven };
        }
        match expected.and_then(|expected| next.checked_sub(expected)) {
            // Of its own messages it has fewer than we have heard.
            None => Joined::Anew,
            Some(0) => Joined::On,
            Some(missing) if !is_look => Joined::Without(missing),
            Some(missing) => {
                let since_ns = since_ns.unwrap_or(now_ns);
                if now_ns.saturating_sub(since_ns) > patience_ns {
                    return Joined::Without(missing);
                }
                self.withheld_since_ns = Some(since_ns);
                Joined::Looked
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
        assert_eq!(joining.accepted(known(7), (day(), 9), 1_000, PATIENCE_NS), Joined::Looked);
        assert_eq!(joining.wanted(Some(day()), 7), (day(), 7));
        assert_eq!(joining.accepted(known(7), (day(), 7), 1_001, PATIENCE_NS), Joined::On);
    }

    #[test]
    fn messages_are_given_up_only_after_the_free_seat_did_not_give_them_for_long() {
        let mut joining = Joining::default();
        for now_ns in [0, 10, 20, 30] {
            joining.refused();
            assert_eq!(joining.accepted(known(7), (day(), 9), now_ns, PATIENCE_NS), Joined::Looked);
        }
        // Somebody else was there meanwhile: the time begins anew.
        joining.refused();
        joining.refused();
        for now_ns in [40, 70] {
            joining.refused();
            assert_eq!(joining.accepted(known(7), (day(), 9), now_ns, PATIENCE_NS), Joined::Looked);
        }
        joining.refused();
        assert_eq!(joining.accepted(known(7), (day(), 9), 71, PATIENCE_NS), Joined::Without(2));
        assert_eq!(joining.wanted(Some(day()), 9), (day(), 9));
    }

    #[test]
    fn who_knows_nothing_asks_for_nothing() {
        assert_eq!(Joining::after(0, 0).wanted(None, 0), (Name::default(), 0));
        let accepted = Joining::after(0, 0).accepted(None, (day(), 7), 0, PATIENCE_NS);
        assert_eq!(accepted, Joined::Anew);
    }

    #[test]
    fn a_session_has_to_have_come_as_far_as_any_client_knows_before_it_is_asked_for_less() {
        let name = "NEXT".parse().expect("a name");
        for (found, is_look, joined) in [
            ((day(), 10), false, Joined::Proven),
            ((day(), 10), true, Joined::Proven),
            ((day(), 12), true, Joined::Proven),
            ((day(), 9), true, Joined::Anew),
            ((day(), 1), true, Joined::Anew),
            ((name, 10), true, Joined::Anew),
        ] {
            let mut joining = Joining::after(1, 9);
            assert_eq!(joining.wanted(Some(day()), 1), (day(), 10));
            if is_look {
                joining.refused();
                assert_eq!(joining.wanted(Some(day()), 1), (Name::default(), 0));
            }
            assert_eq!(joining.accepted(known(1), found, 0, PATIENCE_NS), joined, "{found:?}");
            assert_eq!(joining.wanted(Some(day()), 1), (day(), 1), "that is known now");
        }
        assert_eq!(Joining::after(10, 9).wanted(Some(day()), 10), (day(), 10));
        assert_eq!(Joining::after(10, 9).accepted(known(10), (day(), 10), 0, PATIENCE_NS), Joined::On);
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
                assert_eq!(joining.accepted(known(7), found, 0, PATIENCE_NS), Joined::Anew, "{found:?}");
            }
        }
        let same = "day".parse().expect("a name");
        assert_eq!(Joining::default().accepted(known(7), (same, 7), 0, PATIENCE_NS), Joined::On);
        assert_eq!(Joining::default().accepted(None, (day(), 7), 0, PATIENCE_NS), Joined::Anew);
        assert_eq!(Joining::default().accepted(known(7), (day(), 8), 0, PATIENCE_NS), Joined::Without(1));
    }
}
