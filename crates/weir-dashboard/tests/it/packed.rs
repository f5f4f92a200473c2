//! Answers that are compressed, and answers that a reader has already.

use std::io::{Read, Write};

use flate2::read::GzDecoder;

use crate::{
    client::Running,
    results::{folder, make_old, sql, study},
};

/// The head and the bytes of an answer.
fn asked(dashboard: &Running, path: &str, line: &str) -> (String, Vec<u8>) {
    let mut stream = dashboard.connect();
    let host = format!("Host: {}", dashboard.address);
    write!(stream, "GET {path} HTTP/1.1\r\n{host}\r\n{line}\r\nConnection: close\r\n\r\n")
        .expect("it takes a request");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
    (String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase(), bytes[end + 4..].to_vec())
}

#[test]
fn pages_and_files_are_compressed_for_readers_who_take_that() {
    let results = folder("compressed");
    study(&results, ("one", "quick"), 100);
    let dashboard = Running::over(&results);
    let files = ["/study/one/figures.csv", "/study/one/study.json", "/study/one", "/charts?study=one", "/"];
    for path in files {
        let (head, packed) = asked(&dashboard, path, "Accept-Encoding: br, gzip");
        assert!(head.contains("content-encoding: gzip"), "{path}: {head}");
        assert!(head.contains(&format!("content-length: {}", packed.len())), "{path}: {head}");
        assert!(head.contains("vary: accept-language, accept-encoding"), "{path}: {head}");
        let mut text = String::new();
        GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("it is gzip");
        let plain = dashboard.get(path);
        assert!(plain.header("content-encoding").is_empty() && plain.body == text, "{path}");
        assert!(packed.len() < text.len() / 2, "{path}: {} of {}", packed.len(), text.len());
    }
    for (path, line) in [("/", "Accept-Encoding: gzip;q=0"), ("/healthz", "Accept-Encoding: gzip")] {
        let (head, _) = asked(&dashboard, path, line);
        assert!(head.starts_with("http/1.1 200") && !head.contains("content-encoding"), "{path}: {head}");
    }
}

#[test]
fn a_page_that_the_reader_has_is_not_sent_again_until_it_changes() {
    let results = folder("tags");
    let path = study(&results, ("one", "quick"), 100);
    let dashboard = Running::over(&results);
    let paths = ["/", "/study/one", "/study/one/study.json", "/thread-chart?study=one"];
    let tags = paths.map(|path| dashboard.get(path).header("etag").to_owned());
    for (path, tag) in paths.iter().zip(&tags) {
        assert!(tag.starts_with("W/\""), "{path}: {tag}");
        for encoding in ["identity", "gzip"] {
            let line = format!("If-None-Match: \"x\", {tag}\r\nAccept-Encoding: {encoding}");
            let (head, body) = asked(&dashboard, path, &line);
            assert!(head.starts_with("http/1.1 304") && body.is_empty(), "{path}: {head}");
            for kept in ["etag: w/", "vary: ", "cache-control: no-cache", "content-security-policy: "] {
                assert!(head.contains(kept), "{path}: no {kept} in {head}");
            }
        }
    }
    let line = format!("If-None-Match: {}", tags[1]);
    let (head, _) = asked(&dashboard, "/study/one?lang=ko", &line);
    assert!(head.starts_with("http/1.1 200"), "it is another page: {head}");
    sql(&path, "UPDATE study SET reproduce = 'weir study other'");
    make_old(&path, 50);
    let (head, _) = asked(&dashboard, "/study/one", &line);
    assert!(head.starts_with("http/1.1 200") && !head.contains(&tags[1].to_ascii_lowercase()), "{head}");
}
