//! Open orders, positions and exposures on the command line: what is asked for, and how it is printed.

use anyhow::Result;
use weir_servers::gateway::{
    ControlRequest, ControlResponse, ExposureRow, NEVER_SENT, OrderFilter, OrderRow, PositionRow,
    VenueCancels,
};

use crate::{
    args::{CtlTask, ListFormat, Paging, Which},
    exit::UsageError,
};

/// What a command asks the gateway for.
pub(super) fn request(task: &CtlTask) -> Result<ControlRequest> {
    let filter = |which: &Which| OrderFilter {
        account: which.account.clone(),
        symbol: which.symbol.clone(),
        venue: which.venue.clone(),
    };
    Ok(match task {
        CtlTask::Orders { which, page } => {
            ControlRequest::Orders { filter: filter(which), after: page.after.clone() }
        }
        CtlTask::Positions { account, symbol, page } => {
            let filter = OrderFilter { account: account.clone(), symbol: symbol.clone(), venue: None };
            ControlRequest::Positions { filter, after: page.after.clone() }
        }
        CtlTask::Exposure { account, page } => {
            ControlRequest::Exposure { account: account.clone(), after: page.after.clone() }
        }
        CtlTask::Cancel { order: Some(order), .. } => {
            let (account, order) = parse_order(order)?;
            ControlRequest::CancelOrder { account, order }
        }
        CtlTask::Cancel { order: None, which } => {
            let filter = filter(which);
            if filter.is_empty() {
                let text = "which orders: give one, as in C00001/17, or --account, --symbol or --venue; `weir ctl \
                            kill all` cancels all of them, and refuses new ones";
                return Err(UsageError(text.into()).into());
            }
            ControlRequest::CancelOrders { filter }
        }
        other => anyhow::bail!("{other:?} is no list"),
    })
}

/// `ACCOUNT/NUMBER`.
fn parse_order(text: &str) -> Result<(String, u32)> {
    let parsed = text.split_once('/').and_then(|(account, number)| Some((account, number.parse().ok()?)));
    match parsed {
        Some((account, number)) if !account.is_empty() => Ok((account.to_owned(), number)),
        _ => Err(UsageError(format!(
            "{text:?}: write ACCOUNT/ORDER, such as C00001/17, as `weir ctl orders` shows them"
        ))
        .into()),
    }
}

/// The exposure of one account is followed by its open orders.
pub(super) fn second_request(first: &ControlRequest, answer: &ControlResponse) -> Option<ControlRequest> {
    let ControlRequest::Exposure { account: Some(account), .. } = first else { return None };
    answer.exposures.as_ref()?;
    let filter = OrderFilter { account: Some(account.clone()), ..OrderFilter::default() };
    Some(ControlRequest::Orders { filter, after: None })
}

/// The answers to both in one.
pub(super) fn with_orders(answer: ControlResponse, orders: ControlResponse) -> ControlResponse {
    ControlResponse { orders: orders.orders, next: orders.next, ..answer }
}

/// How a list is printed; `None` for other commands.
pub(super) fn format_of(task: &CtlTask) -> Option<ListFormat> {
    match task {
        CtlTask::Orders { page, .. } | CtlTask::Positions { page, .. } | CtlTask::Exposure { page, .. } => {
            let Paging { format, .. } = page;
            Some(*format)
        }
        _ => None,
    }
}

/// An answer in lines.
pub(super) fn lines(request: &ControlRequest, answer: &ControlResponse) -> Vec<String> {
    let mut lines = match request {
        ControlRequest::Orders { .. } => orders(answer.orders.as_deref().unwrap_or_default()),
        ControlRequest::Positions { .. } => positions(answer.positions.as_deref().unwrap_or_default()),
        ControlRequest::Exposure { .. } => {
            let mut lines = exposures(answer.exposures.as_deref().unwrap_or_default());
            if let Some(all) = &answer.orders {
                lines.extend(orders(all));
            }
            lines
        }
        _ => cancelled(answer),
    };
    if let Some(next) = &answer.next {
        // An account's exposure is on one page; its orders may have more.
        let command = if answer.orders.is_some() && answer.exposures.is_some() {
            "there are more orders: `weir ctl orders`, with the same --account and"
        } else {
            "there is more: the same command with"
        };
        lines.push(format!("{command} --after {next}"));
    }
    lines
}

fn cancelled(answer: &ControlResponse) -> Vec<String> {
    let venues = answer.cancels.as_deref().unwrap_or_default();
    let mut lines: Vec<String> = venues.iter().map(ToString::to_string).collect();
    if lines.is_empty() {
        lines.push("no such order was open".to_owned());
    }
    lines.extend(unsent(venues));
    if let Some(count) = answer.unknown_symbols {
        lines.push(format!(
            "{count} open orders whose symbol is not known are not among them; `weir ctl orders` lists them without a \
             symbol"
        ));
    }
    lines
}

/// A note about cancels that have not left. Orders that have ended need none.
pub(super) fn unsent(venues: &[VenueCancels]) -> Option<String> {
    let waits =
        |it: &VenueCancels| it.sent < it.orders && it.confirmed.saturating_add(it.expired) < it.orders;
    venues
        .iter()
        .any(waits)
        .then(|| "cancels that are not sent leave on the next connection to their venue".to_owned())
}

fn orders(rows: &[OrderRow]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["no order is open".to_owned()];
    }
    let head = [
        "order", "symbol", "side", "shares", "price", "value", "state", "age", "venue", "worker", "upstream",
    ];
    let cells = |row: &OrderRow| {
        [
            format!("{}/{}", row.account, row.order),
            known(row.symbol.as_ref()),
            known(row.side),
            known(row.shares),
            known(row.price),
            known(row.value().map(|value| format!("{value:.2}"))),
            row.state.clone(),
            known(row.age_ms.map(age)),
            row.venue.clone(),
            row.worker.to_string(),
            row.upstream_order.to_string(),
        ]
    };
    let mut lines = table(head, rows.iter().map(cells));
    if rows.iter().any(|row| row.state == NEVER_SENT) {
        lines.push(format!(
            "{NEVER_SENT}: the journal of the order's worker has failed before it had the order, and the exchange does \
             not get it"
        ));
    }
    lines
}

fn positions(rows: &[PositionRow]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["nothing was executed".to_owned()];
    }
    let (in_symbols, rest): (Vec<&PositionRow>, Vec<&PositionRow>) =
        rows.iter().partition(|row| row.symbol.is_some());
    let cells = |row: &&PositionRow| {
        [
            row.account.clone(),
            known(row.symbol.as_ref()),
            row.bought.to_string(),
            row.sold.to_string(),
            row.net.to_string(),
        ]
    };
    let mut lines = match in_symbols.as_slice() {
        [] => Vec::new(),
        rows => table(["account", "symbol", "bought", "sold", "net"], rows.iter().map(cells)),
    };
    for row in rest {
        let PositionRow { account, unattributed, broken_trades, .. } = row;
        if *unattributed > 0 {
            lines.push(format!(
                "{account}: {unattributed} executed shares of orders whose symbol is not known"
            ));
        }
        if *broken_trades > 0 {
            lines.push(format!(
                "{account}: broken trades: {broken_trades}; their shares are still in its positions"
            ));
        }
    }
    lines
}

fn exposures(rows: &[ExposureRow]) -> Vec<String> {
    if rows.is_empty() {
        return vec!["no account has an exposure or a limit of it".to_owned()];
    }
    let cells = |row: &ExposureRow| {
        let share = row.limit.filter(|limit| *limit > 0.0).map(|limit| 100.0 * row.used / limit);
        [
            row.account.clone(),
            format!("{:.2}", row.used),
            row.limit.map_or_else(|| "none".to_owned(), |limit| format!("{limit:.2}")),
            known(share.map(|percent| format!("{percent:.1} %"))),
        ]
    };
    table(["account", "used", "limit", "of it"], rows.iter().map(cells))
}

/// A value, or a dash if it is unknown.
fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// An age in its largest fitting unit.
fn age(age_ms: u64) -> String {
    match age_ms {
        0..=9_999 => format!("{age_ms} ms"),
        10_000..=599_999 => format!("{} s", age_ms / 1_000),
        600_000..=35_999_999 => format!("{} min", age_ms / 60_000),
        _ => format!("{} h", age_ms / 3_600_000),
    }
}

/// Columns as wide as their widest cell.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Vec<String> {
    let all: Vec<[String; N]> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> OrderRow {
        OrderRow {
            account: "C00001".into(),
            order: 17,
            symbol: Some("WEIR".into()),
            side: Some('B'),
            shares: Some(100),
            price: Some(12.5),
            state: "open".into(),
            venue: "XA".into(),
            worker: 1,
            upstream_order: 4,
            age_ms: Some(12_000),
        }
    }

    #[test]
    fn orders_stand_in_columns_and_what_is_unknown_is_a_dash() {
        let unknown = OrderRow {
            order: 9,
            symbol: None,
            side: None,
            shares: None,
            price: None,
            age_ms: None,
            state: "unanswered".into(),
            ..row()
        };
        let answer = ControlResponse {
            orders: Some(vec![row(), unknown]),
            next: Some("1.0.256".into()),
            ..ControlResponse::default()
        };
        let request = ControlRequest::Orders { filter: OrderFilter::default(), after: None };
        assert_eq!(
            lines(&request, &answer),
            [
                "order      symbol  side  shares  price  value    state       age   venue  worker  upstream",
                "C00001/17  WEIR    B     100     12.5   1250.00  open        12 s  XA     1       4",
                "C00001/9   -       -     -       -      -        unanswered  -     XA     1       4",
                "there is more: the same command with --after 1.0.256",
            ]
        );
    }

    #[test]
    fn orders_that_the_exchange_does_not_get_have_a_line_that_says_so() {
        let request = ControlRequest::Orders { filter: OrderFilter::default(), after: None };
        let of = |state: &str| {
            let orders = Some(vec![row(), OrderRow { state: state.into(), ..row() }]);
            lines(&request, &ControlResponse { orders, ..ControlResponse::default() })
        };
        assert_eq!(of("cancelling").len(), 3);
        let found = of(NEVER_SENT);
        assert_eq!(found.len(), 4);
        assert!(found[2].contains(" never_sent ") && found[3].starts_with("never_sent: "), "{found:?}");
    }

    #[test]
    fn positions_and_what_belongs_to_no_symbol_stand_apart() {
        let position = PositionRow {
            account: "C00001".into(),
            symbol: Some("WEIR".into()),
            bought: 100,
            sold: 130,
            net: -30,
            ..PositionRow::default()
        };
        let rest = PositionRow {
            account: "C00002".into(),
            unattributed: 5,
            broken_trades: 1,
            ..PositionRow::default()
        };
        assert_eq!(
            positions(&[position, rest]),
            [
                "account  symbol  bought  sold  net",
                "C00001   WEIR    100     130   -30",
                "C00002: 5 executed shares of orders whose symbol is not known",
                "C00002: broken trades: 1; their shares are still in its positions",
            ]
        );
    }

    #[test]
    fn the_exposure_of_one_account_is_followed_by_its_orders() {
        let first = ControlRequest::Exposure { account: Some("C00001".into()), after: None };
        let exposure = ExposureRow { account: "C00001".into(), used: 250.0, limit: Some(1000.0) };
        let answer = ControlResponse { exposures: Some(vec![exposure]), ..ControlResponse::default() };
        let second = second_request(&first, &answer).expect("its orders");
        assert!(matches!(second, ControlRequest::Orders { .. }));
        let orders = ControlResponse { orders: Some(vec![row()]), ..ControlResponse::default() };
        let both = with_orders(answer, orders);
        let printed = lines(&first, &both).join("\n");
        assert!(
            printed.starts_with("account  used    limit    of it\nC00001   250.00  1000.00  25.0 %\n"),
            "{printed}"
        );
        assert!(printed.contains("C00001/17"), "{printed}");
        let all = ControlRequest::Exposure { account: None, after: None };
        assert_eq!(second_request(&all, &both), None);
    }

    #[test]
    fn a_cancel_says_what_is_not_sent_and_what_is_not_known() {
        let venue = VenueCancels { venue: "XA".into(), orders: 3, sent: 2, confirmed: 1, expired: 0 };
        let answer = ControlResponse {
            cancels: Some(vec![venue]),
            unknown_symbols: Some(4),
            ..ControlResponse::default()
        };
        let printed = cancelled(&answer);
        assert_eq!(printed.len(), 3, "{printed:?}");
        assert_eq!(printed[0], "venue XA: 3 orders were open, 2 cancels are sent, 1 are confirmed");
        assert!(printed[2].starts_with("4 open orders"), "{printed:?}");
        assert_eq!(cancelled(&ControlResponse::default()), ["no such order was open"]);
        let unsent = |sent, confirmed, expired| {
            let venue = VenueCancels { venue: "XA".into(), orders: 3, sent, confirmed, expired };
            super::unsent(&[venue]).is_some()
        };
        assert_eq!(
            [unsent(3, 0, 0), unsent(0, 0, 3), unsent(2, 2, 1), unsent(2, 1, 1), unsent(0, 0, 0)],
            [false, false, false, true, true]
        );
    }

    #[test]
    fn an_order_is_an_account_and_a_number_and_no_order_is_not_all_of_them() {
        assert_eq!(parse_order("C00001/17").expect("it is right"), ("C00001".to_owned(), 17));
        for wrong in ["", "17", "/17", "C00001/", "C00001/x", "C00001/-1", "C00001/1/2"] {
            assert!(
                parse_order(wrong).is_err_and(|error| error.to_string().contains("ACCOUNT/ORDER")),
                "{wrong}"
            );
        }
        let which = Which { account: None, symbol: None, venue: None };
        let nothing = CtlTask::Cancel { order: None, which };
        assert!(request(&nothing).is_err_and(|error| error.to_string().contains("weir ctl kill all")));
    }
}
