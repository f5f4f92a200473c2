//! Sentences with the cells they are based on, for links on a page.

/// A sentence with the cells that it is based on.
#[derive(Clone)]
pub(crate) struct Sentence {
    /// The sentence.
    pub text: String,
    /// Identifiers of cells; a page links to them.
    pub cells: Vec<String>,
}

impl From<String> for Sentence {
    fn from(text: String) -> Self {
        Self { text, cells: Vec::new() }
    }
}

/// Sentences without cells.
pub(crate) fn of_no_cell(texts: impl IntoIterator<Item = String>) -> Vec<Sentence> {
    texts.into_iter().map(Sentence::from).collect()
}

/// The named cells, each once.
pub(crate) fn distinct<'c>(cells: impl IntoIterator<Item = &'c String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for cell in cells {
        if !all.contains(cell) {
            all.push(cell.clone());
        }
    }
    all
}
