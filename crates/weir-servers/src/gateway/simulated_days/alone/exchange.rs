//! The exchange of a session's simulated day.

use weir_proto::{
    ouch::{Enter, Inbound, Outbound},
    soup::{LoginAccepted, LoginReject, LoginRequest},
};
use weir_trading::{AccountId, Handled, MatchingConfig, MatchingVenue, NumberVerdict, UserRefNums, Venue};

use super::OWN;
use crate::gateway::simulated_days::model::Truth;

/// The exchange: what it has in its current session.
pub(super) struct Exchange {
    pub(super) session: usize,
    pub(super) name: u32,
    venue: MatchingVenue,
    numbers: UserRefNums,
    pub(super) market_number: u32,
    pub(super) stream: Vec<Vec<u8>>,
    /// It believes until then that somebody is logged in.
    pub(super) taken_until_ns: u64,
}

impl Exchange {
    pub(super) fn new(session: usize, name: u32) -> Self {
        let config = MatchingConfig {
            symbols_open_max: 4,
            accounts_max: 2,
            orders_max: 512,
            orders_per_account_max: 512,
            ..MatchingConfig::default()
        };
        Self {
            session,
            name,
            venue: MatchingVenue::new(&config),
            numbers: UserRefNums::new(0),
            market_number: 0,
            stream: Vec::new(),
            taken_until_ns: 0,
        }
    }

    pub(super) fn place(&self) -> (usize, usize) {
        (0, self.session)
    }

    fn say(&mut self, truth: &mut Truth, now_ns: u64, message: &Outbound) {
        let mut raw = Vec::new();
        message.encode(&mut raw);
        truth.take(self.place(), 0, now_ns, &raw);
        self.stream.push(raw);
    }

    pub(super) fn handle(
        &mut self,
        truth: &mut Truth,
        now_ns: u64,
        account: AccountId,
        message: &Inbound<'_>,
    ) {
        let mut said = Vec::new();
        let mut emit = |of: AccountId, message: &Outbound| said.extend((of == OWN).then_some(*message));
        let handled = self.venue.handle(now_ns, account, message, &mut emit);
        if let (Handled::NotConsumed, Inbound::Replace(replace, _)) = (handled, message)
            && account == OWN
        {
            self.numbers.release_number(replace.user_ref_num);
        }
        said.iter().for_each(|message| self.say(truth, now_ns, message));
    }

    pub(super) fn hear(&mut self, truth: &mut Truth, now_ns: u64, raw: &[u8]) {
        let message = Inbound::decode(raw).expect("the gateway sends messages");
        if let Inbound::Replace(replace, _) = &message {
            truth.arrived.insert(replace.client_order_id.as_str().trim_end().to_owned());
        }
        match message {
            Inbound::AccountQuery => {
                let next_user_ref_num = self.numbers.next();
                self.say(
                    truth,
                    now_ns,
                    &Outbound::AccountQueryResponse { timestamp_ns: now_ns, next_user_ref_num },
                );
            }
            Inbound::Enter(Enter { user_ref_num, .. }, _)
                if self.numbers.judge(user_ref_num) != NumberVerdict::New => {}
            Inbound::Replace(replace, _)
                if self.numbers.judge(replace.user_ref_num) != NumberVerdict::New => {}
            message => self.handle(truth, now_ns, OWN, &message),
        }
    }

    /// Answers a login; returns the index of the message to begin with. `None`: it is refused.
    pub(super) fn let_in(&self, now_ns: u64, login: &LoginRequest, out: &mut Vec<u8>) -> Option<usize> {
        let session = format!("DAY{}", self.name).parse().expect("a name");
        let is_it =
            login.session.as_bytes().trim_ascii().is_empty() || login.session.eq_ignore_case(&session);
        let end = self.stream.len() as u64;
        if now_ns < self.taken_until_ns || !is_it || login.sequence > end + 1 {
            LoginReject::SessionNotAvailable.encode(out);
            return None;
        }
        let next_sequence = if login.sequence == 0 { end + 1 } else { login.sequence };
        LoginAccepted { session, next_sequence }.encode(out);
        Some(next_sequence as usize - 1)
    }
}
