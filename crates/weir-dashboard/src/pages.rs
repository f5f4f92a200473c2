//! The dashboard's own pages beside the list: the running study, the heads of reports, and messages about missing
//! things. Pure text out; `weir-report` draws reports and charts.

use maud::{Markup, html};
use weir_report::{Language, document, localized, plain_name};

use crate::{
    folder::Found,
    forms::{self, Stopping},
    query::encoded,
    reader::{Reader, address},
    running_study::Scene,
    words,
};

/// Where the script that saves charts is.
pub(crate) const PICTURE_SCRIPT_PATH: &str = "/picture.js";

/// Where a study's report is.
pub(crate) fn study_href(reader: &Reader, found: &Found) -> String {
    reader.href(&format!("/study/{}", encoded(found.name.as_encoded_bytes())), &[])
}

/// Most columns of a folder's name.
const FOLDER_COLUMNS_MAX: usize = 80;

/// The name of a study's folder, which may not move the text beside it.
pub(crate) fn shown(found: &Found) -> String {
    plain_name(&found.name.to_string_lossy(), FOLDER_COLUMNS_MAX)
}

/// The head of every page: links to other pages, and to the same page in the other languages. `here` is the page's own
/// path and query without the language.
pub(crate) fn above(
    reader: &Reader,
    (path, query): (&str, &[(&str, &str)]),
    study: Option<&Found>,
) -> Markup {
    let charts =
        |found: &Found| reader.href("/charts", &[("study", &encoded(found.name.as_encoded_bytes()))]);
    let export =
        |found: &Found, file: &str| format!("/study/{}/{file}", encoded(found.name.as_encoded_bytes()));
    html! {
        nav.site {
            b { "Weir" }
            a href=(reader.href("/", &[])) { (reader.say(words::STUDIES)) }
            a href=(reader.href("/history", &[])) { (reader.say(words::HISTORY)) }
            a href=(reader.href("/compare", &[])) { (reader.say(words::COMPARE)) }
            a href=(reader.href("/live", &[])) { (reader.say(words::LIVE)) }
            @if let Some(found) = study {
                a href=(study_href(reader, found)) { (reader.say(words::REPORT)) }
                a href=(charts(found)) { (reader.say(words::CHARTS)) }
                a href=(export(found, "figures.csv")) download { "CSV" }
                a href=(export(found, "study.json")) download { "JSON" }
            } @else {
                a href=(reader.href("/charts", &[])) { (reader.say(words::CHARTS)) }
            }
            @if reader.has_servers { a href=(reader.href("/top", &[])) { (reader.say(words::SERVERS)) } }
            @if reader.has_observations { a href=(reader.href("/observe", &[])) { (reader.say(words::OBSERVATIONS)) } }
            span.languages role="group" aria-label=(reader.say(words::LANGUAGES)) {
                @for (language, name) in Language::ALL.into_iter().zip(["English", "한국어", "中文"]) {
                    @let href = address(path, query.iter().copied().chain([("lang", language.code())]));
                    a href=(href) lang=(language.tag()) hreflang=(language.tag())
                        aria-current=[(language == reader.language).then_some("true")] { (name) }
                }
            }
        }
    }
}

/// The head of two studies side by side: links to each of them, to the same comparison the other way round, and to the
/// record.
pub(crate) fn above_pair(reader: &Reader, [one, other]: [&Found; 2]) -> Markup {
    let names = [one, other].map(|found| encoded(found.name.as_encoded_bytes()));
    let query = |a: usize, b: usize| [("a", names[a].as_str()), ("b", names[b].as_str())];
    let [own, swapped] = [query(0, 1), query(1, 0)];
    html! {
        (above(reader, ("/compare", &own), None))
        nav.site aria-label=(reader.say(words::COMPARE)) {
            @for (mark, found) in [("A", one), ("B", other)] {
                span { (mark) " " a href=(study_href(reader, found)) { bdi { (shown(found)) } } }
            }
            a href=(reader.href("/compare", &swapped)) { "A ⇄ B" }
            a href=(address("/compare.json", own.into_iter())) download { "JSON" }
        }
    }
}

/// What a page has for the script that keeps it current: a way to stop it, and its message.
pub(crate) fn following(reader: &Reader) -> Markup {
    html! {
        p.facts {
            span { button.copy #pause type="button" aria-pressed="false" hidden { (reader.say(words::PAUSE)) } }
            span.hint #lost role="status" hidden { (reader.say(words::NO_FIGURES)) }
        }
    }
}

/// The running study. The dashboard's own script replaces the scene by each event, and shows when no more events come.
pub(crate) fn live(reader: &Reader, of: &Scene, stopping: &Stopping) -> String {
    let events = address("/live/events", [("lang", reader.language.code())].into_iter());
    let body = html! {
        (above(reader, ("/live", &[]), None))
        main {
            p.hint #lost role="status" hidden { (reader.say(words::NOT_FOLLOWING)) }
            p.unseen #said role="status" {}
            div #live data-events=(events) { (of.drawn(reader.language)) }
            section.acts #stop { @match stopping {
                Stopping::No => {},
                Stopping::LoggedOut => p.hint { a href=(reader.href("/", &[])) { (reader.say(words::LOG_IN_TO_STOP)) } },
                Stopping::Of { started, is_ending } => (forms::stop(reader, started, *is_ending)),
            } }
        }
        script src="/live.js" {}
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::LIVE)), &body)
}

/// No name contains the search text.
fn not_found(language: Language, typed: &str) -> String {
    localized!(
        language,
        "No study has this in its name: {typed}",
        "이름에 다음이 들어 있는 실험이 없습니다: {typed}",
        "没有名称包含以下内容的实验：{typed}"
    )
}

/// A page for a typed name that fits no study, or more than one; with links to the matches.
pub(crate) fn not_meant(reader: &Reader, typed: &str, alike: usize) -> String {
    let text = match alike {
        0 => not_found(reader.language, typed),
        _ => localized!(
            reader.language,
            "{alike} studies have this in their names; write more of it: {typed}",
            "이름에 다음이 들어 있는 실험이 {alike}개 있습니다. 이름을 더 입력하십시오: {typed}",
            "有 {alike} 个实验的名称包含以下内容，请输入更完整的名称：{typed}"
        ),
    };
    let find = encoded(typed.as_bytes());
    let query: &[(&str, &str)] = if alike > 0 { &[("find", &find)] } else { &[] };
    let body = html! {
        (above(reader, ("/", query), None))
        main {
            section.card.doubt { h1 { (text) } }
            p.facts { a href=(reader.href("/", query)) { (reader.say(words::STUDIES)) } }
        }
    };
    document(reader.language, "Weir", &body)
}

/// A page that asks for the token again, with the error about the last one.
pub(crate) fn log_in_again(reader: &Reader, wrong: &str) -> String {
    let body = html! {
        (above(reader, ("/", &[]), None))
        main {
            section.acts #control {
                h1 { (reader.say(words::CONTROL)) }
                (forms::log_in(reader, Some(wrong)))
            }
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::LOG_IN)), &body)
}

/// A page with one message, and a link back to the list.
pub(crate) fn message(reader: &Reader, text: &str) -> String {
    let body = html! {
        (above(reader, ("/", &[]), None))
        main { section.card.doubt { h1 { (text) } } }
    };
    document(reader.language, "Weir", &body)
}
