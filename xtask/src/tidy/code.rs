//! Rules about the contents of a Rust file: its header and the constants named there, `unsafe`, marks of unfinished
//! work, sleeping tests, and I/O or clocks in crates that promise to have none.

use super::{
    Finding, file_name,
    lexer::{Source, is_name_char, words},
};

/// A file or a folder (ending in `/`) in which `unsafe` is allowed, and why.
struct UnsafePlace {
    path: &'static str,
    reason: &'static str,
}

const UNSAFE_PLACES: &[UnsafePlace] = &[
    UnsafePlace { path: "crates/weir-sys/src/", reason: "wraps system calls so that callers need none" },
    UnsafePlace { path: "crates/weir-controls/src/", reason: "minimal loops written straight to the kernel" },
    UnsafePlace {
        path: "crates/weir-engine/src/driver/uring/",
        reason: "queue entries carry pointers to memory that in-flight operations own",
    },
    UnsafePlace {
        path: "crates/weir-engine/tests/it/kernel.rs",
        reason: "signals, seccomp and limits, as the conformance cases need them",
    },
    UnsafePlace {
        path: "crates/weir-engine/src/pool.rs",
        reason: "the receive pool hands its memory to the kernel and takes it back",
    },
    UnsafePlace {
        path: "crates/weir-engine/src/executor/waker.rs",
        reason: "a waker is a hand-made table of functions",
    },
    UnsafePlace {
        path: "crates/weir-engine/src/handoff/ring.rs",
        reason: "slots of a ring belong to one of its two sides at a time",
    },
    UnsafePlace {
        path: "crates/weir-engine/src/handoff/armed.rs",
        reason: "nodes of a queue belong to one thread at a time",
    },
    UnsafePlace {
        path: "crates/weir-engine/src/handoff/port.rs",
        reason: "a port moves to its thread once, and checks it from then on",
    },
    UnsafePlace {
        path: "crates/weir-engine/benches/handoff.rs",
        reason: "messages between rings straight to the kernel, as a reference",
    },
    UnsafePlace {
        path: "crates/weir-proto/tests/allocations/counting.rs",
        reason: "an allocator that counts shows what takes no memory",
    },
];

/// Crates that do no I/O and read no clock.
const PURE_CRATES: &[&str] = &[
    "crates/weir-engine-types/",
    "crates/weir-judge/",
    "crates/weir-proto/",
    "crates/weir-record/",
    "crates/weir-report/",
    "crates/weir-stats/",
    "crates/weir-trading/",
];

/// Names that a pure crate must not use.
const IMPURE: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "env::var",
    "fs::",
    "std::net",
    "std::os",
    "std::process",
    "stdin()",
    "stdout()",
    "stderr()",
    "thread::",
];

/// Prefixes of foreign constants, from the kernel and the environment, which a header may name although the file does
/// not contain them.
const FOREIGN_CONSTANTS: &[&str] =
    &["CONFIG_", "IORING_", "IOSQE_", "MSG_", "O_", "PR_", "RWF_", "SO_", "TCP_", "WEIR_"];

/// Every file below a `src` folder starts with a header that describes it.
pub fn check_header(path: &str, text: &str) -> Vec<Finding> {
    let below_src = path.split('/').rev().skip(1).any(|folder| folder == "src");
    if !below_src || text.starts_with("//!") {
        return Vec::new();
    }
    vec![Finding::new(path, 1, "header", "open the file with `//!`: what it is and what it is not")]
}

/// The constants named in a header must exist in the file: a safety argument that rests on a removed name proves
/// nothing. rustdoc checks paths and links to other files.
pub fn check_header_constants(path: &str, source: &Source) -> Vec<Finding> {
    let code_and_literals = source.without_comments();
    let is_constant = |name: &&str| {
        name.len() > 2
            && name.starts_with(|first: char| first.is_ascii_uppercase())
            && name
                .chars()
                .all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
    };
    let is_foreign = |name: &str| {
        // Error numbers, such as `EAGAIN`.
        let is_error = name.starts_with('E') && !name.contains('_');
        is_error || FOREIGN_CONSTANTS.iter().any(|start| name.starts_with(start))
    };
    let header = source.text.lines().enumerate().filter(|(_, line)| line.starts_with("//!"));
    let named =
        header.flat_map(|(at, line)| line.split('`').skip(1).step_by(2).map(move |name| (at + 1, name)));
    named
        .filter(|(_, name)| {
            is_constant(name) && !is_foreign(name) && words(&code_and_literals, name).next().is_none()
        })
        .map(|(line, name)| {
            let message = format!("the header speaks of `{name}`, which the file does not have");
            Finding::new(path, line, "header-constant", message)
        })
        .collect()
}

/// `unsafe` is used only where the table allows it.
pub fn check_unsafe(path: &str, source: &Source) -> Vec<Finding> {
    let allowed = UNSAFE_PLACES.iter().any(|place| {
        debug_assert!(!place.reason.is_empty());
        if place.path.ends_with('/') { path.starts_with(place.path) } else { path == place.path }
    });
    if allowed {
        return Vec::new();
    }
    let message = "`unsafe` outside its allow-list; wrap it in weir-sys";
    words(&source.code, "unsafe")
        .map(|offset| Finding::new(path, source.line_at(offset), "unsafe", message))
        .collect()
}

/// Marks of unfinished work, debugging aids and disabled tests.
pub fn check_leftovers(path: &str, source: &Source) -> Vec<Finding> {
    let macros = ["todo!", "unimplemented!", "dbg!"].into_iter();
    let in_code = macros.flat_map(|word| words(&source.code, word).map(move |offset| (offset, word)));
    let attributes = source.code.match_indices("#[ignore").map(|(offset, _)| (offset, "#[ignore]"));
    let marks = super::prose::MARKS.iter();
    let in_comments =
        marks.flat_map(|word| words(&source.code_and_comments, word).map(move |offset| (offset, *word)));
    in_code
        .chain(attributes)
        .chain(in_comments)
        .map(|(offset, word)| super::prose::leftover(path, source.line_at(offset), word))
        .collect()
}

/// Tests wait for events, never for time to pass.
pub fn check_test_sleeps(path: &str, source: &Source) -> Vec<Finding> {
    let whole_file_is_test = path.split('/').any(|part| part == "tests")
        || matches!(file_name(path), "tests.rs" | "test.rs" | "conformance.rs");
    let ranges = source.test_ranges();
    let in_test = |offset: usize| whole_file_is_test || ranges.iter().any(|range| range.contains(&offset));
    let message = "a test sleeps; wait for the event itself, or use virtual time";
    ["thread::sleep", "thread::{sleep"]
        .into_iter()
        .flat_map(|call| source.code.match_indices(call))
        .filter(|(offset, _)| in_test(*offset))
        .map(|(offset, _)| Finding::new(path, source.line_at(offset), "test-sleep", message))
        .collect()
}

/// Pure crates touch nothing outside their arguments; their tests may.
pub fn check_purity(path: &str, source: &Source) -> Vec<Finding> {
    let pure =
        PURE_CRATES.iter().any(|name| path.strip_prefix(name).is_some_and(|rest| rest.starts_with("src/")));
    if !pure {
        return Vec::new();
    }
    let ranges = source.test_ranges();
    let mut findings = Vec::new();
    for needle in IMPURE {
        for (offset, _) in source.code.match_indices(needle) {
            let part_of_a_name = source.code[..offset].chars().next_back().is_some_and(is_name_char);
            if part_of_a_name || ranges.iter().any(|range| range.contains(&offset)) {
                continue;
            }
            let message = format!("`{needle}` in a crate that does no I/O and reads no clock");
            findings.push(Finding::new(path, source.line_at(offset), "purity", message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_file_without_a_header_is_found_below_src_only() {
        assert_eq!(lines(&check_header("crates/a/src/b/c.rs", "use x;\n")), [1]);
        assert!(check_header("crates/a/src/b/c.rs", "//! C.\n").is_empty());
        assert!(check_header("crates/a/tests/it.rs", "use x;\n").is_empty());
    }

    #[test]
    fn a_constant_of_a_header_is_in_the_file_or_somebody_elses() {
        let found = |text: &str| lines(&check_header_constants("a.rs", &Source::new(text)));
        assert_eq!(found("//! A.\n//! It is `ARMED` or [`FREE`].\n// ARMED\nconst FREE: u8 = 1;\n"), [2]);
        assert!(
            found("//! `GET`, `EAGAIN`, `SO_LINGER`, `crate::MAX`, `Armed`, `W`.\nlet a = \"GET\";\n")
                .is_empty()
        );
        assert_eq!(found("//! `FREE`.\nconst FREED: u8 = 1;\n"), [1]);
    }

    #[test]
    fn unsafe_is_found_outside_the_list_and_only_in_code() {
        let source =
            Source::new("// unsafe\nfn f() { g(\"unsafe\") }\nunsafe fn h() {}\n#[unsafe(no_mangle)]\n");
        assert_eq!(lines(&check_unsafe("crates/weir-lab/src/lib.rs", &source)), [3, 4]);
        assert_eq!(lines(&check_unsafe("crates/weir-engine/src/driver/epoll.rs", &source)), [3, 4]);
        assert_eq!(lines(&check_unsafe("crates/weir-engine/src/pool.rs.rs", &source)), [3, 4]);
        assert!(check_unsafe("crates/weir-engine/src/driver/uring/ring.rs", &source).is_empty());
        assert!(check_unsafe("crates/weir-engine/src/pool.rs", &source).is_empty());
    }

    #[test]
    fn every_unsafe_place_has_a_reason() {
        assert!(UNSAFE_PLACES.iter().all(|place| place.reason.split(' ').count() > 3));
    }

    #[test]
    fn leftovers_are_found_in_code_and_comments_but_not_in_strings() {
        let source = Source::new("todo!();\ndbg!(x);\n// FIXME: y\n#[ignore]\n/// XXX\nunimplemented!()\n");
        assert_eq!(lines(&check_leftovers("a.rs", &source)), [1, 6, 2, 4, 3, 5]);
        let harmless = Source::new("\"TODO\"; not_todo!(); // mktemp XXXXXX, #[ignored]\n");
        assert!(check_leftovers("a.rs", &harmless).is_empty());
    }

    #[test]
    fn a_sleep_is_found_in_tests_and_allowed_elsewhere() {
        let text =
            "fn a() { thread::sleep(d) }\n#[cfg(test)]\nmod t {\nfn b() { std::thread::sleep(d) }\n}\n";
        let source = Source::new(text);
        assert_eq!(lines(&check_test_sleeps("crates/a/src/b.rs", &source)), [4]);
        assert_eq!(lines(&check_test_sleeps("crates/a/tests/it/b.rs", &source)), [1, 4]);
    }

    #[test]
    fn a_clock_in_a_pure_crate_is_found_outside_its_tests() {
        let source =
            Source::new("fn a() { Instant::now(); offs::x(); }\n#[cfg(test)] mod t { use std::fs::read; }\n");
        assert_eq!(lines(&check_purity("crates/weir-stats/src/lib.rs", &source)), [1]);
        assert!(check_purity("crates/weir-lab/src/lib.rs", &source).is_empty());
        assert!(check_purity("crates/weir-stats/tests/it.rs", &source).is_empty());
    }
}
