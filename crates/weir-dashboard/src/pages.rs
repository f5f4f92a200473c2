//! The dashboard's own pages: the list of studies, the running study, the charts of one, the heads of reports, and
//! messages about missing things. Pure text out; `weir-report` draws reports and charts.

use maud::{Markup, html};
use weir_report::{ChartPage, Language, document, localized};

use crate::{
    folder::Found,
    forms::{self, Panel},
    query::encoded,
    reader::{Reader, address},
    running_study::Scene,
    study_cache::{Card, Row},
    words,
};

/// Studies on one page of the list.
pub(crate) const PAGE_STUDIES: usize = 100;

/// Where a study's report is.
pub(crate) fn study_href(reader: &Reader, found: &Found) -> String {
    reader.href(&format!("/study/{}", encoded(found.name.as_encoded_bytes())), &[])
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
                span { (mark) " " a href=(study_href(reader, found)) { (found.name.to_string_lossy()) } }
            }
            a href=(reader.href("/compare", &swapped)) { "A ⇄ B" }
            a href=(address("/compare.json", own.into_iter())) download { "JSON" }
        }
    }
}

/// The content of a page of the list.
pub(crate) struct List<'l> {
    /// The studies on it, with the facts about each.
    pub studies: Vec<(&'l Found, &'l Row)>,
    /// The search text, which the names of the listed studies contain; empty without a search.
    pub find: &'l str,
    /// The newest studies, whatever the search.
    pub newest: &'l [Found],
    /// Number of listed studies on earlier pages.
    pub from: usize,
    /// Listed studies in all.
    pub listed: usize,
    /// Studies that are not listed, because there are too many newer ones.
    pub older: usize,
    /// Some folders were not looked at.
    pub is_cut: bool,
    /// The possible actions; absent where nobody can act.
    pub panel: Option<Panel>,
}

impl List<'_> {
    /// Every study of the folder is on this page.
    fn is_whole(&self) -> bool {
        self.find.is_empty() && self.older == 0 && self.studies.len() == self.listed
    }

    /// Whether the page has several runs of a study that can be pooled.
    fn has_runs(&self, study: &str) -> bool {
        let is_run =
            |(_, row): &&(&Found, &Row)| matches!(row, Ok(card) if card.name == study && card.is_judged);
        self.studies.iter().filter(is_run).count() > 1
    }

    /// The query of the page that begins after this many listed studies.
    fn query(&self, from: usize) -> Vec<(&'static str, String)> {
        let find = (!self.find.is_empty()).then(|| ("find", encoded(self.find.as_bytes())));
        let from = (from > 0).then(|| ("from", from.to_string()));
        find.into_iter().chain(from).collect()
    }
}

/// The list of studies.
pub(crate) fn list(reader: &Reader, list: &List<'_>) -> String {
    let own = list.query(list.from);
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let page = |from: usize| {
        let query = list.query(from);
        reader.href("/", &query.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
    };
    let after = list.from + list.studies.len();
    let compared = if list.is_whole() {
        let readable = list.studies.iter().filter(|(_, row)| row.is_ok());
        forms::choose_two(reader, &readable.map(|(found, _)| *found).collect::<Vec<_>>())
    } else {
        forms::name_two(reader, list.newest)
    };
    let body = html! {
        (above(reader, ("/", &own), None))
        main {
            h1 { (reader.say(words::STUDIES)) }
            @if let Some(panel) = &list.panel { (forms::panel(reader, panel)) }
            @if list.newest.is_empty() {
                p { (reader.say(words::NO_STUDIES)) }
                pre.command { code { "weir study quick" } }
            } @else if !list.is_whole() {
                (forms::find(reader, list.find))
                @if list.listed == 0 { p { (not_found(reader.language, list.find)) } }
            }
            ul.studies { @for (found, row) in &list.studies { (study(reader, found, row, list)) } }
            @if list.from > 0 || after < list.listed { p.facts {
                @if list.from > 0 {
                    a href=(page(list.from.saturating_sub(PAGE_STUDIES))) { (reader.say(words::NEWER_PAGE)) }
                }
                @if after < list.listed { a href=(page(after)) { (reader.say(words::OLDER_PAGE)) } }
            } }
            @if let Some(text) = left_out(reader, list) { p.hint { (text) } }
            (compared)
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::STUDIES)), &body)
}

fn left_out(reader: &Reader, list: &List<'_>) -> Option<String> {
    let (listed, older) = (list.listed, list.older);
    let cut = [
        " There are more folders than were looked at: move old ones elsewhere.",
        " 확인하지 않은 폴더가 더 있습니다. 오래된 폴더는 다른 곳으로 옮기십시오.",
        "还有未查看的文件夹：请把旧文件夹移到别处。",
    ];
    let text = localized!(
        reader.language,
        "The newest {listed} studies are listed; {older} older ones are not. More of a name finds them.",
        "최근 실험 {listed}개만 표시합니다. 더 이전의 {older}개는 이름을 더 입력하면 찾을 수 있습니다.",
        "仅列出最近的 {listed} 个实验。更早的 {older} 个未列出，输入更完整的名称即可找到。"
    );
    let text = if list.is_cut { text + reader.say(cut) } else { text };
    (older > 0 || list.is_cut).then_some(text)
}

/// A study of the list.
fn study(reader: &Reader, found: &Found, row: &Row, list: &List<'_>) -> Markup {
    let folder = found.name.to_string_lossy();
    let card = match row {
        Ok(card) => card,
        Err(problem) => {
            return html! {
                li {
                    span.name { (folder) } span.badge { (reader.say(words::UNREADABLE)) }
                    p { (problem.localized(reader.language)) }
                }
            };
        }
    };
    let conclusion = card.conclusion.as_ref().filter(|_| !found.is_running);
    let (word, sentence) = match conclusion {
        Some(conclusion) => conclusion.localized(reader.language),
        None if found.is_running => (reader.say(words::RUNNING), ""),
        None if card.is_judged => (reader.say(words::JUDGED_ELSEWHERE), ""),
        None if card.blocks_stored >= card.blocks => (reader.say(words::NOT_JUDGED), ""),
        None => (reader.say(words::UNFINISHED), ""),
    };
    html! {
        li .(conclusion.map_or("plain", |it| it.class)) {
            a.name href=(study_href(reader, found)) { (folder) }
            @if found.is_running { a.badge href=(reader.href("/live", &[])) { (word) } }
            @else { span.badge { (word) } }
            p { (localized(&card.title, reader.language)) }
            @if !sentence.is_empty() { p { b { (sentence) } } }
            p.facts {
                @for fact in facts(reader, card, conclusion.is_none()) { span { (fact) } }
                a href=(reader.href("/charts", &[("study", &encoded(found.name.as_encoded_bytes()))])) {
                    (reader.say(words::CHARTS))
                }
                @if list.has_runs(&card.name) {
                    a href=(reader.href("/pool", &[("study", &encoded(card.name.as_bytes()))])) {
                        (reader.say(words::ALL_RUNS))
                    }
                }
            }
        }
    }
}

/// Other facts about a study, in a few words each.
fn facts(reader: &Reader, card: &Card, is_open: bool) -> Vec<String> {
    let (stored, blocks) = (card.blocks_stored, card.blocks);
    let progress = localized!(
        reader.language,
        "{stored} of {blocks} blocks stored",
        "블록 {blocks}개 중 {stored}개 저장됨",
        "已保存 {stored} / {blocks} 个区组"
    );
    let length = reader.language.duration(card.elapsed_ns);
    let mut facts = vec![card.name.clone(), format!("{} UTC", card.created_at), length];
    facts.extend(is_open.then_some(progress));
    facts
}

/// Every chart of a study, framed, with the HTML element that frames it in other pages. `origin` is how the reader
/// reached the dashboard.
pub(crate) fn charts(reader: &Reader, origin: &str, study: Option<&Found>) -> String {
    let name = study.map(|found| encoded(found.name.as_encoded_bytes()));
    let query: Vec<(&str, &str)> = name.iter().map(|name| ("study", name.as_str())).collect();
    let body = html! {
        (above(reader, ("/charts", &query), study))
        main {
            h1 {
                (reader.say(words::CHARTS))
                @if let Some(found) = study { " · " (found.name.to_string_lossy()) }
            }
            p.help { (reader.say(words::CHARTS_HELP)) }
            div.embed { @for page in ChartPage::ALL { (embedded(reader, page, (origin, &query))) } }
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::CHARTS)), &body)
}

/// A chart in its frame, and the element for other pages.
fn embedded(reader: &Reader, page: ChartPage, (origin, query): (&str, &[(&str, &str)])) -> Markup {
    let href = reader.href(&format!("/{}", page.path()), query);
    let (title, height) = (page.title(reader.language), page.frame_height_px());
    // Readers of the other page may have another language, so the element names it.
    let language = ("lang", reader.language.code());
    let there = address(&format!("/{}", page.path()), query.iter().copied().chain([language]));
    let element = format!(
        "<iframe src=\"{origin}{}\" width=\"100%\" height=\"{height}px\" frameborder=\"0\"></iframe>",
        there.replace('&', "&amp;")
    );
    html! {
        div {
            h2 { a href=(href) { (title) } }
            iframe src=(href) title=(title) height=(height) loading="lazy" {}
            pre { code { (element) } }
        }
    }
}

/// The running study. The dashboard's own script replaces the scene by each event, and shows when no more events come.
pub(crate) fn live(reader: &Reader, of: &Scene) -> String {
    let events = address("/live/events", [("lang", reader.language.code())].into_iter());
    let body = html! {
        (above(reader, ("/live", &[]), None))
        main {
            p.hint #lost role="status" hidden { (reader.say(words::NOT_FOLLOWING)) }
            div #live data-events=(events) aria-live="polite" { (of.drawn(reader.language)) }
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
