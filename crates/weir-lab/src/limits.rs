//! Limits of a study: the range of every quantity, and the error outside it. Every limit of a study is stated here,
//! or with its protocol.

use std::ops::RangeInclusive;

use thiserror::Error;
use weir_record::spec::{ArmStart, Ready};
use weir_report::{Language, localized};

use crate::mistake::Mistake;

/// Most arms of a study.
pub const ARMS_MAX: usize = 24;

/// Most cells of a study.
pub const CELLS_MAX: usize = 200;

/// Most bytes in flight in one cell; more would measure memory, not waiting.
pub const BYTES_IN_FLIGHT_MAX: u64 = 256 << 20;

/// Most published figures a study may carry.
pub const PUBLISHED_MAX: usize = 32;

/// Most runs published by others; the next constants are the most figures and the most threads of one run.
pub const PUBLISHED_RUNS_MAX: usize = 32;
/// See [`PUBLISHED_RUNS_MAX`].
pub const PUBLISHED_RUN_FIGURES_MAX: usize = 8;
/// See [`PUBLISHED_RUNS_MAX`].
pub const PUBLISHED_THREADS_MAX: usize = 8;

/// Most published levels of arms over time.
pub const PUBLISHED_LEVELS_MAX: usize = 64;

/// Most tables published by others; the next constant is the most rows of one table.
pub const PUBLISHED_TABLES_MAX: usize = 16;
/// See [`PUBLISHED_TABLES_MAX`].
pub const PUBLISHED_TABLE_ROWS_MAX: usize = 32;

/// Most questions of the added cost of arms over the baseline, counting each level of a factor.
pub const ADDED_COSTS_MAX: usize = 16;

/// Most causes of a study.
pub const CAUSES_MAX: usize = 16;

/// Most contrasts of a study, counting each arm.
pub const CONTRASTS_MAX: usize = 32;

/// Most comparisons and goals of a study, counting each arm and cell.
pub const COMPARISONS_MAX: usize = 200;

/// Most processes beside the servers of a study.
pub const NEIGHBOURS_MAX: usize = 8;

/// Most environment variables that an arm may set.
pub const VARIABLES_MAX: usize = 64;

/// Shortest and longest time for a server to become ready, and for each command before or after it.
pub const START_NS: RangeInclusive<u64> = 100_000_000..=600_000_000_000;

/// Most requests of a mix; the next constants are the most fields of one, the most bytes of its name, and the most
/// bytes of all bodies together, which become part of the study.
pub const REQUESTS_MAX: usize = 256;
/// See [`REQUESTS_MAX`].
pub const REQUEST_FIELDS_MAX: usize = 64;
/// See [`REQUESTS_MAX`].
pub const REQUEST_TEXT_BYTES_MAX: usize = 256;
/// See [`REQUESTS_MAX`].
pub const REQUEST_BODY_BYTES_MAX: usize = 512 << 10;

/// Smallest and largest weight of a request; the next constant is the largest sum of the weights of a mix.
pub const REQUEST_WEIGHT: RangeInclusive<u32> = 1..=1_000;
/// See [`REQUEST_WEIGHT`].
pub const REQUEST_WEIGHTS_MAX: u32 = 10_000;

/// Lengths that a hash of a content may have.
pub const REQUEST_HASH_BYTES: [usize; 3] = [16, 32, 64];

/// Shortest and longest slice. A slice below 5 ms consists only of the burst at its beginning.
pub const SLICE_NS: RangeInclusive<u64> = 5_000_000..=60_000_000_000;

/// Shortest and longest slice of evidence.
pub const EVIDENCE_SLICE_NS: RangeInclusive<u64> = 100_000_000..=60_000_000_000;
/// Length of a slice of evidence where a study names none. Attaching programs to the kernel takes a while, so shorter
/// ones gain little.
pub const EVIDENCE_SLICE_DEFAULT_NS: u64 = 500_000_000;

/// Shortest and longest measured window.
pub const WINDOW_NS: RangeInclusive<u64> = 100_000_000..=600_000_000_000;

/// Shortest and longest warm-up cap.
pub const WARMUP_NS: RangeInclusive<u64> = 0..=60_000_000_000;

/// Shortest and longest time cap.
pub const TIME_CAP_NS: RangeInclusive<u64> = 1_000_000_000..=86_400_000_000_000;

/// Smallest and largest equivalence margin.
pub const EQUIVALENCE_MARGIN: RangeInclusive<f64> = 0.001..=1.0;

/// Smallest and largest share of a capacity that is offered in open loop. At the full capacity queues grow without
/// limit.
pub const SHARE: RangeInclusive<f64> = 0.01..=0.95;

/// Lowest and highest offered rate.
pub const RATE_PER_SECOND: RangeInclusive<f64> = 1.0..=100_000_000.0;

/// A quantity with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Open connections.
    Connections,
    /// Messages in flight per connection.
    Depth,
    /// Bytes per message.
    MessageBytes,
    /// Server workers.
    Workers,
    /// Threads of the generator.
    LoadWorkers,
    /// Further connections that stay idle.
    IdleConnections,
    /// Blocks of a cell.
    Blocks,
    /// Rounds of a cell in which the arms take turns.
    Rounds,
    /// Permutations of a round.
    Permutations,
    /// Rounds of a cell that have slices of evidence.
    EvidenceRounds,
    /// Pairs of slices of evidence of an arm in such a round.
    EvidencePairs,
    /// Bytes of one operation on a disk.
    BlockBytes,
    /// Operations the background load keeps in flight.
    BackgroundDepth,
    /// Cores that keep this many operations in flight each.
    BackgroundCores,
    /// The number of such cores in a step of a load that changes.
    BackgroundCoreStep,
    /// Sessions of clients.
    Sessions,
    /// Orders in flight over all sessions.
    InFlightTotal,
}

impl Level {
    /// Key in a study file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Connections | Self::Sessions => "connections",
            Self::Depth => "depth",
            Self::MessageBytes => "message_bytes",
            Self::Workers => "workers",
            Self::LoadWorkers => "load_workers",
            Self::IdleConnections => "idle_connections",
            Self::Blocks => "blocks",
            Self::Rounds => "rounds",
            Self::Permutations => "permutations",
            Self::EvidenceRounds => "evidence_rounds",
            Self::EvidencePairs => "evidence_pairs",
            Self::BlockBytes => "block_bytes",
            Self::BackgroundDepth => "background_depth",
            Self::BackgroundCores => "background_cores",
            Self::BackgroundCoreStep => "core_steps",
            Self::InFlightTotal => "in_flight_total",
        }
    }

    /// Whether it counts bytes and may therefore be written as a size.
    pub(crate) fn is_bytes(self) -> bool {
        matches!(self, Self::MessageBytes | Self::BlockBytes)
    }

    /// The allowed range.
    pub fn range(self) -> RangeInclusive<u32> {
        match self {
            Self::Connections => 1..=60_000,
            Self::Depth | Self::InFlightTotal => 1..=1_024,
            Self::MessageBytes => 1..=16 << 20,
            Self::Workers | Self::LoadWorkers => 1..=256,
            Self::IdleConnections => 0..=40_000,
            // Fewer than UNITS_MIN give figures and no verdicts. A cell with a claim needs more.
            Self::Blocks | Self::Rounds => 2..=1_000,
            Self::Permutations => 1..=1_000,
            Self::EvidenceRounds => 0..=1_000,
            Self::EvidencePairs => 1..=8,
            Self::BlockBytes => 512..=16 << 20,
            Self::BackgroundDepth => 0..=1_024,
            Self::BackgroundCores => 1..=16,
            Self::BackgroundCoreStep => 0..=16,
            // The built-in accounts are named with five digits.
            Self::Sessions => 1..=10_000,
        }
    }
}

/// An error in a study: the key and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {message}")]
pub struct SpecError {
    /// Key as in a study file.
    pub key: String,
    /// The error and its remedy.
    pub message: Mistake,
    /// The arm that the error is about, if any.
    pub arm: Option<String>,
}

impl SpecError {
    pub(crate) fn new(key: &str, message: impl Into<Mistake>) -> Self {
        Self { key: key.to_owned(), message: message.into(), arm: None }
    }

    pub(crate) fn of_arm(self, arm: &str) -> Self {
        Self { arm: Some(arm.to_owned()), ..self }
    }
}

/// Checks a number against its range.
pub fn level(level: Level, value: i64) -> Result<u32, SpecError> {
    level_of(level.key(), level, value)
}

/// Checks a number against its range, for a key of another name.
pub(crate) fn level_of(key: &str, level: Level, value: i64) -> Result<u32, SpecError> {
    let range = level.range();
    u32::try_from(value).ok().filter(|value| range.contains(value)).ok_or_else(|| {
        let (start, end) = (range.start().to_string(), range.end().to_string());
        SpecError::new(key, out_of_range(&value.to_string(), &start, &end))
    })
}

/// Checks a number that need not be whole.
pub(crate) fn within(key: &str, value: f64, range: &RangeInclusive<f64>) -> Result<(), SpecError> {
    if range.contains(&value) {
        return Ok(());
    }
    let (start, end) = (range.start().to_string(), range.end().to_string());
    Err(SpecError::new(key, out_of_range(&value.to_string(), &start, &end)))
}

fn out_of_range(value: &str, start: &str, end: &str) -> Mistake {
    Mistake::of(|language| {
        localized!(
            language,
            "{value} is out of range; it must be from {start} to {end}",
            "범위를 벗어난 값({value})입니다. {start}~{end} 사이의 값을 쓰십시오",
            "{value} 超出范围；应在 {start} 到 {end} 之间",
        )
    })
}

/// Checks the length of a slice.
pub(crate) fn slice_ns(length_ns: u64) -> Result<(), SpecError> {
    if SLICE_NS.contains(&length_ns) {
        return Ok(());
    }
    let texts = ["it must be from 5ms to 60s", "5ms에서 60s 사이로 쓰십시오", "应在 5ms 到 60s 之间"];
    Err(SpecError::new("slice", Mistake::fixed(texts)))
}

pub(crate) fn evidence_slice_ns(length_ns: u64) -> Result<(), SpecError> {
    if EVIDENCE_SLICE_NS.contains(&length_ns) {
        return Ok(());
    }
    let texts = ["it must be from 0.1s to 60s", "0.1s에서 60s 사이로 쓰십시오", "应在 0.1s 到 60s 之间"];
    Err(SpecError::new("evidence_slice", Mistake::fixed(texts)))
}

/// Checks a name: names become parts of file names and table heads.
pub(crate) fn name(key: &str, name: &str) -> Result<(), SpecError> {
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.+".contains(symbol);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) && !name.starts_with(['.', '-']) {
        return Ok(());
    }
    let message = Mistake::of(|language| {
        localized!(
            language,
            "{name:?} is not a name; it must be 1 to 64 letters, digits, `-`, `_`, `.` or `+`, and not begin with `.` or \
             `-`",
            "이름으로 쓸 수 없는 값 {name:?}입니다. 영문자, 숫자, `-`, `_`, `.`, `+`를 1~64자 쓰되 `.`이나 `-`로 시작할 수 없습니다",
            "{name:?} 不能用作名称；须为 1 到 64 个字母、数字、`-`、`_`、`.` 或 `+`，且不以 `.` 或 `-` 开头",
        )
    });
    Err(SpecError::new(key, message))
}

/// Checks that a word is one of the known words.
pub(crate) fn one_of(key: &str, word: &str, known: &[&str]) -> Result<(), SpecError> {
    if known.contains(&word) {
        return Ok(());
    }
    let message = Mistake::of(|language| {
        let instead = instead_in(language, word, known);
        localized!(
            language,
            "there is no {word:?}; {instead}",
            "알 수 없는 값 {word:?}({instead})",
            "未知的值 {word:?}（{instead}）",
        )
    });
    Err(SpecError::new(key, message))
}

/// Whether a foreign server receives the port to listen on.
pub(crate) fn names_port(argv: &[String], start: &ArmStart) -> bool {
    let mut words = argv.iter().chain(start.environment.values());
    words.any(|word| word.contains("{port}") || word.contains("{address}"))
}

/// Checks that a server receives its port by a word of its command or by a variable.
pub(crate) fn port(argv: &[String], start: &ArmStart) -> Result<(), SpecError> {
    if !names_port(argv, start) {
        let texts = [
            "no word of the command or variable of its environment holds {port} or {address}, so the server cannot be \
             told where to listen",
            "명령과 환경 변수에 {port}나 {address}가 없어, 서버가 어디서 연결을 받을지 알려 줄 수 없습니다",
            "命令和环境变量中都没有 {port} 或 {address}，无法告知服务器在何处监听",
        ];
        return Err(SpecError::new("arm.command", Mistake::fixed(texts)));
    }
    Ok(())
}

/// Checks how an arm is started. Weir's own servers report themselves when they are ready.
pub(crate) fn arm_start(start: &ArmStart, is_weir: bool) -> Result<(), SpecError> {
    let wrong = |key: &str, message: String| Err(SpecError::new(&format!("arm.{key}"), message));
    if start.environment.len() > VARIABLES_MAX {
        return wrong(
            "environment",
            format!("{} variables; at most {VARIABLES_MAX}", start.environment.len()),
        );
    }
    let is_no_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = start.environment.keys().find(is_no_name) {
        return wrong("environment", format!("{name:?} is no name of a variable"));
    }
    let commands = [("setup", &start.setup), ("cleanup", &start.cleanup)];
    let texts = commands.into_iter().flat_map(|(key, words)| words.iter().map(move |word| (key, word)));
    let others = start.environment.values().map(|value| ("environment", value));
    let folder = start.folder.iter().map(|folder| ("folder", folder));
    if let Some((key, _)) = texts.chain(others).chain(folder).find(|(_, text)| text.contains('\0')) {
        return wrong(key, "it holds a byte of zero, which no program can be given".to_owned());
    }
    let lengths = [("setup_timeout", start.command_ns_max), ("ready_timeout", start.ready_ns_max)];
    if let Some((key, _)) = lengths.iter().find(|(_, ns)| ns.is_some_and(|ns| !START_NS.contains(&ns))) {
        return wrong(key, "it must be from 100ms to 10min".to_owned());
    }
    match &start.ready {
        Ready::Port => Ok(()),
        _ if is_weir => {
            wrong("ready", "a server of Weir's says itself when it listens; leave it out".to_owned())
        }
        Ready::Line(text) if text.is_empty() => {
            wrong("ready", "every line holds the empty text; write what the line says".to_owned())
        }
        Ready::Line(_) | Ready::Command(_) => Ok(()),
    }
}

/// The nearest of the known words, or all of them if none is near.
pub(crate) fn instead(word: &str, known: &[&str]) -> String {
    instead_in(Language::English, word, known)
}

/// The replacement for an unknown word, in the reader's language: the nearest known word, or else all.
pub fn instead_in(language: Language, word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(near) => {
            localized!(language, "did you mean {near}?", "비슷한 이름: {near}", "相近的名称：{near}")
        }
        None if known.is_empty() => {
            language.choose(["there is none at all", "하나도 없음", "一个也没有"]).to_owned()
        }
        None => {
            let known = known.join(", ");
            localized!(language, "there are {known}", "사용 가능: {known}", "可用：{known}")
        }
    }
}

/// The word that was probably meant: it differs in a few letters, and in fewer than would make it another word.
fn nearest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let distance = |other: &str| strsim::damerau_levenshtein(word, other);
    let near = known.iter().copied().min_by_key(|other| distance(other))?;
    (distance(near) <= (word.len().max(near.len()) / 3).max(1)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_was_nearly_right_is_found_and_another_has_the_whole_list() {
        let known = ["connections", "depth", "workers"];
        assert_eq!(instead("conections", &known), "did you mean connections?");
        assert_eq!(instead("dpeth", &known), "did you mean depth?");
        assert_eq!(instead("colour", &known), "there are connections, depth, workers");
        let error = one_of("arm.route", "onw", &["own", "other"]).expect_err("there is none").to_string();
        assert_eq!(error, "arm.route: there is no \"onw\"; did you mean own?");
    }

    #[test]
    fn what_leaves_its_range_or_is_unknown_is_told_in_every_language() {
        let errors = [
            level(Level::Connections, 0).map(|_| ()),
            within("share", 2.0, &SHARE),
            name("name", "a b"),
            one_of("arm.route", "onw", &["own", "other"]),
            slice_ns(1),
            evidence_slice_ns(1),
        ];
        for error in errors {
            let error = error.expect_err("it is a mistake");
            let texts = Language::ALL.map(|language| error.message.localized(language));
            assert_eq!(error.to_string(), format!("{}: {}", error.key, texts[0]));
            assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2], "{texts:?}");
        }
    }

    #[test]
    fn the_ends_of_a_range_are_in_it() {
        for (value, is_in) in [(0, false), (1, true), (60_000, true), (60_001, false), (i64::MIN, false)] {
            assert_eq!(level(Level::Connections, value).is_ok(), is_in, "{value}");
        }
        assert!(within("share", f64::NAN, &SHARE).is_err());
    }
}
