//! Tests of orders whose venue has another address than when they were sent, or whose worker has another login name.

use super::*;

const NAMES: &[u8] = br#"[{"name":"A"}]"#;
/// As an earlier version wrote them.
const NAMED: &[u8] = br#"["A"]"#;
const HERE: &[u8] = br#"{"address":"127.0.0.1:1","username":"G00002"}"#;
const THERE: &[u8] = br#"{"address":"127.0.0.1:2","username":"G00002"}"#;
const CONFIRMED: &[u8] = br#"{"address":"127.0.0.1:2","username":"G00002","moved_from":["127.0.0.1:1"]}"#;
const OTHER_LOGIN: &[u8] = br#"{"address":"127.0.0.1:1","username":"G00001"}"#;

/// The second worker's session.
fn key() -> u32 {
    session_key(1, 0)
}

fn named(payload: &[u8]) -> RecordKind<'_> {
    RecordKind::Application { kind: RECORD_VENUES, session: 0, payload }
}

/// The second worker has logged in.
fn logged_in(payload: &[u8]) -> RecordKind<'_> {
    RecordKind::Application { kind: RECORD_ENDPOINT, session: key(), payload }
}

fn joined(payload: &[u8]) -> RecordKind<'_> {
    RecordKind::Application { kind: RECORD_SESSION, session: key(), payload }
}

fn sent_in(epoch: u16, upstream: u32, raw: &[u8]) -> RecordKind<'_> {
    RecordKind::Sent { account: ACCOUNT, session: sent_key(key(), epoch), upstream, raw }
}

fn answered_in(epoch: u16, of_exchange: u64, message: &[u8]) -> RecordKind<'_> {
    let upstream_sequence = pack_sequence(key(), epoch, of_exchange);
    RecordKind::Sequenced { account: ACCOUNT, sequence: 1, upstream_sequence, message }
}

/// A start that logs in at `now`.
fn started(now: &[u8], when_full: WhenFull, gives_up: bool, records: &[(u16, RecordKind<'_>)]) -> Recovered {
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits { when_full, ..OutstandingLimits::default() })];
    let endpoint = of_endpoint_record(now).expect("it is a record");
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW)
        .with_endpoints([((1, 0), endpoint)].into());
    for (worker, kind) in records {
        recovering.take(&Record { worker: *worker, t_ns: 0, generation: 0, kind: *kind });
    }
    recovering.finish(|_, _| true, gives_up)
}

/// The second worker, which has logged in here, sent order 1, which is live, and order 2, which is unanswered; then
/// come other records of its journal, and a start.
fn moved(
    said: Option<&[u8]>,
    behind: &[RecordKind<'_>],
    now: &[u8],
    when_full: WhenFull,
    gives_up: bool,
) -> Recovered {
    let (first, second, answer) = (enter(1), enter(2), live(1));
    let mut records = vec![named(if said.is_some() { NAMES } else { NAMED })];
    records.extend(said.map(logged_in));
    records.extend([
        joined(b"\x01DAY       "),
        sent_in(1, 1, &first),
        answered_in(1, 2, &answer),
        sent_in(1, 2, &second),
    ]);
    records.extend(behind);
    let records: Vec<_> = records.into_iter().map(|kind| (1, kind)).collect();
    started(now, when_full, gives_up, &records)
}

#[test]
fn orders_of_another_address_or_login_are_not_taken_for_those_of_this_one() {
    let stranded = |said: Option<&[u8]>, now: &[u8], when_full| -> Vec<(u32, Why)> {
        let found = moved(said, &[], now, when_full, false).stranded.into_iter();
        found.map(|it| (it.user_ref_num, it.why)).collect()
    };
    for (said, now) in [(Some(HERE), HERE), (Some(HERE), CONFIRMED), (None, THERE)] {
        assert!(stranded(said, now, WhenFull::Refuse).is_empty());
        let recovered = moved(said, &[], now, WhenFull::Refuse, false);
        let (outstanding, resume) = &recovered.sessions[1];
        assert_eq!((outstanding.open(), outstanding.unanswered()), (2, 1));
        assert_eq!(resume.session, Some("DAY".parse().expect("a name")));
    }
    let address = Why::Address { from: "127.0.0.1:1".into(), to: "127.0.0.1:2".into() };
    let mut found = stranded(Some(HERE), THERE, WhenFull::Refuse);
    found.sort_unstable_by_key(|(number, _)| *number);
    assert_eq!(found, [(1, address.clone()), (2, address.clone())]);
    // If it is unknown whether the first one is open.
    assert_eq!(stranded(Some(HERE), THERE, WhenFull::ForgetOldest), [(2, address)]);
    let login = Why::Login { from: "G00002".into(), to: "G00001".into() };
    assert_eq!(stranded(Some(HERE), OTHER_LOGIN, WhenFull::ForgetOldest), [(2, login)]);
}

#[test]
fn orders_of_another_address_expire_and_the_session_there_is_none_that_is_known() {
    let recovered = moved(Some(HERE), &[], THERE, WhenFull::Refuse, true);
    let mut expired: Vec<_> =
        recovered.expired.iter().map(|(of, it)| (*of, it.origin.user_ref_num, it.left)).collect();
    expired.sort_unstable();
    let of = pack_sequence(key(), 1, 0);
    assert_eq!(expired, [(of, 1, Some(100)), (of, 2, None)]);
    let (outstanding, resume) = &recovered.sessions[1];
    assert_eq!((outstanding.open(), outstanding.unanswered(), outstanding.account_of(1)), (0, 0, None));
    assert_eq!((resume.session, resume.epoch, resume.next, resume.heard), (None, 1, 0, 0));
}

#[test]
fn orders_are_where_they_were_when_a_start_elsewhere_was_let_in_nowhere() {
    // That start writes its own names, and where answers go.
    let home = crate::gateway::worker_message::home_record(1, 1, 2);
    let home = RecordKind::Application { kind: RECORD_HOME, session: key(), payload: &home };
    let recovered = moved(Some(HERE), &[named(NAMES), home], HERE, WhenFull::Refuse, false);
    assert!(recovered.stranded.is_empty() && recovered.expired.is_empty());
    let (outstanding, resume) = &recovered.sessions[1];
    assert_eq!((outstanding.open(), outstanding.unanswered()), (2, 1));
    assert_eq!((resume.session, resume.epoch), (Some("DAY".parse().expect("a name")), 1));
    // An order that was admitted there continues there.
    let confirmed = logged_in(CONFIRMED);
    for (now, stranded) in [(HERE, 2), (THERE, 0)] {
        let recovered = moved(Some(HERE), &[named(NAMES), confirmed], now, WhenFull::Refuse, false);
        assert_eq!(recovered.stranded.len(), stranded);
    }
}

#[test]
fn a_start_that_has_left_a_session_has_left_it_for_good() {
    // Killed before it had reported the orders, and before it had joined a session after its login.
    let recovered = moved(Some(HERE), &[logged_in(THERE), logged_in(HERE)], HERE, WhenFull::Refuse, false);
    assert_eq!(recovered.expired.len(), 2);
    let (outstanding, resume) = &recovered.sessions[1];
    assert_eq!((outstanding.open(), resume.session, resume.next), (0, None, 0));
}

#[test]
fn answers_of_a_session_elsewhere_count_whichever_journal_is_read_first() {
    let (first, second) = (enter(1), enter(2));
    let (of_first, of_second) = (accepted(1), accepted(2));
    let of_sender = [
        named(NAMES),
        logged_in(HERE),
        joined(b"\x01DAY       "),
        sent_in(1, 1, &first),
        logged_in(THERE),
        joined(b"\x02DAY       "),
        sent_in(2, 1, &second),
    ];
    let of_sender = of_sender.map(|kind| (1, kind));
    // The client's home is the first worker.
    let of_home = [named(NAMES), answered_in(1, 7, &of_first), answered_in(2, 9, &of_second)];
    let of_home = of_home.map(|kind| (0, kind));
    for records in [[&of_sender[..], &of_home[..]].concat(), [&of_home[..], &of_sender[..]].concat()] {
        let recovered = started(THERE, WhenFull::Refuse, false, &records);
        assert!(recovered.expired.is_empty());
        let (outstanding, resume) = &recovered.sessions[1];
        assert_eq!((outstanding.open(), resume.epoch, resume.heard), (0, 2, 9));
        assert_eq!(resume.delivered.get(&ACCOUNT), Some(&9));
    }
}
