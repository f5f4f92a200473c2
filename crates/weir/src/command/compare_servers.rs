//! The request of `weir compare` about servers and their load, from the command line.

use std::{ffi::OsString, time::Duration};

use anyhow::Result;
use weir_compare::{
    asked::AskedServers,
    load::{Count, Tool, WrongRegex},
    run::{OutputTo, RunSpec, program_path},
    servers::{FOLDER, OUT, PAIRS_PER_START_MAX, PORT, SETTLE_MAX},
};
use weir_judge::commands::PAIRS_DECIDING_MIN;
use weir_record::{commands::ServerSettings, spec::Ready};
use weir_report::localized;

use super::compare_asked::{duration, usage, within};
use crate::{args::Compare, language};

/// Defaults of the longest time until a server is ready, and of the time from the end of a load to the reading of
/// clocks.
const READY_WITHIN: &str = "30s";
const SETTLE: &str = "100ms";

/// Default pairs of a start: the fewest with a middle.
const PAIRS_PER_START: u32 = 3;

/// Splits words, with or without a shell.
type Words<'w> = dyn Fn(&str, &str) -> Result<Vec<OsString>> + 'w;

/// Refuses flags that contradict each other, each with the remedy.
pub(super) fn check(arguments: &Compare) -> Result<()> {
    match (&arguments.load, arguments.serve.is_empty()) {
        (None, true) => without_servers(arguments),
        (Some(_), true) => Err(wants_servers("--load")),
        (None, false) => Err(usage(
            language::of_command_line()
                .choose([
                    "--serve needs a load: add --load 'COMMAND {port}', a command that ends",
                    "--serve에는 부하가 필요합니다. 스스로 끝나는 명령을 --load 'COMMAND {port}'로 추가하십시오",
                    "--serve 需要负载：请加 --load 'COMMAND {port}'，即一个会自行结束的命令",
                ])
                .to_owned(),
        )),
        (Some(load), false) => {
            with_servers(arguments)?;
            has_places(arguments, load)
        }
    }
}

/// Flags that apply to servers alone.
fn without_servers(arguments: &Compare) -> Result<()> {
    let given = [
        ("--count-regex", arguments.count_regex.is_some()),
        ("--count-json", arguments.count_json.is_some()),
        ("--between", arguments.between.is_some()),
        ("--ready", arguments.ready.is_some()),
        ("--ready-line", arguments.ready_line.is_some()),
        ("--ready-timeout", arguments.ready_timeout.is_some()),
        ("--settle", arguments.settle.is_some()),
        ("--pairs-per-start", arguments.pairs_per_start.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(wants_servers(flag)),
        None => Ok(()),
    }
}

fn wants_servers(flag: &str) -> anyhow::Error {
    usage(localized!(
        language::of_command_line(),
        "{flag} is about servers; write --serve before the command of each",
        "{flag}: 서버를 비교할 때만 씁니다. 각 서버의 명령 앞에 --serve를 쓰십시오",
        "{flag} 只用于比较服务器；请在每个服务器的命令前写 --serve",
    ))
}

/// Flags that do not apply to servers.
fn with_servers(arguments: &Compare) -> Result<()> {
    let language = language::of_command_line();
    if let Some(command) = arguments.commands.first() {
        return Err(usage(localized!(
            language,
            "{command:?} is a command that ends, and --serve names servers; write --serve before each server",
            "{command:?}: 스스로 끝나는 명령입니다. --serve는 서버를 지정할 때 씁니다. 각 서버 앞에 --serve를 쓰십시오",
            "{command:?} 是会自行结束的命令，而 --serve 用来指定服务器；请在每个服务器前写 --serve",
        )));
    }
    if let Some(folder) = arguments.dir.as_ref().filter(|folder| !folder.is_dir()) {
        let folder = folder.display();
        return Err(usage(localized!(
            language,
            "--dir: the folder {folder} does not exist; make it, or name another one",
            "--dir: {folder} 폴더가 없습니다. 폴더를 만들거나 다른 폴더를 지정하십시오",
            "--dir：文件夹 {folder} 不存在；请创建它，或指定另一个文件夹",
        )));
    }
    let of_input = [
        "a load has no input: let it read its file itself",
        "부하에는 입력을 줄 수 없습니다. 부하가 직접 파일을 읽게 하십시오",
        "不能给负载提供输入；请让它自己读取文件",
    ];
    let of_output = [
        "what a load writes is read and not compared; leave it out",
        "부하의 출력은 읽기만 하고 비교하지 않습니다. 빼십시오",
        "负载的输出只读取，不作比较；请去掉",
    ];
    let of_prepare = [
        "write --between, which runs before each load run",
        "부하를 실행할 때마다 먼저 실행하는 --between을 쓰십시오",
        "请用 --between，它在每次负载运行之前执行",
    ];
    let refused = [
        ("--input", arguments.input.is_some(), of_input),
        ("--output", arguments.output != "pipe", of_output),
        ("--show-output", arguments.show_output, of_output),
        ("--prepare", !arguments.prepare.is_empty(), of_prepare),
    ];
    let Some((flag, _, texts)) = refused.into_iter().find(|(_, is_given, _)| *is_given) else {
        return Ok(());
    };
    let why = language.choose(texts);
    Err(usage(localized!(
        language,
        "{flag} is not for servers: {why}",
        "{flag}: 서버에는 쓸 수 없습니다. {why}",
        "{flag} 不能用于服务器：{why}",
    )))
}

/// Servers that are up together need separate ports and folders, and a load must find its server.
fn has_places(arguments: &Compare, load: &str) -> Result<()> {
    let language = language::of_command_line();
    let has_one = |text: &str| text.contains(PORT) || text.contains(FOLDER);
    let variables = arguments.env.iter().any(|it| has_one(it));
    let all = arguments.serve.iter().chain(&arguments.placebo).map(|text| ("--serve", text.as_str()));
    for (flag, text) in all.chain([("--load", load)]) {
        if !(has_one(text) || variables) {
            return Err(usage(localized!(
                language,
                "{flag} {text:?}: write {{port}} where its port belongs, or {{dir}} for its own folder; the servers are up \
                 together",
                "{flag} {text:?}: 포트를 적는 자리에 {{port}}를, 서버 전용 폴더를 적는 자리에 {{dir}}를 쓰십시오. 서버들은 동시에 실행됩니다",
                "{flag} {text:?}：请在端口的位置写 {{port}}，在其专用文件夹的位置写 {{dir}}；各服务器同时运行",
            )));
        }
        let waits_for_port = arguments.ready.is_none() && arguments.ready_line.is_none();
        if flag == "--serve" && waits_for_port && !text.contains(PORT) && !variables {
            return Err(usage(localized!(
                language,
                "{flag} {text:?} has no {{port}}, so weir cannot see when it is ready; add --ready COMMAND or --ready-line TEXT",
                "{flag} {text:?}: {{port}}가 없어 서버가 준비되었는지 알 수 없습니다. --ready COMMAND나 --ready-line TEXT를 추가하십시오",
                "{flag} {text:?} 没有 {{port}}，无法得知服务器何时就绪；请加 --ready COMMAND 或 --ready-line TEXT",
            )));
        }
    }
    let names = arguments.parameter_list.chunks_exact(2).map(|words| &words[0]);
    let names = names.chain(arguments.parameter_scan.chunks_exact(3).map(|words| &words[0]));
    match names.map(|name| format!("{{{name}}}")).find(|name| [PORT, FOLDER, OUT].contains(&name.as_str())) {
        Some(name) => Err(usage(localized!(
            language,
            "{name} is what weir puts in for each server; give the parameter another name",
            "{name}: weir가 서버마다 값을 채우는 이름입니다. 매개변수의 이름을 바꾸십시오",
            "{name} 由 weir 为每个服务器填入；请为参数另取名称",
        ))),
        None => Ok(()),
    }
}

/// The settings of servers, for the session and for the record.
pub(super) fn asked(
    arguments: &Compare,
    load: &str,
    environment: &[(OsString, OsString)],
    words: &Words<'_>,
) -> Result<(AskedServers, ServerSettings)> {
    let count = count(arguments, load)?;
    is_there(load, words("--load", load)?, environment, arguments)?;
    let (ready, ready_words) = match (&arguments.ready, &arguments.ready_line) {
        (Some(command), _) => {
            let words = words("--ready", command)?;
            let shown = words.iter().map(|word| word.to_string_lossy().into_owned());
            (Ready::Command(shown.collect()), words)
        }
        (None, Some(text)) => (Ready::Line(text.clone()), Vec::new()),
        (None, None) => (Ready::Port, Vec::new()),
    };
    let length = |flag: &str, given: &Option<String>, usual: &str| {
        duration(flag, given.as_deref().unwrap_or(usual)).map(Duration::from_nanos)
    };
    let ready_within = length("--ready-timeout", &arguments.ready_timeout, READY_WITHIN)?;
    let settle = length("--settle", &arguments.settle, SETTLE)?.min(SETTLE_MAX);
    let pairs_per_start = pairs_per_start(arguments)?;
    let settings = ServerSettings {
        load: load.to_owned(),
        count: count.source(),
        unit: count.unit(),
        ready: ready.clone(),
        ready_ns_max: nanos(ready_within),
        settle_ns: nanos(settle),
        pairs_per_start,
    };
    Ok((AskedServers { count, ready, ready_words, ready_within, settle, pairs_per_start }, settings))
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

fn pairs_per_start(arguments: &Compare) -> Result<u32> {
    let given = within("--pairs-per-start", arguments.pairs_per_start, 1, PAIRS_PER_START_MAX)?;
    let Some((pairs, runs)) = given.zip(arguments.runs) else { return Ok(given.unwrap_or(PAIRS_PER_START)) };
    let starts = runs / pairs;
    if starts < PAIRS_DECIDING_MIN {
        return Err(usage(localized!(
            language::of_command_line(),
            "--runs {runs} with --pairs-per-start {pairs} is {starts} starts, and fewer than {PAIRS_DECIDING_MIN} give no \
             99 % interval; ask for more runs, or for fewer pairs of a start",
            "--runs {runs}, --pairs-per-start {pairs}: 시작 횟수가 {starts}번입니다. {PAIRS_DECIDING_MIN}번보다 적으면 99 % 신뢰구간을 구할 \
            수 없습니다. 실행을 늘리거나 시작당 쌍의 수를 줄이십시오",
            "--runs {runs} 与 --pairs-per-start {pairs} 共 {starts} 次启动，少于 {PAIRS_DECIDING_MIN} 次无法得出 99 % \
            置信区间；请增加运行次数，或减少每次启动的对数",
        )));
    }
    Ok(pairs)
}

/// How the number of a load's units of work is read: as the flags say, or as a known tool prints it.
fn count(arguments: &Compare, load: &str) -> Result<Count> {
    let language = language::of_command_line();
    if let Some(text) = &arguments.count_regex {
        return Count::regex(text).map_err(|wrong| match wrong {
            WrongRegex::Syntax(reason) => usage(localized!(
                language,
                "--count-regex {text:?}: {reason}",
                "--count-regex {text:?}: {reason}",
                "--count-regex {text:?}：{reason}",
            )),
            WrongRegex::Groups(groups) => usage(localized!(
                language,
                "--count-regex {text:?} has {groups} groups; put round brackets around the number, once, such as 'done: \
                 ([0-9]+)'",
                "--count-regex {text:?}: 그룹이 {groups}개입니다. 'done: ([0-9]+)'처럼 숫자만 한 번 괄호로 묶으십시오",
                "--count-regex {text:?} 有 {groups} 个组；请只用一对圆括号括住数字，例如 'done: ([0-9]+)'",
            )),
        });
    }
    match &arguments.count_json {
        Some(pointer) if !pointer.starts_with('/') => Err(usage(localized!(
            language,
            "--count-json {pointer:?}: write a pointer such as /totals/count",
            "--count-json {pointer:?}: /totals/count 같은 포인터를 쓰십시오",
            "--count-json {pointer:?}：请写指针，例如 /totals/count",
        ))),
        Some(pointer) => Ok(Count::Json(pointer.clone())),
        None => Ok(Tool::of(&shlex::split(load).unwrap_or_default()).map_or(Count::None, Count::Tool)),
    }
}

/// A missing load is one mistake of the command line, and not a failure of each server. It is looked up as it will run,
/// with the variables of `--env`.
fn is_there(
    load: &str,
    words: Vec<OsString>,
    environment: &[(OsString, OsString)],
    arguments: &Compare,
) -> Result<()> {
    // A parameter, or the folder of a server in a path of programs, does not have its value yet.
    let is_open = |text: &OsString| text.to_string_lossy().contains('{');
    let paths = environment.iter().filter(|(name, _)| name == "PATH");
    if words.first().is_some_and(is_open) || paths.map(|(_, value)| value).any(is_open) {
        return Ok(());
    }
    let spec = RunSpec {
        words,
        environment: environment.to_vec(),
        folder: arguments.dir.clone(),
        input: None,
        output: OutputTo::Discard,
        limit: Duration::ZERO,
    };
    program_path(&spec).map(|_| ()).map_err(|error| {
        let error = error.to_string();
        usage(localized!(
            language::of_command_line(),
            "--load {load:?}: {error}",
            "--load {load:?}: {error}",
            "--load {load:?}：{error}",
        ))
    })
}
