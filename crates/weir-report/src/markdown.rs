//! The page's blocks in GitHub-flavoured Markdown; charts become tables.

use weir_record::{check::Check, finding::Finding, metric::Metric, spec::MissingCell, study::MissingArm};

use crate::{
    answer, definitions, language::localized, section::Section, sections, sentence, table::Table, tables,
    titles, view::View, when, words::Word,
};

/// Most characters of sections and their surroundings: a comment on GitHub has at most 65,536, and the sentence about
/// omitted parts is in the remainder.
const CHARACTERS_MAX: usize = 62_000;

/// Most characters of what could not run, and of the checks, so that sections always have room.
const MISSING_CHARACTERS_MAX: usize = 8_000;
const CHECKS_CHARACTERS_MAX: usize = 16_000;
/// Most characters of one text among them.
const TEXT_CHARACTERS_MAX: usize = 1_000;
/// Most characters of the document, whatever the study's name.
const DOCUMENT_CHARACTERS_MAX: usize = 65_000;

/// Most lines of a comment: what a reader of a change looks at without scrolling.
pub const COMMENT_LINES_MAX: usize = 15;

/// Most arms of a comment; the sentence about further ones is as long as one of them.
const COMMENT_ARMS_MAX: usize = 4;
/// Most limits of a comment, all in one line.
const COMMENT_LIMITS_MAX: usize = 4;

/// The answer for a comment: verdict, sentence, the arms of the primary cell, limits, where and when, how to repeat it.
pub(crate) fn comment(view: &View<'_>) -> String {
    let (result, colon) = (view.result, view.language.colon());
    let (verdict, name) = (view.own_verdict(), code(&result.spec.name));
    let headline = escape(&shortened(&sentence::headline(view)));
    let mut out = String::new();
    paragraph(&mut out, &format!("**{verdict}** · `{name}`{colon}{headline}"));
    let metric = view.primary().map_or(Metric::ServerCpuPerMessage, |primary| primary.metric);
    if let Some(cell) = answer::primary_cell(view) {
        let arms = tables::arms_of(view, cell, metric, COMMENT_ARMS_MAX);
        let has_further = arms.left_out > 0;
        let rows_max = COMMENT_ARMS_MAX - usize::from(has_further);
        table(view, &mut out, &tables::arms_of(view, cell, metric, rows_max));
    }
    let limits = answer::limits(view);
    let shown: Vec<String> =
        limits.iter().take(COMMENT_LIMITS_MAX).map(|it| escape(&shortened(it))).collect();
    let more = and_more(view, limits.len() - shown.len());
    paragraph(&mut out, [shown.join("; "), more].join(" ").trim_end());
    let facts = escape(&shortened(&answer::facts(view).join(" · ")));
    let again = shortened(&code(&result.reproduce));
    out.push_str(&format!("<sub>{facts} · `{again}`</sub>\n"));
    out
}

/// The document.
pub(crate) fn document(view: &View<'_>) -> String {
    let result = view.result;
    let mut out = format!("# {} `{}`\n\n", view.word(Word::StudyOf), code(&result.spec.name));
    paragraph(&mut out, &escape(titles::localized(&result.spec.title, view.language)));
    paragraph(&mut out, &escape(&when::made_where(view).unwrap_or_default()));
    let verdict = view.own_verdict();
    paragraph(
        &mut out,
        &format!("**{}**{}{}", verdict, view.language.colon(), escape(&sentence::headline(view))),
    );
    paragraph(&mut out, &escape(&sentence::next_step(view).unwrap_or_default()));
    paragraph(&mut out, &sentence::beside(view).unwrap_or_default());
    paragraph(&mut out, &sentence::sensitivity(view));
    when::sentences(view).iter().for_each(|line| paragraph(&mut out, &escape(line)));
    for line in sentence::absolute(view) {
        out.push_str(&format!("- {}\n", escape(&line)));
    }
    for (title, detail) in tables::chips(view) {
        out.push_str(&format!("- {}\n", escape(&join(view, &title, &detail))));
    }
    missing_arms(view, &mut out);
    let behind = behind(view);
    let (shown, empty) = sections::all(view);
    let mut left_out: Vec<&str> = Vec::new();
    let room = CHARACTERS_MAX.saturating_sub(characters(&behind));
    for one in &shown {
        let mut text = String::new();
        section(view, &mut text, one);
        if characters(&out) + characters(&text) <= room {
            append(&mut out, &text);
        } else {
            left_out.push(one.title.localized(view));
        }
    }
    if !left_out.is_empty() {
        let titles = left_out.join(view.language.semicolon());
        let text = localized!(
            view.language,
            "Only in report.html, because a comment has no room for them: {titles}.",
            "댓글에 다 담을 수 없어 report.html에만 있는 것: {titles}.",
            "因评论篇幅有限，以下内容只在 report.html 中：{titles}。",
        );
        paragraph(&mut out, &escape(&text));
    }
    let empty: Vec<&str> = empty.iter().map(|reason| view.word(*reason)).collect();
    paragraph(&mut out, &empty.join(" "));
    append(&mut out, &behind);
    whole(view, &format!("{}\n", out.trim_end()))
}

/// The whole document if it is short enough, otherwise its first lines.
fn whole(view: &View<'_>, document: &str) -> String {
    if characters(document) <= DOCUMENT_CHARACTERS_MAX {
        return document.to_owned();
    }
    let mut kept = String::new();
    let mut room = DOCUMENT_CHARACTERS_MAX;
    for line in document.lines() {
        let Some(left) = room.checked_sub(characters(line) + 1) else { break };
        room = left;
        kept.push_str(line);
        kept.push('\n');
    }
    let is_code = kept.lines().filter(|line| line.starts_with("```")).count() % 2 == 1;
    let rest = view.language.choose([
        "The rest is in report.html.",
        "나머지는 report.html에 있습니다.",
        "其余内容见 report.html。",
    ]);
    format!("{kept}{}\n{rest}\n", if is_code { "```\n" } else { "" })
}

/// As many of the first entries as fit, and the number of further ones.
fn first(mut entries: Vec<String>, characters_max: usize) -> (Vec<String>, usize) {
    let mut room = Some(characters_max);
    let fits = |entry: &&String| {
        room = room.and_then(|room| room.checked_sub(characters(entry)));
        room.is_some()
    };
    let count = entries.iter().take_while(fits).count();
    let more = entries.len() - count;
    entries.truncate(count);
    (entries, more)
}

fn and_more(view: &View<'_>, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    localized!(
        view.language,
        "And {count} more, in report.html.",
        "그 밖에 {count}개는 report.html에 있습니다.",
        "其余 {count} 项见 report.html。",
    )
}

/// A text within the limit.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Appends a block that begins with a heading, after one empty line.
fn append(out: &mut String, text: &str) {
    out.truncate(out.trim_end().len());
    out.push_str("\n\n");
    out.push_str(text.trim_start_matches('\n'));
}

/// The part after the sections: the checks, the definitions, and how to reproduce the measurement.
fn behind(view: &View<'_>) -> String {
    let mut out = String::new();
    heading(view, &mut out, Word::ChecksTitle);
    match view.result.checks.is_empty() {
        true => paragraph(&mut out, view.word(Word::NoChecks)),
        false => checks(view, &mut out),
    }
    heading(view, &mut out, Word::DefinitionsTitle);
    for (term, text) in definitions::all(view) {
        out.push_str(&format!("- **{term}**{}{text}\n", view.language.colon()));
    }
    reproduce(view, &mut out);
    out
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

/// If there is no room for all checks, the failed ones come first.
fn checks(view: &View<'_>, out: &mut String) {
    let table_of = |checks: &[&Check]| {
        let mut table = tables::checks_of(view, checks);
        table.rows.iter_mut().flatten().for_each(|text| *text = shortened(text));
        table
    };
    let fitting = |checks: &[&Check]| {
        let lines = table_of(checks).rows.iter().map(|row| line(row)).collect();
        first(lines, CHECKS_CHARACTERS_MAX).0.len()
    };
    let mut checks: Vec<&Check> = view.result.checks.iter().collect();
    let count = checks.len();
    if fitting(&checks) < count {
        checks.sort_by_key(|check| check.passed);
        checks.truncate(fitting(&checks));
    }
    table(view, out, &table_of(&checks));
    paragraph(out, &and_more(view, count - checks.len()));
}

fn missing_arms(view: &View<'_>, out: &mut String) {
    let cells = &view.result.spec.missing_cells;
    if view.result.missing_arms.is_empty() && cells.is_empty() {
        return;
    }
    heading(view, out, Word::MissingTitle);
    let text = |finding: &Finding| escape(&shortened(&view.finding(finding)));
    let colon = view.language.colon();
    let of_arm = |arm: &MissingArm| {
        let (name, reason) = (escape(&shortened(&arm.name)), text(&arm.reason));
        let unlock = |unlock: &Finding| format!("  - {}{colon}{}\n", view.word(Word::Unlock), text(unlock));
        let unlock = arm.unlock.as_ref().map(unlock).unwrap_or_default();
        format!("- **{name}**{colon}{reason}\n{unlock}")
    };
    let of_cell =
        |cell: &MissingCell| format!("- {}{colon}{}\n", escape(&shortened(&cell.id)), text(&cell.reason));
    let entries = view.result.missing_arms.iter().map(of_arm).chain(cells.iter().map(of_cell));
    let (entries, more) = first(entries.collect(), MISSING_CHARACTERS_MAX);
    out.push_str(&entries.concat());
    out.push_str(if more > 0 { "\n" } else { "" });
    paragraph(out, &and_more(view, more));
}

/// A section as a separate page, with how to reproduce the measurement.
pub(crate) fn page_of(view: &View<'_>, section: &Section) -> String {
    let mut out = format!("# {}\n\n", section.title.localized(view));
    paragraph(&mut out, &escape(titles::localized(&view.result.spec.title, view.language)));
    paragraph(&mut out, &escape(&when::made_where(view).unwrap_or_default()));
    section.sentences.iter().for_each(|it| out.push_str(&format!("- {}\n", escape(&it.text))));
    out.push('\n');
    // The section's explanation belongs to its first table.
    let (own, others) = section.tables.split_at(section.tables.len().min(1));
    own.iter().for_each(|one| table(view, &mut out, one));
    paragraph(&mut out, section.help.localized(view));
    others.iter().for_each(|one| table(view, &mut out, one));
    reproduce(view, &mut out);
    format!("{}\n", out.trim_end())
}

/// A title, a list of sentences and sections.
pub(crate) fn of_sections(
    view: &View<'_>,
    (title, lines): (&str, &[String]),
    sections: &[Section],
) -> String {
    let mut out = format!("# {title}\n\n");
    lines.iter().for_each(|line| out.push_str(&format!("- {}\n", escape(line))));
    sections.iter().for_each(|one| section(view, &mut out, one));
    format!("{}\n", out.trim_end())
}

fn reproduce(view: &View<'_>, out: &mut String) {
    heading(view, out, Word::ReproduceTitle);
    out.push_str(&format!("```\n{}\n```\n\n", view.result.reproduce.replace("```", "'''")));
    paragraph(out, &format!("{}{}{}", view.word(Word::Seed), view.language.colon(), view.result.spec.seed));
}

/// A section of the list; charts appear as their tables.
fn section(view: &View<'_>, out: &mut String, section: &Section) {
    titled(out, section.title.localized(view));
    section.sentences.iter().for_each(|it| paragraph(out, &escape(&it.text)));
    paragraph(out, section.help.localized(view));
    for plot in &section.plots {
        paragraph(out, &format!("**{}**", escape(&plot.title)));
        table(view, out, &plot.numbers);
    }
    section.tables.iter().for_each(|one| table(view, out, one));
    paragraph(out, section.left_out.as_deref().unwrap_or_default());
    for cell in &section.notes {
        paragraph(out, &format!("**{}**", escape(&cell.cell)));
        for (subject, text, _) in &cell.notes {
            out.push_str(&format!("- {}{}{}\n", escape(subject), view.language.colon(), escape(text)));
        }
        out.push('\n');
    }
}

fn heading(view: &View<'_>, out: &mut String, title: Word) {
    titled(out, view.word(title));
}

fn titled(out: &mut String, title: &str) {
    out.truncate(out.trim_end().len());
    out.push_str(&format!("\n\n## {title}\n\n"));
}

fn paragraph(out: &mut String, text: &str) {
    if !text.is_empty() {
        out.push_str(text);
        out.push_str("\n\n");
    }
}

fn left_out(view: &View<'_>, out: &mut String, count: usize) {
    if count > 0 {
        paragraph(out, &sentence::left_out(view, count));
    }
}

fn table(view: &View<'_>, out: &mut String, table: &Table) {
    if let Some(title) = &table.title {
        paragraph(out, &format!("**{}**", escape(title)));
    }
    table.sentences.iter().for_each(|it| paragraph(out, &escape(&it.text)));
    if table.rows.is_empty() {
        return;
    }
    let rule: Vec<_> = (0..table.head.len())
        .map(|column| if column < table.text_columns { "---" } else { "---:" }.to_owned())
        .collect();
    out.push_str(&line(&table.head));
    out.push_str(&line(&rule));
    table.rows.iter().for_each(|row| out.push_str(&line(row)));
    out.push('\n');
    left_out(view, out, table.left_out);
}

/// A row of a table.
fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn join(view: &View<'_>, title: &str, detail: &str) -> String {
    if detail.is_empty() { title.to_owned() } else { format!("{title}{}{detail}", view.language.colon()) }
}

/// Escapes text for Markdown and the HTML inside it; one line.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '`' | '\\' => escaped.extend(['\\', character]),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text for a code span, which has no escapes.
fn code(text: &str) -> String {
    text.chars()
        .map(|character| if character == '`' || character.is_control() { '\'' } else { character })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_in_names_stays_text() {
        assert_eq!(escape("<b>|a|*\n"), "&lt;b&gt;\\|a\\|\\* ");
        assert_eq!(escape("c100-d1_m64 [0.77, 0.79]"), "c100-d1_m64 [0.77, 0.79]");
    }
}
