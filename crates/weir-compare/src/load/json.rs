//! Numbers of JSON documents that loads write.

use serde_json::Value;

use super::{Said, Work, number, whole};

/// The document of a load: its file, its output, or the last lines of its output, from a line that opens an object. A
/// load may have written many objects before, one on each line.
pub(super) fn document(said: &Said<'_>) -> Option<Value> {
    [said.file, said.stdout].into_iter().find_map(of_text)
}

fn of_text(text: &str) -> Option<Value> {
    let whole = || serde_json::from_str(text.trim()).ok().filter(|found: &Value| !found.is_null());
    let tail = || {
        let starts = text.rmatch_indices("\n{").map(|(at, _)| at);
        starts.take(STARTS_MAX).find_map(|at| serde_json::from_str(text[at..].trim()).ok())
    };
    whole().or_else(tail)
}

/// Most places that are tried as the beginning of a document, from the last one on.
const STARTS_MAX: usize = 64;

/// The number at a pointer.
pub(super) fn at(said: &Said<'_>, pointer: &str) -> Option<Work> {
    let count = count_at(&document(said)?, pointer)?;
    Some(Work { count, errors: 0 })
}

/// The number at a pointer of a document; also one that is written as a text.
pub(super) fn count_at(document: &Value, pointer: &str) -> Option<u64> {
    count_of(document.pointer(pointer)?)
}

/// A value as a count.
pub(super) fn count_of(value: &Value) -> Option<u64> {
    match value {
        Value::Number(found) => whole(found.as_f64()?),
        Value::String(text) => number(text),
        _ => None,
    }
}

/// Keys of an object with their counts; empty for any other value.
pub(super) fn counts<'d>(document: &'d Value, pointer: &str) -> Vec<(&'d str, u64)> {
    let object = document.pointer(pointer).and_then(Value::as_object);
    let pairs = object.into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.as_str(), count_of(value)?))).collect()
}
