//! Which studies of a folder a reader wants to see, and in which order: the query of the list. Pure.

use std::sync::Arc;

use weir_record::verdict::Verdict;

use crate::{
    folder::Found,
    query::{encoded, value},
    sorting::{self, Direction, Key, sorted},
    study_cache::{Card, Judgement, Row},
};

/// Most words of a search; further ones are ignored.
const WORDS_MAX: usize = 8;

/// Most characters of a value in a query; further ones are ignored.
const CHARACTERS_MAX: usize = 200;

/// What a study of the list is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    Unreadable,
    Unfinished,
    /// Its schedule is finished, and nothing was judged.
    NotJudged,
    /// Another version judged it.
    JudgedElsewhere,
    Judged(Verdict),
}

impl State {
    /// Its value in a query.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Unreadable => "unreadable",
            Self::Unfinished => "unfinished",
            Self::NotJudged => "not-judged",
            Self::JudgedElsewhere => "judged-elsewhere",
            Self::Judged(Verdict::Better) => "better",
            Self::Judged(Verdict::Worse) => "worse",
            Self::Judged(Verdict::Equivalent) => "equivalent",
            Self::Judged(Verdict::Inconclusive) => "inconclusive",
            Self::Judged(Verdict::NotComparable) => "not-comparable",
            Self::Judged(Verdict::NoClaim) => "no-claim",
        }
    }
}

/// A study of the list with its known facts.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'l> {
    pub found: &'l Found,
    pub row: Arc<Row>,
    /// Absent where it was not needed, and for a store that cannot be read.
    pub judgement: Option<Arc<Judgement>>,
}

impl Entry<'_> {
    pub(crate) fn card(&self) -> Option<&Card> {
        self.row.as_ref().as_ref().ok()
    }

    /// A running or unfinished study has no verdict, whatever an earlier session judged.
    pub(crate) fn state(&self) -> State {
        let Some(card) = self.card() else { return State::Unreadable };
        let conclusion = self.judgement.as_ref().and_then(|it| it.conclusion.as_ref());
        let is_judged = self.judgement.as_ref().is_some_and(|it| it.is_judged);
        match conclusion {
            _ if self.found.is_running => State::Running,
            Some(conclusion) => State::Judged(conclusion.verdict),
            None if is_judged => State::JudgedElsewhere,
            None if card.blocks_stored >= card.blocks => State::NotJudged,
            None => State::Unfinished,
        }
    }

    /// The ratio of the primary comparison, if it was judged.
    fn ratio(&self) -> Option<f64> {
        let State::Judged(_) = self.state() else { return None };
        Some(self.judgement.as_ref()?.conclusion.as_ref()?.listed.as_ref()?.ratio)
    }
}

/// A column by which the list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// The newest first.
    #[default]
    Date,
    /// By the name of the folder.
    Name,
    /// The smallest ratio first.
    Effect,
    Verdict,
    Machine,
    /// The longest first.
    Duration,
}

impl Sort {
    pub(crate) const ALL: [Self; 6] =
        [Self::Date, Self::Name, Self::Effect, Self::Verdict, Self::Machine, Self::Duration];

    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Name => "name",
            Self::Effect => "effect",
            Self::Verdict => "verdict",
            Self::Machine => "machine",
            Self::Duration => "duration",
        }
    }

    /// Whether the largest comes first unless the reader reverses it.
    pub(crate) fn is_descending(self) -> bool {
        matches!(self, Self::Date | Self::Duration)
    }

    /// Whether it needs the results of all studies.
    fn needs_judgement(self) -> bool {
        matches!(self, Self::Effect | Self::Verdict)
    }

    /// Absent keys come last, in either direction.
    fn of(self, entry: &Entry<'_>) -> Option<Key> {
        let number = |value: u64| Key::Number(value as f64);
        match self {
            Self::Date => entry.card()?.created_unix_s.map(number),
            Self::Name => Some(Key::Text(entry.found.name.to_string_lossy().into_owned())),
            Self::Effect => entry.ratio().map(Key::Number),
            Self::Verdict => Some(Key::Text(entry.state().key().to_owned())),
            Self::Machine => Some(Key::Text(entry.card()?.machine.clone())),
            Self::Duration => Some(number(entry.card()?.elapsed_ns)),
        }
    }
}

/// The choice of a reader. Empty texts choose everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// Words that a study must all contain, in any of the texts that the list shows of it.
    pub find: String,
    /// The key of a state.
    pub verdict: String,
    pub machine: String,
    /// The name of an arm.
    pub arm: String,
    pub sort: Sort,
    /// The other direction than the usual one.
    pub is_reversed: bool,
}

impl Choice {
    pub(crate) fn of_query(query: &str) -> Self {
        let text = |name: &str| {
            let text = value(query, name).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            text.trim().chars().take(CHARACTERS_MAX).collect::<String>()
        };
        let sort = text("sort");
        let (key, is_reversed) = sorting::of_value(&sort);
        let known = Sort::ALL.into_iter().find(|it| it.key() == key);
        Self {
            find: text("find"),
            verdict: text("verdict"),
            machine: text("machine"),
            arm: text("arm"),
            sort: known.unwrap_or_default(),
            is_reversed: is_reversed && known.is_some(),
        }
    }

    /// Whether it leaves something out.
    pub(crate) fn is_narrow(&self) -> bool {
        !self.find.is_empty() || self.has_filter()
    }

    /// Whether it asks for facts that only a store knows.
    pub(crate) fn has_filter(&self) -> bool {
        [&self.verdict, &self.machine, &self.arm].iter().any(|text| !text.is_empty())
    }

    /// Whether it needs the results of all studies, which take long to read the first time.
    pub(crate) fn needs_judgement(&self) -> bool {
        !self.verdict.is_empty() || !self.find.is_empty() || self.sort.needs_judgement()
    }

    /// The same sorted by another column, or by the same one in the other direction.
    pub(crate) fn sorted(&self, sort: Sort) -> Self {
        let is_reversed = self.sort == sort && !self.is_reversed;
        Self { sort, is_reversed, ..self.clone() }
    }

    /// The value of the sort in a query; empty for the usual one.
    pub(crate) fn sort_value(&self) -> String {
        match (self.sort, self.is_reversed) {
            (Sort::Date, false) => String::new(),
            (sort, false) => sort.key().to_owned(),
            (sort, true) => format!("-{}", sort.key()),
        }
    }

    /// Its query, without parts that are empty.
    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("find", self.find.clone()),
            ("verdict", self.verdict.clone()),
            ("machine", self.machine.clone()),
            ("arm", self.arm.clone()),
            ("sort", self.sort_value()),
        ];
        let named = all.into_iter().filter(|(_, text)| !text.is_empty());
        named.map(|(name, text)| (name, encoded(text.as_bytes()))).collect()
    }

    fn words(&self) -> Vec<String> {
        self.find.split_whitespace().take(WORDS_MAX).map(str::to_lowercase).collect()
    }

    /// Whether the name of a folder contains every word.
    pub(crate) fn is_in_name(&self, found: &Found) -> bool {
        let name = found.name.to_string_lossy().to_lowercase();
        self.words().iter().all(|word| name.contains(word))
    }

    /// The chosen entries in their order. Equal ones keep theirs.
    pub(crate) fn of<'l>(&self, entries: Vec<Entry<'l>>) -> Vec<Entry<'l>> {
        let words = self.words();
        let chosen = entries.into_iter().filter(|entry| self.has(entry, &words));
        sorted(chosen.collect(), self.direction(self.sort), |entry| self.sort.of(entry))
    }

    /// The direction in which a column is sorted, or would be.
    pub(crate) fn direction(&self, sort: Sort) -> Direction {
        Direction::of(sort.is_descending() != self.is_reversed)
    }

    fn has(&self, entry: &Entry<'_>, words: &[String]) -> bool {
        let card = entry.card();
        let is_it = |wanted: &str, own: Option<&str>| wanted.is_empty() || own == Some(wanted);
        let has_arm = |card: &Card| card.arms.contains(&self.arm);
        let name = entry.found.name.to_string_lossy().to_lowercase();
        let conclusion = entry.judgement.as_ref().and_then(|it| it.conclusion.as_ref());
        let conclusion = conclusion.filter(|_| !entry.found.is_running);
        let has_word = |word: &String| {
            name.contains(word)
                || card.is_some_and(|card| card.has_text(word))
                || conclusion.is_some_and(|it| it.has_text(word))
        };
        is_it(&self.verdict, Some(entry.state().key()))
            && is_it(&self.machine, card.map(|card| card.machine.as_str()))
            && (self.arm.is_empty() || card.is_some_and(has_arm))
            && words.iter().all(has_word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_the_same_after_its_own_query() {
        for query in [
            "find=a%20b&verdict=better&machine=lab%207&arm=uring&sort=-date",
            "find=%EC%97%B0%EA%B2%B0",
            "sort=-effect",
            "sort=duration",
            "",
        ] {
            let choice = Choice::of_query(query);
            let pairs: Vec<String> =
                choice.query().iter().map(|(name, text)| format!("{name}={text}")).collect();
            assert_eq!(pairs.join("&"), query);
        }
        assert!(!Choice::of_query("sort=name").is_narrow() && Choice::of_query("arm=x").is_narrow());
    }

    #[test]
    fn what_a_query_does_not_say_well_is_the_usual_choice() {
        for query in ["sort=", "sort=-", "sort=size", "sort=-size", "sort=date", "find=+", "find=%ff", "arm"]
        {
            let choice = Choice::of_query(query);
            assert!(choice.query().is_empty() && !choice.is_narrow(), "{query}: {choice:?}");
        }
        let long = Choice::of_query(&format!("find={}", "x".repeat(10_000)));
        assert_eq!(long.find.len(), CHARACTERS_MAX);
    }

    #[test]
    fn a_column_is_sorted_in_one_direction_and_then_in_the_other() {
        let choice = Choice::of_query("find=a");
        let by_name = choice.sorted(Sort::Name);
        assert_eq!((by_name.sort_value().as_str(), by_name.find.as_str()), ("name", "a"));
        assert_eq!(by_name.sorted(Sort::Name).sort_value(), "-name");
        assert_eq!(by_name.sorted(Sort::Name).sorted(Sort::Name).sort_value(), "name");
        assert_eq!(choice.sorted(Sort::Date).sort_value(), "-date", "the newest are first already");
    }
}
