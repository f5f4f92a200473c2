//! `weir load http` as people and scripts use it, against a small server in this file.

use std::{
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::atomic::{AtomicU64, Ordering},
};

use weir_record::load::LoadReport;

use super::harness::{expect_refusal, folder, shown, weir};

const PAGE: &str = "<!doctype html><title>t</title>\n";

static ANSWERED: AtomicU64 = AtomicU64::new(0);

/// Answers `/` with a page, `/dynamic` with a different one each time, and everything else with a redirect; closes on
/// request.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || answer(&stream));
        }
    });
    address
}

fn answer(mut stream: &std::net::TcpStream) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let fields: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let closes = fields.iter().any(|field| field == "Connection: close");
        let end = if closes { "Connection: close\r\n" } else { "" };
        let reply = if first.starts_with("GET / ") {
            format!("HTTP/1.1 200 OK\r\n{end}Content-Length: {}\r\n\r\n{PAGE}", PAGE.len())
        } else if first.starts_with("GET /dynamic ") {
            let number = ANSWERED.fetch_add(1, Ordering::SeqCst);
            format!("HTTP/1.1 200 OK\r\n{end}Content-Length: 16\r\n\r\n{number:016}")
        } else {
            format!("HTTP/1.1 302 Found\r\n{end}Location: /\r\nContent-Length: 0\r\n\r\n")
        };
        if stream.write_all(reply.as_bytes()).is_err() || closes {
            return;
        }
    }
}

fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

#[test]
fn a_counted_run_prints_one_line_of_json() {
    let url = url(serve(), "/");
    for close in [false, true] {
        let words = ["load", "http", &url, "-c", "10", "-n", "200", "--json"];
        let words = if close { [&words[..], &["--close"]].concat() } else { words.to_vec() };
        let said = weir(&words);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
        assert_eq!(said.stdout.lines().count(), 1);
        let report: LoadReport = serde_json::from_str(&said.stdout).expect("a report");
        assert_eq!((report.messages, report.failures.errors()), (200, 0));
        assert_eq!(report.message_bytes as usize, PAGE.len());
        let http = report.http.expect("it was a load of HTTP");
        assert_eq!((http.responses_compared, http.rows.samples, http.method.as_str()), (200, 200, "GET"));
        assert_eq!(http.connections_opened, if close { 200 } else { 10 });
        assert!(http.too_short.is_some(), "200 requests conclude nothing");
    }
}

#[test]
fn people_see_the_rows_they_know_and_what_to_doubt() {
    let address = serve();
    let said = weir(&["load", "http", &url(address, "/old"), "-c", "2", "-n", "10"]);
    assert_eq!(said.code, Some(1), "nothing was right: {}", said.stderr);
    assert!(
        said.stderr.contains("10 wrong status; the first failure: status 302 instead"),
        "{}",
        said.stderr
    );
    for words in [
        "samples       0",
        "first failure status 302 instead of 200, a redirect to /; redirects",
        "CPU for no right response",
        "| HTTP/1.1 302 Found\n| Location: /\n",
        "0 of the 10 responses asked for came back right: 10 failed",
        "all of it measured",
        "errors        10",
        "statuses      10 x 302",
        "failures      10 wrong status",
        "10 redirects (302) were not followed, the first to /",
        "too short to conclude",
    ] {
        assert!(said.stdout.contains(words), "no {words:?} in:\n{}", said.stdout);
    }
    let expected =
        weir(&["load", "http", &url(address, "/old"), "-c", "2", "-n", "10", "--expect-status", "302"]);
    assert_eq!(expected.code, Some(0), "{}", expected.stderr);
    assert!(expected.stdout.contains("failures      none"), "{}", expected.stdout);
    assert!(expected.stdout.contains("up to   responses     share"), "{}", expected.stdout);
}

#[test]
fn a_page_that_is_another_one_each_time_is_told_with_the_flag_for_it() {
    let url = url(serve(), "/dynamic");
    let words = ["load", "http", &url, "-c", "1", "-n", "300"];
    let said = weir(&words);
    expect_refusal(&said, 1, &["only 1 of 300 responses came back right", "--expect-content any"]);
    assert!(said.stdout.contains("--expect-content any"), "{}", said.stdout);
    let any = weir(&[&words[..], &["--expect-content", "any"]].concat());
    assert_eq!(any.code, Some(0), "{}", any.stderr);
    assert!(!any.stdout.contains("--expect-content"), "{}", any.stdout);
    let tolerant = weir(&[&words[..], &["--max-errors", "100%"]].concat());
    assert_eq!(tolerant.code, Some(0), "{}", tolerant.stderr);
}

#[test]
fn a_host_is_loaded_at_whichever_of_its_addresses_answers() {
    let address = serve();
    let url = format!("http://localhost:{}/", address.port());
    let said = weir(&["load", "http", &url, "-c", "2", "-n", "5", "--json"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    let report: LoadReport = serde_json::from_str(&said.stdout).expect("a report");
    assert_eq!(report.target, address.to_string());
}

#[test]
fn a_maximum_of_errors_decides_the_exit_code() {
    let address = serve();
    let (page, moved) = (url(address, "/"), url(address, "/old"));
    // Every second response is a redirect.
    let run = |limit: &str| {
        weir(&["load", "http", &page, &moved, "-c", "1", "-n", "10", "--max-errors", limit, "--json"])
    };
    for (limit, code) in [("4", 10), ("5", 0), ("49.9%", 10), ("50%", 0)] {
        let said = run(limit);
        assert_eq!(said.code, Some(code), "{limit}: {}", said.stderr);
        let told = format!("weir: --max-errors {limit}: 5 of 10 responses failed (50.000 %)\n");
        assert_eq!(said.stderr, if code == 0 { String::new() } else { told });
        let report: LoadReport = serde_json::from_str(&said.stdout).expect("a report");
        assert_eq!([&report.settings["max-errors"], &report.settings["connections"]], [limit, "1"]);
        assert_eq!((report.messages_asked, report.messages, report.error_share), (Some(10), 5, 0.5));
        assert_eq!(report.failure_first.expect("five failed").class, "wrong_status");
        let bad = report.http.and_then(|http| http.bad_response).expect("five were bad");
        assert!(bad.url == moved && bad.start.starts_with("HTTP/1.1 302 Found"), "{bad:?}");
    }
}

#[test]
fn seconds_and_responses_go_into_files() {
    let folder = folder("load-http-files");
    let (csv, jtl) = (folder.join("seconds.csv"), folder.join("run.jtl"));
    let url = url(serve(), "/");
    let words = ["load", "http", &url, "-c", "2", "-d", "1100ms", "--warmup-max", "0s", "--json"];
    let said = weir(&[&words[..], &["--csv", shown(&csv), "--jtl", shown(&jtl)]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let report: LoadReport = serde_json::from_str(&said.stdout).expect("a report");
    let http = report.http.expect("it was a load of HTTP");
    let csv = std::fs::read_to_string(csv).expect("it was written");
    assert_eq!(csv.lines().next(), Some("second,responses,errors,response_p50_ns,response_p99_ns"));
    assert_eq!(csv.lines().count(), 2);
    assert!(
        csv.lines()
            .nth(1)
            .is_some_and(|row| row.starts_with(&format!("1,{},0,", report.seconds[0].messages)))
    );
    let jtl = std::fs::read_to_string(jtl).expect("it was written");
    assert_eq!(http.jtl_rows + http.jtl_rows_dropped, report.messages);
    assert_eq!(jtl.lines().count() as u64, http.jtl_rows + 1);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_the_load_and_a_full_disk_costs_no_report() {
    let url = url(serve(), "/");
    let words = ["load", "http", &url, "-c", "2", "-n", "5", "--csv"];
    let refused = weir(&[&words[..], &["/nowhere/seconds.csv"]].concat());
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.contains("--csv /nowhere/seconds.csv"), "{}", refused.stderr);
    let full = weir(&[&words[..], &["/dev/full"]].concat());
    assert_eq!(full.code, Some(1));
    assert!(full.stdout.contains("failures      none"), "{}", full.stdout);
    assert!(full.stderr.contains("--csv /dev/full"), "{}", full.stderr);
}

#[test]
fn the_plan_of_load_testers_is_one_line() {
    let url = url(serve(), "/");
    let words =
        ["load", "http", &url, "--users", "3", "--ramp-up", "100ms", "-d", "1s", "--warmup-max", "0s"];
    let times = ["--connect-timeout", "30000ms", "--response-timeout", "30000ms", "--close", "--json"];
    let said = weir(&[&words[..], &times].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let report: LoadReport = serde_json::from_str(&said.stdout).expect("a report");
    let http = report.http.expect("it was a load of HTTP");
    assert_eq!((report.connections, report.warmup_ns, report.failures.errors()), (3, 0, 0));
    assert!(http.connection_per_request && http.connections_opened >= report.messages && report.messages > 0);
}

#[test]
fn a_content_from_a_file_is_what_is_expected() {
    let folder = folder("load-http-content");
    let page = folder.join("page.html");
    std::fs::write(&page, PAGE).expect("a file can be written");
    let url = url(serve(), "/");
    let words = ["load", "http", &url, "-c", "1", "-n", "5", "--json", "--expect-content"];
    let run = |content: &str| -> LoadReport {
        let said = weir(&[&words[..], &[content]].concat());
        assert_eq!(said.code, Some(if content == "64" { 1 } else { 0 }), "{}", said.stderr);
        serde_json::from_str(&said.stdout).expect("a report")
    };
    assert_eq!(run(shown(&page)).messages, 5);
    assert_eq!(run("any").messages, 5);
    assert_eq!(run("64").failures.wrong_bytes, 5);
}

#[test]
fn a_wrong_value_is_told_with_its_flag() {
    let url = url(serve(), "/");
    let cases: [(&[&str], &[&str]); 18] = [
        (&["https://127.0.0.1/"], &["https://127.0.0.1/", "TLS", "http://"]),
        (&["h2://127.0.0.1/"], &["h2://127.0.0.1/", "HTTP/2"]),
        (&["127.0.0.1:80"], &["127.0.0.1:80", "http://"]),
        (&[&url, "http://127.0.0.1:1/"], &["http://127.0.0.1:1/", "another server"]),
        (&[&url, "--method", "get"], &["--method", "case-sensitive", "GET"]),
        (&[&url, "--method", "FE TCH"], &["--method", "FE TCH", "not a method name"]),
        (&[&url, "--header", "plain"], &["--header", "plain", "Name: value"]),
        (&[&url, "--header", "Connection: close"], &["--header", "--close"]),
        (&[&url, "--expect-content", "/nonexistent/page"], &["--expect-content", "/nonexistent/page"]),
        (&[&url, "--expect-status", "99"], &["--expect-status", "100 to 999"]),
        (&[&url, "--data-file", "/nonexistent/content"], &["--data-file", "/nonexistent/content"]),
        (&[&url, "--source-addresses", "127.0.0.9-2"], &["--source-addresses", "127.0.0.2-9"]),
        (&[&url, "--source-addresses", "192.0.2.1"], &["--source-addresses", "192.0.2.1", "ip address"]),
        (&[&url, "--source-addresses", "::1"], &["--source-addresses", "IPv6"]),
        (&[&url, "--close", "--depth", "2"], &["--depth", "use 1"]),
        (&[&url, "-n", "0"], &["--requests", "at least one"]),
        (&[&url, "--duration", "soon"], &["--duration", "soon", "500ms"]),
        (&[&url, "--driver", "blocking"], &["--driver blocking", "use uring"]),
    ];
    for (words, expected) in cases {
        expect_refusal(&weir(&[&["load", "http"], words].concat()), 2, expected);
    }
}

#[test]
fn nobody_listening_is_a_failure() {
    let said = weir(&["load", "http", "http://127.0.0.1:1/", "-c", "2"]);
    expect_refusal(&said, 1, &["127.0.0.1:1", "refused"]);
}
