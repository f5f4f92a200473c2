//! Prometheus' text format 0.0.4 for metrics (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use std::fmt::{self, Display, Write as _};

/// The format's media type.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A count that only rises, from the start of the process.
    Counter,
    /// A current value.
    Gauge,
    /// Counts of values up to given bounds.
    Histogram,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// A text to which metrics and their samples are appended.
///
/// ```
/// use weir_proto::exposition::{Exposition, Kind};
///
/// let mut text = Exposition::default();
/// text.family("answers_total", Kind::Counter, "Answers by class of status.");
/// text.sample("answers_total", &[("status", "2xx")], 17);
/// text.one("connections", Kind::Gauge, "Connections that are open.", 3);
/// let lines = [
///     "# HELP answers_total Answers by class of status.",
///     "# TYPE answers_total counter",
///     "answers_total{status=\"2xx\"} 17",
///     "# HELP connections Connections that are open.",
///     "# TYPE connections gauge",
///     "connections 3",
/// ];
/// assert!(text.into_text().lines().eq(lines));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Exposition(String);

// Writing to a string cannot fail.
impl Exposition {
    /// Starts a metric; its samples follow.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Adds a sample of the metric that was started last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
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

    /// Adds a metric with one sample.
    pub fn one(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.0
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_labels_are_escaped() {
        let mut text = Exposition::default();
        text.sample("a", &[("b", "c \"d\"\\\n"), ("e", "")], 1.5);
        assert_eq!(text.into_text(), "a{b=\"c \\\"d\\\"\\\\\\n\",e=\"\"} 1.5\n");
    }
}
