//! Seeded choices, and messages of every kind: valid ones, invalid ones, and ones about old orders.

use weir_proto::ouch::{Inbound, Symbol};
use weir_stats::random::splitmix;

use crate::support::{DAM, DAY, HUNDRED, IMMEDIATE, WEIR, cancel, enter, modify, order, replace};

/// Choices determined by a seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        splitmix(&mut self.0)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }

    pub fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// The seeds of a test: the fixed ones, or the one in `WEIR_TEST_SEED`.
pub fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("WEIR_TEST_SEED") {
        Ok(seed) => vec![seed.parse().expect("WEIR_TEST_SEED is a number")],
        Err(_) => (1..=count).collect(),
    }
}

/// A stream of messages of several accounts, each with its own rising numbers.
pub struct Messages {
    random: Random,
    last: Vec<u32>,
    /// How far back a message may refer.
    reach: u64,
    /// Whether it contains messages that no sane client sends.
    with_nonsense: bool,
}

impl Messages {
    pub fn new(seed: u64, accounts: usize, reach: u64, with_nonsense: bool) -> Self {
        Self { random: Random::new(seed), last: vec![0; accounts], reach, with_nonsense }
    }

    pub fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub fn next(&mut self) -> (u32, Inbound<'static>) {
        let account = self.random.below(self.last.len() as u64) as u32;
        let message = match self.random.below(100) {
            0..55 => self.enter(account),
            55..75 => {
                let number = self.earlier(account);
                let quantity = if self.random.one_in(2) { 0 } else { self.random.below(1_000) as u32 };
                cancel(number, quantity)
            }
            75..92 => self.replace(account),
            _ => {
                let number = self.earlier(account);
                let side = self.random.choose(b"BSTE");
                modify(number, side, self.random.below(1_000) as u32)
            }
        };
        (account, message)
    }

    fn enter(&mut self, account: u32) -> Inbound<'static> {
        let number = self.number(account);
        let side = self.random.choose(b"BBSTES");
        let price = self.price(side);
        let mut message = enter(number, side, self.quantity(), price);
        message.symbol = self.random.choose(&[WEIR, WEIR, DAM]);
        message.time_in_force = self.random.choose(&[DAY, DAY, DAY, IMMEDIATE, b'5']);
        if self.with_nonsense && self.random.one_in(40) {
            match self.random.below(5) {
                0 => message.side = b'Z',
                1 => message.symbol = Symbol(*b"NOSUCH  "),
                2 => message.time_in_force = b'6',
                3 => message.display = b'?',
                _ => message.cross_type = b'O',
            }
        }
        order(message)
    }

    fn replace(&mut self, account: u32) -> Inbound<'static> {
        let original = self.earlier(account);
        let number = self.number(account);
        let price = self.price(b'B');
        let Inbound::Replace(mut message, appendage) = replace(original, number, self.quantity(), price)
        else {
            unreachable!("it makes replacements")
        };
        message.time_in_force = self.random.choose(&[DAY, DAY, DAY, IMMEDIATE]);
        Inbound::Replace(message, appendage)
    }

    fn number(&mut self, account: u32) -> u32 {
        let last = &mut self.last[account as usize];
        *last += if self.random.one_in(10) { 3 } else { 1 };
        *last
    }

    fn earlier(&mut self, account: u32) -> u32 {
        let last = u64::from(self.last[account as usize]);
        (last + 1).saturating_sub(self.random.below(self.reach)) as u32
    }

    fn quantity(&mut self) -> u32 {
        match self.random.below(if self.with_nonsense { 30 } else { 28 }) {
            29 => 0,
            28 => 1_000_000,
            27 => 999_999,
            _ => 1 + self.random.below(600) as u32,
        }
    }

    /// Near the middle most of the time, so that the sides meet; sometimes at the extremes.
    fn price(&mut self, side: u8) -> u64 {
        let lean = if side == b'B' { -3 } else { 3 };
        match self.random.below(if self.with_nonsense { 44 } else { 42 }) {
            43 => self.random.choose(&[0, 1_999_999_901, 0x8000_0000, u64::MAX]),
            42 => 2_000_000_000,
            41 => 0x7FFF_FFFF,
            40 => self.random.choose(&[1, 1_999_999_900]),
            39 => 1 + self.random.below(1_999_999_900),
            _ => {
                let steps = self.random.below(21) as i64 - 10 + lean;
                HUNDRED.wrapping_add_signed(steps * 100)
            }
        }
    }
}
