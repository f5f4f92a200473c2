//! Recorded runs of commands as data of the project: `cargo xtask record-commands SITTING` has `weir compare` run one
//! program against itself for some minutes, and writes what each run cost as text that tests read
//! (docs/formats/recording.md).
//!
//! Inputs are made from a seed, so that the same command can be recorded elsewhere. It judges nothing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

mod programs;

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    hog::Beside,
    record::{HOG_SHARE, company, stored},
    weir_program::{WeirProgram, output_of},
    words::Words,
};
use programs::Program;

const USAGE: &str =
    "usage: cargo xtask record-commands SITTING [--minutes M] [--only NAME,NAME] [--condition quiet|hog]
       [--seed N] [--out FOLDER] [--weir PROGRAM] [--beside-others]";

const RECORDED: &str = "crates/weir-judge/tests/recorded-commands";

/// Pairs that are run to see how long one takes.
const PAIRS_TRIED: u32 = 12;

/// Fewest and most pairs of a recording: fewer are no minute of anything, more would be a large file.
const PAIRS: (u32, u32) = (60, 6_000);

/// Largest file that is written.
const BYTES_MAX: usize = 200_000;

#[derive(Debug, PartialEq)]
struct Asked {
    sitting: String,
    minutes: f64,
    only: Vec<String>,
    hog: bool,
    seed: u64,
    out: Option<PathBuf>,
    weir: Option<PathBuf>,
    beside_others: bool,
}

impl Asked {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut asked = Self {
            sitting: String::new(),
            minutes: 3.0,
            only: Vec::new(),
            hog: false,
            seed: 1,
            out: None,
            weir: None,
            beside_others: false,
        };
        let mut words = Words::new(words);
        while let Some(word) = words.next() {
            match word {
                "--minutes" => asked.minutes = words.number_within(word, (0.05, 30.0))?,
                "--only" => asked.only = words.value(word)?.split(',').map(str::to_owned).collect(),
                "--condition" => asked.hog = is_hog(words.value(word)?)?,
                "--seed" => asked.seed = words.number(word)?,
                "--out" => asked.out = Some(words.value(word)?.into()),
                "--weir" => asked.weir = Some(words.value(word)?.into()),
                "--beside-others" => asked.beside_others = true,
                _ if word.starts_with('-') => return Err(format!("{word} is not known")),
                _ if asked.sitting.is_empty() => asked.sitting = word.to_owned(),
                _ => return Err(format!("{word}: a sitting has one name, and that is {}", asked.sitting)),
            }
        }
        let is_name = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
        if asked.sitting.is_empty() || !asked.sitting.chars().all(is_name) {
            return Err("SITTING is a name of small letters, digits and `-`, such as epyc-guest".to_owned());
        }
        if let Some(name) = asked.only.iter().find(|name| !programs::NAMES.contains(&name.as_str())) {
            return Err(format!("--only {name}: there are {}", programs::NAMES.join(", ")));
        }
        Ok(asked)
    }

    fn condition(&self) -> &'static str {
        if self.hog { "hog" } else { "quiet" }
    }
}

fn is_hog(condition: &str) -> Result<bool, String> {
    match condition {
        "quiet" => Ok(false),
        "hog" => Ok(true),
        _ => Err(format!("--condition {condition}: it is quiet or hog")),
    }
}

pub fn run(root: &Path, words: &[&str]) -> ExitCode {
    let asked = match Asked::parse(words) {
        Ok(asked) => asked,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match take(root, &asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("record-commands: {error}");
            ExitCode::FAILURE
        }
    }
}

fn take(root: &Path, asked: &Asked) -> Result<(), String> {
    let loud = company::loud().into_iter().collect::<Vec<_>>().join(", ");
    if !loud.is_empty() && !asked.beside_others {
        return Err(format!(
            "{loud}: a build or another study runs here; wait for it, or say --beside-others"
        ));
    }
    let weir = WeirProgram::prepare(root, asked.weir.as_deref())?;
    let out = asked.out.clone().unwrap_or_else(|| root.join(RECORDED)).join(&asked.sitting);
    let inputs = root.join("target/recorded-commands");
    for folder in [&out, &inputs] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let is_wanted = |name: &&&str| asked.only.is_empty() || asked.only.iter().any(|it| it == **name);
    let wanted: Vec<&str> = programs::NAMES.iter().filter(is_wanted).copied().collect();
    println!("{} recordings, about {} min", wanted.len(), length(asked, wanted.len()).as_secs().div_ceil(60));
    for name in wanted {
        let program = match Program::prepare(name, &inputs, asked.seed) {
            Ok(program) => program,
            Err(error) => {
                println!("{name}: left out, {error}");
                continue;
            }
        };
        let began = Instant::now();
        let hog = asked.hog.then(|| Beside::start(asked.seed, HOG_SHARE)).transpose()?;
        let text = record(asked, &weir, &program, &inputs)?;
        drop(hog);
        let file = out.join(format!("{name}-{}.txt", asked.condition()));
        fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("{} after {} s", file.display(), began.elapsed().as_secs());
    }
    Ok(())
}

/// The text of a recording.
fn record(asked: &Asked, weir: &WeirProgram, program: &Program, folder: &Path) -> Result<String, String> {
    let taken_at = output_of(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%MZ"]))?;
    let tried = compared(asked, weir, program, folder, PAIRS_TRIED)?;
    let pair_s = pair_ns(&tried)? as f64 / 1e9;
    let pairs = (asked.minutes * 60.0 / pair_s) as u32;
    let report = compared(asked, weir, program, folder, pairs.clamp(PAIRS.0, PAIRS.1))?;
    let mut facts = vec![
        ("program".to_owned(), program.name.to_owned()),
        ("condition".to_owned(), asked.condition().to_owned()),
        ("taken".to_owned(), taken_at),
        ("weir".to_owned(), weir.version.clone()),
        ("command".to_owned(), program.command.clone()),
        ("seed".to_owned(), asked.seed.to_string()),
        (
            "cpu_source".to_owned(),
            report["measured_by"]["cpu_source"].as_str().unwrap_or_default().to_owned(),
        ),
        ("pair_ns".to_owned(), pair_ns(&report)?.to_string()),
    ];
    facts.extend(stored::machine(&report["fingerprint"]));
    text(&facts, &pairs_of(&report["comparisons"][0])?)
}

/// `weir compare` of the program with itself.
fn compared(
    asked: &Asked,
    weir: &WeirProgram,
    program: &Program,
    folder: &Path,
    pairs: u32,
) -> Result<Value, String> {
    let export = folder.join("comparison.json");
    let mut command = Command::new(&weir.path);
    command.args([
        "compare",
        "--lang",
        "en",
        "--output",
        "null",
        "--runs",
        &pairs.to_string(),
        "--warmup",
        "2",
    ]);
    command.args(["--seed", &asked.seed.to_string(), "--env", "LC_ALL=C", "--dir"]).arg(folder);
    command.arg("--export-json").arg(&export);
    for name in ["one", "other"] {
        command.args(["--name", name]);
    }
    command.args(["--", &program.command, &program.command]);
    let output = command.output().map_err(|error| format!("cannot start weir compare: {error}"))?;
    // A verdict has an exit code, and every verdict will do.
    if !matches!(output.status.code(), Some(0 | 11)) {
        let said = String::from_utf8_lossy(&output.stdout);
        return Err(format!("weir compare {:?}: {}: {said}", program.command, output.status));
    }
    let json = fs::read_to_string(&export).map_err(|error| format!("{}: {error}", export.display()))?;
    serde_json::from_str(&json).map_err(|error| format!("the export: {error}"))
}

/// How long a pair took, from the first measured run to the end of the last one.
fn pair_ns(report: &Value) -> Result<u64, String> {
    let comparison = &report["comparisons"][0];
    let runs = measured(comparison);
    let began = runs.iter().map(|run| whole(&run["started_ns"])).min();
    let ended = runs.iter().map(|run| whole(&run["started_ns"]) + whole(&run["cost"]["wall_ns"])).max();
    let length = ended.zip(began).map(|(ended, began)| ended.saturating_sub(began));
    let length = length.and_then(|length| length.checked_div(whole(&comparison["pairs_done"])));
    length.filter(|length| *length > 0).ok_or_else(|| "the export has no measured pair".to_owned())
}

fn measured(comparison: &Value) -> Vec<&Value> {
    let runs = comparison["runs"].as_array().into_iter().flatten();
    runs.filter(|run| run["phase"] == "measured").collect()
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// CPU of the three runs of each pair, in the order of their places. All are of one program, so that their labels say
/// nothing.
fn pairs_of(comparison: &Value) -> Result<Vec<[u64; 3]>, String> {
    let mut pairs: Vec<[u64; 3]> = Vec::new();
    for run in measured(comparison) {
        let (pair, place) = (whole(&run["pair"]) as usize, whole(&run["place"]) as usize);
        if pair == pairs.len() {
            pairs.push([0; 3]);
        }
        let cost = &run["cost"];
        let cpu = pairs.get_mut(pair).and_then(|pair| pair.get_mut(place));
        *cpu.ok_or("the export has pairs of another kind")? =
            whole(&cost["user_ns"]) + whole(&cost["system_ns"]);
    }
    // What was interrupted is no pair.
    pairs.retain(|pair| pair.iter().all(|cpu_ns| *cpu_ns > 0));
    Ok(pairs)
}

fn text(facts: &[(String, String)], pairs: &[[u64; 3]]) -> Result<String, String> {
    let mut text = "# weir-command-recording 1\n".to_owned();
    for (key, value) in facts {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "# {key}: {}", value.replace('\n', " "));
    }
    for [first, second, third] in pairs {
        let _ = writeln!(text, "{first} {second} {third}");
    }
    if text.len() > BYTES_MAX {
        return Err(format!("{} bytes are more than {BYTES_MAX}; say fewer --minutes", text.len()));
    }
    Ok(text)
}

/// How long everything takes, without the trials before.
fn length(asked: &Asked, programs: usize) -> Duration {
    Duration::from_secs_f64(asked.minutes * 60.0 * programs as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_that_make_no_sense_are_named() {
        let asked = Asked::parse(&["guest", "--minutes", "0.5", "--only", "sort,gzip", "--condition", "hog"]);
        let asked = asked.expect("sound words");
        assert_eq!((asked.sitting.as_str(), asked.condition(), asked.seed), ("guest", "hog", 1));
        assert_eq!(length(&asked, 2), Duration::from_secs(60));
        for (words, said) in [
            (&["a", "--minutes", "31"][..], "--minutes is from 0.05 to 30"),
            (&["a", "--only", "make"], "--only make: there are sort, gzip, sqlite, python, server"),
            (&["a", "--condition", "loud"], "--condition loud: it is quiet or hog"),
            (&["a", "b"], "b: a sitting has one name, and that is a"),
            (&[], "SITTING is a name of small letters, digits and `-`, such as epyc-guest"),
        ] {
            assert_eq!(Asked::parse(words), Err(said.to_owned()));
        }
    }

    #[test]
    fn pairs_are_taken_in_the_order_of_places_and_without_what_was_interrupted() {
        let run = |phase: &str, pair: u64, place: u64, cpu: u64| {
            let cost = json!({"user_ns": cpu - 1, "system_ns": 1, "wall_ns": 10});
            json!({"phase": phase, "pair": pair, "place": place, "cost": cost, "started_ns": 100 * pair + place})
        };
        let runs = vec![
            run("pilot", 0, 0, 9),
            run("measured", 0, 1, 6),
            run("measured", 0, 0, 5),
            run("measured", 0, 2, 7),
            run("measured", 1, 0, 8),
        ];
        let comparison = json!({"pairs_done": 1, "runs": runs});
        let pairs = pairs_of(&comparison).expect("they are pairs");
        assert_eq!(pairs, [[5, 6, 7]]);
        assert_eq!(pair_ns(&json!({"comparisons": [comparison]})), Ok(110));
        let written = text(&[("program".to_owned(), "sort".to_owned())], &pairs);
        assert_eq!(written, Ok("# weir-command-recording 1\n# program: sort\n5 6 7\n".to_owned()));
        assert!(text(&[], &vec![[1_000_000; 3]; 9_000]).is_err_and(|error| error.contains("--minutes")));
    }
}
