//! Recorded rounds as text: the data on which decision rules are tested. docs/formats/recording.md describes the
//! format.
//!
//! A recording has facts about where and how it was taken, and cells. Each cell has runs, the baseline's twice, and
//! each round has the slices of every run. Numbers are integers, and a round is one line. A recording stores no
//! verdicts and no metrics of slices: its reader computes them.

use std::{
    fmt,
    fmt::{Display, Formatter, Write},
    str::FromStr,
};

/// First line of a recording; the number rises when a column changes its meaning.
const FIRST_LINE: &str = "# weir-recording 1";

/// Marks the baseline's second run, after the name of its arm.
const REPEAT: char = '*';

/// Characters that a name must not contain: they separate names, runs and slices.
const SEPARATORS: [char; 4] = [' ', ';', ',', REPEAT];

/// Rounds of one condition, and where they were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Key and value: the machine, the build, the command.
    pub facts: Vec<(String, String)>,
    /// In the order in which they were written.
    pub cells: Vec<RecordedCell>,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCell {
    /// Its identifier in the study.
    pub id: String,
    /// Messages a second that each arm is offered; absent in closed loop.
    pub rate_per_second: Option<f64>,
    /// What ran in every round, in the order of each round's slices.
    pub runs: Vec<RecordedRun>,
    /// In the order of time.
    pub rounds: Vec<RecordedRound>,
}

/// One of the things that ran in every round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedRun {
    /// Name of the arm.
    pub arm: String,
    /// Whether it is the baseline's second run.
    pub is_repeat: bool,
}

/// One round of fresh processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedRound {
    /// Its number in the schedule, from 0.
    pub number: u32,
    /// When it started, since the session began.
    pub started_ms: u64,
    /// Cross-core round trips before and after it.
    pub round_trips_ns: [u64; 2],
    /// Slices of each run by permutation: as many lists as the cell has runs, all of the same length.
    pub slices: Vec<Vec<RecordedSlice>>,
}

/// One slice. A cell without turns has one per run in each round: its whole trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordedSlice {
    /// Place in the permutation, from 0.
    pub place: u32,
    /// Messages that were answered and verified.
    pub messages: u64,
    /// Open loop: intended starts that were not made in the slice. The intended messages are the sum of both.
    pub missed: u64,
    /// CPU of the server's processes.
    pub server_cpu_ns: u64,
    /// From the first start to the last answer.
    pub length_ns: u64,
}

impl RecordedSlice {
    /// Server CPU per message; `None` without messages.
    pub fn server_cpu_per_message_ns(&self) -> Option<f64> {
        (self.messages > 0).then(|| self.server_cpu_ns as f64 / self.messages as f64)
    }
}

impl Recording {
    /// The value of a fact.
    pub fn fact(&self, key: &str) -> Option<&str> {
        self.facts.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The recording as text. Fails where a name contains a separator, a round has a different number of runs than
    /// its cell, or its runs have different numbers of slices: that text could not be read back.
    pub fn to_text(&self) -> Result<String, String> {
        let mut text = format!("{FIRST_LINE}\n");
        for (key, value) in &self.facts {
            let is_key = !key.is_empty() && !key.contains([':', '\n', '\r']) && key.trim() == key;
            if !is_key || value.contains(['\n', '\r']) || value.trim() != value {
                return Err(format!(
                    "the fact {key:?} is {value:?}: a fact is one line without blanks around it"
                ));
            }
            // Writing into a String cannot fail.
            let _ = writeln!(text, "# {key}: {value}");
        }
        for cell in &self.cells {
            cell.write(&mut text)?;
        }
        Ok(text)
    }
}

impl RecordedCell {
    /// Index of a run among the slices of a round.
    pub fn run(&self, arm: &str, is_repeat: bool) -> Option<usize> {
        self.runs.iter().position(|run| run.arm == arm && run.is_repeat == is_repeat)
    }

    fn write(&self, text: &mut String) -> Result<(), String> {
        for name in self.runs.iter().map(|run| &run.arm).chain([&self.id]) {
            if name.is_empty() || name.contains(|it: char| SEPARATORS.contains(&it) || it.is_whitespace()) {
                return Err(format!("the name {name:?} is empty, or has a blank or one of `;`, `,` and `*`"));
            }
        }
        let runs: Vec<String> = self.runs.iter().map(RecordedRun::to_string).collect();
        let _ = writeln!(text, "cell {}", self.id);
        if let Some(rate) = self.rate_per_second {
            let _ = writeln!(text, "rate {rate}");
        }
        let _ = writeln!(text, "runs {}", runs.join(" "));
        for round in &self.rounds {
            let permutations = round.slices.first().map_or(0, Vec::len);
            let is_even = round.slices.iter().all(|slices| slices.len() == permutations);
            if round.slices.len() != self.runs.len() || permutations == 0 || !is_even {
                return Err(format!("round {} of {}: slices are missing", round.number, self.id));
            }
            let _ = writeln!(text, "{round}");
        }
        Ok(())
    }
}

impl Display for RecordedRun {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mark = if self.is_repeat { "*" } else { "" };
        write!(formatter, "{}{mark}", self.arm)
    }
}

impl Display for RecordedRound {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let [before, after] = self.round_trips_ns;
        write!(formatter, "{} {} {before} {after}", self.number, self.started_ms)?;
        for slices in &self.slices {
            for (place, slice) in slices.iter().enumerate() {
                let separator = if place == 0 { ';' } else { ',' };
                let RecordedSlice { place, messages, missed, server_cpu_ns, length_ns } = slice;
                write!(formatter, "{separator} {place} {messages} {missed} {server_cpu_ns} {length_ns}")?;
            }
        }
        Ok(())
    }
}

/// An error in the text of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

impl Display for RecordingError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for RecordingError {}

impl FromStr for Recording {
    type Err = RecordingError;

    fn from_str(text: &str) -> Result<Self, RecordingError> {
        if text.lines().next() != Some(FIRST_LINE) {
            return Err(RecordingError {
                line: 1,
                reason: format!("a recording begins with `{FIRST_LINE}`"),
            });
        }
        let mut recording = Self::default();
        for (line, words) in (1..).zip(text.lines()).skip(1) {
            recording.take(words).map_err(|reason| RecordingError { line, reason })?;
        }
        Ok(recording)
    }
}

impl Recording {
    /// Takes the next line.
    fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(fact) = line.strip_prefix("# ") {
            let (key, value) = fact.split_once(':').ok_or("a fact is `# KEY: VALUE`")?;
            self.facts.push((key.to_owned(), value.trim().to_owned()));
            return Ok(());
        }
        if let Some(id) = line.strip_prefix("cell ") {
            self.cells.push(RecordedCell { id: id.to_owned(), ..RecordedCell::default() });
            return Ok(());
        }
        let cell = self.cells.last_mut().ok_or("a line of a cell stands behind `cell ID`")?;
        if let Some(rate) = line.strip_prefix("rate ") {
            cell.rate_per_second = Some(number(rate)?);
        } else if let Some(names) = line.strip_prefix("runs ") {
            cell.runs = names.split(' ').map(run).collect();
        } else {
            cell.rounds.push(round(line, cell.runs.len())?);
        }
        Ok(())
    }
}

fn run(name: &str) -> RecordedRun {
    let arm = name.strip_suffix(REPEAT);
    RecordedRun { arm: arm.unwrap_or(name).to_owned(), is_repeat: arm.is_some() }
}

fn round(line: &str, runs: usize) -> Result<RecordedRound, String> {
    let mut parts = line.split(';');
    let [number, started_ms, before, after] = numbers(parts.next().unwrap_or_default())?;
    let slices: Vec<Vec<RecordedSlice>> =
        parts.map(|run| run.split(',').map(slice).collect()).collect::<Result<_, String>>()?;
    let permutations = slices.first().map_or(0, Vec::len);
    if slices.len() != runs || slices.iter().any(|slices| slices.len() != permutations) {
        return Err(format!("a round of this cell has {runs} runs with the same number of slices"));
    }
    let number = u32::try_from(number).map_err(|_| format!("{number} is no number of a round"))?;
    Ok(RecordedRound { number, started_ms, round_trips_ns: [before, after], slices })
}

fn slice(text: &str) -> Result<RecordedSlice, String> {
    let [place, messages, missed, server_cpu_ns, length_ns] = numbers(text)?;
    let place = u32::try_from(place).map_err(|_| format!("{place} is no place in a permutation"))?;
    Ok(RecordedSlice { place, messages, missed, server_cpu_ns, length_ns })
}

/// Exactly `N` whole numbers.
fn numbers<const N: usize>(text: &str) -> Result<[u64; N], String> {
    let found: Vec<u64> = text.split_whitespace().map(number).collect::<Result<_, String>>()?;
    found.try_into().map_err(|found: Vec<u64>| format!("{N} numbers belong here, not {}", found.len()))
}

fn number<T: FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("`{word}` is no number that belongs here"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# weir-recording 1\n# kernel: 6.18: a guest\ncell c10-open\nrate 7933.5\nruns epoll epoll* \
                        uring\n4 1234 72 71; 0 10 2 500 100000; 2 11 0 501 100001; 1 12 0 502 100002\n";

    #[test]
    fn a_recording_is_read_as_it_is_written() {
        let recording: Recording = TEXT.parse().expect("a recording");
        assert_eq!(recording.fact("kernel"), Some("6.18: a guest"));
        let cell = &recording.cells[0];
        assert_eq!((cell.rate_per_second, cell.run("epoll", true)), (Some(7_933.5), Some(1)));
        let slice = cell.rounds[0].slices[0][0];
        assert_eq!((slice.missed, slice.server_cpu_per_message_ns()), (2, Some(50.0)));
        assert_eq!(RecordedSlice::default().server_cpu_per_message_ns(), None);
        assert_eq!(recording.to_text().as_deref(), Ok(TEXT));
    }

    #[test]
    fn a_text_that_is_none_is_refused_with_its_line() {
        for (from, to, said) in [
            ("recording 1", "recording 2", "line 1: a recording begins with `# weir-recording 1`"),
            ("kernel: 6.18: a", "a", "line 2: a fact is `# KEY: VALUE`"),
            ("cell c10-open", "runs a", "line 3: a line of a cell stands behind `cell ID`"),
            ("rate 7933.5", "rate x", "line 4: `x` is no number that belongs here"),
            (" 10 2 500", " 10 500", "line 6: 5 numbers belong here, not 4"),
            (" 10 2 500", " 10 -2 500", "line 6: `-2` is no number that belongs here"),
            ("4 1234", "4294967296 1234", "line 6: 4294967296 is no number of a round"),
            (
                "; 2 11 0 501 100001",
                "",
                "line 6: a round of this cell has 3 runs with the same number of slices",
            ),
            ("; 1 12", ", 1 12", "line 6: a round of this cell has 3 runs with the same number of slices"),
        ] {
            let text = TEXT.replace(from, to);
            let error = text.parse::<Recording>().expect_err(from);
            assert_eq!(error.to_string(), said);
        }
    }

    #[test]
    fn what_could_not_be_read_back_is_not_written() {
        let whole: Recording = TEXT.parse().expect("a recording");
        let refused = |change: fn(&mut Recording), said: &str| {
            let mut recording = whole.clone();
            change(&mut recording);
            let error = recording.to_text().expect_err(said);
            assert!(error.contains(said), "{error}");
        };
        refused(|it| it.cells[0].runs[0].arm = "two words".to_owned(), "\"two words\"");
        refused(|it| it.cells[0].id = String::new(), "the name \"\"");
        refused(|it| drop(it.cells[0].rounds[0].slices.pop()), "round 4 of c10-open: slices are missing");
        refused(|it| it.cells[0].rounds[0].slices[1].clear(), "round 4 of c10-open: slices are missing");
        refused(|it| it.facts[0].1 = "two\nlines".to_owned(), "a fact is one line");
    }

    fn slices(runs: usize, permutations: usize) -> impl Strategy<Value = Vec<Vec<RecordedSlice>>> {
        let slice = (any::<u32>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()).prop_map(
            |(place, messages, missed, server_cpu_ns, length_ns)| RecordedSlice {
                place,
                messages,
                missed,
                server_cpu_ns,
                length_ns,
            },
        );
        prop::collection::vec(prop::collection::vec(slice, permutations), runs)
    }

    fn cell() -> impl Strategy<Value = RecordedCell> {
        (1_usize..4, 1_usize..4, "[a-z0-9-]{1,12}", prop::option::of(0.001_f64..1e9)).prop_flat_map(
            |(runs, permutations, id, rate_per_second)| {
                let round = (any::<u32>(), any::<u64>(), any::<[u64; 2]>(), slices(runs, permutations))
                    .prop_map(|(number, started_ms, round_trips_ns, slices)| RecordedRound {
                        number,
                        started_ms,
                        round_trips_ns,
                        slices,
                    });
                let run = ("[a-z+-]{1,8}", any::<bool>())
                    .prop_map(|(arm, is_repeat)| RecordedRun { arm, is_repeat });
                (prop::collection::vec(run, runs), prop::collection::vec(round, 0..4)).prop_map(
                    move |(runs, rounds)| RecordedCell { id: id.clone(), rate_per_second, runs, rounds },
                )
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            facts in prop::collection::vec(("[a-z-]{1,9}", "([!-~]([ -~]*[!-~])?)?"), 0..4),
            cells in prop::collection::vec(cell(), 0..3),
        ) {
            let recording = Recording { facts, cells };
            let text = recording.to_text().expect("names and slices are sound");
            prop_assert_eq!(text.parse::<Recording>(), Ok(recording));
        }

        #[test]
        fn no_text_is_a_reason_to_panic(lines in prop::collection::vec("[ -~]{0,30}|[0-9 ;,]{0,30}", 0..6)) {
            let text = format!("{FIRST_LINE}\ncell c\nruns a\n{}\n", lines.join("\n"));
            let _ = text.parse::<Recording>();
        }
    }
}
