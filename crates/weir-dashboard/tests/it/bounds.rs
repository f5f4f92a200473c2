//! Each maximum is reached: folders, listed studies, judged studies, connections; and the dashboard ends in good time.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use weir_dashboard::{CONNECTIONS_ADDRESS_MAX, CONNECTIONS_MAX, FOLDERS_MAX, JUDGED_MAX, LISTED_MAX};

use crate::{
    client::{Answer, Running, until},
    results::{folder, make_old, session_on, study},
};

/// A counter or a gauge of the dashboard itself.
fn metric(metrics: &Answer, name: &str) -> u64 {
    let line = metrics.body.lines().find_map(|line| line.strip_prefix(&format!("weir_dashboard_{name} ")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name}: {}", metrics.body))
}

/// Ends a dashboard over thousands of folders, and removes these: nobody looks at them after the test.
fn remove(mut dashboard: Running, results: &Path) {
    dashboard.end();
    // What a last reader still holds may stay.
    let _ = fs::remove_dir_all(results);
}

#[test]
fn of_many_studies_the_newest_are_listed_a_hundred_to_a_page_and_the_rest_is_told() {
    let results = folder("many");
    for number in 0..LISTED_MAX + 6 {
        let path = results.join(format!("study-{number}"));
        fs::create_dir(&path).expect("a folder can be made");
        fs::write(path.join("study.db"), "").expect("a file can be written");
    }
    let dashboard = Running::over(&results);
    let first = dashboard.get("/").body;
    assert_eq!(first.matches("class=\"name\"").count(), 100);
    assert!(first.contains("The newest 1000 studies are listed; 6 older ones are not."), "{first}");
    assert!(first.contains("href=\"/?from=100\"") && !first.contains("Newer studies"));
    let last = dashboard.get("/?from=950&lang=ko").body;
    assert_eq!(last.matches("class=\"name\"").count(), 50);
    assert!(last.contains("href=\"/?from=850&amp;lang=ko\""), "{last}");
    for beyond in ["5000", "18446744073709551616", "-1"] {
        assert_eq!(dashboard.get(&format!("/?from={beyond}")).status, 200);
    }
    remove(dashboard, &results);
}

#[test]
fn studies_are_found_by_what_is_in_their_names_also_older_ones_than_are_listed() {
    let results = folder("found");
    for number in 0..LISTED_MAX + 6 {
        let path = results.join(format!("Study-{number:04}"));
        fs::create_dir(&path).expect("a folder can be made");
        fs::write(path.join("study.db"), "").expect("a file can be written");
        make_old(&path, number as u64);
    }
    let dashboard = Running::over(&results);
    let names = |page: &str| page.matches("class=\"name\"").count();
    assert!(dashboard.get("/").body.contains("<input type=\"search\" name=\"find\" value=\"\">"));
    let oldest = dashboard.get("/?find=+STUDY-1005+").body;
    assert!(names(&oldest) == 1 && oldest.contains("value=\"STUDY-1005\""), "{oldest}");
    assert_eq!(dashboard.get("/study/Study-1005").status, 500, "it is there, and is no store");
    let ten = dashboard.get("/?find=dy-0&from=950&lang=ko").body;
    assert_eq!(names(&ten), 50);
    assert!(
        ten.contains("href=\"/?find=dy-0&amp;from=850&amp;lang=ko\""),
        "pages keep what is searched: {ten}"
    );
    assert!(ten.contains("href=\"/?find=dy-0&amp;from=950&amp;lang=zh\""), "and so do languages");
    let all = dashboard.get("/?find=Study").body;
    assert!(names(&all) == 100 && all.contains("The newest 1000 studies are listed; 6 older ones are not."));
    for (query, words) in [
        ("find=%3Cb%3E", "No study matches: &lt;b&gt;"),
        ("find=zz&lang=ko", "다음에 맞는 실험이 없습니다: zz"),
        ("find=zz&lang=zh", "没有符合以下内容的实验：zz"),
    ] {
        let none = dashboard.get(&format!("/?{query}"));
        assert!(none.status == 200 && names(&none.body) == 0 && none.body.contains(words), "{}", none.body);
    }
    remove(dashboard, &results);
}

#[test]
fn a_chart_that_is_of_no_listed_study_does_not_say_that_there_is_none() {
    let results = folder("charted-before");
    study(&results, ("map", "tps"), 3_600);
    for number in 0..LISTED_MAX {
        let path = results.join(format!("study-{number}"));
        fs::create_dir(&path).expect("a folder can be made");
        fs::write(path.join("study.db"), "").expect("a file can be written");
    }
    let dashboard = Running::over(&results);
    for (language, words) in [
        ("en", "None of the newest 1,000 studies"),
        ("ko", "최근 실험 1,000개 중에는"),
        ("zh", "最近的 1,000 项实验中"),
    ] {
        let chart = dashboard.get(&format!("/thread-chart?lang={language}"));
        assert!(chart.status == 404 && chart.body.contains(words), "{}", chart.body);
    }
    assert_eq!(LISTED_MAX, 1_000, "the number that the page names");
    assert_eq!(dashboard.get("/thread-chart?study=map").status, 200, "it is found by its name");
    remove(dashboard, &results);
}

#[test]
fn of_more_folders_than_the_maximum_the_newest_are_looked_at_and_the_rest_is_told_of() {
    let results = folder("crowded");
    for number in 0..=FOLDERS_MAX {
        fs::create_dir(results.join(number.to_string())).expect("a folder can be made");
    }
    // The folder that the system lists last, which a reader that stops at the maximum does not see.
    let last = fs::read_dir(&results).expect("a folder").last().expect("there are many").expect("an entry");
    let old = SystemTime::now() - Duration::from_secs(3_600);
    for entry in fs::read_dir(&results).expect("a folder").flatten() {
        let made = File::open(entry.path()).expect("it can be opened");
        made.set_modified(old).expect("a time can be set");
    }
    fs::write(last.path().join("study.db"), "").expect("a file can be written");
    let dashboard = Running::over(&results);
    let list = dashboard.get("/").body;
    assert!(list.contains("There are more folders than were looked at"));
    assert!(list.contains(&format!("<span class=\"name\"><bdi>{}<", last.file_name().display())), "{list}");
    remove(dashboard, &results);
}

#[test]
fn of_as_many_studies_as_are_looked_at_the_stores_of_listed_ones_are_opened_once_and_no_others() {
    let results = folder("full");
    for number in 0..FOLDERS_MAX {
        let path = results.join(format!("study-{number}"));
        fs::create_dir(&path).expect("a folder can be made");
        fs::write(path.join("study.db"), "").expect("a file can be written");
    }
    let dashboard = Running::over(&results);
    let read = || metric(&dashboard.get("/metrics"), "stores_read_total");
    let first = dashboard.get("/").body;
    assert_eq!(first.matches("class=\"name\"").count(), 100);
    let older = FOLDERS_MAX - LISTED_MAX;
    assert!(
        first.contains(&format!("The newest {LISTED_MAX} studies are listed; {older} older ones are not."))
    );
    assert!(!first.contains("more folders than were looked at"), "each of them was");
    let listed = LISTED_MAX as u64;
    assert_eq!(read(), listed, "their dates are in them");
    assert_eq!(dashboard.get("/").status, 200);
    assert_eq!(dashboard.get("/?from=900").body.matches("class=\"name\"").count(), 100);
    assert_eq!(read(), listed, "and only once");
    assert!(dashboard.get("/?find=study-9999").body.contains("study-9999<"), "each of them can be found");
    assert!(read() <= listed + 1);
    remove(dashboard, &results);
}

#[test]
fn as_many_judged_studies_are_kept_as_is_stated_and_no_more() {
    let results = folder("judged");
    let one = study(&results, ("study-0", "quick"), 10);
    for number in 1..=JUDGED_MAX {
        let copy = results.join(format!("study-{number}"));
        fs::create_dir(&copy).expect("a folder can be made");
        fs::copy(one.join("study.db"), copy.join("study.db")).expect("it can be copied");
    }
    let dashboard = Running::over(&results);
    let see = |number: usize| assert_eq!(dashboard.get(&format!("/study/study-{number}")).status, 200);
    // The list is read ahead, each store of it once, and the newest study is judged.
    let ahead = JUDGED_MAX as u64 + 2;
    let read = || metric(&dashboard.get("/metrics"), "stores_read_total");
    until("the list and the newest study", || read() == ahead);
    assert_eq!(dashboard.get("/").status, 200);
    see(JUDGED_MAX);
    assert_eq!(read(), ahead, "neither is read again for who asks first");
    let read = || read() - ahead;
    (0..JUDGED_MAX).for_each(see);
    assert_eq!(read(), JUDGED_MAX as u64);
    (0..JUDGED_MAX).for_each(see);
    assert_eq!(read(), JUDGED_MAX as u64, "none was read again");
    see(JUDGED_MAX);
    see(1);
    assert_eq!(read(), JUDGED_MAX as u64 + 1, "the one before it is still there");
    see(0);
    assert_eq!(read(), JUDGED_MAX as u64 + 2, "the one that was asked for longest ago is not");
}

#[test]
fn no_study_is_judged_ahead_beside_one_that_runs() {
    let results = folder("judged-beside");
    study(&results, ("done", "quick"), 10);
    let running = study(&results, ("running", "quick"), 20);
    let _session = session_on(&running);
    let dashboard = Running::over(&results);
    let read = || metric(&dashboard.get("/metrics"), "stores_read_total");
    until("the list", || read() >= 2);
    assert_eq!(dashboard.get("/study/running").status, 200);
    assert_eq!(read(), 3, "the one that was asked for is judged, and the newest is not");
}

/// Connections of one address that are served and stay open.
fn held(dashboard: &Running, last: u8, count: usize) -> Vec<TcpStream> {
    let mut open: Vec<TcpStream> = (0..count).map(|_| dashboard.connect_from(last)).collect();
    for stream in &mut open {
        write!(stream, "GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", dashboard.address)
            .expect("it takes a request");
        let mut first = [0; 12];
        stream.read_exact(&mut first).expect("each of them is served");
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    open
}

#[test]
fn a_connection_beyond_the_maximum_takes_the_place_of_the_one_that_is_idle_the_longest() {
    let results = folder("connections");
    let dashboard = Running::over(&results);
    let addresses = CONNECTIONS_MAX.div_ceil(CONNECTIONS_ADDRESS_MAX);
    let all = (0..addresses).flat_map(|index| held(&dashboard, 2 + index as u8, CONNECTIONS_ADDRESS_MAX));
    let mut open: Vec<TcpStream> = all.collect();
    assert_eq!(open.len(), CONNECTIONS_MAX);
    let mut further = dashboard.connect();
    write!(further, "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", dashboard.address)
        .expect("the kernel takes it");
    let answer = Answer::read(further);
    assert_eq!(answer.status, 200, "nobody has to leave by himself");
    assert_eq!(metric(&answer, "connections"), CONNECTIONS_MAX as u64, "never one more");
    let mut rest = Vec::new();
    open.remove(0).read_to_end(&mut rest).expect("it has ended, after its answer");
    assert!(rest.ends_with(b"ok\n"));
    for stream in &mut open {
        expect_answer(stream, &dashboard);
    }
}

/// Another request on a connection that was answered before is answered too.
fn expect_answer(stream: &mut TcpStream, dashboard: &Running) {
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", dashboard.address).expect("it is open");
    let mut seen = Vec::new();
    let mut piece = [0; 4_096];
    while !seen.windows(16).any(|part| part == b"weir_dashboard_c") {
        let count = stream.read(&mut piece).expect("an answer");
        assert!(count > 0, "it has ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..count]);
    }
}

#[test]
fn idle_connections_of_an_address_keep_no_reader_out_there_or_elsewhere() {
    let results = folder("crowd");
    let dashboard = Running::over(&results);
    let mut crowd = held(&dashboard, 2, CONNECTIONS_ADDRESS_MAX);
    let mut further = held(&dashboard, 2, 3);
    let metrics = dashboard.get("/metrics");
    assert_eq!(metric(&metrics, "connections_refused_total"), 0);
    for stream in crowd.drain(..3) {
        let mut rest = Vec::new();
        (&stream).read_to_end(&mut rest).expect("it has ended, after its answer");
    }
    for stream in crowd.iter_mut().chain(&mut further) {
        expect_answer(stream, &dashboard);
    }
}

#[test]
fn heads_that_never_end_keep_nobody_else_waiting() {
    let results = folder("half-heads");
    let dashboard = Running::over(&results);
    let half = || {
        let mut stream = dashboard.connect_from(2);
        stream.write_all(b"GET / HTTP/1.1\r\nHost: loc").expect("the kernel takes it");
        stream
    };
    // So many that all places are taken, and the address has no more of those that leave.
    let crowd: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| half()).collect();
    let metrics = dashboard.get("/metrics");
    assert!(metric(&metrics, "connections_refused_total") > 0, "further ones were not let in");
    assert!(metric(&metrics, "connections") < CONNECTIONS_MAX as u64, "an address takes not all places");
    drop(crowd);
}

#[test]
fn it_ends_in_good_time_whatever_its_connections_do() {
    let results = folder("ending");
    let mut dashboard = Running::over(&results);
    let silent = dashboard.connect();
    let mut halfway = dashboard.connect();
    halfway.write_all(b"GET / HTTP/1.1\r\nHost: loc").expect("it takes a part");
    assert_eq!(dashboard.get("/healthz").status, 200, "so that all of them were accepted");
    let began = Instant::now();
    dashboard.end();
    assert!(began.elapsed() < Duration::from_secs(30));
    drop(silent);
    // A child that another test has forked holds every open socket until it runs its program.
    until("that nobody listens", || TcpStream::connect(dashboard.address).is_err());
}

#[test]
fn a_head_that_is_too_long_is_refused_and_the_next_request_is_not() {
    let results = folder("long-head");
    let dashboard = Running::over(&results);
    let answer = dashboard.get(&format!("/?{}", "a".repeat(20_000)));
    assert!([414, 431].contains(&answer.status), "{}", answer.head);
    assert_eq!(dashboard.get("/healthz").status, 200);
}
