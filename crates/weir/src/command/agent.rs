//! `weir agent --stdio` (hidden): runs servers for a laboratory on another host, which started it there.

use std::{
    env,
    io::{self, BufReader},
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, Result};
use weir_lab::process::{Agent, Facts};

use super::{doctor, study_plan};
use crate::{
    args,
    exit::{Exit, UsageError},
    orphans,
};

pub(crate) fn run(arguments: &args::Agent) -> Result<Exit> {
    let weir = env::current_exe().context("cannot find the weir program itself")?;
    // If the kernel refuses, only the supervisors end orphans.
    let _ = orphans::adopt();
    let agent = Agent {
        weir,
        folder: folder().ok_or_else(|| UsageError("neither HOME nor XDG_CACHE_HOME is set".to_owned()))?,
        session: arguments.session.clone(),
        facts: &facts,
        doctor: &doctor::diagnoses,
        interrupt: Arc::new(AtomicBool::new(false)),
        between_rounds: &mut orphans::end,
    };
    // A signal ends it at once: the kernel and the supervisors then end its children.
    agent.serve(BufReader::new(io::stdin()), &mut io::stdout().lock())?;
    Ok(Exit::Ok)
}

/// The folder of the cache into which the program was copied.
fn folder() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("weir"))
}

fn facts() -> Facts {
    Facts {
        fingerprint: weir_evidence::fingerprint::fingerprint(),
        drivers: study_plan::drivers(),
        congestion_controls: study_plan::congestion_controls(),
        reached_at: reached_at(&env::var("SSH_CONNECTION").unwrap_or_default()),
        addresses: weir_evidence::network::own_addresses(),
        network: weir_evidence::network::namespace(),
    }
}

/// The address at which an ssh connection arrived: the third word of the daemon's variable (client, port, server,
/// port).
fn reached_at(connection: &str) -> Option<IpAddr> {
    connection.split_whitespace().nth(2)?.parse().ok().filter(|address: &IpAddr| !address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_at_which_ssh_arrived_is_its_third_word() {
        let address = |text: &str| reached_at(text).map(|address| address.to_string());
        assert_eq!(address("192.0.2.1 50000 192.0.2.2 22").as_deref(), Some("192.0.2.2"));
        assert_eq!(address("fe80::1 50000 2001:db8::2 22").as_deref(), Some("2001:db8::2"));
        assert_eq!(
            [address(""), address("192.0.2.1 5"), address("127.0.0.1 5 127.0.0.1 22")],
            [None, None, None]
        );
    }
}
