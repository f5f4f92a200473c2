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
use weir_record::{SCHEMA_VERSION, load::LatencySummary};
use weir_storage::{
    predict,
    simulate::{
        self, DeviceModel, EMULATED, EMULATED_REPLAY, HostModel, LagTail, Method, Pace, PhaseReport,
        Scenario, StartTransient, calibration,
    },
    trace::{self, Trace},
};

use crate::{
    args::StorageSimulate,
    command::engine,
    exit::{Exit, UsageError},
    output,
};

/// Simulated time of a job, at least and at most.
const JOB_TIME: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(3600)];
/// Interval, at least.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Simulated time of each point of the calibration.
const CALIBRATION_NS: u64 = 1_000_000_000;
/// Methods that are shown beside all predictors.
const ORACLES: [&str; 2] = ["constant:0.01", "clairvoyant"];

/// What all methods are given.
enum Subject {
    Model(Scenario),
    Recorded { name: String, trace: Trace, host: HostModel, interval_ns: u64, pace: Pace },
}

pub(crate) fn run(arguments: &StorageSimulate) -> Result<Exit> {
    if arguments.calibration {
        return print_calibration(arguments);
    }
    let methods = methods(arguments)?;
    let subject = subject(arguments)?;
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
    let layout = Layout::fitting(subject.phase_columns(), columns);
    let about = output::fitted(&format!("{} Seed {}.\n", subject.note(), arguments.seed));
    output::print(&format!("{about}\n{}", layout.heading()))?;
    let is_shown = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
    let mut sleepless = Sleepless::default();
    for (index, method) in methods.iter().enumerate() {
        if is_shown {
            output::tell(&format!("{} of {}: {method}", index + 1, methods.len()));
        }
        let (phases, _) = subject.run(method, arguments.seed);
        output::print(&layout.rows(method, &phases))?;
        sleepless.look(method, &phases);
    }
    for note in sleepless.notes() {
        output::print(&output::fitted(&format!("\n{note}")))?;
    }
    Ok(Exit::Ok)
}

fn methods(arguments: &StorageSimulate) -> Result<Vec<Method>> {
    let parse = |text: &str, armed| Method::parse(text, armed).map_err(|told| told_of_flag(&told));
    if !arguments.predictors.is_empty() {
        return arguments.predictors.iter().map(|text| parse(text, arguments.armed)).collect();
    }
    // Of all methods only those that sleep can be armed; the others stand beside them.
    let armed = |text: &str| arguments.armed && Method::parse(text, true).is_ok();
    predict::ALL_DEFAULTS.iter().chain(&ORACLES).map(|text| parse(text, armed(text))).collect()
}

fn told_of_flag(told: &str) -> anyhow::Error {
    UsageError(format!("--predictor: {told}")).into()
}

fn subject(arguments: &StorageSimulate) -> Result<Subject> {
    let interval = engine::time("--interval", &arguments.interval)?;
    if interval < INTERVAL_MIN {
        return Err(UsageError("--interval must be at least 1ms".into()).into());
    }
    let interval_ns = interval.as_nanos() as u64;
    let mut host = HostModel::xeon_6230();
    if arguments.wake_tail {
        host = host.with_tail(LagTail::deep_idle());
    }
    if let Some(path) = &arguments.trace {
        let trace = read_trace(path)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        // Formats with time stamps have one on every line.
        if arguments.pauses && trace.operations.iter().all(|operation| operation.issued_ns.is_none()) {
            let text = format!("--pauses: {name} says nothing of when operations were issued; leave it out");
            return Err(UsageError(text).into());
        }
        let pace = if arguments.pauses { Pace::Recorded } else { Pace::BackToBack };
        return Ok(Subject::Recorded { name, trace, host, interval_ns, pace });
    }
    let job_time = engine::time("--job-time", &arguments.job_time)?;
    let [shortest, longest] = JOB_TIME;
    if !(shortest..=longest).contains(&job_time) {
        return Err(UsageError("--job-time must be from 1ms to 1h".into()).into());
    }
    let mut scenario = Scenario::paper(job_time.as_nanos() as u64);
    scenario.host = host;
    scenario.interval_ns = interval_ns;
    scenario.start_transient = arguments.start_transient.then(StartTransient::half_second);
    scenario.check().map_err(|error| UsageError(error.to_string()))?;
    Ok(Subject::Model(scenario))
}

fn read_trace(path: &Path) -> Result<Trace> {
    let name = path.display().to_string();
    let file =
        File::open(path).map_err(|error| UsageError(format!("--trace: cannot open {name}: {error}")))?;
    let trace = trace::read(BufReader::new(file), &name);
    trace.map_err(|error| UsageError(format!("--trace: {error}")).into())
}

impl Subject {
    fn note(&self) -> &'static str {
        match self {
            Self::Model(_) => EMULATED,
            Self::Recorded { .. } => EMULATED_REPLAY,
        }
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
    fn phase_columns(&self) -> usize {
        let longest = match self {
            Self::Model(scenario) => scenario.phases.iter().map(|phase| phase.name.chars().count()).max(),
            Self::Recorded { name, .. } => Some(name.chars().count()),
        };
        longest.unwrap_or(0).max("phase".len())
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

/// Methods that never slept, of each phase. Without a word their rows would look like a success.
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

/// Width of the table where a method stands beside its figures, without the column of phases.
const WIDE_COLUMNS: usize = 97;

/// How the table is laid out: where it would not fit, a method has a line of its own above its figures.
struct Layout {
    phase_columns: usize,
    is_narrow: bool,
}

impl Layout {
    fn fitting(phase_columns: usize, columns: usize) -> Self {
        Self { phase_columns, is_narrow: columns < WIDE_COLUMNS + phase_columns }
    }

    fn line(
        &self,
        method: &str,
        phase: &str,
        [misses, cpu, iops, sleep, added, p50, p99]: [&str; 7],
    ) -> String {
        let width = self.phase_columns;
        if self.is_narrow {
            let above = if method.is_empty() { String::new() } else { format!("{method}\n") };
            return format!(
                "{above}  {phase:<width$} {misses:>6} {cpu:>5} {iops:>7} {sleep:>7} {added:>7} {p50:>7} {p99:>7}\n"
            );
        }
        format!(
            "{method:<26} {phase:<width$} {misses:>7} {cpu:>7} {iops:>9} {sleep:>10} {added:>10} {p50:>10} {p99:>10}\n"
        )
    }

    fn heading(&self) -> String {
        let [p50, p99] = if self.is_narrow { ["p50", "p99"] } else { ["added p50", "added p99"] };
        let titles = ["misses", "CPU", "IOPS", "sleep", "added", p50, p99];
        let units = ["%", "%", "1/s", "µs", "µs", "µs", "µs"];
        self.line("method", "phase", titles) + &self.line("", "", units)
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

/// A quantile, where there are samples enough for it.
fn quantile_us(summary: &LatencySummary, quantile: f64) -> String {
    summary.quantile_ns(quantile).map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e3))
}

fn print_calibration(arguments: &StorageSimulate) -> Result<Exit> {
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
    let mut text = format!(
        "{EMULATED} Published: 4 KiB random reads of N threads, one operation in flight each (artifact of DPAS, FAST '26).\n\n\
         {:<12} {:>7} {:>11} {:>9} {:>7} {:>11} {:>9}\n",
        "method", "threads", "kIOPS publ.", "model", "%", "CPU % publ.", "model"
    );
    for row in &rows {
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
    output::print(&text)?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_fits_sixty_columns() {
        let cells = ["100.00", "100.0", "1234567", "1234.56", "1234.56", "1234.56", "1234.56"];
        for columns in [60, 101, 102] {
            let layout = Layout::fitting(5, columns);
            let text = layout.heading() + &layout.line("clairvoyant", "Job1", cells);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            assert_eq!(layout.is_narrow, columns < 102);
            assert!(cells.iter().all(|cell| text.contains(cell)), "{text}");
        }
    }

    #[test]
    fn a_table_has_one_row_for_each_phase_and_names_the_method_once() {
        let method = Method::parse("poll", false).expect("a predictor");
        let phases = simulate::simulate(&Scenario::paper(10_000_000), &method, 1).phases;
        let layout = Layout::fitting(8, usize::MAX);
        let text = layout.heading() + &layout.rows(&method, &phases);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[2].starts_with("poll ") && lines[2].contains("Job1"), "{text}");
        assert!(lines[4].starts_with("     ") && lines[4].contains("Job3"), "{text}");
        let widths: Vec<usize> = lines.iter().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }

    #[test]
    fn a_quantile_without_samples_is_a_dash() {
        assert_eq!(quantile_us(&LatencySummary::default(), 0.99), "-");
    }
}
