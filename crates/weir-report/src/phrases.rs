//! What the laboratory found, in the reader's language. Findings are recorded as English text; those listed here are
//! told in Korean and Chinese with the same numbers and names. One that is not listed stays as it was recorded, and the
//! page marks it as English.

use crate::{format, language::Language, published};

/// A recorded form and what it reads in Korean and Chinese. `{n}` stands for a number, which is written with commas,
/// `{i}` for one that is a name, and `{}` for any text; `{0}` is
/// the first of them, and `{~0}` the first told in the reader's language where it is a finding itself.
pub(crate) type Phrase = [&'static str; 3];

const CHECKS: &[Phrase] = &[
    [
        "{n} of {n} bytes compared, {n} responses wrong",
        "{1}바이트 중 {0}바이트 비교, 잘못된 응답 {2}건",
        "共 {1} 字节，已比较 {0} 字节，{2} 个响应有误",
    ],
    [
        "{n} of {n} content bytes checked for framing and length; {n} of {n} responses compared byte for byte ({n} %), {n} wrong",
        "본문 {1}바이트 중 {0}바이트의 프레이밍과 길이 확인, 응답 {3}건 중 {2}건({4} %)을 바이트 단위로 비교, 잘못된 응답 {5}건",
        "共 {1} 内容字节，已检查 {0} 字节的分帧与长度；{3} 个响应中逐字节比较 {2} 个（{4} %），有误 {5} 个",
    ],
    ["no response failed", "실패한 응답 없음", "没有响应失败"],
    ["{n} responses failed: {}", "응답 {0}건 실패: {~1}", "{0} 个响应失败：{~1}"],
    ["all {n} trials gave a report", "시행 {0}회 모두 결과를 냄", "全部 {0} 个试次都给出了报告"],
    [
        "{n} of {n} trials gave no report; first: {}: {}",
        "시행 {1}회 중 {0}회가 결과를 내지 못함. 처음은 {2}: {3}",
        "{1} 个试次中有 {0} 个没有给出报告；第一个是 {2}：{3}",
    ],
    [
        "messages in flight as counted and as throughput times latency differ by {n} % in the median trial; {n} of {n} \
         trials over {n} % (and what the window's edges explain) and set aside",
        "센 값과 ‘처리량 × 지연시간’으로 구한 동시 메시지 수의 차이는 시행 중앙값 {0} %. 시행 {2}회 중 {1}회가 {3} %(와 측정 구간 \
         경계로 설명되는 몫)를 넘어 제외됨",
        "在途消息数的计数值与“吞吐量 × 延迟”之差，试次中位数为 {0} %；{2} 个试次中有 {1} 个超过 {3} %（以及窗口边缘所能解释的部分），已剔除",
    ],
    [
        "requests in flight as counted and as throughput times latency differ by {n} % in the median trial; {n} of {n} \
         trials over {n} % (and what the window's edges explain) and set aside",
        "센 값과 ‘처리량 × 지연시간’으로 구한 동시 요청 수의 차이는 시행 중앙값 {0} %. 시행 {2}회 중 {1}회가 {3} %(와 측정 구간 \
         경계로 설명되는 몫)를 넘어 제외됨",
        "在途请求数的计数值与“吞吐量 × 延迟”之差，试次中位数为 {0} %；{2} 个试次中有 {1} 个超过 {3} %（以及窗口边缘所能解释的部分），已剔除",
    ],
    [
        "the generator was the limit in {n} of {n} closed-loop trials",
        "폐쇄형 부하 시행 {1}회 중 {0}회에서 부하 생성기가 한계였음",
        "{1} 个闭环试次中有 {0} 个受限于负载生成器",
    ],
    ["no open-loop cell", "개방형 부하 조건 없음", "没有开环条件"],
    [
        "{n} of {n} intended starts were missed in open loop",
        "개방형 부하에서 예정된 전송 {1}건 중 {0}건을 놓침",
        "开环中 {1} 次预定发送错过了 {0} 次",
    ],
    [
        "{n} operations by the kernel's account of the bytes; the tools' own rates differ from it by {n} % in the median \
         trial, at most {n} % are allowed",
        "커널이 집계한 바이트로 I/O {0}회. 도구가 스스로 말한 속도와의 차이는 시행 중앙값 {1} %(허용 {2} %)",
        "按内核的字节统计共 {0} 次 I/O；工具自报速率与之相差，试次中位数为 {1} %，至多允许 {2} %",
    ],
    [
        "operations a second times mean latency exceed the operations in flight by {n} % in the median trial; {n} of {n} \
         trials over {n} % and set aside",
        "‘초당 I/O × 평균 지연시간’이 동시 I/O 수를 넘는 정도는 시행 중앙값 {0} %. 시행 {2}회 중 {1}회가 {3} %를 넘어 제외됨",
        "“每秒 I/O × 平均延迟”超出在途 I/O 数，试次中位数为 {0} %；{2} 个试次中有 {1} 个超过 {3} %，已剔除",
    ],
    [
        "headroom of the generator, the offered rate and a steady warm-up: a storage job is its own load and waits for \
         its own operations, after a ramp of fixed length",
        "부하 생성기의 여유, 목표 부하율, 안정된 준비 구간. 스토리지 작업은 스스로가 부하이고 자신의 I/O를 기다리며, 준비 시간은 \
         정해져 있음",
        "负载生成器的余量、设定的负载速率与稳态预热：存储任务自身就是负载，等待自己的 I/O，预热时长固定",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % less CPU per operation than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 I/O당 CPU를 {1} % 적게 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每次 I/O CPU 比第一次少 {1} %（中位数）",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % more CPU per operation than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 I/O당 CPU를 {1} % 많이 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每次 I/O CPU 比第一次多 {1} %（中位数）",
    ],
    [
        "{n} replies checked for their number and their turn, {n} out of turn; shares do not add up in {n} of {n} trials",
        "응답 {0}건의 번호와 순서 확인, 순서가 어긋난 것 {1}건, 주식 수가 맞지 않는 시행 {3}회 중 {2}회",
        "已检查 {0} 条回报的编号与次序，{1} 条次序有误；{3} 个试次中有 {2} 个股数不平",
    ],
    [
        "without questions about numbers, the gateway received exactly twice what the exchange received in {n} of {n} trials",
        "번호 조회를 빼면 시행 {1}회 중 {0}회에서 게이트웨이 수신이 거래소 수신의 정확히 두 배",
        "不计编号查询，{1} 个试次中有 {0} 个网关接收量恰为交易所的两倍",
    ],
    [
        "{n} of {n} messages handed over lay until the once-a-second look",
        "넘긴 메시지 {1}건 중 {0}건이 1초 점검 때까지 방치됨",
        "交出的 {1} 条消息中有 {0} 条滞留到每秒一次的检查",
    ],
    [
        "orders in flight as counted and as throughput times latency differ by {n} % in the median trial; {n} of {n} \
         trials over {n} % (and what the window's edges explain) and set aside",
        "센 값과 ‘처리량 × 지연시간’으로 구한 동시 주문 수의 차이는 시행 중앙값 {0} %. 시행 {2}회 중 {1}회가 {3} %(와 측정 구간 \
         경계로 설명되는 몫)를 넘어 제외됨",
        "在途订单数的计数值与“吞吐量 × 延迟”之差，试次中位数为 {0} %；{2} 个试次中有 {1} 个超过 {3} %（以及窗口边缘所能解释的部分），已剔除",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % less CPU per order than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 주문당 CPU를 {1} % 적게 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每笔订单 CPU 比第一次少 {1} %（中位数）",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % more CPU per order than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 주문당 CPU를 {1} % 많이 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每笔订单 CPU 比第一次多 {1} %（中位数）",
    ],
    ["{n} completion queue overflows", "완료 큐 넘침 {0}회", "完成队列溢出 {0} 次"],
    ["no trial was run", "실행된 시행 없음", "没有运行任何试次"],
    [
        "no cross-core readings: the two sides do not have a CPU each",
        "코어 간 측정값 없음: 양쪽에 CPU를 하나씩 줄 수 없음",
        "没有跨核读数：双方无法各占一个 CPU",
    ],
    [
        "one state, {n} ns between the cores, in all {n} trials",
        "상태 1개, 코어 간 {0} ns, 시행 {1}회 모두",
        "单一状态，跨核 {0} ns，全部 {1} 个试次",
    ],
    [
        "two states, {n} and {n} ns between the cores: no trial near from beginning to end, {n} far, {n} on both sides; all pairs lie in the far one",
        "상태 2개, 코어 간 {0} ns와 {1} ns: 처음부터 끝까지 가까움인 시행 없음, 멂 {2}회, 양쪽에 걸침 {3}회. 모든 쌍은 ‘멂’ 상태",
        "两种状态，跨核 {0} ns 与 {1} ns：没有自始至终为“近”的试次，远 {2} 个，跨两态 {3} 个；所有配对都在“远”状态",
    ],
    [
        "two states, {n} and {n} ns between the cores: {n} trials near, {n} far, {n} on both sides; pairs lie within one",
        "상태 2개, 코어 간 {0} ns와 {1} ns: 가까움 {2}회, 멂 {3}회, 양쪽에 걸침 {4}회. 쌍은 한 상태 안에서만 비교",
        "两种状态，跨核 {0} ns 与 {1} ns：近 {2} 个试次，远 {3} 个，跨两态 {4} 个；配对只在同一状态之内",
    ],
    [
        "{n} % of CPU time stolen by the hypervisor in the median trial; {n} of {n} trials over {n} % and set aside",
        "하이퍼바이저가 빼앗은 CPU 시간은 시행 중앙값 {0} %. 시행 {2}회 중 {1}회가 {3} %를 넘어 제외됨",
        "被虚拟机监控程序窃取的 CPU 时间，试次中位数为 {0} %；{2} 个试次中有 {1} 个超过 {3} %，已剔除",
    ],
    [
        "other processes used {n} of a CPU in the median trial; {n} of {n} trials over the machine's background ({n} % of the machine at most) by {n} or a quarter of it and set aside",
        "다른 프로세스가 쓴 CPU는 시행 중앙값 {0}개분. 시행 {2}회 중 {1}회가 이 머신의 평상시(기계 전체의 {3} %까지만 인정)보다 {4} 또는 그 4분의 1 넘게 많아 제외됨",
        "其他进程占用的 CPU，试次中位数为 {0} 个；{2} 个试次中有 {1} 个比本机常态（至多按整机的 {3} % 计）高出 {4} 或其四分之一，已剔除",
    ],
    [
        "steady before the window in {n} of {n} trials; the others ran to the cap",
        "시행 {1}회 중 {0}회가 측정 전 안정 상태에 도달. 나머지는 준비 시간 상한까지 실행",
        "{1} 个试次中有 {0} 个在测量前已达稳态；其余运行到预热上限",
    ],
    [
        "{n} of {n} blocks ran in the random order of seed {i}",
        "블록 {1}개 중 {0}개가 시드 {2}의 무작위 순서대로 실행됨",
        "{1} 个区组中有 {0} 个按随机种子 {2} 的顺序运行",
    ],
    [
        "nothing is left to compare after {}: {}",
        "{0} 뒤 비교할 대상이 남지 않음: {~1}",
        "{0} 后已没有可比较的对象：{~1}",
    ],
    [
        "cut short after {}, with a time cap of {} for a session: {}; weir study --resume goes on",
        "{0} 뒤 중단됨(세션 시간 상한 {1}): {~2}. weir study --resume로 이어서 실행",
        "{0} 后中断（每次会话时间上限 {1}）：{~2}；可用 weir study --resume 继续",
    ],
    [
        "{n} of {n} blocks are done, {n} of these lack a clean pair and may be run again",
        "블록 {1}개 중 {0}개 완료, 그중 {2}개는 정상 쌍이 없어 다시 실행할 수 있음",
        "{1} 个区组已完成 {0} 个，其中 {2} 个缺少有效配对，可重新运行",
    ],
    [
        "{n} of {n} blocks are done, {n} of these lack a clean pair in the near state and may be run again",
        "블록 {1}개 중 {0}개 완료, 그중 {2}개는 ‘가까움’ 상태의 정상 쌍이 없어 다시 실행할 수 있음",
        "{1} 个区组已完成 {0} 个，其中 {2} 个缺少“近”状态下的有效配对，可重新运行",
    ],
    [
        "{n} of {n} blocks are done, {n} of these lacks a clean pair and may be run again",
        "블록 {1}개 중 {0}개 완료, 그중 {2}개는 정상 쌍이 없어 다시 실행할 수 있음",
        "{1} 个区组已完成 {0} 个，其中 {2} 个缺少有效配对，可重新运行",
    ],
    [
        "{n} of {n} blocks are done, {n} of these lacks a clean pair in the near state and may be run again",
        "블록 {1}개 중 {0}개 완료, 그중 {2}개는 ‘가까움’ 상태의 정상 쌍이 없어 다시 실행할 수 있음",
        "{1} 个区组已完成 {0} 个，其中 {2} 个缺少“近”状态下的有效配对，可重新运行",
    ],
    ["{n} of {n} blocks are done", "블록 {1}개 중 {0}개 완료", "{1} 个区组已完成 {0} 个"],
    [
        "the baseline was never paired with itself",
        "기준을 자기 자신과 짝지은 쌍이 없음",
        "基线从未与自身配对",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % less CPU per message than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 메시지당 CPU를 {1} % 적게 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每条消息 CPU 比第一次少 {1} %（中位数）",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % more CPU per message than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 메시지당 CPU를 {1} % 많이 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每条消息 CPU 比第一次多 {1} %（中位数）",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % less CPU per request than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 요청당 CPU를 {1} % 적게 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每个请求 CPU 比第一次少 {1} %（中位数）",
    ],
    [
        "in {n} blocks the baseline's second run took {n} % more CPU per request than its first (median)",
        "블록 {0}개에서 기준의 두 번째 실행은 첫 번째보다 요청당 CPU를 {1} % 많이 씀(중앙값)",
        "在 {0} 个区组中，基线第二次运行的每个请求 CPU 比第一次多 {1} %（中位数）",
    ],
];

const NOTES: &[Phrase] = &[
    ["no pair is left", "남은 쌍이 없음", "没有剩余的配对"],
    ["nothing was measured", "측정된 것이 없음", "没有测得任何数据"],
    [
        "compared in the machine's far state, which most clean trials of this cell met",
        "이 조건의 정상 시행 대부분이 거친 ‘멂’ 상태에서 비교함",
        "在机器的“远”状态下比较，该条件的多数有效试次处于此状态",
    ],
    [
        "{} returned wrong bytes in {n} responses",
        "{0}: 응답 {1}건의 바이트가 틀림",
        "{0}：{1} 个响应的字节有误",
    ],
    ["{n} failures of {} have no class", "{1}: 분류되지 않은 실패 {0}건", "{1}：{0} 个失败无法归类"],
    [
        "{n} of {n} trials of {} failed, first: {}: {}",
        "{2}: 시행 {1}회 중 {0}회 실패, 처음은 {~3}: {4}",
        "{2}：{1} 个试次中有 {0} 个失败，第一个是{~3}：{4}",
    ],
    [
        "{n} of {n} trials of {} failed, first: {}",
        "{2}: 시행 {1}회 중 {0}회 실패, 처음은 {~3}",
        "{2}：{1} 个试次中有 {0} 个失败，第一个是{~3}",
    ],
    [
        "{} did not keep the offered rate in {n} of {n} trials",
        "{0}: 시행 {2}회 중 {1}회에서 목표 부하율을 지키지 못함",
        "{0}：{2} 个试次中有 {1} 个未能保持设定的负载速率",
    ],
    [
        "too few messages to know the generator's lag against {}",
        "{0}: 메시지가 적어 부하 생성기의 발송 지연을 알 수 없음",
        "{0}：消息太少，无法得知负载生成器的滞后",
    ],
    [
        "too few orders to know the generator's lag against {}",
        "{0}: 주문이 적어 부하 생성기의 발송 지연을 알 수 없음",
        "{0}：订单太少，无法得知负载生成器的滞后",
    ],
    [
        "{} >= {n} orders/s (generator-bound)",
        "{0} ≥ 초당 주문 {1}건(부하 생성기 한계)",
        "{0} ≥ 每秒 {1} 笔订单（受限于负载生成器）",
    ],
    [
        "too few requests to know the generator's lag against {}",
        "{0}: 요청이 적어 부하 생성기의 발송 지연을 알 수 없음",
        "{0}：请求太少，无法得知负载生成器的滞后",
    ],
    [
        "the generator's p99 lag against {} is {n} % of the median response time",
        "{0}: 부하 생성기의 p99 발송 지연이 응답시간 중앙값의 {1} %임",
        "{0}：负载生成器的 p99 滞后为响应时间中位数的 {1} %",
    ],
    [
        "{} >= {n} messages/s (generator-bound)",
        "{0} ≥ {1} TPS(부하 생성기 한계)",
        "{0} ≥ {1} TPS（受限于负载生成器）",
    ],
    [
        "{} >= {n} requests/s (generator-bound)",
        "{0} ≥ {1} TPS(부하 생성기 한계)",
        "{0} ≥ {1} TPS（受限于负载生成器）",
    ],
    [
        "{}: ratio {n} [{n}, {n}] from {n} units, {}",
        "{~0}: 비율 {1} [{2}, {3}]({4}개 단위), {~5}",
        "{~0}：比值 {1} [{2}, {3}]（{4} 个单元），{~5}",
    ],
    ["machine CPU", "머신 CPU", "整机 CPU"],
    ["at an equal rate of {n}/s", "같은 부하율 {0}/s에서", "在相同速率 {0}/s 下"],
    [
        "which is too uncertain to bear this out",
        "불확실성이 커서 결과를 뒷받침하지 못함",
        "不确定性过大，不足以证实此结论",
    ],
    [
        "{}: no valid figure, so the verdict is not borne out",
        "{~0}: 유효한 수치가 없어 판정을 뒷받침하지 못함",
        "{~0}：没有有效数值，判定未获证实",
    ],
    [
        "the generator was the limit, and no open-loop cell shows both arms at one equal rate",
        "부하 생성기가 한계였고, 두 대상을 같은 부하율로 비교한 개방형 조건이 없음",
        "瓶颈在负载生成器，且没有开环条件以相同速率比较双方",
    ],
    [
        "no verdict from an unfinished schedule: {n} of {n} blocks are done",
        "일정이 끝나지 않아 판정하지 않음: {1}블록 중 {0}블록 완료",
        "计划尚未完成，不作判定：{1} 个区组完成了 {0} 个",
    ],
    ["one unit has no interval", "단위가 하나뿐이라 구간이 없음", "只有一个单元，没有区间"],
    [
        "the generator was the limit and no open-loop cell shows both arms at one equal rate",
        "부하 생성기가 한계였고, 두 대상을 같은 부하율로 비교한 개방형 조건이 없음",
        "瓶颈在负载生成器，且没有开环条件以相同速率比较双方",
    ],
    [
        "the generator was the limit, and {} gives no figure at an equal rate",
        "부하 생성기가 한계였고, {0} 조건에서도 같은 부하율의 수치를 얻지 못함",
        "瓶颈在负载生成器，而 {0} 未给出相同速率下的数值",
    ],
    [
        "the generator was the limit; at an equal rate of {n}/s: ratio {n} [{n}, {n}] from {n} pairs, {}",
        "부하 생성기가 한계였음. 같은 부하율 {0}/s에서 비율은 {1} [{2}, {3}]({4}쌍): {~5}",
        "瓶颈在负载生成器；在相同速率 {0}/s 下比值为 {1} [{2}, {3}]（{4} 对）：{~5}",
    ],
    ["which agrees", "결과가 일치함", "结论一致"],
    ["which does not contradict this", "결과와 어긋나지 않음", "与此结论不矛盾"],
    ["which contradicts this", "결과와 어긋남", "与此结论矛盾"],
    ["which is not comparable either", "이 역시 비교할 수 없음", "同样不可比较"],
    [
        "which are too few to bear this out",
        "결과를 뒷받침하기에는 쌍이 너무 적음",
        "配对太少，不足以证实此结论",
    ],
];

/// Why arms could not run. What a program said itself stays as it said it.
const MISSING: &[Phrase] = &[
    ["cannot start {}: {}", "{0} 실행 불가: {1}", "无法启动 {0}：{1}"],
    ["exited with status {i}: {}", "종료 상태 {0}: {1}", "以状态 {0} 退出：{1}"],
    ["exited with status {i}", "종료 상태 {0}", "以状态 {0} 退出"],
    ["was killed by signal {i}: {}", "시그널 {0}에 의해 종료됨: {1}", "被信号 {0} 终止：{1}"],
    ["was killed by signal {i}", "시그널 {0}에 의해 종료됨", "被信号 {0} 终止"],
    [
        "did not accept connections within {n} s: {}",
        "{0}초 안에 연결을 받지 않음: {1}",
        "{0} 秒内未接受连接：{1}",
    ],
    ["did not accept connections within {n} s", "{0}초 안에 연결을 받지 않음", "{0} 秒内未接受连接"],
    ["during the load it {}", "부하 중에 {~0}", "在负载期间{~0}"],
    [
        "this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)",
        "이 커널에 io_uring이 없거나 seccomp 필터가 감추고 있음(ENOSYS)",
        "本内核没有 io_uring，或被 seccomp 过滤器隐藏（ENOSYS）",
    ],
    [
        "kernel.io_uring_disabled is {i} (EPERM)",
        "kernel.io_uring_disabled 값이 {0}임(EPERM)",
        "kernel.io_uring_disabled 为 {0}（EPERM）",
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
];

/// Why trials and pairs are set aside, and the classes of failed responses.
const REASONS: &[Phrase] = &[
    ["CPU stolen by the hypervisor", "하이퍼바이저가 CPU를 빼앗음", "CPU 被虚拟机监控程序窃取"],
    ["other processes busy", "다른 프로세스가 바쁨", "其他进程繁忙"],
    ["state changed", "머신 상태가 바뀜", "机器状态改变"],
    ["in the far state", "‘멂’ 상태", "处于“远”状态"],
    ["in the near state", "‘가까움’ 상태", "处于“近”状态"],
    ["without this figure", "이 수치가 없음", "缺少该数值"],
    ["errors", "오류", "出错"],
    ["Little's law", "리틀의 법칙에 어긋남", "违反利特尔法则"],
    ["server failed", "서버 실패", "服务器失败"],
    ["generator failed", "부하 생성기 실패", "负载生成器失败"],
    ["job failed", "작업 실패", "任务失败"],
    ["completion queue overflow", "완료 큐 넘침", "完成队列溢出"],
    ["refused", "연결 거부", "连接被拒"],
    ["reset", "연결 재설정", "连接被重置"],
    ["connect timeout", "연결 시간 초과", "连接超时"],
    ["response timeout", "응답 시간 초과", "响应超时"],
    ["cut short", "응답 잘림", "响应不完整"],
    ["wrong bytes", "잘못된 바이트", "字节有误"],
    ["wrong status", "다른 상태 코드", "状态码不符"],
    ["malformed", "형식이 잘못된 응답", "格式错误"],
    ["local limit", "로컬 한도", "本机限制"],
    ["unexplained", "원인 불명", "原因不明"],
];

/// What a way of waiting was found to be, and what told it.
const WAYS: &[Phrase] = &[
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
        "{n} of {n} requests of the machine are taken",
        "머신 전체 요청 {1}개 중 {0}개 사용 중",
        "整机 {1} 个请求中已占用 {0} 个",
    ],
    [
        "all {n} requests of the machine are taken",
        "머신 전체 요청 {0}개가 모두 사용 중",
        "整机 {0} 个请求已全部占用",
    ],
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

/// A finding in one language; `None` when it is not listed and stays English.
pub(crate) fn told(finding: &str, language: Language) -> Option<String> {
    let sentence =
        CHECKS.iter().chain(NOTES).chain(MISSING).chain(WAYS).chain(published::SENTENCES).find_map(
            |phrase| {
                let values = captured(phrase[0], finding)?;
                Some(match language {
                    Language::English => refilled(phrase[0], &values),
                    _ => filled(language.choose(*phrase), &values, language),
                })
            },
        );
    match language {
        Language::English => Some(sentence.unwrap_or_else(|| finding.to_owned()).replace(" >= ", " ≥ ")),
        _ => sentence.or_else(|| reasons(finding, language)),
    }
}

/// A list of reasons, each alone or with its count in front: `2 state changed, 1 errors`.
fn reasons(list: &str, language: Language) -> Option<String> {
    let one = |item: &str| {
        let (count, reason) = match item.split_once(' ') {
            Some((count, reason)) if is_number(count) => (Some(count), reason),
            _ => (None, item),
        };
        let phrase = REASONS.iter().chain(GRANTED).find(|phrase| phrase[0] == reason)?;
        let told = language.choose(*phrase);
        Some(match (count, language) {
            (None, _) => told.to_owned(),
            (Some(count), Language::Korean) => format!("{told} {count}건"),
            (Some(count), _) => format!("{told} {count} 例"),
        })
    };
    let told: Option<Vec<String>> = list.split(", ").map(one).collect();
    told.map(|told| told.join(if language == Language::Chinese { "、" } else { ", " }))
}

/// What stands in the places of a form; `None` when the text has another.
fn captured(form: &str, text: &str) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut pieces = form.split('{');
    let mut rest = text.strip_prefix(pieces.next().unwrap_or_default())?;
    for piece in pieces {
        let (kind, literal) = piece.split_once('}')?;
        let end = if literal.is_empty() { rest.len() } else { rest.find(literal)? };
        let (value, after) = (&rest[..end], &rest[end + literal.len()..]);
        if value.is_empty() || (!kind.is_empty() && !is_number(value)) {
            return None;
        }
        let count = value.parse::<u64>().ok().filter(|_| kind == "n");
        values.push(count.map_or_else(|| value.to_owned(), |count| format::grouped(count as f64)));
        rest = after;
    }
    rest.is_empty().then_some(values)
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.chars().all(|character| character.is_ascii_digit() || ".,".contains(character))
}

/// The recorded form itself with its values.
fn refilled(form: &str, values: &[String]) -> String {
    let literals = form.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, literal)| literal));
    let mut values = std::iter::once("").chain(values.iter().map(String::as_str));
    literals.map(|literal| format!("{}{literal}", values.next().unwrap_or_default())).collect()
}

fn filled(form: &str, values: &[String], language: Language) -> String {
    let mut pieces = form.split('{');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (place, literal) = piece.split_once('}').unwrap_or_default();
        let value = place.trim_start_matches('~').parse::<usize>().ok().and_then(|place| values.get(place));
        let value = value.map(String::as_str).unwrap_or_default();
        let translated = place.starts_with('~').then(|| told(value, language)).flatten();
        text.push_str(translated.as_deref().unwrap_or(value));
        text.push_str(literal);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_translation_uses_every_value_and_none_that_is_not_there() {
        let sentences = CHECKS.iter().chain(NOTES).chain(MISSING).chain(WAYS).chain(published::SENTENCES);
        for phrase in sentences.chain(REASONS).chain(GRANTED) {
            let places = phrase[0].matches('{').count();
            for translation in &phrase[1..] {
                assert_eq!(translation.matches('{').count(), places, "{translation}");
                for place in 0..places {
                    let plain = translation.matches(&format!("{{{place}}}")).count();
                    let told = translation.matches(&format!("{{~{place}}}")).count();
                    assert_eq!(plain + told, 1, "{place} in {translation}");
                }
            }
        }
    }

    #[test]
    fn findings_keep_their_numbers_and_names() {
        let korean = |finding: &str| told(finding, Language::Korean);
        let chinese = |finding: &str| told(finding, Language::Chinese);
        assert_eq!(
            korean("64 of 128 bytes compared, 1 responses wrong").as_deref(),
            Some("128바이트 중 64바이트 비교, 잘못된 응답 1건")
        );
        assert_eq!(
            korean("3 responses failed: 2 refused, 1 cut short").as_deref(),
            Some("응답 3건 실패: 연결 거부 2건, 응답 잘림 1건")
        );
        assert_eq!(
            chinese("2 of 6 trials of my arm failed, first: server failed").as_deref(),
            Some("my arm：6 个试次中有 2 个失败，第一个是服务器失败")
        );
        let verified = "1402331904 of 1402331904 bytes compared, 0 responses wrong";
        assert_eq!(
            told(verified, Language::English).as_deref(),
            Some("1,402,331,904 of 1,402,331,904 bytes compared, 0 responses wrong")
        );
        let order = "30 of 30 blocks ran in the random order of seed 20261121";
        assert_eq!(told(order, Language::English).as_deref(), Some(order));
        assert_eq!(korean("2 state changed").as_deref(), Some("머신 상태가 바뀜 2건"));
    }

    #[test]
    fn what_is_not_listed_is_left_alone() {
        for finding in
            ["", "no luck", "x of 3 bytes compared, 0 responses wrong", "2 state changed, 1 else", "errors "]
        {
            assert_eq!(told(finding, Language::Korean), None, "{finding}");
            assert_eq!(told(finding, Language::English).as_deref(), Some(finding));
        }
    }
}
