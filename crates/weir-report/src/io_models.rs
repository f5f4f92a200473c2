//! I/O models side by side: a description from the manual pages, and whether this machine supports each, as the
//! laboratory found when the study was made.

use weir_record::{doctor::FindingState, spec::IoModel};

use crate::{table::Table, view::View, words::Word};

/// A text in three languages.
type Text = [&'static str; 3];

/// What an I/O model is.
struct Guide {
    name: &'static str,
    /// Readiness or completion: what the program is notified of.
    model: Text,
    /// The system, or the kernel version, that introduced it.
    since: &'static str,
    strength: Text,
    weakness: Text,
}

const SYNCHRONOUS: Text = ["the call waits", "호출이 기다림", "调用等待"];
const READINESS: Text = ["readiness", "준비 알림", "就绪通知"];
const COMPLETION: Text = ["completion", "완료 알림", "完成通知"];

const GUIDES: [Guide; 8] = [
    Guide {
        name: "blocking",
        model: SYNCHRONOUS,
        since: "Unix",
        strength: [
            "the simplest program: one call after the other",
            "호출을 차례로 하는 가장 단순한 프로그램",
            "程序最简单：依次调用即可",
        ],
        weakness: [
            "a thread, its stack and a context switch for every connection that waits",
            "기다리는 연결마다 스레드와 스택, 컨텍스트 스위치가 필요함",
            "每个等待的连接都需要一个线程、一个栈和一次上下文切换",
        ],
    },
    Guide {
        name: "select",
        model: READINESS,
        since: "4.2BSD",
        strength: ["every Unix has it", "모든 유닉스에 있음", "所有 Unix 都有"],
        weakness: [
            "descriptors below 1024 only; its sets are passed and scanned anew in every call",
            "1024 미만의 디스크립터만 가능하며, 호출마다 집합을 다시 넘기고 훑음",
            "只支持 1024 以下的描述符；每次调用都要重新传入并扫描集合",
        ],
    },
    Guide {
        name: "poll",
        model: READINESS,
        since: "Linux 2.1.23",
        strength: ["any number of descriptors", "디스크립터 수에 제한이 없음", "描述符数量不限"],
        weakness: [
            "the whole list is passed and scanned in every call",
            "호출마다 목록 전체를 넘기고 훑음",
            "每次调用都要传入并扫描整个列表",
        ],
    },
    Guide {
        name: "epoll",
        model: READINESS,
        since: "Linux 2.6",
        strength: [
            "registered once; callbacks on wait queues collect what is ready, so that idle connections cost nothing in a call",
            "한 번만 등록함. 대기 큐의 콜백이 준비된 것만 모으므로 유휴 연결은 호출 비용을 늘리지 않음",
            "只需注册一次；等待队列上的回调收集就绪项，空闲连接不增加调用开销",
        ],
        weakness: [
            "reading and writing are further calls; files are always ready, so it does not help with them",
            "읽기와 쓰기에 별도의 호출이 필요함. 파일은 항상 준비 상태이므로 도움이 되지 않음",
            "读写仍需另外的调用；文件总是就绪，因此对文件没有帮助",
        ],
    },
    Guide {
        name: "posix-aio",
        model: COMPLETION,
        since: "POSIX.1b (1993), glibc 2.1",
        strength: [
            "in the C library of every Unix; any kind of file",
            "모든 유닉스의 C 라이브러리에 있으며, 어떤 파일에도 쓸 수 있음",
            "各 Unix 的 C 库都有；适用于任何文件",
        ],
        weakness: [
            "on Linux threads of the library that block: more context switches than blocking oneself",
            "리눅스에서는 라이브러리의 스레드가 대신 기다리므로, 직접 기다릴 때보다 컨텍스트 스위치가 많음",
            "在 Linux 上由库的线程代为阻塞：上下文切换比自己阻塞更多",
        ],
    },
    Guide {
        name: "aio",
        model: COMPLETION,
        since: "Linux 2.6",
        strength: [
            "many reads and writes of files in flight from one thread",
            "스레드 하나로 여러 파일의 읽기와 쓰기를 동시에 진행함",
            "单个线程可同时进行多个文件读写",
        ],
        weakness: [
            "waits inside the call unless the file was opened with O_DIRECT; of sockets it can only poll (4.19); POSIX AIO \
             is another thing, threads of the C library",
            "O_DIRECT로 열지 않은 파일은 호출 안에서 기다림. 소켓은 폴링만 가능함(4.19). POSIX AIO는 다른 기능이며 C 라이브러리의 스레드로 구현됨",
            "文件若不以 O_DIRECT 打开，就会在调用内等待；对套接字只能轮询（4.19）；POSIX AIO 是另一种机制，由 C 库的线程实现",
        ],
    },
    Guide {
        name: "io_uring",
        model: COMPLETION,
        since: "Linux 5.1",
        strength: [
            "files, sockets and timers alike; many operations in one system call, or none",
            "파일, 소켓, 타이머를 같은 방식으로 다룸. 시스템 콜 한 번으로, 또는 시스템 콜 없이 여러 작업을 처리함",
            "文件、套接字与定时器使用同一方式；一次系统调用可完成多个操作，甚至无需系统调用",
        ],
        weakness: [
            "abilities differ from kernel to kernel, containers often forbid it; a plain read or write is copied as ever",
            "커널마다 쓸 수 있는 기능이 다르고, 컨테이너에서 막는 경우가 많음. 일반 읽기와 쓰기의 복사는 줄지 않음",
            "各内核支持的功能不同，容器常常禁止；普通读写的复制并未减少",
        ],
    },
    Guide {
        name: "pwritev",
        model: SYNCHRONOUS,
        since: "Linux 2.6.30",
        strength: [
            "several buffers at a position of a file in one call",
            "호출 한 번으로 버퍼 여러 개를 파일의 지정한 위치에 씀",
            "一次调用把多个缓冲区写到文件的指定位置",
        ],
        weakness: [
            "not a separate I/O model, the call waits; it gathers only, preadv scatters",
            "별도의 I/O 모델이 아니며 호출 자체가 기다림. 모아 쓰기만 하고, 나눠 읽기는 preadv가 함",
            "不是独立的 I/O 模型，调用本身会等待；只做聚集写，分散读由 preadv 完成",
        ],
    },
];

/// Whether the study compares I/O models in general.
pub(crate) fn has_io_models(view: &View<'_>) -> bool {
    !view.result.spec.io_models.is_empty()
}

/// Each model with its description, its availability, and the source of that.
pub(crate) fn table(view: &View<'_>) -> Table {
    let rows = view.result.spec.io_models.iter().map(|way| {
        let guide = GUIDES.iter().find(|guide| guide.name == way.name);
        let localized = |text: fn(&Guide) -> Text| {
            guide.map_or(crate::format::ABSENT, |guide| view.language.choose(text(guide))).to_owned()
        };
        vec![
            way.name.clone(),
            here(view, way),
            view.finding(&way.source),
            localized(|guide| guide.model),
            guide.map_or(crate::format::ABSENT, |guide| guide.since).to_owned(),
            localized(|guide| guide.strength),
            localized(|guide| guide.weakness),
        ]
    });
    let columns = [
        Word::Way,
        Word::WayHere,
        Word::IoModelSource,
        Word::IoModelModel,
        Word::IoModelSince,
        Word::IoModelStrength,
        Word::IoModelWeakness,
    ];
    Table::new(view, &columns, &[], rows.collect())
}

/// `yes: edge-triggered, registered once`.
pub(crate) fn here(view: &View<'_>, way: &IoModel) -> String {
    let colon = view.language.colon();
    let mut text = format!("{}{colon}{}", view.word(state(way.state)), view.finding(&way.detail));
    if let Some(unlock) = &way.unlock {
        text.push_str(&format!("; {}{colon}{}", view.word(Word::Unlock), view.finding(unlock)));
    }
    text
}

fn state(state: FindingState) -> Word {
    match state {
        FindingState::Yes => Word::IoModelYes,
        FindingState::Limited => Word::WayLimited,
        FindingState::No => Word::IoModelNo,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guide_is_written_in_three_scripts() {
        for guide in &GUIDES {
            for [english, korean, chinese] in [guide.model, guide.strength, guide.weakness] {
                assert!(english.is_ascii(), "{english}");
                assert!(korean.chars().any(|letter| ('가'..='힣').contains(&letter)), "{korean}");
                assert!(chinese.chars().any(|letter| ('一'..='鿿').contains(&letter)), "{chinese}");
                assert!(!chinese.chars().any(|letter| ('가'..='힣').contains(&letter)), "{chinese}");
            }
        }
    }
}
