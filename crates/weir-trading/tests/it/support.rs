//! Messages with all fields filled in, and a sink for answers.

use weir_proto::ouch::{Appendage, Cancel, ClientOrderId, Enter, Inbound, Modify, Outbound, Replace, Symbol};
use weir_trading::{AccountId, Emit, Handled, Venue};

pub const WEIR: Symbol = Symbol(*b"WEIR    ");
pub const DAM: Symbol = Symbol(*b"DAM     ");
pub const NOBODY: ClientOrderId = ClientOrderId(*b"ORDER         ");
pub const DAY: u8 = b'0';
pub const IMMEDIATE: u8 = b'3';
/// 100.0000
pub const HUNDRED: u64 = 1_000_000;

pub fn enter(user_ref_num: u32, side: u8, quantity: u32, price: u64) -> Enter {
    Enter {
        user_ref_num,
        side,
        quantity,
        symbol: WEIR,
        price,
        time_in_force: DAY,
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: NOBODY,
    }
}

pub fn order(enter: Enter) -> Inbound<'static> {
    Inbound::Enter(enter, Appendage::EMPTY)
}

pub fn buy(number: u32, quantity: u32, price: u64) -> Inbound<'static> {
    order(enter(number, b'B', quantity, price))
}

pub fn sell(number: u32, quantity: u32, price: u64) -> Inbound<'static> {
    order(enter(number, b'S', quantity, price))
}

pub fn replace(original: u32, number: u32, quantity: u32, price: u64) -> Inbound<'static> {
    let replace = Replace {
        original_user_ref_num: original,
        user_ref_num: number,
        quantity,
        price,
        time_in_force: DAY,
        display: b'Y',
        intermarket_sweep: b'N',
        client_order_id: NOBODY,
    };
    Inbound::Replace(replace, Appendage::EMPTY)
}

pub fn cancel(user_ref_num: u32, quantity: u32) -> Inbound<'static> {
    Inbound::Cancel(Cancel { user_ref_num, quantity })
}

pub fn modify(user_ref_num: u32, side: u8, quantity: u32) -> Inbound<'static> {
    Inbound::Modify(Modify { user_ref_num, side, quantity })
}

/// A venue's messages, in order.
#[derive(Default)]
pub struct Sink(pub Vec<(AccountId, Outbound)>);

impl Emit for Sink {
    fn emit(&mut self, account: AccountId, message: &Outbound) {
        self.0.push((account, *message));
    }
}

impl Sink {
    pub fn take(&mut self) -> Vec<(AccountId, Outbound)> {
        std::mem::take(&mut self.0)
    }
}

/// Gives a venue one message and returns all its answers, in words.
pub fn replies(venue: &mut impl Venue, account: u32, message: Inbound<'_>) -> Vec<String> {
    handled(venue, account, message).1
}

pub fn handled(venue: &mut impl Venue, account: u32, message: Inbound<'_>) -> (Handled, Vec<String>) {
    let mut sink = Sink::default();
    let handled = venue.handle(1, AccountId(account), &message, &mut sink);
    (handled, words(&sink.take()))
}

pub fn words(messages: &[(AccountId, Outbound)]) -> Vec<String> {
    messages.iter().map(|(account, message)| format!("{} {}", account.0, word(message))).collect()
}

fn word(message: &Outbound) -> String {
    match message {
        Outbound::Accepted(accepted) => format!(
            "A {} {} {} @ {}",
            accepted.user_ref_num,
            char::from(accepted.side),
            accepted.quantity,
            accepted.price
        ),
        Outbound::Replaced(replaced) => format!(
            "U {}>{} {} @ {}",
            replaced.original_user_ref_num, replaced.user_ref_num, replaced.quantity, replaced.price
        ),
        Outbound::Canceled(canceled) => {
            format!("C {} -{} {}", canceled.user_ref_num, canceled.quantity, char::from(canceled.reason))
        }
        Outbound::Executed(executed) => format!(
            "E {} {} @ {} {} #{}",
            executed.user_ref_num,
            executed.quantity,
            executed.price,
            char::from(executed.liquidity),
            executed.match_number
        ),
        Outbound::Rejected(rejected) => format!("J {} {:#06x}", rejected.user_ref_num, rejected.reason),
        Outbound::Modified(modified) => {
            format!("M {} {} {}", modified.user_ref_num, char::from(modified.side), modified.quantity)
        }
        Outbound::CancelReject(refused) => format!("I {}", refused.user_ref_num),
        Outbound::AccountQueryResponse { next_user_ref_num, .. } => format!("Q {next_user_ref_num}"),
        other => panic!("no venue here says {other:?}"),
    }
}
