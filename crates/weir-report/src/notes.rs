//! Notes about comparisons, by cell: why there is no verdict, what accompanies one, and which units were excluded. A
//! note that several metrics of an arm share appears once.

use weir_record::{
    effect::{Effect, EffectScale, Question},
    finding::Finding,
    metric::Metric,
    spec::LoadMode,
};

use crate::{
    cited::distinct, findings, format, language::localized, metrics, section::CellNotes, sentence,
    view::View, words::Word,
};

/// A note, with all metrics of one arm in one cell that have it.
struct Note<'a> {
    arm: &'a str,
    /// The baseline of the comparison.
    baseline: &'a str,
    cell_id: &'a str,
    /// The metrics; empty if all compared ones have it.
    metrics: Vec<Metric>,
    text: String,
    /// Whether it is in English on a page in another language.
    is_foreign: bool,
    /// Ratios including the excluded units, by metric, if these would change the figure.
    ratios_with_noise: Vec<(Metric, f64)>,
}

/// `uring, poll · CPU/msg, throughput`: arms that share a note for the same metrics.
fn subject(view: &View<'_>, notes: &[&Note<'_>]) -> String {
    let list = |words: Vec<String>| words.join(view.language.list());
    let arms = notes.iter().map(|note| view.compared(note.arm, note.baseline)).collect();
    let metrics = notes[0].metrics.iter().map(|metric| metrics::short(view, *metric)).collect();
    let parts = [list(arms), list(metrics)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}

/// Notes of all comparisons, in the order of the cells. A note that several arms of a cell share appears once.
pub(crate) fn by_cell(view: &View<'_>) -> Vec<CellNotes> {
    let notes = notes(view);
    let of_cell = |cell: &&str| {
        let mut groups: Vec<Vec<&Note<'_>>> = Vec::new();
        for note in notes.iter().filter(|note| note.cell_id == *cell) {
            match groups.iter_mut().find(|it| (&it[0].text, &it[0].metrics) == (&note.text, &note.metrics)) {
                Some(same) => same.push(note),
                None => groups.push(vec![note]),
            }
        }
        let text = |same: &[&Note<'_>]| format!("{}{}", same[0].text, ratios_with_noise(view, same));
        let line = |same: &Vec<&Note<'_>>| (subject(view, same), text(same), same[0].is_foreign);
        let notes: Vec<_> = groups.iter().map(line).collect();
        (!notes.is_empty()).then(|| CellNotes {
            cell_id: (*cell).to_owned(),
            cell: view.cell_label(cell),
            notes,
        })
    };
    view.cells.iter().filter_map(of_cell).collect()
}

/// Notes of all comparisons, and the excluded pairs. A note that several metrics of an arm in a cell share appears
/// once.
fn notes<'a>(view: &View<'a>) -> Vec<Note<'a>> {
    let mut notes: Vec<Note<'a>> = Vec::new();
    for comparison in view.result.effects.comparisons().filter(|it| !view.is_simulated(&it.cell_id)) {
        // Notes that already appear below the primary comparison, or above all plots, are not repeated.
        let is_primary = view.primary().is_some_and(|primary| std::ptr::eq(primary, comparison));
        let is_said = |it: &&Finding| match it {
            Finding::AlsoSyscalls { .. } => is_primary,
            Finding::Oversubscribed { .. } => !view.result.oversubscribed.is_empty(),
            _ => false,
        };
        for finding in comparison.reasons.iter().chain(&comparison.notes).filter(|it| !is_said(it)) {
            let is_foreign = findings::is_foreign(view.language, finding);
            add_note(&mut notes, comparison, (view.finding(finding), is_foreign), None);
        }
        if let Some(text) = sentence::at_achieved_rates(view, comparison).filter(|_| !is_primary) {
            add_note(&mut notes, comparison, (text, false), None);
        }
        if let Some([near, far]) = view.by_state(comparison) {
            add_note(&mut notes, comparison, (by_state(view, near, far), false), None);
        }
        if !comparison.excluded.is_empty() {
            let kept_out = view.word(Word::PairsExcluded);
            let reasons: Vec<String> =
                comparison.excluded.iter().map(|excluded| view.finding(excluded)).collect();
            let is_foreign = comparison.excluded.iter().any(|it| findings::is_foreign(view.language, it));
            let text = format!("{kept_out}{}{}", view.language.colon(), reasons.join(view.language.list()));
            add_note(&mut notes, comparison, (text, is_foreign), changed_by_noise(view, comparison));
        }
    }
    for note in &mut notes {
        let is_same = |it: &&Effect| it.arm == note.arm && it.baseline == note.baseline;
        let compared = view.compared_in(note.cell_id).filter(is_same).count();
        if note.metrics.len() > 1 && note.metrics.len() == compared {
            note.metrics.clear();
        }
    }
    notes
}

/// The effect in each state of the machine, if both occurred often enough.
fn by_state(view: &View<'_>, near: &Effect, far: &Effect) -> String {
    let ratio = |it: &Effect| format::ratio_and_interval(it.estimate, it.interval);
    let [near_ratio, far_ratio] = [near, far].map(ratio);
    let [near_units, far_units] = [near, far].map(|it| it.units);
    localized!(
        view.language,
        "near state {near_ratio} ({near_units} units), far state {far_ratio} ({far_units} units)",
        "코어 간 지연이 짧은 상태(near) {near_ratio}(단위 {near_units}개), 긴 상태(far) {far_ratio}(단위 {far_units}개)",
        "核间延迟较短的状态（near）{near_ratio}（{near_units} 个单元），较长的状态（far）{far_ratio}（{far_units} 个单元）",
    )
}

fn add_note<'a>(
    notes: &mut Vec<Note<'a>>,
    comparison: &'a Effect,
    (text, is_foreign): (String, bool),
    ratio: Option<f64>,
) {
    let Effect { arm, baseline, cell_id, metric, .. } = comparison;
    let ratio = ratio.map(|ratio| (*metric, ratio));
    let same = |it: &&mut Note<'_>| {
        it.arm == arm && it.baseline == baseline && it.cell_id == cell_id && it.text == text
    };
    match notes.iter_mut().find(same) {
        Some(note) => {
            note.metrics.push(*metric);
            note.ratios_with_noise.extend(ratio);
        }
        None => notes.push(Note {
            arm,
            baseline,
            cell_id,
            metrics: vec![*metric],
            text,
            is_foreign,
            ratios_with_noise: ratio.into_iter().collect(),
        }),
    }
}

/// The ratio including the excluded units, if it is outside the interval of the remaining ones. Inside the interval
/// it adds nothing; with no remaining units its values are not comparable.
fn changed_by_noise(view: &View<'_>, comparison: &Effect) -> Option<f64> {
    let (low, high) = comparison.interval.filter(|_| comparison.scale == EffectScale::Ratio)?;
    let with_noise = view.beside(comparison, Question::WithNoise)?.estimate;
    with_noise.filter(|ratio| ratio.is_finite() && !(low..=high).contains(ratio))
}

/// `; ratio with all pairs: CPU/msg 0.900, throughput 0.920`, by arm if several share the note.
fn ratios_with_noise(view: &View<'_>, notes: &[&Note<'_>]) -> String {
    let ratio = |note: &Note<'_>, metric: Metric, ratio: f64| {
        let number = format::ratio(Some(ratio));
        // A note about a single metric names that metric.
        if note.metrics.len() == 1 { number } else { format!("{} {number}", metrics::short(view, metric)) }
    };
    let of_note = |note: &&Note<'_>| {
        let ratios = note.ratios_with_noise.iter().map(|(metric, value)| ratio(note, *metric, *value));
        let ratios = ratios.collect::<Vec<_>>().join(view.language.list());
        match (ratios.is_empty(), notes.len()) {
            (true, _) => None,
            (false, 1) => Some(ratios),
            (false, _) => Some(format!("{} {ratios}", view.compared(note.arm, note.baseline))),
        }
    };
    let (between, colon) = (view.language.semicolon(), view.language.colon());
    let texts: Vec<String> = notes.iter().filter_map(of_note).collect();
    match texts.is_empty() {
        true => String::new(),
        false => format!("{between}{}{colon}{}", view.word(Word::WithAllPairs), texts.join(between)),
    }
}

/// The cells of a check's finding: those that it names, or else those to which it applies.
pub(crate) fn cells_of(view: &View<'_>, finding: &Finding) -> Vec<String> {
    let result = view.result;
    match finding {
        Finding::SliceOrder { effects, .. } => distinct(effects.iter().map(|it| &it.cell_id)),
        Finding::Segments { arms, .. } => distinct(arms.iter().map(|it| &it.cell_id)),
        Finding::SliceMessages { arms, .. } => distinct(arms.iter().map(|it| &it.cell_id)),
        Finding::Warming { arms, .. } => distinct(arms.iter().map(|it| &it.cell_id)),
        Finding::CallsAgree { apart, .. } => distinct(apart.iter().map(|it| &it.cell_id)),
        Finding::CallsCover { lacking, .. } => distinct(lacking.iter().map(|it| &it.cell_id)),
        Finding::PlantedLeads { apart, .. } => distinct(apart.iter().map(|it| &it.cell_id)),
        Finding::RoundComponents { .. } | Finding::AgainstItself { .. } => {
            view.primary().map(|it| it.cell_id.clone()).into_iter().collect()
        }
        Finding::GeneratorLimit { bound: 1.., .. } => {
            let is_closed = |id: &str| view.cell(id).is_some_and(|cell| cell.load == LoadMode::Closed);
            let bound = result.arms.iter().filter(|arm| arm.generator_bound && is_closed(&arm.cell_id));
            distinct(bound.map(|arm| &arm.cell_id))
        }
        Finding::RateKept { missed: 1.., .. } => {
            let is_missed =
                |it: &Finding| matches!(it, Finding::RateNotKept { .. } | Finding::RateMissed { .. });
            let missed = result.effects.comparisons().filter(|it| it.reasons.iter().any(is_missed));
            distinct(missed.map(|it| &it.cell_id))
        }
        _ => Vec::new(),
    }
}
