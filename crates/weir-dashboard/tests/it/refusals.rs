//! Requests that are refused: paths out of the folder, foreign hosts, stores that cannot be read, and addresses that
//! are taken.

use std::{fs, net::TcpListener, os::unix::fs::symlink, path::Path};

use weir_dashboard::{Dashboard, DashboardError, Settings};
use weir_report::Language;

use crate::{
    client::Running,
    results::{folder, make_old, sql, study},
};

#[test]
fn no_request_leads_out_of_the_results_folder() {
    let outside = folder("outside");
    let secret = study(&outside, ("secret", "quick"), 10);
    let results = folder("inside");
    study(&results, ("own", "quick"), 10);
    symlink(&secret, results.join("linked")).expect("a link can be made");
    fs::create_dir(results.join("borrowed")).expect("a folder can be made");
    symlink(secret.join("study.db"), results.join("borrowed/study.db")).expect("a link can be made");
    let dashboard = Running::over(&results);
    assert_eq!(dashboard.get("/study/own").status, 200);
    for name in [
        "..",
        "%2e%2e",
        "%2E%2E%2Foutside%2Fsecret",
        "../outside/secret",
        "own/../own",
        "own%2F",
        "own%00",
        "%2Fetc",
        "linked",
        "borrowed",
        "",
        "%",
        "%zz",
    ] {
        let answer = dashboard.get(&format!("/study/{name}"));
        assert_eq!(answer.status, 404, "{name}: {}", answer.body);
        let answer = dashboard.get(&format!("/thread-chart?study={name}"));
        assert_eq!(answer.status, 404, "{name}: {}", answer.body);
    }
    let list = dashboard.get("/").body;
    assert!(!list.contains("linked") && !list.contains("borrowed") && !list.contains("secret"));
}

#[test]
fn a_name_that_is_no_text_is_found_by_its_bytes() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let results = folder("bytes");
    let path = study(&results, ("plain", "quick"), 10);
    fs::rename(path, results.join(OsStr::from_bytes(b"odd\xff name"))).expect("it can be renamed");
    let dashboard = Running::over(&results);
    assert!(dashboard.get("/").body.contains("/study/odd%FF%20name"));
    assert_eq!(dashboard.get("/study/odd%FF%20name").status, 200);
    assert_eq!(dashboard.get("/charts?study=odd%FF%20name").status, 200);
}

#[test]
fn a_request_for_another_host_is_refused_and_learns_nothing() {
    let results = folder("hosts");
    study(&results, ("private", "quick"), 10);
    let dashboard = Running::over(&results);
    let port = dashboard.address.port();
    for host in [format!("127.0.0.1:{port}"), "localhost".to_owned(), "lab.example:80".to_owned()] {
        assert_eq!(dashboard.ask(&["GET / HTTP/1.1", &format!("Host: {host}")]).status, 200, "{host}");
    }
    for lines in
        [&["GET / HTTP/1.1", "Host: evil.example"][..], &["GET /metrics HTTP/1.1"], &["GET / HTTP/1.0"]]
    {
        let answer = dashboard.ask(lines);
        assert_eq!(answer.status, 421, "{lines:?}");
        assert!(!answer.body.contains("private") && answer.body.contains("--host"), "{lines:?}");
    }
    assert!(dashboard.get("/metrics").body.contains("weir_dashboard_foreign_hosts_total 3"));
}

#[test]
fn a_request_with_two_hosts_or_for_a_foreign_address_is_refused() {
    let results = folder("two-hosts");
    study(&results, ("private", "quick"), 10);
    let dashboard = Running::over(&results);
    let host = format!("Host: {}", dashboard.address);
    for second in [host.as_str(), "Host: evil.example", "host: localhost"] {
        for (language, words) in [("en", "one"), ("ko", "하나만"), ("zh", "只能有一个")] {
            let answer = dashboard.ask(&[&format!("GET /?lang={language} HTTP/1.1"), &host, second]);
            assert_eq!(answer.status, 400, "{second}");
            assert!(answer.body.contains(words) && !answer.body.contains("private"), "{}", answer.body);
        }
    }
    let address = dashboard.address;
    for (target, host, status) in [
        (format!("http://{address}/"), host.as_str(), 200),
        ("http://lab.example/".to_owned(), host.as_str(), 200),
        ("http://evil.example/".to_owned(), host.as_str(), 421),
        (format!("http://{address}/"), "Host: evil.example", 421),
    ] {
        let answer = dashboard.ask(&[&format!("GET {target} HTTP/1.1"), host]);
        assert_eq!(answer.status, status, "{target} {host}");
        assert_eq!(answer.body.contains("private"), status == 200, "{target} {host}");
    }
}

#[test]
fn a_page_of_another_site_may_link_here_and_frame_charts_and_fetch_nothing() {
    let results = folder("foreign-fetch");
    study(&results, ("map", "tps"), 10);
    let dashboard = Running::over(&results);
    let host = format!("Host: {}", dashboard.address);
    let ask = |path: &str, lines: &[&str]| {
        let first = format!("GET {path} HTTP/1.1");
        dashboard.ask(&[&[first.as_str(), &host], lines].concat())
    };
    let fetched = [
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"],
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"],
        ["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"],
    ];
    for lines in &fetched {
        for path in ["/", "/thread-chart", "/live/events", "/live.js", "/study/map/study.json", "/nowhere"] {
            let answer = ask(path, lines);
            assert_eq!(answer.status, 403, "{path} {lines:?}: {}", answer.body);
        }
        assert_eq!([ask("/metrics", lines).status, ask("/healthz", lines).status], [200; 2], "as ever");
    }
    for (language, words) in
        [("en", "page of another site"), ("ko", "다른 사이트의 페이지"), ("zh", "其他网站的页面")]
    {
        let told = ask(&format!("/?lang={language}"), &fetched[0]).body;
        assert!(told.contains(words), "{told}");
    }
    let link = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    let frame = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"];
    assert_eq!([ask("/study/map", &link).status, ask("/thread-chart", &frame).status], [200; 2]);
    for (path, lines) in [("/study/map", frame), ("/compare", frame), ("/live/events", frame)] {
        assert_eq!(ask(path, &lines).status, 403, "{path} is not for other pages to frame");
    }
    assert_eq!(ask("/live/events", &link).status, 403);
    let own = ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"];
    assert_eq!(ask("/live.js", &own).status, 200);
}

#[test]
fn nothing_takes_a_request_that_would_change_something() {
    let results = folder("methods");
    let dashboard = Running::over(&results);
    assert!(!dashboard.get("/").body.contains("method=\"post\""));
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for path in ["/", "/study/x", "/thread-chart", "/metrics"] {
            let host = format!("Host: {}", dashboard.address);
            let answer = dashboard.ask(&[&format!("{method} {path} HTTP/1.1"), &host]);
            assert_eq!(answer.status, 405, "{method} {path}");
        }
        for path in ["/login", "/logout", "/start", "/stop"] {
            let host = format!("Host: {}", dashboard.address);
            let answer = dashboard.ask(&[&format!("{method} {path} HTTP/1.1"), &host]);
            assert_eq!(answer.status, 404, "{method} {path}: without a token it is not there");
        }
    }
}

#[test]
fn every_answer_carries_what_keeps_it_to_itself() {
    let results = folder("headers");
    let dashboard = Running::over(&results);
    for path in ["/", "/charts", "/nowhere", "/study/nowhere", "/metrics"] {
        let answer = dashboard.get(path);
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("referrer-policy"), "same-origin", "forms say where they come from");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'") && policy.ends_with("frame-ancestors 'none'"),
            "{policy}"
        );
    }
}

/// A store is not shown and its row says why; the other rows are unchanged.
fn expect_row(results: &Path, words: &str) {
    let dashboard = Running::over(results);
    let list = dashboard.get("/");
    assert_eq!(list.status, 200);
    assert!(list.body.contains("cannot be read") && list.body.contains(words), "{}", list.body);
    assert!(list.body.contains("/study/good"), "the other one is shown");
    let page = dashboard.get("/study/bad");
    assert_eq!(page.status, 500);
    assert!(page.body.contains(words), "{}", page.body);
    assert_eq!(dashboard.get("/study/good").status, 200);
}

#[test]
fn a_store_that_is_damaged_newer_or_something_else_is_a_row_that_says_so() {
    let results = folder("stores");
    study(&results, ("good", "quick"), 10);
    let bad = study(&results, ("bad", "quick"), 20);
    sql(&bad, "PRAGMA user_version = 9999");
    expect_row(&results, "version 9999");
    sql(&bad, "PRAGMA user_version = 4; UPDATE study SET spec = json_set(spec, '$.arms', json('[]'))");
    make_old(&bad, 10);
    expect_row(&results, "damaged");
    sql(&bad, "UPDATE study SET spec = '{}'");
    make_old(&bad, 5);
    expect_row(&results, "damaged");
    let store = bad.join("study.db");
    let mut bytes = fs::read(&store).expect("a store");
    bytes[200..4000].fill(0xa5);
    fs::write(&store, &bytes).expect("it can be written");
    expect_row(&results, "damaged");
    fs::write(&store, "a text").expect("it can be written");
    expect_row(&results, "damaged");
    fs::write(&store, "").expect("it can be written");
    expect_row(&results, "damaged");
}

fn bound(folder: &Path, listen: &str) -> DashboardError {
    let settings = Settings {
        folder: folder.to_path_buf(),
        listen: listen.parse().expect("an address"),
        hosts: Vec::new(),
        language: Language::English,
        control: None,
        records: None,
        stats: Vec::new(),
        finds_servers: false,
    };
    Dashboard::bind(settings).err().expect("it does not start")
}

#[test]
fn what_keeps_a_dashboard_from_starting_is_told_with_the_way_out() {
    let results = folder("starting");
    let own = study(&results, ("one", "quick"), 10);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it listens").to_string();
    let message = bound(&results, &address).to_string();
    assert!(
        message
            .starts_with(&format!("{address} is in use; choose another port, such as --listen 127.0.0.1:"))
    );
    let message = bound(&results, "203.0.113.1:3000").to_string();
    assert!(message.starts_with("cannot listen on 203.0.113.1:3000: "), "{message}");
    let message = bound(&own, "127.0.0.1:0").to_string();
    assert!(message.contains("is the folder of one study") && message.contains("weir report"), "{message}");
    let message = bound(&own.join("study.db/x"), "127.0.0.1:0").to_string();
    assert!(message.starts_with("cannot read "), "{message}");
}
