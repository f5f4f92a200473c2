//! Chooses the driver of a runtime: the named one, or the first of `auto`'s that can run here. Also says why a driver
//! is refused.
//!
//! A driver can run when a byte crosses a real socket pair through it; version numbers are not consulted, because
//! distributions move features between versions and sandboxes take them away. Only `auto` tries before it starts: a
//! named driver is started directly, or refused.

use std::{io, time::Duration};

use weir_engine_types::kernel::{KernelFeature, KernelVersion};

use crate::{
    config::{Config, Driver, DriverChoice, ReceiveMode},
    driver::{AnyDriver, MissingFeature},
    executor::Executor,
    multishot_probe,
    net::Stream,
};

/// A driver that cannot run here, with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The kernel, or a sandbox around us, refuses the driver.
    #[error("the {driver} driver cannot run here: {refusal}{}", refusal.remedy().map(|way| format!("; {way}")).unwrap_or_default())]
    Refused {
        /// The driver asked for.
        driver: Driver,
        /// The reason.
        refusal: Refusal,
    },
    /// The driver does not support a requested setting.
    #[error("the {driver} driver cannot do this: {reason}")]
    Unable {
        /// The driver asked for.
        driver: Driver,
        /// The setting that it does not support.
        reason: String,
    },
    /// Neither io_uring nor epoll nor poll could be started.
    #[error("no driver can run here: {0}")]
    Nothing(String),
    /// The call needs the runtime of its thread, and there is none.
    #[error("{0} outside a runtime: call it inside block_on")]
    Outside(&'static str),
}

/// Why the kernel, or a sandbox around us, refuses a driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kernel does not know the calls, or a filter answers as if it did not.
    #[error("this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)")]
    NoRing,
    /// The administrator switched it off.
    #[error("kernel.io_uring_disabled is {level} (EPERM)")]
    RingDisabled {
        /// The value of the setting: 1 forbids it to all but one group, 2 to everybody.
        level: u8,
    },
    /// A sandbox forbids it.
    #[error("a sandbox forbids io_uring (EPERM): containers do so by default through seccomp")]
    RingForbidden,
    /// The limit on locked memory leaves none for the ring.
    #[error("the kernel refused the ring's memory (ENOMEM)")]
    RingMemory,
    /// The kernel's io_uring is older than the driver needs, or is to be used as if it were.
    #[error("io_uring before 5.11 has no wait with a time limit in one call (IORING_ENTER_EXT_ARG)")]
    RingTooOld,
    /// The configuration asks for a newer kernel than this one.
    #[error("this kernel is {running}; it cannot stand for the newer {asked}")]
    KernelOlder {
        /// The kernel asked for.
        asked: KernelVersion,
        /// This kernel.
        running: KernelVersion,
    },
    /// The program was built without the driver.
    #[error("this program was built without it: weir-engine's feature `{0}` is off")]
    NotBuilt(Driver),
    /// An option needs a feature that the kernel lacks or that is masked.
    #[error("{0}")]
    OptionLacks(MissingFeature),
    /// Another reason, in the words of the kernel or of the start-up test.
    #[error("{0}")]
    Other(String),
}

impl Refusal {
    /// What would make the driver available.
    pub fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::NoRing => {
                "run on Linux 5.11 or later with CONFIG_IO_URING, or allow io_uring in the seccomp profile, as \
                 packaging/seccomp.json does"
            }
            Self::RingDisabled { .. } => "run: sudo sysctl -w kernel.io_uring_disabled=0",
            Self::RingForbidden => {
                "run the container with --security-opt seccomp=packaging/seccomp.json, which allows io_uring"
            }
            Self::RingMemory => "raise the locked-memory limit: ulimit -l unlimited",
            Self::NotBuilt(_) => {
                "build the program with the feature of weir-engine that has the driver's name"
            }
            Self::OptionLacks(_) => "leave the option out",
            Self::RingTooOld | Self::KernelOlder { .. } | Self::Other(_) => return None,
        })
    }

    fn of(driver: Driver, error: &io::Error) -> Self {
        if !AnyDriver::is_built(driver) {
            return Self::NotBuilt(driver);
        }
        let other = || Self::Other(error.to_string());
        let missing = error.get_ref().and_then(|inner| inner.downcast_ref::<MissingFeature>());
        if let Some(missing) = missing {
            return Self::OptionLacks(*missing);
        }
        if driver != Driver::Uring {
            return other();
        }
        let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
        match (error.raw_os_error(), disabled.trim().parse()) {
            (Some(libc::ENOSYS), _) => Self::NoRing,
            (Some(libc::EPERM), Ok(level @ 1..)) => Self::RingDisabled { level },
            (Some(libc::EPERM), _) => Self::RingForbidden,
            (Some(libc::ENOMEM), _) => Self::RingMemory,
            (None, _) if error.kind() == io::ErrorKind::Unsupported => Self::RingTooOld,
            _ => other(),
        }
    }
}

/// The order in which `auto` tries drivers.
const AUTO: [Driver; 3] = [Driver::Uring, Driver::Epoll, Driver::Poll];

/// Starts the configured driver, or the first of `auto`'s.
pub(crate) fn start(config: &Config) -> Result<Executor, StartError> {
    let start = |driver| Executor::start(&resolved(config, driver), driver);
    let refused = |driver: Driver, error: io::Error| StartError::Refused {
        driver,
        refusal: Refusal::of(driver, &error),
    };
    #[cfg(any(test, feature = "lab"))]
    check_kernel(config)?;
    match config.driver {
        DriverChoice::Named(driver) => start(driver).map_err(|error| refused(driver, error)),
        DriverChoice::Auto => {
            let mut reasons = Vec::new();
            for driver in AUTO {
                match smoke_test(config, driver).and_then(|()| start(driver)) {
                    Ok(executor) => return Ok(executor),
                    Err(error) => reasons.push(refused(driver, error).to_string()),
                }
            }
            Err(StartError::Nothing(reasons.join(" | ")))
        }
    }
}

/// The configuration with every choice made that depends on this kernel and that a driver cannot make itself.
pub(crate) fn resolved(config: &Config, driver: Driver) -> Config {
    let mut config = config.clone();
    let is_hidden = config.masked().hides(KernelFeature::MultishotReceive);
    if driver == Driver::Uring && config.uring.receive == ReceiveMode::Auto && !is_hidden {
        let is_safe = multishot_probe::reports_every_end();
        config.uring.receive = if is_safe { ReceiveMode::Multishot } else { ReceiveMode::Single };
    }
    config
}

/// An error if the configuration asks for a newer kernel than this one.
#[cfg(any(test, feature = "lab"))]
fn check_kernel(config: &Config) -> Result<(), StartError> {
    let (Some(asked), Some(running)) = (config.as_on_kernel, running_kernel()) else { return Ok(()) };
    if asked <= running {
        return Ok(());
    }
    let refusal = Refusal::KernelOlder { asked, running };
    Err(match config.driver {
        DriverChoice::Named(driver) => StartError::Refused { driver, refusal },
        DriverChoice::Auto => StartError::Nothing(refusal.to_string()),
    })
}

/// The version of this kernel, if its release name begins with one.
#[cfg(any(test, feature = "lab"))]
fn running_kernel() -> Option<KernelVersion> {
    KernelVersion::of_release(&rustix::system::uname().release().to_string_lossy())
}

/// Sends a byte through the driver, over a real socket pair.
pub(crate) fn smoke_test(config: &Config, driver: Driver) -> io::Result<()> {
    if driver == Driver::Sim {
        return Ok(());
    }
    // In a separate thread: the caller may be inside a runtime, and a ring belongs to its thread.
    let config = Config { driver: DriverChoice::Named(driver), ..config.clone() };
    let test =
        std::thread::Builder::new().name("weir-probe".into()).spawn(move || smoke_test_here(&config))?;
    test.join().unwrap_or_else(|_| Err(io::Error::other("the start-up test panicked")))
}

fn smoke_test_here(config: &Config) -> io::Result<()> {
    use std::io::{Read, Write};
    let executor = start(config).map_err(|error| match error {
        StartError::Refused { refusal, .. } => io::Error::other(refusal),
        other => io::Error::other(other.to_string()),
    })?;
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair()?;
    theirs.set_read_timeout(Some(Duration::from_secs(5)))?;
    theirs.write_all(b"w")?;
    let outcome = executor.block_on(async {
        let stream = Stream::from_descriptor(ours.into())?;
        let received = stream.recv().await?;
        let lease = received.ok_or(io::ErrorKind::UnexpectedEof)?;
        stream.send(lease).await?;
        stream.flush().await
    });
    outcome?;
    let mut byte = [0];
    theirs.read_exact(&mut byte)?;
    if byte == *b"w" { Ok(()) } else { Err(io::Error::other("the start-up test returned another byte")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_that_is_asked_for_is_the_oldest_that_the_driver_runs_on() {
        let refused = Refusal::RingTooOld.to_string();
        let (_, rest) = refused.split_once("before ").expect("it names a kernel");
        let oldest = rest.split(' ').next().expect("a version stands there");
        let remedy = Refusal::NoRing.remedy().expect("there is one");
        assert!(remedy.contains(&format!("Linux {oldest} or later")), "{remedy}");
    }

    #[test]
    fn a_kernel_that_is_newer_than_this_one_is_refused_by_name() {
        let asked = KernelVersion::new(u16::MAX, 0);
        let running = running_kernel().expect("Linux has a version");
        for driver in [Driver::Uring, Driver::Epoll] {
            let config = Config::for_test(driver).like_kernel(asked);
            let Err(StartError::Refused { refusal, .. }) = crate::Runtime::new(&config) else {
                panic!("{driver} runs as on {asked}");
            };
            assert_eq!(refusal, Refusal::KernelOlder { asked, running });
        }
        let any = Config::default().like_kernel(asked);
        let error = crate::Runtime::new(&any).expect_err("it is newer").to_string();
        assert!(error.contains(&asked.to_string()) && error.contains(&running.to_string()), "{error}");
    }
}
