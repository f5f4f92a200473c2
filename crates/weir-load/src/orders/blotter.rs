//! A client's view of its orders, from the venue's messages, and the balance of their shares. Pure.
//!
//! The balance has two independent sides. Live shares follow from the orders: an order ends when the venue says so,
//! with whatever is left of it here. Executed and cancelled shares follow from the messages. A lost message makes the
//! two differ as soon as the venue mentions its order again.
//!
//! Memory is bounded: the latest orders are kept individually. For older ones that are still live only the sum of
//! their shares is kept.

use std::collections::VecDeque;

use weir_record::orders::ShareBalance;

use super::generator::Terms;

/// An error in a message about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Discrepancy {
    /// No live order has this number.
    #[error("no order {0} is live")]
    Unknown(u32),
    /// More shares than the order has.
    #[error("{shares} shares of order {number}, which has {left}")]
    TooMany { number: u32, shares: u32, left: u64 },
    /// A cancelled order had more shares left than the venue reported.
    #[error("order {number} was cancelled with {shares} shares, but it has {left}")]
    Lost { number: u32, shares: u32, left: u32 },
}

/// A live order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) number: u32,
    /// Shares that are neither executed nor cancelled.
    pub(crate) left: u32,
    /// Shares executed over the whole chain of replaces.
    pub(crate) executed: u32,
    pub(crate) side: u8,
    pub(crate) symbol: u8,
    /// A request about it is in flight.
    is_busy: bool,
}

/// Whether an order is still live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lives,
    /// It is over.
    Ended,
}

/// The orders of one account.
#[derive(Debug)]
pub(crate) struct Blotter {
    /// Indexed by number modulo the length, which is a power of two; an ended order has no shares left.
    orders: Vec<Order>,
    /// Live orders that may be replaced or cancelled, newest last; some may have ended since.
    targets: VecDeque<u32>,
    keeps_targets: bool,
    shares: ShareBalance,
    /// Live shares of orders that are no longer kept.
    aged: u64,
}

/// An empty entry.
const NONE: Order = Order { number: 0, left: 0, executed: 0, side: 0, symbol: 0, is_busy: false };

impl Blotter {
    /// Keeps the latest orders, `kept` of them rounded up to a power of two.
    pub(crate) fn new(kept: usize, keeps_targets: bool) -> Self {
        Self {
            orders: vec![NONE; kept.max(1).next_power_of_two()],
            targets: VecDeque::new(),
            keeps_targets,
            shares: ShareBalance::default(),
            aged: 0,
        }
    }

    /// Shares so far.
    pub(crate) fn shares(&self) -> ShareBalance {
        self.shares
    }

    /// A live order with this number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<Order> {
        let order = self.orders[self.place(number)];
        (order.number == number && order.left > 0).then_some(order)
    }

    /// Adds an accepted order with this many shares.
    #[inline]
    pub(crate) fn accept(&mut self, number: u32, terms: Terms, shares: u32) {
        self.shares.entered += u64::from(shares);
        self.keep(Order {
            number,
            left: shares,
            executed: 0,
            side: terms.side,
            symbol: terms.symbol,
            is_busy: false,
        });
    }

    /// Adds an order that was accepted dead: none of its shares are on the book.
    pub(crate) fn accept_dead(&mut self, shares: u32) {
        self.shares.entered += u64::from(shares);
        self.shares.cancelled += u64::from(shares);
    }

    /// Shares of an order were executed.
    pub(crate) fn execute(&mut self, number: u32, shares: u32) -> Result<Fate, Discrepancy> {
        self.shares.executed += u64::from(shares);
        self.take(number, shares, |order| order.executed += shares)
    }

    /// Cancels shares of an order without a request of ours.
    pub(crate) fn reduce(&mut self, number: u32, shares: u32) -> Result<Fate, Discrepancy> {
        self.shares.cancelled += u64::from(shares);
        self.take(number, shares, |_| {})
    }

    /// Cancels a whole order at our request: it is over, whatever number of shares the venue reports.
    pub(crate) fn cancel(&mut self, number: u32, shares: u32) -> Result<(), Discrepancy> {
        let Some(order) = self.get(number) else { return self.reduce(number, shares).map(|_| ()) };
        self.shares.cancelled += u64::from(shares);
        self.end(order);
        match order.left {
            left if left == shares => Ok(()),
            left => Err(Discrepancy::Lost { number, shares, left }),
        }
    }

    /// Replaces the order `original` by `number`, with `whole` shares requested for its chain and `shares` left.
    pub(crate) fn replace(
        &mut self,
        original: u32,
        number: u32,
        whole: u32,
        shares: u32,
    ) -> Result<(), Discrepancy> {
        let order = self.get(original).ok_or(Discrepancy::Unknown(original))?;
        // Shares of the chain before, as known here.
        let before = order.executed + order.left;
        if whole >= before {
            self.shares.entered += u64::from(whole - before);
        } else {
            self.shares.cancelled += u64::from(before - whole);
        }
        self.end(order);
        self.keep(Order { number, left: shares, is_busy: false, ..order });
        let left = whole.saturating_sub(order.executed);
        if left == shares { Ok(()) } else { Err(Discrepancy::Lost { number, shares, left }) }
    }

    /// The newest live order without a pending request. A venue that only answers may not remember old orders.
    pub(crate) fn target(&mut self) -> Option<Order> {
        while let Some(number) = self.targets.back() {
            match self.get(*number) {
                Some(order) if !order.is_busy => return Some(order),
                _ => self.targets.pop_back(),
            };
        }
        None
    }

    /// Marks the newest target as having a request in flight.
    pub(crate) fn occupy(&mut self, number: u32) {
        let place = self.place(number);
        if self.orders[place].number == number {
            self.orders[place].is_busy = true;
        }
        if self.targets.back() == Some(&number) {
            self.targets.pop_back();
        }
    }

    /// Makes an order available again after its request failed.
    pub(crate) fn release(&mut self, number: u32) {
        let place = self.place(number);
        let order = &mut self.orders[place];
        if order.number == number && order.is_busy {
            order.is_busy = false;
            if order.left > 0 {
                self.offer(number);
            }
        }
    }

    /// Forgets the orders so far, because the stream cannot be followed any more. Their shares stay live.
    pub(crate) fn forget(&mut self) {
        self.aged += self.orders.iter().map(|order| u64::from(order.left)).sum::<u64>();
        self.orders.fill(NONE);
        self.targets.clear();
    }

    #[inline]
    fn place(&self, number: u32) -> usize {
        number as usize & (self.orders.len() - 1)
    }

    #[inline]
    fn keep(&mut self, order: Order) {
        self.shares.live += u64::from(order.left);
        let place = self.place(order.number);
        let older = std::mem::replace(&mut self.orders[place], order);
        self.aged += u64::from(older.left);
        if order.left > 0 {
            self.offer(order.number);
        }
    }

    #[inline]
    fn offer(&mut self, number: u32) {
        if !self.keeps_targets {
            return;
        }
        if self.targets.len() == self.orders.len() {
            // Older than any kept order, or ended: not a target any more.
            self.targets.pop_front();
        }
        self.targets.push_back(number);
    }

    fn end(&mut self, order: Order) {
        self.shares.live -= u64::from(order.left);
        let place = self.place(order.number);
        self.orders[place].left = 0;
    }

    /// Takes shares from an order, or from the sum of orders that are not kept.
    fn take(&mut self, number: u32, shares: u32, note: impl FnOnce(&mut Order)) -> Result<Fate, Discrepancy> {
        let place = self.place(number);
        let order = &mut self.orders[place];
        if order.number == number {
            let taken = shares.min(order.left);
            if taken < shares {
                let left = order.left.into();
                self.shares.live -= u64::from(taken);
                order.left = 0;
                return Err(Discrepancy::TooMany { number, shares, left });
            }
            note(order);
            order.left -= shares;
            self.shares.live -= u64::from(shares);
            return Ok(if order.left == 0 { Fate::Ended } else { Fate::Lives });
        }
        if order.number < number || self.aged < shares.into() {
            return Err(Discrepancy::Unknown(number));
        }
        self.aged -= u64::from(shares);
        self.shares.live -= u64::from(shares);
        Ok(Fate::Lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms { side: b'B', symbol: 0, quantity: 100, price: 1_000_000 };

    fn balance(blotter: &Blotter) -> (u64, u64, u64, u64) {
        let ShareBalance { entered, executed, cancelled, live } = blotter.shares();
        (entered, executed, cancelled, live)
    }

    #[test]
    fn shares_are_conserved_through_executions_replaces_and_cancels() {
        let mut blotter = Blotter::new(8, true);
        blotter.accept(1, TERMS, 500);
        assert_eq!(blotter.execute(1, 100), Ok(Fate::Lives));
        // The specification's example: 500 entered, 100 done, a replace by 500 leaves 400.
        assert_eq!(blotter.replace(1, 2, 500, 400), Ok(()));
        assert_eq!(blotter.replace(2, 3, 700, 600), Ok(()));
        assert_eq!(blotter.replace(3, 4, 300, 200), Ok(()));
        assert_eq!(blotter.reduce(4, 50), Ok(Fate::Lives));
        assert_eq!(blotter.cancel(4, 150), Ok(()));
        assert_eq!(balance(&blotter), (700, 100, 600, 0));
        blotter.accept_dead(10);
        blotter.accept(5, TERMS, 7);
        assert_eq!(blotter.execute(5, 7), Ok(Fate::Ended));
        assert!(blotter.shares().is_conserved());
        assert_eq!(blotter.target(), None);
    }

    #[test]
    fn a_lost_execution_shows_when_the_order_is_cancelled_or_replaced() {
        let mut blotter = Blotter::new(8, true);
        blotter.accept(1, TERMS, 100);
        assert_eq!(blotter.cancel(1, 60), Err(Discrepancy::Lost { number: 1, shares: 60, left: 100 }));
        assert!(!blotter.shares().is_conserved());
        let mut blotter = Blotter::new(8, true);
        blotter.accept(1, TERMS, 500);
        assert_eq!(
            blotter.replace(1, 2, 500, 400),
            Err(Discrepancy::Lost { number: 2, shares: 400, left: 500 })
        );
        assert!(!blotter.shares().is_conserved());
    }

    #[test]
    fn more_than_there_is_and_orders_that_are_not_there_are_told() {
        let mut blotter = Blotter::new(8, true);
        blotter.accept(1, TERMS, 100);
        assert_eq!(blotter.execute(1, 101), Err(Discrepancy::TooMany { number: 1, shares: 101, left: 100 }));
        assert_eq!(blotter.execute(2, 1), Err(Discrepancy::Unknown(2)));
        assert_eq!(blotter.replace(7, 8, 1, 1), Err(Discrepancy::Unknown(7)));
        assert!(blotter.cancel(1, 1).is_err());
    }

    #[test]
    fn old_orders_are_a_sum_and_the_balance_still_holds() {
        let mut blotter = Blotter::new(4, true);
        (1..=10).for_each(|number| blotter.accept(number, TERMS, 10));
        assert_eq!((blotter.aged, blotter.get(6), blotter.get(7).is_some()), (60, None, true));
        assert_eq!(blotter.execute(2, 4), Ok(Fate::Lives));
        assert_eq!(blotter.cancel(3, 10), Ok(()));
        assert_eq!(blotter.cancel(10, 10), Ok(()));
        assert_eq!(balance(&blotter), (100, 4, 20, 76));
        assert_eq!(blotter.execute(1, 47), Err(Discrepancy::Unknown(1)), "more than all old ones have");
        assert_eq!(blotter.target().map(|order| order.number), Some(9));
        assert!(blotter.targets.len() <= 4);
    }

    #[test]
    fn a_target_is_asked_about_once_at_a_time() {
        let mut blotter = Blotter::new(8, true);
        blotter.accept(1, TERMS, 10);
        blotter.accept(2, TERMS, 10);
        blotter.occupy(2);
        assert_eq!(blotter.target().map(|order| order.number), Some(1));
        blotter.occupy(1);
        assert_eq!(blotter.target(), None);
        blotter.release(1);
        blotter.release(1);
        assert_eq!(blotter.target().map(|order| order.number), Some(1));
        assert_eq!(blotter.targets.len(), 1);
        blotter.forget();
        assert_eq!((blotter.target(), blotter.shares().live), (None, 20));
    }
}
