//! Well-formed messages of every kind, which the property tests start from; and the expected events of a few of them.

use weir_proto::http1::{Ending, Event, Limits, Method, ParseError, RequestDecoder};

use crate::transcript::{Reader, Seen, cut, lies_in};

pub const REQUESTS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\r\nGET /after-an-empty-line HTTP/1.1\r\nHost:\r\n\r\n",
    b"HEAD /a?b=|c| HTTP/1.1\r\nhost: [::1]:80\r\nAccept:\t */* \t\r\nX-Empty: \r\nX-High: \xe9\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /p HTTP/1.1\r\nHost: x\r\nContent-Length: 0003\r\nExpect: 100-continue\r\n\r\nabc",
    b"PUT /none HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n",
    b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n00A;a=\"b\"\r\n0123456789\r\n0\r\n\r\n",
    b"POST /t HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n1 ;x\r\na\r\n0\r\nDigest: 1\r\nB: \r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, keep-alive\r\n\r\n",
    b"GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"DELETE /d HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nd",
    b"GET /old HTTP/1.0\r\n\r\n",
    b"GET /last HTTP/1.1\r\nHost: x\r\nConnection: x , Close\r\n\r\n",
];

pub const RESPONSES: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 \r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n",
    b"HTTP/1.1 304\r\nContent-Length: 1000\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nab",
    b"HTTP/1.1 999 \xe9t\xe9\r\nConnection: close\r\nContent-Length: 1\r\n\r\nz",
    b"HTTP/1.1 200 OK\r\n\r\nuntil the connection closes",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x00\x01",
];

fn server(input: &[u8]) -> Vec<Seen> {
    Reader::Server.read_whole(input)
}

fn client(request: Method, input: &[u8]) -> Vec<Seen> {
    Reader::Client(request).read_whole(input)
}

#[test]
fn pipelined_messages_are_read_one_after_the_other_until_one_says_close() {
    let stream = [REQUESTS.concat(), b"never read".to_vec()].concat();
    let seen = server(&stream[..]);
    let heads = seen.iter().filter(|event| matches!(event, Seen::Head(_))).count();
    let ends = seen.iter().filter(|event| matches!(event, Seen::End(_))).count();
    // The HTTP/1.0 request without keep-alive is the second to last of the samples.
    assert_eq!((heads, ends), (REQUESTS.len() - 1, REQUESTS.len() - 1));
    assert_eq!(seen.last(), Some(&Seen::Finished));
    let continued = seen.iter().filter(|event| **event == Seen::Continue).count();
    assert_eq!(continued, 1, "neither HTTP/1.0 nor an empty content waits for 100 Continue");
}

#[test]
fn a_later_minor_version_reads_as_the_latest_known() {
    for later in ["HTTP/1.2", "HTTP/1.9"] {
        let request = format!("GET / {later}\r\nHost: x\r\n\r\n");
        let response = format!("{later} 200 OK\r\nContent-Length: 0\r\n\r\n");
        let known = |text: &str| text.replace(later, "HTTP/1.1").into_bytes();
        assert_eq!(server(request.as_bytes()), server(&known(&request)));
        assert_eq!(client(Method::Get, response.as_bytes()), client(Method::Get, &known(&response)));
        let places: Vec<usize> = (0..request.len()).collect();
        let cut = cut(request.as_bytes(), &places);
        assert_eq!(Reader::Server.read(Limits::default(), cut), server(&known(&request)));
        let hostless = server(format!("GET / {later}\r\n\r\n").as_bytes());
        assert_eq!(hostless, [Seen::ParseError(ParseError::HostMissing)]);
    }
}

#[test]
fn a_chunk_size_may_be_padded_with_zeros() {
    let request = |size: &str| {
        let head = "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        server(format!("{head}{size}\r\n0123456789\r\n0000000000000000000000000\r\n\r\n").as_bytes())
    };
    assert_eq!(request("000000000000000000000000A"), request("A"));
    assert!(request("A").contains(&Seen::Body(b"0123456789".to_vec())));
}

#[test]
fn a_refused_request_is_known_to_be_a_head_however_it_came() {
    let may_be_head = |input: &[u8], places: &[usize]| {
        let mut decoder = RequestDecoder::new(Limits::default());
        let refused = cut(input, places).into_iter().any(|piece| {
            let mut rest = piece;
            while !rest.is_empty() {
                match decoder.decode(rest) {
                    Ok(step) => rest = &rest[step.consumed..],
                    Err(_) => return true,
                }
            }
            false
        });
        assert!(refused, "{}", input.escape_ascii());
        decoder.may_be_head()
    };
    let long = "x".repeat(20_000);
    for (input, expected) in [
        (format!("HEAD /{long} HTTP/1.1\r\n"), true),
        (format!("GET /{long} HTTP/1.1\r\n"), false),
        (format!("HEAD / HTTP/1.1\r\nHost: x\r\nA: {long}\r\n"), true),
        (format!("\r\nGET / HTTP/1.1\r\nHost: x\r\nA: {long}\r\n"), false),
        ("HEAD / HTTP/1.1\r\n\r\n".into(), true),
        ("HEAD / HTTP/3.0\r\n\r\n".into(), true),
        ("GET / HTTP/1.1\r\n\r\n".into(), false),
        ("HEA\0".into(), false),
        ("\r\n\r\n\r\n".into(), false),
    ] {
        let places: Vec<usize> = (0..input.len()).collect();
        for places in [&places[..], &[], &[3], &[input.len() - 1]] {
            assert_eq!(may_be_head(input.as_bytes(), places), expected, "{}", &input[..input.len().min(60)]);
        }
    }
}

#[test]
fn the_line_of_a_refused_or_unfinished_head_is_known_however_it_came() {
    let line = |input: &[u8], places: &[usize]| {
        let mut decoder = RequestDecoder::new(Limits::default());
        for piece in cut(input, places) {
            let mut rest = piece;
            while let Ok(step) = decoder.decode(rest) {
                if rest.is_empty() || step.event == Event::NeedMore {
                    break;
                }
                rest = &rest[step.consumed..];
            }
        }
        decoder.request_line().map(|line| String::from_utf8_lossy(line).into_owned())
    };
    let long = "x".repeat(20_000);
    for (input, expected) in [
        (
            format!("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", u64::MAX),
            Some("POST /a HTTP/1.1"),
        ),
        (format!("\r\nGET / HTTP/1.1\r\nHost: x\r\nA: {long}\r\n"), Some("GET / HTTP/1.1")),
        ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n".into(), Some("BREW / HTTP/1.1")),
        ("GET / HTTP/2.0\r\nHost".into(), Some("GET / HTTP/2.0")),
        ("GET / HTTP/1.1\r\nHos".into(), Some("GET / HTTP/1.1")),
        ("nonsense\r\n".into(), Some("nonsense")),
        ("GET / HTTP/1.1\r".into(), None),
        (format!("GET /{long}"), None),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n".into(), None),
    ] {
        let places: Vec<usize> = (0..input.len()).collect();
        for places in [&places[..], &[], &[3], &[input.len() - 1]] {
            let shown = &input[..input.len().min(60)];
            assert_eq!(line(input.as_bytes(), places).as_deref(), expected, "{shown}");
        }
    }
}

#[test]
fn a_chunked_request_with_trailers_reads_as_written() {
    assert_eq!(
        server(REQUESTS[7]),
        [
            Seen::Head(
                "POST /t Http11 Chunked keep-alive=true expects=false \
                 [\"Host=x\", \"transfer-encoding=Chunked\"]"
                    .into()
            ),
            Seen::Body(b"a".into()),
            Seen::End(vec!["Digest=1".into(), "B=".into()]),
            Seen::Ending(Ending::BetweenMessages),
        ]
    );
}

#[test]
fn an_answer_to_head_has_a_length_and_no_content() {
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    let seen = client(Method::Head, input);
    assert_eq!(seen.iter().filter(|event| matches!(event, Seen::Head(_))).count(), 2);
    assert_eq!(seen.last(), Some(&Seen::Ending(Ending::BetweenMessages)));
}

#[test]
fn a_tunnel_and_another_protocol_are_the_end_of_http() {
    for seen in [
        client(Method::Connect, b"HTTP/1.1 200 OK\r\n\r\ntunnelled"),
        client(Method::Get, RESPONSES[8]),
        server(b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\ntunnelled"),
    ] {
        assert!(matches!(&seen[..], [Seen::Head(_), Seen::End(_), Seen::Finished]), "{seen:?}");
    }
}

#[test]
fn content_until_close_is_complete_and_other_content_is_cut_off() {
    let whole = client(Method::Get, RESPONSES[7]);
    assert_eq!(whole[1], Seen::Body(b"until the connection closes".into()));
    assert_eq!(whole[2], Seen::Ending(Ending::CompletedResponse));
    for message in REQUESTS {
        let cut = server(&message[..message.len() - 1]);
        assert_eq!(cut.last(), Some(&Seen::ParseError(weir_proto::http1::ParseError::Truncated)), "{cut:?}");
    }
}

#[test]
fn version_and_connection_decide_whether_another_message_follows() {
    for (version, connection, expected) in [
        ("HTTP/1.1", "", true),
        ("HTTP/1.1", "Connection: keep-alive\r\n", true),
        ("HTTP/1.1", "Connection: Keep-Alive, CLOSE\r\n", false),
        ("HTTP/1.1", "Connection: closed\r\n", true),
        ("HTTP/1.1", "Connection: x\r\nConnection: close\r\n", false),
        ("HTTP/1.0", "", false),
        ("HTTP/1.0", "Connection: Keep-Alive\r\n", true),
        ("HTTP/1.0", "Connection: x, keep-alive\r\n", true),
        ("HTTP/1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let end = if expected { Seen::Ending(Ending::BetweenMessages) } else { Seen::Finished };
        let request = format!("GET / {version}\r\nHost: x\r\n{connection}\r\n");
        assert_eq!(server(request.as_bytes()).last(), Some(&end), "{request:?}");
        let response = format!("{version} 200 OK\r\nContent-Length: 0\r\n{connection}\r\n");
        assert_eq!(client(Method::Get, response.as_bytes()).last(), Some(&end), "{response:?}");
    }
}

#[test]
fn answers_without_content_end_with_their_head_whatever_they_declare() {
    let next = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for framing in ["", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n"] {
        for (request, status) in [
            (Method::Get, 204),
            (Method::Get, 304),
            (Method::Get, 103),
            (Method::Head, 200),
            (Method::Head, 404),
        ] {
            let stream = format!("HTTP/1.1 {status} x\r\n{framing}\r\n{next}");
            let seen = client(request, stream.as_bytes());
            let heads = seen.iter().filter(|event| matches!(event, Seen::Head(_))).count();
            let ends = seen.iter().filter(|event| matches!(event, Seen::End(_))).count();
            assert_eq!((heads, ends), (2, if status == 103 { 1 } else { 2 }), "{stream:?}");
            assert_eq!(seen.last(), Some(&Seen::Ending(Ending::BetweenMessages)));
        }
    }
    // Without a head that says so, content without a length lasts until the connection closes.
    let endless = client(Method::Get, b"HTTP/1.1 404 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(endless.last(), Some(&Seen::Ending(Ending::CompletedResponse)));
}

#[test]
fn a_head_in_one_piece_is_slices_of_the_input_and_holds_no_memory() {
    let input = REQUESTS[2];
    let mut decoder = RequestDecoder::new(Limits::default());
    let step = decoder.decode(input).expect("well formed");
    let Event::Head(head) = step.event else { panic!("{:?}", step.event) };
    assert!(lies_in(head.target.as_bytes(), input));
    assert!(head.headers.iter().all(|(name, value)| lies_in(name, input) && lies_in(value, input)));
    assert_eq!((head.headers.get("HOST"), head.headers.get("Ho")), (Some(&b"[::1]:80"[..]), None));
    assert_eq!(head.headers.get("accept"), Some(&b"*/*"[..]));
    assert_eq!(step.consumed, input.len());
    assert_eq!(decoder.held_bytes(), 0);
}

#[test]
fn the_memory_of_a_split_head_goes_back_with_the_next_call() {
    let (first, second) = REQUESTS[3].split_at(20);
    let mut decoder = RequestDecoder::new(Limits::default());
    assert_eq!(decoder.decode(first).map(|step| step.consumed), Ok(20));
    assert!(decoder.held_bytes() >= 20 && !decoder.is_between_messages());
    let consumed = decoder.decode(second).expect("well formed").consumed;
    assert_eq!(second[consumed..], *b"hello");
    assert!(matches!(decoder.decode(&second[consumed..]).map(|step| step.event), Ok(Event::Body(b"hello"))));
    assert_eq!(decoder.held_bytes(), 0);
    assert!(matches!(decoder.decode(b"").map(|step| step.event), Ok(Event::End { .. })));
    assert!(decoder.is_between_messages());
}

#[test]
fn chunks_that_arrive_with_their_plain_end_hold_no_memory() {
    let mut decoder = RequestDecoder::new(Limits::default());
    let mut rest = REQUESTS[6];
    loop {
        let step = decoder.decode(rest).expect("well formed");
        rest = &rest[step.consumed..];
        let ended = matches!(step.event, Event::End { .. });
        assert_eq!(decoder.held_bytes(), 0);
        if ended {
            break;
        }
    }
    assert!(rest.is_empty() && decoder.is_between_messages());
}

#[test]
fn an_idle_decoder_is_small() {
    assert!(size_of::<RequestDecoder>() <= 256, "{}", size_of::<RequestDecoder>());
}
