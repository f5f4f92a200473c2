//! Published tables that a study file shows beside the report's tables of the same name.

use weir_record::published::{PublishedRow, PublishedTable, RowNames, TableName};

use super::{comparisons::Known, one_of, published::text};
use crate::{
    limits::{PUBLISHED_TABLE_ROWS_MAX, PUBLISHED_TABLES_MAX, instead},
    toml_table::{Entry, FieldError, Table},
};

/// Longest name of a system call; the kernel's have up to 23 letters.
const CALL_LENGTH_MAX: usize = 40;

/// Reads the tables of a file. A table whose cell this machine lacks is left out.
pub(super) fn read(tables: Vec<Table<'_>>, known: &Known<'_>) -> Result<Vec<PublishedTable>, FieldError> {
    if let Some(table) = tables.get(PUBLISHED_TABLES_MAX) {
        let message = format!("{} tables; at most {PUBLISHED_TABLES_MAX} are allowed", tables.len());
        return Err(FieldError::new(table.at(), "published_table", message));
    }
    let mut found: Vec<PublishedTable> = Vec::new();
    for table in tables {
        let twice = table.wrong("the file has a table of this name already; they would stand in one place");
        let one = read_one(table, known)?;
        if one.cell_id.is_none() && found.iter().any(|other| other.table == one.table) {
            return Err(twice);
        }
        found.push(one);
    }
    let is_there = |table: &PublishedTable| {
        let has_cell = |id: &String| known.spec.cells.iter().any(|cell| cell.id == *id);
        table.cell_id.as_ref().is_none_or(has_cell)
    };
    found.retain(is_there);
    Ok(found)
}

fn read_one(mut table: Table<'_>, known: &Known<'_>) -> Result<PublishedTable, FieldError> {
    let name = table.required("table", name)?;
    let cell = |entry: Entry<'_>| {
        let cells: Vec<&str> = known.spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        if known.lacks_cells { entry.text() } else { one_of(entry, "cell", &cells) }
    };
    let cell_id = match name {
        TableName::Aggregate => Some(table.required("cell", cell)?),
        _ => None,
    };
    let arms = table.required("arms", |entry| known.arms(entry))?;
    let rows = match name.rows() {
        RowNames::Nothing => Vec::new(),
        names => table.required("rows", |entry| rows(entry, names, arms.len()))?,
    };
    let found = PublishedTable {
        table: name,
        cell_id,
        source: table.required("source", text)?,
        arms,
        rows,
        explanation: table.required("explanation", text)?,
    };
    table.finish(|key| {
        let why = match key {
            "cell" => "it belongs to table = \"aggregate\"; the others are of the whole map",
            "rows" => "of this table there are no figures; what was published is a sentence",
            _ => return None,
        };
        Some(why.to_owned())
    })?;
    Ok(found)
}

fn name(entry: Entry<'_>) -> Result<TableName, FieldError> {
    let names = TableName::ALL.map(TableName::key);
    let key = one_of(entry, "table", &names)?;
    Ok(TableName::ALL.into_iter().find(|name| name.key() == key).unwrap_or(TableName::Overall))
}

/// Rows by level or by name: `{ 1 = [11_399, 11_494] }`, in rising or in the table's order.
fn rows(entry: Entry<'_>, names: RowNames, columns: usize) -> Result<Vec<PublishedRow>, FieldError> {
    let mut table = entry.table()?;
    let keys = table.keys();
    if keys.len() > PUBLISHED_TABLE_ROWS_MAX {
        return Err(table.wrong(&format!("at most {PUBLISHED_TABLE_ROWS_MAX} rows are allowed")));
    }
    let mut found = Vec::new();
    for key in keys {
        let Some(entry) = table.take_any(&key) else { continue };
        let place = place(&entry, &key, names)?;
        found.push((place, PublishedRow { key, figures: figures(entry, columns)? }));
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

/// Position of a row: its level, or the index of its name among the known names. Calls are ordered by their share
/// when they are shown.
fn place(entry: &Entry<'_>, key: &str, names: RowNames) -> Result<u64, FieldError> {
    let wrong = |message: &str| entry.wrong(message.to_owned());
    match names {
        RowNames::Levels => key.parse().map_err(|_| wrong("the rows of this table are levels: 1, 10, 100")),
        RowNames::Of(names) => {
            let found = names.iter().position(|own| *own == key);
            let wrong = || entry.wrong(format!("there is no row {key:?}; {}", instead(key, names)));
            found.map(|place| place as u64).ok_or_else(wrong)
        }
        RowNames::Calls if is_call(key) => Ok(0),
        RowNames::Calls | RowNames::Nothing => {
            Err(wrong("the rows of this table are system calls, as strace names them: epoll_wait"))
        }
    }
}

fn is_call(name: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    (1..=CALL_LENGTH_MAX).contains(&name.len()) && name.chars().all(is_part)
}

/// A figure for each arm.
fn figures(entry: Entry<'_>, columns: usize) -> Result<Vec<f64>, FieldError> {
    let wrong =
        entry.wrong(format!("write a figure for each of the {columns} arms, 0 or more: [293_805, 391_839]"));
    let figures: Vec<f64> = entry.list()?.into_iter().map(Entry::fraction).collect::<Result<_, _>>()?;
    let is_right = figures.len() == columns && figures.iter().all(|it| it.is_finite() && *it >= 0.0);
    if is_right { Ok(figures) } else { Err(wrong) }
}
