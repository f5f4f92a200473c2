//! What the built-in studies ask, in the reader's language. A study of the reader's own keeps the title it was given.

use crate::{language::Language, terms::Phrase};

const TITLES: &[Phrase] = &[
    [
        "Is epoll or io_uring cheaper for an echo server on this machine?",
        "이 머신의 에코 서버에서 CPU를 덜 쓰는 쪽은 epoll인가 io_uring인가?",
        "在本机上做回显服务器，epoll 与 io_uring 哪个更省 CPU？",
    ],
    [
        "Is epoll or poll cheaper for an echo server on this machine? (io_uring does not run here)",
        "이 머신의 에코 서버에서 CPU를 덜 쓰는 쪽은 epoll인가 poll인가? (여기서는 io_uring이 동작하지 않음)",
        "在本机上做回显服务器，epoll 与 poll 哪个更省 CPU？（此处无法运行 io_uring）",
    ],
    [
        "Is epoll or io_uring cheaper for an HTTP server on this machine?",
        "이 머신의 HTTP 서버에서 CPU를 덜 쓰는 쪽은 epoll인가 io_uring인가?",
        "在本机上做 HTTP 服务器，epoll 与 io_uring 哪个更省 CPU？",
    ],
    [
        "Is epoll or poll cheaper for an HTTP server on this machine? (io_uring does not run here)",
        "이 머신의 HTTP 서버에서 CPU를 덜 쓰는 쪽은 epoll인가 poll인가? (여기서는 io_uring이 동작하지 않음)",
        "在本机上做 HTTP 服务器，epoll 与 poll 哪个更省 CPU？（此处无法运行 io_uring）",
    ],
    [
        "How much of the published differences between HTTP servers does each of their causes make here?",
        "공개된 HTTP 서버 간 차이에서 각 원인이 차지하는 몫은 여기서 얼마인가?",
        "公开发表的 HTTP 服务器差异中，每个原因在本机上各占多少？",
    ],
    [
        "Which way of waiting serves a small page over HTTP with the least CPU?",
        "작은 페이지를 HTTP로 보낼 때 CPU를 가장 적게 쓰는 대기 방식은?",
        "用 HTTP 提供小页面时，哪种等待方式最省 CPU？",
    ],
    [
        "Which way of reaching the disk costs the least CPU?",
        "디스크에 접근하는 방식 가운데 CPU를 가장 적게 쓰는 것은?",
        "访问磁盘的各种方式中，哪种最省 CPU？",
    ],
    [
        "Which way to wait for a disk that others use too?",
        "다른 쪽도 함께 쓰는 디스크를 어떤 방식으로 기다릴 것인가?",
        "与他人共用的磁盘，应当用哪种方式等待？",
    ],
    [
        "What does it cost to hand an order to another worker, and which way of doing it is the cheapest?",
        "주문을 다른 워커로 넘기는 비용은 얼마이며, 가장 싼 방식은 무엇인가?",
        "把订单交给另一个工作线程要花多少代价，哪种方式最便宜？",
    ],
    [
        "Which runtime echoes a 64-byte message with the least CPU?",
        "64바이트 메시지를 에코할 때 CPU를 가장 적게 쓰는 런타임은?",
        "回显 64 字节消息时，哪个运行时最省 CPU？",
    ],
    [
        "Which server answers a small page over HTTP with the least CPU?",
        "작은 페이지를 HTTP로 응답할 때 CPU를 가장 적게 쓰는 서버는?",
        "用 HTTP 返回小页面时，哪个服务器最省 CPU？",
    ],
];

/// The title as the reader reads it.
pub(crate) fn told(title: &str, language: Language) -> &str {
    TITLES.iter().find(|phrase| phrase[0] == title).map_or(title, |phrase| language.choose(*phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_question_is_told_and_another_stays_as_it_is() {
        for phrase in TITLES {
            assert_eq!(told(phrase[0], Language::English), phrase[0]);
            assert_eq!(told(phrase[0], Language::Korean), phrase[1]);
            assert_eq!(told(phrase[0], Language::Chinese), phrase[2]);
        }
        assert_eq!(told("Mine?", Language::Korean), "Mine?");
    }
}
