//! The I/O models that this machine has, for the table of the survey: facts, each with its source.
//!
//! The caller finds out whether a driver of sockets or an engine of disks runs, because the laboratory does not link
//! them. `pwritev` is tried here by a call. If native AIO was not tried, the kernel's limits show whether it is
//! there.

use std::{
    fs,
    io::{self, IoSlice},
};

use rustix::fs::MemfdFlags;
use weir_record::{doctor::FindingState, finding::Finding, spec::IoModel};

use crate::host_defaults::DriverFound;

/// Drivers and engines from oldest to newest, with their common names and the source of the fact.
const TRIED: [(&str, &str, Finding); 7] = [
    ("blocking", "blocking", Finding::TriedOnSockets),
    ("select", "select", Finding::TriedOnSockets),
    ("poll", "poll", Finding::TriedOnSockets),
    ("epoll", "epoll", Finding::TriedOnSockets),
    ("posixaio", "posix-aio", Finding::TriedOnFile),
    ("libaio", AIO, Finding::TriedOnFile),
    ("uring", "io_uring", Finding::TriedOnSockets),
];

/// The common name of native AIO.
const AIO: &str = "aio";

const AIO_MAX: &str = "/proc/sys/fs/aio-max-nr";
const AIO_TAKEN: &str = "/proc/sys/fs/aio-nr";

/// The I/O models, oldest first; then `pwritev`, which is no I/O model but is often listed among them.
pub fn found(tried: &[DriverFound]) -> Vec<IoModel> {
    let mut ways: Vec<IoModel> = TRIED.iter().filter_map(|names| way(tried, names)).collect();
    if ways.iter().all(|way| way.name != AIO) {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        let newest = ways.iter().position(|way| way.name == "io_uring").unwrap_or(ways.len());
        ways.insert(newest, aio(number(AIO_MAX), number(AIO_TAKEN)));
    }
    ways.push(pwritev(write_gathered()));
    ways
}

fn way(tried: &[DriverFound], (driver, name, source): &(&str, &str, Finding)) -> Option<IoModel> {
    let found = tried.iter().find(|found| found.driver == *driver)?;
    Some(IoModel {
        name: (*name).to_owned(),
        state: if found.available { FindingState::Yes } else { FindingState::No },
        detail: found.detail.clone(),
        source: source.clone(),
        unlock: found.unlock.clone(),
    })
}

/// Native AIO if it was not tried, from the number of requests that the kernel allows on the whole machine and the
/// number in use.
fn aio(most: Option<u64>, taken: Option<u64>) -> IoModel {
    let (state, detail) = match (most, taken) {
        (None, _) => (FindingState::No, Finding::NoNativeAio),
        (Some(most), taken) => {
            let taken = taken.unwrap_or(0);
            let state = if taken >= most { FindingState::Limited } else { FindingState::Yes };
            (state, Finding::RequestsTaken { taken, most })
        }
    };
    let unlock = (state == FindingState::Limited)
        .then(|| Finding::RunCommand { command: "sudo sysctl -w fs.aio-max-nr=1048576".to_owned() });
    let source = Finding::ReadFrom { paths: vec![AIO_TAKEN.to_owned(), AIO_MAX.to_owned()] };
    IoModel { name: AIO.to_owned(), state, detail, source, unlock }
}

fn pwritev(outcome: io::Result<()>) -> IoModel {
    let (state, detail) = match outcome {
        Ok(()) => (FindingState::Yes, Finding::TwoBuffers),
        Err(error) => (FindingState::No, Finding::Said { text: error.to_string() }),
    };
    IoModel { name: "pwritev".to_owned(), state, detail, source: Finding::TriedGathering, unlock: None }
}

/// Writes two buffers at a position with one call, and reads them back.
fn write_gathered() -> io::Result<()> {
    const AT: u64 = 3;
    let file = rustix::fs::memfd_create("weir-probe", MemfdFlags::CLOEXEC)?;
    let written = rustix::io::pwritev(&file, &[IoSlice::new(b"we"), IoSlice::new(b"ir")], AT)?;
    let mut back = [0; 4];
    let read = rustix::io::pread(&file, &mut back, AT)?;
    match (written, read, &back) {
        (4, 4, b"weir") => Ok(()),
        _ => Err(io::Error::other(format!("{written} of 4 bytes were written, {read} came back"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_quoted(found: &IoModel) -> bool {
        matches!(&found.detail, Finding::Said { text } if text.contains("os error"))
    }

    fn about(driver: &str) -> Finding {
        Finding::Said { text: format!("about {driver}") }
    }

    fn driver_found(driver: &str, available: bool) -> DriverFound {
        DriverFound { driver: driver.to_owned(), available, detail: about(driver), unlock: None }
    }

    #[test]
    fn the_table_has_the_drivers_by_age_and_what_is_no_driver() {
        let engine = ["uring", "epoll", "poll", "select", "blocking"];
        let drivers = engine.map(|driver| driver_found(driver, driver != "uring"));
        let ways = found(&drivers);
        let names: Vec<&str> = ways.iter().map(|way| way.name.as_str()).collect();
        assert_eq!(names, ["blocking", "select", "poll", "epoll", "aio", "io_uring", "pwritev"]);
        assert_eq!((ways[3].state, ways[5].state), (FindingState::Yes, FindingState::No));
        assert_eq!(ways[5].detail, about("uring"));
        // Linux has had `pwritev` since 2.6.30; in a sandbox that forbids it, the fact names the error.
        let pwritev = &ways[6];
        assert!(pwritev.state == FindingState::Yes || is_quoted(pwritev), "{pwritev:?}");
    }

    #[test]
    fn engines_of_disks_that_were_tried_say_more_than_numbers_of_the_kernel() {
        let tried =
            [driver_found("libaio", false), driver_found("uring", true), driver_found("posixaio", true)];
        let ways = found(&tried);
        let names: Vec<&str> = ways.iter().map(|way| way.name.as_str()).collect();
        assert_eq!(names, ["posix-aio", "aio", "io_uring", "pwritev"]);
        assert_eq!((ways[1].state, &ways[1].detail), (FindingState::No, &about("libaio")));
        assert_eq!(ways[1].source, Finding::TriedOnFile);
    }

    #[test]
    fn a_driver_nobody_looked_at_has_no_row() {
        let names: Vec<String> = found(&[]).into_iter().map(|way| way.name).collect();
        assert_eq!(names, ["aio", "pwritev"]);
    }

    #[test]
    fn native_aio_is_there_when_the_kernel_has_requests_left() {
        assert_eq!(aio(None, None).state, FindingState::No);
        let free = aio(Some(65_536), Some(12));
        assert_eq!((free.state, free.unlock), (FindingState::Yes, None));
        assert_eq!(free.detail, Finding::RequestsTaken { taken: 12, most: 65_536 });
        for (most, taken) in [(64, 64), (0, 0)] {
            let full = aio(Some(most), Some(taken));
            assert_eq!(full.state, FindingState::Limited, "{taken} of {most}");
            assert!(full.unlock.is_some());
        }
    }

    #[test]
    fn a_refused_call_is_quoted() {
        let refused = pwritev(Err(io::Error::from_raw_os_error(libc::ENOSYS)));
        assert_eq!(refused.state, FindingState::No);
        assert!(is_quoted(&refused), "{refused:?}");
    }
}
