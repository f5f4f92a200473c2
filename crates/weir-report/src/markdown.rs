//! The page's blocks in GitHub-flavoured Markdown; charts become tables.

use crate::{
    definitions, gateway, published, sentence,
    tables::{self, CELLS_MAX, Table},
    titles,
    view::View,
    ways,
    words::{self, Word},
};

/// The document.
pub(crate) fn document(view: &View<'_>) -> String {
    let result = view.result;
    let mut out = format!("# {} `{}`\n\n", view.word(Word::StudyOf), code(&result.spec.name));
    paragraph(&mut out, &escape(titles::told(&result.spec.title, view.language)));
    let verdict = view.verdict_word(result.verdict);
    paragraph(
        &mut out,
        &format!("**{}**{}{}", verdict, view.language.colon(), escape(&sentence::headline(view))),
    );
    paragraph(&mut out, &sentence::sensitivity(view));
    for line in sentence::absolute(view) {
        out.push_str(&format!("- {}\n", escape(&line)));
    }
    for (title, detail) in tables::chips(view) {
        out.push_str(&format!("- {}\n", escape(&join(view, &title, &detail))));
    }
    missing_arms(view, &mut out);
    section(view, &mut out, Word::ComparisonsTitle, &tables::comparisons(view), Word::NoComparisons);
    notes(view, &mut out);
    handoff(view, &mut out);
    published(view, &mut out);
    ways(view, &mut out);
    section(view, &mut out, Word::FiguresTitle, &tables::figures(view), Word::NoFigures);
    latency(view, &mut out);
    why(view, &mut out);
    listening(view, &mut out);
    section(view, &mut out, Word::ChecksTitle, &tables::checks(view), Word::NoChecks);
    heading(view, &mut out, Word::DefinitionsTitle);
    for (term, text) in definitions::all(view) {
        out.push_str(&format!("- **{term}**{}{text}\n", view.language.colon()));
    }
    heading(view, &mut out, Word::ReproduceTitle);
    out.push_str(&format!("```\n{}\n```\n\n", result.reproduce.replace("```", "'''")));
    paragraph(&mut out, &format!("{}{}{}", view.word(Word::Seed), view.language.colon(), result.spec.seed));
    format!("{}\n", out.trim_end())
}

fn missing_arms(view: &View<'_>, out: &mut String) {
    if view.result.missing_arms.is_empty() {
        return;
    }
    heading(view, out, Word::MissingTitle);
    for arm in &view.result.missing_arms {
        out.push_str(&format!(
            "- **{}**{}{}\n",
            escape(&arm.name),
            view.language.colon(),
            escape(&view.term(&arm.reason).0)
        ));
        if let Some(unlock) = &arm.unlock {
            out.push_str(&format!(
                "  - {}{}`{}`\n",
                view.word(Word::Unlock),
                view.language.colon(),
                code(unlock)
            ));
        }
    }
}

fn notes(view: &View<'_>, out: &mut String) {
    let lines: Vec<_> = sentence::notes(view)
        .iter()
        .map(|note| {
            format!("{}{}{}", note.subject(view, words::metric, " · "), view.language.colon(), note.text)
        })
        .map(|line| format!("- {}\n", escape(&line)))
        .collect();
    if !lines.is_empty() {
        out.push_str(&lines.concat());
        out.push('\n');
    }
}

fn published(view: &View<'_>, out: &mut String) {
    if published::has_claims(view) {
        heading(view, out, Word::PublishedTitle);
        paragraph(out, view.word(Word::PublishedHelp));
        table(view, out, &published::claims(view));
    }
    if !view.result.attributions.is_empty() {
        heading(view, out, Word::AttributionsTitle);
        paragraph(out, view.word(Word::AttributionsHelp));
        table(view, out, &published::attributions(view));
    }
}

fn handoff(view: &View<'_>, out: &mut String) {
    let sections = gateway::sections(view);
    if sections.is_empty() {
        return;
    }
    for (index, (title, help, content)) in sections.iter().enumerate() {
        heading(view, out, *title);
        if index == 0 {
            for answer in gateway::answers(view) {
                paragraph(out, &escape(&answer));
            }
            paragraph(out, &gateway::crowded(view).map(|text| escape(&text)).unwrap_or_default());
        }
        paragraph(out, view.word(*help));
        table(view, out, content);
    }
}

fn ways(view: &View<'_>, out: &mut String) {
    if ways::has_ways(view) {
        heading(view, out, Word::WaysTitle);
        paragraph(out, view.word(Word::WaysHelp));
        table(view, out, &ways::table(view));
    }
}

fn listening(view: &View<'_>, out: &mut String) {
    if view.result.listening.is_empty() {
        return;
    }
    heading(view, out, Word::ListeningTitle);
    paragraph(out, view.word(Word::ListeningHelp));
    paragraph(out, &published::ladder(view).unwrap_or_default());
    table(view, out, &published::listening(view));
}

fn latency(view: &View<'_>, out: &mut String) {
    heading(view, out, Word::LatencyTitle);
    let cells = view.latency_cells();
    if cells.is_empty() {
        return paragraph(out, view.word(Word::NoLatency));
    }
    for cell in cells.iter().take(CELLS_MAX) {
        paragraph(out, &format!("**{}**", escape(&view.cell_heading(cell))));
        table(view, out, &tables::latency(view, cell));
    }
    left_out(view, out, cells.len().saturating_sub(CELLS_MAX));
}

fn why(view: &View<'_>, out: &mut String) {
    heading(view, out, Word::WhyTitle);
    let cells = tables::why_cells(view);
    if cells.is_empty() {
        return paragraph(out, view.word(tables::why_absent(view)));
    }
    for cell in cells.iter().take(CELLS_MAX) {
        let summaries = view.summaries(cell);
        paragraph(out, &format!("**{}**", escape(&view.cell_heading(cell))));
        table(view, out, &tables::why(view, &summaries));
    }
    left_out(view, out, cells.len().saturating_sub(CELLS_MAX));
}

fn section(view: &View<'_>, out: &mut String, title: Word, content: &Table, when_empty: Word) {
    heading(view, out, title);
    if content.rows.is_empty() {
        paragraph(out, view.word(when_empty));
    } else {
        table(view, out, content);
    }
}

fn heading(view: &View<'_>, out: &mut String, title: Word) {
    out.truncate(out.trim_end().len());
    out.push_str(&format!("\n\n## {}\n\n", view.word(title)));
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
