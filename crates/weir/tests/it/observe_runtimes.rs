//! `weir observe` of servers whose runtimes have additional threads: Go and Java. Each echo is received once and sent
//! once, by whichever thread.
//!
//! What is not installed is skipped by name; `WEIR_REQUIRE_TOOLS=go,java` makes that a failure.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    process::Command,
};

use super::{
    harness::{PATIENCE, folder, shown},
    observe_tools::{Observed, calls, free_port, have, said},
};

/// Echoes that are requested, one after the other.
const MESSAGES: u64 = 2_000;

/// Upper bound of a runtime's own writes, to wake its threads and for its garbage collector.
const BESIDE_MAX: u64 = MESSAGES;

const GO: &str = r#"package main

import (
	"net"
	"os"
)

func echo(connection net.Conn) {
	defer connection.Close()
	bytes := make([]byte, 4096)
	for {
		count, err := connection.Read(bytes)
		if err != nil {
			return
		}
		if _, err := connection.Write(bytes[:count]); err != nil {
			return
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			panic(err)
		}
		go echo(connection)
	}
}
"#;

const JAVA: &str = r#"import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

public class Echo {
    public static void main(String[] words) throws Exception {
        byte[] bytes = new byte[4096];
        InetAddress here = InetAddress.getByName("127.0.0.1");
        try (var listener = new ServerSocket(Integer.parseInt(words[0]), 16, here)) {
            while (true) {
                try (Socket connection = listener.accept()) {
                    connection.setTcpNoDelay(true);
                    int count;
                    while ((count = connection.getInputStream().read(bytes)) > 0) {
                        connection.getOutputStream().write(bytes, 0, count);
                    }
                }
            }
        }
    }
}
"#;

/// Loads a server that is observed from its first call on, and compares its calls with the echoes.
fn echoes_are_counted_once(command: &[&str], port: u16) {
    let server = Observed::start(command, port);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    let mut message = [7; 100];
    for _ in 0..MESSAGES {
        stream.write_all(&message).and_then(|()| stream.read_exact(&mut message)).expect("it echoes");
    }
    let Some(trace) = server.end() else { return };
    let sum = |names: [&str; 2]| names.iter().map(|name| calls(&trace, name)).sum::<u64>();
    let (received, sent) = (sum(["read", "recvfrom"]), sum(["write", "sendto"]));
    assert!(received >= MESSAGES, "{received} of {:?}", trace.calls);
    assert!((MESSAGES..=MESSAGES + BESIDE_MAX).contains(&sent), "{sent} of {:?}", trace.calls);
    assert_eq!((trace.threads_lost, trace.misses), (0, 0));
    let woken = trace.wakes.iter().map(|wake| wake.count).sum::<u64>();
    assert!(!trace.is_split || woken > 0, "it sleeps until a message comes: {:?}", trace.wakes);
}

#[test]
fn a_server_of_go_receives_and_sends_each_echo_once() {
    if !have(&["go"]) {
        return;
    }
    let folder = folder("observe-go");
    let (source, server) = (folder.join("main.go"), folder.join("server"));
    fs::write(&source, GO).expect("a file can be written");
    said(Command::new("go").args(["build", "-o", shown(&server), shown(&source)]).env("GO111MODULE", "off"));
    let port = free_port();
    let number = port.to_string();
    echoes_are_counted_once(&[shown(&server), &number], port);
}

#[test]
fn a_server_of_java_receives_and_sends_each_echo_once() {
    if !have(&["java", "javac"]) {
        return;
    }
    let folder = folder("observe-java");
    let source = folder.join("Echo.java");
    fs::write(&source, JAVA).expect("a file can be written");
    said(Command::new("javac").args(["-d", shown(&folder), shown(&source)]));
    let port = free_port();
    let number = port.to_string();
    // Without its file of performance counters, which a signal might leave behind.
    let command = ["java", "-XX:-UsePerfData", "-cp", shown(&folder), "Echo", &number];
    echoes_are_counted_once(&command, port);
}
