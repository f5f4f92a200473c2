//! The figures as data: which study, which cell, which arm, which bound. Those that count whole runs are in `counts`,
//! memory in `memory` and `http_idle`, runs beside one another in `bystanders` and `wrk`, the gateway in the modules of
//! its name.

use weir_record::verdict::Metric;

use super::{
    goal::Goal,
    sample::{Quantity, Side},
};

/// What one name after `--only` stands for.
pub struct Group {
    /// The name.
    pub name: &'static str,
    /// Studies of `docs/studies` that run once.
    pub studies: &'static [&'static str],
}

/// All groups in the order they run: what acceptance rests on comes first. Groups without studies run what
/// `counts::runs_of` lists, or, for memory, idle HTTP connections, the gateway and the benches, no study at all.
pub const GROUPS: &[Group] = &[
    Group { name: "quick", studies: &[] },
    Group { name: "aa", studies: &[] },
    Group { name: "controls", studies: &["controls-epoll", "controls-uring"] },
    Group { name: "generator", studies: &["controls-uring"] },
    Group { name: "peers", studies: &["peers-epoll", "peers-uring"] },
    Group { name: "memory", studies: &[] },
    Group { name: "http", studies: &["peers-http", "http-depth"] },
    Group { name: "http-idle", studies: &[] },
    Group { name: "http-bystanders", studies: &[] },
    Group { name: "http-wrk", studies: &[] },
    Group { name: "gateway-cost", studies: &[] },
    Group { name: "gateway-journal", studies: &[] },
    Group { name: "gateway-replay", studies: &[] },
    Group { name: "gateway-bystanders", studies: &[] },
    Group { name: "order-benches", studies: &[] },
    Group { name: "storage-parity", studies: &["storage-parity"] },
    Group { name: "storage-qd1", studies: &["storage-polling-qd1"] },
    Group { name: "spin", studies: &["spin"] },
    Group { name: "idle", studies: &["idle", "idle-4000"] },
    Group { name: "scaling", studies: &["scaling"] },
    Group { name: "buffers", studies: &["buffers"] },
    Group { name: "power", studies: &[] },
    Group { name: "matrix", studies: &["matrix"] },
    Group { name: "display", studies: &[] },
];

/// Where a figure comes from.
pub enum Source {
    /// The laboratory's comparison of this arm with the study's baseline.
    Judged { arm: &'static str, metric: Metric, inverted: bool },
    /// Two sides paired block by block.
    Paired { of: Side<'static>, to: Side<'static> },
    /// CPU per message of one arm against the best of all other arms, paired like any two sides.
    AgainstBest { arm: &'static str },
}

/// One figure.
pub struct Figure {
    /// Group.
    pub group: &'static str,
    /// Study.
    pub study: &'static str,
    /// Cell.
    pub cell: &'static str,
    /// What the table calls it, without the cell.
    pub name: String,
    /// How it is found.
    pub source: Source,
    /// What it is held against.
    pub goal: Goal,
}

const C1: &str = "c1-d1-m64-closed";
const C10: &str = "c10-d1-m64-closed";
const C100: &str = "c100-d1-m64-closed";
const C1000: &str = "c1000-d1-m64-closed";
const C4000: &str = "c4000-d1-m64-closed";
const C10_I900: &str = "c10-d1-m64-i900-closed";
const C10_I4000: &str = "c10-d1-m64-i4000-closed";
const HTML: &str = "c100-d1-html-closed";
const HTML_D16: &str = "c100-d16-html-closed";
const HTML_RECONNECT: &str = "c100-d1-html-reconnect-closed";
const IMAGE: &str = "c100-d1-image-closed";

const CPU: Metric = Metric::ServerCpuPerMessage;

/// Smallest effect of the studies in which verdicts are figures.
const SMALLEST_EFFECT: f64 = 0.03;

/// Cells of the study that sets storage engines beside fio.
pub const STORAGE_PARITY: [&str; 8] = [
    "pread-randread-b4096-qd1",
    "pread-randread-b4096-qd32",
    "libaio-randread-b4096-qd1",
    "libaio-randread-b4096-qd32",
    "posixaio-randread-b4096-qd1",
    "posixaio-randread-b4096-qd32",
    "io_uring-randread-b4096-qd1",
    "io_uring-randread-b4096-qd32",
];

/// The cell of one read at a time.
pub const STORAGE_QD1: &str = "randread-b4096-qd1";

/// The smallest effect of the study of storage, which is the margin of "never slower".
const STORAGE_MARGIN: f64 = 0.05;

/// How far "unmoved" and "equal" may be off.
const EQUAL: Goal = Goal::Within(0.95, 1.05);

/// Every figure that is a ratio.
pub fn figures() -> Vec<Figure> {
    let mut all = controls();
    all.extend(peers());
    all.push(generator());
    all.extend(buffers());
    all.extend(spin());
    all.extend(idle());
    all.extend(scaling());
    all.extend(http_peers());
    all.extend(http_depth());
    all.extend(storage_parity());
    all.extend(storage_qd1());
    all
}

fn controls() -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |study: &'static str, cell, name: &str, source, goal| {
        all.push(Figure { group: "controls", study, cell, name: name.to_owned(), source, goal });
    };
    let against = |cell, of, to| Source::Paired { of: cpu(cell, of), to: cpu(cell, to) };
    for (cell, bound) in [(C10, 1.03), (C100, 1.03), (C1000, 1.05)] {
        for (study, ours, control, name) in [
            ("controls-epoll", "weir-epoll", "control-epoll", "weir-epoll / control"),
            ("controls-uring", "weir-uring", "control-uring", "weir-uring / control"),
            ("controls-uring", "weir-uring", "control-uring-single", "weir-uring / single-shot control"),
        ] {
            add(study, cell, name, against(cell, ours, control), Goal::at_most(bound));
        }
    }
    for cell in [C10, C100, C1000] {
        for (arm, name) in [("tokio", "epoll control / tokio"), ("libuv", "epoll control / libuv")] {
            let goal = Goal::at_most(1.0 + SMALLEST_EFFECT);
            add("controls-epoll", cell, name, against(cell, "control-epoll", arm), goal);
        }
        let source = against(cell, "control-uring", "monoio");
        add("controls-uring", cell, "uring control / monoio", source, Goal::at_most(0.97));
    }
    all
}

fn peers() -> Vec<Figure> {
    let mut all = Vec::new();
    for (study, ours, peers) in [
        ("peers-epoll", "weir-epoll", ["tokio", "libuv", "go"]),
        ("peers-uring", "weir-uring", ["monoio", "compio", "glommio"]),
    ] {
        for arm in peers {
            for cell in [C10, C100, C1000] {
                let name = format!("{ours} / {arm}");
                let source = Source::Judged { arm, metric: CPU, inverted: true };
                let goal = Goal::NotSlower(SMALLEST_EFFECT);
                all.push(Figure { group: "peers", study, cell, name, source, goal });
            }
        }
    }
    all
}

/// Both sides are of one trial: what the generator and what the server spent on the same messages.
fn generator() -> Figure {
    let spent = |quantity| Side { cell: C100, arm: "weir-uring", quantity };
    Figure {
        group: "generator",
        study: "controls-uring",
        cell: C100,
        name: "generator / weir-uring server, CPU per message".to_owned(),
        source: Source::Paired { of: spent(Quantity::GeneratorCpu), to: spent(Quantity::ServerCpu) },
        goal: Goal::at_most(1.10),
    }
}

fn buffers() -> Vec<Figure> {
    ["c100-d16-m64-closed", "c100-d16-m1024-closed"]
        .into_iter()
        .map(|cell| Figure {
            group: "buffers",
            study: "buffers",
            cell,
            name: "uring's default buffers / best size by hand".to_owned(),
            source: Source::AgainstBest { arm: "uring" },
            goal: Goal::at_most(1.05),
        })
        .collect()
}

fn spin() -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |of: &'static str, to: &'static str, goal| {
        let p50 = |arm| Side { cell: C1, arm, quantity: Quantity::ResponseP50 };
        let source = Source::Paired { of: p50(of), to: p50(to) };
        all.push(Figure {
            group: "spin",
            study: "spin",
            cell: C1,
            name: format!("p50 {of} / {to}"),
            source,
            goal,
        });
    };
    for (off, on, both, control) in [
        ("epoll", "epoll-spin", "epoll-spin-both", "control-epoll"),
        ("uring", "uring-spin", "uring-spin-both", "control-uring"),
    ] {
        add(on, off, Goal::at_most(0.40));
        add(both, off, Goal::at_most(0.20));
        add(off, control, Goal::Within(0.98, 1.02));
    }
    all
}

fn idle() -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |study: &'static str, name: String, of: Side<'static>, to: Side<'static>, goal| {
        let cell = of.cell;
        let source = Source::Paired { of, to };
        all.push(Figure { group: "idle", study, cell, name, source, goal });
    };
    let rate = |cell, arm| Side { cell, arm, quantity: Quantity::MessagesPerServerCpu };
    for cell in [C10, C100] {
        for arm in ["poll", "select"] {
            let name = format!("{arm} / epoll, messages per CPU second");
            add("idle", name, rate(cell, arm), rate(cell, "epoll"), EQUAL);
        }
    }
    for arm in ["poll", "select"] {
        let name = format!("{arm} / epoll, messages per CPU second");
        // "About 0.3": a figure to recognise, not a bound to beat.
        add("idle", name, rate(C10_I900, arm), rate(C10_I900, "epoll"), Goal::Within(0.2, 0.4));
    }
    let name = "poll / epoll, messages per CPU second".to_owned();
    add("idle-4000", name, rate(C10_I4000, "poll"), rate(C10_I4000, "epoll"), Goal::at_most(0.10));
    for (study, cell) in [("idle", C10_I900), ("idle-4000", C10_I4000)] {
        for arm in ["epoll", "uring"] {
            let name = format!("{arm} with / without idle connections");
            add(study, name, rate(cell, arm), rate(C10, arm), EQUAL);
        }
    }
    all
}

fn scaling() -> Vec<Figure> {
    let grown = |arm| Figure {
        group: "scaling",
        study: "scaling",
        cell: C4000,
        name: format!("{arm} at 4000 / at 1000 connections, CPU per message"),
        source: Source::Paired { of: cpu(C4000, arm), to: cpu(C1000, arm) },
        goal: Goal::at_most(1.20),
    };
    ["epoll", "uring"].map(grown).into()
}

/// HTTP beside what people run today. "Never slower" leaves a margin of the smallest effect; "1.25 times better" is
/// 0.8 of the CPU.
fn http_peers() -> Vec<Figure> {
    let mut all = Vec::new();
    let mut add = |cell, ours: &'static str, peer: &'static str, bound| {
        let name = format!("{ours} / {peer}, CPU per request");
        let source = Source::Paired { of: cpu(cell, ours), to: cpu(cell, peer) };
        let goal = Goal::at_most(bound);
        all.push(Figure { group: "http", study: "peers-http", cell, name, source, goal });
    };
    for (ours, page_bound) in [("weir-epoll", 0.95), ("weir-uring", 0.75)] {
        add(HTML, ours, "hyper", page_bound);
        add(IMAGE, ours, "nginx", 1.0 + SMALLEST_EFFECT);
        for peer in ["hyper", "axum", "go"] {
            add(IMAGE, ours, peer, 0.80);
        }
        add(HTML_RECONNECT, ours, "nginx", 1.0 + SMALLEST_EFFECT);
    }
    all
}

/// What a pipeline gains, and what the generator spends on a small response.
fn http_depth() -> Vec<Figure> {
    let figure = |cell, name, of: Side<'static>, to: Side<'static>, goal| {
        let source = Source::Paired { of, to };
        Figure { group: "http", study: "http-depth", cell, name, source, goal }
    };
    let rate = |cell, arm| Side { cell, arm, quantity: Quantity::Throughput };
    let deep = |arm| {
        let name = format!("{arm}, 16 requests in flight / one, throughput");
        figure(HTML_D16, name, rate(HTML_D16, arm), rate(HTML, arm), Goal::at_least(3.0))
    };
    let spent = |quantity| Side { cell: HTML, arm: "weir-uring", quantity };
    let generator = figure(
        HTML,
        "generator / weir-uring server, CPU per response".to_owned(),
        spent(Quantity::GeneratorCpu),
        spent(Quantity::ServerCpu),
        Goal::at_most(1.20),
    );
    vec![deep("weir-epoll"), deep("weir-uring"), generator]
}

/// Each engine beside fio's at both depths. What is asked of the 99th percentile is in `storage`.
fn storage_parity() -> Vec<Figure> {
    let mut all = Vec::new();
    for cell in STORAGE_PARITY {
        let mut add = |name: &str, metric, goal| {
            let source = Source::Judged { arm: "weir", metric, inverted: false };
            let (group, study) = ("storage-parity", "storage-parity");
            all.push(Figure { group, study, cell, name: name.to_owned(), source, goal });
        };
        add("weir / fio, CPU per I/O", CPU, Goal::NotSlower(STORAGE_MARGIN));
        add("weir / fio, p50", Metric::LatencyP50, Goal::Within(0.9, 1.1));
    }
    all
}

/// One read at a time, without an interrupt. What is asked of misses and of CPU shares is in `storage`.
fn storage_qd1() -> Vec<Figure> {
    let figure = |poll: &'static str, interrupt: &'static str| {
        let rate = |arm| Side { cell: STORAGE_QD1, arm, quantity: Quantity::Throughput };
        Figure {
            group: "storage-qd1",
            study: "storage-polling-qd1",
            cell: STORAGE_QD1,
            name: format!("{poll} / {interrupt}, IOPS"),
            source: Source::Paired { of: rate(poll), to: rate(interrupt) },
            goal: Goal::at_least(1.3),
        }
    };
    vec![figure("uring-poll", "uring-interrupt"), figure("libaio-poll", "libaio-interrupt")]
}

fn cpu(cell: &'static str, arm: &'static str) -> Side<'static> {
    Side { cell, arm, quantity: Quantity::ServerCpu }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A name is meant by a study file if it stands there as an arm's.
    fn arms(study: &str) -> Vec<String> {
        let path = crate::workspace_root().join(format!("docs/studies/{study}.toml"));
        let text = fs::read_to_string(path).expect("every study of the catalog has its file");
        let (_, arms) = text.split_once("[[arm]]").expect("a study has arms");
        arms.lines()
            .filter_map(|line| line.strip_prefix("name = "))
            .map(|name| name.replace('"', ""))
            .collect()
    }

    #[test]
    fn every_figure_names_an_arm_of_its_study_and_a_group_that_runs_it() {
        for figure in figures() {
            let group = GROUPS.iter().find(|group| group.name == figure.group).expect("a known group");
            assert!(group.studies.contains(&figure.study), "{}", figure.name);
            let arms = arms(figure.study);
            let named: Vec<&str> = match &figure.source {
                Source::Judged { arm, .. } => vec![arm],
                Source::Paired { of, to } => vec![of.arm, to.arm],
                Source::AgainstBest { arm } => vec![arm],
            };
            for name in named {
                assert!(arms.iter().any(|arm| arm == name), "{} has no arm {name}", figure.study);
            }
        }
    }
}
