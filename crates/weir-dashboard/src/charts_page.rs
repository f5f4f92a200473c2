//! Every chart of a study, framed, each with the HTML element that frames it in other pages and with its image. Pure text
//! out.

use maud::{Markup, html};
use weir_report::{ChartPage, Theme, document};

use crate::{
    folder::Found,
    pages::{above, shown},
    query::encoded,
    reader::{Reader, address},
    words,
};

/// The page. `origin` is how the reader reached the dashboard.
pub(crate) fn charts(
    reader: &Reader,
    (origin, theme): (&str, Option<Theme>),
    study: Option<&Found>,
) -> String {
    let name = study.map(|found| encoded(found.name.as_encoded_bytes()));
    let of_study: Vec<(&str, &str)> = name.iter().map(|name| ("study", name.as_str())).collect();
    let query: Vec<(&str, &str)> =
        of_study.iter().copied().chain(theme.map(|theme| ("theme", theme.key()))).collect();
    let body = html! {
        (above(reader, ("/charts", &query), study))
        main {
            h1 {
                (reader.say(words::CHARTS))
                @if let Some(found) = study { " · " bdi { (shown(found)) } }
            }
            p.help { (reader.say(words::CHARTS_HELP)) }
            (themes(reader, theme, &of_study))
            div.embed { @for page in ChartPage::ALL { (embedded(reader, page, (origin, &query))) } }
        }
        script src="/copy.js" {}
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

/// A chart in its frame, the element for other pages, and a link to the image.
fn embedded(reader: &Reader, page: ChartPage, (origin, query): (&str, &[(&str, &str)])) -> Markup {
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
            iframe src=(href) title=(title) height=(height) loading="lazy" {}
            pre tabindex="0" { code id=(code) { (element) } }
            p.facts {
                button.copy type="button" hidden data-copies=(code) data-done=(reader.say(words::COPIED)) {
                    (reader.say(words::COPY))
                }
                a href=(reader.href(&format!("{path}.svg"), query)) download=(format!("{}.svg", page.path())) { "SVG" }
            }
        }
    }
}
