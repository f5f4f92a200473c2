//! Processes beside the servers, as a study file defines them.

use weir_record::spec::NeighbourSpec;

use crate::{
    limits::{self, NEIGHBOURS_MAX},
    toml_table::{At, Entry, FieldError, Table},
};

/// Reads the `[[neighbour]]` tables of a file.
pub(super) fn read(tables: Vec<Table<'_>>) -> Result<Vec<NeighbourSpec>, FieldError> {
    let mut found: Vec<NeighbourSpec> = Vec::new();
    for mut table in tables {
        let at = table.at();
        let name = table.required("name", |entry| {
            let at = entry.at;
            let name = entry.text()?;
            limits::name("neighbour.name", &name).at(at).map(|()| name)
        })?;
        let argv = table.required("command", |entry| {
            let empty = entry.wrong("it is empty; it must name a program".to_owned());
            let words = entry.words()?;
            if words.first().is_some_and(|program| !program.is_empty()) { Ok(words) } else { Err(empty) }
        })?;
        table.finish(|_| None)?;
        if found.iter().any(|it| it.name == name) {
            return Err(FieldError::new(at, "neighbour.name", format!("two neighbours are named {name:?}")));
        }
        if found.len() == NEIGHBOURS_MAX {
            let message = format!("a study has at most {NEIGHBOURS_MAX} neighbours");
            return Err(FieldError::new(at, "neighbour", message));
        }
        found.push(NeighbourSpec { name, argv });
    }
    Ok(found)
}

/// The names that a cell gives, with their places in the file.
pub(super) fn of_cell(entry: Entry<'_>) -> Result<Vec<(usize, String)>, FieldError> {
    entry.list()?.into_iter().map(|entry| Ok((entry.at, entry.text()?))).collect()
}
