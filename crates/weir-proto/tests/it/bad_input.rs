//! Inputs that must be refused, the fault each gives, and the status that goes with it.

use weir_proto::http1::{Fault, Limits, Method};

use crate::transcript::{Reader, Seen, cut};

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The fault, also when the input comes byte by byte.
fn fault(reader: Reader, input: &[u8]) -> Option<Fault> {
    let whole = reader.read_whole(input);
    let places: Vec<usize> = (0..input.len()).collect();
    assert_eq!(
        whole,
        reader.read(Limits::default(), cut(input, &places)),
        "{:?}",
        input.escape_ascii().to_string()
    );
    whole.into_iter().find_map(|event| match event {
        Seen::Fault(fault) => Some(fault),
        _ => None,
    })
}

fn check(reader: Reader, table: &[(&[u8], Fault, u16)]) {
    for (input, expected, status) in table {
        let found = fault(reader, input);
        assert_eq!(found, Some(*expected), "{}", input.escape_ascii());
        assert_eq!(expected.status(), *status, "{expected:?}");
    }
}

#[test]
fn malformed_first_lines_are_refused() {
    check(
        Reader::Server,
        &[
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", Fault::ControlByte, 400),
            (b"\x00", Fault::ControlByte, 400),
            (b"GET /\0 HTTP/1.1\r\n", Fault::ControlByte, 400),
            (b" GET / HTTP/1.1\r\n", Fault::RequestLine, 400),
            (b"GET /\r\n", Fault::RequestLine, 400),
            (b"GET  / HTTP/1.1\r\n", Fault::RequestLine, 400),
            (b"GET / HTTP/1.1 \r\n", Fault::RequestLine, 400),
            (b"GET\t/ HTTP/1.1\r\n", Fault::RequestLine, 400),
            (b"GE(T / HTTP/1.1\r\n", Fault::RequestLine, 400),
            (b"GET / http/1.1\r\n", Fault::RequestLine, 400),
            (b"GET / HTTP/1.10\r\n", Fault::RequestLine, 400),
            (b"GET / HTTP/0.9\r\n", Fault::Version, 505),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Fault::Version, 505),
            (b"GET /#part HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET /\xc3\xa9 HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET index.html HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET * HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET http:///x HTTP/1.1\r\n", Fault::Target, 400),
            (b"CONNECT / HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET http://user@x/ HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET http://x:80:80/ HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET http://x\\@y/ HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET ftp://x/ HTTP/1.1\r\n", Fault::Target, 400),
            (b"GET x:80 HTTP/1.1\r\n", Fault::Target, 400),
            (b"OPTIONS ** HTTP/1.1\r\n", Fault::Target, 400),
            (b"CONNECT x: HTTP/1.1\r\n", Fault::Target, 400),
            (b"CONNECT x HTTP/1.1\r\n", Fault::Target, 400),
            (b"CONNECT :443 HTTP/1.1\r\n", Fault::Target, 400),
            (b"CONNECT http://x:443/ HTTP/1.1\r\n", Fault::Target, 400),
            (b"\r\n\r\n\r\nGET / HTTP/1.1\r\n", Fault::EmptyLines, 400),
            (b"GET / HTTP/1.1\nHost: x\n\n", Fault::BareLineFeed, 400),
            (b"\nGET / HTTP/1.1\r\n", Fault::BareLineFeed, 400),
            (b"GET / HTTP/1.1\rHost: x\r\n\r\n", Fault::BareCarriageReturn, 400),
        ],
    );
}

#[test]
fn malformed_and_missing_fields_are_refused() {
    let table: &[(&str, Fault, u16)] = &[
        ("Host: x\r\nA : b\r\n", Fault::HeaderName, 400),
        ("Host: x\r\nA\t: b\r\n", Fault::HeaderName, 400),
        ("Host: x\r\n: b\r\n", Fault::HeaderName, 400),
        ("Host: x\r\nno colon\r\n", Fault::HeaderName, 400),
        ("Host: x\r\nA(: b\r\n", Fault::HeaderName, 400),
        ("Host: x\r\nA: b\r\n c\r\n", Fault::FoldedLine, 400),
        (" Host: x\r\n", Fault::FoldedLine, 400),
        ("Host: x\r\nA: b\n", Fault::BareLineFeed, 400),
        ("Host: x\r\nA:\n", Fault::BareLineFeed, 400),
        ("Host: x\r\nA: b\rc\r\n", Fault::BareCarriageReturn, 400),
        ("Host: x\r\nA: b\0c\r\n", Fault::ControlByte, 400),
        ("Host: x\r\nA: b\x7fc\r\n", Fault::ControlByte, 400),
        ("", Fault::HostMissing, 400),
        ("Hostname: x\r\n", Fault::HostMissing, 400),
        ("Host: x\r\nHOST: x\r\n", Fault::HostRepeated, 400),
        ("Host: a b\r\n", Fault::HostInvalid, 400),
        ("Host: a,b\r\n", Fault::HostInvalid, 400),
        ("Host: user@x\r\n", Fault::HostInvalid, 400),
        ("Host: x/y\r\n", Fault::HostInvalid, 400),
        ("Host: :80\r\n", Fault::HostInvalid, 400),
        ("Host: x:80:80\r\n", Fault::HostInvalid, 400),
        ("Host: x:http\r\n", Fault::HostInvalid, 400),
        ("Host: x:65536\r\n", Fault::HostInvalid, 400),
        ("Host: ::1\r\n", Fault::HostInvalid, 400),
        ("Host: [::1\r\n", Fault::HostInvalid, 400),
        ("Host: [x]\r\n", Fault::HostInvalid, 400),
        ("Host: x\r\nExpect: 200-ok\r\n", Fault::Expectation, 417),
        ("Host: x\r\nExpect: 100-continue, y\r\n", Fault::Expectation, 417),
    ];
    for (fields, expected, status) in table {
        let input = format!("GET / HTTP/1.1\r\n{fields}\r\n");
        check(Reader::Server, &[(input.as_bytes(), *expected, *status)]);
    }
    let input = b"GET / HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n";
    check(Reader::Server, &[(input, Fault::HostRepeated, 400)]);
}

#[test]
fn framing_that_two_readers_could_see_differently_is_refused() {
    let table: &[(&str, Fault, u16)] = &[
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", Fault::FramingConflict, 400),
        ("Transfer-Encoding: x\r\nContent-Length: 5\r\n", Fault::FramingConflict, 400),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", Fault::ContentLengthRepeated, 400),
        ("Content-Length: 5\r\ncontent-length: 5\r\n", Fault::ContentLengthRepeated, 400),
        ("Content-Length: 5, 5\r\n", Fault::ContentLength, 400),
        ("Content-Length: -1\r\n", Fault::ContentLength, 400),
        ("Content-Length: +1\r\n", Fault::ContentLength, 400),
        ("Content-Length: 0x1\r\n", Fault::ContentLength, 400),
        ("Content-Length: 1 2\r\n", Fault::ContentLength, 400),
        ("Content-Length: 1.\r\n", Fault::ContentLength, 400),
        ("Content-Length:\r\n", Fault::ContentLength, 400),
        ("Content-Length: 18446744073709551616\r\n", Fault::ContentLength, 400),
        ("Content-Length: 18446744073709551615\r\n", Fault::BodyTooLarge, 413),
        ("Transfer-Encoding: gzip\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding:\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: identity\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: chunked, gzip\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: chunked, chunked\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: chunked,\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: chunked;a=b\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: xchunked\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: \x0bchunked\r\n", Fault::ControlByte, 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", Fault::TransferEncoding, 400),
        ("Transfer-Encoding: gzip, chunked\r\n", Fault::TransferCodingUnknown, 501),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", Fault::TransferCodingUnknown, 501),
    ];
    for (fields, expected, status) in table {
        let request = format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n0\r\n\r\n");
        check(Reader::Server, &[(request.as_bytes(), *expected, *status)]);
        let response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n0\r\n\r\n");
        check(Reader::Client(Method::Get), &[(response.as_bytes(), *expected, *status)]);
    }
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check(Reader::Server, &[(old, Fault::TransferEncoding, 400)]);
}

#[test]
fn malformed_chunks_are_refused() {
    let table: &[(&str, Fault, u16)] = &[
        ("\r\n", Fault::ChunkSize, 400),
        (";a\r\n", Fault::ChunkSize, 400),
        ("-1\r\n", Fault::ChunkSize, 400),
        ("+1\r\n", Fault::ChunkSize, 400),
        ("0x1\r\n", Fault::ChunkSize, 400),
        (" 1\r\n", Fault::ChunkSize, 400),
        ("1 \r\na\r\n", Fault::ChunkSize, 400),
        ("1 2\r\n", Fault::ChunkSize, 400),
        ("1g\r\n", Fault::ChunkSize, 400),
        ("1\na\r\n", Fault::ChunkSize, 400),
        ("1\ra\r\n", Fault::BareCarriageReturn, 400),
        ("1;a\n", Fault::ChunkExtension, 400),
        ("1;a\0\r\n", Fault::ChunkExtension, 400),
        ("1;a\rb\r\n", Fault::BareCarriageReturn, 400),
        ("ffffffffffffffff\r\n", Fault::BodyTooLarge, 413),
        ("1\r\na\r\nffffffffffffffff\r\n", Fault::BodyTooLarge, 413),
        ("10000000000000000\r\n", Fault::ChunkSize, 400),
        ("00000000000000010000000000000000\r\n", Fault::ChunkSize, 400),
        ("1\r\nab\r\n", Fault::ChunkEnd, 400),
        ("1\r\na\n", Fault::ChunkEnd, 400),
        ("1\r\na\rb", Fault::ChunkEnd, 400),
        ("0\r\nA : b\r\n\r\n", Fault::HeaderName, 400),
        ("0\r\n folded\r\n\r\n", Fault::FoldedLine, 400),
        ("0\r\nA: b\n\r\n", Fault::BareLineFeed, 400),
        ("0\r\n\rx", Fault::BareCarriageReturn, 400),
        ("0\r\nA: \0\r\n\r\n", Fault::ControlByte, 400),
    ];
    for (chunks, expected, status) in table {
        let input = format!("{CHUNKED}{chunks}");
        check(Reader::Server, &[(input.as_bytes(), *expected, *status)]);
    }
}

#[test]
fn unknown_methods_are_refused_and_known_ones_need_no_content() {
    check(
        Reader::Server,
        &[
            (b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n", Fault::MethodUnknown, 501),
            (b"get / HTTP/1.1\r\nHost: x\r\n\r\n", Fault::MethodUnknown, 501),
        ],
    );
    for length in ["", "Content-Length: 0\r\n"] {
        let post = format!("POST / HTTP/1.1\r\nHost: x\r\n{length}\r\n");
        assert_eq!(fault(Reader::Server, post.as_bytes()), None, "{length}");
    }
}

#[test]
fn malformed_responses_are_refused() {
    check(
        Reader::Client(Method::Get),
        &[
            (b"\r\nHTTP/1.1 200 OK\r\n\r\n", Fault::EmptyLines, 400),
            (b"HTTP/1.1 099 No\r\n\r\n", Fault::StatusLine, 400),
            (b"HTTP/1.1 20 OK\r\n\r\n", Fault::StatusLine, 400),
            (b"HTTP/1.1 2000 OK\r\n\r\n", Fault::StatusLine, 400),
            (b"HTTP/1.1  200 OK\r\n\r\n", Fault::StatusLine, 400),
            (b"HTTP/1.1200 OK\r\n\r\n", Fault::StatusLine, 400),
            (b"ICY 200 OK\r\n\r\n", Fault::StatusLine, 400),
            (b"HTTP/2.0 200 OK\r\n\r\n", Fault::Version, 505),
            (b"HTTP/1.20 200 OK\r\n\r\n", Fault::StatusLine, 400),
            (b"HTTP/1.1 200 O\0K\r\n\r\n", Fault::ControlByte, 400),
            (b"HTTP/1.1 200 OK\nA: b\r\n\r\n", Fault::BareLineFeed, 400),
            (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", Fault::HeaderName, 400),
        ],
    );
}
