//! Which drivers the kernel lets us use, found by trying them, and why not where it does not.
//!
//! A driver passes when a byte crosses a real socket pair through it; version numbers are not consulted, because
//! distributions move features between versions and sandboxes take them away.

use std::{fmt, io, rc::Rc, time::Duration};

use crate::{
    config::{Config, Driver, DriverChoice},
    runtime::Core,
};

/// A driver that cannot run here, with the reason and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The kernel, or a sandbox around us, refuses the driver.
    #[error("the {driver} driver cannot run here: {reason}{}", unlock.as_ref().map(|way| format!("; {way}")).unwrap_or_default())]
    Refused {
        /// Driver asked for.
        driver: Driver,
        /// What is in the way.
        reason: String,
        /// What would unlock it.
        unlock: Option<String>,
    },
    /// The driver cannot do what was asked of it.
    #[error("the {driver} driver cannot do this: {reason}")]
    Unable {
        /// Driver asked for.
        driver: Driver,
        /// What it cannot do.
        reason: String,
    },
    /// Neither io_uring nor epoll nor poll could be started.
    #[error("no driver can run here: {0}")]
    Nothing(String),
}

/// What the probe found about one driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverReport {
    /// Driver.
    pub driver: Driver,
    /// Whether it passed its start-up test.
    pub available: bool,
    /// What was granted, or why not.
    pub detail: String,
    /// What would unlock it.
    pub unlock: Option<String>,
}

/// Order in which `auto` tries.
const AUTO: [Driver; 3] = [Driver::Uring, Driver::Epoll, Driver::Poll];

/// Starts the configured driver, or the first of `auto`'s.
pub(crate) fn start_runtime(
    config: &Config,
    start: impl Fn(Driver) -> io::Result<Rc<Core>>,
) -> Result<Rc<Core>, StartError> {
    let refused = |driver: Driver, error: io::Error| {
        let (reason, unlock) = explain(driver, &error);
        StartError::Refused { driver, reason, unlock }
    };
    match config.driver {
        DriverChoice::Named(driver) => start(driver).map_err(|error| refused(driver, error)),
        DriverChoice::Auto => {
            let mut reasons = Vec::new();
            for driver in AUTO {
                match smoke_test(config, driver).and_then(|()| start(driver)) {
                    Ok(core) => return Ok(core),
                    Err(error) => reasons.push(refused(driver, error).to_string()),
                }
            }
            Err(StartError::Nothing(reasons.join(" | ")))
        }
    }
}

/// Sends a byte through the driver, over a real socket pair.
fn smoke_test(config: &Config, driver: Driver) -> io::Result<()> {
    if driver == Driver::Sim {
        return Ok(());
    }
    // In a thread of its own: the caller may be inside a runtime, and a ring belongs to its thread.
    let config = Config { driver: DriverChoice::Named(driver), ..config.clone() };
    let test =
        std::thread::Builder::new().name("weir-probe".into()).spawn(move || smoke_test_here(&config))?;
    test.join().unwrap_or_else(|_| Err(io::Error::other("the start-up test panicked")))
}

fn smoke_test_here(config: &Config) -> io::Result<()> {
    use std::io::{Read, Write};
    let runtime = crate::Runtime::new(config).map_err(|error| match error {
        StartError::Refused { reason, .. } => io::Error::other(reason),
        other => io::Error::other(other.to_string()),
    })?;
    let (ours, mut theirs) = std::os::unix::net::UnixStream::pair()?;
    theirs.set_read_timeout(Some(Duration::from_secs(5)))?;
    theirs.write_all(b"w")?;
    let outcome = runtime.block_on(async {
        let stream = crate::net::Stream::from_descriptor(ours.into())?;
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

/// Turns a start-up error into a sentence and a remedy.
fn explain(driver: Driver, error: &io::Error) -> (String, Option<String>) {
    let plain = (error.to_string(), None);
    if driver != Driver::Uring {
        return plain;
    }
    let disabled = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match error.raw_os_error() {
        Some(libc::ENOSYS) => {
            let way =
                "run on Linux 5.19 or later with CONFIG_IO_URING, or allow io_uring in the seccomp profile";
            ("this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)".into(), Some(way.into()))
        }
        Some(libc::EPERM) if disabled.trim() == "2" || disabled.trim() == "1" => {
            let reason = format!("kernel.io_uring_disabled is {} (EPERM)", disabled.trim());
            (reason, Some("run: sudo sysctl -w kernel.io_uring_disabled=0".into()))
        }
        Some(libc::EPERM) => {
            let reason = "a sandbox forbids io_uring (EPERM): containers do so by default through seccomp";
            (reason.into(), Some("run the container with --security-opt seccomp=unconfined".into()))
        }
        Some(libc::ENOMEM) => {
            let reason = "the kernel refused the ring's memory (ENOMEM)";
            (reason.into(), Some("raise the locked-memory limit: ulimit -l unlimited".into()))
        }
        _ => plain,
    }
}

/// Tries every driver of the kernel.
pub fn probe(config: &Config) -> Vec<DriverReport> {
    let kernel = Driver::ALL.into_iter().filter(|driver| *driver != Driver::Sim);
    let report = |driver| match smoke_test(config, driver) {
        Ok(()) => DriverReport { driver, available: true, detail: granted(config, driver), unlock: None },
        Err(error) => {
            let started =
                crate::Runtime::new(&Config { driver: DriverChoice::Named(driver), ..config.clone() });
            let (detail, unlock) = match started {
                Err(StartError::Refused { reason, unlock, .. }) => (reason, unlock),
                _ => (error.to_string(), None),
            };
            DriverReport { driver, available: false, detail, unlock }
        }
    };
    kernel.map(report).collect()
}

/// What the kernel granted the driver, in words.
fn granted(config: &Config, driver: Driver) -> String {
    match driver {
        Driver::Uring => super::uring::granted(config).unwrap_or_else(|error| error.to_string()),
        Driver::Epoll => "edge-triggered, registered once".into(),
        Driver::Poll => "level-triggered, the whole list in every call".into(),
        Driver::Select => "level-triggered, descriptors below 1024".into(),
        Driver::Blocking => "one thread a connection".into(),
        Driver::Sim => "virtual time".into(),
    }
}

impl fmt::Display for DriverReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.available { "yes" } else { "no" };
        write!(formatter, "{}: {word}, {}", self.driver, self.detail)
    }
}
