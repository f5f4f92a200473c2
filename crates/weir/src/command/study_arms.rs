//! Arms on the command line of a study: further ones, and keys of single ones.

use anyhow::Result;
use weir_lab::study_file::{ArmKey, ArmValue};
use weir_report::localized;

use crate::{args::ArmFlags, exit::UsageError, language};

/// Keys of arms by the flags that set them. Among flags with a common beginning the longest key comes first.
pub(super) const KEYS: [(&str, &str); 9] = [
    ("arm.pid", "--arm-pid"),
    ("arm.cgroup", "--arm-cgroup"),
    ("arm.environment", "--arm-env"),
    ("arm.folder", "--arm-dir"),
    ("arm.setup", "--arm-setup"),
    ("arm.cleanup", "--arm-cleanup"),
    ("arm.setup_timeout", "--arm-setup-timeout"),
    ("arm.ready", "--arm-ready"),
    ("arm.ready_timeout", "--arm-ready-timeout"),
];

/// Further arms, and named arms of the file: name, and the words of a command, an address or nothing.
pub(super) fn arms(written: &[String]) -> Result<Vec<(String, Vec<String>)>> {
    let one = |written: &String| {
        let (name, command) = written.split_once('=').unwrap_or((written, ""));
        let is_named = written.contains('=');
        let words = if is_named { words("--arm", written, command)? } else { Vec::new() };
        Ok((name.to_owned(), words))
    };
    written.iter().map(one).collect()
}

/// The keys that flags about single arms set.
pub(super) fn keys(flags: &ArmFlags) -> Result<Vec<ArmKey>> {
    let mut keys = Vec::new();
    for (flag, written) in flags.all() {
        for text in written {
            keys.push(key(flag, text)?);
        }
    }
    Ok(keys)
}

fn key(flag: &'static str, written: &str) -> Result<ArmKey> {
    let Some((arm, value)) = written.split_once('=').filter(|(arm, _)| !arm.is_empty()) else {
        return Err(UsageError(localized!(
            language::of_command_line(),
            "{flag} {written}: write NAME=VALUE, with the name of an arm",
            "{flag} {written}: 비교 대상의 이름과 함께 NAME=VALUE로 쓰십시오",
            "{flag} {written}：请写成 NAME=VALUE，NAME 是方案的名称",
        ))
        .into());
    };
    let found = KEYS.iter().find(|(_, own)| *own == flag).and_then(|(key, _)| key.strip_prefix("arm."));
    let key = found.unwrap_or_default();
    let value = match flag {
        "--arm-pid" => ArmValue::Number(value.parse().map_err(|_| wrong(flag, written, "NAME=PID"))?),
        "--arm-env" => {
            let (name, value) =
                value.split_once('=').ok_or_else(|| wrong(flag, written, "NAME=KEY=VALUE"))?;
            ArmValue::Entry(name.to_owned(), Box::new(ArmValue::Text(value.to_owned())))
        }
        "--arm-setup" | "--arm-cleanup" => ArmValue::Words(words(flag, written, value)?),
        "--arm-ready" => ready(flag, written, value)?,
        _ => ArmValue::Text(value.to_owned()),
    };
    Ok(ArmKey { flag, arm: arm.to_owned(), key, value })
}

fn ready(flag: &str, written: &str, value: &str) -> Result<ArmValue> {
    let entry = |name: &str, value| ArmValue::Entry(name.to_owned(), Box::new(value));
    match value.split_once(':') {
        None if value == "port" => Ok(ArmValue::Text(value.to_owned())),
        Some(("line", text)) if !text.is_empty() => Ok(entry("line", ArmValue::Text(text.to_owned()))),
        Some(("command", command)) => Ok(entry("command", ArmValue::Words(words(flag, written, command)?))),
        _ => Err(wrong(flag, written, "NAME=port, NAME=line:TEXT, NAME=command:COMMAND").into()),
    }
}

/// The words of a command, split as a shell would.
fn words(flag: &str, written: &str, command: &str) -> Result<Vec<String>> {
    let words = shlex::split(command).filter(|words| !words.is_empty());
    words.ok_or_else(|| {
        UsageError(localized!(
            language::of_command_line(),
            "{flag} {written}: a quote is open, or the command is empty",
            "{flag} {written}: 따옴표가 닫히지 않았거나 명령이 비어 있습니다",
            "{flag} {written}：引号未闭合，或命令为空",
        ))
        .into()
    })
}

fn wrong(flag: &str, written: &str, right: &str) -> UsageError {
    UsageError(localized!(
        language::of_command_line(),
        "{flag} {written}: write {right}",
        "{flag} {written}: {right} 형식으로 쓰십시오",
        "{flag} {written}：请写成 {right}",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flag: &'static str, text: &str) -> Result<ArmValue, String> {
        key(flag, text).map(|key| key.value).map_err(|error| error.to_string())
    }

    fn words(text: &str) -> ArmValue {
        ArmValue::Words(text.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn every_flag_sets_a_key_of_its_arm() {
        for (flag, _) in ArmFlags::default().all() {
            assert!(KEYS.iter().any(|(_, own)| *own == flag), "{flag}");
        }
        let text = |value: &str| ArmValue::Text(value.to_owned());
        let entry = |name: &str, value| ArmValue::Entry(name.to_owned(), Box::new(value));
        assert_eq!(of("--arm-pid", "a=7"), Ok(ArmValue::Number(7)));
        assert_eq!(of("--arm-cgroup", "a=/b=c"), Ok(text("/b=c")));
        assert_eq!(of("--arm-env", "a=K=V=W"), Ok(entry("K", text("V=W"))));
        assert_eq!(of("--arm-setup", "a=make 'x y'"), Ok(ArmValue::Words(vec!["make".into(), "x y".into()])));
        assert_eq!(of("--arm-ready", "a=port"), Ok(text("port")));
        assert_eq!(of("--arm-ready", "a=line:up: 1"), Ok(entry("line", text("up: 1"))));
        assert_eq!(of("--arm-ready", "a=command:curl x"), Ok(entry("command", words("curl x"))));
        assert_eq!(key("--arm-dir", "a=b").map(|key| key.key).ok(), Some("folder"));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_how_it_is_written() {
        for (flag, text, right) in [
            ("--arm-pid", "7", "NAME=VALUE"),
            ("--arm-pid", "a=seven", "NAME=PID"),
            ("--arm-env", "a=K", "NAME=KEY=VALUE"),
            ("--arm-setup", "a='x", "a quote is open"),
            ("--arm-setup", "a=", "the command is empty"),
            ("--arm-ready", "a=soon", "line:TEXT"),
            ("--arm-ready", "a=line:", "line:TEXT"),
            ("--arm-ready", "a=command:", "the command is empty"),
        ] {
            let error = of(flag, text).expect_err(text);
            assert!(error.starts_with(&format!("{flag} {text}: ")) && error.contains(right), "{error}");
        }
    }
}
