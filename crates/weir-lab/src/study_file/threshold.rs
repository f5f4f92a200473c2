//! Thresholds, which fail a run, one line each: `[ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL]`.
//!
//! A threshold is a goal that decides the exit code. `x > 1.05` fails if the whole interval is above 1.05. It holds
//! if the whole interval is at most 1.05; otherwise it is inconclusive. `>=` means the same, because no interval ends
//! exactly there. For a ratio, `3%` is 1.03 and `-5%` is 0.95.

use weir_record::{
    goal::{ComparisonSpec, Goal, Side},
    metric::{Metric, MetricUnit, Scale},
    metric_rows::{COMMAND_METRICS, METRICS, MetricRow, Part},
    spec::{CellRole, CellSpec, StudySpec},
};
use weir_report::localized;

use super::comparisons::Known;
use crate::{
    host_defaults::HostDefaults,
    limits::{COMPARISONS_MAX, instead_in},
    mistake::Mistake,
    protocol::{self, Machine},
    toml_table::{Entry, FieldError},
};

/// Metrics that a threshold may name.
struct Vocabulary {
    rows: &'static [MetricRow],
    /// Short names that people type.
    short: &'static [(&'static str, &'static str)],
    /// Whether messages list the short names, as the help does.
    lists_short: bool,
}

impl Vocabulary {
    /// Each metric by the name that people type.
    fn names(&self) -> Vec<&'static str> {
        let short = |key: &'static str| {
            let own = self.short.iter().find(|(_, of)| self.lists_short && *of == key);
            own.map_or(key, |(short, _)| *short)
        };
        self.rows.iter().map(|row| short(row.key)).collect()
    }
}

/// Metrics of studies.
static OF_STUDIES: Vocabulary = Vocabulary { rows: METRICS, short: &SHORT, lists_short: false };

/// Metrics of commands that end.
static OF_COMMANDS: Vocabulary =
    Vocabulary { rows: COMMAND_METRICS, short: &SHORT_OF_COMMANDS, lists_short: true };

static SHORT_OF_COMMANDS: [(&str, &str); 14] = [
    ("cpu", "command-cpu"),
    ("user", "command-user-cpu"),
    ("system", "command-system-cpu"),
    ("time", "command-wall"),
    ("wall", "command-wall"),
    ("memory", "command-memory-max"),
    ("minor-faults", "command-faults-minor"),
    ("major-faults", "command-faults-major"),
    ("voluntary-switches", "command-switches-voluntary"),
    ("involuntary-switches", "command-switches-involuntary"),
    ("bytes-read", "command-read-bytes"),
    ("bytes-written", "command-written-bytes"),
    ("instructions", "command-instructions"),
    ("throughput", "command-throughput"),
];

static SHORT: [(&str, &str); 7] = [
    ("cpu-per-message", "server-cpu-per-message"),
    ("cpu/msg", "server-cpu-per-message"),
    ("cpu/message", "server-cpu-per-message"),
    ("cpu", "server-cpu-per-message"),
    ("tps", "throughput"),
    ("p50", "latency-p50"),
    ("p99", "latency-p99"),
];

/// Reads one line: a goal for each arm that it is about.
pub(super) fn read(entry: Entry<'_>, known: &Known<'_>) -> Result<Vec<ComparisonSpec>, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let text = entry.text()?;
    known.threshold(&text).map_err(|mistake| FieldError::new(at, &key, mistake.about(&format!("{text:?}"))))
}

/// The same for a complete study, for lines that are in no file.
pub fn thresholds(spec: &StudySpec, lines: &[String]) -> Result<Vec<ComparisonSpec>, Mistake> {
    let host_defaults = HostDefaults::default();
    let machine = Machine { host_defaults: &host_defaults, server_cpus: &spec.server_cpus };
    let protocol = spec.cells.first().map_or(protocol::ALL[0], protocol::of);
    let known = Known { spec, protocol, machine, absent: &[], lacks_cells: false };
    let mut all = Vec::new();
    for line in lines {
        all.extend(known.threshold(line).map_err(|mistake| mistake.about(&format!("{line:?}")))?);
        if all.len() > COMPARISONS_MAX {
            return Err(too_many().about(&format!("{line:?}")));
        }
    }
    Ok(all)
}

/// Thresholds of commands that end, the first of which is the baseline: `[COMMAND] METRIC [ratio] > NUMBER[UNIT]`. A
/// line that names no command is about each of the others.
pub fn command_thresholds(commands: &[&str], lines: &[String]) -> Result<Vec<ComparisonSpec>, Mistake> {
    let mut all = Vec::new();
    for text in lines {
        all.extend(command_threshold(commands, text).map_err(|mistake| mistake.about(&format!("{text:?}")))?);
        if all.len() > COMPARISONS_MAX {
            return Err(too_many().about(&format!("{text:?}")));
        }
    }
    Ok(all)
}

/// The metric of studies and the metric of commands with this name; an error if there is neither.
pub fn metrics_named(name: &str) -> Result<[Option<Metric>; 2], Mistake> {
    let [of_studies, of_commands] = [&OF_STUDIES, &OF_COMMANDS].map(|vocabulary| row(name, vocabulary));
    match (of_studies, of_commands) {
        (Err(mistake), Err(_)) => Err(mistake),
        found => Ok([found.0.ok(), found.1.ok()].map(|row| row.map(|row| row.metric))),
    }
}

fn command_threshold(commands: &[&str], text: &str) -> Result<Vec<ComparisonSpec>, Mistake> {
    let line = Line::of(text, &OF_COMMANDS)?;
    let goal = line.goal()?;
    let Some((baseline, others)) = commands.split_first() else { return Ok(Vec::new()) };
    let meant = match line.arm {
        _ if line.cell.is_some() => return Err(no_cells()),
        None => others.to_vec(),
        Some(arm) if !commands.contains(&arm) => return Err(no_command(arm, commands)),
        Some(arm) if line.is_ratio && arm == *baseline => return Err(baseline_itself(arm)),
        Some(arm) => vec![arm],
    };
    let metric = line.row.metric;
    let side = |arm: &str| Side { arm: arm.to_owned(), cell_id: String::new(), metric };
    let one = |arm: &str| ComparisonSpec {
        of: side(arm),
        to: if line.is_ratio { vec![side(baseline)] } else { Vec::new() },
        goal: Some(goal),
        is_threshold: true,
    };
    Ok(meant.into_iter().map(one).collect())
}

fn no_cells() -> Mistake {
    Mistake::fixed([
        "commands are compared in one place; leave `at CELL` out",
        "명령 비교에는 조건이 없습니다. `at CELL`을 빼십시오",
        "命令的比较没有条件；请去掉 `at CELL`",
    ])
}

fn no_command(name: &str, known: &[&str]) -> Mistake {
    Mistake::of(|language| {
        let instead = instead_in(language, name, known);
        localized!(
            language,
            "there is no command {name:?}; {instead} (-n names commands)",
            "알 수 없는 명령 {name:?}({instead}). 이름은 -n으로 정합니다",
            "没有名为 {name:?} 的命令（{instead}）；用 -n 为命令命名",
        )
    })
}

fn baseline_itself(arm: &str) -> Mistake {
    Mistake::of(|language| {
        localized!(
            language,
            "{arm} is the baseline, and its ratio to itself is 1",
            "{arm} 자신이 기준이므로 비율은 언제나 1입니다",
            "{arm} 是基线，与自身的比值恒为 1",
        )
    })
}

/// The parts of a line.
struct Line<'t> {
    arm: Option<&'t str>,
    row: &'static MetricRow,
    is_ratio: bool,
    is_above: bool,
    bound: &'t str,
    cell: Option<&'t str>,
}

fn too_many() -> Mistake {
    let most = COMPARISONS_MAX;
    Mistake::of(|language| {
        localized!(
            language,
            "these are more than {most} thresholds",
            "임계값은 모두 {most}개까지 쓸 수 있습니다",
            "阈值合计最多 {most} 项",
        )
    })
}

fn not_of_this_form() -> Mistake {
    Mistake::fixed([
        "write [ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL], or < in place of >",
        "[ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL] 형식으로 쓰십시오. > 대신 <도 쓸 수 있습니다",
        "请写成 [ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL]；也可用 < 代替 >",
    ])
}

impl Known<'_> {
    fn threshold(&self, text: &str) -> Result<Vec<ComparisonSpec>, Mistake> {
        let line = Line::of(text, &OF_STUDIES)?;
        let goal = line.goal()?;
        let Some(cell) = self.cell_of(line.cell, line.row)? else { return Ok(Vec::new()) };
        let baseline = self.spec.arms[0].name.as_str();
        let arms = self.arms_of(&line, cell)?;
        let side =
            |arm: &str| Side { arm: arm.to_owned(), cell_id: cell.id.clone(), metric: line.row.metric };
        let to = |arm: &str| {
            let own = self.spec.arms.iter().find(|own| own.name == arm);
            side(own.map_or(baseline, |own| self.spec.baseline_of(own)))
        };
        let one = |arm: &str| ComparisonSpec {
            of: side(arm),
            to: if line.is_ratio { vec![to(arm)] } else { Vec::new() },
            goal: Some(goal),
            is_threshold: true,
        };
        Ok(arms.into_iter().map(one).collect())
    }

    /// The arms that a line is about in the cell; never empty.
    fn arms_of<'s>(&'s self, line: &Line<'s>, cell: &CellSpec) -> Result<Vec<&'s str>, Mistake> {
        let (names, cell_id) = (self.arm_names(), cell.id.as_str());
        let Some(arm) = line.arm else {
            let arms: Vec<&str> = self.meant(names).into_iter().filter(|arm| self.runs(arm, cell)).collect();
            return if arms.is_empty() { Err(only_baseline(cell_id)) } else { Ok(arms) };
        };
        if !names.contains(&arm) {
            return Err(Mistake::of(|language| {
                let instead = instead_in(language, arm, &names);
                localized!(
                    language,
                    "there is no arm {arm:?}; {instead}",
                    "알 수 없는 비교 대상 {arm:?}({instead})",
                    "没有名为 {arm:?} 的方案（{instead}）",
                )
            }));
        }
        if line.is_ratio && arm == self.spec.arms[0].name {
            return Err(baseline_itself(arm));
        }
        if !self.runs(arm, cell) {
            return Err(Mistake::of(|language| {
                localized!(
                    language,
                    "{arm} does not run in {cell_id}",
                    "비교 대상 {arm}: {cell_id} 조건에서 실행되지 않습니다",
                    "{arm} 不在条件 {cell_id} 下运行",
                )
            }));
        }
        Ok(vec![arm])
    }

    /// Default arms of a line: all but the baseline, or those that name another baseline; never a placebo.
    fn meant<'n>(&self, names: Vec<&'n str>) -> Vec<&'n str> {
        let arm = |name: &str| self.spec.arms.iter().find(|arm| arm.name == name);
        let first = self.spec.arms[0].name.as_str();
        let has_own = |name: &&str| *name != first && arm(name).is_some_and(|arm| arm.baseline.is_some());
        let is_any_own = names.iter().any(has_own);
        let is_meant = |name: &&str| {
            let is_placebo = arm(name).is_some_and(|arm| arm.is_placebo);
            !is_placebo && *name != first && (has_own(name) || !is_any_own)
        };
        names.into_iter().filter(is_meant).collect()
    }

    /// The cell that the line names. By default the cell of the primary comparison, or the first one in which the
    /// metric is measured: latencies are measured where requests come at a rate. `None` if it may be a cell that this
    /// machine lacks: the study then ends as one that cannot run completely here.
    fn cell_of(&self, name: Option<&str>, row: &MetricRow) -> Result<Option<&CellSpec>, Mistake> {
        let cells = &self.spec.cells;
        let has = |cell: &&CellSpec| (row.part)(cell) != Part::None;
        let ids = |of: &[&CellSpec]| of.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>().join(", ");
        let having: Vec<&CellSpec> = cells.iter().filter(has).collect();
        let Some(first) = having.first() else {
            if self.lacks_cells {
                return Ok(None);
            }
            return Err(unmeasured(row));
        };
        let Some(name) = name else {
            let primary = having.iter().find(|cell| cell.role == CellRole::Primary);
            return Ok(Some(primary.unwrap_or(first)));
        };
        match cells.iter().find(|cell| cell.id == name) {
            Some(cell) if has(&cell) => Ok(Some(cell)),
            Some(_) => Err(measured_elsewhere(row, name, &ids(&having))),
            None if self.lacks_cells => Ok(None),
            None => Err(no_cell(name, &cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>())),
        }
    }
}

fn only_baseline(cell_id: &str) -> Mistake {
    Mistake::of(|language| {
        localized!(
            language,
            "only the baseline runs in {cell_id}; name the arm that is meant",
            "{cell_id} 조건에서는 기준만 실행됩니다. 비교 대상의 이름을 쓰십시오",
            "条件 {cell_id} 下只运行基线；请写明所指的方案",
        )
    })
}

fn unmeasured(row: &MetricRow) -> Mistake {
    let key = row.key;
    Mistake::of(|language| {
        localized!(
            language,
            "{key} is not measured in this study",
            "{key} 지표는 이 실험에서 측정하지 않습니다",
            "本实验不测量 {key}",
        )
    })
}

fn measured_elsewhere(row: &MetricRow, cell_id: &str, there: &str) -> Mistake {
    let key = row.key;
    Mistake::of(|language| {
        localized!(
            language,
            "{key} is not measured in {cell_id}, but in {there}",
            "{key} 지표는 {cell_id} 조건에서 측정하지 않습니다. 측정하는 조건: {there}",
            "条件 {cell_id} 下不测量 {key}；测量该指标的条件：{there}",
        )
    })
}

fn no_cell(name: &str, known: &[&str]) -> Mistake {
    Mistake::of(|language| {
        let instead = instead_in(language, name, known);
        localized!(
            language,
            "there is no cell {name:?}; {instead}",
            "알 수 없는 조건 {name:?}({instead})",
            "没有名为 {name:?} 的条件（{instead}）",
        )
    })
}

impl<'t> Line<'t> {
    fn of(text: &'t str, vocabulary: &Vocabulary) -> Result<Self, Mistake> {
        let at = text.find(['>', '<']).ok_or_else(not_of_this_form)?;
        let (left, right) = (&text[..at], &text[at + 1..]);
        let right = right.strip_prefix('=').unwrap_or(right).trim();
        let (bound, cell) = match right.split_once(" at ") {
            Some((bound, cell)) => (bound.trim(), Some(cell.trim())),
            None => (right, None),
        };
        let mut words: Vec<&str> = left.split_whitespace().collect();
        let says_ratio = words.last() == Some(&"ratio");
        if says_ratio {
            words.pop();
        }
        let (arm, metric) = match words[..] {
            [metric] => (None, metric),
            [arm, metric] => (Some(arm), metric),
            _ => return Err(not_of_this_form()),
        };
        let row = row(metric, vocabulary)?;
        // A percentage of a figure that is not a share can only be relative to the baseline.
        let is_ratio = says_ratio || (bound.ends_with('%') && row.unit != MetricUnit::Share);
        Ok(Self { arm, row, is_ratio, is_above: text[at..].starts_with('>'), bound, cell })
    }

    /// The goal that holds if the line fails.
    fn goal(&self) -> Result<Goal, Mistake> {
        let (key, bound) = (self.row.key, self.bound);
        if self.is_ratio && self.row.scale != Scale::Ratio {
            return Err(Mistake::of(|language| {
                localized!(
                    language,
                    "{key} may be zero and has no ratio; give its figure a bound",
                    "{key} 지표는 0일 수 있어 비율을 쓸 수 없습니다. 수치에 한계를 지정하십시오",
                    "{key} 可能为零，没有比值；请为数值本身设定界限",
                )
            }));
        }
        if let Some(change) = bound.strip_suffix('%').filter(|_| self.is_ratio) {
            let change = change.trim_end().parse::<f64>().ok().filter(|change| change.is_finite());
            return change.map(|change| self.kept(1.0 + change / 100.0)).ok_or_else(|| no_number(bound));
        }
        let unit = if self.is_ratio { &[] } else { units(self.row.unit) };
        let digits = bound.trim_end_matches(|it: char| it.is_alphabetic() || ['%', '/', 'µ'].contains(&it));
        let (number, suffix) = (digits.trim_end().parse::<f64>(), &bound[digits.len()..]);
        let factor = match unit.iter().find(|(name, _)| *name == suffix) {
            Some((_, factor)) => *factor,
            None if suffix.is_empty() && unit.is_empty() => 1.0,
            None if unit.is_empty() => return Err(no_plain_number(bound)),
            None => return Err(counted_in(key, unit)),
        };
        match number {
            Ok(number) if number.is_finite() => Ok(self.kept(number * factor)),
            _ => Err(no_number(bound)),
        }
    }

    /// The goal that holds if the line does not fail.
    fn kept(&self, bound: f64) -> Goal {
        if self.is_above { Goal::AtMost(bound) } else { Goal::AtLeast(bound) }
    }
}

fn no_number(bound: &str) -> Mistake {
    Mistake::of(|language| {
        localized!(language, "{bound:?} is no number", "숫자가 아닌 값 {bound:?}입니다", "{bound:?} 不是数字")
    })
}

fn no_plain_number(bound: &str) -> Mistake {
    Mistake::of(|language| {
        localized!(
            language,
            "{bound:?} is no ratio; write 1.03 or 3%",
            "비율이 아닙니다({bound:?}). 1.03 또는 3%처럼 쓰십시오",
            "{bound:?} 不是比值；请写成 1.03 或 3%",
        )
    })
}

fn counted_in(key: &str, units: &[(&str, f64)]) -> Mistake {
    let names: Vec<&str> = units.iter().map(|(name, _)| *name).filter(|it| !it.is_empty()).collect();
    let names = names.join(", ");
    Mistake::of(|language| {
        localized!(language, "{key} is counted in {names}", "{key}의 단위: {names}", "{key} 的单位：{names}")
    })
}

fn row(name: &str, vocabulary: &Vocabulary) -> Result<&'static MetricRow, Mistake> {
    let Vocabulary { rows, short, .. } = *vocabulary;
    let key = name.replace('_', "-").to_lowercase();
    let key = short.iter().find(|(short, _)| *short == key).map_or(key.as_str(), |(_, key)| key);
    let found = rows.iter().find(|row| row.key == key);
    found.ok_or_else(|| {
        Mistake::of(|language| {
            let instead = instead_in(language, key, &vocabulary.names());
            localized!(
                language,
                "there is no metric {name:?}; {instead}",
                "알 수 없는 지표 {name:?}({instead})",
                "没有名为 {name:?} 的指标（{instead}）",
            )
        })
    })
}

/// Units of a bound, each with its size in the metric's unit.
fn units(unit: MetricUnit) -> &'static [(&'static str, f64)] {
    match unit {
        MetricUnit::Micros => &[("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)],
        MetricUnit::Nanos => &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
        MetricUnit::PerSecond => &[("", 1.0), ("/s", 1.0)],
        MetricUnit::Count => &[],
        MetricUnit::Share => &[("%", 0.01)],
        MetricUnit::Bytes => &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<ComparisonSpec>, String> {
        command_thresholds(&["old", "new", "other"], &[line.to_owned()])
            .map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn a_threshold_of_commands_is_about_each_of_them_or_the_one_that_it_names() {
        let all = read("cpu ratio > 1.03").expect("it is right");
        assert_eq!(all.len(), 2);
        assert!(
            all.iter()
                .all(|it| it.of.metric == Metric::CommandCpu && it.to[0].arm == "old" && it.is_threshold)
        );
        let one = read("new memory > 100MiB").expect("it is right");
        assert_eq!((one.len(), one[0].goal), (1, Some(Goal::AtMost(104_857_600.0))));
        assert!(one[0].to.is_empty() && one[0].of.metric == Metric::CommandMemoryMax);
        assert_eq!(read("old time < 20ms").expect("a figure")[0].goal, Some(Goal::AtLeast(20_000.0)));
        assert_eq!(read("wall > 3%").expect("a ratio")[0].goal, Some(Goal::AtMost(1.03)));
    }

    #[test]
    fn a_threshold_of_commands_that_cannot_be_meant_is_refused_with_what_could() {
        for (line, there) in [
            ("cpu", "write [ARM] METRIC"),
            ("p99 > 2ms", "there is no metric"),
            ("user ratio > 1.1", "may be zero"),
            ("mine cpu > 3%", "there is no command \"mine\""),
            ("old cpu ratio > 1.1", "old is the baseline"),
            ("cpu > 3% at c100", "leave `at CELL` out"),
        ] {
            let error = read(line).expect_err("it is wrong");
            assert!(error.contains(there), "{line}: {error}");
        }
    }

    #[test]
    fn a_name_is_that_of_a_metric_of_studies_of_commands_or_of_both() {
        let cpu = [Some(Metric::ServerCpuPerMessage), Some(Metric::CommandCpu)];
        assert_eq!(metrics_named("cpu"), Ok(cpu));
        assert_eq!(metrics_named("p99"), Ok([Some(Metric::LatencyP99), None]));
        assert_eq!(metrics_named("memory"), Ok([None, Some(Metric::CommandMemoryMax)]));
        assert!(metrics_named("speed").expect_err("there is none").to_string().contains("no metric"));
    }

    #[test]
    fn there_are_so_many_thresholds_of_commands_and_no_more() {
        let lines = |count: usize| vec!["new cpu > 3%".to_owned(); count];
        assert_eq!(
            command_thresholds(&["old", "new"], &lines(COMPARISONS_MAX)).map(|it| it.len()),
            Ok(COMPARISONS_MAX)
        );
        assert!(command_thresholds(&["old", "new"], &lines(COMPARISONS_MAX + 1)).is_err());
    }
}
