//! The lines of job files, each with its position: from the file itself, from included files, and from the arguments
//! of a command line. Pure: the caller reads the files.

use super::fio_file::{JobFileError, TEXT_BYTES_MAX, with_variables};

/// Deepest nesting of includes.
const INCLUDES_MAX: usize = 8;
/// Most included files in all, counting repetitions.
const FILES_MAX: usize = 256;

/// Looks up the value of a variable.
type Value<'a> = &'a dyn Fn(&str) -> Option<String>;
/// Reads the text of a file of at most this many bytes, or returns why that failed.
type Read<'a> = &'a dyn Fn(&str, usize) -> Result<String, String>;

/// Position of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Name of the file, or the argument of the command line.
    file: String,
    /// From 1; 0 for an argument of the command line.
    line: usize,
}

/// Lines in reading order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Name of the file, or empty.
    name: String,
    texts: Vec<String>,
    places: Vec<Place>,
    /// Names of the included files.
    included: Vec<String>,
}

/// What may still be read, over all files.
struct Room {
    files: usize,
    /// Bytes as read from the files.
    bytes_read: usize,
    /// Bytes after the substitution of variables.
    bytes_kept: usize,
}

impl Room {
    /// Subtracts the bytes of a file.
    fn take(&mut self, text: &str) -> Result<(), String> {
        self.bytes_read = self.bytes_read.checked_sub(text.len()).ok_or_else(too_long)?;
        Ok(())
    }

    /// Subtracts the bytes after substitution. The last line may have gained its line ending.
    fn keep(&mut self, text: &str) -> Result<(), String> {
        self.bytes_kept = self.bytes_kept.checked_sub(text.len().saturating_sub(1)).ok_or_else(too_long)?;
        Ok(())
    }

    /// Reads an included file. As in fio it is looked up by its own name, and then beside the including file.
    fn read(&mut self, file: &str, name: &str, read: Read<'_>) -> Result<(String, String), String> {
        let more = || format!("more than {FILES_MAX} files are included; write their lines into one");
        self.files = self.files.checked_sub(1).ok_or_else(more)?;
        let beside = file.rsplit_once('/').map(|(folder, _)| format!("{folder}/{name}"));
        let by_name = read(name, self.bytes_read).map(|text| (name.to_owned(), text));
        let (name, text) = by_name.or_else(|reason| {
            let beside = beside.ok_or_else(|| reason.clone())?;
            read(&beside, self.bytes_read).map(|text| (beside, text)).map_err(|_| reason)
        })?;
        self.take(&text)?;
        Ok((name, text))
    }
}

fn too_long() -> String {
    format!("with what it includes the job file is too long; at most {TEXT_BYTES_MAX} bytes are read")
}

impl Lines {
    /// The lines of one text.
    pub fn of_text(file: &str, text: &str) -> Self {
        let mut lines = Self { name: file.to_owned(), ..Self::default() };
        for (index, text) in text.lines().enumerate() {
            lines.push(text, Place { file: file.to_owned(), line: index + 1 });
        }
        lines
    }

    /// The lines of a file with its variables substituted, and of the files that it includes. `value` looks up
    /// variables; `read` reads an included file, whose name is also tried beside the including file.
    pub fn expanded(file: &str, text: &str, value: Value<'_>, read: Read<'_>) -> Result<Self, JobFileError> {
        let mut lines = Self { name: file.to_owned(), ..Self::default() };
        let mut room = Room { files: FILES_MAX, bytes_read: TEXT_BYTES_MAX, bytes_kept: TEXT_BYTES_MAX };
        room.take(text).map_err(|reason| JobFileError { file: file.to_owned(), line: 1, reason })?;
        lines.include(file, text, (value, read), &mut room, INCLUDES_MAX)?;
        Ok(lines)
    }

    fn include(
        &mut self,
        file: &str,
        text: &str,
        (value, read): (Value<'_>, Read<'_>),
        room: &mut Room,
        depth: usize,
    ) -> Result<(), JobFileError> {
        let error = |line: usize, reason: String| JobFileError { file: file.to_owned(), line, reason };
        let text = with_variables(file, text, value)?;
        room.keep(&text).map_err(|reason| error(1, reason))?;
        for (index, content) in text.lines().enumerate() {
            let line = index + 1;
            let Some(name) = included(content) else {
                self.push(content, Place { file: file.to_owned(), line });
                continue;
            };
            let Some(depth) = depth.checked_sub(1) else {
                return Err(error(line, format!("files include each other more than {INCLUDES_MAX} times")));
            };
            let found = room.read(file, name, read);
            let (name, text) = found.map_err(|reason| error(line, format!("include: {reason}")))?;
            self.included.push(name.clone());
            self.include(&name, &text, (value, read), room, depth)?;
        }
        Ok(())
    }

    /// Names of the included files, with repetitions.
    pub fn included(&self) -> &[String] {
        &self.included
    }

    fn push(&mut self, text: &str, place: Place) {
        self.texts.push(text.to_owned());
        self.places.push(place);
    }

    /// Adds the line of a command-line argument unchanged, because a shell has already handled comments and
    /// variables.
    pub(super) fn push_word(&mut self, text: String, word: &str) {
        self.texts.push(text);
        self.places.push(Place { file: word.to_owned(), line: 0 });
    }

    /// Each line with its number, from 1, and without its comment.
    pub(super) fn contents(&self) -> impl Iterator<Item = (usize, &str)> {
        self.texts.iter().zip(&self.places).enumerate().map(|(index, (text, place))| {
            let is_word = place.line == 0;
            let content = if is_word { text } else { text.split([';', '#']).next().unwrap_or_default() };
            (index + 1, content.trim())
        })
    }

    /// An error about a line, with its position.
    pub(super) fn error(&self, number: usize, reason: String) -> JobFileError {
        let place = self.places.get(number.saturating_sub(1)).or(self.places.first());
        let (file, line) = place.map_or((self.name.clone(), 1), |place| (place.file.clone(), place.line));
        JobFileError { file, line, reason }
    }

    /// Whether there are no lines.
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
        let read = |name: &str, _: usize| {
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
        assert_eq!(lines.included(), ["jobs/common.inc", "/etc/more"]);
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

    #[test]
    fn as_many_files_are_included_as_the_maximum_and_no_more() {
        let of = |count| expanded(&[("a.fio", &"include b\n".repeat(count)), ("b", "")]);
        assert_eq!(of(FILES_MAX).expect("they are few enough").included().len(), FILES_MAX);
        let more = of(FILES_MAX + 1).expect_err("they are too many");
        assert!(more.starts_with("a.fio:257: include: more than 256 files"), "{more}");
        // A tree of includes takes long to read, even if its files are short.
        let wide = |name: &str| format!("include {name}\n").repeat(100);
        let tree =
            expanded(&[("a.fio", &wide("b")), ("b", &wide("c")), ("c", "")]).expect_err("they are too many");
        assert!(tree.contains("more than 256 files"), "{tree}");
    }

    #[test]
    fn all_files_together_have_as_many_bytes_as_the_maximum_and_no_more() {
        let include = "include b\ninclude b\n";
        let half = (TEXT_BYTES_MAX - include.len()) / 2;
        let of = |bytes| expanded(&[("a.fio", include), ("b", &format!("{}\n", "#".repeat(bytes - 1)))]);
        assert_eq!(of(half).expect("it is short enough").texts.len(), 2);
        let longer = of(half + 1).expect_err("it is too long");
        assert!(longer.starts_with("a.fio:2: include: ") && longer.contains("too long"), "{longer}");
        let alone = expanded(&[("a.fio", &"#".repeat(TEXT_BYTES_MAX))]).expect("it is as long as it may be");
        assert_eq!(alone.bytes(), TEXT_BYTES_MAX);
        let longer = expanded(&[("a.fio", &"#".repeat(TEXT_BYTES_MAX + 1))]).expect_err("it is too long");
        assert!(longer.starts_with("a.fio:1: ") && longer.contains("too long"), "{longer}");
    }

    #[test]
    fn a_reader_is_told_how_much_is_left_for_it() {
        let asked = std::cell::RefCell::new(Vec::new());
        let read = |_: &str, bytes: usize| {
            asked.borrow_mut().push(bytes);
            Ok("x".repeat(100))
        };
        let text = "include b\ninclude c\n";
        Lines::expanded("a.fio", text, &|_| None, &read).expect("it is short enough");
        let left = TEXT_BYTES_MAX - text.len();
        assert_eq!(*asked.borrow(), [left, left - 100]);
    }

    #[test]
    fn values_of_variables_count_in_every_file_that_has_them() {
        let value = |_: &str| Some("x".repeat(TEXT_BYTES_MAX / 4));
        let read = |_: &str, _: usize| Ok("${X}".to_owned());
        let of = |count| Lines::expanded("a.fio", &"include b\n".repeat(count), &value, &read);
        assert!(of(3).is_ok());
        let longer = of(4).expect_err("it is too long").to_string();
        assert!(longer.starts_with("b:1: ") && longer.contains("too long"), "{longer}");
    }
}
