//! What the rungs of evidence are called, and what must be known of the kernel's own account.

use weir_record::observation::Rung;

use crate::language::Language;

/// What it means for figures of CPU that the kernel charges no process for softirqs, in the order of languages.
pub(crate) const SOFTIRQS_ARE_APART: [&str; 3] = [
    "This kernel charges no process for softirqs (CONFIG_IRQ_TIME_ACCOUNTING). So the work in the network that a server \
     causes (on loopback its peer's receiving too) is not in its CPU, and in none of the parts: the figures are smaller \
     than those of a kernel without the option, and must not be set beside them.",
    "이 커널은 softirq 시간을 어느 프로세스에도 매기지 않습니다(CONFIG_IRQ_TIME_ACCOUNTING). 따라서 서버가 일으킨 네트워크 처리(루프백에서는 상대의 수신까지)가 \
     서버 CPU에도, 항목별 값에도 들어 있지 않습니다. 이 옵션이 없는 커널보다 수치가 작게 나오므로 서로 비교하면 안 됩니다.",
    "此内核不把软中断时间计入任何进程（CONFIG_IRQ_TIME_ACCOUNTING）。因此服务器引起的网络处理（在环回上还包括对端的接收）既不在其 CPU 中，也不在任何一项中：\
     数值小于未启用该选项的内核，不能与之直接对照。",
];

/// With its number.
pub(crate) fn name(rung: Rung, language: Language) -> &'static str {
    match rung {
        Rung::Engine => language.choose(["L0 (engine counters)", "L0 (엔진 카운터)", "L0（引擎计数器）"]),
        Rung::Process => language.choose(["L1 (/proc)", "L1 (/proc)", "L1（/proc）"]),
        Rung::Programs => language.choose(["L2 (kernel programs)", "L2 (커널 프로그램)", "L2（内核程序）"]),
        Rung::Strace => language.choose(["L3 (strace)", "L3 (strace)", "L3（strace）"]),
    }
}
