//! Inputs that must be refused, the error of each, and its status.

use weir_proto::http1::{Limits, Method, ParseError};

use crate::transcript::{Reader, Seen, cut};

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The error, which must be the same when the input comes byte by byte.
fn error(reader: Reader, input: &[u8]) -> Option<ParseError> {
    let whole = reader.read_whole(input);
    let places: Vec<usize> = (0..input.len()).collect();
    assert_eq!(
        whole,
        reader.read(Limits::default(), cut(input, &places)),
        "{:?}",
        input.escape_ascii().to_string()
    );
    whole.into_iter().find_map(|event| match event {
        Seen::ParseError(error) => Some(error),
        _ => None,
    })
}

fn check(reader: Reader, table: &[(&[u8], ParseError, u16)]) {
    for (input, expected, status) in table {
        let found = error(reader, input);
        assert_eq!(found, Some(*expected), "{}", input.escape_ascii());
        assert_eq!(expected.status(), *status, "{expected:?}");
    }
}

#[test]
fn malformed_first_lines_are_refused() {
    check(
        Reader::Server,
        &[
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ParseError::ControlByte, 400),
            (b"\x00", ParseError::ControlByte, 400),
            (b"GET /\0 HTTP/1.1\r\n", ParseError::ControlByte, 400),
            (b" GET / HTTP/1.1\r\n", ParseError::RequestLine, 400),
            (b"GET /\r\n", ParseError::RequestLine, 400),
            (b"GET  / HTTP/1.1\r\n", ParseError::RequestLine, 400),
            (b"GET / HTTP/1.1 \r\n", ParseError::RequestLine, 400),
            (b"GET\t/ HTTP/1.1\r\n", ParseError::RequestLine, 400),
            (b"GE(T / HTTP/1.1\r\n", ParseError::RequestLine, 400),
            (b"GET / http/1.1\r\n", ParseError::RequestLine, 400),
            (b"GET / HTTP/1.10\r\n", ParseError::RequestLine, 400),
            (b"GET / HTTP/0.9\r\n", ParseError::Version, 505),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ParseError::Version, 505),
            (b"GET /#part HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET /\xc3\xa9 HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET index.html HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET * HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET http:///x HTTP/1.1\r\n", ParseError::Target, 400),
            (b"CONNECT / HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET http://user@x/ HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET http://x:80:80/ HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET http://x\\@y/ HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET ftp://x/ HTTP/1.1\r\n", ParseError::Target, 400),
            (b"GET x:80 HTTP/1.1\r\n", ParseError::Target, 400),
            (b"OPTIONS ** HTTP/1.1\r\n", ParseError::Target, 400),
            (b"CONNECT x: HTTP/1.1\r\n", ParseError::Target, 400),
            (b"CONNECT x HTTP/1.1\r\n", ParseError::Target, 400),
            (b"CONNECT :443 HTTP/1.1\r\n", ParseError::Target, 400),
            (b"CONNECT http://x:443/ HTTP/1.1\r\n", ParseError::Target, 400),
            (b"\r\n\r\n\r\nGET / HTTP/1.1\r\n", ParseError::EmptyLines, 400),
            (b"GET / HTTP/1.1\nHost: x\n\n", ParseError::BareLineFeed, 400),
            (b"\nGET / HTTP/1.1\r\n", ParseError::BareLineFeed, 400),
            (b"GET / HTTP/1.1\rHost: x\r\n\r\n", ParseError::BareCarriageReturn, 400),
        ],
    );
}

#[test]
fn malformed_and_missing_fields_are_refused() {
    let table: &[(&str, ParseError, u16)] = &[
        ("Host: x\r\nA : b\r\n", ParseError::HeaderName, 400),
        ("Host: x\r\nA\t: b\r\n", ParseError::HeaderName, 400),
        ("Host: x\r\n: b\r\n", ParseError::HeaderName, 400),
        ("Host: x\r\nno colon\r\n", ParseError::HeaderName, 400),
        ("Host: x\r\nA(: b\r\n", ParseError::HeaderName, 400),
        ("Host: x\r\nA: b\r\n c\r\n", ParseError::FoldedLine, 400),
        (" Host: x\r\n", ParseError::FoldedLine, 400),
        ("Host: x\r\nA: b\n", ParseError::BareLineFeed, 400),
        ("Host: x\r\nA:\n", ParseError::BareLineFeed, 400),
        ("Host: x\r\nA: b\rc\r\n", ParseError::BareCarriageReturn, 400),
        ("Host: x\r\nA: b\0c\r\n", ParseError::ControlByte, 400),
        ("Host: x\r\nA: b\x7fc\r\n", ParseError::ControlByte, 400),
        ("", ParseError::HostMissing, 400),
        ("Hostname: x\r\n", ParseError::HostMissing, 400),
        ("Host: x\r\nHOST: x\r\n", ParseError::HostRepeated, 400),
        ("Host: a b\r\n", ParseError::HostInvalid, 400),
        ("Host: a,b\r\n", ParseError::HostInvalid, 400),
        ("Host: user@x\r\n", ParseError::HostInvalid, 400),
        ("Host: x/y\r\n", ParseError::HostInvalid, 400),
        ("Host: :80\r\n", ParseError::HostInvalid, 400),
        ("Host: x:80:80\r\n", ParseError::HostInvalid, 400),
        ("Host: x:http\r\n", ParseError::HostInvalid, 400),
        ("Host: x:65536\r\n", ParseError::HostInvalid, 400),
        ("Host: ::1\r\n", ParseError::HostInvalid, 400),
        ("Host: [::1\r\n", ParseError::HostInvalid, 400),
        ("Host: [x]\r\n", ParseError::HostInvalid, 400),
        ("Host: x\r\nExpect: 200-ok\r\n", ParseError::Expectation, 417),
        ("Host: x\r\nExpect: 100-continue, y\r\n", ParseError::Expectation, 417),
    ];
    for (fields, expected, status) in table {
        let input = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        check(Reader::Server, &[(input.as_bytes(), *expected, *status)]);
    }
    let input = b"GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n";
    check(Reader::Server, &[(input, ParseError::HostRepeated, 400)]);
}

#[test]
fn framing_that_two_readers_could_see_differently_is_refused() {
    let table: &[(&str, ParseError, u16)] = &[
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ParseError::FramingConflict, 400),
        ("Transfer-Encoding: x\r\nContent-Length: 5\r\n", ParseError::FramingConflict, 400),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", ParseError::ContentLengthRepeated, 400),
        ("Content-Length: 5\r\ncontent-length: 5\r\n", ParseError::ContentLengthRepeated, 400),
        ("Content-Length: 5, 5\r\n", ParseError::ContentLength, 400),
        ("Content-Length: -1\r\n", ParseError::ContentLength, 400),
        ("Content-Length: +1\r\n", ParseError::ContentLength, 400),
        ("Content-Length: 0x1\r\n", ParseError::ContentLength, 400),
        ("Content-Length: 1 2\r\n", ParseError::ContentLength, 400),
        ("Content-Length: 1.\r\n", ParseError::ContentLength, 400),
        ("Content-Length:\r\n", ParseError::ContentLength, 400),
        ("Content-Length: 18446744073709551616\r\n", ParseError::ContentLength, 400),
        ("Content-Length: 18446744073709551615\r\n", ParseError::BodyTooLarge, 413),
        ("Transfer-Encoding: gzip\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding:\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: identity\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: chunked, gzip\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: chunked, chunked\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: chunked,\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: chunked;a=b\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: xchunked\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: \x0bchunked\r\n", ParseError::ControlByte, 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", ParseError::TransferEncoding, 400),
        ("Transfer-Encoding: gzip, chunked\r\n", ParseError::TransferCodingUnknown, 501),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", ParseError::TransferCodingUnknown, 501),
    ];
    for (fields, expected, status) in table {
        let request = format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n0\r\n\r\n");
        check(Reader::Server, &[(request.as_bytes(), *expected, *status)]);
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n0\r\n\r\n");
        check(Reader::Client(Method::Get), &[(response.as_bytes(), *expected, *status)]);
    }
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check(Reader::Server, &[(old, ParseError::TransferEncoding, 400)]);
}

#[test]
fn malformed_chunks_are_refused() {
    let table: &[(&str, ParseError, u16)] = &[
        ("\r\n", ParseError::ChunkSize, 400),
        (";a\r\n", ParseError::ChunkSize, 400),
        ("-1\r\n", ParseError::ChunkSize, 400),
        ("+1\r\n", ParseError::ChunkSize, 400),
        ("0x1\r\n", ParseError::ChunkSize, 400),
        (" 1\r\n", ParseError::ChunkSize, 400),
        ("1 \r\na\r\n", ParseError::ChunkSize, 400),
        ("1 2\r\n", ParseError::ChunkSize, 400),
        ("1g\r\n", ParseError::ChunkSize, 400),
        ("1\na\r\n", ParseError::ChunkSize, 400),
        ("1\ra\r\n", ParseError::BareCarriageReturn, 400),
        ("1;a\n", ParseError::ChunkExtension, 400),
        ("1;a\0\r\n", ParseError::ChunkExtension, 400),
        ("1;a\rb\r\n", ParseError::BareCarriageReturn, 400),
        ("1;\r\n", ParseError::ChunkExtension, 400),
        ("1; \r\n", ParseError::ChunkExtension, 400),
        ("1;;a\r\n", ParseError::ChunkExtension, 400),
        ("1;a[b\r\n", ParseError::ChunkExtension, 400),
        ("1;a b\r\n", ParseError::ChunkExtension, 400),
        ("1;a \r\n", ParseError::ChunkExtension, 400),
        ("1;a=\r\n", ParseError::ChunkExtension, 400),
        ("1;a=;b\r\n", ParseError::ChunkExtension, 400),
        ("1;a==b\r\n", ParseError::ChunkExtension, 400),
        ("1;=b\r\n", ParseError::ChunkExtension, 400),
        ("1;a=\"b\r\n", ParseError::ChunkExtension, 400),
        ("1;a=\"b\"c\r\n", ParseError::ChunkExtension, 400),
        ("1;a=\"b\\\r\n", ParseError::ChunkExtension, 400),
        ("1;a=\"\x7f\"\r\n", ParseError::ChunkExtension, 400),
        ("1;a=\u{ff}\r\n", ParseError::ChunkExtension, 400),
        ("ffffffffffffffff\r\n", ParseError::BodyTooLarge, 413),
        ("1\r\na\r\nffffffffffffffff\r\n", ParseError::BodyTooLarge, 413),
        ("10000000000000000\r\n", ParseError::ChunkSize, 400),
        ("00000000000000010000000000000000\r\n", ParseError::ChunkSize, 400),
        ("1\r\nab\r\n", ParseError::ChunkEnd, 400),
        ("1\r\na\n", ParseError::ChunkEnd, 400),
        ("1\r\na\rb", ParseError::ChunkEnd, 400),
        ("0\r\nA : b\r\n\r\n", ParseError::HeaderName, 400),
        ("0\r\n folded\r\n\r\n", ParseError::FoldedLine, 400),
        ("0\r\nA: b\n\r\n", ParseError::BareLineFeed, 400),
        ("0\r\n\rx", ParseError::BareCarriageReturn, 400),
        ("0\r\nA: \0\r\n\r\n", ParseError::ControlByte, 400),
    ];
    for (chunks, expected, status) in table {
        let input = format!("{CHUNKED}{chunks}");
        check(Reader::Server, &[(input.as_bytes(), *expected, *status)]);
    }
}

#[test]
fn every_form_of_a_chunk_extension_is_read() {
    for extension in [
        ";a",
        ";a;b",
        " \t; \ta",
        ";a=b",
        ";a \t= \tb \t;c",
        ";a ;b",
        ";a=\"\"",
        ";a=\"b c\t\\\"\\\\;\u{ff}\" ;d=!#$%&'*+-.^_`|~",
    ] {
        let input = format!("{CHUNKED}1{extension}\r\na\r\n0{extension}\r\n\r\n");
        assert_eq!(error(Reader::Server, input.as_bytes()), None, "{extension:?}");
    }
}

#[test]
fn unknown_methods_are_refused_and_known_ones_need_no_content() {
    check(
        Reader::Server,
        &[
            (b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", ParseError::MethodUnknown, 501),
            (b"get / HTTP/1.1\r\nHost: x\r\n\r\n", ParseError::MethodUnknown, 501),
        ],
    );
    for length in ["", "Content-Length: 0\r\n"] {
        let post = format!("POST / HTTP/1.1\r\nHost: x\r\n{length}\r\n");
        assert_eq!(error(Reader::Server, post.as_bytes()), None, "{length}");
    }
}

#[test]
fn malformed_responses_are_refused() {
    check(
        Reader::Client(Method::Get),
        &[
            (b"\r\nHTTP/1.1 200 OK\r\n\r\n", ParseError::EmptyLines, 400),
            (b"HTTP/1.1 099 No\r\n\r\n", ParseError::StatusLine, 400),
            (b"HTTP/1.1 20 OK\r\n\r\n", ParseError::StatusLine, 400),
            (b"HTTP/1.1 2000 OK\r\n\r\n", ParseError::StatusLine, 400),
            (b"HTTP/1.1  200 OK\r\n\r\n", ParseError::StatusLine, 400),
            (b"HTTP/1.1200 OK\r\n\r\n", ParseError::StatusLine, 400),
            (b"ICY 200 OK\r\n\r\n", ParseError::StatusLine, 400),
            (b"HTTP/2.0 200 OK\r\n\r\n", ParseError::Version, 505),
            (b"HTTP/1.20 200 OK\r\n\r\n", ParseError::StatusLine, 400),
            (b"HTTP/1.1 200 O\0K\r\n\r\n", ParseError::ControlByte, 400),
            (b"HTTP/1.1 200 OK\nA: b\r\n\r\n", ParseError::BareLineFeed, 400),
            (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", ParseError::HeaderName, 400),
        ],
    );
}
