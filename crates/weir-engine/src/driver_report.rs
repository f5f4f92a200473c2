//! Reports which features the kernel grants each driver, by trying it.
//!
//! A driver is available when it passes the start-up test of `driver_choice.rs`.

use std::fmt;

use crate::{
    config::{Config, Driver, DriverChoice},
    driver::AnyDriver,
    driver_choice::{Refusal, StartError, resolved, smoke_test, start},
};

/// The probe's result for one driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverReport {
    /// The driver.
    pub driver: Driver,
    /// The features that the kernel granted, as stable names (`multishot-receive`).
    pub granted: Vec<&'static str>,
    /// Why the start-up test failed; absent when it passed.
    pub refusal: Option<Refusal>,
}

impl DriverReport {
    /// Whether the start-up test passed.
    pub fn is_available(&self) -> bool {
        self.refusal.is_none()
    }

    /// The granted features or the refusal, in words.
    pub fn detail(&self) -> String {
        let granted = || self.granted.join(", ").replace('-', " ");
        self.refusal.as_ref().map_or_else(granted, ToString::to_string)
    }
}

/// Tries every driver of the kernel.
pub fn probe(config: &Config) -> Vec<DriverReport> {
    let kernel = Driver::ALL.into_iter().filter(|driver| *driver != Driver::Sim);
    let report = |driver| match smoke_test(config, driver) {
        Ok(()) => DriverReport { driver, granted: granted(config, driver), refusal: None },
        Err(error) => {
            let named = Config { driver: DriverChoice::Named(driver), ..config.clone() };
            let refusal = match start(&named) {
                Err(StartError::Refused { refusal, .. }) => refusal,
                _ => Refusal::Other(error.to_string()),
            };
            DriverReport { driver, granted: Vec::new(), refusal: Some(refusal) }
        }
    };
    kernel.map(report).collect()
}

/// The features that the kernel granted the driver.
fn granted(config: &Config, driver: Driver) -> Vec<&'static str> {
    AnyDriver::granted(driver, &resolved(config, driver)).unwrap_or_default()
}

impl fmt::Display for DriverReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_available() { "yes" } else { "no" };
        write!(formatter, "{}: {word}, {}", self.driver, self.detail())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{ReceiveMode, UringOptions};

    /// io_uring as on an older kernel.
    fn on_kernel(version: &str) -> Config {
        Config::for_test(Driver::Uring).like_kernel(version.parse().expect("it is a version"))
    }

    #[test]
    fn an_option_is_refused_by_name_where_the_kernel_lacks_what_it_needs() {
        type Set = fn(&mut UringOptions);
        let options: [(&str, Set, &str); 5] = [
            ("minimum-wait-us", |options| options.minimum_wait = Duration::from_micros(50), "6.11"),
            ("fixed-files", |options| options.fixed_files = true, "6.12"),
            ("send-zc-bytes", |options| options.zero_copy_bytes_min = Some(16384), "5.19"),
            ("receive", |options| options.receive = ReceiveMode::Bundle, "6.9"),
            ("sqpoll-idle-ms", |options| options.poll_idle_ms = Some(20), "5.12"),
        ];
        for (option, set, older) in options {
            let mut config = on_kernel(older);
            set(&mut config.uring);
            let Err(StartError::Refused { refusal, .. }) = crate::Runtime::new(&config) else {
                panic!("{option} as on {older}");
            };
            let is_named = matches!(&refusal, Refusal::OptionLacks(missing) if missing.option == option);
            assert!(is_named || is_sandboxed(), "{refusal}");
            let report = probe(&config).into_iter().find(|report| report.driver == Driver::Uring);
            assert_eq!(report.and_then(|report| report.refusal), Some(refusal));
        }
    }

    fn is_sandboxed() -> bool {
        probe(&Config::default()).iter().any(|it| it.driver == Driver::Uring && !it.is_available())
    }

    #[test]
    fn io_uring_as_before_5_11_is_refused_by_what_it_lacks() {
        let config = on_kernel("5.10");
        let Err(StartError::Refused { refusal, .. }) = crate::Runtime::new(&config) else {
            panic!("it runs as on 5.10");
        };
        assert!(refusal == Refusal::RingTooOld || is_sandboxed(), "{refusal}");
        let automatic = Config { driver: DriverChoice::Auto, ..config };
        assert_eq!(crate::Runtime::new(&automatic).expect("epoll is left").driver(), Driver::Epoll);
    }
}
