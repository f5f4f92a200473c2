//! Tests of sessions with a failing disk: only journaled messages are acknowledged, every affected client is
//! informed, and acknowledged messages are there when the disk works again.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};

use weir_proto::ouch::{Inbound, Outbound};
use weir_servers::{
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
    orders::{OrdersConfig, RecordKind, recover},
};
use weir_trading::AccountId;

use super::{
    client::{Client, Packet, accepted, enter, framed},
    replay::{Folder, fill, journaled},
    rig::{KERNEL_DRIVERS, Network, on_driver_number},
};

const EIO: i32 = 5;

/// Orders that are sent together.
const TOGETHER: u32 = 7;

/// The failing operation.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Write,
    Sync,
    Create,
}

const FAULTS: [(Fault, Level); 4] = [
    (Fault::Write, Level::Os),
    (Fault::Write, Level::Disk),
    (Fault::Sync, Level::Disk),
    (Fault::Create, Level::Os),
];

static FAULT: AtomicUsize = AtomicUsize::new(0);
static IS_ARMED: AtomicBool = AtomicBool::new(false);
static HAS_STRUCK: AtomicBool = AtomicBool::new(false);
static WRITES_AFTER: AtomicUsize = AtomicUsize::new(0);

/// The disk of the first worker.
fn judge(worker: u16, operation: &Operation) -> Verdict {
    if worker != 0 || !IS_ARMED.load(SeqCst) {
        return Verdict::Pass;
    }
    let (fault, _) = FAULTS[FAULT.load(SeqCst)];
    match (fault, operation) {
        (Fault::Write, Operation::Write { .. })
        | (Fault::Sync, Operation::Sync { .. })
        | (Fault::Create, Operation::Create { .. }) => {}
        _ => {
            let is_write = matches!(operation, Operation::Write { .. });
            // A segment that cannot be created beside the commits is a failure only when it is needed.
            let counts = !matches!(fault, Fault::Create) && HAS_STRUCK.load(SeqCst);
            WRITES_AFTER.fetch_add(usize::from(is_write && counts), SeqCst);
            return Verdict::Pass;
        }
    }
    WRITES_AFTER.fetch_add(usize::from(HAS_STRUCK.swap(true, SeqCst)), SeqCst);
    Verdict::Refuse(io::Error::from_raw_os_error(EIO))
}

async fn expect_notice(client: &mut Client) {
    match client.packet().await {
        Packet::Debug(text) => assert!(text.starts_with(b"the journal has failed"), "{text:?}"),
        other => panic!("{other:?} instead of word of the failure"),
    }
    client.expect_end().await;
}

/// Places orders until the disk fails; returns how many were answered and how many were sent.
async fn run_into_it(network: &Network) -> (u32, u32) {
    // These two have the first worker as home, if there are two.
    let (mut client, mut beside) = (network.enter("C00001").await, network.enter("C00003").await);
    let mut elsewhere = network.enter("C00002").await;
    for client in [&mut client, &mut beside, &mut elsewhere] {
        fill(client, 1..=20).await;
    }
    IS_ARMED.store(true, SeqCst);
    let (mut answered, mut sent) = (20, 20);
    'placing: loop {
        let frames: Vec<u8> =
            (sent + 1..=sent + TOGETHER).flat_map(|number| framed(&enter(number))).collect();
        sent += TOGETHER;
        assert!(sent < 10_000, "the disk does not fail");
        client.write(frames).await;
        while answered < sent {
            match client.packet().await {
                Packet::Sequenced(_) => answered += 1,
                Packet::Debug(text) => {
                    assert!(text.starts_with(b"the journal has failed"), "{text:?}");
                    break 'placing;
                }
                other => panic!("{other:?} instead of an answer"),
            }
        }
    }
    client.expect_end().await;
    expect_notice(&mut beside).await;
    // A server that has informed its clients waits a little for them to leave.
    drop((client, beside));
    let is_open = u64::from(!network.is_simulated());
    if network.is_simulated() {
        expect_notice(&mut elsewhere).await;
    } else {
        // Its worker has a separate journal, which works.
        fill(&mut elsewhere, 21..=25).await;
    }
    network.until(|stats| stats.sessions_open == is_open).await;
    assert!(network.stats().journal.expect("there is one").failed);
    assert_eq!(network.connect().await.log_in("C00001", 0).await, Err(b'S'));
    assert_eq!(network.stats().logins.get("closed"), Some(&1));
    assert!(answered < sent, "what the disk does not have is not acknowledged");
    if !network.is_simulated() {
        // The session was interrupted and is not over: it can be joined again.
        network.drain_beside(elsewhere.expect_end()).await;
    }
    (answered, sent)
}

#[test]
fn nothing_is_acknowledged_that_a_failing_disk_does_not_have_and_everybody_is_told() {
    for (fault, (kind, level)) in FAULTS.iter().enumerate() {
        for driver in 0..=KERNEL_DRIVERS.len() {
            println!("{kind:?} at level {level}");
            FAULT.store(fault, SeqCst);
            IS_ARMED.store(false, SeqCst);
            HAS_STRUCK.store(false, SeqCst);
            WRITES_AFTER.store(0, SeqCst);
            let folder = Folder::new(&format!("fails-{fault}-{driver}"));
            let works = journaled(&folder, *level, 3);
            let fails = OrdersConfig { journal_faults: Some(judge), ..works.clone() };
            let outcome = std::cell::Cell::new(None);
            on_driver_number(driver, fails, async |network| outcome.set(Some(run_into_it(network).await)));
            // The kernel refuses this driver.
            let Some((answered, sent)) = outcome.get() else { continue };
            assert!(HAS_STRUCK.load(SeqCst));
            assert_eq!(
                WRITES_AFTER.load(SeqCst),
                0,
                "what failed is not tried again, and nothing follows it"
            );
            let kept = messages_kept(&works);
            assert!((answered..=sent).contains(&kept), "{answered} answered, {kept} kept");
            IS_ARMED.store(false, SeqCst);
            on_driver_number(driver, works, async |network| goes_on(network, kept, sent).await);
        }
    }
}

/// The number of the first account's messages in the journals.
fn messages_kept(config: &OrdersConfig) -> u32 {
    let mut kept = 0;
    let recovered = recover(config, &mut |record| {
        let is_its = matches!(record.kind, RecordKind::Sequenced { account: AccountId(0), .. });
        kept += u32::from(is_its);
    });
    recovered.expect("what was durable is whole");
    kept
}

/// Unanswered orders are resent: every order has one answer in the end.
async fn goes_on(network: &Network, kept: u32, sent: u32) {
    let mut client = network.connect().await;
    assert_eq!(client.log_in("C00001", 1).await, Ok(("WEIR000001".into(), 1)));
    client.write((1..=sent).flat_map(|number| framed(&enter(number))).collect::<Vec<u8>>()).await;
    client.send(&Inbound::AccountQuery).await;
    for number in 1..=sent {
        assert_eq!(accepted(&client.message().await), number);
    }
    assert!(matches!(client.message().await, Outbound::AccountQueryResponse { .. }));
    assert_eq!(network.stats().duplicates_ignored, u64::from(kept));
}
