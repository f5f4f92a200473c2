//! A study's further questions, and their results: one table, and the same as paragraphs.

use weir_record::{
    effect::Effect,
    goal::{ComparisonSpec, Goal, Outcome, Side},
};

use crate::{
    cited::distinct,
    format,
    language::localized,
    metrics,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// The section.
pub(crate) fn section(view: &View<'_>) -> Content {
    Content::unless(!has_any(view), || Section::of_table(Word::GoalsTitle, Word::GoalsHelp, table(view)))
}

/// Whether the study has further questions.
pub(crate) fn has_any(view: &View<'_>) -> bool {
    view.result.asked().next().is_some()
}

fn table(view: &View<'_>) -> Table {
    let rows = view.result.asked().map(|(asked, found)| {
        vec![
            subject(view, asked),
            metric(view, asked),
            outcome(view, asked, found).to_owned(),
            why(view, found),
            goal(view, asked, found),
            figure(view, asked, found),
            format::count(u64::from(found.units)),
        ]
    });
    let text = [Word::GoalSubject, Word::Metric, Word::Outcome, Word::GoalReason];
    let sides = |(asked, _): (&ComparisonSpec, &Effect)| {
        distinct([&asked.of].into_iter().chain(&asked.to).map(|side| &side.cell_id))
    };
    Table::new(view, &text, &[Word::Goal, Word::GoalFigure, Word::GoalUnits], rows.collect())
        .of_cells(view.result.asked().map(sides).collect())
}

/// One line each, for a terminal.
pub(crate) fn lines(view: &View<'_>) -> Vec<String> {
    view.result.asked().map(|(asked, found)| line(view, asked, found)).collect()
}

/// The question, its result, and its limitation.
pub(crate) fn line(view: &View<'_>, asked: &ComparisonSpec, found: &Effect) -> String {
    let head = format!("{} · {}", subject(view, asked), metric(view, asked));
    let parts = [goal(view, asked, found), outcome(view, asked, found).to_owned(), why(view, found)];
    let parts: Vec<String> = parts.into_iter().filter(|part| part != format::ABSENT).collect();
    let tail = if parts.is_empty() { String::new() } else { format!(" · {}", parts.join(" · ")) };
    format!("{head}{}{}{tail}", view.language.colon(), figure(view, asked, found))
}

/// The two sides; their common part is named once.
fn subject(view: &View<'_>, asked: &ComparisonSpec) -> String {
    let of = &asked.of;
    let cell = |side: &Side| view.cell_label(&side.cell_id);
    let arms: Vec<&str> = asked.to.iter().map(|side| side.arm.as_str()).collect();
    match asked.to.as_slice() {
        [] => format!("{} · {}", of.arm, cell(of)),
        [to] if to.cell_id != of.cell_id => {
            let other = if to.arm == of.arm { String::new() } else { format!("{} · ", to.arm) };
            format!("{} · {} / {other}{}", of.arm, cell(of), what_differs(view, &cell(of), &cell(to)))
        }
        [to] if to.arm == of.arm => format!("{} · {}", of.arm, cell(of)),
        [to] => format!("{} / {} · {}", of.arm, to.arm, cell(of)),
        _ => {
            let (arms, language) = (arms.join(", "), view.language);
            let best = localized!(language, "best of {arms}", "{arms} 중 최고", "{arms} 中最优");
            format!("{} / {best} · {}", of.arm, cell(of))
        }
    }
}

/// The other cell by the conditions that it does not share, or that it lacks.
fn what_differs(view: &View<'_>, of: &str, to: &str) -> String {
    let parts = |one: &str, without: &str| -> Vec<String> {
        let others: Vec<&str> = without.split(" · ").collect();
        one.split(" · ").filter(|part| !others.contains(part)).map(str::to_owned).collect()
    };
    let own = parts(to, of);
    let (lacks, language) = (parts(of, to).join(" · "), view.language);
    match own.is_empty() {
        false => own.join(" · "),
        true => localized!(language, "without {lacks}", "{lacks} 제외", "无{lacks}"),
    }
}

fn metric(view: &View<'_>, asked: &ComparisonSpec) -> String {
    let of = asked.of.metric;
    match asked.to.first().filter(|to| to.metric != of) {
        Some(to) => format!("{} / {}", metrics::name(view, of), metrics::name(view, to.metric)),
        None => metrics::name(view, of),
    }
}

fn goal(view: &View<'_>, asked: &ComparisonSpec, found: &Effect) -> String {
    let number = |value: f64| metrics::answered(view, asked.of.metric, found.scale, value);
    let bound = match asked.goal {
        None => format::ABSENT.to_owned(),
        Some(Goal::AtMost(high)) => format!("≤ {}", number(high)),
        Some(Goal::AtLeast(low)) => format!("≥ {}", number(low)),
        Some(Goal::Within(low, high)) => format!("{} – {}", number(low), number(high)),
    };
    if asked.is_threshold { format!("{} {bound}", view.word(Word::Threshold)) } else { bound }
}

fn figure(view: &View<'_>, asked: &ComparisonSpec, found: &Effect) -> String {
    metrics::with_interval(view, asked.of.metric, found.scale, found.estimate, found.interval)
}

fn outcome(view: &View<'_>, asked: &ComparisonSpec, found: &Effect) -> &'static str {
    let is_threshold = asked.is_threshold;
    match found.outcome {
        None => format::ABSENT,
        Some(Outcome::Met) if is_threshold => view.word(Word::ThresholdMet),
        Some(Outcome::Missed) if is_threshold => view.word(Word::ThresholdMissed),
        Some(Outcome::Met) => view.word(Word::GoalMet),
        Some(Outcome::Missed) => view.word(Word::GoalMissed),
        Some(Outcome::Open) => view.word(Word::GoalOpen),
    }
}

fn why(view: &View<'_>, found: &Effect) -> String {
    let reasons: Vec<String> = found.reasons.iter().map(|reason| view.finding(reason)).collect();
    if reasons.is_empty() { format::ABSENT.to_owned() } else { reasons.join("; ") }
}
