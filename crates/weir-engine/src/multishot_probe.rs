//! A probe for a kernel defect: multishot receives that miss the end of a connection.
//!
//! Kernels before the spring of 2026 (7.0, and the stable releases of that time that contain its fix, "io_uring/poll:
//! fix multishot recv missing EOF on wakeup race") merge two events into one when both come before the receive has
//! run: the data is received, the end or the reset behind it is not. No further event comes on such a socket, so the
//! receive never ends. TCP still reports an ordinary end, but not a reset. No version number shows which kernels have
//! the fix, so the probe tries it, once in a process.

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

/// Longer than a busy machine takes to report an event that has already happened. Only a kernel that misses it takes
/// that long.
const PROBE_TIMEOUT: Duration = Duration::from_millis(200);

/// Whether receives may stay armed. Also false when the probe could not run; the next call tries again.
pub(crate) fn reports_every_end() -> bool {
    static REPORTS_EVERY_END: OnceLock<bool> = OnceLock::new();
    if let Some(reports_every_end) = REPORTS_EVERY_END.get() {
        return *reports_every_end;
    }
    // In a separate thread: the caller may be inside a runtime, and a ring belongs to its thread.
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
        // Any call here runs receives on its way out (6.0), so the two events cannot coincide.
        return Ok(false);
    }
    let executor = Executor::start(&config, Driver::Uring)?;
    let (ours, mut theirs) = UnixStream::pair()?;
    let ends = reports_end(&executor, ours.into(), || theirs.write_all(b"e").map(|()| drop(theirs)))?;
    // Without TCP, no TCP reset can be missed.
    let Ok((ours, mut theirs)) = tcp_pair() else { return Ok(ends) };
    let resets = reports_end(&executor, ours.into(), || {
        theirs.write_all(b"r")?;
        SockRef::from(&theirs).set_linger(Some(Duration::ZERO))?;
        drop(theirs);
        Ok(())
    })?;
    Ok(ends && resets)
}

/// Whether the receive reports the end of a connection when the peer sends its last bytes and leaves while the
/// receive is in flight and this thread is outside the kernel.
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
        let mut config = Config::for_test(Driver::Uring);
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
