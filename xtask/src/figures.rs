//! The figures the project holds itself against, by one command that can be interrupted and called again:
//! `cargo xtask figures`.
//!
//! Says what it is going to run and how long that takes, builds the release binary, the controls and the peers, runs
//! one study after the other into one folder, and ends with one table. Every number comes from the exported records of
//! those studies; what is asked stands in `catalog` as data. Verdicts are the laboratory's; a ratio that it does not
//! compare, or gives no verdict, is held against its goal with its interval and called no more than that.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

mod bystanders;
mod catalog;
mod children;
mod counts;
mod gateway_bystanders;
mod gateway_cost;
mod gateway_journal;
mod gateway_replay;
mod goal;
mod http_idle;
mod interleaved;
mod memory;
mod nuisance;
mod order_benches;
mod order_servers;
mod plan;
mod replayer;
mod sample;
mod session;
mod storage;
mod strangers;
mod wrk;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use catalog::{Figure, GROUPS, Group, Source};
use children::Children;
use goal::{Measured, Outcome};
use sample::Export;
use session::{Laboratory, Run, Stop};

const CODE_INTERRUPTED: u8 = 130;

/// One line of the table.
struct Row {
    figure: String,
    goal: String,
    measured: String,
    outcome: Outcome,
    command: String,
}

/// What was typed.
struct Options {
    out: Option<PathBuf>,
    only: Option<String>,
    rehearsal: bool,
    plan_only: bool,
}

/// Runs what is not there yet and prints the table.
pub fn run(root: &Path, words: &[&str]) -> ExitCode {
    let options = match options(words) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("figures: {error}");
            return ExitCode::from(2);
        }
    };
    let laboratory = match laboratory(root, &options) {
        Ok(laboratory) => laboratory,
        Err(error) => {
            eprintln!("figures: {error}");
            return ExitCode::FAILURE;
        }
    };
    let is_chosen = |group: &&Group| options.only.as_deref().is_none_or(|only| only == group.name);
    let groups: Vec<&Group> = GROUPS.iter().filter(is_chosen).collect();
    match plan::page(&laboratory, &groups) {
        Ok(page) => eprintln!("{page}"),
        Err(error) => {
            eprintln!("figures: {error}");
            return ExitCode::FAILURE;
        }
    }
    if options.plan_only {
        return ExitCode::SUCCESS;
    }
    if let Err(error) = laboratory.build() {
        eprintln!("figures: {error}");
        return ExitCode::from(if laboratory.children.is_interrupted() { CODE_INTERRUPTED } else { 1 });
    }
    let mut rows = Vec::new();
    let mut interrupted = false;
    for group in groups {
        eprintln!("== figures: {}", group.name);
        let (own, ended) = group_rows(&laboratory, group);
        rows.extend(own);
        if ended == Ended::Interrupted {
            interrupted = true;
            break;
        }
    }
    let page = page(&rows, options.rehearsal);
    println!("{page}");
    let name =
        options.only.as_ref().map_or_else(|| "figures.md".to_owned(), |only| format!("figures-{only}.md"));
    let path = laboratory.out.join(name);
    if let Err(error) = fs::write(&path, format!("{page}\n")) {
        eprintln!("figures: cannot write {}: {error}", path.display());
    }
    if interrupted {
        eprintln!("figures: interrupted; the same command goes on");
        return ExitCode::from(CODE_INTERRUPTED);
    }
    let is_measured = rows.iter().all(|row| row.outcome != Outcome::NotMeasured);
    if is_measured { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(words: &[&str]) -> Result<Options, String> {
    let mut options = Options { out: None, only: None, rehearsal: false, plan_only: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--out" => options.out = Some(words.next().ok_or("--out needs a folder")?.into()),
            "--only" => {
                let name = words.next().ok_or("--only needs a name")?;
                let names: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
                if !names.contains(name) {
                    return Err(format!("there are no figures {name:?}; there are {}", names.join(", ")));
                }
                options.only = Some((*name).to_owned());
            }
            "--rehearse" => options.rehearsal = true,
            "--plan" => options.plan_only = true,
            other => {
                return Err(format!(
                    "{other:?} is not known; use --out DIR, --only NAME, --plan or --rehearse"
                ));
            }
        }
    }
    Ok(options)
}

fn laboratory(root: &Path, options: &Options) -> Result<Laboratory, String> {
    let name = if options.rehearsal { "weir-results/figures-rehearsal" } else { "weir-results/figures" };
    let out = match &options.out {
        // Children run in the workspace's folder; the caller may stand elsewhere.
        Some(out) => env::current_dir().map_err(|error| error.to_string())?.join(out),
        None => root.join(name),
    };
    fs::create_dir_all(&out).map_err(|error| format!("cannot make {}: {error}", out.display()))?;
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let laboratory = Laboratory {
        root: root.to_path_buf(),
        out,
        weir: root.join(target).join("release/weir"),
        rehearsal: options.rehearsal,
        children: Children::watched().map_err(|error| error.to_string())?,
    };
    Ok(laboratory)
}

/// How a group ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Complete,
    Interrupted,
}

/// The rows of one group, as far as it came.
fn group_rows(laboratory: &Laboratory, group: &Group) -> (Vec<Row>, Ended) {
    let mut ended = Ended::Complete;
    let mut exports: BTreeMap<&str, Result<Export, String>> = BTreeMap::new();
    for study in group.studies {
        match laboratory.study(&Run::once(study)) {
            Ok(export) => exports.insert(study, Ok(export)),
            Err(Stop::Interrupted) => {
                ended = Ended::Interrupted;
                exports.extend(laboratory.so_far(&Run::once(study)).map(|export| (*study, Ok(export))));
                break;
            }
            Err(Stop::Failed(reason)) => exports.insert(study, Err(reason)),
        };
    }
    let figures = catalog::figures().into_iter().filter(|figure| figure.group == group.name);
    let mut rows: Vec<Row> = figures.map(|figure| figure_row(&figure, &exports)).collect();
    // Those of studies alone are told of what ran; for the others something would have to be run first.
    let is_told = matches!(group.name, "storage-parity" | "storage-qd1");
    if ended == Ended::Interrupted && !is_told {
        return (rows, ended);
    }
    let counted = match group.name {
        "quick" => counts::quick(laboratory, group),
        "aa" => counts::aa(laboratory, group),
        "power" => counts::power(laboratory, group),
        "display" => counts::display(laboratory),
        "memory" => memory::rows(laboratory),
        "http-idle" => http_idle::rows(laboratory),
        "http-bystanders" => bystanders::rows(laboratory),
        "http-wrk" => wrk::rows(laboratory),
        "gateway-cost" => gateway_cost::rows(laboratory),
        "gateway-journal" => gateway_journal::rows(laboratory),
        "gateway-replay" => gateway_replay::rows(laboratory),
        "gateway-bystanders" => gateway_bystanders::rows(laboratory),
        "order-benches" => order_benches::rows(laboratory),
        "matrix" => match exports.remove("matrix") {
            Some(Ok(export)) => Ok(counts::matrix(&export)),
            Some(Err(reason)) => Err(Stop::Failed(reason)),
            None => Ok(Vec::new()),
        },
        "storage-parity" => rows_of(exports.get("storage-parity"), storage::parity),
        "storage-qd1" => rows_of(exports.get("storage-polling-qd1"), storage::qd1),
        _ => Ok(Vec::new()),
    };
    match counted {
        Ok(counted) => rows.extend(counted),
        Err(Stop::Interrupted) => ended = Ended::Interrupted,
        Err(Stop::Failed(reason)) => rows.push(Row {
            figure: group.name.to_owned(),
            goal: String::new(),
            measured: reason,
            outcome: Outcome::NotMeasured,
            command: format!("cargo xtask figures --only {}", group.name),
        }),
    }
    (rows, ended)
}

/// Rows of a study beyond its ratios; those tell why there are none if it did not run.
fn rows_of(export: Option<&Result<Export, String>>, rows: fn(&Export) -> Vec<Row>) -> Result<Vec<Row>, Stop> {
    Ok(export.and_then(|export| export.as_ref().ok()).map(rows).unwrap_or_default())
}

fn figure_row(figure: &Figure, exports: &BTreeMap<&str, Result<Export, String>>) -> Row {
    let measured = match exports.get(figure.study) {
        Some(Ok(export)) => measure(figure, export),
        Some(Err(reason)) => Err(reason.clone()),
        None => Err("the study did not run".to_owned()),
    };
    let (measured, outcome) = match measured {
        Ok(measured) => (measured.to_string(), goal::judge(figure.goal, &measured)),
        Err(reason) => (reason, Outcome::NotMeasured),
    };
    Row {
        figure: format!("{}, {}", figure.name, figure.cell.trim_end_matches("-closed")),
        goal: figure.goal.to_string(),
        measured,
        outcome,
        command: format!("weir study docs/studies/{}.toml", figure.study),
    }
}

fn measure(figure: &Figure, export: &Export) -> Result<Measured, String> {
    let mut measured = match &figure.source {
        Source::Judged { arm, metric, inverted } => {
            let measured = sample::judged(export, figure.cell, arm, *metric)?;
            if *inverted { measured.inverted() } else { measured }
        }
        Source::Paired { of, to } => sample::paired(export, of, to)?,
        Source::AgainstBest { arm } => sample::against_best(export, figure.cell, arm)?,
    };
    if !export.has_all_blocks() {
        let note = if measured.note.is_empty() { "incomplete" } else { "incomplete; " };
        measured.note.insert_str(0, note);
    }
    Ok(measured)
}

/// The table as Markdown, which a terminal shows as well.
fn page(rows: &[Row], rehearsal: bool) -> String {
    let mut lines = Vec::new();
    if rehearsal {
        lines.push("A rehearsal: every window was tiny, and no number below means anything.\n".to_owned());
    }
    let head =
        ["figure", "goal", "measured: median ratio [interval]", "outcome", "command"].map(str::to_owned);
    let body = rows.iter().map(|row| {
        [&row.figure, &row.goal, &row.measured, row.outcome.word(), &row.command]
            .map(|text| text.replace('|', "/"))
    });
    let table: Vec<[String; 5]> = std::iter::once(head).chain(body).collect();
    let widths: Vec<usize> =
        (0..5).map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    for (index, row) in table.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}"));
        lines.push(format!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
        if index == 0 {
            let rules = widths.iter().map(|width| "-".repeat(*width));
            lines.push(format!("| {} |", rules.collect::<Vec<_>>().join(" | ")));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_named() {
        let read = options(&["--only", "spin", "--out", "x", "--rehearse"]).expect("they are right");
        assert_eq!(
            (read.only.as_deref(), read.out.as_deref(), read.rehearsal),
            (Some("spin"), Some(Path::new("x")), true)
        );
        let error = |words: &[&str]| options(words).err().unwrap_or_default();
        assert!(error(&["--only", "nothing"]).contains("there are quick, aa, controls"));
        assert!(error(&["--only"]).contains("needs a name"));
        assert!(error(&["--fast"]).contains("--rehearse"));
    }

    #[test]
    fn the_table_is_aligned_and_a_rehearsal_says_so() {
        let row = Row {
            figure: "a".to_owned(),
            goal: "≤ 1.030".to_owned(),
            measured: "1.010 [1.000, 1.020]".to_owned(),
            outcome: Outcome::Met,
            command: "c".to_owned(),
        };
        let text = page(&[row], true);
        assert!(text.starts_with("A rehearsal"), "{text}");
        let table: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table.iter().all(|line| line.chars().count() == table[0].chars().count()), "{text}");
        assert!(table[2].contains("| met "), "{text}");
    }

    #[test]
    fn a_study_that_failed_is_a_figure_not_measured() {
        let exports = [("scaling", Err("no room".to_owned()))].into();
        let figure =
            catalog::figures().into_iter().find(|figure| figure.study == "scaling").expect("there is one");
        let row = figure_row(&figure, &exports);
        assert_eq!((row.outcome, row.measured.as_str()), (Outcome::NotMeasured, "no room"));
    }
}
