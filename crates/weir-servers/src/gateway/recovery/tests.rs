//! Tests of journals as kills leave them, and of the state that the next start recovers.

use std::collections::BTreeSet;

use weir_proto::ouch::{
    self, Appendage, Cancel, Canceled, Modify, Outbound, Rejected, Replace, inbound_user_ref_num,
};
use weir_trading::Position;

use super::*;
use crate::gateway::{
    test_messages,
    worker_message::{pack_sequence, sent_key, session_key},
};

mod checkpoints;
mod endpoints;
mod homes;

const ACCOUNT: AccountId = AccountId(1);
const NOW: Moment = Moment { wall_ns: 0, engine_ns: 0 };

fn enter(user_ref_num: u32) -> Vec<u8> {
    test_messages::entered(user_ref_num, 100)
}

/// Accepted and ended at once.
fn accepted(user_ref_num: u32) -> Vec<u8> {
    test_messages::accepted(user_ref_num, b'D')
}

fn live(user_ref_num: u32) -> Vec<u8> {
    test_messages::accepted(user_ref_num, b'L')
}

fn recover(records: &[(u16, RecordKind<'_>)]) -> Recovered {
    let records: Vec<_> = records.iter().map(|(worker, kind)| (*worker, *kind, 0)).collect();
    recover_at(&records)
}

fn recover_at(records: &[(u16, RecordKind<'_>, u64)]) -> Recovered {
    recover_within(OutstandingLimits { open_max: 2, ..OutstandingLimits::default() }, records)
}

fn recover_within(limits: OutstandingLimits, records: &[(u16, RecordKind<'_>, u64)]) -> Recovered {
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), limits)];
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW);
    for (worker, kind, t_ns) in records {
        recovering.take(&Record { worker: *worker, t_ns: *t_ns, generation: 0, kind: *kind });
    }
    recovering.finish(|_, _| true, false)
}

fn inbound(upstream: u32, raw: &[u8]) -> RecordKind<'_> {
    RecordKind::Inbound { account: ACCOUNT, upstream, raw }
}

#[test]
fn what_an_account_has_open_and_executed_and_the_last_price_outlive_the_gateway() {
    let executed = |user_ref_num: u32, quantity: u32, price: u64| {
        let message = Outbound::Executed(ouch::Executed {
            timestamp_ns: 1,
            user_ref_num,
            quantity,
            price,
            liquidity: b'A',
            match_number: 1,
        });
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    };
    let (first, second) = (enter(1), enter(2));
    let (early, late) = (executed(1, 40, 9_000), executed(1, 10, 8_000));
    let answer = |sequence: u64, message| {
        let upstream_sequence = pack_sequence(session_key(0, 0), 0, sequence);
        RecordKind::Sequenced { account: ACCOUNT, sequence, upstream_sequence, message }
    };
    let accepted = live(1);
    let sent = |number: u32, raw| RecordKind::Sent {
        account: ACCOUNT,
        session: session_key(0, 0),
        upstream: number,
        raw,
    };
    let of_sender = [(0, sent(1, &first), 1), (0, sent(2, &second), 2)];
    let of_home = [
        (1, inbound(0, &first), 1),
        (1, answer(1, &accepted), 3),
        // The later trade may be in the journal that is read first, or last.
        (1, answer(2, &late), 9),
        (1, answer(3, &early), 4),
        (1, inbound(0, &second), 5),
    ];
    let whichever = [[&of_sender[..], &of_home[..]].concat(), [&of_home[..], &of_sender[..]].concat()];
    for records in whichever {
        let recovered = recover_at(&records);
        let order = |user_ref_num, shares| {
            let symbol = Symbol(*b"WEIR    ");
            (ACCOUNT, Restored { user_ref_num, symbol, side: b'B', price: 10_000, shares, original: None })
        };
        assert_eq!(recovered.open, [order(1, 50), order(2, 100)]);
        let value = 40 * 9_000 + 10 * 8_000;
        assert_eq!(recovered.executed[&ACCOUNT], Executed { generation: 0, value });
        assert_eq!(recovered.prices, [(Symbol(*b"WEIR    "), 8_000)]);
        let shares = &recovered.executed_shares;
        let expected = Position { account: ACCOUNT, symbol: Symbol(*b"WEIR    "), bought: 50, sold: 0 };
        assert_eq!((&shares.positions[..], &shares.unattributed[..]), (&[expected][..], &[][..]));
    }
}

#[test]
fn what_was_executed_counts_in_its_session_with_the_clients_alone() {
    let mut positions = Positions::default();
    let mut executed = |generation: u16, quantity: u32| {
        let message = Outbound::Executed(ouch::Executed {
            timestamp_ns: 1,
            user_ref_num: 1,
            quantity,
            price: 10_000,
            liquidity: b'A',
            match_number: 1,
        });
        positions.note_execution((0, generation), ACCOUNT, &message);
        positions.executed[&ACCOUNT]
    };
    assert_eq!(executed(0, 100), Executed { generation: 0, value: 1_000_000 });
    assert_eq!(executed(2, 30), Executed { generation: 2, value: 300_000 });
    // From another worker's journal, which is read later.
    assert_eq!(executed(1, 50), Executed { generation: 2, value: 300_000 });
    assert_eq!(executed(2, 1), Executed { generation: 2, value: 310_000 });
}

#[test]
fn a_replacement_without_an_answer_has_its_original_after_a_restart() {
    let mut replace = Vec::new();
    let message = Replace {
        original_user_ref_num: 1,
        user_ref_num: 2,
        quantity: 500,
        price: 10_000,
        time_in_force: b'0',
        display: b'Y',
        intermarket_sweep: b'N',
        client_order_id: ClientOrderId([b' '; 14]),
    };
    Inbound::Replace(message, Appendage::EMPTY).encode(&mut replace);
    let (order, accepted) = (enter(1), live(1));
    let sent =
        |upstream, raw| RecordKind::Sent { account: ACCOUNT, session: session_key(0, 0), upstream, raw };
    let upstream_sequence = pack_sequence(session_key(0, 0), 0, 1);
    let answer =
        RecordKind::Sequenced { account: ACCOUNT, sequence: 1, upstream_sequence, message: &accepted };
    let recovered = recover(&[(0, sent(1, &order)), (1, answer), (0, sent(2, &replace))]);
    let found: Vec<_> =
        recovered.open.iter().map(|(_, it)| (it.user_ref_num, it.shares, it.original)).collect();
    assert_eq!(found, [(1, 100, None), (2, 500, Some(1))]);
}

#[test]
fn a_cancel_of_a_client_is_said_again_after_a_restart_as_long_as_its_order_lives() {
    let about = |message: Inbound<'_>| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    };
    let cancel = |user_ref_num, quantity| about(Inbound::Cancel(Cancel { user_ref_num, quantity }));
    let change = about(Inbound::Modify(Modify { user_ref_num: 1, side: b'B', quantity: 70 }));
    let (order, other) = (enter(1), enter(2));
    let cancels = [cancel(1, 80), cancel(1, 50), cancel(1, 60), cancel(77, 0)];
    let (accepted, gone) = (live(1), canceled(1));
    let sent =
        |upstream, raw| RecordKind::Sent { account: ACCOUNT, session: session_key(0, 0), upstream, raw };
    let answer = |sequence: u64, message| {
        let upstream_sequence = pack_sequence(session_key(0, 0), 0, sequence);
        (1, RecordKind::Sequenced { account: ACCOUNT, sequence, upstream_sequence, message })
    };
    let mut of_sender = vec![(0, sent(70, &order[..]))];
    of_sender.extend(cancels.iter().map(|raw| (0, sent(70, &raw[..]))));
    of_sender.extend([(0, sent(70, &change[..])), (0, sent(71, &other[..]))]);
    let modified = about(Inbound::Modify(Modify { user_ref_num: 70, side: b'B', quantity: 70 }));
    let mut again = Vec::new();
    for raw in [&cancel(70, 50), &modified] {
        weir_proto::soup::encode_frame(weir_proto::soup::UNSEQUENCED, raw, &mut again);
    }
    let ended = [answer(1, &accepted), answer(2, &gone)];
    for (of_home, count, again) in [(&ended[..1], 3, &again[..]), (&ended[..], 1, &[][..])] {
        for records in [[&of_sender[..], of_home].concat(), [of_home, &of_sender[..]].concat()] {
            let mut recovered = recover(&records);
            let mut out = Vec::new();
            assert_eq!(recovered.sessions[0].0.resend(0, |_, _| None, &mut out), count);
            assert!(out.starts_with(again), "the cancel that leaves least, and the change");
            assert_eq!(out.len(), again.len() + 3 + other.len(), "and the order without an answer");
        }
    }
}

/// Two venues, the first with order 1 and the second with order 2, then a start with other venues and routes.
fn restarted(venues: &[&str], routes: &[(&str, usize)]) -> Recovered {
    let of_symbol = |number: u32, symbol: [u8; 8]| {
        let mut raw = enter(number);
        raw[10..18].copy_from_slice(&symbol);
        raw
    };
    let (first, second) = (of_symbol(1, *b"WEIR    "), of_symbol(2, *b"DAM     "));
    let sent = |venue: usize, raw| RecordKind::Sent {
        account: ACCOUNT,
        session: session_key(1, venue),
        upstream: 1,
        raw,
    };
    let named = RecordKind::Application { kind: RECORD_VENUES, session: 0, payload: br#"["A","B"]"# };
    let limits = OutstandingLimits::default();
    let venues: Vec<_> = venues.iter().map(|name| ((*name).to_owned(), limits)).collect();
    let route = |(symbol, venue): &(&str, usize)| (symbol.parse().expect("it is short"), *venue);
    let symbols = Symbols { venues: routes.iter().map(route).collect(), other: None };
    let nobody = |_: &str| None;
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW);
    for kind in [named, sent(0, &first), sent(1, &second)] {
        recovering.take(&Record { worker: 1, t_ns: 0, generation: 0, kind });
    }
    recovering.finish(|_, _| true, false)
}

#[test]
fn orders_stay_with_the_venue_they_were_sent_to_whatever_is_configured_now() {
    let open = |recovered: &Recovered| -> Vec<usize> {
        recovered.sessions.iter().map(|(outstanding, _)| outstanding.open()).collect()
    };
    let same = restarted(&["A", "B"], &[("WEIR", 0), ("DAM", 1)]);
    assert_eq!((open(&same), same.stranded.len()), (vec![0, 0, 1, 1], 0));
    let turned = restarted(&["C", "B", "A"], &[("WEIR", 2), ("DAM", 1)]);
    assert_eq!((open(&turned), turned.stranded.len()), (vec![0, 0, 0, 0, 1, 1], 0));
    let stranded = |recovered: Recovered| -> Vec<(u32, String, Why)> {
        let found = recovered.stranded.into_iter();
        found.map(|it| (it.user_ref_num, it.venue, it.why)).collect()
    };
    let moved = restarted(&["A", "B"], &[("WEIR", 1), ("DAM", 1)]);
    let weir = Symbol(*b"WEIR    ");
    assert_eq!(stranded(moved), [(1, "A".to_owned(), Why::Route(weir))]);
    let gone = restarted(&["B"], &[("WEIR", 0), ("DAM", 0)]);
    assert_eq!(stranded(gone), [(1, "A".to_owned(), Why::Venue)]);
}

#[test]
fn an_order_that_another_worker_sent_is_not_refused_whichever_journal_is_read_first() {
    let (sent, unsent) = (enter(5), enter(6));
    let (home, sender) = ([inbound(0, &sent), inbound(0, &unsent)], inbound(1, &sent));
    let home_first = [(0, home[0]), (0, home[1]), (1, sender)];
    let sender_first = [(0, sender), (1, home[0]), (1, home[1])];
    for (records, place) in [(home_first, 1), (sender_first, 0)] {
        let recovered = recover(&records);
        let refused: Vec<u32> = recovered.unsent.iter().map(|(_, refusal)| refusal.user_ref_num).collect();
        assert_eq!(refused, [6]);
        let (outstanding, resume) = &recovered.sessions[place];
        assert_eq!((outstanding.unanswered(), outstanding.knows(ACCOUNT, 5)), (1, true));
        assert_eq!(resume.next, 0, "a session that was never joined is not asked for its past");
    }
}

#[test]
fn more_orders_than_have_room_are_restored_once_the_answers_are_read() {
    let orders: Vec<Vec<u8>> = (1..=5).map(enter).collect();
    let answers: Vec<Vec<u8>> = (1..=3).map(accepted).collect();
    let mut records: Vec<_> = orders.iter().zip(1..).map(|(raw, number)| (0, inbound(number, raw))).collect();
    records.extend(answers.iter().zip(1..).map(|(message, sequence)| {
        let upstream_sequence = pack_sequence(session_key(0, 0), 0, sequence);
        (1, RecordKind::Sequenced { account: ACCOUNT, sequence, upstream_sequence, message })
    }));
    let recovered = recover(&records);
    let outstanding = &recovered.sessions[0].0;
    assert_eq!((outstanding.open(), outstanding.unanswered()), (2, 2));
    assert!(outstanding.knows(ACCOUNT, 4) && outstanding.knows(ACCOUNT, 5));
}

fn replace(original_user_ref_num: u32, user_ref_num: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    test_messages::replace(original_user_ref_num, user_ref_num).encode(&mut bytes);
    bytes
}

fn sent(raw: &[u8]) -> RecordKind<'_> {
    RecordKind::Sent { account: ACCOUNT, session: session_key(0, 0), upstream: 2, raw }
}

/// The orders that are refused because they were never sent.
fn unsent(records: &[(u16, RecordKind<'_>)]) -> Vec<u32> {
    recover(records).unsent.iter().map(|(_, refusal)| refusal.user_ref_num).collect()
}

#[test]
fn an_order_that_was_handed_over_is_not_taken_for_sent_because_a_later_one_was() {
    let (first, later) = (enter(5), replace(1, 6));
    let (handed, later) = ((0, inbound(0, &first)), (0, sent(&later)));
    assert_eq!(unsent(&[handed, later]), [5]);
    assert_eq!(unsent(&[later, handed]), [5]);
    // From the other worker, whose journal may be read first.
    let of_other = (1, sent(&first));
    for records in [[handed, later, of_other], [of_other, handed, later], [later, of_other, handed]] {
        assert!(unsent(&records).is_empty());
    }
}

#[test]
fn a_replace_that_nobody_has_heard_of_was_not_sent_unless_an_earlier_version_may_have_ignored_it() {
    let (change, later) = (replace(1, 5), enter(6));
    let known = RecordKind::Application { kind: RECORD_VENUES, session: 0, payload: br#"[{"name":"A"}]"# };
    let named = RecordKind::Application { kind: RECORD_VENUES, session: 0, payload: br#"["A"]"# };
    let (handed, later) = ((0, inbound(0, &change)), (0, sent(&later)));
    assert_eq!(unsent(&[(0, known), handed, later]), [5]);
    assert!(unsent(&[(0, named), handed, later]).is_empty());
    assert_eq!(unsent(&[(0, named), handed]), [5]);
}

#[test]
fn a_young_replace_is_not_lost_by_a_later_answer_to_a_client_of_another_worker() {
    // The second worker sends for both: for its own client, which replaces its order, and for a client of the first
    // worker.
    let (own, other) = (ACCOUNT, AccountId(0));
    let (first, second, third) = (enter(1), replace(1, 2), enter(7));
    let (of_first, of_second, of_third) = (live(1), test_messages::replaced(1, 2), accepted(7));
    let sent =
        |account, upstream, raw| (1, RecordKind::Sent { account, session: session_key(1, 0), upstream, raw });
    let answer = |home: u16, account, sequence, message| {
        let upstream_sequence = pack_sequence(session_key(1, 0), 0, sequence);
        (home, RecordKind::Sequenced { account, sequence, upstream_sequence, message })
    };
    let session = (
        1,
        RecordKind::Application {
            kind: RECORD_SESSION,
            session: session_key(1, 0),
            payload: b"\0DAY       ",
        },
    );
    let of_sender = [
        session,
        sent(own, 1, &first),
        answer(1, own, 1, &of_first),
        sent(own, 2, &second),
        sent(other, 3, &third),
    ];
    let told = [answer(1, own, 2, &of_second)];
    let of_home = [answer(0, other, 3, &of_third)];
    for is_told in [true, false] {
        let told = if is_told { &told[..] } else { &[] };
        let orders = [
            [&of_home[..], &of_sender[..], told].concat(),
            [&of_sender[..], told, &of_home[..]].concat(),
            [&of_sender[..], &of_home[..], told].concat(),
        ];
        for records in orders {
            let records: Vec<_> = records.iter().map(|(worker, kind)| (*worker, *kind, 0)).collect();
            let mut recovered = recover_within(OutstandingLimits::default(), &records);
            let (outstanding, resume) = &mut recovered.sessions[1];
            assert!(outstanding.knows(own, 2), "{is_told}");
            assert_eq!((outstanding.open(), outstanding.unanswered()), if is_told { (1, 0) } else { (2, 1) });
            assert_eq!(resume.next, if is_told { 3 } else { 2 }, "what was lost is asked for again");
            if !is_told {
                let mut raw = of_second.clone();
                let mut message = Outbound::decode(&of_second).expect("a message").0;
                let answer = outstanding.apply_response(&mut message, &mut raw).expect("it is known");
                assert_eq!((answer.origin.account, answer.origin.user_ref_num), (own, 2));
                assert_eq!((outstanding.open(), outstanding.unanswered()), (1, 0));
            }
        }
    }
}

#[test]
fn answers_that_a_home_has_lost_are_asked_for_again_also_when_routes_have_changed() {
    let sent =
        |account, upstream, raw| RecordKind::Sent { account, session: session_key(0, 0), upstream, raw };
    let (of_other, of_own, answer) = (enter(1), enter(1), live(1));
    let upstream_sequence = pack_sequence(session_key(0, 0), 0, 5);
    let records = [
        RecordKind::Application { kind: RECORD_SESSION, session: 0, payload: b"\0DAY       " },
        sent(ACCOUNT, 1, &of_other),
        sent(AccountId(0), 2, &of_own),
        RecordKind::Sequenced { account: AccountId(0), sequence: 1, upstream_sequence, message: &answer },
    ];
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    let nobody = |_: &str| None;
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW);
    for kind in records {
        recovering.take(&Record { worker: 0, t_ns: 0, generation: 0, kind });
    }
    // Each worker sends for its own clients now.
    let recovered = recovering.finish(|worker, home| worker == home, false);
    let resume = &recovered.sessions[0].1;
    assert_eq!(
        (resume.next, resume.heard),
        (1, 5),
        "the other worker's client may have had an answer before"
    );
}

fn rejected(user_ref_num: u32, reason: u16) -> Vec<u8> {
    let client_order_id = ClientOrderId([b' '; 14]);
    let message = Outbound::Rejected(Rejected { timestamp_ns: 1, user_ref_num, reason, client_order_id });
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// A record in a test's notation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// By the client's worker: it hands the order over.
    Handed(u32),
    /// By either worker: it refuses the order.
    Refused(u32),
    /// By the sender: the order and its number upstream.
    Sent(u32, u32),
    /// By the client's worker: an answer, and its number in the exchange's stream.
    Accepted(u32, u64),
    /// By the client's worker: the refusal.
    RefusalSent(u32),
}

const REASON: u16 = reject_reason::SHARES_EXCEED_THRESHOLD;

/// Shows the records of one journal.
fn read(recovering: &mut Recovering<'_>, account: AccountId, worker: u16, sender: u16, all: &[Written]) {
    for (written, sequence) in all.iter().zip(1..) {
        let (Written::Handed(number)
        | Written::Refused(number)
        | Written::Sent(number, _)
        | Written::Accepted(number, _)
        | Written::RefusalSent(number)) = *written;
        let raw = enter(number);
        let message = match written {
            Written::RefusalSent(_) => rejected(number, REASON),
            _ => accepted(number),
        };
        let key = session_key(sender.into(), 0);
        let kind = match *written {
            Written::Handed(_) => RecordKind::Inbound { account, upstream: 0, raw: &raw },
            Written::Refused(_) => RecordKind::Refused { account, reason: REASON, raw: &raw },
            Written::Sent(_, upstream) => RecordKind::Inbound { account, upstream, raw: &raw },
            Written::Accepted(_, of_exchange) => {
                let upstream_sequence = pack_sequence(key, 0, of_exchange);
                RecordKind::Sequenced { account, sequence, upstream_sequence, message: &message }
            }
            Written::RefusalSent(_) => {
                RecordKind::Sequenced { account, sequence, upstream_sequence: 0, message: &message }
            }
        };
        recovering.take(&Record { worker, t_ns: 0, generation: 0, kind });
    }
}

/// Each journal ends where the kill left it. Every order in any of them has exactly one outcome: an answer that the
/// client has, a place among the orders to resend, or a refusal now.
#[test]
fn every_journaled_order_ends_in_one_way_wherever_a_kill_has_cut_the_journals() {
    use Written::{Accepted, Handed, RefusalSent, Refused, Sent};
    let of_home = [
        Handed(1),
        Refused(2),
        RefusalSent(2),
        Handed(3),
        Handed(4),
        Accepted(1, 1),
        RefusalSent(3),
        Handed(6),
        Accepted(4, 2),
        RefusalSent(6),
        Handed(7),
        Handed(8),
    ];
    let of_sender = [Sent(1, 1), Refused(3), Sent(4, 2), Refused(6), Sent(7, 3)];
    for home in [0_u16, 1] {
        let (account, sender) = (AccountId(home.into()), 1 - home);
        for kept in 0..=of_home.len() {
            for sent in 0..=of_sender.len() {
                let (of_home, of_sender) = (&of_home[..kept], &of_sender[..sent]);
                // An order is sent once its record is durable, and answered once it was sent.
                let was_sent = |order: u32| {
                    of_sender.iter().any(|one| matches!(one, Sent(number, _) if *number == order))
                };
                let is_possible = |one: &Written| !matches!(one, Accepted(order, _) if !was_sent(*order));
                if !of_home.iter().all(is_possible) {
                    continue;
                }
                // The next start writes the missing records, and is killed too.
                let missing = ends_in_one_way(account, sender, of_home, of_sender);
                for said in 0..=missing.len() {
                    let told = missing[..said].iter().map(|number| RefusalSent(*number));
                    let of_home: Vec<Written> = of_home.iter().copied().chain(told).collect();
                    let rest = ends_in_one_way(account, sender, &of_home, of_sender);
                    assert_eq!(rest, missing[said..]);
                }
            }
        }
    }
}

/// The orders that are refused now.
fn ends_in_one_way(account: AccountId, sender: u16, of_home: &[Written], of_sender: &[Written]) -> Vec<u32> {
    let home = 1 - sender;
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW);
    for worker in [0, 1] {
        let all = if worker == home { of_home } else { of_sender };
        read(&mut recovering, account, worker, sender, all);
    }
    let recovered = recovering.finish(|_, _| true, false);
    let outstanding = &recovered.sessions[usize::from(sender)].0;
    let shown = format!("account {}, home {of_home:?}, sender {of_sender:?}", account.0);
    let told_now: Vec<u32> = recovered.unsent.iter().map(|(_, refusal)| refusal.user_ref_num).collect();
    let all = || of_home.iter().chain(of_sender);
    let numbers = |number: fn(&Written) -> Option<u32>| all().filter_map(number).collect::<BTreeSet<u32>>();
    let refused = numbers(|written| match *written {
        Written::Refused(number) => Some(number),
        _ => None,
    });
    let answered = numbers(|written| match *written {
        Written::Accepted(number, _) | Written::RefusalSent(number) => Some(number),
        _ => None,
    });
    let journaled = numbers(|written| match *written {
        Written::Handed(number) | Written::Sent(number, _) | Written::Refused(number) => Some(number),
        _ => None,
    });
    let mut again = 0;
    for number in journaled {
        let is_sent_again = outstanding.knows(account, number);
        let is_told_now = told_now.iter().filter(|told| **told == number).count();
        let ends = usize::from(answered.contains(&number)) + usize::from(is_sent_again) + is_told_now;
        assert_eq!(ends, 1, "order {number}: {shown}");
        again += usize::from(is_sent_again);
    }
    assert_eq!(outstanding.unanswered(), again, "{shown}");
    for (_, refusal) in &recovered.unsent {
        let reason = if refused.contains(&refusal.user_ref_num) { REASON } else { 2 };
        assert_eq!(refusal.reason, reason, "{shown}");
    }
    told_now
}

#[test]
fn what_any_client_has_had_says_how_far_a_session_has_come() {
    let (first, second) = (live(1), live(2));
    let answer = |account: u32, epoch: u16, of_exchange: u64, message| RecordKind::Sequenced {
        account: AccountId(account),
        sequence: 1,
        upstream_sequence: pack_sequence(session_key(0, 0), epoch, of_exchange),
        message,
    };
    let payload = b"\x01DAY       ";
    let begun = RecordKind::Application { kind: RECORD_SESSION, session: session_key(0, 0), payload };
    let recovered = recover(&[(0, begun), (0, answer(0, 1, 7, &first)), (1, answer(1, 1, 4, &second))]);
    let resume = &recovered.sessions[0].1;
    assert_eq!((resume.next, resume.heard), (5, 7));
    let recovered = recover(&[(0, begun), (0, answer(0, 1, 7, &first))]);
    let resume = &recovered.sessions[0].1;
    assert_eq!((resume.next, resume.heard), (1, 7), "the other worker's clients may have missed everything");
}

/// A record of a day on which the exchange begins a second session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Day {
    /// By the sender: the exchange has begun the session with this number.
    Begun(u16),
    /// By the sender: the order and its number upstream.
    Sent(u32, u32),
    /// By the client's worker: the answer in the session with this number, and its position there.
    Accepted(u32, u16, u64),
    /// By the client's worker: an accepted order of the first session has expired.
    Expired(u32),
    /// By the client's worker: an unanswered one has.
    Refused(u32),
}

fn read_day(recovering: &mut Recovering<'_>, worker: u16, sender: u16, all: &[Day]) {
    let key = session_key(sender.into(), 0);
    for (record, sequence) in all.iter().zip(1..) {
        let (upstream_sequence, message) = match *record {
            Day::Begun(epoch) => {
                // As an earlier version wrote it, with a one-byte epoch.
                let payload = [&[epoch as u8][..], format!("DAY{epoch:<7}").as_bytes()].concat();
                let kind = RecordKind::Application { kind: RECORD_SESSION, session: key, payload: &payload };
                recovering.take(&Record { worker, t_ns: 0, generation: 0, kind });
                continue;
            }
            Day::Sent(number, upstream) => {
                let raw = enter(number);
                let session = sent_key(key, if number <= 3 { 1 } else { 2 });
                let kind = RecordKind::Sent { account: ACCOUNT, session, upstream, raw: &raw };
                recovering.take(&Record { worker, t_ns: 0, generation: 0, kind });
                continue;
            }
            Day::Accepted(number, epoch, of_exchange) => {
                (pack_sequence(key, epoch, of_exchange), live(number))
            }
            Day::Expired(number) => (pack_sequence(key, 1, 0), canceled(number)),
            Day::Refused(number) => {
                (pack_sequence(key, 1, 0), rejected(number, reject_reason::DESTINATION_CLOSED))
            }
        };
        let kind = RecordKind::Sequenced { account: ACCOUNT, sequence, upstream_sequence, message: &message };
        recovering.take(&Record { worker, t_ns: 0, generation: 0, kind });
    }
}

fn canceled(user_ref_num: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let canceled = Canceled { timestamp_ns: 1, user_ref_num, quantity: 100, reason: b'T' };
    Outbound::Canceled(canceled).encode(&mut bytes);
    bytes
}

#[test]
fn every_order_of_a_session_that_is_over_expires_once_wherever_a_kill_has_cut_the_journals() {
    use Day::{Accepted, Begun, Expired, Refused, Sent};
    let of_sender = [Begun(1), Sent(1, 1), Sent(2, 2), Sent(3, 3), Begun(2), Sent(4, 1), Sent(5, 2)];
    let of_home = [Accepted(1, 1, 1), Expired(1), Refused(2), Refused(3), Accepted(4, 2, 1)];
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    // The journal of the client's worker is read last or first, or is the same.
    for (home, sender) in [(1, 0), (0, 1), (0, 0)] {
        for sent in 0..=of_sender.len() {
            for told in 0..=of_home.len() {
                let (of_sender, of_home) = (&of_sender[..sent], &of_home[..told]);
                let was_sent = |order: u32| {
                    of_sender.iter().any(|one| matches!(one, Sent(number, _) if *number == order))
                };
                // A sent order is durable before it is answered, and before it expires.
                let is_possible = |one: &Day| match one {
                    Accepted(order, ..) => was_sent(*order),
                    Expired(_) | Refused(_) => was_sent(3),
                    Begun(_) | Sent(..) => true,
                };
                if !of_home.iter().all(is_possible) {
                    continue;
                }
                let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW);
                for worker in [0, 1] {
                    let sent = if worker == sender { of_sender } else { &[] };
                    let told = if worker == home { of_home } else { &[] };
                    read_day(&mut recovering, worker, sender, sent);
                    read_day(&mut recovering, worker, sender, told);
                }
                let recovered = recovering.finish(|_, _| true, false);
                let shown = format!("{home}, {sender}, {of_sender:?}, {of_home:?}");
                let is_over = of_sender.contains(&Begun(2));
                let outstanding = &recovered.sessions[usize::from(sender)].0;
                for order in (1..=5).filter(|order| was_sent(*order)) {
                    let is_told = |one: &&Day| matches!(one, Expired(it) | Refused(it) if *it == order);
                    let told = of_home.iter().filter(is_told).count();
                    let now = recovered.expired.iter();
                    let now = now.filter(|(_, expiry)| expiry.origin.user_ref_num == order).count();
                    let is_open = outstanding.knows(ACCOUNT, order);
                    assert_eq!(told + now + usize::from(is_open), 1, "order {order}: {shown}");
                    assert!(!is_open || order > 3 || !is_over, "order {order}: {shown}");
                }
                for (of, expiry) in &recovered.expired {
                    assert_eq!(unpack_sequence(*of), (session_key(sender.into(), 0), 1, 0));
                    let left = (of_home.contains(&Accepted(1, 1, 1)) && expiry.origin.user_ref_num == 1)
                        .then_some(100);
                    assert_eq!(expiry.left, left, "{shown}");
                }
                let sent_anew = of_sender.iter().filter(|one| matches!(one, Sent(4 | 5, _))).count() as u32;
                if is_over {
                    assert_eq!(outstanding.last_number(), sent_anew, "{shown}");
                }
            }
        }
    }
}

#[test]
fn what_was_sent_long_ago_is_not_sent_again_and_a_clock_that_was_set_back_makes_nothing_old() {
    let now = Moment { wall_ns: 1_000, engine_ns: 50 };
    let until = |sent_wall_ns| now.resend_until_ns(sent_wall_ns, 100);
    assert_eq!([900, 950, 1_000, 5_000].map(until), [50, 100, 150, 150]);
    assert_eq!([0, 899].map(until), [0, 0]);
}

#[test]
fn an_order_that_has_ended_by_itself_is_cancelled_when_the_exchange_comes_back_and_is_not_told_again() {
    use Day::{Begun, Refused, Sent};
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    // The journal of the client's worker is read last or first, or is the same.
    for (home, sender) in [(1, 0), (0, 1), (0, 0)] {
        let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW);
        for worker in [0, 1] {
            if worker == sender {
                read_day(&mut recovering, worker, sender, &[Begun(1), Sent(1, 7), Sent(2, 8)]);
            }
            if worker == home {
                read_day(&mut recovering, worker, sender, &[Refused(2)]);
            }
        }
        let recovered = recovering.finish(|_, _| true, false);
        let outstanding = &recovered.sessions[usize::from(sender)].0;
        assert_eq!((outstanding.open(), outstanding.unanswered(), recovered.expired.len()), (1, 1, 0));
        let mut cancels = Vec::new();
        assert_eq!(outstanding.cancel_given_up(&mut cancels), 1);
        assert_eq!(inbound_user_ref_num(&cancels[3..]), Some(8), "{home}, {sender}");
    }
}

#[test]
fn what_expired_is_told_once_also_of_a_session_that_had_more_orders_than_there_is_room_for() {
    use Day::{Begun, Refused, Sent};
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let limits = OutstandingLimits { open_max: 1, ..OutstandingLimits::default() };
    let venues = [("A".to_owned(), limits)];
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW);
    let all = [Begun(1), Sent(1, 1), Sent(2, 2), Sent(3, 3), Begun(2), Refused(3), Refused(2), Refused(1)];
    read_day(&mut recovering, 0, 0, &all);
    let recovered = recovering.finish(|_, _| true, false);
    assert!(recovered.expired.is_empty(), "{:?}", recovered.expired);
}

#[test]
fn a_session_whose_number_comes_again_has_nothing_of_the_one_that_had_it_before() {
    use Day::{Accepted, Begun, Sent};
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    let mut recovering = Recovering::new(1, &venues, &symbols, &nobody, Controls::default(), NOW);
    read_day(&mut recovering, 0, 0, &[Begun(1), Sent(1, 1), Accepted(1, 1, 700)]);
    (2..=255).chain([1]).for_each(|epoch| read_day(&mut recovering, 0, 0, &[Begun(epoch)]));
    let resume = &recovering.finish(|_, _| true, false).sessions[0].1;
    assert_eq!((resume.epoch, resume.next, resume.heard, resume.delivered.len()), (1, 1, 0, 0));
}

/// With order numbers that begin with 1 in each session with clients; clients can join the session `current`.
fn recover_sessions(current: u16, records: &[(u16, RecordKind<'_>)]) -> Recovered {
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW)
        .with_numbers_that_restart(true);
    for (generation, kind) in records {
        recovering.take(&Record { worker: 0, t_ns: 0, generation: *generation, kind: *kind });
    }
    recovering.set_current_session(current);
    recovering.finish(|_, _| true, false)
}

#[test]
fn a_number_is_another_order_in_the_next_session_with_clients() {
    let (first, ended) = (enter(1), accepted(1));
    let upstream_sequence = pack_sequence(session_key(0, 0), 0, 2);
    let answer = RecordKind::Sequenced { account: ACCOUNT, sequence: 1, upstream_sequence, message: &ended };
    let sent = |upstream| RecordKind::Sent { account: ACCOUNT, session: 0, upstream, raw: &first };
    let number_of = |recovered: &Recovered| -> Vec<u32> {
        recovered.unsent.iter().map(|(_, reject)| reject.user_ref_num).collect()
    };
    // Handed to another worker, and lost on the way: an earlier session had the number too.
    let recovered = recover_sessions(1, &[(0, sent(1)), (0, answer), (1, inbound(0, &first))]);
    assert_eq!((number_of(&recovered), recovered.stranded.len()), (vec![1], 0));
    // An order of this session, with the number that an earlier one has ended with.
    let recovered = recover_sessions(1, &[(0, sent(1)), (0, answer), (1, sent(2))]);
    assert_eq!((number_of(&recovered), recovered.open.len()), (Vec::new(), 1));
    // A clock was set back between the two starts: the answer is read last, and ends nothing.
    let recovered = recover_sessions(1, &[(0, sent(1)), (1, sent(2)), (0, answer)]);
    assert_eq!(recovered.open.len(), 1);
    let kept = recovered.sessions[0].1.delivered[&ACCOUNT];
    assert_eq!(kept, 2, "that the client has it is known");
}

#[test]
fn no_order_is_open_beyond_its_session_with_clients_if_numbers_begin_again() {
    let (first, answered) = (enter(1), live(1));
    let upstream_sequence = pack_sequence(session_key(0, 0), 0, 2);
    let answer =
        RecordKind::Sequenced { account: ACCOUNT, sequence: 1, upstream_sequence, message: &answered };
    let records =
        [(0, RecordKind::Sent { account: ACCOUNT, session: 0, upstream: 1, raw: &first }), (0, answer)];
    assert!(recover_sessions(0, &records).stranded.is_empty(), "that session goes on");
    // An operator has let it expire, and another order has its number now.
    let next = RecordKind::Sent { account: ACCOUNT, session: 0, upstream: 2, raw: &first };
    let later = recover_sessions(1, &[&records[..], &[(1, next)][..]].concat());
    let mut cancels = Vec::new();
    let left = later.sessions[0].0.cancel_given_up(&mut cancels);
    assert_eq!((left, later.open.len(), later.expired.len()), (1, 1, 0), "the former is cancelled");
    let stranded = recover_sessions(1, &records).stranded;
    let expected = Stranded { account: ACCOUNT, user_ref_num: 1, venue: "A".into(), why: Why::Session };
    assert_eq!(stranded, [expected]);
    let unsent = recover_sessions(1, &[(0, inbound(0, &first))]).unsent;
    assert!(unsent.is_empty(), "its client cannot join the session that it belongs to");
}
