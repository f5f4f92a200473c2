//! Every chart of a study, framed, each with the HTML element that frames it in other pages and with its image. Pure
//! text out.

use maud::{Markup, html};
use weir_report::{ChartPage, Theme, document, picture_script};

use crate::{
    choice::Entry,
    folder::Found,
    forms,
    pages::{self, above, shown},
    query::encoded,
    reader::{Reader, address},
    words,
};

/// The content of the page.
pub(crate) struct Charts<'c> {
    /// How the reader reached the dashboard.
    pub origin: &'c str,
    pub theme: Option<Theme>,
    /// The study of the charts.
    pub found: &'c Found,
    /// The reader named it. Otherwise it is the newest one, and the charts follow when there is a newer one.
    pub is_named: bool,
    /// Charts that the study has something for.
    pub drawn: &'c [ChartPage],
    /// Studies to choose from: the name, and what is shown.
    pub offered: &'c [(String, String)],
}

/// Most studies that the page offers: the newest.
pub(crate) const OFFERED_MAX: usize = 100;

/// The studies to choose from, the newest first; a form can name what is text alone.
pub(crate) fn offered(entries: &[Entry<'_>]) -> Vec<(String, String)> {
    let one = |entry: &Entry<'_>| {
        let (name, study) = (entry.found.name.to_str()?.to_owned(), entry.card()?.shown_name());
        Some((name, format!("{} · {study}", shown(entry.found))))
    };
    entries.iter().filter_map(one).take(OFFERED_MAX).collect()
}

/// The page where no study was named and there is no default one: why, and the studies to choose from.
pub(crate) fn nothing_charted(
    reader: &Reader,
    why: words::LocalizedText,
    offered: &[(String, String)],
    theme: Option<Theme>,
) -> String {
    let body = html! {
        (above(reader, ("/charts", &[]), None))
        main {
            h1 { (reader.say(words::CHARTS)) }
            p { (reader.say(why)) }
            @if !offered.is_empty() { (forms::choose_charted(reader, offered, None, theme)) }
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::CHARTS)), &body)
}

/// The page.
pub(crate) fn charts(reader: &Reader, of: &Charts<'_>) -> String {
    let study = of.is_named.then_some(of.found);
    let name = study.map(|found| encoded(found.name.as_encoded_bytes()));
    let of_study: Vec<(&str, &str)> = name.iter().map(|name| ("study", name.as_str())).collect();
    let query: Vec<(&str, &str)> =
        of_study.iter().copied().chain(of.theme.map(|theme| ("theme", theme.key()))).collect();
    let body = html! {
        (above(reader, ("/charts", &query), study))
        main {
            h1 { (reader.say(words::CHARTS)) " · " bdi { (shown(of.found)) } }
            p.help { (reader.say(words::CHARTS_HELP)) }
            (forms::choose_charted(reader, of.offered, study.and_then(|found| found.name.to_str()), of.theme))
            (themes(reader, of.theme, &of_study))
            div.embed { @for page in ChartPage::ALL { (embedded(reader, page, of, &query)) } }
        }
        script src="/copy.js" {}
        (picture_script(reader.language, pages::PICTURE_SCRIPT_PATH))
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::CHARTS)), &body)
}

/// Links to the page with charts in other colours.
fn themes(reader: &Reader, chosen: Option<Theme>, query: &[(&str, &str)]) -> Markup {
    let all = [
        (None, words::THEME_OF_READER),
        (Some(Theme::Light), words::THEME_LIGHT),
        (Some(Theme::Dark), words::THEME_DARK),
    ];
    let href = |theme: Option<Theme>| {
        let named = theme.map(|theme| ("theme", theme.key()));
        reader.href("/charts", &query.iter().copied().chain(named).collect::<Vec<_>>())
    };
    html! {
        p.facts {
            span { (reader.say(words::THEME)) }
            @for (theme, name) in all {
                a href=(href(theme)) aria-current=[(theme == chosen).then_some("true")] { (reader.say(name)) }
            }
        }
    }
}

/// A chart in its frame, the element for other pages, and a link to the image. A chart of nothing has no frame.
fn embedded(reader: &Reader, page: ChartPage, of: &Charts<'_>, query: &[(&str, &str)]) -> Markup {
    let (origin, is_drawn) = (of.origin, of.drawn.contains(&page));
    let path = format!("/{}", page.path());
    let href = reader.href(&path, query);
    let (title, height) = (page.title(reader.language), page.frame_height_px());
    // Readers of the other page may have another language, so the element names it.
    let language = ("lang", reader.language.code());
    let there = address(&path, query.iter().copied().chain([language]));
    let element = format!(
        "<iframe src=\"{origin}{}\" width=\"100%\" height=\"{height}px\" frameborder=\"0\"></iframe>",
        there.replace('&', "&amp;")
    );
    let code = format!("element-{}", page.path());
    html! {
        div {
            h2 { a href=(href) { (title) } }
            @if is_drawn { iframe src=(href) title=(title) height=(height) loading="lazy" {} }
            @else { p.hint { (reader.say(words::NOTHING_DRAWN)) } }
            pre tabindex="0" { code id=(code) { (element) } }
            p.facts {
                button.copy type="button" hidden data-copies=(code) data-done=(reader.say(words::COPIED)) {
                    (reader.say(words::COPY))
                }
                @if is_drawn {
                    a href=(reader.href(&format!("{path}.svg"), query)) download=(format!("{}.svg", page.path()))
                        data-title=(title) { "SVG" }
                }
            }
        }
    }
}
