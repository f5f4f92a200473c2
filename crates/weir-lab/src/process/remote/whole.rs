//! A whole study on another host, as the laboratory sees it: it names the study, follows its lines, and fetches its
//! store, whose length and hash the agent reports first.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    OwnProgram, Transport,
    codec::{Answer, LINE_BYTES_MAX, Question},
    link::{Link, QUESTION_MAX, Unanswered, hexadecimal},
    wait::Limits,
};
use crate::launch::LaunchError;

/// Longest time from an interruption until the study there has ended and its store is here.
const END_MAX: Duration = Duration::from_secs(15);

/// Longest time of an answer with bytes of the store.
const BYTES_MAX: Duration = Duration::from_secs(60);

/// Bytes of the store in an answer; in hexadecimal digits half of the longest line.
pub(super) const CHUNK_BYTES: usize = 1 << 20;
// Each byte is two digits of a line.
const _: () = assert!(2 * CHUNK_BYTES < LINE_BYTES_MAX);

/// Largest store that is fetched.
pub(super) const STORE_BYTES_MAX: u64 = weir_store::BYTES_MAX;

/// A study that another host runs by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeStudy {
    /// Name of a built-in study, or of the study's file on this machine.
    pub study: String,
    /// The text of the file; `None` for a built-in study.
    pub text: Option<String>,
    /// Further arguments of `weir study`.
    pub arguments: Vec<String>,
}

/// What a study said, and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) lines: Vec<String>,
    pub(super) ended: Option<WholeEnd>,
}

/// The end of a study on another host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeEnd {
    /// Exit code; `None` if a signal killed it.
    pub code: Option<i32>,
    /// How it ended, with its last message.
    pub how: String,
    /// The store, if it has one.
    pub store: Option<StoredThere>,
}

/// A store on another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredThere {
    pub(super) bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub(super) hash: String,
}

/// A study that runs on another host. Dropping it ends everything there.
pub struct StudyThere {
    link: Link,
    /// When an interrupted study must have ended.
    ends_by: Option<Instant>,
}

impl StudyThere {
    /// Connects, and begins a study there.
    ///
    /// # Errors
    /// If the host cannot be reached, or refuses the study.
    pub fn begin(
        way: &Transport,
        own: &OwnProgram,
        asked: &WholeStudy,
        interrupt: &AtomicBool,
    ) -> Result<Self, LaunchError> {
        let own = own.for_another_session().map_err(|error| {
            LaunchError::Environment(format!("{way}: cannot draw the name of a session: {error}"))
        })?;
        let link = Link::open(way, &own, interrupt)?;
        let mut there = Self { link, ends_by: None };
        let question = Question::Whole(Box::new(asked.clone()));
        match there.ask(question, Limits::new(QUESTION_MAX, interrupt))? {
            Answer::Nothing => Ok(there),
            other => Err(there.misunderstood(&other)),
        }
    }

    /// Follows it to its end, and hands on every line that it or the way to it says. An interruption asks it to end.
    ///
    /// # Errors
    /// If the host is lost, or an interrupted study does not end within 15 s.
    pub fn follow(
        &mut self,
        interrupt: &AtomicBool,
        said: &mut dyn FnMut(String),
    ) -> Result<WholeEnd, LaunchError> {
        loop {
            if interrupt.load(Ordering::Relaxed) && self.ends_by.is_none() {
                self.ends_by = Some(Instant::now() + END_MAX);
                self.ask(Question::EndWhole, self.limits(QUESTION_MAX, interrupt))?;
            }
            let answer = self.ask(Question::Progress, self.limits(QUESTION_MAX, interrupt));
            self.link.said().into_iter().for_each(&mut *said);
            match answer? {
                Answer::Progress(progress) => {
                    let name = self.link.name();
                    progress.lines.iter().for_each(|line| said(format!("{name}: {line}")));
                    if let Some(ended) = progress.ended {
                        return Ok(ended);
                    }
                }
                other => return Err(self.misunderstood(&other)),
            }
        }
    }

    /// Copies its store into a folder, which is made. The file is there whole, or not at all.
    ///
    /// # Errors
    /// If the host is lost, what arrives is not the store, or the folder cannot be written.
    pub fn fetch(
        &mut self,
        store: &StoredThere,
        folder: &Path,
        interrupt: &AtomicBool,
    ) -> Result<(), LaunchError> {
        if store.bytes > STORE_BYTES_MAX {
            return Err(
                self.wrong(format!("its store has {} bytes, more than a store may have", store.bytes))
            );
        }
        let place = folder.join(weir_store::FILE_NAME);
        let partial = place.with_extension("part");
        let cannot = |error: io::Error| {
            LaunchError::Environment(format!(
                "cannot write {}: {error}; choose another folder with --out",
                partial.display()
            ))
        };
        let mut file = fs::create_dir_all(folder).and_then(|()| File::create(&partial)).map_err(cannot)?;
        let fetched = self
            .copy(store, &mut file, interrupt, &cannot)
            .and_then(|()| file.sync_all().and_then(|()| fs::rename(&partial, &place)).map_err(cannot));
        fetched.inspect_err(|_| {
            // It was made here. If it cannot be removed, the reported error is worse.
            let _ = fs::remove_file(&partial);
        })
    }

    fn copy(
        &mut self,
        store: &StoredThere,
        file: &mut File,
        interrupt: &AtomicBool,
        cannot: &dyn Fn(io::Error) -> LaunchError,
    ) -> Result<(), LaunchError> {
        let (mut hash, mut copied) = (Sha256::new(), 0);
        while copied < store.bytes {
            let answer = self.ask(Question::StoreBytes(copied), self.limits(BYTES_MAX, interrupt))?;
            let Answer::StoreBytes(digits) = answer else { return Err(self.misunderstood(&answer)) };
            let left = usize::try_from(store.bytes - copied).unwrap_or(usize::MAX);
            let fits = |bytes: &Vec<u8>| (1..=CHUNK_BYTES.min(left)).contains(&bytes.len());
            let Some(bytes) = from_hexadecimal(&digits).filter(fits) else {
                return Err(self.wrong(format!("{} digits are no bytes of its store", digits.len())));
            };
            hash.update(&bytes);
            file.write_all(&bytes).map_err(cannot)?;
            copied += bytes.len() as u64;
        }
        if hexadecimal(&hash.finalize()) == store.hash {
            return Ok(());
        }
        Err(self.wrong("what arrived is not its store".to_owned()))
    }

    /// After an interruption every answer has the same deadline.
    fn limits<'a>(&self, longest: Duration, interrupt: &'a AtomicBool) -> Limits<'a> {
        let left = |by: Instant| by.saturating_duration_since(Instant::now());
        Limits { longest, interrupt, interrupted: self.ends_by.map_or(END_MAX, left) }
    }

    fn ask(&mut self, question: Question, limits: Limits<'_>) -> Result<Answer, LaunchError> {
        let answer = self.link.ask(question, limits);
        answer.map_err(|unanswered| match unanswered {
            // An interrupted study that does not end is lost, with what it has stored.
            Unanswered::Interrupted if self.ends_by.is_some() => LaunchError::Environment(format!(
                "{}: it did not end within {} s, so its results stay behind",
                self.link.name(),
                END_MAX.as_secs()
            )),
            other => other.of_host(self.link.name()),
        })
    }

    fn misunderstood(&self, answer: &Answer) -> LaunchError {
        LaunchError::Environment(super::host::another(self.link.name(), answer))
    }

    fn wrong(&self, reason: String) -> LaunchError {
        LaunchError::Environment(format!("{}: {reason}", self.link.name()))
    }
}

/// The bytes that hexadecimal digits say; `None` if they say none.
fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let byte = |[high, low]: &[u8; 2]| Some(16 * digit(*high)? + digit(*low)?);
    rest.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_survive_their_digits(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(from_hexadecimal(&hexadecimal(&bytes)), Some(bytes));
        }

        #[test]
        fn digits_of_another_host_are_bytes_or_nothing(digits in "[0-9a-fA-F+g 한]{0,9}") {
            let is_right = digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            prop_assert_eq!(from_hexadecimal(&digits).is_some(), is_right);
        }
    }
}
