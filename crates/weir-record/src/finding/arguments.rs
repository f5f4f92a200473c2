//! What findings are about: the arguments of their codes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Trials of an arm that noise excluded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArmExclusions {
    /// Arm.
    pub arm: String,
    /// So many of its trials were.
    pub excluded: u32,
    /// All trials, attempts included.
    pub trials: u32,
}

/// System calls of one kind that engine and kernel counted, and not alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallsApart {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// `enter`, `wait`, `receive`, `send`, `interest`, `accept`.
    pub kind: String,
    /// By the engine.
    pub engine: u64,
    /// By the kernel's programs.
    pub kernel: u64,
}

/// How often an arm kept the rate that it was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateHeld {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Slices, or whole trials, that kept it.
    pub kept: u64,
    /// All of them.
    pub of: u64,
    /// What they are of.
    pub unit: UnitKind,
}

/// An arm whose system calls, as they were seen, cannot have moved its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallsLacking {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// The share of what its messages need that was seen.
    pub share: f64,
}

/// A difference in which the planted work does not lead, or has another size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlantedApart {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// What was planted, as it is written (`getppid`, `wake`, `split-write`, `1000ns`).
    pub planted: String,
    /// The part that leads, by its name in exported data.
    pub part: String,
    /// How much more it is for each message.
    pub ns: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// How many more of the planted system call there are for each message; absent for a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_calls: Option<f64>,
}

/// How much the baseline's own CPU per message changes with the place of its slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OrderEffect {
    /// Which place.
    pub place: SlicePlace,
    /// Cell.
    pub cell_id: String,
    /// The change, as a share.
    pub change: f64,
    /// Its interval.
    pub interval: (f64, f64),
}

/// Where a slice of the baseline stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "place", rename_all = "kebab-case")]
pub enum SlicePlace {
    /// It goes before the baseline's other slice.
    GoingFirst,
    /// It follows a slice of this arm instead of its own slice.
    Following {
        /// Arm.
        arm: String,
    },
}

/// TCP segments that an arm's messages take, both ways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SegmentsOfArm {
    /// Arm.
    pub arm: String,
    /// Cell.
    pub cell_id: String,
    /// For each message of its slices.
    pub in_slices: f64,
    /// For each message of unobserved slices of evidence.
    pub in_long: f64,
}

/// What the slices of an arm hold in a cell, as medians.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessagesInSlices {
    /// Arm.
    pub arm: String,
    /// Cell.
    pub cell_id: String,
    /// Messages on each connection.
    pub each: f64,
    /// Length of a slice.
    pub length_ns: u64,
    /// How long one must be that holds enough.
    pub needed_ns: u64,
}

/// How the cost of a message changes within the rounds of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WarmingArm {
    /// Arm.
    pub arm: String,
    /// Cell.
    pub cell_id: String,
    /// Server CPU for a message in the last third of a round's slices over the first, less one, and without what it did
    /// of what the arm is compared with.
    pub change: f64,
    /// Its interval.
    pub interval: (f64, f64),
}

/// Where the values of an arm's rounds scatter, as standard deviations of a round's logarithm of the ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundComponents {
    /// Arm.
    pub arm: String,
    /// From what its permutations do.
    pub within: f64,
    /// From round to round beyond that.
    pub between: f64,
    /// Permutations of a round.
    pub permutations: u32,
    /// Rounds that have several.
    pub rounds: u32,
    /// Permutations that narrow the interval most in the same time, by Kalibera and Jones's rule.
    pub permutations_best: u32,
    /// Rounds that there is time for then.
    pub rounds_best: u32,
}

/// What is sent and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
    /// A message of echo.
    #[default]
    Message,
    /// An HTTP request.
    Request,
    /// An order.
    Order,
    /// An operation on a disk.
    Operation,
}

/// What one independent value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnitKind {
    /// A round of fresh processes in which the arms take turns.
    Round,
    /// A pair of whole trials of one block.
    #[default]
    Pair,
}

/// Why the arms of a cell do not take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoTurns {
    /// The study file says so.
    Asked,
    /// Each message has its own connection.
    ConnectionEach,
    /// Connections are opened over a time.
    RampUp,
    /// Arms have generators of their own kind.
    LoadOptions,
    /// One generator would hold more connections than it may.
    Connections,
    /// A command has no place for the address to listen at.
    NoPort,
    /// Orders go through a gateway to an exchange.
    Gateway,
    /// A device is simulated.
    Simulated,
    /// A disk is written to.
    Writes,
    /// The kernel polls for an arm.
    KernelPolls,
    /// A predictor learns from what it waited for.
    Predictor,
    /// How arms wait is drawn over time.
    Series,
}

impl NoTurns {
    /// In English, Korean and Chinese.
    pub fn words(self) -> [&'static str; 3] {
        match self {
            Self::Asked => [
                "the study asks for whole trials",
                "실험 파일에서 전체 시행을 지정함",
                "实验文件指定了完整试验",
            ],
            Self::ConnectionEach => [
                "a connection for each message leaves work in the kernel for the next slice",
                "메시지마다 새 연결을 쓰면, 커널에 남은 작업이 다음 대상의 차례로 넘어감",
                "每条消息新建连接，会在内核中把工作留给下一个方案",
            ],
            Self::RampUp => [
                "a ramp is a part of what is measured",
                "연결을 늘리는 과정도 측정 대상임",
                "逐步建立连接的过程也是测量内容",
            ],
            Self::LoadOptions => [
                "the arms are loaded by generators with different options",
                "대상마다 부하 생성기의 옵션이 다름",
                "各方案的负载生成器选项不同",
            ],
            Self::Connections => [
                "connections to all arms together are more than one generator may hold",
                "모든 대상의 연결을 합하면 부하 생성기 하나의 한도를 넘음",
                "所有方案的连接合计超过一个负载生成器的上限",
            ],
            Self::NoPort => [
                "a server whose command names no {port} cannot stand beside a second of its kind",
                "명령에 {port}가 없는 서버는 같은 서버와 함께 실행할 수 없음",
                "命令中没有 {port} 的服务器不能与同类并存",
            ],
            Self::Gateway => [
                "a gateway has an exchange behind it, and sessions that go on",
                "게이트웨이 뒤에는 거래소가 있고 세션이 이어짐",
                "网关背后有交易所，且会话持续存在",
            ],
            Self::Simulated => [
                "each arm has its own simulated device, with the same seed",
                "대상마다 같은 시드의 시뮬레이션 장치를 따로 가짐",
                "每个方案各有一个种子相同的模拟设备",
            ],
            Self::Writes => [
                "a disk carries what one arm wrote into the turn of the next",
                "한 대상이 쓴 내용이 다음 대상의 차례에 디스크에 기록됨",
                "一个方案写入的内容会在下一个方案的轮次写到磁盘",
            ],
            Self::KernelPolls => [
                "the kernel's thread that polls for an arm goes on while the arm is stopped",
                "대상을 정지시켜도 그 대상을 위해 폴링하는 커널 스레드는 계속 실행됨",
                "方案暂停时，替它轮询的内核线程仍在运行",
            ],
            Self::Predictor => [
                "a predictor would learn from operations that waited for their arm's turn",
                "예측기가 차례를 기다린 I/O까지 학습함",
                "预测器会从等待轮次的 I/O 中学习",
            ],
            Self::Series => [
                "how an arm waits is drawn over the whole of its trial",
                "시행 전체에 걸쳐 대기 과정을 그림",
                "等待过程按整个试验的时间绘制",
            ],
        }
    }
}

/// Why a trial, or a unit, has no part in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionKind {
    /// The hypervisor took CPU time.
    Steal,
    /// Other processes were busy.
    ForeignCpu,
    /// The machine changed its state.
    StateChanged,
    /// Responses failed.
    Errors,
    /// Little's law does not hold.
    LittlesLaw,
    /// The server failed.
    ServerFailed,
    /// The generator failed.
    LoadFailed,
    /// A completion queue overflowed.
    CompletionOverflow,
    /// A storage job failed.
    JobFailed,
    /// A process beside the server failed.
    NeighbourFailed,
    /// The host of the servers, or the way to it, was lost.
    HostLost,
    /// It ran in the far state, and the cell is compared in the near one.
    InFarState,
    /// The other way round.
    InNearState,
    /// It does not have the figure.
    WithoutFigure,
}

/// Classes of failed responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// No connection in time.
    ConnectTimeout,
    /// No response in time.
    ResponseTimeout,
    /// The response ended early.
    CutShort,
    /// A byte was wrong.
    WrongBytes,
    /// Another status than expected.
    WrongStatus,
    /// Not what the protocol allows.
    Malformed,
    /// A limit of the generator's machine.
    LocalLimit,
    /// None of these.
    Unexplained,
}

/// Failures of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureCount {
    /// Class.
    pub class: FailureClass,
    /// How many.
    pub count: u64,
}

/// A trial that failed, as far as it knows why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FailedTrial {
    /// Arm.
    pub arm: String,
    /// What spoke against it; absent where a report is simply missing.
    pub reason: Option<ExclusionKind>,
    /// What a program said, in its own words.
    pub said: Option<String>,
    /// Failed responses.
    pub classes: Vec<FailureCount>,
    /// Connections a full accept queue lost.
    pub listen_overflows: u64,
    /// First segments that were sent again.
    pub syn_retransmits: u64,
}

/// What a verdict on server CPU is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "figure", rename_all = "kebab-case")]
pub enum Witness {
    /// CPU of both sides: of server, generator and softirq threads.
    MachineCpu,
    /// The same comparison with the slices that missed the offered rate, at the rates they achieved.
    AchievedRates,
    /// Server CPU with what the servers use while they wait.
    WaitingCpu,
    /// Both arms at one rate.
    EqualRate {
        /// The rate.
        per_second: f64,
    },
}

/// What the other figure says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessFigure {
    /// Arm over baseline.
    pub ratio: f64,
    /// Its interval.
    pub interval: (f64, f64),
    /// Units it is made of.
    pub units: u64,
}

/// What the other figure does to a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WitnessBearing {
    /// It is known not to go the other way.
    Supports,
    /// It could.
    Uncertain,
    /// It does.
    Contradicts,
}

/// Why a schedule is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Stopped {
    /// Another session goes on.
    CutShort {
        /// Time of all sessions.
        elapsed_ns: u64,
        /// Longest session.
        cap_ns: u64,
    },
    /// No two arms are left.
    NothingToCompare {
        /// Time of all sessions.
        elapsed_ns: u64,
    },
}

/// What server and generator share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharedPart {
    /// They are on different cores.
    Nothing,
    /// One physical core.
    Core,
    /// One CPU, on which they take turns.
    Cpu,
}

/// Two arms that are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SamePair {
    /// The one that the study names first.
    pub arm: String,
    /// The other.
    pub other: String,
}

/// An arm that enters a ring and should not, or does not and should.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RingApart {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Its driver.
    pub driver: String,
    /// Calls of `io_uring_enter` in its trials.
    pub enters: u64,
}

/// How a program is built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramBuild {
    /// The program; `weir` for the one that runs the study.
    pub program: String,
    /// Its build, as it says it.
    pub build: String,
}

/// A file of a program with several contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramChange {
    /// The first arm that was started with it.
    pub arm: String,
    /// The file.
    pub file: String,
    /// How many contents it had.
    pub contents: u32,
}
