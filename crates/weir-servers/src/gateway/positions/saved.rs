//! Positions in a checkpoint of a recovery.

use foldhash::HashMap;
use weir_proto::ouch::Symbol;
use weir_trading::{Position, Restored, Unattributed};

use super::{Executed, Positions};
use crate::{
    gateway::recovery::{Key, checkpoint::Loading},
    journal::fields::{FieldReader, FieldWriter},
};

impl Positions {
    /// Writes them into a checkpoint.
    pub(in crate::gateway) fn save(&self, fields: &mut FieldWriter) {
        let Self { orders, early_trades, trades, executed, shares, early_shares, unattributed } = self;
        for (key, order) in sorted(orders, |key| *key, fields) {
            let Restored { user_ref_num, symbol, side, price, shares, original } = *order;
            save_key(*key, fields);
            fields.number(user_ref_num);
            fields.fixed(&symbol.0);
            fields.number(side);
            fields.number(price);
            fields.number(shares);
            fields.flag(original.is_some());
            original.into_iter().for_each(|original| fields.number(original));
        }
        for (key, (t_ns, price)) in sorted(early_trades, |key| *key, fields) {
            save_key(*key, fields);
            fields.number(*t_ns);
            fields.number(*price);
        }
        for (symbol, (t_ns, price)) in sorted(trades, |symbol| symbol.0, fields) {
            fields.fixed(&symbol.0);
            fields.number(*t_ns);
            fields.number(*price);
        }
        for (account, Executed { generation, value }) in sorted(executed, |account| *account, fields) {
            fields.number(account.0);
            fields.number(*generation);
            fields.number(*value);
        }
        for (_, Position { account, symbol, bought, sold }) in
            sorted(shares, |(account, symbol)| (*account, symbol.0), fields)
        {
            fields.number(account.0);
            fields.fixed(&symbol.0);
            fields.number(*bought);
            fields.number(*sold);
        }
        for (key, shares) in sorted(early_shares, |key| *key, fields) {
            save_key(*key, fields);
            fields.number(*shares);
        }
        for (account, Unattributed { shares, broken_trades }) in
            sorted(unattributed, |account| *account, fields)
        {
            fields.number(account.0);
            fields.number(*shares);
            fields.number(*broken_trades);
        }
    }

    /// Reads them from a checkpoint.
    pub(in crate::gateway) fn load(fields: &mut FieldReader<'_>, loading: &Loading<'_>) -> Option<Self> {
        let mut found = Self::default();
        for _ in 0..fields.count(15)? {
            let key = loading.key(fields)?;
            let order = Restored {
                user_ref_num: fields.number()?,
                symbol: Symbol(fields.fixed()?),
                side: fields.number()?,
                price: fields.number()?,
                shares: fields.number()?,
                original: if fields.flag()? { Some(fields.number()?) } else { None },
            };
            found.orders.insert(key, order);
        }
        for _ in 0..fields.count(4)? {
            found.early_trades.insert(loading.key(fields)?, (fields.number()?, fields.number()?));
        }
        for _ in 0..fields.count(10)? {
            found.trades.insert(Symbol(fields.fixed()?), (fields.number()?, fields.number()?));
        }
        for _ in 0..fields.count(3)? {
            let account = loading.account(fields)?;
            found
                .executed
                .insert(account, Executed { generation: fields.number()?, value: fields.number()? });
        }
        for _ in 0..fields.count(11)? {
            let (account, symbol) = (loading.account(fields)?, Symbol(fields.fixed()?));
            let position = Position { account, symbol, bought: fields.number()?, sold: fields.number()? };
            found.shares.insert((account, symbol), position);
        }
        for _ in 0..fields.count(3)? {
            found.early_shares.insert(loading.key(fields)?, fields.number()?);
        }
        for _ in 0..fields.count(3)? {
            let account = loading.account(fields)?;
            let rest = Unattributed { shares: fields.number()?, broken_trades: fields.number()? };
            found.unattributed.insert(account, rest);
        }
        Some(found)
    }
}

fn save_key((account, user_ref_num): Key, fields: &mut FieldWriter) {
    fields.number(account);
    fields.number(user_ref_num);
}

/// The entries of a table in order, so that the same state is the same bytes. Writes their number.
fn sorted<'m, K, V, O: Ord>(
    table: &'m HashMap<K, V>,
    order: impl Fn(&K) -> O,
    fields: &mut FieldWriter,
) -> Vec<(&'m K, &'m V)> {
    fields.count(table.len());
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| order(key));
    entries
}
