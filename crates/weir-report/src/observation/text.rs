//! The blocks on a terminal.

use super::blocks::{Block, Blocks, Columns};
use crate::{
    display::columns,
    language::{Language, localized},
    table::Table,
    terminal::{Output, Style, TERMINAL_COLUMNS_MAX, TERMINAL_COLUMNS_MIN, columns_of, width_of},
};

/// The widest table that is drawn. Sentences are wrapped at the width of other reports, because wider lines of prose
/// are hard to follow.
const TABLE_COLUMNS_MAX: usize = 240;

pub(super) fn document(blocks: &Blocks, language: Language, width_columns: usize, color: bool) -> String {
    let width = width_columns.clamp(TERMINAL_COLUMNS_MIN, TERMINAL_COLUMNS_MAX);
    let width_of_tables = width_columns.clamp(TERMINAL_COLUMNS_MIN, TABLE_COLUMNS_MAX);
    let mut out = Output::new(width, color);
    out.wrapped(&blocks.title, "  ");
    if !blocks.conclusion.is_empty() {
        out.blank();
    }
    for line in &blocks.conclusion {
        out.wrapped(line, "");
    }
    for block in &blocks.blocks {
        draw(block, language, width_of_tables, &mut out);
    }
    out.finish()
}

/// The same with the rows of tables cut to the height; never higher than that.
pub(super) fn live(
    mut blocks: Blocks,
    language: Language,
    width_columns: usize,
    height_rows: usize,
) -> String {
    let rows_of = |block: &Block| block.table.as_ref().map_or(0, |content| content.table.rows.len());
    let mut rows_max = blocks.blocks.iter().map(rows_of).max().unwrap_or(0);
    let leave = language.choose([
        "q or Ctrl-C ends it and prints the report",
        "q 또는 Ctrl-C: 끝내고 보고서 출력",
        "按 q 或 Ctrl-C 结束并输出报告",
    ]);
    let room = height_rows.saturating_sub(2);
    loop {
        for content in blocks.blocks.iter_mut().filter_map(|block| block.table.as_mut()) {
            let left_out = content.table.rows.len().saturating_sub(rows_max);
            content.table.rows.truncate(rows_max);
            content.table.left_out += left_out;
        }
        let text = document(&blocks, language, width_columns, false);
        if text.lines().count() <= room || rows_max <= 1 {
            let lines = text.lines().take(room).chain(["", leave]).take(height_rows);
            return lines.collect::<Vec<_>>().join("\n");
        }
        rows_max -= 1;
    }
}

fn draw(block: &Block, language: Language, width_of_tables: usize, out: &mut Output) {
    out.blank();
    out.styled(Style::Bold, &block.title);
    if let Some(content) = &block.table {
        let (table, kept) = fitting(content, width_of_tables.max(out.width()));
        columns_of(&table, out);
        if table.left_out > 0 {
            let count = table.left_out;
            let more = localized!(language, "and {count} more", "그 밖에 {count}개", "另有 {count} 个");
            out.wrapped(&more, "");
        }
        let legend = legend(content, &kept, language);
        if !legend.is_empty() {
            out.wrapped(&legend, "  ");
        }
    }
    for line in &block.lines {
        out.wrapped(line, "  ");
    }
}

/// Explanations of the columns that are shown.
fn legend(content: &Columns, kept: &[usize], language: Language) -> String {
    let shown = content.legend.iter().filter(|(column, _)| kept.contains(column));
    let texts = shown.map(|(column, words)| {
        let head = &content.table.head[*column];
        format!("{head}{}{words}", language.colon())
    });
    texts.collect::<Vec<String>>().join(language.semicolon())
}

/// The table with as many columns as fit, and names shortened if even that is too wide; and the indices of those
/// columns.
fn fitting(content: &Columns, width: usize) -> (Table, Vec<usize>) {
    let source = &content.table;
    let mut kept: Vec<usize> = (0..source.head.len()).collect();
    for optional in content.optional.chunks(content.together) {
        if width_of(&selected(source, &kept)) <= width {
            break;
        }
        kept.retain(|column| !optional.contains(column));
    }
    let mut table = selected(source, &kept);
    let beyond = width_of(&table).saturating_sub(width);
    if beyond > 0 {
        // The widest name is shortened.
        let width_of_column =
            |column: usize| table.rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
        let widest = (0..table.text_columns).max_by_key(|column| width_of_column(*column)).unwrap_or(0);
        let room = width_of_column(widest).saturating_sub(beyond).max(4);
        for row in std::iter::once(&mut table.head).chain(&mut table.rows) {
            row[widest] = crate::display::truncate(&row[widest], room);
        }
    }
    (table, kept)
}

fn selected(source: &Table, kept: &[usize]) -> Table {
    let pick = |row: &Vec<String>| kept.iter().map(|column| row[*column].clone()).collect::<Vec<_>>();
    let text_columns = kept.iter().filter(|column| **column < source.text_columns).count();
    let rows = source.rows.iter().map(pick).collect();
    Table { left_out: source.left_out, ..Table::with_head(pick(&source.head), text_columns, rows) }
}
