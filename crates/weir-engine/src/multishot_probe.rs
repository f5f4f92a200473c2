//! A probe for a defect of the kernel: whether its multishot receives report every end of a connection.
//!
//! Kernels before the spring of 2026 (7.0, and the stable releases of that time that have its fix, "io_uring/poll: fix
//! multishot recv missing EOF on wakeup race") take two events for one when both come before the receive has run: what
//! has arrived is received, the end or the reset behind it is not, and as nothing more ever happens on such a socket
//! the receive waits for ever. TCP is told of an ordinary end all the same, of a reset it is not. No version number
//! says which kernels have the fix, so it is tried, once in a process.

use std::{
    io::{self, Write},
    net::{TcpListener, TcpStream},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::OnceLock,
    thread,
    time::Duration,
};

use socket2::SockRef;

use crate::{
    config::{Config, Driver, ReceiveMode},
    driver::AnyDriver,
    executor::Executor,
    net::Stream,
    time::{sleep, timeout},
};

/// Longer than a busy machine takes for an event that is there already. Only a kernel that misses it takes that long.
const PROBE_TIMEOUT: Duration = Duration::from_millis(200);

/// Whether receives may stay armed. False also when it could not be tried; the next one that asks tries again.
pub(crate) fn reports_every_end() -> bool {
    static REPORTS_EVERY_END: OnceLock<bool> = OnceLock::new();
    if let Some(reports_every_end) = REPORTS_EVERY_END.get() {
        return *reports_every_end;
    }
    // In a thread of its own: the caller may be inside a runtime, and a ring belongs to its thread.
    let trial = thread::Builder::new().name("weir-probe".into()).spawn(try_all);
    match trial.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(found))) => *REPORTS_EVERY_END.get_or_init(|| found),
        _ => false,
    }
}

fn try_all() -> io::Result<bool> {
    let mut config = Config::with_driver(Driver::Uring);
    config.uring.receive = ReceiveMode::Multishot;
    if !AnyDriver::granted(Driver::Uring, &config)?.contains(&"deferred-task-run") {
        // Receives run on the way out of any call here (6.0), so both events cannot be brought together.
        return Ok(false);
    }
    let executor = Executor::start(&config, Driver::Uring)?;
    let (ours, mut theirs) = UnixStream::pair()?;
    let ends = reports_end(&executor, ours.into(), || theirs.write_all(b"e").map(|()| drop(theirs)))?;
    // Where there is no TCP, none of its resets can be missed.
    let Ok((ours, mut theirs)) = tcp_pair() else { return Ok(ends) };
    let resets = reports_end(&executor, ours.into(), || {
        theirs.write_all(b"r")?;
        SockRef::from(&theirs).set_linger(Some(Duration::ZERO))?;
        drop(theirs);
        Ok(())
    })?;
    Ok(ends && resets)
}

/// Whether the end of a connection is told whose peer says its last and goes while a receive is in flight and this
/// thread is not in the kernel.
fn reports_end(executor: &Executor, ours: OwnedFd, go: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
    executor.block_on(async {
        let stream = Stream::from_descriptor(ours)?;
        let begun = timeout(Duration::ZERO, stream.recv()).await;
        debug_assert!(begun.is_err(), "nothing has been sent");
        // The receive is submitted meanwhile.
        sleep(Duration::from_micros(100)).await;
        go()?;
        let to_the_end = async { while let Ok(Some(_)) = stream.recv().await {} };
        Ok(timeout(PROBE_TIMEOUT, to_the_end).await.is_ok())
    })
}

fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let theirs = TcpStream::connect(listener.local_addr()?)?;
    Ok((listener.accept()?.0, theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_where_receives_do_not_stay_armed_and_a_silent_one_is_missed() {
        let mut config = Config::with_driver(Driver::Uring);
        config.uring.receive = ReceiveMode::Single;
        let Ok(executor) = Executor::start(&config, Driver::Uring) else { return };
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        let go = || {
            drop(theirs);
            Ok(())
        };
        assert!(reports_end(&executor, ours.into(), go).expect("it can be tried"));
        let (ours, _theirs) = UnixStream::pair().expect("a socket pair");
        assert!(!reports_end(&executor, ours.into(), || Ok(())).expect("it can be tried"));
    }
}
