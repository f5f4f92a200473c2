//! The report of a load that has ended: how many units of work it did, and how many of them failed. Pure.
//!
//! A load is any program. Widely used ones are known by their names, and their output is read ([`tool`]). For any other
//! a regular expression or a JSON pointer finds the number.

mod json;
mod text;
mod tool;

use regex_lite::Regex;
use weir_record::commands::{CountSource, WorkUnit};

pub use tool::Tool;

/// Where the number of a load's units of work comes from.
#[derive(Clone, Debug, Default)]
pub enum Count {
    /// Nowhere: it reports none.
    #[default]
    None,
    /// The output of a known tool.
    Tool(Tool),
    /// The group of an expression, at its last match.
    Regex(Regex),
    /// A pointer into a JSON document.
    Json(String),
}

/// The output of a load.
#[derive(Clone, Copy, Debug, Default)]
pub struct Said<'a> {
    /// Its words.
    pub words: &'a [String],
    /// To standard output.
    pub stdout: &'a str,
    /// The end of its standard error.
    pub stderr: &'a str,
    /// To the file that its words named as `{out}`; empty where they named none.
    pub file: &'a str,
}

/// What a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Units of work.
    pub count: u64,
    /// Errors that it reported.
    pub errors: u64,
}

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongRegex {
    /// It is not a regular expression; the reason, in the parser's words.
    Syntax(String),
    /// It has this many groups, not one.
    Groups(usize),
}

impl Count {
    /// An expression with one group.
    ///
    /// # Errors
    /// When it is no regular expression, or has no group, or several.
    pub fn regex(text: &str) -> Result<Self, WrongRegex> {
        let regex = Regex::new(text).map_err(|error| WrongRegex::Syntax(error.to_string()))?;
        match regex.captures_len() - 1 {
            1 => Ok(Self::Regex(regex)),
            other => Err(WrongRegex::Groups(other)),
        }
    }

    /// Whether a load must report a number.
    pub fn is_expected(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// The work that a load reports; `None` where it reports no number above zero.
    pub fn read(&self, said: &Said<'_>) -> Option<Work> {
        let work = match self {
            Self::None => None,
            Self::Tool(tool) => tool.read(said),
            Self::Regex(regex) => of_regex(regex, said),
            Self::Json(pointer) => json::at(said, pointer),
        };
        work.filter(|work| work.count > 0)
    }

    /// As the record has it.
    pub fn source(&self) -> CountSource {
        match self {
            Self::None => CountSource::None,
            Self::Tool(tool) => CountSource::Tool(tool.name().to_owned()),
            Self::Regex(regex) => CountSource::Regex(regex.as_str().to_owned()),
            Self::Json(pointer) => CountSource::Json(pointer.clone()),
        }
    }

    /// What it counts.
    pub fn unit(&self) -> WorkUnit {
        match self {
            Self::None => WorkUnit::Run,
            Self::Tool(tool) => tool.unit(),
            Self::Regex(_) | Self::Json(_) => WorkUnit::Unit,
        }
    }
}

/// The number of the last match in the file, in standard output, or in standard error.
fn of_regex(regex: &Regex, said: &Said<'_>) -> Option<Work> {
    let last = |text: &str| {
        let found = regex.captures_iter(text).filter_map(|found| number(found.get(1)?.as_str()));
        found.last()
    };
    let count = [said.file, said.stdout, said.stderr].into_iter().find_map(last)?;
    Some(Work { count, errors: 0 })
}

/// A number as people write it: `12,345`, `1e6`, `20000.0`.
fn number(text: &str) -> Option<u64> {
    let plain: String = text.trim().chars().filter(|symbol| !matches!(symbol, ',' | '_')).collect();
    let value: f64 = plain.parse().ok()?;
    whole(value)
}

/// A count of events; half an event is none.
fn whole(value: f64) -> Option<u64> {
    (value.is_finite() && (0.0..=9e15).contains(&value)).then_some(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(of: &Count, stdout: &str, stderr: &str, file: &str) -> Option<u64> {
        of.read(&Said { words: &[], stdout, stderr, file }).map(|work| work.count)
    }

    #[test]
    fn an_expression_reads_its_group_at_the_last_match_wherever_it_stands() {
        let regex = Count::regex(r"done: ([\d,.]+)").expect("it has one group");
        assert_eq!(count(&regex, "done: 10\ndone: 1,200\n", "", ""), Some(1_200));
        assert_eq!(count(&regex, "nothing", "done: 7", ""), Some(7));
        assert_eq!(count(&regex, "done: 8", "", "done: 9"), Some(9));
        assert_eq!(count(&regex, "done: .", "", ""), None);
        assert_eq!(count(&regex, "done: 0", "", ""), None, "no work is no measure");
        assert!(matches!(Count::regex("(a"), Err(WrongRegex::Syntax(_))));
        assert_eq!(Count::regex("a").err(), Some(WrongRegex::Groups(0)));
        assert_eq!(Count::regex("(a)(b)").err(), Some(WrongRegex::Groups(2)));
    }

    #[test]
    fn a_pointer_reads_a_number_of_a_document() {
        let json = Count::Json("/totals/0/ops".to_owned());
        assert_eq!(count(&json, r#"{"totals": [{"ops": 4000}]}"#, "", ""), Some(4_000));
        assert_eq!(count(&json, r#"{"totals": [{"ops": "4,000"}]}"#, "", ""), Some(4_000));
        assert_eq!(
            count(&json, "progress\n{\"totals\": [{\"ops\": 5}]}\n", "", ""),
            Some(5),
            "the last line"
        );
        let progress = "{\"done\": 1}\n".repeat(1_000);
        let summary = "{\n  \"totals\": [\n    {\"ops\": 7}\n  ]\n}\n";
        assert_eq!(count(&json, &format!("{progress}{summary}"), "", ""), Some(7), "after many objects");
        assert_eq!(count(&json, "x", "", r#"{"totals": [{"ops": 6}]}"#), Some(6));
        assert_eq!(count(&json, r#"{"totals": []}"#, "", ""), None);
        assert_eq!(count(&json, "no document", "", ""), None);
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        assert_eq!(
            [" 12,345 ", "1e6", "20000.0", "0.4", "-1", "nan", "1e300", ""].map(number),
            [Some(12_345), Some(1_000_000), Some(20_000), Some(0), None, None, None, None]
        );
    }
}
