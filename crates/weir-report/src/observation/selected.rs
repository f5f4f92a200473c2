//! Which processes were observed together, and how they were found.

use weir_record::observation::{Found, FoundContainer, Observation, Selected, SelectedProcess, Selection};

use crate::{
    display::printable,
    format,
    language::{Language, localized},
};

/// Most columns of a command in a list of processes.
const COMMAND_COLUMNS_MAX: usize = 40;
/// Processes that are listed; the record contains more.
const LISTED_MAX: usize = 12;

/// The observed processes, as the start of a title.
pub(super) fn subject(observation: &Observation, language: Language) -> String {
    let Some(selection) = &observation.selection else {
        let (pid, command) = (observation.pid, printable(&observation.command));
        return localized!(
            language,
            "process {pid} ({command})",
            "프로세스 {pid} ({command})",
            "进程 {pid}（{command}）",
        );
    };
    let (text, count) = (printable(&selection.found.text), processes(selection));
    match selection.found.by {
        Selected::Pids => localized!(language, "processes {text}", "프로세스 {text}", "进程 {text}"),
        Selected::Cgroup => localized!(
            language,
            "control group {text} (processes: {count})",
            "cgroup {text} (프로세스 {count}개)",
            "cgroup {text}（{count} 个进程）",
        ),
        Selected::Unit => localized!(
            language,
            "unit {text} (processes: {count})",
            "유닛 {text} (프로세스 {count}개)",
            "单元 {text}（{count} 个进程）",
        ),
        Selected::Container => localized!(
            language,
            "container {text} (processes: {count})",
            "컨테이너 {text} (프로세스 {count}개)",
            "容器 {text}（{count} 个进程）",
        ),
        Selected::Name => localized!(
            language,
            "processes called {text} ({count})",
            "이름이 {text}인 프로세스 ({count}개)",
            "名为 {text} 的进程（{count} 个）",
        ),
    }
}

/// The number at the start, without children that are not selected themselves.
fn processes(selection: &Selection) -> u64 {
    selection.processes_left_out.saturating_add(selection.processes.len() as u64)
}

/// The initial processes, and those that joined.
pub(super) fn lines(observation: &Observation, language: Language) -> Vec<String> {
    let Some(selection) = &observation.selection else { return Vec::new() };
    let mut lines = vec![listed(selection, language)];
    lines.extend(selection.found.container.map(|how| how_found(&selection.found, how, language).to_owned()));
    if selection.found.by != Selected::Pids {
        lines.push(joined(selection, language));
    }
    lines
}

fn listed(selection: &Selection, language: Language) -> String {
    let name = |process: &SelectedProcess| {
        let command = crate::display::truncate(&printable(&process.command), COMMAND_COLUMNS_MAX);
        format!("{} {command}", process.pid)
    };
    let list: Vec<String> = selection.processes.iter().take(LISTED_MAX).map(name).collect();
    let more = processes(selection).saturating_sub(list.len() as u64);
    let list = list.join(language.semicolon());
    if more > 0 {
        let more = format::count(more);
        return localized!(
            language,
            "selected at the begin: {list}; and {more} more",
            "처음에 선택한 프로세스: {list}; 그 밖에 {more}개",
            "开始时选中：{list}；另有 {more} 个",
        );
    }
    localized!(
        language,
        "selected at the begin: {list}",
        "처음에 선택한 프로세스: {list}",
        "开始时选中：{list}",
    )
}

fn how_found(found: &Found, how: FoundContainer, language: Language) -> String {
    let text = printable(&found.text);
    match how {
        FoundContainer::Path => localized!(
            language,
            "the container was found by {text} in the paths of control groups",
            "컨테이너를 cgroup 경로의 {text}(으)로 찾았습니다",
            "容器是按 cgroup 路径中的 {text} 找到的",
        ),
        FoundContainer::Docker => localized!(
            language,
            "docker inspect gave the ID of the container {text}",
            "컨테이너 {text}의 ID는 docker inspect로 확인했습니다",
            "容器 {text} 的 ID 由 docker inspect 得知",
        ),
        FoundContainer::Podman => localized!(
            language,
            "podman inspect gave the ID of the container {text}",
            "컨테이너 {text}의 ID는 podman inspect로 확인했습니다",
            "容器 {text} 的 ID 由 podman inspect 得知",
        ),
    }
}

fn joined(selection: &Selection, language: Language) -> String {
    let (count, every) = (format::count(selection.joined), language.duration(selection.looked_every_ns));
    localized!(
        language,
        "joined later, and observed from then on: {count}; weir looks for them every {every}. A process that started and \
         ended between two looks was not seen, unless its parent was observed",
        "나중에 합류하여 그때부터 관찰한 프로세스: {count}개. weir는 {every}마다 새 프로세스를 찾습니다. 그 사이에 시작하고 끝난 프로세스는, 부모를 관찰하고 있지 않았다면 관찰하지 \
        못했습니다",
        "之后加入并从那时起观测的进程：{count} 个；weir 每 {every} 查找一次。在两次查找之间启动又结束的进程，若其父进程未被观测，则没有观测到",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(by: Selected, container: Option<FoundContainer>) -> Observation {
        let found = Found { by, text: "web\u{1b}[2J".to_owned(), container };
        let process = |pid| SelectedProcess { pid, command: "nginx: worker process".to_owned() };
        let selection = Selection {
            found,
            processes: (10..10 + LISTED_MAX as u32 + 1).map(process).collect(),
            processes_left_out: 7,
            joined: 3,
            looked_every_ns: 1_000_000_000,
        };
        Observation { pid: 10, selection: Some(selection), ..Observation::default() }
    }

    #[test]
    fn every_kind_of_selection_is_told_in_every_language() {
        for by in [Selected::Pids, Selected::Cgroup, Selected::Unit, Selected::Container, Selected::Name] {
            let ways = [FoundContainer::Path, FoundContainer::Docker, FoundContainer::Podman].map(Some);
            for container in ways.into_iter().chain([None]) {
                let observation = selected(by, container);
                let texts = Language::ALL.map(|language| {
                    let lines = lines(&observation, language);
                    assert_eq!(
                        lines.len(),
                        1 + usize::from(container.is_some()) + usize::from(by != Selected::Pids)
                    );
                    format!("{} {}", subject(&observation, language), lines.join(" "))
                });
                for text in &texts {
                    assert!(text.contains("web") && !text.contains('\u{1b}'), "{text}");
                    assert!(text.contains("10 nginx: worker process") && text.contains('8'), "{text}");
                }
                assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
            }
        }
        let one = Observation { pid: 7, command: "cat".to_owned(), ..Observation::default() };
        assert_eq!(subject(&one, Language::English), "process 7 (cat)");
        assert!(lines(&one, Language::English).is_empty());
    }
}
