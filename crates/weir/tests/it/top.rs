//! `weir top` beside real servers: found by socket, by number and by search; gone, mute, and stopped.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    process::{Command, Stdio},
    thread,
};

use rustix::{
    process::{Pid, Signal, Uid, kill_process},
    thread::set_thread_uid,
};

use super::harness::{
    PATIENCE, Running, Said, Server, WEIR, bytes, echo_tcp, every_server, expect_refusal, until, weir,
};

fn stats_name(test: &str) -> String {
    format!("@weir-it-top-{}-{test}", std::process::id())
}

/// The words of the message table's row of a process. Servers of other tests may have the same name. Then the name is
/// followed by the number of the process.
fn row(text: &str, node: &str, pid: &str) -> Vec<String> {
    let full = format!("{node} {pid}");
    let is_named = |name: &str| [node, &full].contains(&name.trim());
    let line = text.lines().rev().find(|line| line.split('|').nth(1).is_some_and(is_named));
    let line = line.unwrap_or_else(|| panic!("no row of {node}: {text}"));
    line.split('|').map(|word| word.trim().to_owned()).collect()
}

/// The output with figures of a process. While a busy machine stops its server for longer than `weir top` waits for an
/// answer, there are none.
fn with_figures(words: &[&str], pid: &str) -> Said {
    let mut said = weir(words);
    until("figures", || {
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let row = row(&said.stdout, "ECHO", pid);
        let has_figures = row.len() == 7 && row[2..=3].iter().all(|figure| figure.parse::<u64>().is_ok());
        if !has_figures {
            said = weir(words);
        }
        has_figures
    });
    said
}

#[test]
fn one_server_is_found_by_its_socket_by_its_number_and_by_nothing() {
    let _every_server = every_server();
    let name = stats_name("found");
    let server = Server::start(&["--driver", "epoll", "--stats-socket", &name]);
    echo_tcp(server.connect(), bytes(1_000, 1));
    let pid = server.process.pid().as_raw_nonzero().to_string();
    let quick = ["top", "--once", "--interval", "150ms"];
    for words in [&["--socket", &name][..], &["--pid", &pid], &[]] {
        let all = [&quick, words].concat();
        let said = if words.is_empty() { weir(&all) } else { with_figures(&all, &pid) };
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let row = row(&said.stdout, "ECHO", &pid);
        let port = server.address.rsplit(':').next().expect("a port");
        assert!(said.stdout.contains(&format!("ECHO: process {pid}, port {port}\n")), "{}", said.stdout);
        assert_eq!((row.len(), row[6].as_str()), (7, "-"), "an echo server has no backlog");
        assert!(said.stdout.contains("cswch/s nvcswch/s"), "{}", said.stdout);
        assert!(said.stdout.contains(&format!("{pid:>10}         -")), "its process row: {}", said.stdout);
    }
    assert_eq!(server.terminate(), 0);
}

#[test]
fn a_server_that_was_told_nothing_is_watched_with_its_rates() {
    let server = Server::start(&["--driver", "epoll"]);
    echo_tcp(server.connect(), bytes(1_000, 1));
    let pid = server.process.pid().as_raw_nonzero().to_string();
    let said = with_figures(&["top", "--once", "--interval", "150ms", "--pid", &pid], &pid);
    let row = row(&said.stdout, "ECHO", &pid);
    assert!(row[2].parse::<u64>().is_ok_and(|received| received > 0), "{row:?}");
    assert_eq!(row[3], "0", "its rate: {row:?}");
    assert_eq!(server.terminate(), 0);
}

/// Whether a server answers a request of the given user to its statistics socket. An error: this process cannot become
/// that user.
fn is_answered(user: u32, name: &str) -> io::Result<bool> {
    let bare = name.strip_prefix('@').expect("an abstract name").to_owned();
    let asking = thread::spawn(move || -> io::Result<bool> {
        // For this thread alone, which ends with it.
        set_thread_uid(Uid::from_raw(user))?;
        let address = SocketAddr::from_abstract_name(bare)?;
        let mut stream = UnixStream::connect_addr(&address).expect("everybody may connect");
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        // A refused peer may see that on its write, as an error.
        let heard = stream.write_all(b"\n").and_then(|()| BufReader::new(stream).read_line(&mut line));
        let is_silent = heard.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        assert!(!is_silent, "it is neither answered nor refused");
        Ok(heard.is_ok_and(|bytes| bytes > 0))
    });
    asking.join().expect("it is answered or refused")
}

#[test]
fn a_statistics_socket_answers_its_own_user_and_nobody_else() {
    let name = stats_name("users");
    let server = Server::start(&["--driver", "epoll", "--stats-socket", &name]);
    for user in [1, 65_534] {
        match is_answered(user, &name) {
            Ok(is_answered) => assert!(!is_answered, "user {user} is told"),
            Err(error) => println!("skipped: being user {user} needs root: {error}"),
        }
    }
    let own = rustix::process::geteuid().as_raw();
    assert!(is_answered(own, &name).expect("everybody can be who they are"), "user {own} is not told");
    assert_eq!(server.terminate(), 0);
}

#[test]
fn a_name_that_was_not_chosen_and_is_taken_leaves_a_server_without_a_socket() {
    // The shell keeps its process number when it becomes the server, so the name can be taken before.
    let listener = |pid: &str| {
        let name = SocketAddr::from_abstract_name(format!("weir-{pid}")).expect("a name");
        UnixListener::bind_addr(&name).expect("nobody has it")
    };
    let line = "echo $$ && read go && exec \"$WEIR\" serve echo --driver epoll --listen 127.0.0.1:0";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", line]).env("WEIR", WEIR).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.stderr(Stdio::piped()).spawn().expect("a shell");
    let mut output = BufReader::new(shell.stdout.take().expect("a pipe"));
    let mut said = String::new();
    output.read_line(&mut said).expect("its number");
    let taken = listener(said.trim());
    shell.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    said.clear();
    output.read_line(&mut said).expect("it listens");
    assert!(said.starts_with("listening on "), "{said}");
    kill_process(Pid::from_child(&shell), Signal::TERM).expect("it runs");
    let ended = shell.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && told.contains("--stats-socket @NAME"), "{told}");
    drop(taken);
}

#[test]
fn json_is_one_object_each_interval_and_rates_are_of_it() {
    let name = stats_name("json");
    let server = Server::start(&["--driver", "epoll", "--stats-socket", &name]);
    let mut top = Running::weir(&["top", "--json", "--interval", "100ms", "--socket", &name]);
    let object = |line: Option<String>| -> serde_json::Value {
        serde_json::from_str(&line.expect("a line each interval")).expect("it is JSON")
    };
    let first = object(top.next_line());
    assert_eq!(
        (&first["interval_s"], &first["nodes"][0]["received"]["missing"]),
        (&"null".parse().expect("null"), &"first".into())
    );
    until("a rate above zero", || {
        // Again for each object: a reading that had no answer begins anew.
        echo_tcp(server.connect(), bytes(10_000, 1));
        let next = object(top.next_line());
        // After a late reading the next one comes at its own time, and the interval is short.
        assert!(next["interval_s"].as_f64().is_some_and(|length| length > 0.0), "{next}");
        next["nodes"][0]["received"]["per_second"].as_f64().is_some_and(|rate| rate > 0.0)
    });
    assert_eq!(server.terminate(), 0);
    until("the end of the server", || object(top.next_line())["nodes"][0]["received"]["missing"] == "gone");
    top.signal(Signal::INT);
    assert_eq!(top.wait(PATIENCE), 0);
}

#[test]
fn a_server_without_a_socket_shows_its_threads_and_ctrl_c_says_stopped() {
    let server = Server::start(&["--driver", "epoll", "--stats-socket", "off"]);
    let pid = server.process.pid().as_raw_nonzero().to_string();
    let mut top = Running::weir(&["top", "--pid", &pid, "--interval", "100ms"]);
    let text: Vec<String> =
        std::iter::from_fn(|| top.next_line()).take_while(|line| !line.contains("|__")).collect();
    let advice = "no socket: start it without --stats-socket off";
    assert!(text.iter().any(|line| line.contains(advice)), "{text:?}");
    top.signal(Signal::INT);
    assert_eq!(top.wait(PATIENCE), 0);
    let rest: Vec<String> = std::iter::from_fn(|| top.next_line()).collect();
    assert_eq!(rest.last().map(String::as_str), Some("Stopped."));
    assert_eq!(server.terminate(), 0);
}

#[test]
fn what_cannot_be_watched_is_told() {
    for (words, told) in [
        (&["top", "--socket", "plain"][..], &["--socket plain", "@NAME"][..]),
        (&["top", "--pid", "4294967295"], &["--pid", "no process 4294967295"]),
        (&["top", "--interval", "1ms"], &["--interval", "100ms"]),
        (&["top", "--interval", "soon"], &["--interval", "soon"]),
    ] {
        expect_refusal(&weir(words), 2, told);
    }
    let gap = weir(&["top", "--once", "--interval", "100ms", "--socket", &stats_name("nobody")]);
    assert_eq!(gap.code, Some(0), "{}", gap.stderr);
    assert!(gap.stdout.contains("| gap "), "{}", gap.stdout);
}
