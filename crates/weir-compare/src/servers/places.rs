//! Placeholders in the words of servers and loads, whose values are known only when a server starts. Pure.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

/// Stands for the port of a server.
pub const PORT: &str = "{port}";

/// Stands for the folder of a server's data.
pub const FOLDER: &str = "{dir}";

/// Stands for a file that a load may write, and that is read instead of its output.
pub const OUT: &str = "{out}";

/// Their values for one server.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) port: u16,
    pub(super) folder: PathBuf,
    pub(super) out: PathBuf,
}

impl Places {
    /// Words with all values in place.
    pub(super) fn fill(&self, words: &[OsString]) -> Vec<OsString> {
        words.iter().map(|word| self.fill_one(word)).collect()
    }

    /// Values of variables with all values in place.
    pub(super) fn fill_values(&self, variables: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        variables.iter().map(|(name, value)| (name.clone(), self.fill_one(value))).collect()
    }

    fn fill_one(&self, word: &OsStr) -> OsString {
        let port = self.port.to_string();
        let values: [(&str, &[u8]); 3] = [
            (PORT, port.as_bytes()),
            (FOLDER, self.folder.as_os_str().as_bytes()),
            (OUT, self.out.as_os_str().as_bytes()),
        ];
        let filled = values
            .iter()
            .fold(word.as_bytes().to_vec(), |text, (place, value)| replaced(&text, place.as_bytes(), value));
        OsString::from_vec(filled)
    }
}

/// Bytes with every occurrence of some patterns replaced: words need not be text.
fn replaced(text: &[u8], place: &[u8], value: &[u8]) -> Vec<u8> {
    let (mut done, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = rest.windows(place.len()).position(|window| window == place) {
        done.extend_from_slice(&rest[..at]);
        done.extend_from_slice(value);
        rest = &rest[at + place.len()..];
    }
    done.extend_from_slice(rest);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_filled_in_words_and_variables_also_in_words_that_are_no_text() {
        let places = Places { port: 4_711, folder: PathBuf::from("/tmp/d"), out: PathBuf::from("/tmp/o") };
        let words = ["--at={port}:{port}", "{dir}/x", "{out}", "{ports} {", "plain"].map(OsString::from);
        assert_eq!(places.fill(&words), ["--at=4711:4711", "/tmp/d/x", "/tmp/o", "{ports} {", "plain"]);
        let odd = OsString::from_vec(b"\xff{port}".to_vec());
        assert_eq!(places.fill(&[odd]), [OsString::from_vec(b"\xff4711".to_vec())]);
        let variables = [(OsString::from("P{port}"), OsString::from("{port}"))];
        assert_eq!(places.fill_values(&variables), [(OsString::from("P{port}"), OsString::from("4711"))]);
    }
}
