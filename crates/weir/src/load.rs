//! `weir load`: the common part of all loads, from the flags to the exit code.

use std::{collections::BTreeMap, io, net::TcpStream, sync::atomic::Ordering, time::Duration};

use anyhow::{Context, Result, bail};
use weir_engine::{Driver, DriverChoice, net::Address};
use weir_evidence::edge::{BESIDE_MAX, Beside};
use weir_load::{LoadError, LoadSpec, Phase, Progress, Protocol};
use weir_record::load::LoadReport;
use weir_report::{Language, columns as width, localized, pad_end};

use crate::{
    engine,
    exit::{Exit, UsageError},
    flags::{Arrivals, LoadShared, MaxErrors, Settings},
    language,
    load_text::{self, Unit, columns, failures, scaled_or_none},
    output, signals,
};

/// How long before an intended start a paced sender watches the clock instead of sleeping: about what a wake-up
/// takes on a virtual machine.
pub(crate) const PACER_SPIN: Duration = Duration::from_micros(60);

/// The parts of `weir load` that depend on the protocol.
pub(crate) trait LoadCommand: Sync {
    /// The flags that every load has.
    fn shared(&self) -> &LoadShared;

    /// The complete request of a load at this place.
    fn spec(&self, place: Place) -> Result<LoadSpec>;

    /// Why generators on other hosts cannot carry it out, if they cannot.
    fn obstacle_elsewhere(&self) -> Option<String> {
        None
    }

    /// Files that its words name, for generators on other hosts, by path as it is typed.
    fn files(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        Ok(BTreeMap::new())
    }

    /// Words that generators on other hosts need beside those that were typed.
    fn words_elsewhere(&self) -> Vec<String> {
        Vec::new()
    }

    /// The unit that is counted.
    fn unit(&self) -> Unit {
        Unit::Message
    }

    /// An invalid value of a specification, with the flag that gave it.
    fn refusal(&self, field: &'static str, reason: String) -> String {
        format!("--{field}: {reason}")
    }

    /// Why that many answers may be wrong, if the flags explain it.
    fn hint(&self, _report: &LoadReport) -> Option<&'static str> {
        None
    }

    /// Opens the other outputs of the report: a path that cannot be written is an error before the load, not after it.
    fn open(&self) -> Result<Option<Sink>> {
        Ok(None)
    }

    /// The report for people.
    fn table(&self, report: &LoadReport, columns: usize, language: Language) -> String {
        load_text::table(report, columns, language)
    }
}

/// Where a load comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// This machine.
    Here,
    /// Other hosts: what names mean there is not known here.
    Elsewhere,
}

/// The target of a load whose name only its generators can resolve. RFC 5737 reserves the address.
pub(crate) const UNRESOLVED: &str = "192.0.2.1:1";

/// The outputs of a report beside standard output.
pub(crate) type Sink = Box<dyn FnOnce(&LoadReport) -> Result<()>>;

pub(crate) fn run(load: &dyn LoadCommand, settings: &Settings) -> Result<Exit> {
    let shared = load.shared();
    let language = language::chosen(shared.lang.as_deref())?;
    let mut spec = load.spec(Place::Here)?;
    check(&mut spec, shared)?;
    let sink = load.open()?;
    let (report, ending) = carry_out(&spec, load, settings, language)?;
    finish(load, (&report, ending), sink, language)
}

/// Prints the report of a load, writes its other outputs, and chooses the exit code.
pub(crate) fn finish(
    load: &dyn LoadCommand,
    (report, ending): (&LoadReport, Ending),
    sink: Option<Sink>,
    language: Language,
) -> Result<Exit> {
    let shared = load.shared();
    let text = if shared.json {
        serde_json::to_string(report)?
    } else {
        let columns = columns(output::width_columns());
        load.table(report, columns, language) + &load_text::generators(report, load.unit(), columns, language)
    };
    output::print(&text)?;
    let exit = conclude(report, ending, load);
    // Last, so that a full disk costs the file and not the report.
    sink.map_or(Ok(()), |sink| sink(report))?;
    Ok(exit)
}

/// The end of a run that has a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Complete,
    /// By a signal.
    Interrupted,
}

/// Runs a load until its end or a signal. Shows its progress unless the output is for a program. The report contains
/// the settings of the command line.
fn carry_out(
    spec: &LoadSpec,
    load: &dyn LoadCommand,
    settings: &Settings,
    language: Language,
) -> Result<(LoadReport, Ending)> {
    let stop = signals::stop_flag()?;
    let mut show = |progress: Progress| {
        if !load.shared().json {
            output::tell(&line(&progress, load.unit(), language));
        }
    };
    let report = weir_load::run(spec, &mut show, &stop).map_err(|error| refused(load, error))?;
    let report = LoadReport { settings: settings.clone(), ..report };
    let ending = if stop.load(Ordering::Relaxed) { Ending::Interrupted } else { Ending::Complete };
    Ok((report, ending))
}

/// An error of a load, with the flag that gave an invalid value.
pub(crate) fn refused(load: &dyn LoadCommand, error: LoadError) -> anyhow::Error {
    match error {
        LoadError::Invalid { field, reason } => UsageError(load.refusal(field, reason)).into(),
        other => other.into(),
    }
}

/// Chooses the exit code of a run that was reported, and prints the reason for any code but success.
fn conclude(report: &LoadReport, ending: Ending, load: &dyn LoadCommand) -> Exit {
    if ending == Ending::Interrupted {
        return Exit::Interrupted;
    }
    let Some((exit, reason)) = objection(report, load.shared().max_errors, load.unit()) else {
        return Exit::Ok;
    };
    let hint = load.hint(report).map(|hint| format!("; {hint}")).unwrap_or_default();
    output::tell(&format!("weir: {reason}{hint}"));
    exit
}

/// The share of failures above which a run measured something other than intended.
const ERROR_SHARE_MAX: f64 = 0.99;

/// Why a run did not succeed: a threshold that the user set, else no answer or almost none was right. In English, as
/// every error is.
fn objection(report: &LoadReport, max_errors: Option<MaxErrors>, unit: Unit) -> Option<(Exit, String)> {
    let unit = unit.plural(Language::English);
    let errors = report.errors();
    let percent = 100.0 * report.error_share;
    let is_exceeded = |limit: &MaxErrors| match limit {
        MaxErrors::Count(count) => errors > *count,
        MaxErrors::Percent(most) => percent > *most,
    };
    if let Some(limit) = max_errors.filter(is_exceeded) {
        let ended = errors + report.messages_whole_run;
        return Some((
            Exit::Threshold,
            format!("--max-errors {limit}: {errors} of {ended} {unit} failed ({percent:.3} %)"),
        ));
    }
    let ended = errors + report.messages_whole_run;
    let right = match report.messages {
        0 => format!("none of the {unit} measured"),
        // A threshold of the user says how much may fail.
        _ if max_errors.is_none() && report.error_share > ERROR_SHARE_MAX => {
            format!("only {} of {ended} {unit}", report.messages_whole_run)
        }
        _ => return None,
    };
    let first = report.failure_first.as_ref().map(|first| format!("; the first failure: {}", first.text));
    Some((
        Exit::RuntimeError,
        format!(
            "{right} came back right; failures: {}{}",
            failures(report, Language::English),
            first.unwrap_or_default()
        ),
    ))
}

/// The specification of a load, from the common flags and those of its protocol; `flag` gave the target, and `messages`
/// is the number of a counted run.
pub(crate) fn spec(
    (shared, place): (&LoadShared, Place),
    protocol: Protocol,
    flag: &str,
    target: &str,
    messages: Option<u64>,
) -> Result<LoadSpec> {
    let arrivals = match shared.rate {
        Some(rate_per_second) => weir_load::Arrivals::Open {
            rate_per_second,
            poisson: matches!(shared.arrivals, Arrivals::Poisson),
            spin: PACER_SPIN,
        },
        None => weir_load::Arrivals::Closed { think: engine::time("--think", &shared.think)? },
    };
    // A counted run measures all its messages, so there is no warm-up.
    let warmup = if messages.is_some() { "0s" } else { &shared.warmup_max };
    let connect_timeout = engine::time("--connect-timeout", &shared.connect_timeout)?;
    let target = match place {
        Place::Here => resolved(shared, flag, target, connect_timeout)?,
        Place::Elsewhere => {
            target.parse::<Address>().map_or_else(|_| unresolved(target), |address| address.to_string())
        }
    };
    Ok(LoadSpec {
        target,
        connections: shared.connections,
        idle_connections: shared.idle_connections,
        depth: shared.depth,
        arrivals,
        workers: shared.workers,
        pin: shared.pin.clone(),
        seed: shared.seed,
        duration: engine::time("--duration", &shared.duration)?,
        messages,
        warmup_max: engine::time("--warmup-max", warmup)?,
        ramp_up: engine::time("--ramp-up", &shared.ramp_up)?,
        connect_timeout,
        response_timeout: engine::time("--response-timeout", &shared.response_timeout)?,
        engine: engine::config(&shared.driver, &shared.options)?,
        observe_pid: shared.observe_pid,
        observe_beside: beside(&shared.observe_beside)?,
        observe_stats: shared.observe_stats.clone(),
        protocol,
    })
}

/// What stands for a target whose name is resolved elsewhere. RFC 6761 reserves `localhost` and all names below it for
/// loopback, so what these mean is known everywhere.
fn unresolved(target: &str) -> String {
    let local_port = target.rsplit_once(':').and_then(|(name, port)| {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let is_local = name == "localhost" || name.ends_with(".localhost");
        port.parse::<u16>().ok().filter(|_| is_local)
    });
    local_port.map_or_else(|| UNRESOLVED.to_owned(), |port| format!("127.0.0.1:{port}"))
}

/// The address of a target as this machine resolves it.
fn resolved(shared: &LoadShared, flag: &str, target: &str, connect_timeout: Duration) -> Result<String> {
    let addresses = engine::addresses(flag, target)?;
    let (chosen, others) = reachable(&addresses, target, |address| probe(address, connect_timeout))?;
    if others && !shared.json {
        output::tell(&format!(
            "{target}: the load goes to {chosen}, the first of its addresses that answers"
        ));
    }
    Ok(chosen.to_string())
}

/// The first of a host's addresses that accepts a connection, and whether there are others. With one address the run
/// itself reports the error.
fn reachable(
    addresses: &[Address],
    target: &str,
    probe: impl Fn(&Address) -> io::Result<()>,
) -> Result<(Address, bool)> {
    let [first, _, ..] = addresses else {
        let only = addresses.first().cloned();
        return Ok((only.with_context(|| format!("{target} has no address"))?, false));
    };
    let mut reasons = Vec::new();
    for address in addresses {
        match probe(address) {
            Ok(()) => return Ok((address.clone(), true)),
            Err(error) => reasons.push(format!("{address}: {error}")),
        }
    }
    let tried = reasons.join("; ");
    bail!(
        "cannot reach {target}: none of its addresses answers ({tried}); is a server running at {first} or another?"
    )
}

fn probe(address: &Address, limit: Duration) -> io::Result<()> {
    match address {
        Address::Tcp(address) => TcpStream::connect_timeout(address, limit).map(drop),
        Address::Unix(_) | Address::Abstract(_) => Ok(()),
    }
}

/// `exchange=4711`.
fn beside(words: &[String]) -> Result<Vec<Beside>> {
    let one = |word: &String| {
        let (node, pid) = word.split_once('=').filter(|(node, _)| !node.is_empty())?;
        Some(Beside { node: node.to_owned(), pid: pid.parse().ok()? })
    };
    if words.len() > BESIDE_MAX {
        return Err(UsageError(format!("--observe-beside: at most {BESIDE_MAX} processes")).into());
    }
    let found: Option<Vec<Beside>> = words.iter().map(one).collect();
    found
        .ok_or_else(|| UsageError("--observe-beside takes a name and a process: exchange=4711".into()).into())
}

/// Most descriptors that a process of ours has open besides its connections.
const DESCRIPTORS_BESIDE: u64 = 48;

/// Errors that only the command line can detect.
pub(crate) fn check(spec: &mut LoadSpec, shared: &LoadShared) -> Result<()> {
    let sockets = u64::from(spec.connections) + u64::from(spec.idle_connections);
    check_process(spec, shared, sockets)
}

/// The same for a process that opens this many of the load's connections.
pub(crate) fn check_process(spec: &mut LoadSpec, shared: &LoadShared, sockets: u64) -> Result<()> {
    engine::check_pin(&shared.pin)?;
    if shared.observe_stats.as_ref().is_some_and(|name| !name.starts_with('@')) {
        return Err(UsageError("--observe-stats takes an abstract name: @name".into()).into());
    }
    engine::resolve(&mut spec.engine, &shared.options)?;
    let text = match spec.engine.driver {
        DriverChoice::Named(Driver::Blocking) => {
            "--driver blocking: the generator needs many operations at once; use uring, epoll, poll or select"
                .to_owned()
        }
        DriverChoice::Named(Driver::Select) if sockets + DESCRIPTORS_BESIDE > SELECT_DESCRIPTORS => format!(
            "--driver select watches descriptors below {SELECT_DESCRIPTORS}, too few for {sockets} connections; use poll \
             or epoll, or at most {} connections",
            SELECT_DESCRIPTORS - DESCRIPTORS_BESIDE
        ),
        _ => return Ok(()),
    };
    Err(UsageError(text).into())
}

/// Descriptors that select(2) can name (`FD_SETSIZE`).
const SELECT_DESCRIPTORS: u64 = 1024;

pub(crate) fn line(progress: &Progress, unit: Unit, language: Language) -> String {
    let phases = [
        language.choose(["connecting", "연결 중", "建立连接"]),
        language.choose(["warming up", "예열", "预热"]),
        language.choose(["measuring", "측정 중", "测量"]),
    ];
    let columns = phases.map(width).into_iter().max().unwrap_or(0);
    let phase = pad_end(
        match progress.phase {
            Phase::Connecting => phases[0],
            Phase::WarmingUp => phases[1],
            Phase::Measuring => phases[2],
        },
        columns,
    );
    let percentiles = progress.second.map(|second| {
        format!("  p50 {} p99 {}", scaled_or_none(second.p50_ns), scaled_or_none(second.p99_ns))
    });
    let percentiles = percentiles.unwrap_or_default();
    let failure = progress.failure_last.as_ref().map(|failure| {
        localized!(
            language,
            "  last failure: {failure}",
            "  마지막 실패: {failure}",
            "  最近一次失败：{failure}"
        )
    });
    let failure = failure.unwrap_or_default();
    let (elapsed, planned) = (progress.elapsed.as_secs_f64(), progress.planned.as_secs_f64());
    let (each_second, rate) = (progress.messages_per_second, unit.rate(language));
    let (in_flight, errors) = (progress.in_flight, progress.errors);
    localized!(
        language,
        "{phase} {elapsed:>5.1}/{planned:.1} s  {each_second:>10.0} {rate}  {in_flight} in flight  {errors} \
         errors{percentiles}{failure}",
        "{phase} {elapsed:>5.1}/{planned:.1}초  {each_second:>10.0} {rate}  처리 중 {in_flight}건  오류 {errors}건{percentiles}{failure}",
        "{phase} {elapsed:>5.1}/{planned:.1} 秒  {each_second:>10.0} {rate}  在途 {in_flight}  错误 {errors}{percentiles}{failure}",
    )
}

#[cfg(test)]
mod tests {
    use weir_record::failure::{FailureCounts, FailureSample};

    use super::*;

    fn report(messages: u64, wrong_status: u64) -> LoadReport {
        let text = "status 500 Internal Server Error instead of 200".into();
        LoadReport {
            messages,
            messages_whole_run: messages,
            failures: FailureCounts { wrong_status, ..FailureCounts::default() },
            error_share: wrong_status as f64 / (messages + wrong_status).max(1) as f64,
            failure_first: (wrong_status > 0).then_some(FailureSample { class: "wrong_status".into(), text }),
            ..LoadReport::default()
        }
    }

    #[test]
    fn only_names_of_loopback_have_an_address_before_they_are_resolved() {
        for target in ["localhost:80", "LOCALHOST.:80", "api.localhost:80"] {
            assert_eq!(unresolved(target), "127.0.0.1:80", "{target}");
        }
        for target in ["server:80", "notlocalhost:80", "localhost.example:80", "localhost", "localhost:port"]
        {
            assert_eq!(unresolved(target), UNRESOLVED, "{target}");
        }
    }

    #[test]
    fn a_run_in_which_nothing_came_back_right_did_not_succeed() {
        assert_eq!(objection(&report(1, 9), None, Unit::Response), None);
        let (exit, reason) = objection(&report(0, 9), None, Unit::Response).expect("nothing was right");
        assert_eq!(exit, Exit::RuntimeError);
        assert!(reason.contains("9 wrong status; the first failure: status 500"), "{reason}");
        let silent = objection(&report(0, 0), None, Unit::Message).expect("nothing was right");
        assert!(silent.1.ends_with("failures: none"), "{}", silent.1);
        let tolerant = objection(&report(0, 9), Some(MaxErrors::Percent(100.0)), Unit::Response);
        assert_eq!(tolerant.map(|(exit, _)| exit), Some(Exit::RuntimeError));
    }

    #[test]
    fn starts_that_were_never_made_are_errors_that_were_not_allowed() {
        let stalled = LoadReport { failed_starts: 900, error_share: 0.9, ..report(100, 0) };
        let (exit, reason) = objection(&stalled, Some(MaxErrors::Count(0)), Unit::Response).expect("a stall");
        assert_eq!(exit, Exit::Threshold);
        assert!(reason.ends_with("900 of 1000 responses failed (90.000 %)"), "{reason}");
        let none =
            objection(&LoadReport { messages: 0, ..stalled }, None, Unit::Response).expect("nothing right");
        assert!(none.1.contains("900 never started"), "{}", none.1);
    }

    #[test]
    fn more_errors_than_were_allowed_are_a_threshold_that_is_not_met() {
        for (limit, errors, is_met) in [
            (MaxErrors::Count(0), 0, true),
            (MaxErrors::Count(0), 1, false),
            (MaxErrors::Count(5), 5, true),
            (MaxErrors::Percent(1.0), 1, true),
            (MaxErrors::Percent(1.0), 2, false),
            (MaxErrors::Count(5), 100, false),
        ] {
            let outcome = objection(&report(100 - errors, errors), Some(limit), Unit::Response);
            assert_eq!(outcome.as_ref().map(|(exit, _)| *exit), (!is_met).then_some(Exit::Threshold));
            if let Some((_, reason)) = outcome {
                assert!(reason.starts_with(&format!("--max-errors {limit}: {errors} of 100")), "{reason}");
            }
        }
    }

    #[test]
    fn a_run_in_which_almost_nothing_came_back_right_did_not_succeed_unless_that_was_allowed() {
        let (exit, reason) = objection(&report(3, 28_294), None, Unit::Response).expect("almost nothing");
        assert_eq!(exit, Exit::RuntimeError);
        assert!(reason.starts_with("only 3 of 28297 responses came back right; failures: 28294"), "{reason}");
        assert_eq!(objection(&report(1, 99), None, Unit::Response), None);
        assert_eq!(objection(&report(3, 28_294), Some(MaxErrors::Percent(100.0)), Unit::Response), None);
    }

    #[test]
    fn the_first_address_that_answers_is_taken_and_all_are_told_where_none_does() {
        let addresses = ["[::1]:80", "127.0.0.1:80"].map(|text| text.parse().expect("an address"));
        let refused = || Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        let only_v4 = |address: &Address| match address.to_string().contains("::1") {
            true => refused(),
            false => Ok(()),
        };
        let (chosen, others) = reachable(&addresses, "localhost:80", only_v4).expect("one answers");
        assert_eq!((chosen.to_string().as_str(), others), ("127.0.0.1:80", true));
        let error =
            reachable(&addresses, "localhost:80", |_| refused()).expect_err("none answers").to_string();
        for words in ["localhost:80", "[::1]:80: ", "127.0.0.1:80: ", "refused"] {
            assert!(error.contains(words), "{error}");
        }
        let one = reachable(&addresses[..1], "[::1]:80", |_| panic!("nobody asks")).expect("the only one");
        assert!(!one.1);
    }
}
