//! `weir storage simulate`: methods of waiting beside each other, for a simulated disk or a recorded trace.

use std::{
    fmt::Write,
    fs::File,
    io::{BufReader, IsTerminal},
    path::Path,
    time::Duration,
};

use anyhow::Result;
use serde_json::json;
use weir_record::{SCHEMA_VERSION, latency::LatencySummary};
use weir_report::{Language, columns, localized, pad_end, pad_start};
use weir_storage::{
    predict,
    simulate::{
        self, DeviceModel, EMULATED, EMULATED_REPLAY, HostModel, LagTail, Method, Pace, PhaseReport,
        Scenario, StartTransient, calibration,
    },
    trace::{self, Trace, TraceError},
};

use crate::{
    args::StorageSimulate,
    engine,
    exit::{Exit, UsageError},
    language, output,
};

/// Shortest and longest simulated time of a job.
const JOB_TIME: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(3600)];
/// Shortest interval.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Simulated time of each point of the calibration.
const CALIBRATION_NS: u64 = 1_000_000_000;
/// Emulated parts where all are emulated, and where a trace is replayed.
const MODEL: [&str; 3] = [
    EMULATED,
    "모두 시뮬레이션입니다. 983 ZET SSD와 Xeon Gold 6230을 발표 수치에 맞춘 대기열 모델이며, 실제 디스크는 쓰지 않았습니다.",
    "以下全部为模拟：983 ZET SSD 与 Xeon Gold 6230 的排队模型，常数按公布数据拟合，没有使用任何磁盘。",
];
const REPLAY: [&str; 3] = [
    EMULATED_REPLAY,
    "지연 시간은 기록된 값입니다. 기다리는 호스트는 시뮬레이션이며, 대기 방식을 바꿔도 지연 시간은 바뀌지 않습니다.",
    "延迟为实录；等待的主机是模拟的，改变等待方式不会改变这些延迟。",
];
/// Heads of the first two columns.
const METHOD: [&str; 3] = ["method", "방식", "方法"];
const PHASE: [&str; 3] = ["phase", "단계", "阶段"];
/// Methods that stand beside all predictors.
const ORACLES: [&str; 2] = ["constant:0.01", "clairvoyant"];

/// The common input of all methods.
enum Subject {
    Model(Scenario),
    Recorded { name: String, trace: Trace, host: HostModel, interval_ns: u64, pace: Pace },
}

pub(crate) fn run(arguments: &StorageSimulate) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    if arguments.calibration {
        return print_calibration(arguments, language);
    }
    let methods = methods(arguments)?;
    let subject = subject(arguments, language)?;
    if arguments.json {
        let mut sleepless = Sleepless::default();
        let one = |method| one_as_json(&subject, method, arguments.seed, &mut sleepless);
        let results: Vec<_> = methods.iter().map(one).collect();
        let whole = json!({
            "schema_version": SCHEMA_VERSION,
            "emulated": subject.note(),
            "seed": arguments.seed,
            "scenario": subject.scenario(),
            "results": results,
            "notes": sleepless.notes(),
        });
        output::print(&whole.to_string())?;
        return Ok(Exit::Ok);
    }
    let columns = if std::io::stdout().is_terminal() { output::width_columns() } else { usize::MAX };
    let layout = Layout::fitting(subject.phase_columns(language), columns, language);
    let (note, seed) = (subject.localized(language), arguments.seed);
    let about =
        localized!(language, "{note} Seed {seed}.\n", "{note} 시드 {seed}.\n", "{note}种子 {seed}。\n");
    let about = output::fitted(&about);
    output::print(&format!("{about}\n{}", layout.heading()))?;
    let is_shown = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
    let mut sleepless = Sleepless::default();
    for (index, method) in methods.iter().enumerate() {
        if is_shown {
            let (place, all) = (index + 1, methods.len());
            output::tell(&localized!(
                language,
                "{place} of {all}: {method}",
                "{all}개 중 {place}번째: {method}",
                "第 {place} 个，共 {all} 个：{method}",
            ));
        }
        let (phases, _) = subject.run(method, arguments.seed);
        output::print(&layout.rows(method, &phases))?;
        sleepless.look(method, &phases);
    }
    for note in sleepless.localized(language) {
        output::print(&output::fitted(&format!("\n{note}")))?;
    }
    Ok(Exit::Ok)
}

fn methods(arguments: &StorageSimulate) -> Result<Vec<Method>> {
    let parse = |text: &str, armed| Method::parse(text, armed).map_err(|reason| wrong_predictor(&reason));
    if !arguments.predictors.is_empty() {
        return arguments.predictors.iter().map(|text| parse(text, arguments.armed)).collect();
    }
    // Only methods that sleep can be armed; the others are shown for comparison.
    let armed = |text: &str| arguments.armed && Method::parse(text, true).is_ok();
    predict::ALL_DEFAULTS.iter().chain(&ORACLES).map(|text| parse(text, armed(text))).collect()
}

fn wrong_predictor(reason: &str) -> anyhow::Error {
    UsageError(format!("--predictor: {reason}")).into()
}

fn subject(arguments: &StorageSimulate, language: Language) -> Result<Subject> {
    let wrong = |texts: [&'static str; 3]| Err(UsageError(language.choose(texts).to_owned()).into());
    let interval = engine::time("--interval", &arguments.interval)?;
    if interval < INTERVAL_MIN {
        return wrong([
            "--interval must be at least 1ms",
            "--interval은 1ms 이상이어야 합니다",
            "--interval 至少为 1ms",
        ]);
    }
    let interval_ns = interval.as_nanos() as u64;
    let mut host = HostModel::xeon_6230();
    if arguments.wake_tail {
        host = host.with_tail(LagTail::deep_idle());
    }
    if let Some(path) = &arguments.trace {
        let trace = read_trace(path, language)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // Formats with time stamps have one on every line.
        if arguments.pauses && trace.operations.iter().all(|operation| operation.issued_ns.is_none()) {
            return Err(UsageError(localized!(
                language,
                "--pauses: {name} says nothing of when operations were issued; leave it out",
                "--pauses: {name} 파일에는 I/O를 시작한 시각이 없습니다. 이 옵션을 빼십시오",
                "--pauses：{name} 没有记录 I/O 何时发出；请去掉此选项",
            ))
            .into());
        }
        let pace = if arguments.pauses { Pace::Recorded } else { Pace::BackToBack };
        return Ok(Subject::Recorded { name, trace, host, interval_ns, pace });
    }
    let job_time = engine::time("--job-time", &arguments.job_time)?;
    let [shortest, longest] = JOB_TIME;
    if !(shortest..=longest).contains(&job_time) {
        return wrong([
            "--job-time must be from 1ms to 1h",
            "--job-time은 1ms에서 1h 사이여야 합니다",
            "--job-time 必须在 1ms 到 1h 之间",
        ]);
    }
    let mut scenario = Scenario::paper(job_time.as_nanos() as u64);
    scenario.host = host;
    scenario.interval_ns = interval_ns;
    scenario.start_transient = arguments.start_transient.then(StartTransient::half_second);
    scenario.check().map_err(|error| UsageError(error.to_string()))?;
    Ok(Subject::Model(scenario))
}

fn read_trace(path: &Path, language: Language) -> Result<Trace> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| {
        UsageError(localized!(
            language,
            "--trace: cannot open {name}: {error}",
            "--trace: {name} 파일을 열 수 없습니다: {error}",
            "--trace：无法打开 {name}：{error}",
        ))
    })?;
    let trace = trace::read(BufReader::new(file), &name);
    trace.map_err(|error| UsageError(malformed(&error, language)).into())
}

fn malformed(error: &TraceError, language: Language) -> String {
    match error {
        TraceError::Malformed { file, line, reason } => localized!(
            language,
            "--trace: {file}, line {line}: {reason}",
            "--trace: {file} {line}행: {reason}",
            "--trace：{file} 第 {line} 行：{reason}",
        ),
        TraceError::Empty { file } => localized!(
            language,
            "--trace: {file} holds no operation",
            "--trace: {file} 파일에 I/O가 없습니다",
            "--trace：{file} 中没有 I/O",
        ),
        TraceError::Unreadable { file, source } => localized!(
            language,
            "--trace: cannot read {file}: {source}",
            "--trace: {file} 파일을 읽을 수 없습니다: {source}",
            "--trace：无法读取 {file}：{source}",
        ),
    }
}

impl Subject {
    fn note(&self) -> &'static str {
        match self {
            Self::Model(_) => EMULATED,
            Self::Recorded { .. } => EMULATED_REPLAY,
        }
    }

    /// The note in the reader's language.
    fn localized(&self, language: Language) -> &'static str {
        language.choose(match self {
            Self::Model(_) => MODEL,
            Self::Recorded { .. } => REPLAY,
        })
    }

    fn scenario(&self) -> serde_json::Value {
        match self {
            Self::Model(scenario) => json!(scenario),
            Self::Recorded { name, trace, host, interval_ns, pace } => json!({
                "trace": name,
                "operations": trace.operations.len(),
                "host": host,
                "interval_ns": interval_ns,
                "keeps_pauses": *pace == Pace::Recorded,
            }),
        }
    }

    /// Width of the longest name of a phase, and of what stands above it.
    fn phase_columns(&self, language: Language) -> usize {
        let longest = match self {
            Self::Model(scenario) => scenario.phases.iter().map(|phase| columns(&phase.name)).max(),
            Self::Recorded { name, .. } => Some(columns(name)),
        };
        longest.unwrap_or(0).max(columns(language.choose(PHASE)))
    }

    /// Phases, and events where there are any.
    fn run(&self, method: &Method, seed: u64) -> (Vec<PhaseReport>, u64) {
        match self {
            Self::Model(scenario) => {
                let report = simulate::simulate(scenario, method, seed);
                (report.phases, report.events)
            }
            Self::Recorded { name, trace, host, interval_ns, pace } => {
                let report = simulate::replay(&trace.operations, host, method, seed, *interval_ns, *pace);
                (vec![PhaseReport { name: name.clone(), ..report }], 0)
            }
        }
    }
}

/// Methods that never slept, for each phase. Without a note their rows would look like a success.
#[derive(Default)]
struct Sleepless(Vec<(String, u64, Vec<String>)>);

impl Sleepless {
    fn look(&mut self, method: &Method, phases: &[PhaseReport]) {
        for phase in phases.iter().filter(|phase| phase.never_slept(method)) {
            let method = method.to_string();
            match self.0.iter_mut().find(|(name, ..)| *name == phase.name) {
                Some((_, _, methods)) => methods.push(method),
                None => self.0.push((phase.name.clone(), phase.waiting.elapsed_ns, vec![method])),
            }
        }
    }

    fn notes(&self) -> Vec<String> {
        self.0
            .iter()
            .map(|(phase, elapsed_ns, methods)| simulate::never_slept(phase, *elapsed_ns, methods))
            .collect()
    }

    /// The notes in the reader's language.
    fn localized(&self, language: Language) -> Vec<String> {
        let one = |(phase, elapsed_ns, methods): &(String, u64, Vec<String>)| {
            let (english, elapsed_ms) =
                (simulate::never_slept(phase, *elapsed_ns, methods), *elapsed_ns as f64 / 1e6);
            let methods = methods.join(", ");
            match language {
                Language::English => english,
                Language::Korean => format!(
                    "{phase}({elapsed_ms:.1} ms) 동안 한 번도 잠들지 않은 방식: {methods}. 이 수치는 폴링의 수치이며, 놓칠 완료가 없습니다. 일정 시간 단위로 \
                    학습하는 방식(linux-mean과 lmd는 100 ms, ehp는 10 ms)은 그 시간이 여러 번 지나야 합니다."
                ),
                Language::Chinese => format!(
                    "在 {phase}（{elapsed_ms:.1} ms）中从未睡眠的方法：{methods}。其数值就是轮询的数值，没有可错过的完成。按时段学习的方法（linux-mean 与 lmd 为 \
                    100 ms，ehp 为 10 ms）需要经过多个时段。"
                ),
            }
        };
        self.0.iter().map(one).collect()
    }
}

fn one_as_json(
    subject: &Subject,
    method: &Method,
    seed: u64,
    sleepless: &mut Sleepless,
) -> serde_json::Value {
    let (phases, events) = subject.run(method, seed);
    sleepless.look(method, &phases);
    json!({ "method": method.to_string(), "armed": method.armed(), "events": events, "phases": phases })
}

/// Width of the column of methods, and of the columns of figures: where a method stands beside them, and below it.
const METHOD_COLUMNS: usize = 26;
const WIDE: [usize; 7] = [7, 7, 9, 10, 10, 10, 10];
const NARROW: [usize; 7] = [6, 5, 7, 7, 7, 7, 7];

/// Width of the table where a method stands beside its figures, without the column of phases.
const WIDE_COLUMNS: usize = 97;

/// How the table is laid out: where it would not fit, a method has a separate line above its figures.
struct Layout {
    phase_columns: usize,
    is_narrow: bool,
    language: Language,
}

impl Layout {
    fn fitting(phase_columns: usize, columns: usize, language: Language) -> Self {
        Self { phase_columns, is_narrow: columns < WIDE_COLUMNS + phase_columns, language }
    }

    fn line(&self, method: &str, phase: &str, figures: [&str; 7]) -> String {
        let phase = pad_end(phase, self.phase_columns);
        let (head, widths) = match (self.is_narrow, method) {
            (true, "") => (format!("  {phase}"), NARROW),
            (true, method) => (format!("{method}\n  {phase}"), NARROW),
            (false, method) => (format!("{} {phase}", pad_end(method, METHOD_COLUMNS)), WIDE),
        };
        let figures =
            figures.iter().zip(widths).map(|(figure, width)| format!(" {}", pad_start(figure, width)));
        format!("{head}{}\n", figures.collect::<String>())
    }

    fn heading(&self) -> String {
        let choose = |texts: [&'static str; 3]| self.language.choose(texts);
        let [misses, sleep, added] =
            [["misses", "miss", "miss"], ["sleep", "잠든 시간", "睡眠"], ["added", "추가", "附加"]]
                .map(choose);
        let [p50, p99] = match self.is_narrow {
            true => ["p50", "p99"],
            false => {
                [["added p50", "추가 p50", "附加 p50"], ["added p99", "추가 p99", "附加 p99"]].map(choose)
            }
        };
        // The narrow table has room for one word.
        let sleep = if self.is_narrow { choose(["sleep", "수면", "睡眠"]) } else { sleep };
        let titles = [misses, "CPU", "IOPS", sleep, added, p50, p99];
        let units = ["%", "%", "1/s", "µs", "µs", "µs", "µs"];
        self.line(choose(METHOD), choose(PHASE), titles) + &self.line("", "", units)
    }

    fn rows(&self, method: &Method, phases: &[PhaseReport]) -> String {
        let mut text = String::new();
        let mut name = method.to_string();
        for phase in phases {
            let added = |quantile| quantile_us(&phase.waiting.added, quantile);
            let cells = [
                format!("{:.2}", phase.miss_share() * 100.0),
                format!("{:.1}", phase.cpu_share() * 100.0),
                format!("{:.0}", phase.iops()),
                format!("{:.2}", phase.sleep_effective_ns() / 1e3),
                format!("{:.2}", phase.added_ns_mean() / 1e3),
                added(0.5),
                added(0.99),
            ];
            text.push_str(&self.line(&name, &phase.name, cells.each_ref().map(String::as_str)));
            name.clear();
        }
        text
    }
}

/// A quantile, if there are enough samples for it.
fn quantile_us(summary: &LatencySummary, quantile: f64) -> String {
    summary.quantile_ns(quantile).map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e3))
}

fn print_calibration(arguments: &StorageSimulate, language: Language) -> Result<Exit> {
    let (device, host) = (DeviceModel::zet_983(), HostModel::xeon_6230());
    let rows = calibration::calibration(&device, &host, CALIBRATION_NS, arguments.seed);
    if arguments.json {
        let whole = json!({
            "schema_version": SCHEMA_VERSION,
            "emulated": EMULATED,
            "seed": arguments.seed,
            "device": device,
            "host": host,
            "rows": rows,
        });
        output::print(&whole.to_string())?;
        return Ok(Exit::Ok);
    }
    output::print(&calibrated(&rows, language))?;
    Ok(Exit::Ok)
}

/// Published figures and the model's, one line for each number of threads.
fn calibrated(rows: &[calibration::CalibrationRow], language: Language) -> String {
    const WIDTHS: [usize; 6] = [7, 11, 9, 7, 11, 9];
    let note = language.choose(MODEL);
    let choose = |texts: [&'static str; 3]| language.choose(texts);
    let titles = [
        ["threads", "스레드", "线程"],
        ["kIOPS publ.", "kIOPS 발표", "kIOPS 公布"],
        ["model", "모델", "模型"],
        ["%"; 3],
        ["CPU % publ.", "CPU % 발표", "CPU % 公布"],
        ["model", "모델", "模型"],
    ];
    let heads =
        titles.iter().zip(WIDTHS).map(|(head, width)| format!(" {}", pad_start(choose(*head), width)));
    let heads = pad_end(choose(METHOD), 12) + &heads.collect::<String>();
    let mut text = localized!(
        language,
        "{note} Published: 4 KiB random reads of N threads, one operation in flight each (artifact of DPAS, FAST '26).\n\n\
         {heads}\n",
        "{note} 발표 수치: 스레드 N개가 각각 한 번에 하나씩 하는 4 KiB 임의 읽기(DPAS의 아티팩트, FAST '26).\n\n{heads}\n",
        "{note}公布的数据：N 个线程各有一个在途 I/O 的 4 KiB 随机读（DPAS 的工件，FAST '26）。\n\n{heads}\n",
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<12} {:>7} {:>11.1} {:>9.1} {:>+7.1} {:>11.1} {:>9.1}",
            row.method,
            row.threads,
            row.kiops_published,
            row.kiops_model,
            row.difference() * 100.0,
            row.cpu_published * 100.0,
            row.cpu_model * 100.0,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_sixty_columns() {
        let cells = ["100.00", "100.0", "1234567", "1234.56", "1234.56", "1234.56", "1234.56"];
        for language in Language::ALL {
            for width in [60, 101, 102] {
                let layout = Layout::fitting(5, width, language);
                let text = layout.heading() + &layout.line("clairvoyant", "Job1", cells);
                assert!(text.lines().all(|line| columns(line) <= width), "{width}: {text}");
                assert_eq!(layout.is_narrow, width < 102);
                assert!(cells.iter().all(|cell| text.contains(cell)), "{text}");
            }
        }
    }

    #[test]
    fn a_table_has_one_row_for_each_phase_and_names_the_method_once() {
        let method = Method::parse("poll", false).expect("a predictor");
        let phases = simulate::simulate(&Scenario::paper(10_000_000), &method, 1).phases;
        for language in Language::ALL {
            let layout = Layout::fitting(8, usize::MAX, language);
            let text = layout.heading() + &layout.rows(&method, &phases);
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 5);
            assert!(lines[2].starts_with("poll ") && lines[2].contains("Job1"), "{text}");
            assert!(lines[4].starts_with("     ") && lines[4].contains("Job3"), "{text}");
            let widths: Vec<usize> = lines.iter().map(|line| columns(line)).collect();
            assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        }
    }

    #[test]
    fn a_quantile_without_samples_is_a_dash() {
        assert_eq!(quantile_us(&LatencySummary::default(), 0.99), "-");
    }
}
