//! A table of text, for page and document, with the charts that precede it.

use maud::Markup;

use crate::{cited::Sentence, view::View, words::Word};

/// Most rows of any table; further ones are counted, and are in the CSV export.
pub(crate) const ROWS_MAX: usize = 400;

/// A table of text.
pub(crate) struct Table {
    /// Its name, if a section has several.
    pub title: Option<String>,
    /// Sentences before it.
    pub sentences: Vec<Sentence>,
    /// Charts of its contents; a page shows them before the table.
    pub charts: Vec<Drawing>,
    /// Column titles.
    pub head: Vec<String>,
    /// The first columns are text, the others numbers.
    pub text_columns: usize,
    /// Rows, each as wide as the head.
    pub rows: Vec<Vec<String>>,
    /// Cells of each row, if its texts are sentences; a page links to them.
    pub cells: Vec<Vec<String>>,
    /// Number of omitted rows.
    pub left_out: usize,
}

impl Table {
    pub(crate) fn new(view: &View<'_>, text: &[Word], numbers: &[Word], rows: Vec<Vec<String>>) -> Self {
        let head = text.iter().chain(numbers).map(|word| view.word(*word).to_owned()).collect();
        Table::with_head(head, text.len(), rows)
    }

    /// Adds a name and preceding sentences.
    pub(crate) fn titled(self, title: &str, sentences: Vec<Sentence>) -> Self {
        Table { title: Some(title.to_owned()), sentences, ..self }
    }

    /// Adds the cells of each row.
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

/// A chart whose numbers are in the table that it precedes.
pub(crate) struct Drawing {
    /// Identifies it within the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The drawing.
    pub image: Markup,
}
