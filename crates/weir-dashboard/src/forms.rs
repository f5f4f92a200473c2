//! Actions on the list of studies: choosing two to compare, and, for readers with the token,
//! starting and stopping one. Pure text out.

use std::ffi::{OsStr, OsString};

use maud::{Markup, html};
use weir_lab::outline::shown_ns;
use weir_report::{Language, Theme, localized, plain_name};

use crate::{
    folder::Found,
    offered::Offered,
    query::encoded,
    reader::Reader,
    runner::{Ending, Started},
    words,
};

/// Most columns of a study's name in a choice.
const NAME_COLUMNS_MAX: usize = 80;

/// What a browser may do.
pub(crate) enum Panel {
    /// Give the token.
    LoggedOut,
    /// Start one of these studies.
    Ready { offered: Vec<Offered>, last: Option<Last> },
    /// Stop the one that runs, unless it is ending.
    Running { of: Started, is_ending: bool },
    /// Nothing: a session that was not started here works in the folder.
    Occupied { folder: OsString },
}

/// Whether the reader may stop the running study.
pub(crate) enum Stopping {
    /// It was not started here, or nobody may.
    No,
    /// After a login.
    LoggedOut,
    /// This one, unless it is ending.
    Of { started: Started, is_ending: bool },
}

/// The study that ran last.
pub(crate) struct Last {
    pub of: Started,
    pub how: Ending,
    /// Its last output on standard error.
    pub said: String,
    /// There is a study in its folder.
    pub is_stored: bool,
}

/// A form that asks for a process by its number.
pub(crate) fn observe(reader: &Reader, path: &str) -> Markup {
    html! {
        section.acts { form action=(path) {
            label { (reader.say(words::PROCESS))
                input type="text" name="pid" inputmode="numeric" pattern="[0-9]+" required autocomplete="off";
            }
            (language(reader))
            button { (reader.say(words::OBSERVE)) }
        } }
    }
}

/// A form that chooses two of the studies of these names, with the places of the two that it proposes, and a hint.
pub(crate) fn choose_two(
    reader: &Reader,
    names: &[&str],
    (earlier, later): (usize, usize),
    hint: Option<words::LocalizedText>,
) -> Markup {
    let choice = |field: &str, chosen: usize| {
        html! {
            select name=(field) {
                @for (index, name) in names.iter().enumerate() {
                    option value=(name) selected[index == chosen] { (plain_name(name, NAME_COLUMNS_MAX)) }
                }
            }
        }
    };
    html! { @if names.len() > 1 { (two(reader, [choice("a", earlier), choice("b", later)], hint)) } }
}

/// A form in which the reader types two names, where there are too many studies for a list of choices. It suggests
/// names, and fills in the two that it proposes.
pub(crate) fn name_two(reader: &Reader, suggested: &[Found], proposed: Option<[&str; 2]>) -> Markup {
    let field = |name: &str, proposed: Option<&str>| {
        html! { input name=(name) list="names" required autocomplete="off" value=[proposed]; }
    };
    let fields = [field("a", proposed.map(|it| it[0])), field("b", proposed.map(|it| it[1]))];
    html! { @if suggested.len() > 1 {
        (two(reader, fields, Some(words::COMPARE_HELP)))
        datalist #names {
            @for name in suggested.iter().filter_map(|study| study.name.to_str()) { option value=(name) {} }
        }
    } }
}

fn two(reader: &Reader, [earlier, later]: [Markup; 2], help: Option<words::LocalizedText>) -> Markup {
    html! {
        section.acts {
            h2 { (reader.say(words::COMPARE_TITLE)) }
            form action="/compare" {
                label { (reader.say(words::EARLIER)) (earlier) }
                label { (reader.say(words::LATER)) (later) }
                (language(reader))
                button { (reader.say(words::COMPARE)) }
            }
            @if let Some(help) = help { p.hint { (reader.say(help)) } }
        }
    }
}

/// A form that chooses the study of the charts: names with what is shown of them, and the newest study `tps` for none.
pub(crate) fn choose_charted(
    reader: &Reader,
    offered: &[(String, String)],
    chosen: Option<&str>,
    theme: Option<Theme>,
) -> Markup {
    html! {
        section.acts { form action="/charts" {
            label { (reader.say(words::STUDY)) select name="study" {
                option value="" { (reader.say(words::NEWEST_TPS)) }
                @for (name, shown) in offered {
                    option value=(name) selected[chosen == Some(name)] { (shown) }
                }
            } }
            @if let Some(theme) = theme { input type="hidden" name="theme" value=(theme.key()); }
            (language(reader))
            button { (reader.say(words::SHOW)) }
        } }
    }
}

/// The hidden field that keeps the chosen language on the next page.
pub(crate) fn language(reader: &Reader) -> Markup {
    html! {
        @if reader.has_chosen { input type="hidden" name="lang" value=(reader.language.code()); }
    }
}

/// A form for the token. An error about the last one stands beside the field.
pub(crate) fn log_in(reader: &Reader, wrong: Option<&str>) -> Markup {
    html! {
        form method="post" action=(reader.href("/login", &[])) {
            label { (reader.say(words::TOKEN))
                input type="password" name="token" required autocomplete="current-password"
                    aria-invalid=[wrong.map(|_| "true")] aria-describedby=[wrong.map(|_| "wrong-token")];
            }
            button { (reader.say(words::LOG_IN)) }
        }
        @if let Some(wrong) = wrong { p.hint #wrong-token role="alert" { (wrong) } }
    }
}

/// The actions on the list of a dashboard that can act.
pub(crate) fn panel(reader: &Reader, panel: &Panel) -> Markup {
    let form = |action: &str, content: Markup| {
        html! { form method="post" action=(reader.href(action, &[])) { (content) } }
    };
    let button = |text: words::LocalizedText| html! { button { (reader.say(text)) } };
    html! {
        section.acts #control {
            h2 { (reader.say(words::CONTROL)) }
            @match panel {
                Panel::LoggedOut => (log_in(reader, None)),
                Panel::Ready { offered, last } => {
                    @if let Some(last) = last { (ended(reader, last)) }
                    (form("/start", html! {
                        label { (reader.say(words::STUDY)) select name="study" {
                            @for study in offered {
                                option value=(study.name) { (offer(reader.language, study)) }
                            }
                        } }
                        (button(words::START))
                    }))
                    p.hint { (reader.say(words::START_HELP)) }
                    (questions(reader, offered))
                },
                Panel::Running { of, is_ending } => {
                    p {
                        (runs(reader.language, &of.name)) " "
                        a href=(reader.href("/live", &[])) { (reader.say(words::LIVE)) }
                    }
                    (stop(reader, of, *is_ending))
                },
                Panel::Occupied { folder } => p { (occupied(reader.language, folder)) },
            }
            @if !matches!(panel, Panel::LoggedOut) { (form("/logout", button(words::LOG_OUT))) }
        }
    }
}

/// Stops the study that runs, unless it is ending.
pub(crate) fn stop(reader: &Reader, of: &Started, is_ending: bool) -> Markup {
    html! {
        @if is_ending { p { (reader.say(words::IS_ENDING)) } }
        @else { form method="post" action=(reader.href("/stop", &[])) { button { (reader.say(words::STOP)) } } }
        p.hint { (stop_help(reader, of)) }
    }
}

/// A study to choose, with its length.
fn offer(language: Language, study: &Offered) -> String {
    let name = study.shown();
    let Some(takes_ns) = study.takes_ns else { return name };
    let takes = shown_ns(takes_ns, language);
    localized!(language, "{name}, about {takes}", "{name}, 약 {takes}", "{name}，约 {takes}")
}

/// The questions of the studies, where they are known. A plan asks the question of its study.
fn questions(reader: &Reader, offered: &[Offered]) -> Markup {
    let known = offered.iter().filter(|study| study.levels.is_none());
    html! {
        details {
            summary { (reader.say(words::QUESTIONS)) }
            dl { @for (study, title) in known.filter_map(|study| Some((study, study.title.as_ref()?))) {
                dt { (study.name) }
                dd { (localized(title, reader.language)) }
            } }
        }
    }
}

fn runs(language: Language, name: &str) -> String {
    localized!(language, "{name} runs.", "{name} 실행 중입니다.", "{name} 正在运行。")
}

fn stop_help(reader: &Reader, of: &Started) -> String {
    let command = reader.resume(&of.folder);
    localized!(
        reader.language,
        "It gives up the block that runs. Those that are done stay, and this goes on with them: {command}",
        "진행 중인 블록은 버립니다. 끝난 블록은 남으며 다음 명령으로 이어서 실행할 수 있습니다: {command}",
        "会放弃正在进行的区组。已完成的会保留，可用以下命令继续：{command}"
    )
}

fn stopped(reader: &Reader, of: &Started) -> String {
    let command = reader.resume(&of.folder);
    localized!(
        reader.language,
        "it was stopped; this goes on with it: {command}",
        "중지되었습니다. 이어서 실행하려면: {command}",
        "已停止，可用以下命令继续：{command}"
    )
}

fn occupied(language: Language, folder: &OsStr) -> String {
    let folder = plain_name(&folder.to_string_lossy(), NAME_COLUMNS_MAX);
    localized!(
        language,
        "A session that was not started here works on {folder}: nothing can be started beside it.",
        "다른 곳에서 시작한 세션이 {folder} 폴더에서 실행 중이므로, 다른 실험을 시작할 수 없습니다.",
        "另一个会话（不是从这里启动的）正在处理 {folder}，因此不能再启动其他实验。"
    )
}

/// How the last study ended. If it left no results, its output.
fn ended(reader: &Reader, Last { of, how, said, is_stored }: &Last) -> Markup {
    let href = reader.href(&format!("/study/{}", encoded(of.folder.as_encoded_bytes())), &[]);
    let text = match (reader.language, how) {
        // Decided, a threshold not met, inconclusive, not comparable.
        (language, Ending::Code(0 | 10 | 11 | 12)) => language.choose(words::OVER).to_owned(),
        (language, Ending::Code(13)) if *is_stored => language.choose(words::OVER_IN_PART).to_owned(),
        (_, Ending::Code(130)) if *is_stored => stopped(reader, of),
        (language, Ending::Code(code)) => localized!(
            language,
            "It ended with exit code {code}:",
            "종료 코드 {code}로 끝났습니다:",
            "以退出码 {code} 结束："
        ),
        (language, Ending::Signal(signal)) => localized!(
            language,
            "It was ended by signal {signal}:",
            "시그널 {signal}을(를) 받아 종료되었습니다:",
            "被信号 {signal} 终止："
        ),
        (language, Ending::Unknown) => language.choose(words::ENDED_SOMEHOW).to_owned(),
    };
    html! {
        p { (of.name) ": " (text) " " @if *is_stored { a href=(href) { (of.folder.to_string_lossy()) } } }
        @if !is_stored && !said.is_empty() { pre tabindex="0" { code { (said) } } }
    }
}
