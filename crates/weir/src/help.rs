//! Help in Korean and Chinese: clap's English output, with the texts of [`texts`]. Untranslated texts (flags of all
//! commands but `weir study`, `weir compare`, `weir history` and `weir journal`) stay English.

use clap::{Arg, Command};
use weir_report::{Language, columns, pad_end, wrap};

use crate::output;

mod texts;

/// Columns before a description: a longer name has its description below it.
const NAME_COLUMNS_MAX: usize = 34;

/// Narrowest terminal that the layout supports.
const COLUMNS_MIN: usize = 40;

/// Widest line, as in clap's help.
const COLUMNS_MAX: usize = 100;

/// Names, each with its description.
type Rows = Vec<(String, String)>;

/// The help of the command that the words name: `study --help`, `help serve http`. Words that name no command get the
/// help of the program.
pub(crate) fn text(root: &Command, words: &[String], language: Language) -> String {
    let mut root = root.clone();
    root.build();
    let (command, path) = named(&root, words);
    if language == Language::English {
        return command.clone().render_long_help().to_string();
    }
    localized(command, &path, language)
}

/// The command that words name, and its path: `serve http`.
fn named<'c>(root: &'c Command, words: &[String]) -> (&'c Command, String) {
    let mut path: Vec<&str> = Vec::new();
    let mut command = root;
    for word in words.iter().skip(usize::from(words.first().is_some_and(|word| word == "help"))) {
        let Some(below) = command.find_subcommand(word).filter(|it| !it.is_hide_set()) else { break };
        path.push(below.get_name());
        command = below;
    }
    (command, path.join(" "))
}

fn localized(command: &Command, path: &str, language: Language) -> String {
    let width = output::width_columns().clamp(COLUMNS_MIN, COLUMNS_MAX);
    let mut out = String::new();
    let about = texts::command(path, language).map(str::to_owned);
    let about = about.or_else(|| command.get_about().map(ToString::to_string)).unwrap_or_default();
    wrap(&about, width).iter().for_each(|line| out.push_str(&format!("{line}\n")));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    out.push_str(&format!("\n{}{}{usage}\n", language.choose(["Usage", "사용법", "用法"]), language.colon()));
    section(
        &mut out,
        language.choose(["Commands", "명령", "命令"]),
        commands(command, path, language),
        width,
    );
    let shown = |arg: &&Arg| !arg.is_hide_set();
    let rows = |args: Vec<&Arg>| args.into_iter().map(|arg| row(arg, path, language)).collect::<Rows>();
    let positionals = rows(command.get_positionals().filter(shown).collect());
    section(&mut out, language.choose(["Arguments", "인자", "参数"]), positionals, width);
    let below = |heading: Option<&str>| {
        let own = command.get_opts().chain(flags(command)).filter(shown);
        rows(own.filter(|arg| arg.get_help_heading() == heading).collect())
    };
    section(&mut out, language.choose(["Options", "옵션", "选项"]), below(None), width);
    let mut headings: Vec<&str> = command.get_arguments().filter_map(Arg::get_help_heading).collect();
    headings.dedup();
    for heading in headings {
        section(&mut out, texts::heading(heading, language), below(Some(heading)), width);
    }
    if let Some(after) = texts::after(path, language) {
        out.push_str(&format!("\n{after}\n"));
    } else if let Some(after) = command.get_after_help() {
        out.push_str(&format!("\n{after}\n"));
    }
    out
}

/// Flags without a value; those that every command has stand last.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let all =
        || command.get_arguments().filter(|arg| !arg.is_positional() && !arg.get_action().takes_values());
    let is_usual = |arg: &&Arg| ["help", "version"].contains(&arg.get_id().as_str());
    all().filter(move |arg| !is_usual(arg)).chain(all().filter(is_usual))
}

fn commands(command: &Command, path: &str, language: Language) -> Rows {
    let row = |below: &Command| {
        let own = [path, below.get_name()].join(" ");
        let english = || below.get_about().map(ToString::to_string).unwrap_or_default();
        let about = texts::command(own.trim(), language).map_or_else(english, str::to_owned);
        (below.get_name().to_owned(), about)
    };
    command.get_subcommands().filter(|below| !below.is_hide_set()).map(row).collect()
}

/// A flag as it is typed, and what it does.
fn row(arg: &Arg, path: &str, language: Language) -> (String, String) {
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let value = match arg.get_value_names() {
        _ if !arg.is_positional() && !arg.get_action().takes_values() => String::new(),
        Some(names) => format!("<{}>", names.join("> <")),
        None => format!("<{}>", arg.get_id().as_str().to_uppercase()),
    };
    let flag = match (short, long) {
        (Some(short), Some(long)) => format!("{short}, {long}"),
        (Some(short), None) => short,
        (None, Some(long)) => format!("    {long}"),
        (None, None) => String::new(),
    };
    let name = [flag, value].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let english = || arg.get_help().map(ToString::to_string).unwrap_or_default();
    let own = texts::argument(path, arg.get_id().as_str(), language).map_or_else(english, str::to_owned);
    (name, own + &values(arg, language))
}

/// The default of a flag, and its possible values.
fn values(arg: &Arg, language: Language) -> String {
    let mut text = String::new();
    if !arg.get_action().takes_values() {
        return text;
    }
    let mut add = |texts: [&'static str; 3], values: Vec<String>| {
        if !values.is_empty() {
            let (what, values) = (language.choose(texts), values.join(", "));
            text.push_str(&format!(" [{what}{}{values}]", language.colon()));
        }
    };
    let given = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
    add(["default", "기본값", "默认"], given.collect());
    let possible = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    add(
        ["possible values", "가능한 값", "可用的值"],
        possible.map(|value| value.get_name().to_owned()).collect(),
    );
    text
}

/// A heading and its lines; nothing without lines.
fn section(out: &mut String, heading: &str, rows: Rows, width: usize) {
    if rows.is_empty() {
        return;
    }
    out.push_str(&format!("\n{heading}:\n"));
    let widest = rows.iter().map(|(name, _)| columns(name)).filter(|it| *it <= NAME_COLUMNS_MAX).max();
    let named = widest.unwrap_or(NAME_COLUMNS_MAX);
    let indent = named + 4;
    for (name, about) in rows {
        let lines = wrap(&about, width.saturating_sub(indent).max(COLUMNS_MIN / 2));
        let mut lines = lines.iter();
        if columns(&name) > named {
            out.push_str(&format!("  {name}\n"));
        } else {
            let first = lines.next().map_or("", String::as_str);
            out.push_str(format!("  {}  {first}", pad_end(&name, named)).trim_end());
            out.push('\n');
        }
        lines.for_each(|line| out.push_str(&format!("{:indent$}{line}\n", "")));
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    fn built() -> Command {
        let mut root = Arguments::command();
        root.build();
        root
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    /// Every visible command below, with its path.
    fn paths(command: &Command, path: &str, found: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help") {
            let own = format!("{path} {}", below.get_name()).trim().to_owned();
            paths(below, &own, found);
            found.push(own);
        }
    }

    #[test]
    fn every_command_and_every_flag_of_a_study_has_a_text_in_every_language() {
        let root = built();
        let mut all = vec![String::new(), "help".to_owned()];
        paths(&root, "", &mut all);
        for language in [Language::Korean, Language::Chinese] {
            for path in &all {
                assert!(texts::command(path, language).is_some(), "weir {path} in {language:?}");
            }
            let study = root.find_subcommand("study").expect("it is there");
            for arg in study.get_arguments().chain(root.get_arguments()).filter(|arg| !arg.is_hide_set()) {
                let id = arg.get_id().as_str();
                assert!(texts::argument("study", id, language).is_some(), "{id} in {language:?}");
            }
            for name in ["compare", "history"] {
                let command = root.find_subcommand(name).expect("it is there");
                for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                    let id = arg.get_id().as_str();
                    assert!(texts::argument(name, id, language).is_some(), "{name} {id} in {language:?}");
                }
            }
            let journal = root.find_subcommand("journal").expect("it is there");
            for task in journal.get_subcommands().filter(|task| task.get_name() != "help") {
                let path = format!("journal {}", task.get_name());
                for arg in task.get_arguments().filter(|arg| !arg.is_hide_set()) {
                    let id = arg.get_id().as_str();
                    assert!(texts::argument(&path, id, language).is_some(), "{path} {id} in {language:?}");
                }
            }
            assert!(texts::after("", language).is_some());
        }
        assert!(texts::unknown(&all).is_empty(), "{:?}", texts::unknown(&all));
    }

    #[test]
    fn the_first_screens_have_no_english_sentence_left() {
        for language in [Language::Korean, Language::Chinese] {
            for line in ["--help", "study --help", "compare --help", "history --help", "journal print --help"]
            {
                let text = text(&built(), &words(line), language);
                for english in ["Usage", "Commands", "Options", "Print ", "Run ", "with ", " of ", " the "] {
                    assert!(!text.contains(english), "{english:?} in {text}");
                }
                assert!(text.lines().all(|line| columns(line) <= COLUMNS_MAX), "{text}");
            }
        }
    }

    #[test]
    fn the_help_of_a_comparison_names_its_exit_codes_and_metrics_in_every_language() {
        for language in [Language::English, Language::Korean, Language::Chinese] {
            let text = text(&built(), &words("compare --help"), language);
            for code in [0, 1, 2, 10, 11, 12, 13, 14, 130] {
                let named = text.lines().filter(|line| line.starts_with(&format!("  {code:<5}"))).count();
                assert_eq!(named, 1, "{code} in {text}");
            }
            assert_eq!(text.matches("\n  weir compare ").count(), 4, "the examples stand alike: {text}");
            for metric in ["minor-faults", "voluntary-switches", "bytes-written", "instructions"] {
                assert!(text.contains(metric), "{metric} in {text}");
            }
        }
    }

    #[test]
    fn examples_fit_a_narrow_terminal() {
        fn check(command: &Command, lines: &mut usize) {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines().filter(|line| line.starts_with("  ") && line.contains("weir ")) {
                assert!(columns(line) <= 85, "{line}");
                *lines += 1;
            }
            command.get_subcommands().for_each(|below| check(below, lines));
        }
        let mut lines = 0;
        check(&Arguments::command(), &mut lines);
        assert!(lines > 15, "{lines}");
    }

    #[test]
    fn help_is_found_for_a_command_however_it_is_asked_for() {
        let root = built();
        for line in ["help serve http", "serve http --help", "serve http --lang ko -h"] {
            assert_eq!(named(&root, &words(line)).1, "serve http", "{line}");
        }
        assert_eq!(named(&root, &words("--lang ko --help")).1, "");
        let english = text(&root, &words("help study"), Language::English);
        assert!(english.contains("Usage: weir study"), "{english}");
    }
}
