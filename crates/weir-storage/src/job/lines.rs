//! The lines of job files, each with the place where it was written: those of the file itself, those of files that it
//! includes, and the words of a command line. Pure: whoever calls reads the files.

use super::fio_file::{JobFileError, TEXT_BYTES_MAX, with_variables};

/// How deep files may include each other.
const INCLUDES_MAX: usize = 8;

/// The value of a variable, where there is one.
type Value<'a> = &'a dyn Fn(&str) -> Option<String>;
/// The text of a file, or why there is none.
type Read<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Where a line was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Name of the file, or the word of the command line.
    file: String,
    /// From 1; 0 for a word of the command line.
    line: usize,
}

/// Lines in the order in which they are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The file, or nothing.
    name: String,
    texts: Vec<String>,
    places: Vec<Place>,
}

impl Lines {
    /// Those of one text.
    pub fn of_text(file: &str, text: &str) -> Self {
        let mut lines = Self { name: file.to_owned(), ..Self::default() };
        for (index, text) in text.lines().enumerate() {
            lines.push(text, Place { file: file.to_owned(), line: index + 1 });
        }
        lines
    }

    /// Those of a file with the values of its variables, and of the files that it includes. `value` knows variables,
    /// `read` reads an included file, whose name is also tried beside the file that names it.
    pub fn expanded(file: &str, text: &str, value: Value<'_>, read: Read<'_>) -> Result<Self, JobFileError> {
        let mut lines = Self { name: file.to_owned(), ..Self::default() };
        lines.include(file, text, (value, read), INCLUDES_MAX)?;
        Ok(lines)
    }

    fn include(
        &mut self,
        file: &str,
        text: &str,
        (value, read): (Value<'_>, Read<'_>),
        depth: usize,
    ) -> Result<(), JobFileError> {
        let text = with_variables(file, text, value)?;
        for (index, line) in text.lines().enumerate() {
            let place = Place { file: file.to_owned(), line: index + 1 };
            let Some(name) = included(line) else {
                self.push(line, place);
                continue;
            };
            let error = |reason: String| JobFileError { file: file.to_owned(), line: index + 1, reason };
            let Some(depth) = depth.checked_sub(1) else {
                return Err(error(format!("files include each other more than {INCLUDES_MAX} times")));
            };
            // As in fio: by its own name, or else beside the file that includes it.
            let beside = file.rsplit_once('/').map(|(folder, _)| format!("{folder}/{name}"));
            let found = read(name).map(|text| (name.to_owned(), text)).or_else(|reason| {
                let beside = beside.ok_or_else(|| reason.clone())?;
                read(&beside).map(|text| (beside, text)).map_err(|_| reason)
            });
            let (name, text) = found.map_err(|reason| error(format!("include: {reason}")))?;
            self.include(&name, &text, (value, read), depth)?;
            if self.texts.iter().map(String::len).sum::<usize>() > TEXT_BYTES_MAX {
                return Err(error("with what it includes the job file is too long".to_owned()));
            }
        }
        Ok(())
    }

    fn push(&mut self, text: &str, place: Place) {
        self.texts.push(text.to_owned());
        self.places.push(place);
    }

    /// Adds what a word of a command line says: as it is, for a shell has read its comments and variables.
    pub(super) fn push_word(&mut self, text: String, word: &str) {
        self.texts.push(text);
        self.places.push(Place { file: word.to_owned(), line: 0 });
    }

    /// Each with its number, from 1, and without its comment.
    pub(super) fn contents(&self) -> impl Iterator<Item = (usize, &str)> {
        self.texts.iter().zip(&self.places).enumerate().map(|(index, (text, place))| {
            let is_word = place.line == 0;
            let content = if is_word { text } else { text.split([';', '#']).next().unwrap_or_default() };
            (index + 1, content.trim())
        })
    }

    /// What is wrong with the line of a number, with its place.
    pub(super) fn error(&self, number: usize, reason: String) -> JobFileError {
        let place = self.places.get(number.saturating_sub(1)).or(self.places.first());
        let (file, line) = place.map_or((self.name.clone(), 1), |place| (place.file.clone(), place.line));
        JobFileError { file, line, reason }
    }

    /// Whether there is not a single one.
    pub(super) fn are_none(&self) -> bool {
        self.texts.is_empty()
    }

    /// Length of the text.
    pub(super) fn bytes(&self) -> usize {
        (self.texts.iter().map(|text| text.len() + 1).sum::<usize>()).saturating_sub(1)
    }
}

/// The file that a line includes.
fn included(line: &str) -> Option<&str> {
    let content = line.split([';', '#']).next().unwrap_or_default().trim();
    let name = content.strip_prefix("include")?;
    name.starts_with([' ', '\t']).then(|| name.trim()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(files: &[(&str, &str)]) -> Result<Lines, String> {
        let read = |name: &str| {
            let found = files.iter().find(|(own, _)| *own == name);
            found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| format!("{name} is not there"))
        };
        let value = |name: &str| (name == "BS").then(|| "8k".to_owned());
        let (file, text) = files[0];
        Lines::expanded(file, text, &value, &read).map_err(|error| error.to_string())
    }

    #[test]
    fn an_included_file_stands_where_it_was_named_and_its_lines_keep_their_place() {
        let lines = expanded(&[
            ("jobs/a.fio", "[global]\ninclude common.inc ; shared\nrw=read\n"),
            ("jobs/common.inc", "bs=${BS}\ninclude /etc/more # x\n"),
            ("/etc/more", "size=1m\n"),
        ])
        .expect("all are there");
        let texts: Vec<&str> = lines.contents().map(|(_, text)| text).collect();
        assert_eq!(texts, ["[global]", "bs=8k", "size=1m", "rw=read"]);
        let places = [1, 2, 3, 4].map(|number| lines.error(number, "x".to_owned()).to_string());
        assert_eq!(places, ["jobs/a.fio:1: x", "jobs/common.inc:1: x", "/etc/more:1: x", "jobs/a.fio:3: x"]);
    }

    #[test]
    fn a_file_that_is_not_there_and_one_that_includes_itself_are_told() {
        let missing = expanded(&[("a.fio", "[a]\ninclude none\n")]).expect_err("it is not there");
        assert_eq!(missing, "a.fio:2: include: none is not there");
        let itself = expanded(&[("a.fio", "include a.fio\n")]).expect_err("it never ends");
        assert!(itself.contains("more than 8 times"), "{itself}");
        let keys = expanded(&[("a.fio", "includes=1\ninclude\n")]).expect("these are keys");
        assert_eq!(keys.contents().count(), 2);
    }
}
