//! The verdict table for a terminal: the sentence, then for each cell one row per arm, then notes.

use weir_record::{
    effect::Effect,
    metric::{Family, Metric, Scale},
    metric_rows::{METRICS, MetricRow, Part},
    study::ArmSummary,
    verdict::Verdict,
};

use crate::{
    added_cost, chart, check_words,
    display::{columns, pad_end, pad_start, printable, truncate, wrap},
    format, frontier, goals, guidance, io_models, metrics, notes, overview, published,
    section::{Content, Section},
    sentence,
    table::Table,
    tables,
    view::View,
    wait_series, when,
    words::Word,
};

pub(crate) mod answer;

/// The narrowest table; a narrower terminal wraps its lines itself.
pub const TERMINAL_COLUMNS_MIN: usize = 60;
/// The widest table; wider lines are hard to follow.
pub const TERMINAL_COLUMNS_MAX: usize = 120;

/// Columns between two fields.
const GAP: usize = 2;

/// Most lines of a failed check; for a map it lists many cells.
const CHECK_LINES_MAX: usize = 5;

/// The answer on one screen, in the same widths.
pub(crate) fn answer(view: &View<'_>, width_columns: usize, color: bool) -> String {
    answer::screen(view, (width_columns.clamp(TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX), color))
}

/// The document.
pub(crate) fn table(view: &View<'_>, width_columns: usize, color: bool) -> String {
    let width = width_columns.clamp(TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX);
    let mut out = Output::new(width, color);
    title(view, &mut out);
    let rows: Vec<_> = view.cells.iter().map(|cell| (*cell, cell_rows(view, cell))).collect();
    let layout = Layout::fitting(view, rows.iter().flat_map(|(_, rows)| rows), width);
    for (cell, rows) in &rows {
        let frontier = frontier::narrow_table(view, cell);
        let not_compared = not_compared(view, cell);
        if rows.is_empty() && frontier.rows.is_empty() && not_compared.is_none() {
            continue;
        }
        out.blank();
        let heading = view.cell_heading(cell);
        wrap(&printable(&heading), width).iter().for_each(|line| out.styled(Style::Bold, line));
        if !rows.is_empty() {
            out.styled(Style::Faint, &layout.header(view));
        }
        for row in rows {
            out.line(&layout.line(row, color));
        }
        if let Some(line) = not_compared {
            out.wrapped(&line, "  ");
        }
        columns_of(&frontier, &mut out);
    }
    over_time(view, &mut out);
    notes(view, &mut out);
    overview(view, &mut out);
    further(view, &mut out);
    goals(view, &mut out);
    published(view, &mut out);
    ways(view, &mut out);
    missing_arms(view, &mut out);
    out.blank();
    let colon = view.language.colon();
    out.wrapped(&format!("{}{colon}{}", view.word(Word::ReproduceTitle), view.result.reproduce), "  ");
    out.text
}

fn title(view: &View<'_>, out: &mut Output) {
    let result = view.result;
    let complete = if result.complete { Word::Complete } else { Word::Incomplete };
    out.wrapped(
        &format!(
            "{} {} · {} {} · {} · {}",
            view.word(Word::StudyOf),
            result.spec.name,
            view.word(Word::Seed),
            result.spec.seed,
            view.word(complete),
            view.language.duration(result.elapsed_ns),
        ),
        "",
    );
    out.blank();
    let verdict = format!("{}{}{}", view.word(Word::Verdict), view.language.colon(), view.own_verdict());
    out.styled(Style::of(result.verdict), &verdict);
    out.wrapped(&sentence::headline(view), "");
    for line in sentence::next_step(view).into_iter().chain(sentence::beside(view)) {
        out.wrapped(&line, "");
    }
    for line in frontier::elsewhere(view) {
        out.wrapped(&format!("- {}", line.text), "  ");
    }
    let sensitivity = sentence::sensitivity(view);
    if !sensitivity.is_empty() {
        out.wrapped(&sensitivity, "");
    }
    when::sentences(view).iter().for_each(|line| out.wrapped(line, ""));
}

/// Series with their means, and the published figures of each part.
fn over_time(view: &View<'_>, out: &mut Output) {
    for series in &view.result.wait_series {
        out.blank();
        let title = printable(&wait_series::title(view, series));
        wrap(&title, out.width).iter().for_each(|line| out.styled(Style::Bold, line));
        columns_of(&wait_series::narrow_table(view, series), out);
        for line in wait_series::published(view, series) {
            out.wrapped(&format!("- {line}"), "  ");
        }
    }
}

/// A table of few columns, as wide as its texts; empty for an empty table.
pub(crate) fn columns_of(table: &Table, out: &mut Output) {
    if table.rows.is_empty() {
        return;
    }
    let all = || std::iter::once(&table.head).chain(&table.rows);
    let widths = widths_of(table);
    for (index, row) in all().enumerate() {
        let fields = row.iter().zip(&widths).enumerate().map(|(column, (text, width))| {
            if column < table.text_columns { pad_end(text, *width) } else { pad_start(text, *width) }
        });
        let line = fields.collect::<Vec<_>>().join(&" ".repeat(GAP));
        if index == 0 { out.styled(Style::Faint, &line) } else { out.line(line.trim_end()) }
    }
}

fn widths_of(table: &Table) -> Vec<usize> {
    let all = || std::iter::once(&table.head).chain(&table.rows);
    let width = |column: usize| all().map(|row| columns(&row[column])).max().unwrap_or(0);
    (0..table.head.len()).map(width).collect()
}

/// The width of a table drawn by [`columns_of`].
pub(crate) fn width_of(table: &Table) -> usize {
    let widths = widths_of(table);
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// One line of a cell's table.
#[derive(Clone)]
struct Row {
    name: String,
    /// A further metric of the arm above: its name spans the columns of the figures.
    further: bool,
    throughput: String,
    server_cpu: String,
    ratio: String,
    verdict: Option<Verdict>,
    verdict_word: String,
    detectable: String,
    floor: String,
}

/// The line below the arms if no comparison of the cell has a figure.
fn not_compared(view: &View<'_>, cell: &str) -> Option<String> {
    let of_cell: Vec<&Effect> = view.compared_in(cell).filter(|_| !view.is_simulated(cell)).collect();
    view.not_compared(&of_cell)
}

fn cell_rows(view: &View<'_>, cell: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    if view.is_simulated(cell) {
        return rows;
    }
    let is_void = not_compared(view, cell).is_some();
    for arm in &view.arms {
        let summary = view.summary(cell, arm);
        let own = |row: &MetricRow| view.comparison(cell, arm, row.metric).filter(|_| !is_void);
        let compared: Vec<_> = METRICS.iter().filter_map(own).collect();
        if summary.is_none() && compared.is_empty() {
            continue;
        }
        let (own, further): (Vec<_>, Vec<_>) =
            compared.into_iter().partition(|it| it.metric == Metric::ServerCpuPerMessage);
        rows.push(arm_row(view, arm, summary, own.first().copied()));
        for comparison in further.into_iter().filter(|it| !view.is_server_cpu_again(it)) {
            let name = format!("  {}", metrics::short(view, comparison.metric));
            rows.push(Row { name, further: true, ..comparison_row(view, Some(comparison)) });
        }
        let times = times_alone(view, cell, summary);
        rows.extend(times.map(|name| Row { name, further: true, ..comparison_row(view, None) }));
    }
    rows
}

/// Times that are measured in the cell and not compared: to the first and to the last byte, side by side.
fn times_alone(view: &View<'_>, cell: &str, summary: Option<&ArmSummary>) -> Option<String> {
    let (cell, summary) = (view.cell(cell)?, summary?);
    let is_alone = |row: &&MetricRow| {
        row.family == Family::Time && row.scale == Scale::Ratio && (row.part)(cell) == Part::Figure
    };
    let texts = METRICS.iter().filter(is_alone).filter_map(|row| {
        let mean = summary.mean(row.metric)?;
        Some(format!("{} {}", metrics::short(view, row.metric), metrics::bare(row.metric, mean)))
    });
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| format!("  {}", texts.join(view.language.list())))
}

fn arm_row(view: &View<'_>, arm: &str, summary: Option<&ArmSummary>, own: Option<&Effect>) -> Row {
    let mut row = comparison_row(view, own);
    row.name = printable(&own.map_or_else(|| arm.to_owned(), |it| view.compared(arm, &it.baseline)));
    if view.baseline() == Some(arm) {
        row.ratio = view.word(Word::Baseline).to_owned();
    }
    if let Some(summary) = summary {
        let figure = |metric: Metric| {
            let mean = summary.mean(metric)?;
            Some(format!("{}{}", view.bound(summary, metric), metrics::bare(metric, mean)))
        };
        row.throughput = figure(Metric::Throughput).unwrap_or_default();
        row.server_cpu = figure(Metric::ServerCpuPerMessage).unwrap_or_default();
    }
    row
}

fn comparison_row(view: &View<'_>, comparison: Option<&Effect>) -> Row {
    let ratio = comparison.map(metrics::effect);
    let compact = |text: Option<String>| text.map(|it| it.replace(' ', "")).unwrap_or_default();
    Row {
        name: String::new(),
        further: false,
        throughput: String::new(),
        server_cpu: String::new(),
        ratio: ratio.unwrap_or_default(),
        verdict: comparison.map(|it| it.verdict),
        verdict_word: comparison.map(|it| view.outcome_words(it)).unwrap_or_default(),
        detectable: compact(comparison.map(metrics::detectable)),
        floor: compact(comparison.map(|it| metrics::floor(view, it))),
    }
}

/// Narrowest column of names: with less room the comparison is placed below the measurement.
const NAME_COLUMNS_MIN: usize = 8;

/// Widths of the columns. A name that does not fit gets a separate line.
struct Layout {
    /// Whether the ratio and its columns have a separate line.
    is_stacked: bool,
    name: usize,
    throughput: usize,
    server_cpu: usize,
    ratio: usize,
    verdict: usize,
    detectable: usize,
    floor: usize,
}

impl Layout {
    fn fitting<'r>(view: &View<'_>, rows: impl Iterator<Item = &'r Row>, width: usize) -> Self {
        let head = |word: Word| columns(view.word(word));
        let mut layout = Layout {
            is_stacked: false,
            name: head(Word::Arm),
            throughput: columns(&metrics::column(view, Metric::Throughput)),
            server_cpu: columns(&metrics::short(view, Metric::ServerCpuPerMessage)),
            ratio: head(Word::RatioInterval),
            verdict: head(Word::Verdict),
            detectable: head(Word::DetectableShort),
            floor: head(Word::FloorShort),
        };
        for row in rows {
            if !row.further {
                layout.name = layout.name.max(columns(&row.name));
            }
            layout.throughput = layout.throughput.max(columns(&row.throughput));
            layout.server_cpu = layout.server_cpu.max(columns(&row.server_cpu));
            layout.ratio = layout.ratio.max(columns(&row.ratio));
            layout.verdict = layout.verdict.max(columns(&row.verdict_word));
            layout.detectable = layout.detectable.max(columns(&row.detectable));
            layout.floor = layout.floor.max(columns(&row.floor));
        }
        layout.is_stacked = layout.name.min(NAME_COLUMNS_MIN) + layout.rest() > width;
        let rest =
            if layout.is_stacked { layout.throughput + layout.server_cpu + 2 * GAP } else { layout.rest() };
        layout.name = layout.name.min(width.saturating_sub(rest));
        layout
    }

    /// Columns of everything except the name, including gaps.
    fn rest(&self) -> usize {
        let fields =
            [self.throughput, self.server_cpu, self.ratio, self.verdict, self.detectable, self.floor];
        fields.iter().map(|field| field + GAP).sum()
    }

    fn header(&self, view: &View<'_>) -> String {
        let row = Row {
            name: truncate(view.word(Word::Arm), self.name),
            further: false,
            throughput: metrics::column(view, Metric::Throughput),
            server_cpu: metrics::short(view, Metric::ServerCpuPerMessage),
            ratio: view.word(Word::RatioInterval).to_owned(),
            verdict: None,
            verdict_word: view.word(Word::Verdict).to_owned(),
            detectable: view.word(Word::DetectableShort).to_owned(),
            floor: view.word(Word::FloorShort).to_owned(),
        };
        self.fields(&row, false)
    }

    fn line(&self, row: &Row, color: bool) -> String {
        if !row.further && columns(&row.name) > self.name {
            let name = truncate(&row.name, TERMINAL_COLUMNS_MIN);
            return format!("{name}\n{}", self.fields(&Row { name: String::new(), ..row.clone() }, color));
        }
        self.fields(row, color)
    }

    fn fields(&self, row: &Row, color: bool) -> String {
        let gap = " ".repeat(GAP);
        let verdict = pad_end(&row.verdict_word, self.verdict);
        let verdict = match row.verdict {
            Some(verdict_kind) if color => Style::of(verdict_kind).paint(&verdict),
            _ => verdict,
        };
        let figures = self.name + self.throughput + self.server_cpu + 2 * GAP;
        let subject = if row.further {
            pad_end(&truncate(&row.name, figures), figures)
        } else {
            [
                pad_end(&row.name, self.name),
                pad_start(&row.throughput, self.throughput),
                pad_start(&row.server_cpu, self.server_cpu),
            ]
            .join(&gap)
        };
        let compared = [
            pad_end(&row.ratio, self.ratio),
            verdict,
            pad_start(&row.detectable, self.detectable),
            pad_start(&row.floor, self.floor),
        ]
        .join(&gap);
        if row.further && compared.trim().is_empty() {
            return truncate(&row.name, figures.max(TERMINAL_COLUMNS_MIN));
        }
        match (self.is_stacked, compared.trim().is_empty()) {
            (false, _) => format!("{subject}{gap}{compared}").trim_end().to_owned(),
            (true, true) => subject.trim_end().to_owned(),
            (true, false) => format!("{}\n{gap}{}", subject.trim_end(), compared.trim_end()),
        }
    }
}

fn notes(view: &View<'_>, out: &mut Output) {
    let colon = view.language.colon();
    for cell in notes::by_cell(view) {
        out.blank();
        out.wrapped(&cell.cell, "");
        for (subject, text, _) in &cell.notes {
            out.wrapped(&format!("- {subject}{colon}{text}"), "  ");
        }
    }
    let mut lines: Vec<String> = view.generator_limits().into_iter().map(|(text, _)| text).collect();
    for check in view.result.checks.iter().filter(|check| !check.passed) {
        let name = check_words::check(&check.name).map_or_else(|name| name, |word| view.word(word));
        let (failed, found) = (view.word(Word::Failed), view.finding(&check.detail));
        lines.push(format!("✗ {failed} · {name}{colon}{found}"));
    }
    if !lines.is_empty() {
        out.blank();
    }
    for line in lines {
        out.shortened(&format!("- {line}"), "  ", view.word(Word::RestInReport));
    }
}

fn goals(view: &View<'_>, out: &mut Output) {
    if goals::has_any(view) {
        out.blank();
        out.styled(Style::Bold, view.word(Word::GoalsTitle));
        goals::lines(view).iter().for_each(|line| out.wrapped(&format!("- {line}"), "  "));
    }
}

fn published(view: &View<'_>, out: &mut Output) {
    if published::has_claims(view) {
        out.blank();
        out.styled(Style::Bold, view.word(Word::PublishedTitle));
        for paragraph in published::paragraphs(view) {
            out.wrapped(&format!("- {paragraph}"), "  ");
        }
    }
    if let Some(ladder) = published::ladder(view) {
        out.blank();
        out.wrapped(&ladder, "");
    }
}

/// The tables of a map in a line per arm, and implausible scaling; response times against offered load.
fn overview(view: &View<'_>, out: &mut Output) {
    let of_tables = (view.word(Word::OverviewTitle), overview::lines(view));
    let of_rates = (chart::LATENCY_MAP_TITLE.localized(view), chart::latency_lines(view));
    for (title, lines) in [of_tables, of_rates].into_iter().filter(|(_, lines)| !lines.is_empty()) {
        out.blank();
        out.styled(Style::Bold, title);
        lines.iter().for_each(|line| out.wrapped(&format!("- {line}"), "  "));
    }
}

/// Details of a study's own sentence, a line each: tables with this many columns do not fit a terminal.
fn further(view: &View<'_>, out: &mut Output) {
    if let Some(text) = sentence::oversubscribed(view) {
        out.blank();
        out.wrapped(&text, "");
    }
    let advice = guidance::short(view);
    if !advice.is_empty() {
        out.blank();
        out.styled(Style::Bold, view.word(Word::GuidanceTitle));
        advice.iter().for_each(|line| out.wrapped(&format!("- {line}"), "  "));
    }
    let headline = sentence::headline(view);
    let figures = Content::unless(!view.is_orders || view.result.arms.is_empty(), || {
        Section::of_table(Word::FiguresTitle, Word::FiguresHelp, tables::further_figures(view, &[]))
    });
    for content in [added_cost::section(view), published::runs(view), figures] {
        let Content::Shown(section) = content else { continue };
        out.blank();
        out.styled(Style::Bold, section.title.localized(view));
        let further = section.sentences.iter().filter(|it| it.text != headline);
        further.for_each(|it| out.wrapped(&it.text, ""));
        section.tables.iter().for_each(|table| lines(view, out, table));
    }
}

/// A title, sentences and sections, without the explanations of their tables.
pub(crate) fn of_sections(
    view: &View<'_>,
    (title, sentences): (&str, &[String]),
    sections: &[Section],
    (width_columns, color): (usize, bool),
) -> String {
    let mut out = Output::new(width_columns.clamp(TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX), color);
    out.styled(Style::Bold, title);
    sentences.iter().for_each(|line| out.wrapped(line, "  "));
    for section in sections {
        out.blank();
        out.styled(Style::Bold, section.title.localized(view));
        section.sentences.iter().for_each(|it| out.wrapped(&it.text, ""));
        section.tables.iter().for_each(|table| lines(view, &mut out, table));
    }
    out.finish()
}

/// Each row of a table on a separate line.
fn lines(view: &View<'_>, out: &mut Output, table: &Table) {
    for row in &table.rows {
        let (subject, figures) = row.split_at(table.text_columns.min(row.len()));
        let subject: Vec<&str> =
            subject.iter().map(String::as_str).filter(|part| *part != format::ABSENT).collect();
        let heads = table.head.iter().skip(table.text_columns);
        let figures: Vec<String> = heads
            .zip(figures)
            .filter(|(_, figure)| *figure != format::ABSENT)
            .map(|(head, figure)| format!("{head} {figure}"))
            .collect();
        let subject = subject.join(" · ");
        let line = match figures.is_empty() {
            true => format!("- {subject}"),
            false => format!("- {subject}{}{}", view.language.colon(), figures.join(", ")),
        };
        out.wrapped(&line, "  ");
    }
}

fn ways(view: &View<'_>, out: &mut Output) {
    if !io_models::has_io_models(view) {
        return;
    }
    out.blank();
    out.styled(Style::Bold, view.word(Word::IoModelsTitle));
    for way in &view.result.spec.io_models {
        out.wrapped(&format!("- {} · {}", way.name, io_models::here(view, way)), "  ");
    }
}

fn missing_arms(view: &View<'_>, out: &mut Output) {
    let cells = &view.result.spec.missing_cells;
    if view.result.missing_arms.is_empty() && cells.is_empty() {
        return;
    }
    out.blank();
    out.styled(Style::Bold, view.word(Word::MissingTitle));
    let colon = view.language.colon();
    for arm in &view.result.missing_arms {
        out.wrapped(&format!("- {}{colon}{}", arm.name, view.finding(&arm.reason)), "  ");
        if let Some(unlock) = &arm.unlock {
            out.wrapped(&format!("  {}{colon}{}", view.word(Word::Unlock), view.finding(unlock)), "    ");
        }
    }
    for cell in cells {
        out.wrapped(&format!("- {}{colon}{}", cell.id, view.finding(&cell.reason)), "  ");
    }
}

/// ANSI styles; each goes with a word that says the same.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Bold,
    Faint,
    Good,
    Bad,
    Even,
    Doubt,
}

impl Style {
    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Better => Style::Good,
            Verdict::Worse => Style::Bad,
            Verdict::Equivalent => Style::Even,
            Verdict::NoClaim => Style::Faint,
            Verdict::Inconclusive | Verdict::NotComparable => Style::Doubt,
        }
    }

    fn paint(self, text: &str) -> String {
        let code = match self {
            Style::Bold => "1",
            Style::Faint => "2",
            Style::Good => "1;32",
            Style::Bad => "1;31",
            Style::Even => "1;36",
            Style::Doubt => "1;33",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

pub(crate) struct Output {
    text: String,
    width: usize,
    color: bool,
}

impl Output {
    pub(crate) fn new(width: usize, color: bool) -> Self {
        Self { text: String::new(), width, color }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    pub(crate) fn styled(&mut self, style: Style, line: &str) {
        let line = if self.color { style.paint(line) } else { line.to_owned() };
        self.line(&line);
    }

    /// Wraps into lines; all but the first are indented.
    pub(crate) fn wrapped(&mut self, text: &str, indent: &str) {
        let text = printable(text);
        let own_indent = &text[..text.len() - text.trim_start().len()];
        for (index, line) in wrap(text.trim_start(), self.width - columns(indent)).iter().enumerate() {
            let indent = if index == 0 { own_indent } else { indent };
            self.line(&format!("{indent}{line}"));
        }
    }

    /// The same; a text longer than a few lines ends with a reference to the rest.
    fn shortened(&mut self, text: &str, indent: &str, rest: &str) {
        let text = printable(text);
        let lines = wrap(&text, self.width - columns(indent));
        let is_long = lines.len() > CHECK_LINES_MAX;
        let shown = if is_long { CHECK_LINES_MAX - 1 } else { lines.len() };
        for (index, line) in lines.iter().take(shown).enumerate() {
            self.line(&format!("{}{line}", if index == 0 { "" } else { indent }));
        }
        if is_long {
            self.line(&format!("{indent}… {rest}"));
        }
    }
}
