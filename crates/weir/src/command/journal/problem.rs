//! Why a journal cannot be read to its end, in the reader's language, and the way out.

use std::path::Path;

use weir_report::{Language, localized};
use weir_servers::journal::{RecoverError, record::Damage};

/// One sentence that names the file and the byte.
pub(super) fn sentence(error: &RecoverError, language: Language) -> String {
    match error {
        RecoverError::System { .. } | RecoverError::InUse { .. } => obstacle(error, language),
        RecoverError::Damaged { file, offset, damage } => {
            let (file, damage) = (file.display(), reason(damage, language));
            localized!(
                language,
                "{file} is damaged at byte {offset}: {damage}",
                "{file}: 바이트 {offset}에서 손상되었습니다: {damage}",
                "{file}：在字节 {offset} 处损坏：{damage}",
            )
        }
        RecoverError::Header { file } => {
            let file = file.display();
            localized!(
                language,
                "{file} is damaged at byte 0: its header is not that of this file",
                "{file}: 바이트 0에서 손상되었습니다: 헤더가 이 파일의 것이 아닙니다",
                "{file}：在字节 0 处损坏：文件头不属于此文件",
            )
        }
        RecoverError::Short { file, bytes, bytes_expected } => {
            let file = file.display();
            localized!(
                language,
                "{file} is damaged at byte {bytes}: it ends there, and its header says {bytes_expected} bytes",
                "{file}: 바이트 {bytes}에서 손상되었습니다: 거기서 끝나지만 헤더에는 {bytes_expected}바이트라고 되어 있습니다",
                "{file}：在字节 {bytes} 处损坏：文件到此结束，而文件头写明有 {bytes_expected} 字节",
            )
        }
        RecoverError::Missing { file } => {
            let file = file.display();
            localized!(
                language,
                "{file} is missing, and later files of this journal exist",
                "{file}: 파일이 없는데 이 저널의 뒤 파일은 있습니다",
                "{file}：文件缺失，而此日志的后续文件存在",
            )
        }
        RecoverError::OtherJournal { file, offset } => {
            let file = file.display();
            localized!(
                language,
                "{file} has another record at byte {offset} than the checkpoint",
                "{file}: 바이트 {offset}의 레코드가 체크포인트의 것과 다릅니다",
                "{file}：字节 {offset} 处的记录与检查点中的不同",
            )
        }
        RecoverError::Refused { file, offset, reason } => {
            let file = file.display();
            localized!(
                language,
                "{file}: the record at byte {offset} cannot be used: {reason}",
                "{file}: 바이트 {offset}의 레코드를 쓸 수 없습니다: {reason}",
                "{file}：字节 {offset} 处的记录无法使用：{reason}",
            )
        }
    }
}

/// Why a journal cannot be read now.
fn obstacle(error: &RecoverError, language: Language) -> String {
    match error {
        RecoverError::System { path, source, .. } => {
            let path = path.display();
            localized!(
                language,
                "{path} cannot be read or written: {source}",
                "{path}: 읽거나 쓸 수 없습니다: {source}",
                "{path}：无法读取或写入：{source}",
            )
        }
        RecoverError::InUse { directory, worker } => {
            let directory = directory.display();
            localized!(
                language,
                "{directory}: a process is writing the journal of worker {worker}; end it first",
                "{directory}: 프로세스가 워커 {worker}의 저널을 쓰고 있습니다. 먼저 끝내십시오",
                "{directory}：有进程正在写工作线程 {worker} 的日志；请先结束它",
            )
        }
        other => other.to_string(),
    }
}

/// The kind of damage.
fn reason(damage: &Damage, language: Language) -> String {
    match damage {
        Damage::Length => localized!(
            language,
            "the length of the record there is impossible",
            "그곳 레코드의 길이가 있을 수 없는 값입니다",
            "该处记录的长度不可能",
        ),
        Damage::Checksum => localized!(
            language,
            "the checksum of the record there does not match",
            "그곳 레코드의 체크섬이 맞지 않습니다",
            "该处记录的校验和不符",
        ),
        Damage::Padding => localized!(
            language,
            "the padding of the record there is not empty",
            "그곳 레코드의 채움 바이트가 비어 있지 않습니다",
            "该处记录的填充字节不为空",
        ),
        Damage::OtherWorker(worker) => localized!(
            language,
            "the record there belongs to worker {worker}",
            "그곳 레코드는 워커 {worker}의 것입니다",
            "该处记录属于工作线程 {worker}",
        ),
        Damage::Sequence { found, expected } => localized!(
            language,
            "record {found} is there, where {expected} belongs",
            "레코드 {expected}이(가) 있어야 할 곳에 {found}이(가) 있습니다",
            "应为记录 {expected} 的位置上是记录 {found}",
        ),
        Damage::Hole => localized!(
            language,
            "no record is there, and the log continues behind it",
            "그곳에 레코드가 없는데 뒤에 로그가 이어집니다",
            "该处没有记录，而其后日志仍继续",
        ),
    }
}

/// What to do about damage.
pub(super) fn way_out(directory: &Path, language: Language) -> String {
    let shown = directory.display();
    localized!(
        language,
        "restore the file from a copy; if there is none, `weir journal repair {shown} --out COPY` makes a copy that \
         ends before the damage and says what is lost",
        "파일을 사본에서 복구하십시오. 사본이 없으면 `weir journal repair {shown} --out COPY`로 손상 앞에서 끝나는 사본을 만들고 잃는 것을 확인할 수 있습니다",
        "请从副本恢复该文件；若没有副本，`weir journal repair {shown} --out COPY` 会生成在损坏处之前结束的副本，并说明丢失了什么",
    )
}

/// Whether bytes are lost or wrong, and not only unread.
pub(super) fn is_damage(error: &RecoverError) -> bool {
    match error {
        RecoverError::System { .. } | RecoverError::InUse { .. } => false,
        RecoverError::Damaged { .. }
        | RecoverError::OtherJournal { .. }
        | RecoverError::Header { .. }
        | RecoverError::Short { .. }
        | RecoverError::Missing { .. }
        | RecoverError::Refused { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_with_its_file_and_its_byte_in_every_language() {
        let errors = [
            RecoverError::Damaged { file: "j/a".into(), offset: 77, damage: Damage::Checksum },
            RecoverError::Short { file: "j/a".into(), bytes: 77, bytes_expected: 4096 },
            RecoverError::Refused { file: "j/a".into(), offset: 77, reason: "no".into() },
        ];
        for language in Language::ALL {
            for error in &errors {
                let text = sentence(error, language);
                assert!(text.contains("j/a") && text.contains("77"), "{text}");
                assert!(is_damage(error));
            }
            assert!(way_out(Path::new("j"), language).contains("weir journal repair j --out COPY"));
        }
    }
}
