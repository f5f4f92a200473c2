//! The cost of reading a head, compared with `httparse` alone: `cargo bench -p weir-proto --bench head`.
//!
//! Blocks of both alternate, so that a change of the processor's speed affects both. The output is the medians, their
//! ratio and the allocations of one reading. The goal is a ratio of at most 1.5 on the browser's head, and no
//! allocation.
#![expect(clippy::print_stdout, reason = "its output is the result")]

#[path = "../tests/allocations/counting.rs"]
mod counting;
#[path = "../tests/allocations/heads.rs"]
mod heads;

use std::{hint::black_box, mem::MaybeUninit, time::Instant};

use weir_proto::http1::{Event, Limits, Method, RequestDecoder, ResponseDecoder, limits::HEADER_COUNT_MAX};

const BLOCKS: usize = 101;
const READINGS: u32 = 20_000;

fn main() {
    let titles = ["head", "bytes", "httparse ns", "weir ns", "ratio", "allocations"];
    println!(
        "{:<8} {:>6} {:>12} {:>12} {:>6} {:>12}",
        titles[0], titles[1], titles[2], titles[3], titles[4], titles[5]
    );
    for (name, head) in [("browser", heads::BROWSER), ("small", heads::SMALL)] {
        let mut decoder = RequestDecoder::new(Limits::default());
        compare(name, head, parse_request, |head| read_request(&mut decoder, head));
    }
    let mut decoder = ResponseDecoder::new(Limits::default());
    compare("response", heads::RESPONSE, parse_response, |head| read_response(&mut decoder, head));
}

fn compare(name: &str, head: &[u8], mut parse: impl FnMut(&[u8]), mut read: impl FnMut(&[u8])) {
    let (mut alone, mut whole) = (Vec::with_capacity(BLOCKS), Vec::with_capacity(BLOCKS));
    for _ in 0..BLOCKS {
        alone.push(nanoseconds_each(|| parse(black_box(head))));
        whole.push(nanoseconds_each(|| read(black_box(head))));
    }
    let (alone, whole) = (median(alone), median(whole));
    let allocations = counting::allocations(|| read(head));
    let (bytes, ratio) = (head.len(), whole / alone);
    println!("{name:<8} {bytes:>6} {alone:>12.1} {whole:>12.1} {ratio:>6.2} {allocations:>12}");
}

fn nanoseconds_each(mut body: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..READINGS {
        body();
    }
    start.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The parser alone, in its cheapest form.
fn parse_request(head: &[u8]) {
    let mut slots = [const { MaybeUninit::uninit() }; HEADER_COUNT_MAX];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(head, &mut slots);
    assert!(matches!(parsed, Ok(httparse::Status::Complete(_))));
    black_box(&request);
}

fn parse_response(head: &[u8]) {
    let mut slots = [const { MaybeUninit::uninit() }; HEADER_COUNT_MAX];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_response_with_uninit_headers(&mut response, head, &mut slots);
    assert!(matches!(parsed, Ok(httparse::Status::Complete(_))));
    black_box(&response);
}

/// A whole request: its head with all checks, and its end.
fn read_request(decoder: &mut RequestDecoder, head: &[u8]) {
    let step = decoder.decode(head).expect("well formed");
    let Event::Head(found) = step.event else { panic!("a head") };
    black_box(&found);
    let end = decoder.decode(b"").expect("well formed");
    assert!(matches!(end.event, Event::End { .. }));
}

fn read_response(decoder: &mut ResponseDecoder, head: &[u8]) {
    let step = decoder.decode(Method::Get, head).expect("well formed");
    let Event::Head(found) = step.event else { panic!("a head") };
    black_box(&found);
    let end = decoder.decode(Method::Get, b"").expect("well formed");
    assert!(matches!(end.event, Event::End { .. }));
}
