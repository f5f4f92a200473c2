//! Fuzz bodies: sample inputs, damaged and joined at random, checked against guarantees that hold for every input.
//!
//! `WEIR_FUZZ_CASES=n` runs each body n times instead of briefly, `WEIR_FUZZ_SEED=n` chooses the inputs. The seed is
//! printed, and so is the current input when a body fails; the same seed gives the same inputs.

use std::env;

use weir_proto::{
    content::{CONTENT_BYTES_MAX, Content},
    http1::{
        Event, Limits, Method, RequestDecoder,
        conditional::{EntityTag, Evaluation, FileTag, Validators, evaluate, range_applies},
        date, media_type,
        range::{ContentRange, Selection, select, select_value},
        target,
        url::Url,
    },
};

use crate::{
    messages::{REQUESTS, RESPONSES},
    transcript::{Reader, cut},
};

const CASES: u64 = 2_000;
const SEED: u64 = 0x0005_eed0_5eed;

/// The most sample pieces in one input.
const PIECES_MAX: u64 = 6;

/// SplitMix64, written here because crates of the lowest layer do not depend on each other.
pub struct Noise(u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn place(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    fn pick<'a>(&mut self, stock: &[&'a [u8]]) -> &'a [u8] {
        stock[self.place(stock.len())]
    }

    /// Sample pieces, mostly whole, some of their bytes changed, removed, inserted or repeated.
    fn input(&mut self, stock: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..=self.below(PIECES_MAX) {
            let piece = self.pick(stock);
            let from = if self.below(4) == 0 { self.place(piece.len() + 1) } else { 0 };
            let to = if self.below(4) == 0 { self.place(piece.len() + 1) } else { piece.len() };
            bytes.extend_from_slice(piece.get(from..to).unwrap_or_default());
        }
        for _ in 0..self.below(4) {
            if !bytes.is_empty() {
                self.damage(&mut bytes);
            }
        }
        bytes
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let telling = b"\r\n\t \0:;,=-\"*/%.?#@[]0159aAfFW\x7f\x80\xff";
        let byte = if self.below(4) == 0 { self.next() as u8 } else { telling[self.place(telling.len())] };
        let place = self.place(bytes.len());
        match self.below(4) {
            0 => bytes[place] = byte,
            1 => bytes.insert(place, byte),
            2 => drop(bytes.remove(place)),
            _ => {
                let end = bytes.len().min(place + 1 + self.place(20));
                bytes.extend_from_within(place..end);
            }
        }
    }
}

/// Prints the current input when the body panics.
struct AtHand<'a> {
    name: &'a str,
    seed: u64,
    case: u64,
    input: &'a [u8],
}

impl Drop for AtHand<'_> {
    #[expect(clippy::print_stderr, reason = "the input of a failure belongs beside its message")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { name, seed, case, input } = self;
            eprintln!("{name}: WEIR_FUZZ_SEED={seed}, case {case}, input \"{}\"", input.escape_ascii());
        }
    }
}

fn number_from_environment(name: &str, default: u64) -> u64 {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a decimal number")),
        Err(_) => default,
    }
}

#[expect(clippy::print_stderr, reason = "the seed is part of the result")]
pub fn fuzz(name: &str, stock: &[&[u8]], mut body: impl FnMut(&[u8], &mut Noise)) {
    let cases = number_from_environment("WEIR_FUZZ_CASES", CASES);
    let seed = number_from_environment("WEIR_FUZZ_SEED", SEED);
    eprintln!("{name}: {cases} cases, WEIR_FUZZ_SEED={seed}");
    let mut noise = Noise(seed);
    for case in 0..cases {
        let input = noise.input(stock);
        let at_hand = AtHand { name, seed, case, input: &input };
        body(at_hand.input, &mut noise);
    }
}

/// For any division into pieces and any limits: the same events, and the guarantees of [`crate::transcript`].
fn read_alike(reader: Reader, input: &[u8], noise: &mut Noise) {
    let tight = Limits {
        first_line_bytes_max: 60,
        header_count_max: 4,
        head_bytes_max: 150,
        body_bytes_max: 20,
        chunk_extension_bytes_max: 8,
        trailer_bytes_max: 24,
    };
    let limits = if noise.below(3) == 0 { tight } else { Limits::default() };
    let places: Vec<usize> = (0..noise.below(6)).map(|_| noise.place(input.len() + 1)).collect();
    let whole = reader.read(limits, [input]);
    assert_eq!(whole, reader.read(limits, cut(input, &places)), "cut at {places:?}");
}

#[test]
fn requests() {
    let lines: &[&[u8]] =
        &[b"Host: y\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n"];
    fuzz("requests", &[REQUESTS, lines].concat(), |input, noise| {
        read_alike(Reader::Server, input, noise);
    });
}

#[test]
fn responses() {
    let lines: &[&[u8]] = &[b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n"];
    fuzz("responses", &[RESPONSES, lines].concat(), |input, noise| {
        let request = Method::ALL[noise.place(Method::ALL.len())];
        read_alike(Reader::Client(request), input, noise);
    });
}

#[test]
fn chunks() {
    let stock: &[&[u8]] = &[
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"00a;a=\"b\"\r\n0123456789\r\n",
        b"1 ; x = y\r\nz\r\n",
        b"0;last\r\nA: b\r\nC:\r\n\r\n",
        b"ffffffffffffffff\r\n",
    ];
    fuzz("chunks", stock, |input, noise| {
        let head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        read_alike(Reader::Server, &[head, input].concat(), noise);
    });
}

#[test]
fn ranges() {
    let stock: &[&[u8]] = &[
        b"bytes=0-499",
        b"bytes=",
        b"500-",
        b"-500",
        b",",
        b" ",
        b"99999999999999999999",
        b"18446744073709551615",
    ];
    fuzz("ranges", stock, |input, noise| {
        let content_bytes = [0, 1, 10, 1000, u64::MAX][noise.place(5)];
        let selected = select_value(input, content_bytes);
        let Selection::Partial(range) = selected else { return };
        assert!(range.first() <= range.last() && range.last() < content_bytes);
        assert_eq!(range.length(), range.last() - range.first() + 1);
        // The selected range, requested in its plain form, is the same range.
        let plain = format!("bytes={}-{}", range.first(), range.last());
        assert_eq!(select_value(plain.as_bytes(), content_bytes), selected);
        let written = ContentRange { range: Some(range), content_bytes }.to_string();
        assert_eq!(written, format!("bytes {}-{}/{content_bytes}", range.first(), range.last()));
    });
}

#[test]
fn preconditions_of_decoded_requests() {
    let fields: &[&[u8]] = &[
        b"If-None-Match: \"1-2-3\", W/\"x\"\r\n",
        b"If-Match: *\r\n",
        b"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        b"If-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n",
        b"If-Range: Sun Nov  6 08:49:37 1994\r\n",
        b"If-Range: \"1-2-3\"\r\n",
        b"Range: bytes=0-1\r\n",
    ];
    let tag = FileTag::new(3, 1, 2);
    fuzz("preconditions", fields, |input, noise| {
        let request = [b"GET / HTTP/1.1\r\nHost: x\r\n", input, b"\r\n"].concat();
        let mut decoder = RequestDecoder::new(Limits::default());
        let Ok(step) = decoder.decode(&request) else { return };
        let Event::Head(head) = step.event else { return };
        let now_seconds = [784_111_777, 1_700_000_000, u64::MAX][noise.place(3)];
        let validators = Validators { tag: Some(tag.tag()), modified_seconds: Some(784_111_777) };
        let reading = evaluate(head.method, head.headers, &validators, now_seconds);
        let writing = evaluate(Method::Put, head.headers, &validators, now_seconds);
        assert!(writing != Evaluation::NotModified, "only reading is answered with 304");
        let conditions = head.headers.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with(b"if-"));
        assert!(
            conditions
                || reading == Evaluation::Proceed && range_applies(head.headers, &validators, now_seconds)
        );
        let ranges = head.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(b"range")).count();
        assert!(ranges == 1 || select(head.method, head.headers, 10) == Selection::Whole);
    });
}

#[test]
fn tags_dates_and_names() {
    let stock: &[&[u8]] = &[
        b"W/\"tag\"",
        b"\"tag\"",
        b"Sun, 06 Nov 1994 08:49:37 GMT",
        b"Sunday, 06-Nov-94 08:49:37 GMT",
        b"Sun Nov  6 08:49:37 1994",
        b"folder/name.tar.gz",
        b"16777216",
        b"html",
    ];
    fuzz("tags, dates and names", stock, |input, noise| {
        if let Some(tag) = EntityTag::parse(input) {
            let start: &[u8] = if tag.is_weak() { b"W/\"" } else { b"\"" };
            assert_eq!([start, tag.opaque(), b"\""].concat(), input);
            assert!(tag.matches_weakly(tag) && tag.matches_strongly(tag) != tag.is_weak());
        }
        if let Some(seconds) = date::parse(input, noise.next()) {
            assert_eq!(date::parse(&date::format(seconds), 0), Some(seconds.min(date::SECONDS_MAX)));
        }
        assert!(media_type::of_path(input).contains('/'));
        let text = String::from_utf8_lossy(input);
        if let Ok(content) = text.parse::<Content>() {
            assert_eq!(content.to_string().parse(), Ok(content));
            assert!(content.len() <= CONTENT_BYTES_MAX as usize);
        }
    });
}

#[test]
fn targets_and_urls() {
    let stock: &[&[u8]] = &[
        b"http://weir.example:8088",
        b"http://[::1]",
        b"https://x",
        b"/a/b/",
        b"/../",
        b"/%2e%2E/",
        b"/%2f",
        b"/%00",
        b"?query",
        b"#part",
        b"user@",
    ];
    let mut buffer = Vec::new();
    fuzz("targets and URLs", stock, |input, _| {
        let text = String::from_utf8_lossy(input);
        if let Ok(path) = target::decode(&text, &mut buffer) {
            for segment in path.segments() {
                assert!(![&b"."[..], b".."].contains(&segment), "{path:?}");
                assert!(!segment.iter().any(|byte| byte.is_ascii_control() || *byte == b'/'), "{path:?}");
            }
            assert_eq!(path.segments().collect::<Vec<_>>().join(&b'/'), path.joined());
        }
        if let Ok(url) = text.parse::<Url>() {
            assert!(url.target().starts_with('/') && !url.host().is_empty() && url.port() > 0);
            assert_eq!(url.to_string().parse(), Ok(url.clone()));
            // A request that a client would send must be valid for a server.
            let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", url.target(), url.authority());
            let seen = Reader::Server.read_whole(request.as_bytes());
            assert_eq!(seen.len(), 3, "{seen:?}");
        }
    });
}
