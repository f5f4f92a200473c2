//! Turns two snapshots into the figures that are shown. Pure: no clock, no I/O.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use weir_evidence::process::{ProcessSample, ThreadSample};
use weir_record::{
    engine::ServerStats,
    latency::LatencySummary,
    orders::{HandoffStats, HopStats, JournalStats, NodeStats, SessionStats},
};
use weir_report::Language;

use crate::snapshot::{Mute, Reading, Snapshot};

/// The figures of one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Frame {
    /// Time of day, in UTC.
    pub time: String,
    /// The same in seconds since 1970.
    pub unix_s: u64,
    /// Time since the previous snapshot; absent for the first.
    pub interval_s: Option<f64>,
    /// One for each target.
    pub nodes: Vec<Node>,
}

/// One target.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Node {
    /// `GATEWAY`, `EXCHANGE`, `ECHO`, `HTTP`, or the program's name.
    pub node: String,
    /// Process number.
    pub pid: Option<u32>,
    /// User number.
    pub uid: Option<u32>,
    /// The active driver.
    pub driver: Option<String>,
    /// Messages received. An exchange or a gateway counts data messages on all sides, other servers count receives.
    pub received: Flow,
    /// Messages sent, likewise.
    pub sent: Flow,
    /// Messages received and not yet passed on; only an exchange and a gateway know it.
    pub backlog: Option<u64>,
    /// Why there are no figures; serialized as advice in English.
    #[serde(serialize_with = "advice")]
    pub advice: Option<Mute>,
    /// The process row first, then its threads.
    pub threads: Vec<Thread>,
    /// Hand-off between workers.
    pub handoff: Option<Handoff>,
    /// Times between named points.
    pub hops: Vec<Hop>,
    /// Logged-in client sessions.
    pub sessions_open: u64,
    /// Logged-in upstream sessions.
    pub upstreams_open: u64,
    /// Upstream sessions that replaced earlier ones.
    pub upstreams_begun_anew: u64,
    /// Orders that ended without a message from their exchange.
    pub orders_expired: u64,
    /// Whether the kill switch of all accounts is on.
    pub is_everyone_killed: bool,
    /// Accounts whose own kill switch is on.
    pub accounts_killed: u64,
    /// The journal of an exchange or a gateway.
    pub journal: Option<JournalStats>,
    /// The sessions that were listed.
    pub sessions: Vec<Session>,
}

/// A counter and its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Flow {
    /// Since the start of the process; absent in a gap.
    pub total: Option<u64>,
    /// Over the interval; absent when it is not known.
    pub per_second: Option<f64>,
    /// Why a figure is absent.
    pub missing: Option<Missing>,
}

/// Why a figure is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Missing {
    /// There was no previous snapshot.
    First,
    /// The target did not answer, now or in the previous snapshot.
    Gap,
    /// The counter decreased, or the process was replaced.
    Reset,
    /// The process has ended.
    Gone,
    /// The process has no statistics socket.
    NoSocket,
}

impl Missing {
    /// The word that is shown in place of the figure.
    pub fn word(self) -> &'static str {
        match self {
            Self::First => "-",
            Self::Gap => "gap",
            Self::Reset => "reset",
            Self::Gone => "gone",
            Self::NoSocket => "no socket",
        }
    }
}

/// A thread, or the process row above its threads.
///
/// As in pidstat, the process row shows the context switches of the main thread and the CPU of the whole process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Thread {
    /// Thread number; absent in the process row.
    pub tid: Option<u32>,
    /// Name.
    pub command: String,
    /// Voluntary context switches a second.
    pub context_switches_voluntary: Option<f64>,
    /// Involuntary context switches a second.
    pub context_switches_involuntary: Option<f64>,
    /// CPU time as a share of the interval; above 100 for a process with several busy threads.
    pub cpu_percent: Option<f64>,
    /// Time spent runnable without a CPU, as a share of the interval.
    pub wait_percent: Option<f64>,
}

/// Hand-off during the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Handoff {
    /// Strategy.
    pub strategy: String,
    /// Messages handed over a second.
    pub per_second: Option<f64>,
    /// Wakes with a system call, per message handed over.
    pub wakes_per_handoff: Option<f64>,
    /// Messages found each time a worker emptied its queues.
    pub per_drain: Option<f64>,
    /// Share of the orders that were handed over.
    pub orders_share: Option<f64>,
    /// Messages queued now.
    pub depth: u64,
    /// Work found by the once-a-second check, since the start: must be zero.
    pub wakes_recovered: u64,
}

/// Time between two points on an order's way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hop {
    /// Name.
    pub hop: String,
    /// Samples.
    pub count: u64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
    /// The figures cover the whole run, because those of the interval are unknown.
    pub since_start: bool,
}

/// A session of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Session {
    /// Account.
    pub account: String,
    /// Worker.
    pub worker: u32,
    /// `live`, `replaying` or `away`.
    pub state: String,
    /// Messages sent to it a second.
    pub per_second: Option<f64>,
    /// Messages it has not been sent yet.
    pub behind: u64,
    /// Last sequence number sent.
    pub sequence_sent: u64,
    /// Last UserRefNum processed.
    pub user_ref_num: u32,
    /// Bytes the kernel has not taken yet.
    pub queued_bytes: u64,
}

/// The figures of `after`, with rates since `before`.
pub fn frame(before: Option<&Snapshot>, after: &Snapshot) -> Frame {
    let interval_ns =
        before.map(|before| after.at_ns.saturating_sub(before.at_ns)).filter(|length| *length > 0);
    let nodes = after.nodes.iter().enumerate().map(|(index, reading)| {
        let earlier = before.and_then(|before| before.nodes.get(index));
        node(earlier, reading, interval_ns)
    });
    let mut nodes: Vec<Node> = nodes.collect();
    tell_apart(&mut nodes);
    Frame {
        time: time_of_day(after.unix_s),
        unix_s: after.unix_s,
        interval_s: interval_ns.map(|length| length as f64 / 1e9),
        nodes,
    }
}

/// Appends the process number to the names of nodes that share a name.
fn tell_apart(nodes: &mut [Node]) {
    let names: Vec<String> = nodes.iter().map(|node| node.node.clone()).collect();
    for node in nodes {
        let is_shared = names.iter().filter(|name| **name == node.node).count() > 1;
        if let Some(pid) = node.pid.filter(|_| is_shared) {
            node.node = format!("{} {pid}", node.node);
        }
    }
}

/// `17:08:08`, in UTC.
fn time_of_day(unix_s: u64) -> String {
    let second = unix_s % 86_400;
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

/// Longest displayed name.
const NAME_CHARS_MAX: usize = 64;

/// A name that a process gave itself, made safe for a terminal: control characters are replaced, and long names are
/// cut.
fn plain(name: &str) -> String {
    let shown = |symbol: char| if symbol.is_control() { char::REPLACEMENT_CHARACTER } else { symbol };
    name.chars().take(NAME_CHARS_MAX).map(shown).collect()
}

/// Two readings of one process, and the time between them.
struct Pair<'a> {
    earlier: Option<&'a Reading>,
    later: &'a Reading,
    interval_ns: Option<u64>,
    /// The process was replaced since the earlier reading.
    is_new: bool,
}

impl Pair<'_> {
    /// The earlier reading, if it is of this process.
    fn known(&self) -> Option<&Reading> {
        self.earlier.filter(|_| !self.is_new)
    }

    fn per_second(&self, count: u64) -> Option<f64> {
        self.interval_ns.map(|length| count as f64 * 1e9 / length as f64)
    }
}

fn node(earlier: Option<&Reading>, later: &Reading, interval_ns: Option<u64>) -> Node {
    let is_new = earlier.is_some_and(|earlier| is_another(earlier, later));
    let pair = Pair { earlier, later, interval_ns, is_new };
    let own = later.stats.as_ref().and_then(|stats| stats.node.as_ref());
    let named = own.map(|node| node.node.clone()).filter(|name| !name.is_empty());
    Node {
        node: plain(&named.unwrap_or_else(|| later.name.clone())),
        pid: later.pid,
        uid: later.uid,
        driver: later.stats.as_ref().map(|stats| plain(&stats.driver)),
        received: flow(&pair, |stats| stats.node.as_ref().map_or(stats.total.receives, |node| node.received)),
        sent: flow(&pair, |stats| stats.node.as_ref().map_or(stats.total.sends, |node| node.sent)),
        backlog: own.map(|node| node.backlog),
        advice: later.process.as_ref().and(later.mute),
        threads: threads(&pair),
        handoff: own.and_then(|node| node.handoff.as_ref()).map(|it| handoff(&pair, it)),
        hops: own.map(|node| hops(&pair, &node.hops)).unwrap_or_default(),
        sessions_open: own.map_or(0, |node| node.sessions_open),
        upstreams_open: own.map_or(0, |node| node.upstreams_open),
        upstreams_begun_anew: own.map_or(0, |node| node.upstreams_begun_anew),
        orders_expired: own.map_or(0, |node| node.orders_expired),
        is_everyone_killed: own.is_some_and(|node| node.is_everyone_killed),
        accounts_killed: own.map_or(0, |node| node.accounts_killed),
        journal: own.and_then(|node| node.journal.clone()),
        sessions: own.map(|node| sessions(&pair, &node.sessions)).unwrap_or_default(),
    }
}

/// Whether the process behind a target was replaced.
fn is_another(earlier: &Reading, later: &Reading) -> bool {
    let start =
        |reading: &Reading| reading.process.as_ref().map(|process| (process.pid, process.started_ticks));
    let both = start(earlier).zip(start(later));
    both.is_some_and(|(earlier, later)| earlier != later)
        || earlier.pid.zip(later.pid).is_some_and(|(earlier, later)| earlier != later)
}

/// Programs read one language, independent of the reader's.
fn advice<S: Serializer>(mute: &Option<Mute>, serializer: S) -> Result<S::Ok, S::Error> {
    mute.map(|mute| mute.advice(Language::English)).serialize(serializer)
}

fn flow(pair: &Pair<'_>, count: impl Fn(&ServerStats) -> u64) -> Flow {
    let absent = |missing| Flow { missing: Some(missing), ..Flow::default() };
    let Some(stats) = &pair.later.stats else {
        let is_gone = pair.later.pid.is_some() && pair.later.process.is_none();
        return absent(match pair.later.mute {
            _ if is_gone => Missing::Gone,
            Some(_) => Missing::NoSocket,
            None => Missing::Gap,
        });
    };
    let total = count(stats);
    let without_rate = |missing| Flow { total: Some(total), per_second: None, missing: Some(missing) };
    let Some(earlier) = pair.earlier.filter(|_| pair.interval_ns.is_some()) else {
        return without_rate(Missing::First);
    };
    match earlier.stats.as_ref().map(count) {
        _ if pair.is_new => without_rate(Missing::Reset),
        None => without_rate(Missing::Gap),
        Some(before) if before > total => without_rate(Missing::Reset),
        Some(before) => {
            Flow { total: Some(total), per_second: pair.per_second(total - before), missing: None }
        }
    }
}

fn threads(pair: &Pair<'_>) -> Vec<Thread> {
    let Some(process) = &pair.later.process else { return Vec::new() };
    let earlier = pair.known().and_then(|earlier| earlier.process.as_ref());
    let known: HashMap<u32, &ThreadSample> =
        earlier.map(|process| process.threads.iter().map(|it| (it.tid, it)).collect()).unwrap_or_default();
    let row = |thread: &ThreadSample| {
        // If the CPU time decreased, this is a new thread with a reused number.
        let before = known.get(&thread.tid).filter(|before| before.cpu_ns <= thread.cpu_ns);
        let count = |value: fn(&ThreadSample) -> u64| {
            before.and_then(|before| pair.per_second(value(thread).saturating_sub(value(before))))
        };
        Thread {
            tid: Some(thread.tid),
            command: plain(&thread.name),
            context_switches_voluntary: count(|it| it.context_switches_voluntary),
            context_switches_involuntary: count(|it| it.context_switches_involuntary),
            cpu_percent: count(|it| it.cpu_ns).map(percent),
            wait_percent: count(|it| it.run_delay_ns).map(percent),
        }
    };
    let rows: Vec<Thread> = process.threads.iter().map(row).collect();
    let whole = whole(pair, earlier, process, &rows);
    std::iter::once(whole).chain(rows).collect()
}

/// The process row.
fn whole(
    pair: &Pair<'_>,
    earlier: Option<&ProcessSample>,
    process: &ProcessSample,
    rows: &[Thread],
) -> Thread {
    let main = rows.iter().find(|row| row.tid == Some(process.pid)).cloned().unwrap_or_default();
    let cpu_ns = earlier.map(|earlier| process.cpu_ns.saturating_sub(earlier.cpu_ns));
    let wait: Option<f64> = rows.iter().map(|row| row.wait_percent).sum();
    Thread {
        tid: None,
        cpu_percent: cpu_ns.and_then(|used| pair.per_second(used)).map(percent),
        wait_percent: wait.filter(|_| earlier.is_some()),
        ..main
    }
}

/// Nanoseconds a second as a percentage.
fn percent(nanoseconds_per_second: f64) -> f64 {
    nanoseconds_per_second / 1e7
}

/// The node's own record in the earlier reading, if that is of the same process.
fn node_before<'p>(pair: &'p Pair<'_>) -> Option<&'p NodeStats> {
    pair.known()?.stats.as_ref()?.node.as_ref()
}

fn handoff(pair: &Pair<'_>, later: &HandoffStats) -> Handoff {
    let before = node_before(pair).and_then(|node| node.handoff.as_ref());
    let window = before.filter(|before| before.pushed <= later.pushed).map(|before| later.since(before));
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let in_window = |figure: fn(&HandoffStats) -> (u64, u64)| {
        let (part, whole) = figure(window.as_ref()?);
        share(part, whole)
    };
    Handoff {
        strategy: plain(&later.strategy),
        per_second: window.as_ref().and_then(|window| pair.per_second(window.pushed)),
        wakes_per_handoff: in_window(|it| (it.wakes_sent, it.pushed)),
        per_drain: in_window(|it| (it.pushed, it.drains)),
        orders_share: in_window(|it| (it.orders_handed_off, it.orders)),
        depth: later.depth,
        wakes_recovered: later.wakes_recovered,
    }
}

fn hops(pair: &Pair<'_>, later: &[HopStats]) -> Vec<Hop> {
    let before = node_before(pair).map(|node| node.hops.as_slice()).unwrap_or_default();
    let one = |hop: &HopStats| {
        let earlier = before.iter().find(|it| it.hop == hop.hop);
        let window = earlier.and_then(|earlier| between(&earlier.latency, &hop.latency));
        let since_start = window.is_none();
        let LatencySummary { count, ns_max, .. } = *window.as_ref().unwrap_or(&hop.latency);
        let quantile = |at: f64| window.as_ref().unwrap_or(&hop.latency).quantile_ns(at);
        let (p50_ns, p99_ns) = (quantile(0.5), quantile(0.99));
        Hop { hop: plain(&hop.hop), count, p50_ns, p99_ns, max_ns: ns_max, since_start }
    };
    later.iter().map(one).collect()
}

/// What was added between two states of a distribution; `None` if they were sent without their histograms.
fn between(earlier: &LatencySummary, later: &LatencySummary) -> Option<LatencySummary> {
    if later.histogram_v2_base64.is_empty() || earlier.count > later.count {
        return None;
    }
    let mut added = later.histogram().ok()?;
    added.subtract(earlier.histogram().ok()?).ok()?;
    Some(LatencySummary::from_histogram(&added))
}

fn sessions(pair: &Pair<'_>, later: &[SessionStats]) -> Vec<Session> {
    let before = node_before(pair).map(|node| node.sessions.as_slice()).unwrap_or_default();
    let known: HashMap<&str, &SessionStats> = before.iter().map(|it| (it.account.as_str(), it)).collect();
    let one = |session: &SessionStats| {
        let earlier = known.get(session.account.as_str());
        let sent = earlier.and_then(|earlier| session.sequence_sent.checked_sub(earlier.sequence_sent));
        Session {
            account: plain(&session.account),
            worker: session.worker,
            state: plain(&session.state),
            per_second: sent.and_then(|sent| pair.per_second(sent)),
            behind: session.sequence_last.saturating_sub(session.sequence_sent),
            sequence_sent: session.sequence_sent,
            user_ref_num: session.user_ref_num,
            queued_bytes: session.queued_bytes,
        }
    };
    later.iter().map(one).collect()
}

/// Hand-made readings, for the tests of modules that draw them.
#[cfg(test)]
pub(crate) mod made {
    use super::*;

    pub(crate) fn thread(tid: u32, name: &str, cpu_ns: u64, switches: u64) -> ThreadSample {
        ThreadSample {
            tid,
            name: name.to_owned(),
            cpu_ns,
            run_delay_ns: cpu_ns / 10,
            context_switches_voluntary: switches,
            context_switches_involuntary: switches / 1_000,
        }
    }

    /// A gateway with two workers after this many seconds of 100,000 orders a second.
    pub(crate) fn gateway(seconds: u64) -> Reading {
        let orders = 100_000 * seconds;
        let handoff = HandoffStats {
            strategy: "mesh".to_owned(),
            pushed: 2 * orders,
            drains: orders / 4,
            wakes_sent: orders / 10,
            orders,
            orders_handed_off: orders,
            depth: 3,
            ..HandoffStats::default()
        };
        let hop = HopStats {
            hop: "upstream".to_owned(),
            latency: LatencySummary {
                count: orders,
                quantiles: vec![(0.5, 21_000), (0.99, 84_000)],
                ns_max: 400_000,
                ..LatencySummary::default()
            },
        };
        let session = SessionStats {
            account: "C00001".to_owned(),
            worker: 1,
            state: "live".to_owned(),
            sequence_sent: orders / 10,
            sequence_last: orders / 10 + 2,
            user_ref_num: 7,
            queued_bytes: 134,
        };
        let node = NodeStats {
            node: "GATEWAY".to_owned(),
            pid: 4_242,
            received: 2 * orders + 14,
            sent: 2 * orders,
            orders,
            backlog: 14,
            handoff: Some(handoff),
            hops: vec![hop],
            sessions: vec![session],
            sessions_open: 10,
            upstreams_open: 2,
            ..NodeStats::default()
        };
        let ns = seconds * 1_000_000_000;
        Reading {
            name: "GATEWAY".to_owned(),
            pid: Some(4_242),
            uid: Some(1_000),
            mute: None,
            stats: Some(ServerStats {
                driver: "epoll".to_owned(),
                node: Some(node),
                ..ServerStats::default()
            }),
            process: Some(ProcessSample {
                pid: 4_242,
                started_ticks: 1,
                cpu_ns: ns * 3 / 2,
                threads: vec![
                    thread(4_242, "weir", 0, 0),
                    thread(4_243, "weir-worker-0", ns, 31_834 * seconds),
                    thread(4_244, "weir-worker-1", ns / 2, 27_858 * seconds),
                ],
                ..ProcessSample::default()
            }),
        }
    }

    /// A server that does not answer, because it has no socket.
    pub(crate) fn silent(seconds: u64) -> Reading {
        Reading {
            name: "ECHO".to_owned(),
            pid: Some(77),
            uid: Some(1_000),
            mute: Some(Mute::Off),
            process: Some(ProcessSample {
                pid: 77,
                cpu_ns: seconds * 10_000_000,
                threads: vec![thread(77, "weir", seconds * 10_000_000, 5 * seconds)],
                ..ProcessSample::default()
            }),
            ..Reading::default()
        }
    }

    pub(crate) fn snapshot(seconds: u64, nodes: Vec<Reading>) -> Snapshot {
        Snapshot { at_ns: seconds * 1_000_000_000, unix_s: 61_688 + seconds, nodes }
    }

    /// One second of both.
    pub(crate) fn second() -> Frame {
        let before = snapshot(10, vec![gateway(10), silent(10)]);
        frame(Some(&before), &snapshot(11, vec![gateway(11), silent(11)]))
    }
}

#[cfg(test)]
mod tests {
    use weir_record::latency::empty_histogram;

    use super::{
        made::{gateway, silent, snapshot},
        *,
    };

    fn one(before: Option<Snapshot>, after: Snapshot) -> Node {
        frame(before.as_ref(), &after).nodes.remove(0)
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let mut reading = silent(1);
        reading.name = "\u{1b}]0;title\u{7}".to_owned();
        let process = reading.process.as_mut().expect("it has threads");
        process.threads[0].name = format!("a\u{1b}[2J{}", "b".repeat(100));
        let node = one(None, snapshot(1, vec![reading]));
        assert_eq!(node.node, "\u{fffd}]0;title\u{fffd}");
        assert_eq!(node.threads[1].command, format!("a\u{fffd}[2J{}", "b".repeat(NAME_CHARS_MAX - 5)));
    }

    #[test]
    fn servers_of_one_name_are_told_apart_by_their_processes() {
        let mut other = silent(1);
        other.pid = Some(78);
        let names = |nodes| -> Vec<String> {
            frame(None, &snapshot(1, nodes)).nodes.into_iter().map(|node| node.node).collect()
        };
        assert_eq!(names(vec![silent(1), gateway(1)]), [silent(1).name.as_str(), "GATEWAY"]);
        assert_eq!(
            names(vec![silent(1), other]),
            ["77", "78"].map(|pid| format!("{} {pid}", silent(1).name))
        );
    }

    #[test]
    fn rates_are_over_the_time_that_was_measured() {
        let mut after = snapshot(12, vec![gateway(11)]);
        after.at_ns = 11_250_000_000;
        let found = one(Some(snapshot(10, vec![gateway(10)])), after);
        assert_eq!(found.received.total, Some(2_200_014));
        assert_eq!(found.received.per_second, Some(160_000.0), "200,000 in a second and a quarter");
        assert_eq!((found.received.missing, found.backlog), (None, Some(14)));
        let worker = &found.threads[2];
        assert_eq!(worker.context_switches_voluntary, Some(31_834.0 / 1.25));
        assert_eq!(worker.cpu_percent, Some(80.0));
    }

    #[test]
    fn the_process_row_is_the_main_thread_with_the_cpu_of_all() {
        let found = one(Some(snapshot(10, vec![gateway(10)])), snapshot(11, vec![gateway(11)]));
        let row = &found.threads[0];
        assert_eq!(
            (row.tid, row.command.as_str(), row.context_switches_voluntary),
            (None, "weir", Some(0.0))
        );
        assert_eq!(row.cpu_percent, Some(150.0));
        assert_eq!(row.wait_percent, Some(15.0));
        assert_eq!(found.threads.len(), 4);
    }

    #[test]
    fn what_was_not_read_is_a_gap_and_never_zero() {
        let mut mute = gateway(11);
        mute.stats = None;
        let gap = one(Some(snapshot(10, vec![gateway(10)])), snapshot(11, vec![mute.clone()]));
        assert_eq!(gap.received, Flow { total: None, per_second: None, missing: Some(Missing::Gap) });
        assert_eq!((gap.backlog, gap.handoff.is_none()), (None, true));
        assert_eq!(
            gap.threads[2].context_switches_voluntary,
            Some(31_834.0),
            "threads are read without the socket"
        );
        let after = one(Some(snapshot(11, vec![mute])), snapshot(12, vec![gateway(12)]));
        assert_eq!((after.received.per_second, after.received.missing), (None, Some(Missing::Gap)));
        assert_eq!(after.received.total, Some(2_400_014));
    }

    #[test]
    fn a_counter_that_went_back_is_a_reset() {
        let back = one(Some(snapshot(10, vec![gateway(10)])), snapshot(11, vec![gateway(1)]));
        assert_eq!((back.received.per_second, back.received.missing), (None, Some(Missing::Reset)));
        let mut other = gateway(20);
        other.process.as_mut().expect("it has threads").started_ticks = 2;
        let other = one(Some(snapshot(10, vec![gateway(10)])), snapshot(11, vec![other]));
        assert_eq!(other.received.missing, Some(Missing::Reset), "it counts on, but it is another process");
        assert_eq!(other.threads[1].context_switches_voluntary, None);
        assert_eq!(other.handoff.expect("it has one").wakes_per_handoff, None);
    }

    #[test]
    fn the_first_snapshot_has_totals_and_no_rates() {
        let first = frame(None, &snapshot(10, vec![gateway(10), silent(10)]));
        assert_eq!(first.interval_s, None);
        let flow = first.nodes[0].received;
        assert_eq!(
            (flow.total, flow.per_second, flow.missing),
            (Some(2_000_014), None, Some(Missing::First))
        );
        assert_eq!(first.nodes[1].received.missing, Some(Missing::NoSocket));
        assert_eq!(first.nodes[0].threads[1].cpu_percent, None);
    }

    #[test]
    fn a_process_that_ended_is_gone() {
        let mut gone = gateway(10);
        (gone.stats, gone.process) = (None, None);
        let found = one(Some(snapshot(10, vec![gateway(10)])), snapshot(11, vec![gone]));
        assert_eq!((found.received.missing, found.threads.len()), (Some(Missing::Gone), 0));
    }

    #[test]
    fn handing_over_is_told_for_the_interval() {
        let found = one(Some(snapshot(10, vec![gateway(10)])), snapshot(11, vec![gateway(11)]));
        let handoff = found.handoff.expect("it has one");
        assert_eq!(handoff.per_second, Some(200_000.0));
        assert_eq!(handoff.wakes_per_handoff, Some(0.05));
        assert_eq!((handoff.per_drain, handoff.orders_share), (Some(8.0), Some(1.0)));
        let session = &found.sessions[0];
        assert_eq!((session.per_second, session.behind), (Some(10_000.0), 2));
    }

    #[test]
    fn hops_are_of_the_interval_where_their_histograms_came_along() {
        let with = |values: &[u64]| {
            let mut histogram = empty_histogram();
            values.iter().for_each(|value| histogram.record(*value).expect("it is in range"));
            let mut reading = gateway(10);
            let stats = reading.stats.as_mut().and_then(|stats| stats.node.as_mut()).expect("it has a node");
            stats.hops[0].latency = LatencySummary::from_histogram(&histogram);
            reading
        };
        let early = [1_000; 100];
        let both: Vec<u64> = early.into_iter().chain([9_000; 50]).collect();
        let found = one(Some(snapshot(10, vec![with(&early)])), snapshot(11, vec![with(&both)]));
        let hop = &found.hops[0];
        assert_eq!((hop.count, hop.since_start), (50, false));
        assert!(hop.p50_ns.is_some_and(|median| (8_990..=9_010).contains(&median)), "{hop:?}");
        let plain = one(Some(snapshot(10, vec![gateway(10)])), snapshot(11, vec![gateway(11)]));
        assert_eq!((plain.hops[0].p50_ns, plain.hops[0].since_start), (Some(21_000), true));
    }

    #[test]
    fn times_of_day_wrap_at_midnight() {
        assert_eq!(time_of_day(61_688), "17:08:08");
        assert_eq!(
            (time_of_day(86_399), time_of_day(86_400)),
            ("23:59:59".to_owned(), "00:00:00".to_owned())
        );
    }
}
