//! A small exchange without I/O, correct unless tampered with: logins, replay, and one answer to each order.
//!
//! It follows the published rules of SoupBinTCP and OUCH 5.0 as far as the tests need them, and was written from them
//! alone: it shares no code with the servers of this project.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use weir_proto::{
    ouch::{
        Accepted, CancelReject, Canceled, Enter, Executed, Inbound, Outbound, Replaced,
        codes::{cancel_reason, liquidity, order_state},
    },
    soup::{self, ClientPacket, Deframer, LoginAccepted, LoginReject, LoginRequest, Name},
};

/// A change to what answers the request with this number, from 0.
pub type Change<T> = Box<dyn FnMut(u64, &mut T) + Send>;

/// What a broken exchange does to its answers.
pub struct Tamper {
    /// Changes the venue's messages before they are numbered.
    pub messages: Change<Vec<Vec<u8>>>,
    /// Changes the bytes that are sent; a later replay is correct.
    pub wire: Change<Vec<u8>>,
}

impl Default for Tamper {
    fn default() -> Self {
        Self { messages: Box::new(|_, _| {}), wire: Box::new(|_, _| {}) }
    }
}

/// What to do with a connection after its bytes were handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Stay,
    Close,
}

/// How an exchange behaves.
pub struct Habits {
    /// Executes live orders now and then.
    pub executes: bool,
    /// Refuses a cancel that changes nothing, where the protocol requires silence.
    pub answers_all: bool,
    /// Refuses every login.
    pub refuses: Option<LoginReject>,
    /// Time of day of its messages.
    pub clock: fn() -> u64,
    pub tamper: Tamper,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            executes: false,
            answers_all: false,
            refuses: None,
            clock: time_of_day_ns,
            tamper: Tamper::default(),
        }
    }
}

/// The exchange.
#[derive(Default)]
pub struct Host {
    accounts: BTreeMap<String, Account>,
    habits: Habits,
    requests: u64,
    executions: u64,
}

/// One account, in the exchange.
#[derive(Default)]
pub struct Account {
    /// Highest number of an order.
    pub last: u32,
    /// The sequenced stream.
    pub log: Vec<Vec<u8>>,
    pub live: BTreeMap<u32, Live>,
    is_taken: bool,
}

/// A live order.
pub struct Live {
    pub left: u32,
    executed: u32,
    enter: Enter,
}

/// One connection, in the exchange.
pub struct Connection {
    deframer: Deframer,
    account: Option<String>,
}

impl Default for Connection {
    fn default() -> Self {
        Self { deframer: Deframer::new(512), account: None }
    }
}

impl Host {
    pub fn new(habits: Habits) -> Self {
        Self { habits, ..Self::default() }
    }

    pub fn account(&self, name: &str) -> &Account {
        &self.accounts[name]
    }

    /// Gives an account a past: its numbers up to `last` are used, and its stream has begun.
    pub fn with_past(mut self, name: &str, last: u32, log: Vec<Vec<u8>>) -> Self {
        self.accounts.insert(name.into(), Account { last, log, ..Account::default() });
        self
    }

    /// Handles bytes of a connection and appends what is answered.
    pub fn receive(&mut self, connection: &mut Connection, bytes: &[u8], out: &mut Vec<u8>) -> Next {
        let mut input = bytes;
        loop {
            let Ok(frame) = connection.deframer.next(&mut input) else { return Next::Close };
            let Some(frame) = frame else { return Next::Stay };
            let Ok(packet) = ClientPacket::parse(frame) else { return Next::Close };
            match (packet, &connection.account) {
                (ClientPacket::Login(login), None) => {
                    if let Err(reject) = self.log_in(&login, out) {
                        reject.encode(out);
                        return Next::Close;
                    }
                    connection.account = Some(login.username.as_str().into());
                }
                (ClientPacket::Unsequenced(message), Some(name)) => {
                    let name = name.clone();
                    self.handle(&name, message, out);
                }
                (ClientPacket::Heartbeat | ClientPacket::Debug(_), Some(_)) => {}
                _ => return Next::Close,
            }
        }
    }

    /// The connection has ended.
    pub fn ended(&mut self, connection: &Connection) {
        if let Some(account) = connection.account.as_ref().and_then(|name| self.accounts.get_mut(name)) {
            account.is_taken = false;
        }
    }

    fn log_in(&mut self, login: &LoginRequest, out: &mut Vec<u8>) -> Result<(), LoginReject> {
        if let Some(reject) = self.habits.refuses {
            return Err(reject);
        }
        let session: Name<10> = "DAY1".parse().expect("a name");
        let account = self.accounts.entry(login.username.as_str().into()).or_default();
        let end = account.log.len() as u64 + 1;
        let next = match login.sequence {
            0 => (end - 1).max(1),
            asked => asked,
        };
        if account.is_taken || next > end || !(login.session.is_blank() || login.session == session) {
            return Err(LoginReject::SessionNotAvailable);
        }
        account.is_taken = true;
        LoginAccepted { session, next_sequence: next }.encode(out);
        for message in &account.log[next as usize - 1..] {
            soup::encode_frame(soup::SEQUENCED, message, out);
        }
        Ok(())
    }

    fn handle(&mut self, name: &str, message: &[u8], out: &mut Vec<u8>) {
        let message = Inbound::decode(message).expect("the generator writes messages");
        let now = (self.habits.clock)();
        let account = self.accounts.get_mut(name).expect("it logged in");
        let mut said = Vec::new();
        if message == Inbound::AccountQuery {
            let next_user_ref_num = account.last + 1;
            say(&Outbound::AccountQueryResponse { timestamp_ns: now, next_user_ref_num }, &mut said);
        } else {
            if self.habits.executes {
                self.executions += 1;
                account.execute(self.executions, now, &mut said);
            }
            account.order(message, now, &mut said);
            if let (Inbound::Cancel(cancel), true) = (message, said.is_empty() && self.habits.answers_all) {
                let refused = CancelReject { timestamp_ns: now, user_ref_num: cancel.user_ref_num };
                say(&Outbound::CancelReject(refused), &mut said);
            }
            (self.habits.tamper.messages)(self.requests, &mut said);
        }
        let mut bytes = Vec::new();
        said.iter().for_each(|message| soup::encode_frame(soup::SEQUENCED, message, &mut bytes));
        account.log.extend(said);
        if message != Inbound::AccountQuery {
            (self.habits.tamper.wire)(self.requests, &mut bytes);
            self.requests += 1;
        }
        out.extend_from_slice(&bytes);
    }
}

impl Account {
    fn order(&mut self, message: Inbound<'_>, now: u64, said: &mut Vec<Vec<u8>>) {
        match message {
            Inbound::Enter(enter, _) if enter.user_ref_num > self.last => {
                self.last = enter.user_ref_num;
                self.live.insert(self.last, Live { left: enter.quantity, executed: 0, enter });
                let reference = u64::from(enter.user_ref_num) << 8;
                say(&Outbound::Accepted(Accepted::of(&enter, now, reference)), said);
            }
            Inbound::Replace(replace, _) if replace.user_ref_num > self.last => {
                let original = replace.original_user_ref_num;
                let Some(old) = self.live.remove(&original) else { return };
                self.last = replace.user_ref_num;
                let left = replace.quantity.saturating_sub(old.executed);
                if left == 0 {
                    return say(&canceled(original, old.left, now), said);
                }
                let enter = Enter {
                    user_ref_num: replace.user_ref_num,
                    quantity: left,
                    price: replace.price,
                    client_order_id: replace.client_order_id,
                    ..old.enter
                };
                say(&replaced(original, &enter, now), said);
                self.live.insert(self.last, Live { left, executed: old.executed, enter });
            }
            Inbound::Cancel(cancel) => {
                if let Some(old) = self.live.remove(&cancel.user_ref_num) {
                    say(&canceled(cancel.user_ref_num, old.left, now), said);
                }
            }
            _ => {}
        }
    }

    /// Executes a part of one order, or all of it.
    fn execute(&mut self, random: u64, now: u64, said: &mut Vec<Vec<u8>>) {
        let random = random.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let Some((number, order)) = self.live.iter_mut().nth(random as usize % 5) else { return };
        let number = *number;
        let quantity = if random.is_multiple_of(3) { order.left } else { 1 + (random as u32 % order.left) };
        order.left -= quantity;
        order.executed += quantity;
        let executed = Executed {
            timestamp_ns: now,
            user_ref_num: number,
            quantity,
            price: order.enter.price,
            liquidity: liquidity::ADDED,
            match_number: random,
        };
        if order.left == 0 {
            self.live.remove(&number);
        }
        say(&Outbound::Executed(executed), said);
    }
}

fn replaced(original: u32, enter: &Enter, now: u64) -> Outbound {
    Outbound::Replaced(Replaced {
        timestamp_ns: now,
        original_user_ref_num: original,
        user_ref_num: enter.user_ref_num,
        side: enter.side,
        quantity: enter.quantity,
        symbol: enter.symbol,
        price: enter.price,
        time_in_force: enter.time_in_force,
        display: enter.display,
        order_reference: u64::from(enter.user_ref_num) << 8,
        capacity: enter.capacity,
        intermarket_sweep: enter.intermarket_sweep,
        cross_type: enter.cross_type,
        order_state: order_state::LIVE,
        client_order_id: enter.client_order_id,
    })
}

fn canceled(user_ref_num: u32, quantity: u32, now: u64) -> Outbound {
    Outbound::Canceled(Canceled { timestamp_ns: now, user_ref_num, quantity, reason: cancel_reason::USER })
}

fn say(message: &Outbound, said: &mut Vec<Vec<u8>>) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    said.push(bytes);
}

fn time_of_day_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    (now.as_nanos() % 86_400_000_000_000) as u64
}
