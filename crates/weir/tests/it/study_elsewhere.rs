//! Studies whose servers run on another host: in a separate network namespace, joined by a pair of virtual Ethernet
//! devices, with `ip netns exec` instead of ssh. A user namespace makes the pair without root if the system allows it;
//! otherwise the test prints what is missing.

use std::path::Path;

use serde_json::Value;
use weir_record::{check::CheckName, finding::Finding, study::StudyResult, trial::TrialRecord};

use super::harness::{
    Folder, Said, TWO_ARMS, expect_refusal, folder, shell, shown, study_file, study_head, weir,
};

/// The laboratory is at 10.9.0.1, and the servers are in `b` at 10.9.0.2.
const PAIR: &str = "set -e; mount -t tmpfs tmpfs /run; ip netns add b; ip link add va type veth peer name vb; \
                    ip link set vb netns b; ip addr add 10.9.0.1/24 dev va; ip link set va up; ip link set lo up; \
                    ip netns exec b ip addr add 10.9.0.2/24 dev vb; ip netns exec b ip link set vb up; \
                    ip netns exec b ip link set lo up";

/// Runs a shell line on the side of the laboratory. The cache of the other side is in the folder.
fn beside_b(folder: &Folder, line: &str) -> Said {
    let cache = folder.join("cache");
    let apart = "unshare --user --map-root-user --net --mount --kill-child --fork";
    shell(&format!("XDG_CACHE_HOME={} exec {apart} sh -c '{PAIR}; {line}'", shown(&cache)))
}

/// Whether the pair can be made here.
fn lacks_pair(folder: &Folder) -> bool {
    let said = beside_b(folder, "echo made");
    if said.stdout != "made\n" {
        println!("skipped: no pair of network namespaces can be made here: {}", said.stderr.trim());
        return true;
    }
    false
}

fn result_of(out: &Path) -> StudyResult {
    let data: Value = serde_json::from_str(&weir(&["export", shown(out)]).stdout).expect("it is JSON");
    serde_json::from_value(data["result"].clone()).expect("the judged result")
}

fn trials_of(out: &Path) -> Vec<TrialRecord> {
    let data: Value = serde_json::from_str(&weir(&["export", shown(out)]).stdout).expect("it is JSON");
    serde_json::from_value(data["trials"].clone()).expect("the trials")
}

#[test]
fn servers_in_another_namespace_are_started_read_and_ended_there() {
    let folder = folder("elsewhere");
    if lacks_pair(&folder) {
        return;
    }
    let (file, out) = study_file(&folder, &(study_head(6, "10min") + TWO_ARMS));
    let study = format!("\"$WEIR\" study {file} --out {} --rsh \"ip netns exec b\"", shown(&out));
    let said = beside_b(&folder, &format!("{study}; code=$?; ip netns pids b >&2; exit $code"));
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let told = "servers run on ip netns exec b and listen at 10.9.0.2; a question to it takes ";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    // No process runs there any more: the list of its processes, which comes last, is empty.
    assert!(said.stderr.lines().last().is_some_and(|line| line.parse::<u32>().is_err()), "{}", said.stderr);
    let result = result_of(&out);
    let there = result.spec.server_host.as_ref().expect("it is stored");
    assert_eq!((there.rsh.as_deref(), there.address.as_str()), (Some("ip netns exec b"), "10.9.0.2"));
    assert!(there.control_delay_ns > 0);
    let load_host = result.fingerprint.load_host.as_ref().expect("the machine of the load is stored as well");
    // The interface that carries the load is known on both sides, and its packets are counted.
    let interfaces = [&result.fingerprint, load_host.as_ref()].map(|it| it.load_link["interface"].as_str());
    assert_eq!(interfaces, ["vb", "va"]);
    let losses =
        result.checks.iter().find(|check| check.name == CheckName::LinkLosses).expect("it is checked");
    assert!(matches!(losses.detail, Finding::LinkLosses { packets: 1.., .. }), "{losses:?}");
    let trials = trials_of(&out);
    assert!(
        trials.iter().all(|trial| trial.load.as_ref().is_some_and(|load| load.messages > 0)),
        "{trials:?}"
    );
    let slices: Vec<_> = trials.iter().flat_map(|trial| &trial.slices).collect();
    assert!(!slices.is_empty() && slices.iter().all(|slice| slice.server_cpu_ns > 0 && slice.segments > 0));
    // It was copied once, and is reused there when the study resumes.
    let longer = beside_b(&folder, &format!("\"$WEIR\" study --resume {} --quiet", shown(&out)));
    assert!(matches!(longer.code, Some(0 | 11 | 12)), "{:?} {}", longer.code, longer.stderr);
    assert!(longer.stderr.contains(told), "{}", longer.stderr);
    // Rounds over another network cannot be mixed with these.
    let change = "ip netns exec b ip link set vb mtu 1400";
    let moved = beside_b(&folder, &format!("{change}; \"$WEIR\" study --resume {} --quiet", shown(&out)));
    assert_eq!(moved.code, Some(12), "{}", moved.stderr);
    assert!(moved.stderr.contains("load_link.mtu 1500 there, 1400 here"), "{}", moved.stderr);
}

#[test]
fn an_address_that_leads_back_to_the_load_is_refused_with_its_flag() {
    let folder = folder("elsewhere-back");
    if lacks_pair(&folder) {
        return;
    }
    let (file, out) = study_file(&folder, &(study_head(6, "10min") + TWO_ARMS));
    let study = format!("\"$WEIR\" study {file} --out {} --quiet --rsh \"ip netns exec b\"", shown(&out));
    // Loopback leads nowhere else, and the second address is the laboratory's.
    for address in ["127.0.0.1", "10.9.0.1"] {
        let said = beside_b(&folder, &format!("{study} --server-address {address}"));
        let flag = format!("--server-address {address} leads back to this machine");
        expect_refusal(&said, 2, &[&flag, "leave the flag out"]);
    }
    let log = folder.join("log");
    let serve =
        format!("ip netns exec b \"$WEIR\" serve echo --listen 127.0.0.1:7007 >{} 2>&1 &", shown(&log));
    let ready = format!("until grep -q listening {}; do kill -0 $server || exit 1; done", shown(&log));
    let arm = "--arm old=tcp://127.0.0.1:7007";
    let line = format!("{serve} server=$!; trap \"kill $server\" EXIT; {ready}; {study} {arm}");
    let said = beside_b(&folder, &line);
    expect_refusal(
        &said,
        2,
        &["--arm old: 127.0.0.1:7007 leads back to this machine", "--arm old=http://HOST:PORT"],
    );
    assert!(!out.exists());
}

#[test]
fn a_command_that_stays_on_this_machine_shares_its_loopback() {
    let folder = folder("elsewhere-shared");
    let (file, out) = study_file(&folder, &(study_head(6, "10min") + TWO_ARMS));
    let way = format!("env XDG_CACHE_HOME={}", shown(&folder.join("cache")));
    let words = ["--rsh", &way, "--server-address", "127.0.0.1", "--dry-run"];
    let said = weir(&[&["study", &file, "--out", shown(&out)], &words[..]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("and listen at 127.0.0.1"), "{}", said.stderr);
}

#[test]
fn the_doctor_looks_at_another_host() {
    let folder = folder("elsewhere-doctor");
    let way = format!("env XDG_CACHE_HOME={}", shown(&folder.join("cache")));
    let said = weir(&["doctor", "--rsh", &way, "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let there: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let here: Value = serde_json::from_str(&weir(&["doctor", "--json"]).stdout).expect("it is JSON");
    let drivers = |all: &Value| -> Vec<Value> {
        let all = all.as_array().expect("a list").iter();
        all.filter(|line| line["section"] == "drivers").map(|line| line["state"].clone()).collect()
    };
    assert!(!drivers(&there).is_empty());
    assert_eq!(drivers(&there), drivers(&here));
}

#[test]
fn a_host_that_cannot_be_had_is_told_and_nothing_is_stored() {
    let folder = folder("elsewhere-refused");
    let (file, out) = study_file(&folder, &(study_head(6, "10min") + TWO_ARMS));
    let study = |words: &[&str]| weir(&[&["study", &file, "--out", shown(&out)], words].concat());
    expect_refusal(
        &study(&["--rsh", "sh -c \"echo no route >&2; exit 255\""]),
        13,
        &["status 255: no route"],
    );
    expect_refusal(&study(&["--rsh", "'"]), 2, &["--rsh \"'\" is no command"]);
    expect_refusal(&study(&["--server-host=-oProxyCommand=x"]), 2, &["write [user@]HOST"]);
    expect_refusal(&study(&["--server-address", "10.9.0.2"]), 2, &["add --server-host or --rsh"]);
    assert!(!out.exists());
}
