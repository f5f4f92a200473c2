//! The order of top-level modules inside a crate: each may use those that stand before it, so that a reader can begin
//! at the first and never meets what comes later.
//!
//! It looks for `crate::` in code that is not a test; paths through `super` stay within a module's own folder here.

use std::collections::BTreeSet;

use super::{Finding, lexer::Source, tree::SourceFile};

/// Crates with a stated order, lowest first. Modules in one line, with blanks between them, may use each other; `*` is
/// a line of all that are not named.
const ORDERS: &[(&str, &[&str])] = &[
    (
        "weir-lab",
        &[
            "limits",
            "run_folder",
            "held",
            "stored",
            "host_defaults",
            "table",
            "io_models",
            "launch",
            "protocol",
            "alternation",
            "pilot",
            "validate",
            "file",
            "builtin",
            "outline",
            "time_left",
            "follow",
            "storage",
            "supervise",
            "process",
            "fake",
            "run",
            "exit",
            "export",
        ],
    ),
    (
        "weir-load",
        &[
            "payload",
            "pacer",
            "close_backoff",
            "spin",
            "warmup",
            "little",
            "error",
            "failure",
            "summary",
            "progress",
            "connection_notes",
            "recorder",
            "gather",
            "connector",
            "workload",
            "shared",
            "connection",
            "closed",
            "open",
            "slot",
            "single",
            // A specification holds its protocol, which has it carried.
            "spec protocol worker bench",
            "limits",
            "edges",
            "report",
            "run",
            "slices",
            // The protocols.
            "*",
        ],
    ),
    (
        "weir-judge",
        &[
            "bound",
            "sample",
            "syn_ladder",
            "missing",
            "threads",
            "histogram",
            "plan",
            "power",
            "exclusion",
            "gate",
            "cell_trials",
            "units",
            "equal_rate",
            "progress",
            "slice_order",
            "drift",
            "exclusion_balance",
            "listening",
            "thread_use",
            "sums",
            "account",
            "evidence",
            "strace",
            "summary",
            "attribution",
            "added_cost",
            "cause",
            "frontier",
            "grid interaction",
            "contrast",
            "guidance",
            "check",
            "obstacle",
            "latency_map",
            "across_cells",
            "scaling",
            "overview",
            "aggregate",
            "answers",
            "connection_costs",
            "judge",
            "compare",
        ],
    ),
    (
        "weir-report",
        &[
            "language",
            "format",
            "display",
            "words",
            "titles",
            "rung",
            "findings",
            "doctor",
            "csv",
            "slices_csv",
            "evidence_csv",
            "pidstat",
            "view",
            "maps",
            "metrics",
            // A table has charts and sentences, a section has tables.
            "table section",
            "definitions",
            "published",
            "io_models",
            "added_cost",
            "cause",
            "threads",
            // Tables stand behind charts, which are drawn in the page that has both.
            "overview aggregate connection_costs strace goals account evidence frontier sentence notes tables chart \
             contrasts guidance kernels sections html chart_page",
            "markdown",
            "terminal",
            "run_pair",
            "observation",
        ],
    ),
];

/// Modules that use a later one, and modules without a place.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let of_crate = |(name, order): &(&str, &[&str])| check_crate(files, name, order);
    ORDERS.iter().flat_map(of_crate).collect()
}

fn check_crate(files: &[SourceFile], name: &str, order: &[&str]) -> Vec<Finding> {
    let folder = format!("crates/{name}/src/");
    let own = files.iter().filter_map(|file| Some((module_of(file.path.strip_prefix(&folder)?)?, file)));
    let own: Vec<(&str, &SourceFile)> = own.collect();
    let is_named = |module: &str| order.iter().any(|line| line.split(' ').any(|name| name == module));
    let rest: BTreeSet<&str> = own.iter().map(|(module, _)| *module).filter(|it| !is_named(it)).collect();
    let rest = rest.into_iter().collect::<Vec<_>>().join(" ");
    let order: Vec<&str> = order.iter().map(|line| if *line == "*" { rest.as_str() } else { line }).collect();
    let mut findings: Vec<Finding> =
        own.iter().flat_map(|(module, file)| check_file(module, file, &order)).collect();
    let named = order.iter().flat_map(|line| line.split(' ')).filter(|module| !module.is_empty());
    let gone = named.filter(|module| own.iter().all(|(found, _)| found != module));
    if !own.is_empty() {
        findings.extend(gone.map(|module| {
            let message = format!("`{module}` of {name} is gone; take it out of ORDERS");
            Finding::new("xtask/src/tidy/modules.rs", 1, "modules", message)
        }));
    }
    findings
}

/// The top-level module a file belongs to; `None` for the crate's root and for what is no Rust.
fn module_of(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let module = if path.contains('/') { first } else { first.strip_suffix(".rs")? };
    (path.ends_with(".rs") && !["lib", "main"].contains(&module)).then_some(module)
}

fn check_file(module: &str, file: &SourceFile, order: &[&str]) -> Vec<Finding> {
    let Some(text) = file.text.as_deref() else { return Vec::new() };
    let place_of = |module: &str| order.iter().position(|line| line.split(' ').any(|name| name == module));
    let Some(place) = place_of(module) else {
        let message = format!("`{module}` has no place; add it to ORDERS in xtask/src/tidy/modules.rs");
        return vec![Finding::new(&file.path, 1, "modules", message)];
    };
    let source = Source::new(text);
    let tests = source.test_ranges();
    let used = used_modules(&source.code);
    let wrong = used.into_iter().filter(|(offset, used)| {
        let is_later = place_of(used).is_some_and(|other| other > place);
        is_later && !tests.iter().any(|range| range.contains(offset))
    });
    wrong
        .map(|(offset, used)| {
            let message = format!("`{module}` stands before `{used}` and must not use it");
            Finding::new(&file.path, source.line_at(offset), "modules", message)
        })
        .collect()
}

/// Names that follow `crate::`, one or several in braces, with their offsets.
fn used_modules(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (start, path) in code.match_indices("crate::") {
        if code[..start].ends_with('$') {
            continue;
        }
        let from = start + path.len();
        match code[from..].starts_with('{') {
            true => found.extend(names_in_braces(code, from)),
            false => found.push((from, name_at(&code[from..]))),
        }
    }
    found
}

/// The first name of each item between braces, nested ones left alone.
fn names_in_braces(code: &str, open: usize) -> Vec<(usize, &str)> {
    let (mut depth, mut begins, mut found) = (0, false, Vec::new());
    for (at, character) in code[open..].char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(character, '{' | ',') {
            begins = true;
        } else if begins && !character.is_whitespace() {
            begins = false;
            found.push((open + at, name_at(&code[open + at..])));
        }
    }
    found
}

fn name_at(code: &str) -> &str {
    let end = code.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(code.len());
    &code[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let order: &[&str] = &["low", "middle knot", "high"];
        let file = SourceFile::text(path, text);
        let module = module_of(path.strip_prefix("crates/x/src/").expect("it is one")).expect("it is one");
        check_file(module, &file, order).into_iter().map(|found| found.message).collect()
    }

    #[test]
    fn a_module_that_uses_a_later_one_is_found() {
        let wrong = ["`low` stands before `high` and must not use it"];
        assert_eq!(messages("crates/x/src/low.rs", "use crate::high::Thing;\n"), wrong);
        assert_eq!(messages("crates/x/src/low/part.rs", "fn f() { crate::high::g() }\n"), wrong);
        let several = "use crate::{\n    low::{self, high},\n    high::{A, B},\n};\n";
        assert_eq!(messages("crates/x/src/low.rs", several), wrong);
    }

    #[test]
    fn earlier_modules_tests_comments_and_macros_of_the_crate_are_no_breach() {
        let fine = "//! crate::high\nuse crate::{low, middle::X};\nfn f() { \"crate::high\"; $crate::high::g() }\n\
                    #[cfg(test)]\nmod tests { use crate::high; }\n";
        assert_eq!(messages("crates/x/src/middle.rs", fine), Vec::<String>::new());
        for (module, other) in [("middle", "knot"), ("knot", "middle")] {
            let in_one_line = format!("use crate::{other}::Thing;\n");
            assert!(messages(&format!("crates/x/src/{module}.rs"), &in_one_line).is_empty());
        }
    }

    #[test]
    fn a_module_without_a_place_and_a_place_without_a_module_are_found() {
        assert_eq!(messages("crates/x/src/other.rs", "").len(), 1);
        let files = [SourceFile::text("crates/x/src/low.rs", "")];
        let found = check_crate(&files, "x", &["low", "gone"]);
        assert!(found.len() == 1 && found[0].message.contains("`gone` of x is gone"), "{found:?}");
        let rest = [
            SourceFile::text("crates/x/src/leaf.rs", ""),
            SourceFile::text("crates/x/src/low.rs", "use crate::leaf;"),
        ];
        let found = check_crate(&rest, "x", &["low", "*"]);
        assert!(found.len() == 1 && found[0].message.contains("`low` stands before `leaf`"), "{found:?}");
        assert_eq!(module_of("lib.rs"), None);
        assert_eq!(module_of("html/style.css"), None);
    }
}
