//! What operators read: `/metrics` in Prometheus' text format 0.0.4, and `/healthz`. Answered by a thread of its own on
//! a loopback port; it only reads counters.

use std::{
    fmt::{Display, Write as _},
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use weir_proto::http1::{
    Event, Limits, Method, MethodSet, RequestDecoder, Version,
    encode::{AfterMessage, Framing, HeadWriter},
};
use weir_record::{
    engine::ServerStats,
    orders::{HopStats, NodeStats},
};

use super::GatewayControl;

/// Readers at a time; more are closed at once.
const READERS_MAX: usize = 8;
/// Longest request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Longest time for a request, and for its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long accepting rests after an error.
const REST: Duration = Duration::from_millis(20);
/// Sessions that have their own lines at most; beyond that none has.
const SESSIONS_MAX: usize = 1_000;
/// Bounds of histograms, in nanoseconds: 1 µs to 1 s in steps of 1, 2, 5.
const BOUNDS_NS: [u64; 19] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
];

/// A bound metrics port.
#[derive(Debug)]
pub struct MetricsPort {
    listener: TcpListener,
}

impl MetricsPort {
    /// Listens.
    ///
    /// # Errors
    /// `InvalidInput` for an address that is not on the loopback interface; those of binding.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let text = format!("{address} is not on the loopback interface, and nothing protects this port");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self { listener: TcpListener::bind(address)? })
    }

    /// Where it listens, with the port the kernel chose.
    ///
    /// # Errors
    /// Those of `getsockname`.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts answering, for as long as the process lives.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn answer(self, control: GatewayControl) -> io::Result<()> {
        let run = move || accept(&self.listener, &control);
        thread::Builder::new().name("weir-metrics".into()).spawn(run).map(drop)
    }
}

fn accept(listener: &TcpListener, control: &GatewayControl) {
    let readers = Arc::new(AtomicUsize::new(0));
    for reader in listener.incoming() {
        let Ok(reader) = reader else {
            thread::park_timeout(REST);
            continue;
        };
        if readers.fetch_add(1, Ordering::Relaxed) >= READERS_MAX {
            readers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (control, open) = (control.clone(), Arc::clone(&readers));
        let answer = move || {
            // A reader that breaks off is not our concern.
            let _ = answer(reader, &control);
            open.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("weir-metrics".into()).spawn(answer).is_err() {
            readers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// One request, one answer, and the connection ends.
fn answer(mut stream: TcpStream, control: &GatewayControl) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let mut decoder = RequestDecoder::new(Limits::default());
    let mut input = Vec::new();
    let mut place = [0; 1024];
    let asked = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || input.len() > REQUEST_BYTES_MAX {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut place)?;
        if count == 0 {
            return Ok(());
        }
        input.extend_from_slice(&place[..count]);
        if !input.windows(4).any(|end| end == b"\r\n\r\n") {
            continue;
        }
        break match decoder.decode(&input) {
            Ok(step) => match step.event {
                Event::Head(head) => Some((head.method, head.target.to_owned())),
                _ => None,
            },
            Err(_) => None,
        };
    };
    let allowed = MethodSet::of(&[Method::Get, Method::Head]);
    let is_allowed = asked.as_ref().is_none_or(|(method, _)| allowed.contains(*method));
    let (status, reason, kind, body) = match asked.as_ref().map(|(_, target)| target.as_str()) {
        Some(_) if !is_allowed => {
            (405, "Method Not Allowed", "text/plain; charset=utf-8", format!("{allowed}\n"))
        }
        Some("/metrics") => {
            let text = render(&control.node_stats(), &control.server_stats(), &control.facts());
            (200, "OK", "text/plain; version=0.0.4; charset=utf-8", text)
        }
        Some("/healthz") => match control.health() {
            Ok(()) => (200, "OK", "text/plain; charset=utf-8", "ok\n".to_owned()),
            Err(reason) => (503, "Service Unavailable", "text/plain; charset=utf-8", format!("{reason}\n")),
        },
        Some(_) => (404, "Not Found", "text/plain; charset=utf-8", "/metrics or /healthz\n".to_owned()),
        None => (400, "Bad Request", "text/plain; charset=utf-8", "this is no request\n".to_owned()),
    };
    let mut reply = Vec::new();
    let mut head =
        HeadWriter::response(&mut reply, Version::Http11, status, reason).map_err(io::Error::other)?;
    head.header("Content-Type", kind.as_bytes()).map_err(io::Error::other)?;
    if !is_allowed {
        head.header("Allow", allowed.to_string().as_bytes()).map_err(io::Error::other)?;
    }
    head.finish(Framing::Length(body.len() as u64), AfterMessage::Close).map_err(io::Error::other)?;
    if !matches!(asked, Some((Method::Head, _))) {
        reply.extend_from_slice(body.as_bytes());
    }
    write_until(&mut stream, &reply, Instant::now() + PATIENCE)
}

/// Writes all of it by the deadline, however little at a time the reader takes.
fn write_until(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What the gateway knows beside the records that every node has.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) version: &'static str,
    pub(super) handoff: String,
    pub(super) durability: String,
    pub(super) route: String,
    pub(super) upstream_received: u64,
    pub(super) upstream_sent: u64,
    pub(super) unmatched: u64,
    pub(super) without_order: u64,
    pub(super) too_long: u64,
    pub(super) resent: u64,
    pub(super) upstreams_lost: u64,
    pub(super) open_orders: u64,
    pub(super) unanswered: u64,
    pub(super) replayed: u64,
    pub(super) missed: u64,
    /// Venue, worker, open.
    pub(super) upstreams: Vec<(String, u32, bool)>,
}

/// Lines of the text format.
#[derive(Default)]
struct Text(String);

impl Text {
    /// A metric begins.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A metric with one sample.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// A snapshot as text.
pub(super) fn render(node: &NodeStats, server: &ServerStats, facts: &Facts) -> String {
    let mut text = Text::default();
    text.family("weir_build_info", "gauge", "What runs.");
    let labels = [
        ("version", facts.version),
        ("driver", server.driver.as_str()),
        ("handoff", facts.handoff.as_str()),
        ("route", facts.route.as_str()),
        ("durability", facts.durability.as_str()),
    ];
    text.sample("weir_build_info", &labels, 1);
    messages(&mut text, node, facts);
    sessions(&mut text, node, facts);
    by_label(&mut text, "weir_order_rejects_total", "Orders refused.", "reason", &node.rejects);
    by_label(
        &mut text,
        "weir_protocol_errors_total",
        "Connections ended for breaking the protocol.",
        "kind",
        &node.protocol_errors,
    );
    by_label(&mut text, "weir_logins_total", "Logins.", "result", &node.logins);
    for (name, help, value) in [
        ("weir_heartbeat_timeouts_total", "Clients that were silent too long.", node.heartbeat_timeouts),
        (
            "weir_slow_consumer_disconnects_total",
            "Clients that did not take what was sent.",
            node.slow_consumer_disconnects,
        ),
        (
            "weir_cancel_on_disconnect_total",
            "Orders cancelled because their client's connection ended.",
            node.cancels_on_disconnect,
        ),
        ("weir_duplicates_ignored_total", "Retransmissions of clients.", node.duplicates_ignored),
    ] {
        text.one(name, "counter", help, value);
    }
    hops(&mut text, &node.hops);
    handoff(&mut text, node);
    journal(&mut text, node);
    engine(&mut text, server);
    text.0
}

fn messages(text: &mut Text, node: &NodeStats, facts: &Facts) {
    for (name, help, all, upstream) in [
        ("weir_messages_received_total", "Data messages received.", node.received, facts.upstream_received),
        ("weir_messages_sent_total", "Data messages sent.", node.sent, facts.upstream_sent),
    ] {
        text.family(name, "counter", help);
        let client = all.saturating_sub(upstream);
        text.sample(name, &[("component", "gateway"), ("side", "client")], client);
        text.sample(name, &[("component", "gateway"), ("side", "upstream")], upstream);
    }
    text.one("weir_orders_total", "counter", "Messages of clients taken in.", node.orders);
    text.one(
        "weir_backlog",
        "gauge",
        "Messages taken in that have not left and are not answered.",
        node.backlog,
    );
    for (name, help, value) in [
        ("weir_answers_unmatched_total", "Answers about orders that are not known.", facts.unmatched),
        (
            "weir_orders_unknown_total",
            "Cancels and replaces of orders that are not open.",
            facts.without_order,
        ),
        ("weir_orders_too_long_total", "Orders refused because of their appendage.", facts.too_long),
        ("weir_orders_resent_total", "Orders sent again after a connection was lost.", facts.resent),
        ("weir_answers_replayed_total", "Answers that clients had already.", facts.replayed),
        ("weir_upstream_missed_total", "Messages that exchanges did not give any more.", facts.missed),
        ("weir_upstreams_lost_total", "Upstream connections lost.", facts.upstreams_lost),
    ] {
        text.one(name, "counter", help, value);
    }
    text.one("weir_orders_open", "gauge", "Orders that may be open upstream.", facts.open_orders);
    text.one("weir_orders_unanswered", "gauge", "Orders sent upstream and not answered.", facts.unanswered);
}

fn sessions(text: &mut Text, node: &NodeStats, facts: &Facts) {
    text.family("weir_sessions", "gauge", "Sessions of clients that are logged in.");
    for state in ["live", "replaying"] {
        let count = node.sessions.iter().filter(|session| session.state == state).count();
        text.sample("weir_sessions", &[("state", state)], count);
    }
    text.family("weir_upstream_up", "gauge", "Whether orders can be sent.");
    for (venue, worker, is_open) in &facts.upstreams {
        let labels = [("venue", venue.as_str()), ("worker", &worker.to_string())];
        text.sample("weir_upstream_up", &labels, u8::from(*is_open));
    }
    if node.sessions_open > SESSIONS_MAX as u64 {
        return;
    }
    let mut each = |name: &str, help: &str, value: fn(&weir_record::orders::SessionStats) -> u64| {
        text.family(name, "gauge", help);
        for session in &node.sessions {
            text.sample(name, &[("session", session.account.as_str())], value(session));
        }
    };
    each("weir_session_sent_sequence", "Last number sent.", |session| session.sequence_sent);
    each("weir_session_received_refnum", "Last order number taken in.", |session| {
        session.user_ref_num.into()
    });
    each("weir_session_outbound_queue_bytes", "Bytes that wait for the client.", |session| {
        session.queued_bytes
    });
}

fn by_label(
    text: &mut Text,
    name: &str,
    help: &str,
    label: &str,
    counts: &std::collections::BTreeMap<String, u64>,
) {
    text.family(name, "counter", help);
    for (key, count) in counts {
        text.sample(name, &[(label, key.as_str())], count);
    }
}

fn hops(text: &mut Text, hops: &[HopStats]) {
    const NAME: &str = "weir_hop_latency_seconds";
    text.family(NAME, "histogram", "Times between points of an order's way.");
    for hop in hops {
        // A summary of ours decodes; one that does not has no lines.
        let Ok(histogram) = hop.latency.histogram() else { continue };
        let label = ("hop", hop.hop.as_str());
        for bound_ns in BOUNDS_NS {
            let bound = (bound_ns as f64 / 1e9).to_string();
            let count = histogram.count_between(0, bound_ns);
            text.sample(&format!("{NAME}_bucket"), &[label, ("le", &bound)], count);
        }
        text.sample(&format!("{NAME}_bucket"), &[label, ("le", "+Inf")], histogram.len());
        let sum = histogram.mean() * histogram.len() as f64 / 1e9;
        text.sample(&format!("{NAME}_sum"), &[label], sum);
        text.sample(&format!("{NAME}_count"), &[label], histogram.len());
    }
}

fn handoff(text: &mut Text, node: &NodeStats) {
    let Some(handoff) = &node.handoff else { return };
    let strategy = [("strategy", handoff.strategy.as_str())];
    for (name, help, value) in [
        ("weir_handoff_pushed_total", "Messages handed to another worker.", handoff.pushed),
        ("weir_handoff_drains_total", "Times a worker found something handed over.", handoff.drains),
        ("weir_handoff_wakes_sent_total", "Wakes that cost a system call.", handoff.wakes_sent),
        ("weir_handoff_wakes_suppressed_total", "Wakes that were not needed.", handoff.wakes_suppressed),
        ("weir_handoff_wakes_spurious_total", "Wakes that found nothing.", handoff.wakes_spurious),
        ("weir_handoff_wakes_recovered_total", "Work found without a wake.", handoff.wakes_recovered),
        ("weir_handoff_overflowed_total", "Messages that found a full queue.", handoff.overflowed),
        ("weir_handoff_orders_total", "Orders handed to another worker.", handoff.orders_handed_off),
    ] {
        text.family(name, "counter", help);
        text.sample(name, &strategy, value);
    }
    text.family("weir_handoff_queue_depth", "gauge", "Messages handed over and not taken.");
    text.sample("weir_handoff_queue_depth", &strategy, handoff.depth);
}

fn journal(text: &mut Text, node: &NodeStats) {
    let Some(journal) = &node.journal else { return };
    for (name, help, value) in [
        ("weir_journal_records_total", "Records written.", journal.records),
        ("weir_journal_bytes_total", "Bytes written.", journal.bytes),
        ("weir_journal_commits_total", "Commits.", journal.commits),
    ] {
        text.one(name, "counter", help, value);
    }
    text.one("weir_journal_failed", "gauge", "1 once nothing is durable any more.", u8::from(journal.failed));
}

fn engine(text: &mut Text, server: &ServerStats) {
    type Value = fn(&weir_record::engine::EngineStats) -> u64;
    let each: [(&str, &str, Value); 2] = [
        ("weir_loop_iterations_total", "Turns of the event loop.", |stats| stats.turns),
        ("weir_loop_events_total", "Events delivered by the kernel.", |stats| stats.completions),
    ];
    for (name, help, value) in each {
        text.family(name, "counter", help);
        for (worker, stats) in server.workers.iter().enumerate() {
            let labels = [("worker", &*worker.to_string()), ("driver", server.driver.as_str())];
            text.sample(name, &labels, value(stats));
        }
    }
    const NAME: &str = "weir_syscalls_total";
    text.family(NAME, "counter", "System calls of the event loop.");
    for (worker, stats) in server.workers.iter().enumerate() {
        let worker = worker.to_string();
        for (call, count) in [
            ("wait", stats.wait_calls),
            ("recv", stats.recv_calls),
            ("send", stats.send_calls),
            ("interest", stats.interest_calls),
            ("poll", stats.poll_calls),
            ("accept", stats.accept_calls),
            ("setup", stats.setup_calls),
            ("wake", stats.wake_calls),
            ("file", stats.file_calls),
            ("enter", stats.enters),
        ] {
            text.sample(NAME, &[("worker", &worker), ("call", call)], count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use weir_record::{
        latency::empty_histogram,
        load::LatencySummary,
        orders::{HandoffStats, JournalStats, SessionStats},
    };

    use super::*;

    fn snapshot() -> NodeStats {
        let mut histogram = empty_histogram();
        for time in [1_500, 3_000, 2_000_000_000] {
            histogram.record(time).expect("within bounds");
        }
        NodeStats {
            node: "GATEWAY".into(),
            received: 30,
            sent: 20,
            orders: 10,
            handoff: Some(HandoffStats { strategy: "mesh".into(), pushed: 7, ..HandoffStats::default() }),
            journal: Some(JournalStats { records: 5, ..JournalStats::default() }),
            hops: vec![HopStats {
                hop: "upstream".into(),
                latency: LatencySummary::from_histogram(&histogram),
            }],
            sessions: vec![SessionStats {
                account: "C00001".into(),
                state: "live".into(),
                sequence_sent: 9,
                ..SessionStats::default()
            }],
            sessions_open: 1,
            rejects: BTreeMap::from([("a \"quoted\" reason\\".into(), 2)]),
            ..NodeStats::default()
        }
    }

    #[test]
    fn every_sample_belongs_to_a_family_that_was_announced_once() {
        let server =
            ServerStats { driver: "poll".into(), workers: vec![Default::default()], ..Default::default() };
        let text = render(&snapshot(), &server, &Facts::default());
        let mut families = BTreeSet::new();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let name = family.split(' ').next().expect("a name");
                assert!(families.insert(name.to_owned()), "{name} is announced twice");
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().expect("a name");
                let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                assert!(
                    families.contains(name) || base.is_some_and(|base| families.contains(base)),
                    "{line}"
                );
                let value = line.rsplit(' ').next().expect("a value");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn counts_are_split_by_side_and_labels_are_escaped() {
        let facts = Facts { upstream_received: 12, upstream_sent: 8, ..Facts::default() };
        let text = render(&snapshot(), &ServerStats::default(), &facts);
        for line in [
            r#"weir_messages_received_total{component="gateway",side="client"} 18"#,
            r#"weir_messages_sent_total{component="gateway",side="upstream"} 8"#,
            r#"weir_order_rejects_total{reason="a \"quoted\" reason\\"} 2"#,
            r#"weir_session_sent_sequence{session="C00001"} 9"#,
            r#"weir_handoff_pushed_total{strategy="mesh"} 7"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let text = render(&snapshot(), &ServerStats::default(), &Facts::default());
        let bucket = |bound: &str| {
            let start = format!("weir_hop_latency_seconds_bucket{{hop=\"upstream\",le=\"{bound}\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start)).expect("there is one");
            line.parse::<u64>().expect("a count")
        };
        assert_eq!(
            [bucket("0.000001"), bucket("0.000002"), bucket("0.000005"), bucket("1"), bucket("+Inf")],
            [0, 1, 2, 2, 3]
        );
    }

    #[test]
    fn an_answer_has_one_deadline_however_well_its_reader_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let mut reader = TcpStream::connect(address).expect("it listens");
        let (mut stream, _) = listener.accept().expect("it comes");
        let now = Instant::now();
        write_until(&mut stream, b"in time", now + PATIENCE).expect("there is room");
        let late = write_until(&mut stream, b"late", now).expect_err("the deadline is over");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(stream);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("it ends");
        assert_eq!(text, "in time");
    }
}
