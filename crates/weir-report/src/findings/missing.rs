//! Features that this machine has and lacks, the source of that, and the remedy.

use weir_record::finding::{OfDrivers, OfProbes, OfPrograms, OfRemedies};

use crate::language::{Language, localized};

/// Features granted to a driver.
const FEATURES: [(&str, [&str; 3]); 23] = [
    ("edge-triggered", ["edge-triggered", "에지 트리거", "边沿触发"]),
    ("level-triggered", ["level-triggered", "레벨 트리거", "水平触发"]),
    ("registered-once", ["registered once", "한 번만 등록", "只注册一次"]),
    (
        "whole-list-in-every-call",
        ["the whole list in every call", "호출마다 목록 전체", "每次调用传入整个列表"],
    ),
    ("descriptors-below-1024", ["descriptors below 1024", "1024 미만의 디스크립터", "1024 以下的描述符"]),
    ("one-thread-a-connection", ["one thread a connection", "연결당 스레드 하나", "每个连接一个线程"]),
    ("deferred-task-run", ["deferred task run", "지연 작업 실행", "延迟任务运行"]),
    ("single-issuer", ["single issuer", "단일 제출자", "单一提交者"]),
    ("multishot-receive", ["multishot receive", "멀티샷 수신", "多次触发接收"]),
    ("no-index-array", ["ring without index array", "인덱스 배열 없는 링", "无索引数组的环"]),
    ("registered-ring", ["registered ring", "등록한 링", "已注册的环"]),
    (
        "completions-skipped-on-success",
        ["completions skipped on success", "성공 시 완료 생략", "成功时省略完成项"],
    ),
    ("cooperative-task-run", ["cooperative task run", "협조적 작업 실행", "协作式任务运行"]),
    ("buffer-ring", ["rings of provided buffers", "제공 버퍼 링", "提供缓冲区的环"]),
    ("multishot-accept", ["multishot accept", "멀티샷 accept", "多次触发 accept"]),
    ("submit-all", ["submissions go on after a failure", "실패 후에도 계속 제출", "出错后继续提交"]),
    ("ring-messages", ["messages between rings", "링 간 메시지", "环间消息"]),
    ("multishot-poll", ["multishot poll", "멀티샷 poll", "多次触发 poll"]),
    (
        "wait-arguments",
        ["wait with a time limit in one call", "한 번의 호출로 시간 제한 대기", "一次调用限时等待"],
    ),
    ("epoll-pwait2", ["epoll_pwait2", "epoll_pwait2", "epoll_pwait2"]),
    ("no-iowait", ["waits not counted as iowait", "iowait로 세지 않는 대기", "不计入 iowait 的等待"]),
    ("basic-ring", ["basic ring", "기본 링", "基本环"]),
    ("virtual-time", ["virtual time", "가상 시간", "虚拟时间"]),
];

/// A feature that a driver was granted, or left unused, by its stable name.
pub(crate) fn feature(language: Language, name: &str) -> String {
    let known = FEATURES.iter().find(|(own, _)| *own == name);
    known.map_or_else(|| name.to_owned(), |(_, texts)| language.choose(*texts).to_owned())
}

pub(super) fn of_drivers(language: Language, finding: OfDrivers<'_>) -> String {
    match finding {
        OfDrivers::DriverGranted { features } => {
            let features: Vec<String> = features.iter().map(|name| feature(language, name)).collect();
            features.join(language.list())
        }
        OfDrivers::NoIoUring => language
            .choose([
                "this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)",
                "이 커널에 io_uring이 없거나, seccomp 필터가 io_uring을 숨김(ENOSYS)",
                "本内核没有 io_uring，或被 seccomp 过滤器隐藏（ENOSYS）",
            ])
            .to_owned(),
        OfDrivers::IoUringDisabled { level } => localized!(
            language,
            "kernel.io_uring_disabled is {level} (EPERM)",
            "kernel.io_uring_disabled 값이 {level}임(EPERM)",
            "kernel.io_uring_disabled 为 {level}（EPERM）",
        ),
        OfDrivers::IoUringForbidden => language
            .choose([
                "a sandbox forbids io_uring (EPERM): containers do so by default through seccomp",
                "샌드박스가 io_uring을 금지함(EPERM). 컨테이너는 기본적으로 seccomp로 막음",
                "沙箱禁止 io_uring（EPERM）：容器默认通过 seccomp 禁止",
            ])
            .to_owned(),
        OfDrivers::IoUringMemory => language
            .choose([
                "the kernel refused the ring's memory (ENOMEM)",
                "커널이 링에 필요한 메모리를 거부함(ENOMEM)",
                "内核拒绝为环分配内存（ENOMEM）",
            ])
            .to_owned(),
        OfDrivers::IoUringTooOld => language
            .choose([
                "io_uring before 5.11 has no wait with a time limit in one call (IORING_ENTER_EXT_ARG), which this driver \
                 needs",
                "5.11 이전 io_uring에는 호출 한 번으로 시간 제한을 두고 대기하는 기능(IORING_ENTER_EXT_ARG)이 없음. 이 드라이버는 그 기능이 필요함",
                "5.11 之前的 io_uring 不能在一次调用中限时等待（IORING_ENTER_EXT_ARG），而本驱动需要它",
            ])
            .to_owned(),
        OfDrivers::KernelOlder { asked, running } => localized!(
            language,
            "this kernel is {running}; it cannot stand for the newer {asked}",
            "이 커널은 {running} 버전이므로 더 새로운 {asked} 버전을 흉내 낼 수 없음",
            "本内核为 {running}，无法模拟更新的 {asked}",
        ),
        OfDrivers::NoNativeAio => language
            .choose([
                "this kernel has no native AIO (CONFIG_AIO)",
                "이 커널에는 네이티브 AIO가 없음(CONFIG_AIO)",
                "本内核没有原生 AIO（CONFIG_AIO）",
            ])
            .to_owned(),
    }
}

pub(super) fn of_programs(language: Language, finding: OfPrograms<'_>) -> String {
    match finding {
        OfPrograms::NotOnPath { program } => localized!(
            language,
            "{program} is not on the PATH",
            "PATH에서 찾을 수 없는 프로그램: {program}",
            "PATH 中找不到 {program}",
        ),
        OfPrograms::NoProgram { program } => localized!(
            language,
            "{program} is not there, or is no program",
            "파일이 없거나 프로그램이 아님: {program}",
            "{program} 不存在，或不是程序",
        ),
        OfPrograms::NeverServed { trials, said } => localized!(
            language,
            "its server failed in all {trials} trials: {said}",
            "시행 {trials}회 모두에서 서버 실패: {said}",
            "全部 {trials} 次试验中服务器都失败：{said}",
        ),
        OfPrograms::CannotRunHere { said } => localized!(
            language,
            "it says that it cannot run here: {said}",
            "이 머신에서 실행할 수 없다고 보고함: {said}",
            "它报告无法在此运行：{said}",
        ),
        OfPrograms::NoCongestionControl { name, available } => {
            let available = available.join(language.list());
            localized!(
                language,
                "congestion control {name} cannot be used here; there are {available} \
                 (net.ipv4.tcp_available_congestion_control)",
                "이 머신에서 쓸 수 없는 혼잡 제어: {name}. 쓸 수 있는 것: {available}(net.ipv4.tcp_available_congestion_control)",
                "本机无法使用拥塞控制 {name}；可用的有 {available}（net.ipv4.tcp_available_congestion_control）",
            )
        }
        OfPrograms::DiskUnusable { said } => localized!(
            language,
            "the disk cannot be used: {said}",
            "디스크를 쓸 수 없음: {said}",
            "无法使用该磁盘：{said}",
        ),
        OfPrograms::Said { text } => {
            localized!(language, "it says: {text}", "메시지: {text}", "消息：{text}")
        }
    }
}

pub(super) fn of_probes(language: Language, finding: OfProbes<'_>) -> String {
    let text = match finding {
        OfProbes::TriedOnSockets => [
            "a byte sent through it over a socket pair",
            "소켓 쌍으로 1바이트를 보내 확인함",
            "经套接字对发送一个字节来确认",
        ],
        OfProbes::TriedOnFile => {
            ["a block of a file read through it", "파일의 블록 하나를 읽어 확인함", "读取文件的一个块来确认"]
        }
        OfProbes::TriedGathering => [
            "two buffers written to a file in memory",
            "메모리 파일에 버퍼 두 개를 써서 확인함",
            "向内存文件写入两个缓冲区来确认",
        ],
        OfProbes::BlockRead => ["a block came back", "블록을 읽음", "读回了一个块"],
        OfProbes::TwoBuffers => {
            ["two buffers in one call", "호출 한 번에 버퍼 두 개를 씀", "一次调用写入两个缓冲区"]
        }
        OfProbes::ReadFrom { paths } => {
            let paths = paths.join(language.list());
            return localized!(language, "read from {paths}", "{paths}에서 읽음", "读自 {paths}");
        }
    };
    language.choose(text).to_owned()
}

pub(super) fn of_remedies(language: Language, finding: OfRemedies<'_>) -> String {
    let text = match finding {
        OfRemedies::RunCommand { command } => {
            return localized!(language, "run {command}", "{command} 실행", "执行 {command}");
        }
        OfRemedies::AllowIoUring => [
            "run on Linux 5.11 or later with CONFIG_IO_URING, or allow io_uring in the seccomp profile, as \
             packaging/seccomp.json does",
            "CONFIG_IO_URING을 켠 Linux 5.11 이상에서 실행하거나, packaging/seccomp.json처럼 seccomp 프로필에서 io_uring을 허용할 것",
            "在启用 CONFIG_IO_URING 的 Linux 5.11 或更高版本上运行，或像 packaging/seccomp.json 那样在 seccomp 配置中允许 \
             io_uring",
        ],
        OfRemedies::OpenSandbox => [
            "run the container with --security-opt seccomp=packaging/seccomp.json, which allows io_uring",
            "io_uring을 허용하는 --security-opt seccomp=packaging/seccomp.json 옵션으로 컨테이너를 실행할 것",
            "以 --security-opt seccomp=packaging/seccomp.json（允许 io_uring）运行容器",
        ],
        OfRemedies::InstallProgram => [
            "install it, or write its path in the study file",
            "설치하거나 실험 파일에 경로를 적을 것",
            "安装它，或在实验文件中写明其路径",
        ],
    };
    language.choose(text).to_owned()
}
