//! The part of YAML that Weir's own check files for hosts of repositories use; and their steps, run as a host runs
//! them: each line as it is written, with the variables that the file sets.
//!
//! This is no YAML parser: it refuses constructs that these files do not use.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Map, Value};

use super::harness::Said;

/// A file of `packaging`.
pub fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

/// The content of such a file.
pub fn read(name: &str) -> Value {
    let text = fs::read_to_string(packaging(name)).expect("the file is there");
    let is_read = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let mut lines = Lines { left: text.lines().filter(is_read).map(str::to_owned).rev().collect() };
    let value = lines.block(0);
    assert!(lines.left.is_empty(), "{name}: {:?} stands elsewhere", lines.left.last());
    value
}

/// Unread lines, the next one last.
struct Lines {
    left: Vec<String>,
}

impl Lines {
    fn indent(&self) -> Option<usize> {
        self.left.last().map(|line| line.len() - line.trim_start().len())
    }

    /// A list or a mapping whose lines begin in this column.
    fn block(&mut self, column: usize) -> Value {
        if self.left.last().is_some_and(|line| line[column..].starts_with("- ")) {
            let mut items = Vec::new();
            while self.indent() == Some(column) {
                let line = self.left.pop().expect("there is one");
                let item = line[column..].strip_prefix("- ").unwrap_or_else(|| panic!("no item: {line}"));
                if key_of(item).is_none() {
                    items.push(scalar(item));
                    continue;
                }
                self.left.push(format!("{}{item}", " ".repeat(column + 2)));
                items.push(self.block(column + 2));
            }
            return items.into();
        }
        let mut fields = Map::new();
        while self.indent() == Some(column) {
            let line = self.left.pop().expect("there is one");
            let (key, rest) = key_of(&line[column..]).unwrap_or_else(|| panic!("no field: {line}"));
            let value = match self.indent() {
                Some(below) if rest.is_empty() && below > column => self.block(below),
                _ => scalar(rest),
            };
            let earlier = fields.insert(key.to_owned(), value);
            assert!(earlier.is_none(), "{key} stands there twice");
        }
        Value::Object(fields)
    }
}

/// `key: rest`.
fn key_of(text: &str) -> Option<(&str, &str)> {
    let (key, rest) = text.split_once(':')?;
    let is_key = key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
    (is_key && (rest.is_empty() || rest.starts_with(' '))).then(|| (key, rest.trim()))
}

fn scalar(text: &str) -> Value {
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    let plain = within('\'').or_else(|| within('"'));
    let unread = ["|", ">", "[", "{", "&", "*", "!"];
    assert!(plain.is_some() || !unread.iter().any(|sign| text.starts_with(sign)), "not read: {text}");
    assert!(plain.is_some() || !text.contains(" #") && !text.contains(": "), "quote this: {text}");
    plain.unwrap_or(text).into()
}

pub type Variables = BTreeMap<String, String>;

pub fn variables<'t>(pairs: impl IntoIterator<Item = (&'t str, &'t str)>) -> Variables {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A folder in which a host would run a job, and the environment of each step.
pub struct Job {
    /// The folder of the repository.
    pub repository: PathBuf,
    /// Variables that the host sets for every step.
    pub variables: Variables,
    /// Programs that stand in for those of the host.
    pub programs: PathBuf,
}

impl Job {
    /// Runs a line as hosts do, in a shell that ends at the first failure.
    pub fn run(&self, line: &str, variables: &Variables) -> Said {
        let path = std::env::var("PATH").expect("there is a path");
        let output = Command::new("bash")
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", line])
            .current_dir(&self.repository)
            .env_clear()
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .env("HOME", &self.programs)
            .envs(&self.variables)
            .envs(variables)
            .stdin(Stdio::null())
            .output()
            .expect("bash starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints UTF-8");
        Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// The values of an action's expressions: `${{ expression }}`.
pub struct Expressions(pub Variables);

impl Expressions {
    pub fn replaced(&self, text: &str) -> String {
        let mut parts = text.split("${{");
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (expression, rest) = part.split_once("}}").expect("an expression ends");
            let known = self.0.get(expression.trim());
            whole.push_str(known.unwrap_or_else(|| panic!("nobody says what {expression} is")));
            whole.push_str(rest);
        }
        whole
    }

    /// A step without a condition runs if no step has failed.
    fn lets_run(&self, condition: &Value, has_failed: bool) -> bool {
        condition.as_str().map_or(!has_failed, |text| self.replaced(text) == "true")
    }
}

/// Runs the steps of an action. Returns the job's code, which is the code of the first step that failed, and the whole
/// output.
pub fn run_action(action: &Value, job: &Job, expressions: &Expressions) -> Said {
    let mut all = Said { code: Some(0), stdout: String::new(), stderr: String::new() };
    for step in action["runs"]["steps"].as_array().expect("it has steps") {
        let Some(line) = step["run"].as_str() else { continue };
        if !expressions.lets_run(&step["if"], all.code != Some(0)) {
            continue;
        }
        let given = step["env"].as_object().into_iter().flatten();
        let variables = given
            .map(|(name, value)| (name.clone(), expressions.replaced(value.as_str().expect("a text"))))
            .collect();
        let said = job.run(line, &variables);
        all.stdout.push_str(&said.stdout);
        all.stderr.push_str(&said.stderr);
        if all.code == Some(0) {
            all.code = said.code;
        }
    }
    all
}
