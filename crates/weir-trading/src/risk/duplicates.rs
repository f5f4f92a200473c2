//! Limits identical orders in a short time: a faulty client sends these.

use weir_proto::ouch::{Enter, Symbol};

/// How many identical orders (symbol, side, quantity and price) are allowed in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateLimit {
    /// Orders allowed in a window.
    pub orders_max: u32,
    /// The window in nanoseconds; it starts with the first of them.
    pub window_ns: u64,
}

/// Different orders remembered for a port; the one whose window started first is replaced.
pub(super) const REMEMBERED_MAX: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duplicates {
    seen: [Option<Seen>; REMEMBERED_MAX],
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    what: (Symbol, u8, u32, u64),
    started_ns: u64,
    orders: u32,
}

impl Duplicates {
    /// Counts an order; false if it exceeds the limit.
    pub(super) fn count(&mut self, now_ns: u64, limit: DuplicateLimit, enter: &Enter) -> bool {
        let what = (enter.symbol, enter.side, enter.quantity, enter.price);
        let known = self.seen.iter().position(|seen| seen.is_some_and(|seen| seen.what == what));
        let place = known.unwrap_or_else(|| self.oldest());
        if known.is_some()
            && let Some(seen) = &mut self.seen[place]
            && now_ns.saturating_sub(seen.started_ns) < limit.window_ns
        {
            seen.orders = seen.orders.saturating_add(1);
            return seen.orders <= limit.orders_max;
        }
        self.seen[place] = Some(Seen { what, started_ns: now_ns, orders: 1 });
        limit.orders_max >= 1
    }

    fn oldest(&self) -> usize {
        let started = |place: &usize| self.seen[*place].map(|seen| seen.started_ns);
        (0..REMEMBERED_MAX).min_by_key(started).unwrap_or(0)
    }
}
