//! Recent figures of the servers that are shown: a point for each look, for the small charts of the page. Pure.

use std::collections::{BTreeMap, VecDeque};

use weir_monitor::frame::{Frame, Node};

/// Seconds that the charts show.
pub(crate) const SPAN_S: u64 = 120;

/// Most points of a server: one a second.
pub(crate) const POINTS_MAX: usize = 120;

/// Figures of a server at one look; absent where the look has none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub unix_s: u64,
    pub received: Option<f64>,
    pub sent: Option<f64>,
    pub cpu_percent: Option<f64>,
}

/// What identifies a server: its process, or its name while the process is not known.
type Identity = (Option<u32>, String);

fn identity(node: &Node) -> Identity {
    (node.pid, if node.pid.is_some() { String::new() } else { node.node.clone() })
}

/// CPU of a node's process: the first row is that of the whole process.
pub(crate) fn cpu_percent(node: &Node) -> Option<f64> {
    node.threads.first().and_then(|whole| whole.cpu_percent)
}

/// The points of all servers of the last frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct History(BTreeMap<Identity, VecDeque<Point>>);

impl History {
    /// The history after one more frame. Servers that it lacks are forgotten.
    pub(crate) fn after(&self, frame: &Frame) -> Self {
        let oldest = frame.unix_s.saturating_sub(SPAN_S);
        let of_node = |node: &Node| {
            let point = Point {
                unix_s: frame.unix_s,
                received: node.received.per_second,
                sent: node.sent.per_second,
                cpu_percent: cpu_percent(node),
            };
            let known = self.0.get(&identity(node)).into_iter().flatten();
            let mut points: VecDeque<Point> = known.filter(|it| it.unix_s >= oldest).copied().collect();
            points.push_back(point);
            points.drain(..points.len().saturating_sub(POINTS_MAX));
            (identity(node), points)
        };
        Self(frame.nodes.iter().map(of_node).collect())
    }

    /// The points of a server, the oldest first.
    pub(crate) fn of(&self, node: &Node) -> impl Iterator<Item = &Point> {
        self.0.get(&identity(node)).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use weir_monitor::frame::Flow;

    use super::*;

    fn frame(unix_s: u64, pids: &[u32]) -> Frame {
        let received = Flow { per_second: Some(unix_s as f64), ..Flow::default() };
        let node = |pid: &u32| Node { pid: Some(*pid), received, ..Node::default() };
        Frame { unix_s, nodes: pids.iter().map(node).collect(), ..Frame::default() }
    }

    fn times(history: &History, pid: u32) -> Vec<u64> {
        let node = Node { pid: Some(pid), ..Node::default() };
        history.of(&node).map(|point| point.unix_s).collect()
    }

    #[test]
    fn as_many_points_are_kept_as_is_stated_and_none_that_is_older() {
        let mut history = History::default();
        for second in 0..400 {
            history = history.after(&frame(second, &[7]));
            // Two looks in one second, as a clock that was set back shows them.
            history = history.after(&frame(second, &[7]));
        }
        let kept = times(&history, 7);
        assert_eq!((kept.len(), kept[0], kept[POINTS_MAX - 1]), (POINTS_MAX, 340, 399));
        let later = history.after(&frame(399 + SPAN_S, &[7]));
        assert_eq!(times(&later, 7), [399, 399, 399 + SPAN_S], "the oldest second is still on the chart");
    }

    #[test]
    fn a_server_that_is_gone_is_forgotten_and_another_does_not_get_its_points() {
        let first = History::default().after(&frame(1, &[7, 8]));
        let second = first.after(&frame(2, &[8, 9]));
        assert_eq!((times(&second, 7), times(&second, 8), times(&second, 9)), (vec![], vec![1, 2], vec![2]));
        let unnamed = |name: &str| Node { node: name.to_owned(), ..Node::default() };
        let nodes = vec![unnamed("A"), unnamed("B")];
        let both = History::default().after(&Frame { unix_s: 3, nodes, ..Frame::default() });
        assert_eq!(both.of(&unnamed("A")).count(), 1, "without a process the name distinguishes them");
    }
}
