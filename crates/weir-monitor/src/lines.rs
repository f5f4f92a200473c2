//! A frame as plain lines: the columns of document 001, then those of pidstat, then what only this monitor knows. Pure.

use crate::frame::{Flow, Frame, Handoff, Hop, Node, Session, Thread};

/// What stands for a figure that is not known.
const ABSENT: &str = "-";

/// Width of the rule between two moments.
const RULE_COLUMNS: usize = 88;

/// The first line of a monitor.
pub fn started(targets: usize) -> String {
    format!("Monitoring System Started... (Targets: {targets})\n")
}

/// Its last line.
pub const STOPPED: &str = "Stopped.\n";

/// Names of the message columns, printed once.
pub fn header() -> String {
    let names = ["Time", "Node", "Total RX", "RX TPS", "Total TX", "TX TPS", "Backlog"];
    format!("{}{}", row(names), rule())
}

/// Messages of all targets: one line each, and a rule below.
pub fn messages(frame: &Frame) -> String {
    let mut text = String::new();
    for node in &frame.nodes {
        if let Some(advice) = &node.advice {
            text.push_str(&format!("{:<10} | {:<10} | no socket: {advice}\n", frame.time, node.node));
            continue;
        }
        let [total_received, received] = flow(&node.received);
        let [total_sent, sent] = flow(&node.sent);
        let backlog = node.backlog.map_or_else(|| ABSENT.to_owned(), grouped);
        let cells = [&frame.time, &node.node, &total_received, &received, &total_sent, &sent, &backlog];
        text.push_str(&row(cells.map(String::as_str)));
    }
    text.push_str(&rule());
    text
}

fn row([time, node, total_received, received, total_sent, sent, backlog]: [&str; 7]) -> String {
    let line = format!(
        "{time:<10} | {node:<10} | {total_received:<12} | {received:<10} | {total_sent:<12} | {sent:<10} | {backlog}"
    );
    format!("{}\n", line.trim_end())
}

fn rule() -> String {
    format!("{}\n", "-".repeat(RULE_COLUMNS))
}

/// Total and rate, or the word for what is missing.
pub(crate) fn flow(flow: &Flow) -> [String; 2] {
    let missing = flow.missing.map_or(ABSENT, |missing| missing.word());
    let total = flow.total.map_or_else(|| missing.to_owned(), grouped);
    let rate = flow.per_second.map_or_else(|| missing.to_owned(), |rate| grouped(rate.round() as u64));
    [total, rate]
}

/// A whole number with commas.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Threads of all targets, as `pidstat -w -t` has them, with CPU and waiting for one beside.
pub fn threads(frame: &Frame) -> String {
    let mut text = format!("{:<10}", frame.time);
    text.push_str("   UID      TGID       TID   cswch/s nvcswch/s    %CPU   %wait  Command\n");
    for node in &frame.nodes {
        let uid = node.uid.map_or_else(|| ABSENT.to_owned(), |uid| uid.to_string());
        let pid = node.pid.map_or_else(|| ABSENT.to_owned(), |pid| pid.to_string());
        for thread in &node.threads {
            text.push_str(&thread_line(&frame.time, &uid, &pid, thread));
        }
    }
    text
}

fn thread_line(time: &str, uid: &str, pid: &str, thread: &Thread) -> String {
    let Thread {
        tid,
        command,
        context_switches_voluntary,
        context_switches_involuntary,
        cpu_percent,
        wait_percent,
    } = thread;
    let (tgid, tid, command) = match tid {
        None => (pid.to_owned(), ABSENT.to_owned(), command.clone()),
        Some(tid) => (ABSENT.to_owned(), tid.to_string(), format!("|__{command}")),
    };
    format!(
        "{time:<10}{uid:>6}{tgid:>10}{tid:>10}{:>10}{:>10}{:>8}{:>8}  {command}\n",
        decimals(*context_switches_voluntary),
        decimals(*context_switches_involuntary),
        decimals(*cpu_percent),
        decimals(*wait_percent),
    )
}

/// Two decimals, as pidstat writes them.
pub(crate) fn decimals(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.2}"))
}

/// Hand-off, hop times and sessions of the targets that have them.
pub fn orders(frame: &Frame) -> String {
    frame.nodes.iter().map(of_node).collect()
}

fn of_node(node: &Node) -> String {
    let mut text = String::new();
    let name = &node.node;
    if let Some(handoff) = &node.handoff {
        text.push_str(&format!("{name} hand-off {}\n", handoff_words(handoff)));
    }
    for hop in &node.hops {
        text.push_str(&format!("{name} hop {}\n", hop_words(hop)));
    }
    if node.sessions_open > 0 || node.upstreams_open > 0 || !node.sessions.is_empty() {
        let (open, upstreams) = (node.sessions_open, node.upstreams_open);
        text.push_str(&format!("{name} sessions {open}, upstream {upstreams}\n"));
    }
    let (anew, expired) = (node.upstreams_begun_anew, node.orders_expired);
    if anew > 0 || expired > 0 {
        text.push_str(&format!("{name} upstream sessions begun anew {anew}, orders expired {expired}\n"));
    }
    for session in &node.sessions {
        text.push_str(&format!("{name} session {}\n", session_words(session)));
    }
    text
}

/// Hand-off in one line.
pub(crate) fn handoff_words(handoff: &Handoff) -> String {
    let Handoff { strategy, per_second, wakes_per_handoff, per_drain, orders_share, depth, wakes_recovered } =
        handoff;
    let rate = per_second.map_or_else(|| ABSENT.to_owned(), |rate| grouped(rate.round() as u64));
    let figure = |value: &Option<f64>| value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.3}"));
    let share = orders_share.map_or_else(|| ABSENT.to_owned(), |share| format!("{:.1} %", 100.0 * share));
    format!(
        "{strategy}: {rate}/s, {} wakes each, {} a drain, {share} of the orders, {depth} queued, {wakes_recovered} \
         recovered",
        figure(wakes_per_handoff),
        figure(per_drain)
    )
}

/// A hop in one line.
pub(crate) fn hop_words(hop: &Hop) -> String {
    let micros =
        |ns: Option<u64>| ns.map_or_else(|| ABSENT.to_owned(), |ns| format!("{:.1} µs", ns as f64 / 1_000.0));
    let scope = if hop.since_start { " since the start" } else { "" };
    format!(
        "{}: p50 {}, p99 {}, max {} ({}{scope})",
        hop.hop,
        micros(hop.p50_ns),
        micros(hop.p99_ns),
        micros(Some(hop.max_ns)),
        grouped(hop.count)
    )
}

/// A session in one line.
pub(crate) fn session_words(session: &Session) -> String {
    let rate = session.per_second.map_or_else(|| ABSENT.to_owned(), |rate| grouped(rate.round() as u64));
    let Session { account, worker, state, behind, sequence_sent, user_ref_num, queued_bytes, .. } = session;
    format!(
        "{account} {state} on worker {worker}: {rate}/s, sequence {sequence_sent}, {behind} behind, UserRefNum \
         {user_ref_num}, {queued_bytes} B queued"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{
        self,
        made::{self, gateway, silent, snapshot},
    };

    #[test]
    fn the_columns_are_those_of_the_document() {
        let text = format!("{}{}{}", started(2), header(), messages(&made::second()));
        insta::assert_snapshot!(text, @r"
        Monitoring System Started... (Targets: 2)
        Time       | Node       | Total RX     | RX TPS     | Total TX     | TX TPS     | Backlog
        ----------------------------------------------------------------------------------------
        17:08:19   | GATEWAY    | 2,200,014    | 200,000    | 2,200,000    | 200,000    | 14
        17:08:19   | ECHO       | no socket: start it without --stats-socket off
        ----------------------------------------------------------------------------------------
        ");
    }

    #[test]
    fn gaps_and_resets_are_words() {
        let mut mute = gateway(11);
        mute.stats = None;
        let before = snapshot(10, vec![gateway(10), gateway(10)]);
        let after = snapshot(11, vec![mute, gateway(2)]);
        insta::assert_snapshot!(messages(&frame::frame(Some(&before), &after)), @r"
        17:08:19   | GATEWAY    | gap          | gap        | gap          | gap        | -
        17:08:19   | GATEWAY    | 400,014      | reset      | 400,000      | reset      | 14
        ----------------------------------------------------------------------------------------
        ");
        insta::assert_snapshot!(messages(&frame::frame(None, &snapshot(1, vec![gateway(1)]))), @r"
        17:08:09   | GATEWAY    | 200,014      | -          | 200,000      | -          | 14
        ----------------------------------------------------------------------------------------
        ");
    }

    #[test]
    fn threads_are_told_as_pidstat_tells_them() {
        insta::assert_snapshot!(threads(&made::second()), @r"
        17:08:19     UID      TGID       TID   cswch/s nvcswch/s    %CPU   %wait  Command
        17:08:19    1000      4242         -      0.00      0.00  150.00   15.00  weir
        17:08:19    1000         -      4242      0.00      0.00    0.00    0.00  |__weir
        17:08:19    1000         -      4243  31834.00     32.00  100.00   10.00  |__weir-worker-0
        17:08:19    1000         -      4244  27858.00     28.00   50.00    5.00  |__weir-worker-1
        17:08:19    1000        77         -      5.00      0.00    1.00    0.10  weir
        17:08:19    1000         -        77      5.00      0.00    1.00    0.10  |__weir
        ");
    }

    #[test]
    fn hand_off_hops_and_sessions_have_a_line_each() {
        insta::assert_snapshot!(orders(&made::second()), @r"
        GATEWAY hand-off mesh: 200,000/s, 0.050 wakes each, 8.000 a drain, 100.0 % of the orders, 3 queued, 0 recovered
        GATEWAY hop upstream: p50 21.0 µs, p99 84.0 µs, max 400.0 µs (1,100,000 since the start)
        GATEWAY sessions 10, upstream 2
        GATEWAY session C00001 live on worker 1: 10,000/s, sequence 110000, 2 behind, UserRefNum 7, 134 B queued
        ");
        assert_eq!(orders(&frame::frame(None, &snapshot(1, vec![silent(1)]))), "");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!((grouped(0), grouped(999), grouped(1_000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
