//! Fixed texts that come from elsewhere, in the reader's language: what drivers were granted and why they do not run.
//! Only whole texts are looked up, or the items of a list; what is not here stays as it was said.

use crate::language::Language;

/// A text and what it reads in Korean and Chinese.
pub(crate) type Phrase = [&'static str; 3];

/// Why a driver does not run, and what told whether it does.
const SENTENCES: &[Phrase] = &[
    [
        "this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)",
        "이 커널에 io_uring이 없거나 seccomp 필터가 감추고 있음(ENOSYS)",
        "本内核没有 io_uring，或被 seccomp 过滤器隐藏（ENOSYS）",
    ],
    [
        "kernel.io_uring_disabled is 1 (EPERM)",
        "kernel.io_uring_disabled 값이 1임(EPERM)",
        "kernel.io_uring_disabled 为 1（EPERM）",
    ],
    [
        "kernel.io_uring_disabled is 2 (EPERM)",
        "kernel.io_uring_disabled 값이 2임(EPERM)",
        "kernel.io_uring_disabled 为 2（EPERM）",
    ],
    [
        "a sandbox forbids io_uring (EPERM): containers do so by default through seccomp",
        "샌드박스가 io_uring을 금지함(EPERM). 컨테이너는 기본적으로 seccomp로 막음",
        "沙箱禁止 io_uring（EPERM）：容器默认通过 seccomp 禁止",
    ],
    [
        "the kernel refused the ring's memory (ENOMEM)",
        "커널이 링에 필요한 메모리를 거부함(ENOMEM)",
        "内核拒绝为环分配内存（ENOMEM）",
    ],
    [
        "a byte sent through it over a socket pair",
        "소켓 쌍으로 1바이트를 보내 확인",
        "经它在套接字对上发送一个字节",
    ],
    ["a block of a file read through it", "파일의 블록 하나를 읽어서 확인", "经它读取文件的一个块"],
    [
        "two buffers written to a file in memory",
        "메모리 파일에 버퍼 두 개를 써서 확인",
        "向内存文件写入两个缓冲区",
    ],
    ["two buffers in one call", "호출 한 번에 버퍼 두 개", "一次调用写入两个缓冲区"],
    [
        "this kernel has no native AIO (CONFIG_AIO)",
        "이 커널에는 네이티브 AIO가 없음(CONFIG_AIO)",
        "本内核没有原生 AIO（CONFIG_AIO）",
    ],
];

/// What a driver was granted, in the parts of a list.
const GRANTED: &[Phrase] = &[
    ["edge-triggered", "에지 트리거", "边沿触发"],
    ["level-triggered", "레벨 트리거", "水平触发"],
    ["registered once", "한 번만 등록", "只注册一次"],
    ["the whole list in every call", "호출마다 목록 전체", "每次调用传入整个列表"],
    ["descriptors below 1024", "1024 미만의 디스크립터", "1024 以下的描述符"],
    ["one thread a connection", "연결당 스레드 하나", "每个连接一个线程"],
    ["deferred task run", "작업 지연 실행", "延迟任务运行"],
    ["single issuer", "단일 제출자", "单一提交者"],
    ["multishot receive", "멀티샷 수신", "多次触发接收"],
    ["no index array", "인덱스 배열 없음", "无索引数组"],
    ["registered ring", "등록된 링", "已注册的环"],
    ["completions skipped on success", "성공 시 완료 생략", "成功时省略完成项"],
    ["no iowait", "iowait 없음", "无 iowait"],
    ["basic ring", "기본 링", "基本环"],
];

/// The text in one language; `None` when it is not known and stays as it was said.
pub(crate) fn told(text: &str, language: Language) -> Option<String> {
    if language == Language::English {
        return Some(text.to_owned());
    }
    let whole = SENTENCES.iter().find(|phrase| phrase[0] == text);
    if let Some(phrase) = whole {
        return Some(language.choose(*phrase).to_owned());
    }
    let item = |item: &str| {
        let phrase = GRANTED.iter().find(|phrase| phrase[0] == item)?;
        Some(language.choose(*phrase))
    };
    let items: Option<Vec<&str>> = text.split(", ").map(item).collect();
    items.map(|items| items.join(language.list()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_left_alone() {
        for text in ["", "no luck", "edge-triggered, and more"] {
            assert_eq!(told(text, Language::Korean), None, "{text}");
            assert_eq!(told(text, Language::English).as_deref(), Some(text));
        }
        let granted = told("edge-triggered, registered once", Language::Chinese);
        assert_eq!(granted.as_deref(), Some("边沿触发、只注册一次"));
    }
}
