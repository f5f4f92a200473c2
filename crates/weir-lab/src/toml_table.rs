//! A table of a study file as it is read: every value knows its key and its place, and an unknown key is refused with
//! the nearest known one.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use weir_record::quantity;
use weir_report::localized;

use crate::{
    length::length_ns,
    limits::{self, Level, SpecError, instead_in},
    mistake::Mistake,
};

/// The message for a text that is not a number of bytes.
const NO_SIZE: [&str; 3] = [
    "write bytes such as 64 or \"4k\" (powers of 1024)",
    "64나 \"4k\"처럼 바이트 수를 쓰십시오(1024의 거듭제곱)",
    "请写字节数，例如 64 或 \"4k\"（1024 的幂）",
];

/// An error and its place in the text.
#[derive(Debug)]
pub(crate) struct FieldError {
    pub(crate) at: usize,
    pub(crate) error: SpecError,
}

impl FieldError {
    pub(crate) fn new(at: usize, key: &str, message: impl Into<Mistake>) -> Self {
        Self { at, error: SpecError::new(key, message) }
    }
}

/// Gives an error its place.
pub(crate) trait At<T> {
    fn at(self, at: usize) -> Result<T, FieldError>;
}

impl<T> At<T> for Result<T, SpecError> {
    fn at(self, at: usize) -> Result<T, FieldError> {
        self.map_err(|error| FieldError { at, error })
    }
}

/// A table from which values are taken by their keys.
pub(crate) struct Table<'t> {
    /// Prefix of its keys in messages: nothing, or `arm.`.
    path: String,
    at: usize,
    entries: DeTable<'t>,
    /// Every key that was looked up.
    known: Vec<&'static str>,
    /// Places of the looked-up keys that were present.
    places: BTreeMap<&'static str, usize>,
}

impl<'t> Table<'t> {
    /// The whole of a file.
    pub(crate) fn parse(text: &'t str) -> Result<Self, toml::de::Error> {
        let entries = DeTable::parse(text)?.into_inner();
        Ok(Self { path: String::new(), at: 0, entries, known: Vec::new(), places: BTreeMap::new() })
    }

    /// An empty table, in place of one that the file may leave out.
    pub(crate) fn empty() -> Self {
        let (path, entries, known) = (String::new(), DeTable::new(), Vec::new());
        Self { path, at: 0, entries, known, places: BTreeMap::new() }
    }

    /// The same table with another name in messages.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.path = if name.is_empty() { String::new() } else { format!("{name}.") };
        self
    }

    /// Where the table begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// A key of this table, as it stands in messages.
    pub(crate) fn key(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    /// An error about the table itself.
    pub(crate) fn wrong(&self, message: &str) -> FieldError {
        let key = self.path.trim_end_matches('.');
        FieldError::new(self.at, key, message.to_owned())
    }

    /// Whether the key is present.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Removes and returns a value.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Entry<'t>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let value = self.entries.remove(key)?;
        let at = value.span().start;
        self.places.insert(key, at);
        Some(Entry { key: self.key(key), at, value: value.into_inner() })
    }

    /// Places of the values that were taken.
    pub(crate) fn places(&self) -> BTreeMap<&'static str, usize> {
        self.places.clone()
    }

    /// Takes a value and reads it, if it is present.
    pub(crate) fn read<V>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Entry<'t>) -> Result<V, FieldError>,
    ) -> Result<Option<V>, FieldError> {
        self.take(key).map(read).transpose()
    }

    /// Takes a value that must be present.
    pub(crate) fn required<V>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(Entry<'t>) -> Result<V, FieldError>,
    ) -> Result<V, FieldError> {
        let texts = ["it must be given", "필수 항목입니다", "此项为必填"];
        let missing = FieldError::new(self.at, &self.key(key), Mistake::fixed(texts));
        self.read(key, read)?.ok_or(missing)
    }

    /// The tables of a list such as `[[arm]]`, in order.
    pub(crate) fn tables(&mut self, key: &'static str) -> Result<Vec<Table<'t>>, FieldError> {
        self.read(key, Entry::list)?.unwrap_or_default().into_iter().map(Entry::table).collect()
    }

    /// Keys that are left.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.entries.keys().map(|key| key.get_ref().to_string()).collect()
    }

    /// Takes a value by any key.
    pub(crate) fn take_any(&mut self, key: &str) -> Option<Entry<'t>> {
        let value = self.entries.remove(key)?;
        Some(Entry { key: self.key(key), at: value.span().start, value: value.into_inner() })
    }

    /// Inserts all values of another table, and replaces those that are here already.
    pub(crate) fn replace(&mut self, other: Table<'t>) {
        for (key, value) in other.entries {
            self.entries.remove(key.get_ref().as_ref());
            self.entries.insert(key, value);
        }
    }

    /// Refuses keys that were not taken. `elsewhere` says what a key means if it is no key of this table.
    pub(crate) fn finish(self, elsewhere: impl Fn(&str) -> Option<String>) -> Result<(), FieldError> {
        let Some(key) = self.entries.keys().min_by_key(|key| key.span().start) else { return Ok(()) };
        let name = key.get_ref().as_ref();
        let message = elsewhere(name).map_or_else(|| no_such_key(name, &self.known), Mistake::from);
        Err(FieldError::new(key.span().start, &self.key(name), message))
    }
}

fn no_such_key(name: &str, known: &[&str]) -> Mistake {
    Mistake::of(|language| {
        let instead = instead_in(language, name, known);
        localized!(
            language,
            "there is no such key; {instead}",
            "그런 키가 없습니다({instead})",
            "没有这个键（{instead}）",
        )
    })
}

/// A value with its key and its place.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    pub(crate) key: String,
    pub(crate) at: usize,
    value: DeValue<'t>,
}

impl<'t> Entry<'t> {
    /// An error about this value.
    pub(crate) fn wrong(&self, message: impl Into<Mistake>) -> FieldError {
        FieldError::new(self.at, &self.key, message)
    }

    /// The error for a value whose type is not the expected one: English, Korean, Chinese.
    fn is_none(&self, expected: [&'static str; 3]) -> FieldError {
        let found = self.value.type_str();
        self.wrong(Mistake::of(|language| {
            let expected = language.choose(expected);
            localized!(
                language,
                "this is of type {found}; write {expected}",
                "이 값의 형식은 {found}입니다. {expected} 쓰십시오",
                "此值的类型是 {found}；请写{expected}",
            )
        }))
    }

    /// A text in quotes.
    pub(crate) fn text(self) -> Result<String, FieldError> {
        match &self.value {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.is_none(["a text in quotes", "따옴표로 묶은 텍스트를", "加引号的文本"])),
        }
    }

    /// A text, or a whole number as a text.
    pub(crate) fn word(self) -> Result<String, FieldError> {
        match &self.value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(_) => Ok(self.whole()?.to_string()),
            _ => Err(self.is_none([
                "a text in quotes or a whole number",
                "따옴표로 묶은 텍스트나 정수를",
                "加引号的文本或整数",
            ])),
        }
    }

    fn whole(&self) -> Result<i64, FieldError> {
        let DeValue::Integer(number) = &self.value else {
            return Err(self.is_none(["a whole number", "정수를", "整数"]));
        };
        i64::from_str_radix(number.as_str(), number.radix())
            .map_err(|_| self.wrong(format!("{number} is more than any number here may be")))
    }

    /// A whole number.
    pub(crate) fn number(self) -> Result<i64, FieldError> {
        self.whole()
    }

    /// Whether it is a text.
    pub(crate) fn is_text(&self) -> bool {
        self.value.is_str()
    }

    /// The value as people write it. The content of a list or a table is not shown.
    pub(crate) fn shown(&self) -> String {
        match &self.value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string().replace('_', ""),
            DeValue::Boolean(flag) => flag.to_string(),
            other => format!("this {}", other.type_str()),
        }
    }

    /// Whether it is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// A whole number in the range of a level. Bytes may also be a size: `"4k"`.
    pub(crate) fn level(self, level: Level) -> Result<u32, FieldError> {
        let bytes = match &self.value {
            DeValue::String(text) if level.is_bytes() => quantity::bytes(text),
            _ => None,
        };
        let is_size = level.is_bytes() && self.is_text();
        let value = match bytes.and_then(|bytes| i64::try_from(bytes).ok()) {
            Some(bytes) => bytes,
            None if is_size => return Err(self.wrong(Mistake::fixed(NO_SIZE))),
            None => self.whole()?,
        };
        limits::level_of(&self.key, level, value).at(self.at)
    }

    /// Number of a CPU.
    pub(crate) fn index(self) -> Result<usize, FieldError> {
        let number = self.whole()?;
        usize::try_from(number).map_err(|_| self.wrong(format!("{number} is no CPU")))
    }

    /// A number with or without a fraction.
    pub(crate) fn fraction(self) -> Result<f64, FieldError> {
        let number = match &self.value {
            DeValue::Integer(_) => return Ok(self.whole()? as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.is_none(["a number", "숫자를", "数字"]))
    }

    /// `true` or `false`.
    pub(crate) fn flag(self) -> Result<bool, FieldError> {
        let expected = ["true or false", "true나 false를", " true 或 false"];
        self.value.as_bool().ok_or_else(|| self.is_none(expected))
    }

    /// A list.
    pub(crate) fn list(self) -> Result<Vec<Entry<'t>>, FieldError> {
        match self.value {
            DeValue::Array(values) => {
                let one = |value: toml::Spanned<DeValue<'t>>| Entry {
                    key: self.key.clone(),
                    at: value.span().start,
                    value: value.into_inner(),
                };
                Ok(values.into_iter().map(one).collect())
            }
            _ => Err(self.is_none(["a list in brackets", "대괄호로 묶은 목록을", "方括号中的列表"])),
        }
    }

    /// A list of at least one, or a single value without brackets.
    pub(crate) fn one_or_many(self) -> Result<Vec<Entry<'t>>, FieldError> {
        if !self.is_list() {
            return Ok(vec![self]);
        }
        let empty = self.wrong(Mistake::fixed([
            "the list is empty; it must hold at least one level",
            "목록이 비어 있습니다. 값을 하나 이상 쓰십시오",
            "列表为空；至少要有一个值",
        ]));
        let values = self.list()?;
        if values.is_empty() { Err(empty) } else { Ok(values) }
    }

    /// A list of words.
    pub(crate) fn words(self) -> Result<Vec<String>, FieldError> {
        self.list()?.into_iter().map(Entry::word).collect()
    }

    /// A list of CPUs.
    pub(crate) fn cpus(self) -> Result<Vec<usize>, FieldError> {
        self.list()?.into_iter().map(Entry::index).collect()
    }

    /// A table.
    pub(crate) fn table(self) -> Result<Table<'t>, FieldError> {
        match self.value {
            DeValue::Table(entries) => {
                let (path, known) = (format!("{}.", self.key), Vec::new());
                Ok(Table { path, at: self.at, entries, known, places: BTreeMap::new() })
            }
            _ => Err(self.is_none(["a table", "테이블을", "表"])),
        }
    }

    /// A table with free keys and words as values. A value that counts bytes may be a size: `"4k"`.
    pub(crate) fn options(self) -> Result<BTreeMap<String, String>, FieldError> {
        let mut table = self.table()?;
        let entries = table.keys().into_iter().filter_map(|name| Some((table.take_any(&name)?, name)));
        let value = |entry: Entry<'t>, name: &str| {
            entry.word().map(|value| quantity::option_value(name, &value).into_owned())
        };
        entries.map(|(entry, name)| Ok((name.clone(), value(entry, &name)?))).collect()
    }

    /// A length of time such as `20us`, `400ms`, `1s`, `3.5min` or `1h`.
    pub(crate) fn length(self) -> Result<u64, FieldError> {
        let text = match &self.value {
            DeValue::String(text) => text.as_ref(),
            _ => {
                return Err(self.is_none([
                    "a length of time like \"400ms\", \"1s\", \"3.5min\" or \"1h\"",
                    "\"400ms\", \"1s\", \"3.5min\", \"1h\" 같은 시간을",
                    "时长，例如 \"400ms\"、\"1s\"、\"3.5min\" 或 \"1h\"",
                ]));
            }
        };
        length_ns(text).ok_or_else(|| {
            self.wrong(Mistake::of(|language| {
                localized!(
                    language,
                    "{text:?} is not a length of time; write it like \"400ms\", \"1s\", \"3.5min\" or \"1h\"",
                    "시간으로 읽을 수 없는 값입니다: {text:?}. \"400ms\", \"1s\", \"3.5min\", \"1h\"처럼 쓰십시오",
                    "{text:?} 不是时长；请写成 \"400ms\"、\"1s\"、\"3.5min\" 或 \"1h\" 的形式",
                )
            }))
        })
    }

    /// A number of bytes such as `64MiB` or `1GiB`.
    pub(crate) fn size(self) -> Result<u64, FieldError> {
        let text = match &self.value {
            DeValue::String(text) => text.as_ref(),
            _ => {
                return Err(self.is_none([
                    "a size like \"512MiB\" or \"4GiB\"",
                    "\"512MiB\"나 \"4GiB\" 같은 크기를",
                    "大小，例如 \"512MiB\" 或 \"4GiB\"",
                ]));
            }
        };
        let parsed = [("MiB", 20), ("GiB", 30), ("TiB", 40)].into_iter().find_map(|(unit, shift)| {
            let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
            number.checked_mul(1 << shift)
        });
        parsed.ok_or_else(|| {
            self.wrong(Mistake::of(|language| {
                localized!(
                    language,
                    "{text:?} is not a size; write it like \"512MiB\" or \"4GiB\"",
                    "크기로 읽을 수 없는 값입니다: {text:?}. \"512MiB\"나 \"4GiB\"처럼 쓰십시오",
                    "{text:?} 不是大小；请写成 \"512MiB\" 或 \"4GiB\" 的形式",
                )
            }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_another_type_are_told_with_what_is_expected() {
        let text = "number = \"x\"\nlength = 3\nsize = \"64MB\"\nflag = 1\nlist = 5\n";
        let mut table = Table::parse(text).expect("it is TOML");
        let message = |error: FieldError| format!("{} {}", error.at, error.error);
        let mut entry = |key| table.take(key).expect("it is there");
        assert_eq!(
            message(entry("number").number().expect_err("a text")),
            "9 number: this is of type string; write a whole number"
        );
        assert!(message(entry("length").length().expect_err("a number")).contains("400ms"));
        assert!(message(entry("size").size().expect_err("decimal")).contains("\"64MB\" is not a size"));
        assert!(message(entry("flag").flag().expect_err("a number")).contains("true or false"));
        assert!(message(entry("list").list().expect_err("a number")).contains("a list in brackets"));
    }

    #[test]
    fn what_nobody_took_is_refused_at_its_place_and_what_replaces_stands_there_instead() {
        let mut table = Table::parse("depth = 1\n[other]\ndepth = 2\ndpeth = 3\n").expect("it is TOML");
        let other = table.take("other").expect("it is there").table().expect("a table");
        table.replace(other);
        assert_eq!(table.take("depth").expect("it is there").number().ok(), Some(2));
        let error = table.finish(|_| None).expect_err("dpeth is left");
        assert_eq!(
            (error.at, error.error.to_string().as_str()),
            (28, "dpeth: there is no such key; did you mean depth?")
        );
    }
}
