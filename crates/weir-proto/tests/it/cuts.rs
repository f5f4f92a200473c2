//! The division of a stream into pieces never changes its transcript: checked for valid streams and damaged ones, at
//! default and tight limits.

use proptest::prelude::*;
use weir_proto::http1::{Limits, Method};

use crate::{
    messages::{REQUESTS, RESPONSES},
    transcript::{Reader, cut, many_cases},
};

#[test]
fn a_message_cut_anywhere_once_or_everywhere_reads_the_same() {
    for (reader, messages) in readers() {
        for message in messages {
            let whole = reader.read_whole(message);
            for place in 0..=message.len() {
                assert_eq!(whole, reader.read(Limits::default(), cut(message, &[place])), "cut at {place}");
            }
            let everywhere: Vec<usize> = (0..message.len()).collect();
            assert_eq!(whole, reader.read(Limits::default(), cut(message, &everywhere)));
        }
    }
}

fn readers() -> [(Reader, &'static [&'static [u8]]); 3] {
    [
        (Reader::Server, REQUESTS),
        (Reader::Client(Method::Get), RESPONSES),
        (Reader::Client(Method::Head), RESPONSES),
    ]
}

/// A stream of messages of one kind, some of their bytes replaced, taken out or put in.
fn stream() -> impl Strategy<Value = (Reader, Vec<u8>)> {
    let chosen = (0..3_usize, prop::collection::vec(any::<prop::sample::Index>(), 1..5));
    let damages = prop::collection::vec((any::<prop::sample::Index>(), damaging_byte(), 0..3_u8), 0..3);
    (chosen, damages).prop_map(|((kind, chosen), damages)| {
        let (reader, stock) = readers()[kind];
        let mut bytes: Vec<u8> =
            chosen.iter().flat_map(|index| stock[index.index(stock.len())]).copied().collect();
        for (place, byte, how) in damages {
            let place = place.index(bytes.len());
            match how {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => drop(bytes.remove(place)),
            }
        }
        (reader, bytes)
    })
}

fn damaging_byte() -> impl Strategy<Value = u8> {
    let telling = b"\r\n\t \0:;,0159aAfF#*/\x7f\xff".to_vec();
    prop_oneof![3 => prop::sample::select(telling), 1 => any::<u8>()]
}

fn limits() -> impl Strategy<Value = Limits> {
    let tight = (10..60_usize, 0..5_usize, 20..150_usize, 0..20_u64, 0..10_usize, 0..30_usize);
    let tight = tight.prop_map(
        |(
            first_line_bytes_max,
            header_count_max,
            head_bytes_max,
            body_bytes_max,
            chunk_extension_bytes_max,
            trailer_bytes_max,
        )| {
            Limits {
                first_line_bytes_max,
                header_count_max,
                head_bytes_max,
                body_bytes_max,
                chunk_extension_bytes_max,
                trailer_bytes_max,
            }
        },
    );
    prop_oneof![2 => Just(Limits::default()), 1 => tight]
}

proptest! {
    #![proptest_config(many_cases())]

    #[test]
    fn a_damaged_stream_cut_at_random_reads_the_same(
        (reader, bytes) in stream(),
        limits in limits(),
        places in prop::collection::vec(0..400_usize, 0..12),
    ) {
        let whole = reader.read(limits, [&bytes[..]]);
        prop_assert_eq!(&whole, &reader.read(limits, cut(&bytes, &places)));
        let everywhere: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(&whole, &reader.read(limits, cut(&bytes, &everywhere)));
    }
}
