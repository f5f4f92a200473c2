//! A frame on a terminal. Draws only; what the keys do is in [`Keys`], and the terminal itself is in `live`.

use ratatui::{
    Frame as Canvas,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::{Paragraph, Row, Table},
};

use crate::{
    frame::{Frame, Node, Thread},
    lines,
};

/// What the threads are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// As they come: processes with their threads below them.
    #[default]
    Process,
    /// CPU, most first.
    Cpu,
    /// Voluntary switches, most first.
    Voluntary,
    /// Involuntary switches, most first.
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

    fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Cpu => "%CPU",
            Self::Voluntary => "cswch/s",
            Self::Involuntary => "nvcswch/s",
            Self::Wait => "%wait",
        }
    }
}

/// What the lower half shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// Threads.
    #[default]
    Threads,
    /// Hand-off, hop times and sessions.
    Orders,
}

/// What the keys have chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Sorting of the threads.
    pub sort: Sort,
    /// Lower half.
    pub page: Page,
    /// Nothing moves until it is pressed again.
    pub paused: bool,
    /// The monitor ends.
    pub quit: bool,
    /// First line of the lower half that is shown.
    pub scroll: u16,
}

impl Keys {
    /// What a key does; one that means nothing does nothing.
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
pub fn draw(canvas: &mut Canvas<'_>, frame: &Frame, keys: &Keys) {
    let nodes = u16::try_from(frame.nodes.len()).unwrap_or(u16::MAX).saturating_add(2);
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(nodes),
        Constraint::Min(3),
        Constraint::Length(1),
    ]);
    let [title, messages, lower, help] = areas.areas(canvas.area());
    canvas.render_widget(Line::styled(title_words(frame, keys), BOLD), title);
    canvas.render_widget(message_table(frame), messages);
    match keys.page {
        Page::Threads => thread_table(canvas, frame, keys, lower),
        Page::Orders => {
            let text = lines::orders(frame);
            let text = if text.is_empty() { "no target counts orders".to_owned() } else { text };
            canvas.render_widget(Paragraph::new(text).scroll((keys.scroll, 0)), lower);
        }
    }
    let keys = "q quit   s sort   tab threads/orders   j k scroll   p pause";
    canvas.render_widget(Line::styled(keys, FAINT), help);
}

fn title_words(frame: &Frame, keys: &Keys) -> String {
    let interval = frame.interval_s.map_or_else(String::new, |length| format!(" over {length:.2} s"));
    let paused = if keys.paused { ", paused" } else { "" };
    format!("weir top  {} UTC{interval}, {} targets{paused}", frame.time, frame.nodes.len())
}

fn message_table(frame: &Frame) -> Table<'static> {
    let head = Row::new(["Node", "PID", "Driver", "Total RX", "RX TPS", "Total TX", "TX TPS", "Backlog"]);
    let rows = frame.nodes.iter().map(|node| {
        let [total_received, received] = lines::flow(&node.received);
        let [total_sent, sent] = lines::flow(&node.sent);
        Row::new([
            node.node.clone(),
            node.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            node.driver.clone().unwrap_or_else(|| "-".to_owned()),
            total_received,
            received,
            total_sent,
            sent,
            node.backlog.map_or_else(|| "-".to_owned(), lines::grouped),
        ])
    });
    let widths = [10, 8, 8, 16, 12, 16, 12, 10].map(Constraint::Length);
    Table::new(rows.collect::<Vec<_>>(), widths).header(head.style(BOLD)).column_spacing(1)
}

fn thread_table(canvas: &mut Canvas<'_>, frame: &Frame, keys: &Keys, area: Rect) {
    let head = Row::new(["UID", "TGID", "TID", "cswch/s", "nvcswch/s", "%CPU", "%wait", "Command"]);
    let rows = sorted(frame, keys.sort);
    let shown = rows.into_iter().skip(usize::from(keys.scroll)).map(|(node, thread)| {
        let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let command = match thread.tid {
            None => thread.command.clone(),
            Some(_) => format!("|__{}", thread.command),
        };
        Row::new([
            number(node.uid),
            number(node.pid.filter(|_| thread.tid.is_none())),
            number(thread.tid),
            lines::decimals(thread.switches_voluntary),
            lines::decimals(thread.switches_involuntary),
            lines::decimals(thread.cpu_percent),
            lines::decimals(thread.wait_percent),
            command,
        ])
    });
    let widths = [6, 8, 8, 12, 12, 8, 8].map(Constraint::Length);
    let widths = widths.into_iter().chain([Constraint::Min(10)]);
    let title = Line::styled(format!("threads by {}", keys.sort.name()), FAINT);
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    canvas.render_widget(title, above);
    let table = Table::new(shown.collect::<Vec<_>>(), widths).header(head.style(BOLD)).column_spacing(1);
    canvas.render_widget(table, below);
}

/// Threads in the order that is asked for; sorted ones leave the process rows out.
fn sorted(frame: &Frame, sort: Sort) -> Vec<(&Node, &Thread)> {
    let mut rows: Vec<(&Node, &Thread)> =
        frame.nodes.iter().flat_map(|node| node.threads.iter().map(move |thread| (node, thread))).collect();
    let figure: fn(&Thread) -> Option<f64> = match sort {
        Sort::Process => return rows,
        Sort::Cpu => |it| it.cpu_percent,
        Sort::Voluntary => |it| it.switches_voluntary,
        Sort::Involuntary => |it| it.switches_involuntary,
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
    use crate::frame::made;

    fn drawn(keys: &Keys) -> String {
        let mut terminal = Terminal::new(TestBackend::new(104, 15)).expect("it is memory");
        terminal.draw(|canvas| draw(canvas, &made::second(), keys)).expect("it is memory");
        // Lines end where their text ends, and no quotes stand around them.
        let text = terminal.backend().to_string();
        text.lines().map(|line| format!("{}\n", line.trim_matches('"').trim_end())).collect()
    }

    #[test]
    fn messages_stand_above_threads() {
        insta::assert_snapshot!(drawn(&Keys::default()), @r"
        weir top  17:08:19 UTC over 1.00 s, 2 targets
        Node       PID      Driver   Total RX         RX TPS       Total TX         TX TPS       Backlog
        GATEWAY    4242     epoll    2,200,014        200,000      2,200,000        200,000      14
        ECHO       77       -        no socket        no socket    no socket        no socket    -

        threads by process
        UID    TGID     TID      cswch/s      nvcswch/s    %CPU     %wait    Command
        1000   4242     -        0.00         0.00         150.00   15.00    weir
        1000   -        4242     0.00         0.00         0.00     0.00     |__weir
        1000   -        4243     31834.00     32.00        100.00   10.00    |__weir-worker-0
        1000   -        4244     27858.00     28.00        50.00    5.00     |__weir-worker-1
        1000   77       -        5.00         0.00         1.00     0.10     weir
        1000   -        77       5.00         0.00         1.00     0.10     |__weir

        q quit   s sort   tab threads/orders   j k scroll   p pause
        ");
    }

    #[test]
    fn the_other_page_has_hand_off_hops_and_sessions() {
        let mut keys = Keys::default();
        keys.press('\t');
        insta::assert_snapshot!(drawn(&keys), @r"
        weir top  17:08:19 UTC over 1.00 s, 2 targets
        Node       PID      Driver   Total RX         RX TPS       Total TX         TX TPS       Backlog
        GATEWAY    4242     epoll    2,200,014        200,000      2,200,000        200,000      14
        ECHO       77       -        no socket        no socket    no socket        no socket    -

        GATEWAY hand-off mesh: 200,000/s, 0.050 wakes each, 8.000 a drain, 100.0 % of the orders, 3 queued, 0 re
        GATEWAY hop upstream: p50 21.0 µs, p99 84.0 µs, max 400.0 µs (1,100,000 since the start)
        GATEWAY sessions 10, upstream 2
        GATEWAY session C00001 live on worker 1: 10,000/s, sequence 110000, 2 behind, UserRefNum 7, 134 B queued





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
