//! Files that run the program outside a terminal: they are sound, and allow the calls that Weir needs.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::harness::{folder, shown};

/// Calls that Weir needs and that some profiles and groups leave out.
const NEEDED: [&str; 21] = [
    "epoll_pwait2",
    "eventfd2",
    "futex",
    "futex_requeue",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "io_getevents",
    "io_setup",
    "io_submit",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "membarrier",
    "openat2",
    "pidfd_open",
    "pidfd_send_signal",
    "preadv2",
    "sched_setaffinity",
    "sendfile",
    "statx",
];

/// Calls that reach beyond a container, or have been used to do so.
const BEYOND: [&str; 12] = [
    "add_key",
    "bpf",
    "clock_settime",
    "finit_module",
    "init_module",
    "kexec_load",
    "mount",
    "open_by_handle_at",
    "perf_event_open",
    "setns",
    "unshare",
    "userfaultfd",
];

fn packaging(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The value of a unit's key.
fn setting<'u>(unit: &'u str, key: &str) -> &'u str {
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.next().unwrap_or_else(|| panic!("it sets no {key}"))
}

/// A setting in whole seconds.
fn seconds(unit: &str, key: &str) -> u32 {
    let text = setting(unit, key);
    text.strip_suffix('s').and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{key}: {text}"))
}

/// The profile's answer to a call without restricted arguments; `None` if no unconditional rule has it.
fn answer<'p>(profile: &'p Value, call: &str) -> Option<&'p Value> {
    let rules = profile["syscalls"].as_array().expect("rules");
    let names_it = |rule: &&Value| rule["names"].as_array().expect("names").iter().any(|name| *name == call);
    let mut own = rules.iter().filter(names_it).filter(|rule| rule.get("args").is_none());
    let found = own.next();
    assert!(own.next().is_none(), "{call} has two answers");
    found
}

#[test]
fn the_containers_profile_lets_through_what_weir_needs_and_refuses_what_reaches_beyond() {
    let profile: Value = serde_json::from_str(&packaging("seccomp.json")).expect("it is JSON");
    // A program gets an older kernel's answer to an unknown call.
    assert_eq!(
        (&profile["defaultAction"], &profile["defaultErrnoRet"]),
        (&"SCMP_ACT_ERRNO".into(), &38.into())
    );
    let action = |call: &str| answer(&profile, call).map(|rule| rule["action"].clone());
    let shut: Vec<_> = NEEDED.iter().filter(|call| action(call) != Some("SCMP_ACT_ALLOW".into())).collect();
    assert!(shut.is_empty(), "not let through: {shut:?}");
    let open: Vec<_> = BEYOND
        .iter()
        .filter(|call| !answer(&profile, call).is_some_and(|rule| rule["errnoRet"] == 1))
        .collect();
    assert!(open.is_empty(), "not refused with EPERM: {open:?}");
    // Flags behind a pointer cannot be checked, so threads are made with `clone`.
    assert_eq!(answer(&profile, "clone3").map(|rule| &rule["errnoRet"]), Some(&38.into()));
    let with_arguments = |call: &str| -> Vec<Value> {
        let rules = profile["syscalls"].as_array().expect("rules");
        rules.iter().filter(|rule| rule["names"] == json!([call])).cloned().collect()
    };
    // CLONE_NEWNS, CLONE_NEWCGROUP, -UTS, -IPC, -USER, -PID and -NET of clone(2), none of which may be set.
    let namespaces =
        0x0002_0000 | 0x0200_0000 | 0x0400_0000 | 0x0800_0000 | 0x1000_0000 | 0x2000_0000 | 0x4000_0000;
    let none = json!([{ "index": 0, "value": namespaces, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ" }]);
    let thread = json!({ "names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": none });
    assert_eq!(with_arguments("clone"), [thread]);
    // AF_VSOCK reaches the host.
    let other = json!([{ "index": 0, "value": 40, "op": "SCMP_CMP_NE" }]);
    let socket = json!({ "names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": other });
    assert_eq!(with_arguments("socket"), [socket]);
}

#[test]
fn the_units_let_a_server_and_the_dashboard_open_the_sockets_they_may_be_asked_for() {
    for name in ["weir@.service", "weir-dashboard.service"] {
        let unit = packaging(name);
        let families: BTreeSet<&str> = setting(&unit, "RestrictAddressFamilies").split(' ').collect();
        assert_eq!(families, BTreeSet::from(["AF_INET", "AF_INET6", "AF_UNIX"]), "{name}");
        assert_eq!(setting(&unit, "NoNewPrivileges"), "yes", "{name}");
        assert_eq!(setting(&unit, "CapabilityBoundingSet"), "", "{name}");
        assert_eq!(setting(&unit, "Type"), "exec", "{name}");
        for section in ["[Unit]", "[Service]", "[Install]"] {
            assert_eq!(unit.lines().filter(|line| *line == section).count(), 1, "{name} has no {section}");
        }
        let is_line = |line: &str| {
            let is_setting =
                line.split_once('=').is_some_and(|(key, _)| key.chars().all(char::is_alphanumeric));
            line.is_empty() || line.starts_with(['#', '[']) || is_setting
        };
        assert!(unit.lines().all(is_line), "{name} has a line that is no setting");
    }
    let server = packaging("weir@.service");
    // The owner of a folder can replace its content.
    let owned = |unit: &str| -> BTreeSet<String> {
        let folders = setting(unit, "StateDirectory").split(' ');
        folders.filter_map(|folder| folder.split('/').next().map(str::to_owned)).collect()
    };
    let dashboard = packaging("weir-dashboard.service");
    assert!(owned(&server).is_disjoint(&owned(&dashboard)), "users do not share a folder");
    assert!(setting(&server, "SystemCallFilter").split(' ').any(|group| group == "@aio"), "io_uring's calls");
    // For either of them systemd refuses openat2, without which no folder is served.
    let refuses = |line: &str| line.starts_with("DynamicUser=") || line.starts_with("RestrictSUIDSGID=");
    assert!(!server.lines().any(refuses), "openat2");
    assert_eq!(setting(&server, "User"), "weir-%i");
    // The unit's text about draining: the default is below its limit.
    assert!(seconds(&server, "TimeoutStopSec") > 5, "--drain-limit is 5 s unless it is given");
}

#[test]
fn a_gateways_journal_is_private_and_the_unit_reloads_it_and_gives_it_descriptors_and_memory() {
    let unit = packaging("weir@.service");
    // Only its own folder can be written, so its journal is there, and other users do not see it.
    assert_eq!(setting(&unit, "ProtectSystem"), "strict");
    assert_eq!(setting(&unit, "StateDirectory"), "weir-servers/%i");
    assert_eq!(setting(&unit, "WorkingDirectory"), "/var/lib/weir-servers/%i");
    assert_eq!((setting(&unit, "StateDirectoryMode"), setting(&unit, "UMask")), ("0700", "0077"));
    assert!(setting(&unit, "ExecReload").ends_with("kill -HUP $MAINPID"), "SIGHUP reads the file again");
    assert_eq!(setting(&unit, "KillMode"), "mixed", "a drain is asked for once");
    let descriptors: u32 = setting(&unit, "LimitNOFILE").parse().expect("a number");
    assert!(descriptors >= 65_536, "a descriptor for each client");
    assert_eq!(setting(&unit, "LimitMEMLOCK"), "64M", "rings of kernels before 5.12");
    // --drain-limit is 5 s; an order server may take half as long again and ten seconds.
    assert!(seconds(&unit, "TimeoutStopSec") > 5 + 3 + 10);
}

#[test]
fn a_server_is_tried_again_for_a_while_whatever_ended_it_and_not_for_ever() {
    let unit = packaging("weir@.service");
    assert_eq!(setting(&unit, "Restart"), "on-failure");
    assert_eq!(setting(&unit, "RestartForceExitStatus"), "SIGHUP", "for systemd that is no failure");
    // No exit code is that of mistakes alone: a name that cannot be looked up at boot ends a server with 2.
    assert!(!unit.lines().any(|line| line.starts_with("RestartPreventExitStatus=")));
    let (pause_s, span_s) = (seconds(&unit, "RestartSec"), seconds(&unit, "StartLimitIntervalSec"));
    let starts: u32 = setting(&unit, "StartLimitBurst").parse().expect("a number");
    assert!(starts * pause_s >= 60, "what passes within a minute");
    // A look-up that finds no server gives up after 10 s (resolv.conf(5)); a journal takes seconds to be read.
    assert!(starts * (pause_s + 20) < span_s, "a server that ends within twenty seconds reaches the limit");
}

#[test]
fn the_dashboards_unit_makes_the_results_folder_that_it_names() {
    let unit = packaging("weir-dashboard.service");
    let mut words = setting(&unit, "ExecStart").split(' ').skip_while(|word| *word != "dashboard").skip(1);
    let named = words.next().expect("a folder of results");
    // A missing named folder ends the dashboard, and a few ends in a row keep the unit from starting.
    let mut made = setting(&unit, "StateDirectory").split(' ').map(|folder| format!("/var/lib/{folder}"));
    assert!(made.any(|folder| folder == named), "nothing makes {named}");
}

/// Runs lines with a function of `packaging/release`. Returns whether they succeeded, and what they printed.
fn release(function: &str, lines: &str, path: &str) -> (bool, String) {
    let script = packaging("release");
    let (_, rest) = script.split_once(&format!("\n{function}() {{")).expect("there is such a function");
    let (body, _) = rest.split_once("\n}\n").expect("it ends");
    let text = format!("set -euo pipefail\n{function}() {{{body}\n}}\n{lines}");
    let output =
        Command::new("/bin/bash").args(["-c", &text]).env("PATH", path).output().expect("bash starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn a_release_is_called_static_only_if_something_says_so() {
    let (is_static, said) = release("is_static", "is_static /bin/true", "/no/programs");
    assert!(!is_static && said.contains("install readelf"), "{said}");
}

#[test]
fn the_size_of_a_package_is_that_of_its_files_and_not_of_its_file_system() {
    let folder = folder("packaging-size");
    fs::create_dir(folder.join("below")).expect("a folder can be made");
    for (name, bytes) in [("empty", 0), ("one", 1), ("below/full", 1024), ("below/more", 1025)] {
        fs::write(folder.join(name), vec![b'x'; bytes]).expect("a file can be written");
    }
    let path = std::env::var("PATH").expect("there is a path");
    let (_, said) = release("installed_kib", &format!("installed_kib '{}'", shown(&folder)), &path);
    assert_eq!(said, "5", "1, 1 and 2 of the files, 1 of the folder");
}

#[test]
fn a_candidate_for_a_release_is_earlier_than_the_release_to_debian() {
    let script = packaging("release");
    let line = script.lines().find(|line| line.starts_with("debian_version=")).expect("it sets one");
    for (version, expected) in [("1.2.3", "1.2.3"), ("1.2.3-rc.1", "1.2.3~rc.1")] {
        let text = format!("version={version}\n{line}\necho \"$debian_version\"");
        let output = Command::new("bash").args(["-c", &text]).output().expect("bash starts");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected);
    }
    let uses = |what: &str| script.contains(what);
    assert!(uses("Version: $debian_version\n") && uses("\"$debian_version\"\n    printf ' -- "));
}

#[test]
fn the_archive_packs_files_that_there_are_and_the_first_page_in_every_language() {
    let script = packaging("release").replace("\\\n", " ");
    let mut copied = script.lines().filter_map(|line| line.trim().strip_prefix("cp "));
    let line = copied.find(|words| words.contains("README.md")).expect("it copies files");
    let files: Vec<&str> = line.split_whitespace().filter(|word| !word.starts_with('"')).collect();
    assert!(files.contains(&"packaging/seccomp.json") && files.len() > 5, "{files:?}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let missing: Vec<_> = files.iter().filter(|file| !root.join(file).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Readers of the archive find the first page in their language.
    let there = fs::read_dir(&root).expect("the tree can be read").flatten();
    let names = there.filter_map(|entry| entry.file_name().into_string().ok());
    let pages: Vec<String> = names.filter(|name| name.starts_with("README")).collect();
    let left_out: Vec<_> = pages.iter().filter(|page| !files.contains(&page.as_str())).collect();
    assert!(left_out.is_empty() && pages.len() == 3, "{left_out:?} of {pages:?}");
}
