//! The list of studies as a table: date, study, effect, verdict, machine and duration. On a narrow page each study is a
//! record. Pure text out.

use std::collections::BTreeSet;

use maud::{Markup, html};
use weir_report::{document, localized, minute, shell_word};

use crate::{
    choice::{Choice, Entry, Sort, State},
    compare_page,
    folder::Found,
    forms::{self, Panel},
    pages::{above, shown, study_href},
    query::encoded,
    reader::Reader,
    sorting,
    study_cache::{Card, Conclusion},
    words::{self, LocalizedText},
};

/// Studies on one page of the list.
pub(crate) const PAGE_STUDIES: usize = 100;

/// Most machines, and most arms, that the list offers to choose from.
const OFFERS_MAX: usize = 100;

/// The columns of the table, each with what it is sorted by.
const COLUMNS: [(LocalizedText, Sort); 6] = [
    (words::DATE, Sort::Date),
    (words::STUDY, Sort::Name),
    (words::EFFECT, Sort::Effect),
    (words::VERDICT, Sort::Verdict),
    (words::MACHINE, Sort::Machine),
    (words::DURATION, Sort::Duration),
];

/// The content of a page of the list.
pub(crate) struct List<'l> {
    /// The studies on it.
    pub entries: Vec<Entry<'l>>,
    pub choice: &'l Choice,
    pub offers: Offers,
    /// The newest studies, whatever the choice.
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

/// What the list can be narrowed to.
#[derive(Default)]
pub(crate) struct Offers {
    machines: BTreeSet<String>,
    arms: BTreeSet<String>,
}

impl Offers {
    /// The machines and the arms of these studies.
    pub(crate) fn of(entries: &[Entry<'_>]) -> Self {
        let mut offers = Self::default();
        for card in entries.iter().filter_map(Entry::card) {
            offer(&mut offers.machines, &card.machine);
            card.arms.iter().for_each(|arm| offer(&mut offers.arms, arm));
        }
        offers
    }
}

fn offer(offers: &mut BTreeSet<String>, name: &str) {
    if !name.is_empty() && (offers.len() < OFFERS_MAX || offers.contains(name)) {
        offers.insert(name.to_owned());
    }
}

impl List<'_> {
    /// Every study of the folder is on this page.
    fn is_whole(&self) -> bool {
        !self.choice.is_narrow() && self.older == 0 && self.entries.len() == self.listed
    }

    /// Whether the page has several runs of a study that can be pooled.
    fn has_runs(&self, study: &str) -> bool {
        let is_run = |entry: &&Entry<'_>| {
            let is_judged = entry.judgement.as_ref().is_some_and(|it| it.is_judged);
            is_judged && entry.card().is_some_and(|card| card.name == study)
        };
        self.entries.iter().filter(is_run).count() > 1
    }

    /// The query of a choice on the page that begins after this many listed studies.
    fn query(choice: &Choice, from: usize) -> Vec<(&'static str, String)> {
        let from = (from > 0).then(|| ("from", from.to_string()));
        choice.query().into_iter().chain(from).collect()
    }
}

fn href(reader: &Reader, choice: &Choice, from: usize) -> String {
    let query = List::query(choice, from);
    reader.href("/", &query.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
}

/// The list of studies.
pub(crate) fn list(reader: &Reader, list: &List<'_>) -> String {
    let own = List::query(list.choice, list.from);
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let page = |from: usize| href(reader, list.choice, from);
    let after = list.from + list.entries.len();
    let body = html! {
        (above(reader, ("/", &own), None))
        main {
            h1 { (reader.say(words::STUDIES)) }
            @if let Some(panel) = &list.panel { (forms::panel(reader, panel)) }
            @if list.newest.is_empty() {
                p { (reader.say(words::NO_STUDIES)) }
                pre.command tabindex="0" { code { (first_command(reader)) } }
            } @else {
                @if list.newest.len() > 1 || list.choice.is_narrow() { (narrow(reader, list)) }
                @if list.listed == 0 { p { (nothing_matches(reader, &list.choice.find)) } }
            }
            @if !list.entries.is_empty() { (table(reader, list)) }
            @if list.from > 0 || after < list.listed { p.facts {
                @if list.from > 0 {
                    a href=(page(list.from.saturating_sub(PAGE_STUDIES))) { (reader.say(words::NEWER_PAGE)) }
                }
                @if after < list.listed { a href=(page(after)) { (reader.say(words::OLDER_PAGE)) } }
            } }
            @if let Some(text) = left_out(reader, list) { p.hint { (text) } }
            (compare_page::form(reader, &list.entries, list.is_whole(), list.newest))
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::STUDIES)), &body)
}

/// The folder in which `weir study` makes its own.
const USUAL_FOLDER: &str = "weir-results";

/// The command that fills an empty folder.
fn first_command(reader: &Reader) -> String {
    let own = reader.results.as_ref().filter(|folder| folder.as_os_str() != USUAL_FOLDER);
    let out = own.map(|folder| format!(" --out {}", shell_word(&folder.join("quick").to_string_lossy())));
    format!("weir study quick{}", out.unwrap_or_default())
}

/// The form that narrows the list.
fn narrow(reader: &Reader, list: &List<'_>) -> Markup {
    let choice = list.choice;
    let states = words::STATES.iter().map(|(key, word)| (*key, reader.say(*word)));
    let named = |names: &BTreeSet<String>| -> Vec<(String, String)> {
        names.iter().map(|name| (name.clone(), name.clone())).collect()
    };
    let states: Vec<(String, String)> = states.map(|(key, word)| (key.to_owned(), word.to_owned())).collect();
    let fields = [
        (words::VERDICT, "verdict", &choice.verdict, states),
        (words::MACHINE, "machine", &choice.machine, named(&list.offers.machines)),
        (words::ARM, "arm", &choice.arm, named(&list.offers.arms)),
    ];
    html! {
        section.acts {
            form action="/" role="search" {
                label { (reader.say(words::FIND_TEXT)) input type="search" name="find" value=(choice.find); }
                @for (title, name, chosen, values) in &fields {
                    @if !values.is_empty() {
                        label { (reader.say(*title)) select name=(name) {
                            option value="" { (reader.say(words::ANY)) }
                            @for (value, shown) in values {
                                option value=(value) selected[value == *chosen] { (shown) }
                            }
                        } }
                    }
                }
                @let sort = choice.sort_value();
                @if !sort.is_empty() { input type="hidden" name="sort" value=(sort); }
                (forms::language(reader))
                button { (reader.say(words::FIND)) }
            }
            @if choice.is_narrow() {
                p.hint { a href=(reader.href("/", &[])) { (reader.say(words::ALL_STUDIES)) } }
            }
        }
    }
}

fn nothing_matches(reader: &Reader, find: &str) -> String {
    if find.is_empty() {
        return reader.say(words::NOTHING_CHOSEN).to_owned();
    }
    localized!(
        reader.language,
        "No study matches: {find}",
        "다음에 맞는 실험이 없습니다: {find}",
        "没有符合以下内容的实验：{find}"
    )
}

fn left_out(reader: &Reader, list: &List<'_>) -> Option<String> {
    let (listed, older) = (list.listed, list.older);
    let cut = [
        " There are more folders than were looked at: move old ones elsewhere.",
        " 살펴보지 않은 폴더가 더 있습니다. 오래된 폴더는 다른 곳으로 옮기십시오.",
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

/// The table. The style sheet shows the titles beside the cells where there is no room for its header.
fn table(reader: &Reader, list: &List<'_>) -> Markup {
    let titles: Vec<String> = COLUMNS
        .iter()
        .enumerate()
        .map(|(place, (title, _))| format!("--h{}:'{}'", place + 1, reader.say(*title)))
        .collect();
    html! {
        div.scroll tabindex="0" role="group" aria-label=(reader.say(words::STUDIES)) {
            table.columns.runs style=(titles.join(";")) {
                thead { tr { @for (title, sort) in COLUMNS { (head(reader, list.choice, title, sort)) } } }
                tbody { @for entry in &list.entries { (row(reader, entry, list)) } }
            }
        }
    }
}

/// The title of a column, which sorts the list by it.
fn head(reader: &Reader, choice: &Choice, title: LocalizedText, sort: Sort) -> Markup {
    let own = (choice.sort == sort).then(|| choice.direction(sort));
    sorting::head(reader.say(title), &href(reader, &choice.sorted(sort), 0), own)
}

/// A study.
fn row(reader: &Reader, entry: &Entry<'_>, list: &List<'_>) -> Markup {
    let folder = shown(entry.found);
    let card = match &*entry.row {
        Ok(card) => card,
        Err(problem) => {
            return html! {
                tr.plain {
                    td { span { "–" } }
                    td { div {
                        span.name { bdi { (folder) } }
                        p { (problem.localized(reader.language)) }
                    } }
                    td { span { "–" } }
                    td { span.badge { (reader.say(words::UNREADABLE)) } }
                    td { span { "–" } }
                    td { span { "–" } }
                }
            };
        }
    };
    let state = entry.state();
    let judged = entry.judgement.as_ref().and_then(|it| it.conclusion.as_ref());
    let conclusion = judged.filter(|_| matches!(state, State::Judged(_)));
    let made = card.created_unix_s.map_or_else(|| "–".to_owned(), minute);
    let (day, time) = made.split_once(' ').unwrap_or((made.as_str(), ""));
    html! {
        tr.(conclusion.map_or("plain", |it| it.class)) {
            td { span { span.whole { (day) } " " span.whole { (time) } } }
            td { div {
                a.name href=(study_href(reader, entry.found)) { bdi { (folder) } }
                p { (card.title(reader.language)) }
                (links(reader, entry.found, card, list))
            } }
            td { (effect(reader, card, conclusion, state)) }
            td { (badge(reader, conclusion, state)) }
            td { span {
                @if card.machine.is_empty() { "–" } @else { bdi { (card.machine) } }
                @if !card.kernel.is_empty() { br; small { bdi { (card.kernel) } } }
            } }
            td { span.whole { (reader.language.duration(card.elapsed_ns)) } }
        }
    }
}

/// The name of the study, and where its charts and its other runs are.
fn links(reader: &Reader, found: &Found, card: &Card, list: &List<'_>) -> Markup {
    html! {
        p.facts {
            bdi { (card.shown_name()) }
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

/// The primary comparison; without one the reason or the progress.
fn effect(reader: &Reader, card: &Card, conclusion: Option<&Conclusion>, state: State) -> Markup {
    if let Some(conclusion) = conclusion {
        return match &conclusion.listed {
            Some(listed) => html! {
                div {
                    span.plot aria-hidden="true" { (listed.plot) }
                    span.whole { (listed.figure) }
                    " " small { bdi { (listed.compared) } }
                }
            },
            None => html! { p { small { (conclusion.localized(reader.language).1) } } },
        };
    }
    let (stored, blocks) = (card.blocks_stored, card.blocks);
    let progress = localized!(
        reader.language,
        "{stored} of {blocks} blocks stored",
        "블록 {blocks}개 중 {stored}개 저장됨",
        "已存储 {stored} / {blocks} 个区组"
    );
    html! { span { @if state == State::JudgedElsewhere { "–" } @else { (progress) } } }
}

/// The word of the verdict, or the state without one.
fn badge(reader: &Reader, conclusion: Option<&Conclusion>, state: State) -> Markup {
    if let Some(conclusion) = conclusion {
        return html! { span.badge { (conclusion.localized(reader.language).0) } };
    }
    let word = reader.say(match state {
        State::Running => words::RUNNING,
        State::Unreadable => words::UNREADABLE,
        State::JudgedElsewhere => words::JUDGED_ELSEWHERE,
        State::NotJudged => words::NOT_JUDGED,
        State::Unfinished | State::Judged(_) => words::UNFINISHED,
    });
    html! {
        @if state == State::Running { a.badge href=(reader.href("/live", &[])) { (word) } }
        @else { span.badge { (word) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_names_are_offered_as_is_stated_each_once() {
        let mut offers = BTreeSet::new();
        (0..OFFERS_MAX + 5).for_each(|number| offer(&mut offers, &number.to_string()));
        ["0", "0", ""].iter().for_each(|name| offer(&mut offers, name));
        assert_eq!(offers.len(), OFFERS_MAX);
    }
}
