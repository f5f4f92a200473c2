//! A token bucket for each pair of account and symbol in use. A full bucket is the same as none, so full ones are
//! removed when the table is full.

use weir_proto::ouch::{Symbol, reject_reason};

use crate::{
    account::AccountId,
    admit,
    key_table::KeyTable,
    rate::{Rate, TokenBucket},
    slab::Slab,
};

/// Minimum interval between two searches of a full table for unused buckets.
const SEARCH_NS: u64 = 100_000_000;

pub(super) struct SymbolBuckets {
    table: KeyTable,
    buckets: Slab<Counted>,
    searched_ns: Option<u64>,
}

#[derive(Clone, Copy)]
struct Counted {
    key: u64,
    bucket: TokenBucket,
    full_at_ns: u64,
}

impl SymbolBuckets {
    pub(super) fn new(buckets_max: usize) -> Self {
        Self { table: KeyTable::new(buckets_max), buckets: Slab::new(buckets_max), searched_ns: None }
    }

    /// Takes a token. Returns false if more symbols are in use at once than the table holds.
    pub(super) fn take(
        &mut self,
        now_ns: u64,
        account: AccountId,
        symbol: Symbol,
        rate: Rate,
    ) -> Result<(), u16> {
        let key = key(account, symbol);
        let place = match self.table.get(key, |place| self.buckets.at(place).key == key) {
            Some(place) => place,
            None => self.add(now_ns, key).ok_or(reject_reason::RISK_SYMBOL_MESSAGE_RATE)?,
        };
        let counted = self.buckets.at_mut(place);
        let taken = counted.bucket.take(now_ns, rate);
        counted.full_at_ns = counted.bucket.full_at_ns(rate);
        if taken { Ok(()) } else { Err(reject_reason::RISK_SYMBOL_MESSAGE_RATE) }
    }

    fn add(&mut self, now_ns: u64, key: u64) -> Option<u32> {
        let is_due = self.searched_ns.is_none_or(|at| now_ns.saturating_sub(at) >= SEARCH_NS);
        if self.buckets.is_full() && is_due {
            self.searched_ns = Some(now_ns);
            let Self { table, buckets, .. } = self;
            table.retain(|place| {
                let is_used = buckets.at(place).full_at_ns > now_ns;
                if !is_used {
                    buckets.remove(place);
                }
                is_used
            });
        }
        let place = self.buckets.insert(Counted { key, bucket: TokenBucket::FULL, full_at_ns: 0 })?;
        let inserted = self.table.insert(key, place);
        assert!(inserted, "the table has as many places as the slab");
        Some(place)
    }
}

/// One key for account and symbol. Two pairs share a bucket with a probability of 2^-64.
fn key(account: AccountId, symbol: Symbol) -> u64 {
    let symbol = admit::symbol_key(symbol).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let mixed =
        (symbol ^ symbol >> 32).wrapping_add(u64::from(account.0).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}
