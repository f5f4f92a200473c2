//! The published schema of the JSON export: it is generated from the types, and exports of real studies conform to it,
//! key by key.

use std::path::Path;

use serde_json::{Map, Value};
use weir_record::observation::{Bound, Conclusion, Observation};

use super::harness::{expect_refusal, folder, shown, study_file, weir};

const PUBLISHED: &str = "docs/formats/study-export.schema.json";

/// Cells of a map, evidence, an equal rate, and an arm that cannot run.
const STUDY: &str = r#"name = "mapped"
saturation = true
slice = "5ms"
permutations = 1
rounds = 6
exploratory_rounds = 6
evidence_rounds = 2
evidence_slice = "0.1s"
time_cap = "2min"
latency = { rate = 2000 }

[factors]
connections = [2, 4, 6]
workers = [1, 2]

[primary]
connections = 4
workers = 1

[[arm]]
name = "epoll"
driver = "epoll"

[[arm]]
name = "poll"
driver = "poll"

[[arm]]
name = "gone"
command = ["weir-no-such-server", "{port}"]
"#;

fn published() -> (String, Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PUBLISHED);
    let text = std::fs::read_to_string(file).expect("it is in the tree");
    let schema = serde_json::from_str(&text).expect("it is JSON");
    (text, schema)
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let said = weir(&["export", "--schema"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stdout == published().0,
        "the records have changed: `weir export --schema > {PUBLISHED}`, and where a field has another meaning or is gone, \
         raise SCHEMA_VERSION"
    );
}

#[test]
fn the_published_schema_is_told_without_the_names_of_constants() {
    let (text, _) = published();
    let names: Vec<&str> =
        text.split("[`").skip(1).filter_map(|rest| rest.split_once("`]")).map(|it| it.0).collect();
    let is_constant =
        |name: &&str| name.rsplit("::").next().is_some_and(|last| !last.contains(char::is_lowercase));
    let constants: Vec<&str> = names.into_iter().filter(is_constant).collect();
    assert_eq!(constants, [""; 0], "what they are worth says more");
}

#[test]
fn what_a_study_exports_keeps_to_the_published_schema() {
    let folder = folder("export-schema");
    let (file, out) = study_file(&folder, STUDY);
    let said = weir(&["study", &file, "--out", shown(&out)]);
    assert_eq!(said.code, Some(13), "one arm is missing: {}{}", said.stdout, said.stderr);
    let export: Value = serde_json::from_str(&weir(&["export", shown(&out)]).stdout).expect("it is JSON");
    let schema = Schema(&published().1);
    schema.check(&export).unwrap_or_else(|wrong| panic!("{wrong}"));
    for part in ["grids", "overviews", "guidance", "evidence", "checks", "missing_arms"] {
        let has = match &export["result"][part] {
            Value::Array(items) => !items.is_empty(),
            other => other.is_object(),
        };
        assert!(has, "{part} is not tried");
    }
    a_process_that_was_observed_is_set_beside_the_guidance(&folder, shown(&out));
    // This check can fail.
    let spoilt = |change: fn(&mut Value)| {
        let mut export = export.clone();
        change(&mut export);
        schema.check(&export).expect_err("it is wrong")
    };
    let wrong = spoilt(|export| export["result"]["grids"][0]["metric"] = "speed".into());
    assert!(wrong.contains("/result/grids/0/metric"), "{wrong}");
    let wrong = spoilt(|export| export["trials"][0]["colour"] = 3.into());
    assert!(wrong.contains("/trials/0") && wrong.contains("colour"), "{wrong}");
    let wrong = spoilt(|export| export["result"]["overviews"][0]["cells"] = Value::Null);
    assert!(wrong.contains("/result/overviews/0/cells"), "{wrong}");
    let wrong = spoilt(|export| _ = export.as_object_mut().map(|it| it.remove("schema_version")));
    assert!(wrong.contains("schema_version"), "{wrong}");
}

/// A record of a process is in the guidance of a study that has a map; one without a trace is refused.
fn a_process_that_was_observed_is_set_beside_the_guidance(folder: &Path, study: &str) {
    let record = folder.join("seen.json");
    let report = |bound: Option<Bound>| {
        let seen = Observation { pid: 4242, command: "./mine".to_owned(), bound, ..Observation::default() };
        std::fs::write(&record, serde_json::to_string(&seen).expect("plain data"))
            .expect("it can be written");
        weir(&["report", study, "--lang", "en", "--observed", shown(&record)])
    };
    let bound = Bound {
        cpu_ns: 1_000,
        calls: 10,
        io_ns: 234.0,
        asking_ns: 0.0,
        entering_ns: 0.0,
        share_max: 0.234,
        busiest_share: 1.0,
        conclusion: Conclusion::AtMost,
    };
    let said = report(Some(bound));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    for page in ["guidance.md", "guidance.html", "report.html", "report.md"] {
        let page = std::fs::read_to_string(Path::new(study).join(page)).expect("it was written");
        let page = page.replace('\u{a0}', " ");
        assert!(
            page.contains("System calls for I/O cost 23.4 % of the CPU of process 4242 (./mine)"),
            "{page}"
        );
    }
    let judged = weir(&["report", shown(&record), "--fail-if", "cpu > 3%"]);
    expect_refusal(&judged, 2, &["--fail-if: it judges a study"]);
    expect_refusal(
        &weir(&["report", shown(&record), "--observed", shown(&record)]),
        2,
        &["--observed", "study"],
    );
    expect_refusal(&report(None), 2, &["--observed", "--trace --record"]);
}

/// The part of JSON Schema (draft 2020-12) that the published one uses; an unknown keyword fails. Keys that the schema
/// does not name fail too.
#[derive(Clone, Copy)]
struct Schema<'s>(&'s Value);

/// Keywords that say nothing about whether a value is right.
const ANNOTATIONS: [&str; 8] =
    ["$schema", "$id", "$defs", "title", "description", "format", "default", "minimum"];

impl<'s> Schema<'s> {
    fn check(self, value: &Value) -> Result<(), String> {
        self.at(self.0, value, "")
    }

    fn at(self, node: &Value, value: &Value, path: &str) -> Result<(), String> {
        let Some(rules) = node.as_object() else {
            return if node == &Value::Bool(true) {
                Ok(())
            } else {
                Err(format!("{path}: nothing fits {node}"))
            };
        };
        for (keyword, rule) in rules {
            let fits = match keyword.as_str() {
                "$ref" => self.at(self.named(rule), value, path),
                "type" => is_of_type(rule, value),
                "const" => (rule == value).then_some(()).ok_or_else(|| format!("is not {rule}")),
                "enum" => is_among(rule, value),
                "required" => has_all(rule, value),
                "properties" => self.properties(rules, value, path),
                "items" => self.items(rules, value, path),
                "prefixItems" => self.first_items(rule, value, path),
                "additionalProperties" => self.properties(rules, value, path),
                "minItems" | "maxItems" => is_so_long(keyword, rule, value),
                "oneOf" | "anyOf" => self.some(keyword, rule, value, path),
                "allOf" => list(rule).iter().try_for_each(|rule| self.at(rule, value, path)),
                known if ANNOTATIONS.contains(&known) => Ok(()),
                unknown => panic!("{path}: the test does not know {unknown:?}"),
            };
            fits.map_err(|wrong| if wrong.starts_with('/') { wrong } else { format!("{path}: {wrong}") })?;
        }
        Ok(())
    }

    fn named(self, reference: &Value) -> &'s Value {
        let pointer = reference.as_str().and_then(|it| it.strip_prefix('#')).expect("within the document");
        self.0.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is not there"))
    }

    /// Checks each key by its own schema, others by that of additional ones; without one they are unknown.
    fn properties(self, rules: &Map<String, Value>, value: &Value, path: &str) -> Result<(), String> {
        let Some(object) = value.as_object() else { return Ok(()) };
        for (key, value) in object {
            let own = rules.get("properties").and_then(|it| it.get(key));
            let Some(schema) = own.or_else(|| rules.get("additionalProperties")) else {
                return Err(format!("there is no key {key:?}"));
            };
            self.at(schema, value, &format!("{path}/{key}"))?;
        }
        Ok(())
    }

    fn items(self, rules: &Map<String, Value>, value: &Value, path: &str) -> Result<(), String> {
        let first = rules.get("prefixItems").map_or(0, |it| list(it).len());
        let Some(items) = value.as_array() else { return Ok(()) };
        let mut rest = items.iter().enumerate().skip(first);
        rest.try_for_each(|(place, item)| self.at(&rules["items"], item, &format!("{path}/{place}")))
    }

    fn first_items(self, rules: &Value, value: &Value, path: &str) -> Result<(), String> {
        let Some(items) = value.as_array() else { return Ok(()) };
        let mut pairs = list(rules).iter().zip(items).enumerate();
        pairs.try_for_each(|(place, (rule, item))| self.at(rule, item, &format!("{path}/{place}")))
    }

    fn some(self, keyword: &str, rules: &Value, value: &Value, path: &str) -> Result<(), String> {
        let tried: Vec<Result<(), String>> =
            list(rules).iter().map(|rule| self.at(rule, value, path)).collect();
        let fitting = tried.iter().filter(|it| it.is_ok()).count();
        match fitting {
            0 => {
                let wrong: Vec<String> = tried.into_iter().filter_map(Result::err).collect();
                Err(format!("none of {} fits: {}", list(rules).len(), wrong.join("; ")))
            }
            1 => Ok(()),
            _ if keyword == "anyOf" => Ok(()),
            several => Err(format!("{several} fit")),
        }
    }
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().map_or(&[], Vec::as_slice)
}

fn is_of_type(rule: &Value, value: &Value) -> Result<(), String> {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("there is no type {other}"),
    };
    let names = rule.as_array().map_or(std::slice::from_ref(rule), Vec::as_slice);
    let fits = names.iter().filter_map(Value::as_str).any(is);
    fits.then_some(()).ok_or_else(|| format!("{value} is no {rule}"))
}

fn is_among(rule: &Value, value: &Value) -> Result<(), String> {
    list(rule).contains(value).then_some(()).ok_or_else(|| format!("{value} is none of {rule}"))
}

fn has_all(rule: &Value, value: &Value) -> Result<(), String> {
    let lacks = |key: &&Value| value.is_object() && key.as_str().is_some_and(|key| value.get(key).is_none());
    list(rule).iter().find(lacks).map_or(Ok(()), |key| Err(format!("{key} is missing")))
}

fn is_so_long(keyword: &str, rule: &Value, value: &Value) -> Result<(), String> {
    let (Some(items), Some(limit)) = (value.as_array(), rule.as_u64()) else { return Ok(()) };
    let length = items.len() as u64;
    let fits = if keyword == "minItems" { length >= limit } else { length <= limit };
    fits.then_some(()).ok_or_else(|| format!("{length} items, {keyword} {limit}"))
}
