//! Names of the rungs of evidence, their obstacles, and caveats of the kernel's CPU accounting.

use weir_record::observation::{Obstacle, Rung};

use crate::{display::printable, language::Language};

/// The consequence for CPU figures of a kernel that charges no process for softirqs, in the order of languages.
pub(crate) const SOFTIRQS_ARE_APART: [&str; 3] = [
    "This kernel charges no process for softirqs (CONFIG_IRQ_TIME_ACCOUNTING). So the work in the network that a server \
     causes (on loopback its peer's receiving too) is not in its CPU, and in none of the parts: the figures are smaller \
     than those of a kernel without the option, and must not be set beside them.",
    "이 커널은 softirq 시간을 어느 프로세스에도 부과하지 않습니다(CONFIG_IRQ_TIME_ACCOUNTING). 따라서 서버가 일으킨 네트워크 처리(루프백에서는 상대의 수신까지)가 서버 CPU와 \
    항목별 값에 들어 있지 않습니다. 이 옵션이 없는 커널보다 수치가 작게 나오므로 서로 비교하면 안 됩니다.",
    "此内核不把软中断时间计入任何进程（CONFIG_IRQ_TIME_ACCOUNTING）。因此，服务器引起的网络处理（在环回上还包括对端的接收）既不在其 CPU 中，也不在任何一项中。数值小于未启用该选项的内核，两者不能比较。",
];

/// The name of a rung, with its number.
pub(crate) fn name(rung: Rung, language: Language) -> &'static str {
    match rung {
        Rung::Engine => language.choose(["L0 (engine counters)", "L0 (엔진 카운터)", "L0（引擎计数器）"]),
        Rung::Process => language.choose(["L1 (/proc)", "L1 (/proc)", "L1（/proc）"]),
        Rung::Programs => language.choose(["L2 (kernel programs)", "L2 (커널 프로그램)", "L2（内核程序）"]),
        Rung::Strace => language.choose(["L3 (strace)", "L3 (strace)", "L3（strace）"]),
    }
}

/// The obstacle to using a rung.
pub(crate) fn obstacle(obstacle: &Obstacle, language: Language) -> String {
    if language == Language::English {
        return obstacle.to_string();
    }
    let chosen = match obstacle {
        Obstacle::NoPrivilege => [
            "CAP_BPF와 CAP_PERFMON이 없고 CAP_SYS_ADMIN(컨테이너 밖의 root가 가진 권한)도 없음",
            "既没有 CAP_BPF 和 CAP_PERFMON，也没有 CAP_SYS_ADMIN（容器外的 root 拥有该权限）",
        ],
        Obstacle::Filtered => [
            "이 프로세스에 권한(capability)은 있으나 seccomp 필터가 거부함. 컨테이너 프로필에서 bpf와 perf_event_open을 허용해야 함",
            "本进程拥有所需权能，但被 seccomp 过滤器拒绝；请在容器的配置中允许 bpf 和 perf_event_open",
        ],
        Obstacle::UserNamespace => [
            "사용자 네임스페이스(rootless 컨테이너) 안의 권한뿐이므로 커널이 프로그램을 허용하지 않음. 호스트에서 실행해야 함",
            "权能仅在用户命名空间（rootless 容器）内有效，内核不允许加载程序，请在宿主机上运行",
        ],
        Obstacle::NoBpf => ["커널이 BPF를 지원하지 않음", "内核不支持 BPF"],
        Obstacle::NoTracepoints => ["커널에 시스템 콜 트레이스포인트가 없음", "内核没有系统调用跟踪点"],
        Obstacle::PidNamespace => [
            "PID 네임스페이스(컨테이너) 안에서 실행 중이며 커널이 5.7보다 오래됨. 호스트에서 실행해야 함",
            "运行在 PID 命名空间（容器）中，且内核早于 5.7，请在宿主机上运行",
        ],
        Obstacle::Lockdown { .. } => ["커널이 lockdown 상태임", "内核处于 lockdown 状态"],
        Obstacle::Refused { .. } => ["커널이 거부함", "被内核拒绝"],
        Obstacle::NoSchedstat => ["커널에 schedstat가 없음", "内核没有 schedstat"],
        Obstacle::NotInstalled => ["strace가 설치되지 않음", "未安装 strace"],
        Obstacle::Bits32 => ["32비트 프로그램이라 시스템 콜 번호가 다름", "是 32 位程序，系统调用号不同"],
    };
    let [korean, chinese] = chosen;
    let text = language.choose(["", korean, chinese]);
    match obstacle {
        Obstacle::Lockdown { mode } => format!("{text} ({})", printable(mode)),
        Obstacle::Refused { error } => format!("{text} ({})", printable(error)),
        _ => text.to_owned(),
    }
}
