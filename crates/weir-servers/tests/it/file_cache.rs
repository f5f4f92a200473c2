//! Tests of the file cache: the same answers, nothing older than allowed, and no more files than the limit.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities},
};
use weir_engine::Driver;
use weir_proto::http1::Method;
use weir_servers::http::{FileCache, FileError, FileIo, HttpLogs, Refusal};

use crate::{
    client::{Client, Response, get},
    files::{Folder, get_with, large},
    rig::{Network, on_driver, on_every_driver},
};

/// Valid for the length of a test.
const FOR_EVER: FileCache = FileCache { files_max: 64, validity: Duration::from_secs(3600) };
/// Short enough for a test to wait for its end.
const SHORT: FileCache = FileCache { files_max: 64, validity: Duration::from_millis(20) };
/// Longest wait on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks until the answer differs from the old content, and returns it.
async fn until_changed(network: &Network, client: &mut Client, target: &str, old: &[u8]) -> Response {
    let begun = Instant::now();
    loop {
        let reply = client.ask(Method::Get, get(target)).await;
        if reply.status != 200 || reply.content != old {
            return reply;
        }
        assert!(begun.elapsed() < PATIENCE, "{target} is still the old one");
        if network.is_simulated() {
            weir_engine::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The responses to every request of a list, each twice, without their times.
async fn transcript(network: &Network) -> Vec<Response> {
    let first = network.connect().await.ask(Method::Get, get("/a.txt")).await;
    let tag = first.header("etag").expect("a tag").to_owned();
    let mut client = network.connect().await;
    let mut replies = Vec::new();
    for target in
        ["/a.txt", "/middle.bin", "/large.bin", "/empty", "/", "/sub%20folder", "/nothing", "/outside"]
    {
        let none_match = format!("If-None-Match: {tag}\r\n");
        let fields = [
            "",
            &none_match,
            "Range: bytes=2-4\r\n",
            "Range: bytes=-3\r\nUser-Agent: x\r\n",
            "if-match: \"x\"\r\n",
        ];
        for fields in fields.into_iter().chain([""]) {
            for method in [Method::Get, Method::Head] {
                let request = format!("{} {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n", method.name());
                replies.push(client.ask(method, request).await);
            }
        }
        let old = format!("GET {target} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        replies.push(client.ask(Method::Get, old).await);
    }
    let last = get_with("/middle.bin", "Connection: close\r\n");
    replies.push(client.ask(Method::Get, last).await);
    client.expect_end().await;
    for reply in &mut replies {
        reply.date.clear();
    }
    replies
}

#[test]
fn answers_do_not_tell_whether_a_file_was_kept() {
    let folder = Folder::new("kept-transcript");
    fs::write(folder.join("site/middle.bin"), &large()[..20_000]).expect("it is ours");
    for io in [FileIo::Read, FileIo::Sendfile] {
        let opened = on_every_driver(folder.config_with(io, FileCache::OFF), transcript);
        let kept = on_every_driver(folder.config_with(io, FOR_EVER), async |network| {
            let replies = transcript(network).await;
            assert_eq!(replies, transcript(network).await);
            replies
        });
        for ((driver, opened), (_, kept)) in opened.iter().zip(&kept) {
            for (one, other) in opened.iter().zip(kept) {
                assert_eq!(one, other, "{driver}");
            }
            assert_eq!(opened.len(), kept.len(), "{driver}");
        }
    }
}

#[test]
fn what_is_kept_is_not_opened_again_and_not_mixed_with_what_is_there_now() {
    let large = large();
    for io in [FileIo::Read, FileIo::Sendfile] {
        for driver in Driver::ALL {
            let folder = Folder::new("kept-opened");
            let config = folder.config_with(io, FOR_EVER);
            let served = on_driver(driver, config, HttpLogs::default(), async |network| {
                let mut client = network.connect().await;
                for _ in 0..2 {
                    for (target, content) in [("/a.txt", b"0123456789".as_slice()), ("/large.bin", &large)] {
                        let reply = client.ask(Method::Get, get(target)).await;
                        assert_eq!((reply.status, reply.content == content), (200, true), "{target}");
                    }
                    // Other files under the same names, and some without a file.
                    fs::write(folder.join("site/new"), b"something else").expect("it is ours");
                    fs::rename(folder.join("site/new"), folder.join("site/a.txt")).expect("it is ours");
                    let _ = fs::remove_file(folder.join("site/large.bin"));
                }
                client.write([get("/large.bin"), get("/a.txt")].concat().repeat(3)).await;
                for _ in 0..3 {
                    assert!(client.response(Method::Get).await.expect("a response").content == large);
                    assert_eq!(
                        client.response(Method::Get).await.expect("a response").content,
                        b"0123456789"
                    );
                }
                assert_eq!(network.http.files_kept(), (2, 1), "{driver}");
            });
            let Some(served) = served else { continue };
            let counts = served.http.counters().files();
            assert_eq!((counts.hits, counts.misses, counts.revalidations), (8, 2, 0), "{driver}");
            assert_eq!(served.http.counters().refusals(), [], "{driver}");
        }
    }
}

/// Changes a folder, and returns the expected answer to `/a.txt` after that.
type Change = fn(&Path) -> (u16, &'static [u8]);

/// Changes to a file, or to its path.
const CHANGES: [(&str, Change); 8] = [
    ("replaced", |site| {
        fs::write(site.join("new"), b"9876543210").expect("it is ours");
        fs::rename(site.join("new"), site.join("a.txt")).expect("it is ours");
        (200, b"9876543210")
    }),
    ("overwritten without a trace in its times", |site| {
        let modified = fs::metadata(site.join("a.txt")).and_then(|found| found.modified()).expect("a time");
        fs::write(site.join("a.txt"), b"9876543210").expect("it is ours");
        fs::File::open(site.join("a.txt")).and_then(|file| file.set_modified(modified)).expect("it is ours");
        (200, b"9876543210")
    }),
    ("truncated", |site| {
        let file = fs::OpenOptions::new().write(true).open(site.join("a.txt")).expect("it is ours");
        file.set_len(3).expect("it is ours");
        (200, b"012")
    }),
    ("removed", |site| {
        fs::remove_file(site.join("a.txt")).expect("it is ours");
        (404, b"404 Not Found: ")
    }),
    ("swapped for a link out of the root", |site| {
        fs::remove_file(site.join("a.txt")).expect("it is ours");
        symlink("../secret.txt", site.join("a.txt")).expect("it is ours");
        (403, b"403 Forbidden: ")
    }),
    ("swapped for a link within the root", |site| {
        fs::remove_file(site.join("a.txt")).expect("it is ours");
        symlink("index.html", site.join("a.txt")).expect("it is ours");
        (200, b"<p>root</p>")
    }),
    ("swapped for a folder", |site| {
        fs::remove_file(site.join("a.txt")).expect("it is ours");
        fs::create_dir(site.join("a.txt")).expect("it is ours");
        (301, b"301 Moved Permanently: ")
    }),
    ("not to be read any more", |site| {
        fs::set_permissions(site.join("a.txt"), fs::Permissions::from_mode(0o000)).expect("it is ours");
        (403, b"403 Forbidden: ")
    }),
];

/// While it exists, this thread, and those it starts, may not read files without permission, even if the test runs as
/// root.
struct Unprivileged(CapabilitySets);

impl Unprivileged {
    fn new() -> Self {
        let before = capabilities(None).expect("every thread has some or none");
        let mut sets = before;
        sets.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, sets).expect("they may be dropped");
        Self(before)
    }
}

impl Drop for Unprivileged {
    fn drop(&mut self) {
        set_capabilities(None, self.0).expect("they are still permitted");
    }
}

#[test]
fn whatever_happens_to_a_file_is_seen_when_its_time_is_over() {
    let _unprivileged = Unprivileged::new();
    for (what, change) in CHANGES {
        for driver in Driver::ALL {
            let folder = Folder::new("kept-changed");
            let config = folder.config_with(FileIo::default(), SHORT);
            let served = on_driver(driver, config, HttpLogs::default(), async |network| {
                let mut client = network.connect().await;
                assert_eq!(client.ask(Method::Get, get("/a.txt")).await.content, b"0123456789");
                let (status, content) = change(&folder.join("site"));
                let reply = until_changed(network, &mut client, "/a.txt", b"0123456789").await;
                assert_eq!(reply.status, status, "{driver}, {what}");
                let starts =
                    if status == 200 { reply.content == content } else { reply.content.starts_with(content) };
                assert!(starts, "{driver}, {what}: {}", String::from_utf8_lossy(&reply.content));
            });
            let Some(served) = served else { continue };
            assert!(served.http.counters().files().revalidations > 0, "{driver}, {what}");
        }
    }
}

#[test]
fn an_open_file_that_is_replaced_or_removed_is_seen_when_its_time_is_over() {
    let (old, new) = (large(), vec![b'x'; 300_000]);
    for io in [FileIo::Read, FileIo::Sendfile] {
        for driver in Driver::ALL {
            let folder = Folder::new("kept-open");
            on_driver(driver, folder.config_with(io, SHORT), HttpLogs::default(), async |network| {
                let mut client = network.connect().await;
                assert!(client.ask(Method::Get, get("/large.bin")).await.content == old);
                fs::write(folder.join("site/new"), &new).expect("it is ours");
                fs::rename(folder.join("site/new"), folder.join("site/large.bin")).expect("it is ours");
                let reply = until_changed(network, &mut client, "/large.bin", &old).await;
                assert!(
                    reply.status == 200 && reply.content == new,
                    "{driver}: neither the old nor the new one"
                );
                fs::remove_file(folder.join("site/large.bin")).expect("it is ours");
                assert_eq!(
                    until_changed(network, &mut client, "/large.bin", &new).await.status,
                    404,
                    "{driver}"
                );
            });
        }
    }
}

#[test]
fn a_change_is_seen_within_a_second_by_default() {
    let folder = Folder::new("kept-second");
    let config = folder.config_with(FileIo::default(), FileCache::default());
    on_driver(Driver::Sim, config, HttpLogs::default(), async |network| {
        let mut client = network.connect().await;
        client.ask(Method::Get, get("/a.txt")).await;
        let changed = weir_engine::time::now();
        fs::write(folder.join("site/a.txt"), b"new").expect("it is ours");
        assert_eq!(client.ask(Method::Get, get("/a.txt")).await.content, b"0123456789", "it is kept");
        assert_eq!(until_changed(network, &mut client, "/a.txt", b"0123456789").await.content, b"new");
        let seen = weir_engine::time::now().since(changed);
        // The request, its answer and a step of the loop take some virtual time too.
        assert!((900..1020).contains(&seen.as_millis()), "{seen:?}");
    });
}

#[test]
fn a_kept_file_that_became_shorter_ends_one_connection_and_is_looked_at_anew() {
    let old = large();
    for io in [FileIo::Read, FileIo::Sendfile] {
        for driver in Driver::ALL {
            let folder = Folder::new("kept-shorter");
            let served =
                on_driver(driver, folder.config_with(io, FOR_EVER), HttpLogs::default(), async |network| {
                    let mut client = network.connect().await;
                    assert!(client.ask(Method::Get, get("/large.bin")).await.content == old);
                    let path = folder.join("site/large.bin");
                    let file = fs::OpenOptions::new().write(true).open(path).expect("it is ours");
                    file.set_len(100_000).expect("it is ours");
                    client.write(get("/large.bin")).await;
                    let outcome = client.response(Method::Get).await;
                    assert!(outcome.is_err(), "{driver}: a response that looks complete");
                    network.until(|network| !network.http.counters().refusals().is_empty()).await;
                    let reply = network.connect().await.ask(Method::Get, get("/large.bin")).await;
                    assert!(reply.status == 200 && reply.content == old[..100_000], "{driver}");
                });
            let Some(served) = served else { continue };
            let shrunk = (Refusal::File(FileError::Shrunk), 1);
            assert_eq!(served.http.counters().refusals(), [shrunk], "{driver}, {io:?}");
        }
    }
}

#[test]
fn no_more_is_kept_than_there_is_room_for() {
    let folder = Folder::new("kept-room");
    for number in 0..10 {
        fs::write(folder.join(format!("site/short{number}")), b"short").expect("it is ours");
        fs::write(folder.join(format!("site/long{number}")), vec![b'x'; 40_000]).expect("it is ours");
    }
    for driver in Driver::ALL {
        let cache = FileCache { files_max: 4, ..FOR_EVER };
        let config = folder.config_with(FileIo::default(), cache);
        let served = on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            for round in 0..3 {
                for number in 0..10 {
                    for (name, length) in [("short", 5), ("long", 40_000)] {
                        let reply = client.ask(Method::Get, get(&format!("/{name}{number}"))).await;
                        assert_eq!((reply.status, reply.content.len()), (200, length), "round {round}");
                        let (files, open) = network.http.files_kept();
                        assert!(files <= 4 && open <= files, "{driver}: {files} kept, {open} open");
                    }
                }
            }
            assert_eq!(network.http.files_kept().0, 4, "{driver}");
        });
        let Some(served) = served else { continue };
        let counts = served.http.counters().files();
        assert!(counts.evictions >= counts.misses - 4 && counts.misses >= 20, "{driver}: {counts:?}");
    }
}

#[test]
fn what_nobody_asks_for_any_more_is_closed() {
    for driver in Driver::ALL {
        let folder = Folder::new("kept-idle");
        let config = folder.config_with(FileIo::default(), SHORT);
        on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            for target in ["/a.txt", "/large.bin"] {
                assert_eq!(client.ask(Method::Get, get(target)).await.status, 200);
            }
            if driver == Driver::Blocking {
                // No task can run beside a connection, so its cache ends with it.
                drop(client);
            }
            network.until(|network| network.http.files_kept() == (0, 0)).await;
        });
    }
}

/// Descriptors belong to the whole process: this test runs in a separate one.
#[test]
fn descriptors_of_kept_files_are_given_up_when_they_are_needed() {
    const OWN_PROCESS: &str = "WEIR_TEST_OWN_PROCESS";
    if std::env::var_os(OWN_PROCESS).is_none() {
        let name = "file_cache::descriptors_of_kept_files_are_given_up_when_they_are_needed";
        let mut own = std::process::Command::new(std::env::current_exe().expect("it runs"));
        let status = own.args(["--exact", name, "--nocapture"]).env(OWN_PROCESS, "1").status();
        assert!(status.expect("it can be started").success(), "its output is above");
        return;
    }
    let folder = Folder::new("kept-descriptors");
    for number in 0..9 {
        fs::write(folder.join(format!("site/long{number}")), vec![b'x'; 40_000]).expect("it is ours");
    }
    let limit = Rlimit { current: Some(256), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).expect("a limit may be lowered");
    for driver in Driver::ALL {
        let config = folder.config_with(FileIo::default(), FOR_EVER);
        let served = on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            for number in 0..8 {
                assert_eq!(client.ask(Method::Get, get(&format!("/long{number}"))).await.status, 200);
            }
            assert_eq!(network.http.files_kept(), (8, 8), "{driver}");
            let mut taken = Vec::new();
            while let Ok(file) = fs::File::open("/dev/null") {
                taken.push(file);
            }
            let reply = client.ask(Method::Get, get("/long8")).await;
            assert_eq!((reply.status, reply.content.len()), (200, 40_000), "{driver}");
            assert_eq!(network.http.files_kept(), (1, 1), "{driver}");
            // Cached or not, the request is still answered when there is nothing left to evict.
            while let Ok(file) = fs::File::open("/dev/null") {
                taken.push(file);
            }
            assert_eq!(client.ask(Method::Get, get("/long8")).await.status, 200, "{driver}");
            drop(taken);
        });
        let Some(served) = served else { continue };
        assert_eq!(served.http.counters().files().evictions, 8, "{driver}");
        assert_eq!(served.http.counters().refusals(), [], "{driver}");
    }
}

#[test]
fn with_nothing_kept_every_request_opens_its_file() {
    for driver in Driver::ALL {
        let folder = Folder::new("kept-off");
        let config = folder.config_with(FileIo::default(), FileCache::OFF);
        let served = on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            for content in [b"first".as_slice(), b"second", b"third one"] {
                fs::write(folder.join("site/a.txt"), content).expect("it is ours");
                assert_eq!(client.ask(Method::Get, get("/a.txt")).await.content, content, "{driver}");
            }
            assert_eq!(network.http.files_kept(), (0, 0));
        });
        let Some(served) = served else { continue };
        assert_eq!(served.http.counters().files(), Default::default(), "{driver}");
    }
}
