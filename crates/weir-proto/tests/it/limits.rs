//! A message exactly at each limit is accepted, and one byte or line beyond it is refused; whole and byte by byte.

use weir_proto::http1::{
    Limits, Method, ParseError,
    limits::{CHUNK_SIZE_DIGITS_MAX, EMPTY_LINES_MAX, HEADER_COUNT_MAX, INTERIM_RESPONSES_MAX},
};

use crate::transcript::{Reader, Seen, cut};

const SERVER: Reader = Reader::Server;
const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

fn error(reader: Reader, limits: Limits, input: &[u8]) -> Option<ParseError> {
    let whole = reader.read(limits, [input]);
    let places: Vec<usize> = (0..input.len()).collect();
    assert_eq!(whole, reader.read(limits, cut(input, &places)));
    whole.into_iter().find_map(|event| match event {
        Seen::ParseError(error) => Some(error),
        _ => None,
    })
}

/// `input(n)` must be accepted, and `input(n + 1)` must be refused.
fn check(reader: Reader, limits: Limits, most: usize, beyond: ParseError, input: impl Fn(usize) -> String) {
    assert_eq!(error(reader, limits, input(most).as_bytes()), None, "{beyond:?} at the limit");
    assert_eq!(error(reader, limits, input(most + 1).as_bytes()), Some(beyond));
}

#[test]
fn first_line_bytes_max() {
    let limits = Limits { first_line_bytes_max: 100, ..Limits::default() };
    check(SERVER, limits, 100, ParseError::FirstLineTooLong, |bytes| {
        let around = "GET / HTTP/1.1".len();
        format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(bytes - around))
    });
    check(Reader::Client(Method::Head), limits, 100, ParseError::FirstLineTooLong, |bytes| {
        format!("HTTP/1.1 200 {}\r\n\r\n", "a".repeat(bytes - "HTTP/1.1 200 ".len()))
    });
}

#[test]
fn header_count_max() {
    for configured in [1, 7, HEADER_COUNT_MAX, HEADER_COUNT_MAX + 50] {
        let limits = Limits { header_count_max: configured, ..Limits::default() };
        let most = configured.min(HEADER_COUNT_MAX);
        check(SERVER, limits, most, ParseError::HeaderCount, |count| {
            format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(count - 1))
        });
        check(Reader::Client(Method::Get), limits, most, ParseError::HeaderCount, |count| {
            let trailers = "A: b\r\n".repeat(count);
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}\r\n")
        });
    }
}

#[test]
fn head_bytes_max() {
    let limits = Limits { head_bytes_max: 200, ..Limits::default() };
    check(SERVER, limits, 200, ParseError::HeadTooLarge, |bytes| {
        let around = "GET / HTTP/1.1\r\nHost: x\r\nA: \r\n\r\n".len();
        format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "b".repeat(bytes - around))
    });
}

#[test]
fn body_bytes_max() {
    let limits = Limits { body_bytes_max: 30, ..Limits::default() };
    check(SERVER, limits, 30, ParseError::BodyTooLarge, |bytes| {
        format!("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {bytes}\r\n\r\n{}", "a".repeat(bytes))
    });
    check(SERVER, limits, 30, ParseError::BodyTooLarge, |bytes| {
        let rest = bytes - 16;
        let (first, second) = ("a".repeat(16), "b".repeat(rest));
        format!("{CHUNKED}10\r\n{first}\r\n{rest:x}\r\n{second}\r\n0\r\n\r\n")
    });
    check(Reader::Client(Method::Get), limits, 30, ParseError::BodyTooLarge, |bytes| {
        format!("HTTP/1.1 200 OK\r\n\r\n{}", "a".repeat(bytes))
    });
}

#[test]
fn chunk_extension_bytes_max() {
    let limits = Limits { chunk_extension_bytes_max: 20, ..Limits::default() };
    check(SERVER, limits, 20, ParseError::ChunkExtensionTooLarge, |bytes| {
        let extension = "e".repeat(bytes - " ;x;".len());
        format!("{CHUNKED}1 ;x\r\na\r\n0;{extension}\r\n\r\n")
    });
}

#[test]
fn trailer_bytes_max() {
    let limits = Limits { trailer_bytes_max: 40, ..Limits::default() };
    check(SERVER, limits, 40, ParseError::TrailerTooLarge, |bytes| {
        let value = "t".repeat(bytes - "A: \r\n\r\n".len());
        format!("{CHUNKED}0\r\nA: {value}\r\n\r\n")
    });
}

#[test]
fn fixed_counts() {
    check(SERVER, Limits::default(), usize::from(EMPTY_LINES_MAX), ParseError::EmptyLines, |count| {
        format!("{}GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\r\n".repeat(count))
    });
    let interim_max = usize::from(INTERIM_RESPONSES_MAX);
    check(
        Reader::Client(Method::Get),
        Limits::default(),
        interim_max,
        ParseError::InterimResponses,
        |count| {
            let interim = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(count);
            format!("{interim}HTTP/1.1 204 No Content\r\n\r\n")
        },
    );
    check(SERVER, Limits::default(), usize::from(CHUNK_SIZE_DIGITS_MAX), ParseError::ChunkSize, |digits| {
        format!("{CHUNKED}{:0>digits$}\r\na\r\n0\r\n\r\n", 1)
    });
}

#[test]
fn a_head_of_a_gigabyte_is_refused_at_its_limit() {
    let limits = Limits::default();
    let piece = [b'a'; 4096];
    let start: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nA: ";
    // Far more pieces than are read: the reader stops at the first error.
    let pieces = [start].into_iter().chain(std::iter::repeat_n(&piece[..], 262_144));
    let mut taken = 0;
    let seen = SERVER.read(limits, pieces.inspect(|piece| taken += piece.len()));
    assert_eq!(seen, [Seen::ParseError(ParseError::HeadTooLarge)]);
    assert!(taken <= limits.head_bytes_max + piece.len(), "{taken}");
}
