//! The live view: events for a browser while a session stores blocks.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
};

use rusqlite::Connection;
use weir_dashboard::{WATCHERS_ADDRESS_MAX, WATCHERS_MAX};
use weir_lab::run_locks::RunLock;
use weir_store::{NewStudy, Store, StoredBlock};

use crate::{
    client::{Answer, Running},
    results::{folder, session_on, sql, study},
};

/// A session whose test decides when it stores its next block.
struct Session {
    store: Store,
    number: i64,
    blocks: std::vec::IntoIter<StoredBlock>,
    _lock: RunLock,
}

impl Session {
    /// Begins to repeat a study that ran.
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
        let lock = session_on(path);
        let number = store.begin_session().expect("a session begins");
        Self { store, number, blocks: before.blocks().expect("blocks").into_iter(), _lock: lock }
    }

    fn store_next(&mut self) {
        let block = self.blocks.next().expect("there is one more");
        self.store.append_block(self.number, &block, 1_000_000_000).expect("a block is stored");
    }
}

/// A browser that watches; its connection stays open.
struct Watcher(BufReader<TcpStream>);

impl Watcher {
    fn of(dashboard: &Running, query: &str) -> Self {
        Self::from(dashboard, 1, query)
    }

    /// A browser at this address of the machine.
    fn from(dashboard: &Running, last: u8, query: &str) -> Self {
        let mut stream = dashboard.connect_from(last);
        let head = format!("Host: {}\r\nConnection: close", dashboard.address);
        write!(stream, "GET /live/events{query} HTTP/1.1\r\n{head}\r\n\r\n").expect("it takes a request");
        Self(BufReader::new(stream))
    }

    /// Reads until an event holds these words.
    fn until(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let length = self.0.read_line(&mut line).expect("something in time");
            assert!(length > 0, "the connection ended before {words:?}");
            if line.starts_with("data: ") && line.contains(words) {
                return line;
            }
        }
    }

    /// The text until its stream ends.
    fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).expect("its end in time");
        rest
    }
}

#[test]
fn a_browser_is_told_of_each_block_of_the_estimate_and_of_the_end() {
    let ran = study(&folder("live-ran"), ("ran", "tps"), 10);
    let results = folder("live");
    let dashboard = Running::over(&results);
    assert!(dashboard.get("/live").body.contains("No session works"), "nothing runs yet");
    let mut session = Session::repeating(&ran, &results.join("one"));
    let mut watcher = Watcher::of(&dashboard, "?lang=en");
    let first = watcher.until("0 of ");
    assert!(first.contains("about ") && first.contains(" left"), "{first}");
    assert!(first.contains("Too few rounds or blocks") && first.contains("/study/one?lang=en"), "{first}");
    session.store_next();
    watcher.until("1 of ");
    while session.blocks.len() > 0 {
        session.store_next();
    }
    let last = watcher.until("server CPU per message, uring / epoll: 0.8");
    assert!(last.contains("Provisional"), "{last}");
    let mut korean = Watcher::of(&dashboard, "?lang=ko");
    assert!(korean.until("메시지당 서버 CPU").contains("잠정 수치"));
    let plain = dashboard.get("/live").body;
    assert!(plain.contains("Provisional"), "without a script too");
    assert!(!plain.contains("action=\"/stop"), "it was not started here");
    let label = "<figure role=\"img\" aria-label=\"Ratio with its 99 % interval after 6 rounds";
    assert!(plain.contains(label), "{plain}");
    let (_, map) = plain.split_once("<table class=\"map\"").expect("it has a map");
    assert!(map.contains(">0.8") && map.contains("noise is not excluded yet"), "{map}");
    drop(session);
    assert!(watcher.until("has ended").contains("/study/one"));
}

#[test]
fn a_study_that_breaks_its_reader_is_not_the_end_of_the_live_view() {
    let ran = study(&folder("live-ran-2"), ("ran", "quick"), 10);
    let results = folder("live-broken");
    let broken = Session::repeating(&ran, &results.join("broken"));
    crate::results::sql(&results.join("broken"), "UPDATE study SET spec = '{}'");
    let dashboard = Running::over(&results);
    let page = dashboard.get("/live");
    assert!(page.status == 200 && page.body.contains("damaged"), "{}", page.body);
    drop(broken);
    let _whole = Session::repeating(&ran, &results.join("whole"));
    Watcher::of(&dashboard, "").until("/study/whole");
}

#[test]
fn a_store_that_is_busy_for_a_moment_is_read_when_it_is_free_though_nothing_was_written() {
    let results = folder("live-busy");
    let path = study(&results, ("one", "quick"), 10);
    // In this mode a lock of one process keeps readers out, and releasing it writes nothing.
    sql(&path, "PRAGMA journal_mode = delete");
    let _session = session_on(&path);
    let other = Connection::open(path.join(weir_store::FILE_NAME)).expect("the store can be opened");
    other.execute_batch("BEGIN EXCLUSIVE").expect("nobody reads");
    let dashboard = Running::over(&results);
    let busy = dashboard.get("/live").body;
    assert!(busy.contains("in use by another process"), "{busy}");
    other.execute_batch("ROLLBACK").expect("a transaction is open");
    let read = dashboard.get("/live").body;
    assert!(read.contains("blocks are done"), "{read}");
}

#[test]
fn as_many_may_watch_as_is_stated_and_the_oldest_of_an_address_makes_room() {
    let results = folder("live-many");
    let dashboard = Running::over(&results);
    let watch = |last: u8| Watcher::from(&dashboard, last, "");
    let addresses = WATCHERS_MAX.div_ceil(WATCHERS_ADDRESS_MAX);
    let mut oldest = watch(2);
    oldest.until("No session works");
    let others = (0..addresses).flat_map(|index| vec![2 + index as u8; WATCHERS_ADDRESS_MAX]).skip(1);
    let mut watching: Vec<Watcher> = others.map(watch).collect();
    assert_eq!(watching.len() + 1, WATCHERS_MAX);
    watching.iter_mut().for_each(|watcher| drop(watcher.until("No session works")));
    let mut further = watch(2);
    further.until("No session works");
    assert!(oldest.rest().contains("event: replaced"), "it is told why its stream ends");
    assert!(dashboard.get("/metrics").body.contains(&format!("weir_dashboard_watchers {WATCHERS_MAX}")));
    let page = dashboard.get("/live?lang=ko");
    assert!(page.body.contains("hidden") && page.body.contains("받지 못하고"), "{}", page.body);
    let script = dashboard.get("/live.js");
    assert!(
        script.header("content-type").starts_with("text/javascript") && script.body.contains("EventSource")
    );
    assert!(page.header("content-security-policy").contains("script-src 'self'; connect-src 'self'"));
}

/// A head that a browser sends for an event stream is answered as one.
#[test]
fn events_are_a_stream_that_nothing_keeps() {
    let results = folder("live-head");
    let dashboard = Running::over(&results);
    let head = dashboard.ask(&["HEAD /live/events HTTP/1.1", &format!("Host: {}", dashboard.address)]);
    let Answer { status, body, .. } = &head;
    assert_eq!((*status, body.as_str()), (200, ""));
    assert_eq!(
        (head.header("content-type"), head.header("cache-control")),
        ("text/event-stream", "no-cache")
    );
}
