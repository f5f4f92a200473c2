//! Containers: their identifiers in paths of control groups, and the runtimes that know their names.
//!
//! docker, podman, containerd and CRI-O write the identifier of a container, 64 digits, into the path of its control
//! group; LXC and systemd-nspawn write its name there. Only docker or podman know the names that they gave, so they
//! are asked, and only for such a name.

use std::{
    collections::BTreeSet,
    io::Read,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use weir_record::observation::FoundContainer;

use super::{Candidate, Rule, SelectionError, Wanted, near};
use crate::files;

/// Runtimes that know containers by name.
const RUNTIMES: [(&str, FoundContainer); 2] =
    [("docker", FoundContainer::Docker), ("podman", FoundContainer::Podman)];
/// Longest wait for one of them: its service may hang.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 4096;
/// Digits of an identifier.
const IDENTIFIER_DIGITS: usize = 64;
/// Digits of a short identifier, as `docker ps` prints them.
const SHORT_DIGITS: usize = 12;
/// A text with fewer digits is a name.
const DIGITS_MIN: usize = 4;

/// Answer of a container runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub program: &'static str,
    /// Its answer.
    pub answer: Answer,
}

/// Whether a container exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It exists: its identifier, and its first process, if it runs.
    Known {
        /// 64 digits.
        identifier: String,
        /// Process number.
        first: Option<u32>,
    },
    /// It does not exist, or the runtime failed; contains its message.
    Refused(String),
    /// It is not installed.
    NotInstalled,
    /// It did not answer in time.
    Silent,
}

pub(super) struct Container {
    pub(super) rule: Rule,
    pub(super) how: FoundContainer,
}

/// Finds a container by the start of its identifier or by its name in a path, or else by asking the runtimes.
pub(super) fn find(
    text: &str,
    all: &[Candidate],
    ask: &dyn Fn(&str) -> Vec<Asked>,
) -> Result<Container, SelectionError> {
    let parts = || {
        let groups = all.iter().flat_map(|candidate| &candidate.cgroups);
        groups.flat_map(|group| group.path.split('/'))
    };
    let is_identifier = text.len() >= DIGITS_MIN && text.bytes().all(is_digit);
    if is_identifier {
        let meant: BTreeSet<&str> =
            parts().filter_map(identifier).filter(|it| it.starts_with(text)).collect();
        match meant.into_iter().collect::<Vec<_>>()[..] {
            [] => {}
            [one] => {
                return Ok(Container { rule: Rule::Container(one.to_owned()), how: FoundContainer::Path });
            }
            ref several => {
                let short = several.iter().map(|it| it[..SHORT_DIGITS].to_owned()).collect();
                return Err(SelectionError::Several(short));
            }
        }
    }
    if let Some(part) = parts().find(|part| named(part) == Some(text)) {
        return Ok(Container { rule: Rule::Part(part.to_owned()), how: FoundContainer::Path });
    }
    let asked = ask(text);
    let known = asked.iter().find_map(|it| match &it.answer {
        Answer::Known { identifier, first } => Some((it.program, identifier, *first)),
        _ => None,
    });
    let Some((program, identifier, first)) = known else {
        let near = near(&Wanted::Container(text.to_owned()), all);
        return Err(SelectionError::Nothing { near, asked });
    };
    let by_path = Rule::Container(identifier.clone());
    // A container without its own control group is represented by its first process.
    let rule = match first {
        Some(pid) if !all.iter().any(|candidate| by_path.takes(candidate)) => Rule::Pids(vec![pid]),
        _ => by_path,
    };
    let how =
        RUNTIMES.iter().find(|(name, _)| *name == program).map_or(FoundContainer::Path, |(_, how)| *how);
    Ok(Container { rule, how })
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// The container identifier in a path component: `docker-ID.scope`, `libpod-ID.scope`, `cri-containerd-ID.scope`,
/// `crio-ID.scope`, or `ID` alone. The component of its monitor process does not count.
pub(super) fn identifier(part: &str) -> Option<&str> {
    let part = part.strip_suffix(".scope").unwrap_or(part);
    let last = part.rsplit(['-', ':']).next()?;
    let is_of_watcher = part.contains("conmon");
    let is_whole = last.len() == IDENTIFIER_DIGITS && last.bytes().all(is_digit);
    (is_whole && !is_of_watcher).then_some(last)
}

/// The name of the container or machine in a path component.
fn named(part: &str) -> Option<&str> {
    let machine = part.strip_prefix("machine-").and_then(|rest| rest.strip_suffix(".scope"));
    machine.or_else(|| part.strip_prefix("lxc.payload."))
}

/// Containers in a path, in the form of an error message.
pub(super) fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| identifier(part).map(|it| &it[..SHORT_DIGITS]).or_else(|| named(part)))
}

/// Asks the installed runtimes.
pub fn ask_runtimes(name: &str) -> Vec<Asked> {
    RUNTIMES.iter().map(|&(program, _)| Asked { program, answer: asked(program, name) }).collect()
}

fn asked(program: &str, name: &str) -> Answer {
    if !files::is_in_path(program) {
        return Answer::NotInstalled;
    }
    let format = "{{.Id}} {{.State.Pid}}";
    let started = Command::new(program)
        .args(["inspect", "--type", "container", "--format", format, "--", name])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    match started {
        Err(error) => Answer::Refused(error.to_string()),
        Ok(child) => answer_of(child),
    }
}

/// Waits for a child's answer, and kills it after too long.
fn answer_of(mut child: Child) -> Answer {
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < ANSWER_MAX => thread::park_timeout(Duration::from_millis(10)),
            Ok(None) | Err(_) => {
                // Fails only if it has already ended.
                let _ = child.kill().and_then(|()| child.wait());
                return Answer::Silent;
            }
        }
    };
    let text = |pipe: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        // Unreadable output counts as empty.
        let _ = pipe.map(|pipe| pipe.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).trim().to_owned()
    };
    if !status.success() {
        let said = text(child.stderr.as_mut().map(|pipe| pipe as &mut dyn Read));
        return Answer::Refused(said.lines().last().unwrap_or_default().to_owned());
    }
    let said = text(child.stdout.as_mut().map(|pipe| pipe as &mut dyn Read));
    answer(&said)
}

/// Parses `IDENTIFIER PID`, with 0 if it does not run.
fn answer(said: &str) -> Answer {
    let mut words = said.split_ascii_whitespace();
    match words.next().and_then(identifier) {
        Some(identifier) => {
            let first = words.next().and_then(|word| word.parse().ok()).filter(|pid| *pid > 0);
            Answer::Known { identifier: identifier.to_owned(), first }
        }
        None => Answer::Refused(said.lines().next().unwrap_or_default().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn an_identifier_is_found_in_the_paths_that_each_runtime_makes() {
        for part in [
            ID.to_owned(),
            format!("docker-{ID}.scope"),
            format!("libpod-{ID}.scope"),
            format!("cri-containerd-{ID}.scope"),
            format!("kubepods-burstable-pod7.slice:cri-containerd:{ID}"),
        ] {
            assert_eq!(identifier(&part), Some(ID), "{part}");
        }
        for part in [&ID[1..], "docker.service", "", &format!("libpod-conmon-{ID}.scope"), &ID.to_uppercase()]
        {
            assert_eq!(identifier(part), None, "{part}");
        }
    }

    #[test]
    fn an_answer_is_an_identifier_and_a_process_or_words() {
        let known = |first| Answer::Known { identifier: ID.to_owned(), first };
        assert_eq!(answer(&format!("{ID} 4711\n")), known(Some(4711)));
        assert_eq!(answer(&format!("{ID} 0")), known(None));
        assert_eq!(answer(ID), known(None));
        assert_eq!(answer("no such object"), Answer::Refused("no such object".to_owned()));
        assert_eq!(answer(""), Answer::Refused(String::new()));
    }
}
