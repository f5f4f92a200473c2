//! How often the decision rule is right on recorded rounds: the page docs/coverage.md, which `cargo xtask coverage`
//! writes, and a test that the page is up to date.

#[expect(dead_code, reason = "of what it has, only the rounds of the oldest recording are read")]
mod replayed;

mod recordings;
mod windows;

use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path};

use recordings::{AGAIN, BASELINE, Recorded, values};
use weir_stats::random::Random;
use windows::Windows;

/// Rounds of a window: for a quick look, for a claim, and for a long study.
const ROUNDS: [usize; 3] = [12, 24, 48];

const HEAD: &str = "# How often the rule is right

`cargo xtask coverage` draws this page from the recordings of the tree; a test fails where another one would be drawn.
The recordings ([format](formats/recording.md)) are rounds of real machines, some of them quiet and some beside other
work (`hog`). Every run is cut into windows of neighbouring rounds, one window from each round on, as a study that had
begun there would have met them. The judge computes the value of each round, and the rule that decides everywhere gives
the interval of a window.

Columns:

- *windows*: how many there are, and how many of them do not overlap: neighbouring windows share rounds, and a share
  of few separate windows is a rough one.
- *holds*: windows whose 99 % interval, together with that of all other rounds of the run, holds the difference of the
  two means. 99 % is right; less says that rounds depend on each other in a way that the interval does not know.
- *called*: windows in which a difference is called between runs of one program. 1 % is right.
- *finds 2 %*, *finds 3 %*: windows that call a difference of that size, planted in every round, in its direction.
- *width*: of the interval over that of independent rounds (1 where the rule takes them for independent).
";

const DIFFERENT: &str = "
## io_uring over epoll

| recording | cell | rounds | effect | n | windows | holds | width |
| --- | --- | --- | --- | --- | --- | --- | --- |
";

const ALIKE: &str = "
## One program against itself

The baseline runs three times in a round, and each of its runs is once what is compared with the other two.

| recording | cell | rounds | n | windows | holds | called | finds 2 % | finds 3 % | width |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

const ORIGINS: &str = "
## Where the recordings are from

| recording | machine, kernel, program, time |
| --- | --- |
";

/// The whole page.
fn page(recorded: &[Recorded]) -> String {
    let different: String = recorded.iter().map(different).collect();
    let mut alike = String::new();
    let mut sums: BTreeMap<usize, Windows> = BTreeMap::new();
    for it in recorded {
        for (rounds, used, windows) in against_itself(it) {
            alike += &alike_row(&it.name, &it.cell.id, &used.to_string(), rounds, &windows);
            let sum = sums.entry(rounds).or_default();
            *sum = sum.and(windows);
        }
    }
    for (rounds, windows) in &sums {
        alike += &alike_row("all", "", "", *rounds, windows);
    }
    let different = if different.is_empty() {
        "\n## io_uring over epoll\n\nNo recording of both is in the tree yet.\n".to_owned()
    } else {
        [DIFFERENT, &different].concat()
    };
    [HEAD, &different, ALIKE, &alike, ORIGINS, &origins(recorded)].concat()
}

/// A row for each recording.
fn origins(recorded: &[Recorded]) -> String {
    let mut rows: Vec<String> =
        recorded.iter().map(|it| format!("| {} | {} |\n", it.name, it.origin.replace('|', "/"))).collect();
    rows.dedup();
    rows.concat()
}

/// Rows of every arm that runs another program than the baseline.
fn different(recorded: &Recorded) -> String {
    let Recorded { name, cell, .. } = recorded;
    let mut text = String::new();
    let (Some(one), Some(other)) = (cell.run(BASELINE, false), cell.run(BASELINE, true)) else { return text };
    for (place, run) in
        cell.runs.iter().enumerate().filter(|(_, run)| run.arm != BASELINE && run.arm != AGAIN)
    {
        let values = values(cell, place, [one, other]);
        let effect = (values.iter().sum::<f64>() / values.len() as f64).exp();
        for rounds in ROUNDS {
            let windows = Windows::of(&values, rounds);
            if windows.count == 0 {
                continue;
            }
            // Writing into a String cannot fail.
            let _ = writeln!(
                text,
                "| {name} | {} {} | {} | {effect:.4} | {rounds} | {} ({}) | {} | {:.2} |",
                cell.id,
                run.arm,
                values.len(),
                windows.count,
                windows.apart,
                percent(windows.share(windows.hold)),
                windows.width()
            );
        }
    }
    text
}

/// Rounds of a window, rounds compared, and windows of all three ways to compare a program with itself.
fn against_itself(recorded: &Recorded) -> Vec<(usize, usize, Windows)> {
    let cell = &recorded.cell;
    let runs = [cell.run(BASELINE, false), cell.run(BASELINE, true), cell.run(AGAIN, false)];
    let [Some(one), Some(other), Some(again)] = runs else { return Vec::new() };
    let labelings = [(again, [one, other]), (one, [other, again]), (other, [again, one])];
    let all = labelings.map(|(compared, baselines)| values(cell, compared, baselines));
    let of = |rounds: usize| {
        let sum = all.iter().map(|values| Windows::of(values, rounds)).fold(Windows::default(), Windows::and);
        (rounds, all[0].len(), sum)
    };
    ROUNDS.map(of).into_iter().filter(|(_, _, windows)| windows.count > 0).collect()
}

fn alike_row(name: &str, cell: &str, used: &str, rounds: usize, windows: &Windows) -> String {
    let shares = [windows.hold, windows.called, windows.found[0], windows.found[1]];
    let [hold, called, two, three] = shares.map(|count| percent(windows.share(count)));
    let (count, apart, width) = (windows.count, windows.apart, windows.width());
    format!(
        "| {name} | {cell} | {used} | {rounds} | {count} ({apart}) | {hold} | {called} | {two} | {three} | \
         {width:.2} |\n"
    )
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[test]
fn the_page_is_drawn_by_this_tree_from_these_recordings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coverage.md");
    let drawn = page(&recordings::all());
    if env::var_os("WEIR_WRITE_COVERAGE").is_some() {
        fs::write(&path, &drawn).expect("the page can be written");
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let differs = drawn.lines().zip(stored.lines()).find(|(one, other)| one != other);
    assert!(
        stored == drawn,
        "docs/coverage.md is older than the recordings or the rule; `cargo xtask coverage` draws it: {differs:?}"
    );
}

#[test]
fn windows_of_independent_rounds_hold_and_those_of_a_run_that_moves_do_not() {
    let mut random = Random::seeded(5);
    let still: Vec<f64> = (0..2_000).map(|_| 0.02 * random.normal()).collect();
    let of_still = Windows::of(&still, 24);
    assert_eq!((of_still.count, of_still.apart), (1_977, 83));
    assert!(of_still.share(of_still.hold) > 0.97, "{of_still:?}");
    assert!(of_still.share(of_still.called) < 0.04, "{of_still:?}");
    assert!(
        of_still.found[1] >= of_still.found[0] && of_still.share(of_still.found[1]) > 0.99,
        "{of_still:?}"
    );
    let moving: Vec<f64> =
        (0..).zip(&still).map(|(at, value)| value + 0.1 * f64::from(at / 100 % 2)).collect();
    let of_moving = Windows::of(&moving, 24);
    assert!(of_moving.share(of_moving.hold) < 0.5, "{of_moving:?}");
    assert_eq!(
        Windows::of(&still[..47], 24),
        Windows::default(),
        "the rest would be shorter than the window"
    );
}

#[test]
fn a_program_that_costs_two_per_cent_more_is_seen_in_the_values_of_its_rounds() {
    let mut cell = recordings::all().remove(0).cell;
    let plain = values(&cell, 2, [0, 1]);
    for round in &mut cell.rounds {
        for slice in &mut round.slices[2] {
            slice.server_cpu_ns += slice.server_cpu_ns / 50;
        }
    }
    let planted = values(&cell, 2, [0, 1]);
    assert!(plain.len() > 300 && planted.len() == plain.len(), "{} {}", plain.len(), planted.len());
    let moved = planted.iter().zip(&plain).map(|(one, other)| one - other);
    assert!(moved.into_iter().all(|it| (it - 1.02_f64.ln()).abs() < 1e-6));
}

#[test]
fn a_cell_at_a_rate_has_a_value_for_each_round() {
    let mut cell = recordings::all().remove(0).cell;
    cell.rounds.truncate(20);
    cell.rate_per_second = Some(50_000.0);
    let found = values(&cell, 2, [0, 1]);
    cell.rate_per_second = None;
    assert_eq!(found, values(&cell, 2, [0, 1]));
    assert!(!found.is_empty());
}
