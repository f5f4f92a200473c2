//! The order of top-level modules inside a crate: each may use only those listed before it, so that a reader can
//! start with the first and needs no later ones.
//!
//! The check follows paths from the crate's root (`crate::`, or as many `super` as lead there) in code outside tests;
//! a name that the root re-exports counts as its module's.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    Finding, layers,
    lexer::{Source, is_name_char, matching_close, words},
    tree::SourceFile,
};

/// The order of each crate's modules, lowest first. `*` stands for all modules that are not named; none of these may
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
            "sync",
            "thread_pool",
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
            "spawn_blocking",
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
            "child_counter",
            "clock",
            "errors",
            "file_locks",
            "interfaces",
            "launched",
            "local_port",
            "log_file",
            "output",
            "peer",
            "placement",
            "process_stat",
            "readiness",
            "ring_operations",
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
    ("weir-engine-adapters", &["rest", "traits", "engine_io", "executor", "timer", "tls"]),
    ("weir-engine-types", &["kernel", "counters", "handoff"]),
    (
        "weir-record",
        &[
            "calendar",
            "quantity",
            "histogram_encoding",
            "latency",
            "figure",
            "running",
            "text",
            "origin",
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
            "wait_series",
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
            "answer",
            "run_pool",
            "history",
            "study",
            "run_pair",
            "commands",
        ],
    ),
    (
        "weir-evidence",
        &[
            "parse",
            "files",
            "load_link",
            "sockets",
            "foreign",
            "crosscore",
            "placement",
            "limits",
            "process",
            "control_group",
            "listener",
            "selection",
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
    ("weir-proto", &["client", "padded", "content", "exposition", "http1", "ouch", "soup", "drop_copy"]),
    (
        "weir-trading",
        &[
            "account",
            "venue",
            "day",
            "rate",
            "admit",
            "reply",
            "slab",
            "key_table",
            "positions",
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
            "overflow",
            "echo",
            "planted",
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
            "stored_folders",
            "stored_history",
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
            // The protocols, so that a new one needs no line here: they have no order, and none uses another.
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
            "running",
            "slice_order",
            "sums",
            "tcp_segments",
            "link_losses",
            "slice_length",
            "warm",
            "variance_components",
            "drift",
            "exclusion_balance",
            "accept_queue",
            "thread_use",
            "wait_series",
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
            "commands",
            "compare",
            "pool",
            "history",
        ],
    ),
    (
        "weir-compare",
        &[
            "run",
            "load",
            "private_folder",
            "asked",
            "servers",
            "machine",
            "files",
            "recorded",
            "parting",
            "calls",
            "session",
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
            "origin",
            "cited",
            "table",
            "section",
            "ways_to_wait",
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
            "wait_series",
            "change",
            "saturation",
            "sentence",
            "answer",
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
            "history",
            "commands",
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
            "sorting",
            "words",
            "packed",
            "reader",
            "runner",
            "offered",
            "forms",
            "origin",
            "control",
            "counters",
            "connections",
            "unsent",
            "study_cache",
            "choice",
            "history_cache",
            "running_study",
            "live",
            "observer",
            "top_history",
            "top",
            "pages",
            "compare_page",
            "charts_page",
            "list_page",
            "app",
            "turned_away",
            "observed",
            "top_table",
            "history_page",
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
            "renamed",
            "git_head",
            "shipped",
            "request_mix",
            "flags",
            "engine_options",
            "engine",
            "load_text",
            "load",
            "load_hosts",
            "serve",
            "protocol",
            "args",
            "command",
            "help",
            "command_line",
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
    /// Module names from the crate's root on; empty for the root itself.
    path: Vec<&'a str>,
    file: &'a str,
    source: Source<'a>,
    /// Ranges that are compiled for tests only.
    tests: Vec<Range<usize>>,
}

impl<'a> Module<'a> {
    /// `None` for files elsewhere, and for files that are not Rust.
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

/// The module path of a file in the source folder; `None` if it is not Rust.
fn module_path(file: &str) -> Option<Vec<&str>> {
    let mut path: Vec<&str> = file.strip_suffix(".rs")?.split('/').collect();
    if matches!(path[..], [.., "mod"] | ["lib"] | ["main"]) {
        path.pop();
    }
    Some(path)
}

/// Modules in separate files that are declared for tests only: all their code is test code.
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
        // The last word: after the path, and after `as`.
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
    // In an inline module `super` leads to the module of the file.
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

/// Where a path that begins with `prefix` continues.
fn ends_of_prefix<'a>(code: &'a str, prefix: &'a str) -> impl Iterator<Item = usize> + 'a {
    let begins =
        move |start: &usize| !code[..*start].ends_with(|it| is_name_char(it) || matches!(it, '$' | ':'));
    code.match_indices(prefix).map(|(start, _)| start).filter(begins).map(move |start| start + prefix.len())
}

/// Inline modules of the file.
fn inline_modules(code: &str) -> Vec<Range<usize>> {
    let bodies = words(code, "mod").filter_map(|at| {
        let (_, behind) = named_after(code, at + "mod".len());
        let open = code.len() - behind.len();
        behind.starts_with('{').then(|| open..matching_close(code, open).unwrap_or(code.len()))
    });
    bodies.collect()
}

/// The first name of each item between braces, without nested ones.
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

/// The name that follows, and the text after it.
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
mod tests;
