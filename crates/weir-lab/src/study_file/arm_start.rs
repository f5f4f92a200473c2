//! How a study file starts an arm: its environment and folder, the commands before and after it, and how it shows
//! that it is ready.

use std::collections::BTreeMap;

use weir_record::spec::{ArmStart, Ready, Subject};

use crate::{
    limits::{self, SpecError},
    toml_table::{At, Entry, FieldError, Table},
};

/// Keys of a start. A server that runs already has none of them.
const KEYS: [&str; 7] =
    ["environment", "folder", "setup", "cleanup", "setup_timeout", "ready", "ready_timeout"];

/// Takes the keys out of an arm that starts a server. Other arms have no start and are refused if they set a key.
pub(super) fn read(arm: &mut Table<'_>, subject: &Subject) -> Result<ArmStart, FieldError> {
    match subject {
        Subject::Weir { .. } | Subject::Command { .. } => {}
        Subject::Running(_) => {
            return match KEYS.iter().find(|key| arm.has(key)) {
                Some(key) => {
                    Err(arm.wrong(&format!("it runs already, and is not started here: leave `{key}` out")))
                }
                None => Ok(ArmStart::default()),
            };
        }
        Subject::Gateway(_) | Subject::Storage(_) | Subject::Fio { .. } => return Ok(ArmStart::default()),
    }
    let start = ArmStart {
        environment: arm.read("environment", environment)?.unwrap_or_default(),
        folder: arm.read("folder", Entry::text)?,
        setup: arm.read("setup", command)?.unwrap_or_default(),
        cleanup: arm.read("cleanup", command)?.unwrap_or_default(),
        command_ns_max: arm.read("setup_timeout", Entry::length)?,
        ready: arm.read("ready", ready)?.unwrap_or_default(),
        ready_ns_max: arm.read("ready_timeout", Entry::length)?,
    };
    let at = |error: &SpecError| {
        let key = error.key.strip_prefix("arm.").unwrap_or_default();
        arm.places().get(key).copied().unwrap_or_else(|| arm.at())
    };
    let told = match subject {
        Subject::Command { argv } => limits::port(argv, &start),
        _ => Ok(()),
    };
    told.and_then(|()| limits::arm_start(&start, matches!(subject, Subject::Weir { .. })))
        .map_err(|error| FieldError { at: at(&error), error })?;
    Ok(start)
}

fn environment(entry: Entry<'_>) -> Result<BTreeMap<String, String>, FieldError> {
    entry.options()
}

/// A command that names a program.
fn command(entry: Entry<'_>) -> Result<Vec<String>, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let words = entry.words()?;
    match words.first().is_none_or(String::is_empty) {
        true => Err(SpecError::new(&key, "the command is empty; it must name a program".to_owned())).at(at),
        false => Ok(words),
    }
}

/// `"port"`, `{ line = "text" }` or `{ command = ["program"] }`.
fn ready(entry: Entry<'_>) -> Result<Ready, FieldError> {
    let wrong = entry.wrong("write \"port\", { line = \"text\" } or { command = [\"program\"] }".to_owned());
    if entry.is_text() {
        return if entry.text()? == "port" { Ok(Ready::Port) } else { Err(wrong) };
    }
    let mut table = entry.table()?;
    let line = table.read("line", Entry::text)?;
    let command = table.read("command", command)?;
    table.finish(|_| None)?;
    match (line, command) {
        (Some(line), None) => Ok(Ready::Line(line)),
        (None, Some(command)) => Ok(Ready::Command(command)),
        _ => Err(wrong),
    }
}
