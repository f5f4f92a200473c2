//! Engine options as people type them.

use std::time::Duration;

use anyhow::Result;
use weir_engine::{Config, Driver, DriverChoice};

use crate::exit::UsageError;

/// A configuration from a driver name and `name=value` options.
pub(crate) fn config(driver: &str, options: &[String]) -> Result<Config> {
    let mut config = Config { driver: driver.parse::<DriverChoice>()?, ..Config::default() };
    for option in options {
        let Some((name, value)) = option.split_once('=') else {
            return Err(
                UsageError(format!("--option {option:?} has no value; write it as name=value")).into()
            );
        };
        config.set_option(name, value)?;
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
    }
    Ok(())
}

/// A time limit in seconds.
pub(crate) fn seconds(flag: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| UsageError(format!("{flag} {value} is not a time in seconds; use 0 or more")).into())
}
