//! Tests of the messages requested when journals have lost answers, clients have other homes, or accounts were
//! removed.

use super::*;
use crate::{
    gateway::worker_message::{home_record, next_epoch, session_record},
    orders::ApplicationKind,
};

/// An upstream session of the first worker, in the exchange's first session.
const KEY: u32 = 0;
const EPOCH: u16 = 1;

fn begun(epoch: u16) -> Vec<u8> {
    session_record(epoch, &"DAY".parse().expect("a name")).to_vec()
}

/// As an earlier version wrote it, with a one-byte epoch.
fn begun_in_a_byte(epoch: u8) -> Vec<u8> {
    [&[epoch][..], b"DAY       "].concat()
}

/// The first worker's record of where answers go.
fn home(home: u16, before: u64) -> [u8; 12] {
    home_record(EPOCH, home, before)
}

fn of_session(kind: ApplicationKind, payload: &[u8]) -> (u16, RecordKind<'_>) {
    (0, RecordKind::Application { kind, session: session_key(0, 0), payload })
}

fn sent(account: u32, upstream: u32, raw: &[u8]) -> (u16, RecordKind<'_>) {
    let session = sent_key(KEY, EPOCH);
    (0, RecordKind::Sent { account: AccountId(account), session, upstream, raw })
}

fn answer(journal: u16, account: u32, of_exchange: u64, message: &[u8]) -> (u16, RecordKind<'_>) {
    let upstream_sequence = pack_sequence(KEY, EPOCH, of_exchange);
    let account = AccountId(account);
    (journal, RecordKind::Sequenced { account, sequence: 1, upstream_sequence, message })
}

/// Recovers with two workers and the accounts below this number configured.
fn recovered(configured: usize, records: &[(u16, RecordKind<'_>)]) -> Recovered {
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    let mut recovering =
        Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW).of_accounts(configured);
    for (worker, kind) in records {
        recovering.take(&Record { worker: *worker, t_ns: 0, generation: 0, kind: *kind });
    }
    // Every worker sends for its own clients.
    recovering.finish(|worker, home| worker == home, false)
}

#[test]
fn answers_that_a_journal_has_lost_are_asked_for_although_their_client_lives_elsewhere_now() {
    let (name, other, lost) = (begun(EPOCH), enter(1), enter(1));
    let (of_other, first, second) = (accepted(1), home(0, 1), home(1, 2));
    let begun = of_session(RECORD_SESSION, &name);
    // The second worker's journal failed before it stored anything: its client was informed of nothing.
    let before = [
        begun,
        of_session(RECORD_HOME, &first),
        sent(2, 1, &other),
        of_session(RECORD_HOME, &second),
        sent(0, 2, &lost),
        answer(0, 2, 9, &of_other),
    ];
    // That client's home is the first worker now.
    let resume = &recovered(4, &before).sessions[0].1;
    assert_eq!((resume.next, resume.heard), (3, 9));
    // The next start requests them, and fails as well, when the other worker is further ahead.
    let (again, later) = (home(0, 2), accepted(7));
    let records = [&before[..], &[of_session(RECORD_HOME, &again), answer(1, 1, 12, &later)]].concat();
    let resume = &recovered(4, &records).sessions[0].1;
    assert_eq!((resume.next, resume.heard), (3, 12));
    // At the end it has all of them.
    let answered = accepted(1);
    let records = [&records[..], &[answer(0, 0, 6, &answered), answer(0, 2, 13, &of_other)]].concat();
    let resume = &recovered(4, &records).sessions[0].1;
    assert_eq!((resume.next, resume.heard), (13, 13));
}

#[test]
fn answers_in_other_journals_to_a_session_that_had_the_same_number_count_for_nothing() {
    let names: Vec<Vec<u8>> = (1..=255).chain([1]).map(begun_in_a_byte).collect();
    let (order, of_order) = (enter(1), accepted(1));
    let mut records =
        vec![of_session(RECORD_SESSION, &names[0]), sent(1, 1, &order), answer(1, 1, 700, &of_order)];
    records.extend(names[1..].iter().map(|name| of_session(RECORD_SESSION, name)));
    let resume = &recovered(4, &records).sessions[0].1;
    assert_eq!((resume.epoch, resume.next, resume.heard, resume.delivered.len()), (1, 1, 0, 0));
}

#[test]
fn answers_of_an_early_session_are_none_of_one_that_began_hundreds_later_whichever_journal_is_read_first() {
    // From the first session of a journal on, in the order of their counts.
    let mut count = 0;
    let counts = std::iter::repeat_with(|| {
        count = next_epoch(count).expect("there are so many");
        count
    });
    let counts: Vec<u16> = counts.take(600).collect();
    let names: Vec<Vec<u8>> = counts.iter().map(|count| begun(*count)).collect();
    let (order, of_order) = (enter(1), accepted(1));
    let session = |index: usize| of_session(RECORD_SESSION, &names[index]);
    for later in [1, 255, 256, 257, 511, 512, 599] {
        let sent = RecordKind::Sent {
            account: AccountId(1),
            session: sent_key(KEY, counts[0]),
            upstream: 1,
            raw: &order,
        };
        let upstream_sequence = pack_sequence(KEY, counts[0], 700);
        let of_home = RecordKind::Sequenced {
            account: AccountId(1),
            sequence: 1,
            upstream_sequence,
            message: &of_order,
        };
        let mut of_sender = vec![session(0), (0, sent)];
        of_sender.extend((1..=later).map(session));
        for records in [
            [&of_sender[..], &[(1, of_home)]].concat(),
            [&of_sender[..2], &[(1, of_home)], &of_sender[2..]].concat(),
        ] {
            let resume = &recovered(4, &records).sessions[0].1;
            assert_eq!((resume.epoch, resume.next, resume.heard), (counts[later], 1, 0), "{later}");
            assert!(resume.delivered.is_empty(), "{later}");
        }
    }
}

#[test]
fn what_is_open_of_an_account_that_is_not_configured_any_more_is_named() {
    let (name, order, of_order, unsent) = (begun(EPOCH), enter(1), live(1), enter(2));
    let handed = (0, RecordKind::Inbound { account: AccountId(1), upstream: 0, raw: &unsent[..] });
    let open = [of_session(RECORD_SESSION, &name), sent(1, 1, &order), answer(0, 1, 5, &of_order), handed];
    let named: Vec<_> = recovered(1, &open).stranded.into_iter().map(|it| (it.account, it.why)).collect();
    assert_eq!(named, [(AccountId(1), Why::Account)]);
    assert!(recovered(2, &open).stranded.is_empty());
    // No order is open: the rest waits for it, and the session's progress is known.
    let ended = canceled(1);
    let mut left = recovered(1, &[&open[..], &[answer(0, 1, 6, &ended)]].concat());
    assert!(left.stranded.is_empty());
    assert_eq!(left.unsent.len(), 1);
    left.leave_removed(1);
    assert!(left.unsent.is_empty() && left.open.is_empty());
    let (outstanding, resume) = &left.sessions[0];
    assert_eq!((outstanding.open(), outstanding.account_of(1), resume.heard), (0, None, 6));
}

#[test]
fn an_order_is_elsewhere_where_another_worker_has_it_than_sends_for_its_account_now() {
    let (name, first, second) = (begun(EPOCH), enter(1), enter(2));
    let all = recovered(4, &[of_session(RECORD_SESSION, &name), sent(0, 1, &first), sent(3, 2, &second)]);
    let own = |account: AccountId| (account.0 % 2) as u16;
    assert_eq!(all.elsewhere(1, own), [(AccountId(3), 2, 0)]);
    assert!(all.elsewhere(1, |_| 0).is_empty());
}
