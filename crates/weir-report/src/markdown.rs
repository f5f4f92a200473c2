//! The page's blocks in GitHub-flavoured Markdown; charts become tables.

use crate::{
    definitions, language::localized, section::Section, sections, sentence, table::Table, tables, titles,
    view::View, when, words::Word,
};

/// Most characters of sections and what stands around them: a comment on GitHub holds 65,536, and the sentence about
/// what was left out is among the rest.
const CHARACTERS_MAX: usize = 62_000;

/// The document.
pub(crate) fn document(view: &View<'_>) -> String {
    let result = view.result;
    let mut out = format!("# {} `{}`\n\n", view.word(Word::StudyOf), code(&result.spec.name));
    paragraph(&mut out, &escape(titles::localized(&result.spec.title, view.language)));
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
            "댓글에 다 들어가지 않아 report.html에만 있는 것: {titles}.",
            "因评论篇幅有限，仅在 report.html 中：{titles}。",
        );
        paragraph(&mut out, &escape(&text));
    }
    let empty: Vec<&str> = empty.iter().map(|reason| view.word(*reason)).collect();
    paragraph(&mut out, &empty.join(" "));
    append(&mut out, &behind);
    format!("{}\n", out.trim_end())
}

/// Appends what begins with a heading, behind one empty line.
fn append(out: &mut String, text: &str) {
    out.truncate(out.trim_end().len());
    out.push_str("\n\n");
    out.push_str(text.trim_start_matches('\n'));
}

/// What stands behind the sections: the checks, the definitions, and how to measure it again.
fn behind(view: &View<'_>) -> String {
    let mut out = String::new();
    heading(view, &mut out, Word::ChecksTitle);
    match view.result.checks.is_empty() {
        true => paragraph(&mut out, view.word(Word::NoChecks)),
        false => table(view, &mut out, &tables::checks(view)),
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

fn missing_arms(view: &View<'_>, out: &mut String) {
    let cells = &view.result.spec.missing_cells;
    if view.result.missing_arms.is_empty() && cells.is_empty() {
        return;
    }
    heading(view, out, Word::MissingTitle);
    for arm in &view.result.missing_arms {
        out.push_str(&format!(
            "- **{}**{}{}\n",
            escape(&arm.name),
            view.language.colon(),
            escape(&view.finding(&arm.reason))
        ));
        if let Some(unlock) = &arm.unlock {
            out.push_str(&format!(
                "  - {}{}{}\n",
                view.word(Word::Unlock),
                view.language.colon(),
                escape(&view.finding(unlock))
            ));
        }
    }
    for cell in cells {
        let (reason, colon) = (view.finding(&cell.reason), view.language.colon());
        out.push_str(&format!("- {}{colon}{}\n", escape(&cell.id), escape(&reason)));
    }
}

/// A section as a page of its own, with how to measure it again.
pub(crate) fn page_of(view: &View<'_>, section: &Section) -> String {
    let mut out = format!("# {}\n\n", section.title.localized(view));
    paragraph(&mut out, &escape(titles::localized(&view.result.spec.title, view.language)));
    section.sentences.iter().for_each(|it| out.push_str(&format!("- {}\n", escape(&it.text))));
    out.push('\n');
    // The section's own explanation is of its first table.
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

/// A section of the list; charts are their tables.
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
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<_> = table.head.iter().map(|cell| escape(cell)).collect();
    let rule: Vec<_> = (0..head.len())
        .map(|column| if column < table.text_columns { "---" } else { "---:" }.to_owned())
        .collect();
    out.push_str(&line(&head));
    out.push_str(&line(&rule));
    for row in &table.rows {
        out.push_str(&line(&row.iter().map(|cell| escape(cell)).collect::<Vec<_>>()));
    }
    out.push('\n');
    left_out(view, out, table.left_out);
}

fn join(view: &View<'_>, title: &str, detail: &str) -> String {
    if detail.is_empty() { title.to_owned() } else { format!("{title}{}{detail}", view.language.colon()) }
}

/// Text that Markdown and the HTML inside it leave alone; one line.
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

/// Text inside a code span, which takes no escapes.
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
