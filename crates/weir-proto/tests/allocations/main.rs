//! Operations that must not allocate: reading messages that arrive in one piece, checking their fields, and the whole
//! life of an order on the wire.

mod counting;
mod heads;
mod orders;

use counting::allocations;
use weir_proto::{
    http1::{
        Event, Limits, Method, RequestDecoder, ResponseDecoder, Version,
        conditional::{Evaluation, FileTag, Validators, evaluate, range_applies},
        date,
        encode::{AfterMessage, Framing, HeadWriter, Window},
        media_type,
        range::{Selection, select},
        target,
    },
    ouch::{Inbound, Outbound, set_outbound_user_ref_num},
    soup::{
        CLIENT_HEARTBEAT_FRAME, ClientPacket, Deframer, LoginRequest, Name, ServerInput, ServerSession,
        Timing, UNSEQUENCED, encode_frame,
    },
};

fn server() -> RequestDecoder {
    RequestDecoder::new(Limits::default())
}

/// Decodes to the end of the input and returns the number of heads and ends.
fn read_all(decoder: &mut RequestDecoder, mut input: &[u8]) -> (u32, u32) {
    let (mut heads, mut ends) = (0, 0);
    loop {
        let step = decoder.decode(input).expect("well formed");
        input = &input[step.consumed..];
        match step.event {
            Event::Head(_) => heads += 1,
            Event::End { .. } => ends += 1,
            Event::Body(_) | Event::ExpectContinue => {}
            Event::NeedMore | Event::Finished => return (heads, ends),
        }
    }
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(1)))), 1);
}

#[test]
fn whole_requests_are_read_without_allocating() {
    for head in [heads::BROWSER, heads::SMALL] {
        let mut read = (0, 0);
        let pipelined = head.repeat(16);
        let mut decoder = server();
        assert_eq!(allocations(|| read = read_all(&mut decoder, &pipelined)), 0);
        assert_eq!(read, (16, 16));
    }
}

#[test]
fn chunked_content_is_read_without_allocating() {
    let input =
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n";
    let mut read = (0, 0);
    let mut decoder = server();
    assert_eq!(allocations(|| read = read_all(&mut decoder, input)), 0);
    assert_eq!(read, (1, 1));
}

#[test]
fn whole_responses_are_read_without_allocating() {
    let mut decoder = ResponseDecoder::new(Limits::default());
    let mut rest = heads::RESPONSE;
    let count = allocations(|| {
        let step = decoder.decode(Method::Get, rest).expect("well formed");
        rest = &rest[step.consumed..];
        assert!(matches!(step.event, Event::Head(head) if head.headers.get("etag").is_some()));
    });
    assert_eq!((count, rest.len()), (0, 0));
}

#[test]
fn a_split_head_allocates_a_few_times_and_only_then() {
    let (first, second) = heads::BROWSER.split_at(300);
    let mut decoder = server();
    let count = allocations(|| {
        read_all(&mut decoder, first);
        read_all(&mut decoder, second);
    });
    assert!((1..=4).contains(&count), "{count}");
    assert_eq!(allocations(|| assert_eq!(read_all(&mut decoder, heads::BROWSER), (1, 1))), 0);
}

#[test]
fn fields_are_judged_and_answers_written_without_allocating() {
    let mut decoder = server();
    let mut path = Vec::with_capacity(heads::BROWSER.len());
    let mut space = [0; 512];
    let count = allocations(|| {
        let step = decoder.decode(heads::BROWSER).expect("well formed");
        let Event::Head(head) = step.event else { panic!("a head") };
        let tag = FileTag::new(1234, 784_111_777, 0);
        let validators = Validators { tag: Some(tag.tag()), modified_seconds: Some(784_111_777) };
        let now_seconds = 1_700_000_000;
        assert_eq!(evaluate(head.method, head.headers, &validators, now_seconds), Evaluation::NotModified);
        assert!(range_applies(head.headers, &validators, now_seconds));
        assert_eq!(select(head.method, head.headers, 1234), Selection::Whole);
        let path = target::decode(head.target, &mut path).expect("a path");
        assert_eq!(media_type::of_path(path.joined()), "text/html; charset=utf-8");
        let mut window = Window::new(&mut space);
        let mut answer =
            HeadWriter::response(&mut window, Version::Http11, 304, "Not Modified").expect("valid");
        answer.header("ETag", tag.as_bytes()).expect("valid");
        answer.header("Date", &date::format(now_seconds)).expect("valid");
        answer.finish(Framing::NoContent, AfterMessage::Unsaid).expect("room");
    });
    assert_eq!(count, 0);
    assert!(space.starts_with(b"HTTP/1.1 304 Not Modified\r\nETag: \"2ebc98a1-0-4d2\"\r\nDate: "));
}

/// Decodes every message of a stream of client frames that arrives in reads of this size.
fn read_orders(
    deframer: &mut Deframer,
    session: &mut ServerSession,
    stream: &[u8],
    read_bytes: usize,
) -> usize {
    let mut count = 0;
    for mut input in stream.chunks(read_bytes) {
        while let Some(frame) = deframer.next(&mut input).expect("well formed") {
            let packet = ClientPacket::parse(frame).expect("well formed");
            if let ServerInput::Message(message) = session.on_packet(0, packet).expect("in order") {
                assert_eq!(Inbound::decode(message).expect("well formed").user_ref_num(), Some(7));
                count += 1;
            }
        }
    }
    count
}

#[test]
fn orders_are_read_without_allocating_once_a_cut_one_was_held() {
    let (mut order, mut stream) = (Vec::new(), Vec::new());
    orders::inbound()[0].1.encode(&mut order);
    for _ in 0..100 {
        encode_frame(UNSEQUENCED, &order, &mut stream);
        stream.extend_from_slice(&CLIENT_HEARTBEAT_FRAME);
    }
    let mut session = ServerSession::new(0, Timing::default());
    session.accepted(0, None);
    let mut deframer = Deframer::new(512);
    let mut count = 0;
    let whole = allocations(|| count = read_orders(&mut deframer, &mut session, &stream, stream.len()));
    assert_eq!((whole, count), (0, 100));
    assert_eq!(read_orders(&mut deframer, &mut session, &stream, 1), 100);
    for read_bytes in [1, 2, 7, 64] {
        let cut = allocations(|| count = read_orders(&mut deframer, &mut session, &stream, read_bytes));
        assert_eq!((cut, count), (0, 100), "reads of {read_bytes} bytes");
    }
}

#[test]
fn messages_are_written_and_rewritten_without_allocating() {
    let mut out = Vec::with_capacity(4_096);
    let count = allocations(|| {
        for (_, message) in orders::inbound() {
            message.encode(&mut out);
        }
        for (_, message) in orders::outbound() {
            let start = out.len();
            message.encode(&mut out);
            let written = &mut out[start..];
            assert!(set_outbound_user_ref_num(written, 99));
            assert_eq!(Outbound::decode(written).expect("well formed").0.user_ref_num(), Some(99));
        }
        LoginRequest {
            username: "C00001".parse().expect("short"),
            password: "DEMO".parse().expect("short"),
            session: Name::BLANK,
            sequence: 1,
            heartbeat_timeout_ms: Some(15_000),
        }
        .encode(&mut out);
    });
    assert_eq!(count, 0);
}
