//! The network interface that carries the load between two hosts, as facts of a fingerprint. A fact that the kernel
//! does not show is absent.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    path::Path,
};

use weir_sys::interfaces::{self, Coalescing, Settings};

use crate::files;

/// Port of the discard service. Nothing is sent there.
const ANY_PORT: u16 = 9;

/// The interface that has this address.
pub fn of_own(address: IpAddr) -> Option<String> {
    interfaces::of_address(address).ok()?
}

/// The interface from which the kernel would send to an address. No packet is sent.
pub fn towards(address: IpAddr) -> Option<String> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let own = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((address, ANY_PORT))?;
        socket.local_addr()
    };
    own().ok().and_then(|own| of_own(own.ip()))
}

/// Facts of an interface; none if it has no name.
pub fn facts_of(interface: Option<&str>) -> BTreeMap<String, String> {
    let Some(name) = interface else { return BTreeMap::new() };
    facts(name, &Path::new("/sys/class/net").join(name), &interfaces::settings(name))
}

fn facts(name: &str, folder: &Path, settings: &Settings) -> BTreeMap<String, String> {
    let Settings { driver, channels, rings, coalescing, offloads } = settings;
    // An interface without a speed returns -1, or an error.
    let speed = files::read_value(folder.join("speed")).filter(|speed| speed.parse::<u32>().is_ok());
    let facts = [
        ("interface", Some(name.to_owned())),
        ("mtu", files::read_value(folder.join("mtu"))),
        ("speed", speed.map(|speed| format!("{speed} Mb/s"))),
        ("queues", queues(&folder.join("queues"))),
        ("driver", driver.clone()),
        ("channels", channels.map(|[rx, tx, both]| format!("rx {rx}, tx {tx}, combined {both}"))),
        ("rings", rings.map(|[rx, tx]| format!("rx {rx}, tx {tx}"))),
        ("coalescing", coalescing.map(|[rx, tx]| format!("rx {}, tx {}", delay(rx), delay(tx)))),
        ("offloads", offloads.as_ref().map(|on| on.join(" "))),
    ];
    let known = facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?)));
    known.filter(|(_, fact)| !fact.is_empty()).collect()
}

/// Queues of the kernel: for receiving, and for sending.
fn queues(folder: &Path) -> Option<String> {
    let names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    let count = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    Some(format!("rx {}, tx {}", count("rx-"), count("tx-")))
}

fn delay(coalescing: Coalescing) -> String {
    match coalescing {
        Coalescing::Adaptive => "adaptive".to_owned(),
        Coalescing::Fixed { microseconds, packets } => format!("{microseconds} us {packets} packets"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_told_by_name_and_what_is_unknown_is_absent() {
        let folder = std::env::temp_dir().join(format!("weir-load-link-{}", std::process::id()));
        for queue in ["rx-0", "rx-1", "tx-0"] {
            std::fs::create_dir_all(folder.join("queues").join(queue)).expect("a folder can be made");
        }
        for (file, text) in [("mtu", "9001\n"), ("speed", "25000\n")] {
            std::fs::write(folder.join(file), text).expect("a file can be written");
        }
        let settings = Settings {
            driver: Some("ena".to_owned()),
            channels: Some([0, 0, 8]),
            rings: Some([1024, 512]),
            coalescing: Some([Coalescing::Adaptive, Coalescing::Fixed { microseconds: 64, packets: 0 }]),
            offloads: Some(vec!["tx-checksum", "gro"]),
        };
        let told = |facts: BTreeMap<String, String>| -> Vec<String> {
            facts.iter().map(|(name, fact)| format!("{name}: {fact}")).collect()
        };
        let expected = [
            "channels: rx 0, tx 0, combined 8",
            "coalescing: rx adaptive, tx 64 us 0 packets",
            "driver: ena",
            "interface: eth0",
            "mtu: 9001",
            "offloads: tx-checksum gro",
            "queues: rx 2, tx 1",
            "rings: rx 1024, tx 512",
            "speed: 25000 Mb/s",
        ];
        assert_eq!(told(facts("eth0", &folder, &settings)), expected);
        std::fs::write(folder.join("speed"), "-1\n").expect("a file can be written");
        assert!(!facts("eth0", &folder, &settings).contains_key("speed"));
        std::fs::remove_dir_all(&folder).expect("it can be removed");
        assert_eq!(told(facts("eth0", &folder, &Settings::default())), ["interface: eth0"]);
    }

    #[test]
    fn packets_to_loopback_leave_from_loopback() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!((towards(loopback).as_deref(), of_own(loopback).as_deref()), (Some("lo"), Some("lo")));
        assert_eq!(facts_of(Some("lo"))["interface"], "lo");
        assert_eq!(facts_of(None), BTreeMap::new());
        // TEST-NET-1 (RFC 5737) is assigned to no host.
        assert_eq!(of_own(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77))), None);
    }
}
