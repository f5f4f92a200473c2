//! The requested study, and its plan on this machine.

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, time::SystemTime};

use anyhow::Result;
use rustix::net::{AddressFamily, SocketType, sockopt::set_tcp_congestion};
use weir_engine::{Config, DriverReport, Runtime, StartError};
use weir_evidence::placement::{self, Topology};
use weir_lab::{
    alternation,
    builtin::BuiltIn,
    host_defaults::{DriverFound, HostDefaults, OrderCpus},
    limits, outline,
    study_file::{self, Choices, FileError},
};
use weir_record::{
    finding::Finding,
    machine::{Fingerprint, GRANTED_LIMIT},
    spec::{StudySpec, Subject},
    study::MissingArm,
};
use weir_report::localized;
use weir_store::NewStudy;

use super::{doctor, study_arms, study_baseline, study_host::Machines, study_storage};
use crate::{
    args::{PEERS, Study, all_study_names},
    engine,
    exit::UsageError,
    language, renamed, request_mix,
};

/// The study of I/O models; `--storage` chooses the other half.
const SURVEY: &str = "survey";
const SURVEY_STORAGE: &str = "survey-storage";

/// The plan that `--published-plan` chooses.
const PUBLISHED: &str = "published";

/// A study as a text.
pub(super) struct Written {
    /// Its name on the command line.
    pub(super) name: String,
    /// Its file; for a built-in study only for messages.
    path: PathBuf,
    pub(super) text: Cow<'static, str>,
    /// The text before the command line changed it; absent if it did not.
    own_text: Option<Cow<'static, str>>,
    /// The requested plan of it.
    plan: Option<String>,
}

/// Finds the file of a study that the command line names.
pub(super) fn written(arguments: &Study) -> Result<Written> {
    let name = arguments.study.clone().unwrap_or_default();
    if arguments.protocol.is_some() && name != PEERS {
        return wrong([
            "--protocol belongs to the peers study; leave it out",
            "--protocol은 peers 실험에만 씁니다. 빼십시오",
            "--protocol 只用于 peers 实验；请去掉",
        ]);
    }
    if arguments.storage && name != SURVEY {
        return wrong([
            "--storage belongs to the survey; leave it out",
            "--storage는 survey 실험에만 씁니다. 빼십시오",
            "--storage 只用于 survey 实验；请去掉",
        ]);
    }
    let file = match (name.as_str(), arguments.protocol.as_deref()) {
        (PEERS, None | Some("echo")) => "peers-echo",
        (PEERS, Some("http")) => "peers-http",
        (PEERS, Some(other)) => {
            return Err(UsageError(localized!(
                language::of_command_line(),
                "--protocol {other:?} is not known; use echo or http",
                "--protocol {other:?}: 알 수 없는 값입니다. echo나 http를 쓰십시오",
                "--protocol {other:?}：未知的值；可用 echo 或 http",
            ))
            .into());
        }
        (SURVEY, _) if arguments.storage => SURVEY_STORAGE,
        (name, _) => name,
    };
    if let Some(BuiltIn { name: file, text }) = BuiltIn::named(file) {
        return chosen(arguments, name, PathBuf::from(format!("{file}.toml")), Cow::Borrowed(text));
    }
    let path = PathBuf::from(&name);
    let looks_like_file = path.extension().is_some_and(|extension| extension == "toml") || name.contains('/');
    if !looks_like_file {
        return Err(unknown(&name).into());
    }
    let text = std::fs::read_to_string(&path).map_err(|error| {
        UsageError(localized!(
            language::of_command_line(),
            "cannot read the study file {name}: {error}",
            "실험 파일({name})을 읽을 수 없습니다: {error}",
            "无法读取实验文件 {name}：{error}",
        ))
    })?;
    chosen(arguments, name, path, Cow::Owned(text))
}

/// The study with the levels and arms of the command line. A plan alone leaves the file as it is.
fn chosen(arguments: &Study, name: String, path: PathBuf, text: Cow<'static, str>) -> Result<Written> {
    let choices = choices(arguments)?;
    let language = language::of_command_line();
    let plan = choices.plan.clone();
    if let Some(plan) = plan.as_deref().filter(|_| !arguments.published_plan) {
        study_file::check_plan(&text, plan).map_err(|error| UsageError(error.localized(language)))?;
    }
    if (Choices { plan: None, ..choices.clone() }) == Choices::default() {
        return Ok(Written { name, path, text, own_text: None, plan });
    }
    let changed = study_file::chosen(&text, &choices)
        .map_err(|error| UsageError(error.localized(language)))?
        .into_owned();
    Ok(Written { name, path, text: Cow::Owned(changed), own_text: Some(text), plan: None })
}

/// Flags by the first word of the key that they set.
const FLAGS: [(&str, &str); 9] = [
    ("request", "--request-mix"),
    ("fail_if", "--fail-if"),
    ("arm", "--arm"),
    ("factors", "--levels"),
    ("primary", "--levels"),
    ("cell", "--levels"),
    ("rounds", "--rounds"),
    ("blocks", "--rounds"),
    ("time_cap", "--time"),
];

fn choices(arguments: &Study) -> Result<Choices> {
    let mut choices = Choices {
        only_arms: arguments.only_arms,
        kernels: arguments.kernels.clone(),
        warmup: arguments.warmup.clone(),
        rounds: arguments.rounds,
        time_cap: arguments.time.clone(),
        fail_if: arguments.fail_if.clone(),
        builds: study_baseline::builds(arguments)?,
        ..Choices::default()
    };
    choices.requests = arguments.request_mix.as_deref().map(request_mix::read).transpose()?;
    if arguments.published_plan {
        choices.plan = Some(PUBLISHED.to_owned());
    }
    for written in &arguments.levels {
        match written.split_once('=') {
            None if choices.plan.is_some() => {
                return Err(UsageError(localized!(
                    language::of_command_line(),
                    "--levels {written}: one plan at a time",
                    "--levels {written}: 계획은 한 번에 하나만 고를 수 있습니다",
                    "--levels {written}：一次只能选一个计划",
                ))
                .into());
            }
            None => choices.plan = Some(written.clone()),
            Some((factor, levels)) => {
                let levels = levels.split(',').map(|level| level.trim().to_owned()).collect();
                choices.levels.push((factor.trim().to_owned(), levels));
            }
        }
    }
    choices.arms = study_arms::arms(&arguments.arm)?;
    choices.arm_keys = study_arms::keys(&arguments.arms)?;
    Ok(choices)
}

fn unknown(name: &str) -> UsageError {
    let language = language::of_command_line();
    if let Some(now) = renamed::now(["study", name], language) {
        return UsageError(now.to_owned());
    }
    let instead = limits::instead_in(language, name, &all_study_names());
    UsageError(localized!(
        language,
        "there is no study {name:?}; {instead} (`weir study --list` says what each asks; a study file ends in .toml)",
        "{name:?} 실험이 없습니다. {instead}(`weir study --list`로 각 실험의 질문을 볼 수 있으며, 실험 파일의 이름은 .toml로 끝납니다)",
        "没有实验 {name:?}；{instead}（`weir study --list` 列出各实验的问题；实验文件的名称以 .toml 结尾）",
    ))
}

fn wrong<T>(texts: [&'static str; 3]) -> Result<T> {
    Err(UsageError(language::of_command_line().choose(texts).to_owned()).into())
}

impl Written {
    /// The text of a user's file, before the command line changed it; `None` for a built-in study.
    pub(super) fn file_text(&self) -> Option<&str> {
        match self.own_text.as_ref().unwrap_or(&self.text) {
            Cow::Owned(text) => Some(text),
            Cow::Borrowed(_) => None,
        }
    }

    /// An error in a text that the command line changed. If the file by itself has the error, the message names the
    /// file's line, and otherwise the flag.
    fn blamed(&self, arguments: &Study, error: FileError, host_defaults: &HostDefaults) -> anyhow::Error {
        let Some(own) = &self.own_text else { return error.into() };
        if let Err(own) = study_file::parse(&self.path, own, host_defaults) {
            return own.into();
        }
        let language = language::of_command_line();
        let first = error.key.split('.').next().unwrap_or_default();
        let last = error.key.rsplit('.').next().unwrap_or_default();
        let is_of_factor = |written: &&String| {
            let factor = written.split('=').next().unwrap_or_default().trim();
            factor == first || factor == last
        };
        // A flag sets the key of an arm itself, unless it is about the arm's command.
        let whole = study_arms::KEYS.iter().find(|(key, _)| *key == error.key);
        let named = || whole.or_else(|| FLAGS.iter().find(|(key, _)| *key == first));
        let flag = match arguments.levels.iter().find(is_of_factor) {
            Some(written) => format!("--levels {written}"),
            None => named().map_or(first, |(_, flag)| flag).to_owned(),
        };
        let reason = error.reason.localized(language);
        UsageError(format!("{flag}{}{reason}", language.colon())).into()
    }

    /// The place of an arm, for a message: its line in the file, or its flag.
    fn place_of(&self, arm: &str) -> String {
        let own = self.own_text.as_ref().unwrap_or(&self.text);
        match line_of_arm(own, arm) {
            Some(line) => format!("{}:{line}: ", self.path.display()),
            None if arm.contains("-as-on-") => "--kernels: ".to_owned(),
            None => "--arm: ".to_owned(),
        }
    }

    /// The study, complete, for this machine.
    pub(super) fn study(&self, arguments: &Study, machines: &Machines) -> Result<NewStudy> {
        let host_defaults = host_defaults(arguments, self.plan.clone(), machines);
        let study_file::Study { mut spec, mut missing_arms } =
            study_file::parse(&self.path, &self.text, &host_defaults)
                .map_err(|error| self.blamed(arguments, error, &host_defaults))?;
        check_options(&spec, |arm| self.place_of(arm))?;
        if let Some(there) = &machines.elsewhere {
            spec.server_host = Some(there.asked.clone());
            alternation::lengthen_for_delay(&mut spec, there.asked.control_delay_ns);
        } else {
            missing_arms.extend(refused_as_older(&spec, &missing_arms)?);
        }
        if let Some(seed) = arguments.seed {
            spec.seed = seed;
        }
        // A cap of the file, made for a shorter study, must not cut a study that the command line makes longer.
        let is_longer = self.own_text.is_some() || machines.elsewhere.is_some();
        if is_longer && arguments.time.is_none() {
            let needed_ns = outline::study_ns(&spec).saturating_mul(5) / 4;
            spec.time_cap_ns = spec.time_cap_ns.max(needed_ns);
        }
        if let Some(file) = &arguments.file {
            if !spec.is_storage() {
                return wrong(match self.name.as_str() {
                    SURVEY => [
                        "--file belongs to studies of storage; add --storage for that half",
                        "--file은 스토리지 실험에만 씁니다. 스토리지 부분을 실행하려면 --storage를 추가하십시오",
                        "--file 只用于存储实验；要运行存储部分请加上 --storage",
                    ],
                    _ => [
                        "--file belongs to studies of storage; leave it out",
                        "--file은 스토리지 실험에만 씁니다. 빼십시오",
                        "--file 只用于存储实验；请去掉",
                    ],
                });
            }
            study_storage::use_file(&mut spec, &file.display().to_string());
        }
        let name = arguments.asked_as.as_ref().unwrap_or(&self.name);
        let reproduce = reproduce(name, arguments, spec.seed);
        let fingerprint = with_granted(machines.fingerprint.clone(), &host_defaults.tried);
        Ok(NewStudy { spec, fingerprint, missing_arms, reproduce })
    }
}

/// The fingerprint with the features that io_uring granted, so that a report of arms that leave features unused does
/// not name one that no arm uses here.
fn with_granted(mut fingerprint: Fingerprint, tried: &[DriverFound]) -> Fingerprint {
    let of_ring = tried.iter().find(|found| found.driver == "uring").map(|found| &found.detail);
    if let Some(Finding::DriverGranted { features }) = of_ring {
        fingerprint.limits.insert(GRANTED_LIMIT.to_owned(), features.join(" "));
    }
    fingerprint
}

/// Values that a file leaves to these machines and this command line. Each side has the CPUs that it would have if both
/// were on one machine, so pinning is the same on one machine and on two.
fn host_defaults(arguments: &Study, plan: Option<String>, machines: &Machines) -> HostDefaults {
    let of_servers = Topology::from(&machines.fingerprint);
    let of_load = Topology::from(machines.fingerprint.load_host.as_deref().unwrap_or(&machines.fingerprint));
    let (server, load) = (placement::place(&of_servers), placement::place(&of_load));
    let mut own_controls = congestion_controls();
    let tried = match &machines.elsewhere {
        Some(there) => {
            own_controls.retain(|name| there.congestion_controls.contains(name));
            there.drivers.clone()
        }
        None => tried(),
    };
    HostDefaults {
        seed: arguments.seed.unwrap_or_else(seed_from_clock),
        server_cpus: server.map(|place| place.server).unwrap_or_default(),
        load_cpus: load.map(|place| place.load).unwrap_or_default(),
        order_cpus: OrderCpus::of(&placement::cores(&of_servers)),
        tried,
        congestion_controls: own_controls,
        plan,
    }
}

/// Congestion control algorithms that the kernel lists and allows us, tried on a socket.
pub(super) fn congestion_controls() -> Vec<String> {
    let listed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let may_be_used = |name: &&str| {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
        socket.is_ok_and(|socket| set_tcp_congestion(&socket, name).is_ok())
    };
    listed.unwrap_or_default().split_whitespace().filter(may_be_used).map(str::to_owned).collect()
}

/// Refuses engine options of arms that do not exist or do not apply, before anything runs.
fn check_options(spec: &StudySpec, place: impl Fn(&str) -> String) -> Result<()> {
    study_storage::check(spec, &place)?;
    for arm in &spec.arms {
        let Subject::Weir { driver, options, .. } = &arm.subject else { continue };
        let server = engine::config(driver, &as_typed(options));
        if let Err(error) = server.and_then(|_| engine::config("auto", &as_typed(&arm.load_options))) {
            return Err(UsageError(format!("{}arm {}: {error}", place(&arm.name), arm.name)).into());
        }
    }
    Ok(())
}

/// Arms that should run as on an older kernel, and cannot.
fn refused_as_older(spec: &StudySpec, missing: &[MissingArm]) -> Result<Vec<MissingArm>> {
    let mut refused_arms = Vec::new();
    for arm in spec.arms.iter().filter(|arm| missing.iter().all(|other| other.name != arm.name)) {
        let Subject::Weir { driver, options, .. } = &arm.subject else { continue };
        if arm.subject.as_on_kernel().is_none() {
            continue;
        }
        if let Err(StartError::Refused { refusal, .. }) =
            Runtime::new(&engine::config(driver, &as_typed(options))?)
        {
            let (reason, unlock) = (doctor::refused(&refusal), doctor::remedy(&refusal));
            refused_arms.push(MissingArm { name: arm.name.clone(), reason, unlock });
        }
    }
    Ok(refused_arms)
}

/// Options in the form of a command line.
fn as_typed(options: &BTreeMap<String, String>) -> Vec<String> {
    options.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// The line on which an arm gets its name; none if the text has no arm of that name.
fn line_of_arm(text: &str, arm: &str) -> Option<usize> {
    let is_quote = |letter: char| letter == '"' || letter == '\'';
    let is_name = |line: &str| {
        let value = line.trim().strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('='));
        value.is_some_and(|value| value.trim_start().split(is_quote).nth(1) == Some(arm))
    };
    let arms = text.lines().position(|line| line.contains("[[arm]]")).unwrap_or(0);
    Some(arms + text.lines().skip(arms).position(is_name)? + 1)
}

/// The result of probing each driver of sockets and each engine of disks.
fn tried() -> Vec<DriverFound> {
    drivers().into_iter().chain(study_storage::engines()).collect()
}

/// The result of probing each driver of sockets.
pub(super) fn drivers() -> Vec<DriverFound> {
    let found = |report: DriverReport| DriverFound {
        driver: report.driver.name().to_owned(),
        available: report.is_available(),
        detail: doctor::found(&report),
        unlock: report.refusal.as_ref().and_then(doctor::remedy),
    };
    weir_engine::probe(&Config::default()).into_iter().map(found).collect()
}

fn reproduce(name: &str, arguments: &Study, seed: u64) -> String {
    let protocol =
        arguments.protocol.as_ref().map(|protocol| format!(" --protocol {protocol}")).unwrap_or_default();
    let plan = if arguments.published_plan { " --published-plan" } else { "" };
    let half = if arguments.storage { " --storage" } else { "" };
    let file = arguments.file.as_ref().map(|file| format!(" --file {}", file.display())).unwrap_or_default();
    let quoted = |flag: &str, value: &String| {
        let value = shlex::try_quote(value).unwrap_or_default();
        format!(" --{flag} {value}")
    };
    let levels: String = arguments.levels.iter().map(|it| quoted("levels", it)).collect();
    let arms: String = arguments.arm.iter().map(|it| quoted("arm", it)).collect();
    let of_arms = arguments.arms.all();
    let of_arms = of_arms.iter().flat_map(|(flag, all)| all.iter().map(move |it| (flag, it)));
    let arms: String = arms + &of_arms.map(|(flag, it)| quoted(&flag[2..], it)).collect::<String>();
    let mix = arguments.request_mix.as_ref().map(|path| quoted("request-mix", &path.display().to_string()));
    let arms = arms + &mix.unwrap_or_default();
    let kernels = arguments.kernels.join(",");
    let kernels = if kernels.is_empty() { kernels } else { quoted("kernels", &kernels) };
    let only = if arguments.only_arms { " --only-arms" } else { "" };
    let program = |flag: &str, path: &Option<PathBuf>| {
        path.as_ref().map(|path| quoted(flag, &path.display().to_string())).unwrap_or_default()
    };
    let builds = program("baseline", &arguments.baseline) + &program("placebo", &arguments.placebo);
    let warmup = arguments.warmup.as_ref().map(|it| quoted("warmup", it)).unwrap_or_default();
    let host = arguments.server_host.as_ref().map(|it| quoted("server-host", it)).unwrap_or_default();
    let rsh = arguments.rsh.as_ref().map(|it| quoted("rsh", it)).unwrap_or_default();
    let address = arguments.server_address.map(|it| format!(" --server-address {it}")).unwrap_or_default();
    let there = host + &rsh + &address;
    let rounds = arguments.rounds.map(|rounds| format!(" --rounds {rounds}")).unwrap_or_default();
    let time = arguments.time.as_ref().map(|it| quoted("time", it)).unwrap_or_default();
    let mut thresholds: String = arguments.fail_if.iter().map(|it| quoted("fail-if", it)).collect();
    if arguments.inconclusive_passes {
        thresholds.push_str(" --inconclusive-passes");
    }
    format!(
        "weir study {name}{protocol}{plan}{half}{file}{levels}{arms}{kernels}{only}{warmup}{rounds}{time}{builds}\
         {there}{thresholds} --seed {seed}"
    )
}

/// Nanoseconds of the clock: different each time, and printed, so that a run can be repeated.
fn seed_from_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // SQLite and JSON readers handle numbers below 2^53 best.
    (since.as_nanos() as u64) & ((1 << 53) - 1)
}
