//! The venue that answers every message once and never trades: it measures the cost of carrying an order, and nothing
//! else.
//!
//! `O` is answered by `A` (or by `J` if a field is wrong), `X` by `C`, `U` by `U`, `M` by `M`, `Q` by `Q`. It also
//! answers where a real venue would stay silent, because a client that waits expects one answer for each message: an
//! `X` or `M` that changes nothing is answered by `I`, a `U` of an order it does not know by `J`.
//!
//! Orders accepted here never end, so the venue **forgets** old ones: it remembers an account's order until a number
//! that is `remembered_max` higher is accepted (with numbers that rise by one: the last `remembered_max` orders). A
//! forgotten order is answered like an unknown one, and is not cancelled on disconnect.

use weir_proto::ouch::{
    Accepted, Cancel, Enter, Inbound, Modify, Outbound, Replace, Symbol, codes::cancel_reason, reject_reason,
};

use crate::{
    account::AccountId,
    admit,
    reply::{self, Kept},
    venue::{Emit, Handled, Venue},
};

/// Limits of an [`EchoVenue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoConfig {
    /// Number of accounts: valid indices are below this.
    pub accounts_max: usize,
    /// Orders remembered for each account, rounded up to a power of two. They take 24 bytes each, from the account's
    /// first order on.
    pub remembered_max: usize,
    /// The first order reference.
    pub reference_first: u64,
    /// The distance between order references, so that several venues do not assign the same one.
    pub reference_step: u64,
}

impl Default for EchoConfig {
    fn default() -> Self {
        Self { accounts_max: 16_384, remembered_max: 1_024, reference_first: 1, reference_step: 1 }
    }
}

/// Answers each message once.
pub struct EchoVenue {
    config: EchoConfig,
    mask: usize,
    accounts: Vec<Account>,
    reference: u64,
}

/// One account: an order is stored at its number modulo the number of places.
#[derive(Clone, Default)]
struct Account {
    last: u32,
    orders: Box<[Remembered]>,
}

#[derive(Clone, Copy)]
struct Remembered {
    /// 0 marks an empty place.
    user_ref_num: u32,
    shares: u32,
    kept: Kept,
}

const NO_ORDER: Remembered = Remembered {
    user_ref_num: 0,
    shares: 0,
    kept: Kept { symbol: Symbol([b' '; 8]), side: b'B', capacity: b'A', cross_type: b'N' },
};

impl EchoVenue {
    /// A venue without orders.
    pub fn new(config: EchoConfig) -> Self {
        let places = config.remembered_max.next_power_of_two();
        Self {
            config,
            mask: places - 1,
            accounts: vec![Account::default(); config.accounts_max],
            reference: config.reference_first,
        }
    }

    fn answer(&mut self, now_ns: u64, account: AccountId, message: &Inbound<'_>) -> (Outbound, Handled) {
        match message {
            Inbound::Enter(enter, _) => (self.enter(now_ns, account, enter), Handled::Consumed),
            Inbound::Replace(replace, _) => self.replace(now_ns, account, replace),
            Inbound::Cancel(cancel) => (self.cancel(now_ns, account, cancel), Handled::Consumed),
            Inbound::Modify(modify) => (self.modify(now_ns, account, modify), Handled::Consumed),
            Inbound::AccountQuery => {
                let last = self.accounts.get(account.index()).map_or(0, |account| account.last);
                let next_user_ref_num = last.wrapping_add(1);
                (
                    Outbound::AccountQueryResponse { timestamp_ns: now_ns, next_user_ref_num },
                    Handled::Consumed,
                )
            }
        }
    }

    fn enter(&mut self, now_ns: u64, account: AccountId, enter: &Enter) -> Outbound {
        let number = enter.user_ref_num;
        let admitted = admit::enter(enter).and_then(|()| {
            let order = Remembered { user_ref_num: number, shares: enter.quantity, kept: Kept::of(enter) };
            if self.remember(account, order) { Ok(()) } else { Err(reject_reason::PROCESSING_ERROR) }
        });
        match admitted {
            Ok(()) => Outbound::Accepted(Accepted::of(enter, now_ns, self.next_reference())),
            Err(reason) => reply::rejected(now_ns, number, reason, enter.client_order_id),
        }
    }

    fn replace(&mut self, now_ns: u64, account: AccountId, replace: &Replace) -> (Outbound, Handled) {
        let Some(original) = self.find(account, replace.original_user_ref_num) else {
            let reason = reject_reason::PROCESSING_ERROR;
            let answer = reply::rejected(now_ns, replace.user_ref_num, reason, replace.client_order_id);
            return (answer, Handled::Consumed);
        };
        let old = std::mem::replace(original, NO_ORDER);
        if !admit::replace(replace) {
            let answer = reply::canceled(now_ns, old.user_ref_num, old.shares, cancel_reason::USER);
            return (answer, Handled::NotConsumed);
        }
        let order =
            Remembered { user_ref_num: replace.user_ref_num, shares: replace.quantity, kept: old.kept };
        self.remember(account, order);
        let reference = self.next_reference();
        (reply::replaced(now_ns, replace, old.kept, replace.quantity, reference), Handled::Consumed)
    }

    fn cancel(&mut self, now_ns: u64, account: AccountId, message: &Cancel) -> Outbound {
        match self.find(account, message.user_ref_num) {
            Some(order) if message.quantity < order.shares => {
                let less = order.shares - message.quantity;
                order.shares = message.quantity;
                if order.shares == 0 {
                    *order = NO_ORDER;
                }
                reply::canceled(now_ns, message.user_ref_num, less, cancel_reason::USER)
            }
            _ => reply::cancel_reject(now_ns, message.user_ref_num),
        }
    }

    fn modify(&mut self, now_ns: u64, account: AccountId, message: &Modify) -> Outbound {
        match self.find(account, message.user_ref_num) {
            Some(order)
                if message.quantity > 0
                    && matches!(message.side, b'B' | b'S' | b'T' | b'E')
                    && admit::is_buy(message.side) == admit::is_buy(order.kept.side) =>
            {
                order.kept.side = message.side;
                order.shares = order.shares.min(message.quantity);
                reply::modified(now_ns, message.user_ref_num, message.side, order.shares)
            }
            _ => reply::cancel_reject(now_ns, message.user_ref_num),
        }
    }

    fn find(&mut self, account: AccountId, number: u32) -> Option<&mut Remembered> {
        let place = number as usize & self.mask;
        let order = self.accounts.get_mut(account.index())?.orders.get_mut(place)?;
        (number != 0 && order.user_ref_num == number).then_some(order)
    }

    /// False if there is no such account.
    fn remember(&mut self, account: AccountId, order: Remembered) -> bool {
        let places = self.mask + 1;
        let Some(account) = self.accounts.get_mut(account.index()) else { return false };
        if account.orders.is_empty() {
            account.orders = vec![NO_ORDER; places].into_boxed_slice();
        }
        account.last = account.last.max(order.user_ref_num);
        account.orders[order.user_ref_num as usize & self.mask] = order;
        true
    }

    fn next_reference(&mut self) -> u64 {
        let reference = self.reference;
        self.reference = reference.wrapping_add(self.config.reference_step);
        reference
    }
}

impl Venue for EchoVenue {
    fn handle(
        &mut self,
        now_ns: u64,
        account: AccountId,
        message: &Inbound<'_>,
        emit: &mut impl Emit,
    ) -> Handled {
        let (answer, handled) = self.answer(now_ns, account, message);
        emit.emit(account, &answer);
        handled
    }

    fn disconnected(&mut self, now_ns: u64, account: AccountId, emit: &mut impl Emit) {
        let Some(state) = self.accounts.get_mut(account.index()) else { return };
        for order in state.orders.iter_mut().filter(|order| order.user_ref_num != 0) {
            let gone = std::mem::replace(order, NO_ORDER);
            emit.emit(
                account,
                &reply::canceled(now_ns, gone.user_ref_num, gone.shares, cancel_reason::SYSTEM),
            );
        }
    }
}
