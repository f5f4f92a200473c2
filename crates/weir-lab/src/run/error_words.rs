//! Why a session broke off, in its reader's language.

use weir_record::machine::FactDifference;
use weir_report::{Language, localized};

use super::RunError;
use crate::store_words::store_error;

impl RunError {
    /// The error and its remedy. Messages of a server, a generator or the system are quoted unchanged.
    pub fn localized(&self, language: Language) -> String {
        match self {
            Self::Store { source, blocks_done } => {
                format!("{}{}", store_error(source, language), stored(*blocks_done, language))
            }
            Self::Busy { folder } => localized!(
                language,
                "another session works on {folder}; wait for it to end, or choose another folder with `--out`",
                "{folder}: 다른 세션이 작업 중인 폴더입니다. 끝나기를 기다리거나 `--out`으로 다른 폴더를 고르십시오",
                "另一个会话正在处理 {folder}；请等待其结束，或用 `--out` 选择其他文件夹",
            ),
            Self::Usage(text) | Self::Environment(text) => text.clone(),
            Self::OtherMachine { differences } => {
                let differences = listed(differences, language);
                localized!(
                    language,
                    "this study was begun on another machine ({differences}); its blocks cannot be mixed, begin a new \
                     study here",
                    "다른 머신에서 시작한 실험입니다({differences}). 블록을 섞을 수 없으므로, 이 머신에서는 새 실험을 시작하십시오",
                    "此实验是在另一台机器上开始的（{differences}）；区组不能混在一起，请在本机开始新的实验",
                )
            }
        }
    }
}

fn stored(blocks_done: usize, language: Language) -> String {
    match (blocks_done, language) {
        (0, _) => String::new(),
        (1, Language::English) => " (1 block is stored)".to_owned(),
        (number, _) => localized!(
            language,
            " ({number} blocks are stored)",
            "(블록 {number}개 저장됨)",
            "（已保存 {number} 个区组）",
        ),
    }
}

fn listed(differences: &[FactDifference], language: Language) -> String {
    let one = |FactDifference { name, one, other }: &FactDifference| {
        localized!(
            language,
            "{name} {one} there, {other} here",
            "{name}: 시작한 머신 {one}, 이 머신 {other}",
            "{name}：原机器 {one}，本机 {other}",
        )
    };
    differences.iter().map(one).collect::<Vec<_>>().join(language.semicolon())
}

#[cfg(test)]
mod tests {
    use weir_store::StoreError;

    use super::*;

    #[test]
    fn what_broke_a_session_off_is_told_in_every_language() {
        let difference = |name: &str| FactDifference {
            name: name.to_owned(),
            one: "6.1".to_owned(),
            other: "6.8".to_owned(),
        };
        let full = || StoreError::Full { path: "run/study.db".into(), free_bytes: None };
        let errors: [(RunError, &[&str]); 4] = [
            (RunError::Store { source: full(), blocks_done: 7 }, &["run/study.db", "--resume", "7"]),
            (RunError::Store { source: full(), blocks_done: 1 }, &["run/study.db", "--resume", "1"]),
            (RunError::Busy { folder: "run".to_owned() }, &["run", "`--out`"]),
            (
                RunError::OtherMachine { differences: vec![difference("kernel"), difference("cpu")] },
                &["kernel", "cpu", "6.1", "6.8"],
            ),
        ];
        for (error, words) in errors {
            let texts = Language::ALL.map(|language| error.localized(language));
            assert_eq!(error.to_string(), texts[0]);
            assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
            for text in texts {
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
            }
        }
    }
}
