//! The table of running servers: process, ports, driver, rates with the last two minutes, backlog and CPU, in the order
//! of a column that the reader chose. Pure text out.

use maud::{Markup, PreEscaped, html};
use weir_monitor::{
    frame::{Flow, Missing, Node},
    lines::{decimals, grouped},
};
use weir_report::localized;

use crate::{
    observed,
    query::value,
    reader::Reader,
    sorting::{self, Direction, Key, sorted},
    top::Seen,
    top_history::{Point, SPAN_S, cpu_percent},
    words::{self, LocalizedText},
};

/// Longest time between two points that a line joins. A longer one is a gap, in which no reader looked.
const JOINED_S: u64 = 10;

/// Size of a small chart.
const WIDTH: f64 = 96.0;
const HEIGHT: f64 = 20.0;
/// Room for the width of its line.
const MARGIN: f64 = 2.0;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Name,
    Process,
    Ports,
    Driver,
    Received,
    Sent,
    Backlog,
    Cpu,
}

impl Column {
    const ALL: [Self; 8] = [
        Self::Name,
        Self::Process,
        Self::Ports,
        Self::Driver,
        Self::Received,
        Self::Sent,
        Self::Backlog,
        Self::Cpu,
    ];

    fn key(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Process => "pid",
            Self::Ports => "port",
            Self::Driver => "driver",
            Self::Received => "received",
            Self::Sent => "sent",
            Self::Backlog => "backlog",
            Self::Cpu => "cpu",
        }
    }

    fn title(self) -> LocalizedText {
        match self {
            Self::Name => words::SERVER,
            Self::Process => words::PROCESS_SHORT,
            Self::Ports => words::PORT,
            Self::Driver => words::DRIVER,
            Self::Received => words::RECEIVED_PER_SECOND,
            Self::Sent => words::SENT_PER_SECOND,
            Self::Backlog => words::BACKLOG,
            Self::Cpu => words::CPU_PERCENT,
        }
    }

    /// Whether the largest comes first unless the reader reverses it.
    fn is_descending(self) -> bool {
        matches!(self, Self::Received | Self::Sent | Self::Backlog | Self::Cpu)
    }

    fn of(self, node: &Node, ports: &[u16]) -> Option<Key> {
        let text = |text: &str| Key::Text(text.to_owned());
        match self {
            Self::Name => Some(text(&node.node)),
            Self::Process => node.pid.map(|pid| Key::Number(f64::from(pid))),
            Self::Ports => ports.first().map(|port| Key::Number(f64::from(*port))),
            Self::Driver => node.driver.as_deref().map(text),
            Self::Received => node.received.per_second.map(Key::Number),
            Self::Sent => node.sent.per_second.map(Key::Number),
            Self::Backlog => node.backlog.map(|count| Key::Number(count as f64)),
            Self::Cpu => cpu_percent(node).map(Key::Number),
        }
    }
}

/// The order that a reader chose: without a choice the server that receives most is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    column: Column,
    is_reversed: bool,
}

impl Order {
    pub(crate) fn of_query(query: &str) -> Self {
        let named = value(query, "sort").and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
        let (key, is_reversed) = sorting::of_value(&named);
        let known = Column::ALL.into_iter().find(|column| column.key() == key);
        known.map_or(Self { column: Column::Received, is_reversed: false }, |column| Self {
            column,
            is_reversed,
        })
    }

    /// Its value in a query.
    pub(crate) fn value(self) -> String {
        format!("{}{}", if self.is_reversed { "-" } else { "" }, self.column.key())
    }

    fn direction(self) -> Direction {
        Direction::of(self.column.is_descending() != self.is_reversed)
    }

    /// The order after a choice of this column: the other direction if it is the current one.
    fn chosen(self, column: Column) -> Self {
        Self { column, is_reversed: self.column == column && !self.is_reversed }
    }
}

/// The table. The style sheet shows the titles beside the cells where there is no room for its header.
pub(crate) fn table(reader: &Reader, seen: &Seen, order: Order) -> Markup {
    let titles: Vec<String> = Column::ALL
        .iter()
        .enumerate()
        .map(|(place, column)| format!("--h{}:'{}'", place + 1, reader.say(column.title())))
        .collect();
    let by_name = sorted(seen.frame.nodes.iter().collect(), Direction::Ascending, |node: &&Node| {
        Some(Key::Text(node.node.clone()))
    });
    let nodes = sorted(by_name, order.direction(), |node| order.column.of(node, seen.ports_of(node)));
    let head = |column: Column| {
        let value = order.chosen(column).value();
        let own = (column == order.column).then(|| order.direction());
        sorting::head(reader.say(column.title()), &reader.href("/top", &[("sort", &value)]), own)
    };
    html! {
        div.scroll tabindex="0" role="group" aria-label=(reader.say(words::SERVERS)) {
            table.columns.servers."text-4" style=(titles.join(";")) {
                thead { tr { @for column in Column::ALL { (head(column)) } } }
                tbody { @for node in nodes { (row(reader, seen, node)) } }
            }
        }
    }
}

/// A server. The script of the page finds its row by the key.
fn row(reader: &Reader, seen: &Seen, node: &Node) -> Markup {
    let key = node.pid.map_or_else(|| node.node.clone(), |pid| pid.to_string());
    let ports: Vec<String> = seen.ports_of(node).iter().map(u16::to_string).collect();
    let absent_or = |text: String| if text.is_empty() { "–".to_owned() } else { text };
    let points: Vec<&Point> = seen.history.of(node).collect();
    let now = seen.frame.unix_s;
    let line = |series: Series| small_chart(reader, now, &points, series);
    html! {
        tr data-key=(key) {
            td { div {
                span.name { bdi { (node.node) } }
                @if let Some(pid) = node.pid {
                    " " a href=(observed::live_href(reader, pid))
                        aria-label=(format!("{} {}", reader.say(words::OBSERVE), node.node)) { (reader.say(words::OBSERVE)) }
                }
                @if let Some(mute) = node.advice { p.hint { (mute.advice(reader.language)) } }
            } }
            td { span { (node.pid.map_or_else(|| "–".to_owned(), |pid| pid.to_string())) } }
            td { span { (absent_or(ports.join(", "))) } }
            td { span { (absent_or(node.driver.clone().unwrap_or_default())) } }
            td { div { (line(RECEIVED)) (rate(reader, &node.received)) } }
            td { div { (line(SENT)) (rate(reader, &node.sent)) } }
            td { span { (node.backlog.map_or_else(|| "–".to_owned(), grouped)) } }
            td { div {
                (line(CPU))
                (cpu_percent(node).map_or_else(|| "–".to_owned(), percent))
            } }
        }
    }
}

/// A rate, or why there is none.
fn rate(reader: &Reader, flow: &Flow) -> String {
    match (flow.per_second, flow.missing) {
        (Some(rate), _) => whole(rate),
        (None, None | Some(Missing::First)) => "–".to_owned(),
        (None, Some(Missing::Gap)) => reader.say(words::NO_ANSWER).to_owned(),
        (None, Some(Missing::Reset)) => reader.say(words::RESTARTED).to_owned(),
        (None, Some(Missing::Gone)) => reader.say(words::GONE).to_owned(),
        (None, Some(Missing::NoSocket)) => reader.say(words::NO_SOCKET).to_owned(),
    }
}

/// A figure over time: its value in a point, and how it is written.
#[derive(Clone, Copy)]
struct Series {
    value: fn(&Point) -> Option<f64>,
    text: fn(f64) -> String,
}

const RECEIVED: Series = Series { value: |point| point.received, text: whole };
const SENT: Series = Series { value: |point| point.sent, text: whole };
const CPU: Series = Series { value: |point| point.cpu_percent, text: percent };

fn whole(rate: f64) -> String {
    grouped(rate.round() as u64)
}

fn percent(share: f64) -> String {
    format!("{} %", decimals(Some(share)))
}

/// The last two minutes of a figure, from 0 to its own highest value. Empty without two points.
fn small_chart(reader: &Reader, now: u64, points: &[&Point], Series { value, text }: Series) -> Markup {
    let known: Vec<(u64, f64)> = points
        .iter()
        .filter_map(|point| Some((point.unix_s, value(point).filter(|it| it.is_finite())?)))
        .collect();
    if known.len() < 2 {
        return html! {};
    }
    let (low, high) =
        known.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), (_, it)| (low.min(*it), high.max(*it)));
    let across = |unix_s: u64| {
        let age = now.saturating_sub(unix_s).min(SPAN_S) as f64;
        MARGIN + (1.0 - age / SPAN_S as f64) * (WIDTH - 2.0 * MARGIN)
    };
    let up = |it: f64| HEIGHT - MARGIN - it / high.max(f64::MIN_POSITIVE) * (HEIGHT - 2.0 * MARGIN);
    let mut path = String::new();
    let mut before: Option<u64> = None;
    for (unix_s, it) in &known {
        let is_joined = before.is_some_and(|before| unix_s.saturating_sub(before) <= JOINED_S);
        let command = if is_joined { "L" } else { "M" };
        path.push_str(&format!("{command}{:.1} {:.1}", across(*unix_s), up(*it)));
        before = Some(*unix_s);
    }
    let [low, high] = [low, high].map(text);
    let label = localized!(
        reader.language,
        "last two minutes: {low} to {high}",
        "최근 2분: {low}~{high}",
        "最近两分钟：{low} 至 {high}"
    );
    html! {
        svg.spark viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) width=(WIDTH) height=(HEIGHT) role="img" aria-label=(label) {
            (PreEscaped(format!("<path d=\"{path}\"/>")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_monitor::frame::Frame;
    use weir_report::Language;

    use super::*;
    use crate::top_history::History;

    fn reader() -> Reader {
        Reader::of_no_request(Language::English, true, true)
    }

    fn node(pid: u32, name: &str, rate: Option<f64>) -> Node {
        let received =
            Flow { per_second: rate, missing: rate.is_none().then_some(Missing::Gap), total: None };
        Node { pid: Some(pid), node: name.to_owned(), received, ..Node::default() }
    }

    fn seen(nodes: Vec<Node>) -> Seen {
        let frame = Frame { unix_s: 100, nodes, ..Frame::default() };
        let ports = BTreeMap::from([(7, vec![8080, 8443])]);
        Seen { history: History::default().after(&frame), frame, ports }
    }

    /// The process numbers of the rows, in order.
    fn rows(seen: &Seen, query: &str) -> Vec<String> {
        let drawn = table(&reader(), seen, Order::of_query(query)).into_string();
        let keys = drawn.split("data-key=\"").skip(1);
        keys.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn the_server_that_receives_most_is_first_and_another_column_can_be_chosen() {
        let nodes =
            || vec![node(7, "HTTP", Some(10.0)), node(9, "ECHO", Some(2_000.0)), node(8, "ECHO", None)];
        assert_eq!(rows(&seen(nodes()), ""), ["9", "7", "8"], "those without a rate are last");
        assert_eq!(rows(&seen(nodes()), "sort=-received"), ["7", "9", "8"]);
        assert_eq!(rows(&seen(nodes()), "sort=pid"), ["7", "8", "9"]);
        assert_eq!(rows(&seen(nodes()), "sort=port"), ["7", "9", "8"], "by name where it does not decide");
        assert_eq!(rows(&seen(nodes()), "sort=nonsense"), ["9", "7", "8"]);
        let drawn = table(&reader(), &seen(nodes()), Order::of_query("")).into_string();
        assert_eq!(drawn.matches("aria-sort=\"descending\"").count(), 1, "{drawn}");
        for part in
            ["8080, 8443", "no answer", "/observe?pid=7", "2,000", "/top?sort=-received", "/top?sort=cpu"]
        {
            assert!(drawn.contains(part), "{part} in {drawn}");
        }
    }

    #[test]
    fn a_name_that_a_server_gives_itself_is_text() {
        let drawn =
            table(&reader(), &seen(vec![node(7, "<b>\u{202e}", None)]), Order::of_query("")).into_string();
        assert!(drawn.contains("<bdi>&lt;b&gt;\u{202e}</bdi>") && !drawn.contains("<b>"), "{drawn}");
    }

    #[test]
    fn a_chart_is_within_its_frame_and_has_a_gap_where_no_reader_looked() {
        let point = |unix_s, rate| Point { unix_s, received: rate, ..Point::default() };
        let points = [
            point(10, Some(0.0)),
            point(12, Some(50.0)),
            point(14, None),
            point(60, Some(f64::INFINITY)),
            point(90, Some(100.0)),
        ];
        let points: Vec<&Point> = points.iter().collect();
        let drawn = small_chart(&reader(), 130, &points, RECEIVED).into_string();
        assert!(drawn.contains("d=\"M2.0 18.0L3.5 10.0M63.3 2.0\""), "{drawn}");
        assert!(drawn.contains("aria-label=\"last two minutes: 0 to 100\""), "{drawn}");
        let still = small_chart(&reader(), 12, &[&point(10, Some(0.0)), &point(12, Some(0.0))], RECEIVED);
        assert!(!still.into_string().contains("NaN"), "a server that receives nothing has a line at 0");
        assert!(small_chart(&reader(), 130, &points[..1], RECEIVED).into_string().is_empty());
    }
}
