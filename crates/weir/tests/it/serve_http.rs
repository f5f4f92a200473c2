//! `weir serve http` with real clients, on every driver; its flags, its files and its report at the end.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use rustix::process::Signal;
use weir_proto::content::Content;

use super::{
    harness::{PATIENCE, Running, WEIR, expect_refusal, folder, shown, weir},
    serve::DRIVERS,
};

/// A server that accepts connections.
struct HttpServer {
    process: Running,
    address: String,
}

impl HttpServer {
    /// Starts one on a driver. `None`, and a line that says so, when the kernel refuses it; a failure when
    /// `WEIR_REQUIRE_DRIVERS` names it.
    fn start(driver: &str, words: &[&str]) -> Option<Self> {
        let words = [&["serve", "http", "--listen", "127.0.0.1:0", "--driver", driver], words].concat();
        Self::started(driver, Running::weir(&words))
    }

    fn started(driver: &str, process: Running) -> Option<Self> {
        match process.next_line().as_deref().and_then(|line| line.strip_prefix("listening on ")) {
            Some(address) => Some(Self { address: address.to_owned(), process }),
            None => {
                let errors = process.rest_of_errors();
                assert!(errors.contains("cannot run here"), "{driver} does not start: {errors}");
                let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
                assert!(!required.split(',').any(|name| name == driver), "{driver} is required: {errors}");
                println!("skipped: {errors}");
                None
            }
        }
    }

    /// Sends bytes and reads to the end of the connection, which the server has to close.
    fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(bytes).expect("it reads");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("it ends in order");
        String::from_utf8_lossy(&received).into_owned()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Asks it to end, and returns its standard error.
    fn terminate(mut self) -> String {
        self.process.signal(Signal::TERM);
        assert_eq!(self.process.wait(PATIENCE), 0);
        self.process.rest_of_errors()
    }
}

/// Whether a program exists; prints a line if not.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

#[track_caller]
fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("it is there");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn curl_gets_pages_images_and_heads() {
    if !is_there("curl") {
        return;
    }
    let curl =
        |words: &[&str]| run(Command::new("curl").args(["-sS", "--noproxy", "*", "-m", "30"]).args(words));
    for driver in DRIVERS {
        let Some(server) = HttpServer::start(driver, &["--body", "image"]) else { continue };
        let image = Content::Image.bytes();
        assert!(curl(&[&server.url("/a.jpg")]) == image, "{driver}");
        // Two requests over one connection, which curl counts.
        let (url, again) = (server.url("/"), server.url("/again"));
        let told = curl(&[
            "-o",
            "/dev/null",
            "-o",
            "/dev/null",
            "-w",
            "%{num_connects} %{size_download}\n",
            &url,
            &again,
        ]);
        let expected = format!("1 {0}\n0 {0}\n", image.len());
        assert_eq!(String::from_utf8_lossy(&told), expected, "{driver}");
        let head = String::from_utf8(curl(&["-I", &url])).expect("ASCII");
        for line in ["HTTP/1.1 200 OK", "Content-Type: image/jpeg", "Content-Length: 151552"] {
            assert!(head.contains(&format!("{line}\r\n")), "{driver}: {head}");
        }
        assert!(curl(&["-0", &url]) == image, "{driver}: HTTP/1.0");
        assert_eq!(server.terminate(), "", "{driver}");
    }
}

#[test]
fn curl_gets_back_what_it_sends() {
    if !is_there("curl") {
        return;
    }
    let folder = folder("http-echo");
    let (sent, received) = (folder.join("sent"), folder.join("received"));
    // Large enough that curl waits for 100 Continue.
    let content = super::harness::bytes(2 << 20, 5);
    fs::write(&sent, &content).expect("a file can be written");
    for driver in DRIVERS {
        let Some(server) = HttpServer::start(driver, &["--body", "echo"]) else { continue };
        for framing in ["X-Framing: length", "Transfer-Encoding: chunked"] {
            let data = format!("@{}", shown(&sent));
            let words = ["-sS", "--noproxy", "*", "-m", "30", "-H", framing, "-o", shown(&received)];
            run(Command::new("curl").args(words).args(["--data-binary", &data, &server.url("/")]));
            assert!(fs::read(&received).expect("it was written") == content, "{driver} {framing}");
        }
        assert_eq!(server.terminate(), "", "{driver}");
    }
}

const PYTHON: &str = r#"
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=30)
def ask(method, body=None, headers={}):
    connection.request(method, "/python", body=body, headers=headers)
    reply = connection.getresponse()
    print(method, reply.status, len(reply.read()), reply.getheader("Content-Length"), reply.will_close)
ask("GET")
ask("HEAD")
ask("POST", b"x" * 1000)
ask("PUT", iter([b"abc", b"defgh"]))
ask("GET", headers={"Connection": "close"})
ask("DELETE")
"#;

#[test]
fn python_gets_what_it_asks_for() {
    if !is_there("python3") {
        return;
    }
    for driver in DRIVERS {
        let Some(server) = HttpServer::start(driver, &["--body", "1000"]) else { continue };
        let told = run(Command::new("python3").args(["-c", PYTHON, &server.address]));
        let expected = "GET 200 1000 1000 False\nHEAD 200 0 1000 False\nPOST 200 1000 1000 False\n\
                        PUT 200 1000 1000 False\nGET 200 1000 1000 True\nDELETE 405 ";
        let told = String::from_utf8(told).expect("text");
        assert!(told.starts_with(expected) && told.ends_with(" False\n"), "{driver}: {told}");
        assert_eq!(server.terminate(), "refused 1: a method that is not allowed (status 405)", "{driver}");
    }
}

const GO: &str = r#"
package main

import ("fmt"; "io"; "net/http"; "os"; "strings")

func ask(method, body string) {
	request, err := http.NewRequest(method, "http://" + os.Args[1] + "/go", io.NopCloser(strings.NewReader(body)))
	if err != nil { panic(err) }
	if body == "" { request.Body = nil }
	reply, err := http.DefaultClient.Do(request)
	if err != nil { panic(err) }
	content, err := io.ReadAll(reply.Body)
	if err != nil { panic(err) }
	reply.Body.Close()
	fmt.Println(method, reply.StatusCode, reply.ContentLength, len(content), reply.Close)
}

func main() {
	ask("GET", "")
	ask("HEAD", "")
	// A length that is not known: in chunks.
	ask("POST", strings.Repeat("x", 100000))
	ask("GET", "")
}
"#;

#[test]
fn go_gets_what_it_asks_for() {
    if !Command::new("go").arg("version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: go is not installed");
        return;
    }
    let folder = folder("http-go");
    let (source, client) = (folder.join("main.go"), folder.join("client"));
    fs::write(&source, GO).expect("a file can be written");
    run(Command::new("go").args(["build", "-o", shown(&client), shown(&source)]).env("GO111MODULE", "off"));
    for driver in DRIVERS {
        let Some(server) = HttpServer::start(driver, &["--body", "1000"]) else { continue };
        let told = run(Command::new(&client).arg(&server.address));
        let expected = "GET 200 1000 1000 false\nHEAD 200 1000 0 false\nPOST 200 1000 1000 false\n\
                        GET 200 1000 1000 false\n";
        assert_eq!(String::from_utf8(told).expect("text"), expected, "{driver}");
        assert_eq!(server.terminate(), "", "{driver}");
    }
}

#[test]
fn limits_logs_and_experiments_do_what_their_flags_say() {
    let folder = folder("http-flags");
    let (access, connections) = (folder.join("access.log"), folder.join("connections.log"));
    for driver in DRIVERS {
        let words = [
            "--body=64",
            "--requests-max=2",
            "--head-bytes-max=1000",
            "--content-bytes-max=10",
            "--access-log",
            shown(&access),
            "--log-connections",
            shown(&connections),
        ];
        let Some(server) = HttpServer::start(driver, &words) else { continue };
        let get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let replies = server.exchange(&get.repeat(3));
        assert_eq!(replies.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{driver}: {replies}");
        assert_eq!(replies.matches("Connection: close\r\n").count(), 1, "{driver}: {replies}");
        let long = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "b".repeat(1000));
        assert!(server.exchange(long.as_bytes()).starts_with("HTTP/1.1 431 "), "{driver}");
        let large = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n";
        assert!(server.exchange(large).starts_with("HTTP/1.1 413 "), "{driver}");
        let told = server.terminate();
        assert_eq!(told.lines().count(), 2, "{driver}: {told}");
        assert!(told.contains("refused 1: the content is too large (status 413)"), "{driver}: {told}");
        let lines = fs::read_to_string(&access).expect("a log");
        assert_eq!(
            lines.lines().filter(|line| line.ends_with("\"GET / HTTP/1.1\" 200 64 \"-\" \"-\"")).count(),
            2
        );
        assert_eq!(lines.lines().count(), 4, "{driver}: {lines}");
        assert_eq!(fs::read_to_string(&connections).expect("a log").lines().count(), 3, "{driver}");
        fs::remove_file(&access).expect("it was written");
        fs::remove_file(&connections).expect("it was written");
    }
}

#[test]
fn curl_gets_files_and_parts_of_files_in_both_ways() {
    if !is_there("curl") {
        return;
    }
    let folder = folder("http-files");
    let content = super::harness::bytes(300 << 10, 9);
    fs::write(folder.join("large.bin"), &content).expect("a file can be written");
    fs::write(folder.join("index.html"), "<p>here</p>").expect("a file can be written");
    for (driver, io) in DRIVERS.into_iter().flat_map(|driver| [(driver, "read"), (driver, "sendfile")]) {
        let words = ["--root", shown(&folder), "--file-io", io];
        let Some(server) = HttpServer::start(driver, &words) else { continue };
        let curl = |words: &[&str], path: &str| {
            let quiet = ["-sS", "--noproxy", "*", "-m", "30", "--path-as-is"];
            run(Command::new("curl").args(quiet).args(words).arg(server.url(path)))
        };
        assert!(curl(&[], "/large.bin") == content, "{driver} {io}");
        assert!(curl(&["-r", "1000-299999"], "/large.bin") == content[1000..300_000], "{driver} {io}");
        assert_eq!(curl(&[], "/"), b"<p>here</p>", "{driver} {io}");
        let status = ["-o", "/dev/null", "-w", "%{http_code}"];
        assert_eq!(curl(&status, "/../../etc/passwd"), b"400", "{driver} {io}");
        assert_eq!(curl(&status, "/nothing"), b"404", "{driver} {io}");
        let told = server.terminate();
        assert!(told.contains("refused 1: no such file (status 404)"), "{driver} {io}: {told}");
    }
}

#[test]
fn the_statistics_socket_says_what_is_kept_of_files() {
    let folder = folder("http-kept");
    fs::write(folder.join("short.txt"), "short").expect("a file can be written");
    fs::write(folder.join("long.bin"), vec![7; 40_000]).expect("a file can be written");
    for driver in DRIVERS {
        let name = format!("@weir-test-kept-{driver}-{}", std::process::id());
        let words = ["--root", shown(&folder), "--file-cache-time", "1h", "--stats-socket", &name];
        let Some(server) = HttpServer::start(driver, &words) else { continue };
        let pipelined = "GET /short.txt HTTP/1.1\r\nHost: x\r\n\r\nGET /long.bin HTTP/1.1\r\nHost: x\r\n\r\n";
        let last = "HEAD /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        server.exchange([pipelined, pipelined, last].concat().as_bytes());
        let files = || super::harness::stats(&name).files.expect("it serves files");
        super::harness::until("the end of the connection", || files().hits + files().misses == 5);
        let told = files();
        assert_eq!((told.hits, told.misses, told.revalidations, told.evictions), (2, 3, 0, 0), "{driver}");
        // On blocking calls a connection's file cache goes with its thread.
        if driver != "blocking" {
            assert_eq!((told.kept, told.open), (2, 1), "{driver}");
        }
        server.terminate();
    }
}

#[test]
fn the_access_log_can_be_standard_output() {
    let Some(server) = HttpServer::start("epoll", &["--access-log", "-", "--say-close"]) else { return };
    let reply = server.exchange(b"HEAD /x HTTP/1.0\r\n\r\n");
    assert!(reply.contains("\r\nConnection: close\r\n"), "{reply}");
    let line = server.process.next_line().expect("a line");
    assert!(
        line.starts_with("127.0.0.1 - - [") && line.ends_with("] \"HEAD /x HTTP/1.0\" 200 0 \"-\" \"-\""),
        "{line}"
    );
    assert_eq!(server.terminate(), "");
}

#[test]
fn a_full_disk_under_the_access_log_is_told_while_the_server_goes_on() {
    let words = ["--access-log", "/dev/full", "--log-format", "common"];
    let Some(server) = HttpServer::start("epoll", &words) else { return };
    for _ in 0..2 {
        assert!(server.exchange(b"HEAD / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    }
    let told = server.process.next_error_line().expect("a line, while it runs");
    assert!(told.starts_with("log lines lost so far: ") && told.ends_with(" 0 came too fast)"), "{told}");
    assert!(server.exchange(b"HEAD / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(server.terminate().contains("log lines lost: they could not be written: 3"));
}

#[test]
fn headers_dotfiles_and_limits_of_connections_do_what_their_flags_say() {
    let folder = folder("http-more-flags");
    fs::write(folder.join(".hidden"), "seen").expect("a file can be written");
    for driver in DRIVERS {
        let words = [
            "--root",
            shown(&folder),
            "--dotfiles",
            "--header",
            "Cache-Control: no-store",
            "--header=X-A: b",
            "--connections-max=2",
            "--connections-max-per-client=1",
        ];
        let Some(server) = HttpServer::start(driver, &words) else { continue };
        let mut held = TcpStream::connect(&server.address).expect("it accepts");
        held.set_read_timeout(Some(PATIENCE)).expect("a socket");
        held.write_all(b"GET /.hidden HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
        let mut reply = vec![0; 1024];
        let length = held.read(&mut reply).expect("a reply");
        let reply = String::from_utf8_lossy(&reply[..length]).into_owned();
        assert!(reply.contains("\r\nCache-Control: no-store\r\nX-A: b\r\n"), "{driver}: {reply}");
        let refused = server.exchange(b"");
        assert!(refused.starts_with("HTTP/1.1 503 "), "{driver}: {refused}");
        drop(held);
        let expected = "refused 1: too many connections of one client (status 503)";
        assert_eq!(server.terminate(), expected, "{driver}");
    }
}

#[test]
fn a_wrong_value_is_told_with_its_flag() {
    let cases: [(&[&str], &[&str]); 11] = [
        (&["--header", "Cache-Control"], &["--header", "has no colon", "'Name: value'"]),
        (&["--header", "Content-Length: 5"], &["--header", "Content-Length", "framed"]),
        (&["--header", "A: b\r\nC: d"], &["--header", "bytes that a header cannot have"]),
        (&["--root", "/dev/null"], &["--root", "/dev/null", "choose a folder"]),
        (&["--root", "/", "--file-cache-time", "0s"], &["--file-cache-time", "--file-cache 0"]),
        (&["--body", "purple"], &["--body", "purple", "html, image, echo"]),
        (&["--body", "99999999999"], &["--body", "number of bytes up to"]),
        (&["--idle-timeout", "soon"], &["--idle-timeout", "soon", "500ms"]),
        (&["--header-timeout", "0s"], &["--header-timeout", "more than 0"]),
        (&["--driver", "purple"], &["--driver", "purple", "uring"]),
        (&["--handler-time=-1ms"], &["--handler-time", "-1ms"]),
    ];
    for (words, expected) in cases {
        let words = [&["serve", "http", "--listen", "127.0.0.1:0"], words].concat();
        expect_refusal(&weir(&words), 2, expected);
    }
    for (words, expected) in [
        (["--log-format", "common"], "--access-log"),
        (["--connections-max", "0"], "1.."),
        (["--file-cache", "10"], "--root"),
    ] {
        let said = weir(&[&["serve", "http", "--listen", "127.0.0.1:0"][..], &words].concat());
        assert_eq!(said.code, Some(2), "{words:?}");
        assert!(said.stderr.contains(expected), "{words:?}: {}", said.stderr);
    }
    let unwritable = ["serve", "http", "--listen", "127.0.0.1:0", "--access-log", "/dev/null/log"];
    expect_refusal(&weir(&unwritable), 1, &["--access-log", "/dev/null/log", "choose another"]);
}

#[test]
fn a_client_that_keeps_an_idle_connection_open_does_not_hold_up_the_end() {
    for driver in DRIVERS {
        // A server that waits for this client waits longer than the test.
        let Some(mut server) = HttpServer::start(driver, &["--drain-limit", "3600"]) else { continue };
        let mut client = TcpStream::connect(&server.address).expect("it accepts");
        client.set_read_timeout(Some(PATIENCE)).expect("a socket");
        client.write_all(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n").expect("it reads");
        assert_ne!(client.read(&mut [0; 1024]).expect("a reply"), 0, "{driver}");
        server.process.signal(Signal::TERM);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).expect("an end in order");
        assert_eq!(server.process.wait(PATIENCE), 0, "{driver}");
        assert_eq!(server.process.rest_of_errors(), "", "{driver}");
    }
}

#[test]
fn an_access_log_that_was_moved_away_is_opened_anew_and_nothing_is_lost() {
    let folder = folder("http-rotation");
    let (log, moved) = (folder.join("access.log"), folder.join("access.log.1"));
    for (driver, signal) in DRIVERS.into_iter().zip([Signal::HUP, Signal::USR1].into_iter().cycle()) {
        let words = ["--access-log", shown(&log), "--log-format", "common"];
        let Some(server) = HttpServer::start(driver, &words) else { continue };
        let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        server.exchange(b"HEAD /before HTTP/1.0\r\n\r\n");
        super::harness::until("the first line", || lines(&log).contains("/before"));
        fs::rename(&log, &moved).expect("it is there");
        server.process.signal(signal);
        let told = server.process.error_line_with("opened anew");
        assert!(told.contains(shown(&log)), "{driver}: {told}");
        server.exchange(b"HEAD /after HTTP/1.0\r\n\r\n");
        // Without its folder it cannot be reopened, and continues in the old file.
        let aside = folder.with_extension("aside");
        fs::rename(&*folder, &aside).expect("it is there");
        server.process.signal(signal);
        server.process.error_line_with("go where they went");
        fs::rename(&aside, &*folder).expect("it is there");
        server.exchange(b"HEAD /last HTTP/1.0\r\n\r\n");
        server.terminate();
        assert_eq!((lines(&moved).lines().count(), lines(&log).lines().count()), (1, 2), "{driver}");
        assert!(lines(&log).contains("/after") && lines(&log).contains("/last"), "{driver}");
        fs::remove_file(&log).expect("it was written");
    }
}

#[test]
fn a_log_that_is_a_pipe_without_a_reader_is_refused_at_once() {
    let folder = folder("http-pipe");
    let pipe = folder.join("pipe");
    run(Command::new("mkfifo").arg(&pipe));
    for flag in ["--access-log", "--log-connections"] {
        let said = weir(&["serve", "http", "--listen", "127.0.0.1:0", flag, shown(&pipe)]);
        expect_refusal(&said, 1, &[flag, "start its reader first"]);
    }
}

#[test]
fn a_server_without_descriptors_says_that_it_does_not_accept() {
    for driver in DRIVERS {
        let mut command = Command::new("sh");
        let line = "ulimit -n 64; exec \"$0\" \"$@\"";
        command.args(["-c", line, WEIR, "serve", "http", "--listen", "127.0.0.1:0", "--driver", driver]);
        let Some(server) = HttpServer::started(driver, Running::start(&mut command)) else { continue };
        let connect = |_| TcpStream::connect(&server.address).expect("the kernel holds it ready");
        let clients: Vec<TcpStream> = (0..64).map(connect).collect();
        let told = server.process.error_line_with("accepting pauses");
        assert!(told.contains("ulimit -n"), "{driver}: {told}");
        drop(clients);
        let told = server.terminate();
        assert!(told.contains("accepting paused "), "{driver}: {told}");
        assert!(!told.contains("accepting pauses"), "{driver}: it is printed once: {told}");
    }
}

#[test]
fn as_many_clients_as_there_are_descriptors_get_their_files() {
    const DESCRIPTORS: usize = 64;
    let folder = folder("few-descriptors");
    fs::write(folder.join("page.html"), vec![b'x'; 100_000]).expect("a file");
    for driver in DRIVERS {
        let line = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
        let words = ["--root", shown(&folder), "--driver", driver];
        let mut command = Command::new("sh");
        command.args(["-c", &line, WEIR, "serve", "http", "--listen", "127.0.0.1:0"]);
        let Some(mut server) = HttpServer::started(driver, Running::start(command.args(words))) else {
            continue;
        };
        let connect = |_| TcpStream::connect(&server.address).expect("the kernel holds it ready");
        let clients: Vec<TcpStream> = (0..DESCRIPTORS).map(connect).collect();
        for mut client in &clients {
            client.set_read_timeout(Some(PATIENCE)).expect("a socket");
            client
                .write_all(b"GET /page.html HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                .expect("it fits");
        }
        for mut client in clients {
            let mut reply = Vec::new();
            client.read_to_end(&mut reply).expect("a reply");
            assert!(
                reply.starts_with(b"HTTP/1.1 200 "),
                "{driver}: {}",
                String::from_utf8_lossy(&reply[..reply.len().min(80)])
            );
        }
        server.process.signal(Signal::TERM);
        assert_eq!(server.process.wait(PATIENCE), 0, "{driver}");
    }
}
