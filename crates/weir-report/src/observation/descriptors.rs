//! Amounts that a process moved through each of its descriptors.

use weir_record::observation::{
    DescriptorFigures, DescriptorKind, DescriptorMark, DescriptorTable, OUTSIDE, OtherDescriptors,
    SIZE_BUCKETS, Trace, Transfers,
};

use super::{
    blocks::{Block, Columns, Window},
    sentences,
    tables::{Legend, all_columns, explained},
};
use crate::{
    display::{printable, truncate},
    format::{self, ABSENT},
    language::{Language, localized},
};

/// Most rows in a view; the record contains more.
const ROWS_MAX: usize = 24;
/// Most columns of a name.
const NAME_COLUMNS_MAX: usize = 60;

const LEGEND: [Legend; 2] = [
    (
        4,
        [
            "half of the calls moved fewer bytes",
            "호출의 절반은 이보다 적은 바이트를 전송함",
            "一半的调用少于此字节数",
        ],
    ),
    (0, ["process and number", "프로세스와 번호", "进程与编号"]),
];

pub(super) fn block(trace: &Trace, language: Language) -> Option<Block> {
    let found = trace.descriptors.as_ref()?;
    let title = language.choose(["By descriptor", "디스크립터별", "按描述符"]);
    let help = language.choose([
        "What system calls answered, by the descriptor that they were given. Operations of io_uring, recvmmsg and sendmmsg \
         are in no row. Names are those of /proc while it was looked at: several in turn means that the number was closed \
         and given out again, and that the name is of the last one that was seen.",
        "시스템 콜의 반환값을 그 호출이 받은 디스크립터별로 더했습니다. io_uring 작업과 recvmmsg, sendmmsg는 들어 있지 않습니다. 이름은 조회할 때 /proc에 있던 값입니다. \
        '차례로 여럿'은 번호를 닫고 다시 썼다는 뜻이며, 이름은 마지막으로 확인한 것입니다.",
        "按调用所用的描述符汇总系统调用的返回值。io_uring 的操作以及 recvmmsg、sendmmsg 不在其中。名称取自查看时的 /proc；“先后多个”表示该编号关闭后又被重用，名称为最后看到的那个。",
    ]);
    Some(Block {
        title: title.to_owned(),
        help: help.to_owned(),
        lines: lines(found, trace, language),
        table: table(found, trace, language),
        ..Block::default()
    })
}

fn lines(found: &DescriptorTable, trace: &Trace, language: Language) -> Vec<String> {
    let none = [
        "No system call moved bytes through a descriptor.",
        "디스크립터로 바이트를 전송한 시스템 콜이 없습니다.",
        "没有系统调用通过描述符传输字节。",
    ];
    let cut = [
        "This machine has more sockets than are read of the kernel's tables (4 MiB of each): those beyond have the \
         kernel's name, socket:[N], in place of their addresses.",
        "이 머신의 소켓이 커널 표에서 읽는 양(표마다 4 MiB)보다 많습니다. 그보다 뒤의 소켓은 주소 대신 커널의 이름 socket:[N]으로 표시합니다.",
        "本机的套接字多于从内核表中读取的量（每张表 4 MiB）：其后的套接字以内核名称 socket:[N] 代替地址。",
    ];
    let told = [(found.rows.is_empty(), none), (found.are_sockets_cut, cut)];
    let told = told.into_iter().filter(|(is_told, _)| *is_told);
    let ring = sentences::bytes_of_rings(trace, language);
    told.map(|(_, texts)| language.choose(texts).to_owned()).chain(ring).collect()
}

fn table(found: &DescriptorTable, trace: &Trace, language: Language) -> Option<Columns> {
    let head = match language {
        Language::English => {
            ["descriptor", "file or peer", "read", "reads", "p50", "written", "writes", "p50", ""]
        }
        Language::Korean => ["디스크립터", "파일 또는 상대", "읽음", "읽기", "p50", "씀", "쓰기", "p50", ""],
        Language::Chinese => ["描述符", "文件或对端", "读取", "读次数", "p50", "写入", "写次数", "p50", ""],
    };
    let window = Window(trace.window_ns);
    let row = |it: &DescriptorFigures| {
        let mut row = vec![number(it), name(it, language)];
        row.extend(cells(&it.read, &window).into_iter().chain(cells(&it.written, &window)));
        row.push(mark(it, language));
        row
    };
    let mut rows: Vec<Vec<String>> = found.rows.iter().take(ROWS_MAX).map(row).collect();
    rows.extend(others(found, language).map(|(name, others)| {
        let mut row = vec![ABSENT.to_owned(), name];
        row.extend(cells(&others.read, &window).into_iter().chain(cells(&others.written, &window)));
        row.push(String::new());
        row
    }));
    let head = head.map(str::to_owned).to_vec();
    let table = all_columns(head, 2, rows, &[7, 4, 6, 3])?;
    Some(explained(table, &LEGEND, language))
}

/// Descriptors without a row here, combined.
fn others(found: &DescriptorTable, language: Language) -> Option<(String, OtherDescriptors)> {
    let mut all = found.others.clone();
    for row in found.rows.iter().skip(ROWS_MAX) {
        all.count = all.count.saturating_add(1);
        all.read.add(&row.read);
        all.written.add(&row.written);
    }
    let count = format::count(all.count);
    let name = match (all.count, all.are_more) {
        (0, false) => return None,
        (_, true) => localized!(
            language,
            "others: {count} and more, for which the table had no room",
            "그 밖에 {count}개, 표에 자리가 없던 것 포함",
            "其他 {count} 个，以及表中放不下的",
        ),
        _ => localized!(language, "others: {count}", "그 밖에 {count}개", "其他 {count} 个"),
    };
    Some((name, all))
}

fn number(it: &DescriptorFigures) -> String {
    let process = if it.pid == OUTSIDE { ABSENT.to_owned() } else { it.pid.to_string() };
    format!("{process}:{}", it.descriptor)
}

fn name(it: &DescriptorFigures, language: Language) -> String {
    if it.pid == OUTSIDE {
        let below = [
            "of a process in a PID namespace further below",
            "더 안쪽 PID 네임스페이스의 프로세스",
            "属于更内层 PID 命名空间的进程",
        ];
        return language.choose(below).to_owned();
    }
    let kind = match it.kind {
        DescriptorKind::Tcp => "tcp ",
        DescriptorKind::Udp => "udp ",
        DescriptorKind::Unix => "unix ",
        DescriptorKind::Unknown => {
            let unseen = ["gone before it was looked at", "보기 전에 사라짐", "查看前已消失"];
            return language.choose(unseen).to_owned();
        }
        DescriptorKind::File | DescriptorKind::Socket | DescriptorKind::Pipe | DescriptorKind::Other => "",
    };
    let local = it.local.as_deref().map(|local| format!("@ {local}"));
    let name = it.name.clone().or(local).unwrap_or_default();
    truncate(printable(&format!("{kind}{name}")).trim_end(), NAME_COLUMNS_MAX)
}

fn cells(it: &Transfers, window: &Window) -> [String; 3] {
    if it.calls == 0 && it.failed == 0 {
        return [ABSENT, ABSENT, ABSENT].map(str::to_owned);
    }
    let bytes = format!("{}/s", format::memory(it.bytes as f64 * 1e9 / window.0.max(1) as f64));
    [bytes, window.rate(it.calls), half_below(it)]
}

/// The size that half of the calls did not reach.
fn half_below(it: &Transfers) -> String {
    match it.below_bytes(0.5) {
        _ if it.calls == 0 => ABSENT.to_owned(),
        Some(1) => "0 B".to_owned(),
        Some(bytes) => format!("<{}", format::memory(bytes as f64)),
        None => format!("≥{}", format::memory((1_u64 << (SIZE_BUCKETS - 2)) as f64)),
    }
}

fn mark(it: &DescriptorFigures, language: Language) -> String {
    let count = format::count(it.users);
    match it.state {
        DescriptorMark::Open => String::new(),
        DescriptorMark::Gone => language.choose(["gone", "닫힘", "已关闭"]).to_owned(),
        DescriptorMark::Reused => {
            localized!(language, "{count} in turn", "차례로 {count}개", "先后 {count} 个")
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_record::observation::UringFigures;

    use super::*;

    fn moved(descriptor: u32, bytes: u64) -> DescriptorFigures {
        DescriptorFigures {
            pid: 42,
            descriptor,
            kind: DescriptorKind::Tcp,
            name: Some("10.0.0.1:443".to_owned()),
            local: Some("10.0.0.2:5000".to_owned()),
            read: Transfers { calls: 10, failed: 2, bytes, sizes: vec![0, 0, 0, 0, 0, 0, 0, 10] },
            ..DescriptorFigures::default()
        }
    }

    fn trace(rows: Vec<DescriptorFigures>, others: OtherDescriptors) -> Trace {
        let descriptors = Some(DescriptorTable { rows, others, ..DescriptorTable::default() });
        Trace { window_ns: 1_000_000_000, descriptors, ..Trace::default() }
    }

    #[test]
    fn what_is_not_in_the_table_is_told_below_it() {
        let mut trace = trace(vec![moved(9, 1_000)], OtherDescriptors::default());
        let lines = |trace: &Trace, language| block(trace, language).expect("there are rows").lines;
        assert!(lines(&trace, Language::English).is_empty());
        let submitted = UringFigures { event: "submit_req".to_owned(), count: 1, elsewhere_count: 0 };
        trace.uring = vec![submitted];
        trace.descriptors.as_mut().expect("there are rows").are_sockets_cut = true;
        for language in Language::ALL {
            let told = lines(&trace, language);
            assert!(told[0].contains("4 MiB") && told[1].contains("io_uring"), "{told:?}");
        }
    }

    #[test]
    fn a_process_without_a_number_here_has_none_in_its_rows() {
        let below = DescriptorFigures {
            pid: OUTSIDE,
            kind: DescriptorKind::Unknown,
            name: None,
            local: None,
            ..moved(5, 9)
        };
        let trace = trace(vec![below], OtherDescriptors::default());
        let table = block(&trace, Language::English).and_then(|block| block.table).expect("a row").table;
        assert_eq!(table.rows[0][0], format!("{ABSENT}:5"));
        assert!(table.rows[0][1].contains("PID namespace"), "{:?}", table.rows[0]);
    }

    #[test]
    fn a_row_has_its_peer_its_bytes_and_how_large_its_messages_are() {
        let listening = DescriptorFigures { name: None, ..moved(3, 0) };
        let gone =
            DescriptorFigures { kind: DescriptorKind::Unknown, state: DescriptorMark::Gone, ..moved(5, 9) };
        let reused = DescriptorFigures { state: DescriptorMark::Reused, users: 7, ..moved(6, 9) };
        let trace = trace(vec![moved(9, 1_000), listening, gone, reused], OtherDescriptors::default());
        let found =
            block(&trace, Language::English).and_then(|block| block.table).expect("there are rows").table;
        assert_eq!(
            found.rows[0],
            ["42:9", "tcp 10.0.0.1:443", "1000 B/s", "10/s", "<128 B", ABSENT, ABSENT, ABSENT, ""]
        );
        assert_eq!(found.rows[1][1], "tcp @ 10.0.0.2:5000");
        assert_eq!(
            (found.rows[2][1].as_str(), found.rows[2][8].as_str()),
            ("gone before it was looked at", "gone")
        );
        assert_eq!(found.rows[3][8], "7 in turn");
        assert_eq!(found.rows.len(), 4, "nothing is left for others");
    }

    #[test]
    fn what_has_no_row_is_in_one_and_a_record_without_descriptors_has_no_block() {
        let rows = (0..ROWS_MAX as u32 + 3).map(|it| moved(it, 100)).collect();
        let others =
            OtherDescriptors { count: 5, are_more: true, read: moved(0, 7).read, ..Default::default() };
        let trace = trace(rows, others);
        for language in Language::ALL {
            let table = block(&trace, language).and_then(|block| block.table).expect("there are rows").table;
            let last = table.rows.last().expect("there are rows");
            assert!(last[1].contains('8') && last[2].contains("307"), "{last:?}");
        }
        let none = block(&super::tests::trace(Vec::new(), OtherDescriptors::default()), Language::English);
        assert_eq!(none.expect("it was asked for").lines.len(), 1);
        assert!(block(&Trace::default(), Language::English).is_none());
    }
}
