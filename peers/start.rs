//! What every Rust peer does before its runtime starts: read `PORT [CPUS]` and pin the process.
//!
//! Not part of what is compared: no peer calls any of this once it listens.

use std::net::{Ipv4Addr, SocketAddr};

/// The address to listen on; the process is pinned when CPUs were named (second argument, or `WEIR_CPUS`).
pub fn address_from_arguments() -> SocketAddr {
    let mut arguments = std::env::args().skip(1);
    let Some(port) = arguments.next().and_then(|text| text.parse::<u16>().ok()) else {
        eprintln!("usage: PORT [CPUS], for example 7000 0");
        std::process::exit(2);
    };
    let cpus = arguments.next().or_else(|| std::env::var("WEIR_CPUS").ok()).unwrap_or_default();
    if !cpus.is_empty() {
        pin(&cpus);
    }
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Restricts this thread, and every thread it starts later, to a list such as `0` or `0,2`.
fn pin(cpus: &str) {
    let mut set = rustix::thread::CpuSet::new();
    for cpu in cpus.split(',') {
        match cpu.parse::<usize>() {
            Ok(number) if number < rustix::thread::CpuSet::MAX_CPU => set.set(number),
            _ => {
                eprintln!("CPUS is a list of numbers such as 0 or 0,2, not {cpus:?}");
                std::process::exit(2);
            }
        }
    }
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        eprintln!("cannot pin to CPUs {cpus}: {error}");
        std::process::exit(13);
    }
}
