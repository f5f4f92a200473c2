//! Rules for files of any kind: their names, marks of unfinished work, and traces of one developer's machine.

use super::{
    Finding,
    lexer::{is_name_char, words},
};

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "manager", "extra", "data", "info"];

/// Marks of unfinished work.
pub const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

/// First folders of absolute paths that exist only on one developer's machine.
const MACHINE_ROOTS: &[&str] = &["home", "root", "work"];

/// Hidden folders that exist only on one developer's machine.
const HIDDEN_FOLDERS: &[&str] = &["library"];

/// The only registry that a lock file may name.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Settings that make a package manager use another registry. They are spelled in two parts, because this file is
/// checked too.
const REGISTRY_SETTINGS: &[&str] = &[
    concat!("replace", "-with"),
    concat!("[source", "."),
    concat!("[registries", "."),
    concat!("index", "-url"),
    concat!("GO", "PROXY"),
    concat!("GOFLAGS=-insec", "ure"),
];

/// Korean and Chinese words that differ from the tree's usual word, each with the usual word. They are spelled in two
/// parts, because this file is checked too.
const OTHER_WORDS: &[(&str, &str)] = &[
    (concat!("관측", "하"), "관찰하"),
    (concat!("관측", " 기록"), "관찰 기록"),
    (concat!("观察", "进程"), "观测进程"),
    (concat!("观察", "记录"), "观测记录"),
    (concat!("被观察", "线程"), "被观测线程"),
    (concat!("대표", " 비교"), "주 비교"),
    (concat!("측정", " 파일"), "실험 파일"),
    (concat!("测量", "文件"), "实验文件"),
    (concat!("문맥", " 교환"), "컨텍스트 스위치"),
    (concat!("컨텍스트", " 전환"), "컨텍스트 스위치"),
    (concat!("主动", "切换"), "自愿切换"),
    (concat!("被动", "切换"), "非自愿切换"),
    (concat!("测量", "方案"), "测量计划"),
    (concat!("神", "谕"), "oracle"),
    (concat!("기하", "평균"), "기하 평균"),
    (concat!("交", "接"), "移交"),
    (concat!("모든", " 셀"), "모든 조건"),
    (concat!("셀", "마다"), "조건마다"),
    (concat!("셀", "별"), "조건별"),
    (concat!("셀", "에서"), "조건에서"),
    (concat!("셀", " {"), "조건 {"),
    (concat!("个单", "元中"), "个条件中"),
    (concat!("所有", "单元"), "所有条件"),
    (concat!("全部", "单元"), "全部条件"),
    (concat!("가까운", " 상태"), "코어 간 지연이 짧은 상태"),
    (concat!("먼", " 상태"), "코어 간 지연이 긴 상태"),
    (concat!("近", "状态"), "核间延迟较短的状态"),
    (concat!("远", "状态"), "核间延迟较长的状态"),
    (concat!("跨", "核"), "核间"),
    (concat!("핸드", "오프"), "전달"),
    (concat!("저장", " 장치"), "스토리지"),
    (concat!("잠긴", " 메모리"), "잠금 메모리"),
    (concat!("旁侧", "进程"), "同时运行的进程"),
    (concat!("虚拟机管理", "程序"), "虚拟机监控程序"),
    (concat!("主", "张"), "结论"),
    (concat!("증", "거"), "근거"),
    (concat!("证", "据"), "依据"),
    (concat!("부하", "율"), "요청률"),
    (concat!("负载", "速率"), "请求速率"),
    (concat!("지연", "시간"), "지연 시간"),
    (concat!("응답", "시간"), "응답 시간"),
    (concat!("컨트롤", " 그룹"), "cgroup"),
    (concat!("控制", "组"), "cgroup"),
    (concat!("分布", "图"), "热力图"),
    (concat!("发", "表"), "公布"),
    (concat!("위", "약"), "플라세보"),
];

/// A file or folder name must say what is inside.
pub fn check_name(path: &str) -> Vec<Finding> {
    let stems = path.split('/').map(|part| part.split_once('.').map_or(part, |(stem, _)| stem));
    let empty = stems.filter(|stem| EMPTY_NAMES.contains(stem));
    empty
        .map(|stem| Finding::new(path, 1, "name", format!("`{stem}` says nothing about what is inside")))
        .collect()
}

/// Finds marks of unfinished work in a file that is not Rust.
pub fn check_leftovers(path: &str, text: &str) -> Vec<Finding> {
    let marked = MARKS.iter().flat_map(|word| words(text, word).map(move |offset| (offset, *word)));
    marked.map(|(offset, word)| leftover(path, line_at(text, offset), word)).collect()
}

/// The finding for a mark.
pub fn leftover(path: &str, line: usize, word: &str) -> Finding {
    Finding::new(path, line, "leftover", format!("`{word}`: finish it or take it out"))
}

/// Each thing has one word, also in Korean and Chinese texts.
pub fn check_one_word(path: &str, text: &str) -> Vec<Finding> {
    let found = OTHER_WORDS.iter().flat_map(|(other, word)| {
        text.match_indices(other).map(move |(offset, _)| {
            let message = format!("`{other}` is `{word}` elsewhere in the tree; write that");
            Finding::new(path, line_at(text, offset), "one-word", message)
        })
    });
    found.collect()
}

/// Finds paths and package sources that exist on one machine only.
pub fn check_machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in MACHINE_ROOTS {
        let needle = format!("/{root}/");
        let absolute = text.match_indices(&needle).filter(|(offset, _)| starts_a_path(text, *offset));
        findings.extend(absolute.map(|(offset, _)| {
            Finding::new(path, line_at(text, offset), "machine-path", format!("a path below `/{root}`"))
        }));
    }
    for folder in HIDDEN_FOLDERS {
        let needle = format!(".{folder}");
        let hidden =
            text.match_indices(&needle).filter(|(offset, _)| names_a_folder(text, *offset, needle.len()));
        findings.extend(hidden.map(|(offset, _)| {
            Finding::new(path, line_at(text, offset), "machine-path", format!("a path in `.{folder}`"))
        }));
    }
    findings.extend(check_registries(path, text));
    findings
}

fn check_registries(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for setting in REGISTRY_SETTINGS {
        findings.extend(text.match_indices(setting).map(|(offset, _)| {
            let message = format!("`{setting}` points package downloads at one machine's registry");
            Finding::new(path, line_at(text, offset), "registry", message)
        }));
    }
    if super::file_name(path) == "Cargo.lock" {
        for (index, line) in text.lines().enumerate() {
            if let Some(source) = line.strip_prefix("source = ")
                && source.trim_matches('"') != REGISTRY
            {
                let message = format!("{source} is not the public registry");
                findings.push(Finding::new(path, index + 1, "registry", message));
            }
        }
    }
    findings
}

/// Whether the slash at `offset` starts an absolute path; in `a/b` and `{x}/b` it does not.
fn starts_a_path(text: &str, offset: usize) -> bool {
    let before = text[..offset].chars().next_back();
    !before.is_some_and(|character| {
        is_name_char(character) || matches!(character, '.' | '-' | '}' | ')' | '>' | '*')
    })
}

/// Whether the dot at `offset` starts a hidden folder's name; in `value.field` it does not.
fn names_a_folder(text: &str, offset: usize, length: usize) -> bool {
    let before = text[..offset].chars().next_back();
    let after = text[offset + length..].chars().next();
    !before.is_some_and(|character| is_name_char(character) || matches!(character, ')' | ']' | '?' | '.'))
        && !after.is_some_and(is_name_char)
}

fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_nothing_are_found_as_file_and_as_folder() {
        assert_eq!(check_name("crates/a/src/util.rs").len(), 1);
        assert_eq!(check_name("crates/a/tests/common/mod.rs").len(), 1);
        assert_eq!(check_name("docs/data.tar.gz").len(), 1);
        assert!(check_name("crates/a/src/database.rs").is_empty());
    }

    #[test]
    fn marks_are_found_as_whole_words() {
        let findings = check_leftovers("a.sh", &format!("a\n# {}: b\nmktemp x.XXXXXX\n", MARKS[1]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }

    #[test]
    fn absolute_paths_of_one_machine_are_found() {
        for root in MACHINE_ROOTS {
            for text in [format!("cd /{root}/x"), format!("\"/{root}/x\""), format!("file:///{root}/x")] {
                assert_eq!(check_machine_paths("a.md", &text).len(), 1, "{text}");
            }
            for text in [format!("proc/{root}/x"), format!("{{}}/{root}/x"), format!("https://a.b/{root}/x")]
            {
                assert!(check_machine_paths("a.md", &text).is_empty(), "{text}");
            }
        }
    }

    #[test]
    fn hidden_folders_are_found_and_fields_are_not() {
        for folder in HIDDEN_FOLDERS {
            assert_eq!(check_machine_paths("a.sh", &format!("ls ../.{folder}/x")).len(), 1);
            assert!(check_machine_paths("a.rs", &format!("shelf.{folder}.len()")).is_empty());
        }
    }

    #[test]
    fn another_word_for_a_thing_is_found_and_the_trees_own_is_not() {
        for (other, word) in OTHER_WORDS {
            assert_eq!(check_one_word("a.ko.md", &format!("{word}\n{other}\n")).len(), 1, "{other}");
            assert!(check_one_word("a.ko.md", word).is_empty(), "{word}");
        }
    }

    #[test]
    fn foreign_registries_are_found_in_settings_and_lock_files() {
        assert_eq!(check_machine_paths("a.toml", &format!("{} = \"x\"", REGISTRY_SETTINGS[0])).len(), 1);
        assert!(check_machine_paths("Cargo.lock", &format!("source = \"{REGISTRY}\"\n")).is_empty());
        assert_eq!(check_machine_paths("Cargo.lock", "source = \"registry+https://mirror/\"\n").len(), 1);
    }
}
