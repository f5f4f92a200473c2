//! Views of several pooled runs of one study: text for a terminal, Markdown, and a page, which also has a forest of
//! runs: a row for each run, a diamond for their common mean, a bar where the next one is expected.

use maud::Markup;
use weir_record::{
    effect::EffectScale,
    metric::Metric,
    run_pool::{LeftOut, MachineGroup, PoolLack, PoolRun, PooledEffect, PooledFigure, RunFigure, RunPool},
    spec::{CellSpec, StudySpec},
    study::StudyResult,
    verdict::Verdict,
};

use crate::{
    chart::{self, PooledPlot, PooledRow},
    display::printable,
    format, html as page,
    language::{Language, localized},
    markdown::of_sections as document,
    metrics,
    section::{Caption, Plot, Section},
    table::Table,
    terminal::of_sections as text,
    view::View,
    when,
    words::{self, Word},
};

/// Most effects whose runs a page draws.
const PLOTS_MAX: usize = 12;

/// The pool for a terminal of `width_columns` columns. `named` is one of the judged runs, which provides the names of
/// what all of them measured.
pub fn terminal(
    pool: &RunPool,
    named: &StudyResult,
    language: Language,
    width_columns: usize,
    color: bool,
) -> String {
    let named = at_shares(named);
    let view = View::new(&named, language);
    text(&view, (&title(&view), &head(&view, pool)), &sections(&view, pool), (width_columns, color))
}

/// The same as GitHub-flavoured Markdown.
pub fn markdown(pool: &RunPool, named: &StudyResult, language: Language) -> String {
    let named = at_shares(named);
    let view = View::new(&named, language);
    document(&view, (&title(&view), &head(&view, pool)), &sections(&view, pool))
}

/// The same as a page.
pub fn html(pool: &RunPool, named: &StudyResult, language: Language) -> String {
    html_below(pool, named, language, &Markup::default())
}

/// The same with a header.
pub fn html_below(pool: &RunPool, named: &StudyResult, language: Language, above: &Markup) -> String {
    let named = at_shares(named);
    let view = View::new(&named, language);
    let mut all = sections(&view, pool);
    if let Some(runs) = all.iter_mut().find(|it| it.title.localized(&view) == language.choose(EACH)) {
        runs.plots = plots(&view, pool);
        // A chart has its title, and its numbers are folded below it.
        runs.sentences.clear();
        runs.tables.clear();
    }
    let verdict = pool.primary.map_or(Verdict::NotComparable, |index| pool.effects[index].verdict);
    let class = page::verdict_class(verdict);
    let title = title(&view);
    page::of_sections(&view, above, ([&title; 2], &head(&view, pool)), class, &all)
}

/// The judged run with cells at a share of a capacity in their requested form: each run found another rate for it.
fn at_shares(named: &StudyResult) -> StudyResult {
    let asked = |cell: &CellSpec| CellSpec { load: cell.load.without_rate(), ..cell.clone() };
    let spec = StudySpec { cells: named.spec.cells.iter().map(asked).collect(), ..named.spec.clone() };
    StudyResult { spec, ..named.clone() }
}

fn title(view: &View<'_>) -> String {
    view.language.choose(["Several runs, pooled", "여러 실행 종합", "多次运行合并"]).to_owned()
}

/// What was pooled, the result, and notes that precede the tables.
fn head(view: &View<'_>, pool: &RunPool) -> Vec<String> {
    let mut lines = vec![counted(view, pool)];
    match pool.primary.and_then(|index| pool.effects.get(index)) {
        Some(effect) => {
            lines.push(sentence(view, effect));
            let several = effect.groups.iter();
            lines.extend(several.map(|it| of_group(view, effect, it.group, &it.pooled)));
            lines.extend(between(view, effect));
            lines.extend(next(view, effect));
        }
        None => lines.push(choose(view, NO_PRIMARY)),
    }
    lines.extend(pool.groups.iter().map(|group| machine(view, group)));
    for (run, reason) in pool.runs.iter().filter_map(|run| Some((run, run.left_out.as_ref()?))) {
        let (number, place, reason) = (run.number, printable(&run.place), reason_of(view, reason));
        lines.push(localized!(
            view.language,
            "Left out: run {number} ({place}), because {reason}.",
            "제외: 실행 {number}({place}). {reason}.",
            "未计入：运行 {number}（{place}），原因：{reason}。",
        ));
    }
    lines
}

const NO_PRIMARY: [&str; 3] =
    ["No run has a primary comparison.", "주 비교가 있는 실행이 없습니다.", "没有一次运行有主要比较。"];

fn counted(view: &View<'_>, pool: &RunPool) -> String {
    let (study, given) = (printable(&pool.study), pool.runs.len());
    let used = pool.runs.iter().filter(|run| run.left_out.is_none()).count();
    let began = pool.runs.iter().filter_map(|run| run.period).map(|it| it.began_unix_s).min();
    let ended = pool.runs.iter().filter_map(|run| run.period).map(|it| it.ended_unix_s).max();
    let range = began.zip(ended).map(|(began, ended)| when::range(view.language, began, ended));
    let range =
        range.map_or_else(String::new, |it| format!("{}{it}", view.language.choose([", ", ", ", "，"])));
    localized!(
        view.language,
        "Study {study}: {used} of {given} runs{range}.",
        "실험 {study}: 실행 {given}회 중 {used}회{range}.",
        "实验 {study}：{given} 次运行中的 {used} 次{range}。",
    )
}

fn machine(view: &View<'_>, group: &MachineGroup) -> String {
    let MachineGroup { number, cpus_online, .. } = group;
    // Some kernels do not name their CPU.
    let known = [&group.cpu_model, &group.architecture].into_iter().filter(|it| !it.is_empty());
    let cpu =
        known.map(|it| printable(it)).collect::<Vec<_>>().join(view.language.choose([", ", ", ", "，"]));
    let kernel = printable(&group.kernel_release);
    let runs = group.runs.iter().map(u32::to_string).collect::<Vec<_>>().join(view.language.list());
    localized!(
        view.language,
        "Machine {number}: {cpu}, CPUs: {cpus_online}, Linux {kernel}; runs {runs}.",
        "머신 {number}: {cpu}, CPU {cpus_online}개, Linux {kernel}. 실행 {runs}.",
        "机器 {number}：{cpu}，CPU {cpus_online} 个，Linux {kernel}；运行 {runs}。",
    )
}

/// The primary comparison over all runs.
fn sentence(view: &View<'_>, effect: &PooledEffect) -> String {
    let PooledEffect { arm, baseline, all, .. } = effect;
    let (cell, metric) = (view.cell_label(&effect.cell_id), metrics::name(view, effect.metric));
    let (found, runs, verdict) = (found(view, effect, all), all.runs, verdict(view, effect));
    localized!(
        view.language,
        "{cell}, {metric}, {arm} / {baseline}, {runs} runs: {found}: {verdict}.",
        "{cell}, {metric}, {arm} / {baseline}, 실행 {runs}회: {found}: {verdict}.",
        "{cell}，{metric}，{arm} / {baseline}，{runs} 次运行：{found}：{verdict}。",
    )
}

fn of_group(view: &View<'_>, effect: &PooledEffect, group: u32, pooled: &PooledFigure) -> String {
    let (found, runs) = (found(view, effect, pooled), pooled.runs);
    localized!(
        view.language,
        "Machine {group}, {runs} runs: {found}.",
        "머신 {group}, 실행 {runs}회: {found}.",
        "机器 {group}，{runs} 次运行：{found}。",
    )
}

/// `0.789 [0.771, 0.807]`; without an interval the range of the runs, and the number of runs that an interval needs.
fn found(view: &View<'_>, effect: &PooledEffect, pooled: &PooledFigure) -> String {
    if pooled.figure.is_some() {
        return number(view, effect, pooled.figure, pooled.interval);
    }
    let range = range(view, effect, pooled.range);
    match pooled.lacks {
        Some(PoolLack::Interval { runs_min }) => localized!(
            view.language,
            "{range} (a pooled figure takes {runs_min} runs)",
            "{range}(종합하려면 실행 {runs_min}회 필요)",
            "{range}（合并至少需要 {runs_min} 次运行）",
        ),
        _ => range,
    }
}

fn number(
    view: &View<'_>,
    effect: &PooledEffect,
    figure: Option<f64>,
    interval: Option<(f64, f64)>,
) -> String {
    metrics::with_interval(view, effect.metric, effect.scale, figure, interval)
}

/// `0.771 – 0.807`; a dash if there is none.
fn range(view: &View<'_>, effect: &PooledEffect, range: Option<(f64, f64)>) -> String {
    when::between(view, effect.metric, effect.scale, range)
}

fn verdict(view: &View<'_>, effect: &PooledEffect) -> String {
    view.word(words::verdict(effect.metric, effect.verdict)).to_owned()
}

/// The spread between runs, as text.
fn apart(effect: &PooledEffect, pooled: &PooledFigure) -> String {
    metrics::size(effect.scale, pooled.between)
}

fn between(view: &View<'_>, effect: &PooledEffect) -> Option<String> {
    if effect.all.between? == 0.0 {
        return Some(choose(view, NO_FURTHER));
    }
    let apart = apart(effect, &effect.all);
    Some(localized!(
        view.language,
        "Beyond what the intervals of single runs explain, runs lie apart by a standard deviation of {apart}.",
        "각 실행의 신뢰구간으로 설명되지 않는 실행 간 표준편차: {apart}.",
        "超出各次运行自身置信区间的部分：运行之间的标准差为 {apart}。",
    ))
}

const NO_FURTHER: [&str; 3] = [
    "Runs lie no further apart than the intervals of single runs explain.",
    "실행 간 차이는 각 실행의 신뢰구간으로 설명되는 범위 안에 있습니다.",
    "各次运行之间的差异不超出其自身置信区间所能解释的范围。",
];

/// Where the next run is expected, or the number of runs that this needs.
fn next(view: &View<'_>, effect: &PooledEffect) -> Option<String> {
    let confidence = format::percent(effect.all.confidence);
    match effect.all.lacks {
        Some(PoolLack::Next { runs_min }) => Some(localized!(
            view.language,
            "Where the next run lies is said from {runs_min} runs on.",
            "다음 실행의 예측 범위는 실행이 {runs_min}회 이상일 때 나옵니다.",
            "运行满 {runs_min} 次后才给出下一次运行的预测范围。",
        )),
        Some(_) => None,
        None => {
            let range = range(view, effect, effect.all.next_figure);
            Some(localized!(
                view.language,
                "The figure of the next run is expected at {range} ({confidence}), if it is like these.",
                "조건이 같다면 다음 실행에서 예상되는 값: {range}({confidence}).",
                "若条件相同，下一次运行的数值预计为 {range}（{confidence}）。",
            ))
        }
    }
}

/// The machine's state that another run met: near, far.
const MET: [[&str; 3]; 2] = [
    [
        "it met the near state of the machine",
        "코어 간 지연이 짧은 머신 상태(near)에서 측정됨",
        "机器处于核间延迟较短的状态（near）",
    ],
    [
        "it met the far state of the machine",
        "코어 간 지연이 긴 머신 상태(far)에서 측정됨",
        "机器处于核间延迟较长的状态（far）",
    ],
];

/// Why a run is left out, as a clause.
fn reason_of(view: &View<'_>, reason: &LeftOut) -> String {
    let language = view.language;
    match reason {
        LeftOut::OtherStudy { name } => {
            let name = printable(name);
            localized!(language, "it is of the study {name}", "다른 실험: {name}", "属于另一项实验：{name}")
        }
        LeftOut::SameRun { run } => {
            localized!(
                language,
                "it is run {run} again",
                "같은 실행이 이미 있음: 실행 {run}",
                "与运行 {run} 相同"
            )
        }
        LeftOut::Unfinished { blocks_done, blocks } => localized!(
            language,
            "it is not finished ({blocks_done} of {blocks} rounds and blocks)",
            "끝나지 않음(라운드와 블록 {blocks}개 중 {blocks_done}개)",
            "尚未完成（{blocks} 个轮次与区组中完成 {blocks_done} 个）",
        ),
        LeftOut::AskedDifferently { facts } => {
            let shown = |fact: &String| match fact.as_str() {
                "" => format::ABSENT.to_owned(),
                fact => printable(fact),
            };
            let one = |it: &weir_record::machine::FactDifference| {
                format!("{} {} ≠ {}", printable(&it.name), shown(&it.other), shown(&it.one))
            };
            let facts = format::few(facts.iter().map(one).collect());
            localized!(
                language,
                "it asked or ran something else: {facts}",
                "설정이나 프로그램이 다름: {facts}",
                "设置或程序不同：{facts}"
            )
        }
        LeftOut::OtherBaseline { baseline } => {
            let baseline = printable(baseline);
            localized!(
                language,
                "its baseline is {baseline}",
                "기준이 다름: {baseline}",
                "基线不同：{baseline}"
            )
        }
        LeftOut::OtherState { is_far } => view.language.choose(MET[usize::from(*is_far)]).to_owned(),
        LeftOut::NoCell => choose(view, ["it does not have the cell", "해당 조건 없음", "没有该条件"]),
        LeftOut::NoArm => choose(view, ["it does not have the arm", "해당 비교 대상 없음", "没有该方案"]),
        LeftOut::NotMeasured => choose(view, ["it has no figure", "수치 없음", "没有数值"]),
        LeftOut::NotComparable { reasons } => {
            let reasons: Vec<String> = reasons.iter().map(|it| view.finding(it)).collect();
            let not = view.word(Word::NotComparable);
            match reasons.is_empty() {
                true => not.to_owned(),
                false => format!("{not}{}{}", language.colon(), reasons.join(language.semicolon())),
            }
        }
    }
}

fn choose(view: &View<'_>, texts: [&'static str; 3]) -> String {
    view.language.choose(texts).to_owned()
}

const EFFECTS: [&str; 3] = ["What the runs have in common", "실행들의 공통 결과", "各次运行的共同结果"];
const EFFECTS_HELP: [&str; 3] = [
    "The unit is a run: its effect, arm against baseline within its own rounds, with the standard error of that. Pooled with \
     random effects: the variance between runs by Paule and Mandel, the interval by Hartung and Knapp with t on one degree of \
     freedom less than there are runs (its factor of variance at least 1), 99 %; claims are corrected for being several (Holm). \
     Next run: the range in which the figure of one more such run is expected, t on two degrees less than there are runs.",
    "단위는 실행 한 번입니다. 각 실행의 라운드 안에서 비교 대상을 기준과 비교한 값과 그 표준오차를 씁니다. 변량효과 모형으로 종합합니다. 실행 간 분산은 Paule-Mandel 방법으로 구합니다. \
    신뢰구간은 Hartung-Knapp 방법으로 구하며(자유도가 실행 수 − 1인 t, 분산 배수는 최소 1) 99 %입니다. 가설이 여럿이면 보정합니다(Holm). 다음 실행: 같은 실행을 한 번 더 할 때 \
    예상되는 값의 범위(자유도가 실행 수 − 2인 t).",
    "单位是一次运行：该次运行各轮之内方案相对基线的效应及其标准误。按随机效应模型合并。运行间方差用 Paule-Mandel 法，置信区间用 Hartung-Knapp 法（自由度为运行次数减 1 的 t，方差倍数至少为 \
    1），99 %；多项结论按 Holm 校正。下一次运行：再运行一次时其数值的预计范围（自由度为运行次数减 2 的 t）。",
];
const EACH: [&str; 3] = ["What each run measured", "실행별 측정값", "每次运行的测量值"];
const EACH_HELP: [&str; 3] = [
    "The interval of a run is made of the rounds of that run. Cells at a share of a capacity have another rate in each run.",
    "각 실행의 신뢰구간은 그 실행의 라운드에서 구합니다. 처리 능력의 비율로 정한 조건은 실행마다 요청률이 다릅니다.",
    "每次运行的置信区间来自其自身的轮次。按处理能力的比例设定的条件，在每次运行中的请求速率不同。",
];
const RUNS: [&str; 3] = ["Runs", "실행 목록", "运行列表"];
const ASIDE: [&str; 3] = ["Runs that are not in a row", "일부 항목에서 제외된 실행", "未计入某些行的运行"];
const ABSENT_HELP: [&str; 3] = ["", "", ""];

fn sections(view: &View<'_>, pool: &RunPool) -> Vec<Section> {
    let mut all = Vec::new();
    let with = |title, help, table| Section {
        tables: vec![table],
        ..Section::new(Caption::Own(title), Caption::Own(help))
    };
    if !pool.effects.is_empty() {
        all.push(with(EFFECTS, EFFECTS_HELP, effects(view, pool)));
    }
    if let Some(first) = pool.effects.first().filter(|it| !it.runs.is_empty()) {
        let sentences = vec![subject(view, first).into()];
        all.push(Section { sentences, ..with(EACH, EACH_HELP, each(view, pool, first)) });
    }
    let aside = aside(view, pool);
    if !aside.rows.is_empty() {
        all.push(with(ASIDE, ABSENT_HELP, aside));
    }
    all.push(with(RUNS, ABSENT_HELP, runs(view, pool)));
    all
}

const RUN: [&str; 3] = ["run", "실행", "运行"];
const MACHINE: [&str; 3] = ["machine", "머신", "机器"];
const COUNT: [&str; 3] = ["runs", "실행 수", "运行次数"];
const POOLED: [&str; 3] = ["pooled", "종합", "合并"];
const LEAST_MOST: [&str; 3] = ["least – most", "최소 – 최대", "最小 – 最大"];
const APART: [&str; 3] = ["between runs", "실행 간 편차", "运行间偏差"];
const NEXT: [&str; 3] = ["next run", "다음 실행", "下一次运行"];
const ALL: [&str; 3] = ["all", "전체", "全部"];
const BEGAN: [&str; 3] = ["began (UTC)", "시작(UTC)", "开始（UTC）"];
const RATE: [&str; 3] = ["rate", "요청률", "请求速率"];
const PLACE: [&str; 3] = ["folder", "폴더", "文件夹"];
const TIME: [&str; 3] = ["time", "시간", "时长"];
const WHY: [&str; 3] = ["left out because", "제외 이유", "未计入的原因"];

fn heads<const COUNT: usize>(
    view: &View<'_>,
    words: &[Word],
    own: [[&'static str; 3]; COUNT],
) -> Vec<String> {
    let words = words.iter().map(|word| view.word(*word));
    words.chain(own.map(|texts| view.language.choose(texts))).map(str::to_owned).collect()
}

/// A row for all runs and one for each group of machines.
fn effects(view: &View<'_>, pool: &RunPool) -> Table {
    let row = |effect: &PooledEffect, group: String, verdict: String, it: &PooledFigure| {
        vec![
            view.cell_label(&effect.cell_id),
            format!("{} / {}", effect.arm, effect.baseline),
            metrics::name(view, effect.metric),
            verdict,
            group,
            it.runs.to_string(),
            number(view, effect, it.figure, it.interval),
            range(view, effect, it.range),
            apart(effect, it),
            range(view, effect, it.next_figure),
        ]
    };
    let rows = pool.effects.iter().flat_map(|effect| {
        let all = row(effect, choose(view, ALL), verdict(view, effect), &effect.all);
        let groups = effect
            .groups
            .iter()
            .map(|it| row(effect, machine_word(view, it.group), format::ABSENT.to_owned(), &it.pooled));
        std::iter::once(all).chain(groups).collect::<Vec<_>>()
    });
    let words = [Word::Cell, Word::Arm, Word::Metric, Word::Verdict];
    let head = heads(view, &words, [MACHINE, COUNT, POOLED, LEAST_MOST, APART, NEXT]);
    Table::with_head(head, 5, rows.collect())
}

fn machine_word(view: &View<'_>, group: u32) -> String {
    localized!(view.language, "machine {group}", "머신 {group}", "机器 {group}")
}

/// The runs of one effect.
fn each(view: &View<'_>, pool: &RunPool, effect: &PooledEffect) -> Table {
    let row = |it: &RunFigure| {
        vec![
            run_word(view, it.run),
            began(pool, it.run),
            machine_word(view, it.group),
            view.word(words::verdict(effect.metric, it.verdict)).to_owned(),
            number(view, effect, Some(it.figure), it.interval),
            it.units.to_string(),
            it.rate_per_second.map_or_else(|| format::ABSENT.to_owned(), format::rate),
        ]
    };
    let head = [
        heads(view, &[], [RUN, BEGAN, MACHINE]),
        heads(view, &[Word::Verdict, Word::RatioInterval, Word::GoalUnits], [RATE]),
    ];
    Table::with_head(head.concat(), 4, effect.runs.iter().map(row).collect())
}

fn run_word(view: &View<'_>, run: u32) -> String {
    localized!(view.language, "run {run}", "실행 {run}", "运行 {run}")
}

fn began(pool: &RunPool, run: u32) -> String {
    let of = |it: &PoolRun| Some(when::minute(it.period?.began_unix_s));
    let found = pool.runs.iter().find(|it| it.number == run).and_then(of);
    found.unwrap_or_else(|| format::ABSENT.to_owned())
}

/// Runs that are left out of single effects. A reason shared by several metrics of a cell appears once.
fn aside(view: &View<'_>, pool: &RunPool) -> Table {
    let mut rows: Vec<(Vec<String>, Vec<Metric>, String)> = Vec::new();
    for (effect, left_out) in pool.effects.iter().flat_map(|it| it.left_out.iter().map(move |own| (it, own)))
    {
        let subject = vec![
            run_word(view, left_out.run),
            view.cell_label(&effect.cell_id),
            format!("{} / {}", effect.arm, effect.baseline),
        ];
        let why = reason_of(view, &left_out.reason);
        match rows.iter_mut().find(|(own, _, reason)| *own == subject && *reason == why) {
            Some((_, metrics, _)) => metrics.push(effect.metric),
            None => rows.push((subject, vec![effect.metric], why)),
        }
    }
    let row = |(subject, metrics, why): (Vec<String>, Vec<Metric>, String)| {
        let metrics = format::few(metrics.into_iter().map(|it| metrics::name(view, it)).collect());
        [subject, vec![metrics, why]].concat()
    };
    let head = [heads(view, &[], [RUN]), heads(view, &[Word::Cell, Word::Arm, Word::Metric], [WHY])];
    Table::with_head(head.concat(), 5, rows.into_iter().map(row).collect())
}

/// Every given run.
fn runs(view: &View<'_>, pool: &RunPool) -> Table {
    let row = |it: &PoolRun| {
        vec![
            run_word(view, it.number),
            began(pool, it.number),
            printable(&it.place),
            machine_word(view, it.group),
            printable(&it.weir_version),
            it.left_out.as_ref().map_or_else(|| format::ABSENT.to_owned(), |why| reason_of(view, why)),
            view.language.duration(it.elapsed_ns),
            it.seed.to_string(),
        ]
    };
    let head = [
        heads(view, &[], [RUN, BEGAN, PLACE, MACHINE, ["Weir"; 3], WHY, TIME]),
        heads(view, &[Word::Seed], []),
    ];
    Table::with_head(head.concat(), 6, pool.runs.iter().map(row).collect())
}

/// The primary effect and the further claims, each with its runs.
fn plots(view: &View<'_>, pool: &RunPool) -> Vec<Plot> {
    let is_drawn = |(index, it): &(usize, &PooledEffect)| {
        !it.runs.is_empty() && (*index == 0 || it.verdict != Verdict::NoClaim)
    };
    let drawn = pool.effects.iter().enumerate().filter(is_drawn).take(PLOTS_MAX);
    drawn.map(|(index, effect)| plot(view, pool, (index, effect))).collect()
}

fn plot(view: &View<'_>, pool: &RunPool, (index, effect): (usize, &PooledEffect)) -> Plot {
    let of_run = |it: &RunFigure| PooledRow::Run {
        group: machine_line(view, pool, it.group),
        text: format!("{} · {}", run_word(view, it.run), began(pool, it.run)),
        number: number(view, effect, Some(it.figure), it.interval),
        verdict: (it.verdict, view.word(words::verdict(effect.metric, it.verdict)).to_owned()),
        figure: it.figure,
        interval: it.interval,
    };
    let mut rows: Vec<PooledRow> = Vec::new();
    for group in &pool.groups {
        rows.extend(effect.runs.iter().filter(|it| it.group == group.number).map(of_run));
        let pooled = effect.groups.iter().find(|it| it.group == group.number);
        rows.extend(pooled.map(|it| PooledRow::Pooled {
            group: machine_line(view, pool, group.number),
            text: machine_word(view, group.number),
            number: found(view, effect, &it.pooled),
            verdict: None,
            interval: it.pooled.interval,
        }));
    }
    rows.push(PooledRow::Pooled {
        group: choose(view, POOLED),
        text: choose(view, ALL),
        number: found(view, effect, &effect.all),
        verdict: Some((effect.verdict, verdict(view, effect))),
        interval: effect.all.interval,
    });
    rows.extend(effect.all.next_figure.map(|next| PooledRow::Next {
        group: choose(view, POOLED),
        text: choose(view, NEXT),
        number: range(view, effect, Some(next)),
        range: next,
    }));
    chart::pooled(
        view,
        PooledPlot {
            id: format!("pooled-{index}"),
            title: subject(view, effect),
            arm: &effect.arm,
            metric: effect.metric,
            is_difference: effect.scale == EffectScale::Difference,
            rows,
            numbers: each(view, pool, effect),
        },
    )
}

/// The subject of an effect.
fn subject(view: &View<'_>, effect: &PooledEffect) -> String {
    let PooledEffect { cell_id, arm, baseline, metric, .. } = effect;
    format!("{} · {arm} / {baseline} · {}", metrics::name(view, *metric), view.cell_label(cell_id))
}

fn machine_line(view: &View<'_>, pool: &RunPool, group: u32) -> String {
    let found = pool.groups.iter().find(|it| it.number == group);
    let known = found.map(|it| {
        let kernel = format!("Linux {}", it.kernel_release);
        let parts = [&it.cpu_model, &kernel].into_iter().filter(|part| !part.is_empty());
        parts.map(|part| format!(" · {}", printable(part))).collect::<String>()
    });
    format!("{}{}", machine_word(view, group), known.unwrap_or_default())
}
