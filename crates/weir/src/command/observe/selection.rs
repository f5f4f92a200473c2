//! Errors of `weir observe` about a selection that fits no process, or too many.

use weir_evidence::selection::{Answer, Asked, Selection, SelectionError, Wanted};
use weir_report::{Language, localized};

use crate::{args::Observe, exit::UsageError, language};

/// The processes that a flag selects.
pub(super) fn find(flag: &str, wanted: &Wanted) -> Result<Selection, UsageError> {
    Selection::find(wanted)
        .map_err(|error| UsageError(refusal(flag, wanted, &error, language::of_command_line())))
}

/// Refuses actions that need exactly one process.
pub(super) fn refuse_several(arguments: &Observe, selected: &Selection) -> Result<(), UsageError> {
    let flag = match (arguments.strace, arguments.compare) {
        (true, _) => "--strace",
        (_, Some(_)) => "--compare",
        _ => return Ok(()),
    };
    let count = selected.pids.len();
    if count <= 1 {
        return Ok(());
    }
    Err(UsageError(localized!(
        language::of_command_line(),
        "{flag}: it goes with one process, and --pid names {count}; name one",
        "{flag}: 프로세스 하나에만 쓸 수 있는데 --pid로 {count}개를 지정했습니다. 하나만 지정하십시오",
        "{flag}：只能用于一个进程，而 --pid 指定了 {count} 个；请只指定一个",
    )))
}

fn refusal(flag: &str, wanted: &Wanted, error: &SelectionError, language: Language) -> String {
    match error {
        SelectionError::Empty => localized!(
            language,
            "{flag}: it is empty; write the name of what is to be observed",
            "{flag}: 비어 있습니다. 관찰할 대상의 이름을 쓰십시오",
            "{flag}：为空；请写要观测的对象的名称",
        ),
        SelectionError::NoCgroupPath => localized!(
            language,
            "{flag}: that is no path of a control group; write it as /proc/PID/cgroup has it, such as \
             /system.slice/nginx.service or memory:/docker/web",
            "{flag}: cgroup 경로가 아닙니다. /proc/PID/cgroup에 나오는 대로 /system.slice/nginx.service나 \
             memory:/docker/web처럼 쓰십시오",
            "{flag}：不是 cgroup 路径；请按 /proc/PID/cgroup 中的形式书写，例如 /system.slice/nginx.service 或 \
             memory:/docker/web",
        ),
        SelectionError::Several(short) => {
            let (text, list) = (wanted.text(), short.join(language.list()));
            localized!(
                language,
                "{flag}: several containers begin with {text:?}: {list}; write more digits",
                "{flag}: {text:?}(으)로 시작하는 컨테이너가 여러 개입니다: {list}. 자릿수를 더 쓰십시오",
                "{flag}：以 {text:?} 开头的容器有多个：{list}；请多写几位",
            )
        }
        SelectionError::Nothing { near, asked } => {
            let (nothing, said) = (nothing(wanted, language), said(asked, language));
            let near = near_words(wanted, near, language);
            format!("{flag}{}{nothing}{said}{}{near}", language.colon(), language.semicolon())
        }
    }
}

fn nothing(wanted: &Wanted, language: Language) -> String {
    let text = wanted.text();
    match wanted {
        Wanted::Pids(_) => {
            localized!(language, "no process {text}", "{text}번 프로세스가 없습니다", "没有进程 {text}",)
        }
        Wanted::Cgroup(_) => localized!(
            language,
            "no process is in the control group {text:?} or below it",
            "cgroup {text:?}와 그 아래에 프로세스가 없습니다",
            "cgroup {text:?} 及其下没有进程",
        ),
        Wanted::Unit(_) => localized!(
            language,
            "no process is in a control group of the unit {text:?}",
            "유닛 {text:?}의 cgroup에 프로세스가 없습니다",
            "单元 {text:?} 的 cgroup 中没有进程",
        ),
        Wanted::Container(_) => localized!(
            language,
            "no process is in a control group of a container {text:?}",
            "컨테이너 {text:?}의 cgroup에 프로세스가 없습니다",
            "容器 {text:?} 的 cgroup 中没有进程",
        ),
        Wanted::Name(_) => localized!(
            language,
            "no process and no program of a process is called {text:?}",
            "이름이 {text:?}인 프로세스나 프로그램이 없습니다",
            "没有名为 {text:?} 的进程或程序",
        ),
    }
}

/// The output of docker and podman.
fn said(asked: &[Asked], language: Language) -> String {
    let one = |it: &Asked| {
        let program = it.program;
        match &it.answer {
            Answer::Known { .. } => String::new(),
            Answer::Refused(words) => format!("{program}{}{words:?}", language.colon()),
            Answer::NotInstalled => localized!(
                language,
                "{program} is not installed",
                "{program}이(가) 설치되지 않음",
                "未安装 {program}",
            ),
            Answer::Silent => localized!(
                language,
                "{program} did not answer within 5 s",
                "{program}이(가) 5초 안에 응답하지 않음",
                "{program} 在 5 秒内没有响应",
            ),
        }
    };
    let list = asked.iter().map(one).filter(|text| !text.is_empty()).collect::<Vec<_>>();
    if list.is_empty() { String::new() } else { format!(" ({})", list.join(language.semicolon())) }
}

/// The probable intention, or how to find it.
fn near_words(wanted: &Wanted, near: &[String], language: Language) -> String {
    if !near.is_empty() {
        let list = near.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(language.list());
        return localized!(language, "similar names: {list}", "비슷한 이름: {list}", "相近的名称：{list}");
    }
    let command = match wanted {
        Wanted::Pids(_) | Wanted::Name(_) => "ps -e",
        Wanted::Cgroup(_) => "cat /proc/PID/cgroup",
        Wanted::Unit(_) => "systemctl list-units",
        Wanted::Container(_) => "docker ps",
    };
    localized!(
        language,
        "there is no similar name; {command} lists what there is",
        "비슷한 이름이 없습니다. {command}(으)로 목록을 볼 수 있습니다",
        "没有相近的名称；可用 {command} 查看",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_that_means_nothing_says_what_was_looked_for_what_is_near_and_who_was_asked() {
        let wanted = Wanted::Container("shop".to_owned());
        let asked = vec![
            Asked { program: "docker", answer: Answer::Refused("no such object: shop".to_owned()) },
            Asked { program: "podman", answer: Answer::NotInstalled },
        ];
        let error = SelectionError::Nothing { near: vec!["shop-1".to_owned()], asked };
        assert_eq!(
            refusal("--container", &wanted, &error, Language::English),
            "--container: no process is in a control group of a container \"shop\" (docker: \"no such object: \
             shop\"; podman is not installed); similar names: \"shop-1\""
        );
        for language in Language::ALL {
            let text = refusal("--name", &Wanted::Name(String::new()), &SelectionError::Empty, language);
            assert!(text.starts_with("--name") && text.len() > 20, "{text}");
        }
        let alone = SelectionError::Nothing { near: Vec::new(), asked: Vec::new() };
        for wanted in [
            Wanted::Unit("nginx".to_owned()),
            Wanted::Cgroup("/a".to_owned()),
            Wanted::Name("\u{1b}[2J".to_owned()),
        ] {
            let texts = Language::ALL.map(|language| refusal("--flag", &wanted, &alone, language));
            assert!(
                texts.iter().all(|text| text.starts_with("--flag") && !text.contains('\u{1b}')),
                "{texts:?}"
            );
        }
        let unit = refusal("--unit", &Wanted::Unit("nginx".to_owned()), &alone, Language::English);
        assert!(unit.contains("nginx.service") && unit.contains("systemctl list-units"), "{unit}");
        let several = SelectionError::Several(vec!["0123".to_owned(), "0145".to_owned()]);
        let text = refusal("--container", &Wanted::Container("01".to_owned()), &several, Language::English);
        assert!(text.contains("0123, 0145") && text.contains("more digits"), "{text}");
    }
}
