//! A table of text, and how page, Markdown and terminal write it.

use maud::{Markup, html};

use crate::{display, markdown::escape};

/// What a row means beside its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// The row everything is about.
    Main,
    /// Something holds.
    Good,
    /// Something fails.
    Bad,
    /// Something is not known.
    Doubt,
}

impl Tone {
    fn class(self) -> Option<&'static str> {
        match self {
            Tone::Plain => None,
            Tone::Main => Some("main"),
            Tone::Good => Some("holds"),
            Tone::Bad => Some("fails"),
            Tone::Doubt => Some("open"),
        }
    }

    fn code(self) -> Option<&'static str> {
        match self {
            Tone::Plain => None,
            Tone::Main => Some("1"),
            Tone::Good => Some("32"),
            Tone::Bad => Some("31"),
            Tone::Doubt => Some("33"),
        }
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub(super) struct Sheet {
    /// Column titles.
    pub head: Vec<String>,
    /// The first columns are text, the others numbers; a last column of text is said by `ends_in_text`.
    pub text_columns: usize,
    /// The last column is text too.
    pub ends_in_text: bool,
    /// Rows with the same first cell belong together: it is written once.
    pub groups: bool,
    /// Rows.
    pub rows: Vec<(Tone, Vec<String>)>,
}

impl Sheet {
    pub(super) fn new(head: &[&str], text_columns: usize) -> Self {
        let head = head.iter().map(|title| (*title).to_owned()).collect();
        Sheet { head, text_columns, ends_in_text: false, groups: text_columns > 1, rows: Vec::new() }
    }

    pub(super) fn ending_in_text(mut self) -> Self {
        self.ends_in_text = true;
        self
    }

    pub(super) fn never_repeating(mut self) -> Self {
        self.groups = false;
        self
    }

    pub(super) fn push(&mut self, tone: Tone, cells: Vec<String>) {
        self.rows.push((tone, cells));
    }

    fn is_number(&self, column: usize) -> bool {
        column >= self.text_columns && !(self.ends_in_text && column + 1 == self.head.len())
    }

    /// Two rows follow each other with the same first cell: the second time it stays empty.
    fn cell(&self, row: usize, column: usize) -> &str {
        let text = &self.rows[row].1[column];
        let repeats = column == 0 && row > 0 && self.groups && self.rows[row - 1].1[0] == *text;
        if repeats { "" } else { text }
    }

    pub(super) fn html(&self) -> Markup {
        html! {
            div.scroll {
                table {
                    thead {
                        tr { @for (column, title) in self.head.iter().enumerate() {
                            th scope="col" .number[self.is_number(column)] { (title) }
                        } }
                    }
                    tbody {
                        @for (row, (tone, cells)) in self.rows.iter().enumerate() {
                            @let begins = row > 0 && self.groups && !self.cell(row, 0).is_empty();
                            tr class=[row_class(*tone, begins)] {
                                @for column in 0..cells.len() {
                                    td .number[self.is_number(column)] { (self.cell(row, column)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    pub(super) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rule: Vec<String> = (0..self.head.len())
            .map(|column| if self.is_number(column) { "---:" } else { "---" }.to_owned())
            .collect();
        let mut out = line(&self.head.iter().map(|cell| escape(cell)).collect::<Vec<_>>());
        out.push_str(&line(&rule));
        for (_, cells) in &self.rows {
            out.push_str(&line(&cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>()));
        }
        out.push('\n');
        out
    }

    /// Lines of a terminal; columns that do not fit are left out from the right, but never the text at the end.
    pub(super) fn lines(&self, width: usize, color: bool) -> Vec<String> {
        let text = |row: usize, column: usize| display::printable(self.cell(row, column));
        let widths: Vec<usize> = (0..self.head.len())
            .map(|column| {
                let cells = (0..self.rows.len()).map(|row| display::columns(&text(row, column)));
                cells.chain([display::columns(&self.head[column])]).max().unwrap_or(0)
            })
            .collect();
        let shown = shown(&widths, self.ends_in_text, width);
        let join = |cell: &dyn Fn(usize) -> String| {
            let padded = shown.iter().map(|column| {
                let cell = cell(*column);
                let pad = if self.is_number(*column) { display::pad_start } else { display::pad_end };
                pad(&cell, widths[*column])
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut lines = vec![paint(&join(&|column| self.head[column].clone()), color.then_some("2"))];
        for (row, (tone, _)) in self.rows.iter().enumerate() {
            lines.push(paint(&join(&|column| text(row, column)), tone.code().filter(|_| color)));
        }
        lines
    }
}

fn row_class(tone: Tone, begins: bool) -> Option<String> {
    let classes: Vec<&str> = tone.class().into_iter().chain(begins.then_some("first")).collect();
    (!classes.is_empty()).then(|| classes.join(" "))
}

/// Columns that fit, with two blanks between them.
fn shown(widths: &[usize], ends_in_text: bool, width: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..widths.len()).collect();
    let takes =
        |shown: &[usize]| shown.iter().map(|column| widths[*column] + 2).sum::<usize>().saturating_sub(2);
    while takes(&shown) > width && shown.len() > 2 {
        let last = if ends_in_text { shown.len() - 2 } else { shown.len() - 1 };
        shown.remove(last);
    }
    shown
}

fn paint(line: &str, code: Option<&str>) -> String {
    code.map_or_else(|| line.to_owned(), |code| format!("\u{1b}[{code}m{line}\u{1b}[0m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet = Sheet::new(&["phase", "method", "misses", "result"], 2).ending_in_text();
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        sheet.push(Tone::Good, row(["Job1", "a", "1.0 %", "holds"]));
        sheet.push(Tone::Bad, row(["Job1", "b<c>|d", "10.0 %", "fails"]));
        sheet
    }

    #[test]
    fn a_first_cell_that_repeats_is_written_once() {
        let lines = sheet().lines(80, false);
        assert_eq!(lines[1], "Job1   a        1.0 %  holds");
        assert_eq!(lines[2], "       b<c>|d  10.0 %  fails");
    }

    #[test]
    fn a_narrow_terminal_loses_numbers_before_the_result() {
        let lines = sheet().lines(22, false);
        assert_eq!(lines[1], "Job1   a       holds");
    }

    #[test]
    fn markup_in_names_stays_text() {
        assert!(sheet().markdown().contains("b&lt;c&gt;\\|d"));
        assert!(sheet().html().into_string().contains("b&lt;c&gt;|d"));
    }
}
