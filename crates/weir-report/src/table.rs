//! A table of text, as page and document draw it, with the charts that stand before it.

use maud::Markup;

use crate::{cited::Sentence, view::View, words::Word};

/// Most rows of any table; what is left out is said and is in the CSV export.
pub(crate) const ROWS_MAX: usize = 400;

/// A table of text.
pub(crate) struct Table {
    /// Its name, where a section has several.
    pub title: Option<String>,
    /// What is said before it.
    pub sentences: Vec<Sentence>,
    /// Charts of what is in it; a page shows them before the table.
    pub charts: Vec<Drawing>,
    /// Column titles.
    pub head: Vec<String>,
    /// The first columns are text, the others numbers.
    pub text_columns: usize,
    /// Rows, each as wide as the head.
    pub rows: Vec<Vec<String>>,
    /// Cells that each row speaks of, where its texts are sentences; a page leads to them.
    pub cells: Vec<Vec<String>>,
    /// Rows that were left out.
    pub left_out: usize,
}

impl Table {
    pub(crate) fn new(view: &View<'_>, text: &[Word], numbers: &[Word], rows: Vec<Vec<String>>) -> Self {
        let head = text.iter().chain(numbers).map(|word| view.word(*word).to_owned()).collect();
        Table::with_head(head, text.len(), rows)
    }

    /// The same with a name and what is said before it.
    pub(crate) fn titled(self, title: &str, sentences: Vec<Sentence>) -> Self {
        Table { title: Some(title.to_owned()), sentences, ..self }
    }

    /// The same with the cells that each row speaks of.
    pub(crate) fn of_cells(self, cells: Vec<Vec<String>>) -> Self {
        Table { cells, ..self }
    }

    pub(crate) fn with_head(head: Vec<String>, text_columns: usize, mut rows: Vec<Vec<String>>) -> Self {
        let left_out = rows.len().saturating_sub(ROWS_MAX);
        rows.truncate(ROWS_MAX);
        Table {
            title: None,
            sentences: Vec::new(),
            charts: Vec::new(),
            head,
            text_columns,
            rows,
            cells: Vec::new(),
            left_out,
        }
    }
}

/// A chart whose numbers are in a table that it stands before.
pub(crate) struct Drawing {
    /// Names it within the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The drawing.
    pub image: Markup,
}
