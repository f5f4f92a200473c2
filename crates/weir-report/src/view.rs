//! A result arranged for reading: cells and arms in the order of the plan, names, and groups.

use std::{collections::BTreeMap, path::Path};

use weir_record::{
    effect::{Effect, EffectScale, Question},
    figure::Figure,
    finding::{Finding, MessageKind, UnitKind},
    frontier::{FrontierAnswer, Standing},
    grid::{Difference, Grid},
    metric::{Family, Metric},
    spec::{CellRole, CellSpec, LoadMode, OrdersCell, StorageCell},
    storage::{AccessPattern, StorageDevice, SyntheticTrace},
    study::{ArmSummary, StudyResult},
    verdict::Verdict,
};

use crate::{
    findings, format,
    language::{Language, localized},
    words::{self, Word},
};

/// One result in one language.
pub(crate) struct View<'a> {
    /// The result.
    pub result: &'a StudyResult,
    /// The language.
    pub language: Language,
    /// Its run folder; absent where that is not known.
    pub folder: Option<&'a Path>,
    /// Identifiers of all cells, primary first, then as planned, then those that only the results contain.
    pub cells: Vec<&'a str>,
    /// Names of all arms, as planned, then those that only the results contain; the index determines the colour.
    pub arms: Vec<&'a str>,
    /// Whether its messages are operations on a disk.
    pub is_storage: bool,
    /// Whether its messages are orders.
    pub is_orders: bool,
    /// Cells of the plan by identifier. A map has more than a hundred, and most drawings look up each.
    planned: BTreeMap<&'a str, &'a CellSpec>,
    /// Comparisons by cell, as they were found.
    compared: BTreeMap<&'a str, Vec<&'a Effect>>,
    /// Shown comparisons by metric, in the order of cells and arms.
    shown: BTreeMap<Metric, Vec<&'a Effect>>,
    /// Rows that accompany comparisons, by cell and metric: a map looks them up for each of its cells.
    beside: BTreeMap<(&'a str, Metric), Vec<&'a Effect>>,
    /// All other rows, by the index of their question in the specification.
    answering: BTreeMap<Question, Vec<&'a Effect>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(result: &'a StudyResult, language: Language) -> Self {
        let is_primary = |cell: &&CellSpec| cell.role == CellRole::Primary;
        // Cells that are drawn over time have a separate section.
        let compared = || result.spec.cells.iter().filter(|cell| !cell.is_series());
        let primary = compared().filter(is_primary);
        let others = compared().filter(|cell| !is_primary(cell));
        let planned_cells = primary.chain(others).map(|cell| cell.id.as_str());
        let found_cells = result.arms.iter().map(|arm| arm.cell_id.as_str());
        let compared_cells = result.effects.comparisons().map(|row| row.cell_id.as_str());
        let planned_arms = result.spec.arms.iter().map(|arm| arm.name.as_str());
        let found_arms = result.arms.iter().map(|arm| arm.arm.as_str());
        let timed_arms = result.timeline.iter().map(|entry| entry.arm.as_str());
        let mut view = View {
            result,
            language,
            folder: None,
            cells: distinct(planned_cells.chain(found_cells).chain(compared_cells)),
            arms: distinct(planned_arms.chain(found_arms).chain(timed_arms)),
            is_storage: result.spec.is_storage(),
            is_orders: result.spec.is_orders(),
            // Keep the first of two cells with one name.
            planned: result.spec.cells.iter().rev().map(|cell| (cell.id.as_str(), cell)).collect(),
            compared: BTreeMap::new(),
            shown: BTreeMap::new(),
            beside: BTreeMap::new(),
            answering: BTreeMap::new(),
        };
        result.effects.rows.iter().for_each(|row| view.index(row));
        view.shown = view.shown_by_metric();
        view
    }

    /// The same of a study in this run folder.
    pub(crate) fn in_folder(self, folder: &'a Path) -> Self {
        View { folder: Some(folder), ..self }
    }

    /// Indexes a row by how it is looked up.
    fn index(&mut self, row: &'a Effect) {
        let rows = match row.question {
            Question::Comparison => self.compared.entry(&row.cell_id).or_default(),
            Question::Itself
            | Question::NearState
            | Question::FarState
            | Question::WithNoise
            | Question::Ratio
            | Question::AchievedRates => self.beside.entry((&row.cell_id, row.metric)).or_default(),
            question => self.answering.entry(question).or_default(),
        };
        rows.push(row);
    }

    pub(crate) fn word(&self, word: Word) -> &'static str {
        let word = match self.kind() {
            MessageKind::Message => word,
            MessageKind::Request => words::of_requests(word),
            MessageKind::Operation => words::of_operations(word),
            MessageKind::Order => words::of_orders(word),
        };
        word.text(self.language)
    }

    /// The counted unit.
    pub(crate) fn kind(&self) -> MessageKind {
        MessageKind::of_study(&self.result.spec)
    }

    /// A number of the primary comparison's units: `12 rounds`.
    pub(crate) fn units(&self, count: u64) -> String {
        let cell = self.primary().and_then(|primary| self.cell(&primary.cell_id));
        findings::units_of(self.language, count, cell.map(UnitKind::of_cell).unwrap_or_default())
    }

    /// A finding of the laboratory in the reader's language.
    pub(crate) fn finding(&self, finding: &Finding) -> String {
        findings::localized(self.language, finding)
    }

    /// The word of a verdict on a metric.
    pub(crate) fn verdict_word(&self, metric: Metric, verdict: Verdict) -> &'static str {
        self.word(words::verdict(metric, verdict))
    }

    /// The words of a comparison's row: its verdict; or, if it has no claim but its map found a difference in the
    /// cell, that difference.
    pub(crate) fn outcome_words(&self, it: &Effect) -> String {
        match self.called_on_map(it) {
            Some(verdict) => {
                let map = self.word(Word::OnMap);
                let word = self.verdict_word(it.metric, verdict);
                localized!(self.language, "{word} ({map})", "{word}({map})", "{word}（{map}）")
            }
            None => self.verdict_word(it.metric, it.verdict).to_owned(),
        }
    }

    /// The direction of the difference that a map found in the cell of a comparison without a claim.
    pub(crate) fn called_on_map(&self, it: &Effect) -> Option<Verdict> {
        let is_it =
            |grid: &&Grid| (grid.metric, &grid.arm, &grid.baseline) == (it.metric, &it.arm, &it.baseline);
        let grids = self.result.grids.iter().filter(|grid| it.verdict == Verdict::NoClaim && is_it(grid));
        let mut cells = grids.flat_map(|grid| &grid.cells).filter(|cell| cell.cell_id == it.cell_id);
        let is_more = match cells.next()?.difference {
            Difference::Less => false,
            Difference::More => true,
            _ => return None,
        };
        let is_better = is_more == it.metric.larger_is_better();
        Some(if is_better { Verdict::Better } else { Verdict::Worse })
    }

    /// Whether planned blocks have not run.
    fn is_unfinished(&self) -> bool {
        let schedule = self.result.checks.iter().find_map(|check| match check.detail {
            Finding::Schedule { blocks_done, blocks, .. } => Some(blocks_done < blocks),
            _ => None,
        });
        !self.result.complete && schedule.unwrap_or(true)
    }

    /// The study's verdict; none while planned blocks have not run.
    pub(crate) fn verdict(&self) -> Verdict {
        match self.result.verdict {
            Verdict::Better | Verdict::Worse | Verdict::Equivalent if self.is_unfinished() => {
                Verdict::Inconclusive
            }
            verdict => verdict,
        }
    }

    /// Whether the primary comparison has one: a difference, or its absence.
    pub(crate) fn has_answer(&self) -> bool {
        matches!(self.verdict(), Verdict::Better | Verdict::Worse | Verdict::Equivalent)
    }

    /// The word of the study's own verdict, which is that of its primary comparison.
    pub(crate) fn own_verdict(&self) -> &'static str {
        if self.verdict() != self.result.verdict {
            return self.language.choose(["unfinished", "미완료", "未完成"]);
        }
        if let Some(answer) = self.frontier_answer() {
            let is_open = answer.others.iter().any(|(_, standing)| *standing == Standing::Open);
            return self.word(words::frontier_verdict(self.result.verdict, is_open));
        }
        let metric = self.primary().map_or(Metric::ServerCpuPerMessage, |primary| primary.metric);
        self.verdict_word(metric, self.result.verdict)
    }

    /// The frontier's answer in the primary cell, if that is on a simulated device.
    pub(crate) fn frontier_answer(&self) -> Option<&'a FrontierAnswer> {
        let primary = self.primary()?;
        self.result.frontier_answers.iter().find(|answer| answer.cell_id == primary.cell_id)
    }

    /// The primary comparison, if there is one.
    pub(crate) fn primary(&self) -> Option<&'a Effect> {
        self.result.primary()
    }

    pub(crate) fn cell(&self, id: &str) -> Option<&'a CellSpec> {
        self.planned.get(id).copied()
    }

    pub(crate) fn is_exploratory(&self, cell_id: &str) -> bool {
        self.cell(cell_id).is_none_or(|cell| cell.role == CellRole::Exploratory)
    }

    pub(crate) fn summary(&self, cell_id: &str, arm: &str) -> Option<&'a ArmSummary> {
        self.result.arms.iter().find(|summary| summary.cell_id == cell_id && summary.arm == arm)
    }

    /// Figures of a cell, arms in order.
    pub(crate) fn summaries(&self, cell_id: &str) -> Vec<&'a ArmSummary> {
        self.arms.iter().filter_map(|arm| self.summary(cell_id, arm)).collect()
    }

    /// Comparisons in a cell, as they were found.
    pub(crate) fn compared_in(&self, cell_id: &str) -> impl Iterator<Item = &'a Effect> {
        self.compared.get(cell_id).into_iter().flatten().copied()
    }

    /// The rows that answer a question of the specification, in order.
    pub(crate) fn answering(&self, question: Question) -> &[&'a Effect] {
        self.answering.get(&question).map_or(&[], Vec::as_slice)
    }

    /// The row that answers another question about the same arms, cell and metric as a comparison.
    pub(crate) fn beside(&self, it: &Effect, question: Question) -> Option<&'a Effect> {
        self.find_beside(it, |row| row.question == question && row.is_about(it))
    }

    /// The study's first arm compared with itself, in the cell and metric of a comparison.
    pub(crate) fn itself(&self, it: &Effect) -> Option<&'a Effect> {
        self.find_beside(it, |row| row.question == Question::Itself)
    }

    fn find_beside(&self, it: &Effect, is_asked: impl Fn(&Effect) -> bool) -> Option<&'a Effect> {
        let rows = self.beside.get(&(it.cell_id.as_str(), it.metric))?;
        rows.iter().copied().find(|row| is_asked(row))
    }

    /// A comparison in the machine's near state and in its far one, if both occurred often enough.
    pub(crate) fn by_state(&self, it: &Effect) -> Option<[&'a Effect; 2]> {
        Some([self.beside(it, Question::NearState)?, self.beside(it, Question::FarState)?])
    }

    /// A comparison as a ratio; figures that are compared as differences have no interval for it.
    pub(crate) fn ratio(&self, it: &Effect) -> Option<Figure> {
        match it.scale {
            EffectScale::Ratio => Some(Figure { value: it.estimate?, interval: it.interval }),
            _ => Some(Figure { value: self.beside(it, Question::Ratio)?.estimate?, interval: None }),
        }
    }

    /// The noise floor of the first arm, if a comparison is a ratio.
    pub(crate) fn ratio_floor(&self, it: &Effect) -> Option<f64> {
        self.itself(it).filter(|_| it.scale == EffectScale::Ratio)?.reach()
    }

    /// The arm against the study's baseline; pairs of other arms come after these.
    pub(crate) fn comparison(&self, cell_id: &str, arm: &str, metric: Metric) -> Option<&'a Effect> {
        self.compared_in(cell_id).find(|it| it.arm == arm && it.metric == metric)
    }

    /// Two arms of a cell, whichever they are.
    pub(crate) fn pair(
        &self,
        cell_id: &str,
        (arm, baseline): (&str, &str),
        metric: Metric,
    ) -> Option<&'a Effect> {
        let is_asked = |it: &&Effect| it.arm == arm && it.baseline == baseline && it.metric == metric;
        self.compared_in(cell_id).find(is_asked)
    }

    /// The compared arms in short: the arm, with the other one if that is not the study's baseline.
    pub(crate) fn compared(&self, arm: &str, baseline: &str) -> String {
        match self.baseline().is_none_or(|first| first == baseline) {
            true => arm.to_owned(),
            false => format!("{arm} / {baseline}"),
        }
    }

    /// `not comparable: uring, poll`: the summary of a cell in which several arms were compared and none has a
    /// figure.
    pub(crate) fn not_compared(&self, of_cell: &[&Effect]) -> Option<String> {
        let is_void = |it: &&Effect| it.verdict == Verdict::NotComparable && it.estimate.is_none();
        let mut arms: Vec<String> = Vec::new();
        for arm in of_cell.iter().map(|it| self.compared(&it.arm, &it.baseline)) {
            if !arms.contains(&arm) {
                arms.push(arm);
            }
        }
        let (word, colon) = (self.word(Word::NotComparable), self.language.colon());
        let text = || format!("{word}{colon}{}", arms.join(self.language.list()));
        (arms.len() > 1 && of_cell.iter().all(is_void)).then(text)
    }

    /// Index of an arm; determines colour and marker everywhere.
    pub(crate) fn arm_index(&self, arm: &str) -> usize {
        self.arms.iter().position(|name| *name == arm).unwrap_or(0)
    }

    /// The name of the baseline, which is the first arm.
    pub(crate) fn baseline(&self) -> Option<&'a str> {
        self.result.spec.arms.first().map(|arm| arm.name.as_str())
    }

    /// Whether nothing in the cell was measured on this machine; its arms are shown in a plane instead of rows.
    pub(crate) fn is_simulated(&self, cell_id: &str) -> bool {
        self.cell(cell_id).is_some_and(CellSpec::is_simulated)
    }

    /// Whether a comparison repeats server CPU: for an arm that uses almost no CPU while it waits, the cost including
    /// waiting is the same.
    pub(crate) fn is_server_cpu_again(&self, comparison: &Effect) -> bool {
        /// Ratios closer than this are shown as one number.
        const APART_MAX: f64 = 0.005;
        if comparison.metric != Metric::ServerCpuWithWaiting {
            return false;
        }
        let Effect { cell_id, arm, baseline, estimate, .. } = comparison;
        let server_cpu = self.pair(cell_id, (arm, baseline), Metric::ServerCpuPerMessage);
        server_cpu
            .and_then(|it| it.estimate)
            .zip(*estimate)
            .is_some_and(|(one, other)| (other / one - 1.0).abs() < APART_MAX)
    }

    /// Comparisons of one metric that were measured, cells in order. An arm that never ran is named elsewhere.
    pub(crate) fn comparisons_of(&self, metric: Metric) -> Vec<&'a Effect> {
        self.shown.get(&metric).cloned().unwrap_or_default()
    }

    fn shown_by_metric(&self) -> BTreeMap<Metric, Vec<&'a Effect>> {
        let is_missing = |it: &Effect| self.result.missing_arms.iter().any(|arm| arm.name == it.arm);
        let is_shown =
            |it: &&Effect| !self.is_simulated(&it.cell_id) && (it.estimate.is_some() || !is_missing(it));
        let mut by_metric: BTreeMap<Metric, Vec<&'a Effect>> = BTreeMap::new();
        for comparison in self.result.effects.comparisons().filter(is_shown) {
            by_metric.entry(comparison.metric).or_default().push(comparison);
        }
        let places: BTreeMap<&str, usize> =
            self.cells.iter().enumerate().map(|(place, cell)| (*cell, place)).collect();
        for rows in by_metric.values_mut() {
            rows.sort_by_key(|row| (places.get(row.cell_id.as_str()), self.arm_index(&row.arm)));
        }
        by_metric
    }

    /// A cell in a few words: `100 connections · 64 B`; its identifier if the plan lacks it.
    pub(crate) fn cell_label(&self, id: &str) -> String {
        let Some(cell) = self.cell(id) else { return id.to_owned() };
        let mut parts = match (&cell.storage, &cell.orders) {
            (Some(storage), _) => self.storage_conditions(cell, storage),
            (_, Some(orders)) => self.order_conditions(cell, orders),
            (None, None) => [self.connections(cell.connections)]
                .into_iter()
                .chain(self.beside_connections(cell))
                .collect(),
        };
        parts.extend(self.turns_apart(cell));
        parts.join(" · ")
    }

    /// A cell of messages over connections in a few words, without the number of connections: `64 B · 2 workers`.
    pub(crate) fn label_beside_connections(&self, id: &str) -> String {
        let Some(cell) = self.cell(id) else { return id.to_owned() };
        let parts: Vec<String> =
            self.beside_connections(cell).into_iter().chain(self.turns_apart(cell)).collect();
        parts.join(" · ")
    }

    fn beside_connections(&self, cell: &CellSpec) -> Vec<String> {
        [self.message_size(cell)].into_iter().chain(self.further_conditions(cell)).collect()
    }

    /// Labels of cells without their common parts; the whole label if nothing else is left.
    pub(crate) fn labels_apart(&self, cells: &[String]) -> Vec<String> {
        let parts = |cell: &String| -> Vec<String> {
            self.cell_label(cell).split(" · ").map(str::to_owned).collect()
        };
        let all: Vec<Vec<String>> = cells.iter().map(parts).collect();
        let is_shared = |part: &&String| all.len() > 1 && all.iter().all(|own| own.contains(part));
        let apart = |own: &Vec<String>| {
            let left: Vec<&str> = own.iter().filter(|part| !is_shared(part)).map(String::as_str).collect();
            if left.is_empty() { own.join(" · ") } else { left.join(" · ") }
        };
        all.iter().map(apart).collect()
    }

    /// How the arms take turns, if only this distinguishes the cell from another.
    fn turns_apart(&self, cell: &CellSpec) -> Option<String> {
        let asked = |cell: &CellSpec| CellSpec {
            id: String::new(),
            role: CellRole::Exploratory,
            blocks: 0,
            alternation: None,
            arms: Vec::new(),
            ..cell.clone()
        };
        // Most cells differ in a level: other conditions are only compared if none does.
        let levels = |cell: &CellSpec| (cell.connections, cell.workers, cell.depth, cell.message_bytes);
        let is_twin = |other: &&CellSpec| {
            other.id != cell.id
                && (levels(other), other.load) == (levels(cell), cell.load)
                && asked(other) == asked(cell)
        };
        self.result.spec.cells.iter().find(is_twin)?;
        let Some(alternation) = cell.alternation else {
            return Some(self.language.choose(["whole trials", "전체 시행", "完整试验"]).to_owned());
        };
        let length = format!("{} ms", alternation.slice_ns as f64 / 1e6);
        Some(localized!(self.language, "slices of {length}", "슬라이스 {length}", "时间片 {length}"))
    }

    /// The load on a disk: `4 KiB random read`, `32 in flight`, `32 more in the background`.
    pub(crate) fn storage_conditions(&self, cell: &CellSpec, storage: &StorageCell) -> Vec<String> {
        if storage.device.is_simulated() {
            return self.simulated_conditions(storage);
        }
        let pattern = match storage.pattern {
            AccessPattern::Read => ["sequential read", "순차 읽기", "顺序读"],
            AccessPattern::Write => ["sequential write", "순차 쓰기", "顺序写"],
            AccessPattern::RandRead => ["random read", "임의 읽기", "随机读"],
            AccessPattern::RandWrite => ["random write", "임의 쓰기", "随机写"],
            AccessPattern::ReadWrite => ["sequential read and write", "순차 읽기·쓰기", "顺序读写"],
            AccessPattern::RandRw => ["random read and write", "임의 읽기·쓰기", "随机读写"],
        };
        let size = format::bytes(u64::from(cell.message_bytes));
        let mut parts = vec![format!("{size} {}", self.language.choose(pattern))];
        parts.extend(storage.engine.map(|engine| engine.to_string()));
        let (depth, background) = (cell.depth, storage.background_depth);
        parts.push(localized!(self.language, "{depth} in flight", "동시 {depth}건", "在途 {depth} 个"));
        if cell.is_series() {
            parts.push(self.steps(storage));
        } else if background > 0 {
            parts.push(localized!(
                self.language,
                "{background} more in the background",
                "배경 부하 {background}건",
                "背景负载 {background} 个"
            ));
        }
        parts
    }

    /// A load that changes: `0, 1, 4 cores × 32 reads beside in turn`.
    fn steps(&self, storage: &StorageCell) -> String {
        let steps: Vec<String> = storage.core_steps.iter().map(u32::to_string).collect();
        let (steps, depth) = (steps.join(self.language.list()), storage.background_depth);
        localized!(
            self.language,
            "{steps} cores × {depth} reads beside, over time",
            "배경 읽기 {steps}코어 × {depth}, 시간순",
            "背景读 {steps} 核 × {depth}，随时间",
        )
    }

    /// What is simulated: `simulated SSD`, `4 × 32 reads beside`.
    fn simulated_conditions(&self, storage: &StorageCell) -> Vec<String> {
        let choose = |texts: [&'static str; 3]| self.language.choose(texts).to_owned();
        let device = match &storage.device {
            StorageDevice::Disk => choose(["disk", "디스크", "磁盘"]),
            StorageDevice::Model => choose(["Simulated SSD", "시뮬레이션 SSD", "模拟 SSD"]),
            StorageDevice::ModelLate => choose([
                "Simulated SSD, late wake-ups and slow starts",
                "시뮬레이션 SSD(늦은 깨어남, 느린 시작)",
                "模拟 SSD（唤醒延迟、启动缓慢）",
            ]),
            StorageDevice::Synthetic(SyntheticTrace::Calm) => {
                choose(["Made trace, calm", "생성 트레이스(안정)", "生成轨迹（平稳）"])
            }
            StorageDevice::Synthetic(SyntheticTrace::TwoSpeed) => {
                choose(["Made trace, two speeds", "생성 트레이스(두 속도)", "生成轨迹（两种速度）"])
            }
            StorageDevice::Synthetic(SyntheticTrace::Drifting) => {
                choose(["Made trace, drifting load", "생성 트레이스(변하는 부하)", "生成轨迹（负载漂移）"])
            }
            StorageDevice::Trace(file) => {
                format!("{} {file}", choose(["Recorded trace", "기록한 트레이스", "实录轨迹"]))
            }
        };
        let (cores, depth) = (storage.background_cores, storage.background_depth);
        let beside = match (self.language, depth) {
            _ if !storage.core_steps.is_empty() => self.steps(storage),
            (_, 0) => choose(["nothing beside", "배경 부하 없음", "无背景负载"]),
            (Language::English, _) => format!("{cores} × {depth} reads beside"),
            (Language::Korean, _) => format!("배경 읽기 {cores} × {depth}"),
            (Language::Chinese, _) => format!("背景读 {cores} × {depth}"),
        };
        // A trace includes its load in its latencies.
        let has_load = matches!(storage.device, StorageDevice::Model | StorageDevice::ModelLate);
        std::iter::once(device).chain(has_load.then_some(beside)).collect()
    }

    /// The load on a gateway: driver, kind of load, sessions, workers.
    pub(crate) fn order_conditions(&self, cell: &CellSpec, orders: &OrdersCell) -> Vec<String> {
        let mut parts = vec![orders.driver.clone(), load_name(self.language, &orders.load)];
        match cell.load {
            LoadMode::Open { rate_per_second, .. } => parts.push(format::rate(rate_per_second)),
            LoadMode::OpenShare { share, .. } => parts.push(format::percent(share)),
            LoadMode::Closed if cell.depth > 1 => parts.push(match self.language {
                Language::English => format!("{} in flight per session", cell.depth),
                Language::Korean => format!("세션당 동시 {}건", cell.depth),
                Language::Chinese => format!("每个会话在途 {} 笔", cell.depth),
            }),
            LoadMode::Closed => {}
        }
        let (sessions, workers) = (cell.connections, cell.workers);
        parts.push(localized!(
            self.language,
            "{sessions} sessions",
            "세션 {sessions}개",
            "{sessions} 个会话"
        ));
        parts.push(match (self.language, workers) {
            (Language::English, 1) => "1 worker".to_owned(),
            (Language::English, _) => format!("{workers} workers"),
            (Language::Korean, _) => format!("워커 {workers}개"),
            (Language::Chinese, _) => format!("{workers} 个工作线程"),
        });
        if orders.journal != "none" {
            parts.push(format!("{} {}", self.word(Word::Journal), orders.journal));
        }
        parts.extend(self.generator_conditions(cell));
        parts.extend(self.company(cell));
        parts
    }

    /// The size of a message, or the contents of a response: `64 B`, `HTML page 592 B`.
    fn message_size(&self, cell: &CellSpec) -> String {
        let size = format::bytes(u64::from(cell.message_bytes));
        let Some(http) = &cell.http else { return size };
        if http.mix {
            let count = self.result.spec.requests.len();
            return localized!(
                self.language,
                "mix of {count} requests",
                "요청 {count}개 혼합",
                "{count} 个请求的混合"
            );
        }
        let name = match http.content.as_str() {
            "html" => ["HTML page", "HTML 페이지", "HTML 页面"],
            "image" => ["image", "이미지", "图片"],
            _ => ["content", "본문", "内容"],
        };
        format!("{} {size}", self.language.choose(name))
    }

    /// The same inside a sentence.
    pub(crate) fn message_size_in_prose(&self, cell: &CellSpec) -> String {
        let size = self.message_size(cell);
        match self.language {
            _ if cell.http.is_some() => size,
            Language::English => format!("{size} messages"),
            Language::Korean => format!("{size} 메시지"),
            Language::Chinese => format!("{size} 消息"),
        }
    }

    /// `100 connections`.
    pub(crate) fn connections(&self, count: u32) -> String {
        let number = format::grouped(f64::from(count));
        match self.language {
            Language::English if count == 1 => "1 connection".to_owned(),
            Language::English => format!("{number} connections"),
            Language::Korean => format!("연결 {number}개"),
            Language::Chinese => format!("{number} 个连接"),
        }
    }

    /// All unusual conditions of a cell.
    pub(crate) fn further_conditions(&self, cell: &CellSpec) -> Vec<String> {
        let (depth, idle, workers) = (cell.depth, cell.idle_connections, cell.workers);
        let mut parts = Vec::new();
        if cell.has_connection_per_message() {
            let words = match &cell.http {
                Some(_) => ["new connection each", "요청마다 새 연결", "每个请求新建连接"],
                None => ["new connection each", "메시지마다 새 연결", "每条消息新建连接"],
            };
            parts.push(self.language.choose(words).to_owned());
        }
        if depth > 1 {
            parts.push(localized!(
                self.language,
                "{depth} in flight each",
                "연결당 동시 {depth}건",
                "每连接在途 {depth} 条"
            ));
        }
        if idle > 0 {
            parts.push(localized!(self.language, "{idle} idle", "유휴 연결 {idle}개", "空闲连接 {idle} 个"));
        }
        if workers > 1 {
            parts.push(localized!(
                self.language,
                "{workers} workers",
                "워커 {workers}개",
                "{workers} 个工作线程"
            ));
        }
        parts.extend(self.spread_by_kernel(cell));
        let slowed_by = &cell.congestion_control;
        if !slowed_by.is_empty() {
            parts.push(localized!(
                self.language,
                "congestion control {slowed_by}",
                "혼잡 제어 {slowed_by}",
                "拥塞控制 {slowed_by}"
            ));
        }
        parts.extend(self.server_cpus(cell));
        parts.extend(self.generator_conditions(cell));
        parts.extend(self.offered_load(cell.load));
        parts.extend(self.company(cell));
        parts
    }

    /// How connections are assigned to its workers, if not in turn.
    fn spread_by_kernel(&self, cell: &CellSpec) -> Option<String> {
        let texts = match cell.accept.as_str() {
            _ if cell.workers < 2 => return None,
            "reuseport" => ["spread by SO_REUSEPORT", "SO_REUSEPORT로 분산", "由 SO_REUSEPORT 分配"],
            "exclusive" => ["one shared listener", "공유 리스너 하나", "共用一个监听套接字"],
            _ => return None,
        };
        Some(self.language.choose(texts).to_owned())
    }

    /// Processes beside its servers.
    fn company(&self, cell: &CellSpec) -> Option<String> {
        let names = cell.neighbours.join(", ");
        let text = localized!(self.language, "beside {names}", "함께 실행: {names}", "同时运行：{names}");
        (!names.is_empty()).then_some(text)
    }

    /// CPUs of the servers, if they differ from the study's.
    fn server_cpus(&self, cell: &CellSpec) -> Option<String> {
        let all = &self.result.spec.server_cpus;
        let is_own = !cell.server_cpus.is_empty() && cell.server_cpus != *all;
        let cpus = cell.server_cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let text =
            localized!(self.language, "server on CPU {cpus}", "서버 CPU {cpus}", "服务器用 CPU {cpus}");
        is_own.then_some(text)
    }

    /// How the generator differs from one thread on the study's CPUs.
    fn generator_conditions(&self, cell: &CellSpec) -> Vec<String> {
        let mut parts = Vec::new();
        if cell.load_workers > 1 {
            let load_workers = cell.load_workers;
            parts.push(localized!(
                self.language,
                "{load_workers} generator threads",
                "부하 생성기 스레드 {load_workers}개",
                "负载生成器线程 {load_workers} 个"
            ));
        }
        if !cell.load_cpus.is_empty() {
            let cpus = cell.load_cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            parts.push(localized!(
                self.language,
                "generator on CPU {cpus}",
                "부하 생성기 CPU {cpus}",
                "负载生成器用 CPU {cpus}"
            ));
        }
        parts
    }

    fn offered_load(&self, load: LoadMode) -> Option<String> {
        let offered = match load {
            LoadMode::Closed => return None,
            LoadMode::Open { rate_per_second, .. } => format::rate(rate_per_second),
            LoadMode::OpenShare { share, .. } => {
                let share = format::percent(share);
                localized!(self.language, "{share} of capacity", "처리 능력의 {share}", "处理能力的 {share}")
            }
        };
        Some(localized!(self.language, "at {offered}", "요청률({offered})", "请求速率（{offered}）"))
    }

    /// A cell in full, for table headings: label, role, kind of load.
    pub(crate) fn cell_heading(&self, id: &str) -> String {
        let Some(cell) = self.cell(id) else { return id.to_owned() };
        let load = match cell.load {
            LoadMode::Closed => Word::ClosedLoop,
            LoadMode::Open { poisson: true, .. } | LoadMode::OpenShare { poisson: true, .. } => Word::Poisson,
            LoadMode::Open { .. } | LoadMode::OpenShare { .. } => Word::Uniform,
        };
        let role = self.word(words::role(cell.role));
        if cell.storage.is_some() {
            return format!("{} · {role}", self.cell_label(id));
        }
        format!("{} · {} · {role}", self.cell_label(id), self.word(load))
    }

    /// Cells whose latency may be drawn: open loop or a disk, with at least one curve.
    pub(crate) fn latency_cells(&self) -> Vec<&'a str> {
        let is_open = |id: &str| {
            self.cell(id).is_some_and(|cell| cell.load != LoadMode::Closed || cell.storage.is_some())
        };
        let has_curve = |id: &str| {
            !self.is_simulated(id) && self.summaries(id).iter().any(|arm| !arm.response_quantiles.is_empty())
        };
        self.cells.iter().copied().filter(|id| is_open(id) && has_curve(id)).collect()
    }

    /// The sign of a lower bound, if the figure is one. At an offered rate no figure is a bound: the rate was kept or
    /// not.
    pub fn bound(&self, summary: &ArmSummary, metric: Metric) -> &'static str {
        let is_bound = self.is_lower_bound(summary) && metric.row().family == Family::Rate;
        if is_bound { "≥ " } else { "" }
    }

    /// Whether the arm may achieve more than its figure.
    pub fn is_lower_bound(&self, summary: &ArmSummary) -> bool {
        summary.generator_bound && !self.is_at_offered_rate(summary)
    }

    /// The meaning of the sign of a lower bound, and where the generator was late at an offered rate, each with its
    /// cells.
    pub fn generator_limits(&self) -> Vec<(String, Vec<String>)> {
        let cells = |is_offered: bool| -> Vec<String> {
            let bound = self.result.arms.iter().filter(|arm| arm.generator_bound);
            let own = bound.filter(|arm| self.is_at_offered_rate(arm) == is_offered);
            distinct(own.map(|arm| arm.cell_id.as_str())).into_iter().map(str::to_owned).collect()
        };
        let (closed, offered) = (cells(false), cells(true));
        let labels: Vec<String> = offered.iter().map(|cell| self.cell_label(cell)).collect();
        let labels = labels.join(self.language.semicolon());
        let late = localized!(
            self.language,
            "the generator was late at the offered rate, so that fewer messages were sent than the rate says: {labels}",
            "부하 생성기가 요청률에 도달하지 못해 메시지를 그보다 적게 보낸 조건: {labels}",
            "负载生成器未达到目标请求速率，实际发送的消息少于目标：{labels}",
        );
        let sign = format!("≥{}{}", self.language.colon(), self.word(Word::GeneratorBound));
        [(sign, closed), (late, offered)].into_iter().filter(|(_, cells)| !cells.is_empty()).collect()
    }

    fn is_at_offered_rate(&self, summary: &ArmSummary) -> bool {
        self.cell(&summary.cell_id).is_some_and(|cell| cell.load != LoadMode::Closed)
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = std::collections::BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

/// A kind of load in words.
pub(crate) fn load_name(language: Language, load: &str) -> String {
    let words = match load {
        "closed" => ["one order in flight", "동시 주문 1건", "在途 1 笔订单"],
        "tps" => ["one in flight per session", "세션당 동시 1건", "每个会话在途 1 笔"],
        "paced" => ["paced", "일정 속도", "定速"],
        "flood" => ["flood", "최대 속도", "满载"],
        other => return other.to_owned(),
    };
    language.choose(words).to_owned()
}
