//! Errors about a wrong command line, in the reader's language. English is clap's own; Korean and Chinese say the same:
//! the error, the probable intention, the usage of the command.

use std::error::Error as _;

use clap::{
    Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};
use weir_report::{Language, localized};

use crate::{
    command::study_about,
    flags::{NO_NUMBER, NO_RATE, NO_SIZE, NO_WHOLE_NUMBER},
    help, language, output, renamed,
};

/// Prints the error, the help or the version, and ends the process.
pub(crate) fn exit(command: &Command, error: Error) -> ! {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let language = language::of_command_line();
    if let Some(text) = help_text(command, &words, &error, language) {
        // An empty command line is a mistake all the same.
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            output::tell(text.trim_end());
            std::process::exit(error.exit_code());
        }
        let printed = output::print(&text);
        std::process::exit(i32::from(printed.is_err()));
    }
    let error = with_tips(command, &words, error, language);
    let Some(text) = localized_error(&error, language) else { error.exit() };
    output::tell(&text);
    std::process::exit(error.exit_code())
}

/// The help that was requested: of a study by its name, or of a command in a language that clap's own text does not
/// have.
fn help_text(command: &Command, words: &[String], error: &Error, language: Language) -> Option<String> {
    let plain = without_language(words);
    let is_word = plain.first().is_some_and(|word| word == "help");
    let is_flag = plain.iter().any(|word| word == "--help" || word == "-h");
    let named = match &plain[..] {
        [_, study, name, ..] if is_word && study == "study" => Some(name),
        [study, name, ..] if is_flag && study == "study" => Some(name),
        _ => None,
    };
    if let Some(text) = named.and_then(|name| study_about::about(name, language)) {
        return Some(text);
    }
    let is_help = match error.kind() {
        ErrorKind::DisplayHelp => true,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => language != Language::English,
        // `--lang` has a meaning for help too, if the command has no such flag.
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            plain.len() < words.len() && (is_word || is_flag) && blames_language(error)
        }
        _ => false,
    };
    let is_ours = language != Language::English || error.kind() != ErrorKind::DisplayHelp;
    (is_help && is_ours).then(|| help::text(command, &plain, language))
}

fn blames_language(error: &Error) -> bool {
    let kinds = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let blamed = kinds.into_iter().find_map(|kind| value(error, kind));
    blamed.is_some_and(|argument| argument.starts_with("--lang"))
}

/// The words without `--lang` and its value.
fn without_language(words: &[String]) -> Vec<String> {
    let is_value = |at: usize| at > 0 && words[at - 1] == "--lang";
    let is_left =
        |(at, word): &(usize, &String)| *word != "--lang" && !word.starts_with("--lang=") && !is_value(*at);
    words.iter().enumerate().filter(is_left).map(|(_, word)| word.clone()).collect()
}

/// Flags of other tools, or likely guesses: the command, the flag, its equivalent here.
const HABITS: [(&str, &[&str], [&str; 3]); 11] = [
    (
        "study",
        &["--load-host", "--load-hosts", "--host"],
        [
            "a study has one generator, on the machine where you type: the servers' clocks are read when that one has \
             nothing in flight. --server-host moves the servers; weir load ... --host a,b loads from several hosts",
            "실험의 부하 생성기는 명령을 실행하는 머신에 하나만 있습니다. 그 생성기의 요청이 모두 끝났을 때 서버의 시계를 읽기 때문입니다. 서버는 --server-host로 \
             옮기고, 여러 호스트에서 주는 부하는 weir load ... --host a,b를 쓰십시오",
            "实验只有一个负载生成器，位于运行命令的机器上：它没有在途请求时才读取服务器的时钟。移动服务器用 --server-host；从多台主机产生负载用 weir load ... --host \
             a,b",
        ],
    ),
    (
        "study",
        &["-c", "--connections"],
        [
            "--levels connections=100 sets levels of a factor",
            "요인의 수준은 --levels connections=100으로 정합니다",
            "用 --levels connections=100 设定因子的水平",
        ],
    ),
    (
        "study",
        &["-t", "--threads", "--workers"],
        [
            "--levels workers=2 sets levels of a factor",
            "요인의 수준은 --levels workers=2로 정합니다",
            "用 --levels workers=2 设定因子的水平",
        ],
    ),
    (
        "study",
        &["-d", "--duration", "--budget"],
        [
            "--time 5min says when the last round starts, and --rounds N how many there are",
            "마지막 라운드를 시작하는 시한은 --time 5min, 라운드 수는 --rounds N으로 정합니다",
            "--time 5min 限定最后一轮的开始时间，--rounds N 设定轮数",
        ],
    ),
    (
        "study",
        &["-n", "--runs", "--repetitions"],
        [
            "--rounds N sets the rounds of each claim, and --repeat N runs the whole study N times",
            "가설마다의 라운드 수는 --rounds N, 실험 전체의 반복 횟수는 --repeat N으로 정합니다",
            "--rounds N 设定每项结论的轮数，--repeat N 将整个实验运行 N 次",
        ],
    ),
    (
        "export",
        &["--json"],
        [
            "--format json is the default; --format summary has the comparisons alone",
            "기본값은 --format json이며, 비교만 보려면 --format summary를 쓰십시오",
            "--format json 是默认值；--format summary 只含比较",
        ],
    ),
    ("export", &["--csv"], ["use --format csv", "--format csv를 쓰십시오", "请用 --format csv"]),
    ("load", &["-t", "--threads"], ["use --workers", "--workers를 쓰십시오", "请用 --workers"]),
    ("load", &["-z", "-D"], ["use --duration", "--duration을 쓰십시오", "请用 --duration"]),
    ("load", &["-q", "-R", "--rps"], ["use --rate", "--rate를 쓰십시오", "请用 --rate"]),
    (
        "serve",
        &["-p", "--port"],
        ["use --listen 127.0.0.1:PORT", "--listen 127.0.0.1:PORT를 쓰십시오", "请用 --listen 127.0.0.1:PORT"],
    ),
];

/// How to find a study.
const STUDIES_ARE_LISTED: [&str; 3] = [
    "`weir study --list` lists the studies, and `weir study quick` is the first to run",
    "`weir study --list`로 실험 목록을 볼 수 있습니다. 처음에는 `weir study quick`을 실행해 보십시오",
    "`weir study --list` 列出各实验；可先运行 `weir study quick`",
];

/// How to give an arm its command.
const ARM_FORM: [&str; 3] = [
    "write the name and the command of an arm as one word: --arm NAME=\"./server --port {port}\"",
    "비교 대상의 이름과 명령을 한 인자로 쓰십시오: --arm NAME=\"./server --port {port}\"",
    "方案的名称与命令要写成一个参数：--arm NAME=\"./server --port {port}\"",
];

/// The remedy for an arm whose command stands in a separate word.
fn separate_command(words: &[String], language: Language) -> Option<&'static str> {
    let is_command = |word: &String| word.contains([' ', '/', '{']);
    let is_apart = |three: &[String]| three[0] == "--arm" && !three[1].contains('=') && is_command(&three[2]);
    words.windows(3).any(is_apart).then(|| language.choose(ARM_FORM))
}

/// The equivalent here of another tool's flag.
fn habit(words: &[String], flag: &str, language: Language) -> Option<&'static str> {
    let flag = flag.split([' ', '=']).next().unwrap_or(flag);
    let command = words.first()?;
    let is_meant =
        |(own, flags, _): &&(&str, &[&str], [&'static str; 3])| own == command && flags.contains(&flag);
    HABITS.iter().find(is_meant).map(|(.., texts)| language.choose(*texts))
}

/// The error with useful tips: never a hidden command, and the equivalent of another tool's flag.
fn with_tips(command: &Command, words: &[String], mut error: Error, language: Language) -> Error {
    if let Some(ContextValue::Strings(names)) = error.get(ContextKind::SuggestedSubcommand) {
        let is_hidden =
            |name: &String| command.get_subcommands().any(|it| it.is_hide_set() && it.get_name() == name);
        let shown = names.iter().filter(|name| !is_hidden(name)).cloned().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(shown));
    }
    let tip = match error.kind() {
        ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict => {
            renamed::now(words.iter().map(String::as_str), language)
                .or_else(|| separate_command(words, language))
                .or_else(|| habit(words, &value(&error, ContextKind::InvalidArg)?, language))
        }
        ErrorKind::InvalidSubcommand => renamed::now(words.iter().map(String::as_str), language),
        ErrorKind::MissingRequiredArgument if words.first().is_some_and(|word| word == "study") => {
            Some(language.choose(STUDIES_ARE_LISTED))
        }
        _ => None,
    };
    if let Some(tip) = tip {
        let tips = vec![StyledStr::from(tip)];
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// The whole text; `None` if clap's own text is right.
fn localized_error(error: &Error, language: Language) -> Option<String> {
    if language == Language::English {
        return None;
    }
    let what = wrong(error, language)?;
    let mut text = localized!(language, "error: {what}", "오류: {what}", "错误：{what}");
    for tip in tips(error, language) {
        text.push_str(&format!("\n\n  {tip}"));
    }
    if let Some(usage) = value(error, ContextKind::Usage) {
        let usage = usage.trim_start_matches("Usage:").trim();
        text.push_str("\n\n");
        text.push_str(&localized!(language, "Usage: {usage}", "사용법: {usage}", "用法：{usage}"));
    }
    text.push_str("\n\n");
    text.push_str(language.choose([
        "For more information, try '--help'.",
        "자세한 내용은 '--help'로 볼 수 있습니다.",
        "更多信息请用 '--help' 查看。",
    ]));
    Some(text)
}

fn wrong(error: &Error, language: Language) -> Option<String> {
    let of = |kind: ContextKind| value(error, kind);
    Some(match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = of(ContextKind::InvalidArg)?;
            localized!(
                language,
                "unexpected argument '{argument}' found",
                "알 수 없는 인자: '{argument}'",
                "未知参数：'{argument}'",
            )
        }
        ErrorKind::InvalidSubcommand => {
            let command = of(ContextKind::InvalidSubcommand)?;
            localized!(
                language,
                "unrecognized subcommand '{command}'",
                "알 수 없는 하위 명령: '{command}'",
                "未知子命令：'{command}'",
            )
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => of_value(error, language)?,
        ErrorKind::ArgumentConflict => conflict(error, language)?,
        ErrorKind::MissingRequiredArgument => {
            let missing = of(ContextKind::InvalidArg)?;
            localized!(
                language,
                "required arguments were not provided: {missing}",
                "필요한 인자가 없습니다: {missing}",
                "缺少必需的参数：{missing}",
            )
        }
        ErrorKind::MissingSubcommand => {
            let (command, there) = (of(ContextKind::InvalidSubcommand)?, of(ContextKind::ValidSubcommand)?);
            localized!(
                language,
                "'{command}' requires a subcommand: {there}",
                "'{command}'에는 하위 명령이 필요합니다: {there}",
                "'{command}' 需要子命令：{there}",
            )
        }
        ErrorKind::TooManyValues => {
            let (argument, value) = (of(ContextKind::InvalidArg)?, of(ContextKind::InvalidValue)?);
            localized!(
                language,
                "unexpected value '{value}' for '{argument}'",
                "'{argument}'에 값이 너무 많습니다: '{value}'",
                "'{argument}' 的值过多：'{value}'",
            )
        }
        ErrorKind::NoEquals => {
            let argument = of(ContextKind::InvalidArg)?;
            localized!(
                language,
                "equal sign is needed when assigning values to '{argument}'",
                "'{argument}'의 값은 '='로 이어서 써야 합니다",
                "'{argument}' 的值须用 '=' 连写",
            )
        }
        _ => return None,
    })
}

/// A value that is not accepted, with the possible ones or the reason.
fn of_value(error: &Error, language: Language) -> Option<String> {
    let (argument, value_given) =
        (value(error, ContextKind::InvalidArg)?, value(error, ContextKind::InvalidValue)?);
    let mut text = match value_given.as_str() {
        "" => localized!(
            language,
            "a value is required for '{argument}'",
            "'{argument}'에 값이 필요합니다",
            "'{argument}' 需要一个值",
        ),
        given => localized!(
            language,
            "invalid value '{given}' for '{argument}'",
            "'{argument}'에 쓸 수 없는 값: '{given}'",
            "'{argument}' 不接受值 '{given}'",
        ),
    };
    if let Some(values) = value(error, ContextKind::ValidValue).filter(|values| !values.is_empty()) {
        text.push_str(&localized!(
            language,
            " [possible values: {values}]",
            " [쓸 수 있는 값: {values}]",
            "（可用的值：{values}）",
        ));
    }
    if let Some(source) = error.source() {
        let reason = reason(&source.to_string(), language);
        text.push_str(&format!("{}{reason}", language.colon()));
    }
    Some(text)
}

/// Why a value is not accepted: our own words, and clap's words for a range.
fn reason(english: &str, language: Language) -> String {
    if english == NO_WHOLE_NUMBER {
        let texts = [NO_WHOLE_NUMBER, "0 이상의 정수를 쓰십시오", "请写 0 或更大的整数"];
        return language.choose(texts).to_owned();
    }
    if english == NO_NUMBER {
        let texts = [NO_NUMBER, "2나 0.5와 같은 수를 쓰십시오", "请写一个数，例如 2 或 0.5"];
        return language.choose(texts).to_owned();
    }
    if english == NO_RATE {
        let texts = [NO_RATE, "500, 10k, 1.5M처럼 쓰십시오", "请写一个数，例如 500、10k 或 1.5M"];
        return language.choose(texts).to_owned();
    }
    if english == NO_SIZE {
        let texts = [
            NO_SIZE,
            "64, 4k, 1m처럼 바이트 수를 쓰십시오(1024의 거듭제곱)",
            "请写字节数，例如 64、4k 或 1m（1024 的幂）",
        ];
        return language.choose(texts).to_owned();
    }
    match english.split_once(" is not in ") {
        Some((given, range)) => localized!(
            language,
            "{given} is not in {range}",
            "{given}, 범위는 {range}",
            "{given} 不在 {range} 范围内",
        ),
        None => english.to_owned(),
    }
}

fn conflict(error: &Error, language: Language) -> Option<String> {
    let argument =
        value(error, ContextKind::InvalidArg).or_else(|| value(error, ContextKind::InvalidSubcommand))?;
    Some(match value(error, ContextKind::PriorArg) {
        Some(other) if other != argument => localized!(
            language,
            "the argument '{argument}' cannot be used with '{other}'",
            "함께 쓸 수 없는 인자: '{argument}', '{other}'",
            "'{argument}' 不能与 '{other}' 同时使用",
        ),
        Some(_) => localized!(
            language,
            "the argument '{argument}' cannot be used multiple times",
            "'{argument}'은(는) 한 번만 쓸 수 있습니다",
            "'{argument}' 只能使用一次",
        ),
        None => return None,
    })
}

/// The probable intention.
fn tips(error: &Error, language: Language) -> Vec<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let tip = |kind: ContextKind| {
        let meant = value(error, kind).filter(|meant| !meant.is_empty())?;
        Some(localized!(
            language,
            "tip: did you mean '{meant}'?",
            "비슷한 이름: '{meant}'",
            "相近的写法：'{meant}'",
        ))
    };
    let written = match error.get(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(texts)) => texts.as_slice(),
        _ => &[],
    };
    // clap's own text is English.
    let tables = || {
        let habits = HABITS.iter().map(|(.., texts)| texts);
        habits.chain(renamed::ALL.iter().map(|(_, texts)| texts)).chain([&STUDIES_ARE_LISTED, &ARM_FORM])
    };
    let ours = |text: &String| tables().any(|texts| texts.contains(&text.as_str()));
    let habits = written.iter().map(ToString::to_string).filter(ours);
    kinds.into_iter().filter_map(tip).chain(habits).collect()
}

/// A value of clap's error context as text; several with commas.
fn value(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        ContextValue::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    fn printed(words: &[&str], language: Language) -> Option<String> {
        let words = ["weir"].iter().chain(words);
        let error = Arguments::command().try_get_matches_from(words).expect_err("it is wrong");
        localized_error(&error, language)
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_meant_and_how_the_command_is_used() {
        let cases: [(&[&str], [&str; 3]); 8] = [
            (&["study", "quick", "--qiet"], ["'--qiet'", "'--quiet'", "weir study"]),
            (&["studdy"], ["'studdy'", "'study'", "weir"]),
            (&["study", "quick", "--seed", "x"], ["'x'", "--seed", "0"]),
            (&["study", "quick", "--seed"], ["--seed", "--seed", "--help"]),
            (&["study", "quick", "--resume", "a"], ["--resume", "[STUDY]", "--help"]),
            (&["serve", "echo", "--workers", "0"], ["--workers", "1..=256", "--help"]),
            (&["export", "a", "--format", "cvs"], ["'cvs'", "csv, ", "pidstat"]),
            (&["storage", "capture", "/dev/sda"], ["--out <FILE>", "weir storage capture", "--help"]),
        ];
        for (words, expected) in cases {
            assert_eq!(printed(words, Language::English), None, "clap's own");
            for language in [Language::Korean, Language::Chinese] {
                let text = printed(words, language).unwrap_or_else(|| panic!("{words:?} in {language:?}"));
                assert!(expected.iter().all(|it| text.contains(it)), "{words:?}: {text}");
                let english = ["error", "Usage", "unexpected", "tip", "possible", "whole number", "cannot"];
                assert!(!english.iter().any(|word| text.contains(word)), "{words:?}: {text}");
            }
        }
    }

    #[test]
    fn a_flag_of_another_tool_leads_to_what_does_it_here_and_no_tip_to_what_is_hidden() {
        let told = |line: &str, language: Language| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let command = Arguments::command();
            let error =
                command.clone().try_get_matches_from(std::iter::once("weir".to_owned()).chain(words.clone()));
            let error = with_tips(&command, &words, error.expect_err("it is wrong"), language);
            localized_error(&error, language).unwrap_or_else(|| error.to_string())
        };
        for (line, there) in [
            ("study quick --connections 5", "--levels connections=100"),
            ("study quick -c 5", "--levels connections=100"),
            ("study quick --load-host a,b", "weir load ... --host a,b"),
            ("study quick --duration 10s", "--time 5min"),
            ("study quick --runs=3", "--repeat N"),
            ("export results --json", "--format summary"),
            ("load echo -R 1000", "--rate"),
            ("study", "weir study --list"),
            ("study quick --arm own ./server", "--arm NAME="),
            ("study compare a b", "weir study diff"),
            ("study compare --format json a b", "weir study diff"),
            ("help study compare", "weir study diff"),
        ] {
            for language in [Language::English, Language::Korean, Language::Chinese] {
                let text = told(line, language);
                assert!(text.contains(there), "{line}: {text}");
                assert!(!text.contains("as a value"), "{line}: {text}");
            }
        }
        let misspelt = told("servee", Language::English);
        assert!(misspelt.contains("serve") && !misspelt.contains("supervise"), "{misspelt}");
    }

    #[test]
    fn a_study_is_described_where_its_help_is_asked_for_and_help_takes_a_language() {
        let asked = |line: &str, language: Language| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let command = Arguments::command();
            let parsed =
                command.clone().try_get_matches_from(std::iter::once("weir".to_owned()).chain(words.clone()));
            help_text(&command, &words, &parsed.expect_err("it is help"), language)
        };
        for line in ["study quick --help", "help study quick", "study quick -h", "study quick --rounds 4 -h"]
        {
            let text = asked(line, Language::English).unwrap_or_else(|| panic!("{line}"));
            assert!(text.starts_with("quick: Is epoll or io_uring cheaper"), "{line}: {text}");
        }
        assert_eq!(asked("study --help", Language::English), None, "clap's own");
        for line in ["--lang ko --help", "--help --lang ko", "help study --lang ko", "help --lang=ko"] {
            let text = asked(line, Language::Korean).unwrap_or_else(|| panic!("{line}"));
            assert!(text.contains("사용법: weir"), "{line}: {text}");
        }
        let english = asked("--lang en --help", Language::English).expect("it is help");
        assert!(english.contains("Usage: weir"), "{english}");
        assert_eq!(asked("study quick --qiet", Language::Korean), None, "it is a mistake");
    }

    #[test]
    fn help_is_no_error() {
        assert_eq!(printed(&["--help"], Language::Korean), None);
        assert_eq!(printed(&[], Language::Korean), None);
    }
}
