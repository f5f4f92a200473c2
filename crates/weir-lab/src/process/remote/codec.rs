//! The protocol between laboratory and agent: one line of JSON for each question, and one for its answer. Both ends
//! are always of one build, because the agent is the laboratory's own program.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read},
    net::IpAddr,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use thiserror::Error;
use weir_record::{
    doctor::Diagnosis,
    load::parts::{PartAnswer, PartOrder, PartSetup},
};

use super::{
    Facts, Prepared, StudyAsked, escape,
    whole::{Progress, WholeStudy},
};
use crate::{
    launch::LaunchError,
    process::hosted::{RoundAnswer, RoundCommand, ServersStarted, Serving},
};

/// Longest line in bytes. A study with its cells is a tenth of it, and so is an observed slice.
pub(super) const LINE_BYTES_MAX: usize = 4 << 20;

/// A question with its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) number: u64,
    pub(super) question: Question,
}

/// A question of the laboratory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Question {
    /// Which machine this is.
    Facts,
    /// Nothing: measures the round trip.
    Nothing,
    /// What can be run and measured there.
    Doctor,
    /// Facts of the network interface that has this address.
    LoadLink(IpAddr),
    /// Prepare a study.
    Study(Box<StudyAsked>),
    /// Start the servers of a round.
    Round(Box<Serving>),
    /// Carry out a command on them.
    Step(RoundCommand),
    /// Run a whole study there.
    Whole(Box<WholeStudy>),
    /// What it has said since, and whether it has ended.
    Progress,
    /// End it and keep what it has stored.
    EndWhole,
    /// Bytes of its store from this offset on.
    StoreBytes(u64),
    /// Start a generator there, which is one of several.
    LoadPart(Box<PartSetup>),
    /// Give it an order.
    Part(PartOrder),
}

/// The answer to the question of this number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) number: u64,
    pub(super) answer: Result<Answer, Refused>,
}

/// An answer of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    Facts(Box<Facts>),
    Nothing,
    Doctor(Vec<Diagnosis>),
    LoadLink(BTreeMap<String, String>),
    Study(Box<Prepared>),
    Round(Box<RoundStarted>),
    Step(RoundAnswer),
    Progress(Box<Progress>),
    /// In hexadecimal digits.
    StoreBytes(String),
    Part(Box<Result<PartAnswer, PartEnded>>),
}

/// The servers of a round, and for each arm the files that it was started from, with their hashes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoundStarted {
    pub(crate) servers: ServersStarted,
    pub(crate) programs: Vec<BTreeMap<String, String>>,
}

/// The end of a generator that has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartEnded {
    /// Exit code; `None` if a signal killed it or it did not answer.
    pub(super) code: Option<i32>,
    /// How it ended, with its last message.
    pub(super) how: String,
}

/// Why an agent refuses a question. None of these concerns the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Refused {
    Interrupted,
    Usage(String),
    Environment(String),
}

impl From<LaunchError> for Refused {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Interrupted => Self::Interrupted,
            LaunchError::Usage(reason) => Self::Usage(reason),
            LaunchError::Environment(reason) => Self::Environment(reason),
        }
    }
}

impl Refused {
    /// Converts to an error of the session that names the host.
    pub(crate) fn of_host(self, host: &str) -> LaunchError {
        match self {
            Self::Interrupted => LaunchError::Environment(format!("{host}: its agent was told to end")),
            Self::Usage(reason) => LaunchError::Usage(format!("{host}: {reason}")),
            Self::Environment(reason) => LaunchError::Environment(format!("{host}: {reason}")),
        }
    }
}

/// An error in a line.
#[derive(Debug, Error)]
pub(super) enum LineError {
    #[error("a line of more than {LINE_BYTES_MAX} bytes came")]
    TooLong,
    #[error("a line came that is none of ours: {reason}; it begins {beginning:?}")]
    NotOurs { reason: String, beginning: String },
    #[error("a line was cut off after {bytes} bytes")]
    CutOff { bytes: usize },
    #[error("cannot be said: {0}")]
    Unsayable(String),
    #[error("cannot be read: {0}")]
    Input(#[from] io::Error),
}

/// Encodes a value as a line.
pub(super) fn line(value: &impl Serialize) -> Result<Vec<u8>, LineError> {
    let mut line = serde_json::to_vec(value).map_err(|error| LineError::Unsayable(error.to_string()))?;
    line.push(b'\n');
    if line.len() > LINE_BYTES_MAX { Err(LineError::TooLong) } else { Ok(line) }
}

/// Decodes the value of a line, with or without its line end.
pub(super) fn value<T: DeserializeOwned>(line: &str) -> Result<T, LineError> {
    /// Most bytes of a line that are quoted.
    const QUOTED: usize = 80;
    serde_json::from_str(line).map_err(|error| LineError::NotOurs {
        reason: escape::escaped(&error.to_string()).into_owned(),
        beginning: line.trim().chars().take(QUOTED).collect(),
    })
}

/// Decodes an answer of the other side. Its texts reach terminals and reports, so those that act there are escaped.
pub(super) fn answered(line: &str) -> Result<Answered, LineError> {
    if escape::is_harmless(line) {
        return value(line);
    }
    let mut found: serde_json::Value = value(line)?;
    escape::escape_all(&mut found);
    value(&found.to_string())
}

/// The next line; `None` at the end of the input. It keeps at most the longest allowed line in memory.
pub(super) fn next_line(input: &mut impl BufRead) -> Result<Option<String>, LineError> {
    let mut line = Vec::new();
    let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let length = input.by_ref().take(limit).read_until(b'\n', &mut line)?;
    if length == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        let is_full = length == LINE_BYTES_MAX;
        return Err(if is_full { LineError::TooLong } else { LineError::CutOff { bytes: length } });
    }
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// An address as the laboratory writes it into a question.
pub(super) fn shown(addresses: &[IpAddr]) -> String {
    let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;
    use crate::process::hosted::{Look, SliceUse};

    /// Returns at most this many bytes per read.
    struct Pieces<'a> {
        bytes: &'a [u8],
        each: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.bytes.len().min(self.each).min(into.len());
            let (now, later) = self.bytes.split_at(length);
            into[..length].copy_from_slice(now);
            self.bytes = later;
            Ok(length)
        }
    }

    fn all(bytes: &[u8], each: usize) -> Result<Vec<String>, LineError> {
        let mut input = BufReader::with_capacity(16, Pieces { bytes, each });
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input)? {
            lines.push(line);
        }
        Ok(lines)
    }

    fn commands() -> impl Strategy<Value = RoundCommand> {
        let arms = || proptest::collection::vec(any::<u32>(), 0..4);
        let of = prop_oneof![
            Just(SliceUse::WarmUp),
            Just(SliceUse::Timed),
            Just(SliceUse::Evidence(Look::Strace)),
            any::<u32>().prop_map(|place| SliceUse::Evidence(Look::FewerPrograms(place))),
        ];
        prop_oneof![
            arms().prop_map(|arms| RoundCommand::Rest { arms }),
            any::<u32>().prop_map(|arm| RoundCommand::Enter { arm }),
            (any::<u32>(), of).prop_map(|(arm, of)| RoundCommand::BeginSlice { arm, of }),
            any::<u32>().prop_map(|arm| RoundCommand::EndSlice { arm }),
            (arms(), any::<u32>()).prop_map(|(arms, loaded)| RoundCommand::EndTimed { arms, loaded }),
            (any::<u32>(), any::<bool>()).prop_map(|(arm, waits)| RoundCommand::HasEnded { arm, waits }),
            Just(RoundCommand::Totals),
            Just(RoundCommand::Stop),
        ]
    }

    proptest! {
        #[test]
        fn a_question_is_one_line_that_says_it_however_it_is_cut(
            asked in proptest::collection::vec((any::<u64>(), commands()), 1..5),
            each in 1_usize..40,
        ) {
            let asked: Vec<Asked> = asked
                .into_iter()
                .map(|(number, command)| Asked { number, question: Question::Step(command) })
                .collect();
            let bytes: Vec<u8> = asked.iter().flat_map(|asked| line(asked).expect("it is short")).collect();
            let lines = all(&bytes, each).expect("they are whole");
            let heard: Vec<Asked> = lines.iter().map(|line| value(line).expect("it is ours")).collect();
            prop_assert_eq!(heard, asked);
        }

        #[test]
        fn no_line_is_taken_for_another_and_none_is_fatal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(lines) = all(&bytes, 7) {
                for line in lines {
                    let _ = value::<Asked>(&line);
                    let _ = answered(&line);
                }
            }
        }

        #[test]
        fn a_refusal_keeps_its_kind(reason in ".{0,40}", number in any::<u64>()) {
            for refused in [Refused::Interrupted, Refused::Usage(reason.clone()), Refused::Environment(reason)] {
                let told = Answered { number, answer: Err(refused) };
                let said = String::from_utf8(line(&told).expect("it is short")).expect("it is text");
                prop_assert_eq!(value::<Answered>(&said).expect("it is ours"), told);
            }
        }
    }

    #[test]
    fn texts_of_an_answer_act_on_no_terminal() {
        let said = |reason: &str| Answered { number: 1, answer: Err(Refused::Usage(reason.to_owned())) };
        let heard = |reason: &str| {
            let line = String::from_utf8(line(&said(reason)).expect("it is short")).expect("it is text");
            answered(line.trim_end()).expect("it is ours")
        };
        assert_eq!(heard("no \u{1b}[2Jroute\nweir: fine"), said("no \\u{1b}[2Jroute\\nweir: fine"));
        assert_eq!(heard("\u{9d}0;title\u{9c}"), said("\\u{9d}0;title\\u{9c}"));
        assert_eq!(heard("a \"quoted\" name, 이름"), said("a \"quoted\" name, 이름"));
        let error =
            answered("{\"number\":1,\"answer\":{\"Ok\":\"\\u001b[31m\"}}").expect_err("it is nothing");
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }

    #[test]
    fn a_line_has_a_longest_length_and_an_end() {
        let longest = [vec![b'x'; LINE_BYTES_MAX - 1], b"\n".to_vec()].concat();
        assert_eq!(all(&longest, 1 << 16).expect("it is as long as it may be")[0].len(), LINE_BYTES_MAX - 1);
        let longer = [vec![b'x'; LINE_BYTES_MAX], b"\n".to_vec()].concat();
        assert!(matches!(all(&longer, 1 << 16), Err(LineError::TooLong)));
        assert!(matches!(all(b"{\"number\":1", 3), Err(LineError::CutOff { bytes: 11 })));
        assert!(all(b"", 1).is_ok_and(|lines| lines.is_empty()));
        let error = value::<Asked>("Welcome to b!").expect_err("it is a greeting").to_string();
        assert!(error.contains("none of ours") && error.contains("Welcome to b!"), "{error}");
    }
}
