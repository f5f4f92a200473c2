//! A frame as plain lines: the columns of document 001, then those of pidstat, then figures that only this monitor
//! has. Columns keep their original names in every language; sentences follow the reader's language. Pure.

use weir_report::{Language, localized};

use crate::{
    frame::{Flow, Frame, Handoff, Hop, Node, Session, Thread},
    snapshot::Mute,
    target::Target,
};

/// Placeholder for an unknown figure.
const ABSENT: &str = "-";

/// Width of the rule between two moments.
const RULE_COLUMNS: usize = 88;

/// The first line of a monitor.
pub fn started(targets: usize, language: Language) -> String {
    localized!(
        language,
        "Monitoring System Started... (Targets: {targets})\n",
        "모니터링을 시작했습니다. (대상: {targets})\n",
        "监控已启动。（目标：{targets}）\n"
    )
}

/// The watched processes, one line each; servers of one kind share a name.
pub fn targets(targets: &[Target], ports_of: impl Fn(u32) -> Vec<u16>, language: Language) -> String {
    let line = |target: &Target| {
        let name = &target.name;
        let Some(pid) = target.pid else { return format!("{name}\n") };
        let ports: Vec<String> = ports_of(pid).iter().map(u16::to_string).collect();
        if ports.is_empty() {
            return localized!(
                language,
                "{name}: process {pid}\n",
                "{name}: 프로세스 {pid}\n",
                "{name}：进程 {pid}\n"
            );
        }
        let ports = ports.join(", ");
        localized!(
            language,
            "{name}: process {pid}, port {ports}\n",
            "{name}: 프로세스 {pid}, 포트 {ports}\n",
            "{name}：进程 {pid}，端口 {ports}\n"
        )
    };
    targets.iter().map(line).collect()
}

/// The last line of a monitor.
pub fn stopped(language: Language) -> &'static str {
    language.choose(["Stopped.\n", "모니터링을 마쳤습니다.\n", "监控已停止。\n"])
}

/// Header of the message columns, printed once.
pub fn header() -> String {
    let names = ["Time", "Node", "Total RX", "RX TPS", "Total TX", "TX TPS", "Backlog"];
    format!("{}{}", row(names), rule())
}

/// Messages of all targets: one line each, and a rule below.
pub fn messages(frame: &Frame, language: Language) -> String {
    let mut text = String::new();
    for node in &frame.nodes {
        if let Some(mute) = node.advice {
            let words = no_socket(mute, language);
            text.push_str(&format!("{:<10} | {:<10} | {words}\n", frame.time, node.node));
            continue;
        }
        let [total_received, received] = flow(&node.received);
        let [total_sent, sent] = flow(&node.sent);
        let backlog = node.backlog.map_or_else(|| ABSENT.to_owned(), grouped);
        let cells = [&frame.time, &node.node, &total_received, &received, &total_sent, &sent, &backlog];
        text.push_str(&row(cells.map(String::as_str)));
    }
    text.push_str(&alerts(frame, language));
    text.push_str(&rule());
    text
}

/// What keeps orders out although their server runs: a line each.
pub fn alerts(frame: &Frame, language: Language) -> String {
    frame.nodes.iter().map(|node| killed(node, language) + &journal(node, language)).collect()
}

/// That the journal has failed or stalls, or that its disk is nearly full; empty otherwise.
fn journal(node: &Node, language: Language) -> String {
    let (name, Some(journal)) = (&node.node, &node.journal) else { return String::new() };
    let seconds = journal.waiting_ns / 1_000_000_000;
    match (journal.failed, journal.is_stalled(), journal.files_scarce()) {
        (true, ..) => {
            localized!(language, "{name} journal failed\n", "{name} 저널 실패\n", "{name} 日志已失效\n")
        }
        (false, true, _) => localized!(
            language,
            "{name} journal: no answer of its disk for {seconds} s\n",
            "{name} 저널: 디스크가 {seconds}초째 응답하지 않음\n",
            "{name} 日志：磁盘已 {seconds} 秒没有应答\n"
        ),
        (false, false, Some(files)) => localized!(
            language,
            "{name} journal: room on its disk for {files} more files of each worker\n",
            "{name} 저널: 디스크에 워커마다 파일 {files}개를 더 둘 자리만 남음\n",
            "{name} 日志：磁盘只够每个工作线程再写 {files} 个文件\n"
        ),
        (false, false, None) => String::new(),
    }
}

/// Why a target has no figures.
pub(crate) fn no_socket(mute: Mute, language: Language) -> String {
    let advice = mute.advice(language);
    localized!(language, "no socket: {advice}", "소켓 없음: {advice}", "无套接字：{advice}")
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

/// Total and rate, or the reason why they are missing.
pub(crate) fn flow(flow: &Flow) -> [String; 2] {
    let missing = flow.missing.map_or(ABSENT, |missing| missing.word());
    let total = flow.total.map_or_else(|| missing.to_owned(), grouped);
    let rate = flow.per_second.map_or_else(|| missing.to_owned(), |rate| grouped(rate.round() as u64));
    [total, rate]
}

/// A whole number with commas.
pub fn grouped(number: u64) -> String {
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

/// Threads of all targets in the columns of `pidstat -w -t`, plus CPU and waiting for a CPU.
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
pub fn decimals(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.2}"))
}

/// Hand-off, hop times and sessions of the targets that have them.
pub fn orders(frame: &Frame, language: Language) -> String {
    frame.nodes.iter().map(|node| of_node(node, language)).collect()
}

fn of_node(node: &Node, language: Language) -> String {
    let mut text = String::new();
    let name = &node.node;
    if let Some(handoff) = &node.handoff {
        let words = handoff_words(handoff, language);
        text.push_str(&localized!(
            language,
            "{name} hand-off {words}\n",
            "{name} 전달 {words}\n",
            "{name} 移交 {words}\n"
        ));
    }
    for hop in &node.hops {
        let words = hop_words(hop, language);
        text.push_str(&localized!(
            language,
            "{name} hop {words}\n",
            "{name} 홉 {words}\n",
            "{name} 跳 {words}\n"
        ));
    }
    if node.sessions_open > 0 || node.upstreams_open > 0 || !node.sessions.is_empty() {
        let (open, upstreams) = (node.sessions_open, node.upstreams_open);
        text.push_str(&localized!(
            language,
            "{name} sessions {open}, upstream {upstreams}\n",
            "{name} 세션 {open}, 거래소 세션 {upstreams}\n",
            "{name} 会话 {open}，上游会话 {upstreams}\n"
        ));
    }
    let (anew, expired) = (node.upstreams_begun_anew, node.orders_expired);
    if anew > 0 || expired > 0 {
        text.push_str(&localized!(
            language,
            "{name} upstream sessions begun anew {anew}, orders expired {expired}\n",
            "{name} 다시 시작한 거래소 세션 {anew}, 만료된 주문 {expired}\n",
            "{name} 重新开始的上游会话 {anew}，已失效的订单 {expired}\n"
        ));
    }
    for session in &node.sessions {
        let words = session_words(session, language);
        text.push_str(&localized!(
            language,
            "{name} session {words}\n",
            "{name} 세션 {words}\n",
            "{name} 会话 {words}\n"
        ));
    }
    text
}

/// Kill switches that are on; empty if there are none.
fn killed(node: &Node, language: Language) -> String {
    let (name, accounts) = (&node.node, node.accounts_killed);
    match (node.is_everyone_killed, accounts) {
        (false, 0) => String::new(),
        (true, _) => localized!(
            language,
            "{name} kill switch on for all accounts\n",
            "{name} 킬 스위치 켜짐: 모든 계좌\n",
            "{name} 紧急停止已开启：所有账户\n"
        ),
        (false, _) => localized!(
            language,
            "{name} kill switch on, accounts {accounts}\n",
            "{name} 킬 스위치 켜짐: 계좌 {accounts}개\n",
            "{name} 紧急停止已开启：{accounts} 个账户\n"
        ),
    }
}

fn rate(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| ABSENT.to_owned(), |rate| grouped(rate.round() as u64))
}

/// Hand-off in one line.
fn handoff_words(handoff: &Handoff, language: Language) -> String {
    let Handoff { strategy, per_second, wakes_per_handoff, per_drain, orders_share, depth, wakes_recovered } =
        handoff;
    let figure = |value: &Option<f64>| value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.3}"));
    let (rate, wakes, drained) = (rate(*per_second), figure(wakes_per_handoff), figure(per_drain));
    let share = orders_share.map_or_else(|| ABSENT.to_owned(), |share| format!("{:.1} %", 100.0 * share));
    localized!(
        language,
        "{strategy}: {rate}/s, {wakes} wakes each, {drained} a drain, {share} of the orders, {depth} queued, \
         {wakes_recovered} recovered",
        "{strategy}: {rate}/s, 건당 웨이크업 {wakes}, 한 번에 꺼낸 수 {drained}, 전체 주문의 {share}, 대기 {depth}, 복구한 웨이크업 \
        {wakes_recovered}",
        "{strategy}：{rate}/s，每次移交唤醒 {wakes}，每批取出 {drained}，占订单 {share}，排队 {depth}，补救的唤醒 \
         {wakes_recovered}"
    )
}

/// A hop in one line.
fn hop_words(hop: &Hop, language: Language) -> String {
    let micros =
        |ns: Option<u64>| ns.map_or_else(|| ABSENT.to_owned(), |ns| format!("{:.1} µs", ns as f64 / 1_000.0));
    let (p50, p99, max) = (micros(hop.p50_ns), micros(hop.p99_ns), micros(Some(hop.max_ns)));
    let (name, count) = (&hop.hop, grouped(hop.count));
    let scope = if hop.since_start {
        language.choose([" since the start", ", 시작 이후", "，自启动以来"])
    } else {
        ""
    };
    localized!(
        language,
        "{name}: p50 {p50}, p99 {p99}, max {max} ({count}{scope})",
        "{name}: p50 {p50}, p99 {p99}, 최대 {max} ({count}건{scope})",
        "{name}：p50 {p50}，p99 {p99}，最大 {max}（{count} 次{scope}）"
    )
}

/// A session in one line.
fn session_words(session: &Session, language: Language) -> String {
    let rate = rate(session.per_second);
    let Session { account, worker, state, behind, sequence_sent, user_ref_num, queued_bytes, .. } = session;
    localized!(
        language,
        "{account} {state} on worker {worker}: {rate}/s, sequence {sequence_sent}, {behind} behind, UserRefNum \
         {user_ref_num}, {queued_bytes} B queued",
        "{account} {state}, 워커 {worker}: {rate}/s, 시퀀스 {sequence_sent}, 밀린 메시지 {behind}, UserRefNum \
         {user_ref_num}, 대기 {queued_bytes} B",
        "{account} {state}，工作线程 {worker}：{rate}/s，序号 {sequence_sent}，落后 {behind} 条，UserRefNum \
         {user_ref_num}，待发 {queued_bytes} B"
    )
}

#[cfg(test)]
mod tests {
    use weir_record::orders::JournalStats;

    use super::*;

    #[test]
    fn two_servers_of_one_kind_are_told_apart_by_process_and_port() {
        let target = |pid| Target { pid, name: "ECHO".to_owned(), ..Target::default() };
        let ports = |pid| if pid == 7 { vec![8080, 8081] } else { Vec::new() };
        let all = [target(Some(7)), target(Some(9)), target(None)];
        assert_eq!(targets(&all, ports, EN), "ECHO: process 7, port 8080, 8081\nECHO: process 9\nECHO\n");
        for language in Language::ALL {
            let text = targets(&all, ports, language);
            assert!(text.contains("8081") && text.lines().count() == 3, "{text}");
        }
    }
    use crate::frame::{
        self,
        made::{self, gateway, silent, snapshot},
    };

    const EN: Language = Language::English;

    #[test]
    fn the_columns_are_those_of_the_document() {
        let text = format!("{}{}{}", started(2, EN), header(), messages(&made::second(), EN));
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
        insta::assert_snapshot!(messages(&frame::frame(Some(&before), &after), EN), @r"
        17:08:19   | GATEWAY 4242 | gap          | gap        | gap          | gap        | -
        17:08:19   | GATEWAY 4242 | 400,014      | reset      | 400,000      | reset      | 14
        ----------------------------------------------------------------------------------------
        ");
        insta::assert_snapshot!(messages(&frame::frame(None, &snapshot(1, vec![gateway(1)])), EN), @r"
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
        insta::assert_snapshot!(orders(&made::second(), EN), @r"
        GATEWAY hand-off mesh: 200,000/s, 0.050 wakes each, 8.000 a drain, 100.0 % of the orders, 3 queued, 0 recovered
        GATEWAY hop upstream: p50 21.0 µs, p99 84.0 µs, max 400.0 µs (1,100,000 since the start)
        GATEWAY sessions 10, upstream 2
        GATEWAY session C00001 live on worker 1: 10,000/s, sequence 110000, 2 behind, UserRefNum 7, 134 B queued
        ");
        assert_eq!(orders(&frame::frame(None, &snapshot(1, vec![silent(1)])), EN), "");
    }

    #[test]
    fn a_kill_switch_that_is_on_has_a_line() {
        let with = |is_everyone_killed, accounts_killed| {
            let mut frame = made::second();
            frame.nodes[0].is_everyone_killed = is_everyone_killed;
            frame.nodes[0].accounts_killed = accounts_killed;
            frame
        };
        assert_eq!(alerts(&with(false, 0), EN), "");
        assert_eq!(alerts(&with(false, 3), EN), "GATEWAY kill switch on, accounts 3\n");
        let everyone = with(true, 3);
        for language in Language::ALL {
            let line = alerts(&everyone, language);
            assert!(messages(&everyone, language).contains(&line) && line.lines().count() == 1, "{line}");
        }
    }

    #[test]
    fn a_journal_in_trouble_has_a_line() {
        let line = |journal: JournalStats, language| {
            let mut frame = made::second();
            frame.nodes[0].journal = Some(journal);
            alerts(&frame, language)
        };
        let works =
            JournalStats { waiting_ns: 1_999_999_999, files_left: Some(3), ..JournalStats::default() };
        let stalls = JournalStats { waiting_ns: 12_345_678_901, files_left: Some(0), ..works.clone() };
        assert_eq!(line(works.clone(), EN), "");
        assert_eq!(line(stalls.clone(), EN), "GATEWAY journal: no answer of its disk for 12 s\n");
        let full = JournalStats { files_left: Some(2), ..works.clone() };
        let expected = "GATEWAY journal: room on its disk for 2 more files of each worker\n";
        assert_eq!(line(full.clone(), EN), expected);
        assert_eq!(line(JournalStats { failed: true, ..stalls.clone() }, EN), "GATEWAY journal failed\n");
        for language in Language::ALL {
            assert_eq!(line(stalls.clone(), language).lines().count(), 1);
            assert_eq!(line(full.clone(), language).lines().count(), 1);
        }
    }

    #[test]
    fn sentences_are_in_the_readers_language_and_columns_are_not() {
        let printed = |language| {
            format!("{}{}", messages(&made::second(), language), orders(&made::second(), language))
        };
        insta::assert_snapshot!(printed(Language::Korean), @r"
        17:08:19   | GATEWAY    | 2,200,014    | 200,000    | 2,200,000    | 200,000    | 14
        17:08:19   | ECHO       | 소켓 없음: --stats-socket off 없이 시작하십시오
        ----------------------------------------------------------------------------------------
        GATEWAY 전달 mesh: 200,000/s, 건당 웨이크업 0.050, 한 번에 꺼낸 수 8.000, 전체 주문의 100.0 %, 대기 3, 복구한 웨이크업 0
        GATEWAY 홉 upstream: p50 21.0 µs, p99 84.0 µs, 최대 400.0 µs (1,100,000건, 시작 이후)
        GATEWAY 세션 10, 거래소 세션 2
        GATEWAY 세션 C00001 live, 워커 1: 10,000/s, 시퀀스 110000, 밀린 메시지 2, UserRefNum 7, 대기 134 B
        ");
        insta::assert_snapshot!(printed(Language::Chinese), @r"
        17:08:19   | GATEWAY    | 2,200,014    | 200,000    | 2,200,000    | 200,000    | 14
        17:08:19   | ECHO       | 无套接字：启动时请勿使用 --stats-socket off
        ----------------------------------------------------------------------------------------
        GATEWAY 移交 mesh：200,000/s，每次移交唤醒 0.050，每批取出 8.000，占订单 100.0 %，排队 3，补救的唤醒 0
        GATEWAY 跳 upstream：p50 21.0 µs，p99 84.0 µs，最大 400.0 µs（1,100,000 次，自启动以来）
        GATEWAY 会话 10，上游会话 2
        GATEWAY 会话 C00001 live，工作线程 1：10,000/s，序号 110000，落后 2 条，UserRefNum 7，待发 134 B
        ");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!((grouped(0), grouped(999), grouped(1_000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
