//! `cargo xtask compare-figures`: comparisons of a program that only computes with itself and with a share more of the
//! same work, so that the right answer is known. One table has what `weir compare` says, and what hyperfine says of the
//! same two commands with as many runs.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

mod answers;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use crate::{
    hog::Beside,
    record::HOG_SHARE,
    weir_program::{WeirProgram, output_of},
    words::Words,
    work::Pace,
};
use answers::{Answer, Row};

const USAGE: &str = "usage: cargo xtask compare-figures [--alike N] [--planted N] [--percent P] [--cpu MS,MS]
       [--budget S] [--seed N] [--hog] [--no-hyperfine] [--weir PROGRAM]";

/// Most comparisons of a kind.
const RUNS_MAX: u32 = 1_000;

#[derive(Debug, PartialEq)]
struct Asked {
    alike: u32,
    planted: u32,
    /// How much more work the second command does.
    percent: f64,
    cpu_ms: Vec<f64>,
    budget_s: u64,
    seed: u64,
    hog: bool,
    hyperfine: bool,
    weir: Option<PathBuf>,
}

impl Asked {
    fn parse(words: &[&str]) -> Result<Self, String> {
        let mut asked = Self {
            alike: 3,
            planted: 3,
            percent: 3.0,
            cpu_ms: vec![50.0, 5.0],
            budget_s: 20,
            seed: 1,
            hog: false,
            hyperfine: true,
            weir: None,
        };
        let mut words = Words::new(words);
        while let Some(word) = words.next() {
            match word {
                "--alike" => asked.alike = words.number_within(word, (0, RUNS_MAX))?,
                "--planted" => asked.planted = words.number_within(word, (0, RUNS_MAX))?,
                "--percent" => asked.percent = words.number_within(word, (0.1, 100.0))?,
                "--cpu" => asked.cpu_ms = lengths(words.value(word)?)?,
                "--budget" => asked.budget_s = words.number_within(word, (1, 3_600))?,
                "--seed" => asked.seed = words.number(word)?,
                "--hog" => asked.hog = true,
                "--no-hyperfine" => asked.hyperfine = false,
                "--weir" => asked.weir = Some(words.value(word)?.into()),
                _ => return Err(format!("{word} is not known")),
            }
        }
        Ok(asked)
    }
}

fn lengths(text: &str) -> Result<Vec<f64>, String> {
    let each = text.split(',').map(|it| it.parse().map_err(|error| format!("--cpu {it}: {error}")));
    let all = each.collect::<Result<Vec<f64>, String>>()?;
    // Shorter ones are the start of a program and nothing else.
    if all.iter().all(|ms| (3.0..=10_000.0).contains(ms)) {
        Ok(all)
    } else {
        Err("--cpu is from 3 to 10000 ms".to_owned())
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
    match tabled(root, &asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare-figures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn tabled(root: &Path, asked: &Asked) -> Result<(), String> {
    let weir = WeirProgram::prepare(root, asked.weir.as_deref())?;
    let own = env::current_exe().map_err(|error| format!("this program: {error}"))?;
    let hyperfine = output_of(Command::new("hyperfine").arg("--version")).ok().filter(|_| asked.hyperfine);
    let tools = Tools { asked, weir: &weir, own: &own, has_hyperfine: hyperfine.is_some() };
    println!("weir: {}; hyperfine: {}", weir.version, hyperfine.as_deref().unwrap_or("not used"));
    let pace = Pace::measure(&own)?;
    let _hog = asked.hog.then(|| Beside::start(asked.seed, HOG_SHARE)).transpose()?;
    let mut rows = Vec::new();
    for cpu_ms in &asked.cpu_ms {
        for (percent, times) in [(0.0, asked.alike), (asked.percent, asked.planted)] {
            let row = Row { cpu_ms: *cpu_ms, percent, beside: if asked.hog { "hog" } else { "no hog" } };
            let turns = [*cpu_ms, cpu_ms * (1.0 + percent / 100.0)].map(|ms| pace.turns(ms));
            let mut found = (Vec::new(), Vec::new());
            for time in 0..times {
                eprintln!("{cpu_ms} ms, {percent} % planted: {} of {times}", time + 1);
                tools.compare(turns, time, &mut found)?;
            }
            rows.push(answers::row(&row, "weir compare", &found.0));
            rows.push(answers::row(&row, "hyperfine", &found.1));
        }
    }
    println!("{}{}", answers::HEAD, rows.concat());
    Ok(())
}

struct Tools<'a> {
    asked: &'a Asked,
    weir: &'a WeirProgram,
    own: &'a Path,
    has_hyperfine: bool,
}

impl Tools<'_> {
    /// One comparison by each of the two.
    fn compare(
        &self,
        turns: [u64; 2],
        time: u32,
        found: &mut (Vec<Answer>, Vec<Answer>),
    ) -> Result<(), String> {
        let own = self.own.to_str().ok_or("the path of this program is no text")?;
        let commands = turns.map(|turns| format!("'{own}' work {turns}"));
        let export = env::temp_dir().join(format!("weir-compare-figures-{}.json", std::process::id()));
        let seed = (self.asked.seed + u64::from(time)).to_string();
        let mut command = Command::new(&self.weir.path);
        command.args(["compare", "--lang", "en", "--budget", &format!("{}s", self.asked.budget_s)]);
        command.args(["--seed", &seed, "--name", "less", "--name", "more", "--export-json"]).arg(&export);
        let said = self.run(command.args(&commands), &export, &[0, 11])?;
        let answer = answers::of_weir(&said)?;
        let runs = answer.runs;
        found.0.push(answer);
        if self.has_hyperfine {
            let mut command = Command::new("hyperfine");
            command.args(["-N", "--style", "none", "--warmup", "3", "--runs", &runs.max(2).to_string()]);
            let said = self.run(command.arg("--export-json").arg(&export).args(&commands), &export, &[0])?;
            found.1.push(answers::of_hyperfine(&said)?);
        }
        let _ = fs::remove_file(&export);
        Ok(())
    }

    /// What a tool writes into its export.
    fn run(&self, command: &mut Command, export: &Path, codes: &[i32]) -> Result<String, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("cannot start {program}: {error}"))?;
        if !output.status.code().is_some_and(|code| codes.contains(&code)) {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program}: {}: {}", output.status, said.trim()));
        }
        fs::read_to_string(export).map_err(|error| format!("{}: {error}", export.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_make_no_sense_are_named() {
        let asked =
            Asked::parse(&["--alike", "40", "--planted", "20", "--cpu", "50", "--hog"]).expect("sound");
        assert_eq!((asked.alike, asked.planted, asked.hog, asked.cpu_ms), (40, 20, true, vec![50.0]));
        for (words, said) in [
            (&["--alike", "1001"][..], "--alike is from 0 to 1000"),
            (&["--cpu", "50,x"], "--cpu x: invalid float literal"),
            (&["--cpu", "1"], "--cpu is from 3 to 10000 ms"),
            (&["--percent", "0"], "--percent is from 0.1 to 100"),
            (&["--loud"], "--loud is not known"),
        ] {
            assert_eq!(Asked::parse(words), Err(said.to_owned()));
        }
    }
}
