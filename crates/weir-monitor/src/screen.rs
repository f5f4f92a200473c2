//! A frame on a terminal. This module only draws; [`Keys`] handles the keys, and `live` the terminal.

use ratatui::{
    Frame as Canvas,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::{Paragraph, Wrap},
};
use weir_report::{Language, localized};

use crate::{
    frame::{Frame, Node, Thread},
    lines,
};

/// Sorting of the threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Unsorted: processes with their threads below them.
    #[default]
    Process,
    /// CPU, most first.
    Cpu,
    /// Voluntary context switches, most first.
    Voluntary,
    /// Involuntary context switches, most first.
    Involuntary,
    /// Waiting for a CPU, longest first.
    Wait,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Process => Self::Cpu,
            Self::Cpu => Self::Voluntary,
            Self::Voluntary => Self::Involuntary,
            Self::Involuntary => Self::Wait,
            Self::Wait => Self::Process,
        }
    }

    fn name(self, language: Language) -> &'static str {
        match self {
            Self::Process => language.choose(["process", "프로세스", "进程"]),
            Self::Cpu => "%CPU",
            Self::Voluntary => "cswch/s",
            Self::Involuntary => "nvcswch/s",
            Self::Wait => "%wait",
        }
    }
}

/// Contents of the lower half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// Threads.
    #[default]
    Threads,
    /// Hand-off, hop times and sessions.
    Orders,
}

/// State that the keys control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Sorting of the threads.
    pub sort: Sort,
    /// Lower half.
    pub page: Page,
    /// The display is frozen until the key is pressed again.
    pub paused: bool,
    /// The monitor should end.
    pub quit: bool,
    /// First line of the lower half that is shown.
    pub scroll: u16,
}

impl Keys {
    /// Handles a key; unknown keys are ignored.
    pub fn press(&mut self, key: char) {
        match key {
            'q' => self.quit = true,
            's' => self.sort = self.sort.next(),
            'p' | ' ' => self.paused = !self.paused,
            'j' => self.scroll = self.scroll.saturating_add(1),
            'k' => self.scroll = self.scroll.saturating_sub(1),
            '\t' | 'o' => {
                self.scroll = 0;
                self.page = match self.page {
                    Page::Threads => Page::Orders,
                    Page::Orders => Page::Threads,
                };
            }
            _ => {}
        }
    }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws everything.
pub fn draw(canvas: &mut Canvas<'_>, frame: &Frame, keys: &Keys, language: Language) {
    let nodes = u16::try_from(frame.nodes.len()).unwrap_or(u16::MAX).saturating_add(2);
    let alerts = lines::alerts(frame, language);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::try_from(alerts.lines().count()).unwrap_or(u16::MAX)),
        Constraint::Length(nodes),
        Constraint::Min(3),
        Constraint::Length(1),
    ]);
    let [title, alarm, messages, lower, help] = areas.areas(canvas.area());
    canvas.render_widget(Line::styled(title_words(frame, keys, language), BOLD), title);
    canvas.render_widget(Paragraph::new(alerts).style(BOLD), alarm);
    canvas.render_widget(Paragraph::new(message_table(frame, messages.width, language)), messages);
    match keys.page {
        Page::Threads => thread_table(canvas, frame, keys, lower, language),
        Page::Orders => {
            let text = lines::orders(frame, language);
            let none = ["no target counts orders", "주문을 세는 대상이 없습니다", "没有统计订单的目标"];
            let text = if text.is_empty() { language.choose(none).to_owned() } else { text };
            let text = Paragraph::new(text).wrap(Wrap { trim: false });
            canvas.render_widget(text.scroll((keys.scroll, 0)), lower);
        }
    }
    let keys = [
        "q quit   s sort   tab threads/orders   j k scroll   p pause",
        "q 종료   s 정렬   tab 스레드/주문   j k 스크롤   p 일시 정지",
        "q 退出   s 排序   tab 线程/订单   j k 滚动   p 暂停",
    ];
    canvas.render_widget(Line::styled(language.choose(keys), FAINT), help);
}

fn title_words(frame: &Frame, keys: &Keys, language: Language) -> String {
    let over = |length: f64| {
        localized!(language, " over {length:.2} s", ", {length:.2}초 동안", "，{length:.2} 秒内")
    };
    let interval = frame.interval_s.map_or_else(String::new, over);
    let paused =
        if keys.paused { language.choose([", paused", ", 일시 정지", "，已暂停"]) } else { "" };
    let (time, targets) = (&frame.time, frame.nodes.len());
    localized!(
        language,
        "weir top  {time} UTC{interval}, {targets} targets{paused}",
        "weir top  {time} UTC{interval}, 대상 {targets}개{paused}",
        "weir top  {time} UTC{interval}，{targets} 个目标{paused}"
    )
}

/// Minimum widths of the message columns, so that they do not move while figures grow.
const MESSAGE_COLUMNS: [usize; 8] = [8, 7, 6, 11, 9, 11, 9, 7];

/// Minimum widths of the thread columns.
const THREAD_COLUMNS: [usize; 8] = [5, 7, 7, 9, 9, 6, 6, 0];

/// A header above rows, each column as wide as its widest cell. The last cell of a row may have any length, so that a
/// row with few cells can end with a sentence.
fn table(head: &[&str], narrowest: &[usize], rows: &[Vec<String>]) -> Vec<Line<'static>> {
    let width = |column: usize| {
        let whole = rows.iter().filter(|row| column + 1 < row.len());
        let cells = whole.map(|row| row[column].chars().count());
        cells.chain([head[column].len(), narrowest[column]]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    std::iter::once(Line::styled(line(head), BOLD)).chain(rows.map(Line::from)).collect()
}

/// Messages of all targets. If that is too wide, process number and driver are left out.
fn message_table(frame: &Frame, width: u16, language: Language) -> Vec<Line<'static>> {
    let head = ["Node", "PID", "Driver", "Total RX", "RX TPS", "Total TX", "TX TPS", "Backlog"];
    let of_node = |node: &Node| {
        let pid = node.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        if let Some(mute) = node.advice {
            return vec![node.node.clone(), pid, lines::no_socket(mute, language)];
        }
        let [total_received, received] = lines::flow(&node.received);
        let [total_sent, sent] = lines::flow(&node.sent);
        let driver = node.driver.clone().unwrap_or_else(|| "-".to_owned());
        let backlog = node.backlog.map_or_else(|| "-".to_owned(), lines::grouped);
        vec![node.node.clone(), pid, driver, total_received, received, total_sent, sent, backlog]
    };
    let mut rows: Vec<_> = frame.nodes.iter().map(of_node).collect();
    let wide = table(&head, &MESSAGE_COLUMNS, &rows);
    if wide.iter().all(|line| line.width() <= usize::from(width)) {
        return wide;
    }
    for row in &mut rows {
        let identity = if row.len() == head.len() { 1..3 } else { 1..2 };
        row.drain(identity);
    }
    let narrowest = [&MESSAGE_COLUMNS[..1], &MESSAGE_COLUMNS[3..]].concat();
    table(&[&head[..1], &head[3..]].concat(), &narrowest, &rows)
}

fn thread_table(canvas: &mut Canvas<'_>, frame: &Frame, keys: &Keys, area: Rect, language: Language) {
    let head = ["UID", "TGID", "TID", "cswch/s", "nvcswch/s", "%CPU", "%wait", "Command"];
    let of_thread = |(node, thread): (&Node, &Thread)| {
        let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let command = match thread.tid {
            None => thread.command.clone(),
            Some(_) => format!("|__{}", thread.command),
        };
        vec![
            number(node.uid),
            number(node.pid.filter(|_| thread.tid.is_none())),
            number(thread.tid),
            lines::decimals(thread.context_switches_voluntary),
            lines::decimals(thread.context_switches_involuntary),
            lines::decimals(thread.cpu_percent),
            lines::decimals(thread.wait_percent),
            command,
        ]
    };
    let rows: Vec<_> = sorted(frame, keys.sort).into_iter().map(of_thread).collect();
    let mut text = table(&head, &THREAD_COLUMNS, &rows);
    // The header stays while the rows below it scroll.
    text.drain(1..(1 + usize::from(keys.scroll)).min(text.len()));
    let key = keys.sort.name(language);
    let title = localized!(language, "threads by {key}", "스레드, {key} 순", "线程，按 {key} 排序");
    text.insert(0, Line::styled(title, FAINT));
    canvas.render_widget(Paragraph::new(text), area);
}

/// Threads in the requested order; a sorted list omits the process rows.
fn sorted(frame: &Frame, sort: Sort) -> Vec<(&Node, &Thread)> {
    let mut rows: Vec<(&Node, &Thread)> =
        frame.nodes.iter().flat_map(|node| node.threads.iter().map(move |thread| (node, thread))).collect();
    let figure: fn(&Thread) -> Option<f64> = match sort {
        Sort::Process => return rows,
        Sort::Cpu => |it| it.cpu_percent,
        Sort::Voluntary => |it| it.context_switches_voluntary,
        Sort::Involuntary => |it| it.context_switches_involuntary,
        Sort::Wait => |it| it.wait_percent,
    };
    rows.retain(|(_, thread)| thread.tid.is_some());
    let key = |thread: &Thread| figure(thread).unwrap_or(-1.0);
    rows.sort_by(|(_, one), (_, other)| key(other).total_cmp(&key(one)));
    rows
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;
    use crate::frame::{Flow, made};

    fn drawn(keys: &Keys) -> String {
        drawn_on(80, &made::second(), keys)
    }

    fn drawn_on(columns: u16, frame: &Frame, keys: &Keys) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, 17)).expect("it is memory");
        terminal.draw(|canvas| draw(canvas, frame, keys, Language::English)).expect("it is memory");
        // Removes trailing blanks and the quotes around each line.
        let text = terminal.backend().to_string();
        text.lines().map(|line| format!("{}\n", line.trim_matches('"').trim_end())).collect()
    }

    #[test]
    fn a_terminal_of_80_columns_shows_every_name_and_figure_whole() {
        let mut frame = made::second();
        let mut exchange = frame.nodes[0].clone();
        let large = |flow: &mut Flow| flow.total = Some(98_765_432_109);
        large(&mut exchange.received);
        large(&mut exchange.sent);
        exchange.node = "EXCHANGE".to_owned();
        exchange.driver = Some("blocking".to_owned());
        exchange.pid = Some(4_194_303);
        exchange.threads.iter_mut().for_each(|thread| thread.tid = thread.tid.map(|tid| tid + 4_190_000));
        frame.nodes.push(exchange);
        let text = drawn_on(80, &frame, &Keys::default());
        for whole in ["EXCHANGE", "98,765,432,109", "Backlog\n", "|__weir-worker-1\n", "--stats-socket off\n"]
        {
            assert!(text.contains(whole), "no {whole:?} in\n{text}");
        }
    }

    #[test]
    fn messages_stand_above_threads() {
        insta::assert_snapshot!(drawn(&Keys::default()), @r"
        weir top  17:08:19 UTC over 1.00 s, 2 targets
        Node     PID     Driver Total RX    RX TPS    Total TX    TX TPS    Backlog
        GATEWAY  4242    epoll  2,200,014   200,000   2,200,000   200,000   14
        ECHO     77      no socket: start it without --stats-socket off

        threads by process
        UID   TGID    TID     cswch/s   nvcswch/s %CPU   %wait  Command
        1000  4242    -       0.00      0.00      150.00 15.00  weir
        1000  -       4242    0.00      0.00      0.00   0.00   |__weir
        1000  -       4243    31834.00  32.00     100.00 10.00  |__weir-worker-0
        1000  -       4244    27858.00  28.00     50.00  5.00   |__weir-worker-1
        1000  77      -       5.00      0.00      1.00   0.10   weir
        1000  -       77      5.00      0.00      1.00   0.10   |__weir



        q quit   s sort   tab threads/orders   j k scroll   p pause
        ");
    }

    #[test]
    fn a_kill_switch_that_is_on_stands_above_everything() {
        let mut frame = made::second();
        frame.nodes[0].is_everyone_killed = true;
        let text = drawn_on(80, &frame, &Keys::default());
        assert_eq!(text.lines().nth(1), Some("GATEWAY kill switch on for all accounts"), "{text}");
    }

    #[test]
    fn the_other_page_has_hand_off_hops_and_sessions() {
        let mut keys = Keys::default();
        keys.press('\t');
        insta::assert_snapshot!(drawn(&keys), @r"
        weir top  17:08:19 UTC over 1.00 s, 2 targets
        Node     PID     Driver Total RX    RX TPS    Total TX    TX TPS    Backlog
        GATEWAY  4242    epoll  2,200,014   200,000   2,200,000   200,000   14
        ECHO     77      no socket: start it without --stats-socket off

        GATEWAY hand-off mesh: 200,000/s, 0.050 wakes each, 8.000 a drain, 100.0 % of
        the orders, 3 queued, 0 recovered
        GATEWAY hop upstream: p50 21.0 µs, p99 84.0 µs, max 400.0 µs (1,100,000 since
        the start)
        GATEWAY sessions 10, upstream 2
        GATEWAY session C00001 live on worker 1: 10,000/s, sequence 110000, 2 behind,
        UserRefNum 7, 134 B queued




        q quit   s sort   tab threads/orders   j k scroll   p pause
        ");
    }

    #[test]
    fn sorted_threads_stand_without_their_processes() {
        let frame = made::second();
        let names = |sort: Sort| -> Vec<String> {
            sorted(&frame, sort).iter().map(|(_, thread)| thread.command.clone()).collect()
        };
        assert_eq!(names(Sort::Process).len(), 6);
        assert_eq!(names(Sort::Cpu)[..2], ["weir-worker-0", "weir-worker-1"]);
        assert_eq!(names(Sort::Voluntary).len(), 4);
    }

    #[test]
    fn keys_choose_and_unknown_ones_do_nothing() {
        let mut keys = Keys::default();
        for key in ['x', 's', 's', 'p', 'j', 'k', 'k'] {
            keys.press(key);
        }
        assert_eq!(keys, Keys { sort: Sort::Voluntary, paused: true, ..Keys::default() });
        for _ in 0..3 {
            keys.press('s');
        }
        assert_eq!(keys.sort, Sort::Process);
        keys.press('q');
        assert!(keys.quit);
    }
}
