//! Tests of checkpoints of a recovery: any records, cut anywhere, give the same state as all of them at once.

use weir_stats::random::Random;

use super::*;
use crate::{
    gateway::{
        recovery::checkpoint::{Collected, Loading},
        venue_record::{VenueRecord, venues_record},
        worker::{RECORD_CONTROL, RECORD_ENDPOINT, RECORD_HOME, RECORD_SESSION, RECORD_VENUES},
        worker_message::{home_record, session_record},
    },
    journal::fields::{FieldReader, FieldWriter},
    orders::Collector,
};

const WORKERS: usize = 2;
const ACCOUNTS: u64 = 4;
const AGE_NS: u64 = 50;

/// A record that owns its bytes.
struct Owned {
    worker: u16,
    t_ns: u64,
    generation: u16,
    kind: OwnedKind,
}

enum OwnedKind {
    Sequenced(AccountId, u64, Vec<u8>),
    Inbound(AccountId, Vec<u8>),
    Sent(AccountId, u32, u32, Vec<u8>),
    Refused(AccountId, u16, Vec<u8>),
    Application(crate::orders::ApplicationKind, u32, Vec<u8>),
}

impl Owned {
    fn show<T>(&self, act: impl FnOnce(&Record<'_>) -> T) -> T {
        let kind = match &self.kind {
            OwnedKind::Sequenced(account, upstream_sequence, message) => RecordKind::Sequenced {
                account: *account,
                sequence: 1,
                upstream_sequence: *upstream_sequence,
                message,
            },
            OwnedKind::Inbound(account, raw) => RecordKind::Inbound { account: *account, upstream: 0, raw },
            OwnedKind::Sent(account, session, upstream, raw) => {
                RecordKind::Sent { account: *account, session: *session, upstream: *upstream, raw }
            }
            OwnedKind::Refused(account, reason, raw) => {
                RecordKind::Refused { account: *account, reason: *reason, raw }
            }
            OwnedKind::Application(kind, session, payload) => {
                RecordKind::Application { kind: *kind, session: *session, payload }
            }
        };
        act(&Record { worker: self.worker, t_ns: self.t_ns, generation: self.generation, kind })
    }
}

fn encoded(message: &Inbound<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

fn answered(message: &Outbound) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

/// A client's message about one of few orders.
fn inbound_message(random: &mut Random) -> Vec<u8> {
    let number = |random: &mut Random| 1 + random.below(12) as u32;
    match random.below(5) {
        0..2 => enter(number(random)),
        2 => encoded(&test_messages::replace(number(random), number(random))),
        3 => encoded(&Inbound::Cancel(Cancel {
            user_ref_num: number(random),
            quantity: random.below(90) as u32,
        })),
        _ => {
            let (user_ref_num, quantity) = (number(random), 1 + random.below(90) as u32);
            encoded(&Inbound::Modify(Modify { user_ref_num, side: b'B', quantity }))
        }
    }
}

fn outbound_message(random: &mut Random) -> Vec<u8> {
    let user_ref_num = 1 + random.below(12) as u32;
    match random.below(7) {
        0 => live(user_ref_num),
        1 => accepted(user_ref_num),
        2 => test_messages::replaced(1 + random.below(12) as u32, user_ref_num),
        3 => canceled(user_ref_num),
        4 => rejected(user_ref_num, reject_reason::DESTINATION_CLOSED),
        5 => answered(&Outbound::BrokenTrade(ouch::BrokenTrade {
            timestamp_ns: 1,
            user_ref_num,
            match_number: 1,
            reason: b'E',
            client_order_id: ClientOrderId([b' '; 14]),
        })),
        _ => answered(&Outbound::Executed(ouch::Executed {
            timestamp_ns: 1,
            user_ref_num,
            quantity: 1 + random.below(120) as u32,
            price: 10_000 + random.below(9),
            liquidity: b'A',
            match_number: 1,
        })),
    }
}

/// What an operator changes.
fn change(random: &mut Random) -> Change {
    let account = [None, Some("0".to_owned()), Some("1".to_owned())][random.below(3) as usize].clone();
    match random.below(3) {
        0 => Change::Kill { account, on: random.below(2) == 0 },
        1 => {
            let set = serde_json::Map::from_iter([("shares_max".to_owned(), random.below(9).into())]);
            Change::LimitValues { account, set, reset: BTreeSet::new() }
        }
        _ => Change::References {
            prices: BTreeMap::from([("OTHER".to_owned(), Some(random.below(9) as f64 + 1.0))]),
        },
    }
}

/// Records of two journals in the order of their times.
fn day(random: &mut Random, ends_sessions: bool) -> Vec<Owned> {
    let venues = venues_record(&["A", "B"].map(|name| VenueRecord { name: name.to_owned() }));
    let begin = |worker| {
        OwnedKind::Application(RECORD_VENUES, 0, if worker < 2 { venues.clone() } else { Vec::new() })
    };
    let mut all: Vec<Owned> =
        (0..2).map(|worker| Owned { worker, t_ns: 1, generation: 0, kind: begin(worker) }).collect();
    let (mut epochs, mut numbers) = ([[1_u16; 2]; 2], [[0_u32; 2]; 2]);
    let mut generation = 0;
    for t_ns in 2..2 + random.below(150) {
        let (worker, venue) = (random.below(2) as usize, random.below(2) as usize);
        let key = session_key(worker, venue);
        let account = AccountId(random.below(ACCOUNTS) as u32);
        if ends_sessions && random.below(40) == 0 {
            generation += 1;
        }
        let kind = match random.below(20) {
            0 => {
                epochs[worker][venue] += u16::from(random.below(2) == 0);
                numbers[worker][venue] = 0;
                let name = "DAY".parse().expect("a name");
                let record = session_record(epochs[worker][venue], &name).to_vec();
                OwnedKind::Application(RECORD_SESSION, key, record)
            }
            1 => {
                let record = home_record(epochs[worker][venue], random.below(2) as u16, random.below(5));
                OwnedKind::Application(RECORD_HOME, key, record.to_vec())
            }
            2 => {
                let address = ["10.0.0.1:1", "10.0.0.1:1", "10.0.0.2:1"][random.below(3) as usize];
                let record = format!(r#"{{"address":"{address}","username":"G00001"}}"#);
                OwnedKind::Application(RECORD_ENDPOINT, key, record.into_bytes())
            }
            3 => {
                let change = serde_json::to_vec(&change(random)).expect("it is text");
                OwnedKind::Application(RECORD_CONTROL, 0, change)
            }
            4 => OwnedKind::Inbound(account, inbound_message(random)),
            5 => OwnedKind::Refused(account, random.below(9) as u16, inbound_message(random)),
            6..12 => {
                numbers[worker][venue] += 1;
                let session = sent_key(key, epochs[worker][venue]);
                OwnedKind::Sent(account, session, numbers[worker][venue], inbound_message(random))
            }
            _ => {
                let number = random.below(30);
                let of =
                    if random.below(9) == 0 { 0 } else { pack_sequence(key, epochs[worker][venue], number) };
                OwnedKind::Sequenced(account, of, outbound_message(random))
            }
        };
        all.push(Owned { worker: random.below(2) as u16, t_ns, generation, kind });
    }
    all
}

/// The configuration of a test.
struct Shape {
    symbols: Symbols,
    restarts: bool,
    open_max: usize,
}

impl Shape {
    fn begin<'s>(&'s self, names: &'s dyn Fn(&str) -> Option<AccountId>, now: Moment) -> Collected<'s> {
        let limits = OutstandingLimits {
            open_max: self.open_max,
            resend_age_max_ns: AGE_NS,
            ..OutstandingLimits::default()
        };
        let venues = [("A".to_owned(), limits), ("B".to_owned(), limits)];
        let controls = Controls::of_file(&Default::default(), &[None, None, None, None]);
        let recovering = Recovering::new(WORKERS, &venues, &self.symbols, names, controls, now)
            .with_numbers_that_restart(self.restarts);
        Collected::new(recovering)
    }
}

fn saved(collected: &Collected<'_>) -> Result<Vec<u8>, String> {
    let mut fields = FieldWriter::default();
    collected.save(&mut fields)?;
    Ok(fields.into_bytes())
}

fn load(collected: &mut Collected<'_>, bytes: &[u8]) {
    let mut fields = FieldReader::new(bytes);
    collected.load(&mut fields, &|account| Some(AccountId(account))).expect("it fits");
    assert!(fields.rest().is_empty());
}

fn taken<'c>(mut collected: Collected<'c>, records: &[Owned]) -> Collected<'c> {
    records.iter().for_each(|record| record.show(|record| collected.take(record)));
    collected
}

/// What a start gets, as text.
fn finished(collected: Collected<'_>, generation: u16) -> String {
    let mut recovering = collected.recovering;
    recovering.set_current_session(generation);
    let recovered = recovering.finish(|_, _| true, false);
    let mut text = String::new();
    for (outstanding, resume) in &recovered.sessions {
        let mut delivered: Vec<_> = resume.delivered.iter().collect();
        delivered.sort_unstable();
        let open: Vec<_> = outstanding.open_orders().collect();
        let (last, unanswered) = (outstanding.last_number(), outstanding.unanswered());
        let mut cancels = Vec::new();
        outstanding.cancel_given_up(&mut cancels);
        text.push_str(&format!(
            "{open:?} {last} {unanswered} {cancels:?} {:?} {} {} {} {delivered:?}\n",
            resume.session, resume.epoch, resume.next, resume.heard
        ));
    }
    let mut resent = Vec::new();
    for (mut outstanding, _) in recovered.sessions {
        outstanding.resend(1, |_, _| None, &mut resent);
        text.push_str(&format!("{} {}\n", outstanding.has_stale(), outstanding.unanswered()));
    }
    let mut executed: Vec<_> = recovered.executed.iter().collect();
    executed.sort_unstable_by_key(|(account, _)| **account);
    let mut prices = recovered.prices;
    prices.sort_unstable_by_key(|(symbol, _)| symbol.0);
    let mut unattributed = recovered.executed_shares.unattributed.clone();
    unattributed.sort_unstable_by_key(|(account, _)| *account);
    text.push_str(&format!(
        "{resent:?}\n{:?}\n{:?}\n{executed:?}\n{:?} {unattributed:?}\n{prices:?}\n{:?}\n{:?}\n{:?} {:?}\n",
        recovered.unsent.iter().collect::<Vec<_>>(),
        recovered.open,
        recovered.executed_shares.positions,
        recovered.expired,
        recovered.venues,
        recovered.controls.switches,
        recovered.controls.overrides().len(),
    ));
    text
}

#[test]
fn a_recovery_from_a_checkpoint_at_any_record_is_the_same_as_one_of_all_records() {
    let mut compared = 0;
    for seed in 0..300 {
        let random = &mut Random::seeded(seed);
        let restarts = random.below(3) == 0;
        let shape = Shape {
            symbols: Symbols { other: Some(0), ..Symbols::default() },
            restarts,
            open_max: [4, 1000][random.below(2) as usize],
        };
        let ends_sessions = random.below(2) == 0;
        let records = day(random, ends_sessions);
        let names = |name: &str| name.parse().ok().map(AccountId);
        let generation = records.last().map_or(0, |record| record.generation);
        let now = Moment { wall_ns: 1 + random.below(200), engine_ns: 7 };
        let whole = taken(shape.begin(&names, Moment::OPEN), &records);
        let Ok(whole) = saved(&whole) else { continue };
        let started = finished(taken(shape.begin(&names, now), &records), generation);
        for _ in 0..5 {
            let cut = random.below(records.len() as u64 + 1) as usize;
            let (before, behind) = records.split_at(cut);
            let part =
                saved(&taken(shape.begin(&names, Moment::OPEN), before)).expect("the whole can be saved too");
            let mut continued = shape.begin(&names, Moment::OPEN);
            load(&mut continued, &part);
            assert!(
                saved(&continued) == Ok(part.clone()),
                "seed {seed}, cut {cut}: it is read back otherwise"
            );
            let continued = saved(&taken(continued, behind));
            assert!(continued.as_ref() == Ok(&whole), "seed {seed}, cut {cut}: {continued:?} and {whole:?}");
            let mut start = shape.begin(&names, now);
            load(&mut start, &part);
            let start = finished(taken(start, behind), generation);
            assert_eq!(start, started, "seed {seed}, cut {cut}");
            compared += 1;
        }
    }
    assert!(compared >= 500, "only {compared} were compared: the others are in no checkpoint");
}

#[test]
fn every_shortened_state_and_every_other_limit_is_refused() {
    let random = &mut Random::seeded(7);
    let shape =
        Shape { symbols: Symbols { other: Some(0), ..Symbols::default() }, restarts: false, open_max: 1000 };
    let names = |name: &str| name.parse().ok().map(AccountId);
    let bytes =
        saved(&taken(shape.begin(&names, Moment::OPEN), &day(random, false))).expect("it can be saved");
    let loaded = |shape: &Shape, bytes: &[u8]| {
        let mut fields = FieldReader::new(bytes);
        let mut collected = shape.begin(&names, Moment::OPEN);
        let loaded = collected.load(&mut fields, &|account| Some(AccountId(account)));
        loaded.map(|()| fields.rest().len())
    };
    assert_eq!(loaded(&shape, &bytes), Ok(0));
    for length in 0..bytes.len() {
        assert!(loaded(&shape, &bytes[..length]) != Ok(0), "{length} bytes of {}", bytes.len());
    }
    let other = Shape { open_max: 999, ..shape };
    assert!(loaded(&other, &bytes).is_err_and(|reason| reason.contains("venue A")));
    let other = Shape { restarts: true, open_max: 1000, ..other };
    assert!(loaded(&other, &bytes).is_err());
}

#[test]
fn what_an_earlier_version_wrote_is_in_no_checkpoint() {
    let shape =
        Shape { symbols: Symbols { other: Some(0), ..Symbols::default() }, restarts: false, open_max: 1000 };
    let names = |_: &str| None;
    let order = enter(1);
    let kinds = [
        RecordKind::Inbound { account: ACCOUNT, upstream: 5, raw: &order },
        RecordKind::Sent { account: ACCOUNT, session: session_key(0, 0), upstream: 5, raw: &order },
    ];
    for kind in kinds {
        let mut collected = shape.begin(&names, Moment::OPEN);
        collected.take(&Record { worker: 0, t_ns: 1, generation: 0, kind });
        assert!(saved(&collected).is_err_and(|reason| reason.contains("earlier version")));
    }
    // A start that is not for a checkpoint has no state for one.
    assert!(saved(&shape.begin(&names, NOW)).is_err());
}

#[test]
fn an_order_may_be_resent_as_long_as_without_a_checkpoint() {
    let now = Moment { wall_ns: 1_000, engine_ns: 50 };
    let loading = Loading::new(&|account| Some(AccountId(account)), WORKERS, now);
    for sent_ns in [0, 899, 900, 950, 1_000, 5_000] {
        let open = Moment::OPEN.resend_until_ns(sent_ns, 100);
        assert_eq!(loading.resend_until_ns(open, 100), now.resend_until_ns(sent_ns, 100), "{sent_ns}");
    }
}
