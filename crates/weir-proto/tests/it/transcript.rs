//! Drives a reader of either kind over pieces of input and records its events; checks the guarantees of every step.

use proptest::prelude::ProptestConfig;
use weir_proto::http1::{
    Ending, Event, Headers, Limits, Method, ParseError, RequestDecoder, ResponseDecoder,
};

/// One event in a form that outlives its input. Adjacent pieces of content are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Head(String),
    Continue,
    Body(Vec<u8>),
    End(Vec<String>),
    Finished,
    ParseError(ParseError),
    Ending(Ending),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Server,
    Client(Method),
}

enum Decoder {
    Server(RequestDecoder),
    Client(ResponseDecoder, Method),
}

impl Reader {
    /// Decodes the pieces to the end of the connection.
    pub fn read<'a>(self, limits: Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
        let mut decoder = match self {
            Self::Server => Decoder::Server(RequestDecoder::new(limits)),
            Self::Client(method) => Decoder::Client(ResponseDecoder::new(limits), method),
        };
        let mut seen = Vec::new();
        for piece in pieces {
            if !decoder.take(piece, &limits, &mut seen) {
                return seen;
            }
        }
        seen.push(match decoder.end_of_input() {
            Ok(ending) => Seen::Ending(ending),
            Err(error) => Seen::ParseError(error),
        });
        seen
    }

    pub fn read_whole(self, input: &[u8]) -> Vec<Seen> {
        self.read(Limits::default(), [input])
    }
}

impl Decoder {
    /// Returns whether the connection continues after this piece.
    fn take(&mut self, piece: &[u8], limits: &Limits, seen: &mut Vec<Seen>) -> bool {
        let mut rest = piece;
        for _ in 0..4 * piece.len() + 4 {
            let (consumed, event) = match self.step(rest) {
                Ok(step) => step,
                Err(error) => {
                    assert_eq!(self.step(rest), Err(error), "an error stays");
                    seen.push(Seen::ParseError(error));
                    return false;
                }
            };
            assert!(consumed <= rest.len());
            let section_bytes_max = limits.head_bytes_max.max(limits.trailer_bytes_max);
            assert!(self.held_bytes() <= section_bytes_max, "bounded memory");
            rest = &rest[consumed..];
            match (event, seen.last_mut()) {
                (None, _) => {
                    assert!(rest.is_empty(), "more is asked for only when nothing is left");
                    return true;
                }
                (Some(Seen::Finished), _) => {
                    assert_eq!(consumed, 0);
                    seen.push(Seen::Finished);
                    return false;
                }
                (Some(Seen::Body(bytes)), Some(Seen::Body(before))) => before.extend_from_slice(&bytes),
                (Some(event), _) => seen.push(event),
            }
        }
        panic!("no progress in {} bytes", piece.len());
    }

    fn step(&mut self, input: &[u8]) -> Result<(usize, Option<Seen>), ParseError> {
        match self {
            Self::Server(decoder) => {
                let step = decoder.decode(input)?;
                Ok((
                    step.consumed,
                    own(step.event, input, |head| {
                        let fields = fields(head.headers);
                        format!(
                            "{} {} {:?} {:?} keep-alive={} expects={} {fields:?}",
                            head.method.name(),
                            head.target,
                            head.version,
                            head.body,
                            head.keep_alive,
                            head.expects_continue,
                        )
                    }),
                ))
            }
            Self::Client(decoder, request) => {
                let step = decoder.decode(*request, input)?;
                Ok((
                    step.consumed,
                    own(step.event, input, |head| {
                        let fields = fields(head.headers);
                        format!(
                            "{} {} {:?} {:?} keep-alive={} {fields:?}",
                            head.status, head.reason, head.version, head.body, head.keep_alive,
                        )
                    }),
                ))
            }
        }
    }

    fn end_of_input(&mut self) -> Result<Ending, ParseError> {
        match self {
            Self::Server(decoder) => decoder.end_of_input(),
            Self::Client(decoder, _) => decoder.end_of_input(),
        }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Server(decoder) => decoder.held_bytes(),
            Self::Client(decoder, _) => decoder.held_bytes(),
        }
    }
}

fn own<H>(event: Event<'_, '_, H>, input: &[u8], describe: impl Fn(H) -> String) -> Option<Seen> {
    Some(match event {
        Event::NeedMore => return None,
        Event::Head(head) => Seen::Head(describe(head)),
        Event::ExpectContinue => Seen::Continue,
        Event::Body(bytes) => {
            assert!(!bytes.is_empty());
            assert!(lies_in(bytes, input), "content is a slice of the input");
            Seen::Body(bytes.to_vec())
        }
        Event::End { trailers } => Seen::End(fields(trailers)),
        Event::Finished => Seen::Finished,
    })
}

pub fn lies_in(part: &[u8], whole: &[u8]) -> bool {
    let (part, whole) = (part.as_ptr_range(), whole.as_ptr_range());
    whole.start <= part.start && part.end <= whole.end
}

fn fields(headers: Headers<'_>) -> Vec<String> {
    headers.iter().map(|(name, value)| format!("{}={}", name.escape_ascii(), value.escape_ascii())).collect()
}

/// The input, cut at these positions; positions beyond its end and repeated ones give empty pieces.
pub fn cut<'a>(input: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| (*place).min(input.len())).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut start = 0;
    for place in places.into_iter().chain([input.len()]) {
        pieces.push(&input[start..place]);
        start = place;
    }
    pieces
}

/// The cases are cheap, so there are sixteen times as many as configured: 4096 unless `PROPTEST_CASES` says
/// otherwise.
pub fn many_cases() -> ProptestConfig {
    let configured = ProptestConfig::default();
    ProptestConfig { cases: configured.cases * 16, ..configured }
}
