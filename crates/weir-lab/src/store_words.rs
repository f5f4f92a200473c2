//! Errors of a store, in the reader's language. The store itself has English messages, for programs that open one
//! without the laboratory. Paths and system messages are quoted unchanged.

use std::path::Path;

use weir_report::{Language, localized};
use weir_store::StoreError;

/// The error and its remedy; in English the text is the error's own.
pub fn store_error(error: &StoreError, language: Language) -> String {
    match error {
        StoreError::Full { .. } | StoreError::NoRoom { .. } => without_room(error, language),
        StoreError::Unstorable { what, reason } => localized!(
            language,
            "{what} cannot be stored: {reason}",
            "저장할 수 없습니다({what}): {reason}",
            "无法保存 {what}：{reason}",
        ),
        StoreError::NotFound { path }
        | StoreError::Exists { path }
        | StoreError::CannotCreate { path, .. }
        | StoreError::ReadOnly { path }
        | StoreError::Busy { path } => of_place(error, path, language),
        StoreError::Unreadable { path, reason } => {
            let path = path.display();
            localized!(
                language,
                "{path} cannot be opened ({reason}); make the file readable, or run this as the user it belongs to",
                "{path}: 열 수 없습니다({reason}). 파일을 읽을 수 있게 하거나 파일 소유자로 실행하십시오",
                "无法打开 {path}（{reason}）；请使该文件可读，或以文件所有者运行",
            )
        }
        StoreError::NotAStore { path, reason } => {
            let path = path.display();
            localized!(
                language,
                "{path} is not a study store ({reason}); name a folder that `weir study` wrote",
                "{path}: 실험의 저장 파일이 아닙니다({reason}). `weir study`가 만든 폴더를 지정하십시오",
                "{path} 不是实验的存储文件（{reason}）；请指定 `weir study` 生成的文件夹",
            )
        }
        StoreError::Newer { path, found, known } => {
            let path = path.display();
            localized!(
                language,
                "{path} was written by a later version of Weir (store version {found}, this program knows {known}); \
                 open it with that version",
                "{path}: 더 새로운 버전의 Weir가 쓴 저장 파일입니다(버전 {found}, 이 프로그램은 {known}까지 지원). 해당 버전으로 \
                 여십시오",
                "{path} 由更新版本的 Weir 写入（存储版本 {found}，本程序支持到 {known}）；请用该版本打开",
            )
        }
        StoreError::Damaged { path, reason } => {
            let path = path.display();
            localized!(
                language,
                "{path} is damaged ({reason}); restore it from a copy, or run the study again",
                "{path}: 손상되었습니다({reason}). 사본에서 복원하거나 실험을 다시 실행하십시오",
                "{path} 已损坏（{reason}）；请从副本恢复，或重新运行该实验",
            )
        }
        StoreError::Other { path, source } => format!("{}: {source}", path.display()),
    }
}

/// Errors of a file that is missing, exists already, or is unavailable.
fn of_place(error: &StoreError, path: &Path, language: Language) -> String {
    let path = path.display();
    match error {
        StoreError::NotFound { .. } => localized!(
            language,
            "{path} does not exist: this folder holds no study; name a folder that `weir study` wrote",
            "{path}: 파일이 없습니다. 실험이 들어 있는 폴더가 아닙니다. `weir study`가 만든 폴더를 지정하십시오",
            "{path} 不存在：此文件夹中没有实验；请指定 `weir study` 生成的文件夹",
        ),
        StoreError::Exists { .. } => localized!(
            language,
            "{path} already exists: continue it with `weir study --resume`, or choose another folder with `--out`",
            "{path}: 이미 있습니다. `weir study --resume`으로 계속하거나 `--out`으로 다른 폴더를 고르십시오",
            "{path} 已存在：请用 `weir study --resume` 继续，或用 `--out` 选择其他文件夹",
        ),
        StoreError::CannotCreate { reason, .. } => localized!(
            language,
            "cannot create {path}: {reason}; choose a writable folder with `--out`",
            "{path}: 만들 수 없습니다({reason}). `--out`으로 쓰기 가능한 폴더를 고르십시오",
            "无法创建 {path}：{reason}；请用 `--out` 选择可写的文件夹",
        ),
        StoreError::ReadOnly { .. } => localized!(
            language,
            "{path} cannot be written: make the folder writable, then continue with `weir study --resume`",
            "{path}: 쓸 수 없습니다. 폴더에 쓰기 권한을 준 뒤 `weir study --resume`으로 계속하십시오",
            "无法写入 {path}：请使该文件夹可写，然后用 `weir study --resume` 继续",
        ),
        _ => localized!(
            language,
            "{path} is in use by another process; wait for it to end",
            "{path}: 다른 프로세스가 사용하고 있습니다. 끝나기를 기다리십시오",
            "{path} 正被另一个进程使用；请等待其结束",
        ),
    }
}

/// Errors of a full disk.
fn without_room(error: &StoreError, language: Language) -> String {
    let free = error
        .free_kib()
        .map(|kib| localized!(language, " ({kib} KiB free)", "(남은 공간 {kib} KiB)", "（剩余 {kib} KiB）"));
    let free = free.unwrap_or_default();
    match error {
        StoreError::Full { path, .. } => {
            let path = path.display();
            localized!(
                language,
                "no space left for {path}{free}: free some space, then continue with `weir study --resume`; finished \
                 blocks are kept",
                "{path}: 저장할 공간이 없습니다{free}. 공간을 확보한 뒤 `weir study --resume`으로 계속하십시오. 끝난 블록은 남아 있습니다",
                "没有空间保存 {path}{free}：请腾出空间，然后用 `weir study --resume` 继续；已完成的区组会保留",
            )
        }
        StoreError::NoRoom { path, .. } => {
            let path = path.display();
            localized!(
                language,
                "no space left for {path}{free}: the disk is full or nearly so, and a study needs a few MiB; free \
                 some space, or choose a folder on another disk with `--out`",
                "{path}: 저장할 공간이 없습니다{free}. 디스크가 거의 가득 찼고, 실험에는 몇 MiB가 필요합니다. 공간을 확보하거나 \
                 `--out`으로 다른 디스크의 폴더를 고르십시오",
                "没有空间保存 {path}{free}：磁盘已满或将满，而一项实验需要数 MiB；请腾出空间，或用 `--out` 选择其他磁盘上的文件夹",
            )
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn errors() -> Vec<StoreError> {
        let path = || PathBuf::from("run/study.db");
        let reason = || "out of luck".to_owned();
        vec![
            StoreError::NotFound { path: path() },
            StoreError::Exists { path: path() },
            StoreError::CannotCreate { path: path(), reason: reason() },
            StoreError::Unreadable { path: path(), reason: reason() },
            StoreError::NotAStore { path: path(), reason: reason() },
            StoreError::Newer { path: path(), found: 9, known: 3 },
            StoreError::Full { path: path(), free_bytes: Some(5 << 10) },
            StoreError::Full { path: path(), free_bytes: Some(5 << 30) },
            StoreError::NoRoom { path: path(), free_bytes: None },
            StoreError::ReadOnly { path: path() },
            StoreError::Busy { path: path() },
            StoreError::Damaged { path: path(), reason: reason() },
            StoreError::Unstorable { what: "run/study.db".to_owned(), reason: reason() },
        ]
    }

    #[test]
    fn every_error_is_told_in_every_language_with_its_file_and_in_english_as_it_tells_itself() {
        for error in errors() {
            let [english, korean, chinese] = Language::ALL.map(|language| store_error(&error, language));
            assert_eq!(english, error.to_string());
            assert!(english != korean && korean != chinese, "{korean}");
            for text in [&english, &korean, &chinese] {
                assert!(text.contains("run/study.db"), "{text}");
                assert_eq!(text.contains("out of luck"), english.contains("out of luck"), "{text}");
                assert_eq!(text.contains("--resume"), english.contains("--resume"), "{text}");
                assert_eq!(text.contains("5 KiB"), english.contains("5 KiB"), "{text}");
            }
        }
    }
}
