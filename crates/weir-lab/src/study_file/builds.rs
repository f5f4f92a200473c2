//! Other builds of this program as arms. Every arm of a file that names a driver becomes a command of this build,
//! beside the same command of an older build, which is its baseline. All are started alike, as commands, so that only
//! the program differs. Arms of orders are gateways of both builds; the exchange and the load are always those of the
//! running build.

use toml::{Table, Value};

use super::choice_error::ChoiceError;
use crate::{length::length_ns, limits::TIME_CAP_NS};

/// Prefix of the names of an arm's older build; the next constant is that of the placebo.
const OLD: &str = "old-";
const PLACEBO: &str = "placebo-";

/// Keys of an arm that each of its builds keeps.
const KEPT: [&str; 9] = [
    "where",
    "load_options",
    "warmup",
    "environment",
    "folder",
    "setup",
    "cleanup",
    "setup_timeout",
    "ready_timeout",
];

/// The programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Builds {
    /// The build under test: this program.
    pub own: String,
    /// The build it is compared with.
    pub old: String,
    /// The older build compiled again from the same source, if there is one.
    pub placebo: Option<String>,
    /// Whether servers have CPUs that can be passed to them.
    pub is_pinned: bool,
}

/// Replaces arms by their builds, in a study or in the table that replaces its arms without a driver.
pub(super) fn set(study: &mut Table, protocol: &str, builds: &Builds) -> Result<(), ChoiceError> {
    let Some(own_key) = own_key(protocol) else {
        return Err(ChoiceError::NoBuilds);
    };
    let own = study.get("arm").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut arms = Vec::new();
    let mut families: Vec<(String, Vec<String>)> = Vec::new();
    for arm in own {
        let family = match arm.as_table() {
            Some(table) if table.contains_key(own_key) => family(table, protocol, builds),
            _ => vec![arm.clone()],
        };
        families.push((name_of(&arm), family.iter().map(name_of).collect()));
        arms.extend(family);
    }
    if families.iter().all(|(_, family)| family.len() == 1) {
        return Err(ChoiceError::NoDriver);
    }
    let names: Vec<String> = arms.iter().map(name_of).collect();
    if let Some(twice) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
        return Err(ChoiceError::Twice(twice.1.clone()));
    }
    lengthen(study, families.len(), arms.len());
    study.insert("arm".to_owned(), Value::Array(arms));
    let cells = study.get_mut("cell").and_then(Value::as_array_mut).into_iter().flatten();
    for named in cells.filter_map(|cell| cell.get_mut("arms")?.as_array_mut()) {
        let of = |name: &Value| families.iter().find(|(own, _)| name.as_str() == Some(own.as_str()));
        let all = named.iter().flat_map(|name| match of(name) {
            Some((_, family)) => family.iter().cloned().map(Value::String).collect(),
            None => vec![name.clone()],
        });
        *named = all.collect();
    }
    Ok(())
}

/// The key that makes an arm a server of this program, if builds of its protocol can be compared.
fn own_key(protocol: &str) -> Option<&'static str> {
    match protocol {
        "echo" | "http" => Some("driver"),
        "orders" => Some("handoff"),
        _ => None,
    }
}

/// Raises the time cap with the number of arms: more arms take longer, and a schedule that was cut decides nothing.
fn lengthen(study: &mut Table, before: usize, after: usize) {
    let cap_ns = study.get("time_cap").and_then(Value::as_str).and_then(length_ns);
    if let Some(cap_ns) = cap_ns {
        // The baseline runs twice.
        let longer_ns = cap_ns as f64 * (after + 1) as f64 / (before + 1) as f64;
        let seconds = (longer_ns.min(*TIME_CAP_NS.end() as f64) / 1e9).ceil();
        study.insert("time_cap".to_owned(), Value::String(format!("{seconds}s")));
    }
}

fn name_of(arm: &Value) -> String {
    arm.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The builds of an arm: the old one, which is the baseline, this one, and the placebo.
fn family(arm: &Table, protocol: &str, builds: &Builds) -> Vec<Value> {
    let name = arm.get("name").and_then(Value::as_str).unwrap_or_default();
    let old = format!("{OLD}{name}");
    let build = |name: String, program: &String| {
        let mut table = Table::from_iter([("name".to_owned(), Value::String(name))]);
        if protocol == "orders" {
            table.insert("program".to_owned(), Value::String(program.clone()));
            let kept = arm.iter().filter(|(key, _)| *key != "name");
            table.extend(kept.map(|(key, value)| (key.clone(), value.clone())));
            return table;
        }
        table.insert("command".to_owned(), Value::Array(words(arm, protocol, program, builds.is_pinned)));
        for kept in KEPT {
            table.extend(arm.get(kept).map(|value| (kept.to_owned(), value.clone())));
        }
        table
    };
    let against = |mut table: Table| {
        table.insert("baseline".to_owned(), Value::String(old.clone()));
        table
    };
    let placebo = builds.placebo.iter().map(|program| {
        let mut table = against(build(format!("{PLACEBO}{name}"), program));
        table.insert("placebo".to_owned(), Value::Boolean(true));
        table
    });
    let pair = [build(old.clone(), &builds.old), against(build(name.to_owned(), &builds.own))];
    pair.into_iter().chain(placebo).map(Value::Table).collect()
}

/// The command of an arm, as the laboratory would start it, without its statistics socket.
fn words(arm: &Table, protocol: &str, program: &str, is_pinned: bool) -> Vec<Value> {
    let text = |key: &str| arm.get(key).and_then(Value::as_str).unwrap_or_default();
    let arguments = arm.get("arguments").and_then(Value::as_array).cloned().unwrap_or_default();
    let has_files = arguments.iter().any(|word| word.as_str() == Some("--root"));
    let mut words = vec![program, "serve", protocol, "--driver", text("driver")];
    words.extend(["--listen", "{address}", "--workers", "{workers}"]);
    words.extend(if is_pinned { ["--pin", "{cpus}"].as_slice() } else { &[] });
    words.extend(if protocol == "http" && !has_files {
        ["--body", "{content_name}"].as_slice()
    } else {
        &[]
    });
    let mut words: Vec<Value> = words.into_iter().map(|word| Value::String(word.to_owned())).collect();
    for (name, value) in arm.get("options").and_then(Value::as_table).into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        words.extend(["--option".to_owned(), format!("{name}={value}")].map(Value::String));
    }
    words.extend(arguments);
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_record::{finding::Finding, metric::Metric, spec::Subject};

    use super::*;
    use crate::{
        host_defaults::{DriverFound, HostDefaults},
        study_file::{self, Choices, chosen},
    };

    const STUDY: &str = r#"name = "two"
protocol = "echo"
fail_if = "cpu ratio > 1.03"
[factors]
connections = [10]
[[cell]]
connections = 20
arms = ["epoll"]
[[arm]]
name = "epoll"
driver = "epoll"
[[arm]]
name = "uring"
driver = "uring"
options = { spin-us = 50 }
arguments = ["--backlog", "10"]
[[arm]]
name = "other"
command = ["other", "{port}"]
"#;

    fn builds(placebo: Option<&str>) -> Choices {
        let builds = Builds {
            own: "/new/weir".to_owned(),
            old: "/old/weir".to_owned(),
            placebo: placebo.map(str::to_owned),
            is_pinned: true,
        };
        Choices { builds: Some(builds), ..Choices::default() }
    }

    fn study(text: &str, choices: &Choices) -> study_file::Study {
        let text = chosen(text, choices).expect("they fit");
        let parsed = study_file::parse(Path::new("two.toml"), &text, &HostDefaults::default());
        parsed.unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn every_arm_of_a_driver_has_its_older_build_as_its_baseline() {
        let spec = study(STUDY, &builds(Some("/again/weir"))).spec;
        let arms: Vec<(&str, Option<&str>, bool)> = spec
            .arms
            .iter()
            .map(|arm| (arm.name.as_str(), arm.baseline.as_deref(), arm.is_placebo))
            .collect();
        let expected = [
            ("old-epoll", None, false),
            ("epoll", Some("old-epoll"), false),
            ("placebo-epoll", Some("old-epoll"), true),
            ("old-uring", None, false),
            ("uring", Some("old-uring"), false),
            ("placebo-uring", Some("old-uring"), true),
            ("other", None, false),
        ];
        assert_eq!(arms, expected);
        let Subject::Command { argv } = &spec.arms[3].subject else { panic!("{:?}", spec.arms[3]) };
        let expected = "/old/weir serve echo --driver uring --listen {address} --workers {workers} --pin {cpus} \
                    --option spin-us=50 --backlog 10";
        assert_eq!(argv.join(" "), expected);
        assert!(
            spec.arms[4].is_other_build_of(&spec.arms[3]) && !spec.arms[1].is_other_build_of(&spec.arms[3])
        );
        let of_some = spec.cells.iter().find(|cell| !cell.arms.is_empty()).expect("one cell has some arms");
        assert_eq!(of_some.arms, ["old-epoll", "epoll", "placebo-epoll"]);
        let sides = |it: &weir_record::goal::ComparisonSpec| (it.of.arm.clone(), it.to[0].arm.clone());
        let thresholds: Vec<(String, String)> = spec.comparisons.iter().map(sides).collect();
        let pair = |arm: &str| (arm.to_owned(), format!("old-{arm}"));
        assert_eq!(thresholds, [pair("epoll"), pair("uring")], "each against its own, and no placebo");
        assert_eq!(spec.comparisons[0].of.metric, Metric::ServerCpuPerMessage);
        assert_eq!(study(STUDY, &builds(None)).spec.arms.len(), 5);
        assert_eq!(
            spec.time_cap_ns,
            2 * 3_600_000_000_000,
            "eight runs in the place of four take as much longer"
        );
    }

    #[test]
    fn builds_of_a_driver_that_does_not_run_here_are_missing_arms() {
        let gone = DriverFound {
            driver: "uring".to_owned(),
            available: false,
            detail: Finding::IoUringDisabled { level: 2 },
            unlock: None,
        };
        let instead = "[[without.uring.arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n";
        let written = format!("{STUDY}{instead}");
        let text = chosen(&written, &builds(None)).expect("it fits");
        let host_defaults = HostDefaults { tried: vec![gone], ..HostDefaults::default() };
        let study = study_file::parse(Path::new("two.toml"), &text, &host_defaults).expect("it can be read");
        let missing: Vec<&str> = study.missing_arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(missing, ["old-uring", "uring"]);
    }

    #[test]
    fn a_server_of_http_is_told_what_to_answer_with() {
        let text = STUDY.replace("\"echo\"", "\"http\"");
        let spec = study(&text, &builds(None)).spec;
        let Subject::Command { argv } = &spec.arms[0].subject else { panic!("{:?}", spec.arms[0]) };
        assert!(argv.ends_with(&["--body".to_owned(), "{content_name}".to_owned()]), "{argv:?}");
    }

    #[test]
    fn a_gateway_is_held_against_that_of_an_older_build_and_nothing_else_differs() {
        let text = r#"name = "gateways"
protocol = "orders"
[factors]
load = ["flood"]
workers = [1, 2]
[primary]
workers = 1
[[arm]]
name = "epoll"
handoff = "owner"
driver = "epoll"
options = { trigger = "level" }
arguments = ["--no-hop-times"]
[[arm]]
name = "mesh"
handoff = "mesh"
driver = "epoll"
where = { workers = 2 }
"#;
        let spec = study(text, &builds(Some("/again/weir"))).spec;
        let arms: Vec<(&str, Option<&str>, Option<&str>)> = spec
            .arms
            .iter()
            .map(|arm| (arm.name.as_str(), arm.baseline.as_deref(), arm.subject.program()))
            .collect();
        let expected = [
            ("old-epoll", None, Some("/old/weir")),
            ("epoll", Some("old-epoll"), Some("/new/weir")),
            ("placebo-epoll", Some("old-epoll"), Some("/again/weir")),
            ("old-mesh", None, Some("/old/weir")),
            ("mesh", Some("old-mesh"), Some("/new/weir")),
            ("placebo-mesh", Some("old-mesh"), Some("/again/weir")),
        ];
        assert_eq!(arms, expected);
        assert!(spec.arms[1].is_other_build_of(&spec.arms[0]));
        assert!(!spec.arms[4].is_other_build_of(&spec.arms[0]), "they are handed over otherwise");
        let two = spec.cells.iter().find(|cell| cell.workers == 2).expect("there is one");
        assert!(spec.arms.iter().all(|arm| two.has_arm(&arm.name)));
        let one = spec.cells.iter().find(|cell| cell.workers == 1).expect("there is one");
        assert_eq!(one.arms, ["old-epoll", "epoll", "placebo-epoll"]);
    }

    #[test]
    fn a_study_without_an_arm_of_ours_or_of_another_protocol_is_refused() {
        let refused = |text: &str| chosen(text, &builds(None)).expect_err("it has none").to_string();
        let foreign = "name = \"x\"\n[[arm]]\nname = \"a\"\ncommand = [\"a\", \"{port}\"]\n";
        assert!(refused(foreign).starts_with("--baseline: no arm of the study names a driver"));
        let storage = "name = \"x\"\nprotocol = \"storage\"\n[[arm]]\nname = \"a\"\nengine = \"pread\"\n";
        assert!(refused(storage).starts_with("--baseline: it belongs to studies of echo, http and orders"));
        let twice = STUDY.replace("\"other\"", "\"old-epoll\"");
        assert_eq!(refused(&twice), "--arm old-epoll: an arm of that name is there already");
    }

    #[test]
    fn what_an_arm_is_held_against_must_be_there_and_run_where_it_does() {
        let refused = |from: &str, to: &str| {
            let text = STUDY.replacen(from, to, 1);
            let parsed = study_file::parse(Path::new("two.toml"), &text, &HostDefaults::default());
            parsed.expect_err("it is wrong").to_string()
        };
        let of = |key: &str| format!("driver = \"uring\"\n{key}");
        let unknown = refused("driver = \"uring\"", &of("baseline = \"epol\""));
        assert_eq!(unknown, "two.toml:15: arm.baseline: there is no other arm \"epol\"; did you mean epoll?");
        let alone = refused("driver = \"uring\"", &of("placebo = true"));
        assert!(alone.contains("arm.placebo: say with `baseline`"), "{alone}");
        let first = refused("driver = \"epoll\"", "driver = \"epoll\"\nbaseline = \"uring\"");
        assert!(first.contains("epoll is the first arm, which is the baseline itself"), "{first}");
        let apart = STUDY.replace("arms = [\"epoll\"]", "arms = [\"epoll\", \"uring\"]");
        let apart = apart.replace("driver = \"uring\"", &of("baseline = \"other\""));
        let parsed = study_file::parse(Path::new("two.toml"), &apart, &HostDefaults::default());
        let apart = parsed.expect_err("other is not in that cell").to_string();
        assert!(apart.contains("uring runs in c20-d1-m64-closed without other"), "{apart}");
    }
}
