//! What is known of orders where a venue has another address than when they were sent, or the worker another login
//! name.

use super::*;

/// Orders 1, which is live, and 2, which has no answer, sent by the second worker; then a start that logs in elsewhere.
fn moved(said: &[u8], now: &[u8], when_full: WhenFull, gives_up: bool) -> Recovered {
    let (first, second, answer) = (enter(1), enter(2), live(1));
    let key = session_key(1, 0);
    let sent =
        |upstream, raw| RecordKind::Sent { account: ACCOUNT, session: sent_key(key, 1), upstream, raw };
    let upstream_sequence = pack_sequence(key, 1, 2);
    let records = [
        RecordKind::Application { kind: RECORD_VENUES, session: 0, payload: said },
        RecordKind::Application { kind: RECORD_SESSION, session: key, payload: b"\x01DAY       " },
        sent(1, &first),
        RecordKind::Sequenced { account: ACCOUNT, sequence: 1, upstream_sequence, message: &answer },
        sent(2, &second),
    ];
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits { when_full, ..OutstandingLimits::default() })];
    let Some(Venues::Known(mut known)) = of_venues_record(now) else { panic!("it is a record") };
    let endpoint = known.remove(0).endpoint.expect("it is one of this version");
    let mut recovering = Recovering::new(2, &venues, &symbols, &nobody, Controls::default(), NOW)
        .with_endpoints([((1, 0), endpoint)].into());
    for kind in records {
        recovering.take(&Record { worker: 1, t_ns: 0, generation: 0, kind });
    }
    recovering.finish(|_, _| true, gives_up)
}

const HERE: &[u8] = br#"[{"name":"A","address":"127.0.0.1:1","username":"G00002"}]"#;
const THERE: &[u8] = br#"[{"name":"A","address":"127.0.0.1:2","username":"G00002"}]"#;
const CONFIRMED: &[u8] =
    br#"[{"name":"A","address":"127.0.0.1:2","username":"G00002","moved_from":["127.0.0.1:1"]}]"#;
const OTHER_LOGIN: &[u8] = br#"[{"name":"A","address":"127.0.0.1:1","username":"G00001"}]"#;

#[test]
fn orders_of_another_address_or_login_are_not_taken_for_those_of_this_one() {
    let stranded = |said: &[u8], now: &[u8], when_full| -> Vec<(u32, Why)> {
        let found = moved(said, now, when_full, false).stranded.into_iter();
        found.map(|it| (it.user_ref_num, it.why)).collect()
    };
    for (said, now) in [(HERE, HERE), (HERE, CONFIRMED), (&br#"["A"]"#[..], THERE)] {
        assert!(stranded(said, now, WhenFull::Refuse).is_empty());
        let recovered = moved(said, now, WhenFull::Refuse, false);
        let (outstanding, resume) = &recovered.sessions[1];
        assert_eq!((outstanding.open(), outstanding.unanswered()), (2, 1));
        assert_eq!(resume.session, Some("DAY".parse().expect("a name")));
    }
    let address = Why::Address { from: "127.0.0.1:1".into(), to: "127.0.0.1:2".into() };
    let mut found = stranded(HERE, THERE, WhenFull::Refuse);
    found.sort_unstable_by_key(|(number, _)| *number);
    assert_eq!(found, [(1, address.clone()), (2, address.clone())]);
    // Where nobody knows whether the first one is open.
    assert_eq!(stranded(HERE, THERE, WhenFull::ForgetOldest), [(2, address)]);
    let login = Why::Login { from: "G00002".into(), to: "G00001".into() };
    assert_eq!(stranded(HERE, OTHER_LOGIN, WhenFull::ForgetOldest), [(2, login)]);
}

#[test]
fn orders_of_another_address_expire_and_the_session_there_is_none_that_is_known() {
    let recovered = moved(HERE, THERE, WhenFull::Refuse, true);
    let mut expired: Vec<_> =
        recovered.expired.iter().map(|(of, it)| (*of, it.origin.user_ref_num, it.left)).collect();
    expired.sort_unstable();
    let of = pack_sequence(session_key(1, 0), 1, 0);
    assert_eq!(expired, [(of, 1, Some(100)), (of, 2, None)]);
    let (outstanding, resume) = &recovered.sessions[1];
    assert_eq!((outstanding.open(), outstanding.unanswered(), outstanding.account_of(1)), (0, 0, None));
    assert_eq!((resume.session, resume.epoch, resume.next, resume.heard), (None, 1, 0, 0));
}

#[test]
fn a_start_that_has_left_a_session_has_left_it_for_good() {
    let (order, of_order) = (enter(1), live(1));
    let symbols = Symbols { other: Some(0), ..Symbols::default() };
    let nobody = |_: &str| None;
    let venues = [("A".to_owned(), OutstandingLimits::default())];
    let named = |payload| RecordKind::Application { kind: RECORD_VENUES, session: 0, payload };
    let upstream_sequence = pack_sequence(session_key(0, 0), 1, 2);
    let records = [
        named(HERE),
        RecordKind::Application { kind: RECORD_SESSION, session: 0, payload: b"\x01DAY       " },
        RecordKind::Sent { account: ACCOUNT, session: sent_key(0, 1), upstream: 1, raw: &order },
        RecordKind::Sequenced { account: ACCOUNT, sequence: 1, upstream_sequence, message: &of_order },
        named(THERE),
        named(HERE),
    ];
    // Killed before it had told of the first order, and before it was let in anywhere.
    let mut recovering = Recovering::new(1, &venues, &symbols, &nobody, Controls::default(), NOW);
    for kind in records {
        recovering.take(&Record { worker: 0, t_ns: 0, generation: 0, kind });
    }
    let recovered = recovering.finish(|_, _| true, false);
    assert_eq!(recovered.expired.len(), 1);
    let (outstanding, resume) = &recovered.sessions[0];
    assert_eq!((outstanding.open(), resume.session, resume.next), (0, None, 0));
}
