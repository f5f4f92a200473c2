//! Facts about the machine, and readings of how quiet it was.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name in [`Fingerprint::limits`] of the sysctl that says how often a SYN is sent again at equal distances.
pub const SYN_LINEAR_TIMEOUTS: &str = "tcp_syn_linear_timeouts";

/// Name in [`Fingerprint::limits`] of the sysctl that says how often it is sent again at growing ones.
pub const SYN_RETRIES: &str = "tcp_syn_retries";

/// The machine. Stored with every study and compared before results are put side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fingerprint {
    /// `uname -r`.
    pub kernel_release: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// `uname -m`.
    pub architecture: String,
    /// `uname -n`; empty in studies stored before it was noted.
    pub host: String,
    /// CPU model name.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus_online: u32,
    /// CPUs this process may run on.
    pub cpus_allowed: Vec<usize>,
    /// Groups of CPUs that share a physical core.
    pub cpu_siblings: Vec<Vec<usize>>,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Distribution and its version.
    pub distribution: String,
    /// Hypervisor, when one is visible.
    pub hypervisor: Option<String>,
    /// Frequency governor, when the machine has one.
    pub governor: Option<String>,
    /// Clock source.
    pub clocksource: String,
    /// Whether softirqs are in no process's CPU (`CONFIG_IRQ_TIME_ACCOUNTING`); absent where that could not be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub softirqs_are_apart: Option<bool>,
    /// Mitigations by vulnerability.
    pub mitigations: BTreeMap<String, String>,
    /// Limits and sysctls that decide results (`nofile`, `memlock`, `somaxconn`, `io_uring_disabled`, …).
    pub limits: BTreeMap<String, String>,
    /// Limits of the control group this process runs in, by their files (`cpu.max`, `memory.max`).
    pub control_group: BTreeMap<String, String>,
    /// Longest packet on loopback.
    pub loopback_mtu: Option<u32>,
    /// Network interfaces beside loopback that are not down, by name: longest packet, speed and driver where these are
    /// known. Those of hardware, or where there are none the virtual ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
    /// The network interface that carries the load, where that comes from another host: what it is, and what its driver
    /// is set to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub load_link: BTreeMap<String, String>,
    /// Whether the kernel uses huge pages by itself (`always`, `madvise`, `never`).
    pub transparent_hugepages: String,
    /// Foreign programs that were measured or observed, with what distinguishes one build from another.
    pub programs: BTreeMap<String, String>,
    /// Version of Weir, and its source revision when known.
    pub weir_version: String,
    /// How Weir is built: profile, level of optimisation, compiler. Empty in studies stored before it was noted.
    pub build: String,
    /// The same of other programs of Weir that were measured, by their paths, where they say it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub program_builds: BTreeMap<String, String>,
    /// Servers that ran before the study, by their arms.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub running: BTreeMap<String, RunningProcess>,
    /// The machine of the generator, where that is another than the servers': then this is theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_host: Option<Box<Fingerprint>>,
}

/// A server that ran before a study, as it was found. Nothing of it was chosen by the study.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunningProcess {
    /// Where it listens.
    pub address: String,
    /// The process whose CPU was read, with all below it; absent where that of a control group was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Folder of the control group whose CPU was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// Whether the process was found by where it listens, and not named.
    pub found_by_port: bool,
    /// Its program, and what distinguishes one build of it from another; empty where they cannot be read.
    pub program: String,
    /// See `program`.
    pub program_hash: String,
    /// CPUs it may run on, as the kernel lists them.
    pub cpus_allowed: String,
}

/// A fact that is not the same in two records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactDifference {
    /// Its name: the field's, or the field's and the key's in there (`limits.somaxconn`).
    pub name: String,
    /// The first one's value; empty where it has none.
    pub one: String,
    /// The second one's.
    pub other: String,
}

/// Name among [`Fingerprint::limits`] of the features that io_uring granted a driver without options, by their stable
/// names.
pub const GRANTED_LIMIT: &str = "io_uring_granted";

/// What differs between two machines, or one machine at two times, by name. A fact that one of them does not know,
/// because it was stored before it was noted or cannot be seen there, is no difference.
pub fn differences(one: &Fingerprint, other: &Fingerprint) -> Vec<FactDifference> {
    let mut all = record_differences(one, other);
    all.retain(|it| !it.one.is_empty() && !it.other.is_empty());
    all
}

/// Prefix of the facts of the network interface that carries the load. Results over two of them cannot be mixed.
const LOAD_LINK: &str = "load_link.";

/// Facts that make two fingerprints different machines. A changed limit or sysctl does not.
const SAME_MACHINE: [&str; 5] =
    ["architecture", "cpu_model", "cpus_online", "kernel_release", "kernel_version"];

/// Prefix of the facts of a generator's separate machine.
const LOAD_HOST: &str = "load_host.";

/// The differences that make it another machine, so that a study must not go on there: of the machine of the servers,
/// and of that of the load where it is another.
pub fn other_machine(one: &Fingerprint, other: &Fingerprint) -> Vec<FactDifference> {
    let mut all = differences(one, other);
    all.retain(|it| {
        let fact = it.name.strip_prefix(LOAD_HOST).unwrap_or(&it.name);
        SAME_MACHINE.contains(&fact) || fact.starts_with(LOAD_LINK)
    });
    all
}

/// What differs between two records of one kind, by the paths of their fields; also what only one of them has.
pub fn record_differences<R: Serialize>(one: &R, other: &R) -> Vec<FactDifference> {
    let mut values: BTreeMap<String, [String; 2]> = BTreeMap::new();
    for (place, record) in [one, other].into_iter().enumerate() {
        let mut facts = BTreeMap::new();
        collect("", &serde_json::to_value(record).unwrap_or_default(), &mut facts);
        facts.into_iter().for_each(|(name, fact)| values.entry(name).or_default()[place] = fact);
    }
    let different = values.into_iter().filter(|(_, [one, other])| one != other);
    different.map(|(name, [one, other])| FactDifference { name, one, other }).collect()
}

/// Every fact that is known, by its path.
fn collect(path: &str, value: &serde_json::Value, facts: &mut BTreeMap<String, String>) {
    let fact = match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(&path, value, facts);
            }
            return;
        }
        serde_json::Value::Null => return,
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) if items.is_empty() => return,
        other => other.to_string(),
    };
    if !fact.is_empty() {
        facts.insert(path.to_owned(), fact);
    }
}

/// A cross-core cache-line ping-pong: the time of one round trip between two pinned CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCoreReading {
    /// First CPU.
    pub cpu_a: usize,
    /// Second CPU.
    pub cpu_b: usize,
    /// Median round trip.
    pub round_trip_ns: f64,
    /// A fixed loop of arithmetic on CPU a; grows when the CPU is slowed or stolen.
    pub canary_ns: f64,
}

/// Largest share of CPU time the hypervisor may have stolen of a whole trial.
pub const STEAL_SHARE_MAX: f64 = 0.01;

/// Most CPU other processes may use beside a whole trial, in CPUs, as their own clocks say: beyond the machine's
/// background, where that is known.
pub const FOREIGN_CPUS_MAX: f64 = 0.02;

/// How quiet the machine was during one trial (evidence rung L1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NoiseWindow {
    /// Length of the window.
    pub window_ns: u64,
    /// Steal time as a share of the machine's CPU time, 0 to 1.
    pub steal_share: f64,
    /// CPU used by processes that are not ours, in CPUs (1.0 = one core), by their own CPU clocks. Where a disk is
    /// measured the kernel's threads are not among them: they do that work.
    pub foreign_cpus: f64,
    /// Non-idle CPU of the whole machine (`/proc/stat`); of slices that of server, generator and softirq threads.
    pub machine_busy_ns: u64,
    /// Time our pinned threads waited for a CPU.
    pub run_delay_ns: u64,
    /// TCP segments retransmitted.
    pub tcp_retransmits: u64,
    /// Connections lost to a full accept queue.
    pub listen_overflows: u64,
}

/// What the kernel counted about TCP connections that had trouble, in one network namespace, between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkCounters {
    /// Connections that found the accept queue full.
    pub listen_overflows: u64,
    /// Connections a listener dropped for any reason, overflows included.
    pub listen_drops: u64,
    /// Segments sent again, first ones of a connection included.
    pub tcp_retransmits: u64,
    /// First segments of a connection sent again: the client waited for the SYN timer.
    pub syn_retransmits: u64,
    /// What the interfaces counted that carry the load between two hosts; absent where both sides are one host.
    #[serde(skip_serializing_if = "LinkCounters::is_empty")]
    pub link: LinkCounters,
}

/// What the interfaces counted that carry the load between two hosts, on both of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkCounters {
    /// Packets received and sent, of every program.
    pub packets: u64,
    /// Packets dropped, received ones for which there was no room included.
    pub drops: u64,
}

impl LinkCounters {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            drops: self.drops.saturating_sub(earlier.drops),
        }
    }
}

impl NetworkCounters {
    /// What was added since `earlier`. A counter that fell, because the namespace is another one, counts nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            listen_overflows: self.listen_overflows.saturating_sub(earlier.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(earlier.listen_drops),
            tcp_retransmits: self.tcp_retransmits.saturating_sub(earlier.tcp_retransmits),
            syn_retransmits: self.syn_retransmits.saturating_sub(earlier.syn_retransmits),
            link: self.link.since(&earlier.link),
        }
    }

    /// Adds what another trial counted.
    pub fn merge(&mut self, other: &Self) {
        self.listen_overflows += other.listen_overflows;
        self.listen_drops += other.listen_drops;
        self.tcp_retransmits += other.tcp_retransmits;
        self.syn_retransmits += other.syn_retransmits;
        self.link.packets += other.link.packets;
        self.link.drops += other.link.drops;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_what_one_does_not_know_is_none() {
        let limits = |somaxconn: &str| BTreeMap::from([("somaxconn".to_owned(), somaxconn.to_owned())]);
        let old = Fingerprint {
            kernel_release: "6.18.2".to_owned(),
            cpus_online: 2,
            cpus_allowed: vec![0, 1],
            limits: limits("4096"),
            ..Fingerprint::default()
        };
        let mut new =
            Fingerprint { distribution: "Debian 12".to_owned(), loopback_mtu: Some(65_536), ..old.clone() };
        assert_eq!(differences(&old, &new), [], "the old one does not know them");
        assert_eq!(differences(&new, &old), []);
        new.limits = limits("128");
        new.cpus_allowed.pop();
        let difference = |name: &str, one: &str, other: &str| FactDifference {
            name: name.to_owned(),
            one: one.to_owned(),
            other: other.to_owned(),
        };
        let expected =
            [difference("cpus_allowed", "[0,1]", "[0]"), difference("limits.somaxconn", "4096", "128")];
        assert_eq!(differences(&old, &new), expected);
        assert_eq!(differences(&new, &new), []);
    }

    #[test]
    fn another_machine_differs_in_what_it_is_and_not_in_its_settings() {
        let here = Fingerprint {
            cpu_model: "A CPU".to_owned(),
            cpus_online: 2,
            governor: Some("performance".to_owned()),
            limits: BTreeMap::from([("somaxconn".to_owned(), "4096".to_owned())]),
            ..Fingerprint::default()
        };
        let of_pair =
            |there: &Fingerprint| Fingerprint { load_host: Some(Box::new(here.clone())), ..there.clone() };
        let names = |other: &Fingerprint| -> Vec<String> {
            other_machine(&of_pair(&here), other).into_iter().map(|it| it.name).collect()
        };
        let tuned =
            Fingerprint { governor: Some("powersave".to_owned()), limits: BTreeMap::new(), ..here.clone() };
        assert_eq!(names(&of_pair(&tuned)), [""; 0]);
        let larger = Fingerprint { cpus_online: 64, ..here.clone() };
        assert_eq!(names(&of_pair(&larger)), ["cpus_online"]);
        let load_host = Some(Box::new(Fingerprint { cpu_model: "Another".to_owned(), ..here.clone() }));
        assert_eq!(names(&Fingerprint { load_host, ..here.clone() }), ["load_host.cpu_model"]);
    }

    #[test]
    fn another_setting_of_the_interface_that_carries_the_load_is_another_machine() {
        let link = |mtu: &str| BTreeMap::from([("mtu".to_owned(), mtu.to_owned())]);
        let with = |load_link| Fingerprint { load_link, ..Fingerprint::default() };
        let pair = |one: &str, other: &str| {
            let load_host = Some(Box::new(with(link(other))));
            Fingerprint { load_host, ..with(link(one)) }
        };
        let names = |one: &Fingerprint, other: &Fingerprint| -> Vec<String> {
            other_machine(one, other).into_iter().map(|it| it.name).collect()
        };
        assert_eq!(names(&pair("1500", "1500"), &pair("9001", "1500")), ["load_link.mtu"]);
        assert_eq!(names(&pair("1500", "1500"), &pair("1500", "9001")), ["load_host.load_link.mtu"]);
        assert_eq!(names(&pair("1500", "1500"), &pair("1500", "1500")), [""; 0]);
        assert_eq!(
            names(&with(BTreeMap::new()), &with(link("9001"))),
            [""; 0],
            "it was stored before it was noted"
        );
    }

    /// A change of one fact, and the name by which two records are then distinguished.
    type Change = (&'static str, fn(&mut Fingerprint));

    const CHANGES: [Change; 15] = [
        ("kernel_release", |it| it.kernel_release.push('x')),
        ("distribution", |it| it.distribution.push('x')),
        ("build", |it| it.build.push('x')),
        ("weir_version", |it| it.weir_version.push('x')),
        ("programs./usr/sbin/nginx", |it| it.programs = one("/usr/sbin/nginx", "7 bytes, 0a")),
        ("mitigations.spectre_v2", |it| it.mitigations = one("spectre_v2", "Vulnerable")),
        ("clocksource", |it| it.clocksource.push('x')),
        ("governor", |it| it.governor = Some("powersave".to_owned())),
        ("hypervisor", |it| it.hypervisor = Some("xen".to_owned())),
        ("control_group.cpu.max", |it| it.control_group = one("cpu.max", "50000 100000")),
        ("loopback_mtu", |it| it.loopback_mtu = Some(1_500)),
        ("links.eth0", |it| it.links = one("eth0", "mtu 9000")),
        ("transparent_hugepages", |it| it.transparent_hugepages.push('x')),
        ("limits.tcp_rmem", |it| it.limits = one("tcp_rmem", "4096 1 2")),
        ("cpus_online", |it| it.cpus_online = 64),
    ];

    fn one(name: &str, value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn each_fact_that_two_runs_differ_in_is_named_and_no_other() {
        let known = Fingerprint {
            kernel_release: "6.18.2".to_owned(),
            distribution: "Debian 12".to_owned(),
            build: "release, opt-level 3, rustc 1.88.0".to_owned(),
            weir_version: "0.1.0".to_owned(),
            programs: one("/usr/sbin/nginx", "7 bytes, 0f"),
            mitigations: one("spectre_v2", "Mitigation: Retpolines"),
            clocksource: "tsc".to_owned(),
            governor: Some("performance".to_owned()),
            hypervisor: Some("kvm".to_owned()),
            control_group: one("cpu.max", "max 100000"),
            loopback_mtu: Some(65_536),
            links: one("eth0", "mtu 1500"),
            transparent_hugepages: "madvise".to_owned(),
            limits: one("tcp_rmem", "4096 131072 6291456"),
            cpus_online: 2,
            ..Fingerprint::default()
        };
        for (name, change) in CHANGES {
            let mut other = known.clone();
            change(&mut other);
            let found = differences(&known, &other);
            let names: Vec<&str> = found.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, [name], "{found:?}");
        }
    }

    #[test]
    fn a_fingerprint_of_before_is_readable() {
        let old: Fingerprint =
            serde_json::from_str(r#"{"kernel_release":"6.1.0"}"#).expect("it was whole then");
        assert_eq!((old.kernel_release.as_str(), old.loopback_mtu), ("6.1.0", None));
        assert!(old.distribution.is_empty() && old.control_group.is_empty() && old.programs.is_empty());
    }
}
