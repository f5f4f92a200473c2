//! The order of top-level modules inside a crate: each may use those that stand before it, so that a reader can begin
//! at the first and never meets what comes later.
//!
//! It follows paths from the crate's root, `crate::` and as many `super` as lead there, in code that is not a test; a
//! name that the root re-exports counts as its module's.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    Finding, layers,
    lexer::{Source, is_name_char, matching_close, words},
    tree::SourceFile,
};

/// The crates, each with its order, lowest first. `*` is the place of all modules that are not named, none of which may
/// use another of them.
const ORDERS: &[(&str, &[&str])] = &[
    (
        "weir-engine",
        &[
            "config",
            "clock",
            "address",
            "pool",
            "inline_queue",
            "send_queue",
            "file_bytes",
            "slab",
            "wakers",
            "semaphore",
            "wake_flag",
            "timer_wheel",
            "counter",
            "call_clock",
            "counters",
            "doorbell",
            "inbox",
            "driver",
            "executor",
            "time",
            "task_group",
            "fs",
            "net",
            "remote",
            "multishot_probe",
            "driver_choice",
            "driver_report",
            "runtime",
            "mailbox",
            "handoff",
            "serve",
            "guide",
        ],
    ),
    (
        "weir-sys",
        &[
            "region",
            "blocks",
            "ring",
            "block_ring",
            "aio",
            "posix_aio",
            "affinity",
            "bpf",
            "child",
            "clock",
            "errors",
            "file_locks",
            "log_file",
            "output",
            "placement",
            "process_stat",
            "readiness",
            "syscalls",
            "timer",
            "unix_path",
            "usage",
        ],
    ),
    (
        "weir-stats",
        &[
            "student",
            "random",
            "order",
            "holm",
            "fisher",
            "false_discovery",
            "round",
            "long_run",
            "decide",
            "movement",
            "random_effects",
            "quotient",
            "proportion",
            "states",
            "recording",
        ],
    ),
    ("weir-engine-types", &["kernel", "counters", "handoff"]),
    (
        "weir-record",
        &[
            "calendar",
            "histogram_encoding",
            "latency",
            "figure",
            "text",
            "machine",
            "gateway",
            "failure",
            "orders",
            "engine",
            "http",
            "storage",
            "storage_trial",
            "observation",
            "threads",
            "window",
            "load",
            "slices",
            "finding",
            "check",
            "doctor",
            "metric",
            "goal",
            "grid",
            "contrast",
            "cause",
            "added_cost",
            "overview",
            "published",
            "spec",
            "protocol",
            "trial",
            "metric_rows",
            "frontier",
            "cpu_account",
            "evidence",
            "connection_costs",
            "latency_map",
            "guidance",
            "verdict",
            "effect",
            "run_pool",
            "study",
            "run_pair",
        ],
    ),
    (
        "weir-evidence",
        &[
            "parse",
            "files",
            "foreign",
            "crosscore",
            "placement",
            "limits",
            "process",
            "system",
            "edge",
            "softirq_time",
            "fingerprint",
            "program_file",
            "ladder",
            "doctor",
            "memory",
            "network",
            "stats",
            "watch",
            "slice_observers",
            "recorded",
        ],
    ),
    ("weir-store", &["error", "row", "schema", "store"]),
    ("weir-monitor", &["target", "snapshot", "frame", "lines", "screen", "live"]),
    ("weir-controls", &["buffer_ring", "epoll", "uring"]),
    ("weir-neighbours", &["abusive", "idle", "replayer", "dashboard"]),
    ("weir-proto", &["client", "padded", "content", "exposition", "http1", "ouch", "soup"]),
    (
        "weir-trading",
        &[
            "account",
            "venue",
            "rate",
            "admit",
            "reply",
            "slab",
            "key_table",
            "kill",
            "user_ref_nums",
            "route",
            "echo",
            "matching",
            "risk",
            "upstream_numbers",
        ],
    ),
    (
        "weir-storage",
        &[
            "predict", "trace", "capture", "engine", "job", "verify", "layout", "measure", "output", "wait",
            "run", "simulate",
        ],
    ),
    (
        "weir-servers",
        &[
            "thread_per_connection",
            "counter",
            "connection_timer",
            "notify",
            "overflow",
            "echo",
            "journal",
            "orders",
            "exchange",
            "stats",
            "metrics",
            "gateway",
            "http",
        ],
    ),
    (
        "weir-lab",
        &[
            "length",
            "mistake",
            "limits",
            "run_folder",
            "run_locks",
            "store_words",
            "stored",
            "host_defaults",
            "toml_table",
            "io_models",
            "launch",
            "protocol",
            "alternation",
            "pilot",
            "validate",
            "study_file",
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
            "littles_law",
            "error",
            "failure",
            "summary",
            "progress",
            "connection_notes",
            "recorder",
            "gather",
            "outcome",
            "spec",
            "connector",
            "workload",
            "worker_state",
            "connection",
            "closed",
            "open",
            "virtual_user",
            "connection_per_message",
            "worker",
            "slice_worker",
            // The protocols, so that a new one needs no line here: they stand in no order, and none uses another.
            "*",
            "dispatch",
            "limits",
            "window_readings",
            "report",
            "run",
            "slices",
        ],
    ),
    (
        "weir-judge",
        &[
            "batching_bound",
            "sample",
            "syn_ladder",
            "missing",
            "oversubscription",
            "histogram",
            "plan",
            "power",
            "exclusion",
            "gate",
            "rungs",
            "cell_trials",
            "cell_notes",
            "arm_checks",
            "units",
            "question",
            "witnesses",
            "progress",
            "slice_order",
            "sums",
            "tcp_segments",
            "slice_length",
            "warm",
            "variance_components",
            "drift",
            "exclusion_balance",
            "accept_queue",
            "thread_use",
            "syscall_coverage",
            "cpu_account",
            "evidence",
            "planted",
            "strace",
            "summary",
            "attribution",
            "added_cost",
            "cause",
            "frontier",
            "factors",
            "interaction",
            "grid",
            "contrast",
            "guidance",
            "check",
            "obstacle",
            "draft",
            "latency_map",
            "across_cells",
            "scaling",
            "overview",
            "aggregate",
            "answers",
            "connection_costs",
            "judge",
            "compare",
            "pool",
        ],
    ),
    (
        "weir-report",
        &[
            "language",
            "format",
            "display",
            "words",
            "check_words",
            "titles",
            "rung",
            "findings",
            "doctor",
            "pidstat",
            "view",
            "maps",
            "metrics",
            "when",
            "cited",
            "table",
            "section",
            "definitions",
            "published",
            "io_models",
            "ring_options",
            "added_cost",
            "cause",
            "threads",
            "overview",
            "aggregate",
            "connection_costs",
            "strace",
            "goals",
            "cpu_account",
            "evidence",
            "frontier",
            "change",
            "saturation",
            "sentence",
            "notes",
            "tables",
            "html",
            "chart",
            "contrasts",
            "guidance",
            "csv",
            "slices_csv",
            "evidence_csv",
            "kernels",
            "chart_page",
            "sections",
            "markdown",
            "terminal",
            "run_pair",
            "run_pool",
            "observation",
        ],
    ),
    (
        "weir-dashboard",
        &[
            "token",
            "auth",
            "folder",
            "query",
            "words",
            "reader",
            "runner",
            "offered",
            "forms",
            "origin",
            "control",
            "counters",
            "connections_by_address",
            "unsent",
            "study_cache",
            "running_study",
            "live",
            "observer",
            "top",
            "pages",
            "app",
            "observed",
            "top_page",
            "actions",
            "errors",
            "server",
        ],
    ),
    (
        "weir",
        &[
            "output",
            "hanging",
            "exit",
            "signals",
            "orphans",
            "language",
            "flags",
            "command_line",
            "engine",
            "load_text",
            "load",
            "serve",
            "protocol",
            "args",
            "command",
        ],
    ),
];

/// Modules that use a later one, modules without a place, and crates without an order.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let of_crate = |(name, order): &(&str, &[&str])| check_crate(files, name, order);
    let mut findings: Vec<Finding> = ORDERS.iter().flat_map(of_crate).collect();
    findings.extend(check_stated(files));
    findings
}

/// Every crate has an order.
fn check_stated(files: &[SourceFile]) -> Vec<Finding> {
    let stated: BTreeSet<&str> = ORDERS.iter().map(|(name, _)| *name).collect();
    let members = files.iter().filter_map(|file| Some((file, layers::member_folder(&file.path)?)));
    let unstated = members.filter(|(_, name)| !stated.contains(name));
    unstated
        .map(|(file, name)| {
            let message = format!(
                "the modules of `{name}` have no order; add it to ORDERS in xtask/src/tidy/module_order.rs"
            );
            Finding::new(&file.path, 1, "modules", message)
        })
        .collect()
}

fn check_crate(files: &[SourceFile], name: &str, order: &[&str]) -> Vec<Finding> {
    let folder = format!("crates/{name}/src/");
    let all: Vec<Module> = files.iter().filter_map(|file| Module::of(file, &folder)).collect();
    let tests = test_modules(&all);
    let is_test = |module: &&Module| tests.iter().any(|path| module.path.starts_with(path));
    let own: Vec<&Module> = all.iter().filter(|it| !it.path.is_empty() && !is_test(it)).collect();
    let named = order.iter().copied().enumerate().filter(|(_, module)| *module != "*");
    let mut places: BTreeMap<&str, usize> = named.map(|(place, module)| (module, place)).collect();
    let gone: Vec<&str> =
        places.keys().copied().filter(|module| own.iter().all(|it| it.path[0] != *module)).collect();
    if let Some(place) = order.iter().position(|module| *module == "*") {
        for module in &own {
            places.entry(module.path[0]).or_insert(place);
        }
    }
    let root = all.iter().find(|module| module.path.is_empty());
    let reexports = root.map(reexports).unwrap_or_default();
    let mut findings: Vec<Finding> =
        own.iter().flat_map(|module| check_module(module, &places, &reexports)).collect();
    if !own.is_empty() {
        findings.extend(gone.into_iter().map(|module| {
            let message = format!("`{module}` of {name} is gone; take it out of ORDERS");
            Finding::new("xtask/src/tidy/module_order.rs", 1, "modules", message)
        }));
    }
    findings
}

/// A file of a crate as the module it is.
struct Module<'a> {
    /// Names from the crate's root on; none for the root itself.
    path: Vec<&'a str>,
    file: &'a str,
    source: Source<'a>,
    /// What of it is compiled for tests only.
    tests: Vec<Range<usize>>,
}

impl<'a> Module<'a> {
    /// `None` for files that are elsewhere, or no Rust.
    fn of(file: &'a SourceFile, folder: &str) -> Option<Self> {
        let path = module_path(file.path.strip_prefix(folder)?)?;
        let source = Source::new(file.text.as_deref()?);
        let tests = source.test_ranges();
        Some(Self { path, file: &file.path, source, tests })
    }

    fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }
}

/// The path of the module that a file of the source folder is; `None` for what is no Rust.
fn module_path(file: &str) -> Option<Vec<&str>> {
    let mut path: Vec<&str> = file.strip_suffix(".rs")?.split('/').collect();
    if matches!(path[..], [.., "mod"] | ["lib"] | ["main"]) {
        path.pop();
    }
    Some(path)
}

/// Modules with files of their own that are declared for tests only: all that is in them is test code.
fn test_modules<'a>(modules: &'a [Module<'a>]) -> Vec<Vec<&'a str>> {
    let declared = |module: &'a Module<'a>| {
        let items = module.tests.iter().map(move |range| &module.source.code[range.clone()]);
        items.filter_map(move |item| {
            let (name, behind) = named_after(item, words(item, "mod").next()? + "mod".len());
            behind.starts_with(';').then(|| [&module.path[..], &[name]].concat())
        })
    };
    modules.iter().flat_map(declared).collect()
}

/// Names that the crate's root re-exports, each with the module it comes from.
fn reexports<'a>(root: &'a Module<'a>) -> BTreeMap<&'a str, &'a str> {
    let code = root.source.code.as_str();
    let uses = words(code, "use").filter(|at| !root.is_test(*at));
    let trees = uses.filter_map(|at| code[at + "use".len()..].split(';').next());
    let names = trees.flat_map(|tree| {
        let tree = tree.trim_start();
        let tree = tree.strip_prefix("self::").or_else(|| tree.strip_prefix("crate::")).unwrap_or(tree);
        let module = name_at(tree);
        let leaves = tree[module.len()..].split(['{', '}', ',']);
        // The last word: behind the path, and behind `as`.
        leaves.filter_map(move |leaf| {
            let name = leaf.trim().rsplit(|letter| !is_name_char(letter)).next()?;
            (!name.is_empty()).then_some((name, module))
        })
    });
    names.collect()
}

fn check_module(
    module: &Module,
    places: &BTreeMap<&str, usize>,
    reexports: &BTreeMap<&str, &str>,
) -> Vec<Finding> {
    let own = module.path[0];
    let Some(place) = places.get(own) else {
        let message = format!("`{own}` has no place; add it to ORDERS in xtask/src/tidy/module_order.rs");
        return vec![Finding::new(module.file, 1, "modules", message)];
    };
    let used = used_names(module).into_iter().filter(|(offset, _)| !module.is_test(*offset));
    let wrong = used.filter_map(|(offset, name)| {
        let used = if places.contains_key(name) { name } else { *reexports.get(name)? };
        (used != own && places.get(used)? >= place).then_some((offset, used))
    });
    wrong
        .map(|(offset, used)| {
            let message = format!("`{own}` does not stand behind `{used}` and must not use it");
            Finding::new(module.file, module.source.line_at(offset), "modules", message)
        })
        .collect()
}

/// Names that follow the crate's root in paths, with their offsets.
fn used_names<'a>(module: &'a Module<'a>) -> Vec<(usize, &'a str)> {
    let code = module.source.code.as_str();
    // In a module within the file `super` leads to the file's own.
    let inner = inline_modules(code);
    let to_root = "super::".repeat(module.path.len());
    let upwards = ends_of_prefix(code, &to_root).filter(|at| !inner.iter().any(|range| range.contains(at)));
    let roots = ends_of_prefix(code, "crate::").chain(upwards);
    let mut found = Vec::new();
    for from in roots {
        match code[from..].starts_with('{') {
            true => found.extend(names_in_braces(code, from)),
            false => found.push((from, name_at(&code[from..]))),
        }
    }
    found.retain(|(_, name)| !name.is_empty());
    found
}

/// Where a path goes on that begins with `prefix`.
fn ends_of_prefix<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = usize> + 'a {
    let begins =
        move |start: &usize| !code[..*start].ends_with(|it| is_name_char(it) || matches!(it, '$' | ':'));
    code.match_indices(prefix).map(|(start, _)| start).filter(begins).map(move |start| start + prefix.len())
}

/// Modules that are written out within the file.
fn inline_modules(code: &str) -> Vec<Range<usize>> {
    let bodies = words(code, "mod").filter_map(|at| {
        let (_, behind) = named_after(code, at + "mod".len());
        let open = code.len() - behind.len();
        behind.starts_with('{').then(|| open..matching_close(code, open).unwrap_or(code.len()))
    });
    bodies.collect()
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

/// The name that follows, and what comes behind it.
fn named_after(code: &str, from: usize) -> (&str, &str) {
    let rest = code[from..].trim_start();
    let name = name_at(rest);
    (name, rest[name.len()..].trim_start())
}

fn name_at(code: &str) -> &str {
    let end = code.find(|letter| !is_name_char(letter)).unwrap_or(code.len());
    &code[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages about `text`, among empty files for the other modules.
    fn messages(path: &str, text: &str) -> Vec<String> {
        messages_with(&[(path, text)])
    }

    fn messages_with(texts: &[(&str, &str)]) -> Vec<String> {
        let order: &[&str] = &["low", "middle", "high"];
        let mut files: Vec<SourceFile> = texts
            .iter()
            .map(|(path, text)| SourceFile::text(&format!("crates/x/src/{path}"), text))
            .collect();
        let others = ["low", "middle", "high"].map(|name| format!("crates/x/src/{name}.rs"));
        files.extend(others.iter().map(|path| SourceFile::text(path, "")));
        check_crate(&files, "x", order).into_iter().map(|found| found.message).collect()
    }

    const WRONG: [&str; 1] = ["`low` does not stand behind `high` and must not use it"];

    #[test]
    fn a_module_that_uses_a_later_one_is_found() {
        assert_eq!(messages("low.rs", "use crate::high::Thing;\n"), WRONG);
        assert_eq!(messages("low/part.rs", "fn f() { crate::high::g() }\n"), WRONG);
        let several = "use crate::{\n    low::{self, high},\n    high::{A, B},\n};\n";
        assert_eq!(messages("low.rs", several), WRONG);
    }

    #[test]
    fn earlier_modules_tests_comments_and_macros_of_the_crate_are_no_breach() {
        let fine = "//! crate::high\nuse crate::{low, middle::X};\nfn f() { \"crate::high\"; $crate::high::g() }\n\
                    #[cfg(test)]\nmod tests { use crate::high; }\n";
        assert_eq!(messages("middle.rs", fine), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_is_declared_for_tests_alone_is_no_breach_and_needs_no_place() {
        let later = "use crate::high::Thing;\n";
        let declared = "#[cfg(all(test, loom))]\nmod model;\n#[cfg(test)] mod tests;\n";
        for tests in ["low/tests.rs", "low/tests/mod.rs", "low/tests/part/deep.rs", "low/model.rs"] {
            let files = [("low/mod.rs", declared), (tests, later)];
            assert_eq!(messages_with(&files), Vec::<String>::new(), "{tests}");
        }
        assert_eq!(messages_with(&[("low/mod.rs", "mod tests;\n"), ("low/tests.rs", later)]), WRONG);
        let other = [("low/mod.rs", "#[cfg(test)] mod tests { mod part; }\n"), ("low/part.rs", later)];
        assert_eq!(messages_with(&other), WRONG, "the declaration is of another module");
        let of_root = [("lib.rs", "#[cfg(test)]\nmod fuzz;\n"), ("fuzz.rs", later)];
        assert_eq!(messages_with(&of_root), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_the_root_re_exports_is_its_modules() {
        let roots = [
            "pub use high::Thing;\n",
            "pub(crate) use self::high::part::{Other, inner::Thing};\n",
            "pub use high::{\n    Real as Thing,\n    Other,\n};\n",
        ];
        for root in roots {
            let used = |text| messages_with(&[("lib.rs", root), ("low.rs", text)]);
            assert_eq!(used("use crate::Thing;\n"), WRONG, "{root}");
            assert_eq!(used("use crate::{Thing::A, middle};\n"), [WRONG[0], WRONG_MIDDLE], "{root}");
            assert_eq!(used("use crate::Unknown;\n"), Vec::<String>::new(), "{root}");
        }
        let for_tests = [("lib.rs", "#[cfg(test)]\nuse high::Thing;\n"), ("low.rs", "use crate::Thing;\n")];
        assert_eq!(messages_with(&for_tests), Vec::<String>::new());
    }

    const WRONG_MIDDLE: &str = "`low` does not stand behind `middle` and must not use it";

    #[test]
    fn super_counts_where_it_leads_to_the_root() {
        for (path, text) in [
            ("low.rs", "use super::high::Thing;\n"),
            ("low/mod.rs", "use super::{high::Thing, low};\n"),
            ("low/part.rs", "fn f() { super::super::high::g() }\n"),
        ] {
            assert_eq!(messages(path, text), WRONG, "{path}");
        }
        for (path, text) in [
            ("low/part.rs", "use super::high::Thing;\n"),
            ("low.rs", "mod inner { use super::high::Thing; }\n"),
            ("low/part/deep.rs", "use super::super::high::Thing;\n"),
        ] {
            assert_eq!(messages(path, text), Vec::<String>::new(), "{path}: it is the folder's own");
        }
    }

    #[test]
    fn a_crate_without_an_order_is_found() {
        let manifest = |name: &str| SourceFile::text(&format!("crates/{name}/Cargo.toml"), "");
        let found = check_stated(&[manifest("weir-new"), SourceFile::text("peers/x/Cargo.toml", "")]);
        assert!(found.len() == 1 && found[0].message.contains("`weir-new` have no order"), "{found:?}");
        assert!(check_stated(&[manifest(ORDERS[0].0)]).is_empty());
    }

    #[test]
    fn a_module_without_a_place_and_a_place_without_a_module_are_found() {
        assert_eq!(messages("other.rs", "").len(), 1);
        let files = [SourceFile::text("crates/x/src/low.rs", "")];
        let found = check_crate(&files, "x", &["low", "gone"]);
        assert!(found.len() == 1 && found[0].message.contains("`gone` of x is gone"), "{found:?}");
        let rest = [
            SourceFile::text("crates/x/src/leaf.rs", ""),
            SourceFile::text("crates/x/src/low.rs", "use crate::leaf;"),
        ];
        let found = check_crate(&rest, "x", &["low", "*"]);
        assert!(
            found.len() == 1 && found[0].message.contains("`low` does not stand behind `leaf`"),
            "{found:?}"
        );
        let beside = [
            SourceFile::text("crates/x/src/leaf.rs", "use crate::{leaf::Own, low};"),
            SourceFile::text("crates/x/src/twig.rs", "use crate::leaf;"),
            SourceFile::text("crates/x/src/low.rs", ""),
        ];
        let found = check_crate(&beside, "x", &["low", "*"]);
        assert!(
            found.len() == 1 && found[0].message.contains("`twig` does not stand behind `leaf`"),
            "{found:?}"
        );
        assert_eq!(module_path("lib.rs"), Some(Vec::new()));
        assert_eq!(module_path("html/style.css"), None);
    }
}
