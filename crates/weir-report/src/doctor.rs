//! The findings of `weir doctor`, as a table for a terminal.

use weir_record::{
    doctor::{Diagnosis, FindingState},
    finding::Finding,
};

use crate::{
    display::{columns, pad_end, wrap},
    findings,
    language::{Language, localized},
};

/// Fewest columns of an explanation next to its name; with less room it is placed below.
const DETAIL_COLUMNS_MIN: usize = 40;

/// Sections and their checks, by their stable names. Other names are the same in every language.
const NAMES: [(&str, [&str; 3]); 17] = [
    ("drivers", ["drivers", "드라이버", "驱动"]),
    ("cpus", ["cpus", "CPU", "CPU"]),
    ("limits", ["limits", "한도", "限制"]),
    ("noise", ["noise", "노이즈", "噪声"]),
    ("evidence", ["evidence", "근거", "依据"]),
    ("cores", ["cores", "코어", "核心"]),
    ("pinning", ["pinning", "CPU 고정", "绑核"]),
    ("quota", ["quota", "할당량", "配额"]),
    ("governor", ["governor", "거버너", "调频策略"]),
    ("clocksource", ["clocksource", "클럭 소스", "时钟源"]),
    ("descriptors", ["descriptors", "디스크립터", "描述符"]),
    ("local ports", ["local ports", "로컬 포트", "本地端口"]),
    ("accept queue", ["accept queue", "accept 큐", "accept 队列"]),
    ("locked memory", ["locked memory", "잠금 메모리", "锁定内存"]),
    ("steal", ["steal", "스틸(steal)", "steal"]),
    ("foreign cpu", ["foreign cpu", "다른 프로세스", "其他进程"]),
    ("cross-core", ["cross-core", "코어 간 왕복", "核间往返"]),
];

fn name(language: Language, stable: &str) -> &str {
    NAMES.iter().find(|(own, _)| *own == stable).map_or(stable, |(_, texts)| language.choose(*texts))
}

fn state(language: Language, state: FindingState) -> &'static str {
    language.choose(match state {
        FindingState::Yes => ["yes", "가능", "可用"],
        FindingState::Limited => ["limited", "제한", "受限"],
        FindingState::No => ["no", "불가", "不可用"],
    })
}

/// The findings, section by section, in lines of at most `columns_max` columns.
pub(crate) fn table(diagnoses: &[Diagnosis], language: Language, columns_max: usize) -> String {
    let names = diagnoses.iter().map(|diagnosis| columns(name(language, &diagnosis.name)));
    let states = [FindingState::Yes, FindingState::Limited, FindingState::No];
    let state_columns = states.iter().map(|it| columns(state(language, *it))).max().unwrap_or(0);
    let name_columns = names.max().unwrap_or(0);
    let beside = 2 + name_columns + 2 + state_columns + 2;
    let is_beside = columns_max >= beside + DETAIL_COLUMNS_MIN;
    let indent = if is_beside { beside } else { 4 };
    let room = columns_max.saturating_sub(indent).max(1);
    let mut text = String::new();
    let mut section = "";
    for diagnosis in diagnoses {
        if diagnosis.section != section {
            let above = if section.is_empty() { "" } else { "\n" };
            section = &diagnosis.section;
            text.push_str(&format!("{above}{}\n", name(language, section)));
        }
        let own = pad_end(name(language, &diagnosis.name), name_columns);
        text.push_str(&format!("  {own}  {}", pad_end(state(language, diagnosis.state), state_columns)));
        let found = findings::localized(language, &diagnosis.found);
        let unlock = diagnosis.unlock.as_ref().map(|remedy| unlock(language, remedy));
        let lines = std::iter::once(found).chain(unlock).flat_map(|it| wrap(&it, room));
        for (index, line) in lines.enumerate() {
            match (index, is_beside) {
                (0, true) => text.push_str("  "),
                _ => text.push_str(&format!("\n{:indent$}", "")),
            }
            text.push_str(&line);
        }
        text.push('\n');
    }
    text
}

/// The remedy of a finding. A command is unchanged, so that it can be copied.
pub(crate) fn remedy(language: Language, remedy: &Finding) -> String {
    match remedy {
        Finding::RunCommand { command } => command.clone(),
        other => findings::localized(language, other),
    }
}

fn unlock(language: Language, mends: &Finding) -> String {
    let remedy = remedy(language, mends);
    localized!(language, "unlock: {remedy}", "해제: {remedy}", "解除：{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosis(name: &str, unlock: Option<Finding>) -> Diagnosis {
        Diagnosis {
            section: "drivers".into(),
            name: name.into(),
            state: FindingState::Limited,
            found: Finding::Text(
                "a sentence that is far too long for the rest of its line on a narrow terminal".into(),
            ),
            unlock,
        }
    }

    #[test]
    fn a_narrow_terminal_shows_every_finding_whole() {
        let command = Finding::RunCommand { command: "sysctl kernel.io_uring_disabled=0".into() };
        let all = [diagnosis("uring", Some(command)), diagnosis("epoll", None)];
        for language in Language::ALL {
            for columns_max in [40, 60, 80] {
                let text = table(&all, language, columns_max);
                assert!(text.lines().all(|line| columns(line) <= columns_max), "{text}");
                let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                assert_eq!(words(&text), words(&table(&all, language, usize::MAX)), "{columns_max}");
            }
        }
        let wide = table(&all, Language::English, usize::MAX);
        assert!(wide.contains("\n  uring  limited  a sentence") && wide.lines().count() == 4, "{wide}");
    }

    #[test]
    fn explanations_stand_below_each_other_in_every_language() {
        let all = [diagnosis("pinning", None), diagnosis("uring", None)];
        for language in Language::ALL {
            let text = table(&all, language, usize::MAX);
            let starts: Vec<usize> = text
                .lines()
                .filter_map(|line| line.split_once("a sentence").map(|(before, _)| columns(before)))
                .collect();
            assert_eq!((starts.len(), starts[0]), (2, starts[1]), "{text}");
        }
    }
}
