//! The cost of an order's encoding and decoding: `cargo bench -p weir-proto --bench orders`.
//!
//! Each row is one message in its frame: cut from a stream of a thousand, parsed and decoded; then encoded and
//! framed. The output is medians of blocks in nanoseconds per message, and the allocations of a whole stream in
//! steady state, which must be none.
#![expect(clippy::print_stdout, reason = "its output is the result")]

#[path = "../tests/allocations/counting.rs"]
mod counting;
#[path = "../tests/allocations/orders.rs"]
mod orders;

use std::{hint::black_box, time::Instant};

use weir_proto::{
    ouch::{Inbound, Outbound},
    soup::{ClientPacket, Deframer, SEQUENCED, ServerPacket, UNSEQUENCED, encode_frame, header},
};

const BLOCKS: usize = 101;
const MESSAGES: usize = 1_000;
const READ_BYTES: usize = 4_096;
const PAYLOAD_BYTES_MAX: usize = 512;

fn main() {
    println!(
        "{:<10} {:>6} {:>10} {:>10} {:>12}",
        "message", "bytes", "decode ns", "encode ns", "allocations"
    );
    for (name, message) in orders::inbound() {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        row(name, UNSEQUENCED, &encoded, read_client, |out| write_inbound(black_box(&message), out));
    }
    for (name, message) in orders::outbound() {
        let mut encoded = Vec::new();
        message.encode(&mut encoded);
        row(name, SEQUENCED, &encoded, read_server, |out| write_outbound(black_box(&message), out));
    }
}

fn row(
    name: &str,
    kind: u8,
    message: &[u8],
    read: fn(&mut Deframer, &[u8]) -> usize,
    write: impl Fn(&mut Vec<u8>),
) {
    let mut stream = Vec::new();
    for _ in 0..MESSAGES {
        encode_frame(kind, message, &mut stream);
    }
    let mut out = Vec::with_capacity(stream.len());
    let mut deframer = Deframer::new(PAYLOAD_BYTES_MAX);
    let mut read_all = || {
        let read: usize = stream.chunks(READ_BYTES).map(|piece| read(&mut deframer, black_box(piece))).sum();
        assert_eq!(read, MESSAGES);
    };
    let mut write_all = || {
        out.clear();
        (0..MESSAGES).for_each(|_| write(&mut out));
        assert_eq!(out.len(), stream.len());
        black_box(&out);
    };
    let (mut decode, mut encode) = (Vec::with_capacity(BLOCKS), Vec::with_capacity(BLOCKS));
    for _ in 0..BLOCKS {
        decode.push(nanoseconds_each(&mut read_all));
        encode.push(nanoseconds_each(&mut write_all));
    }
    let allocations = counting::allocations(&mut read_all) + counting::allocations(&mut write_all);
    let (decode, encode, bytes) = (median(decode), median(encode), message.len());
    println!("{name:<10} {bytes:>6} {decode:>10.1} {encode:>10.1} {allocations:>12}");
}

fn nanoseconds_each(body: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    body();
    start.elapsed().as_nanos() as f64 / MESSAGES as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn read_client(deframer: &mut Deframer, mut input: &[u8]) -> usize {
    let mut count = 0;
    while let Some(frame) = deframer.next(&mut input).expect("well formed") {
        let ClientPacket::Unsequenced(message) = ClientPacket::parse(frame).expect("well formed") else {
            panic!("a message")
        };
        black_box(Inbound::decode(message).expect("well formed"));
        count += 1;
    }
    count
}

fn read_server(deframer: &mut Deframer, mut input: &[u8]) -> usize {
    let mut count = 0;
    while let Some(frame) = deframer.next(&mut input).expect("well formed") {
        let ServerPacket::Sequenced(message) = ServerPacket::parse(frame).expect("well formed") else {
            panic!("a message")
        };
        black_box(Outbound::decode(message).expect("well formed"));
        count += 1;
    }
    count
}

/// The frame's header is written once the length of the message is known.
fn write_inbound(message: &Inbound<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&header(UNSEQUENCED, 0));
    message.encode(out);
    finish_frame(UNSEQUENCED, start, out);
}

fn write_outbound(message: &Outbound, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&header(SEQUENCED, 0));
    message.encode(out);
    finish_frame(SEQUENCED, start, out);
}

fn finish_frame(kind: u8, start: usize, out: &mut [u8]) {
    let front = header(kind, 0);
    let header = header(kind, out.len() - start - front.len());
    out[start..start + front.len()].copy_from_slice(&header);
}
