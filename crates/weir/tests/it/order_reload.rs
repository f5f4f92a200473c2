//! The configuration of a gateway: checked without a start, and read again while it runs.

use std::{fs, io::Write, net::TcpStream, path::Path};

use rustix::process::Signal;

use super::harness::{PATIENCE, Running, Said, expect_refusal, shown, socket_folder, until, weir};

/// A gateway's file with this list of accounts.
fn file(upstream: &str, sockets: &str, accounts: &[&str]) -> String {
    let hash = "$argon2id$v=19$m=8,t=1,p=1$d2VpciBkZW1vbnN0cmF0aW9u$c2FsdHNhbHRzYWx0c2FsdA";
    let accounts: String = accounts
        .iter()
        .map(|name| format!("[[account]]\nname = \"{name}\"\npassword_hash = \"{hash}\"\n"))
        .collect();
    format!(
        "[listen]\norders = \"127.0.0.1:0\"\ncontrol = \"{sockets}/gateway.sock\"\n[journal]\n\
         directory = \"{sockets}/journal\"\nlevel = \"os\"\n[[venue]]\nname = \"X\"\naddress = \"{upstream}\"\n\
         username_prefix = \"G\"\npassword = \"DEMO\"\n{accounts}"
    )
}

fn has(log: &Path, words: &str) -> bool {
    fs::read_to_string(log).is_ok_and(|text| text.contains(words))
}

#[test]
fn a_configuration_is_checked_without_a_start_and_reloaded_whole_or_not_at_all() {
    let folder = socket_folder("order-reload");
    let (path, place) = (folder.join("gateway.toml"), shown(&folder).to_owned());
    let write = |text: String| fs::write(&path, text).expect("the folder can be written");
    let check = || weir(&["serve", "gateway", "--config", shown(&path), "--check"]);
    write(file("here", &place, &["A", "TOOLONG", "B", "b"]));
    let said = check();
    expect_refusal(&said, 2, &["the configuration has 3 errors"]);
    for line in
        ["gateway.toml:9: address", "gateway.toml:16: name", "gateway.toml:22: there are two accounts"]
    {
        assert!(said.stderr.contains(line), "{line}: {}", said.stderr);
    }

    let exchange = Running::weir(&["serve", "exchange", "--demo", "1", "--listen", "127.0.0.1:0"]);
    let line = exchange.next_line().expect("it starts");
    let upstream = line.strip_prefix("listening on ").expect("it says where").to_owned();
    write(file(&upstream, &place, &["A"]));
    let Said { code, stdout: out, stderr } = check();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        out.contains("accounts: 1, 0 with separate limits") && out.contains("; a start creates it"),
        "{out}"
    );
    assert!(out.ends_with("the configuration is right\n"), "{out}");

    let log = folder.join("events.log");
    let log_flags = ["--log-format", "json", "--log-file", shown(&log)];
    let gateway = ["serve", "gateway", "--config", shown(&path), "--workers", "1"];
    let mut gateway = Running::weir(&[&gateway[..], &log_flags].concat());
    let logged = |words: &str| until(words, || has(&log, words));
    assert!(gateway.next_line().is_some_and(|line| line.starts_with("listening on ")));
    assert!(check().stdout.contains("a running gateway writes it (workers 0)"));
    let socket = folder.join("gateway.sock");
    let reload = || weir(&["ctl", "--socket", shown(&socket), "reload"]);
    write(file(&upstream, &place, &["A", "B"]));
    assert_eq!(reload().stdout, "reloaded\n  accounts added: B\n");
    write(file(&upstream, &place, &["A", ""]).replace("level = \"os\"", "level = \"disk\""));
    expect_refusal(&reload(), 1, &["the gateway refuses: ", "gateway.toml:16: name"]);
    write(file(&upstream, &place, &["A"]).replace("level = \"os\"", "level = \"disk\""));
    gateway.signal(Signal::HUP);
    logged("operator a signal: reload: journal: only a start changes it");
    write(file(&upstream, &place, &["A"]));
    let moved = folder.join("events.log.moved");
    fs::rename(&log, &moved).expect("it is there");
    gateway.signal(Signal::HUP);
    until("a file under its name", || log.exists());
    let line = "\"event\":\"operator\",\"text\":\"operator a signal: reload: done: accounts removed: B\"";
    // Both are effects of the signal, in any order.
    until(line, || has(&log, line) || has(&moved, line));
    assert_eq!(weir(&["ctl", "--socket", shown(&socket), "drain"]).code, Some(0));
    assert_eq!(gateway.wait(PATIENCE), 0);
    let journal = format!("{place}/journal");
    let printed = weir(&["journal", "print", &journal, "--operators"]).stdout;
    let ends = [
        "command=reload ok=true",
        "command=reload error=",
        "command=reload error=",
        "accounts removed: B",
        "command=drain ok=true",
    ];
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), ends.len(), "{printed}");
    for (line, words) in lines.iter().zip(ends) {
        assert!(line.contains(words), "{words}: {printed}");
        assert_eq!(line.contains(" uid="), line.contains("via=socket"), "{line}");
    }
    drop(exchange);
}

#[test]
fn an_exchange_whose_log_was_moved_away_continues_it_under_its_name() {
    let folder = socket_folder("order-log");
    let log = folder.join("events.log");
    let exchange = ["serve", "exchange", "--demo", "1", "--listen", "127.0.0.1:0"];
    let mut exchange = Running::weir(&[&exchange[..], &["--log-file", shown(&log)]].concat());
    let line = exchange.next_line().expect("it starts");
    let address = line.strip_prefix("listening on ").expect("it says where");
    for (signal, name) in [(Signal::HUP, "first"), (Signal::USR1, "second")] {
        fs::rename(&log, folder.join(name)).expect("it is there");
        exchange.signal(signal);
        let line = exchange.error_line_with("opened anew");
        assert_eq!(line, format!("--log-file {} was opened anew", shown(&log)));
        let mut client = TcpStream::connect(address).expect("it listens");
        write!(client, "\0/L{:<6}{:<10}{:<10}{:>20}", "NOBODY", "", "", 1).expect("it is read");
        until("the event of a client", || has(&log, "a login of NOBODY"));
    }
    exchange.signal(Signal::TERM);
    assert_eq!(exchange.wait(PATIENCE), 0);
}
