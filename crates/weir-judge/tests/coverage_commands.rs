//! How often comparisons of commands are right on recorded runs: the page docs/coverage-commands.md, which `cargo xtask
//! coverage` draws, and a test that it is drawn by this tree.

use std::{
    collections::BTreeMap,
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use weir_judge::commands::{Judged, Pilot, conclude, planned};
use weir_record::{
    commands::{CommandArm, CommandRole, CommandRun, MeasuredBy, RunFigures, RunPhase},
    metric::Metric,
    verdict::Verdict,
};
use weir_stats::random::{Random, derived_seed};

/// Comparisons that are replayed of a recording, each of a kind.
const REPLAYS: u32 = 1_000;

/// Time that a comparison has, as `--budget` has it by default.
const BUDGET_NS: u64 = 60_000_000_000;

/// Share of a difference that matters.
const MARGIN: f64 = 0.01;

/// Pairs of a pilot.
const PILOT_PAIRS: usize = 12;

/// What is planted.
const PLANTED: f64 = 0.03;

const HEAD: &str = "# How often comparisons of commands are right

`cargo xtask coverage` draws this page from the recordings of the tree; a test fails where another one would be drawn.
A recording ([format](formats/recording.md#recordings-of-commands)) has the CPU time of some thousand runs of one
program that `weir compare` compared with itself, three in a pair, in the order in which they ran.

A replay begins at a random pair. The pairs from there on are the pilot, which plans, and then the comparison, so that
neighbours stay neighbours; past the last pair the first one follows. In each pair a random order says which of its
three runs was the baseline, the baseline again, and the command. For *finds 3 %* the runs of the command cost 3 % more.
The judge of `weir compare` then decides, with a budget of 60 s.

Columns:

- *pairs*: that were recorded, and that a replay compared (the middle one).
- *called*: replays in which a difference is called between runs of one program. At most 1 % is right.
- *equal*: replays in which the runs of one program are called equal within 1 %.
- *finds 3 %*: replays that call a difference of 3 %, planted in every run, in its direction. Behind `±` is the
  error of that share, two standard deviations. It does not know that replays of one recording share its pairs.
";

const ROWS: &str = "
| recording | pairs | compared | replays | called | equal | finds 3 % |
| --- | --- | --- | --- | --- | --- | --- |
";

const ORIGINS: &str = "
## Where the recordings are from

| recording | command | machine, kernel, program, time |
| --- | --- | --- |
";

/// Runs of one program: CPU time by pair and place.
struct Recorded {
    name: String,
    facts: BTreeMap<String, String>,
    pairs: Vec<[u64; 3]>,
}

impl Recorded {
    fn parse(name: &str, text: &str) -> Option<Self> {
        let rest = text.strip_prefix("# weir-command-recording 1\n")?;
        let (mut facts, mut pairs) = (BTreeMap::new(), Vec::new());
        for line in rest.lines() {
            if let Some((key, value)) = line.strip_prefix("# ").and_then(|fact| fact.split_once(": ")) {
                facts.insert(key.to_owned(), value.to_owned());
                continue;
            }
            let cpu: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
            pairs.push(cpu.try_into().ok()?);
        }
        Some(Self { name: name.to_owned(), facts, pairs })
    }

    fn fact(&self, key: &str) -> &str {
        self.facts.get(key).map_or("", String::as_str)
    }

    fn pair_ns(&self) -> u64 {
        self.fact("pair_ns").parse().unwrap_or(u64::MAX)
    }
}

/// Every recording of the tree, by name.
fn all() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded-commands");
    let entries = |folder: &Path| {
        let found = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let files = entries(&folder).into_iter().flat_map(|sitting| entries(&sitting));
    let read = |file: PathBuf| {
        let shown = file.strip_prefix(&folder).ok()?.with_extension("").to_str()?.to_owned();
        let text = fs::read_to_string(&file).expect("a recording can be read");
        Some(Recorded::parse(&shown, &text).unwrap_or_else(|| panic!("{shown} is no recording")))
    };
    files.filter_map(read).collect()
}

/// The baseline, the baseline again, and the command.
const SLOTS: [(u32, bool); 3] = [(0, false), (0, true), (1, false)];

/// Pairs from a place of a recording on, with the command's runs so many times as expensive.
fn runs(
    recorded: &Recorded,
    from: usize,
    pairs: usize,
    phase: RunPhase,
    times: f64,
    random: &mut Random,
) -> Vec<CommandRun> {
    let mut all = Vec::with_capacity(3 * pairs);
    for pair in 0..pairs {
        let costs = recorded.pairs[(from + pair) % recorded.pairs.len()];
        let mut slots = SLOTS;
        random.shuffle(&mut slots);
        for (place, ((command, repeat), cpu_ns)) in (0..).zip(slots.into_iter().zip(costs)) {
            let user_ns = if command == 0 { cpu_ns } else { (cpu_ns as f64 * times) as u64 };
            let cost = RunFigures { user_ns, ..RunFigures::default() };
            let pair = u32::try_from(pair).expect("pairs are few");
            all.push(CommandRun { phase, pair, place, command, repeat, cost, ..CommandRun::default() });
        }
    }
    all
}

/// One comparison: pairs, and the verdict on CPU time.
fn replayed(recorded: &Recorded, seed: u64, times: f64) -> (u32, Verdict) {
    let mut random = Random::seeded(seed);
    let from = random.below(recorded.pairs.len() as u64) as usize;
    let pilot = runs(recorded, from, PILOT_PAIRS, RunPhase::Pilot, times, &mut random);
    let pairs_fitting = u32::try_from(BUDGET_NS / recorded.pair_ns()).unwrap_or(u32::MAX);
    let pilot = Pilot {
        commands: 2,
        runs: &pilot,
        pairs: PILOT_PAIRS as u32,
        units_fitting: pairs_fitting.saturating_sub(PILOT_PAIRS as u32),
        pairs_min: None,
        unit_pairs: None,
        equivalence_margin: MARGIN,
    };
    let pairs = planned(&pilot).pairs.min((recorded.pairs.len() - PILOT_PAIRS) as u32);
    let from = from + PILOT_PAIRS;
    let runs = runs(recorded, from, pairs as usize, RunPhase::Measured, times, &mut random);
    let arm = |name: &str, role| CommandArm { name: name.to_owned(), role, ..CommandArm::default() };
    let found = conclude(&Judged {
        commands: &[arm("one", CommandRole::Baseline), arm("other", CommandRole::Candidate)],
        runs: &runs,
        pairs,
        unit_pairs: None,
        is_interrupted: false,
        is_ended_by_server: false,
        equivalence_margin: MARGIN,
        ignore_failure: false,
        is_served: false,
        limit_ns: BUDGET_NS,
        measured_by: &MeasuredBy::default(),
        thresholds: &[],
        seen: &[],
        partings: &[],
    });
    let mut rows = found.effects.comparisons().filter(|row| row.metric == Metric::CommandCpu);
    (pairs, rows.next().map_or(Verdict::Inconclusive, |row| row.verdict))
}

/// Many comparisons of a kind.
struct Replays {
    pairs: u32,
    verdicts: Vec<Verdict>,
}

impl Replays {
    fn of(recorded: &Recorded, times: f64) -> Self {
        let each = (0..REPLAYS).map(|number| replayed(recorded, derived_seed(7, number.into()), times));
        let (mut pairs, verdicts): (Vec<u32>, Vec<Verdict>) = each.unzip();
        pairs.sort_unstable();
        Self { pairs: pairs[pairs.len() / 2], verdicts }
    }

    /// Share of some verdicts with its error.
    fn share(&self, of: &[Verdict]) -> (f64, f64) {
        let all = self.verdicts.len() as f64;
        let share = self.verdicts.iter().filter(|it| of.contains(it)).count() as f64 / all;
        (share, 2.0 * (share * (1.0 - share) / all).sqrt())
    }
}

fn percent((share, error): (f64, f64)) -> String {
    format!("{:.1} ± {:.1} %", 100.0 * share, 100.0 * error)
}

fn page(recorded: &[Recorded]) -> String {
    if recorded.is_empty() {
        return [HEAD, "\nNo recording is in the tree yet.\n"].concat();
    }
    let (mut rows, mut origins) = (String::new(), String::new());
    for it in recorded {
        let (alike, planted) = (Replays::of(it, 1.0), Replays::of(it, 1.0 + PLANTED));
        // Writing into a String cannot fail.
        let _ = writeln!(
            rows,
            "| {} | {} | {} | {REPLAYS} | {} | {} | {} |",
            it.name,
            it.pairs.len(),
            alike.pairs,
            percent(alike.share(&[Verdict::Better, Verdict::Worse])),
            percent(alike.share(&[Verdict::Equivalent])),
            percent(planted.share(&[Verdict::Worse])),
        );
        let machine = ["cpu", "cpus", "kernel", "weir", "taken"].map(|key| it.fact(key));
        let _ = writeln!(
            origins,
            "| {} | `{}` | {} |",
            it.name,
            it.fact("command").replace('|', "/"),
            machine.join(", ").replace('|', "/")
        );
    }
    [HEAD, ROWS, &rows, ORIGINS, &origins].concat()
}

#[test]
fn the_page_is_drawn_by_this_tree_from_these_recordings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coverage-commands.md");
    let drawn = page(&all());
    if env::var_os("WEIR_WRITE_COVERAGE").is_some() {
        fs::write(&path, &drawn).expect("the page can be written");
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let differs = drawn.lines().zip(stored.lines()).find(|(one, other)| one != other);
    assert!(
        stored == drawn,
        "docs/coverage-commands.md is older than the recordings or the rule; `cargo xtask coverage` draws it: \
         {differs:?}"
    );
}

/// A program whose runs scatter so much, with slow changes that all runs of a pair share.
fn made(scatter: f64) -> Recorded {
    let mut random = Random::seeded(3);
    let mut shared = 0.0;
    let pairs = (0..600).map(|_| {
        shared = 0.9 * shared + 0.05 * random.normal();
        [(); 3].map(|()| (5e7 * (shared + scatter * random.normal()).exp()) as u64)
    });
    let pairs = pairs.collect();
    let facts = BTreeMap::from([("pair_ns".to_owned(), "200000000".to_owned())]);
    Recorded { name: "made".to_owned(), facts, pairs }
}

#[test]
fn replays_of_a_quiet_program_find_what_is_planted_and_call_nothing_else() {
    let count = |recorded: &Recorded, times: f64, verdict: Verdict| {
        (0..40).filter(|seed| replayed(recorded, *seed, times).1 == verdict).count()
    };
    let quiet = made(0.005);
    assert!(count(&quiet, 1.0, Verdict::Equivalent) > 30);
    assert!(count(&quiet, 1.03, Verdict::Worse) >= 39);
    assert!(count(&quiet, 0.97, Verdict::Better) >= 39, "in its direction");
    let wild = made(0.5);
    assert!(count(&wild, 1.03, Verdict::Worse) < 20, "what scatters so much hides it");
}

#[test]
fn a_recording_is_text_with_facts_and_pairs() {
    let text = "# weir-command-recording 1\n# program: sort\n# pair_ns: 5\n1 2 3\n4 5 6\n";
    let found = Recorded::parse("a/sort-quiet", text).expect("it is one");
    assert_eq!((found.fact("program"), found.pair_ns()), ("sort", 5));
    assert_eq!(found.pairs, [[1, 2, 3], [4, 5, 6]]);
    for wrong in ["", "# weir-recording 1\n1 2 3\n", "# weir-command-recording 1\n1 2\n"] {
        assert!(Recorded::parse("x", wrong).is_none(), "{wrong:?}");
    }
}
