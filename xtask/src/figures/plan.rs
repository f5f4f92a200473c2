//! How much there is to run and how long that takes, before it is run. Reads of a study file only what decides that;
//! what a file means is the laboratory's business. No I/O of its own.

use std::{collections::BTreeMap, fmt::Write, time::Duration};

use serde::Deserialize;
use toml::Value;

use super::{
    bystanders, catalog::Group, counts, gateway_bystanders, gateway_cost, gateway_journal, gateway_replay,
    http_idle, memory, order_benches, session::Laboratory, wrk,
};

/// Name of the built-in study.
pub const QUICK: &str = "quick";

/// The built-in study as a file would have it.
pub const QUICK_AS_FILE: &str = r#"
exploratory_blocks = 6
window = "800ms"
warmup_max = "1s"
time_cap = "215s"
latency = { share = 0.6 }
factors = { connections = [10, 100, 1000] }
arm = [{ name = "epoll" }, { name = "uring" }]
"#;

/// Starting and stopping two processes, connecting, and reading the machine before and after.
const AROUND_A_TRIAL: Duration = Duration::from_millis(150);

/// What a trial of storage takes beyond that: its job begins before the window and ends after it, and fio takes its
/// time to start.
const AROUND_A_JOB: Duration = Duration::from_millis(700);

/// The ramp of a storage job when the file says nothing.
const RAMP: Duration = Duration::from_millis(300);

/// What a study file has when it says nothing.
const BLOCKS: u64 = 12;
const EXPLORATORY_BLOCKS_MAX: u64 = 6;
const WINDOW: Duration = Duration::from_secs(1);
const WARMUP_MAX: Duration = Duration::from_millis(800);
const TIME_CAP: Duration = Duration::from_secs(3600);

/// The two contents that have names; the page is a little smaller.
const IMAGE_BYTES: u64 = 148 << 10;
const PAGE_BYTES: u64 = 1 << 10;

/// Trials and time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    /// Trials of the schedule; blocks that noise makes run again are not among them.
    pub trials: u64,
    /// Time they take when every warm-up goes to its cap.
    pub time: Duration,
    /// Time after which no block starts, repeated ones included.
    pub time_max: Duration,
}

impl Plan {
    /// So many trials of this length, none of them repeated.
    pub fn of_trials(trials: u64, length: Duration) -> Self {
        let time = (length + AROUND_A_TRIAL).mul_f64(trials as f64);
        Self { trials, time, time_max: time }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.trials += other.trials;
        self.time += other.time;
        self.time_max += other.time_max;
    }
}

#[derive(Deserialize)]
struct File {
    protocol: Option<String>,
    blocks: Option<u64>,
    exploratory_blocks: Option<u64>,
    window: Option<String>,
    warmup_max: Option<String>,
    time_cap: Option<String>,
    #[serde(default)]
    factors: BTreeMap<String, Vec<Value>>,
    in_flight_max_mib: Option<u64>,
    #[serde(default)]
    declared: Vec<toml::Table>,
    #[serde(default)]
    declare_all: bool,
    latency: Option<toml::Table>,
    arm: Vec<toml::Table>,
}

/// What a study takes.
pub fn of_study(text: &str) -> Result<Plan, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let length = |written: &Option<String>, default| written.as_deref().map_or(Ok(default), length);
    let blocks = file.blocks.unwrap_or(BLOCKS);
    let exploratory_blocks = file.exploratory_blocks.unwrap_or(blocks.min(EXPLORATORY_BLOCKS_MAX));
    let cells = cells(&file);
    let claims = if file.declare_all { cells } else { 1 + file.declared.len() as u64 };
    // Each claim has its equal-rate cell, whose rate one pilot block finds.
    let has_pilot = file.latency.as_ref().is_some_and(|latency| !latency.contains_key("rate"));
    let open_blocks = file.latency.as_ref().map_or(0, |_| exploratory_blocks + u64::from(has_pilot));
    let blocks = claims * (blocks + open_blocks) + cells.saturating_sub(claims) * exploratory_blocks;
    let is_storage = file.protocol.as_deref() == Some("storage");
    let (warmup, around) = if is_storage { (RAMP, AROUND_A_JOB) } else { (WARMUP_MAX, Duration::ZERO) };
    let trial = length(&file.warmup_max, warmup)? + length(&file.window, WINDOW)? + around;
    let plan = Plan::of_trials(blocks * (file.arm.len() as u64 + 1), trial);
    Ok(Plan { time_max: length(&file.time_cap, TIME_CAP)?.max(plan.time), ..plan })
}

/// Combinations of the factors' levels that may run.
fn cells(file: &File) -> u64 {
    let bytes_max = file.in_flight_max_mib.map_or(u64::MAX, |mib| mib << 20);
    let carried = |name: &str, default: u64| -> Vec<u64> {
        let levels = file.factors.get(name).map(|levels| levels.iter().map(bytes_or_number).collect());
        levels.unwrap_or(vec![default])
    };
    let [connections, depths] = [carried("connections", 100), carried("depth", 1)];
    // Of HTTP a message is the content of a response.
    let size = if file.factors.contains_key("content") { "content" } else { "message_bytes" };
    let sizes = carried(size, 64);
    let in_flight = connections.iter().flat_map(|connections| {
        let of_depth = depths.iter().map(move |depth| connections * depth);
        of_depth.flat_map(|messages| sizes.iter().map(move |bytes| messages * bytes))
    });
    let loads = in_flight.filter(|bytes| *bytes <= bytes_max).count() as u64;
    let others =
        ["workers", "idle_connections", "close", "engine", "pattern", "block_bytes", "background_depth"];
    loads * others.map(|name| file.factors.get(name).map_or(1, Vec::len) as u64).iter().product::<u64>()
}

/// A level as a number: what has a name is a content, whose bytes in flight are what decides.
fn bytes_or_number(level: &Value) -> u64 {
    match level {
        Value::String(name) if name == "image" => IMAGE_BYTES,
        Value::String(_) => PAGE_BYTES,
        level => level.as_integer().and_then(|number| u64::try_from(number).ok()).unwrap_or(0),
    }
}

/// A length of time as study files write it.
fn length(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("{text:?} is no length of time")),
    };
    let number: f64 = number.trim().parse().map_err(|_| format!("{text:?} is no length of time"))?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| format!("{text:?}: {error}"))
}

/// One line for each group: what it takes, and what of it is left to run.
pub fn page(laboratory: &Laboratory, groups: &[&Group]) -> Result<String, String> {
    let minutes = |time: Duration| time.as_secs_f64() / 60.0;
    let mut page = String::from("group       trials  minutes  at most    left\n");
    let mut line = |name: &str, all: Plan, left: Plan| {
        writeln!(
            page,
            "{name:<10} {:>7} {:>8.1} {:>8.1} {:>7.1}",
            all.trials,
            minutes(all.time),
            minutes(all.time_max),
            minutes(left.time)
        )
        .map_err(|error| error.to_string())
    };
    let (mut sum, mut sum_left) = (Plan::default(), Plan::default());
    let mut seen: Vec<String> = Vec::new();
    for group in groups {
        let (mut all, mut left) = match group.name {
            "memory" => memory::plan(laboratory),
            "http-idle" => http_idle::plan(laboratory),
            "http-bystanders" => bystanders::plan(laboratory),
            "http-wrk" => wrk::plan(laboratory),
            "gateway-cost" => gateway_cost::plan(laboratory),
            "gateway-journal" => gateway_journal::plan(laboratory),
            "gateway-replay" => gateway_replay::plan(laboratory),
            "gateway-bystanders" => gateway_bystanders::plan(laboratory),
            "order-benches" => order_benches::plan(laboratory),
            _ => Default::default(),
        };
        for run in counts::runs_of(laboratory, group) {
            // A study that several groups use runs once.
            if seen.contains(&run.folder) {
                continue;
            }
            let (plan, has_ended) = laboratory.plan(&run)?;
            all.add(plan);
            if !has_ended {
                left.add(plan);
            }
            seen.push(run.folder);
        }
        line(group.name, all, left)?;
        sum.add(all);
        sum_left.add(left);
    }
    line("all", sum, sum_left)?;
    page.push_str("at most: with every block that noise makes run again, up to the time caps of the studies");
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_blocks_times_arms_and_the_repeated_baseline() {
        let quick = of_study(QUICK_AS_FILE).expect("it is right");
        // 12 + 6 + 6 blocks, 6 of the equal-rate cell and its pilot, of three trials each.
        assert_eq!(quick.trials, 93);
        assert_eq!(quick.time, Duration::from_millis(93 * 1950));
        assert_eq!(quick.time_max, Duration::from_secs(215));
    }

    #[test]
    fn what_a_file_leaves_out_is_what_its_documentation_says() {
        let page = std::fs::read_to_string(crate::workspace_root().join("docs/study-file.md"));
        let page = page.expect("the page is there");
        let documented = |key: &str| {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |"))).expect("a row");
            length(row.split('"').nth(1).expect("a length of time"))
        };
        assert_eq!(documented("window"), Ok(WINDOW));
        assert_eq!(documented("warmup_max"), Ok(WARMUP_MAX));
        assert_eq!(documented("time_cap"), Ok(TIME_CAP));
    }

    #[test]
    fn cells_beyond_the_bytes_in_flight_are_not_counted_and_declared_ones_have_all_blocks() {
        let text = r#"
            blocks = 8
            exploratory_blocks = 4
            window = "0.5s"
            warmup_max = "250ms"
            in_flight_max_mib = 256
            declare_all = true
            arm = [{}, {}]
            [factors]
            connections = [1, 4000]
            depth = [1, 16]
            message_bytes = [64, 65536]
        "#;
        // 4000 connections with 16 messages of 64 KiB are too many.
        let all = of_study(text).expect("it is right");
        assert_eq!((all.trials, all.time), (7 * 8 * 3, Duration::from_millis(7 * 8 * 3 * 900)));
        let one = of_study(&text.replace("declare_all = true", "")).expect("it is right");
        assert_eq!(one.trials, (8 + 6 * 4) * 3);
    }

    #[test]
    fn contents_and_ways_to_connect_multiply_the_cells() {
        let text = r#"
            protocol = "http"
            blocks = 8
            exploratory_blocks = 4
            arm = [{}, {}]
            [factors]
            content = ["html", "image", 64]
            close = [false, true]
        "#;
        let all = of_study(text).expect("it is right");
        assert_eq!(all.trials, (8 + 5 * 4) * 3);
        // A thousand images are more than 100 MiB in flight, a thousand pages are not.
        let few = format!("in_flight_max_mib = 100\n{text}\nconnections = [1000]");
        assert_eq!(of_study(&few).expect("it is right").trials, (8 + 3 * 4) * 3);
    }

    #[test]
    fn engines_and_depths_multiply_the_cells_of_storage() {
        let text = r#"
            protocol = "storage"
            blocks = 6
            declare_all = true
            arm = [{}, {}]
            [factors]
            engine = ["pread", "libaio"]
            depth = [1, 32]
            block_bytes = [4096]
        "#;
        let all = of_study(text).expect("it is right");
        assert_eq!((all.trials, all.time), (4 * 6 * 3, Duration::from_millis(4 * 6 * 3 * 2150)));
    }

    #[test]
    fn lengths_of_time_are_read_as_in_study_files() {
        assert_eq!(length("400ms"), Ok(Duration::from_millis(400)));
        assert_eq!(length("3.5min"), Ok(Duration::from_secs(210)));
        assert!(length("3 parsecs").is_err());
    }
}
