//! What belongs to the answer of a study, whatever shows it: where and when it was measured, its primary cell, and what
//! limits it.

use weir_record::{
    answer::{AnsweredEffect, AnsweringMachine, StudyAnswer, Unmeasured, UnmeasuredKind},
    spec::CellRole,
};

use crate::{check_words, display, sentence, titles, view::View, when, words::Word};

/// The answer as plain data, for documents that programs read.
pub(crate) fn in_short(view: &View<'_>) -> StudyAnswer {
    let result = view.result;
    let arms = result.missing_arms.iter().map(|arm| Unmeasured {
        kind: UnmeasuredKind::Arm,
        name: arm.name.clone(),
        reason: view.finding(&arm.reason),
        unlock: arm.unlock.as_ref().map(|it| view.finding(it)),
    });
    let cells = result.spec.missing_cells.iter().map(|cell| Unmeasured {
        kind: UnmeasuredKind::Cell,
        name: cell.id.clone(),
        reason: view.finding(&cell.reason),
        unlock: None,
    });
    let failed = result.checks.iter().filter(|check| !check.passed);
    StudyAnswer {
        question: titles::localized(&result.spec.title, view.language).to_owned(),
        sentence: sentence::headline(view),
        verdict: view.verdict(),
        complete: result.complete,
        effect: view.primary().map(AnsweredEffect::from),
        machine: AnsweringMachine::from(&result.fingerprint),
        created: when::made_for_programs(view),
        not_measured: arms.chain(cells).collect(),
        failed_checks: failed.map(|check| check.name.as_str().to_owned()).collect(),
    }
}

/// Time, host, CPU and kernel; what is unknown is left out.
pub(crate) fn facts(view: &View<'_>) -> Vec<String> {
    let fingerprint = &view.result.fingerprint;
    let period = view.result.period.map(|it| when::range(view.language, it.began_unix_s, it.ended_unix_s));
    let mut facts: Vec<String> = period.into_iter().collect();
    facts.extend([
        fingerprint.host.clone(),
        fingerprint.cpu_model.clone(),
        format!("{} CPU", fingerprint.cpus_online),
        format!("Linux {}", fingerprint.kernel_release),
    ]);
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// Most columns of a line of [`origin`].
pub(crate) const ORIGIN_COLUMNS_MAX: usize = 96;

/// What a chart that stands alone is of: the study, when it was made, and the machine, in at most two lines.
pub(crate) fn origin(view: &View<'_>) -> Vec<String> {
    let machine = &view.result.fingerprint;
    let study = format!("{} {}", view.word(Word::StudyOf), view.result.spec.name);
    let unfinished = (!view.result.complete).then(|| unfinished(view).to_owned());
    let kernel = (!machine.kernel_release.is_empty()).then(|| format!("Linux {}", machine.kernel_release));
    let model = (!machine.cpu_model.is_empty()).then(|| machine.cpu_model.clone());
    let first: Vec<String> = [study].into_iter().chain(when::made_where(view)).chain(unfinished).collect();
    let second: Vec<String> = model.into_iter().chain(kernel).collect();
    let lines = [first, second].map(|parts| display::plain_name(&parts.join(" · "), ORIGIN_COLUMNS_MAX));
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

/// What a chart of an unfinished study says.
pub(crate) fn unfinished(view: &View<'_>) -> &'static str {
    view.language.choose(["unfinished: nothing is decided", "미완료: 판정 없음", "未完成，不作判定"])
}

/// The cell of the primary comparison; without one, the first cell that was to decide.
pub(crate) fn primary_cell<'v>(view: &'v View<'_>) -> Option<&'v str> {
    let is_primary = |cell: &&str| view.cell(cell).is_some_and(|it| it.role == CellRole::Primary);
    let first = || view.cells.iter().copied().find(is_primary);
    view.primary().map(|primary| primary.cell_id.as_str()).or_else(first)
}

/// Arms and cells that could not run, with the way out, and checks that failed: an item each.
pub(crate) fn limits(view: &View<'_>) -> Vec<String> {
    let colon = view.language.colon();
    let missing = view.result.missing_arms.iter().map(|arm| {
        let (word, reason) = (view.word(Word::MissingTitle), view.finding(&arm.reason));
        let unlock =
            arm.unlock.as_ref().map(|it| format!(" {}{colon}{}", view.word(Word::Unlock), view.finding(it)));
        format!("{word}{colon}{}{colon}{reason}.{}", arm.name, unlock.unwrap_or_default())
    });
    let cells = &view.result.spec.missing_cells;
    let missing_cells = cells.iter().map(|cell| format!("{}{colon}{}", cell.id, view.finding(&cell.reason)));
    missing.chain(missing_cells).chain(failed_checks(view)).collect()
}

/// Checks that failed, by name.
pub(crate) fn failed_checks(view: &View<'_>) -> Vec<String> {
    let failed = view.result.checks.iter().filter(|check| !check.passed);
    let named = failed.map(|check| {
        let name = check_words::check(&check.name).map_or_else(|name| name, |word| view.word(word));
        format!("✗ {}{}{name}", view.word(Word::FailedCheck), view.language.colon())
    });
    named.collect()
}
