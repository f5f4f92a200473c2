//! `weir load ... --host a,b`: generators on several hosts whose results are added. A command in place of ssh leads to
//! other cache folders of this machine, which are hosts in one network namespace. One test has hosts in separate
//! namespaces, where the system allows that.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use weir_record::load::LoadReport;

use super::harness::{
    Folder, PATIENCE, Running, Said, Server, executable, expect_refusal, folder, shell, shown, until, weir,
};

/// Longest time until a loss has a name. A host may be silent for 9 s, and a busy machine is slow.
const NAMED_MAX: Duration = Duration::from_secs(30);

/// A command that leads to a host of this machine with its own cache folder.
fn way(folder: &Folder) -> String {
    format!("env XDG_CACHE_HOME={}/{{host}}", shown(folder))
}

/// Runs a load of echo from two such hosts.
fn from_two(folder: &Folder, target: &str, words: &[&str]) -> Said {
    let way = way(folder);
    weir(&[&["load", "echo", "--target", target, "--host", "a,b", "--rsh", &way], words].concat())
}

fn report(said: &Said) -> LoadReport {
    assert_eq!(said.code, Some(0), "{}{}", said.stderr, said.stdout);
    serde_json::from_str(&said.stdout).expect("one line of JSON")
}

/// Living processes of the hosts in a folder, with their command lines.
fn living(folder: &Path) -> Vec<(Pid, String)> {
    let mark = format!("XDG_CACHE_HOME={}/", shown(folder));
    let processes = fs::read_dir("/proc").expect("/proc is there");
    let of = |process: fs::DirEntry| {
        let pid = Pid::from_raw(process.file_name().to_str()?.parse().ok()?)?;
        let environment = fs::read(process.path().join("environ")).ok()?;
        let is_marked = environment.windows(mark.len()).any(|window| window == mark.as_bytes());
        let command = fs::read_to_string(process.path().join("cmdline")).ok()?.replace('\0', " ");
        (is_marked && !command.is_empty()).then_some((pid, command))
    };
    processes.flatten().filter_map(of).collect()
}

fn expect_none(folder: &Path) {
    until("the end of all processes of the hosts", || living(folder).is_empty());
}

/// That the figures of all are the sums of the parts.
fn expect_sums(all: &LoadReport) {
    let parts = &all.generators.as_ref().expect("there are several").parts;
    let sum = |count: fn(&LoadReport) -> u64| parts.iter().map(|part| count(&part.report)).sum::<u64>();
    assert_eq!(all.messages, sum(|report| report.messages));
    assert_eq!(all.messages_started, sum(|report| report.messages_started));
    assert_eq!(all.messages_whole_run, sum(|report| report.messages_whole_run));
    assert_eq!(all.bytes_verified, sum(|report| report.bytes_verified));
    assert_eq!(all.failures.errors(), sum(|report| report.failures.errors()));
    assert_eq!(u64::from(all.connections), sum(|report| report.connections.into()));
    assert_eq!(u64::from(all.workers), sum(|report| report.workers.into()));
    let mut service = parts[0].report.service.histogram().expect("it is a histogram");
    for part in &parts[1..] {
        service.add(part.report.service.histogram().expect("it is a histogram")).expect("equal bounds");
    }
    assert_eq!(all.service.histogram().expect("it is a histogram"), service);
    assert_eq!(all.service.count, all.messages);
    for (second, row) in all.seconds.iter().enumerate() {
        let whole = parts.iter().filter_map(|part| part.report.seconds.get(second));
        // A generator that ended in this second is in the row, and has no whole second there.
        assert!(row.messages >= whole.map(|row| row.messages).sum::<u64>(), "second {second}");
    }
}

#[test]
fn a_counted_load_from_two_hosts_sends_exactly_that_many_messages() {
    let (folder, server) = (folder("load-hosts-counted"), Server::start(&["--driver", "epoll"]));
    let words = ["-c", "7", "--workers", "2", "-n", "5001", "--json", "--message-bytes", "100"];
    let report = report(&from_two(&folder, &server.address, &words));
    assert_eq!((report.messages, report.messages_asked), (5001, Some(5001)));
    assert_eq!((report.bytes_verified, report.connections, report.workers), (500_100, 7, 4));
    expect_sums(&report);
    let generators = report.generators.as_ref().expect("there are two");
    let of =
        |place: usize| (generators.parts[place].host.as_str(), generators.parts[place].report.connections);
    assert_eq!([of(0), of(1)], [("a", 4), ("b", 3)]);
    assert!(generators.skew_ns > 0);
    assert_eq!(report.settings["host"], "a, b");
    expect_none(&folder);
}

/// Most messages that are on the other side of an edge of the window than their intended starts. A busy machine stops
/// servers and generators for a while; the longest response time says how long.
fn late_max(report: &LoadReport, rate: f64) -> f64 {
    let skew_ns = report.generators.as_ref().map_or(0, |generators| generators.skew_ns);
    2.0 * rate * (report.response.ns_max + skew_ns) as f64 / 1e9
}

#[test]
fn two_generators_merged_have_the_figures_of_one() {
    let (folder, server) = (folder("load-hosts-rate"), Server::start(&["--driver", "epoll"]));
    let target = server.address.as_str();
    let words = ["-c", "8", "--rate", "2000", "--arrivals", "uniform", "--warmup-max", "300ms", "-d", "2s"];
    let merged = report(&from_two(&folder, target, &[&words[..], &["--json"]].concat()));
    let alone = report(&weir(&[&["load", "echo", "--target", target, "--json"], &words[..]].concat()));
    for report in [&merged, &alone] {
        // Both keep the schedule: a message starts every half millisecond.
        let intended = 2000.0 * report.window_ns as f64 / 1e9;
        let apart_max = 0.01 * intended + late_max(report, 2000.0);
        assert!((report.messages_started as f64 - intended).abs() < apart_max, "{report:?}");
        assert_eq!((report.failures.errors(), report.seconds.len()), (0, 2), "{report:?}");
        let rows: u64 = report.seconds.iter().map(|row| row.messages).sum();
        assert!((rows as f64 - 4000.0).abs() < 40.0 + late_max(report, 2000.0), "{report:?}");
    }
    assert_eq!((merged.mode.as_str(), merged.rate_per_second), ("open", alone.rate_per_second));
    expect_sums(&merged);
    let parts = &merged.generators.as_ref().expect("there are two").parts;
    assert!(parts.iter().all(|part| part.report.rate_per_second == Some(1000.0)));
    // A person reads each host's part, and how far apart the windows opened.
    let said = from_two(&folder, target, &["-c", "4", "-d", "1s", "--warmup-max", "0s"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("hosts         2; their windows opened within "), "{}", said.stdout);
    for host in ["\na             ", "\nb             "] {
        assert!(said.stdout.contains(host), "{}", said.stdout);
    }
    assert!(said.stderr.contains("is loopback: each of a, b loads its own server"), "{}", said.stderr);
    expect_none(&folder);
}

#[test]
fn http_from_two_hosts_is_checked_with_the_files_of_this_one() {
    let folder = folder("load-hosts-http");
    let serve = Running::weir(&["serve", "http", "--listen", "127.0.0.1:0", "--body", "1000"]);
    let line = serve.next_line().expect("it listens");
    let address = line.strip_prefix("listening on ").expect("an address");
    let (mix, csv) = (folder.join("mix.toml"), folder.join("rows.csv"));
    let requests = "[[request]]\nname = \"page\"\nmethod = \"GET\"\npath = \"/\"\nweight = 2\nexpect_length = 1000\n\
                    [[request]]\nname = \"post\"\nmethod = \"POST\"\npath = \"/p\"\nbody_file = \"body\"\nweight = 1\n";
    fs::write(&mix, requests).expect("a file can be written");
    fs::write(folder.join("body"), "abc").expect("a file can be written");
    let url = format!("http://{address}/");
    let words = ["load", "http", &url, "--host", "a,b", "--rsh", &way(&folder), "--request-mix", shown(&mix)];
    let more = ["-c", "6", "-d", "2s", "--warmup-max", "0s", "--json", "--csv", shown(&csv)];
    let report = report(&weir(&[&words[..], &more[..]].concat()));
    expect_sums(&report);
    let http = report.http.as_ref().expect("it is HTTP");
    assert_eq!(
        http.requests.iter().map(|request| request.name.as_str()).collect::<Vec<_>>(),
        ["page", "post"]
    );
    assert_eq!(http.requests.iter().map(|request| request.right).sum::<u64>(), report.messages_whole_run);
    assert_eq!((http.responses_compared, http.connections_opened), (report.messages, 6));
    assert_eq!(http.first_byte.count, report.messages);
    let rows = fs::read_to_string(&csv).expect("it was written here");
    assert_eq!(rows.lines().count(), 1 + report.seconds.len(), "{rows}");
    assert_eq!(report.seconds.len(), 2);
    expect_none(&folder);
}

#[test]
fn what_cannot_be_is_refused_before_any_host_is_asked() {
    let folder = folder("load-hosts-usage");
    // Whatever asks a host would fail otherwise.
    let load = |protocol: &[&str], words: &[&str]| {
        weir(&[&["load"], protocol, &["--rsh", "false {host}"], words].concat())
    };
    let echo = |words: &[&str]| load(&["echo", "--target", "10.0.0.1:7"], words);
    expect_refusal(&echo(&["--host", "a,me@a"]), 2, &["--host names a twice"]);
    expect_refusal(
        &echo(&["--host", "a,b,c", "-c", "2"]),
        2,
        &["--connections: 2 cannot be divided between 3"],
    );
    expect_refusal(&echo(&["--host", "a,b", "-c", "3", "--workers", "2"]), 2, &["--workers: 2 on each of 2"]);
    expect_refusal(&echo(&["--host", "a,"]), 2, &["write [user@]HOST"]);
    expect_refusal(
        &echo(&["--host", "a", "--observe-pid", "1"]),
        2,
        &["--observe-pid reads a process beside"],
    );
    expect_refusal(&echo(&["--host", "a", "-d", "0s"]), 2, &["--duration: "]);
    let many = (0..65).map(|number| format!("h{number}")).collect::<Vec<_>>().join(",");
    expect_refusal(&echo(&["--host", &many]), 2, &["names 65 hosts; the most is 64"]);
    let jtl = folder.join("rows.jtl");
    let http = load(&["http", "http://10.0.0.1/"], &["--host", "a", "--jtl", shown(&jtl)]);
    expect_refusal(&http, 2, &["--jtl writes a row for each response where the load comes from"]);
    let large = folder.join("large");
    fs::write(&large, vec![b'x'; (1 << 20) + 1]).expect("a file can be written");
    let http = load(&["http", "http://10.0.0.1/"], &["--host", "a", "--data-file", shown(&large)]);
    expect_refusal(&http, 2, &["have 1048577 bytes, and at most 1048576 are sent"]);
    let said = weir(&["load", "echo", "--rsh", "env"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("--host"), "{}", said.stderr);
}

#[test]
fn a_host_that_cannot_load_is_named_in_time_and_the_others_end() {
    let folder = folder("load-hosts-refused");
    let tools = folder.join("tools");
    fs::create_dir(&tools).expect("a folder can be made");
    let write = |name: &str, text: &str| executable(&tools.join(name), text);
    write("uname", "#!/bin/sh\ncase $1 in -m) echo pdp11;; *) echo Linux;; esac\n");
    // Host b is special, and a is not.
    let caches = shown(&folder);
    let to = |special: &str| {
        let script = format!(
            "#!/bin/sh\nhost=$1; shift; XDG_CACHE_HOME={caches}/$host; export XDG_CACHE_HOME\n\
             if [ $host = a ]; then exec \"$@\"; fi\n{special}\n"
        );
        write("to", &script);
    };
    let load = |target: &str| {
        let way = format!("{}/to {{host}}", shown(&tools));
        let began = Instant::now();
        let said = weir(&["load", "echo", "--target", target, "-c", "4", "--host", "a,b", "--rsh", &way]);
        assert!(began.elapsed() < NAMED_MAX, "{:?}: {}", began.elapsed(), said.stderr);
        expect_none(&folder);
        said
    };
    to("echo no route >&2; exit 255");
    expect_refusal(&load("10.0.0.1:7"), 13, &["b: the way to it exited with status 255: no route"]);
    to("exec sleep 1000");
    expect_refusal(&load("10.0.0.1:7"), 13, &["b: it gave no answer within 9 s"]);
    to(&format!("PATH={}:$PATH; export PATH; exec \"$@\"", shown(&tools)));
    expect_refusal(&load("10.0.0.1:7"), 13, &["b: it is Linux on pdp11, and this weir is for Linux on "]);
    // Another program in the place of an agent, of whatever version.
    let fake = "m=$(uname -m); echo \"weir-agent: found Linux $m there\"; echo weir-agent: ready; read -r line; \
                echo '{\"number\":1,\"answer\":{\"Ok\":\"of another version\"}}'; cat >/dev/null";
    to(fake);
    expect_refusal(&load("10.0.0.1:7"), 13, &["b: a line came that is none of ours: ", "of another version"]);
    // Both names lead to one agent folder.
    to(&format!("XDG_CACHE_HOME={caches}/a; exec \"$@\""));
    expect_refusal(
        &load("10.0.0.1:7"),
        13,
        &[": another study or load uses this host: its agent is process "],
    );
    // The hosts are there, and the server is not.
    to("exec \"$@\"");
    let said = load("127.0.0.1:1");
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains(": cannot connect to 127.0.0.1:1: "), "{}", said.stderr);
}

/// A load that runs for long, from hosts a and b.
fn long_load(folder: &Folder, server: &Server) -> Running {
    let way = way(folder);
    let load = Running::weir(&[
        "load",
        "echo",
        "--target",
        &server.address,
        "-c",
        "4",
        "-d",
        "60s",
        "--warmup-max",
        "0s",
        "--host",
        "a,b",
        "--rsh",
        &way,
    ]);
    load.error_line_with("measuring");
    load
}

#[test]
fn a_generator_that_is_killed_costs_the_whole_result_and_is_named() {
    let (folder, server) = (folder("load-hosts-killed"), Server::start(&["--driver", "epoll"]));
    for (victim, code, named) in [
        (" load-part", 1, "b: its generator was killed by signal 9"),
        (" agent --stdio", 13, "b: the way to it was killed by signal 9"),
    ] {
        let mut load = long_load(&folder, &server);
        let host = folder.join("b");
        let mark = format!("XDG_CACHE_HOME={}\0", shown(&host));
        let is_of_host = |pid: Pid| {
            let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
            environment.windows(mark.len()).any(|window| window == mark.as_bytes())
        };
        let found =
            living(&folder).into_iter().find(|(pid, command)| command.contains(victim) && is_of_host(*pid));
        let (pid, _) = found.expect("it runs");
        let killed = Instant::now();
        kill_process(pid, Signal::KILL).expect("it is ours");
        assert_eq!(load.wait(NAMED_MAX), code);
        assert!(killed.elapsed() < NAMED_MAX);
        let said = load.rest_of_errors();
        assert!(said.contains(named), "{said}");
        assert_eq!(load.next_line(), None, "there is no result");
        expect_none(&folder);
    }
}

#[test]
fn a_load_that_is_interrupted_reports_the_shorter_window_of_all() {
    let (folder, server) = (folder("load-hosts-interrupted"), Server::start(&["--driver", "epoll"]));
    let mut load = long_load(&folder, &server);
    load.signal(Signal::INT);
    assert_eq!(load.wait(NAMED_MAX), 130);
    let text: Vec<String> = std::iter::from_fn(|| load.next_line()).collect();
    let text = text.join("\n");
    assert!(text.contains("messages      ") && text.contains("hosts         2; their windows"), "{text}");
    expect_none(&folder);
    // The coordinator itself is killed: nothing stays on the hosts.
    let load = long_load(&folder, &server);
    assert!(!living(&folder).is_empty());
    load.signal(Signal::KILL);
    expect_none(&folder);
}

/// The server is at 10.9.0.1; the generators are in b at 10.9.0.2 and in c at 10.9.1.2.
const THREE: &str = "set -e; mount -t tmpfs tmpfs /run; ip netns add b; ip netns add c; \
                     ip link add va type veth peer name vb; ip link add wa type veth peer name wc; \
                     ip link set vb netns b; ip link set wc netns c; \
                     ip addr add 10.9.0.1/24 dev va; ip addr add 10.9.1.1/24 dev wa; \
                     ip link set va up; ip link set wa up; ip link set lo up; \
                     ip netns exec b ip addr add 10.9.0.2/24 dev vb; ip netns exec b ip link set vb up; \
                     ip netns exec c ip addr add 10.9.1.2/24 dev wc; ip netns exec c ip link set wc up; \
                     ip netns exec b ip link set lo up; ip netns exec c ip link set lo up; \
                     ip netns exec c ip route add 10.9.0.0/24 via 10.9.1.1";

#[test]
fn generators_in_two_namespaces_load_a_server_in_a_third() {
    let folder = folder("load-hosts-apart");
    let apart = "unshare --user --map-root-user --net --mount --kill-child --fork";
    let beside = |line: &str| shell(&format!("exec {apart} sh -c '{THREE}; {line}'"));
    let made = beside("echo made");
    if made.stdout != "made\n" {
        println!("skipped: no namespaces can be made here: {}", made.stderr.trim());
        return;
    }
    let log = folder.join("log");
    let serve = format!("\"$WEIR\" serve echo --listen 10.9.0.1:7007 >{} 2>&1 &", shown(&log));
    let ready = format!("until grep -qs listening {}; do kill -0 $server || exit 1; done", shown(&log));
    let way = format!("ip netns exec {{host}} env XDG_CACHE_HOME={}/{{host}}", shown(&folder));
    let load = format!(
        "\"$WEIR\" load echo --target 10.9.0.1:7007 -c 4 -n 4000 --json --host b,c --rsh \"{way}\"; code=$?; \
         ip netns pids b >&2; ip netns pids c >&2; exit $code"
    );
    let began = Instant::now();
    let said = beside(&format!("{serve} server=$!; trap \"kill $server\" EXIT; {ready}; {load}"));
    assert!(began.elapsed() < 4 * PATIENCE);
    let report = report(&said);
    assert_eq!(said.stderr, "", "no process is left in either namespace");
    assert_eq!(report.messages, 4000);
    expect_sums(&report);
    let hosts: Vec<&str> =
        report.generators.as_ref().expect("two").parts.iter().map(|part| part.host.as_str()).collect();
    assert_eq!(hosts, ["b", "c"]);
}
