//! One record as a line of text, a JSON object or a row of CSV.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};
use weir_proto::ouch::PRICE_MARKET;
use weir_servers::{
    journal::{Position, RecordView},
    orders::{Described, FieldValue},
};

use super::moment;
use crate::args::RecordFormat;

/// Prices have four implied decimals.
const PRICE_UNIT: u64 = 10_000;

/// The columns of CSV.
const CSV_HEAD: &str = "time,worker,file,byte,number,kind,message,account,order,symbol,fields\n";

/// Writes records in one format. It knows the venues' names that the records before have given.
pub(super) struct Rows {
    format: RecordFormat,
    /// By worker: the venues, by their numbers in the records of its journal.
    venues: HashMap<u16, Vec<String>>,
}

impl Rows {
    pub(super) fn new(format: RecordFormat) -> Self {
        Self { format, venues: HashMap::new() }
    }

    /// What is written before the first record.
    pub(super) fn head(&self) -> &'static str {
        if self.format == RecordFormat::Csv { CSV_HEAD } else { "" }
    }

    /// Takes note of what a record says about later ones, whether or not it is shown.
    pub(super) fn note(&mut self, worker: u16, described: &mut Described) {
        if let Some(venues) = described.venues.take() {
            self.venues.insert(worker, venues);
        }
    }

    /// A record with the end of its line.
    pub(super) fn row(&self, record: &RecordView<'_>, position: Position, described: Described) -> String {
        let worker = record.worker;
        let fields = described.fields.iter().map(|(name, value)| (&**name, self.named(worker, name, value)));
        let (time, file, byte) = (moment::shown(record.t_ns), position.file_name(worker), position.offset);
        match self.format {
            RecordFormat::Text => {
                let mut line = format!("{time} {file}:{byte} #{} {}", record.lsn, described.kind);
                for (name, value) in fields {
                    line.push_str(&format!(" {name}={}", text(&value)));
                }
                line + "\n"
            }
            RecordFormat::Json => {
                let fields: Map<String, Value> =
                    fields.map(|(name, value)| (name.to_owned(), json(&value))).collect();
                let all = serde_json::json!({
                    "time": time, "t_ns": record.t_ns, "worker": worker, "file": file, "byte": byte,
                    "number": record.lsn, "kind": described.kind, "fields": fields,
                });
                format!("{all}\n")
            }
            RecordFormat::Csv => {
                let fields: Vec<String> =
                    fields.map(|(name, value)| format!("{name}={}", text(&value))).collect();
                let number = |number: Option<u32>| number.map(|it| it.to_string()).unwrap_or_default();
                let columns = [
                    time,
                    worker.to_string(),
                    file,
                    byte.to_string(),
                    record.lsn.to_string(),
                    described.kind.to_owned(),
                    described.message.unwrap_or_default().to_owned(),
                    described.account.map(|account| account.to_string()).unwrap_or_default(),
                    number(described.order),
                    described.symbol.map(|it| it.as_str().escape_default().to_string()).unwrap_or_default(),
                    fields.join(" "),
                ];
                columns.map(|column| column_of(&column)).join(",") + "\n"
            }
        }
    }

    /// A value; a venue's number becomes its name, if that is known.
    fn named(&self, worker: u16, name: &str, value: &FieldValue) -> FieldValue {
        let known = match value {
            FieldValue::Number(number) if name == "venue" => {
                let names = self.venues.get(&worker);
                names.and_then(|names| names.get(usize::try_from(*number).ok()?))
            }
            _ => None,
        };
        known.map_or_else(|| value.clone(), |venue| FieldValue::Text(venue.clone()))
    }
}

/// A price in units of the currency.
fn price(price: u64) -> String {
    if price == PRICE_MARKET {
        return "market".to_owned();
    }
    format!("{}.{:04}", price / PRICE_UNIT, price % PRICE_UNIT)
}

/// A value of a line. A text is quoted if its end could not be seen otherwise.
fn text(value: &FieldValue) -> String {
    match value {
        FieldValue::Number(number) => number.to_string(),
        FieldValue::Price(units) => price(*units),
        FieldValue::Text(text) => {
            let is_plain =
                !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
            if is_plain { text.clone() } else { Value::String(text.clone()).to_string() }
        }
        FieldValue::Json(value) => value.to_string(),
    }
}

fn json(value: &FieldValue) -> Value {
    match value {
        FieldValue::Number(number) => (*number).into(),
        FieldValue::Price(PRICE_MARKET) => "market".into(),
        FieldValue::Price(units) => {
            let number = price(*units).parse().ok().and_then(Number::from_f64);
            number.map_or(Value::Null, Value::Number)
        }
        FieldValue::Text(text) => text.clone().into(),
        FieldValue::Json(value) => value.clone(),
    }
}

/// A column, in quotes if it needs them (RFC 4180).
fn column_of(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> RecordView<'static> {
        RecordView {
            kind: 1,
            batch: 0,
            ends_batch: true,
            worker: 3,
            lsn: 12,
            t_ns: 1_500_000_000,
            session: 0,
            payload: b"",
        }
    }

    fn described() -> Described {
        let fields = vec![
            ("account".into(), FieldValue::Text("C1".into())),
            ("client_order_id".into(), FieldValue::Text("a \"b\"".into())),
            ("price".into(), FieldValue::Price(125_000)),
            ("venue".into(), FieldValue::Number(1)),
            ("limits".into(), FieldValue::Json(serde_json::json!({"shares_max": 5}))),
        ];
        Described {
            kind: "sent",
            message: Some("enter"),
            account: "C1".parse().ok(),
            order: Some(7),
            symbol: "WEIR".parse().ok(),
            fields,
            ..Described::default()
        }
    }

    fn row(format: RecordFormat, venues: Option<&[&str]>) -> String {
        let mut rows = Rows::new(format);
        let venues = venues.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        rows.note(3, &mut Described { venues, ..Described::default() });
        rows.row(&record(), Position { segment: 2, offset: 64 }, described())
    }

    #[test]
    fn a_line_says_when_and_where_and_what() {
        assert_eq!(
            row(RecordFormat::Text, None),
            "1970-01-01T00:00:01.500000000Z worker-00003-0000000002.journal:64 #12 sent account=C1 \
             client_order_id=\"a \\\"b\\\"\" price=12.5000 venue=1 limits={\"shares_max\":5}\n"
        );
        assert!(row(RecordFormat::Text, Some(&["A", "B"])).contains(" venue=B "));
        assert!(row(RecordFormat::Text, Some(&["A"])).contains(" venue=1 "), "it has no such venue");
    }

    #[test]
    fn json_is_one_object_in_a_line() {
        let line = row(RecordFormat::Json, Some(&["A", "B"]));
        assert_eq!(line.lines().count(), 1);
        let read: Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(read["number"], 12);
        assert_eq!(read["byte"], 64);
        assert_eq!(read["t_ns"], 1_500_000_000_u64);
        assert_eq!(read["fields"]["price"], 12.5);
        assert_eq!(read["fields"]["venue"], "B");
        assert_eq!(read["fields"]["client_order_id"], "a \"b\"");
    }

    #[test]
    fn csv_has_as_many_columns_as_its_head() {
        let line = row(RecordFormat::Csv, None);
        let expected = "1970-01-01T00:00:01.500000000Z,3,worker-00003-0000000002.journal,64,12,sent,enter,C1,7,WEIR,\
                        \"account=C1 client_order_id=\"\"a \\\"\"b\\\"\"\"\" price=12.5000 venue=1 \
                        limits={\"\"shares_max\"\":5}\"\n";
        assert_eq!(line, expected);
        assert_eq!(CSV_HEAD.split(',').count(), 11);
    }

    #[test]
    fn a_price_has_its_decimals_or_is_that_of_a_market_order() {
        assert_eq!(
            (price(1), price(12_345_678), price(PRICE_MARKET)),
            ("0.0001".into(), "1234.5678".into(), "market".into())
        );
        assert_eq!(json(&FieldValue::Price(PRICE_MARKET)), "market");
    }
}
