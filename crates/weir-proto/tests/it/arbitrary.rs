//! Arbitrary bytes: no panic, bounded memory, progress, and never more consumed than given. [`crate::transcript`]
//! asserts these at every step.

use proptest::prelude::*;
use weir_proto::http1::{Limits, Method};

use crate::transcript::{Reader, cut, many_cases};

/// Fragments of the grammar in any order, with arbitrary bytes between.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let fragments: &[&[u8]] = &[
        b"\r\n",
        b"\r",
        b"\n",
        b" ",
        b"\t",
        b":",
        b";",
        b"0",
        b"0\r\n\r\n",
        b"5\r\nhello\r\n",
        b"ffffffffffffffff",
        b"GET / HTTP/1.1\r\n",
        b"POST /x HTTP/1.0\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 100 \r\n",
        b"Host: x\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: ",
        b"Transfer-Encoding: chunked\r\n",
        b"Expect: 100-continue\r\n",
        b"Connection: close\r\n",
        b"\0",
        b"\xff",
    ];
    let fragment = prop::sample::select(fragments.to_vec()).prop_map(<[u8]>::to_vec);
    let piece = prop_oneof![8 => fragment, 1 => prop::collection::vec(any::<u8>(), 0..20)];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(many_cases())]

    #[test]
    fn any_bytes_are_handled_alike_however_they_are_cut(
        bytes in prop_oneof![soup(), prop::collection::vec(any::<u8>(), 0..300)],
        places in prop::collection::vec(0..300_usize, 0..8),
        client: bool,
    ) {
        let reader = if client { Reader::Client(Method::Get) } else { Reader::Server };
        let limits =
            Limits { head_bytes_max: 120, trailer_bytes_max: 20, body_bytes_max: 100, ..Limits::default() };
        prop_assert_eq!(reader.read(limits, [&bytes[..]]), reader.read(limits, cut(&bytes, &places)));
    }

    #[test]
    fn any_chunked_content_is_handled(
        bytes in prop_oneof![soup(), prop::collection::vec(any::<u8>(), 0..300)],
        places in prop::collection::vec(0..300_usize, 0..8),
    ) {
        let reader = Reader::Client(Method::Get);
        let stream = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat();
        let limits = Limits { trailer_bytes_max: 20, body_bytes_max: 100, ..Limits::default() };
        prop_assert_eq!(reader.read(limits, [&stream[..]]), reader.read(limits, cut(&stream, &places)));
    }
}
