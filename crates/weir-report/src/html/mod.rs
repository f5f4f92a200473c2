//! The page: one file without outside resources, complete without its only script, which saves charts (`picture.rs`).
//! Sections are in `sections.rs`, the targets of sentences in `cells.rs`, tables of text in `columns.rs`.

mod cells;
#[cfg(test)]
mod colour_contrast;
mod columns;
mod picture;
mod sections;

use std::{borrow::Cow, ffi::OsStr, path::Path};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_record::{finding::Finding, verdict::Verdict};

use crate::{
    answer, display, findings,
    language::Language,
    section::{Layer, Plot, Section},
    sentence,
    table::{Drawing, Table},
    tables, titles,
    view::View,
    when,
    words::{self, Word},
};

pub(crate) use columns::columns;
pub use picture::{PICTURE_SCRIPT, picture_script};

const STYLE: &str = include_str!("style.css");

/// Colours that do not follow the reader's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// Its name, as an address has it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of this name.
    pub fn named(key: &str) -> Option<Self> {
        [Self::Light, Self::Dark].into_iter().find(|theme| theme.key() == key)
    }
}

/// The condition under which the style has its dark colours.
const IF_DARK: &str = "@media (prefers-color-scheme:dark){";

/// The style with the colours of a theme; without one they follow the reader's choice.
fn themed(theme: Option<Theme>) -> Cow<'static, str> {
    match theme {
        None => STYLE.into(),
        Some(Theme::Light) => STYLE.replacen(IF_DARK, "@media not all{", 1).into(),
        Some(Theme::Dark) => STYLE.replacen(IF_DARK, "@media all{", 1).into(),
    }
}

/// The rules of the style that an image alone needs: its colours, and those of marks and texts.
pub(crate) fn drawing_style(language: Language, theme: Option<Theme>) -> String {
    let style = themed(theme);
    let (colours, rest) = style.split_once("*{box-sizing").unwrap_or((&*style, ""));
    let (_, marks) = rest.split_once("\nsvg text{").unwrap_or_default();
    let (marks, _) = marks.split_once("@media (max-width").unwrap_or((marks, ""));
    let nested = "svg svg{overflow:visible}svg svg[viewBox]>*{vector-effect:non-scaling-stroke}";
    format!("{colours}svg{{font-family:{}}}{nested}svg text{{{marks}", language.fonts())
}

/// A complete page in the language: style, fonts and body.
pub(crate) fn document(language: Language, title: &str, body: &Markup) -> String {
    themed_document(language, None, title, body)
}

/// The same in the colours of a theme.
pub(crate) fn themed_document(
    language: Language,
    theme: Option<Theme>,
    title: &str,
    body: &Markup,
) -> String {
    let document = html! {
        (DOCTYPE)
        html lang=(language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(theme.map_or("light dark", Theme::key));
                title { (title) }
                style {
                    (PreEscaped(themed(theme))) (PreEscaped(columns::rules()))
                    "body{font-family:" (PreEscaped(language.fonts())) "}"
                }
            }
            body { (body) }
        }
    };
    document.into_string()
}

/// The report with the figure of its answer, its sections and the reasons for empty ones; with a header if it is one
/// page of several, and then with the address of its script.
pub(crate) fn page(
    view: &View<'_>,
    (above, script): (&Markup, Option<&str>),
    figure: Option<&Plot>,
    (shown, empty): (&[Section], &[Word]),
) -> String {
    let result = view.result;
    let (findings, reference): (Vec<&Section>, Vec<&Section>) =
        shown.iter().partition(|section| section.layer == Layer::Findings);
    let body = html! {
        (above)
        main {
            header.top {
                p.study { (view.word(Word::StudyOf)) " " b { (result.spec.name) } }
                @if let Some(made) = when::made(view) {
                    p.study { time datetime=[when::made_for_programs(view)] { (made) } }
                }
                @if let Some(host) = when::host(view) {
                    p.study { (view.language.choose(["host", "호스트", "主机"])) " " bdi { (host) } }
                }
                p.asks { (titles::localized(&result.spec.title, view.language)) }
            }
            (verdict_card(view, figure))
            (chips(view))
            (missing_arms(view))
            (contents(view, &findings))
            (sections::beside(view))
            @for section in &findings { (sections::section(view, section)) }
            (sections::empty(view, empty))
            h2.layer #reference { (view.word(Word::ReferenceTitle)) }
            @for section in &reference { (sections::section(view, section)) }
            (cells::section(view))
            (sections::checks(view))
            (sections::definitions(view))
            (sections::reproduce(view))
        }
        (picture::of_report(view, script))
    };
    document(view.language, &title(view), &body)
}

/// Most columns of a folder's name in a title.
const FOLDER_COLUMNS_MAX: usize = 80;

/// The study with its verdict, its date and its folder, so that tabs and bookmarks of two runs differ.
fn title(view: &View<'_>) -> String {
    let name = &view.result.spec.name;
    let said = format!("{} {name}{}{}", view.word(Word::StudyOf), view.language.colon(), view.own_verdict());
    let folder = view.folder.and_then(Path::file_name).map(OsStr::to_string_lossy);
    let folder = folder.map(|folder| display::plain_name(&folder, FOLDER_COLUMNS_MAX));
    let parts: Vec<String> = [said].into_iter().chain(when::made(view)).chain(folder).collect();
    parts.join(" · ")
}

/// A page of sections below a card with their summary, in the colour of a class. The page's title may differ from the
/// heading of the card.
pub(crate) fn of_sections(
    view: &View<'_>,
    above: &Markup,
    ([title, heading], head): ([&str; 2], &[String]),
    class: &str,
    all: &[Section],
) -> String {
    let body = html! {
        (above)
        main {
            section.card.(class) aria-labelledby="verdict" {
                h1 #verdict { (display::keep_together(heading)) }
                ul.absolute { @for line in head { li { (display::keep_together(line)) } } }
            }
            @for section in all { (sections::section(view, section)) }
        }
    };
    document(view.language, title, &body)
}

/// The class that gives a verdict its colour.
pub(crate) fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "good",
        Verdict::Worse => "bad",
        Verdict::Equivalent => "even",
        Verdict::Inconclusive | Verdict::NotComparable | Verdict::NoClaim => "doubt",
    }
}

/// The answer: a verdict, a sentence, one figure with its intervals, its absolute figures, and the minutes it is of.
fn verdict_card(view: &View<'_>, figure: Option<&Plot>) -> Markup {
    let verdict = view.verdict();
    let absolute = sentence::absolute(view);
    html! {
        section.card.(verdict_class(verdict)) aria-labelledby="verdict" {
            p.badge {
                span.sign aria-hidden="true" { (words::verdict_sign(verdict)) }
                " " (view.own_verdict())
            }
            h1 #verdict { (display::keep_together(&sentence::headline(view))) }
            @if let Some(primary) = view.primary() {
                p.to-cells { (cells::links(view, std::slice::from_ref(&primary.cell_id))) }
            }
            @if let Some(figure) = figure { (sections::plot(view, figure)) }
            ul.absolute { @for line in &absolute { li { (display::keep_together(line)) } } }
            @for failed in answer::failed_checks(view) { p.to-cells { a href="#checks" { (failed) } } }
            @if let Some(line) = when::describes(view) { p.sensitivity { (display::keep_together(&line)) } }
        }
    }
}

/// Links to what follows: they stay in sight.
fn contents(view: &View<'_>, findings: &[&Section]) -> Markup {
    html! {
        nav.contents aria-label=(view.word(Word::ContentsTitle)) {
            a href="#verdict" { "↑" }
            @for section in findings { a href=(format!("#{}", section.id)) { (section.title.localized(view)) } }
            a href="#reference" { (view.word(Word::ReferenceTitle)) }
        }
    }
}

fn chips(view: &View<'_>) -> Markup {
    html! {
        ul.chips {
            @for (title, detail) in tables::chips(view) {
                li { b { (title) } @if !detail.is_empty() { span { (detail) } } }
            }
        }
    }
}

fn missing_arms(view: &View<'_>) -> Markup {
    html! {
        @if !(view.result.missing_arms.is_empty() && view.result.spec.missing_cells.is_empty()) {
            section.missing {
                h2 { (view.word(Word::MissingTitle)) }
                dl {
                    @for arm in &view.result.missing_arms {
                        dt { (arm.name) }
                        dd {
                            (reason(view, &arm.reason))
                            @if let Some(unlock) = &arm.unlock {
                                p { (view.word(Word::Unlock)) (view.language.colon()) (view.finding(unlock)) }
                            }
                        }
                    }
                    @for cell in &view.result.spec.missing_cells {
                        dt { (cell.id) }
                        dd { (reason(view, &cell.reason)) }
                    }
                }
            }
        }
    }
}

/// A sentence of an older record is English.
fn reason(view: &View<'_>, found: &Finding) -> Markup {
    let is_foreign = findings::is_foreign(view.language, found);
    html! { p lang=[is_foreign.then_some("en")] { (display::keep_together(&view.finding(found))) } }
}

/// A table; on a phone, cells that do not fit are placed below each other.
pub(crate) fn table(view: &View<'_>, content: &Table) -> Markup {
    let links = |row: usize| {
        html! { @if let Some(cells) = content.cells.get(row) { " " (cells::links(view, cells)) } }
    };
    html! {
        @if !content.rows.is_empty() { (scrolled(view.language, &html! {
            (columns(content, links))
            @if content.left_out > 0 { p.hint { (sentence::left_out(view, content.left_out)) } }
        })) }
    }
}

/// Content that may be wider than the page, with keyboard scrolling.
pub(crate) fn scrolled(language: Language, content: &Markup) -> Markup {
    let label = language.choose(["Table", "표", "表格"]);
    html! { div.scroll tabindex="0" role="group" aria-label=(label) { (content) } }
}

/// A chart before the table with its numbers: one image to a screen reader.
pub(crate) fn figure(drawing: &Drawing) -> Markup {
    html! {
        div.chart { figure role="img" aria-labelledby=(drawing.id) {
            figcaption id=(drawing.id) { (drawing.title) }
            (drawing.image)
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_theme_has_its_colours_whatever_the_reader_prefers() {
        assert_eq!(STYLE.matches(IF_DARK).count(), 1);
        let body = Markup::default();
        let page = |theme| themed_document(Language::English, theme, "", &body);
        assert!(page(None).contains(IF_DARK) && page(None).contains("content=\"light dark\""));
        for (theme, condition) in [(Theme::Light, "@media not all{"), (Theme::Dark, "@media all{")] {
            let page = page(Some(theme));
            assert!(page.contains(condition) && !page.contains(IF_DARK), "{theme:?}");
            assert!(page.contains(&format!("name=\"color-scheme\" content=\"{}\"", theme.key())));
            assert_eq!(Theme::named(theme.key()), Some(theme));
        }
        assert_eq!(Theme::named("blue"), None);
    }

    #[test]
    fn an_image_alone_has_the_rules_of_its_marks_and_not_those_of_pages() {
        let style = drawing_style(Language::Korean, Some(Theme::Dark));
        for rule in
            [":root{", "@media all{", "svg text{font-size", ".whisker{", ".a7{", ".paper{", "Malgun Gothic"]
        {
            assert!(style.contains(rule), "{rule} in {style}");
        }
        assert!(
            !style.contains("body{") && !style.contains(".runs") && !style.contains("@media print"),
            "{style}"
        );
        assert_eq!(style.matches('{').count(), style.matches('}').count());
    }
}
