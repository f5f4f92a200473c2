//! `/metrics` and `/healthz` of every server, as an operator's collector requests them.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
};

use super::harness::{PATIENCE, Running, expect_refusal, weir};

fn get(address: SocketAddr, target: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n").expect("it takes a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in time");
    answer
}

/// A server, and the address of its metrics.
fn start(words: &[&str]) -> (Running, SocketAddr) {
    let all = [&["serve"], words, &["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]].concat();
    let server = Running::weir(&all);
    let mut address = None;
    while address.is_none() {
        let line = server.next_error_line().expect("it says where its metrics are");
        let told = line.strip_prefix("metrics on http://").and_then(|rest| rest.strip_suffix("/metrics"));
        address = told.map(|address| address.parse().expect("an address"));
    }
    (server, address.expect("it was told"))
}

#[test]
fn every_server_tells_its_counters_and_that_it_is_well() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let servers: [(&[&str], &str); 4] = [
        (&["echo"], "weir_connections_open{worker=\"0\","),
        (&["http"], "weir_received_bytes_total{worker=\"0\","),
        (&["http", "--root", folder], "weir_files_kept 0"),
        (
            &["exchange", "--demo", "2"],
            "weir_messages_received_total{component=\"exchange\",side=\"client\"} 0",
        ),
    ];
    for (words, expected) in servers {
        let (server, address) = start(words);
        let metrics = get(address, "/metrics");
        assert!(metrics.starts_with("HTTP/1.1 200 OK"), "{words:?}: {metrics}");
        for beginning in
            [expected, "weir_build_info{version=", "weir_syscalls_total{worker=\"0\",call=\"wait\"}"]
        {
            assert!(metrics.lines().any(|line| line.starts_with(beginning)), "{words:?}: {metrics}");
        }
        assert!(get(address, "/healthz").ends_with("\r\n\r\nok\n"), "{words:?}");
        drop(server);
    }
}

#[test]
fn a_port_that_others_reach_or_have_is_refused_by_its_flag() {
    let refused = weir(&["serve", "echo", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0"]);
    expect_refusal(&refused, 2, &["--metrics", "loopback"]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one").to_string();
    let refused = weir(&["serve", "http", "--listen", "127.0.0.1:0", "--metrics", &address]);
    expect_refusal(&refused, 1, &["--metrics", &address, "choose another port"]);
}
