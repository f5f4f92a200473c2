//! The metrics that servers have in common: those of the engine, of sessions and orders, and of kept files.

use std::collections::BTreeMap;

use weir_proto::exposition::{
    Exposition,
    Kind::{self, Counter, Gauge, Histogram},
};
use weir_record::{
    engine::{EngineStats, FileCacheStats, ServerStats},
    orders::{HopStats, NodeStats, SessionStats},
};

/// Most sessions with separate lines; beyond that no session has any.
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

/// All metrics of a server that is not a gateway.
pub(crate) fn of_server(stats: &ServerStats) -> String {
    let mut text = Exposition::default();
    build(&mut text, stats, &[]);
    stats.node.iter().for_each(|stats| node(&mut text, stats, None));
    stats.files.iter().for_each(|stats| files(&mut text, stats));
    engine(&mut text, stats);
    text.into_text()
}

/// The build and configuration.
pub(crate) fn build(text: &mut Exposition, server: &ServerStats, further: &[(&str, &str)]) {
    const NAME: &str = "weir_build_info";
    text.family(NAME, Gauge, "What runs.");
    let own = [("version", env!("CARGO_PKG_VERSION")), ("driver", server.driver.as_str())];
    text.sample(NAME, &[&own[..], further].concat(), 1);
}

/// The counts of an exchange or a gateway for its sessions and orders. `upstream` is the part of all messages that
/// were received from and sent to exchanges, if there are any.
pub(crate) fn node(text: &mut Exposition, node: &NodeStats, upstream: Option<(u64, u64)>) {
    messages(text, node, upstream);
    sessions(text, node);
    by_label(text, "weir_order_rejects_total", "Orders refused.", "reason", &node.rejects);
    let help = "Connections ended for breaking the protocol.";
    by_label(text, "weir_protocol_errors_total", help, "kind", &node.protocol_errors);
    by_label(text, "weir_logins_total", "Logins.", "result", &node.logins);
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
        text.one(name, Counter, help, value);
    }
    hops(text, &node.hops);
    handoff(text, node);
    journal(text, node);
}

fn messages(text: &mut Exposition, node: &NodeStats, upstream: Option<(u64, u64)>) {
    let component = node.node.to_lowercase();
    let (received, sent) = upstream.unwrap_or_default();
    for (name, help, all, behind) in [
        ("weir_messages_received_total", "Data messages received.", node.received, received),
        ("weir_messages_sent_total", "Data messages sent.", node.sent, sent),
    ] {
        text.family(name, Counter, help);
        let mut sample = |side: &str, count: u64| {
            text.sample(name, &[("component", component.as_str()), ("side", side)], count);
        };
        sample("client", all.saturating_sub(behind));
        if upstream.is_some() {
            sample("upstream", behind);
        }
    }
    text.one("weir_orders_total", Counter, "Messages of clients taken in.", node.orders);
    let help = "Messages taken in that have not left and are not answered.";
    text.one("weir_backlog", Gauge, help, node.backlog);
}

fn sessions(text: &mut Exposition, node: &NodeStats) {
    text.family("weir_sessions", Gauge, "Sessions of clients that are logged in.");
    let live = node.sessions_open.saturating_sub(node.sessions_replaying);
    for (state, count) in [("live", live), ("replaying", node.sessions_replaying)] {
        text.sample("weir_sessions", &[("state", state)], count);
    }
    if node.sessions_open > SESSIONS_MAX as u64 {
        return;
    }
    let mut each = |name: &str, help: &str, value: fn(&SessionStats) -> u64| {
        text.family(name, Gauge, help);
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

/// A counter for each label.
pub(crate) fn by_label(
    text: &mut Exposition,
    name: &str,
    help: &str,
    label: &str,
    counts: &BTreeMap<String, u64>,
) {
    text.family(name, Counter, help);
    for (key, count) in counts {
        text.sample(name, &[(label, key.as_str())], count);
    }
}

fn hops(text: &mut Exposition, hops: &[HopStats]) {
    const NAME: &str = "weir_hop_latency_seconds";
    text.family(NAME, Histogram, "Times between points of an order's way.");
    for hop in hops {
        // Our own summaries decode; one that does not gets no lines.
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

fn handoff(text: &mut Exposition, node: &NodeStats) {
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
        text.family(name, Counter, help);
        text.sample(name, &strategy, value);
    }
    text.family("weir_handoff_queue_depth", Gauge, "Messages handed over and not taken.");
    text.sample("weir_handoff_queue_depth", &strategy, handoff.depth);
}

fn journal(text: &mut Exposition, node: &NodeStats) {
    let Some(journal) = &node.journal else { return };
    for (name, help, value) in [
        ("weir_journal_records_total", "Records written.", journal.records),
        ("weir_journal_bytes_total", "Bytes written.", journal.bytes),
        ("weir_journal_commits_total", "Commits.", journal.commits),
    ] {
        text.one(name, Counter, help, value);
    }
    text.one("weir_journal_failed", Gauge, "1 once nothing is durable any more.", u8::from(journal.failed));
    let help = "Time of the commit under way, the longest of all workers.";
    text.one("weir_journal_waiting_seconds", Gauge, help, journal.waiting_ns as f64 / 1e9);
    if let Some(files_left) = journal.files_left {
        let help = "Further files of each worker that the disk has room for.";
        text.one("weir_journal_files_left", Gauge, help, files_left);
    }
}

fn files(text: &mut Exposition, files: &FileCacheStats) {
    for (name, help, value) in [
        ("weir_files_kept", "Files that are kept, by all workers together.", files.kept),
        ("weir_files_open", "Kept files that are open.", files.open),
    ] {
        text.one(name, Gauge, help, value);
    }
    for (name, help, value) in [
        ("weir_file_hits_total", "Requests for which nothing was opened.", files.hits),
        ("weir_file_misses_total", "Requests for a path that was not kept.", files.misses),
        (
            "weir_file_revalidations_total",
            "Requests for a path that was kept for so long that it was opened anew.",
            files.revalidations,
        ),
        ("weir_file_evictions_total", "Files given up before their time was over.", files.evictions),
    ] {
        text.one(name, Counter, help, value);
    }
}

/// The counters of the workers' runtimes.
pub(crate) fn engine(text: &mut Exposition, server: &ServerStats) {
    type Value = fn(&EngineStats) -> u64;
    let help = "Connections that are open.";
    by_worker(text, server, ("weir_connections_open", Gauge, help), |stats| stats.connections_open);
    let each: [(&str, &str, Value); 15] = [
        ("weir_connections_accepted_total", "Connections accepted.", |stats| stats.accepts),
        ("weir_connections_closed_total", "Connections closed.", |stats| stats.closes),
        (
            "weir_connections_refused_total",
            "Accepted connections that were closed at once because a limit was reached.",
            |stats| stats.accepts_refused,
        ),
        (
            "weir_accept_pauses_total",
            "Times accepting paused because descriptors or memory ran out.",
            |stats| stats.accepts_starved,
        ),
        ("weir_accept_failures_total", "Accepts that failed.", |stats| stats.accepts_failed),
        ("weir_received_bytes_total", "Bytes received.", |stats| stats.bytes_received),
        ("weir_sent_bytes_total", "Bytes the kernel took for sending.", |stats| stats.bytes_sent),
        ("weir_short_sends_total", "Sends of which the kernel took only a part.", |stats| stats.sends_short),
        (
            "weir_receive_pauses_total",
            "Receives stopped because the handler was slower than the peer.",
            |stats| stats.receive_pauses,
        ),
        (
            "weir_buffers_exhausted_total",
            "Receives that ended, or waited, because no buffer was free.",
            |stats| stats.buffers_exhausted,
        ),
        ("weir_completion_overflows_total", "Overflows of the completion queue (io_uring).", |stats| {
            stats.completion_overflows
        }),
        ("weir_loop_iterations_total", "Turns of the event loop.", |stats| stats.turns),
        ("weir_loop_events_total", "Events delivered by the kernel.", |stats| stats.completions),
        ("weir_task_polls_total", "Tasks polled.", |stats| stats.task_polls),
        ("weir_task_panics_total", "Tasks that a panic has ended.", |stats| stats.tasks_panicked),
    ];
    for (name, help, value) in each {
        by_worker(text, server, (name, Counter, help), value);
    }
    system_calls(text, server);
}

fn by_worker(
    text: &mut Exposition,
    server: &ServerStats,
    (name, kind, help): (&str, Kind, &str),
    value: impl Fn(&EngineStats) -> u64,
) {
    text.family(name, kind, help);
    for (worker, stats) in server.workers.iter().enumerate() {
        let labels = [("worker", &*worker.to_string()), ("driver", server.driver.as_str())];
        text.sample(name, &labels, value(stats));
    }
}

fn system_calls(text: &mut Exposition, server: &ServerStats) {
    const NAME: &str = "weir_syscalls_total";
    text.family(NAME, Counter, "System calls of the event loop.");
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
