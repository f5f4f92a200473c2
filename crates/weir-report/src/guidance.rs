//! Guidance from a study for someone who must choose an I/O model.

use std::collections::BTreeSet;

use maud::html;
use weir_record::{
    grid::{Difference, Grid},
    guidance::{Access, Advice, Guidance, Region, Standing},
    machine::Fingerprint,
    metric::Metric,
};

use crate::{
    chart,
    cited::{Sentence, of_no_cell},
    display, findings, format, html,
    language::{Language, localized},
    maps, metrics, ring_options,
    section::{Caption, Content, Section},
    sentence,
    table::Table,
    view::View,
    when,
    words::Word,
};

/// The metric of the guidance.
const METRIC: Metric = Metric::ServerCpuPerMessage;

/// The section: access, each arm's standing, its regions, and how far they apply.
pub(crate) fn section(view: &View<'_>) -> Content {
    section_with(view, elsewhere(view))
}

fn section_with(view: &View<'_>, primary: Option<Sentence>) -> Content {
    view.result.guidance.as_ref().map_or(Content::Absent, |guidance| {
        Content::Shown(Box::new(Section {
            sentences: sentences(view, primary)
                .into_iter()
                .chain(of_no_cell([touched(view, guidance), scope(view)]))
                .collect(),
            tables: vec![regions(view, guidance)],
            ..Section::new(Word::GuidanceTitle, Word::GuidanceHelp)
        }))
    })
}

/// The same for a page without other sections, with the answer and the options of io_uring.
pub(crate) fn section_alone(view: &View<'_>) -> Content {
    match section_with(view, primary(view)) {
        Content::Shown(mut section) => {
            section.tables.extend(ring_options::titled(view));
            Content::Shown(section)
        }
        other => other,
    }
}

/// The most important sentences: whether io_uring may be used, and the result of each arm's map.
pub(crate) fn short(view: &View<'_>) -> Vec<String> {
    sentences(view, primary(view)).into_iter().map(|it| it.text).collect()
}

/// The same with their cells; `primary` is about the primary comparison.
fn sentences(view: &View<'_>, primary: Option<Sentence>) -> Vec<Sentence> {
    let Some(guidance) = &view.result.guidance else { return Vec::new() };
    let access = guidance.access.iter().flat_map(|it| access(view, it)).map(Sentence::from);
    let advice = guidance.advice.iter().map(|it| Sentence { text: standing(view, it), cells: known(it) });
    // Each pair once: it may have a map in closed loop and one at equal rates.
    let pairs: BTreeSet<_> = guidance.advice.iter().map(|it| (&it.arm, &it.baseline)).collect();
    let at_rates =
        pairs.into_iter().flat_map(|(arm, baseline)| chart::cpu_at_equal_rates(view, arm, baseline));
    access.chain(primary).chain(advice).chain(chart::crossings(view, METRIC)).chain(at_rates).collect()
}

fn access(view: &View<'_>, it: &Access) -> Vec<String> {
    let language = view.language;
    let release = &view.result.fingerprint.kernel_release;
    let mut facts: Vec<String> =
        it.disabled.iter().map(|level| format!("kernel.io_uring_disabled = {level}")).collect();
    facts.extend(it.is_filtered.map(|is_filtered| {
        let words = match is_filtered {
            true => ["a seccomp filter was in force", "seccomp 필터 적용 중", "有 seccomp 过滤器生效"],
            false => ["no seccomp filter was in force", "seccomp 필터 없음", "无 seccomp 过滤器"],
        };
        language.choose(words).to_owned()
    }));
    let facts = match facts.join(language.list()) {
        facts if facts.is_empty() => facts,
        facts => localized!(language, " ({facts})", "({facts})", "（{facts}）"),
    };
    let may = match &it.refused {
        None => localized!(
            language,
            "io_uring may be used here: it ran on Linux {release}{facts}.",
            "Linux {release}: io_uring을 쓸 수 있습니다{facts}.",
            "本机可以使用 io_uring：它在 Linux {release} 上运行过{facts}。",
        ),
        Some(refused) => {
            let reason = view.finding(refused);
            let unlock = it.unlock.as_ref().map(|unlock| view.finding(unlock));
            let unlock = unlock.map_or_else(String::new, |unlock| {
                localized!(
                    language,
                    " To allow it: {unlock}.",
                    " 허용하려면: {unlock}.",
                    "若要允许：{unlock}。"
                )
            });
            localized!(
                language,
                "io_uring may not be used here: {reason}{facts}.{unlock}",
                "이 머신에서는 io_uring을 쓸 수 없습니다. {reason}{facts}.{unlock}",
                "本机不能使用 io_uring：{reason}{facts}。{unlock}",
            )
        }
    };
    let lacking: Vec<String> = it.lacking.iter().map(|name| findings::feature(language, name)).collect();
    let lacking = lacking.join(language.list());
    let lacks = localized!(
        language,
        "Going by its version, this kernel lacks: {lacking}; its distribution may have backported some of it.",
        "버전으로 볼 때 이 커널에 없는 기능: {lacking}. 배포판이 일부를 백포트했을 수 있습니다.",
        "按版本号，本内核缺少：{lacking}；发行版可能已向后移植其中一部分。",
    );
    std::iter::once(may).chain((!it.lacking.is_empty()).then_some(lacks)).collect()
}

/// The comparison that decides the study's verdict, next to a map with other loads and rates.
fn primary(view: &View<'_>) -> Option<Sentence> {
    let cell_id = view.primary()?.cell_id.clone();
    let headline = sentence::headline(view);
    let text = localized!(
        view.language,
        "The primary comparison, which decides the verdict: {headline} The cells of the map have other loads and rates, \
         and may differ from it.",
        "판정을 정하는 주 비교: {headline} 히트맵의 조건은 부하와 요청률이 다르므로 결과가 다를 수 있습니다.",
        "决定判定的主要比较：{headline}热力图中各条件的负载与请求速率不同，结果可能与之不同。",
    );
    Some(Sentence { text, cells: vec![cell_id] })
}

/// The same for a page whose answer is that comparison.
fn elsewhere(view: &View<'_>) -> Option<Sentence> {
    let cells = vec![view.primary()?.cell_id.clone()];
    let text = view.language.choose([
        "The cells of the map have other loads and rates than the primary comparison, and may differ from it.",
        "히트맵의 조건은 주 비교와 부하·요청률이 다르므로 결과가 다를 수 있습니다.",
        "热力图中各条件的负载与请求速率不同于主要比较，结果可能与之不同。",
    ]);
    Some(Sentence { text: text.to_owned(), cells })
}

/// Cells in which the arm has less, or more: the basis of a standing.
fn known(it: &Advice) -> Vec<String> {
    let is_known = |region: &&Region| matches!(region.difference, Difference::Less | Difference::More);
    it.regions.iter().filter(is_known).flat_map(|region| region.cells.clone()).collect()
}

/// The result of an arm, and in how many cells.
fn standing(view: &View<'_>, it: &Advice) -> String {
    let Advice { baseline, less, more, undetected, equivalent, cells, .. } = it;
    let arm = maps::arm(view, &it.arm, it.map);
    let (language, noun) = (view.language, metrics::prose(view, METRIC));
    let alike = undetected + equivalent;
    let text = match it.standing {
        Standing::Less => localized!(
            language,
            "{arm} needs less {noun} than {baseline} in {less} of {cells} cells, and more in none.",
            "{arm}: 조건 {cells}개 중 {less}개에서 {noun}이 {baseline}보다 적고, 더 많은 조건은 없습니다.",
            "{arm}：{cells} 个条件中有 {less} 个的{noun}低于 {baseline}，没有更高的条件。",
        ),
        Standing::More => localized!(
            language,
            "{arm} needs more {noun} than {baseline} in {more} of {cells} cells, and less in none.",
            "{arm}: 조건 {cells}개 중 {more}개에서 {noun}이 {baseline}보다 많고, 더 적은 조건은 없습니다.",
            "{arm}：{cells} 个条件中有 {more} 个的{noun}高于 {baseline}，没有更低的条件。",
        ),
        Standing::Both => localized!(
            language,
            "{arm} needs less {noun} than {baseline} in {less} of {cells} cells and more in {more}: which of the two is \
             cheaper depends on the cell, and no single figure stands for all of them.",
            "{arm}: 조건 {cells}개 중 {less}개에서는 {noun}이 {baseline}보다 적고, {more}개에서는 많습니다. 어느 쪽이 유리한지는 조건에 따라 다르므로 한 수치로 \
            나타낼 수 없습니다.",
            "{arm}：{cells} 个条件中有 {less} 个的{noun}低于 {baseline}，{more} 个高于它。哪个更省因条件而异，没有一个数值能代表全部。",
        ),
        Standing::Undetected => localized!(
            language,
            "No difference in {noun} was detected between {arm} and {baseline}, in {alike} of {cells} cells. \
             These cells give no reason to prefer either.",
            "조건 {cells}개 중 {alike}개에서 {arm}, {baseline} 두 대상을 비교했으며 {noun} 차이가 검출되지 않았습니다. 이 조건들만 보면 어느 쪽을 택할 이유가 \
            없습니다.",
            "{cells} 个条件中比较了 {alike} 个，均未检出 {arm} 与 {baseline} 在{noun}上的差异。仅就这些条件而言，没有理由偏向任何一方。",
        ),
        Standing::Untold => localized!(
            language,
            "The map does not decide between {arm} and {baseline}: {noun} may be compared in none of its {cells} cells.",
            "히트맵으로는 {arm}, {baseline} 두 대상의 우열을 판정할 수 없습니다. 조건 {cells}개 모두에서 {noun}을 비교할 수 없습니다.",
            "热力图无法判定 {arm} 与 {baseline} 孰优孰劣：{cells} 个条件的{noun}均不可比较。",
        ),
    };
    text + &beside(view, it).concat()
}

/// Number of the map's cells outside of its standing, and why.
fn beside(view: &View<'_>, it: &Advice) -> Vec<String> {
    let Advice { undetected, equivalent, not_borne_out, not_comparable, generator_limited, .. } = it;
    let language = view.language;
    let limited = localized!(
        language,
        " Not judged, because the load generator was the limit there (†): {generator_limited}.",
        " 조건 {generator_limited}개(†)는 부하 생성기가 한계여서 판정하지 않았습니다.",
        "另有 {generator_limited} 个条件（†）受限于负载生成器，不作判定。",
    );
    let doubted = localized!(
        language,
        " Not judged, because another figure, such as the CPU of both sides, does not confirm the difference that was \
         found (?): {not_borne_out}.",
        " 조건 {not_borne_out}개(?)는 차이가 검출되었으나 양쪽 CPU 등 다른 수치가 뒷받침하지 않아 판정하지 않았습니다.",
        "另有 {not_borne_out} 个条件（?）已检出差异，但双方 CPU 等其他数值不支持，不作判定。",
    );
    let same = localized!(
        language,
        " No difference was detected in {undetected}.",
        " {undetected}개에서는 차이가 검출되지 않았습니다.",
        "{undetected} 个未检出差异。",
    );
    let too_small = localized!(
        language,
        " Any difference is too small to matter in {equivalent}.",
        " {equivalent}개는 차이가 있더라도 무시할 만큼 작습니다.",
        "{equivalent} 个即使有差异也小到无关紧要。",
    );
    let void = localized!(
        language,
        " Not comparable: {not_comparable}.",
        " 비교할 수 없는 조건: {not_comparable}개.",
        "另有 {not_comparable} 个条件不可比较。",
    );
    let is_told = it.standing == Standing::Undetected;
    let same = (if is_told { 0 } else { *undetected }, same);
    let doubts = [(*not_borne_out, doubted), (*generator_limited, limited), (*not_comparable, void)];
    let parts = [same, (*equivalent, too_small)].into_iter().chain(doubts);
    parts.filter(|(cells, _)| *cells > 0).map(|(_, part)| part).collect()
}

/// The share of the observed process's CPU that the choice affects, or how to determine it.
fn touched(view: &View<'_>, guidance: &Guidance) -> String {
    let Some(observed) = &guidance.observed else { return observe(view) };
    let language = view.language;
    let (pid, command) = (observed.pid, display::printable(&observed.command));
    let (share, length) = (format::percent(observed.share_max), language.duration(observed.window_ns));
    if observed.is_idle {
        return localized!(
            language,
            "Process {pid} ({command}) hardly used a CPU in the {length} in which it was observed: that says nothing of how \
             it does under its usual load.",
            "프로세스 {pid}({command})는 관찰한 {length} 동안 CPU를 거의 쓰지 않았습니다. 평소 부하에서 어떤지는 이 결과로 알 수 없습니다.",
            "进程 {pid}（{command}）在观测的 {length} 内几乎没有使用 CPU。由此无法知道它在日常负载下的情况。",
        );
    }
    localized!(
        language,
        "System calls for I/O cost {share} of the CPU of process {pid} ({command}), as it was observed for {length}. The \
         choice changes these calls and what the program does around them, and nothing else.",
        "프로세스 {pid}({command})를 {length} 동안 관찰한 결과, I/O 시스템 콜이 CPU의 {share}를 썼습니다. I/O 모델을 바꾸면 이 호출과 그 전후의 처리만 달라집니다.",
        "对进程 {pid}（{command}）观测 {length}：I/O 系统调用占其 CPU 的 {share}。I/O 模型的选择只影响这些调用及其前后的处理。",
    )
}

/// The page to print and share: sentences, the regions in a drawing and in figures, how far they apply, and options
/// of io_uring.
pub(crate) fn page(view: &View<'_>) -> Option<String> {
    let guidance = view.result.guidance.as_ref()?;
    let language = view.language;
    let drawn = Section {
        sentences: of_no_cell([language.choose(DRAWN).to_owned()]),
        plots: chart::regions(view, METRIC),
        ..Section::new(Word::MapTitle, Caption::Own(["", "", ""]))
    };
    let figures = Section {
        sentences: of_no_cell([touched(view, guidance), scope(view)]),
        tables: vec![regions(view, guidance)],
        ..Section::new(Caption::Own(["The regions", "영역", "各区域"]), Word::GuidanceHelp)
    };
    let seed = format!("{}{}{}", view.word(Word::Seed), language.colon(), view.result.spec.seed);
    let again = Section {
        sentences: of_no_cell([view.result.reproduce.clone(), seed]),
        ..Section::new(Word::ReproduceTitle, Caption::Own(["", "", ""]))
    };
    let title = format!("{}{}{}", view.word(Word::GuidanceTitle), language.colon(), view.result.spec.name);
    let class = html::verdict_class(view.verdict());
    let parts = [Some(drawn), Some(figures), ring_options::section(view), Some(again)];
    let parts: Vec<Section> = parts.into_iter().flatten().collect();
    let head: Vec<String> = when::made_where(view).into_iter().chain(short(view)).collect();
    Some(html::of_sections(view, &html! {}, ([&title; 2], &head), class, &parts))
}

/// How to read the map of the page.
const DRAWN: [&str; 3] = [
    "Lines go round adjacent cells with the same result. ▼ the arm needs less server CPU, ▲ more, ≈ no difference detected, \
     ? not confirmed, † the generator was the limit, * more busy threads than CPUs.",
    "테두리는 결과가 같은 이웃 조건을 묶은 것입니다. ▼ 서버 CPU를 덜 씀, ▲ 더 씀, ≈ 차이가 검출되지 않음, ? 다른 수치가 뒷받침하지 않음, † 부하 생성기 한계, * 바쁜 스레드가 CPU보다 \
    많음.",
    "线框围住结论相同的相邻条件。▼ 服务器 CPU 更少，▲ 更多，≈ 未检出差异，? 其他数值不支持，† 受限于负载生成器，* 忙碌线程多于 CPU。",
];

/// How to determine that.
fn observe(view: &View<'_>) -> String {
    view.language
        .choose([
            "Run weir observe -p PID while your server has its usual load: it shows how much of its CPU goes to system \
             calls for I/O. The servers here do little but I/O; no I/O model changes what a handler computes.",
            "서버가 평소 부하를 받을 때 weir observe -p PID를 실행하면 I/O 시스템 콜이 CPU를 얼마나 쓰는지 알 수 있습니다. 여기서 측정한 서버는 I/O 외에 하는 일이 거의 \
            없습니다. 핸들러의 계산 비용은 I/O 모델과 무관합니다.",
            "在服务器承受日常负载时运行 weir observe -p PID，可以看到其 CPU 有多少用于 I/O 系统调用。这里测量的服务器除 I/O 外几乎不做别的。处理程序的计算开销与 I/O 模型无关。",
        ])
        .to_owned()
}

/// How far the measurements apply.
fn scope(view: &View<'_>) -> String {
    let Fingerprint { kernel_release, cpu_model, hypervisor, .. } = &view.result.fingerprint;
    let language = view.language;
    let machine = match hypervisor {
        Some(name) => {
            localized!(language, "a virtual machine ({name})", "가상 머신({name})", "虚拟机（{name}）")
        }
        None => language
            .choose([
                "a machine without a visible hypervisor",
                "하이퍼바이저가 보이지 않는 머신",
                "看不到虚拟机监控程序的机器",
            ])
            .to_owned(),
    };
    localized!(
        language,
        "Measured over loopback, with the generator on the same machine: {machine}, {cpu_model}, Linux {kernel_release}. \
         A network card, another kernel or another CPU was not measured.",
        "부하 생성기를 같은 머신에서 실행한 루프백 측정입니다: {machine}, {cpu_model}, Linux {kernel_release}. 네트워크 카드, 다른 커널, 다른 CPU는 측정하지 \
        않았습니다.",
        "经环回测得，负载生成器与服务器在同一台机器上：{machine}，{cpu_model}，Linux {kernel_release}。未测量网卡、其他内核与其他 CPU。",
    )
}

fn regions(view: &View<'_>, guidance: &Guidance) -> Table {
    let rows = guidance.advice.iter().flat_map(|advice| {
        advice.regions.iter().map(move |region| {
            let figures = |range: Option<(f64, f64)>| {
                range.map_or_else(
                    || format::ABSENT.to_owned(),
                    |(low, high)| {
                        let [low, high] = [low, high].map(|value| metrics::bare(METRIC, value));
                        if low == high { low } else { format!("{low} – {high}") }
                    },
                )
            };
            let ratios = region.ratio_range.map_or_else(
                || format::ABSENT.to_owned(),
                |(low, high)| format!("{} – {}", format::ratio(Some(low)), format::ratio(Some(high))),
            );
            vec![
                maps::arm(view, &advice.arm, advice.map),
                found(view, region),
                place(view, advice, region),
                format::ratio_and_interval(region.ratio, region.interval),
                ratios,
                figures(region.arm_range),
                figures(region.baseline_range),
            ]
        })
    });
    let words = [Word::Arm, Word::MapDifference, Word::GuidanceWhere, Word::MapMean, Word::GuidanceRange];
    let words = words.iter().map(|word| view.word(*word).to_owned());
    let short = metrics::short(view, METRIC);
    let figures = [Word::Arm, Word::Baseline].map(|side| format!("{short} · {}", view.word(side)));
    Table::with_head(words.chain(figures).collect(), 3, rows.collect())
}

/// The result; if there is none, the effect that is found with 80 % power.
fn found(view: &View<'_>, region: &Region) -> String {
    let word = view.word(chart::difference_word(region.difference));
    match region.detectable {
        None => word.to_owned(),
        Some(detectable) => {
            let detectable = format::percent(detectable);
            localized!(
                view.language,
                "{word} (effects of {detectable} or more are found in 8 of 10 such runs)",
                "{word}(이런 실행 10번 중 8번에서 {detectable} 이상의 효과를 찾음)",
                "{word}（{detectable} 及以上的效应在 10 次这样的运行中有 8 次能检出）",
            )
        }
    }
}

/// `100 to 4,000 connections · 1 worker; 2 workers`.
fn place(view: &View<'_>, advice: &Advice, region: &Region) -> String {
    let grids = &view.result.grids;
    let is_own = |it: &&Grid| {
        (it.map, it.metric, &it.arm, &it.baseline) == (advice.map, METRIC, &advice.arm, &advice.baseline)
    };
    let Some(grid) = grids.iter().find(is_own) else { return region.cells.join("; ") };
    let (from, to) = region.levels;
    let along = match from == to {
        true => chart::level(view, grid.factors[0], from),
        false => {
            let [low, high] = [from, to].map(|it| chart::level(view, grid.factors[0], it));
            // In Korean the noun is before its number.
            let from = if view.language == Language::Korean { low } else { format::count(from) };
            localized!(view.language, "{from} to {high}", "{from} – {high}", "{from} 至 {high}")
        }
    };
    let lines: Vec<String> =
        region.lines.iter().map(|line| chart::levels(view, &grid.factors[1..], line)).collect();
    match lines.join("; ") {
        lines if lines.is_empty() || region.is_everywhere => along,
        lines => format!("{along} · {lines}"),
    }
}
