//! Every page of the dashboard in a real browser, and a report as a file, at the widths of phones, of frames in a
//! document, of a tablet and of a screen, in each language, light and dark: nothing is wider than its window, what is
//! written can be read, labels do not overlap, every element has a name, a chart fits into its frame. Readers who do
//! not see a page, or use no mouse, are kept out by nothing in `accessible.js`. Skipped where no browser is.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock},
    process::Signal,
};
use serde_json::{Value, json};
use weir_dashboard::WATCHERS_ADDRESS_MAX;
use weir_lab::{
    builtin::BuiltIn,
    fake::{FakeArm, FakeLauncher, FakeStates, NEVER},
    host_defaults::HostDefaults,
    run::{self, Callbacks, Event},
};
use weir_record::{
    machine::Fingerprint,
    spec::{CellRole, LoadMode},
};
use weir_report::ChartPage;
use weir_store::{NewStudy, Store};

use super::{
    browser::{self, TOKEN, WRONG},
    devtools::Browser,
    harness::{PATIENCE, Running, Server, folder, shown, until, weir},
};

/// Phones, the frames of document 000, a tablet, and a screen.
const WIDTHS_PX: [u32; 5] = [360, 400, 535, 768, 1280];

const LANGUAGES: [&str; 3] = ["en", "ko", "zh"];

/// Least contrast of text: of what is at least 24 px high, or 18.66 px and bold, and of everything else (WCAG 2.2,
/// 1.4.3).
const CONTRAST_MIN: [(&str, f64); 2] = [("large", 3.0), ("normal", 4.5)];

const MEASURED: &str = include_str!("measured.js");

const ACCESSIBLE: &str = include_str!("accessible.js");

/// Connections of the cells that the study of this test keeps.
const CONNECTIONS: [u32; 3] = [1, 100, 1000];

/// Rounds of a cell: enough for an interval, and for an estimate while the study runs.
const ROUNDS: u32 = 8;

/// A map of a machine that exists only in numbers, with several CPUs on the server's side and failures on one arm, so
/// that each of the eight charts has something to draw.
pub fn store_map(results: &Path) {
    let host = HostDefaults { seed: 3, server_cpus: vec![0, 1, 2, 3], ..HostDefaults::default() };
    let built_in = BuiltIn::named("tps").expect("it is built in");
    let mut spec = built_in.study(&host).unwrap_or_else(|error| panic!("{error}")).spec;
    spec.cells.retain(|cell| cell.load == LoadMode::Closed && CONNECTIONS.contains(&cell.connections));
    spec.cells.iter_mut().for_each(|cell| cell.blocks = cell.blocks.min(ROUNDS));
    // The rungs are not kept. A cell of the map is the primary one in their place.
    spec.saturation = true;
    let shown_first = spec.cells.iter_mut().find(|cell| cell.connections == 100).expect("it was kept");
    shown_first.role = CellRole::Primary;
    let reproduce = "weir study tps --seed 3".to_owned();
    let asked = NewStudy { spec, fingerprint: Fingerprint::default(), missing_arms: Vec::new(), reproduce };
    let arms = [("epoll", FakeArm::costing(5.0)), ("uring", FakeArm::costing(4.0))];
    let mut launcher = FakeLauncher::new(3, FakeStates::Near, &arms);
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut |_: &Event| {} };
    run::start(&results.join("map"), &asked, callbacks).unwrap_or_else(|error| panic!("{error}"));
}

/// A dashboard with every kind of content.
struct Shown {
    _dashboard: Running,
    address: String,
    server: Server,
}

impl Shown {
    fn start(root: &Path) -> Self {
        let (results, records) = (root.join("results"), root.join("records"));
        for folder in [&results, &records, &results.join("broken")] {
            fs::create_dir(folder).expect("a folder can be made");
        }
        store_map(&results);
        fs::write(results.join("broken/study.db"), "a text").expect("a file can be written");
        let name = format!("@weir-it-pages-{}", std::process::id());
        let server = Server::start(&["--driver", "epoll", "--stats-socket", &name]);
        let (pid, record) = (server.process.pid().as_raw_nonzero().to_string(), records.join("one.json"));
        let observed = weir(&["observe", "--pid", &pid, "--duration", "100ms", "--record", shown(&record)]);
        assert_eq!(observed.code, Some(0), "{}", observed.stderr);
        let words = ["dashboard", shown(&results), "--listen", "127.0.0.1:0", "--lang", "en"];
        let watched = ["--stats", &name, "--records", shown(&records)];
        let dashboard = Running::weir(&[&words[..], &watched].concat());
        let line = dashboard.next_line().expect("it says where");
        let address = line.split_whitespace().next().unwrap_or_default().trim_end_matches('/').to_owned();
        Self { _dashboard: dashboard, address, server }
    }

    /// Its pages except the charts.
    fn paths(&self) -> Vec<String> {
        let paths = [
            "/",
            "/?find=nothing",
            "/study/map",
            "/study/broken",
            "/compare?a=map&b=map",
            "/compare?a=zz&b=map",
            "/compare",
            "/history",
            "/pool?study=tps",
            "/live",
            "/top",
            "/charts",
            "/charts?study=map",
            "/observe",
            "/observe?record=one.json",
            "/nowhere",
        ];
        paths.into_iter().map(str::to_owned).chain([self.process()]).collect()
    }

    /// The page of the server's process.
    fn process(&self) -> String {
        format!("/observe?pid={}", self.server.process.pid().as_raw_nonzero())
    }
}

/// A session that the dashboard did not start and that does not go on: it has stored all but the last block of a study
/// that ran. It exists until it is dropped.
struct Session {
    _store: Store,
    _lock: File,
}

impl Session {
    fn repeating(ran: &Path, path: &Path) -> Self {
        let before = Store::open_read_only(ran).expect("it ran");
        let header = before.study().expect("it was stored");
        let asked = NewStudy {
            spec: header.spec,
            fingerprint: header.fingerprint,
            missing_arms: header.missing_arms,
            reproduce: header.reproduce,
        };
        let mut store = Store::create(path, &asked).expect("a fresh folder takes a store");
        let lock = File::open(path).expect("the folder can be opened");
        flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        let number = store.begin_session().expect("a session begins");
        let blocks = before.blocks().expect("blocks");
        let (_, stored) = blocks.split_last().expect("it ran");
        for block in stored {
            store.append_block(number, block, 1_000_000_000).expect("a block is stored");
        }
        Self { _store: store, _lock: lock }
    }
}

/// Checks a page at every width, light and dark. Adds its defects.
struct Look<'l> {
    browser: &'l mut Browser,
    wrong: Vec<String>,
}

impl Look<'_> {
    /// Opens a page of the dashboard in each language. If it has such an element, it is in the intended state.
    fn in_languages(&mut self, address: &str, path: &str, selector: &str) {
        for language in LANGUAGES {
            self.browser.go(&format!("{address}{path}?lang={language}"));
            let is_there = format!("document.querySelector({}) !== null", json!(selector));
            let is_there = self.browser.eval(&is_there).as_bool();
            assert_eq!(is_there, Some(true), "{path} has {selector}: {}", self.browser.text());
            self.at(&format!("{path} in {language} with {selector}"), None);
        }
    }

    /// Checks the browser's page. A chart has to end above `frame_px`.
    fn at(&mut self, page: &str, frame_px: Option<u32>) {
        for scheme in ["light", "dark"] {
            self.browser.prefer(scheme);
            for width in WIDTHS_PX {
                self.browser.resize(width);
                let seen = self.browser.eval(MEASURED);
                let found = faults(&seen, width, scheme, frame_px);
                self.wrong.extend(found.into_iter().map(|fault| format!("{page} {scheme} {width}: {fault}")));
            }
        }
        // Colours decide nothing here.
        for width in [WIDTHS_PX[0], WIDTHS_PX[4]] {
            self.browser.resize(width);
            let seen = self.browser.eval(ACCESSIBLE);
            let found = seen.as_array().map_or(&[][..], Vec::as_slice);
            self.wrong.extend(found.iter().map(|fault| format!("{page} {width}: {fault}")));
        }
    }
}

/// The defects in the measurements.
fn faults(seen: &Value, width: u32, scheme: &str, frame_px: Option<u32>) -> Vec<String> {
    let number = |path: &str| seen.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let mut faults = Vec::new();
    let mut expect = |holds: bool, fault: String| faults.extend((!holds).then_some(fault));
    let wide = number("/width");
    expect(wide <= f64::from(width), format!("it is {wide} px wide"));
    for (kind, least) in CONTRAST_MIN {
        let contrast = number(&format!("/faintest/{kind}/contrast"));
        let text = &seen["faintest"][kind]["text"];
        expect(contrast >= least, format!("{text} has a contrast of {contrast:.2}"));
    }
    for (list, fault) in [("clashes", "labels overlap"), ("unnamed", "an element without a name")] {
        let found = seen[list].as_array().map_or(&[][..], Vec::as_slice);
        faults.extend(found.iter().map(|it| format!("{fault}: {it}")));
    }
    let mut expect = |holds: bool, fault: String| faults.extend((!holds).then_some(fault));
    let brightness = number("/brightness");
    expect((brightness > 0.5) == (scheme == "light"), format!("its brightness is {brightness:.2}"));
    if let Some(frame) = frame_px {
        let end = number("/figureEnd");
        expect(end > 0.0 && end <= f64::from(frame), format!("its chart ends at {end} of {frame} px"));
    }
    faults
}

#[test]
fn every_page_fits_its_window_and_can_be_read_and_every_chart_fits_its_frame() {
    let Some(mut browser) = Browser::start("pages") else { return };
    let root = folder("browser-pages");
    let shown = Shown::start(&root);
    let address = &shown.address;
    let mut look = Look { browser: &mut browser, wrong: Vec::new() };
    for language in LANGUAGES {
        for page in ChartPage::ALL {
            let path = format!("/{}?lang={language}", page.path());
            look.browser.go(&format!("{address}{path}"));
            look.at(&path, Some(page.frame_height_px()));
        }
        for path in shown.paths() {
            let mark = if path.contains('?') { '&' } else { '?' };
            let path = format!("{path}{mark}lang={language}");
            look.browser.go(&format!("{address}{path}"));
            look.at(&path, None);
        }
    }
    assert!(look.wrong.is_empty(), "{}", look.wrong.join("\n"));
    a_look_at_the_servers_replaces_what_changed_and_leaves_focus_where_it_is(&mut browser, address);
    a_look_at_a_process_replaces_what_changed_and_leaves_focus_where_it_is(&mut browser, &shown);
    assert_eq!(shown.server.terminate(), 0);
}

fn a_look_at_the_servers_replaces_what_changed_and_leaves_focus_where_it_is(
    browser: &mut Browser,
    address: &str,
) {
    browser.go(&format!("{address}/top?lang=en"));
    browser.eval("document.querySelector('#servers td a').focus()");
    browser.eval("document.querySelector('#servers tbody td:nth-child(4)').innerHTML = 'spoilt'");
    browser.until("epoll");
    let focused = browser.eval("document.activeElement.closest('#servers td') !== null");
    assert_eq!(focused.as_bool(), Some(true), "{}", browser.text());
}

fn a_look_at_a_process_replaces_what_changed_and_leaves_focus_where_it_is(
    browser: &mut Browser,
    shown: &Shown,
) {
    browser.go(&format!("{}{}&lang=en", shown.address, shown.process()));
    browser.until("serve echo");
    // A table that is wider than its page has focus, so that keys can move it.
    browser.eval("window.isKept = true; document.querySelector('#process [tabindex]').focus()");
    browser.eval("document.querySelector('#process tbody td').textContent = 'spoilt'");
    browser.eval(
        "new Promise(done => { const look = () => document.body.innerText.includes('spoilt') ? setTimeout(look, 50) \
         : done(true); look() })",
    );
    let is_kept = "window.isKept === true && document.activeElement.matches('#process [tabindex]')";
    assert_eq!(browser.eval(is_kept).as_bool(), Some(true), "{}", browser.text());
}

#[test]
fn every_page_that_acts_fits_its_window_and_can_be_read_in_each_of_its_states() {
    let Some(mut browser) = Browser::start("acts") else { return };
    let root = folder("browser-acts");
    let (mut dashboard, address) = browser::start(&root);
    let mut look = Look { browser: &mut browser, wrong: Vec::new() };
    let is_logged_in = "form[action^='/logout']";
    look.in_languages(&address, "/", "form[action^='/login']");
    for language in LANGUAGES {
        browser::give_token(look.browser, &address, language, "a guess");
        look.at(&format!("a wrong token in {language}"), None);
    }
    browser::give_token(look.browser, &address, "en", TOKEN);
    look.in_languages(&address, "/", &format!("#control:has({is_logged_in}) form[action^='/start']"));

    browser::begin_study(look.browser, &address, WRONG);
    browser::list_until(look.browser, &address, "It ended with exit code 2");
    look.in_languages(&address, "/", "#control pre");

    browser::start_study(look.browser, &address, "long.toml");
    look.in_languages(&address, "/", "form[action^='/stop']");
    look.in_languages(&address, "/live", "#live progress");
    look.in_languages(&address, "/live", "#stop form[action^='/stop']");
    browser::stop_study(look.browser, &address);
    look.in_languages(&address, "/", "#control p a[href^='/study/']");

    let (ran, results) = (root.join("ran"), root.join("results"));
    fs::create_dir(&ran).expect("a folder can be made");
    store_map(&ran);
    let session = Session::repeating(&ran.join("map"), &results.join("held"));
    let occupied =
        format!("#control:has({is_logged_in}):not(:has(form[action^='/start'], form[action^='/stop']))");
    look.in_languages(&address, "/", &occupied);
    // The page shows the previous study until the dashboard looks for another one.
    look.browser.go(&format!("{address}/live?lang=en"));
    look.browser.until("Provisional");
    look.in_languages(&address, "/live", "#live .card");
    assert!(look.wrong.is_empty(), "{}", look.wrong.join("\n"));
    drop(session);
    dashboard.signal(Signal::TERM);
    assert_eq!(dashboard.wait(PATIENCE), 0);
}

#[test]
fn a_report_and_its_guidance_fit_their_window_and_can_be_read_as_files() {
    let Some(mut browser) = Browser::start("files") else { return };
    let root = folder("browser-files");
    store_map(&root);
    let mut look = Look { browser: &mut browser, wrong: Vec::new() };
    for language in LANGUAGES {
        let pages = root.join(language);
        let wrote = weir(&["report", shown(&root.join("map")), "--lang", language, "--out", shown(&pages)]);
        assert_eq!(wrote.code, Some(0), "{}", wrote.stderr);
        for name in ["report.html", "guidance.html"] {
            look.browser.go(&format!("file://{}", shown(&pages.join(name))));
            look.at(&format!("{name} in {language}"), None);
        }
    }
    assert!(look.wrong.is_empty(), "{}", look.wrong.join("\n"));
}

#[test]
fn a_page_says_when_it_does_not_follow_any_more() {
    let Some(mut browser) = Browser::start("follows") else { return };
    let root = folder("browser-follows");
    let start = || {
        let words = ["dashboard", shown(&root), "--listen", "127.0.0.1:0", "--lang", "en"];
        let dashboard = Running::weir(&words);
        let line = dashboard.next_line().expect("it says where");
        (line.split_whitespace().next().unwrap_or_default().to_owned(), dashboard)
    };
    let words = "does not follow the study at the moment";
    let (url, dashboard) = start();
    browser.go(&format!("{url}live"));
    assert!(!browser.text().contains(words), "{}", browser.text());
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let ask = |path: &str, more: &str| {
        let mut stream = TcpStream::connect(host).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").expect("it takes a request");
        BufReader::new(stream)
    };
    until("the page", || {
        let mut metrics = String::new();
        ask("/metrics", "Connection: close\r\n").read_to_string(&mut metrics).expect("an answer in time");
        metrics.contains("weir_dashboard_watchers 1\n")
    });
    // As many others as may watch at this address; each receives an event, so it is known to watch.
    let watch = |_| {
        let mut lines = ask("/live/events", "");
        let mut line = String::new();
        while !line.starts_with("data: ") {
            line.clear();
            assert!(lines.read_line(&mut line).expect("an event in time") > 0, "the stream ended");
        }
        lines
    };
    let others: Vec<_> = (0..WATCHERS_ADDRESS_MAX).map(watch).collect();
    browser.until(words);
    drop((others, dashboard));

    let (url, mut dashboard) = start();
    browser.go(&format!("{url}live"));
    browser.until("No session works");
    assert!(!browser.text().contains(words), "{}", browser.text());
    dashboard.signal(Signal::TERM);
    assert_eq!(dashboard.wait(PATIENCE), 0);
    browser.until(words);
}
