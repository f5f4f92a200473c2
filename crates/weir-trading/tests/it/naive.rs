//! The venue in its simplest form: one list of live orders, searched from end to end each time. It is slow and easy
//! to verify.

use weir_proto::ouch::{
    Accepted, Cancel, Canceled, Enter, Executed, Inbound, Modified, Modify, Outbound, Rejected, Replace,
    Replaced, Symbol,
};
use weir_trading::{AccountId, Handled};

pub struct Naive {
    pub symbols: Vec<Symbol>,
    pub orders_max: usize,
    /// Live orders, the oldest first.
    pub live: Vec<Live>,
    pub said: Vec<(AccountId, Outbound)>,
    reference: u64,
    match_number: u64,
}

#[derive(Clone, Debug)]
pub struct Live {
    pub account: AccountId,
    pub number: u32,
    pub symbol: Symbol,
    pub side: u8,
    pub price: u64,
    pub leaves: u32,
    executed: u32,
    capacity: u8,
    cross_type: u8,
}

impl Live {
    fn buys(&self) -> bool {
        self.side == b'B'
    }
}

fn is_market(price: u64) -> bool {
    (2_000_000_000..=0x7FFF_FFFF).contains(&price)
}

fn is_valid(quantity: u32, price: u64) -> bool {
    quantity != 0 && quantity <= 999_999 && price != 0 && (price <= 1_999_999_900 || is_market(price))
}

impl Naive {
    pub fn new(symbols: &[Symbol], orders_max: usize) -> Self {
        Self {
            symbols: symbols.to_vec(),
            orders_max,
            live: Vec::new(),
            said: Vec::new(),
            reference: 1,
            match_number: 1,
        }
    }

    pub fn handle(&mut self, now_ns: u64, account: AccountId, message: &Inbound<'_>) -> Handled {
        match message {
            Inbound::Enter(enter, _) => self.enter(now_ns, account, enter),
            Inbound::Replace(replace, _) => return self.replace(now_ns, account, replace),
            Inbound::Cancel(cancel) => self.cancel(now_ns, account, cancel),
            Inbound::Modify(modify) => self.modify(now_ns, account, modify),
            Inbound::AccountQuery => {}
        }
        Handled::Consumed
    }

    pub fn disconnected(&mut self, now_ns: u64, account: AccountId) {
        while let Some(at) = self.live.iter().position(|live| live.account == account) {
            let gone = self.live.remove(at);
            self.say_canceled(now_ns, &gone, gone.leaves, b'Z');
        }
    }

    fn find(&self, account: AccountId, number: u32) -> Option<usize> {
        self.live.iter().position(|live| live.account == account && live.number == number)
    }

    fn say_canceled(&mut self, timestamp_ns: u64, live: &Live, quantity: u32, reason: u8) {
        let user_ref_num = live.number;
        self.said.push((
            live.account,
            Outbound::Canceled(Canceled { timestamp_ns, user_ref_num, quantity, reason }),
        ));
    }

    fn enter(&mut self, timestamp_ns: u64, account: AccountId, enter: &Enter) {
        let user_ref_num = enter.user_ref_num;
        let client_order_id = enter.client_order_id;
        if let Err(reason) = self.judge(enter) {
            let answer = Rejected { timestamp_ns, user_ref_num, reason, client_order_id };
            self.said.push((account, Outbound::Rejected(answer)));
            return;
        }
        let answer = Accepted {
            timestamp_ns,
            user_ref_num,
            side: enter.side,
            quantity: enter.quantity,
            symbol: enter.symbol,
            price: enter.price,
            time_in_force: enter.time_in_force,
            display: enter.display,
            order_reference: self.reference,
            capacity: enter.capacity,
            intermarket_sweep: enter.intermarket_sweep,
            cross_type: enter.cross_type,
            order_state: b'L',
            client_order_id,
        };
        self.reference += 1;
        self.said.push((account, Outbound::Accepted(answer)));
        let incoming = Live {
            account,
            number: user_ref_num,
            symbol: enter.symbol,
            side: enter.side,
            price: enter.price,
            leaves: enter.quantity,
            executed: 0,
            capacity: enter.capacity,
            cross_type: enter.cross_type,
        };
        self.arrive(timestamp_ns, incoming, enter.time_in_force);
    }

    fn judge(&self, enter: &Enter) -> Result<(), u16> {
        if !b"BSTE".contains(&enter.side) {
            return Err(0x0009);
        }
        if !is_valid(enter.quantity, 1) {
            return Err(0x0013);
        }
        if !is_valid(1, enter.price) {
            return Err(0x001D);
        }
        if !b"YNA".contains(&enter.display) {
            return Err(0x0003);
        }
        if enter.cross_type != b'N' || !b"035E".contains(&enter.time_in_force) {
            return Err(0x000A);
        }
        if !self.symbols.contains(&enter.symbol) {
            return Err(0x0017);
        }
        if self.live.len() >= self.orders_max { Err(0x000A) } else { Ok(()) }
    }

    fn arrive(&mut self, timestamp_ns: u64, mut incoming: Live, time_in_force: u8) {
        while incoming.leaves > 0 {
            let Some(at) = self.best_against(&incoming) else { break };
            let resting = self.live[at].clone();
            let quantity = incoming.leaves.min(resting.leaves);
            incoming.leaves -= quantity;
            incoming.executed += quantity;
            self.live[at].leaves -= quantity;
            self.live[at].executed += quantity;
            if self.live[at].leaves == 0 {
                self.live.remove(at);
            }
            let (price, match_number) = (resting.price, self.match_number);
            self.match_number += 1;
            for (who, liquidity) in [(&resting, b'A'), (&incoming, b'R')] {
                let user_ref_num = who.number;
                let executed =
                    Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number };
                self.said.push((who.account, Outbound::Executed(executed)));
            }
        }
        if incoming.leaves == 0 {
            return;
        }
        if time_in_force == b'3' || is_market(incoming.price) {
            self.say_canceled(timestamp_ns, &incoming, incoming.leaves, b'I');
        } else {
            self.live.push(incoming);
        }
    }

    /// The live order that an incoming one trades with next: best price, then the oldest.
    fn best_against(&self, incoming: &Live) -> Option<usize> {
        let mut best: Option<usize> = None;
        for (at, live) in self.live.iter().enumerate() {
            let meets = is_market(incoming.price)
                || if incoming.buys() { live.price <= incoming.price } else { live.price >= incoming.price };
            if live.symbol != incoming.symbol || live.buys() == incoming.buys() || !meets {
                continue;
            }
            let is_better = best.is_none_or(|best| {
                let best = self.live[best].price;
                if incoming.buys() { live.price < best } else { live.price > best }
            });
            if is_better {
                best = Some(at);
            }
        }
        best
    }

    fn cancel(&mut self, timestamp_ns: u64, account: AccountId, cancel: &Cancel) {
        let Some(at) = self.find(account, cancel.user_ref_num) else { return };
        let live = self.live[at].clone();
        let left = cancel.quantity.saturating_sub(live.executed);
        if left >= live.leaves {
            return;
        }
        self.live[at].leaves = left;
        self.live.retain(|live| live.leaves > 0);
        self.say_canceled(timestamp_ns, &live, live.leaves - left, b'U');
    }

    fn replace(&mut self, timestamp_ns: u64, account: AccountId, replace: &Replace) -> Handled {
        let Some(at) = self.find(account, replace.original_user_ref_num) else { return Handled::NotConsumed };
        if self.find(account, replace.user_ref_num).is_some() {
            return Handled::NotConsumed;
        }
        let old = self.live.remove(at);
        let is_valid = is_valid(replace.quantity, replace.price)
            && b"035E".contains(&replace.time_in_force)
            && replace.quantity > old.executed;
        if !is_valid {
            self.say_canceled(timestamp_ns, &old, old.leaves, b'U');
            return Handled::NotConsumed;
        }
        let leaves = replace.quantity - old.executed;
        let answer = Replaced {
            timestamp_ns,
            original_user_ref_num: old.number,
            user_ref_num: replace.user_ref_num,
            side: old.side,
            quantity: leaves,
            symbol: old.symbol,
            price: replace.price,
            time_in_force: replace.time_in_force,
            display: replace.display,
            order_reference: self.reference,
            capacity: old.capacity,
            intermarket_sweep: replace.intermarket_sweep,
            cross_type: old.cross_type,
            order_state: b'L',
            client_order_id: replace.client_order_id,
        };
        self.reference += 1;
        self.said.push((account, Outbound::Replaced(answer)));
        let incoming = Live { number: replace.user_ref_num, price: replace.price, leaves, ..old };
        self.arrive(timestamp_ns, incoming, replace.time_in_force);
        Handled::Consumed
    }

    fn modify(&mut self, timestamp_ns: u64, account: AccountId, modify: &Modify) {
        let Some(at) = self.find(account, modify.user_ref_num) else { return };
        let live = self.live[at].clone();
        let stays = (modify.side == b'B') == live.buys() && b"BSTE".contains(&modify.side);
        if !stays || modify.quantity == 0 {
            return;
        }
        let left = modify.quantity.saturating_sub(live.executed).min(live.leaves);
        if left == 0 {
            self.live.remove(at);
            self.say_canceled(timestamp_ns, &live, live.leaves, b'U');
            return;
        }
        self.live[at].leaves = left;
        self.live[at].side = modify.side;
        let modified =
            Modified { timestamp_ns, user_ref_num: live.number, side: modify.side, quantity: left };
        self.said.push((account, Outbound::Modified(modified)));
    }
}
