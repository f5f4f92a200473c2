//! Ways to wait in the plane of misses and CPU: the result in words, and the numbers.

use weir_record::{
    effect::{Effect, EffectScale},
    frontier::{FrontierAnswer, FrontierRow, Standing},
    metric::Metric,
    storage::StorageDevice,
};

use crate::{cited::Sentence, format, language::localized, metrics, table::Table, view::View, words::Word};

/// The primary comparison in one sentence; `None` if the study has another question.
pub(crate) fn headline(view: &View<'_>) -> Option<String> {
    let answer = view.frontier_answer()?;
    let FrontierAnswer { candidate, family, settings, behind, .. } = answer;
    let place = view.cell_label(&answer.cell_id);
    if answer.is_of_interrupts() {
        let percent = format::percent(answer.interrupted);
        return Some(localized!(
            view.language,
            "{place}: not decided; {candidate} leaves {percent} of the operations to the interrupt, so it predicts nothing that \
             could be compared with {family}.",
            "{place}: 판정하지 않음. {candidate} 설정은 I/O의 {percent}를 인터럽트에 맡기므로, {family} 설정과 비교할 예측이 없습니다.",
            "{place}：不作判定。{candidate} 把 {percent} 的 I/O 交给中断，没有可与 {family} 比较的预测。",
        ));
    }
    Some(localized!(
        view.language,
        "{place}: {candidate} is ahead of {behind} of {settings} settings of {family} on misses and CPU together.",
        "{place}: miss와 CPU를 함께 보면 {candidate} 설정은 {family} 설정 {settings}개 중 {behind}개보다 앞섭니다.",
        "{place}：同时看 miss 与 CPU，{candidate} 领先于 {family} {settings} 个设置中的 {behind} 个。",
    ))
}

/// The results of the other cells, and the settings that are neither ahead nor behind, a line for each cell.
pub(crate) fn elsewhere(view: &View<'_>) -> Vec<Sentence> {
    let Some(primary) = view.frontier_answer() else { return Vec::new() };
    let one = |answer: &FrontierAnswer| {
        let FrontierAnswer { settings, behind, ahead, .. } = answer;
        let (place, others) = (view.cell_label(&answer.cell_id), others(view, answer));
        if answer.cell_id == primary.cell_id && others.is_empty() {
            return None;
        }
        let to_interrupt = to_interrupt(view, answer);
        let text = localized!(
            view.language,
            "{place}: ahead of {behind} of {settings}, behind {ahead}{others}{to_interrupt}.",
            "{place}: {settings}개 중 {behind}개보다 앞서며 뒤지는 설정은 {ahead}개{others}{to_interrupt}.",
            "{place}：领先于 {settings} 个设置中的 {behind} 个，落后于 {ahead} 个{others}{to_interrupt}。",
        );
        Some(Sentence { text, cells: vec![answer.cell_id.clone()] })
    };
    let answers = &view.result.frontier_answers;
    answers.iter().filter_map(one).collect()
}

/// Smaller shares of operations are not mentioned.
const INTERRUPTED_MIN: f64 = 0.01;

/// The share of operations that the candidate leaves to the interrupt in the primary comparison: for these it waits
/// in another way, which is no better prediction. The sentence follows the claim.
pub(crate) fn by_interrupt(view: &View<'_>) -> Option<String> {
    let answer = view.frontier_answer()?;
    let share = view.summary(&answer.cell_id, &answer.candidate)?.mean(Metric::InterruptedRate)?;
    if answer.is_of_interrupts() {
        return None;
    }
    let (candidate, place, percent) =
        (&answer.candidate, view.cell_label(&answer.cell_id), format::percent(share));
    (share >= INTERRUPTED_MIN).then(|| {
        localized!(
            view.language,
            "{place}: {candidate} leaves {percent} of the operations to the interrupt; that part is another way to wait, \
             not a better prediction.",
            "{place}: {candidate} 설정은 I/O의 {percent}를 인터럽트에 맡깁니다. 이 차이는 예측이 좋아서가 아니라 대기 방식이 다르기 때문입니다.",
            "{place}：{candidate} 把 {percent} 的 I/O 交给中断。这部分差异来自等待方式不同，而不是预测更好。",
        )
    })
}

/// `; 100 % of its operations are left to the interrupt`, if that is the result.
fn to_interrupt(view: &View<'_>, answer: &FrontierAnswer) -> String {
    if !answer.is_of_interrupts() {
        return String::new();
    }
    let (percent, separator) = (format::percent(answer.interrupted), view.language.semicolon());
    localized!(
        view.language,
        "{separator}but {percent} of its operations are left to the interrupt",
        "{separator}다만 I/O의 {percent}를 인터럽트에 맡김",
        "{separator}但其 {percent} 的 I/O 交给了中断",
    )
}

/// `; a, b (not decided); c (level)`.
fn others(view: &View<'_>, answer: &FrontierAnswer) -> String {
    let mut groups: Vec<(Standing, Vec<&str>)> = Vec::new();
    for (arm, standing) in &answer.others {
        match groups.iter_mut().find(|(known, _)| known == standing) {
            Some((_, arms)) => arms.push(arm),
            None => groups.push((*standing, vec![arm])),
        }
    }
    let separator = view.language.semicolon();
    let sentence = |(standing, arms): &(Standing, Vec<&str>)| {
        let (arms, standing) = (arms.join(view.language.list()), view.word(word(*standing)));
        localized!(
            view.language,
            "{separator}{arms} ({standing})",
            "{separator}{arms}({standing})",
            "{separator}{arms}（{standing}）"
        )
    };
    groups.iter().map(sentence).collect()
}

/// The standing of the arm relative to the baseline.
pub(crate) fn word(standing: Standing) -> Word {
    match standing {
        Standing::Behind => Word::StandingBehind,
        Standing::Ahead => Word::StandingAhead,
        Standing::Level => Word::StandingLevel,
        Standing::TradeOff => Word::StandingTradeOff,
        Standing::Open => Word::StandingOpen,
    }
}

/// Rows of a cell in the order of the arms.
pub(crate) fn rows<'a>(view: &View<'a>, cell: &str) -> Vec<&'a FrontierRow> {
    view.result.frontier.iter().filter(|row| row.cell_id == cell).collect()
}

/// Cells with a frontier, in reading order.
pub(crate) fn cells<'a>(view: &View<'a>) -> Vec<&'a str> {
    view.cells.iter().copied().filter(|cell| !rows(view, cell).is_empty()).collect()
}

/// Figures next to misses and CPU.
const FURTHER: [Metric; 6] = [
    Metric::ServerCpuPerMessage,
    Metric::Throughput,
    Metric::AddedLatency,
    Metric::HarmfulMissRate,
    Metric::EffectiveSleep,
    Metric::InterruptedRate,
];

/// Every arm of a cell with its figures, and its result against the baseline.
pub(crate) fn table(view: &View<'_>, cell: &str) -> Table {
    let mut head = vec![view.word(Word::Arm).to_owned(), view.word(Word::Standing).to_owned()];
    for metric in [Metric::MissRate, Metric::WaitingCpuShare] {
        head.push(metrics::short(view, metric));
        head.push(points(view));
    }
    head.extend(FURTHER.map(|metric| metrics::short(view, metric)));
    let row = |row: &FrontierRow| {
        let mut texts = vec![name(view, row), standing(view, row).to_owned()];
        for metric in [Metric::MissRate, Metric::WaitingCpuShare] {
            texts.push(figure(view, row, metric));
            let compared = view.comparison(cell, &row.arm, metric);
            texts.push(compared.and_then(difference).unwrap_or_else(|| format::ABSENT.to_owned()));
        }
        texts.extend(FURTHER.map(|metric| figure(view, row, metric)));
        texts
    };
    Table::with_head(head, 2, rows(view, cell).into_iter().map(row).collect())
}

/// The same in few columns.
pub(crate) fn narrow_table(view: &View<'_>, cell: &str) -> Table {
    let metrics = [Metric::MissRate, Metric::WaitingCpuShare, Metric::AddedLatency];
    let words = [Word::Arm, Word::Standing].map(|word| view.word(word).to_owned());
    let head = words.into_iter().chain(metrics.map(|metric| metrics::short(view, metric)));
    let row = |row: &FrontierRow| {
        let texts = [name(view, row), standing(view, row).to_owned()];
        texts.into_iter().chain(metrics.map(|metric| figure(view, row, metric))).collect()
    };
    Table::with_head(head.collect(), 2, rows(view, cell).into_iter().map(row).collect())
}

/// The arm, marked if it is on the frontier (only an oracle has less of both).
fn name(view: &View<'_>, row: &FrontierRow) -> String {
    let mark = if row.is_on_frontier { " ◆" } else { "" };
    let baseline = if view.baseline() == Some(&row.arm) { view.word(Word::Baseline) } else { "" };
    match baseline {
        "" => format!("{}{mark}", row.arm),
        baseline => format!("{} ({baseline}){mark}", row.arm),
    }
}

fn standing(view: &View<'_>, row: &FrontierRow) -> &'static str {
    row.standing.map_or(format::ABSENT, |standing| view.word(word(standing)))
}

fn figure(view: &View<'_>, row: &FrontierRow, metric: Metric) -> String {
    let mean = view.summary(&row.cell_id, &row.arm).and_then(|summary| summary.mean(metric));
    mean.map_or_else(|| format::ABSENT.to_owned(), |mean| metrics::bare(metric, mean))
}

/// Header of a column of differences.
fn points(view: &View<'_>) -> String {
    view.language.choose(["difference, points", "차이(퍼센트포인트)", "差值（百分点）"]).to_owned()
}

/// A difference of shares with its interval, in points.
fn difference(comparison: &Effect) -> Option<String> {
    let difference = comparison.estimate.filter(|_| comparison.scale == EffectScale::Difference)?;
    let signed = |share: f64| format!("{:+.2}", share * 100.0);
    Some(match comparison.interval {
        Some((low, high)) => format!("{} [{}, {}]", signed(difference), signed(low), signed(high)),
        None => signed(difference),
    })
}

/// What is simulated and what was chosen in advance, for the devices of the study.
pub(crate) fn simulated(view: &View<'_>) -> Vec<String> {
    use StorageDevice::{Disk, Model, ModelLate, Synthetic, Trace};
    let devices = || view.result.spec.cells.iter().filter_map(|cell| Some(&cell.storage.as_ref()?.device));
    let has = |is_it: fn(&StorageDevice) -> bool| devices().any(is_it);
    let texts = [
        (has(|it| matches!(it, Model | ModelLate)), SIMULATED_MODEL),
        (has(|it| *it == ModelLate), SIMULATED_LATE),
        (has(|it| matches!(it, Synthetic(_))), SIMULATED_TRACES),
        (has(|it| matches!(it, Trace(_))), SIMULATED_REPLAY),
        (has(|it| *it == Disk), ON_DISK),
        (has(|it| *it != Disk), NO_MACHINE),
    ];
    if !has(|it| *it != Disk) {
        return Vec::new();
    }
    let shown = texts.into_iter().filter(|(is_shown, _)| *is_shown);
    shown.map(|(_, text)| view.language.choose(text).to_owned()).collect()
}

const SIMULATED_MODEL: [&str; 3] = [
    "Model: device, host and load are a queueing model whose constants were fitted to published figures of a Samsung \
     983 ZET and a Xeon Gold 6230; no disk was touched. Two of them are not published and were chosen by what was \
     observed: 32 operations in flight for each background core, by the IOPS of the third job, and 1.9 µs of CPU for a \
     background operation, by the misses of the second. That these two come out is no evidence.",
    "모델: 장치, 호스트, 부하는 대기열 모델입니다. 상수는 삼성 983 ZET와 Xeon Gold 6230의 발표 수치에 맞췄으며, 실제 디스크는 쓰지 않았습니다. 두 상수는 발표되지 않아 관찰 결과에 \
    맞춰 골랐습니다. 백그라운드 코어당 큐 깊이 32는 세 번째 작업의 IOPS에, 백그라운드 I/O당 CPU 1.9 µs는 두 번째 작업의 miss에 맞췄습니다. 따라서 이 두 수치가 일치하는 것은 근거가 \
    되지 않습니다.",
    "模型：设备、主机与负载是排队模型，其常数按三星 983 ZET 与 Xeon Gold 6230 的公布数据拟合，没有使用任何磁盘。其中两个常数未公布，按观察结果选定：每个后台核心 32 个在途 I/O 取自第三个作业的 \
    IOPS，每次后台 I/O 1.9 µs CPU 取自第二个作业的 miss。因此这两个结果相符不能作为依据。",
];

const SIMULATED_LATE: [&str; 3] = [
    "Model with late wake-ups and slow starts: one wake-up in twenty takes the exit latency of the deepest idle state \
     longer, and the device is three times as slow when a load begins. Both are hypotheses about what was observed.",
    "늦은 깨어남과 느린 시작을 넣은 모델: 20번 중 한 번은 가장 깊은 유휴 상태의 복귀 시간만큼 늦게 깨어나고, 부하가 시작될 때 장치가 세 배 느립니다. 둘 다 관찰한 현상에 대한 가설입니다.",
    "带唤醒延迟与启动缓慢的模型：每二十次唤醒有一次晚到最深空闲状态的退出延迟，且负载开始时设备慢三倍。两者都是对所观察现象的假设。",
];

const SIMULATED_TRACES: [&str; 3] = [
    "Made traces: latencies from seeds by three other processes (log-normal with stalls; two speeds; a drifting load). \
     None was recorded from a device, and the host that waits is the model's.",
    "생성 트레이스: 시드에서 세 가지 확률 과정(멈춤이 있는 로그정규, 두 속도, 변하는 부하)으로 만든 지연 시간입니다. 장치에서 기록한 값이 아니며, 기다리는 호스트는 모델입니다.",
    "生成的轨迹：由种子经三种其他随机过程（带停顿的对数正态、两种速度、漂移的负载）生成的延迟。均非设备实录，等待的主机是模型。",
];

const SIMULATED_REPLAY: [&str; 3] = [
    "Recorded traces: the latencies are those of the file, a piece of it for each block; the host that waits for them \
     is the model's, and waiting otherwise does not change them.",
    "기록한 트레이스: 지연 시간은 파일에서 읽으며 블록마다 그 한 부분을 씁니다. 기다리는 호스트는 모델이며, 대기 방식을 바꿔도 지연 시간은 바뀌지 않습니다.",
    "实录的轨迹：延迟取自文件，每个区组用其中一段。等待的主机是模型，改变等待方式不会改变这些延迟。",
];

const ON_DISK: [&str; 3] = [
    "Disk: hybrid polling in user space over completions that come by interrupt, because the kernel's own has been gone \
     since Linux 6.4. One and four background cores become queue depths on one other core.",
    "디스크: 커널의 하이브리드 폴링은 리눅스 6.4에서 없어졌으므로, 인터럽트로 오는 완료를 사용자 공간에서 하이브리드 폴링합니다. 백그라운드 1코어와 4코어는 다른 한 코어의 큐 깊이로 바꿨습니다.",
    "磁盘：内核自身的混合轮询自 Linux 6.4 起已被移除，因此对由中断到达的完成在用户态做混合轮询。1 个与 4 个后台核心改为另一核心上的队列深度。",
];

const NO_MACHINE: [&str; 3] = [
    "What is simulated depends on the seed alone and on nothing of this machine: on another one the same seed gives the \
     same figures. The default settings of our predictors were fixed on other seeds (1 to 10) before any of these.",
    "시뮬레이션 결과는 시드로만 정해지며 이 머신과는 무관합니다. 다른 머신에서도 같은 시드는 같은 수치를 냅니다. Weir 예측기의 기본 설정은 이 실험 전에 다른 시드(1~10)에서 정했습니다.",
    "模拟结果只取决于种子，与本机无关：在其他机器上，相同的种子给出相同的数值。Weir 各预测器的默认设置此前已用其他种子（1 至 10）确定。",
];
