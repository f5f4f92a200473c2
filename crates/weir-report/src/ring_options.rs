//! Options of io_uring next to a map's guidance: what each changes, where it is expected to help and to cost, the
//! required kernel, and whether the study has an arm with it. The result of an arm is its standing on the map and
//! nothing else; without such an arm the study that measures it is named.

use weir_record::{
    finding::MessageKind,
    guidance::{Advice, Standing},
    kernel::KernelVersion,
    metric::Metric,
    spec::{ArmSpec, Subject},
};

use crate::{
    cited::of_no_cell,
    language::localized,
    maps, metrics,
    section::{Caption, Section},
    table::Table,
    view::View,
};

/// A text in three languages.
type Text = [&'static str; 3];

/// The driver with these options.
const RING: &str = "uring";

const TITLE: Text = ["Options of io_uring", "io_uring의 옵션", "io_uring 的选项"];

const HELP: Text = [
    "A server has these only where they are asked for (weir serve --option), and does not start where its kernel lacks \
     one. Where they pay and cost is what is expected. Whether it is so on this machine is measured by the study that \
     is named, or by this one where it has such an arm; its baseline may differ from it in more than the option.",
    "요청할 때만 쓰는 옵션입니다(weir serve --option). 커널에 없는 옵션을 요청하면 서버가 시작되지 않습니다. 이득과 비용은 예상입니다. 이 머신에서 실제로 그런지는 표에 적힌 실험으로 \
    측정합니다. 이 실험에 그런 비교 대상이 있으면 이 실험이 측정하며, 기준과의 차이가 이 옵션만은 아닐 수 있습니다.",
    "只有在要求时才使用这些选项（weir serve \
    --option）；内核缺少所要求的选项时，服务器不会启动。收益与开销均为预期。在本机上是否如此，由所列实验测量；若本实验有这样的方案，则由本实验测量，其基线与它的差别可能不止该选项。",
];

const HEAD: [Text; 6] = [
    ["option", "옵션", "选项"],
    ["what it changes", "변경 내용", "改变什么"],
    ["expected to pay", "이득이 예상되는 경우", "预期收益"],
    ["expected to cost", "비용이 예상되는 경우", "预期开销"],
    ["kernel", "커널", "内核"],
    ["in this study", "이 실험에서", "在本实验中"],
];

/// An option.
struct RingOption {
    /// Its name, as accepted by `--option`.
    name: &'static str,
    /// The value that enables it; `None` if any nonzero number does.
    value: Option<&'static str>,
    changes: Text,
    pays: Text,
    costs: Text,
    /// The kernel version that introduced what it needs.
    since: KernelVersion,
    /// Built-in studies that measure it; empty if the option is not available.
    studies: &'static [&'static str],
}

const OPTIONS: [RingOption; 6] = [
    RingOption {
        name: "send-zc-bytes",
        value: None,
        changes: [
            "chunks from this size on, 16 KiB or more, leave without a copy; each has a second completion and memory \
             to pin",
            "이 크기(16 KiB 이상)부터는 데이터를 복사하지 않고 보냄. 조각마다 완료가 하나 더 있고 메모리를 고정해야 함",
            "达到此大小（不小于 16 KiB）的数据块不经复制发出；每块多一个完成项，并需锁定内存",
        ],
        pays: [
            "large replies from memory, through a network card that reads memory by itself",
            "메모리를 직접 읽는(DMA) 네트워크 카드로, 메모리에 있는 큰 응답을 보낼 때",
            "通过可直接读取内存（DMA）的网卡，发送内存中的大响应",
        ],
        costs: [
            "over loopback, where the kernel copies all the same; with chunks so small that a copy is cheaper",
            "커널이 어차피 복사하는 루프백, 복사가 더 저렴한 작은 조각",
            "回环上内核照样复制；数据块小到复制更省",
        ],
        since: KernelVersion::new(6, 0),
        studies: &["uring-send-zc"],
    },
    RingOption {
        name: "minimum-wait-us",
        value: None,
        changes: [
            "a sleep lasts this long unless every connection has brought something: fewer wake-ups, each for more",
            "모든 연결에 데이터가 도착하지 않는 한 이 시간만큼 잠듦. 깨어나는 횟수가 줄고 한 번에 더 많이 처리함",
            "除非每个连接都有数据到达，否则睡满这段时间：唤醒更少，每次处理更多",
        ],
        pays: [
            "many connections whose requests arrive at a busy server one by one",
            "많은 연결의 요청이 바쁜 서버에 하나씩 도착할 때",
            "众多连接的请求逐个到达繁忙的服务器",
        ],
        costs: [
            "latency, by as much as the wait, and more the less there is to do; with one connection nothing changes",
            "지연 시간이 최대 이 시간만큼 늘어남. 할 일이 적을수록 많이 늘어남. 연결이 하나면 달라지지 않음",
            "延迟增加，至多为这段等待时间，任务越少越明显；只有一个连接时没有变化",
        ],
        since: KernelVersion::new(6, 12),
        studies: &["uring-minimum-wait"],
    },
    RingOption {
        name: "receive",
        value: Some("bundle"),
        changes: [
            "one completion may fill several receive buffers",
            "완료 하나로 수신 버퍼 여러 개를 채울 수 있음",
            "一个完成项可填满多个接收缓冲区",
        ],
        pays: [
            "arrivals larger than a receive buffer: much in flight on each connection, and small buffers",
            "한 번에 도착하는 데이터가 수신 버퍼보다 클 때. 연결마다 동시에 처리하는 양이 많고 버퍼가 작은 경우",
            "一次到达超过一个接收缓冲区：每个连接在途数据多，缓冲区小",
        ],
        costs: [
            "a little work in each completion where little arrives at a time; buffers that follow what arrives, the \
             default, leave little to bundle; on many kernels from before the spring of 2026 a connection that its peer \
             resets right behind its data waits forever",
            "데이터가 조금씩 도착하면 완료마다 비용이 조금 늘어남. 도착량에 맞추는 버퍼(기본값)에서는 묶을 것이 적음. 2026년 봄 이전의 많은 커널에서는, 상대가 데이터를 보낸 직후 리셋한 \
            연결이 영원히 기다림",
            "每次到达很少时，每个完成项略增开销；缓冲区随到达量调整（默认）时，可合并的很少；2026 年春季之前的许多内核上，\
             对端在数据之后立即重置的连接会一直等待",
        ],
        since: KernelVersion::new(6, 10),
        studies: &["uring-bundle"],
    },
    RingOption {
        name: "receive",
        value: Some("incremental"),
        changes: [
            "a buffer would be filled arrival by arrival, whichever connections these are of",
            "버퍼 하나를 여러 연결에서 도착하는 순서대로 채움",
            "一个缓冲区将按到达顺序依次填充，不论来自哪个连接",
        ],
        pays: [
            "many small arrivals, which would need fewer buffers",
            "작은 데이터가 자주 도착할 때 필요한 버퍼가 줄어듦",
            "大量小块数据到达时，所需缓冲区更少",
        ],
        costs: [
            "a completion does not say where in the buffer its bytes are, so that one connection could be given the \
             bytes of another",
            "완료가 버퍼 안의 위치를 알려 주지 않으므로, 한 연결의 바이트가 다른 연결에 전달될 수 있음",
            "完成项不说明其字节在缓冲区中的位置，一个连接可能拿到另一个连接的字节",
        ],
        since: KernelVersion::new(6, 12),
        studies: &[],
    },
    RingOption {
        name: "sqpoll-idle-ms",
        value: None,
        changes: [
            "a thread of the kernel submits, and sleeps after so long without work: no call to submit, still one \
             to wait",
            "커널 스레드가 대신 제출하고, 이 시간 동안 할 일이 없으면 잠듦. 제출 호출은 없어지고 대기 호출은 남음",
            "由内核线程代为提交，空闲这么久后休眠：省去提交调用，等待调用仍在",
        ],
        pays: [
            "a CPU beside the worker's is idle, and so much is sent that the thread never sleeps",
            "워커 옆에 유휴 CPU가 있고, 스레드가 잠들지 않을 만큼 많이 보낼 때",
            "工作线程旁有空闲 CPU，且发送量大到该线程从不休眠",
        ],
        costs: [
            "a CPU that looks for work; most where the thread shares the worker's, as with workers that are pinned \
             to one",
            "할 일을 계속 찾는 CPU. 워커를 CPU 하나에 고정하는 경우처럼 스레드가 워커와 CPU를 나눠 쓸 때 비용이 가장 큼",
            "一个不停寻找任务的 CPU；该线程与工作线程共用 CPU（如绑定到单个 CPU 时）代价最大",
        ],
        since: KernelVersion::new(5, 13),
        studies: &["uring-sqpoll", "uring-sqpoll-two-cpus"],
    },
    RingOption {
        name: "fixed-files",
        value: Some("on"),
        changes: [
            "sockets are in the ring's table of files: no operation looks its descriptor up",
            "소켓을 링의 파일 테이블에 등록하므로 작업마다 디스크립터를 찾지 않음",
            "套接字放在环的文件表中：操作无需查找描述符",
        ],
        pays: ["connections that stay", "오래 유지되는 연결", "长期保持的连接"],
        costs: [
            "a call more to open a connection and one to close it: connections for one request each",
            "연결을 열 때와 닫을 때 호출이 하나씩 늘어남. 요청마다 새로 맺는 연결에서 비용이 큼",
            "打开和关闭连接各多一次调用：每个请求新建的连接",
        ],
        since: KernelVersion::new(6, 13),
        studies: &["uring-fixed-files"],
    },
];

impl RingOption {
    /// `receive=bundle`, or the name alone if its value is a number.
    fn shown(&self) -> String {
        self.value.map_or_else(|| self.name.to_owned(), |value| format!("{}={value}", self.name))
    }

    /// Whether the server of an arm uses it. A command may also run such a server.
    fn is_set(&self, subject: &Subject) -> bool {
        let is_asked = |value: &str| self.value.map_or(value != "0", |asked| value == asked);
        match subject {
            Subject::Weir { options, .. } => options.get(self.name).is_some_and(|value| is_asked(value)),
            Subject::Command { argv } => argv.iter().any(|word| {
                let setting = word.strip_prefix("--option=").unwrap_or(word);
                setting.split_once('=').is_some_and(|(name, value)| name == self.name && is_asked(value))
            }),
            Subject::Running(_) | Subject::Gateway(_) | Subject::Storage(_) | Subject::Fio { .. } => false,
        }
    }
}

/// The table as a separate section.
pub(crate) fn section(view: &View<'_>) -> Option<Section> {
    table(view)
        .map(|table| Section { tables: vec![table], ..Section::new(Caption::Own(TITLE), Caption::Own(HELP)) })
}

/// The table as one of several, with its name and notes.
pub(crate) fn titled(view: &View<'_>) -> Option<Table> {
    let [title, help] = [TITLE, HELP].map(|text| view.language.choose(text));
    table(view).map(|table| table.titled(title, of_no_cell([help.to_owned()])))
}

/// A row for each option; `None` if no server uses io_uring.
fn table(view: &View<'_>) -> Option<Table> {
    let is_served = matches!(view.kind(), MessageKind::Message | MessageKind::Request);
    let has_ring = view.result.spec.arms.iter().any(|arm| is_on_ring(&arm.subject));
    (is_served && has_ring).then(|| {
        let head = HEAD.iter().map(|title| view.language.choose(*title).to_owned());
        Table::with_head(head.collect(), HEAD.len(), OPTIONS.iter().map(|it| row(view, it)).collect())
    })
}

/// Whether an arm's server uses io_uring.
fn is_on_ring(subject: &Subject) -> bool {
    match subject {
        Subject::Command { argv } => argv.windows(2).any(|two| two[0] == "--driver" && two[1] == RING),
        _ => subject.driver() == Some(RING),
    }
}

fn row(view: &View<'_>, option: &RingOption) -> Vec<String> {
    let localized = |text: Text| view.language.choose(text).to_owned();
    vec![
        option.shown(),
        localized(option.changes),
        localized(option.pays),
        localized(option.costs),
        since(view, option.since),
        here(view, option),
    ]
}

/// The required kernel, and whether this one is older.
fn since(view: &View<'_>, version: KernelVersion) -> String {
    let own = KernelVersion::of_release(&view.result.fingerprint.kernel_release);
    if own.is_none_or(|own| own >= version) {
        return version.to_string();
    }
    localized!(
        view.language,
        "{version}; going by its version, this kernel lacks it",
        "{version}. 버전으로 볼 때 이 커널에 없음",
        "{version}；按版本号，本内核没有",
    )
}

/// The study's result for it, or where it is measured.
fn here(view: &View<'_>, option: &RingOption) -> String {
    let language = view.language;
    if option.studies.is_empty() {
        return language.choose(["not offered", "제공하지 않음", "不提供"]).to_owned();
    }
    let arms = view.result.spec.arms.iter().filter(|arm| option.is_set(&arm.subject));
    let known: Vec<String> = arms.flat_map(|arm| of_arm(view, arm)).collect();
    if !known.is_empty() {
        return known.join(language.semicolon());
    }
    let commands: Vec<String> = option.studies.iter().map(|file| format!("weir study {file}")).collect();
    let commands = commands.join(language.list());
    localized!(
        language,
        "not part of this study: {commands}",
        "이 실험에 없음: {commands}",
        "不在本实验中：{commands}",
    )
}

/// The result of an arm with the option: its standing on each map, or why there is none.
fn of_arm(view: &View<'_>, arm: &ArmSpec) -> Vec<String> {
    let (language, result, name) = (view.language, view.result, &arm.name);
    if let Some(missing) = result.missing_arms.iter().find(|missing| missing.name == *name) {
        let reason = view.finding(&missing.reason);
        return vec![localized!(
            language,
            "{name} could not run here: {reason}",
            "{name}: 이 머신에서 실행할 수 없음. {reason}",
            "{name} 无法在本机运行：{reason}",
        )];
    }
    let advice = result.guidance.iter().flat_map(|it| &it.advice).filter(|it| it.arm == *name);
    let known: Vec<String> = advice.map(|it| standing(view, it)).collect();
    match known.is_empty() {
        false => known,
        true => vec![localized!(
            language,
            "{name} is part of this study, without its own standing",
            "{name}: 이 실험에 있으나 자체 판정은 없음",
            "{name}：在本实验中，但没有自己的判定",
        )],
    }
}

/// The standing of an arm, in short.
fn standing(view: &View<'_>, it: &Advice) -> String {
    let Advice { baseline, less, more, cells, .. } = it;
    let arm = maps::arm(view, &it.arm, it.map);
    let (language, noun) = (view.language, metrics::prose(view, Metric::ServerCpuPerMessage));
    let found = match it.standing {
        Standing::Less => localized!(
            language,
            "less {noun} than {baseline} in {less} of {cells} cells",
            "조건 {cells}개 중 {less}개에서 {noun}이 {baseline}보다 적음",
            "{cells} 个条件中有 {less} 个的{noun}低于 {baseline}",
        ),
        Standing::More => localized!(
            language,
            "more {noun} than {baseline} in {more} of {cells} cells",
            "조건 {cells}개 중 {more}개에서 {noun}이 {baseline}보다 많음",
            "{cells} 个条件中有 {more} 个的{noun}高于 {baseline}",
        ),
        Standing::Both => localized!(
            language,
            "less {noun} than {baseline} in {less} of {cells} cells, more in {more}",
            "조건 {cells}개 중 {less}개에서 {noun}이 {baseline}보다 적고 {more}개에서 많음",
            "{cells} 个条件中有 {less} 个的{noun}低于 {baseline}，{more} 个高于它",
        ),
        Standing::Undetected => localized!(
            language,
            "no difference in {noun} from {baseline} was detected",
            "{baseline} 대비 {noun} 차이가 검출되지 않음",
            "未检出与 {baseline} 在{noun}上的差异",
        ),
        Standing::Untold => localized!(
            language,
            "{noun} may be compared with that of {baseline} in no cell",
            "{baseline} 대비 {noun}을 비교할 수 있는 조건이 없음",
            "没有可与 {baseline} 比较{noun}的条件",
        ),
    };
    localized!(
        language,
        "{arm}, measured here: {found}",
        "{arm}, 이 실험의 측정: {found}",
        "{arm}，本次实测：{found}",
    )
}

#[cfg(test)]
mod tests {
    use weir_record::kernel::FEATURES;

    use super::*;

    #[test]
    fn every_text_is_written_in_three_scripts() {
        let of_options = OPTIONS.iter().flat_map(|it| [it.changes, it.pays, it.costs]);
        for [english, korean, chinese] in of_options.chain(HEAD).chain([TITLE, HELP]) {
            assert!(english.is_ascii(), "{english}");
            assert!(korean.chars().any(|letter| ('가'..='힣').contains(&letter)), "{korean}");
            assert!(chinese.chars().any(|letter| ('一'..='鿿').contains(&letter)), "{chinese}");
            assert!(!chinese.chars().any(|letter| ('가'..='힣').contains(&letter)), "{chinese}");
        }
    }

    #[test]
    fn every_option_that_the_kernel_may_lack_has_a_row_with_the_kernel_that_brought_it() {
        for (name, since) in FEATURES.iter().filter_map(|row| Some((row.option?, row.since))) {
            let option = OPTIONS.iter().find(|it| it.name == name).expect("it has a row");
            assert_eq!(option.since, since, "{name}");
        }
    }

    #[test]
    fn studies_are_those_of_the_guide() {
        let guide = include_str!("../../../docs/guide/io-models.md");
        for option in &OPTIONS {
            let start = format!("| `{}` |", option.name);
            let row = guide.lines().find(|line| line.starts_with(&start)).expect("it has a row in the guide");
            for file in option.studies {
                assert!(row.contains(&format!("](../studies/{file}.toml)")), "{file}");
            }
        }
    }
}
