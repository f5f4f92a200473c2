//! The metrics of commands that end, and of servers under a load, which `weir compare` compares. No
//! trial of a study has them, so they stand in a separate table behind that of studies: no cell compares them, and
//! no study file names them.

use super::{MetricRow, MetricText, Part, Words};
use crate::metric::{Better, Family, Metric, MetricUnit, Scale};

/// A millisecond in microseconds, in which CPU time is counted.
const MILLISECOND_US: f64 = 1_000.0;

/// All of them, in the order in which they are shown, which is that of the enum behind the last one of studies.
pub static COMMAND_METRICS: &[MetricRow] = &[
    row(Metric::CommandCpu, "command-cpu", TIME, Scale::Ratio, Family::Cpu, CPU),
    // A clock by ticks may have no tick in one of the two parts of a short run: zero is a figure.
    row(Metric::CommandUserCpu, "command-user-cpu", TIME, OF_TIME, Family::Cpu, USER),
    row(Metric::CommandSystemCpu, "command-system-cpu", TIME, OF_TIME, Family::Cpu, SYSTEM),
    row(Metric::CommandWall, "command-wall", TIME, Scale::Ratio, Family::Time, WALL),
    row(
        Metric::CommandMemoryMax,
        "command-memory-max",
        MetricUnit::Bytes,
        Scale::Ratio,
        Family::Memory,
        MEMORY,
    ),
    row(Metric::CommandFaultsMinor, "command-faults-minor", COUNT, OF_EVENTS, Family::Events, MINOR),
    row(Metric::CommandFaultsMajor, "command-faults-major", COUNT, OF_EVENTS, Family::Events, MAJOR),
    row(
        Metric::CommandSwitchesVoluntary,
        "command-switches-voluntary",
        COUNT,
        OF_EVENTS,
        Family::Events,
        WAITED,
    ),
    row(
        Metric::CommandSwitchesInvoluntary,
        "command-switches-involuntary",
        COUNT,
        OF_EVENTS,
        Family::Events,
        TAKEN,
    ),
    row(Metric::CommandReadBytes, "command-read-bytes", MetricUnit::Bytes, OF_BYTES, Family::Events, READ),
    row(
        Metric::CommandWrittenBytes,
        "command-written-bytes",
        MetricUnit::Bytes,
        OF_BYTES,
        Family::Events,
        WRITTEN,
    ),
    row(Metric::CommandInstructions, "command-instructions", COUNT, Scale::Ratio, Family::Cpu, INSTRUCTIONS),
    MetricRow {
        better: Better::Larger,
        ..row(
            Metric::CommandThroughput,
            "command-throughput",
            MetricUnit::PerSecond,
            Scale::Ratio,
            Family::Rate,
            THROUGHPUT,
        )
    },
];

const TIME: MetricUnit = MetricUnit::Micros;
const COUNT: MetricUnit = MetricUnit::Count;
const OF_TIME: Scale = Scale::Difference { margin: MILLISECOND_US };
const OF_EVENTS: Scale = Scale::Difference { margin: 1.0 };
const OF_BYTES: Scale = Scale::Difference { margin: 4_096.0 };

const fn row(
    metric: Metric,
    key: &'static str,
    unit: MetricUnit,
    scale: Scale,
    family: Family,
    [name, prose, short]: [MetricText; 3],
) -> MetricRow {
    MetricRow {
        metric,
        key,
        unit,
        scale,
        better: Better::Smaller,
        family,
        words: Words { name, prose, short },
        // A run of a command is no trial of a study.
        read: |_| None,
        read_slice: None,
        part: |_| Part::None,
    }
}

const CPU: [MetricText; 3] = [
    ["CPU time per run", "실행당 CPU 시간", "每次运行的 CPU 时间"],
    ["CPU time per run", "실행당 CPU 사용량", "每次运行的 CPU 用量"],
    ["CPU", "CPU", "CPU"],
];
const USER: [MetricText; 3] = [
    ["CPU time outside the kernel", "커널 밖 CPU 시간", "内核之外的 CPU 时间"],
    ["CPU time outside the kernel", "커널 밖 CPU 시간", "内核之外的 CPU 时间"],
    ["user", "사용자 시간", "用户态"],
];
const SYSTEM: [MetricText; 3] = [
    ["CPU time inside the kernel", "커널 안 CPU 시간", "内核之内的 CPU 时间"],
    ["CPU time inside the kernel", "커널 안 CPU 시간", "内核之内的 CPU 时间"],
    ["system", "시스템 시간", "内核态"],
];
const WALL: [MetricText; 3] = [
    ["Time per run", "실행당 걸린 시간", "每次运行的耗时"],
    ["time per run", "실행당 걸린 시간", "每次运行的耗时"],
    ["time", "걸린 시간", "耗时"],
];
const MEMORY: [MetricText; 3] = [
    ["Largest memory of a run", "실행의 최대 메모리", "运行的最大内存"],
    ["largest memory of a run", "실행의 최대 메모리 사용량", "运行的最大内存用量"],
    ["peak memory", "최대 메모리", "最大内存"],
];
const MINOR: [MetricText; 3] = [
    ["Page faults without a disk", "마이너 페이지 폴트", "次要缺页（不读磁盘）"],
    ["page faults without a disk", "마이너 페이지 폴트 발생량", "次要缺页次数（不读磁盘）"],
    ["minor faults", "마이너 폴트", "次要缺页"],
];
const MAJOR: [MetricText; 3] = [
    ["Page faults that read a disk", "메이저 페이지 폴트", "主缺页（读磁盘）"],
    ["page faults that read a disk", "메이저 페이지 폴트 발생량", "主缺页次数（读磁盘）"],
    ["major faults", "메이저 폴트", "主缺页"],
];
const WAITED: [MetricText; 3] = [
    ["Switches to wait", "자발적 컨텍스트 스위치", "自愿上下文切换"],
    ["switches to wait", "자발적 컨텍스트 스위치 발생량", "自愿上下文切换次数"],
    ["voluntary switches", "자발적 스위치", "自愿切换"],
];
const TAKEN: [MetricText; 3] = [
    ["Switches by the scheduler", "비자발적 컨텍스트 스위치", "非自愿上下文切换"],
    ["switches by the scheduler", "비자발적 컨텍스트 스위치 발생량", "非自愿上下文切换次数"],
    ["involuntary switches", "비자발적 스위치", "非自愿切换"],
];
const READ: [MetricText; 3] = [
    ["Bytes read", "읽은 바이트", "读取字节"],
    ["bytes read", "읽은 바이트의 양", "读取的字节数"],
    ["bytes read", "읽은 바이트", "读取字节"],
];
const WRITTEN: [MetricText; 3] = [
    ["Bytes written", "쓴 바이트", "写入字节"],
    ["bytes written", "쓴 바이트의 양", "写入的字节数"],
    ["bytes written", "쓴 바이트", "写入字节"],
];
const INSTRUCTIONS: [MetricText; 3] = [
    ["Instructions per run", "실행당 명령어", "每次运行的指令数"],
    ["instructions per run", "실행당 명령어 실행량", "每次运行的指令数"],
    ["instructions", "명령어", "指令"],
];
const THROUGHPUT: [MetricText; 3] = [
    ["Throughput of the load", "부하의 처리량", "负载的吞吐量"],
    ["throughput of the load", "부하의 처리량", "负载的吞吐量"],
    ["throughput", "처리량", "吞吐量"],
];
