//! The answer of a study on one screen: its question, the verdict, where and when, the primary comparison's table, and
//! what bars or explains it. `--long` prints the whole document of the parent module.

use super::{Layout, Output, Style, cell_rows, columns_of, not_compared};
use crate::{
    answer,
    display::{printable, wrap},
    frontier, goals, overview, published, sentence, titles,
    view::View,
    when,
    words::Word,
};

/// Most lines of the answer. The line with the page's path makes it 24, the height of the smallest usual terminal.
/// Only a question and a verdict that are longer than this take more.
pub const ANSWER_LINES_MAX: usize = 23;

/// A paragraph or table of the answer.
struct Part {
    rank: Rank,
    /// Whether an empty line precedes it.
    is_apart: bool,
    /// Whether a part of its lines is useful alone.
    can_be_cut: bool,
    lines: Vec<String>,
}

/// What is left out last comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Always shown.
    Answer,
    /// What limits the answer.
    Limits,
    /// The figures of the answer.
    Figures,
    /// Answers to the study's further questions.
    Further,
    Advice,
    Sensitivity,
}

/// The screen.
pub(crate) fn screen(view: &View<'_>, (width, color): (usize, bool)) -> String {
    let mut parts = vec![title(view, width), verdict(view, (width, color))];
    let paragraph = |rank, text: String| paragraphs(rank, width, [text]);
    // How to unlock a missing arm is said where it is named.
    let next = sentence::next_step(view).filter(|_| view.result.missing_arms.is_empty());
    parts.extend(next.map(|text| paragraph(Rank::Advice, text)));
    parts.extend(sentence::beside(view).map(|text| paragraph(Rank::Further, text)));
    parts.extend(when::among(view).map(|text| paragraph(Rank::Further, text)));
    parts.push(paragraph(Rank::Sensitivity, sentence::sensitivity(view)));
    parts.push(figures(view, (width, color)));
    parts.push(list(Rank::Further, width, further(view)));
    parts.push(list(Rank::Limits, width, answer::limits(view)));
    parts.push(Part {
        is_apart: true,
        ..paragraphs(Rank::Answer, width, [view.word(Word::RestByLong).to_owned()])
    });
    fitted(parts, ANSWER_LINES_MAX)
}

/// The parts that fit, in their order on the screen. The best ranks are placed first; of a list that does not fit, as
/// many lines as do.
fn fitted(parts: Vec<Part>, lines_max: usize) -> String {
    let mut by_rank: Vec<usize> = (0..parts.len()).filter(|index| !parts[*index].lines.is_empty()).collect();
    by_rank.sort_by_key(|index| parts[*index].rank);
    let mut shown = vec![0; parts.len()];
    let mut left = lines_max;
    for index in by_rank {
        let part = &parts[index];
        let room = left.saturating_sub(usize::from(part.is_apart));
        let whole = part.lines.len();
        shown[index] = match part.rank {
            Rank::Answer => whole,
            _ if whole <= room => whole,
            _ if part.can_be_cut => room,
            _ => 0,
        };
        if shown[index] > 0 {
            left = left.saturating_sub(shown[index] + usize::from(part.is_apart));
        }
    }
    let mut text = String::new();
    for (part, shown) in parts.iter().zip(shown).filter(|(_, shown)| *shown > 0) {
        if part.is_apart {
            text.push('\n');
        }
        let is_cut = shown < part.lines.len();
        for line in &part.lines[..shown - usize::from(is_cut)] {
            text.push_str(line);
            text.push('\n');
        }
        if is_cut {
            text.push_str("…\n");
        }
    }
    text
}

/// The study, its time and its machine.
fn title(view: &View<'_>, width: usize) -> Part {
    let result = view.result;
    let complete = view.word(if result.complete { Word::Complete } else { Word::Incomplete });
    let name = format!("{} {}", view.word(Word::StudyOf), result.spec.name);
    let first = [name.as_str(), complete, &view.language.duration(result.elapsed_ns)].join(" · ");
    paragraphs(Rank::Answer, width, [first, answer::facts(view).join(" · ")])
}

/// The question, the verdict and the sentence that explains it.
fn verdict(view: &View<'_>, (width, color): (usize, bool)) -> Part {
    let mut out = Output::new(width, color);
    out.wrapped(titles::localized(&view.result.spec.title, view.language), "");
    let verdict = format!("{}{}{}", view.word(Word::Verdict), view.language.colon(), view.own_verdict());
    out.styled(Style::of(view.verdict()), &verdict);
    out.wrapped(&sentence::headline(view), "");
    Part { rank: Rank::Answer, is_apart: true, can_be_cut: false, lines: lines_of(out) }
}

/// The arms of the primary cell: of alternatives that are compared at a waiting strategy's frontier, that table.
fn figures(view: &View<'_>, (width, color): (usize, bool)) -> Part {
    let mut out = Output::new(width, color);
    if let Some(cell) = answer::primary_cell(view) {
        let heading = printable(&view.cell_heading(cell));
        wrap(&heading, width).iter().for_each(|line| out.styled(Style::Bold, line));
        let rows: Vec<_> = cell_rows(view, cell).into_iter().filter(|row| !row.further).collect();
        if !rows.is_empty() {
            let layout = Layout::fitting(view, rows.iter(), width);
            out.styled(Style::Faint, &layout.header(view));
            rows.iter().for_each(|row| out.line(&layout.line(row, color)));
        }
        if let Some(line) = not_compared(view, cell) {
            out.wrapped(&line, "  ");
        }
        columns_of(&frontier::narrow_table(view, cell), &mut out);
    }
    Part { rank: Rank::Figures, is_apart: true, can_be_cut: true, lines: lines_of(out) }
}

/// A line for each answer beside the primary one: of other cells, of goals, of each arm over a map.
fn further(view: &View<'_>) -> Vec<String> {
    let mut lines: Vec<String> = frontier::elsewhere(view).into_iter().map(|it| it.text).collect();
    if goals::has_any(view) {
        lines.extend(goals::lines(view));
    }
    lines.extend(overview::lines(view));
    lines.extend(published::ladder(view));
    lines
}

/// Texts below each other, each from a new line on.
fn paragraphs(rank: Rank, width: usize, texts: impl IntoIterator<Item = String>) -> Part {
    let mut out = Output::new(width, false);
    texts.into_iter().filter(|text| !text.is_empty()).for_each(|text| out.wrapped(&text, ""));
    Part { rank, is_apart: false, can_be_cut: false, lines: lines_of(out) }
}

/// Items, of which the first ones are useful without the rest.
fn list(rank: Rank, width: usize, texts: Vec<String>) -> Part {
    let mut out = Output::new(width, false);
    texts.into_iter().for_each(|text| out.wrapped(&format!("- {text}"), "  "));
    Part { rank, is_apart: true, can_be_cut: true, lines: lines_of(out) }
}

fn lines_of(out: Output) -> Vec<String> {
    out.finish().lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(rank: Rank, lines: &[&str]) -> Part {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Part { rank, is_apart: false, can_be_cut: false, lines }
    }

    #[test]
    fn parts_keep_their_order_and_the_least_important_are_left_out_first() {
        let parts = || {
            vec![
                part(Rank::Answer, &["title"]),
                part(Rank::Sensitivity, &["s1", "s2"]),
                part(Rank::Advice, &["a1"]),
                Part { is_apart: true, ..part(Rank::Figures, &["f1", "f2"]) },
            ]
        };
        assert_eq!(fitted(parts(), 7), "title\ns1\ns2\na1\n\nf1\nf2\n");
        assert_eq!(fitted(parts(), 6), "title\na1\n\nf1\nf2\n");
        assert_eq!(fitted(parts(), 4), "title\n\nf1\nf2\n");
        assert_eq!(fitted(parts(), 3), "title\na1\n", "the table does not fit, the advice does");
        assert_eq!(fitted(parts(), 0), "title\n", "the answer is never cut");
    }

    #[test]
    fn a_list_gives_as_many_lines_as_fit_and_never_an_empty_line_alone() {
        let parts = || {
            let of_list = part(Rank::Limits, &["- one", "- two", "- three"]);
            vec![part(Rank::Answer, &["title"]), Part { is_apart: true, can_be_cut: true, ..of_list }]
        };
        assert_eq!(fitted(parts(), 5), "title\n\n- one\n- two\n- three\n");
        assert_eq!(fitted(parts(), 4), "title\n\n- one\n…\n", "a cut is visible");
        assert_eq!(fitted(parts(), 2), "title\n", "an empty line without an item says nothing");
    }
}
