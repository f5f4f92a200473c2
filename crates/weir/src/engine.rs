//! Engine options, addresses, CPUs and times as people type them. Every message names its flag.

use std::{net::ToSocketAddrs, time::Duration};

use anyhow::Result;
use weir_engine::{Config, Driver, DriverChoice, Runtime, net::Address};
use weir_lab::length::length_ns;
use weir_record::{
    kernel::{AS_ON_KERNEL, FEATURES, KernelVersion, lacking},
    quantity,
};
use weir_report::localized;

use crate::{engine_options, exit::UsageError, language};

/// A configuration from a driver name and `name=value` options.
pub(crate) fn config(driver: &str, options: &[String]) -> Result<Config> {
    let choice = match driver.parse::<DriverChoice>() {
        Ok(DriverChoice::Named(Driver::Sim)) | Err(_) => {
            return Err(UsageError(localized!(
                language::of_command_line(),
                "--driver {driver:?} is not known; use auto, uring, epoll, poll, select or blocking",
                "--driver {driver:?}: 알 수 없는 값입니다. auto, uring, epoll, poll, select, blocking 중에서 쓰십시오",
                "--driver {driver:?}：未知的值；可用 auto、uring、epoll、poll、select 或 blocking",
            ))
            .into());
        }
        Ok(choice) => choice,
    };
    let mut config = Config { driver: choice, ..Config::default() };
    for option in options {
        let Some((name, value)) = option.split_once('=') else {
            return Err(UsageError(localized!(
                language::of_command_line(),
                "--option {option:?} has no value; write it as name=value",
                "--option {option:?}: 값이 없습니다. name=value 형식으로 쓰십시오",
                "--option {option:?}：没有值；请写成 name=value",
            ))
            .into());
        };
        engine_options::set(&mut config, name, &quantity::option_value(name, value)).map_err(|error| {
            let (language, expected) = (language::of_command_line(), error.expected);
            UsageError(if error.name == name {
                localized!(
                    language,
                    "--option {option}: {value:?} is not possible; use {expected}",
                    "--option {option}: {value:?}은(는) 쓸 수 없습니다. 쓸 수 있는 값: {expected}",
                    "--option {option}：不能用 {value:?}；可用 {expected}",
                )
            } else {
                localized!(
                    language,
                    "--option {option}: there is no option {name:?}; there are {expected}",
                    "--option {option}: {name:?} 옵션이 없습니다. 쓸 수 있는 옵션: {expected}",
                    "--option {option}：没有选项 {name:?}；可用的选项：{expected}",
                )
            })
        })?;
    }
    if let DriverChoice::Named(driver) = config.driver {
        check_options(options, driver)?;
    }
    Ok(config)
}

/// Refuses options that have no effect on this driver.
pub(crate) fn check_options(options: &[String], driver: Driver) -> Result<()> {
    for option in options {
        let name = option.split('=').next().unwrap_or_default();
        if !engine_options::applies(name, driver) {
            return Err(UsageError(localized!(
                language::of_command_line(),
                "--option {option}: the {driver} driver has no option {name:?}; leave it out",
                "--option {option}: {driver} 드라이버에는 {name:?} 옵션이 없습니다. 빼십시오",
                "--option {option}：{driver} 驱动没有选项 {name:?}；请去掉",
            ))
            .into());
        }
        // An arm that masks nothing would duplicate another one.
        let kernel = option.strip_prefix(AS_ON_KERNEL).and_then(|rest| rest.strip_prefix('='));
        let kernel = kernel.and_then(|version| version.parse::<KernelVersion>().ok());
        if kernel.is_some_and(|version| lacking(version, driver.name()).next().is_none()) {
            let newest = FEATURES.iter().find(|row| row.driver == driver.name()).map(|row| row.since);
            let newest = newest.map_or_else(String::new, |since| since.to_string());
            return Err(UsageError(localized!(
                language::of_command_line(),
                "--option {option}: the {driver} driver uses nothing that came after {newest}; name an older kernel, or \
                 leave it out",
                "--option {option}: {driver} 드라이버는 {newest} 이후의 기능을 쓰지 않습니다. 더 오래된 커널을 지정하거나, 빼십시오",
                "--option {option}：{driver} 驱动不使用 {newest} 之后才有的功能；请指定更旧的内核，或去掉此选项",
            ))
            .into());
        }
    }
    Ok(())
}

/// Chooses the driver, if the choice is open, and checks that all options apply to it. Returns the reason of an open
/// choice.
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

/// An address, with its flag. The name of a host is looked up, which may take a while.
pub(crate) fn address(flag: &str, text: &str) -> Result<Address> {
    Address::resolve(text).map_err(|error| UsageError(format!("{flag} {error}")).into())
}

/// All addresses of a host, the resolver's first choice first; addresses other than TCP have one.
pub(crate) fn addresses(flag: &str, text: &str) -> Result<Vec<Address>> {
    let first = address(flag, text)?;
    let mut all = vec![first];
    if text.parse::<Address>().is_err() {
        // The same name was resolved a moment ago.
        for other in text.to_socket_addrs().into_iter().flatten().map(Address::Tcp) {
            if !all.contains(&other) {
                all.push(other);
            }
        }
    }
    Ok(all)
}

/// Refuses CPUs that this process may not run on.
pub(crate) fn check_pin(cpus: &[usize]) -> Result<()> {
    check_cpus(cpus).map_err(|reason| UsageError(format!("--pin: {reason}")).into())
}

/// The reason why not all of these CPUs are available, with those that are. If this is unknown, the kernel reports it
/// later.
pub(crate) fn check_cpus(cpus: &[usize]) -> Result<(), String> {
    let allowed = weir_sys::affinity::allowed_cpus().unwrap_or_default();
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) if !allowed.is_empty() => {
            let list: Vec<String> = allowed.iter().map(usize::to_string).collect();
            let list = list.join(",");
            Err(localized!(
                language::of_command_line(),
                "CPU {cpu} is not there or not allowed; use some of {list}",
                "CPU {cpu}: 없거나 허용되지 않은 CPU입니다. {list} 중에서 쓰십시오",
                "CPU {cpu} 不存在或不允许使用；请从 {list} 中选择",
            ))
        }
        _ => Ok(()),
    }
}

/// A time limit in seconds.
pub(crate) fn seconds(flag: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        UsageError(localized!(
            language::of_command_line(),
            "{flag} {value} is not a time in seconds; use 0 or more",
            "{flag} {value}: 초 단위 시간이 아닙니다. 0 이상을 쓰십시오",
            "{flag} {value}：不是以秒计的时间；请写 0 或更大的值",
        ))
        .into()
    })
}

/// A time with its unit: `1.5s`, `500ms`, `20us`, `2m`, `2min`, `1h`, or a bare number of seconds.
pub(crate) fn time(flag: &str, text: &str) -> Result<Duration> {
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let ns = if is_bare { length_ns(&format!("{text}s")) } else { length_ns(text) };
    ns.map(Duration::from_nanos).ok_or_else(|| {
        UsageError(localized!(
            language::of_command_line(),
            "{flag} {text:?} is not a time; write 1.5s, 500ms, 20us, 2min or 1h",
            "{flag} {text:?}: 시간이 아닙니다. 1.5s, 500ms, 20us, 2min, 1h처럼 쓰십시오",
            "{flag} {text:?}：不是时间；请写成 1.5s、500ms、20us、2min 或 1h",
        ))
        .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_carry_their_unit() {
        for (text, milliseconds) in
            [("1.5s", 1500), ("500ms", 500), ("2m", 120_000), ("2min", 120_000), ("3", 3000), ("0.5", 500)]
        {
            assert_eq!(time("--duration", text).unwrap(), Duration::from_millis(milliseconds));
        }
        for text in ["", ".", "s", "-1s", "1d", "1u", "inf", "nan"] {
            assert!(time("--duration", text).unwrap_err().to_string().contains("--duration"), "{text}");
        }
    }

    #[test]
    fn an_option_that_would_do_nothing_is_refused_by_name() {
        let error = config("epoll", &["receive=single".into()]).unwrap_err().to_string();
        assert!(error.contains("receive") && error.contains("epoll"), "{error}");
        assert!(config("uring", &["receive=single".into()]).is_ok());
        assert!(config("uring", &["receive".into()]).is_err());
        let sized = config("io_uring", &["buffer-bytes=4k".into()]).unwrap();
        assert_eq!(sized.buffers.bytes, Some(4096));
    }

    #[test]
    fn every_option_of_the_engine_is_in_the_guide_and_nothing_else() {
        let guide = include_str!("../../../docs/guide/io-models.md");
        let (_, section) = guide.split_once("\n## Options of Weir's drivers\n").expect("it is there");
        let (section, _) = section.split_once("\n## ").expect("another one follows");
        let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let known: Vec<&str> = engine_options::OPTIONS.iter().map(|(name, _, _)| *name).collect();
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
