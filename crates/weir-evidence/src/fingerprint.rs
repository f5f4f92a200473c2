//! Identifies the machine. A missing file leaves its field empty; nothing here fails.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use rustix::process::{Resource, getrlimit};
use weir_record::machine::{Fingerprint, SYN_LINEAR_TIMEOUTS, SYN_RETRIES};

use crate::{
    control_group::{MOUNT, folder_of, membership},
    files, parse,
};

/// Sysctls that affect results, with their names in [`Fingerprint::limits`].
const SYSCTLS: [(&str, &str); 23] = [
    ("busy_poll", "net/core/busy_poll"),
    ("busy_read", "net/core/busy_read"),
    ("congestion_control", "net/ipv4/tcp_congestion_control"),
    ("default_qdisc", "net/core/default_qdisc"),
    ("io_uring_disabled", "kernel/io_uring_disabled"),
    ("ip_local_port_range", "net/ipv4/ip_local_port_range"),
    ("netdev_budget", "net/core/netdev_budget"),
    ("netdev_max_backlog", "net/core/netdev_max_backlog"),
    ("nr_open", "fs/nr_open"),
    ("perf_event_paranoid", "kernel/perf_event_paranoid"),
    ("rmem_max", "net/core/rmem_max"),
    ("somaxconn", "net/core/somaxconn"),
    ("tcp_autocorking", "net/ipv4/tcp_autocorking"),
    ("tcp_max_syn_backlog", "net/ipv4/tcp_max_syn_backlog"),
    ("tcp_max_tw_buckets", "net/ipv4/tcp_max_tw_buckets"),
    ("tcp_notsent_lowat", "net/ipv4/tcp_notsent_lowat"),
    ("tcp_rmem", "net/ipv4/tcp_rmem"),
    ("tcp_slow_start_after_idle", "net/ipv4/tcp_slow_start_after_idle"),
    (SYN_LINEAR_TIMEOUTS, "net/ipv4/tcp_syn_linear_timeouts"),
    (SYN_RETRIES, "net/ipv4/tcp_syn_retries"),
    ("tcp_wmem", "net/ipv4/tcp_wmem"),
    ("unprivileged_bpf_disabled", "kernel/unprivileged_bpf_disabled"),
    ("wmem_max", "net/core/wmem_max"),
];

/// Limits of a control group, by their files: those of version 2, and those of version 1 with their controller.
const GROUP_FILES: [(&str, &str); 7] = [
    ("cpu", "cpu.max"),
    ("cpu", "cpu.cfs_quota_us"),
    ("cpu", "cpu.cfs_period_us"),
    ("cpuset", "cpuset.cpus.effective"),
    ("memory", "memory.max"),
    ("memory", "memory.limit_in_bytes"),
    ("pids", "pids.max"),
];

/// Most network interfaces that are listed.
const LINKS_MAX: usize = 32;

/// Longest program that is hashed.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;

/// The fingerprint of this machine as visible to this process.
pub fn fingerprint() -> Fingerprint {
    let uname = rustix::system::uname();
    let nofile = getrlimit(Resource::Nofile);
    let memlock = getrlimit(Resource::Memlock);
    let mut fingerprint = read_under(Path::new("/"));
    fingerprint.kernel_release = uname.release().to_string_lossy().into_owned();
    fingerprint.kernel_version = uname.version().to_string_lossy().into_owned();
    fingerprint.architecture = uname.machine().to_string_lossy().into_owned();
    fingerprint.host = uname.nodename().to_string_lossy().into_owned();
    fingerprint.softirqs_are_apart = crate::softirq_time::is_apart();
    fingerprint.limits.extend([
        ("nofile_soft".to_owned(), limit_text(nofile.current)),
        ("nofile_hard".to_owned(), limit_text(nofile.maximum)),
        ("memlock_soft".to_owned(), limit_text(memlock.current)),
        ("memlock_hard".to_owned(), limit_text(memlock.maximum)),
    ]);
    fingerprint
}

fn limit_text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |value| value.to_string())
}

/// The part of the fingerprint in files under `root`.
fn read_under(root: &Path) -> Fingerprint {
    let cpus = root.join("sys/devices/system/cpu");
    let cpuinfo = files::read_text(root.join("proc/cpuinfo")).unwrap_or_default();
    let status = files::read_text(root.join("proc/self/status")).unwrap_or_default();
    let meminfo = files::read_text(root.join("proc/meminfo")).unwrap_or_default();
    let online = parse::cpu_list(&files::read_text(cpus.join("online")).unwrap_or_default());
    let clock = root.join("sys/devices/system/clocksource/clocksource0");
    Fingerprint {
        cpu_model: cpu_model(&cpuinfo),
        cpus_online: u32::try_from(online.len()).unwrap_or(u32::MAX),
        cpus_allowed: parse::field(&status, "Cpus_allowed_list").map(parse::cpu_list).unwrap_or_default(),
        cpu_siblings: siblings(&cpus, &online),
        memory_bytes: parse::number_field(&meminfo, "MemTotal").unwrap_or(0) * 1024,
        distribution: distribution(root),
        hypervisor: hypervisor(&HypervisorSigns {
            xen_type: files::read_value(root.join("sys/hypervisor/type")),
            product: dmi_product(root),
            clocksources: files::read_text(clock.join("available_clocksource")).unwrap_or_default(),
            flagged: has_hypervisor_flag(&cpuinfo),
        }),
        governor: governor(&cpus, &online),
        clocksource: files::read_value(clock.join("current_clocksource")).unwrap_or_default(),
        mitigations: mitigations(&cpus.join("vulnerabilities")),
        limits: sysctls(root, &status),
        control_group: control_group(root),
        loopback_mtu: files::read_value(root.join("sys/class/net/lo/mtu")).and_then(|mtu| mtu.parse().ok()),
        links: links(&root.join("sys/class/net")),
        transparent_hugepages: files::read_text(root.join("sys/kernel/mm/transparent_hugepage/enabled"))
            .and_then(|text| Some(parse::chosen(&text)?.to_owned()))
            .unwrap_or_default(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        build: env!("WEIR_BUILD").to_owned(),
        ..Fingerprint::default()
    }
}

/// Distinguishes builds of a program: its length and a hash of its bytes (FNV-1a), which is not protected against
/// forgery. `None` if it cannot be read.
pub fn program_hash(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?.take(PROGRAM_BYTES_MAX);
    let (mut hash, mut length, mut bytes) = (0xcbf2_9ce4_8422_2325_u64, 0, vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut bytes).ok()?;
        if count == 0 {
            return Some(format!("{length} bytes, {hash:016x}"));
        }
        length += count;
        for byte in &bytes[..count] {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// The program of a process, and its [`program_hash`].
pub fn program_of(pid: u32) -> Option<(String, String)> {
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let name = std::fs::read_link(&link).ok()?.to_string_lossy().into_owned();
    Some((name, program_hash(&link)?))
}

fn distribution(root: &Path) -> String {
    let text =
        ["etc/os-release", "usr/lib/os-release"].iter().find_map(|file| files::read_text(root.join(file)));
    let name = text.as_deref().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"'))
    });
    name.unwrap_or_default().to_owned()
}

/// Limits of this process's control group. With cgroup namespaces, its own group is the root of what is visible.
fn control_group(root: &Path) -> BTreeMap<String, String> {
    let groups = files::read_text(root.join("proc/self/cgroup")).unwrap_or_default();
    let mount = root.join(MOUNT.trim_start_matches('/'));
    let path_of = |controller: &str, file: &str| {
        groups
            .lines()
            .filter_map(|line| {
                let (controllers, path) = membership(line)?;
                let folder = folder_of(&mount, controllers, controller)?;
                let own = folder.join(path.trim_start_matches('/')).join(file);
                files::read_value(own).or_else(|| files::read_value(folder.join(file)))
            })
            .next()
    };
    let limits = GROUP_FILES.iter();
    limits.filter_map(|(controller, file)| Some(((*file).to_owned(), path_of(controller, file)?))).collect()
}

fn cpu_model(cpuinfo: &str) -> String {
    // Architectures use different names for the field; the first existing one is the most specific.
    ["model name", "Model", "cpu model", "uarch", "cpu", "CPU part"]
        .iter()
        .find_map(|key| parse::field(cpuinfo, key))
        .unwrap_or_default()
        .to_owned()
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    parse::field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"))
}

fn siblings(cpus: &Path, online: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = online
        .iter()
        .filter_map(|cpu| files::read_text(cpus.join(format!("cpu{cpu}/topology/thread_siblings_list"))))
        .map(|text| parse::cpu_list(&text))
        .filter(|group| !group.is_empty())
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Signs of a hypervisor.
struct HypervisorSigns {
    xen_type: Option<String>,
    product: Option<String>,
    clocksources: String,
    flagged: bool,
}

/// The hypervisor's name if one is detected, with the firmware's product name.
fn hypervisor(signs: &HypervisorSigns) -> Option<String> {
    let by_clock = [("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen"), ("vmware", "vmware")]
        .iter()
        .find(|(clock, _)| signs.clocksources.contains(clock))
        .map(|(_, name)| (*name).to_owned());
    let name = signs.xen_type.clone().or(by_clock).or_else(|| signs.flagged.then(|| "unnamed".to_owned()))?;
    Some(match &signs.product {
        Some(product) => format!("{name} ({product})"),
        None => name,
    })
}

fn dmi_product(root: &Path) -> Option<String> {
    let dmi = root.join("sys/class/dmi/id");
    let words: Vec<String> =
        ["sys_vendor", "product_name"].iter().filter_map(|name| files::read_value(dmi.join(name))).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The governor of all CPUs, or the different ones separated by commas.
fn governor(cpus: &Path, online: &[usize]) -> Option<String> {
    let mut found: Vec<String> = online
        .iter()
        .filter_map(|cpu| files::read_value(cpus.join(format!("cpu{cpu}/cpufreq/scaling_governor"))))
        .collect();
    found.sort_unstable();
    found.dedup();
    (!found.is_empty()).then(|| found.join(","))
}

/// Interfaces that may carry packets, without loopback; only hardware interfaces, if there are any.
fn links(directory: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return BTreeMap::new() };
    let mut all: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| entry.ok().map(|it| (it.file_name().to_string_lossy().into_owned(), it.path())))
        .filter(|(name, path)| {
            name != "lo" && files::read_value(path.join("operstate")).is_some_and(|state| state != "down")
        })
        .collect();
    // A container host has an interface for each container, with a temporary name.
    if all.iter().any(|(_, path)| path.join("device").exists()) {
        all.retain(|(_, path)| path.join("device").exists());
    }
    all.sort();
    all.into_iter().take(LINKS_MAX).map(|(name, path)| (name, link(&path))).collect()
}

/// `mtu 1500, 1000 Mb/s, virtio_net`.
fn link(path: &Path) -> String {
    let mtu = files::read_value(path.join("mtu")).map(|mtu| format!("mtu {mtu}"));
    // An interface with unknown speed returns -1, or an error.
    let speed = files::read_value(path.join("speed")).filter(|speed| speed.parse::<u32>().is_ok());
    let speed = speed.map(|speed| format!("{speed} Mb/s"));
    let driver = std::fs::read_link(path.join("device/driver"))
        .ok()
        .and_then(|driver| Some(driver.file_name()?.to_string_lossy().into_owned()));
    [mtu, speed, driver].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn mitigations(directory: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return BTreeMap::new() };
    let read = |path: PathBuf| Some((path.file_name()?.to_str()?.to_owned(), files::read_value(&path)?));
    entries.filter_map(|entry| read(entry.ok()?.path())).collect()
}

fn sysctls(root: &Path, status: &str) -> BTreeMap<String, String> {
    let one_space = |text: String| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let mut limits: BTreeMap<String, String> = SYSCTLS
        .iter()
        .filter_map(|(name, path)| {
            let value = files::read_value(root.join("proc/sys").join(path))?;
            Some(((*name).to_owned(), one_space(value)))
        })
        .collect();
    let seccomp = match parse::field(status, "Seccomp") {
        Some("0") => Some("off"),
        Some("1") => Some("strict"),
        Some("2") => Some("filter"),
        _ => None,
    };
    limits.extend(seccomp.map(|mode| ("seccomp".to_owned(), mode.to_owned())));
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_without_files_leaves_every_field_empty() {
        let empty = read_under(Path::new("/dev/null/nowhere"));
        let expected = Fingerprint {
            weir_version: empty.weir_version.clone(),
            build: empty.build.clone(),
            ..Fingerprint::default()
        };
        assert_eq!(empty, expected);
    }

    #[test]
    fn programs_are_told_apart_by_their_bytes() {
        let folder = std::env::temp_dir().join(format!("weir-programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let hash = |bytes: &[u8]| {
            std::fs::write(folder.join("program"), bytes).expect("a file can be written");
            program_hash(&folder.join("program"))
        };
        assert_eq!(hash(b"").as_deref(), Some("0 bytes, cbf29ce484222325"));
        assert_eq!(hash(b"a").as_deref(), Some("1 bytes, af63dc4c8601ec8c"), "as FNV-1a is published");
        assert_ne!(hash(b"ab"), hash(b"ba"));
        assert_eq!(program_hash(&folder.join("absent")), None);
        std::fs::remove_dir_all(&folder).expect("it can be removed");
        assert!(program_of(std::process::id()).is_some_and(|(name, _)| name.starts_with('/')));
    }

    #[test]
    fn links_of_hardware_are_told_with_speed_and_driver_and_virtual_ones_where_there_are_no_others() {
        let root = std::env::temp_dir().join(format!("weir-links-{}", std::process::id()));
        let net = root.join("net");
        let add = |name: &str, files: &[(&str, &str)]| {
            std::fs::create_dir_all(net.join(name)).expect("a folder can be made");
            for (file, text) in files {
                std::fs::write(net.join(name).join(file), text).expect("a file can be written");
            }
        };
        add("lo", &[("operstate", "unknown\n"), ("mtu", "65536\n")]);
        add("veth1", &[("operstate", "up\n"), ("mtu", "1500\n"), ("speed", "10000\n")]);
        add("eth9", &[("operstate", "down\n"), ("mtu", "1500\n")]);
        let found = || links(&net).into_iter().collect::<Vec<_>>();
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(found(), [pair("veth1", "mtu 1500, 10000 Mb/s")]);
        add("eth0", &[("operstate", "up\n"), ("mtu", "9000\n"), ("speed", "-1\n")]);
        std::fs::create_dir_all(net.join("eth0/device")).expect("a folder can be made");
        std::os::unix::fs::symlink("../../bus/virtio_net", net.join("eth0/device/driver")).expect("a link");
        assert_eq!(found(), [pair("eth0", "mtu 9000, virtio_net")]);
        std::fs::remove_dir_all(&root).expect("it can be removed");
        assert_eq!(found(), []);
    }

    #[test]
    fn limits_of_the_own_group_are_found_in_both_versions() {
        let root = std::env::temp_dir().join(format!("weir-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            std::fs::write(path, text).expect("a file can be written");
        };
        write("proc/self/cgroup", "4:memory:/own\n1:cpu:/\n0::/unified/own\n");
        write("sys/fs/cgroup/memory/own/memory.limit_in_bytes", "1024\n");
        write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
        write("sys/fs/cgroup/unified/own/pids.max", "max\n");
        write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 3\"\n");
        let group: Vec<_> = control_group(&root).into_iter().collect();
        let limit = |file: &str, value: &str| (file.to_owned(), value.to_owned());
        let expected = [
            limit("cpu.cfs_quota_us", "-1"),
            limit("memory.limit_in_bytes", "1024"),
            limit("pids.max", "max"),
        ];
        assert_eq!(group, expected);
        assert_eq!(distribution(&root), "Some Linux 3");
        std::fs::remove_dir_all(&root).expect("it can be removed");
    }

    #[test]
    fn what_a_machine_keeps_in_files_fills_every_field_and_every_sysctl_has_its_name() {
        let root = std::env::temp_dir().join(format!("weir-machine-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            std::fs::write(path, text).expect("a file can be written");
        };
        for (name, path) in SYSCTLS {
            write(&format!("proc/sys/{path}"), &format!("value of {name}\n"));
        }
        let cpus = "sys/devices/system/cpu";
        let clock = "sys/devices/system/clocksource/clocksource0";
        write(&format!("{cpus}/online"), "0-1\n");
        write(&format!("{cpus}/cpu0/cpufreq/scaling_governor"), "performance\n");
        write(&format!("{cpus}/cpu1/cpufreq/scaling_governor"), "schedutil\n");
        write(&format!("{cpus}/vulnerabilities/spectre_v2"), "Mitigation: Retpolines\n");
        write(&format!("{clock}/current_clocksource"), "tsc\n");
        write(&format!("{clock}/available_clocksource"), "kvm-clock tsc\n");
        write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        write("sys/class/net/lo/mtu", "65536\n");
        write("etc/os-release", "PRETTY_NAME=\"Some Linux 3\"\n");
        let seen = read_under(&root);
        for (name, _) in SYSCTLS {
            assert_eq!(seen.limits.get(name), Some(&format!("value of {name}")), "{name}");
        }
        let governor = seen.governor.as_deref();
        assert_eq!((governor, seen.cpus_online), (Some("performance,schedutil"), 2));
        assert_eq!(seen.mitigations["spectre_v2"], "Mitigation: Retpolines");
        assert_eq!((seen.clocksource.as_str(), seen.hypervisor.as_deref()), ("tsc", Some("kvm")));
        assert_eq!((seen.transparent_hugepages.as_str(), seen.loopback_mtu), ("madvise", Some(65_536)));
        assert_eq!(seen.distribution, "Some Linux 3");
        std::fs::remove_dir_all(&root).expect("it can be removed");
    }

    #[test]
    fn it_says_how_it_was_built() {
        let build = fingerprint().build;
        for word in ["opt-level", "rustc "] {
            assert!(build.contains(word), "no {word} in {build}");
        }
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says why the test was skipped")]
    fn this_machine_has_the_facts_every_linux_shows() {
        let here = fingerprint();
        assert!(!here.kernel_release.is_empty() && !here.architecture.is_empty());
        assert!(here.limits.contains_key("nofile_hard") && here.limits.contains_key("memlock_soft"));
        assert!(here.memory_bytes > 1 << 20);
        assert!(!here.cpus_allowed.is_empty());
        if here.cpus_online == 0 {
            println!("skipped: no /sys here");
            return;
        }
        assert!(here.cpus_allowed.len() <= here.cpus_online as usize);
    }

    #[test]
    fn the_cpu_model_is_found_under_any_of_its_names() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel\t\t: 167\nmodel name\t: A CPU @ 2 GHz\n"),
            "A CPU @ 2 GHz"
        );
        assert_eq!(cpu_model("processor\t: 0\nCPU part\t: 0xd0c\n"), "0xd0c");
        assert_eq!(cpu_model(""), "");
    }

    #[test]
    fn a_hypervisor_is_named_by_its_best_sign() {
        let signs = |xen: Option<&str>, product: Option<&str>, clocks: &str, flagged| {
            hypervisor(&HypervisorSigns {
                xen_type: xen.map(str::to_owned),
                product: product.map(str::to_owned),
                clocksources: clocks.to_owned(),
                flagged,
            })
        };
        assert_eq!(signs(None, None, "tsc kvm-clock \n", true).as_deref(), Some("kvm"));
        assert_eq!(
            signs(Some("xen"), Some("Vendor HVM"), "tsc xen\n", true).as_deref(),
            Some("xen (Vendor HVM)")
        );
        assert_eq!(signs(None, None, "tsc hpet\n", true).as_deref(), Some("unnamed"));
        assert_eq!(signs(None, Some("Vendor Desktop"), "tsc hpet\n", false), None);
    }

    #[test]
    fn the_hypervisor_flag_is_a_whole_word() {
        assert!(has_hypervisor_flag("flags\t\t: fpu hypervisor lm\n"));
        assert!(!has_hypervisor_flag("flags\t\t: fpu hypervisorless lm\n"));
    }
}
