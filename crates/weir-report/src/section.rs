//! The elements of a report's section, independent of page or document: a title, charts with their numbers, tables.

use maud::Markup;

use crate::{cited::Sentence, table::Table, view::View, words::Word};

/// A text of a section.
#[derive(Clone, Copy)]
pub(crate) enum Caption {
    /// One that has other words for other kinds of message.
    Word(Word),
    /// The section's own, in English, Korean and Chinese.
    Own([&'static str; 3]),
}

impl From<Word> for Caption {
    fn from(word: Word) -> Self {
        Self::Word(word)
    }
}

impl Caption {
    /// The text in the language of the report.
    pub(crate) fn localized(self, view: &View<'_>) -> &'static str {
        match self {
            Self::Word(word) => view.word(word),
            Self::Own(texts) => view.language.choose(texts),
        }
    }
}

/// How deep in the page a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// What was found: figures, with their tables folded.
    Findings,
    /// To look up: folded, and reached by links.
    Reference,
}

/// A part of a report.
pub(crate) struct Section {
    /// Identifies it within the page, so that it can be linked; empty for a part of another page.
    pub id: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// Its title.
    pub title: Caption,
    /// What it shows and how to read it.
    pub help: Caption,
    /// Sentences before the drawings.
    pub sentences: Vec<Sentence>,
    /// Above the charts: arms with their markers.
    pub legend: Option<Markup>,
    /// Charts, each with its numbers.
    pub plots: Vec<Plot>,
    /// Further tables.
    pub tables: Vec<Table>,
    /// Notes, by cell.
    pub notes: Vec<CellNotes>,
    /// What the limits left out, in words.
    pub left_out: Option<String>,
}

impl Section {
    /// A section with a title and its explanation.
    pub(crate) fn new(title: impl Into<Caption>, help: impl Into<Caption>) -> Self {
        Section {
            id: "",
            layer: Layer::Findings,
            title: title.into(),
            help: help.into(),
            sentences: Vec::new(),
            legend: None,
            plots: Vec::new(),
            tables: Vec::new(),
            notes: Vec::new(),
            left_out: None,
        }
    }

    /// A section of one table.
    pub(crate) fn of_table(title: Word, help: Word, table: Table) -> Self {
        Section { tables: vec![table], ..Section::new(title, help) }
    }
}

/// The result of building a section.
pub(crate) enum Content {
    /// It is shown.
    Shown(Box<Section>),
    /// There is nothing to show, for this reason: all such reasons are in one line at the end.
    Nothing(Word),
    /// The study does not cover this.
    Absent,
}

impl Content {
    /// The section, unless it is empty.
    pub(crate) fn unless(is_absent: bool, section: impl FnOnce() -> Section) -> Self {
        if is_absent { Content::Absent } else { Content::Shown(Box::new(section())) }
    }
}

/// A chart with the numbers it draws.
pub(crate) struct Plot {
    /// Identifies it within the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The drawing.
    pub image: Markup,
    /// The same numbers.
    pub numbers: Table,
    /// The drawing is itself a table and contains all of them.
    pub is_table: bool,
    /// Drawn at half width, next to the following one.
    pub is_half: bool,
    /// Folded, because it is less important.
    pub is_folded: bool,
}

/// The subject of a row.
pub(crate) struct Subject {
    /// The arm whose marker precedes it.
    pub arm: Option<String>,
    /// In words.
    pub text: String,
}

/// Notes of one cell.
pub(crate) struct CellNotes {
    /// The cell's identifier; a page links to it.
    pub cell_id: String,
    /// The cell in words.
    pub cell: String,
    /// Subject, text, and whether it is in English on a page in another language.
    pub notes: Vec<(String, String, bool)>,
}
