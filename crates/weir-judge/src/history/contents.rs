//! Whether the files of a record are all of a program. A shell, or a program that starts another one, may run something
//! else each time although its words are the same. Such a program is not known to be the one of another run.
//!
//! A program that is known here may load libraries, modules and data that no word names.

/// Programs that run the rest of their words as a program.
const WRAPPERS: [&str; 14] = [
    "chrt", "env", "ionice", "nice", "nohup", "numactl", "runuser", "setpriv", "setsid", "stdbuf", "sudo",
    "taskset", "time", "timeout",
];

/// Programs that run a file, which one of their words names, or a text.
const INTERPRETERS: [&str; 18] = [
    "ash", "bash", "bun", "dash", "deno", "fish", "java", "ksh", "lua", "node", "perl", "php", "pypy",
    "python", "Rscript", "ruby", "sh", "zsh",
];

/// Programs that run programs which no word names by its file.
const RUNNERS: [&str; 20] = [
    "busybox",
    "cargo",
    "chroot",
    "docker",
    "dotnet",
    "find",
    "go",
    "make",
    "ninja",
    "npm",
    "npx",
    "nsenter",
    "parallel",
    "perf",
    "podman",
    "ssh",
    "strace",
    "systemd-run",
    "unshare",
    "xargs",
];

/// Whether the content of the program that words start is known, where `is_file` says of which words it is.
pub(super) fn is_known(words: &[String], is_file: impl Fn(&str) -> bool) -> bool {
    let mut rest = words;
    while let Some((program, after)) = rest.split_first() {
        let name = name(program);
        if RUNNERS.contains(&name) {
            return false;
        }
        if !WRAPPERS.contains(&name) {
            // A wrapper finds a name in the path of programs, and the record has only files of folders.
            let is_own = rest.len() == words.len() || program.contains('/');
            let runs_file = !INTERPRETERS.contains(&name) || names_its_file(after, &is_file);
            return is_own && is_file(program) && runs_file;
        }
        let Some(place) = after.iter().position(|word| may_be_program(word)) else { return false };
        // The program is then looked up in another folder.
        if after[..place].iter().any(|word| ["-C", "-D", "--chdir"].iter().any(|flag| word.starts_with(flag)))
        {
            return false;
        }
        rest = &after[place..];
    }
    false
}

/// The name of a program without a version: `python3.12` is python.
fn name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.')
}

/// Whether an interpreter runs a file that is known, and not a text or a module.
fn names_its_file(words: &[String], is_file: &impl Fn(&str) -> bool) -> bool {
    let is_text = |word: &String| {
        word == "-m" || word.starts_with('-') && !word.starts_with("--") && word.contains('c')
    };
    let file = words.iter().position(|word| is_file(word));
    file.is_some_and(|place| !words[..place].iter().any(is_text))
}

/// Whether a word of a wrapper may be the program that it runs: it is no option, no number and no variable. A word that
/// belongs to an option is taken for the program; its content is not known, so nothing wrong follows.
fn may_be_program(word: &str) -> bool {
    let is_other =
        word.starts_with(|first: char| first == '-' || first.is_ascii_digit()) || word.contains('=');
    !word.is_empty() && !is_other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_or_another_program_starts_is_known_only_by_its_file() {
        let files =
            ["sort", "/b/app", "./app", "sh", "old.sh", "python3.12", "script.py", "/usr/bin/taskset"];
        let of = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            is_known(&words, |word| files.contains(&word))
        };
        for known in [
            "sort big.txt",
            "/b/app --check",
            "sh old.sh",
            "sh -e old.sh",
            "python3.12 script.py",
            "taskset -c 0 /b/app",
            "/usr/bin/taskset 0x3 nice -n 10 ./app x",
            "env LC_ALL=C timeout 5s /b/app",
        ] {
            assert!(of(known), "{known}");
        }
        for unknown in [
            "",
            "other",
            "sh -c ./app",
            "sh -ec ./app old.sh",
            "sh other.sh",
            "python3.12 -m server script.py",
            "env -C head ./app",
            "env --chdir=head ./app",
            "env",
            "nice sort",
            "nice other",
            "sudo -u somebody /b/app",
            "docker run /b/app",
            "cargo run",
        ] {
            assert!(!of(unknown), "{unknown}");
        }
    }
}
