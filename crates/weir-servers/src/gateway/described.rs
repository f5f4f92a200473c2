//! Every record of a gateway's journal, and of an exchange's, as people and other programs read it. Pure. A new kind
//! does not compile before it has a description here.
//!
//! No secret is shown: the journal contains login names and no passwords, and bytes that cannot be read are counted
//! and not shown.

use serde_json::Value;

use super::{
    audit::Audit,
    controls::Change,
    record_kinds::GatewayRecord,
    venue_record::{of_endpoint_record, of_venues_record},
    worker_message::{of_home, of_sent_key, of_session_key, of_session_record, unpack_sequence},
};
use crate::{
    journal::RecordView,
    orders::{
        Described, FieldValue, MESSAGES, RECORD_KIND_APPLICATION, SESSION_KINDS, UpstreamPlace,
        describe_session_record, of_outbound,
    },
};

/// Names of the gateway's own kinds, in the order of their numbers.
const OWN_KINDS: [&str; 7] = ["session", "control", "venues", "stray", "home", "endpoint", "operator"];

/// The name of a kind that this version does not know.
const UNKNOWN: &str = "unknown";

/// Names by which records can be chosen: those of kinds, and of the messages in them.
pub fn record_names() -> impl Iterator<Item = &'static str> {
    SESSION_KINDS.into_iter().chain(OWN_KINDS).chain([UNKNOWN]).chain(MESSAGES)
}

/// Describes a record.
pub fn describe(record: &RecordView<'_>) -> Described {
    if let Some((mut described, place)) = describe_session_record(record) {
        match place {
            UpstreamPlace::None => {}
            UpstreamPlace::Answer(packed) => {
                let (key, count, number) = unpack_sequence(packed);
                of_session(&mut described, key, count);
                described.number("answer", number);
            }
            UpstreamPlace::Session(session) => {
                let (key, count) = of_sent_key(session);
                of_session(&mut described, key, count);
            }
        }
        return described;
    }
    let Some(kind) = GatewayRecord::of(record.kind) else {
        let is_refused = record.kind < RECORD_KIND_APPLICATION;
        return Described { is_refused, ..Described::malformed(UNKNOWN, record) };
    };
    let read = match kind {
        GatewayRecord::Session => session(record),
        GatewayRecord::Control => control(record),
        GatewayRecord::Venues => venues(record),
        GatewayRecord::Stray => stray(record),
        GatewayRecord::Home => home(record),
        GatewayRecord::Endpoint => endpoint(record),
        GatewayRecord::Operator => operator(record),
    };
    read.unwrap_or_else(|| Described::malformed(name(kind), record))
}

fn name(kind: GatewayRecord) -> &'static str {
    OWN_KINDS[kind as usize]
}

/// The session with an exchange: the worker that sends, its venue's number, and its count.
fn of_session(described: &mut Described, key: u32, count: u16) {
    let (worker, venue) = of_session_key(key);
    described.number("sender", worker as u64);
    described.number("venue", venue as u64);
    described.number("session_count", count);
}

fn session(record: &RecordView<'_>) -> Option<Described> {
    let (count, session) = of_session_record(record.payload)?;
    let mut described = Described::of_kind(name(GatewayRecord::Session));
    of_session(&mut described, record.session, count);
    described.text("session", session.as_str());
    Some(described)
}

/// The fields are those of the change itself, so that a new one is shown without a line here.
fn control(record: &RecordView<'_>) -> Option<Described> {
    let change: Change = serde_json::from_slice(record.payload).ok()?;
    let Ok(Value::Object(changes)) = serde_json::to_value(&change) else { return None };
    let mut described = Described { is_operator: true, ..Described::of_kind(name(GatewayRecord::Control)) };
    for (what, fields) in changes {
        described.text("change", what);
        let Value::Object(fields) = fields else { continue };
        for (field, value) in fields {
            let is_account = field == "account";
            match value {
                Value::Null if is_account => described.text("account", "all"),
                Value::String(account) if is_account => {
                    described.account = account.parse().ok();
                    described.text("account", account);
                }
                Value::String(text) => described.fields.push((field.into(), FieldValue::Text(text))),
                value => described.fields.push((field.into(), FieldValue::Json(value))),
            }
        }
    }
    Some(described)
}

fn venues(record: &RecordView<'_>) -> Option<Described> {
    let names = of_venues_record(record.payload)?.names;
    let mut described = Described::of_kind(name(GatewayRecord::Venues));
    described.fields.push(("venues".into(), FieldValue::Json(names.clone().into())));
    described.venues = Some(names);
    Some(described)
}

fn stray(record: &RecordView<'_>) -> Option<Described> {
    let (sequence, message) = record.payload.split_first_chunk()?;
    let mut described = Described::of_kind(name(GatewayRecord::Stray));
    of_outbound(&mut described, message);
    // The number is the exchange's, and no client's.
    described.order = None;
    let upstream = described.fields.iter_mut().find(|(name, _)| name == "order");
    if let Some((name, _)) = upstream {
        *name = "upstream_order".into();
    }
    let (key, count) = of_sent_key(record.session);
    of_session(&mut described, key, count);
    described.number("answer", u64::from_le_bytes(*sequence));
    Some(described)
}

fn home(record: &RecordView<'_>) -> Option<Described> {
    let (count, home, before) = of_home(record.payload)?;
    let mut described = Described::of_kind(name(GatewayRecord::Home));
    of_session(&mut described, record.session, count);
    described.number("home", home);
    described.number("after_answer", before);
    Some(described)
}

fn endpoint(record: &RecordView<'_>) -> Option<Described> {
    let endpoint = of_endpoint_record(record.payload)?;
    let mut described = Described::of_kind(name(GatewayRecord::Endpoint));
    let (worker, venue) = of_session_key(record.session);
    described.number("sender", worker as u64);
    described.number("venue", venue as u64);
    let Ok(Value::Object(fields)) = serde_json::to_value(&endpoint) else { return None };
    for (field, value) in fields {
        let value = match value {
            Value::String(text) => FieldValue::Text(text),
            other => FieldValue::Json(other),
        };
        described.fields.push((field.into(), value));
    }
    Some(described)
}

fn operator(record: &RecordView<'_>) -> Option<Described> {
    let audit = Audit::of_record(record.payload)?;
    let Ok(Value::Object(fields)) = serde_json::to_value(&audit) else { return None };
    let mut described = Described { is_operator: true, ..Described::of_kind(name(GatewayRecord::Operator)) };
    for (field, value) in fields {
        match (field.as_str(), value) {
            ("arguments", Value::Object(arguments)) => {
                for (argument, value) in arguments {
                    add_argument(&mut described, argument, value);
                }
            }
            (_, Value::String(text)) => described.fields.push((field.into(), FieldValue::Text(text))),
            (_, value) => described.fields.push((field.into(), FieldValue::Json(value))),
        }
    }
    Some(described)
}

/// An account is that of the record, and `null` stands for all.
fn add_argument(described: &mut Described, name: String, value: Value) {
    match (name.as_str(), value) {
        ("account", Value::Null) => described.text("account", "all"),
        ("account", Value::String(account)) => {
            described.account = account.parse().ok();
            described.text("account", account);
        }
        (_, Value::String(text)) => described.fields.push((name.into(), FieldValue::Text(text))),
        (_, value) => described.fields.push((name.into(), FieldValue::Json(value))),
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::{drop_copy::Copied, ouch::Outbound, soup::Name};

    use super::*;
    use crate::{
        gateway::{
            test_messages,
            worker_message::{home_record, pack_sequence, sent_key, session_key, session_record},
        },
        orders::test_payloads,
    };

    fn view(kind: u8, session: u32, payload: &[u8]) -> RecordView<'_> {
        RecordView { kind, batch: 0, ends_batch: true, worker: 1, lsn: 7, t_ns: 9, session, payload }
    }

    /// The fields in one line.
    fn line(described: &Described) -> String {
        let field = |(name, value): &(std::borrow::Cow<'static, str>, FieldValue)| match value {
            FieldValue::Number(number) => format!("{name}={number}"),
            FieldValue::Price(price) => format!("{name}={price}"),
            FieldValue::Text(text) => format!("{name}={text}"),
            FieldValue::Json(value) => format!("{name}={value}"),
        };
        let fields: Vec<String> = described.fields.iter().map(field).collect();
        format!("{} {}", described.kind, fields.join(" "))
    }

    fn account() -> Name<6> {
        "C00001".parse().expect("a name")
    }

    #[test]
    fn messages_are_described_with_their_order_and_their_session() {
        let raw = test_messages::entered(5, 100);
        let payload = test_payloads::inbound(&account(), 2, 77, &raw);
        let sent = describe(&view(5, sent_key(session_key(3, 1), 256), &payload));
        assert_eq!((sent.order, sent.account), (Some(5), Some(account())));
        assert!(sent.symbol.is_some());
        let shown = line(&sent);
        let begin = "sent account=C00001 generation=2 message=enter order=5 symbol=WEIR side=B quantity=100 ";
        assert!(shown.starts_with(begin), "{shown}");
        assert!(shown.ends_with("upstream_order=77 sender=3 venue=1 session_count=256"), "{shown}");
        let raw = test_messages::accepted(5, b'L');
        let packed = pack_sequence(session_key(3, 1), 256, 12);
        let payload = test_payloads::sequenced(&account(), 2, 4, packed, &raw);
        let shown = line(&describe(&view(1, 0, &payload)));
        let begin = "sequenced account=C00001 generation=2 sequence=4 message=accepted order=5 symbol=WEIR ";
        assert!(shown.starts_with(begin), "{shown}");
        assert!(shown.ends_with("sender=3 venue=1 session_count=256 answer=12"), "{shown}");
    }

    #[test]
    fn copies_for_firms_are_described_with_the_account_that_got_the_message() {
        let raw = test_messages::accepted(5, b'L');
        let session = "WEIRGW0002".parse().expect("a name");
        let head = Copied { account: account(), session, number: 9, message: &raw }.head();
        let firm: Name<6> = "FIRM".parse().expect("a name");
        let payload = test_payloads::sequenced(&firm, 0, 4, 1 << 40, &[&head[..], &raw].concat());
        let described = describe(&view(1, 0, &payload));
        assert_eq!((described.account, described.order), (Some(firm), Some(5)));
        let begin = "sequenced account=FIRM generation=0 sequence=4 copy_of=C00001 copy_session=WEIRGW0002 \
                     copy_sequence=9 message=accepted order=5 ";
        assert!(line(&described).starts_with(begin), "{}", line(&described));
    }

    #[test]
    fn changes_of_operators_are_described_with_every_field() {
        let kill = describe(&view(65, 0, br#"{"kill":{"account":"C00001","on":true}}"#));
        assert!(kill.is_operator);
        assert_eq!(line(&kill), "control change=kill account=C00001 on=true");
        let everyone = describe(&view(65, 0, br#"{"kill":{"account":null,"on":false}}"#));
        assert_eq!(line(&everyone), "control change=kill account=all on=false");
        assert_eq!(everyone.account, None);
        let limits = describe(&view(65, 0, br#"{"limits":{"account":null,"limits":{"shares_max":5}}}"#));
        assert_eq!(line(&limits), r#"control change=limits account=all limits={"shares_max":5}"#);
        let day = br#"{"day":{"phase":"over","session":"main","date":"2026-12-01","begins_at":9,"open_orders":"carry","generation":3}}"#;
        let expected = "control change=day begins_at=9 date=2026-12-01 generation=3 open_orders=carry phase=over session=main";
        assert_eq!(line(&describe(&view(65, 0, day))), expected);
    }

    #[test]
    fn commands_of_operators_are_described_with_user_arguments_and_outcome() {
        let done = br#"{"via":"socket","user":"desk","uid":1000,"pid":7,"command":"kill","arguments":{"account":"C00001","on":true},"ok":true}"#;
        let described = describe(&view(70, 0, done));
        assert!(described.is_operator && described.account == Some(account()));
        // In the order of their names.
        let expected =
            "operator account=C00001 on=true command=kill ok=true pid=7 uid=1000 user=desk via=socket";
        assert_eq!(line(&described), expected);
        let refused = br#"{"via":"signal","command":"reload","ok":false,"error":"it is wrong"}"#;
        let shown = line(&describe(&view(70, 0, refused)));
        assert_eq!(shown, "operator command=reload error=it is wrong ok=false via=signal");
    }

    #[test]
    fn what_the_gateway_notes_for_itself_is_described() {
        let day = "DAY01".parse().expect("a name");
        let key = session_key(1, 2);
        let cases: [(u8, Vec<u8>, &str); 4] = [
            (
                64,
                session_record(256, &day).to_vec(),
                "session sender=1 venue=2 session_count=256 session=DAY01",
            ),
            (66, br#"[{"name":"A"},{"name":"B"}]"#.to_vec(), r#"venues venues=["A","B"]"#),
            (
                68,
                home_record(256, 3, 9).to_vec(),
                "home sender=1 venue=2 session_count=256 home=3 after_answer=9",
            ),
            (
                69,
                br#"{"address":"10.0.0.1:7001","username":"G00001"}"#.to_vec(),
                "endpoint sender=1 venue=2 address=10.0.0.1:7001 username=G00001",
            ),
        ];
        for (kind, payload, expected) in cases {
            let described = describe(&view(kind, key, &payload));
            assert_eq!(line(&described), expected);
            assert!(!described.is_malformed && !described.is_operator, "{expected}");
        }
        let mut payload = 12_u64.to_le_bytes().to_vec();
        Outbound::CancelReject(weir_proto::ouch::CancelReject { timestamp_ns: 1, user_ref_num: 8 })
            .encode(&mut payload);
        let stray = describe(&view(67, sent_key(key, 256), &payload));
        let expected =
            "stray message=cancel_reject upstream_order=8 sender=1 venue=2 session_count=256 answer=12";
        assert_eq!((line(&stray).as_str(), stray.order), (expected, None));
    }

    #[test]
    fn bytes_that_cannot_be_read_are_counted_and_not_shown() {
        let secret = b"PASSWORD\0\x01\x02\x03\x04\x05\x06";
        for kind in 0..=u8::MAX {
            let described = describe(&view(kind, 0, secret));
            let shown = line(&described);
            assert!(!shown.contains("PASS") && !shown.contains("WORD"), "{shown}");
            // A stray message is passed on as it is.
            assert!(described.is_malformed || kind == 67, "{shown}");
            assert_eq!(described.is_refused, kind < 64, "{shown}");
        }
        let payload = test_payloads::inbound(&account(), 0, 0, secret);
        let shown = line(&describe(&view(2, 0, &payload)));
        assert!(shown.contains("message=unreadable message_bytes=15") && !shown.contains("PASS"), "{shown}");
    }

    #[test]
    fn every_kind_has_the_name_that_the_list_has() {
        for kind in 0..=u8::MAX {
            assert!(record_names().any(|name| name == describe(&view(kind, 0, b"")).kind), "{kind}");
        }
    }
}
