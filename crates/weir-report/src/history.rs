//! The history of a question over stored runs: text for a terminal with a small drawing, Markdown, CSV, and a page with
//! a row for each run. Nothing is computed here: effects against the reference come from the record.

mod csv;
mod page;
mod runs;
mod text;

use weir_record::{
    effect::EffectScale,
    history::{
        History, HistoryBreak, HistoryChange, HistoryFigure, HistoryLack, HistoryLeftOut, HistoryProgram,
        HistoryQuestion, HistorySeries, HistoryStretch,
    },
};

use crate::{
    display::{printable, truncate},
    format,
    language::{Language, localized},
    markdown::escape,
    metrics, when,
};

pub use csv::lines as csv;
pub use page::html_below;
pub use text::terminal;

/// Columns that a name may take in a sentence.
const NAME_COLUMNS_MAX: usize = 40;

/// Columns of hashes, as they are shown.
const CONTENT_COLUMNS_MAX: usize = 40;

/// Characters that tell one hash from another.
const HASH_CHARACTERS: usize = 8;

/// Most runs that are named as left out.
const LEFT_OUT_MAX: usize = 8;

/// The same as GitHub-flavoured Markdown.
pub fn markdown(history: &History, language: Language) -> String {
    let mut parts: Vec<String> = Vec::new();
    for series in &history.series {
        parts.push(format!("### {}\n", escape(&title(series, language))));
        parts.extend(facts(series, language).into_iter().map(|line| format!("- {}", escape(&line))));
        parts.push(String::new());
        let cells = runs::table(series, language);
        let line = |cells: &[String]| {
            format!("| {} |", cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>().join(" | "))
        };
        parts.push(line(&cells.head));
        parts.push(format!("|{}", " --- |".repeat(cells.head.len())));
        parts.extend(cells.rows.iter().map(|row| line(row)));
        parts.push(String::new());
    }
    parts.extend(left_out(history, language).into_iter().map(|line| format!("{}\n", escape(&line))));
    parts.join("\n") + "\n"
}

/// What a series is of.
fn title(series: &HistorySeries, language: Language) -> String {
    let HistorySeries { arm, baseline, metric, kind, .. } = series;
    let metric = metrics::of_kind(*metric, *kind, language);
    let compared = format!("{} / {}", name(arm), name(baseline));
    match &series.of {
        HistoryQuestion::Study { name: study, cell_id } => {
            let (study, cell) = (name(study), name(cell_id));
            localized!(
                language,
                "Study {study}, {cell}: {metric}, {compared}",
                "실험 {study}, {cell}: {metric}, {compared}",
                "实验 {study}，{cell}：{metric}，{compared}",
            )
        }
        HistoryQuestion::Commands { parameters } if parameters.is_empty() => format!("{metric}, {compared}"),
        HistoryQuestion::Commands { parameters } => {
            let all: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("{metric}, {compared} ({})", name(&all.join(language.list())))
        }
    }
}

/// What must be known before the rows are read.
fn facts(series: &HistorySeries, language: Language) -> Vec<String> {
    let mut lines = vec![counted(series, language)];
    lines.extend(common_branch(series).map(|branch| {
        let branch = name(branch);
        localized!(language, "Branch: {branch}.", "브랜치: {branch}.", "分支：{branch}。")
    }));
    lines.extend(series.stretches.iter().map(|stretch| reference(series, stretch, language)));
    if series.stretches.iter().any(|stretch| stretch.reference.content.is_empty()) {
        lines.push(language.choose(UNKNOWN).to_owned());
    }
    if series.runs.iter().any(|run| run.links > 1) {
        lines.push(language.choose(CHAINED).to_owned());
    }
    lines.push(language.choose(WITHIN).to_owned());
    if series.runs.iter().any(|run| run.change.is_some()) {
        lines.push(language.choose(MARKED).to_owned());
    }
    lines
}

const UNKNOWN: [&str; 3] = [
    "Where the content of a reference is not known (a shell or another program starts it), it may be another program in \
     each run: no such run is marked, and nothing is multiplied through it.",
    "내용을 알 수 없는 참조(셸이나 다른 프로그램이 시작함)는 실행마다 다른 프로그램일 수 있습니다. 그런 실행에는 표시를 하지 않고, 그것을 거쳐 곱하지도 않습니다.",
    "内容未知的参照（由 shell 或其他程序启动）在各次运行中可能是不同的程序：此类运行不作标记，也不经由它相乘。",
];

const CHAINED: [&str; 3] = [
    "×N: the baseline was the program of an earlier run, and N effects are multiplied (differences added) along the way \
     to the reference. Their errors are added as those of independent runs. Marks leave out the effects that two runs \
     share.",
    "×N: 기준이 이전 실행의 프로그램이므로, 참조까지 이어지는 효과 N개를 곱한 값입니다(차이는 더합니다). 오차는 서로 독립인 실행으로 보고 합칩니다. 표시는 두 실행이 함께 쓰는 \
     효과를 빼고 정합니다.",
    "×N：基线是更早一次运行的程序，因此将到参照为止的 N 个效应相乘（差值则相加）。误差按各次运行相互独立合并。标记不计两次运行共有的效应。",
];

const WITHIN: [&str; 3] = [
    "An interval is made of what a run measured within itself. What moved between runs is in none.",
    "신뢰구간은 각 실행 안에서 측정한 값으로만 구합니다. 실행 사이에 달라진 것은 들어 있지 않습니다.",
    "置信区间只由该次运行内部的测量得出，不含运行之间的变化。",
];

const MARKED: [&str; 3] = [
    "▲ and ▼ mark a run whose interval does not overlap with that of the run before it, against the same reference.",
    "▲와 ▼는 참조가 같은 바로 앞 실행의 신뢰구간과 겹치지 않는 실행입니다.",
    "▲ 与 ▼ 表示该次运行的置信区间与参照相同的前一次运行不重叠。",
];

fn counted(series: &HistorySeries, language: Language) -> String {
    let runs = series.runs.len();
    let times = || series.runs.iter().filter_map(|run| run.began_unix_s);
    let range = times().min().zip(times().max()).map(|(began, ended)| match began == ended {
        true => format!("{} UTC", when::minute(began)),
        false => when::range(language, began, ended),
    });
    let range = range.map_or_else(String::new, |it| format!("{}{it}", language.choose([", ", ", ", "，"])));
    let level = series.runs.last().map_or(0.99, |run| run.level);
    let level = format::percent(level);
    let what = match series.scale {
        EffectScale::Ratio => language.choose(["ratio", "비율과", "比值"]),
        _ => language.choose(["difference", "차이와", "差值"]),
    };
    let counted = localized!(
        language,
        "Runs: {runs}{range}. Effect: {what} with its interval ({level}).",
        "실행 {runs}회{range}. 효과: {what} 신뢰구간({level}).",
        "运行 {runs} 次{range}。效应：{what}及其置信区间（{level}）。",
    );
    match series.runs_older {
        0 => counted,
        older => localized!(
            language,
            "{counted} Older runs that are not shown: {older}.",
            "{counted} 표시하지 않은 더 이전의 실행: {older}회.",
            "{counted}未显示的更早运行：{older} 次。",
        ),
    }
}

/// The branch that all runs have.
fn common_branch(series: &HistorySeries) -> Option<&str> {
    let first = series.runs.first()?.origin.branch.as_deref()?;
    let is_same = series.runs.iter().all(|run| run.origin.branch.as_deref() == Some(first));
    is_same.then_some(first)
}

/// The name of a stretch: a letter as long as there are any.
fn letter(number: u32) -> String {
    let letter = number.checked_sub(1).and_then(|place| u8::try_from(place).ok()).filter(|place| *place < 26);
    letter.map_or_else(|| number.to_string(), |place| char::from(b'A' + place).to_string())
}

/// Which program and which machine a stretch is of, and why it began.
fn reference(series: &HistorySeries, stretch: &HistoryStretch, language: Language) -> String {
    let letter = letter(stretch.number);
    let (program, machine) = (program(&stretch.reference, language), machine(stretch, language));
    let text = localized!(
        language,
        "Reference {letter}: {program}; {machine}.",
        "참조 {letter}: {program}. {machine}.",
        "参照 {letter}：{program}；{machine}。",
    );
    let is_first = series.stretches.first().is_some_and(|first| first.number == stretch.number);
    match stretch.break_by.filter(|_| !is_first) {
        Some(by) => format!("{text}{}{}", language.choose([" ", " ", ""]), break_by(by, language)),
        None => text,
    }
}

fn break_by(by: HistoryBreak, language: Language) -> &'static str {
    language.choose(match by {
        HistoryBreak::Reference => [
            "The series breaks there: the baseline is another program, which no run before it measured.",
            "여기서 계열이 끊깁니다: 기준이 다른 프로그램이며, 그 전의 어느 실행도 이 프로그램을 측정하지 않았습니다.",
            "序列在此中断：基线是另一个程序，之前没有运行测量过它。",
        ],
        HistoryBreak::Machine => [
            "The series breaks there: the CPU or the kernel is another.",
            "여기서 계열이 끊깁니다: CPU나 커널이 다릅니다.",
            "序列在此中断：CPU 或内核不同。",
        ],
    })
}

/// A program with the hashes of its files, shortened.
fn program(program: &HistoryProgram, language: Language) -> String {
    let HistoryProgram { name: called, content, .. } = program;
    let called = if called.is_empty() { format::ABSENT.to_owned() } else { name(called) };
    let is_hash =
        |word: &str| word.len() > HASH_CHARACTERS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if content.is_empty() {
        return localized!(
            language,
            "{called} (its content is not known)",
            "{called}(내용을 알 수 없음)",
            "{called}（内容未知）",
        );
    }
    let short = |word: &str| if is_hash(word) { word[..HASH_CHARACTERS].to_owned() } else { word.to_owned() };
    let content = content.split(' ').map(short).collect::<Vec<_>>().join(" ");
    format!("{called} {}", truncate(&printable(&content), CONTENT_COLUMNS_MAX))
}

fn machine(stretch: &HistoryStretch, language: Language) -> String {
    let HistoryStretch { cpu_model, cpus_online, kernel_release, .. } = stretch;
    let (cpu, kernel) = (name(cpu_model), name(kernel_release));
    let cpu = if cpu.is_empty() { format::ABSENT.to_owned() } else { cpu };
    localized!(
        language,
        "{cpu}, CPUs: {cpus_online}, Linux {kernel}",
        "{cpu}, CPU {cpus_online}개, Linux {kernel}",
        "{cpu}，CPU {cpus_online} 个，Linux {kernel}",
    )
}

/// A name in a sentence.
fn name(text: &str) -> String {
    truncate(&printable(text), NAME_COLUMNS_MAX)
}

/// An effect with its interval: `0.954 [0.940, 0.968]`, `+1.20 µs [+1.00 µs, +1.40 µs]`.
fn number(series: &HistorySeries, found: Option<HistoryFigure>) -> String {
    let HistoryFigure { figure, interval } = found.unwrap_or_default();
    if series.scale == EffectScale::Ratio {
        return format::ratio_and_interval(figure, interval);
    }
    let signed = |value: f64| {
        let sign = if value < 0.0 { "−" } else { "+" };
        format!("{sign}{}", metrics::bare(series.metric, value.abs()))
    };
    match (figure, interval) {
        (Some(figure), Some((low, high))) => {
            format!("{} [{}, {}]", signed(figure), signed(low), signed(high))
        }
        (Some(figure), None) => signed(figure),
        (None, _) => format::ABSENT.to_owned(),
    }
}

/// The mark of a run that differs from the one before.
fn mark(change: Option<HistoryChange>) -> &'static str {
    match change {
        Some(HistoryChange::Up) => "▲",
        Some(HistoryChange::Down) => "▼",
        None => "",
    }
}

/// What is in no series, and how many series are not shown.
fn left_out(history: &History, language: Language) -> Vec<String> {
    let mut lines: Vec<String> =
        history.left_out.iter().take(LEFT_OUT_MAX).map(|it| of_left_out(it, language)).collect();
    let more = history.left_out.len().saturating_sub(LEFT_OUT_MAX);
    if more > 0 {
        lines.push(localized!(
            language,
            "Left out as well: {more} more.",
            "이 밖에 {more}개를 제외했습니다.",
            "另有 {more} 个未计入。",
        ));
    }
    if history.series_left_out > 0 {
        let more = history.series_left_out;
        lines.push(localized!(
            language,
            "Further series that are not shown: {more}. `--study NAME` chooses one.",
            "표시하지 않은 계열: {more}개. `--study NAME`으로 고를 수 있습니다.",
            "未显示的其他序列：{more} 个。可用 `--study NAME` 选择。",
        ));
    }
    if history.results_unread > 0 {
        let more = history.results_unread;
        lines.push(localized!(
            language,
            "Older results that were not read: {more}. References come from the results that were read.",
            "읽지 않은 더 이전의 결과: {more}개. 참조는 읽은 결과에서 정합니다.",
            "未读取的更早结果：{more} 个。参照取自已读取的结果。",
        ));
    }
    lines
}

fn of_left_out(left_out: &HistoryLeftOut, language: Language) -> String {
    let place = printable(&left_out.place);
    let why = language.choose(match left_out.reason {
        HistoryLack::Unreadable => [
            "it cannot be read, or is no result",
            "읽을 수 없거나 결과 파일이 아닙니다",
            "无法读取，或不是结果文件",
        ],
        HistoryLack::TooLong => ["it is too long", "너무 큽니다", "文件过长"],
        HistoryLack::Unfinished => ["it is not finished", "끝나지 않았습니다", "尚未完成"],
        HistoryLack::Newer => {
            ["a later version of Weir wrote it", "더 새로운 버전의 Weir가 썼습니다", "由更新版本的 Weir 写入"]
        }
    });
    localized!(language, "Left out: {place}: {why}.", "제외: {place}: {why}.", "未计入：{place}：{why}。")
}

#[cfg(test)]
mod tests;
