//! Tests of the access log: its lines in each format, for all kinds of requests.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use weir_engine::Driver;
use weir_proto::{content::Content, http1::Method};
use weir_servers::http::{Body, HttpConfig, HttpLogs, LogFormat, Timeouts};

use crate::{
    client::get,
    rig::{Network, on_driver},
};

/// Lines written so far.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log lines for a script's requests, on each driver: the parts after the client and the time.
fn logged(config: &HttpConfig, script: impl AsyncFn(&Network), check: impl Fn(Driver, &[&str])) {
    for driver in Driver::ALL {
        let lines = Lines::default();
        let logs = HttpLogs { access: Some(Box::new(lines.clone())), ..HttpLogs::default() };
        let Some(served) = on_driver(driver, config.clone(), logs, &script) else { continue };
        let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
        let told: Vec<&str> = text.lines().map(|line| without_time(driver, line)).collect();
        check(driver, &told);
        assert_eq!(served.http.counters().log_lines_dropped(), 0);
    }
}

/// `127.0.0.1 - - [06/Nov/1994:08:49:37 +0000] …`
fn without_time(driver: Driver, line: &str) -> &str {
    let rest = line.strip_prefix("127.0.0.1 - - [").unwrap_or_else(|| panic!("{driver}: {line}"));
    let (time, rest) = rest.split_once("] ").expect("a time");
    assert_eq!((time.len(), &time[20..]), (26, " +0000"), "{line}");
    assert_eq!([2, 6, 11, 14, 17].map(|place| time.as_bytes()[place]), *b"//:::", "{line}");
    rest
}

fn html(log_format: LogFormat) -> HttpConfig {
    HttpConfig { log_format, ..HttpConfig::new(Body::Fixed(Content::Html)) }
}

#[test]
fn the_combined_format_has_a_line_for_each_request_in_order() {
    let length = Content::Html.bytes().len();
    let script = async |network: &Network| {
        let mut client = network.connect().await;
        client.ask(Method::Get, get("/a?\"b\"")).await;
        client.ask(Method::Head, "HEAD /c HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        client.ask(Method::Get, get(&format!("/{}", "\"".repeat(5000)))).await;
        let fields = "Referer: http://x/\r\nUser-Agent: a\"b\\c\u{e9}\t\r\n";
        client.ask(Method::Get, format!("GET /d HTTP/1.1\r\nHost: x\r\n{fields}\r\n")).await;
        client.ask(Method::Delete, "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        client.ask(Method::Get, "\u{16}\u{3}\u{1}").await;
    };
    logged(&html(LogFormat::Combined), script, |driver, told| {
        let expected = [
            format!("\"GET /a?\\x22b\\x22 HTTP/1.1\" 200 {length} \"-\" \"-\""),
            "\"HEAD /c HTTP/1.0\" 200 0 \"-\" \"-\"".to_owned(),
            // The queue of lines is bounded only if each line is.
            format!("\"GET /{}... HTTP/1.1\" 200 {length} \"-\" \"-\"", "\\x22".repeat(1023)),
            format!("\"GET /d HTTP/1.1\" 200 {length} \"http://x/\" \"a\\x22b\\x5Cc\\xC3\\xA9\""),
            "\"DELETE / HTTP/1.1\" 405 53 \"-\" \"-\"".to_owned(),
            "\"-\" 400 44 \"-\" \"-\"".to_owned(),
        ];
        assert_eq!(told, expected, "{driver}");
    });
}

#[test]
fn a_refused_request_is_told_by_its_line() {
    let long = "x".repeat(20_000);
    let requests = [
        ("POST /413 HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n", "POST /413 HTTP/1.1", 413),
        ("PUT /417 HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n", "PUT /417 HTTP/1.1", 417),
        (&format!("GET /431 HTTP/1.1\r\nHost: x\r\nA: {long}\r\n\r\n"), "GET /431 HTTP/1.1", 431),
        ("BREW /501 HTTP/1.1\r\nHost: x\r\n\r\n", "BREW /501 HTTP/1.1", 501),
        ("GET /505 HTTP/2.0\r\nHost: x\r\n\r\n", "GET /505 HTTP/2.0", 505),
        ("GET /400 HTTP/1.1\r\n\r\n", "GET /400 HTTP/1.1", 400),
        ("POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;\r\n", "POST /c HTTP/1.1", 400),
        (&format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n"), "-", 414),
        ("nonsense\r\n\r\n", "-", 400),
    ];
    let script = async |network: &Network| {
        for (request, ..) in requests {
            let mut client = network.connect().await;
            // After a request that is answered: nothing of its line may remain.
            client.ask(Method::Get, get("/first")).await;
            client.ask(Method::Get, request).await;
        }
    };
    logged(&html(LogFormat::Common), script, |driver, told| {
        let refused: Vec<&&str> = told.iter().filter(|line| !line.contains("/first")).collect();
        assert_eq!(refused.len(), requests.len(), "{driver}: {told:?}");
        for (line, (_, request, status)) in refused.iter().zip(requests) {
            assert!(line.starts_with(&format!("\"{request}\" {status} ")), "{driver}: {line}");
        }
    });
}

#[test]
fn a_request_whose_head_came_too_late_is_told_by_its_line() {
    let timeouts = Timeouts { head: std::time::Duration::from_millis(50), ..Timeouts::DEFAULT };
    let config = HttpConfig { timeouts, ..html(LogFormat::Common) };
    let script = async |network: &Network| {
        for piece in ["GET /408 HTTP/1.1\r\nHost", "GET /4"] {
            let mut client = network.connect().await;
            client.write(piece).await;
            client.response(Method::Get).await.expect("it is told");
        }
    };
    logged(&config, script, |driver, told| {
        assert!(told[0].starts_with("\"GET /408 HTTP/1.1\" 408 "), "{driver}: {told:?}");
        assert!(told[1].starts_with("\"-\" 408 "), "{driver}: {told:?}");
    });
}

#[test]
fn the_common_format_ends_with_the_bytes() {
    let length = Content::Html.bytes().len();
    let script = async |network: &Network| {
        let mut client = network.connect().await;
        client.write(get("/").repeat(2)).await;
        for _ in 0..2 {
            client.response(Method::Get).await.expect("a page");
        }
    };
    logged(&html(LogFormat::Common), script, |driver, told| {
        assert_eq!(told, [format!("\"GET / HTTP/1.1\" 200 {length}"), told[0].to_owned()], "{driver}");
    });
}

#[test]
fn the_timed_format_ends_with_the_time_from_the_first_byte_to_the_last() {
    let script = async |network: &Network| {
        let mut client = network.connect().await;
        client.write("GET /slow HTTP/1.1\r\n").await;
        if network.is_simulated() {
            weir_engine::time::sleep(std::time::Duration::from_secs(3)).await;
        }
        client.ask(Method::Get, "Host: x\r\n\r\n").await;
        client.ask(Method::Get, get("/fast")).await;
    };
    logged(&html(LogFormat::Timed), script, |driver, told| {
        let micros = |line: &str| line.rsplit(' ').next().and_then(|word| word.parse::<u64>().ok());
        let (slow, fast) = (micros(told[0]).expect("a time"), micros(told[1]).expect("a time"));
        assert!(told.iter().all(|line| line.contains(" \"-\" \"-\" ")), "{driver}: {told:?}");
        if driver == Driver::Sim {
            assert!((3_000_000..3_100_000).contains(&slow) && fast < 100_000, "{slow} {fast}");
        }
    });
}

#[test]
fn a_reply_that_was_not_taken_whole_is_logged_with_what_was_sent_of_it() {
    const BYTES: u32 = 64 << 20;
    for driver in Driver::ALL.into_iter().filter(|driver| *driver != Driver::Sim) {
        let lines = Lines::default();
        let logs = HttpLogs { access: Some(Box::new(lines.clone())), ..HttpLogs::default() };
        let config = HttpConfig::new(Body::Fixed(Content::Bytes(BYTES)));
        let served = on_driver(driver, config, logs, async |network| {
            let mut client = network.connect_narrow().await;
            client.write(get("/")).await;
            assert!(client.discard(1 << 20));
            client.reset();
        });
        if served.is_none() {
            continue;
        }
        let text = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
        let bytes = text.split(' ').nth(9).and_then(|word| word.parse::<u64>().ok()).expect("bytes");
        assert!(text.contains("\"GET / HTTP/1.1\" 200 ") && text.lines().count() == 1, "{driver}: {text}");
        assert!((1 << 20..u64::from(BYTES)).contains(&bytes), "{driver}: {bytes}");
    }
}
