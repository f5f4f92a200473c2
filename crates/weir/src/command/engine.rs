//! Engine options, addresses, CPUs and times as people type them. Every mistake is told with its flag.

use std::time::Duration;

use anyhow::Result;
use weir_engine::{Config, Driver, DriverChoice, Runtime, net::Address};
use weir_record::kernel::{AS_ON_KERNEL, FEATURES, KernelVersion, lacking};

use crate::exit::UsageError;

/// A configuration from a driver name and `name=value` options.
pub(crate) fn config(driver: &str, options: &[String]) -> Result<Config> {
    let choice = match driver.parse::<DriverChoice>() {
        Ok(DriverChoice::Named(Driver::Sim)) | Err(_) => {
            let text =
                format!("--driver {driver:?} is not known; use auto, uring, epoll, poll, select or blocking");
            return Err(UsageError(text).into());
        }
        Ok(choice) => choice,
    };
    let mut config = Config { driver: choice, ..Config::default() };
    for option in options {
        let Some((name, value)) = option.split_once('=') else {
            return Err(
                UsageError(format!("--option {option:?} has no value; write it as name=value")).into()
            );
        };
        config.set_option(name, value).map_err(|error| {
            UsageError(if error.name == name {
                format!("--option {option}: {value:?} is not possible; use {}", error.expected)
            } else {
                format!("--option {option}: there is no option {name:?}; there are {}", error.expected)
            })
        })?;
    }
    if let DriverChoice::Named(driver) = config.driver {
        check_options(options, driver)?;
    }
    Ok(config)
}

/// Refuses options that would do nothing on this driver.
pub(crate) fn check_options(options: &[String], driver: Driver) -> Result<()> {
    for option in options {
        let name = option.split('=').next().unwrap_or_default();
        if !Config::option_applies(name, driver) {
            let text = format!("--option {option}: the {driver} driver has no option {name:?}; leave it out");
            return Err(UsageError(text).into());
        }
        // An arm that masks nothing would be another one twice.
        let kernel = option.strip_prefix(AS_ON_KERNEL).and_then(|rest| rest.strip_prefix('='));
        let kernel = kernel.and_then(|version| version.parse::<KernelVersion>().ok());
        if kernel.is_some_and(|version| lacking(version, driver.name()).next().is_none()) {
            let newest = FEATURES.iter().find(|row| row.driver == driver.name()).map(|row| row.since);
            let newest = newest.map_or_else(String::new, |since| since.to_string());
            let text = format!(
                "--option {option}: the {driver} driver uses nothing that came after {newest}; name an older kernel, or \
                 leave it out"
            );
            return Err(UsageError(text).into());
        }
    }
    Ok(())
}

/// Settles which driver runs, from a choice that may be open, and whether all options apply to it. Says why, when the
/// choice was open.
pub(crate) fn resolve(config: &mut Config, options: &[String]) -> Result<Option<String>> {
    if config.driver != DriverChoice::Auto {
        return Ok(None);
    }
    let driver = Runtime::new(config)?.driver();
    check_options(options, driver)?;
    let refused: Vec<String> = weir_engine::probe(config)
        .into_iter()
        .take_while(|report| report.driver != driver)
        .map(|report| format!("{} does not run here: {}", report.driver, report.detail()))
        .collect();
    config.driver = DriverChoice::Named(driver);
    let why = if refused.is_empty() { "the first that passed its test".into() } else { refused.join("; ") };
    Ok(Some(format!("driver auto: {driver} ({why})")))
}

/// An address, with the flag it was given by. The name of a host is looked up, which may take its time.
pub(crate) fn address(flag: &str, text: &str) -> Result<Address> {
    Address::resolve(text).map_err(|error| UsageError(format!("{flag} {error}")).into())
}

/// Refuses CPUs that this process may not run on.
pub(crate) fn check_pin(cpus: &[usize]) -> Result<()> {
    check_cpus(cpus).map_err(|reason| UsageError(format!("--pin: {reason}")).into())
}

/// Why not all of these can be had, with those that can. Where that cannot be found out, the kernel will say.
pub(crate) fn check_cpus(cpus: &[usize]) -> Result<(), String> {
    let allowed = weir_sys::affinity::allowed_cpus().unwrap_or_default();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) if !allowed.is_empty() => {
            let list: Vec<String> = allowed.iter().map(usize::to_string).collect();
            Err(format!("CPU {cpu} is not there or not allowed; use some of {}", list.join(",")))
        }
        _ => Ok(()),
    }
}

/// A time limit in seconds.
pub(crate) fn seconds(flag: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| UsageError(format!("{flag} {value} is not a time in seconds; use 0 or more")).into())
}

/// A time with its unit: `1.5s`, `500ms`, `20us`, `2m`, `2min`, `1h`, or a bare number of seconds.
pub(crate) fn time(flag: &str, text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" | "s" => Some(1.0),
        "ms" => Some(1e-3),
        "us" => Some(1e-6),
        "m" | "min" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = digits.parse::<f64>().ok().zip(scale).map(|(number, scale)| number * scale);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).ok_or_else(|| {
        UsageError(format!("{flag} {text:?} is not a time; write 1.5s, 500ms, 20us, 2min or 1h")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_their_unit() {
        for (text, milliseconds) in
            [("1.5s", 1500), ("500ms", 500), ("2m", 120_000), ("2min", 120_000), ("3", 3000)]
        {
            assert_eq!(time("--duration", text).unwrap(), Duration::from_millis(milliseconds));
        }
        for text in ["", "s", "-1s", "1d", "inf", "nan"] {
            assert!(time("--duration", text).unwrap_err().to_string().contains("--duration"), "{text}");
        }
    }

    #[test]
    fn an_option_that_would_do_nothing_is_refused_by_name() {
        let error = config("epoll", &["receive=single".into()]).unwrap_err().to_string();
        assert!(error.contains("receive") && error.contains("epoll"), "{error}");
        assert!(config("uring", &["receive=single".into()]).is_ok());
        assert!(config("uring", &["receive".into()]).is_err());
    }

    #[test]
    fn every_option_of_the_engine_is_in_the_guide_and_nothing_else() {
        let guide = include_str!("../../../../docs/guide/io-models.md");
        let (_, section) = guide.split_once("\n## Options of Weir's drivers\n").expect("it is there");
        let (section, _) = section.split_once("\n## ").expect("another one follows");
        let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let known: Vec<&str> = Config::OPTIONS.iter().map(|(name, _, _)| *name).collect();
        assert_eq!(names.collect::<Vec<_>>(), known);
    }

    #[test]
    fn a_kernel_that_would_mask_nothing_is_refused_with_one_that_would() {
        for (driver, version, newest) in [("uring", "6.15", "6.15"), ("epoll", "5.19", "5.11")] {
            let error = config(driver, &[format!("as-on-kernel={version}")]).unwrap_err().to_string();
            assert!(error.contains(&format!("after {newest};")), "{error}");
        }
        for (driver, version) in [("uring", "6.14"), ("uring", "5.7"), ("epoll", "5.10")] {
            assert!(config(driver, &[format!("as-on-kernel={version}")]).is_ok(), "{driver} {version}");
        }
        let error = config("uring", &["as-on-kernel=5.19.1".into()]).unwrap_err().to_string();
        assert!(error.contains("5.19.1") && error.contains("from 4.14 on"), "{error}");
        let error = config("poll", &["as-on-kernel=5.19".into()]).unwrap_err().to_string();
        assert!(error.contains("the poll driver has no option"), "{error}");
    }
}
