//! Shares are neither created nor lost: every entered share was executed, was cancelled, or is live, and each trade
//! has two sides that agree.

use std::collections::HashMap;

use weir_proto::ouch::{Executed, Outbound};
use weir_trading::{AccountId, MatchingConfig, MatchingVenue, Venue};

use crate::{
    random::{Messages, seeds},
    support::{DAM, Sink, WEIR},
};

const ACCOUNTS: usize = 20;

const STEPS: u64 = 1_000_000;

/// The accounts' view, built from messages alone.
#[derive(Default)]
struct Ledger {
    open: HashMap<(AccountId, u32), u32>,
    entered: u64,
    executed: u64,
    cancelled: u64,
    /// The first side of a trade, until the second is seen.
    first_side: Option<Executed>,
    matches: u64,
}

impl Ledger {
    fn note(&mut self, account: AccountId, message: &Outbound) {
        match message {
            Outbound::Accepted(accepted) => {
                let before = self.open.insert((account, accepted.user_ref_num), accepted.quantity);
                assert_eq!(before, None, "accepted once");
                self.entered += u64::from(accepted.quantity);
            }
            Outbound::Replaced(replaced) => {
                let old = self.open.remove(&(account, replaced.original_user_ref_num)).expect("it was live");
                self.cancelled += u64::from(old);
                let before = self.open.insert((account, replaced.user_ref_num), replaced.quantity);
                assert_eq!(before, None);
                self.entered += u64::from(replaced.quantity);
            }
            Outbound::Modified(modified) => {
                let open = self.open.get_mut(&(account, modified.user_ref_num)).expect("it was live");
                self.cancelled += u64::from(*open - modified.quantity);
                *open = modified.quantity;
            }
            Outbound::Canceled(canceled) => {
                self.lessen(account, canceled.user_ref_num, canceled.quantity);
                self.cancelled += u64::from(canceled.quantity);
            }
            Outbound::Executed(executed) => {
                self.lessen(account, executed.user_ref_num, executed.quantity);
                self.executed += u64::from(executed.quantity);
                self.pair(executed);
            }
            Outbound::Rejected(_) | Outbound::CancelReject(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }

    /// Only a live order can lose shares, so this also checks that its `A` came first.
    fn lessen(&mut self, account: AccountId, number: u32, shares: u32) {
        let open =
            self.open.get_mut(&(account, number)).expect("accepted before anything else, and still live");
        assert!(shares > 0 && shares <= *open);
        *open -= shares;
        if *open == 0 {
            self.open.remove(&(account, number));
        }
    }

    fn pair(&mut self, executed: &Executed) {
        let Some(first) = self.first_side.take() else {
            assert_eq!(executed.liquidity, b'A');
            self.first_side = Some(*executed);
            return;
        };
        assert_eq!(executed.liquidity, b'R');
        assert_eq!(executed.match_number, first.match_number);
        assert_eq!((executed.quantity, executed.price), (first.quantity, first.price));
        self.matches += 1;
        assert_eq!(executed.match_number, self.matches, "match numbers follow each other");
    }
}

#[test]
fn shares_are_conserved_and_both_sides_of_each_match_agree() {
    for seed in seeds(1) {
        println!("seed {seed}: WEIR_TEST_SEED={seed} repeats it");
        let config =
            MatchingConfig { symbols: vec![WEIR, DAM], accounts_max: ACCOUNTS, ..Default::default() };
        let mut venue = MatchingVenue::new(&config);
        let mut messages = Messages::new(seed, ACCOUNTS, 3_000, false);
        let (mut ledger, mut sink) = (Ledger::default(), Sink::default());
        for step in 0..STEPS {
            let (account, message) = messages.next();
            if messages.random().one_in(20_000) {
                venue.disconnected(step, AccountId(account), &mut sink);
            }
            venue.handle(step, AccountId(account), &message, &mut sink);
            for (account, message) in sink.0.drain(..) {
                ledger.note(account, &message);
            }
            assert_eq!(ledger.first_side, None, "seed {seed}, step {step}: a trade with one side");
        }

        let live: u64 = ledger.open.values().map(|open| u64::from(*open)).sum();
        assert_eq!(ledger.entered, ledger.executed + ledger.cancelled + live, "seed {seed}");
        assert_eq!(ledger.open.len(), venue.live_orders(), "seed {seed}");
        for account in (0..ACCOUNTS as u32).map(AccountId) {
            for (number, leaves) in venue.open_orders(account) {
                assert_eq!(ledger.open.get(&(account, number)), Some(&leaves), "seed {seed}");
            }
        }
        let in_books: u64 = [(WEIR, b'B'), (WEIR, b'S'), (DAM, b'B'), (DAM, b'S')]
            .into_iter()
            .flat_map(|(symbol, side)| venue.quotes(symbol, side))
            .map(|quote| quote.shares)
            .sum();
        assert_eq!(in_books, live, "seed {seed}");
        assert!(ledger.matches > STEPS / 20, "enough trades to mean something: {}", ledger.matches);
        assert!(ledger.open.len() > 100, "and enough live orders: {}", ledger.open.len());
    }
}
