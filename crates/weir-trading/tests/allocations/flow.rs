//! A seeded flow of orders that keeps a book at a given size: used by the bench and by the test that nothing
//! allocates.
//!
//! The generator runs its own venue, so that every cancel and every replacement names a live order. That order is
//! chosen uniformly from all of them, so that caches get no help.

use std::collections::HashMap;

use weir_proto::ouch::{Appendage, Cancel, ClientOrderId, Enter, Inbound, Outbound, Replace, Symbol};
use weir_stats::random::splitmix;
use weir_trading::{AccountId, MatchingConfig, MatchingVenue, Venue};

/// The flow to make.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    pub symbols: usize,
    pub accounts: u32,
    pub live_orders: usize,
    pub operations: usize,
}

/// One message, in a compact form.
#[derive(Clone, Copy)]
pub struct Operation {
    account: u32,
    number: u32,
    /// The original of a replacement.
    original: u32,
    quantity: u32,
    price: u32,
    symbol: u16,
    side: u8,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rest,
    Take,
    Cancel,
    Replace,
}

/// Messages that fill the book, and then those that keep it full.
pub struct Flow {
    pub filling: Vec<Operation>,
    pub steady: Vec<Operation>,
}

impl Operation {
    pub fn message(&self) -> (AccountId, Inbound<'static>) {
        let client_order_id = ClientOrderId(*b"BENCH         ");
        let message = match self.kind {
            Kind::Cancel => Inbound::Cancel(Cancel { user_ref_num: self.number, quantity: 0 }),
            Kind::Replace => Inbound::Replace(
                Replace {
                    original_user_ref_num: self.original,
                    user_ref_num: self.number,
                    quantity: self.quantity,
                    price: self.price.into(),
                    time_in_force: b'0',
                    display: b'Y',
                    intermarket_sweep: b'N',
                    client_order_id,
                },
                Appendage::EMPTY,
            ),
            Kind::Rest | Kind::Take => Inbound::Enter(
                Enter {
                    user_ref_num: self.number,
                    side: self.side,
                    quantity: self.quantity,
                    symbol: symbol(self.symbol.into()),
                    price: self.price.into(),
                    time_in_force: if self.kind == Kind::Take { b'3' } else { b'0' },
                    display: b'Y',
                    capacity: b'P',
                    intermarket_sweep: b'N',
                    cross_type: b'N',
                    client_order_id,
                },
                Appendage::EMPTY,
            ),
        };
        (AccountId(self.account), message)
    }
}

/// The configuration of the venue for a plan.
pub fn config(plan: &Plan) -> MatchingConfig {
    MatchingConfig {
        symbols: (0..plan.symbols).map(symbol).collect(),
        symbols_open_max: 0,
        accounts_max: plan.accounts as usize,
        ..Default::default()
    }
}

fn symbol(index: usize) -> Symbol {
    let mut text = *b"WEIR    ";
    text[4] = b'A' + (index / 26) as u8;
    text[5] = b'A' + (index % 26) as u8;
    Symbol(text)
}

/// A tick is one cent.
const TICK: u32 = 100;
/// One hundred, as a price.
const MIDDLE: u32 = 1_000_000;
/// How far from the middle orders rest, in ticks.
const DEPTH_TICKS: u64 = 400;

struct Generator {
    random: u64,
    plan: Plan,
    venue: MatchingVenue,
    numbers: Vec<u32>,
    middles: Vec<u32>,
    live: Live,
}

/// The live orders to choose from.
#[derive(Default)]
struct Live {
    orders: Vec<Order>,
    places: HashMap<(u32, u32), usize>,
}

#[derive(Clone, Copy)]
struct Order {
    account: u32,
    number: u32,
    leaves: u32,
    symbol: u16,
    side: u8,
}

impl Live {
    fn add(&mut self, order: Order) {
        self.places.insert((order.account, order.number), self.orders.len());
        self.orders.push(order);
    }

    fn lessen(&mut self, account: AccountId, number: u32, shares: u32) {
        let Some(&place) = self.places.get(&(account.0, number)) else { return };
        self.orders[place].leaves -= shares;
        if self.orders[place].leaves == 0 {
            self.remove(account, number);
        }
    }

    fn remove(&mut self, account: AccountId, number: u32) -> Option<Order> {
        let place = self.places.remove(&(account.0, number))?;
        let removed = self.orders.swap_remove(place);
        if let Some(moved) = self.orders.get(place) {
            self.places.insert((moved.account, moved.number), place);
        }
        Some(removed)
    }

    fn follow(&mut self, account: AccountId, message: &Outbound, symbol: u16) {
        match message {
            Outbound::Accepted(accepted) => self.add(Order {
                account: account.0,
                number: accepted.user_ref_num,
                leaves: accepted.quantity,
                symbol,
                side: accepted.side,
            }),
            Outbound::Replaced(replaced) => {
                let old = self.remove(account, replaced.original_user_ref_num).expect("it was live");
                self.add(Order { number: replaced.user_ref_num, leaves: replaced.quantity, ..old });
            }
            Outbound::Executed(executed) => {
                self.lessen(account, executed.user_ref_num, executed.quantity);
            }
            Outbound::Canceled(canceled) => self.lessen(account, canceled.user_ref_num, canceled.quantity),
            other => panic!("the flow is valid: {other:?}"),
        }
    }
}

/// Makes a flow. The same plan gives the same flow.
pub fn make(plan: &Plan) -> Flow {
    let mut generator = Generator {
        random: plan.seed,
        plan: *plan,
        venue: MatchingVenue::new(&config(plan)),
        numbers: vec![0; plan.accounts as usize],
        middles: vec![MIDDLE; plan.symbols],
        live: Live::default(),
    };
    let mut filling = Vec::new();
    while generator.live.orders.len() < plan.live_orders {
        let operation = generator.rest();
        generator.apply(operation);
        filling.push(operation);
    }
    let steady = (0..plan.operations)
        .map(|_| {
            let operation = generator.choose();
            generator.apply(operation);
            operation
        })
        .collect();
    Flow { filling, steady }
}

impl Generator {
    /// About half are new orders that rest, an eighth take, the rest are cancels and replacements; the rule that
    /// keeps the book at its size takes precedence.
    fn choose(&mut self) -> Operation {
        let (live, wanted) = (self.live.orders.len(), self.plan.live_orders);
        match self.below(100) {
            0..46 if live < wanted + wanted / 200 => self.rest(),
            46..58 => self.take(),
            58..86 if live > wanted - wanted / 200 => self.cancel(),
            86..100 => self.replace(),
            _ if live < wanted => self.rest(),
            _ => self.cancel(),
        }
    }

    fn apply(&mut self, operation: Operation) {
        let (account, message) = operation.message();
        let Self { venue, live, .. } = self;
        let mut follow =
            |account: AccountId, message: &Outbound| live.follow(account, message, operation.symbol);
        venue.handle(0, account, &message, &mut follow);
    }

    fn rest(&mut self) -> Operation {
        let (symbol, side) = self.symbol_and_side();
        let price = self.resting_price(symbol, side);
        self.operation(Kind::Rest, symbol, side, price)
    }

    /// An order that takes a few orders' worth from the other side.
    fn take(&mut self) -> Operation {
        let (symbol, side) = self.symbol_and_side();
        let middle = self.middles[symbol as usize];
        let price = if side == b'B' { middle + 20 * TICK } else { middle - 20 * TICK };
        self.operation(Kind::Take, symbol, side, price)
    }

    fn cancel(&mut self) -> Operation {
        let order = self.live_order();
        Operation { number: order.number, account: order.account, ..self.about(order, Kind::Cancel) }
    }

    fn replace(&mut self) -> Operation {
        let order = self.live_order();
        let price = self.resting_price(order.symbol, order.side);
        let number = self.number(order.account);
        // More than has been executed, so that it is valid.
        let quantity = 5_000 + self.below(1_000) as u32;
        Operation { number, original: order.number, quantity, price, ..self.about(order, Kind::Replace) }
    }

    fn about(&self, order: Order, kind: Kind) -> Operation {
        let Order { account, number, symbol, side, .. } = order;
        Operation { account, number, original: 0, quantity: 0, price: 0, symbol, side, kind }
    }

    fn operation(&mut self, kind: Kind, symbol: u16, side: u8, price: u32) -> Operation {
        let account = self.below(self.plan.accounts.into()) as u32;
        let number = self.number(account);
        let quantity = 100 * (1 + self.below(9) as u32);
        Operation { account, number, original: 0, quantity, price, symbol, side, kind }
    }

    fn number(&mut self, account: u32) -> u32 {
        let number = &mut self.numbers[account as usize];
        *number += 1;
        *number
    }

    fn live_order(&mut self) -> Order {
        let place = self.below(self.live.orders.len() as u64) as usize;
        self.live.orders[place]
    }

    fn symbol_and_side(&mut self) -> (u16, u8) {
        let symbol = self.below(self.plan.symbols as u64) as u16;
        if self.below(200) == 0 {
            let middle = &mut self.middles[symbol as usize];
            let up = self.random >> 40 & 1 == 0;
            *middle = if up { *middle + TICK } else { *middle - TICK };
        }
        (symbol, if self.below(2) == 0 { b'B' } else { b'S' })
    }

    /// Denser towards the middle.
    fn resting_price(&mut self, symbol: u16, side: u8) -> u32 {
        let distance = 1 + self.below(DEPTH_TICKS).min(self.below(DEPTH_TICKS)) as u32;
        let middle = self.middles[symbol as usize];
        if side == b'B' { middle - distance * TICK } else { middle + distance * TICK }
    }

    fn below(&mut self, bound: u64) -> u64 {
        splitmix(&mut self.random) % bound
    }
}
