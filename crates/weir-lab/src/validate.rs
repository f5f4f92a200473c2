//! What a study may ask: ranges of every level, and what must hold between its parts. One place for built-in
//! studies and study files; every limit is stated here.

mod orders;
mod storage;

use std::{collections::BTreeSet, ops::RangeInclusive};

use thiserror::Error;
use weir_proto::content::Content;
use weir_record::spec::{CellRole, CellSpec, HttpCell, LoadMode, StudySpec, Subject};
use weir_stats::decide::UNITS_MIN;

use crate::alternation;

pub use storage::FILE_BYTES as STORAGE_FILE_BYTES;

/// Most arms of a study.
pub const ARMS_MAX: usize = 24;

/// Most cells of a study.
pub const CELLS_MAX: usize = 200;

/// Most bytes in flight in one cell; beyond it memory is measured, not waiting.
pub const BYTES_IN_FLIGHT_MAX: u64 = 256 << 20;

/// Drivers an arm may name. `auto` is not among them: a study never leaves the choice open.
pub const DRIVERS: [&str; 5] = ["uring", "epoll", "poll", "select", "blocking"];

/// Descriptors that `select` can name (`FD_SETSIZE`): the kernel's interface has no room for more.
pub const SELECT_DESCRIPTORS: u32 = 1024;

/// Descriptors a server has open beside its connections, and a few to spare: standard streams, signals, the
/// statistics socket and its one reader.
const DESCRIPTORS_BESIDE: u32 = 12;

/// Further ones for each worker: its listener and the descriptor that wakes it.
const DESCRIPTORS_PER_WORKER: u32 = 2;

/// Most further words of `weir serve` an arm may have.
pub const ARGUMENTS_MAX: usize = 32;

/// Most published figures a study may carry.
pub const PUBLISHED_MAX: usize = 32;

/// What the laboratory says to `weir serve` itself; an arm that said it too would contradict it.
const ARGUMENTS_TAKEN: [&str; 8] =
    ["--driver", "--listen", "--workers", "--stats-socket", "--pin", "--body", "--option", "-o"];

/// Longest ramp-up, and longest timeout of a connection or a response.
pub const HTTP_LENGTH_NS_MAX: u64 = 60_000_000_000;

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
    /// Further connections that stay idle.
    IdleConnections,
    /// Blocks of a cell.
    Blocks,
    /// Rounds of a cell in which the arms take turns.
    Rounds,
    /// Permutations of a round.
    Permutations,
    /// Bytes of one operation on a disk.
    BlockBytes,
    /// Operations the background load keeps in flight.
    BackgroundDepth,
}

impl Level {
    /// Key in a study file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Depth => "depth",
            Self::MessageBytes => "message_bytes",
            Self::Workers => "workers",
            Self::IdleConnections => "idle_connections",
            Self::Blocks => "blocks",
            Self::Rounds => "rounds",
            Self::Permutations => "permutations",
            Self::BlockBytes => "block_bytes",
            Self::BackgroundDepth => "background_depth",
        }
    }

    /// What it may be.
    pub fn range(self) -> RangeInclusive<u32> {
        match self {
            Self::Connections => 1..=60_000,
            Self::Depth => 1..=1_024,
            Self::MessageBytes => 1..=16 << 20,
            Self::Workers => 1..=256,
            Self::IdleConnections => 0..=40_000,
            // Fewer than UNITS_MIN give figures and no verdicts; a cell of which something is claimed needs more.
            Self::Blocks | Self::Rounds => 2..=1_000,
            Self::Permutations => 1..=1_000,
            Self::BlockBytes => 512..=16 << 20,
            Self::BackgroundDepth => 0..=1_024,
        }
    }
}

/// Shortest and longest slice. Below 5 ms the burst at its beginning is all there is.
pub const SLICE_NS: RangeInclusive<u64> = 5_000_000..=60_000_000_000;

/// Checks the length of a slice.
pub fn slice_ns(length_ns: u64) -> Result<(), SpecError> {
    if SLICE_NS.contains(&length_ns) {
        return Ok(());
    }
    Err(SpecError::new("slice", "it must be from 5ms to 60s".to_owned()))
}

/// Shortest and longest measured window.
pub const WINDOW_NS: RangeInclusive<u64> = 100_000_000..=600_000_000_000;

/// Shortest and longest warm-up cap.
pub const WARMUP_NS: RangeInclusive<u64> = 0..=60_000_000_000;

/// Shortest and longest time cap.
pub const TIME_CAP_NS: RangeInclusive<u64> = 1_000_000_000..=86_400_000_000_000;

/// Smallest and largest smallest effect.
pub const SMALLEST_EFFECT: RangeInclusive<f64> = 0.001..=1.0;

/// Smallest and largest share of a capacity that is offered in open loop; at all of it queues grow without end.
pub const SHARE: RangeInclusive<f64> = 0.01..=0.95;

/// Lowest and highest offered rate.
pub const RATE_PER_SECOND: RangeInclusive<f64> = 1.0..=100_000_000.0;

/// What is wrong with a study: the key and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {message}")]
pub struct SpecError {
    /// Key as in a study file.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl SpecError {
    pub(crate) fn new(key: &str, message: String) -> Self {
        Self { key: key.to_owned(), message }
    }
}

/// Checks a number against its range.
pub fn level(level: Level, value: i64) -> Result<u32, SpecError> {
    let range = level.range();
    u32::try_from(value).ok().filter(|value| range.contains(value)).ok_or_else(|| {
        let message =
            format!("{value} is out of range; it must be from {} to {}", range.start(), range.end());
        SpecError::new(level.key(), message)
    })
}

/// Checks a whole study.
pub fn study(spec: &StudySpec) -> Result<(), SpecError> {
    name("name", &spec.name)?;
    within("smallest_effect", spec.smallest_effect, &SMALLEST_EFFECT)?;
    if !TIME_CAP_NS.contains(&spec.time_cap_ns) {
        return Err(SpecError::new("time_cap", "it must be from 1s to 24h".to_owned()));
    }
    arms(spec)?;
    for arm in &spec.arms {
        if let Subject::Weir { driver, .. } = &arm.subject {
            descriptors(driver, &spec.cells)?;
        }
    }
    if spec.cells.is_empty() || spec.cells.len() > CELLS_MAX {
        let message = format!("the study has {} cells; it must have from 1 to {CELLS_MAX}", spec.cells.len());
        return Err(SpecError::new("factors", message));
    }
    if spec.cells.iter().any(|cell| cell.http.is_none()) && spec.is_http() {
        let message = "some cells are HTTP and some are not; a study has one protocol".to_owned();
        return Err(SpecError::new("protocol", message));
    }
    storage::protocol(spec)?;
    orders::protocol(spec)?;
    let mut ids = BTreeSet::new();
    for cell in &spec.cells {
        check_cell(cell)?;
        cell_arms(spec, cell)?;
        turns(spec, cell)?;
        if !ids.insert(&cell.id) {
            return Err(SpecError::new("factors", format!("the cell {} occurs twice", cell.id)));
        }
    }
    let headlines = spec.cells.iter().filter(|cell| cell.role == CellRole::Headline).count();
    if headlines != 1 {
        return Err(SpecError::new(
            "headline",
            format!("{headlines} cells are the headline; exactly one must be"),
        ));
    }
    storage::arms(spec)?;
    orders::arms(spec)?;
    published(spec)
}

/// Arms take turns where they can, and a claim has units enough to be decided.
fn turns(spec: &StudySpec, cell: &CellSpec) -> Result<(), SpecError> {
    let (key, unit) = if cell.alternation.is_some() { ("rounds", "rounds") } else { ("blocks", "blocks") };
    if cell.role != CellRole::Exploratory && (cell.blocks as usize) < UNITS_MIN {
        let message = format!(
            "{} claims something and has {} {unit}; a claim needs {UNITS_MIN} or more",
            cell.id, cell.blocks
        );
        return Err(SpecError::new(key, message));
    }
    let Some(alternation) = &cell.alternation else { return Ok(()) };
    if let Some(obstacle) = alternation::obstacle(spec, cell) {
        let message = format!("the arms of {} cannot take turns: {obstacle}", cell.id);
        return Err(SpecError::new("alternate", message));
    }
    slice_ns(alternation.slice_ns)?;
    level(Level::Permutations, i64::from(alternation.permutations)).map(|_| ())
}

/// The arms of a cell are arms of the study, the baseline is one of them, and there is another.
fn cell_arms(spec: &StudySpec, cell: &CellSpec) -> Result<(), SpecError> {
    let wrong = |message: String| Err(SpecError::new("arms", message));
    if let Some(unknown) = cell.arms.iter().find(|name| spec.arms.iter().all(|arm| arm.name != **name)) {
        return wrong(format!("{} names an arm {unknown:?} that is not there", cell.id));
    }
    let own = spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).count();
    match spec.arms.first() {
        Some(baseline) if !cell.has_arm(&baseline.name) => {
            wrong(format!("{} lacks the baseline {:?}", cell.id, baseline.name))
        }
        _ if own < 2 => wrong(format!("{} has the baseline alone", cell.id)),
        _ => Ok(()),
    }
}

fn published(spec: &StudySpec) -> Result<(), SpecError> {
    let wrong = |message: String| Err(SpecError::new("published", message));
    if spec.published.len() > PUBLISHED_MAX {
        return wrong(format!("{} figures; at most {PUBLISHED_MAX} are allowed", spec.published.len()));
    }
    for claim in &spec.published {
        if spec.cells.iter().all(|cell| cell.id != claim.cell_id) {
            return wrong(format!("{} stands beside a cell {:?} that is not there", claim.id, claim.cell_id));
        }
        if claim.ratio.is_some_and(|ratio| !ratio.is_finite() || ratio <= 0.0) {
            return wrong(format!("{} has a ratio that is none", claim.id));
        }
    }
    Ok(())
}

fn arms(spec: &StudySpec) -> Result<(), SpecError> {
    if !(2..=ARMS_MAX).contains(&spec.arms.len()) {
        let message = format!(
            "a study needs a baseline and from 1 to {} other arms; this one has {} in all",
            ARMS_MAX - 1,
            spec.arms.len()
        );
        return Err(SpecError::new("arm", message));
    }
    let mut names = BTreeSet::new();
    for arm in &spec.arms {
        name("arm.name", &arm.name)?;
        if !names.insert(&arm.name) {
            return Err(SpecError::new("arm.name", format!("two arms are named {:?}", arm.name)));
        }
        match &arm.subject {
            Subject::Weir { driver: chosen, arguments: words, .. } => {
                driver(chosen)?;
                arguments(words)?;
            }
            Subject::Command { argv } => command(argv)?,
            // What these may do depends on the cell.
            Subject::Gateway(_) | Subject::Storage(_) | Subject::Fio { .. } => {}
        }
    }
    Ok(())
}

/// Names become parts of file names and table heads.
pub(crate) fn name(key: &str, name: &str) -> Result<(), SpecError> {
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.+".contains(symbol);
    if !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) && !name.starts_with(['.', '-']) {
        return Ok(());
    }
    let message = format!(
        "{name:?} is not a name; it must be 1 to 64 letters, digits, `-`, `_`, `.` or `+`, and not begin with `.` or `-`"
    );
    Err(SpecError::new(key, message))
}

pub(crate) fn driver(driver: &str) -> Result<(), SpecError> {
    if DRIVERS.contains(&driver) {
        return Ok(());
    }
    let message = match driver {
        "auto" => "an arm must name its driver; `auto` would leave open what was measured".to_owned(),
        other => format!("there is no driver {other:?}; there are {}", DRIVERS.join(", ")),
    };
    Err(SpecError::new("arm.driver", message))
}

/// Refuses cells with more connections than the arm's driver can name.
pub(crate) fn descriptors(driver: &str, cells: &[CellSpec]) -> Result<(), SpecError> {
    if driver != "select" {
        return Ok(());
    }
    let most = |cell: &CellSpec| {
        SELECT_DESCRIPTORS.saturating_sub(DESCRIPTORS_BESIDE + DESCRIPTORS_PER_WORKER * cell.workers)
    };
    let asked = |cell: &CellSpec| cell.connections.saturating_add(cell.idle_connections);
    let Some(cell) = cells.iter().find(|cell| asked(cell) > most(cell)) else {
        return Ok(());
    };
    let message = format!(
        "select watches descriptors below {SELECT_DESCRIPTORS}, which leaves {} for connections, and {} has {} (idle \
         ones included); use poll or epoll, or cells with fewer",
        most(cell),
        cell.id,
        asked(cell)
    );
    Err(SpecError::new("arm.driver", message))
}

pub(crate) fn command(argv: &[String]) -> Result<(), SpecError> {
    if argv.first().is_none_or(String::is_empty) {
        return Err(SpecError::new("arm.command", "the command is empty; it must name a program".to_owned()));
    }
    if !argv.iter().any(|word| word.contains("{port}")) {
        let message = "no word of the command holds {port}, so the server cannot be told where to listen";
        return Err(SpecError::new("arm.command", message.to_owned()));
    }
    Ok(())
}

/// Further words of `weir serve`: not too many, and none the laboratory says itself.
pub(crate) fn arguments(words: &[String]) -> Result<(), SpecError> {
    if words.len() > ARGUMENTS_MAX {
        let message = format!("{} words; at most {ARGUMENTS_MAX} are allowed", words.len());
        return Err(SpecError::new("arm.arguments", message));
    }
    let is_taken = |word: &&String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        ARGUMENTS_TAKEN.contains(&name)
    };
    match words.iter().find(is_taken) {
        Some(word) => {
            let message = format!(
                "{word:?} is what the laboratory says itself, from the arm's and the cell's own keys"
            );
            Err(SpecError::new("arm.arguments", message))
        }
        None => Ok(()),
    }
}

/// What a response carries, from its name.
pub(crate) fn content(text: &str) -> Result<Content, SpecError> {
    text.parse::<Content>().map_err(|error| {
        let message = format!("{text:?} is none: {error}");
        SpecError::new("content", message)
    })
}

/// Length of a content, as message size.
pub(crate) fn content_bytes(content: Content) -> u32 {
    u32::try_from(content.len()).unwrap_or(u32::MAX)
}

pub(crate) fn within(key: &str, value: f64, range: &RangeInclusive<f64>) -> Result<(), SpecError> {
    if range.contains(&value) {
        return Ok(());
    }
    let message = format!("{value} is out of range; it must be from {} to {}", range.start(), range.end());
    Err(SpecError::new(key, message))
}

fn check_cell(cell: &CellSpec) -> Result<(), SpecError> {
    if let Some(storage) = &cell.storage {
        storage::cell(cell, storage)?;
    }
    for (which, value) in [
        (Level::Connections, cell.connections),
        (Level::Depth, cell.depth),
        (Level::MessageBytes, cell.message_bytes),
        (Level::Workers, cell.workers),
        (Level::IdleConnections, cell.idle_connections),
        (Level::Blocks, cell.blocks),
    ] {
        level(which, i64::from(value))?;
    }
    let bytes = u64::from(cell.connections) * u64::from(cell.depth) * u64::from(cell.message_bytes);
    if bytes > BYTES_IN_FLIGHT_MAX {
        let message = format!(
            "{} has {} MiB in flight (connections x depth x message_bytes); at most {} MiB are allowed",
            cell.id,
            bytes >> 20,
            BYTES_IN_FLIGHT_MAX >> 20
        );
        return Err(SpecError::new("factors", message));
    }
    if let Some(http) = &cell.http {
        check_http(cell, http)?;
    }
    if let Some(orders) = &cell.orders {
        orders::cell(cell, orders)?;
    }
    if !WINDOW_NS.contains(&cell.window_ns) {
        return Err(SpecError::new("window", "it must be from 100ms to 10min".to_owned()));
    }
    if !WARMUP_NS.contains(&cell.warmup_ns_max) {
        return Err(SpecError::new("warmup_max", "it must be from 0s to 1min".to_owned()));
    }
    match cell.load {
        LoadMode::Closed => Ok(()),
        LoadMode::Open { rate_per_second, .. } => within("latency.rate", rate_per_second, &RATE_PER_SECOND),
        LoadMode::OpenShare { share, .. } => within("latency.share", share, &SHARE),
    }
}

fn check_http(cell: &CellSpec, http: &HttpCell) -> Result<(), SpecError> {
    let content = content(&http.content)?;
    if content_bytes(content) != cell.message_bytes {
        let message =
            format!("{} says {} bytes, and {content} has {}", cell.id, cell.message_bytes, content.len());
        return Err(SpecError::new("content", message));
    }
    if http.close && cell.depth > 1 {
        let message = format!("{} closes after each request, so that only one can be in flight", cell.id);
        return Err(SpecError::new("depth", message));
    }
    let lengths = [http.ramp_up_ns, http.connect_timeout_ns, http.response_timeout_ns];
    if lengths.iter().any(|length_ns| *length_ns > HTTP_LENGTH_NS_MAX) {
        let message = format!("{} has a ramp-up or a timeout of more than a minute", cell.id);
        return Err(SpecError::new("factors", message));
    }
    Ok(())
}

/// Identifier of a cell from its levels: `c100-d1-m64-closed`, `c100-d1-html-closed`, `c50-d1-b1024-reconnect-closed`,
/// `randread-b4096-qd1`.
pub fn cell_id(cell: &CellSpec) -> String {
    if let Some(storage) = &cell.storage {
        return storage::cell_id(cell, storage);
    }
    if let Some(orders) = &cell.orders {
        return orders::cell_id(cell, orders);
    }
    let what = match &cell.http {
        None => format!("m{}", cell.message_bytes),
        Some(http) => {
            let is_size = http.content.bytes().all(|symbol| symbol.is_ascii_digit());
            let content = if is_size { format!("b{}", http.content) } else { http.content.clone() };
            if http.close { format!("{content}-reconnect") } else { content }
        }
    };
    let mut id = format!("c{}-d{}-{what}", cell.connections, cell.depth);
    if cell.workers != 1 {
        id.push_str(&format!("-w{}", cell.workers));
    }
    if cell.idle_connections != 0 {
        id.push_str(&format!("-i{}", cell.idle_connections));
    }
    match cell.load {
        LoadMode::Closed => id.push_str("-closed"),
        LoadMode::Open { rate_per_second, .. } => id.push_str(&format!("-open{rate_per_second:.0}")),
        LoadMode::OpenShare { share, .. } => id.push_str(&format!("-open{:.0}pct", 100.0 * share)),
    }
    id
}
