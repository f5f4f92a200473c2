//! How a server ends: drained, cut at the deadline, or at once.

use std::{
    fs,
    io::{ErrorKind, Write},
    net::TcpStream,
    time::Duration,
};

use rustix::process::Signal;

use super::{
    harness::{PATIENCE, Running, Server, bytes, stats, until, weir},
    serve::DRIVERS,
};

/// A client that sends until nothing moves any more and reads nothing, so its server cannot finish: it could read more,
/// or send what it has read, only if it ran.
fn stuck_client(server: &Server) -> TcpStream {
    let mut stream = server.connect();
    stream.set_write_timeout(Some(Duration::from_millis(300))).expect("a socket");
    let block = bytes(1 << 20, 5);
    until("a server that waits", || match stream.write(&block) {
        Ok(_) => false,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => sleeps(server),
        Err(error) => panic!("the server broke off: {error}"),
    });
    stream
}

/// Whether no thread of a server runs or waits for a CPU or a disk.
fn sleeps(server: &Server) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.process.pid().as_raw_nonzero()));
    // A thread that has just ended has no state.
    let mut states = tasks.expect("it runs").flatten().filter_map(|task| {
        let line = fs::read_to_string(task.path().join("stat")).ok()?;
        line.rsplit_once(") ")?.1.chars().next()
    });
    states.all(|state| !['R', 'D'].contains(&state))
}

fn no_longer_accepts(server: &Server) -> bool {
    TcpStream::connect(&server.address).is_err()
}

#[test]
fn under_load_every_driver_drains_long_before_its_deadline() {
    for driver in DRIVERS {
        let name = format!("@weir-it-{}-drain-{driver}", std::process::id());
        let words = ["--stats-socket", &name, "--drain-limit", "3600"];
        let Some(mut server) = Server::on_driver(driver, &words) else { continue };
        let mut load = Running::weir(&[
            "load",
            "echo",
            "--json",
            "-c",
            "20",
            "--depth",
            "4",
            "-d",
            "1h",
            "--target",
            &server.address,
        ]);
        until("load", || stats(&name).total.bytes_sent > 100_000);
        server.process.signal(Signal::TERM);
        assert_eq!(server.process.wait(PATIENCE), 0, "{driver}");
        let told = server.process.rest_of_errors();
        assert!(!told.contains("cut"), "{driver}: {told}");
        load.signal(Signal::INT);
        assert_eq!(load.wait(PATIENCE), 130, "{driver}");
    }
}

#[test]
fn a_connection_that_cannot_end_is_cut_at_the_deadline() {
    for driver in DRIVERS {
        let Some(mut server) = Server::on_driver(driver, &["--drain-limit", "0.3"]) else { continue };
        let client = stuck_client(&server);
        server.process.signal(Signal::TERM);
        assert_eq!(server.process.wait(PATIENCE), 0, "{driver}");
        let told = server.process.rest_of_errors();
        assert!(told.contains("1 connection was cut"), "{driver}: {told}");
        drop(client);
    }
}

#[test]
fn a_second_signal_ends_a_drain_at_once() {
    for driver in DRIVERS {
        let Some(mut server) = Server::on_driver(driver, &["--drain-limit", "3600"]) else { continue };
        let client = stuck_client(&server);
        server.process.signal(Signal::TERM);
        until("the drain", || no_longer_accepts(&server));
        server.process.signal(Signal::TERM);
        assert_eq!(server.process.wait(PATIENCE), 130, "{driver}");
        drop(client);
    }
}

/// Starts a server; returns the address it listens on.
fn serve(words: &[&str]) -> (Running, String) {
    let server = Running::weir(&[&["serve"], words, &["--listen", "127.0.0.1:0"]].concat());
    match server.next_line().as_deref().and_then(|line| line.strip_prefix("listening on ")) {
        Some(address) => (server, address.to_owned()),
        None => panic!("it does not start: {}", server.rest_of_errors()),
    }
}

#[test]
fn a_closed_terminal_ends_no_server_and_sigquit_drains_every_one() {
    let (exchange, upstream) = serve(&["exchange", "--demo", "1"]);
    let gateway = ["gateway", "--demo", "1", "--workers", "1", "--upstream", &upstream];
    let others: [&[&str]; 3] = [&gateway, &["echo"], &["http"]];
    let servers = others.map(|words| serve(words).0).into_iter().chain([exchange]);
    for mut server in servers {
        server.signal(Signal::HUP);
        server.error_line_with("SIGHUP is ignored");
        server.signal(Signal::USR1);
        server.signal(Signal::USR2);
        server.signal(Signal::QUIT);
        assert_eq!(server.wait(PATIENCE), 0);
    }
}

#[test]
fn a_generator_is_interrupted_with_its_code_and_its_report() {
    let server = Server::start(&["--driver", "epoll"]);
    let name = ["load", "echo", "-c", "2", "-d", "1h", "--warmup-max", "0s", "--target", &server.address];
    let mut load = Running::weir(&name);
    while !load.next_error_line().expect("it shows progress").starts_with("measuring") {}
    load.signal(Signal::INT);
    assert_eq!(load.wait(PATIENCE), 130);
    assert_eq!(server.terminate(), 0);
    let early = weir(&["load", "echo", "-c", "2", "--target", "127.0.0.1:1"]);
    assert_eq!(early.code, Some(1));
}
