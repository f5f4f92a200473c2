//! The request of `weir compare`, from the command line: words are split, parameters are inserted, flags are checked.

use std::{ffi::OsString, path::absolute, time::Duration};

use anyhow::Result;
use weir_compare::{
    asked::{Asked, AskedCommand, AskedServers, COMMANDS_MAX, COMPARISONS_MAX, WARMUP_MAX},
    run::{OutputTo, RunError, RunSpec, program_path},
};
use weir_judge::commands::PAIRS_MAX;
use weir_lab::{length, study_file};
use weir_record::commands::{CommandRole, CommandSettings};
use weir_report::localized;

use super::{compare_servers, compare_words};
use crate::{args::Compare, exit::UsageError, language};

/// Smallest difference that matters, as in studies.
const EQUIVALENCE_MARGIN: f64 = 0.01;

/// Fewest pairs that decide anything.
const PAIRS_MIN: u32 = weir_judge::commands::PAIRS_DECIDING_MIN;

/// Parameters of one combination.
type Parameters = Vec<(String, String)>;

/// A command as it was typed, its role, and its parameters.
type Template<'t> = (&'t String, CommandRole, &'t [(String, String)]);

/// Every requested comparison.
pub(super) fn comparisons(arguments: &Compare, seed: u64) -> Result<Vec<Asked>> {
    compare_servers::check(arguments)?;
    let combinations = combinations(arguments)?;
    let shared = Shared::of(arguments)?;
    let compared = arguments.compared();
    let (one, only_command) = (&compared[0], compared.len() == 1);
    let templates: Vec<(&String, CommandRole)> = roles(arguments);
    let sets: Vec<(Parameters, Vec<Template<'_>>)> = match only_command {
        true => {
            let expanded = combinations.iter().enumerate().map(|(place, own)| (one, role(place), &own[..]));
            let placebos =
                arguments.placebo.iter().map(|text| (text, CommandRole::Placebo, &combinations[0][..]));
            vec![(Vec::new(), expanded.chain(placebos).collect())]
        }
        false => combinations
            .iter()
            .map(|own| (own.clone(), templates.iter().map(|(text, role)| (*text, *role, &own[..])).collect()))
            .collect(),
    };
    sets.into_iter()
        .map(|(parameters, commands)| shared.asked(arguments, seed, parameters, &commands))
        .collect()
}

fn role(place: usize) -> CommandRole {
    if place == 0 { CommandRole::Baseline } else { CommandRole::Candidate }
}

fn roles(arguments: &Compare) -> Vec<(&String, CommandRole)> {
    let commands = arguments.compared().iter().enumerate().map(|(place, text)| (text, role(place)));
    commands.chain(arguments.placebo.iter().map(|text| (text, CommandRole::Placebo))).collect()
}

/// The common part of all comparisons.
struct Shared {
    settings: CommandSettings,
    environment: Vec<(OsString, OsString)>,
    output: OutputTo,
    shell: Option<String>,
    servers: Option<AskedServers>,
}

impl Shared {
    fn of(arguments: &Compare) -> Result<Self> {
        let shell = match arguments.shell.as_str() {
            "none" => None,
            shell if arguments.no_shell => return Err(no_shell_and(shell)),
            "default" => Some("sh".to_owned()),
            other => Some(other.to_owned()),
        };
        let output_name = if arguments.show_output { "inherit" } else { arguments.output.as_str() };
        let output = match output_name {
            "pipe" => OutputTo::Digest,
            "null" => OutputTo::Discard,
            "inherit" => OutputTo::Inherit,
            file => OutputTo::File(absolute(file)?),
        };
        let (budget, warmup) = if arguments.serve.is_empty() { ("60s", 0) } else { ("120s", 1) };
        let shown = |path: &std::path::PathBuf| path.display().to_string();
        let settings = CommandSettings {
            budget_ns: duration("--budget", arguments.budget.as_deref().unwrap_or(budget))?,
            limit_ns: duration("--limit", &arguments.limit)?,
            warmup: within("--warmup", arguments.warmup, 0, WARMUP_MAX)?.unwrap_or(warmup),
            runs: pairs("--runs", arguments.runs)?,
            runs_min: pairs("--min-runs", arguments.min_runs)?.unwrap_or_default(),
            shell: shell.clone(),
            folder: arguments.dir.as_ref().map(shown),
            input: arguments.input.as_ref().map(shown),
            output: output_name.to_owned(),
            environment: arguments.env.clone(),
            prepare: arguments.prepare.iter().chain(&arguments.between).cloned().collect(),
            conclude: arguments.conclude.clone(),
            setup: arguments.setup.clone(),
            cleanup: arguments.cleanup.clone(),
            ignore_failure: arguments.ignore_failure,
            equivalence_margin: EQUIVALENCE_MARGIN,
            servers: None,
        };
        let environment: Vec<_> = arguments.env.iter().map(|it| variable(it)).collect::<Result<_>>()?;
        if let Some(shell) = &shell {
            is_there(shell, &environment, arguments)?;
        }
        let mut shared = Self { settings, environment, output, shell, servers: None };
        shared.ask_servers(arguments)?;
        Ok(shared)
    }

    /// The request about servers, if these are compared.
    fn ask_servers(&mut self, arguments: &Compare) -> Result<()> {
        let Some(load) = &arguments.load else { return Ok(()) };
        let (servers, settings) =
            compare_servers::asked(arguments, load, &self.environment, &|flag, text| self.words(flag, text))?;
        self.settings.servers = Some(settings);
        self.servers = Some(servers);
        // The output of a load is read, and not compared.
        self.output = OutputTo::Discard;
        Ok(())
    }

    fn asked(
        &self,
        arguments: &Compare,
        seed: u64,
        parameters: Parameters,
        commands: &[Template<'_>],
    ) -> Result<Asked> {
        check_counts(arguments, commands)?;
        let names = names(arguments, commands)?;
        let all = commands.iter().zip(names).enumerate();
        let own = all.map(|(place, (&(text, role, own), name))| {
            let words = |flag: &str, text: &str| self.words(flag, &put_in(text, own));
            let around = |flag: &str, text: Option<&String>| {
                text.map_or_else(|| Ok(Vec::new()), |text| words(flag, text))
            };
            let prepare = if arguments.prepare.len() > 1 { place } else { 0 };
            let prepare = arguments.prepare.get(prepare).or(arguments.between.as_ref());
            let before_each = if arguments.between.is_some() { "--between" } else { "--prepare" };
            let flag = if self.servers.is_some() { "--serve" } else { "COMMAND" };
            Ok(AskedCommand {
                name,
                role,
                words: words(flag, text)?,
                prepare: around(before_each, prepare)?,
                conclude: around("--conclude", arguments.conclude.as_ref())?,
                setup: around("--setup", arguments.setup.as_ref())?,
                cleanup: around("--cleanup", arguments.cleanup.as_ref())?,
                load: around("--load", arguments.load.as_ref())?,
            })
        });
        let commands = own.collect::<Result<Vec<AskedCommand>>>()?;
        let compared = commands.iter().filter(|it| it.role != CommandRole::Placebo);
        let names: Vec<&str> = compared.map(|it| it.name.as_str()).collect();
        let of_command_line = language::of_command_line();
        let thresholds = study_file::command_thresholds(&names, &arguments.fail_if)
            .map_err(|mistake| UsageError(format!("--fail-if: {}", mistake.localized(of_command_line))))?;
        Ok(Asked {
            parameters,
            thresholds,
            commands,
            settings: self.settings.clone(),
            environment: self.environment.clone(),
            folder: arguments.dir.clone(),
            input: arguments.input.as_ref().map(absolute).transpose()?,
            output: self.output.clone(),
            seed,
            servers: self.servers.clone(),
        })
    }

    /// The words of a command: those of a call of the shell, or split as a shell would.
    fn words(&self, flag: &str, text: &str) -> Result<Vec<OsString>> {
        if let Some(shell) = &self.shell {
            return Ok([shell, "-c", text].map(OsString::from).to_vec());
        }
        let language = language::of_command_line();
        let words = compare_words::split(text, language)
            .map_err(|wrong| usage(format!("{flag} {text:?}{}{wrong}", language.colon())))?;
        Ok(words.into_iter().map(OsString::from).collect())
    }
}

pub(super) fn usage(text: String) -> anyhow::Error {
    UsageError(text).into()
}

fn no_shell_and(shell: &str) -> anyhow::Error {
    usage(localized!(
        language::of_command_line(),
        "-N runs without a shell, and --shell {shell} with one; leave one of the two out",
        "-N은 셸 없이, --shell {shell}은 셸로 실행합니다. 둘 중 하나를 빼십시오",
        "-N 表示不用 shell，而 --shell {shell} 表示使用；请去掉其中一个",
    ))
}

/// A missing shell is one mistake of the command line, and not a failure of each command.
fn is_there(shell: &str, environment: &[(OsString, OsString)], arguments: &Compare) -> Result<()> {
    let spec = RunSpec {
        words: vec![shell.into()],
        environment: environment.to_vec(),
        folder: arguments.dir.clone(),
        input: None,
        output: OutputTo::Discard,
        limit: Duration::ZERO,
    };
    let language = language::of_command_line();
    program_path(&spec).map(|_| ()).map_err(|error| match error {
        RunError::Missing(_) => usage(localized!(
            language,
            "--shell: there is no program {shell}; give its path, or put its folder into PATH",
            "--shell: {shell} 프로그램이 없습니다. 경로를 쓰거나 그 폴더를 PATH에 넣으십시오",
            "--shell：没有程序 {shell}；请写出其路径，或将其所在文件夹加入 PATH",
        )),
        RunError::Empty => usage(localized!(
            language,
            "--shell: the name is empty; write sh, or none",
            "--shell: 이름이 비어 있습니다. sh 또는 none을 쓰십시오",
            "--shell：名称为空；请写 sh 或 none",
        )),
        other => usage(format!("--shell{}{other}", language.colon())),
    })
}

/// A length of time; a number alone is seconds.
pub(super) fn duration(flag: &str, text: &str) -> Result<u64> {
    let is_number = text.ends_with(|symbol: char| symbol.is_ascii_digit());
    let with_unit = if is_number { format!("{text}s") } else { text.to_owned() };
    length::length_ns(&with_unit).filter(|ns| *ns > 0).ok_or_else(|| {
        usage(localized!(
            language::of_command_line(),
            "{flag} {text:?}: write a length above 0, such as 500ms, 60s or 5min; a number is seconds",
            "{flag} {text:?}: 500ms, 60s, 5min처럼 0보다 큰 시간을 쓰십시오. 숫자만 쓰면 초입니다",
            "{flag} {text:?}：请写大于 0 的时长，例如 500ms、60s 或 5min；只写数字表示秒",
        ))
    })
}

/// A number of pairs. Below the fewest there is no interval, however little the runs scatter.
fn pairs(flag: &str, number: Option<u32>) -> Result<Option<u32>> {
    match number {
        Some(own) if own < PAIRS_MIN => Err(usage(localized!(
            language::of_command_line(),
            "{flag} {own}: write {PAIRS_MIN} to {PAIRS_MAX}; fewer than {PAIRS_MIN} pairs give no 99 % interval",
            "{flag} {own}: {PAIRS_MIN}에서 {PAIRS_MAX} 사이로 쓰십시오. {PAIRS_MIN}쌍보다 적으면 99 % 신뢰구간을 구할 수 없습니다",
            "{flag} {own}：请写 {PAIRS_MIN} 到 {PAIRS_MAX}；少于 {PAIRS_MIN} 对无法得出 99 % 置信区间",
        ))),
        other => within(flag, other, PAIRS_MIN, PAIRS_MAX),
    }
}

pub(super) fn within(flag: &str, number: Option<u32>, least: u32, most: u32) -> Result<Option<u32>> {
    match number {
        Some(own) if !(least..=most).contains(&own) => Err(usage(localized!(
            language::of_command_line(),
            "{flag} {own}: write {least} to {most}",
            "{flag} {own}: {least}에서 {most} 사이로 쓰십시오",
            "{flag} {own}：请写 {least} 到 {most}",
        ))),
        other => Ok(other),
    }
}

fn variable(text: &str) -> Result<(OsString, OsString)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err(usage(localized!(
            language::of_command_line(),
            "--env {text:?}: write NAME=VALUE",
            "--env {text:?}: NAME=VALUE로 쓰십시오",
            "--env {text:?}：请写成 NAME=VALUE",
        ))),
    }
}

fn check_counts(arguments: &Compare, commands: &[Template<'_>]) -> Result<()> {
    let compared = commands.iter().filter(|it| it.1 != CommandRole::Placebo).count();
    if compared < 2 {
        let text = language::of_command_line().choose([
            "there is one command alone; name another one to compare it with, or give it parameters with -L",
            "명령이 하나뿐입니다. 비교할 명령을 추가하거나 -L로 매개변수를 지정하십시오",
            "只有一个命令；请再写一个命令与之比较，或用 -L 指定参数",
        ]);
        return Err(usage(text.to_owned()));
    }
    if commands.len() > COMMANDS_MAX {
        let count = commands.len();
        return Err(usage(localized!(
            language::of_command_line(),
            "these are {count} commands; compare at most {COMMANDS_MAX} at once",
            "명령이 {count}개입니다. 한 번에 {COMMANDS_MAX}개까지 비교할 수 있습니다",
            "共有 {count} 个命令；一次最多比较 {COMMANDS_MAX} 个",
        )));
    }
    let prepares = arguments.prepare.len();
    if prepares > 1 && prepares != commands.len() {
        let count = commands.len();
        return Err(usage(localized!(
            language::of_command_line(),
            "--prepare is given {prepares} times for {count} commands; give it once, or once for each command",
            "명령은 {count}개인데 --prepare를 {prepares}번 지정했습니다. 한 번, 또는 명령마다 한 번씩 지정하십시오",
            "共有 {count} 个命令，却指定了 {prepares} 次 --prepare；请只指定一次，或为每个命令各指定一次",
        )));
    }
    Ok(())
}

/// The given names, and the commands themselves for the others; all are different.
fn names(arguments: &Compare, commands: &[Template<'_>]) -> Result<Vec<String>> {
    if arguments.name.len() > commands.len() {
        let (names, count) = (arguments.name.len(), commands.len());
        return Err(usage(localized!(
            language::of_command_line(),
            "--name is given {names} times for {count} commands",
            "명령은 {count}개인데 --name을 {names}번 지정했습니다",
            "共有 {count} 个命令，却指定了 {names} 次 --name",
        )));
    }
    let mut found: Vec<String> = Vec::new();
    for (place, (text, _, own)) in commands.iter().enumerate() {
        let name = arguments.name.get(place).map_or_else(|| put_in(text, own), |name| put_in(name, own));
        let alike = found.iter().filter(|it| **it == name || it.starts_with(&format!("{name} ("))).count();
        found.push(if alike == 0 { name } else { format!("{name} ({})", alike + 1) });
    }
    Ok(found)
}

/// A text with the values of parameters in place.
fn put_in(text: &str, parameters: &[(String, String)]) -> String {
    parameters.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Every combination of the parameters' values; one without parameters.
fn combinations(arguments: &Compare) -> Result<Vec<Parameters>> {
    let mut all: Vec<Parameters> = vec![Vec::new()];
    for (name, values) in parameters(arguments)? {
        if !uses(arguments, &name) {
            return Err(usage(localized!(
                language::of_command_line(),
                "no command holds {{{name}}}; write it where the parameter belongs",
                "{{{name}}}이(가) 들어 있는 명령이 없습니다. 매개변수가 들어갈 곳에 쓰십시오",
                "没有命令包含 {{{name}}}；请写在参数所在的位置",
            )));
        }
        if all.len().saturating_mul(values.len()) > COMPARISONS_MAX {
            return Err(usage(localized!(
                language::of_command_line(),
                "the parameters have more than {COMPARISONS_MAX} combinations",
                "매개변수의 조합이 {COMPARISONS_MAX}가지를 넘습니다",
                "参数组合超过 {COMPARISONS_MAX} 种",
            )));
        }
        let with = |own: &Parameters, value: &String| {
            own.iter().cloned().chain([(name.clone(), value.clone())]).collect::<Parameters>()
        };
        all = all
            .iter()
            .flat_map(|own| values.iter().map(|value| with(own, value)).collect::<Vec<_>>())
            .collect();
    }
    Ok(all)
}

fn uses(arguments: &Compare, name: &str) -> bool {
    let placed = format!("{{{name}}}");
    arguments.compared().iter().chain(&arguments.load).any(|command| command.contains(&placed))
}

/// Parameters with their values, in the order of the flags: lists first.
fn parameters(arguments: &Compare) -> Result<Vec<(String, Vec<String>)>> {
    let list = |words: &[String]| (words[0].clone(), words[1].split(',').map(str::to_owned).collect());
    let mut all: Vec<(String, Vec<String>)> = arguments.parameter_list.chunks_exact(2).map(list).collect();
    for words in arguments.parameter_scan.chunks_exact(3) {
        let values = scanned(&words[1], &words[2], &arguments.parameter_step_size);
        let (min, max, step) = (&words[1], &words[2], &arguments.parameter_step_size);
        if is_above(min, max) {
            return Err(usage(localized!(
                language::of_command_line(),
                "--parameter-scan: MIN ({min}) is above MAX ({max}); write the numbers from MIN to MAX",
                "--parameter-scan: MIN({min})이 MAX({max})보다 큽니다. MIN부터 MAX까지의 숫자를 쓰십시오",
                "--parameter-scan：MIN（{min}）大于 MAX（{max}）；请写从 MIN 到 MAX 的数",
            )));
        }
        let values = values.ok_or_else(|| {
            usage(localized!(
                language::of_command_line(),
                "--parameter-scan {min} {max} in steps of {step}: write numbers, MIN to MAX, in at most \
                 {COMPARISONS_MAX} steps above 0",
                "--parameter-scan {min} {max}, 간격 {step}: 숫자로 MIN부터 MAX까지, 0보다 큰 간격으로 {COMPARISONS_MAX}단계까지 쓰십시오",
                "--parameter-scan {min} {max}，步长 {step}：请写数字，从 MIN 到 MAX，步长大于 0，最多 {COMPARISONS_MAX} 步",
            ))
        })?;
        all.push((words[0].clone(), values));
    }
    Ok(all)
}

fn is_above(min: &str, max: &str) -> bool {
    matches!((min.parse::<f64>(), max.parse::<f64>()), (Ok(min), Ok(max)) if min > max)
}

/// Numbers from the least to the most, with as many decimals as the longest of what was written.
fn scanned(min: &str, max: &str, step: &str) -> Option<Vec<String>> {
    let decimals =
        [min, max, step].iter().map(|text| text.split_once('.').map_or(0, |(_, after)| after.len())).max()?;
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let (min, max, step) = (number(min)?, number(max)?, number(step)?);
    let steps = ((max - min) / step + 1e-9).floor();
    let is_sensible = step > 0.0 && (0.0..COMPARISONS_MAX as f64).contains(&steps);
    is_sensible
        .then(|| (0..=steps as u32).map(|it| format!("{:.decimals$}", min + f64::from(it) * step)).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn asked(words: &[&str]) -> Result<Vec<Asked>, String> {
        let words = ["weir", "compare"].iter().chain(words);
        let arguments = Arguments::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Compare(compare) = arguments.command else { panic!("it is another command") };
        comparisons(&compare, 7).map_err(|error| error.to_string())
    }

    fn commands(words: &[&str]) -> Vec<(String, CommandRole, Vec<String>)> {
        let mut all = asked(words).expect("it is right");
        let shown = |it: AskedCommand| {
            let words = it.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            (it.name, it.role, words)
        };
        all.remove(0).commands.into_iter().map(shown).collect()
    }

    #[test]
    fn words_are_split_without_a_shell_and_left_to_one_where_it_is_asked_for() {
        let found = commands(&["old 'a b' c", "new x"]);
        assert_eq!(found[0].2, ["old", "a b", "c"]);
        assert_eq!((found[1].0.as_str(), found[1].1), ("new x", CommandRole::Candidate));
        let found = commands(&["-S", "bash", "old | wc", "new | wc"]);
        assert_eq!(found[0].2, ["bash", "-c", "old | wc"]);
        assert_eq!(commands(&["-N", "old", "new"])[0].2, ["old"]);
    }

    #[test]
    fn one_command_with_values_becomes_several_and_several_with_values_are_compared_for_each() {
        let found = commands(&["-L", "build", "old,new", "{build}/app"]);
        let names: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["old/app", "new/app"]);
        let all = asked(&["-L", "n", "1,2", "-P", "m", "0.5", "1.5", "-D", "0.5", "old {n} {m}", "new {n}"]);
        let all = all.expect("it is right");
        assert_eq!(all.len(), 6);
        assert_eq!(all[5].parameters, [("n".to_owned(), "2".to_owned()), ("m".to_owned(), "1.5".to_owned())]);
        assert_eq!(all[5].commands[0].name, "old 2 1.5");
    }

    #[test]
    fn commands_that_are_alike_have_names_of_which_each_is_another() {
        let names = |words: &[&str]| commands(words).into_iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(names(&["a", "a", "a"]), ["a", "a (2)", "a (3)"]);
        assert_eq!(names(&["-n", "old", "a", "b"]), ["old", "b"]);
        let placebo = commands(&["a", "b", "--placebo", "c"]);
        assert_eq!(placebo[2].1, CommandRole::Placebo);
    }

    #[test]
    fn what_runs_before_is_one_for_all_or_one_for_each() {
        let prepared = |words: &[&str]| {
            let commands = asked(words).expect("it is right").remove(0).commands;
            commands.into_iter().map(|it| it.prepare[0].to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(prepared(&["a", "b", "-p", "rm x"]), ["rm", "rm"]);
        assert_eq!(prepared(&["a", "b", "-p", "one", "-p", "two"]), ["one", "two"]);
    }

    #[test]
    fn mistakes_are_named_with_what_to_write() {
        let many: Vec<&str> = std::iter::repeat_n("x", COMMANDS_MAX + 1).collect();
        for (words, there) in [
            (vec!["a"], "one command alone"),
            (vec!["a", "b 'c"], "a quote is open"),
            (vec!["a", ""], "the command is empty"),
            (vec!["a", "b", "--budget", "soon"], "--budget \"soon\": write a length"),
            (vec!["a", "b", "--runs", "5"], "--runs 5: write 6 to 10000"),
            (vec!["a", "b", "--runs", "2"], "fewer than 6 pairs give no 99 % interval"),
            (vec!["a", "b", "--min-runs", "5"], "fewer than 6 pairs give no 99 % interval"),
            (vec!["a | wc", "b"], "COMMAND \"a | wc\": `|` is a word of a shell"),
            (vec!["a", "b", "-p", "rm -f *"], "--prepare \"rm -f *\": `*` is a word of a shell"),
            (vec!["LC_ALL=C sort w", "b"], "write `env LC_ALL=C sort w`"),
            (vec!["-S", "no-such-shell", "a", "b"], "--shell: there is no program no-such-shell"),
            (vec!["-S", "", "a", "b"], "--shell: the name is empty"),
            (vec!["-N", "-S", "sh", "a", "b"], "leave one of the two out"),
            (vec!["a", "b", "--budget", "0"], "a length above 0"),
            (vec!["a", "b", "--budget", "5u"], "--budget \"5u\""),
            (vec!["-P", "x", "5", "1", "a {x}", "b"], "MIN (5) is above MAX (1)"),
            (vec!["a", "b", "--runs", "10001"], "--runs 10001: write 6 to 10000"),
            (vec!["a", "b", "--warmup", "1001"], "--warmup 1001: write 0 to 1000"),
            (vec!["a", "b", "--env", "X"], "write NAME=VALUE"),
            (vec!["a", "b", "c", "-p", "x", "-p", "y"], "given 2 times for 3 commands"),
            (vec!["a", "b", "-n", "x", "-n", "y", "-n", "z"], "--name is given 3 times for 2"),
            (vec!["-L", "x", "1,2", "a", "b"], "no command holds {x}"),
            (vec!["-P", "x", "1", "65", "a {x}", "b"], "at most 64 steps"),
            (vec!["-P", "x", "9", "1", "a {x}", "b"], "MIN to MAX"),
            (vec!["-P", "x", "1", "9", "-P", "y", "1", "9", "a {x} {y}", "b"], "more than 64 combinations"),
            (vec!["a", "b", "--fail-if", "speed > 3"], "there are cpu, user, system, time, memory"),
            (vec!["a", "b", "--fail-if", "memry > 3MiB"], "did you mean memory?"),
            (vec!["a", "b", "--fail-if", "speed > 3"], "there is no metric"),
            (vec!["a", "b", "--fail-if", "c cpu ratio > 1.03"], "there is no command \"c\""),
            (vec!["a", "b", "--fail-if", "cpu > 3% at c1"], "leave `at CELL` out"),
            (many, "compare at most 16"),
        ] {
            let error = asked(&words).expect_err("it is wrong");
            assert!(error.contains(there), "{words:?}: {error}");
        }
    }

    #[test]
    fn a_load_is_looked_up_with_the_variables_that_it_will_have() {
        let servers = |path: &'static str| {
            let words = ["--serve", "a {port}", "--serve", "b {port}", "--load", "sh {port}", "--env", path];
            asked(&words).map(|all| all.len())
        };
        assert_eq!(servers("PATH=/bin:/usr/bin"), Ok(1));
        assert_eq!(servers("PATH={dir}/bin"), Ok(1), "it is known when a server starts");
        let error = servers("PATH=/no/such/folder").expect_err("there is no such program");
        assert!(error.contains("there is no program sh"), "{error}");
    }

    #[test]
    fn a_length_without_a_unit_is_seconds() {
        let all = asked(&["--budget", "5", "--limit", "1.5", "a", "b"]).expect("it is right");
        let settings = &all[0].settings;
        assert_eq!((settings.budget_ns, settings.limit_ns), (5_000_000_000, 1_500_000_000));
        assert_eq!(duration("--budget", "500ms").ok(), Some(500_000_000));
    }

    #[test]
    fn flags_that_ask_for_the_same_are_taken_together() {
        assert_eq!(commands(&["-N", "--shell=none", "old", "new"])[0].2, ["old"]);
        let all = asked(&["--show-output", "a", "b"]).expect("it is right");
        assert_eq!((all[0].settings.output.as_str(), &all[0].output), ("inherit", &OutputTo::Inherit));
        assert!(asked(&["--show-output", "--output", "null", "a", "b"]).is_err(), "they contradict");
    }

    #[test]
    fn as_many_as_there_may_be_are_taken() {
        let many: Vec<&str> = std::iter::repeat_n("x", COMMANDS_MAX).collect();
        assert_eq!(commands(&many).len(), COMMANDS_MAX);
        assert_eq!(scanned("1", "64", "1").map(|it| it.len()), Some(COMPARISONS_MAX));
        assert_eq!(scanned("1", "65", "1"), None);
    }

    #[test]
    fn a_threshold_is_about_each_command_but_the_baseline_and_placebos() {
        let all =
            asked(&["a", "b", "c", "--placebo", "d", "--fail-if", "cpu ratio > 1.03"]).expect("it is right");
        let arms: Vec<&str> = all[0].thresholds.iter().map(|it| it.of.arm.as_str()).collect();
        assert_eq!(arms, ["b", "c"]);
    }
}
