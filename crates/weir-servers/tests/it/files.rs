//! Tests of files below a root, on every driver and with both ways to send them.

use std::{
    fs,
    ops::Deref,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use weir_engine::Driver;
use weir_proto::http1::Method;
use weir_servers::http::{Body, FileCache, FileError, FileIo, HttpConfig, HttpLogs, Refusal, Root};

use crate::{
    client::{Response, get},
    random::{self, Random},
    rig::{on_driver, on_every_driver},
};

const LARGE_BYTES: usize = 700_001;
/// 1994-11-06 08:49:37.
const MODIFIED_SECONDS: u64 = 784_111_777;
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// A test's folder, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    /// A site, and beside it a file that must not be visible.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-servers-{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).expect("what a killed run left can be removed");
        }
        fs::create_dir_all(path.join("site/sub folder")).expect("a folder can be made");
        let put = |name: &str, content: &[u8]| {
            fs::write(path.join(name), content).expect("a file can be written");
            let file = fs::File::open(path.join(name)).expect("it was written");
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_SECONDS);
            file.set_modified(modified).expect("it is ours");
        };
        put("secret.txt", b"nobody may see this");
        put("site/index.html", b"<p>root</p>");
        put("site/sub folder/index.html", b"<p>sub</p>");
        put("site/a.txt", b"0123456789");
        put("site/caf\u{e9}.css", b"p{}");
        put("site/empty", b"");
        put("site/large.bin", &large());
        fs::create_dir(path.join("site/bare")).expect("a folder can be made");
        for (target, link) in [
            ("a.txt", "inside"),
            ("../secret.txt", "outside"),
            ("/etc/passwd", "absolute"),
            ("..", "parent"),
            ("loop", "loop"),
            ("nothing", "dangling"),
        ] {
            symlink(target, path.join("site").join(link)).expect("a link can be made");
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, path.join("site/pipe"), 0o600.into())
            .expect("a pipe can be made");
        Self(path)
    }

    fn config(&self, io: FileIo) -> HttpConfig {
        self.config_with(io, FileCache::default())
    }

    pub fn config_with(&self, io: FileIo, cache: FileCache) -> HttpConfig {
        let root = Root::open(&self.0.join("site")).expect("the folder is there");
        HttpConfig::new(Body::Files { root, io, cache })
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            println!("left: {}: {error}", self.0.display());
        }
    }
}

pub fn large() -> Vec<u8> {
    random::bytes(&mut Random::seeded(7), LARGE_BYTES)
}

pub fn get_with(target: &str, fields: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n")
}

#[test]
fn files_folders_and_links_inside_are_served_in_both_ways() {
    let folder = Folder::new("served");
    let large = large();
    for io in [FileIo::Read, FileIo::Sendfile] {
        on_every_driver(folder.config(io), async |network| {
            let mut client = network.connect().await;
            let cases: [(&str, &str, &[u8]); 8] = [
                ("/", "text/html; charset=utf-8", b"<p>root</p>"),
                ("/index.html", "text/html; charset=utf-8", b"<p>root</p>"),
                ("/sub%20folder/", "text/html; charset=utf-8", b"<p>sub</p>"),
                ("/./a.txt?query", "text/plain; charset=utf-8", b"0123456789"),
                ("http://x//a.txt", "text/plain; charset=utf-8", b"0123456789"),
                ("/caf%C3%A9.css", "text/css; charset=utf-8", b"p{}"),
                ("/inside", "application/octet-stream", b"0123456789"),
                ("/large.bin", "application/octet-stream", &large),
            ];
            for (target, media_type, content) in cases {
                let reply = client.ask(Method::Get, get(target)).await;
                assert_eq!(reply.status, 200, "{target}");
                assert_eq!(reply.header("content-type"), Some(media_type), "{target}");
                assert_eq!(reply.header("last-modified"), Some(MODIFIED), "{target}");
                assert!(reply.content == content, "{target}: {} bytes", reply.content.len());
                let head = format!("HEAD {target} HTTP/1.1\r\nHost: x\r\n\r\n");
                let only = client.ask(Method::Head, head).await;
                assert_eq!(
                    Response { content: Vec::new(), date: only.date.clone(), ..reply },
                    only,
                    "{target}"
                );
            }
            let empty = client.ask(Method::Get, get("/empty")).await;
            assert_eq!((empty.status, empty.header("content-length")), (200, Some("0")));
            let post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx";
            let refused = client.ask(Method::Post, post).await;
            assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
        });
    }
}

#[test]
fn pipelined_files_come_whole_and_in_order() {
    let folder = Folder::new("pipelined");
    let large = large();
    for io in [FileIo::Read, FileIo::Sendfile] {
        on_every_driver(folder.config(io), async |network| {
            let mut client = network.connect().await;
            let three = [get("/large.bin"), get("/a.txt"), get("/nothing")].concat();
            client.write(three.repeat(5)).await;
            for _ in 0..5 {
                assert!(client.response(Method::Get).await.expect("a response").content == large);
                assert_eq!(client.response(Method::Get).await.expect("a response").content, b"0123456789");
                assert_eq!(client.response(Method::Get).await.expect("a response").status, 404);
            }
        });
    }
}

#[test]
fn nothing_outside_the_root_is_served_and_what_is_missing_ends_nothing() {
    let folder = Folder::new("escape");
    let cases: [(&str, u16); 19] = [
        ("/nothing", 404),
        ("/dangling", 404),
        ("/a.txt/", 404),
        ("/a.txt/b", 404),
        ("/bare/", 404),
        ("/pipe", 404),
        ("/outside", 403),
        ("/absolute", 403),
        ("/parent/secret.txt", 403),
        ("/parent", 403),
        ("/loop", 403),
        ("/../secret.txt", 400),
        ("/%2e%2e/secret.txt", 400),
        ("/sub%20folder/../../secret.txt", 400),
        ("/..%2fsecret.txt", 400),
        ("/a.txt%00.html", 400),
        ("/%zz", 400),
        ("/a/b/c/d/e", 404),
        ("/proc/self/root/etc/passwd", 404),
    ];
    for driver in Driver::ALL {
        let config = folder.config(FileIo::default());
        let served = on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            for (target, status) in cases {
                let reply = client.ask(Method::Get, get(target)).await;
                assert_eq!(reply.status, status, "{target}");
                let text = String::from_utf8_lossy(&reply.content).into_owned();
                assert!(
                    text.starts_with(&format!("{status} ")) && !text.contains("secret"),
                    "{target}: {text}"
                );
                assert_eq!(reply.header("connection"), None, "{target}");
            }
            // The index of a folder is found only under its own name.
            for (target, location) in [
                ("/sub%20folder", "/sub%20folder/"),
                ("//bare", "/bare/"),
                ("/bare?x=1&y=%2f//", "/bare/?x=1&y=%2f//"),
                ("/bare?", "/bare/?"),
            ] {
                let reply = client.ask(Method::Get, get(target)).await;
                assert_eq!((reply.status, reply.header("location")), (301, Some(location)));
            }
            assert_eq!(client.ask(Method::Get, get("/a.txt")).await.content, b"0123456789");
        });
        let Some(served) = served else { continue };
        let refusals = served.http.counters().refusals();
        assert!(refusals.contains(&(Refusal::File(FileError::Missing), 8)), "{refusals:?}");
        assert!(refusals.contains(&(Refusal::File(FileError::LinkOutside), 4)), "{refusals:?}");
        assert!(refusals.contains(&(Refusal::File(FileError::LinkRefused), 1)), "{refusals:?}");
    }
}

#[test]
fn a_link_that_is_not_followed_is_called_one() {
    let folder = Folder::new("links");
    on_every_driver(folder.config(FileIo::default()), async |network| {
        let mut client = network.connect().await;
        for (target, sentence) in [
            ("/outside", "a symbolic link that is absolute or leads out of the root"),
            ("/absolute", "a symbolic link that is absolute or leads out of the root"),
            ("/loop", "a symbolic link that leads in a circle and is not followed"),
        ] {
            let reply = client.ask(Method::Get, get(target)).await;
            let text = String::from_utf8(reply.content).expect("text");
            assert_eq!(text, format!("403 Forbidden: {sentence}\n"), "{target}");
        }
    });
}

#[test]
fn names_that_begin_with_a_dot_are_hidden_unless_asked_for() {
    let folder = Folder::new("dotfiles");
    for folder in [folder.join("site/.git"), folder.join("site/.well-known/.git")] {
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("config"), "secret").expect("a file can be written");
    }
    fs::write(folder.join("site/.htaccess"), "secret").expect("a file can be written");
    fs::write(folder.join("site/.well-known/security.txt"), "Contact").expect("a file can be written");
    let hidden =
        ["/.htaccess", "/%2ehtaccess", "/.git/config", "/.git", "/.nothing", "/.well-known/.git/config"];
    let root = Root::open(&folder.join("site")).expect("the folder is there");
    for (root, status) in [(root.clone(), 404), (root.with_dotfiles(), 200)] {
        on_every_driver(
            HttpConfig::new(Body::Files { root, io: FileIo::default(), cache: FileCache::default() }),
            async |network| {
                let mut client = network.connect().await;
                for target in hidden.into_iter().filter(|target| status == 404 || target.contains("config")) {
                    assert_eq!(client.ask(Method::Get, get(target)).await.status, status, "{target}");
                }
                let public = client.ask(Method::Get, get("/.well-known/security.txt")).await;
                assert_eq!((public.status, &public.content[..]), (200, &b"Contact"[..]));
            },
        );
    }
}

#[test]
fn what_a_client_has_already_is_not_sent_again() {
    let folder = Folder::new("conditional");
    on_every_driver(folder.config(FileIo::default()), async |network| {
        let mut client = network.connect().await;
        let first = client.ask(Method::Get, get("/a.txt")).await;
        let tag = first.header("etag").expect("a tag").to_owned();
        let cases = [
            (format!("If-None-Match: {tag}\r\n"), 304),
            (format!("If-None-Match: \"x\", W/{tag}\r\n"), 304),
            ("If-None-Match: \"x\"\r\n".into(), 200),
            (format!("If-Modified-Since: {MODIFIED}\r\n"), 304),
            ("If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n".into(), 200),
            // The day of the week is not compared.
            ("If-Modified-Since: Fri, 06 Nov 1994 08:49:37 GMT\r\n".into(), 304),
            ("If-Match: \"x\"\r\n".into(), 412),
            (format!("If-Match: {tag}\r\n"), 200),
        ];
        for (fields, status) in cases {
            let reply = client.ask(Method::Get, get_with("/a.txt", &fields)).await;
            assert_eq!(reply.status, status, "{fields}");
            assert_eq!(reply.header("etag"), Some(tag.as_str()), "{fields}");
            assert_eq!(reply.content.len(), if status == 200 { 10 } else { 0 }, "{fields}");
        }
    });
}

#[test]
fn a_single_range_is_cut_out_of_the_file() {
    let folder = Folder::new("range");
    let large = large();
    for io in [FileIo::Read, FileIo::Sendfile] {
        on_every_driver(folder.config(io), async |network| {
            let mut client = network.connect().await;
            for (range, first, last) in [
                ("0-0", 0, 0),
                ("1000-300999", 1000, 300_999),
                ("700000-", 700_000, 700_000),
                ("-400000", 300_001, 700_000),
                ("5-9999999", 5, 700_000),
            ] {
                let reply = client
                    .ask(Method::Get, get_with("/large.bin", &format!("Range: bytes={range}\r\n")))
                    .await;
                assert_eq!(reply.status, 206, "{range}");
                let expected = format!("bytes {first}-{last}/{LARGE_BYTES}");
                assert_eq!(reply.header("content-range"), Some(expected.as_str()));
                assert!(reply.content == large[first..=last], "{range}");
            }
            let beyond = client.ask(Method::Get, get_with("/a.txt", "Range: bytes=10-\r\n")).await;
            assert_eq!((beyond.status, beyond.header("content-range")), (416, Some("bytes */10")));
            for ignored in ["Range: bytes=0-1,3-4\r\n", "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n"] {
                let reply = client.ask(Method::Get, get_with("/a.txt", ignored)).await;
                assert_eq!((reply.status, reply.content.len()), (200, 10), "{ignored}");
            }
        });
    }
}

#[test]
fn a_root_is_a_folder_that_is_there() {
    let folder = Folder::new("root");
    assert!(Root::open(&folder.join("nothing")).is_err());
    assert!(Root::open(&folder.join("site/a.txt")).is_err());
    assert!(Root::open(&folder.join("site")).is_ok());
}

#[test]
fn lengths_beyond_32_bits_are_whole() {
    const HUGE_BYTES: u64 = (5 << 30) + 3;
    let folder = Folder::new("huge");
    let file = fs::File::create(folder.join("site/huge.bin")).expect("a file can be made");
    file.set_len(HUGE_BYTES).expect("a sparse file takes no room");
    std::os::unix::fs::FileExt::write_all_at(&file, b"end", HUGE_BYTES - 3).expect("it is ours");
    for io in [FileIo::Read, FileIo::Sendfile] {
        on_every_driver(folder.config(io), async |network| {
            let mut client = network.connect().await;
            let head = "HEAD /huge.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n";
            let whole = client.ask(Method::Head, head).await;
            let length = whole.header("content-length").map(str::to_owned);
            assert_eq!((whole.status, length), (200, Some(HUGE_BYTES.to_string())));
            let range = format!("Range: bytes={}-\r\n", HUGE_BYTES - 300_003);
            let part = client.ask(Method::Get, get_with("/huge.bin", &range)).await;
            let expected = format!("bytes {}-{}/{HUGE_BYTES}", HUGE_BYTES - 300_003, HUGE_BYTES - 1);
            assert_eq!((part.status, part.header("content-range")), (206, Some(expected.as_str())));
            assert!(part.content[..300_000].iter().all(|byte| *byte == 0) && part.content.ends_with(b"end"));
        });
    }
}

#[test]
fn an_empty_file_a_socket_and_a_head_with_conditions_are_answered_by_the_book() {
    let folder = Folder::new("corners");
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("site/socket")).expect("a name");
    on_every_driver(folder.config(FileIo::default()), async |network| {
        let mut client = network.connect().await;
        let first = client.ask(Method::Get, get_with("/empty", "Range: bytes=0-\r\n")).await;
        assert_eq!((first.status, first.header("content-range")), (416, Some("bytes */0")));
        let last = client.ask(Method::Get, get_with("/empty", "Range: bytes=-5\r\n")).await;
        assert_eq!((last.status, last.header("content-length")), (200, Some("0")));
        assert_eq!(client.ask(Method::Get, get("/socket")).await.status, 404);
        for (fields, status) in [
            ("If-None-Match: *\r\n", 304),
            ("Range: bytes=0-1\r\n", 200),
            ("Range: bytes=99-\r\n", 200),
            ("If-Match: \"x\"\r\n", 412),
        ] {
            let head = format!("HEAD /a.txt HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
            assert_eq!(client.ask(Method::Head, head).await.status, status, "{fields}");
        }
        // The content of a GET is read and discarded, so the next request is found.
        let with_content = get_with("/a.txt", "Content-Length: 5\r\nExpect: 100-continue\r\n");
        client.write(with_content).await;
        client.expect_interim().await;
        client.write(["GET /", &get("/a.txt")].concat()).await;
        for _ in 0..2 {
            assert_eq!(client.response(Method::Get).await.expect("a response").content, b"0123456789");
        }
    });
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_connection_and_is_counted() {
    const LENGTH: u64 = 64 << 20;
    for io in [FileIo::Read, FileIo::Sendfile] {
        for driver in Driver::ALL.into_iter().filter(|driver| *driver != Driver::Sim) {
            let folder = Folder::new("shrinks");
            let file = fs::File::create(folder.join("site/shrinks")).expect("a file can be made");
            file.set_len(LENGTH).expect("a sparse file takes no room");
            let served = on_driver(driver, folder.config(io), HttpLogs::default(), async |network| {
                let mut client = network.connect_narrow().await;
                client.write(get("/shrinks")).await;
                client.take_in(1 << 20).await;
                file.set_len(1000).expect("it is ours");
                let (bytes, _) = client.rest().await;
                assert!((bytes.len() as u64) < LENGTH);
                let mut other = network.connect().await;
                assert_eq!(other.ask(Method::Get, get("/a.txt")).await.content, b"0123456789");
            });
            let Some(served) = served else { continue };
            let shrunk = (Refusal::File(FileError::Shrunk), 1);
            assert_eq!(served.http.counters().refusals(), [shrunk], "{driver}, {io:?}");
        }
    }
}

#[test]
fn a_drain_sends_a_file_to_its_end() {
    const LENGTH: u64 = 24 << 20;
    for io in [FileIo::Read, FileIo::Sendfile] {
        let folder = Folder::new("drained");
        let file = fs::File::create(folder.join("site/long")).expect("a file can be made");
        file.set_len(LENGTH).expect("a sparse file takes no room");
        on_every_driver(folder.config(io), async |network| {
            if network.is_simulated() {
                return;
            }
            let mut half_closed = network.connect_narrow().await;
            half_closed.write(get("/long")).await;
            half_closed.shutdown().await;
            half_closed.take_in(1).await;
            let mut client = network.connect_narrow().await;
            client.write([get("/long"), get("/a.txt")].concat()).await;
            client.take_in(1).await;
            network.drain();
            for client in [&mut client, &mut half_closed] {
                let reply = client.response(Method::Get).await.expect("a response");
                assert_eq!(reply.content.len() as u64, LENGTH);
            }
            assert_eq!(client.response(Method::Get).await.expect("a response").content, b"0123456789");
            client.expect_end().await;
            half_closed.expect_end().await;
        });
    }
}
