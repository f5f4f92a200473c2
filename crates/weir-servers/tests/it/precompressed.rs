//! Tests of compressed files beside the original: which client gets which of them, and the reply's fields.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use weir_proto::http1::Method;
use weir_servers::http::{Body, FileCache, FileIo, HttpConfig, Root};

use crate::{
    client::{Client, Response},
    files::Folder,
    rig::on_every_driver,
};

const NEW: u64 = 784_111_777;
const OLD: u64 = NEW - 1;
const NEWER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn put(folder: &Path, name: &str, content: &str, modified: u64) {
    let path = folder.join("site").join(name);
    fs::write(&path, content).expect("a file can be written");
    let file = fs::File::options().write(true).open(path).expect("it was written");
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(modified)).expect("it is ours");
}

/// A site, with and without a file cache.
fn configs(folder: &Folder) -> [HttpConfig; 2] {
    [0, 100].map(|files_max| {
        let root = Root::open(&folder.join("site")).expect("the folder is there").with_precompressed();
        let cache = FileCache { files_max, ..FileCache::default() };
        HttpConfig::new(Body::Files { root, io: FileIo::default(), cache })
    })
}

async fn ask(client: &mut Client, method: Method, target: &str, fields: &str) -> Response {
    client.ask(method, format!("{} {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n", method.name())).await
}

#[test]
fn the_client_decides_which_form_it_gets() {
    let folder = Folder::new("negotiated");
    put(&folder, "s.css", "plain", NEW);
    put(&folder, "s.css.br", "brotli", NEW + 1);
    put(&folder, "s.css.zst", "zstandard", NEW + 1);
    put(&folder, "s.css.gz", "gzip", NEW + 1);
    for config in configs(&folder) {
        on_every_driver(config, async |network| {
            let mut client = network.connect().await;
            // Twice, so that the second answer comes from the cache.
            for (accepted, coding, content) in [
                ("gzip, deflate, br, zstd", Some("br"), "brotli"),
                ("gzip;q=1.0, br;q=0.9, *;q=0", Some("gzip"), "gzip"),
                ("zstd", Some("zstd"), "zstandard"),
                ("*", Some("br"), "brotli"),
                ("deflate", None, "plain"),
                ("br;q=0", None, "plain"),
                ("identity, br;q=0.5", None, "plain"),
            ]
            .repeat(2)
            {
                let fields = format!("Accept-Encoding: {accepted}\r\n");
                let reply = ask(&mut client, Method::Get, "/s.css", &fields).await;
                assert_eq!((reply.status, reply.header("content-encoding")), (200, coding), "{accepted}");
                assert_eq!(String::from_utf8_lossy(&reply.content), content, "{accepted}");
                assert_eq!(reply.header("content-type"), Some("text/css; charset=utf-8"), "{accepted}");
                assert_eq!(reply.header("vary"), Some("Accept-Encoding"), "{accepted}");
                let is_newer = reply.header("last-modified") == Some(NEWER);
                assert_eq!(is_newer, coding.is_some(), "{accepted}");
                let head = ask(&mut client, Method::Head, "/s.css", &fields).await;
                let same = Response { content: Vec::new(), date: head.date.clone(), ..reply };
                assert_eq!(same, head, "{accepted}");
            }
            assert_eq!(ask(&mut client, Method::Get, "/s.css", "").await.content, b"plain");
        });
    }
}

#[test]
fn only_a_file_that_is_no_older_is_sent_instead_of_one_that_is_there() {
    let folder = Folder::new("older");
    let site = folder.join("site");
    put(&folder, "stale.js", "plain", NEW);
    put(&folder, "stale.js.br", "brotli", OLD);
    put(&folder, "stale.js.gz", "gzip", NEW);
    put(&folder, "odd.js", "plain", NEW);
    fs::create_dir(site.join("odd.js.br")).expect("a folder can be made");
    std::os::unix::fs::symlink("../secret.txt", site.join("odd.js.gz")).expect("a link can be made");
    put(&folder, "gone.js.br", "brotli", NEW);
    put(&folder, "index.html.gz", "gzip", NEW);
    for config in configs(&folder) {
        on_every_driver(config, async |network| {
            let mut client = network.connect().await;
            let fields = "Accept-Encoding: br, gzip\r\n";
            for (target, status, content) in [
                ("/stale.js", 200, "gzip"),
                ("/odd.js", 200, "plain"),
                ("/", 200, "gzip"),
                ("/gone.js", 404, "404 Not Found: no such file\n"),
                ("/stale.js.gz", 200, "gzip"),
            ] {
                let reply = ask(&mut client, Method::Get, target, fields).await;
                assert_eq!(reply.status, status, "{target}");
                assert_eq!(String::from_utf8_lossy(&reply.content), content, "{target}");
                let is_named = target.ends_with(".gz") || content != "gzip";
                assert_eq!(reply.header("content-encoding").is_none(), is_named, "{target}");
                assert_eq!(reply.header("vary").is_some(), status == 200, "{target}");
            }
        });
    }
}

#[test]
fn ranges_and_conditions_are_about_the_form_that_is_sent() {
    let folder = Folder::new("encoded-range");
    // Equal in length and age.
    for (name, content) in [("r.txt", "plain-text"), ("r.txt.br", "0123456789"), ("r.txt.gz", "abcdefghij")] {
        put(&folder, name, content, NEW);
    }
    for config in configs(&folder) {
        on_every_driver(config, async |network| {
            let mut client = network.connect().await;
            let mut tags = Vec::new();
            for accepted in ["br", "gzip", "identity"] {
                let fields = format!("Accept-Encoding: {accepted}\r\n");
                let reply = ask(&mut client, Method::Get, "/r.txt", &fields).await;
                tags.push(reply.header("etag").expect("a tag").to_owned());
            }
            assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
            let fields = |more: &str| format!("Accept-Encoding: br\r\n{more}\r\n");
            let known = format!("If-None-Match: {}", tags[0]);
            let reply = ask(&mut client, Method::Get, "/r.txt", &fields(&known)).await;
            assert_eq!((reply.status, reply.header("vary")), (304, Some("Accept-Encoding")));
            assert_eq!(reply.header("content-encoding"), None);
            let other = format!("If-None-Match: {}, {}", tags[1], tags[2]);
            assert_eq!(ask(&mut client, Method::Get, "/r.txt", &fields(&other)).await.status, 200);
            let part = ask(&mut client, Method::Get, "/r.txt", &fields("Range: bytes=2-4")).await;
            assert_eq!((part.status, &part.content[..]), (206, &b"234"[..]));
            assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
            assert_eq!(part.header("content-encoding"), Some("br"));
            let of_other = format!("Range: bytes=2-4\r\nIf-Range: {}", tags[2]);
            let whole = ask(&mut client, Method::Get, "/r.txt", &fields(&of_other)).await;
            assert_eq!((whole.status, &whole.content[..]), (200, &b"0123456789"[..]));
        });
    }
}

#[test]
fn without_the_option_nothing_beside_a_file_is_looked_for() {
    let folder = Folder::new("not-negotiated");
    put(&folder, "s.css", "plain", NEW);
    put(&folder, "s.css.br", "brotli", NEW);
    on_every_driver(folder.config_with(FileIo::default(), FileCache::default()), async |network| {
        let mut client = network.connect().await;
        let reply = ask(&mut client, Method::Get, "/s.css", "Accept-Encoding: br\r\n").await;
        assert_eq!((&reply.content[..], reply.header("vary")), (&b"plain"[..], None));
    });
}
