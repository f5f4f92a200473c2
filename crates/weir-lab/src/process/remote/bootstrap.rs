//! Copies and starts the program on the other host: a script that a shell there reads from its input, and the lines
//! with which it answers. Pure.
//!
//! The script is one group of commands, so that a shell has read all of it before it runs any. Nothing else is sent
//! until the shell has answered, so a shell that reads ahead takes nothing away. The script needs `sh`, `uname`,
//! `head`, `cut` and one of two programs that compute SHA-256.

/// Prefix of every line of the script's output. No login shell prints it.
const MARK: &str = "weir-agent: ";

/// A program, identified by its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// SHA-256, in hexadecimal digits.
    pub(super) hash: String,
    pub(super) length: usize,
}

/// A message of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The machine (`uname -s`, `uname -m`), and whether the program is there.
    Found { system: String, machine: String, copy: Copy },
    /// The received bytes are not the program.
    Damaged,
    /// The program is about to begin.
    Ready,
}

/// Whether the program must be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    There,
    Needed,
    /// The user has no folder for it.
    NoFolder,
    /// No program computes the hash, so the copy could not be verified.
    NoHash,
}

/// The script. The agent receives the name of the session, by which it recognises an earlier agent of the same
/// session.
pub(super) fn script(program: &Program, session: &str) -> String {
    let Program { hash, length } = program;
    format!(
        r#"{{
c=${{XDG_CACHE_HOME:-${{HOME:+$HOME/.cache}}}}
d=$c/weir/{hash}
f=$d/weir
w() {{ printf '\n{MARK}%s\n' "$1"; }}
h() {{ {{ sha256sum || shasum -a 256; }} 2>/dev/null <"$f" | cut -c1-64; }}
m="found $(uname -s) $(uname -m)"
if [ -z "$c" ]; then w "$m no-folder"; exit 1; fi
if ! command -v sha256sum >/dev/null 2>&1 && ! command -v shasum >/dev/null 2>&1; then w "$m no-hash"; exit 1; fi
if [ -x "$f" ] && [ "$(h)" = {hash} ]; then
w "$m there"
else
w "$m needed"
(umask 077 && mkdir -p "$d" && head -c {length} >"$f.$$" && chmod 700 "$f.$$" && mv "$f.$$" "$f") || exit 1
if [ "$(h)" != {hash} ]; then rm -f "$f"; w damaged; exit 1; fi
fi
w ready
exec "$f" agent --stdio --session {session}
}}
"#
    )
}

/// Parses a line; `None` if the script did not print it.
pub(super) fn said(line: &str) -> Option<Said> {
    let mut words = line.strip_prefix(MARK)?.split_whitespace();
    let said = match words.next()? {
        "found" => {
            let (system, machine) = (words.next()?.to_owned(), words.next()?.to_owned());
            let copy = match words.next()? {
                "there" => Copy::There,
                "needed" => Copy::Needed,
                "no-folder" => Copy::NoFolder,
                "no-hash" => Copy::NoHash,
                _ => return None,
            };
            Said::Found { system, machine, copy }
        }
        "damaged" => Said::Damaged,
        "ready" => Said::Ready,
        _ => return None,
    };
    words.next().is_none().then_some(said)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Write,
        path::PathBuf,
        process::{Command, Output, Stdio},
    };

    use sha2::{Digest, Sha256};

    use super::*;

    /// A program in place of `weir`, which prints its arguments and its input.
    const AGENT: &[u8] = b"#!/bin/sh\necho \"ran $*\"\nread word\necho \"read $word\"\n";

    fn program() -> Program {
        let hash = Sha256::digest(AGENT).iter().map(|byte| format!("{byte:02x}")).collect();
        Program { hash, length: AGENT.len() }
    }

    fn cache(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-bootstrap-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder can be made");
        folder
    }

    /// Runs the script in a shell of this machine, whose input continues with these bytes.
    fn run(change: impl FnOnce(&mut Command), input: &[u8]) -> (Vec<String>, Output) {
        let mut command = Command::new("sh");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().expect("there is a shell");
        let mut stdin = child.stdin.take().expect("it has an input");
        // A shell that ends early does not read the rest.
        let _ = stdin.write_all(script(&program(), "5").as_bytes()).and_then(|()| stdin.write_all(input));
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let lines = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        (lines, output)
    }

    fn all_said(lines: &[String]) -> Vec<Said> {
        lines.iter().filter_map(|line| said(line)).collect()
    }

    #[test]
    fn a_program_is_copied_once_and_checked_each_time() {
        let cache = cache("once");
        let here = |command: &mut Command| {
            command.env("XDG_CACHE_HOME", &cache);
        };
        // A real shell receives the bytes only after it has asked for them; `dash` would read ahead here.
        let is_patient = fs::read_link("/bin/sh").is_ok_and(|shell| shell.ends_with("bash"));
        let place = cache.join("weir").join(program().hash).join("weir");
        if is_patient {
            let (lines, output) = run(here, &[AGENT, b"words\n"].concat());
            let said = all_said(&lines);
            assert!(matches!(said[..], [Said::Found { copy: Copy::Needed, .. }, Said::Ready]), "{output:?}");
        } else {
            fs::create_dir_all(place.parent().expect("a folder")).expect("a folder can be made");
            fs::write(&place, AGENT).expect("it can be written");
            assert!(Command::new("chmod").arg("700").arg(&place).status().expect("chmod").success());
        }
        let (lines, output) = run(here, b"");
        assert!(
            matches!(all_said(&lines)[..], [Said::Found { copy: Copy::There, .. }, Said::Ready]),
            "{output:?}"
        );
        assert!(lines.iter().any(|line| line == "ran agent --stdio --session 5"), "{lines:?}");
        fs::write(&place, b"#!/bin/sh\necho evil\n").expect("it can be written");
        let (lines, _) = run(here, b"");
        assert!(
            matches!(all_said(&lines)[..], [Said::Found { copy: Copy::Needed, .. }, Said::Damaged]),
            "{lines:?}"
        );
        assert!(!lines.iter().any(|line| line == "evil") && !place.exists(), "what is another is not run");
        fs::remove_dir_all(&cache).expect("it can be removed");
    }

    #[test]
    fn a_host_without_a_place_says_so() {
        let nowhere = |command: &mut Command| {
            command.env_remove("XDG_CACHE_HOME").env_remove("HOME");
        };
        let (lines, _) = run(nowhere, b"");
        assert!(matches!(all_said(&lines)[..], [Said::Found { copy: Copy::NoFolder, .. }]), "{lines:?}");
    }

    #[test]
    fn what_others_say_is_not_ours() {
        assert_eq!(said("Welcome to Ubuntu"), None);
        assert_eq!(said("weir-agent: found Linux x86_64 perhaps"), None);
        assert_eq!(said("weir-agent: ready now"), None);
        assert_eq!(said("weir-agent: ready"), Some(Said::Ready));
        let found = said("weir-agent: found Linux aarch64 needed").expect("it is ours");
        let Said::Found { machine, copy, .. } = found else { panic!("{found:?}") };
        assert_eq!((machine.as_str(), copy), ("aarch64", Copy::Needed));
    }
}
