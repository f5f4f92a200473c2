//! Copies and starts the program on the other host: a script that a shell there reads from its input, and the lines
//! with which it answers. Pure.
//!
//! The script is one group of commands, so that a shell has read all of it before it runs any. Nothing else is sent
//! until the shell has answered, so a shell that reads ahead takes nothing away. The script needs `sh`, `uname`, `id`,
//! `ls`, `head`, `cut` and one of two programs that compute SHA-256.
//!
//! A user who may write to the folder of the program could replace it after its hash was checked. So the script uses
//! only folders and a program that belong to its user and that no other user may write to. It moves the program to its
//! place when it is whole. A copy that was cut off is removed when the next script begins: its name ends in the number
//! of the shell that wrote it.

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
    /// Other users may write to the folder, or own it.
    OpenFolder,
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
p=$f.$$
w() {{ printf '\n{MARK}%s\n' "$1"; }}
h() {{ {{ sha256sum || shasum -a 256; }} 2>/dev/null <"$1" | cut -c1-64; }}
o() {{ set -- $(ls -ldn "$1" 2>/dev/null); case $1 in ?????w*|????????w*) return 1;; esac; [ "$3" = "$(id -u)" ]; }}
s() {{ case $(ls -ldn "$1" 2>/dev/null) in ????????w[!tT]*) return 1;; esac; }}
m="found $(uname -s) $(uname -m)"
if [ -z "$c" ]; then w "$m no-folder"; exit 1; fi
if ! command -v sha256sum >/dev/null 2>&1 && ! command -v shasum >/dev/null 2>&1; then w "$m no-hash"; exit 1; fi
(umask 077 && mkdir -p "$d") || exit 1
if ! s "$c/" || ! o "$c/weir/" || ! o "$d/"; then w "$m open-folder"; exit 1; fi
for x in "$f".*; do kill -0 "${{x##*.}}" 2>/dev/null || rm -f "$x"; done
if [ -x "$f" ] && o "$f" && [ "$(h "$f")" = {hash} ]; then
w "$m there"
else
w "$m needed"
rm -f "$f"
(umask 077 && head -c {length} >"$p" && chmod 700 "$p") || {{ rm -f "$p"; exit 1; }}
if [ "$(h "$p")" != {hash} ]; then rm -f "$p"; w damaged; exit 1; fi
mv "$p" "$f" || {{ rm -f "$p"; exit 1; }}
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
                "open-folder" => Copy::OpenFolder,
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
        os::unix::fs::{DirBuilderExt, PermissionsExt, chown},
        path::{Path, PathBuf},
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
        private(&folder);
        folder
    }

    /// Makes a folder with its parents, whatever the umask.
    fn private(folder: &Path) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder can be made");
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    /// Puts the program where the script looks for it, and returns its place.
    fn placed(cache: &Path) -> PathBuf {
        let place = cache.join("weir").join(program().hash).join("weir");
        private(place.parent().expect("a folder"));
        // By another process: a child that another test has forked keeps this process's open files until it runs its
        // own program, and the kernel runs no file that is open for writing.
        let mut writer = Command::new("sh");
        writer.args(["-c", "cat >\"$0\" && chmod 700 \"$0\""]).arg(&place).stdin(Stdio::piped());
        let mut writer = writer.spawn().expect("there is a shell");
        let mut input = writer.stdin.take().expect("it has an input");
        input.write_all(AGENT).expect("it is read");
        drop(input);
        assert!(writer.wait().expect("it ends").success());
        place
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
            placed(&cache);
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
    fn a_program_that_another_user_could_replace_is_not_run() {
        let cache = cache("open");
        let here = |command: &mut Command| {
            command.env("XDG_CACHE_HOME", &cache);
        };
        let place = placed(&cache);
        let folder = place.parent().expect("a folder").to_path_buf();
        let parent = cache.join("weir");
        let is_refused = || {
            let (lines, output) = run(here, b"");
            assert!(!lines.iter().any(|line| line.starts_with("ran ")), "{output:?}");
            matches!(all_said(&lines)[..], [Said::Found { copy: Copy::OpenFolder, .. }])
        };
        for (path, usual) in [(&parent, 0o700), (&folder, 0o700), (&cache, 0o700)] {
            set_mode(path, 0o777);
            assert!(is_refused(), "{}", path.display());
            set_mode(path, usual);
        }
        set_mode(&folder, 0o770);
        assert!(is_refused(), "a group may write to it");
        set_mode(&folder, 0o700);
        // Only root can give something away.
        if chown(&folder, Some(65_534), None).is_ok() {
            assert!(is_refused(), "it is another user's");
            chown(&folder, Some(0), None).expect("it can be taken back");
        }
        // Nobody else's file is run, even where it is the program now.
        set_mode(&place, 0o777);
        let (lines, _) = run(here, b"");
        assert!(
            matches!(all_said(&lines)[..], [Said::Found { copy: Copy::Needed, .. }, Said::Damaged]),
            "{lines:?}"
        );
        placed(&cache);
        // A cache of everybody's is right with the sticky bit, as the temporary folder has it.
        set_mode(&cache, 0o1777);
        let (lines, output) = run(here, b"");
        assert!(
            matches!(all_said(&lines)[..], [Said::Found { copy: Copy::There, .. }, Said::Ready]),
            "{output:?}"
        );
        fs::remove_dir_all(&cache).expect("it can be removed");
    }

    #[test]
    fn copies_that_were_cut_off_are_removed_and_those_of_others_that_run_are_not() {
        let cache = cache("partial");
        let here = |command: &mut Command| {
            command.env("XDG_CACHE_HOME", &cache);
        };
        let place = placed(&cache);
        let mut ended = Command::new("true").spawn().expect("it starts");
        ended.wait().expect("it ends");
        let of = |pid: u32| place.with_file_name(format!("weir.{pid}"));
        let (old, new) = (of(ended.id()), of(std::process::id()));
        fs::write(&old, "half").expect("it can be written");
        fs::write(&new, "half").expect("it can be written");
        let (_, output) = run(here, b"");
        assert!(!old.exists() && new.exists() && place.exists(), "{output:?}");
        // Its own, when the connection ends before the program has come.
        fs::remove_file(&place).expect("it is there");
        let (lines, _) = run(here, &AGENT[..7]);
        assert!(
            matches!(all_said(&lines)[..], [Said::Found { copy: Copy::Needed, .. }, Said::Damaged]),
            "{lines:?}"
        );
        let left = fs::read_dir(place.parent().expect("a folder")).expect("it is there").count();
        assert_eq!(left, 1, "the copy of the one that still runs");
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
