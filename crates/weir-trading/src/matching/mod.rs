//! The venue that trades: price-time priority in one book for each symbol.
//!
//! Its behaviour, with its choice where the specification of OUCH leaves one:
//!
//! * `A` comes first, then the executions of the incoming order. Each is reported to both sides with one match
//!   number, at the price of the resting order. The part that an immediate order (or one at any price) could not
//!   execute is cancelled with reason `I`; the unexecuted part of any other order rests.
//! * The quantity of a cancel and of a replacement is a total: shares executed in the chain of replacements count
//!   against it. A cancel to fewer shares keeps the place in the queue; a replacement goes to the end of the queue.
//! * A replacement of an order that is not live is ignored, and so is one whose new number is live already. One with
//!   invalid details, or whose total has been executed already, cancels the original.
//! * A cancel that changes nothing is ignored.
//! * A modification may change the kind of sell and may lower the quantity; other modifications are ignored.
//!
//! Its configuration sets all maxima; when a maximum of live orders is reached, new orders are refused.

mod books;
mod change;
mod ladder;
mod orders;
mod trade;

use weir_proto::ouch::{Inbound, Symbol, codes::cancel_reason};

use self::{books::Books, orders::Orders};
use crate::{
    account::AccountId,
    reply,
    venue::{Emit, Handled, Venue},
};

/// Limits and rules of a [`MatchingVenue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchingConfig {
    /// The listed symbols.
    pub symbols: Vec<Symbol>,
    /// How many unlisted symbols get a book when an order first names them; 0 refuses them.
    pub symbols_open_max: usize,
    /// Number of accounts: valid indices are below this.
    pub accounts_max: usize,
    /// Live orders of all accounts together.
    pub orders_max: usize,
    /// Live orders of one account.
    pub orders_per_account_max: usize,
    /// The first order reference.
    pub reference_first: u64,
    /// The first match number.
    pub match_first: u64,
}

impl Default for MatchingConfig {
    fn default() -> Self {
        Self {
            symbols: Vec::new(),
            symbols_open_max: 1_024,
            accounts_max: 16_384,
            orders_max: 131_072,
            orders_per_account_max: 131_072,
            reference_first: 1,
            match_first: 1,
        }
    }
}

/// One price of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The price.
    pub price: u64,
    /// Shares of all orders at this price.
    pub shares: u64,
    /// Number of orders at this price.
    pub orders: u32,
}

/// A venue that matches by price and time.
pub struct MatchingVenue {
    orders: Orders,
    books: Books,
    orders_per_account_max: usize,
    reference: u64,
    match_number: u64,
}

impl MatchingVenue {
    /// A venue without orders.
    pub fn new(config: &MatchingConfig) -> Self {
        Self {
            orders: Orders::new(config.accounts_max, config.orders_max),
            books: Books::new(&config.symbols, config.symbols_open_max, config.orders_max),
            orders_per_account_max: config.orders_per_account_max,
            reference: config.reference_first,
            match_number: config.match_first,
        }
    }

    /// Live orders.
    pub fn live_orders(&self) -> usize {
        self.orders.len()
    }

    /// The live orders of an account, oldest first: number and open shares.
    pub fn open_orders(&self, account: AccountId) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.orders.of(account).map(|order| (order.user_ref_num, order.leaves))
    }

    /// The prices at which a symbol can be sold (`side` is `B`: the bids) or bought (any other: the asks), best
    /// first.
    pub fn quotes(&self, symbol: Symbol, side: u8) -> impl Iterator<Item = Quote> + '_ {
        self.books.find(symbol).into_iter().flat_map(move |book| self.books.quotes(book, side))
    }
}

impl Venue for MatchingVenue {
    fn handle(
        &mut self,
        now_ns: u64,
        account: AccountId,
        message: &Inbound<'_>,
        emit: &mut impl Emit,
    ) -> Handled {
        match message {
            Inbound::Enter(enter, _) => {
                self.enter(now_ns, account, enter, emit);
                Handled::Consumed
            }
            Inbound::Replace(replace, _) => self.replace(now_ns, account, replace, emit),
            Inbound::Cancel(cancel) => {
                self.cancel(now_ns, account, cancel, emit);
                Handled::Consumed
            }
            Inbound::Modify(modify) => {
                self.modify(now_ns, account, modify, emit);
                Handled::Consumed
            }
            // The session keeps the numbers and sends the answer.
            Inbound::AccountQuery => Handled::Consumed,
        }
    }

    fn disconnected(&mut self, now_ns: u64, account: AccountId, emit: &mut impl Emit) {
        // Oldest first.
        while let Some(place) = self.orders.oldest_of(account) {
            let order = self.books.take_out(&mut self.orders, place);
            let reason = cancel_reason::SYSTEM;
            emit.emit(account, &reply::canceled(now_ns, order.user_ref_num, order.leaves, reason));
        }
    }
}
