//! The plan of a study as text, before it runs: arms, cells, how often each is measured and for how long, and why
//! arms do not take turns.

use std::{collections::BTreeSet, fmt::Write as _};

use weir_record::{
    finding::NoTurns,
    machine::RunningProcess,
    spec::{Alternation, ArmSpec, CellRole, CellSpec, LoadMode, StudySpec, WholeTrials},
    storage::StorageDevice,
};
use weir_report::{Language, columns, localized, pad_end};

use crate::{alternation, host_defaults::cpu_list, pilot, protocol, study_file::Study, validate};

const MILLISECOND_NS: u64 = 1_000_000;

/// Starting, stopping and reading the machine around a whole trial. A storage job also lays out its threads.
const AROUND_TRIAL_NS: u64 = 400 * MILLISECOND_NS;
const AROUND_STORAGE_NS: u64 = 800 * MILLISECOND_NS;

/// How many times faster than real time the model is computed beside its deepest load, on two CPUs.
const COMPUTED_FASTER: u64 = 30;

/// Time to replay a trace, for a window of any length.
const REPLAYED_NS: u64 = 10 * MILLISECOND_NS;

/// How long a cell takes if every warm-up runs to its end: its rounds or blocks, and the pilot that finds its rate.
pub fn cell_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    u64::from(cell.blocks) * unit_ns(spec, cell)
        + alternation::evidence_ns(cell, runs_of(spec, cell))
        + pilots_ns(spec, cell)
}

/// How long one of its rounds or blocks takes, with its share of the slices of evidence, if it has any.
pub(crate) fn block_ns(spec: &StudySpec, cell: &CellSpec, block: u32) -> u64 {
    let plan = cell.alternation.and_then(|turns| turns.evidence);
    let rounds = plan.map_or(0, |plan| plan.rounds.min(cell.blocks));
    let evidence_ns = alternation::evidence_ns(cell, runs_of(spec, cell));
    unit_ns(spec, cell) + if block < rounds { evidence_ns / u64::from(rounds) } else { 0 }
}

/// Time of the pilots that find its rate; zero if the rate is fixed.
pub(crate) fn pilots_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    pilot::added(spec, cell).map_or(0, |pilot| u64::from(pilot.rounds) * unit_ns(spec, &pilot.cell))
}

/// Number of runs in a cell: its arms, and the baseline again.
fn runs_of(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let own = spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).count() as u64;
    // The baseline runs twice wherever it runs.
    own + u64::from(spec.arms.first().is_some_and(|first| cell.has_arm(&first.name)))
}

fn unit_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let runs = runs_of(spec, cell);
    let Some(turns) = cell.alternation else { return runs * trial_ns(cell) };
    alternation::round_ns(cell, &turns, runs) + warmups_ns(spec, cell)
}

/// Time that arms with a warm-up add to each round; the baseline runs twice.
fn warmups_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let arms = spec.arms.iter().take(1).chain(&spec.arms);
    arms.filter(|arm| cell.has_arm(&arm.name)).map(|arm| arm.warmup_ns).sum()
}

fn trial_ns(cell: &CellSpec) -> u64 {
    let around_ns = if cell.storage.is_some() { AROUND_STORAGE_NS } else { AROUND_TRIAL_NS };
    let length_ns = cell.trial_window_ns() + cell.warmup_ns_max;
    match cell.storage.as_ref().map(|storage| &storage.device) {
        Some(StorageDevice::Model | StorageDevice::ModelLate) => length_ns / COMPUTED_FASTER,
        Some(StorageDevice::Synthetic(_) | StorageDevice::Trace(_)) => REPLAYED_NS,
        Some(StorageDevice::Disk) | None => length_ns + protocol::of(cell).ramp_up_ns(cell) + around_ns,
    }
}

/// How long a study takes.
pub fn study_ns(spec: &StudySpec) -> u64 {
    spec.cells.iter().map(|cell| cell_ns(spec, cell)).sum()
}

/// The plan of a study, for people.
pub fn text(study: &Study, language: Language) -> String {
    let Study { spec, missing_arms } = study;
    let mut out = String::new();
    head(spec, language, &mut out);
    title(language, ["arms", "비교 대상", "方案"], &mut out);
    let width = spec.arms.iter().map(|arm| columns(&arm.name)).max().unwrap_or(0);
    for (index, arm) in spec.arms.iter().enumerate() {
        let role = match &arm.baseline {
            _ if index == 0 => language
                .choose(["  (baseline, runs twice)", "  (기준, 두 번 실행)", "  （基线，运行两次）"])
                .to_owned(),
            Some(own) => localized!(language, "  (against {own})", "  (기준: {own})", "  （基线：{own}）"),
            None => String::new(),
        };
        let _ = writeln!(out, "  {}  {}{role}", pad_end(&arm.name, width), runs(spec, arm, language));
        if let Some(workers) = spec.workers_not_told(&arm.name) {
            let text = localized!(
                language,
                "(not told {{workers}}, so in the cells with fewest alone: {workers})",
                "(명령에 {{workers}}가 없어, 워커 {workers}개인 조건에서만 실행)",
                "（命令中没有 {{workers}}，只在工作线程数为 {workers} 的条件下运行）",
            );
            let _ = writeln!(out, "  {}  {text}", pad_end("", width));
        }
    }
    if !missing_arms.is_empty() {
        title(language, ["missing here", "이 머신에서 실행할 수 없는 대상", "本机无法运行的方案"], &mut out);
        let reason_text = |reason| weir_report::finding(reason, language);
        missing_arms.iter().for_each(|arm| _ = writeln!(out, "  {}: {}", arm.name, reason_text(&arm.reason)));
    }
    title(language, ["cells", "조건", "条件"], &mut out);
    spec.cells.iter().for_each(|cell| self::cell(spec, cell, language, &mut out));
    out.extend(one_level_of_cpus(spec, language));
    whole_trials(spec, language, &mut out);
    beside(spec, language, &mut out);
    out.push('\n');
    claims(spec, language, &mut out);
    let (all, cap) = (shown_ns(study_ns(spec), language), shown_ns(spec.time_cap_ns, language));
    let time = localized!(
        language,
        "It takes about {all}; no round or block starts after {cap}.",
        "약 {all} 걸립니다. {cap} 뒤에는 새 라운드나 블록을 시작하지 않습니다.",
        "约需 {all}；超过 {cap}后不再开始新的轮次或区组。",
    );
    let _ = writeln!(out, "{time}");
    out
}

/// The servers of a study that already run, as they were found: where connections go, and whose CPU counts. Empty for
/// a study without such servers.
pub fn running(found: &[(String, Result<RunningProcess, String>)], language: Language) -> String {
    let mut out = String::new();
    if found.is_empty() {
        return out;
    }
    let texts = [
        "servers that run already; none is started, pinned or stopped",
        "이미 실행 중인 서버. 시작하거나 CPU에 고정하거나 멈추지 않음",
        "已在运行的服务器；不会启动、绑定或暂停",
    ];
    title(language, texts, &mut out);
    let width = found.iter().map(|(arm, _)| columns(arm)).max().unwrap_or(0);
    for (arm, process) in found {
        let text = match process {
            Ok(process) => running_one(process, language),
            Err(reason) => localized!(
                language,
                "the study would be refused: {reason}",
                "실행할 수 없는 실험: {reason}",
                "实验会被拒绝：{reason}",
            ),
        };
        let _ = writeln!(out, "  {}  {text}", pad_end(arm, width));
    }
    out
}

fn running_one(process: &RunningProcess, language: Language) -> String {
    let RunningProcess { address, program, .. } = process;
    if let Some(folder) = &process.cgroup {
        return localized!(
            language,
            "connections to {address}, CPU of all processes of the control group {folder}",
            "연결 주소 {address}, CPU는 cgroup {folder}의 모든 프로세스를 합산",
            "连接到 {address}，CPU 为 cgroup {folder} 的全部进程之和",
        );
    }
    let pid = process.pid.unwrap_or_default();
    let how = language.choose(match process.found_by_port {
        true => ["found by its port", "포트로 찾음", "按端口找到"],
        false => ["as named", "지정한 프로세스", "所指定的进程"],
    });
    localized!(
        language,
        "connections to {address}, CPU of {program} ({pid}) and all below it, {how}",
        "연결 주소 {address}, CPU는 {program}({pid})와 그 아래 모든 프로세스를 합산, {how}",
        "连接到 {address}，CPU 为 {program}（{pid}）及其下所有进程之和，{how}",
    )
}

/// The title of a part, after an empty line.
fn title(language: Language, texts: [&'static str; 3], out: &mut String) {
    let _ = writeln!(out, "\n{}", language.choose(texts));
}

/// Processes beside the servers, and the questions beside the verdicts.
fn beside(spec: &StudySpec, language: Language, out: &mut String) {
    if !spec.neighbours.is_empty() {
        title(language, ["neighbours", "함께 실행하는 프로세스", "同时运行的进程"], out);
    }
    for neighbour in &spec.neighbours {
        let _ = writeln!(out, "  {}  {}", neighbour.name, neighbour.argv.join(" "));
    }
    let goals = spec.comparisons.iter().filter(|asked| asked.goal.is_some()).count();
    let asked = spec.comparisons.len();
    if asked > 0 {
        let text = localized!(
            language,
            "{asked} further comparisons, {goals} of them with a goal",
            "추가 비교 {asked}건, 그중 목표가 있는 것 {goals}건",
            "附加比较 {asked} 项，其中 {goals} 项设有目标",
        );
        let _ = writeln!(out, "\n{text}");
    }
}

fn head(spec: &StudySpec, language: Language, out: &mut String) {
    let protocol = spec.cells.first().map_or("", |cell| protocol::of(cell).name());
    let (name, title) = (&spec.name, weir_report::localized(&spec.title, language));
    let margin = shown_percent(spec.equivalence_margin);
    let [server, load] = [&spec.server_cpus, &spec.load_cpus].map(|all| cpus(all, language));
    let seed = spec.seed;
    let text = localized!(
        language,
        "study {name}: {title}\nprotocol {protocol}, equivalence margin {margin}, server CPUs {server}, load CPUs {load}, \
         seed {seed}",
        "실험 {name}: {title}\n프로토콜 {protocol}, 동등성 한계 {margin}, 서버 CPU {server}, 부하 생성기 CPU {load}, 시드 {seed}",
        "实验 {name}：{title}\n协议 {protocol}，等效界值 {margin}，服务器 CPU {server}，负载生成器 CPU {load}，随机种子 {seed}",
    );
    let _ = writeln!(out, "{text}");
}

fn cpus(cpus: &[usize], language: Language) -> String {
    if cpus.is_empty() {
        return language.choose(["any", "지정 안 함", "不限"]).to_owned();
    }
    cpu_list(cpus)
}

/// The command of an arm, as on a command line.
fn runs(spec: &StudySpec, arm: &ArmSpec, language: Language) -> String {
    let mut words = spec.cells.first().map_or_else(Vec::new, |cell| protocol::of(cell).runs(&arm.subject));
    if arm.warmup_ns > 0 {
        let after = shown_ns(arm.warmup_ns, language);
        words.push(localized!(language, "; warm after {after}", "; 예열 {after}", "；预热 {after}"));
    }
    if !arm.load_options.is_empty() {
        let options = protocol::shown_options(&arm.load_options).collect::<Vec<_>>().join(" ");
        words.push(localized!(
            language,
            "; its generator {options}",
            "; 부하 생성기 {options}",
            "；负载生成器 {options}"
        ));
    }
    words.join(" ")
}

fn cell(spec: &StudySpec, cell: &CellSpec, language: Language, out: &mut String) {
    let role = language.choose(match cell.role {
        CellRole::Primary => ["primary", "주 비교", "主要比较"],
        CellRole::Confirmatory => ["confirmatory", "확증", "验证性"],
        CellRole::Exploratory => ["exploratory", "탐색적", "探索性"],
    });
    let (load, often) = (load(cell, language), often(spec, cell, language));
    let (id, takes) = (&cell.id, shown_ns(cell_ns(spec, cell), language));
    let text = localized!(
        language,
        "  {id}  {role}, {load}, {often}: {takes}",
        "  {id}  {role}, {load}, {often}: {takes}",
        "  {id}  {role}，{load}，{often}：{takes}",
    );
    let _ = writeln!(out, "{text}");
    if !cell.arms.is_empty() {
        let _ = writeln!(out, "    {}", cell.arms.join(", "));
    }
}

/// How messages of a cell are spaced.
fn load(cell: &CellSpec, language: Language) -> String {
    match cell.load {
        LoadMode::Closed => language.choose(["closed loop", "폐쇄형 부하", "闭环"]).to_owned(),
        LoadMode::Open { rate_per_second, .. } => localized!(
            language,
            "{rate_per_second:.0} a second",
            "초당 {rate_per_second:.0}건",
            "每秒 {rate_per_second:.0} 次",
        ),
        LoadMode::OpenShare { share, .. } => {
            let share = shown_percent(share);
            if protocol::of(cell).has_capacity_of_baseline() {
                localized!(
                    language,
                    "{share} of the baseline's capacity",
                    "기준 처리 능력의 {share}",
                    "基线处理能力的 {share}",
                )
            } else {
                localized!(
                    language,
                    "{share} of the smallest capacity",
                    "대상 중 가장 낮은 처리 능력의 {share}",
                    "各方案中最低处理能力的 {share}",
                )
            }
        }
    }
}

/// How often its arms are measured, and for how long.
fn often(spec: &StudySpec, cell: &CellSpec, language: Language) -> String {
    let (runs, blocks) = (runs_of(spec, cell), cell.blocks);
    let Some(turns) = &cell.alternation else {
        let window = shown_ns(cell.trial_window_ns(), language);
        return localized!(
            language,
            "{blocks} blocks of {runs} trials of {window}",
            "블록 {blocks}회 × 시행 {runs}회 × {window}",
            "{blocks} 个区组 × {runs} 次试验 × {window}",
        );
    };
    let (permutations, slice) = (turns.permutations, shown_ns(turns.slice_ns, language));
    let evidence = evidence(turns, language);
    localized!(
        language,
        "{blocks} rounds of {permutations} x {runs} slices of {slice}{evidence}",
        "라운드 {blocks}회 × 슬라이스 {permutations} × {runs}개 × {slice}{evidence}",
        "{blocks} 轮 × {permutations} × {runs} 个时间片 × {slice}{evidence}",
    )
}

/// Why a map over workers has only one level of CPUs.
fn one_level_of_cpus(spec: &StudySpec, language: Language) -> Option<String> {
    let workers: BTreeSet<u32> = spec.cells.iter().map(|cell| cell.workers).collect();
    let is_varied = spec.cells.iter().any(|cell| !cell.server_cpus.is_empty());
    let is_of_sockets = !spec.is_storage() && !spec.is_orders();
    if is_varied || workers.len() < 2 || !is_of_sockets {
        return None;
    }
    let all = spec.server_cpus.len();
    Some(match all {
        0 => localized!(
            language,
            "\nThe server's side is not pinned here: server CPUs are no factor.\n",
            "\n이 머신에서는 서버를 CPU에 고정하지 않으므로, 서버 CPU 수를 요인으로 쓸 수 없습니다.\n",
            "\n本机没有绑定服务器的 CPU，因此服务器 CPU 数不能作为因子。\n",
        ),
        1 => localized!(
            language,
            "\nThe server's side has one CPU here: server CPUs have one level.\n",
            "\n이 머신에서 서버가 쓸 수 있는 CPU는 하나이므로, 서버 CPU 수의 수준도 하나입니다.\n",
            "\n本机上服务器只有一个 CPU，因此服务器 CPU 数只有一个水平。\n",
        ),
        _ => localized!(
            language,
            "\nEvery cell has all {all} CPUs of the server's side; the factor `server_cpus` varies them.\n",
            "\n모든 조건에서 서버 쪽 CPU {all}개를 모두 씁니다. CPU 수를 바꾸려면 요인 `server_cpus`를 쓰십시오.\n",
            "\n所有条件都使用服务器一侧的全部 {all} 个 CPU；改变数量请用因子 `server_cpus`。\n",
        ),
    })
}

fn evidence(turns: &Alternation, language: Language) -> String {
    let Some(plan) = turns.evidence else { return String::new() };
    let (rounds, slice) = (plan.rounds, shown_ns(plan.slice_ns, language));
    match plan.pairs {
        0 | 1 => localized!(
            language,
            " (evidence in {rounds}, slices of {slice})",
            "(그중 {rounds}회는 커널 관찰 슬라이스 {slice} 추가)",
            "（其中 {rounds} 轮另有 {slice} 的内核观测时间片）",
        ),
        pairs => localized!(
            language,
            " (evidence in {rounds}, {pairs} pairs of slices of {slice})",
            "(그중 {rounds}회는 커널 관찰 슬라이스 {slice} {pairs}쌍 추가)",
            "（其中 {rounds} 轮另有 {pairs} 对 {slice} 的内核观测时间片）",
        ),
    }
}

/// Why arms do not take turns, with the cells concerned.
fn whole_trials(spec: &StudySpec, language: Language, out: &mut String) {
    let mut reasons: Vec<(NoTurns, Vec<&str>)> = Vec::new();
    let is_there = |it: &&WholeTrials| spec.cells.iter().any(|cell| cell.id == it.cell_id);
    for WholeTrials { cell_id, why } in spec.whole_trials.iter().filter(is_there) {
        match reasons.iter_mut().find(|(own, _)| own == why) {
            Some((_, cells)) => cells.push(cell_id),
            None => reasons.push((*why, vec![cell_id])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    let texts = [
        "whole trials instead of turns",
        "번갈아 측정하지 않고 전체 시행으로 측정",
        "以完整试验代替轮流测量",
    ];
    title(language, texts, out);
    let every = language.choose(["every cell", "모든 조건", "所有条件"]);
    for (reason, cells) in reasons {
        let cells = if cells.len() == spec.cells.len() { every.to_owned() } else { cells.join(", ") };
        let why = language.choose(reason.words());
        let text = localized!(language, "  {why}: {cells}", "  {why}: {cells}", "  {why}：{cells}");
        let _ = writeln!(out, "{text}");
    }
}

fn claims(spec: &StudySpec, language: Language, out: &mut String) {
    let claims = validate::claims(spec);
    let of_claims = spec.cells.iter().filter(|cell| cell.role != CellRole::Exploratory);
    let Some(units) = of_claims.map(|cell| cell.blocks).min() else { return };
    let Some(found) = validate::deviations_found(units, claims) else { return };
    let noun = if claims == 1 { "claim" } else { "claims" };
    let noun = language.choose([noun, "가설", "结论"]);
    let text = localized!(
        language,
        "{claims} {noun}: corrected for all of them, {units} rounds or blocks find a difference of {found:.1} of their \
         standard deviations.",
        "{noun} {claims}건 전체에 대해 보정할 때, 라운드나 블록 {units}회로 표준편차의 {found:.1}배인 차이를 검출할 수 있습니다.",
        "{claims} 项{noun}：对全部结论校正后，{units} 轮（区组）可检出标准差 {found:.1} 倍的差异。",
    );
    let _ = writeln!(out, "{text}");
}

fn shown_percent(share: f64) -> String {
    let percent = (1_000.0 * share).round() / 10.0;
    format!("{percent} %")
}

/// A length of time with the unit people would use.
pub fn shown_ns(ns: u64, language: Language) -> String {
    let ms = ns / MILLISECOND_NS;
    let seconds = (ms + 500) / 1_000;
    let minutes = (seconds + 30) / 60;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 if !ms.is_multiple_of(1_000) => {
            let seconds = ms as f64 / 1_000.0;
            localized!(language, "{seconds:.1} s", "{seconds:.1}초", "{seconds:.1} 秒")
        }
        1_000..180_000 => localized!(language, "{seconds} s", "{seconds}초", "{seconds} 秒"),
        180_000..7_200_000 => localized!(language, "{minutes} min", "{minutes}분", "{minutes} 分钟"),
        _ => {
            let hours = (seconds as f64 / 360.0).round() / 10.0;
            localized!(language, "{hours} h", "{hours}시간", "{hours} 小时")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, host_defaults::HostDefaults, study_file};

    #[test]
    fn every_built_in_study_fits_its_time() {
        for study in builtin::ALL.into_iter().chain(builtin::OF_OPTIONS) {
            for plan in std::iter::once(None).chain(study.plans().into_iter().map(Some)) {
                let host_defaults = HostDefaults { plan: plan.clone(), ..HostDefaults::default() };
                let Ok(Study { spec, .. }) = study.study(&host_defaults) else { continue };
                let (takes_ns, cap_ns) = (study_ns(&spec), spec.time_cap_ns);
                assert!(takes_ns < cap_ns, "{} {plan:?}: {} s", study.name, takes_ns / 1_000_000_000);
            }
        }
    }

    #[test]
    fn the_quick_map_takes_less_than_ten_minutes_and_the_standard_one_less_than_an_hour() {
        for (plan, minutes_max) in [("quick", 10), ("standard", 60)] {
            let host_defaults = HostDefaults { plan: Some(plan.to_owned()), ..HostDefaults::default() };
            let tps = builtin::BuiltIn::named("tps").expect("it is built in");
            let Study { spec, .. } = tps.study(&host_defaults).unwrap_or_else(|error| panic!("{error}"));
            let takes_s = study_ns(&spec) / 1_000_000_000;
            assert!(takes_s < minutes_max * 60, "{plan}: {takes_s} s");
        }
    }

    #[test]
    fn every_study_file_of_the_documentation_fits_its_time() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies");
        let paths = std::fs::read_dir(folder).expect("the folder is there");
        let paths = paths.map(|entry| entry.expect("it can be listed").path());
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
            let text = std::fs::read_to_string(&path).expect("it can be read");
            let Study { spec, .. } = study_file::parse(&path, &text, &HostDefaults::default())
                .unwrap_or_else(|error| panic!("{error}"));
            let (takes_ns, cap_ns) = (study_ns(&spec), spec.time_cap_ns);
            assert!(takes_ns < cap_ns, "{} takes {} s", path.display(), takes_ns / 1_000_000_000);
        }
    }

    #[test]
    fn a_sitting_of_recordings_takes_at_most_twenty_minutes() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies/recordings");
        let paths = std::fs::read_dir(folder).expect("the folder is there");
        let takes_ns = |path: &std::path::Path| {
            let text = std::fs::read_to_string(path).expect("it can be read");
            let study = study_file::parse(path, &text, &HostDefaults::default());
            study_ns(&study.unwrap_or_else(|error| panic!("{error}")).spec)
        };
        let once_ns: u64 = paths.map(|entry| takes_ns(&entry.expect("it can be listed").path())).sum();
        // Each is measured twice: on the quiet machine and beside the hog.
        assert!((1..=20 * 60).contains(&(2 * once_ns / 1_000_000_000)), "{once_ns} ns");
    }

    #[test]
    fn servers_that_run_already_are_told_with_their_address_and_whose_cpu_counts() {
        let process = |pid: Option<u32>, cgroup: Option<&str>, found_by_port: bool| RunningProcess {
            address: "127.0.0.1:80".to_owned(),
            pid,
            cgroup: cgroup.map(str::to_owned),
            found_by_port,
            program: "/usr/sbin/nginx".to_owned(),
            ..RunningProcess::default()
        };
        let found = [
            ("nginx".to_owned(), Ok(process(Some(7), None, true))),
            ("mine".to_owned(), Ok(process(Some(8), None, false))),
            ("box".to_owned(), Ok(process(None, Some("/sys/fs/cgroup/box"), false))),
            ("gone".to_owned(), Err("no server accepts connections at 127.0.0.1:81".to_owned())),
        ];
        assert_eq!(
            running(&found, Language::English),
            "
servers that run already; none is started, pinned or stopped
  nginx  connections to 127.0.0.1:80, CPU of /usr/sbin/nginx (7) and all below it, found by its port
  mine   connections to 127.0.0.1:80, CPU of /usr/sbin/nginx (8) and all below it, as named
  box    connections to 127.0.0.1:80, CPU of all processes of the control group /sys/fs/cgroup/box
  gone   the study would be refused: no server accepts connections at 127.0.0.1:81
"
        );
        for language in Language::ALL {
            let text = running(&found, language);
            let words = ["127.0.0.1:80", "/usr/sbin/nginx", "7", "/sys/fs/cgroup/box", "127.0.0.1:81"];
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            assert_eq!(running(&[], language), "");
        }
    }

    #[test]
    fn lengths_are_told_in_the_unit_people_would_use() {
        let lengths: Vec<String> = [25, 999, 1_500, 3_000, 80_400, 150_000, 184_000, 9_000_000]
            .map(|ms| shown_ns(ms * MILLISECOND_NS, Language::English))
            .into();
        assert_eq!(lengths, ["25 ms", "999 ms", "1.5 s", "3 s", "80 s", "150 s", "3 min", "2.5 h"]);
        let minutes = [Language::Korean, Language::Chinese].map(|it| shown_ns(184_000 * MILLISECOND_NS, it));
        assert_eq!(minutes, ["3분", "3 分钟"]);
    }
}
