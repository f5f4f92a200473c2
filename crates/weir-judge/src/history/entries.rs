//! What a stored run says of a question: the effect, the two programs it is of, and what makes it the same question as
//! another run's.

use weir_record::{
    commands::{CommandArm, CommandComparison, CommandEnd, CommandReport, CommandRole},
    effect::Effect,
    finding::MessageKind,
    history::{HistoryFigure, HistoryProgram, HistoryQuestion, HistoryRun},
    machine::Fingerprint,
    metric::Metric,
    spec::{ArmSpec, Subject},
    study::StudyResult,
    verdict::Verdict,
};

use super::contents;

/// What stands for a file in words that are compared: it may be named differently in every run.
const FILE: &str = "·";

const SECOND_NS: u64 = 1_000_000_000;

/// One run's answer to one question.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(super) of: HistoryQuestion,
    pub(super) arm: String,
    pub(super) baseline: String,
    pub(super) metric: Metric,
    pub(super) kind: MessageKind,
    /// What else must be the same: the words of commands without the names of files, and their environment.
    shape: Vec<String>,
    pub(super) fingerprint: Fingerprint,
    /// The baseline.
    pub(super) reference: HistoryProgram,
    pub(super) degrees_of_freedom: u32,
    /// When it began, as exactly as it is known.
    began_unix_ns: Option<u64>,
    pub(super) run: HistoryRun,
}

impl Entry {
    pub(super) fn asks_the_same(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.arm.clone(), it.baseline.clone(), it.metric, it.shape.clone());
        self.of == other.of && key(self) == key(other)
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        match &self.of {
            HistoryQuestion::Study { name: own, .. } => own == name,
            HistoryQuestion::Commands { .. } => self.arm == name || self.baseline == name,
        }
    }

    /// Runs stand in the order in which they began, and where that is the same by their places.
    pub(super) fn order(&self) -> (Option<u64>, &str) {
        (self.began_unix_ns, &self.run.place)
    }

    /// Without a figure where the deciding row bars it: programs that do different things have no effect to go on from.
    fn of_effect(row: &Effect, deciding: &Effect, run: HistoryRun) -> HistoryRun {
        if deciding.verdict == Verdict::NotComparable {
            return HistoryRun { level: row.level, verdict: Verdict::NotComparable, ..run };
        }
        HistoryRun {
            effect: HistoryFigure { figure: row.estimate, interval: row.interval },
            level: row.level,
            verdict: row.verdict,
            ..run
        }
    }
}

/// What a study says: its primary comparison, or another metric of the same arms where one is named.
pub fn of_study(
    result: &StudyResult,
    place: &str,
    began_unix_s: Option<u64>,
    metric: Option<Metric>,
) -> Option<Entry> {
    let primary = result.primary()?;
    let row = match metric {
        None => primary,
        Some(metric) => {
            let is_meant = |row: &&Effect| {
                (row.metric, &row.arm, &row.baseline) == (metric, &primary.arm, &primary.baseline)
            };
            let rows: Vec<&Effect> = result.effects.comparisons().filter(is_meant).collect();
            let in_primary = rows.iter().find(|row| row.cell_id == primary.cell_id);
            in_primary.or(rows.first()).copied()?
        }
    };
    let arm = |name: &str| result.spec.arms.iter().find(|arm| arm.name == name);
    let program = |name: &str| arm(name).map(|arm| program_of_arm(result, arm)).unwrap_or_default();
    let run = HistoryRun {
        place: place.to_owned(),
        began_unix_s,
        origin: result.spec.origin.clone(),
        program: program(&row.arm),
        ..HistoryRun::default()
    };
    Some(Entry {
        of: HistoryQuestion::Study { name: result.spec.name.clone(), cell_id: row.cell_id.clone() },
        arm: row.arm.clone(),
        baseline: row.baseline.clone(),
        metric: row.metric,
        kind: MessageKind::of_study(&result.spec),
        shape: Vec::new(),
        fingerprint: result.fingerprint.clone(),
        reference: program(&row.baseline),
        degrees_of_freedom: row.degrees_of_freedom.unwrap_or_default(),
        began_unix_ns: began_unix_s.map(|seconds| seconds.saturating_mul(SECOND_NS)),
        run: Entry::of_effect(row, primary, run),
    })
}

/// The program of an arm, with all its arguments. The folder of a program and the arm's name are no part of it: the
/// new build of one run is the old one of the next.
pub(super) fn program_of_arm(result: &StudyResult, arm: &ArmSpec) -> HistoryProgram {
    let machine = &result.fingerprint;
    let mut told = arm.subject.clone();
    let (name, content) = match &mut told {
        Subject::Running(server) => {
            server.pid = None;
            let found = machine.running.get(&arm.name);
            let found = found.map(|it| (last_part(&it.program).to_owned(), it.program_hash.clone()));
            found.unwrap_or_default()
        }
        Subject::Command { argv } => {
            let contents: Vec<String> = argv.iter().map(|word| content_of(machine, word)).collect();
            let is_file = |word: &str| !content_of(machine, word).is_empty();
            let content = match contents::is_known(argv, is_file) {
                true => contents.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" "),
                false => String::new(),
            };
            let path = argv.first().cloned().unwrap_or_default();
            if let Some(first) = argv.first_mut() {
                *first = FILE.to_owned();
            }
            (last_part(&path).to_owned(), content)
        }
        Subject::Fio { program, .. } => {
            let path = std::mem::replace(program, FILE.to_owned());
            (last_part(&path).to_owned(), content_of(machine, &path))
        }
        Subject::Gateway(gateway) => match gateway.program.replace(FILE.to_owned()) {
            Some(path) => (last_part(&path).to_owned(), content_of(machine, &path)),
            None => own_build(machine),
        },
        Subject::Weir { .. } | Subject::Storage(_) => own_build(machine),
    };
    let told = serde_json::json!({ "subject": told, "load": arm.load_options, "start": arm.start });
    HistoryProgram { name, identity: format!("{content} {told}"), content }
}

fn own_build(machine: &Fingerprint) -> (String, String) {
    let Fingerprint { weir_version, build, .. } = machine;
    ("weir".to_owned(), [weir_version.as_str(), build].join(" ").trim().to_owned())
}

/// The build of a program: the hash of the file of that path, or of those with its name in other folders.
fn content_of(machine: &Fingerprint, path: &str) -> String {
    if let Some(content) = machine.programs.get(path) {
        return content.clone();
    }
    let ends = format!("/{}", path.trim_start_matches("./"));
    let is_it = |own: &String| own.ends_with(&ends);
    let found = machine.programs.iter().filter(|(own, _)| is_it(own)).map(|(_, content)| content.as_str());
    found.collect::<Vec<_>>().join(", ")
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What a stored comparison of commands says: each command against the first, for each combination of parameters that
/// was finished.
pub fn of_commands(report: &CommandReport, place: &str, metric: Metric) -> Vec<Entry> {
    let of_one = |comparison: &CommandComparison| -> Vec<Entry> {
        let candidates = comparison.commands.iter().filter(|arm| arm.role == CommandRole::Candidate);
        candidates.filter_map(|arm| of_command(report, comparison, arm, (place, metric))).collect()
    };
    report.comparisons.iter().filter(|it| is_finished(it)).flat_map(of_one).collect()
}

/// Whether a comparison was finished: what an interruption left says less than was asked.
pub fn is_finished(comparison: &CommandComparison) -> bool {
    matches!(comparison.ended, CommandEnd::Complete | CommandEnd::TimeCap)
}

fn of_command(
    report: &CommandReport,
    comparison: &CommandComparison,
    arm: &CommandArm,
    (place, metric): (&str, Metric),
) -> Option<Entry> {
    let baseline = comparison.commands.first()?;
    let row_of =
        |metric| comparison.effects.comparisons().find(|row| row.arm == arm.name && row.metric == metric);
    let row = row_of(metric)?;
    let deciding = row_of(Metric::CommandCpu).unwrap_or(row);
    let has_shell = report.settings.shell.is_some();
    let run = HistoryRun {
        place: place.to_owned(),
        began_unix_s: Some(report.started_unix_ns / SECOND_NS),
        origin: report.origin.clone(),
        program: program_of_command(arm, has_shell),
        ..HistoryRun::default()
    };
    let mut shape = report.settings.environment.clone();
    for arm in [baseline, arm] {
        shape.extend(
            arm.words.iter().map(|word| file_of(arm, word).map_or(word.clone(), |_| FILE.to_owned())),
        );
    }
    Some(Entry {
        of: HistoryQuestion::Commands { parameters: comparison.parameters.clone() },
        arm: arm.name.clone(),
        baseline: baseline.name.clone(),
        metric,
        kind: MessageKind::default(),
        shape,
        fingerprint: report.fingerprint.clone(),
        reference: program_of_command(baseline, has_shell),
        degrees_of_freedom: row.degrees_of_freedom.unwrap_or_default(),
        began_unix_ns: Some(report.started_unix_ns),
        run: Entry::of_effect(row, deciding, run),
    })
}

/// A command with the contents of its files in the place of their names. Words inside a line for a shell stay as they
/// are. The content of a command is empty where it may be another one each time.
fn program_of_command(arm: &CommandArm, has_shell: bool) -> HistoryProgram {
    let content = |word: &String| file_of(arm, word).map(|place| arm.files[place].content.clone());
    let words = arm.words.iter().map(|word| content(word).unwrap_or_else(|| word.clone()));
    // A file on standard input is in no word.
    let in_words: Vec<usize> = arm.words.iter().filter_map(|word| file_of(arm, word)).collect();
    let beside = (0..arm.files.len()).filter(|place| !in_words.contains(place));
    let identity: Vec<String> =
        words.chain(beside.map(|place| format!("<{}", arm.files[place].content))).collect();
    let shown = |word: &String| file_of(arm, word).map_or(word.as_str(), |_| last_part(word)).to_owned();
    let contents: Vec<String> = arm.words.iter().filter_map(content).collect();
    let is_known = !has_shell && contents::is_known(&arm.words, |word| file_of(arm, word).is_some());
    HistoryProgram {
        name: if has_shell {
            arm.name.clone()
        } else {
            arm.words.iter().map(shown).collect::<Vec<_>>().join(" ")
        },
        identity: identity.join(" "),
        content: if is_known { contents.join(" ") } else { String::new() },
    }
}

/// The place of the file that a word names, in a folder or on the path of programs.
fn file_of(arm: &CommandArm, word: &str) -> Option<usize> {
    let ends = format!("/{word}");
    arm.files.iter().position(|file| file.path == word || file.path.ends_with(&ends))
}
