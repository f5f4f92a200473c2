//! What every Rust peer does before its runtime starts: read its arguments and pin the process.
//!
//! Not part of what is compared: no peer calls any of this once it listens.

use std::net::{Ipv4Addr, SocketAddr};

/// Reads `PORT WORD… [CPUS]`: the address to listen on, and the words a peer needs besides, which `names` calls by
/// name. The process is pinned when CPUs were named (last argument, or `WEIR_CPUS`).
pub fn from_arguments<const WORDS: usize>(names: [&str; WORDS]) -> (SocketAddr, [String; WORDS]) {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().and_then(|text| text.parse::<u16>().ok());
    let words: Vec<String> = arguments.by_ref().take(WORDS).collect();
    let (Some(port), Ok(words)) = (port, <[String; WORDS]>::try_from(words)) else {
        let names = names.map(|name| format!("{name} ")).concat();
        eprintln!("usage: PORT {names}[CPUS]; PORT is a number such as 7000");
        std::process::exit(2);
    };
    let cpus = arguments.next().or_else(|| std::env::var("WEIR_CPUS").ok()).unwrap_or_default();
    if !cpus.is_empty() {
        pin(&cpus);
    }
    (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), words)
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
