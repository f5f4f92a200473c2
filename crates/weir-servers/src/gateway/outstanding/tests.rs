//! Tests of outstanding orders through sends, answers, lost connections and restarts.

use weir_proto::ouch::{Cancel, Inbound, inbound_user_ref_num, outbound_user_ref_num};

use super::{withdrawn::WAIT_MIN_NS, *};
use crate::{
    gateway::test_messages::{accepted, entered as enter},
    orders::ClientMessage,
};

const LIMITS: OutstandingLimits = OutstandingLimits {
    open_max: 4,
    unanswered_max: 3,
    when_full: WhenFull::Refuse,
    resend_age_max_ns: 1_000,
};

/// The same from bytes.
impl OutstandingOrders {
    fn assign(&mut self, origin: Origin, raw: &[u8], out: &mut Vec<u8>) -> Sending {
        self.assign_upstream_number(origin, &ClientMessage::decode(raw).expect("a message"), out)
    }

    fn restore_bytes(&mut self, number: u32, origin: Origin, raw: &[u8], until_ns: u64) -> bool {
        self.restore(number, origin, &ClientMessage::decode(raw).expect("a message"), until_ns)
    }

    fn restore_answer_bytes(&mut self, account: AccountId, raw: &[u8]) {
        self.restore_answer(account, &Outbound::decode(raw).expect("a message").0);
    }
}

fn origin(account: u32, user_ref_num: u32) -> Origin {
    Origin { account: AccountId(account), user_ref_num, home: 0, received_ns: 0 }
}

fn replace(original: u32, number: u32, quantity: u32) -> Vec<u8> {
    let mut bytes = vec![b' '; 40];
    bytes[0] = b'U';
    bytes[1..5].copy_from_slice(&original.to_be_bytes());
    bytes[5..9].copy_from_slice(&number.to_be_bytes());
    bytes[9..13].copy_from_slice(&quantity.to_be_bytes());
    bytes[38..40].copy_from_slice(&[0, 0]);
    bytes
}

fn cancel(user_ref_num: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    Inbound::Cancel(Cancel { user_ref_num, quantity: 0 }).encode(&mut bytes);
    bytes
}

fn reduced(kind: u8, user_ref_num: u32, by: u32) -> Vec<u8> {
    let mut bytes = vec![
        0;
        match kind {
            b'C' => 18,
            b'J' => 29,
            _ => 36,
        }
    ];
    bytes[0] = kind;
    bytes[9..13].copy_from_slice(&user_ref_num.to_be_bytes());
    bytes[13..17].copy_from_slice(&by.to_be_bytes());
    bytes
}

fn replaced(original: u32, number: u32, quantity: u32) -> Vec<u8> {
    let mut bytes = vec![0; 68];
    bytes[0] = b'U';
    bytes[9..13].copy_from_slice(&original.to_be_bytes());
    bytes[13..17].copy_from_slice(&number.to_be_bytes());
    bytes[18..22].copy_from_slice(&quantity.to_be_bytes());
    bytes[51] = b'L';
    bytes
}

fn number_at(message: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(message[at..at + 4].try_into().expect("four bytes"))
}

fn answer(outstanding: &mut OutstandingOrders, mut raw: Vec<u8>) -> Option<(Response, Vec<u8>)> {
    let mut message = Outbound::decode(&raw).expect("a message").0;
    let response = outstanding.apply_response(&mut message, &mut raw)?;
    assert_eq!(Outbound::decode(&raw).expect("a message").0, message, "both have the client's numbers");
    Some((response, raw))
}

/// Nothing is withheld.
fn resend(outstanding: &mut OutstandingOrders, now_ns: u64, out: &mut Vec<u8>) -> u64 {
    outstanding.resend(now_ns, |_, _| None, out)
}

#[test]
fn what_has_waited_too_long_to_be_sent_ends_with_what_would_replace_it() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    // The second one was received later; the third replaces the first, and is young too.
    for (number, received_ns, raw) in
        [(1, 0, enter(1, 100)), (2, 500, enter(2, 100)), (3, 500, replace(1, 3, 50))]
    {
        let origin = Origin { received_ns, ..origin(0, number) };
        assert_eq!(outstanding.assign(origin, &raw, &mut out), Sending::Numbered(number));
    }
    assert_eq!(
        (outstanding.wait_max_ns(), outstanding.first_wait_until_ns(0)),
        (WAIT_MIN_NS, Some(WAIT_MIN_NS))
    );
    assert!(outstanding.withdraw_late(0, WAIT_MIN_NS).is_empty());
    assert!(outstanding.withdraw_late(1, WAIT_MIN_NS + 1).is_empty(), "a connection has had it");
    let ended = outstanding.withdraw_late(0, WAIT_MIN_NS + 1);
    let numbers: Vec<u32> = ended.iter().map(|expiry| expiry.origin.user_ref_num).collect();
    assert_eq!(numbers, [3, 1]);
    assert_eq!([1, 2, 3].map(|number| outstanding.awaits(number)), [false, true, false]);
    assert!(!outstanding.withhold_late(0, WAIT_MIN_NS + 500));
    assert!(outstanding.withhold_late(0, WAIT_MIN_NS + 501));
    assert_eq!((outstanding.awaits(2), outstanding.has_stale()), (false, true));
}

#[test]
fn numbers_are_exchanged_on_the_way_out_and_back() {
    let mut outstanding = OutstandingOrders::new(50, LIMITS);
    let mut out = Vec::new();
    assert_eq!(outstanding.assign(origin(3, 7), &enter(7, 100), &mut out), Sending::Numbered(50));
    assert_eq!(out[..3], [0, 48, b'U']);
    assert_eq!(inbound_user_ref_num(&out[3..]), Some(50));
    let (found, raw) = answer(&mut outstanding, accepted(50, b'L')).expect("it is known");
    assert_eq!((found.origin.account, outbound_user_ref_num(&raw)), (AccountId(3), Some(7)));
    assert_eq!(answer(&mut outstanding, accepted(51, b'L')), None, "nobody sent that");
}

#[test]
fn an_order_is_open_until_its_last_share_is_gone() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
    answer(&mut outstanding, accepted(1, b'L'));
    answer(&mut outstanding, reduced(b'E', 1, 60));
    assert_eq!(outstanding.open(), 1);
    assert_eq!(outstanding.assign(origin(0, 1), &cancel(1), &mut out), Sending::Passed(1));
    answer(&mut outstanding, reduced(b'C', 1, 40));
    assert_eq!(outstanding.open(), 0);
    assert_eq!(outstanding.assign(origin(0, 1), &cancel(1), &mut out), Sending::Unknown);
}

#[test]
fn a_rejected_or_dead_order_is_not_open() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    for number in 1..=2 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut out);
    }
    answer(&mut outstanding, accepted(1, b'D'));
    answer(&mut outstanding, reduced(b'J', 2, 0));
    assert_eq!((outstanding.open(), outstanding.unanswered()), (0, 0));
}

#[test]
fn what_was_not_answered_is_sent_again_with_its_number() {
    let mut outstanding = OutstandingOrders::new(10, LIMITS);
    let mut sent = Vec::new();
    for number in 1..=3 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut sent);
    }
    assert!(outstanding.is_full());
    answer(&mut outstanding, accepted(10, b'L'));
    assert!(!outstanding.is_full());
    let mut again = Vec::new();
    assert_eq!(resend(&mut outstanding, 0, &mut again), 2);
    assert_eq!(again, sent[sent.len() / 3..]);
    // An answer to a number implies those before it.
    answer(&mut outstanding, accepted(12, b'L'));
    assert_eq!(outstanding.unanswered(), 0);
}

#[test]
fn an_order_has_the_time_it_was_handed_to_the_connection_until_its_first_answer() {
    let mut outstanding = OutstandingOrders::new(10, LIMITS);
    let mut out = Vec::new();
    for number in 1..=3 {
        let origin = Origin { received_ns: u64::from(number), ..origin(0, number) };
        outstanding.assign(origin, &enter(number, 100), &mut out);
    }
    let mut received = Vec::new();
    outstanding.stamp(11, 12, 77, |received_ns| received.push(received_ns));
    assert_eq!(received, [2, 3]);
    let sent_ns = |found: Option<(Response, Vec<u8>)>| found.expect("it is known").0.sent_ns;
    assert_eq!(sent_ns(answer(&mut outstanding, accepted(10, b'L'))), 0, "it was not handed over");
    assert_eq!(sent_ns(answer(&mut outstanding, accepted(11, b'L'))), 77);
    assert_eq!(sent_ns(answer(&mut outstanding, reduced(b'E', 11, 1))), 0, "that is not the first");
}

#[test]
fn a_replace_moves_the_order_to_its_new_number() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    outstanding.assign(origin(0, 11), &enter(11, 100), &mut out);
    answer(&mut outstanding, accepted(1, b'L'));
    out.clear();
    assert_eq!(outstanding.assign(origin(0, 12), &replace(11, 12, 50), &mut out), Sending::Numbered(2));
    assert_eq!((number_at(&out[3..], 1), number_at(&out[3..], 5)), (1, 2));
    let (_, raw) = answer(&mut outstanding, replaced(1, 2, 50)).expect("it is known");
    assert_eq!((number_at(&raw, 9), number_at(&raw, 13)), (11, 12));
    assert_eq!(outstanding.open(), 1);
    answer(&mut outstanding, reduced(b'E', 2, 50));
    assert_eq!(outstanding.open(), 0);
}

#[test]
fn a_replace_the_exchange_ignored_is_forgotten_when_a_later_order_is_answered() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
    outstanding.assign(origin(0, 2), &replace(1, 2, 50), &mut out);
    outstanding.assign(origin(0, 3), &enter(3, 100), &mut out);
    answer(&mut outstanding, accepted(3, b'L'));
    assert_eq!((outstanding.open(), outstanding.unanswered()), (2, 0));
}

#[test]
fn one_open_order_too_many_is_refused_or_the_oldest_is_forgotten() {
    let mut out = Vec::new();
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    for number in 1..=4 {
        assert_eq!(
            outstanding.assign(origin(0, number), &enter(number, 100), &mut out),
            Sending::Numbered(number)
        );
    }
    assert_eq!(outstanding.assign(origin(0, 5), &enter(5, 100), &mut out), Sending::Full);
    let mut outstanding =
        OutstandingOrders::new(1, OutstandingLimits { when_full: WhenFull::ForgetOldest, ..LIMITS });
    for number in 1..=9 {
        assert_eq!(
            outstanding.assign(origin(0, number), &enter(number, 100), &mut out),
            Sending::Numbered(number)
        );
    }
    assert_eq!(outstanding.open(), 4);
    assert_eq!(answer(&mut outstanding, accepted(5, b'L')), None);
    assert!(answer(&mut outstanding, accepted(6, b'L')).is_some());
}

#[test]
fn an_old_open_order_outlives_many_that_ended() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
    answer(&mut outstanding, accepted(1, b'L'));
    for number in 2..=20 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut out);
        answer(&mut outstanding, accepted(number, b'D'));
    }
    assert_eq!(outstanding.open(), 1);
    assert!(answer(&mut outstanding, reduced(b'E', 1, 100)).is_some());
    assert_eq!(outstanding.open(), 0);
}

#[test]
fn every_open_order_of_an_account_is_cancelled_in_order() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    for (account, number) in [(0, 1), (1, 1), (0, 2)] {
        outstanding.assign(origin(account, number), &enter(number, 100), &mut out);
    }
    out.clear();
    assert_eq!(outstanding.last_number(), 3);
    assert_eq!(outstanding.cancel_all(Some(AccountId(0)), 1..=3, &mut out), 2);
    assert_eq!((number_at(&out[3..], 1), number_at(&out[15..], 1)), (1, 3));
    assert_eq!(outstanding.cancel_all(None, 0..=3, &mut Vec::new()), 3);
    assert_eq!(outstanding.cancel_all(None, 1..=2, &mut Vec::new()), 2, "a later one is not meant");
    assert_eq!(outstanding.cancel_all(Some(AccountId(1)), 1..=1, &mut Vec::new()), 0);
}

#[test]
fn a_replace_dies_with_its_original_and_gives_its_number_back() {
    // Cancelled because of the replace, or executed before it: there is no message about the replace itself.
    for kind in [b'C', b'E'] {
        let mut outstanding = OutstandingOrders::new(1, LIMITS);
        let mut out = Vec::new();
        outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
        answer(&mut outstanding, accepted(1, b'L'));
        outstanding.assign(origin(0, 2), &replace(1, 2, 0), &mut out);
        outstanding.assign(origin(0, 3), &replace(2, 3, 50), &mut out);
        assert_eq!((outstanding.open(), outstanding.unanswered()), (3, 2));
        assert!(answer(&mut outstanding, reduced(kind, 1, 100)).is_some());
        assert_eq!((outstanding.open(), outstanding.unanswered()), (0, 0));
        let mut ignored: Vec<u32> = outstanding.take_ignored().iter().map(|it| it.user_ref_num).collect();
        ignored.sort_unstable();
        assert_eq!(ignored, [2, 3]);
        assert!(outstanding.take_ignored().is_empty());
    }
}

#[test]
fn a_confirmed_replace_outlives_its_original() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
    outstanding.assign(origin(0, 2), &replace(1, 2, 50), &mut out);
    outstanding.assign(origin(0, 3), &replace(1, 3, 60), &mut out);
    answer(&mut outstanding, accepted(1, b'L'));
    answer(&mut outstanding, replaced(1, 2, 50));
    assert_eq!((outstanding.open(), outstanding.unanswered()), (1, 0), "the other one had lost its original");
    assert_eq!(outstanding.take_ignored(), [origin(0, 3)]);
}

#[test]
fn a_replace_whose_original_is_over_when_it_is_restored_names_no_order() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    assert!(outstanding.restore_bytes(70, origin(0, 1), &enter(1, 100), 1_000));
    outstanding.restore_answer_bytes(AccountId(0), &accepted(1, b'L'));
    outstanding.restore_answer_bytes(AccountId(0), &reduced(b'E', 1, 100));
    assert!(outstanding.restore_bytes(71, origin(0, 2), &replace(1, 2, 50), 1_000));
    let mut out = Vec::new();
    assert_eq!(resend(&mut outstanding, 0, &mut out), 1);
    assert_eq!((number_at(&out[3..], 1), number_at(&out[3..], 5)), (0, 71), "1 may be another client's");
}

#[test]
fn a_restored_replace_dies_with_its_original() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    assert!(outstanding.restore_bytes(70, origin(0, 1), &enter(1, 100), 1_000));
    assert!(outstanding.restore_bytes(71, origin(0, 2), &replace(1, 2, 50), 1_000));
    outstanding.restore_answer_bytes(AccountId(0), &accepted(1, b'L'));
    outstanding.restore_answer_bytes(AccountId(0), &reduced(b'E', 1, 100));
    assert_eq!((outstanding.open(), outstanding.unanswered()), (0, 0));
    // The client may have placed an order with that number since.
    assert!(outstanding.restore_bytes(72, origin(0, 2), &enter(2, 100), 1_000));
    assert_eq!((outstanding.open(), outstanding.take_ignored()), (1, Vec::new()));
}

#[test]
fn a_number_that_was_given_back_before_a_restart_is_not_given_back_again() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    for (number, client, raw) in [(70, 1, enter(1, 100)), (71, 2, replace(1, 2, 50)), (72, 3, enter(3, 100))]
    {
        assert!(outstanding.restore_bytes(number, origin(0, client), &raw, 1_000));
    }
    // The replace was ignored, because a later one was answered.
    outstanding.restore_answer_bytes(AccountId(0), &accepted(1, b'L'));
    outstanding.restore_answer_bytes(AccountId(0), &accepted(3, b'L'));
    outstanding.sweep();
    assert_eq!((outstanding.unanswered(), outstanding.take_ignored()), (0, Vec::new()));
}

fn cancel_to(user_ref_num: u32, quantity: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    Inbound::Cancel(Cancel { user_ref_num, quantity }).encode(&mut bytes);
    bytes
}

/// Kind and number of every message.
fn kinds(mut frames: &[u8]) -> Vec<(u8, u32)> {
    let mut found = Vec::new();
    while let [high, low, _, rest @ ..] = frames {
        let (message, next) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])) - 1);
        let at = if message[0] == b'U' { 5 } else { 1 };
        found.push((message[0], number_at(message, at)));
        frames = next;
    }
    found
}

#[test]
fn a_cancel_is_said_again_where_it_was_said_as_long_as_its_order_lives() {
    let mut outstanding = OutstandingOrders::new(10, LIMITS);
    let mut out = Vec::new();
    outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
    outstanding.assign(origin(0, 2), &enter(2, 100), &mut out);
    answer(&mut outstanding, accepted(11, b'L'));
    outstanding.assign(origin(0, 1), &cancel_to(1, 80), &mut out);
    outstanding.assign(origin(0, 1), &cancel_to(1, 50), &mut out);
    outstanding.assign(origin(0, 1), &cancel_to(1, 60), &mut out);
    outstanding.assign(origin(0, 3), &replace(1, 3, 70), &mut out);
    outstanding.assign(origin(0, 2), &cancel(2), &mut out);
    let mut again = Vec::new();
    assert_eq!(resend(&mut outstanding, 0, &mut again), 3);
    assert_eq!(kinds(&again), [(b'X', 10), (b'U', 12), (b'X', 11)]);
    assert_eq!(number_at(&again[3..], 5), 50, "the one that leaves least");
    answer(&mut outstanding, reduced(b'C', 11, 100));
    answer(&mut outstanding, replaced(10, 12, 70));
    again.clear();
    assert_eq!((resend(&mut outstanding, 0, &mut again), outstanding.passed.len()), (0, 0));
}

#[test]
fn cancels_of_orders_that_were_forgotten_do_not_pile_up() {
    let mut outstanding =
        OutstandingOrders::new(1, OutstandingLimits { when_full: WhenFull::ForgetOldest, ..LIMITS });
    let mut out = Vec::new();
    for number in 1..=1000 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut out);
        outstanding.assign(origin(0, number), &cancel(number), &mut out);
        assert!(outstanding.passed.len() <= PASSED_SLACK + 2 * 4);
    }
}

#[test]
fn a_journal_gives_the_outstanding_orders_back() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    let mut journal = Vec::new();
    for client in 101..=103 {
        let raw = enter(client, 100);
        let Sending::Numbered(number) = outstanding.assign(origin(0, client), &raw, &mut out) else {
            panic!("there is room")
        };
        journal.push((number, client, raw));
    }
    let (_, first) = answer(&mut outstanding, accepted(1, b'L')).expect("it is known");
    let mut again = OutstandingOrders::new(1, LIMITS);
    for (number, client, raw) in &journal {
        assert!(again.restore_bytes(*number, origin(0, *client), raw, 1_000));
    }
    again.restore_answer_bytes(AccountId(0), &first);
    assert_eq!((again.open(), again.unanswered(), again.upstream_numbers.next()), (3, 2, 4));
    let (mut sent, mut sent_again) = (Vec::new(), Vec::new());
    resend(&mut outstanding, 0, &mut sent);
    resend(&mut again, 0, &mut sent_again);
    assert_eq!(sent, sent_again);
}

/// The messages for clients: their numbers, and the remaining shares of the accepted orders.
fn numbers_and_left(expiries: &[Expiry]) -> Vec<(u32, Option<u32>)> {
    expiries.iter().map(|expiry| (expiry.origin.user_ref_num, expiry.left)).collect()
}

fn cancels(outstanding: &OutstandingOrders) -> Vec<u32> {
    let mut out = Vec::new();
    assert_eq!(outstanding.cancel_given_up(&mut out), out.len() as u64 / 12);
    out.chunks(12).map(|frame| number_at(&frame[3..], 1)).collect()
}

/// One of five orders has ended, one has 60 shares left, and three are unanswered: one of these replaces it.
fn busy(limits: OutstandingLimits) -> OutstandingOrders {
    let mut outstanding = OutstandingOrders::new(50, OutstandingLimits { open_max: 5, ..limits });
    let mut out = Vec::new();
    for number in 1..=3 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut out);
    }
    answer(&mut outstanding, accepted(50, b'D'));
    answer(&mut outstanding, accepted(51, b'L'));
    answer(&mut outstanding, reduced(b'E', 51, 40));
    outstanding.assign(origin(0, 4), &replace(2, 4, 50), &mut out);
    let late = Origin { received_ns: 500, ..origin(0, 5) };
    outstanding.assign(late, &enter(5, 100), &mut out);
    outstanding
}

#[test]
fn all_of_a_session_that_is_over_expires_and_the_next_one_begins_with_the_first_number() {
    let mut outstanding = busy(LIMITS);
    let expiries = outstanding.begin_anew();
    assert_eq!(numbers_and_left(&expiries), [(4, None), (2, Some(60)), (3, None), (5, None)]);
    assert_eq!((outstanding.open(), outstanding.unanswered(), outstanding.last_number()), (0, 0, 0));
    assert_eq!(
        cancels(&outstanding),
        [51, 52, 53, 54],
        "nothing says yet that the exchange does not have them"
    );
    let mut out = Vec::new();
    assert_eq!(resend(&mut outstanding, 0, &mut out), 0);
    outstanding.raise_next(53);
    assert_eq!(cancels(&outstanding), [51, 52]);
    outstanding.raise_next(51);
    assert_eq!(cancels(&outstanding), [51, 52], "an answer that was given before says nothing");
    assert_eq!(outstanding.assign(origin(0, 6), &enter(6, 100), &mut out), Sending::Numbered(53));
    outstanding.begin_anew();
    outstanding.raise_next(1);
    assert!(cancels(&outstanding).is_empty());
    let forgetful = OutstandingLimits { when_full: WhenFull::ForgetOldest, ..LIMITS };
    assert_eq!(numbers_and_left(&busy(forgetful).begin_anew()), [(4, None), (3, None), (5, None)]);
}

#[test]
fn what_is_too_old_is_not_sent_again_and_ends_when_that_is_asked_for() {
    let mut outstanding = busy(LIMITS);
    let mut out = Vec::new();
    assert_eq!((resend(&mut outstanding, 1_000, &mut out), outstanding.has_stale()), (3, false));
    assert!(outstanding.is_full());
    assert_eq!(resend(&mut outstanding, 1_001, &mut out), 1, "the last one is not so old");
    assert_eq!((outstanding.unanswered(), outstanding.has_stale(), outstanding.is_full()), (3, true, false));
    out.clear();
    assert_eq!(numbers_and_left(&outstanding.take_stale(&mut out)), [(4, None), (3, None)]);
    assert_eq!(kinds(&out), [(b'X', 52), (b'X', 53)], "should the exchange have them all the same");
    assert_eq!(
        (outstanding.open(), outstanding.unanswered(), outstanding.take_ignored()),
        (2, 1, Vec::new())
    );
    assert!(outstanding.knows(AccountId(0), 2), "what was to be replaced goes on");
}

#[test]
fn an_answer_to_what_was_sent_again_says_nothing_of_older_ones_that_were_not() {
    let mut outstanding = busy(LIMITS);
    let mut out = Vec::new();
    resend(&mut outstanding, 1_001, &mut out);
    assert!(answer(&mut outstanding, accepted(54, b'L')).is_some());
    // Not on the next connection either.
    out.clear();
    assert_eq!(
        (resend(&mut outstanding, 0, &mut out), kinds(&out), outstanding.unanswered()),
        (0, Vec::new(), 2)
    );
    assert!(answer(&mut outstanding, accepted(52, b'L')).is_some(), "it had reached the exchange");
    assert_eq!(numbers_and_left(&outstanding.take_stale(&mut out)), [(4, None)]);
    assert_eq!(outstanding.unanswered(), 0);
}

#[test]
fn of_a_venue_that_forgets_orders_no_more_are_kept_than_may_be_open() {
    let mut outstanding =
        OutstandingOrders::new(1, OutstandingLimits { when_full: WhenFull::ForgetOldest, ..LIMITS });
    let mut out = Vec::new();
    for number in 1..=40 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut out);
        resend(&mut outstanding, 1_001, &mut out);
        assert!(outstanding.unanswered() <= LIMITS.open_max);
    }
    assert_eq!(numbers_and_left(&outstanding.take_stale(&mut out)).len(), LIMITS.open_max);
}

#[test]
fn what_a_journal_says_of_younger_orders_does_not_end_those_that_are_too_old_to_be_sent_again() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let all = [
        (70, 1, enter(1, 100), 0),
        (71, 2, replace(1, 2, 50), 0),
        (72, 3, enter(3, 100), 1_000),
        (73, 4, enter(4, 100), 1_000),
    ];
    for (number, client, raw, until_ns) in &all {
        assert!(outstanding.restore_bytes(*number, origin(0, *client), raw, *until_ns));
    }
    outstanding.restore_answer_bytes(AccountId(0), &accepted(1, b'L'));
    outstanding.restore_answer_bytes(AccountId(0), &accepted(4, b'L'));
    outstanding.sweep();
    assert_eq!(
        (outstanding.open(), outstanding.unanswered()),
        (4, 2),
        "an order has an answer if it was sent"
    );
    assert_eq!(numbers_and_left(&outstanding.take_stale(&mut Vec::new())), [(2, None), (3, None)]);
}

#[test]
fn replaces_that_were_ignored_leave_their_places_while_a_journal_is_read() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    assert!(outstanding.restore_bytes(1, origin(0, 1), &enter(1, 100), 1_000));
    // Each is followed by an order that ends at once.
    for number in (2..100).step_by(2) {
        let answer = accepted(number + 1, b'D');
        while !outstanding.restore_bytes(number, origin(0, number), &replace(1, number, 50), 1_000)
            || !outstanding.restore_bytes(number + 1, origin(0, number + 1), &enter(number + 1, 100), 1_000)
        {
            // The remaining ones are read repeatedly.
            outstanding.restore_answer_bytes(AccountId(0), &accepted(1, b'L'));
        }
        outstanding.restore_answer_bytes(AccountId(0), &answer);
    }
    outstanding.sweep();
    assert_eq!((outstanding.open(), outstanding.unanswered()), (1, 0));
}

#[test]
fn an_order_that_a_journal_says_was_ended_here_is_cancelled_on_every_connection() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    for number in 1..=3 {
        assert!(outstanding.restore_bytes(69 + number, origin(0, number), &enter(number, 100), 1_000));
    }
    outstanding.restore_end(AccountId(0), 3);
    assert_eq!((outstanding.open(), outstanding.unanswered()), (2, 2), "that says nothing of earlier ones");
    assert_eq!(cancels(&outstanding), [72]);
}

#[test]
fn of_clients_cancels_those_of_open_orders_are_said_again_up_to_a_number() {
    let mut outstanding = OutstandingOrders::new(10, LIMITS);
    let mut out = Vec::new();
    for number in 1..=3 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut out);
        outstanding.assign(origin(0, number), &cancel_to(number, 40), &mut out);
    }
    answer(&mut outstanding, accepted(10, b'D'));
    out.clear();
    assert_eq!((outstanding.resend_cancels(11, &mut out), kinds(&out)), (1, vec![(b'X', 11)]));
    assert_eq!(number_at(&out[3..], 5), 40);
}

#[test]
fn orders_that_are_given_up_are_cancelled_and_no_more_are_known_than_may_be_open() {
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    let mut out = Vec::new();
    for number in 1..=10 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut out);
        assert_eq!(numbers_and_left(&outstanding.give_up([(AccountId(0), number)])), [(number, None)]);
        assert!(outstanding.give_up([(AccountId(0), number)]).is_empty(), "it is not open any more");
    }
    assert_eq!((outstanding.open(), outstanding.unanswered()), (0, 0));
    assert_eq!(cancels(&outstanding), [7, 8, 9, 10]);
}

#[test]
fn more_shares_than_were_left_are_seen() {
    let mut outstanding = busy(LIMITS);
    let is_overfill = |outstanding: &mut OutstandingOrders, by| {
        answer(outstanding, reduced(b'E', 51, by)).expect("it is known").0.is_overfill
    };
    assert!(!is_overfill(&mut outstanding, 59));
    assert!(is_overfill(&mut outstanding, 2));
}

#[test]
fn what_no_connection_has_had_ends_when_it_is_withdrawn_and_others_go_on() {
    let mut outstanding =
        OutstandingOrders::new(10, OutstandingLimits { open_max: 8, unanswered_max: 8, ..LIMITS });
    let mut out = Vec::new();
    for (account, number) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
        outstanding.assign(origin(account, number), &enter(number, 100), &mut out);
    }
    outstanding.assign(origin(0, 3), &replace(1, 3, 50), &mut out);
    let expiries = outstanding.withdraw(Some(AccountId(0)), 11, reject_reason::FIRM_NOT_AUTHORIZED);
    assert_eq!(numbers_and_left(&expiries), [(3, None), (2, None)]);
    assert_eq!(
        [10, 11, 12, 13, 14].map(|number| outstanding.awaits(number)),
        [true, true, false, true, false]
    );
    assert_eq!((outstanding.open(), outstanding.take_ignored()), (3, Vec::new()));
    assert!(cancels(&outstanding).is_empty(), "the exchange cannot have them");
    assert_eq!(numbers_and_left(&outstanding.withdraw(None, 12, 2)), [(2, None)]);
    assert_eq!(outstanding.last_number(), 14, "their numbers are used");
    let mut outstanding = OutstandingOrders::new(u32::MAX, LIMITS);
    outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
    assert!(outstanding.withdraw(None, u32::MAX, 2).is_empty(), "the last number there is has left");
}

#[test]
fn what_is_to_be_cancelled_is_not_sent_again_and_is_refused_for_its_own_reason() {
    let mut outstanding = busy(LIMITS);
    let mut out = Vec::new();
    let withheld = |number: u32, account: AccountId| (number <= 52 && account.0 == 0).then_some(0x000C);
    assert_eq!(outstanding.resend(0, withheld, &mut out), 2);
    assert_eq!(kinds(&out), [(b'U', 53), (b'O', 54)]);
    assert_eq!(
        outstanding.cancel_all(None, 0..=52, &mut Vec::new()),
        2,
        "they may be there, and are cancelled"
    );
    let refusals = outstanding.take_stale(&mut out);
    assert_eq!(refusals, [Expiry::new(origin(0, 3), None, None).refused_with(0x000C)]);
    assert_eq!(cancels(&outstanding), [52]);
    // On the same connection, before it gets the rest.
    assert!(outstanding.withhold(None, 53, 0x000C) && !outstanding.withhold(None, 53, 0x000C));
    assert_eq!([53, 54].map(|number| outstanding.awaits(number)), [true, false]);
    assert!(answer(&mut outstanding, accepted(54, b'L')).is_some(), "an answer finds it all the same");
}

/// An exchange's message that breaks a trade.
fn broken(user_ref_num: u32) -> Vec<u8> {
    let mut bytes = vec![b' '; 36];
    bytes[0] = b'B';
    bytes[9..13].copy_from_slice(&user_ref_num.to_be_bytes());
    bytes
}

#[test]
fn what_concerns_a_trade_has_its_addressee_also_when_the_order_is_over() {
    let mut outstanding = busy(LIMITS);
    let of = |outstanding: &mut OutstandingOrders, raw| {
        answer(outstanding, raw).map(|(answer, _)| (answer.origin.user_ref_num, answer.is_overfill))
    };
    // The first one ended at once.
    assert_eq!(of(&mut outstanding, reduced(b'E', 50, 10)), Some((1, true)));
    assert_eq!(of(&mut outstanding, broken(50)), Some((1, false)));
    assert_eq!(of(&mut outstanding, reduced(b'C', 50, 10)), None, "nothing is left to report");
    assert_eq!(of(&mut outstanding, reduced(b'E', 49, 10)), None, "nobody's");
    assert_eq!((outstanding.account_of(50), outstanding.account_of(49)), (Some(AccountId(0)), None));
    outstanding.begin_anew();
    assert_eq!(
        of(&mut outstanding, reduced(b'E', 52, 10)),
        Some((3, true)),
        "the exchange has it all the same"
    );
    let mut outstanding =
        OutstandingOrders::new(1, OutstandingLimits { when_full: WhenFull::ForgetOldest, ..LIMITS });
    for number in 1..=5 {
        outstanding.assign(origin(0, number), &enter(number, 100), &mut Vec::new());
    }
    assert_eq!(of(&mut outstanding, reduced(b'E', 1, 10)), Some((1, false)), "forgotten is not over");
    let mut outstanding = OutstandingOrders::new(1, LIMITS);
    assert!(outstanding.restore_bytes(70, origin(0, 1), &enter(1, 100), 1_000));
    outstanding.restore_answer_bytes(AccountId(0), &accepted(1, b'D'));
    assert_eq!(of(&mut outstanding, broken(70)), Some((1, false)), "also after a restart");
}

#[test]
fn an_order_that_was_passed_over_is_refused_when_the_exchange_shows_no_answer_to_it() {
    let restored = || {
        let mut outstanding = OutstandingOrders::new(1, LIMITS);
        for number in 1..=3 {
            assert!(outstanding.restore_bytes(number, origin(number, 1), &enter(1, 100), u64::MAX));
        }
        outstanding.restore_answer_bytes(AccountId(2), &accepted(1, b'L'));
        outstanding.sweep();
        outstanding
    };
    // The exchange has received no number above 2: it is unknown whether the third has been sent.
    let (mut outstanding, mut out) = (restored(), Vec::new());
    outstanding.raise_next(3);
    assert_eq!(resend(&mut outstanding, 0, &mut out), 2, "that is no harm");
    assert!(outstanding.has_stale());
    let mut cancels = Vec::new();
    let refused = outstanding.take_stale(&mut cancels);
    assert_eq!(refused.iter().map(|expiry| expiry.origin.account.0).collect::<Vec<_>>(), [1]);
    assert_eq!((refused[0].left, number_at(&cancels, 4)), (None, 1));
    assert_eq!((outstanding.unanswered(), outstanding.open()), (1, 2));
    // The answer was only late.
    let mut outstanding = restored();
    outstanding.raise_next(3);
    resend(&mut outstanding, 0, &mut out);
    assert!(answer(&mut outstanding, accepted(1, b'L')).is_some());
    assert!(!outstanding.has_stale() && outstanding.knows(AccountId(1), 1));
}

#[test]
fn an_order_whose_acceptance_is_missing_ends_with_its_last_share() {
    let (mut outstanding, mut out) = (OutstandingOrders::new(1, LIMITS), Vec::new());
    outstanding.assign(origin(0, 1), &enter(1, 100), &mut out);
    outstanding.assign(origin(0, 2), &replace(1, 2, 60), &mut out);
    outstanding.assign(origin(0, 3), &enter(3, 100), &mut out);
    outstanding.note_gap();
    // It does not know the third one.
    outstanding.raise_next(3);
    assert_eq!(resend(&mut outstanding, 0, &mut out), 3);
    assert!(!outstanding.has_stale());
    answer(&mut outstanding, reduced(b'E', 2, 40)).expect("it is known");
    assert_eq!((outstanding.open(), outstanding.knows(AccountId(0), 1)), (2, false), "it was replaced");
    answer(&mut outstanding, reduced(b'C', 2, 20)).expect("it is known");
    assert_eq!(outstanding.open(), 1);
    answer(&mut outstanding, accepted(3, b'L')).expect("it is known");
    assert_eq!((outstanding.open(), outstanding.unanswered()), (1, 0));
}

#[test]
fn a_replacement_that_is_given_up_with_its_original_is_told_before_it_wherever_a_kill_comes_between() {
    let restored = || {
        let mut outstanding = OutstandingOrders::new(1, LIMITS);
        for (number, raw) in [(1, enter(1, 100)), (2, replace(1, 2, 60)), (3, replace(2, 3, 70))] {
            assert!(outstanding.restore_bytes(number, origin(0, number), &raw, 0));
        }
        outstanding.restore_answer_bytes(AccountId(0), &accepted(1, b'L'));
        outstanding
    };
    let of = |number| (AccountId(0), number);
    assert_eq!(
        numbers_and_left(&restored().give_up([1, 2, 3].map(of))),
        [(3, None), (2, None), (1, Some(100))]
    );
    for (kept, left) in [(vec![3], vec![(2, None), (1, Some(100))]), (vec![3, 2], vec![(1, Some(100))])] {
        let mut outstanding = restored();
        kept.iter().for_each(|number| outstanding.restore_end(AccountId(0), *number));
        outstanding.sweep();
        assert_eq!(numbers_and_left(&outstanding.give_up([1, 2, 3].map(of))), left);
    }
}

#[test]
fn numbers_that_are_to_be_given_back_are_no_more_than_may_be_open_however_long_an_exchange_is_silent() {
    let forgetful = OutstandingLimits { when_full: WhenFull::ForgetOldest, ..LIMITS };
    let mut outstanding = OutstandingOrders::new(1, forgetful);
    let mut out = Vec::new();
    for first in (1..=81).step_by(4) {
        // It replaces an earlier order, and that order's replacements end with it.
        outstanding.assign(origin(0, first), &enter(first, 100), &mut out);
        for number in first + 1..first + 4 {
            outstanding.assign(origin(0, number), &replace(first, number, 50), &mut out);
        }
    }
    let ignored: Vec<u32> = outstanding.take_ignored().iter().map(|origin| origin.user_ref_num).collect();
    assert_eq!(ignored, [76, 78, 79, 80], "the last ones");
}
