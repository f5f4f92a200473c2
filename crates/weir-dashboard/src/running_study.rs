//! The state of the running study, and how a page shows it.

use std::ffi::{OsStr, OsString};

use maud::{Markup, html};
use weir_judge::running::RunningEstimate;
use weir_lab::follow::Followed;
use weir_record::{finding::MessageKind, metric::Metric};
use weir_report::{Language, localized, plain_name};

use crate::{query::encoded, reader::address, study_cache::Problem, words};

/// The state of the running study.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Scene {
    /// No session works on a study of the folder.
    #[default]
    Nothing,
    /// One does.
    Running { name: OsString, followed: Box<Followed> },
    /// Its store cannot be read.
    Unreadable { name: OsString, problem: Problem },
    /// The session that was seen has ended.
    Ended { name: OsString },
}

impl Scene {
    /// In a page, or in an event for a page.
    pub(crate) fn drawn(&self, language: Language) -> Markup {
        let report = |name: &OsStr| {
            let path = format!("/study/{}", encoded(name.as_encoded_bytes()));
            let href = address(&path, [("lang", language.code())].into_iter());
            html! { a href=(href) { bdi { (shown(name)) } } }
        };
        match self {
            // The list has the command that begins one, with the folder in use.
            Self::Nothing => html! { h1 { (language.choose(words::NOTHING_RUNS)) } },
            Self::Running { name, followed } => html! {
                p.study { (report(name)) }
                h1 { (localized(&followed.plan.spec.title, language)) }
                (running(language, followed))
            },
            Self::Unreadable { name, problem } => html! {
                p.study { bdi { (shown(name)) } }
                h1 { (problem.localized(language)) }
            },
            Self::Ended { name } => html! { h1 { (language.choose(words::HAS_ENDED)) " " (report(name)) } },
        }
    }
}

/// Most columns of a folder's name.
const FOLDER_COLUMNS_MAX: usize = 80;

fn shown(name: &OsStr) -> String {
    plain_name(&name.to_string_lossy(), FOLDER_COLUMNS_MAX)
}

fn running(language: Language, of: &Followed) -> Markup {
    let (done, blocks, repeat) = (of.progress.blocks_done, of.progress.blocks, of.progress.blocks_to_repeat);
    let progress = localized!(
        language,
        "{done} of {blocks} blocks are done",
        "블록 {blocks}개 중 {done}개 완료",
        "{blocks} 个区组中已完成 {done} 个"
    );
    let again = localized!(
        language,
        "{repeat} may be run again",
        "{repeat}개는 다시 실행할 수 있음",
        "{repeat} 个可重新运行"
    );
    let length = language.duration(whole_units(of.left_ns));
    let left = localized!(language, "about {length} left", "약 {length} 남음", "约剩 {length}");
    html! {
        p { progress max=(blocks) value=(done) aria-label=(progress) {} }
        p.facts {
            span { (progress) }
            @if repeat > 0 { span { (again) } }
            span { (language.duration(of.elapsed_ns)) }
            @if of.left_ns > 0 { span { (left) } }
            @if !of.last_cell.is_empty() { span { (weir_report::cell_label(&of.plan, &of.last_cell, language)) } }
        }
        @if of.is_in_part { p.hint { (language.choose(words::IN_PART)) } }
        @match &of.estimate {
            Some(estimate) => section.card.doubt {
                h1 { (estimated(language, of.kind, estimate)) }
                p.sensitivity { (language.choose(words::PROVISIONAL)) }
            },
            None => p.hint { (language.choose(words::NO_ESTIMATE)) },
        }
        (weir_report::running_track(&of.plan, &of.track, language))
        (weir_report::running_cells(&of.plan, &of.cells, language))
    }
}

/// An estimate has the precision that it deserves: whole minutes from two minutes on, whole tens of seconds below.
fn whole_units(length_ns: u64) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let unit_ns = if length_ns >= 120 * SECOND_NS { 60 * SECOND_NS } else { 10 * SECOND_NS };
    length_ns.div_ceil(unit_ns) * unit_ns
}

/// `server CPU per message, uring / epoll: 0.81 [0.79, 0.83], of 12 rounds or blocks`.
fn estimated(language: Language, kind: MessageKind, of: &RunningEstimate) -> String {
    let RunningEstimate { arm, baseline, ratio, interval: (low, high), units, is_far } = of;
    let what = weir_report::metric(Metric::ServerCpuPerMessage, kind, language);
    let state = match is_far {
        None => "",
        Some(true) => language.choose([", far state", ", 코어 간 지연 긺(far)", "，核间延迟长（far）"]),
        Some(false) => language.choose([", near state", ", 코어 간 지연 짧음(near)", "，核间延迟短（near）"]),
    };
    let figure = format!("{ratio:.2} [{low:.2}, {high:.2}]");
    localized!(
        language,
        "{what}, {arm} / {baseline}: {figure}, of {units} rounds or blocks{state}",
        "{what}, {arm} / {baseline}: {figure}, 라운드·블록 {units}개{state}",
        "{what}，{arm} / {baseline}：{figure}，{units} 个轮次或区组{state}"
    )
}
