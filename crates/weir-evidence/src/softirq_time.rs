//! Whether the kernel keeps the time of softirqs out of the CPU of the processes they interrupt
//! (`CONFIG_IRQ_TIME_ACCOUNTING`, unless the clock is too slow for it).
//!
//! No file says so on every machine. So it is tried: a thread that sends datagrams to itself has a good part of its
//! time in softirqs, and where they are apart its CPU clock lags behind the time that passed.

use std::{
    net::UdpSocket,
    sync::OnceLock,
    time::{Duration, Instant},
};

use weir_sys::clock::thread_cpu_ns;

/// Tries, of which the one with least lag counts: others may have the CPU for a moment, and interrupts come.
const TRIES: usize = 10;
const TRY: Duration = Duration::from_millis(1);
/// Datagrams between two looks at the clock.
const DATAGRAMS: usize = 16;

/// A clock that has less than this of the time that passed lags. Softirqs are a fifth of what a loopback send costs,
/// and more.
const LAGGING: f64 = 0.95;

/// What was found, once for this process; `None` where nothing could be sent.
pub fn is_apart() -> Option<bool> {
    static FOUND: OnceLock<Option<bool>> = OnceLock::new();
    *FOUND.get_or_init(|| largest_share().map(|share| share < LAGGING))
}

/// The largest share of the time that a thread which sends was charged for.
fn largest_share() -> Option<f64> {
    let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
    socket.connect(socket.local_addr().ok()?).ok()?;
    socket.set_nonblocking(true).ok()?;
    (0..TRIES).map(|_| share(&socket)).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

fn share(socket: &UdpSocket) -> Option<f64> {
    let (began, began_ns) = (Instant::now(), thread_cpu_ns().ok()?);
    while began.elapsed() < TRY {
        for _ in 0..DATAGRAMS {
            socket.send(&[0; 64]).ok()?;
            // It has arrived: loopback delivers within the send. If not, nothing is lost but a datagram.
            let _ = socket.recv(&mut [0; 64]);
        }
    }
    let (cpu_ns, passed) = (thread_cpu_ns().ok()?.saturating_sub(began_ns), began.elapsed());
    Some(cpu_ns as f64 / passed.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn it_agrees_with_the_kernels_configuration_where_that_can_be_read() {
        let Some(found) = is_apart() else { return };
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let Some(config) = files::read_text(format!("/boot/config-{release}")) else { return };
        // With the option it may still be off, by `tsc=noirqtime`; without it is never on.
        if !config.contains("CONFIG_IRQ_TIME_ACCOUNTING=y") {
            assert!(!found, "{:?}", largest_share());
        }
    }
}
