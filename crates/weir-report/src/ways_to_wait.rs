//! Explanations of a study's ways to wait, a sentence each: a name with a number is not self-explanatory.

use std::collections::BTreeSet;

use weir_record::spec::Subject;

use crate::view::View;

/// A family of ways to wait, and its explanation.
type Way = (&'static str, [&'static str; 3]);

const WAYS: [Way; 14] = [
    (
        "interrupt",
        ["sleeps until the completion's interrupt", "완료 인터럽트가 올 때까지 잠듦", "睡眠直至完成中断到来"],
    ),
    ("poll", ["looks for the completion all the time", "완료되었는지 계속 확인함", "一直查看是否完成"]),
    (
        "linux-mean",
        [
            "Linux's hybrid polling from 4.10 to 6.3: sleeps for a share of the mean of the last 100 ms (the number; 0.5 in the \
         kernel), then polls",
            "리눅스 4.10~6.3의 하이브리드 폴링. 최근 100 ms 평균의 일정 비율(지정한 숫자, 커널은 0.5)만큼 잠든 뒤 폴링함",
            "Linux 4.10 至 6.3 的混合轮询：睡眠最近 100 ms 均值的一定比例（即该数字，内核为 0.5），然后轮询",
        ],
    ),
    (
        "lmd",
        [
            "Begunkov's proposal of 2019: sleeps for the mean less four times the deviation below it",
            "Begunkov의 2019년 제안. 평균에서 그 아래쪽 편차의 네 배를 뺀 만큼 잠듦",
            "Begunkov 2019 年的提议：睡眠时间为均值减去其下偏差的四倍",
        ],
    ),
    (
        "ehp",
        [
            "EHP (2022): sleeps until shortly before the earliest completion of the last 10 ms",
            "EHP(2022). 최근 10 ms에서 가장 이른 완료 직전까지 잠듦",
            "EHP（2022）：睡眠至最近 10 ms 中最早完成的时刻之前不久",
        ],
    ),
    (
        "hybrid-iopoll",
        [
            "io_uring's own hybrid since Linux 6.13: sleeps for half of the shortest time it ever saw beyond its sleeps",
            "리눅스 6.13부터 있는 io_uring 자체의 하이브리드 방식. 잠든 시간을 뺀 시간 중 지금까지 가장 짧았던 것의 절반만큼 잠듦",
            "io_uring 自 Linux 6.13 起自带的混合方式：睡眠至今所见（扣除睡眠后）最短时间的一半",
        ],
    ),
    (
        "pas",
        [
            "PAS (FAST '26): a little longer after a sleep that was too short, ten times as much shorter after one that was too \
         long",
            "PAS(FAST '26). sleep이 너무 짧았으면 조금 늘리고, 너무 길었으면 그 열 배로 줄임",
            "PAS（FAST '26）：睡眠过短则略微加长，过长则以十倍幅度缩短",
        ],
    ),
    (
        "dpas",
        [
            "DPAS (FAST '26): PAS, polling or interrupts, by the thread's own queue depth",
            "DPAS(FAST '26). 스레드의 큐 깊이에 따라 PAS, 폴링, 인터럽트 가운데 하나를 씀",
            "DPAS（FAST '26）：按线程自身的队列深度选用 PAS、轮询或中断",
        ],
    ),
    (
        "ewma",
        [
            "sleeps for a moving average less its deviations",
            "이동 평균에서 편차를 뺀 만큼 잠듦",
            "睡眠时间为移动平均减去偏差",
        ],
    ),
    (
        "quantile",
        [
            "ours: sleeps so long that the share of sleeps that are too long is the number",
            "Weir의 방식. 너무 긴 sleep의 비율이 지정한 숫자가 되도록 잠듦",
            "Weir 的方式：使过长睡眠所占比例等于该数字",
        ],
    ),
    (
        "regime",
        [
            "ours: sleeps as quantile does (the number is the share of sleeps that may be too long), and leaves the wait to \
         the interrupt where that is cheaper: 16 µs of CPU may be spent to notice a completion 1 µs sooner, unless a \
         second number says another price",
            "Weir의 방식. quantile처럼 잠듦(숫자는 너무 긴 sleep의 허용 비율). 인터럽트가 더 저렴하면 인터럽트에 맡김. 완료를 1 µs 일찍 알기 위해 CPU를 16 µs까지 \
            쓰며, 두 번째 숫자로 이 값을 바꿀 수 있음",
            "Weir 的方式：像 quantile 那样睡眠（该数字为允许过长的睡眠所占比例），在更省时改由中断等待。为早 1 µs 得知完成，最多花 16 µs CPU；可用第二个数字更改",
        ],
    ),
    (
        "load-aware",
        [
            "ours: regime with a prediction for each number of operations in flight",
            "Weir의 방식. 진행 중인 I/O 수마다 예측을 따로 두는 regime",
            "Weir 的方式：按在途操作数分别预测的 regime",
        ],
    ),
    (
        "constant",
        [
            "an oracle: the longest constant sleep whose share of misses is at most the number",
            "오라클. miss 비율이 지정한 숫자를 넘지 않는 가장 긴 고정 sleep",
            "oracle：miss 率不超过该数字的最长固定睡眠",
        ],
    ),
    (
        "clairvoyant",
        [
            "an oracle: knows when each operation will be done and when it will wake",
            "오라클. I/O마다 완료 시각과 깨어날 시각을 미리 앎",
            "oracle：预知每个操作何时完成、自己何时醒来",
        ],
    ),
];

/// The terms of a study's ways to wait, if it has several.
pub(crate) fn terms(view: &View<'_>) -> Vec<(String, String)> {
    let predictors: BTreeSet<&str> = view
        .result
        .spec
        .arms
        .iter()
        .filter_map(|arm| match &arm.subject {
            Subject::Storage(storage) => storage.completion.predictor.split(':').next(),
            _ => None,
        })
        .collect();
    if predictors.len() < 2 {
        return Vec::new();
    }
    let own = WAYS.iter().filter(|(name, _)| predictors.contains(name));
    own.map(|(name, texts)| ((*name).to_owned(), view.language.choose(*texts).to_owned())).collect()
}
