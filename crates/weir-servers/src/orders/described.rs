//! Records of sessions as people and other programs read them: a name and named fields. Pure. Every kind and every
//! message has its place here, because the compiler requires it. Bytes that cannot be read are counted and never
//! shown.

use std::borrow::Cow;

use weir_proto::{
    drop_copy::Copied,
    ouch::{Accepted, Appendage, DecodeError, Inbound, Outbound, Replaced, Symbol, reject_reason},
    soup::Name,
};

use super::records::{self, SessionRecord};
use crate::journal::RecordView;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldValue {
    /// A number.
    Number(u64),
    /// A price with four implied decimals.
    Price(u64),
    /// A text.
    Text(String),
    /// Anything else.
    Json(serde_json::Value),
}

/// A record that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Described {
    /// Name of its kind.
    pub kind: &'static str,
    /// Name of the message in it.
    pub message: Option<&'static str>,
    /// Whether it records an operator's action.
    pub is_operator: bool,
    /// The account it concerns.
    pub account: Option<Name<6>>,
    /// The client's number of the order it concerns: of the new one in a replace.
    pub order: Option<u32>,
    /// The client's number of the order that is replaced.
    pub original: Option<u32>,
    /// The traded symbol.
    pub symbol: Option<Symbol>,
    /// Names of the venues, by their numbers in the records of this journal behind it.
    pub venues: Option<Vec<String>>,
    /// Everything in it, in order.
    pub fields: Vec<(Cow<'static, str>, FieldValue)>,
    /// It is not what its kind has to be, or its kind is not known.
    pub is_malformed: bool,
    /// A start of the server with this record is refused.
    pub is_refused: bool,
}

impl Described {
    pub(crate) fn of_kind(kind: &'static str) -> Self {
        Self { kind, ..Self::default() }
    }

    /// A record that cannot be read: only its length is shown.
    pub(crate) fn malformed(kind: &'static str, record: &RecordView<'_>) -> Self {
        let mut described = Self { is_malformed: true, ..Self::of_kind(kind) };
        described.number("kind_number", record.kind);
        described.number("payload_bytes", record.payload.len() as u64);
        described
    }

    pub(crate) fn number(&mut self, name: &'static str, number: impl Into<u64>) {
        self.fields.push((name.into(), FieldValue::Number(number.into())));
    }

    pub(crate) fn text(&mut self, name: &'static str, text: impl Into<String>) {
        self.fields.push((name.into(), FieldValue::Text(text.into())));
    }

    fn price(&mut self, price: u64) {
        self.fields.push(("price".into(), FieldValue::Price(price)));
    }

    fn letter(&mut self, name: &'static str, letter: u8) {
        self.text(name, letter.escape_ascii().to_string());
    }

    pub(crate) fn account(&mut self, name: Name<6>) {
        self.account = Some(name);
        self.text("account", name.as_str());
    }

    fn order(&mut self, user_ref_num: u32) {
        self.order = Some(user_ref_num);
        self.number("order", user_ref_num);
    }

    fn original(&mut self, user_ref_num: u32) {
        self.original = Some(user_ref_num);
        self.number("original", user_ref_num);
    }

    fn symbol(&mut self, symbol: Symbol) {
        self.symbol = Some(symbol);
        self.text("symbol", printable(&symbol.0));
    }

    fn message(&mut self, name: &'static str) {
        self.message = Some(name);
        self.text("message", name);
    }

    /// A message about an order.
    fn about(&mut self, message: &'static str, user_ref_num: u32) {
        self.message(message);
        self.order(user_ref_num);
    }

    fn tags(&mut self, appendage: Appendage<'_>) {
        if !appendage.is_empty() {
            self.number("appendage_bytes", appendage.bytes().len() as u64);
        }
    }

    /// A message that cannot be read. Its bytes may be anything, and are not shown.
    fn unreadable(&mut self, message: &[u8], error: &DecodeError) {
        self.message("unreadable");
        self.number("message_bytes", message.len() as u64);
        self.text("error", error.to_string());
    }
}

/// A text without its padding, in which unprintable bytes are escaped.
fn printable(bytes: &[u8]) -> String {
    let length = bytes.iter().rposition(|byte| !matches!(byte, b' ' | 0)).map_or(0, |last| last + 1);
    bytes[..length].escape_ascii().to_string()
}

/// Whether a record is the answer to another one: among records with the same time it comes last.
pub fn is_answer(kind: u8) -> bool {
    kind == records::SEQUENCED
}

/// The message in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOf<'a> {
    /// A client's, as received.
    Received(&'a [u8]),
    /// A client's, which is refused.
    Refused(&'a [u8]),
    /// A client's that is sent on: the session, as the application names it, and the number there.
    Sent { message: &'a [u8], session: u32, upstream: u32 },
    /// One of the account's stream, with its number, and its origin as the application packs it.
    Stream { message: &'a [u8], sequence: u64, upstream_sequence: u64 },
}

/// The account, how many sessions had ended before, and the message. `None`: it has no message.
pub(crate) fn message_of<'a>(record: &RecordView<'a>) -> Option<(Name<6>, u16, MessageOf<'a>)> {
    match SessionRecord::of(record.kind)? {
        SessionRecord::Sequenced => {
            let records::Sequenced { sequence, upstream_sequence, name, generation, message } =
                records::sequenced(record.payload)?;
            Some((name, generation, MessageOf::Stream { message, sequence, upstream_sequence }))
        }
        kind @ (SessionRecord::Inbound | SessionRecord::Refused | SessionRecord::Sent) => {
            let records::Inbound { upstream, name, generation, raw } = records::inbound(record.payload)?;
            let of = match kind {
                SessionRecord::Refused => MessageOf::Refused(raw),
                SessionRecord::Sent => MessageOf::Sent { message: raw, session: record.session, upstream },
                _ => MessageOf::Received(raw),
            };
            Some((name, generation, of))
        }
        SessionRecord::Ended => None,
    }
}

/// What a record says about the session with an exchange. The application knows how it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamPlace {
    /// Nothing.
    None,
    /// The origin of an answer.
    Answer(u64),
    /// The session that a message was sent by.
    Session(u32),
}

/// Describes a record of sessions. `None`: its kind belongs to the application, or is not known.
pub(crate) fn describe_session_record(record: &RecordView<'_>) -> Option<(Described, UpstreamPlace)> {
    let kind = SessionRecord::of(record.kind)?;
    let read = match kind {
        SessionRecord::Sequenced => sequenced(record.payload),
        SessionRecord::Inbound => inbound(record, "inbound"),
        SessionRecord::Ended => ended(record.payload),
        SessionRecord::Refused => refused(record.payload),
        SessionRecord::Sent => inbound(record, "sent"),
    };
    Some(read.unwrap_or_else(|| {
        let malformed = Described { is_refused: true, ..Described::malformed(name(kind), record) };
        (malformed, UpstreamPlace::None)
    }))
}

/// Names of the kinds of sessions.
pub(crate) const SESSION_KINDS: [&str; 5] = ["sequenced", "inbound", "ended", "refused", "sent"];

fn name(kind: SessionRecord) -> &'static str {
    match kind {
        SessionRecord::Sequenced => SESSION_KINDS[0],
        SessionRecord::Inbound => SESSION_KINDS[1],
        SessionRecord::Ended => SESSION_KINDS[2],
        SessionRecord::Refused => SESSION_KINDS[3],
        SessionRecord::Sent => SESSION_KINDS[4],
    }
}

fn sequenced(payload: &[u8]) -> Option<(Described, UpstreamPlace)> {
    let records::Sequenced { sequence, upstream_sequence, name, generation, message } =
        records::sequenced(payload)?;
    let mut described = Described::of_kind(SESSION_KINDS[0]);
    described.account(name);
    described.number("generation", generation);
    described.number("sequence", sequence);
    if let Some(copied) = Copied::parse(message) {
        described.text("copy_of", copied.account.as_str());
        described.text("copy_session", copied.session.as_str());
        described.number("copy_sequence", copied.number);
        of_outbound(&mut described, copied.message);
        return Some((described, UpstreamPlace::None));
    }
    of_outbound(&mut described, message);
    let place = match upstream_sequence {
        0 => UpstreamPlace::None,
        packed => UpstreamPlace::Answer(packed),
    };
    Some((described, place))
}

fn inbound(record: &RecordView<'_>, kind: &'static str) -> Option<(Described, UpstreamPlace)> {
    let records::Inbound { upstream, name, generation, raw } = records::inbound(record.payload)?;
    let mut described = Described::of_kind(kind);
    described.account(name);
    described.number("generation", generation);
    of_inbound(&mut described, raw);
    if upstream > 0 {
        described.number("upstream_order", upstream);
    }
    let is_sent = record.kind == records::SENT;
    Some((described, if is_sent { UpstreamPlace::Session(record.session) } else { UpstreamPlace::None }))
}

fn refused(payload: &[u8]) -> Option<(Described, UpstreamPlace)> {
    let records::Inbound { upstream, name, generation, raw } = records::inbound(payload)?;
    let reason = u16::try_from(upstream).ok()?;
    let mut described = Described::of_kind(SESSION_KINDS[3]);
    described.account(name);
    described.number("generation", generation);
    of_inbound(&mut described, raw);
    of_reason(&mut described, reason);
    Some((described, UpstreamPlace::None))
}

fn ended(payload: &[u8]) -> Option<(Described, UpstreamPlace)> {
    let mut described = Described { is_operator: true, ..Described::of_kind(SESSION_KINDS[2]) };
    described.number("generation", records::ended(payload)?);
    Some((described, UpstreamPlace::None))
}

fn of_reason(described: &mut Described, reason: u16) {
    described.text("reason", format!("0x{reason:04X}"));
    described.text("reason_name", reject_reason::name(reason));
}

/// Names of the messages of clients and of exchanges, as `message` has them.
pub(crate) const MESSAGES: [&str; 20] = [
    "enter",
    "replace",
    "cancel",
    "modify",
    "account_query",
    "system_event",
    "accepted",
    "replaced",
    "canceled",
    "aiq_canceled",
    "executed",
    "broken_trade",
    "rejected",
    "cancel_pending",
    "cancel_reject",
    "priority_update",
    "modified",
    "restated",
    "account_query_response",
    "unreadable",
];

fn of_inbound(described: &mut Described, raw: &[u8]) {
    let message = match Inbound::decode(raw) {
        Ok(message) => message,
        Err(error) => return described.unreadable(raw, &error),
    };
    match message {
        Inbound::Enter(enter, tags) => {
            described.about("enter", enter.user_ref_num);
            described.symbol(enter.symbol);
            described.letter("side", enter.side);
            described.number("quantity", enter.quantity);
            described.price(enter.price);
            described.letter("time_in_force", enter.time_in_force);
            described.text("client_order_id", printable(&enter.client_order_id.0));
            described.tags(tags);
        }
        Inbound::Replace(replace, tags) => {
            described.about("replace", replace.user_ref_num);
            described.original(replace.original_user_ref_num);
            described.number("quantity", replace.quantity);
            described.price(replace.price);
            described.letter("time_in_force", replace.time_in_force);
            described.text("client_order_id", printable(&replace.client_order_id.0));
            described.tags(tags);
        }
        Inbound::Cancel(cancel) => {
            described.about("cancel", cancel.user_ref_num);
            described.number("quantity", cancel.quantity);
        }
        Inbound::Modify(modify) => {
            described.about("modify", modify.user_ref_num);
            described.letter("side", modify.side);
            described.number("quantity", modify.quantity);
        }
        Inbound::AccountQuery => described.message("account_query"),
    }
}

/// Describes a message of an exchange.
pub(crate) fn of_outbound(described: &mut Described, raw: &[u8]) {
    let (message, tags) = match Outbound::decode(raw) {
        Ok(decoded) => decoded,
        Err(error) => return described.unreadable(raw, &error),
    };
    match message {
        Outbound::SystemEvent { event, .. } => {
            described.message("system_event");
            described.letter("event", event);
        }
        Outbound::Accepted(accepted) => of_accepted(described, &accepted),
        Outbound::Replaced(replaced) => of_replaced(described, &replaced),
        Outbound::Canceled(canceled) => {
            described.about("canceled", canceled.user_ref_num);
            described.number("quantity", canceled.quantity);
            described.letter("reason", canceled.reason);
        }
        Outbound::AiqCanceled(canceled) => {
            described.about("aiq_canceled", canceled.user_ref_num);
            described.number("quantity", canceled.quantity);
            described.letter("reason", canceled.reason);
            described.price(canceled.price);
        }
        Outbound::Executed(executed) => {
            described.about("executed", executed.user_ref_num);
            described.number("quantity", executed.quantity);
            described.price(executed.price);
            described.letter("liquidity", executed.liquidity);
            described.number("match_number", executed.match_number);
        }
        Outbound::BrokenTrade(broken) => {
            described.about("broken_trade", broken.user_ref_num);
            described.number("match_number", broken.match_number);
            described.letter("reason", broken.reason);
            described.text("client_order_id", printable(&broken.client_order_id.0));
        }
        Outbound::Rejected(rejected) => {
            described.about("rejected", rejected.user_ref_num);
            of_reason(described, rejected.reason);
            described.text("client_order_id", printable(&rejected.client_order_id.0));
        }
        Outbound::CancelPending(pending) => described.about("cancel_pending", pending.user_ref_num),
        Outbound::CancelReject(reject) => described.about("cancel_reject", reject.user_ref_num),
        Outbound::PriorityUpdate(update) => {
            described.about("priority_update", update.user_ref_num);
            described.price(update.price);
            described.number("order_reference", update.order_reference);
        }
        Outbound::Modified(modified) => {
            described.about("modified", modified.user_ref_num);
            described.letter("side", modified.side);
            described.number("quantity", modified.quantity);
        }
        Outbound::Restated(restated) => {
            described.about("restated", restated.user_ref_num);
            described.letter("reason", restated.reason);
        }
        Outbound::AccountQueryResponse { next_user_ref_num, .. } => {
            described.message("account_query_response");
            described.number("next_order", next_user_ref_num);
        }
    }
    described.tags(tags);
}

fn of_accepted(described: &mut Described, accepted: &Accepted) {
    described.about("accepted", accepted.user_ref_num);
    described.symbol(accepted.symbol);
    described.letter("side", accepted.side);
    described.number("quantity", accepted.quantity);
    described.price(accepted.price);
    described.letter("time_in_force", accepted.time_in_force);
    described.letter("order_state", accepted.order_state);
    described.number("order_reference", accepted.order_reference);
    described.text("client_order_id", printable(&accepted.client_order_id.0));
}

fn of_replaced(described: &mut Described, replaced: &Replaced) {
    described.about("replaced", replaced.user_ref_num);
    described.original(replaced.original_user_ref_num);
    described.symbol(replaced.symbol);
    described.letter("side", replaced.side);
    described.number("quantity", replaced.quantity);
    described.price(replaced.price);
    described.letter("time_in_force", replaced.time_in_force);
    described.letter("order_state", replaced.order_state);
    described.number("order_reference", replaced.order_reference);
    described.text("client_order_id", printable(&replaced.client_order_id.0));
}

/// Payloads of records, for tests.
#[cfg(test)]
pub(crate) mod test_payloads {
    use weir_proto::soup::Name;

    use super::records::{inbound_head, sequenced_head};

    pub(crate) fn inbound(name: &Name<6>, generation: u16, upstream: u32, raw: &[u8]) -> Vec<u8> {
        [&inbound_head(name, generation, upstream)[..], raw].concat()
    }

    pub(crate) fn sequenced(
        name: &Name<6>,
        generation: u16,
        sequence: u64,
        upstream: u64,
        raw: &[u8],
    ) -> Vec<u8> {
        [&sequenced_head(sequence, upstream, name, generation)[..], raw].concat()
    }
}
