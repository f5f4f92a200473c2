//! `weir journal print`: records in order, one at a time.

use std::io::{self, BufWriter, StdoutLock, Write};

use anyhow::{Context, Result, anyhow};
use weir_servers::{
    gateway::describe,
    journal::{Position, RecordView, RecoverError, inspect_all},
    orders::is_answer,
};

use super::{problem, row::Rows, selection::Selection, workers};
use crate::{args::JournalPrint, exit::Exit, language, output};

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Standard output. Once its reader is gone, or it cannot be written, nothing more is.
pub(super) struct Out {
    writer: BufWriter<StdoutLock<'static>>,
    failure: Option<io::Error>,
}

impl Out {
    pub(super) fn new() -> Self {
        Self { writer: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()), failure: None }
    }

    /// # Errors
    /// A reason to read no further; [`Self::end`] has the error itself.
    pub(super) fn write(&mut self, text: &str) -> Result<(), String> {
        self.note(|writer| writer.write_all(text.as_bytes()))
    }

    /// # Errors
    /// As [`Self::write`].
    pub(super) fn flush(&mut self) -> Result<(), String> {
        self.note(Write::flush)
    }

    fn note(
        &mut self,
        act: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
    ) -> Result<(), String> {
        act(&mut self.writer).map_err(|error| {
            let reason = error.to_string();
            self.failure = Some(error);
            reason
        })
    }

    /// Writes what is left. A reader that has gone away is no error, and `Ok(false)`.
    pub(super) fn end(mut self) -> Result<bool> {
        if self.failure.is_none() {
            // The failure is kept.
            let _ = self.flush();
        }
        match self.failure.take() {
            None => Ok(true),
            Some(error) => {
                // Nothing is written again when it is dropped.
                let _ = self.writer.into_parts();
                match error.kind() {
                    io::ErrorKind::BrokenPipe => Ok(false),
                    _ => Err(error).context("cannot write to standard output"),
                }
            }
        }
    }
}

/// Writes the records that are chosen.
pub(super) struct Printer {
    pub(super) selection: Selection,
    pub(super) rows: Rows,
}

impl Printer {
    /// The row of a record, if it is chosen.
    pub(super) fn row(&mut self, record: &RecordView<'_>, position: Position) -> Option<String> {
        // Records that name venues are read even if they are not shown.
        let mut described = describe(record);
        self.rows.note(record.worker, &mut described);
        let takes = self.selection.takes(record.t_ns, &described);
        takes.then(|| self.rows.row(record, position, described))
    }
}

pub(super) fn run(print: &JournalPrint) -> Result<Exit> {
    let language = language::chosen(print.lang.as_deref())?;
    let selection = Selection::new(&print.selection, language)?;
    let workers = workers(&print.directory, language)?;
    let mut printer = Printer { selection, rows: Rows::new(print.format) };
    let mut out = Out::new();
    let head = out.write(printer.rows.head());
    let visited = inspect_all(&print.directory, &workers, is_answer, &mut |record, position| {
        head.clone()?;
        match printer.row(&record, position) {
            Some(row) => out.write(&row),
            None => Ok(()),
        }
    });
    if !out.end()? {
        return Ok(Exit::Ok);
    }
    let told = |error: &RecoverError| anyhow!(problem::sentence(error, language));
    let mut first = None;
    for (_, outcome) in visited.map_err(|error| told(&error))? {
        match outcome {
            Ok(_) => {}
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => output::tell(&format!("weir: {}", problem::sentence(&error, language))),
        }
    }
    match first {
        None => Ok(Exit::Ok),
        Some(error) if problem::is_damage(&error) => {
            let way_out = problem::way_out(&print.directory, language);
            Err(anyhow!("{}; {way_out}", problem::sentence(&error, language)))
        }
        Some(error) => Err(told(&error)),
    }
}
