//! A fuzz body: server answers with random damage, through everything the monitor does with them.

use proptest::prelude::*;
use ratatui::{Terminal, backend::TestBackend};
use serde_json::{Value, json};
use weir_record::latency::{LatencySummary, empty_histogram};
use weir_report::Language;

use crate::{
    frame::{Frame, frame, made},
    lines,
    screen::{Keys, draw},
    snapshot::{Reading, Snapshot, parse},
};

/// The answer of a correct gateway after this many seconds.
fn honest(seconds: u64) -> Value {
    let mut stats = made::gateway(seconds).stats.unwrap_or_default();
    let mut histogram = empty_histogram();
    histogram.saturating_record_n(20_000, 1_000 * seconds);
    let hops = stats.node.iter_mut().flat_map(|node| &mut node.hops);
    hops.for_each(|hop| hop.latency = LatencySummary::from_histogram(&histogram));
    serde_json::to_value(stats).expect("it has a form")
}

/// Numbers and texts at the limits of their fields, and beyond.
fn edge() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![0, 1, u64::from(u32::MAX), 1 << 63, u64::MAX]).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[\u{0}-\u{9f}]{0,80}".prop_map(Value::from),
        prop::sample::select(vec![json!(null), json!([]), json!({}), json!(-1), json!(true)]),
    ]
}

/// All leaves of a value (neither list nor object), from the outside in.
fn leaves(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Object(fields) => fields.values_mut().flat_map(leaves).collect(),
        Value::Array(items) => items.iter_mut().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

/// An answer with some of its leaves replaced and some of its bytes changed.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let replaced = prop::collection::vec((any::<prop::sample::Index>(), edge()), 0..6);
    let changed = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (1..4_u64, replaced, prop_oneof![3 => Just(Vec::new()), 1 => changed]).prop_map(
        |(seconds, replaced, changed)| {
            let mut value = honest(seconds);
            for (at, other) in replaced {
                let mut all = leaves(&mut value);
                let at = at.index(all.len());
                *all[at] = other;
            }
            let mut bytes = value.to_string().into_bytes();
            for (at, byte) in changed {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.push(b'\n');
            bytes
        },
    )
}

/// The monitor's reading of this answer.
fn reading(bytes: &[u8]) -> Reading {
    Reading { stats: parse(bytes).ok(), ..made::gateway(1) }
}

/// All outputs of a frame, as a terminal gets them.
fn shown(frame: &Frame) -> String {
    let mut terminal = Terminal::new(TestBackend::new(100, 20)).expect("it is memory");
    for key in ['o', 'j', 's'] {
        let mut keys = Keys::default();
        keys.press(key);
        terminal.draw(|canvas| draw(canvas, frame, &keys, Language::Korean)).expect("it is memory");
    }
    lines::messages(frame, Language::Chinese)
        + &lines::threads(frame)
        + &lines::orders(frame, Language::Chinese)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_answer_stops_the_monitor_or_steers_the_terminal(
        earlier in damaged(), later in damaged(), at_ns: [u64; 2], unix_s: u64,
    ) {
        let snapshot = |at: usize, bytes: &[u8]| Snapshot { at_ns: at_ns[at], unix_s, nodes: vec![reading(bytes)] };
        let (before, after) = (snapshot(0, &earlier), snapshot(1, &later));
        for frame in [frame(None, &after), frame(Some(&before), &after)] {
            prop_assert!(shown(&frame).chars().all(|symbol| symbol == '\n' || !symbol.is_control()));
            prop_assert!(serde_json::to_string(&frame).is_ok());
        }
    }

    #[test]
    fn an_answer_that_is_only_bytes_is_none(bytes: Vec<u8>) {
        let _ = parse(&bytes);
    }
}

/// `WEIR_FUZZ_CASES` cases, or a few.
fn cases() -> u32 {
    std::env::var("WEIR_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(64)
}

#[test]
fn the_honest_answer_is_read_whole() {
    let text = format!("{}\n", honest(2));
    let stats = reading(text.as_bytes()).stats.expect("it is an answer");
    assert_eq!(stats.node.map(|node| node.orders), Some(200_000));
}
