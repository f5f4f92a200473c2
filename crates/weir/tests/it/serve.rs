//! `weir serve echo` over real sockets on every driver: bytes, counters, workers, pinning, addresses.

use std::{fs, thread};

use super::harness::{
    PATIENCE, Server, StatsReader, WEIR, bytes, echo_exactly, echo_tcp, stats, until, weir,
};

pub const DRIVERS: [&str; 5] = ["uring", "epoll", "poll", "select", "blocking"];

pub fn stats_name(test: &str) -> String {
    format!("@weir-it-{}-{test}", std::process::id())
}

#[test]
fn every_driver_returns_every_byte_and_counts_them() {
    const LENGTH: usize = 3 << 20;
    for driver in DRIVERS {
        let name = stats_name(driver);
        let Some(server) = Server::on_driver(driver, &["--stats-socket", &name]) else { continue };
        for seed in [1, 2] {
            echo_tcp(server.connect(), bytes(LENGTH, seed));
        }
        until("the end of both connections", || stats(&name).total.closes == 2);
        let mut reader = StatsReader::connect(&name);
        for line in ["", "stats", "{\"what\": \"ever\"}"] {
            let answer = reader.ask(line);
            assert_eq!(answer.driver, driver);
            assert_eq!((answer.total.accepts, answer.total.connections_open), (2, 0), "{driver}");
            assert_eq!(answer.total.bytes_received, 2 * LENGTH as u64, "{driver}");
            assert_eq!(answer.total.bytes_sent, 2 * LENGTH as u64, "{driver}");
            let by_worker: u64 = answer.workers.iter().map(|worker| worker.bytes_sent).sum();
            assert_eq!(by_worker, answer.total.bytes_sent, "{driver}");
        }
        assert_eq!(server.terminate(), 0, "{driver}");
    }
}

#[test]
fn the_generator_finds_every_byte_right_on_every_driver() {
    for driver in DRIVERS {
        let Some(server) = Server::on_driver(driver, &[]) else { continue };
        let counted = ["--json", "-c", "8", "--depth", "4", "--message-bytes", "3000", "-n", "5000"];
        let said = weir(&[&["load", "echo", "--target", &server.address], &counted[..]].concat());
        assert_eq!(said.code, Some(0), "{driver}: {}", said.stderr);
        let report: weir_record::load::LoadReport =
            serde_json::from_str(&said.stdout).expect("one object of JSON");
        assert_eq!((report.messages, report.bytes_verified), (5000, 15_000_000), "{driver}");
        assert_eq!(report.failures.errors(), 0, "{driver}: {:?}", report.failures);
        assert_eq!(server.terminate(), 0, "{driver}");
    }
}

#[test]
fn two_workers_share_the_connections_in_every_accept_mode() {
    for driver in ["uring", "epoll"] {
        for accept in ["reuseport", "acceptor", "exclusive"] {
            let name = stats_name(&format!("{driver}-{accept}"));
            let words = ["--workers", "2", "--accept", accept, "--stats-socket", &name];
            let Some(server) = Server::on_driver(driver, &words) else { continue };
            let clients: Vec<_> = (0..32)
                .map(|seed| (server.connect(), bytes(100_000, seed)))
                .map(|(stream, sent)| thread::spawn(move || echo_tcp(stream, sent)))
                .collect();
            for client in clients {
                client.join().expect("its bytes came back");
            }
            until("the end of the connections", || stats(&name).total.closes >= 32);
            let answer = stats(&name);
            assert_eq!(answer.workers.len(), 2, "{driver} {accept}");
            assert_eq!(answer.total.accepts, 32, "{driver} {accept}");
            assert_eq!(answer.total.bytes_sent, 3_200_000, "{driver} {accept}");
            if accept == "acceptor" {
                let sent: Vec<u64> = answer.workers.iter().map(|worker| worker.bytes_sent).collect();
                assert_eq!(sent, [1_600_000, 1_600_000], "{driver} gives connections out in turn");
            }
            assert_eq!(server.terminate(), 0, "{driver} {accept}");
        }
    }
}

#[test]
fn pinned_workers_run_where_they_are_told() {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is there");
    let allowed = cpus_allowed(&status);
    // The first number of a list such as `0-3,7`.
    let cpu = allowed.split(['-', ',']).next().expect("at least one CPU").to_owned();
    for driver in DRIVERS {
        let Some(server) = Server::on_driver(driver, &["--pin", &cpu]) else { continue };
        let tasks = format!("/proc/{}/task", server.process.pid().as_raw_nonzero());
        let is_pinned = |task: fs::DirEntry| {
            let of = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let is_worker = ["weir-worker-0", "weir-acceptor"].contains(&of("comm").trim());
            is_worker && of("status").contains(&format!("Cpus_allowed_list:\t{cpu}\n"))
        };
        // A new thread has its parent's name until it takes its own.
        until(&format!("the only worker of {driver} on its CPU"), || {
            fs::read_dir(&tasks).expect("it runs").flatten().map(is_pinned).filter(|it| *it).count() == 1
        });
        assert_eq!(server.terminate(), 0, "{driver}");
    }
}

fn cpus_allowed(status: &str) -> &str {
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("the kernel lists them").trim()
}

#[test]
fn abstract_names_and_version_6_addresses_are_listened_on() {
    use std::os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    };
    let name = format!("weir-it-{}-echo", std::process::id());
    let server = Server::start_on(&format!("@{name}"), &["--driver", "epoll"]).expect("it starts");
    assert_eq!(server.address, format!("@{name}"));
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let stream = UnixStream::connect_addr(&address).expect("it accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let twin = stream.try_clone().expect("a second handle");
    echo_exactly(stream, twin, bytes(1 << 20, 3), |end| {
        end.shutdown(std::net::Shutdown::Write).expect("open");
    });
    let taken = weir(&["serve", "echo", "--listen", &server.address]);
    super::harness::expect_refusal(&taken, 1, &[&server.address, "choose another"]);
    assert_eq!(server.terminate(), 0);

    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("skipped: this machine has no IPv6 loopback");
        return;
    }
    let server = Server::start_on("[::1]:0", &["--driver", "epoll"]).expect("it starts");
    assert!(server.address.starts_with("[::1]:") && !server.address.ends_with(":0"), "{}", server.address);
    echo_tcp(server.connect(), bytes(1 << 20, 4));
    assert_eq!(server.terminate(), 0);
}

#[test]
fn the_automatic_choice_is_told_with_its_reason() {
    let mut server = Server::start(&[]);
    server.process.signal(rustix::process::Signal::TERM);
    assert_eq!(server.process.wait(PATIENCE), 0);
    let told = server.process.rest_of_errors();
    assert!(told.starts_with("driver auto: ") && told.contains('('), "{told}");
}

#[test]
fn a_server_with_closed_outputs_serves_all_the_same() {
    let folder = super::harness::socket_folder("closed-outputs");
    let path = folder.join("s");
    let mut command = std::process::Command::new("sh");
    let line =
        format!("exec \"{WEIR}\" serve echo --driver epoll --listen 'unix:{}' >&- 2>&-", path.display());
    let mut server = super::harness::Running::start(command.args(["-c", &line]));
    until("the server", || std::os::unix::net::UnixStream::connect(&path).is_ok());
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait(PATIENCE), 0);
    assert!(!path.exists());
}
