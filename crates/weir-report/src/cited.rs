//! Sentences that name the cells they rest on, so that a page can lead to these.

/// A sentence with the cells that it rests on.
#[derive(Clone)]
pub(crate) struct Sentence {
    /// The sentence.
    pub text: String,
    /// Identifiers; a page leads to them.
    pub cells: Vec<String>,
}

impl From<String> for Sentence {
    fn from(text: String) -> Self {
        Self { text, cells: Vec::new() }
    }
}

/// Sentences that speak of no cell.
pub(crate) fn of_no_cell(texts: impl IntoIterator<Item = String>) -> Vec<Sentence> {
    texts.into_iter().map(Sentence::from).collect()
}

/// Cells that are named, each once.
pub(crate) fn distinct<'c>(cells: impl IntoIterator<Item = &'c String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for cell in cells {
        if !all.contains(cell) {
            all.push(cell.clone());
        }
    }
    all
}
