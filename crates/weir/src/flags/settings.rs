//! The settings of a run as its record keeps them: every flag by its name, as given or by default. They are taken from
//! the command line's own description, so that a new flag cannot be left out.

use std::collections::BTreeMap;

use clap::{Arg, ArgMatches, Command};

/// Flags that say nothing about what is measured, and the one that is nobody's business.
const LEFT_OUT: [&str; 4] = ["help", "json", "lang", "password"];

/// Header fields whose values open doors.
const SECRET_FIELDS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// Longest value that is kept whole.
const VALUE_BYTES_MAX: usize = 256;

/// Values by the name of their flag.
pub(crate) type Settings = BTreeMap<String, String>;

/// The settings of the innermost subcommand.
pub(crate) fn of(command: &Command, matches: &ArgMatches) -> Settings {
    if let Some((name, inner)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        return of(command, inner);
    }
    let kept = command.get_arguments().filter(|flag| !LEFT_OUT.contains(&flag.get_id().as_str()));
    kept.filter_map(|flag| Some((name(flag), value(flag, matches)?))).collect()
}

fn name(flag: &Arg) -> String {
    flag.get_long().map_or_else(|| flag.get_id().as_str().replace('_', "-"), str::to_owned)
}

fn value(flag: &Arg, matches: &ArgMatches) -> Option<String> {
    let given = matches.try_get_raw(flag.get_id().as_str()).ok()??;
    let kept = |value: &std::ffi::OsStr| shortened(&without_secret(&value.to_string_lossy()));
    Some(given.map(kept).collect::<Vec<_>>().join(", "))
}

fn without_secret(value: &str) -> String {
    match value.split_once(':') {
        Some((name, _)) if SECRET_FIELDS.contains(&name.trim().to_ascii_lowercase().as_str()) => {
            format!("{name}: (not kept)")
        }
        _ => value.to_owned(),
    }
}

fn shortened(value: &str) -> String {
    if value.len() <= VALUE_BYTES_MAX {
        return value.to_owned();
    }
    let end = (0..=VALUE_BYTES_MAX).rev().find(|end| value.is_char_boundary(*end)).unwrap_or(0);
    format!("{}… ({} bytes)", &value[..end], value.len())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    fn settings(words: &[&str]) -> Settings {
        let mut command = Arguments::command();
        let line = ["weir"].iter().chain(words);
        let matches = command.try_get_matches_from_mut(line).expect("flags that are known");
        of(&command, &matches)
    }

    #[test]
    fn every_flag_of_a_load_is_kept_given_or_not() {
        let kept = settings(&["load", "echo", "-c", "7", "--max-errors", "0.1%", "--pin", "1,3", "--json"]);
        let of = |name: &str| kept.get(name).map(String::as_str);
        assert_eq!([of("connections"), of("max-errors"), of("pin")], [Some("7"), Some("0.1%"), Some("1, 3")]);
        assert_eq!(
            [of("think"), of("arrivals"), of("idle-connections")],
            [Some("0s"), Some("poisson"), Some("0")]
        );
        assert_eq!([of("json"), of("rate"), of("help")], [None; 3]);
    }

    #[test]
    fn what_opens_doors_is_not_kept_and_long_values_are_cut() {
        let long = "x".repeat(1_000);
        let words = ["load", "http", "http://a/", "-H", "Cookie: secret", "-H", "A: b", "--data", &long];
        let kept = settings(&words);
        assert_eq!(kept["header"], "Cookie: (not kept), A: b");
        assert!(kept["data"].ends_with("x… (1000 bytes)") && kept["data"].len() < 300, "{}", kept["data"]);
        let kept = settings(&["load", "orders", "--password", "secret"]);
        assert!(!kept.contains_key("password") && kept["sessions"] == "10", "{kept:?}");
    }
}
