//! Whether the kernel excludes softirq time from the CPU of the processes that softirqs interrupt
//! (`CONFIG_IRQ_TIME_ACCOUNTING`, unless the clock is too slow for it).
//!
//! No file reports this on every machine. So it is tested: a thread that sends datagrams to itself spends a good part
//! of its time in softirqs, and if these are excluded its CPU clock lags behind the elapsed time.

use std::{
    net::UdpSocket,
    sync::OnceLock,
    time::{Duration, Instant},
};

use weir_sys::clock::thread_cpu_ns;

/// Attempts, of which the one with the smallest lag counts: other processes may take the CPU, and interrupts occur.
const TRIES: usize = 10;
const TRY: Duration = Duration::from_millis(1);
/// Datagrams between two clock readings.
const DATAGRAMS: usize = 16;

/// A clock with a smaller share of the elapsed time lags. Softirqs are a fifth or more of the cost of a loopback
/// send.
const LAGGING: f64 = 0.95;

/// The result, determined once per process; `None` if sending failed.
pub fn is_apart() -> Option<bool> {
    static FOUND: OnceLock<Option<bool>> = OnceLock::new();
    *FOUND.get_or_init(|| largest_share().map(|share| share < LAGGING))
}

/// The largest share of the elapsed time that a sending thread was charged for.
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
            // It has arrived: loopback delivers within the send. Otherwise only a datagram is lost.
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
        // With the option it may still be disabled by `tsc=noirqtime`; without it is always off.
        if !config.contains("CONFIG_IRQ_TIME_ACCOUNTING=y") {
            assert!(!found, "{:?}", largest_share());
        }
    }
}
