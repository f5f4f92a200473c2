//! `weir journal tail`: the last records, and with `-f` those that follow.

use std::{collections::VecDeque, io, path::Path};

use anyhow::{Result, anyhow};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use weir_report::Language;
use weir_servers::{
    journal::{JournalInspection, Position, RecordView, workers_in},
    orders::is_answer,
};

use super::{
    print::{Out, Printer},
    problem,
    row::Rows,
    selection::Selection,
    workers,
};
use crate::{args::JournalTail, exit::Exit, language};

/// How often the journals are looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Rows of all journals that are sorted by time before they are written. More of them are sorted in parts.
const SORTED_MAX: usize = 65_536;

/// A row, and its place among those of other journals.
struct Row {
    place: (u64, bool),
    text: String,
}

/// The journals, and the rows that were not written yet.
struct Tail<'a> {
    directory: &'a Path,
    inspections: Vec<JournalInspection>,
    printer: Printer,
    rows: Vec<Row>,
    out: Out,
    /// Whether everything could be written so far.
    is_written: bool,
}

impl Tail<'_> {
    /// Reads the journals to their ends and keeps the last rows.
    fn read_last(&mut self, rows_max: usize, language: Language) -> Result<()> {
        for inspection in &mut self.inspections {
            let mut own = VecDeque::new();
            let printer = &mut self.printer;
            let read = inspection.read(&mut |record, position| {
                own.extend(row(printer, &record, position));
                if own.len() > rows_max {
                    own.pop_front();
                }
                Ok(())
            });
            self.rows.extend(own);
            read.map_err(|error| anyhow!(problem::sentence(&error, language)))?;
        }
        // Rows of one journal keep their order if their times are equal.
        self.rows.sort_by_key(|row| row.place);
        self.rows.drain(..self.rows.len().saturating_sub(rows_max));
        Ok(())
    }

    /// Reads what was added.
    fn read_more(&mut self, language: Language) -> Result<()> {
        self.add_journals()?;
        let told = |error| anyhow!(problem::sentence(&error, language));
        let Self { inspections, printer, rows, out, is_written, .. } = self;
        for inspection in inspections {
            if !inspection.has_more().map_err(told)? {
                continue;
            }
            let read = inspection.follow(&mut |record, position| {
                rows.extend(row(printer, &record, position));
                if rows.len() >= SORTED_MAX {
                    *is_written &= write(rows, out);
                }
                Ok(())
            });
            read.map_err(told)?;
        }
        Ok(())
    }

    /// Writes the rows that are there.
    fn write(&mut self) {
        self.is_written = self.is_written && write(&mut self.rows, &mut self.out) && self.out.flush().is_ok();
    }

    /// A worker's journal may be made while others are followed.
    fn add_journals(&mut self) -> io::Result<()> {
        for worker in workers_in(self.directory)? {
            if self.inspections.iter().all(|known| known.worker() != worker) {
                self.inspections.push(JournalInspection::new(self.directory, worker));
            }
        }
        Ok(())
    }
}

fn row(printer: &mut Printer, record: &RecordView<'_>, position: Position) -> Option<Row> {
    let text = printer.row(record, position)?;
    Some(Row { place: (record.t_ns, is_answer(record.kind)), text })
}

/// Writes rows in the order of their times. Whether that was possible.
fn write(rows: &mut Vec<Row>, out: &mut Out) -> bool {
    rows.sort_by_key(|row| row.place);
    rows.drain(..).try_for_each(|row| out.write(&row.text)).is_ok()
}

pub(super) fn run(tail: &JournalTail) -> Result<Exit> {
    let language = language::chosen(tail.lang.as_deref())?;
    let selection = Selection::new(&tail.selection, language)?;
    let workers = workers(&tail.directory, language)?;
    let printer = Printer { selection, rows: Rows::new(tail.format) };
    let mut out = Out::new();
    let is_written = out.write(printer.rows.head()).is_ok();
    let inspections = workers.iter().map(|worker| JournalInspection::new(&tail.directory, *worker)).collect();
    let directory = tail.directory.as_path();
    let mut journals = Tail { directory, inspections, printer, rows: Vec::new(), out, is_written };
    let mut read = journals.read_last(tail.records as usize, language);
    journals.write();
    while tail.follow && read.is_ok() && journals.is_written && !is_reader_gone()? {
        read = journals.read_more(language);
        journals.write();
    }
    journals.out.end()?;
    read.map(|()| Exit::Ok)
}

/// Waits until it is time for another look. Whether the reader of standard output has gone meanwhile.
fn is_reader_gone() -> io::Result<bool> {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    match poll(&mut polled, Some(&LOOK)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(polled[0].revents().contains(PollFlags::ERR))
}
