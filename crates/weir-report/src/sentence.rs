//! Sentences with numbers in them, per language: the headline, what the study could have missed, why nothing
//! was called, definitions. Korean sentences avoid particles after names, whose form would depend on the name.

use weir_record::{
    finding::Finding,
    spec::CellSpec,
    study::ArmSummary,
    verdict::{Comparison, Metric, Verdict},
};

use crate::{
    findings, format, gateway,
    language::Language,
    view::View,
    words::{self, Word},
};

/// The verdict of the headline cell in one sentence.
pub(crate) fn headline(view: &View<'_>) -> String {
    if let Some(answer) = gateway::headline(view) {
        return answer;
    }
    let Some(comparison) = view.headline() else { return no_headline(view) };
    let situation = situation(view, comparison);
    let ratio = comparison.ratio.filter(|ratio| ratio.is_finite());
    let claim = match (view.result.verdict, ratio) {
        (Verdict::Inconclusive | Verdict::NoClaim, None) => unmeasured(view, comparison),
        (Verdict::NotComparable, _) | (_, None) => not_comparable(view, comparison),
        (Verdict::Faster | Verdict::Slower, Some(ratio)) => {
            let beside = beside(view, comparison);
            let separator = view.language.choose(["; ", ". ", "；"]);
            let parts = std::iter::once(effect(view, comparison, ratio)).chain(beside);
            parts.collect::<Vec<_>>().join(separator)
        }
        (Verdict::Equivalent, Some(ratio)) => equivalent(view, comparison, ratio),
        (Verdict::Inconclusive | Verdict::NoClaim, Some(ratio)) => inconclusive(view, comparison, ratio),
    };
    match view.language {
        Language::English => format!("{situation}: {claim}."),
        Language::Korean => format!("{situation}: {claim}."),
        Language::Chinese => format!("{situation}：{claim}。"),
    }
}

fn no_headline(view: &View<'_>) -> String {
    let missing = view.result.missing_arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>().join(", ");
    match (view.language, missing.is_empty()) {
        (Language::English, true) => {
            "There is no headline comparison: no pair of trials was finished.".to_owned()
        }
        (Language::English, false) => format!("There is no headline comparison: {missing} could not run."),
        (Language::Korean, true) => "대표 비교가 없습니다. 끝까지 실행된 시행 쌍이 없습니다.".to_owned(),
        (Language::Korean, false) => format!("대표 비교가 없습니다. 실행하지 못한 대상: {missing}."),
        (Language::Chinese, true) => "没有主结论：没有一对试验完成。".to_owned(),
        (Language::Chinese, false) => format!("没有主结论：{missing} 未能运行。"),
    }
}

fn situation(view: &View<'_>, comparison: &Comparison) -> String {
    let Some(cell) = view.cell(&comparison.cell_id) else { return comparison.cell_id.clone() };
    let conditions = conditions(view, cell);
    match view.language {
        Language::English => format!("At {conditions} on this machine"),
        Language::Korean => format!("이 머신에서 {conditions} 조건"),
        Language::Chinese => format!("在本机上，{conditions}"),
    }
}

fn conditions(view: &View<'_>, cell: &CellSpec) -> String {
    let separator = if view.language == Language::Chinese { "、" } else { ", " };
    if let Some(storage) = &cell.storage {
        return view.storage_conditions(cell, storage).join(separator);
    }
    if let Some(orders) = &cell.orders {
        return gateway::conditions(view, cell, orders).join(separator);
    }
    let mut parts = vec![view.connections(cell.connections), view.asked_in_prose(cell)];
    parts.extend(view.further_conditions(cell));
    parts.join(separator)
}

/// What the ratio means: `uring needs 0.78× [0.77, 0.79] the server CPU per message of epoll`.
fn effect(view: &View<'_>, comparison: &Comparison, ratio: f64) -> String {
    let (number, range) = format::ratio_in_prose(ratio, comparison.interval);
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let noun = noun(view, comparison.metric);
    match (view.language, comparison.metric) {
        (Language::English, Metric::ServerCpuPerMessage | Metric::MachineCpuPerMessage) => {
            format!("{arm} needs {number}×{range} the {noun} of {baseline}")
        }
        (Language::English, _) => format!("{arm} has {number}×{range} the {noun} of {baseline}"),
        (Language::Korean, _) => format!("{arm}의 {noun}은 {baseline}의 {number}배{range}입니다"),
        (Language::Chinese, _) => format!("{arm} 的{noun}为 {baseline} 的 {number} 倍{range}"),
    }
}

fn noun(view: &View<'_>, metric: Metric) -> &'static str {
    view.word(words::metric_in_prose(metric))
}

/// What else differs in the direction of the verdict, where the judge noted it.
fn beside(view: &View<'_>, comparison: &Comparison) -> Option<String> {
    let found = comparison.notes.iter().find(|note| matches!(note, Finding::AlsoSyscalls { .. }))?;
    Some(view.finding(found))
}

fn equivalent(view: &View<'_>, comparison: &Comparison, ratio: f64) -> String {
    let (number, range) = format::ratio_in_prose(ratio, comparison.interval);
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let noun = noun(view, comparison.metric);
    let margin = format::percent(view.result.spec.smallest_effect);
    match view.language {
        Language::English => {
            format!(
                "{arm} and {baseline} are equivalent in {noun}: {number}×{range}, all of it within ±{margin}"
            )
        }
        Language::Korean => {
            format!(
                "{arm}, {baseline} 두 대상의 {noun}은 동등합니다. {number}배{range}이며 구간 전체가 ±{margin} 안에 있습니다"
            )
        }
        Language::Chinese => {
            format!("{arm} 与 {baseline} 的{noun}相当：{number} 倍{range}，整个区间都在 ±{margin} 之内")
        }
    }
}

fn inconclusive(view: &View<'_>, comparison: &Comparison, ratio: f64) -> String {
    let (number, range) = format::ratio_in_prose(ratio, comparison.interval);
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let noun = noun(view, comparison.metric);
    let why = undecided(view, comparison);
    match view.language {
        Language::English => {
            format!("the data do not decide between {arm} and {baseline} in {noun}: {number}×{range}; {why}")
        }
        Language::Korean => {
            format!(
                "{arm}, {baseline} 두 대상의 {noun} 차이가 있는지 판정할 수 없습니다. {number}배{range}, {why}"
            )
        }
        Language::Chinese => {
            format!("{arm} 与 {baseline} 的{noun}无法判定高下：{number} 倍{range}，{why}")
        }
    }
}

/// Nothing was called because no pair was finished.
fn unmeasured(view: &View<'_>, comparison: &Comparison) -> String {
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let noun = noun(view, comparison.metric);
    match view.language {
        Language::English => {
            format!(
                "nothing is decided between {arm} and {baseline} in {noun}: no pair of trials was finished"
            )
        }
        Language::Korean => {
            format!(
                "{arm}, {baseline} 두 대상의 {noun}은 판정할 수 없습니다. 끝까지 실행된 시행 쌍이 없습니다"
            )
        }
        Language::Chinese => format!("{arm} 与 {baseline} 的{noun}尚无法判定：没有一对试验完成"),
    }
}

/// Why nothing was called.
fn undecided(view: &View<'_>, comparison: &Comparison) -> String {
    let told = comparison.reasons.iter().map(|reason| view.finding(reason));
    told.collect::<Vec<_>>().join(view.language.semicolon())
}

fn not_comparable(view: &View<'_>, comparison: &Comparison) -> String {
    let (arm, baseline) = (&comparison.arm, &comparison.baseline);
    let noun = noun(view, comparison.metric);
    let failed = view.result.checks.iter().find(|check| !check.passed);
    let reasons = undecided(view, comparison);
    let reasons = (!reasons.is_empty()).then_some(reasons);
    let cause = reasons.or_else(|| failed.map(|check| view.finding(&check.detail)));
    match (view.language, cause) {
        (Language::English, Some(cause)) => {
            format!("{arm} and {baseline} cannot be compared in {noun} ({cause})")
        }
        (Language::English, None) => format!("{arm} and {baseline} cannot be compared in {noun}"),
        (Language::Korean, Some(cause)) => {
            format!("{arm}, {baseline} 두 대상의 {noun}은 비교할 수 없습니다({cause})")
        }
        (Language::Korean, None) => format!("{arm}, {baseline} 두 대상의 {noun}은 비교할 수 없습니다"),
        (Language::Chinese, Some(cause)) => format!("{arm} 与 {baseline} 的{noun}不可比较（{cause}）"),
        (Language::Chinese, None) => format!("{arm} 与 {baseline} 的{noun}不可比较"),
    }
}

/// What the headline could not have seen, and how loud the machine was; empty without a headline.
pub(crate) fn sensitivity(view: &View<'_>) -> String {
    let Some(comparison) = view.headline() else { return String::new() };
    let detectable = comparison.detectable_effect.filter(|effect| effect.is_finite()).map(format::percent);
    let floor = comparison.noise_floor.filter(|floor| floor.is_finite()).map(format::percent);
    let pairs = comparison.pairs;
    let mut parts = Vec::new();
    parts.extend(detectable.map(|effect| match view.language {
        Language::English => {
            format!("Differences under {effect} would have gone unseen (minimum detectable effect).")
        }
        Language::Korean => format!("{effect}보다 작은 차이는 이 측정에서 보이지 않습니다(최소 검출 효과)."),
        Language::Chinese => format!("小于 {effect} 的差异在本次测量中不可见（最小可检测效应）。"),
    }));
    parts.extend(floor.map(|floor| match view.language {
        Language::English => {
            format!("Over as many pairs, the baseline differs from itself by up to {floor} (noise floor).")
        }
        Language::Korean => {
            format!("같은 수의 쌍으로 기준을 자기 자신과 비교해도 {floor}까지 차이가 납니다(노이즈 플로어).")
        }
        Language::Chinese => format!("在同样多的配对下，基线与自身相比也会相差至多 {floor}（噪声本底）。"),
    }));
    let took_turns = view.cell(&comparison.cell_id).is_some_and(|cell| cell.alternation.is_some());
    parts.push(match (view.language, took_turns) {
        (Language::English, false) if pairs == 1 => "1 pair of trials.".to_owned(),
        (Language::English, false) => format!("{pairs} pairs of trials."),
        (Language::Korean, false) => format!("대응 시행 {pairs}쌍."),
        (Language::Chinese, false) => format!("共 {pairs} 对试验。"),
        (Language::English, true) => format!("{pairs} rounds in which the servers took turns."),
        (Language::Korean, true) => format!("서버들이 번갈아 부하를 받은 라운드 {pairs}회."),
        (Language::Chinese, true) => format!("共 {pairs} 轮，各服务器轮流承受负载。"),
    });
    parts.join(if view.language == Language::Chinese { "" } else { " " })
}

/// The absolute figures behind the headline, a line an arm.
pub(crate) fn absolute(view: &View<'_>) -> Vec<String> {
    let Some(comparison) = view.headline() else { return Vec::new() };
    let figures = |arm: &str| {
        let summary = view.summary(&comparison.cell_id, arm)?;
        let cpu = format::micros(summary.server_cpu_us_per_message.median);
        let throughput = view.throughput_in_words(summary);
        let unit = view.unit();
        if view.is_storage {
            return Some(match view.language {
                Language::English => format!("{arm}: {cpu} of CPU per {unit} at {throughput}"),
                Language::Korean => format!("{arm}: {unit}당 CPU {cpu}, 처리량 {throughput}"),
                Language::Chinese => format!("{arm}：每{unit} CPU {cpu}，吞吐量 {throughput}"),
            });
        }
        Some(match view.language {
            Language::English => format!("{arm}: {cpu} of server CPU per {unit} at {throughput}"),
            Language::Korean => format!("{arm}: {unit}당 서버 CPU {cpu}, 처리량 {throughput}"),
            Language::Chinese => format!("{arm}：每{unit}服务器 CPU {cpu}，吞吐量 {throughput}"),
        })
    };
    [&comparison.baseline, &comparison.arm].into_iter().filter_map(|arm| figures(arm)).collect()
}

/// How many trials were clean: (`quiet machine`, `93 of 96 trials clean, steal at most 0.4 %`).
pub(crate) fn noise(view: &View<'_>) -> (Word, String) {
    let timeline = &view.result.timeline;
    let clean = timeline.iter().filter(|entry| entry.clean).count();
    let total = timeline.len();
    let steals = timeline.iter().map(|entry| entry.steal_share).filter(|share| share.is_finite());
    let steal = format::percent(steals.fold(0.0, f64::max));
    let word = match clean * 100 {
        hundredfold if hundredfold >= total * 95 => Word::Quiet,
        hundredfold if hundredfold >= total * 80 => Word::SomeNoise,
        _ => Word::Noisy,
    };
    let detail = match view.language {
        Language::English => format!("{clean} of {total} trials clean, steal at most {steal}"),
        Language::Korean => format!("시행 {total}회 중 정상 {clean}회, 최대 스틸 {steal}"),
        Language::Chinese => format!("{total} 次试验中 {clean} 个有效，steal 最高 {steal}"),
    };
    (word, detail)
}

/// Machine states in words.
pub(crate) fn states(view: &View<'_>) -> (Word, String) {
    let states = &view.result.states;
    let near = format::nanos(states.near_ns);
    let (near_trials, far_trials, both) = states.trials;
    let Some(far) = states.far_ns.filter(|_| states.boundary_ns.is_some()) else {
        let cross_core = view.word(Word::CrossCore);
        return (Word::OneState, format!("{cross_core} {near}"));
    };
    let far = format::nanos(far);
    let detail = match view.language {
        Language::English => {
            format!("near {near}: {near_trials} trials, far {far}: {far_trials}, changed during: {both}")
        }
        Language::Korean => {
            format!("가까움 {near}: {near_trials}회, 멂 {far}: {far_trials}회, 도중 변화: {both}회")
        }
        Language::Chinese => {
            format!("近 {near}：{near_trials} 次试验，远 {far}：{far_trials} 个，中途变化：{both} 个")
        }
    };
    (Word::TwoStates, detail)
}

/// `42 more are left out here` for lists that were cut to a limit.
pub(crate) fn left_out(view: &View<'_>, count: usize) -> String {
    match view.language {
        Language::English => format!("{count} more are left out here; the CSV export has all of them."),
        Language::Korean => format!("{count}개는 여기서 생략했습니다. CSV 내보내기에는 모두 들어 있습니다."),
        Language::Chinese => format!("此处省略其余 {count} 项；CSV 导出包含全部数据。"),
    }
}

/// What a median with its spread looks like in a table: `5.10 µs (4.98 µs – 5.31 µs)`.
pub(crate) fn spread(spread: weir_record::study::Spread, number: impl Fn(f64) -> String) -> String {
    format!("{} ({} – {})", number(spread.median), number(spread.min), number(spread.max))
}

/// A note and every metric of one arm in one cell that carries it.
pub(crate) struct Note<'a> {
    /// Arm.
    pub arm: &'a str,
    /// What it is compared with.
    pub baseline: &'a str,
    /// Cell.
    pub cell_id: &'a str,
    /// The metrics; empty when all that were compared there carry it.
    pub metrics: Vec<Metric>,
    /// What it says.
    pub text: String,
    /// It is English in a page that is not.
    pub is_foreign: bool,
    /// Ratios with the pairs that were kept out, a metric each.
    ratios_all_pairs: Vec<(Metric, f64)>,
}

impl Note<'_> {
    /// `uring · CPU/msg, throughput · 100 connections`, in the words for metrics that the view uses.
    pub fn subject(&self, view: &View<'_>, word: impl Fn(Metric) -> Word, separator: &str) -> String {
        let metrics: Vec<&str> = self.metrics.iter().map(|metric| view.word(word(*metric))).collect();
        let compared = view.compared(self.arm, self.baseline);
        let parts = [compared, metrics.join(", "), view.cell_label(self.cell_id)];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(separator)
    }
}

/// Notes of all comparisons: what they carry, and the pairs kept out. A note that several metrics of an arm carry in a
/// cell is said once.
pub(crate) fn notes<'a>(view: &View<'a>) -> Vec<Note<'a>> {
    let mut notes: Vec<Note<'a>> = Vec::new();
    for comparison in view.result.comparisons.iter() {
        for finding in comparison.reasons.iter().chain(&comparison.notes) {
            let is_foreign = findings::is_foreign(view.language, finding);
            add_note(&mut notes, comparison, (view.finding(finding), is_foreign), None);
        }
        if !comparison.pairs_excluded.is_empty() {
            let kept_out = view.word(Word::PairsExcluded);
            let reasons: Vec<String> =
                comparison.pairs_excluded.iter().map(|excluded| view.finding(excluded)).collect();
            let is_foreign =
                comparison.pairs_excluded.iter().any(|it| findings::is_foreign(view.language, it));
            let text = format!("{kept_out}{}{}", view.language.colon(), reasons.join(view.language.list()));
            add_note(&mut notes, comparison, (text, is_foreign), comparison.ratio_all_pairs);
        }
    }
    for note in &mut notes {
        note.text.push_str(&ratios_all_pairs(view, note));
        let is_same = |it: &&Comparison| {
            it.cell_id == note.cell_id && it.arm == note.arm && it.baseline == note.baseline
        };
        let compared = view.result.comparisons.iter().filter(is_same).count();
        if note.metrics.len() > 1 && note.metrics.len() == compared {
            note.metrics.clear();
        }
    }
    notes
}

fn add_note<'a>(
    notes: &mut Vec<Note<'a>>,
    comparison: &'a Comparison,
    (text, is_foreign): (String, bool),
    ratio: Option<f64>,
) {
    let Comparison { arm, baseline, cell_id, metric, .. } = comparison;
    let ratio = ratio.map(|ratio| (*metric, ratio));
    let same = |it: &&mut Note<'_>| {
        it.arm == arm && it.baseline == baseline && it.cell_id == cell_id && it.text == text
    };
    match notes.iter_mut().find(same) {
        Some(note) => {
            note.metrics.push(*metric);
            note.ratios_all_pairs.extend(ratio);
        }
        None => notes.push(Note {
            arm,
            baseline,
            cell_id,
            metrics: vec![*metric],
            text,
            is_foreign,
            ratios_all_pairs: ratio.into_iter().collect(),
        }),
    }
}

fn ratios_all_pairs(view: &View<'_>, note: &Note<'_>) -> String {
    let with_all = view.word(Word::WithAllPairs);
    let number = |ratio: f64| format::ratio(Some(ratio));
    match note.ratios_all_pairs.as_slice() {
        [] => String::new(),
        [(_, ratio)] => format!("{}{with_all} {}", view.language.semicolon(), number(*ratio)),
        several => {
            let name = |metric: Metric| view.word(words::metric_short(metric));
            let ratios =
                several.iter().map(|(metric, ratio)| format!("{} {}", name(*metric), number(*ratio)));
            let colon = view.language.colon();
            format!("{}{with_all}{colon}{}", view.language.semicolon(), ratios.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Whether an arm has counters of its own, as a rung of evidence.
pub(crate) fn evidence(summaries: &[ArmSummary]) -> Word {
    match summaries.iter().any(|summary| !summary.engine_per_message.is_empty()) {
        true => Word::EvidenceEngine,
        false => Word::EvidenceProc,
    }
}
