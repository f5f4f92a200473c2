//! Tests of a gateway with a stalled disk: orders wait for it, and nothing else does.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use weir_engine::time::sleep;
use weir_proto::ouch::{Canceled, Inbound, Outbound, inbound_user_ref_num, reject_reason};
use weir_servers::{
    gateway::GatewayConfig,
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
};

use super::{
    rig::{Folder, Script, Scripted, Trader, cancel, drivers, end_gateway, eventually, gateway, order},
    world,
};
use crate::orders::client::{self, enter};

static IS_HELD: AtomicBool = AtomicBool::new(false);
static LOOKS: AtomicUsize = AtomicUsize::new(0);

/// A disk whose syncs do not return until the test allows it.
fn hold(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Sync { .. } if IS_HELD.load(SeqCst) => {
            LOOKS.fetch_add(1, SeqCst);
            Verdict::Hold
        }
        _ => Verdict::Pass,
    }
}

/// Confirms cancels until this order's has been confirmed.
fn confirm_through(session: &mut Scripted, last: u32) {
    loop {
        let raw = session.next();
        assert_eq!(raw[0], b'X', "{raw:?}");
        let user_ref_num = inbound_user_ref_num(&raw).expect("it has a number");
        let (timestamp_ns, quantity, reason) = (1, 100, b'U');
        session.say(&Outbound::Canceled(Canceled { timestamp_ns, user_ref_num, quantity, reason }));
        if user_ref_num == last {
            return;
        }
    }
}

/// The next messages report the ends of this many orders: returns the cancelled ones, and those refused by a kill
/// switch.
fn ends(trader: &mut Trader, count: usize) -> (Vec<u32>, Vec<u32>) {
    let (mut canceled, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..count {
        match trader.next() {
            Outbound::Canceled(message) => canceled.push(message.user_ref_num),
            Outbound::Rejected(message) => {
                assert_eq!(message.reason, reject_reason::FIRM_NOT_AUTHORIZED);
                stopped.push(message.user_ref_num);
            }
            other => panic!("{other:?} instead of an end"),
        }
    }
    canceled.sort_unstable();
    (canceled, stopped)
}

#[test]
fn while_a_sync_does_not_return_heartbeats_logins_cancels_and_the_kill_switch_pass() {
    for driver in drivers() {
        println!("{driver}");
        let (venue, folder) = (Script::new(), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Disk)),
            journal_segment_bytes: 64 << 10,
            journal_faults: Some(hold),
            ..GatewayConfig::demo(2, venue.address())
        };
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let control = gateway.control();
        let mut trader = Trader::login(&gateway, "C00001", 1);
        for number in 1..=3 {
            trader.send(&[order(number, 100)]);
            let raw = session.next();
            session.accept_order(&raw);
            assert!(matches!(trader.next(), Outbound::Accepted(_)));
        }
        LOOKS.store(0, SeqCst);
        IS_HELD.store(true, SeqCst);
        trader.send(&[order(4, 100)]);
        eventually("the sync of its record is under way", || LOOKS.load(SeqCst) > 0);
        // A client can log in, and so can the gateway at its exchange; both connections get heartbeats.
        let mut other = Trader::login(&gateway, "C00002", 1);
        drop(session);
        let mut session = venue.accept();
        session.let_in("DAY", session.login.sequence);
        session.answer_query(4);
        other.hear_heartbeat();
        session.hear_heartbeat();
        // The order before it waits for the journal.
        trader.send(&[cancel(1)]);
        confirm_through(&mut session, 1);
        std::thread::scope(|scope| {
            let killing = scope.spawn(|| control.kill(Some("C00001"), true));
            confirm_through(&mut session, 3);
            eventually("it says that it stalls", || {
                control
                    .health()
                    .is_err_and(|reason| reason.starts_with("the journal's disk has not answered for"))
            });
            let looks = LOOKS.load(SeqCst);
            eventually("the sync is under way still", || LOOKS.load(SeqCst) > looks);
            IS_HELD.store(false, SeqCst);
            let cancels = killing.join().expect("it ends").expect("it is kept").remove(0);
            assert_eq!(cancels.expired, 1, "the order that waited: {cancels:?}");
        });
        assert_eq!(control.health(), Ok(()), "it has not failed");
        assert_eq!(ends(&mut trader, 4), (vec![1, 2, 3], vec![4]));
        assert_eq!(control.kill(Some("C00001"), false), Ok(Vec::new()));
        trader.send(&[order(5, 77)]);
        let mut raw = session.next();
        if raw[0] == b'X' {
            // A copy of the client's cancel was sent ahead; the cancel itself follows after its record.
            assert_eq!(inbound_user_ref_num(&raw), Some(1));
            raw = session.next();
        }
        let Ok(Inbound::Enter(enter, _)) = Inbound::decode(&raw) else { panic!("{raw:?} is no order") };
        assert_eq!(enter.quantity, 77, "the one that waited has not left before");
        drop((trader, other));
        end_gateway(gateway);
    }
}

static IS_OLD: AtomicBool = AtomicBool::new(false);

/// A disk whose writes do not return until the test allows it.
fn hold_writes(_: u16, operation: &Operation) -> Verdict {
    match operation {
        Operation::Write { .. } if IS_OLD.load(SeqCst) => Verdict::Hold,
        _ => Verdict::Pass,
    }
}

#[test]
fn an_order_that_has_waited_for_the_disk_for_longer_than_it_may_is_refused_and_a_cancel_passes() {
    let folder = Folder::new();
    IS_OLD.store(false, SeqCst);
    let shape = |at| {
        let mut config = GatewayConfig::demo(1, at);
        config.journal = Some((folder.0.clone(), Level::Os));
        config.journal_segment_bytes = 64 << 10;
        config.journal_faults = Some(hold_writes);
        config.venues[0].limits.resend_age_max_ns = 2_000_000_000;
        config
    };
    world::on_sim(world::exchange_config(), shape, async |world| {
        let mut client = world.enter("C00001").await;
        client.send(&enter(1)).await;
        assert_eq!(client::accepted(&client.message().await), 1);
        // Time is virtual.
        IS_OLD.store(true, SeqCst);
        client.send(&enter(2)).await;
        client.send(&client::cancel(1)).await;
        sleep(Duration::from_millis(1_500)).await;
        client.send(&enter(3)).await;
        sleep(Duration::from_millis(1_000)).await;
        let of_exchange = || world.exchange.node_stats().orders;
        assert_eq!(of_exchange(), 2, "the first order and its cancel, which did not wait");
        IS_OLD.store(false, SeqCst);
        let mut ends = Vec::new();
        for _ in 0..3 {
            ends.push(match client.message().await {
                Outbound::Accepted(accepted) => (accepted.user_ref_num, 0),
                Outbound::Canceled(canceled) => (canceled.user_ref_num, 1),
                Outbound::Rejected(rejected) => (rejected.user_ref_num, rejected.reason),
                other => panic!("{other:?}"),
            });
        }
        ends.sort_unstable();
        assert_eq!(ends, [(1, 1), (2, reject_reason::DESTINATION_CLOSED), (3, 0)]);
        client.send(&enter(4)).await;
        assert_eq!(client::accepted(&client.message().await), 4);
        assert_eq!(of_exchange(), 5, "two more orders, and the cancel once more in its place");
    });
}
