//! A gateway with a drop copy is killed, again and again: a firm has every refusal of its account once, in the
//! account's order, and the same numbers and bytes each time.

use std::fs;

use rustix::process::Signal;
use weir_proto::{
    drop_copy::Copied,
    ouch::{Appendage, Enter, Inbound, Outbound},
    soup::SEQUENCED,
};

use super::{
    harness::{Folder, PATIENCE, Running, folder, shown, until, weir},
    order_kill::Session,
};

const KILLS: u32 = 6;
/// Orders in flight at a kill.
const ORDERS: u32 = 300;

/// A gateway's file, with an account and a firm; the password of both is DEMO.
fn file(upstream: &str, place: &str) -> String {
    let hash =
        "$argon2id$v=19$m=19456,t=2,p=1$qgxeJxojCgwzkIepu7nvFw$rk0ROBPimyp/uNNHZKEb8AdXQnX5F7zuYcy3pC3eS10";
    format!(
        "[listen]\norders = \"127.0.0.1:0\"\n[journal]\ndirectory = \"{place}/journal\"\nlevel = \"os\"\n[limits]\n\
         shares_max = 1000\n[[venue]]\nname = \"X\"\naddress = \"{upstream}\"\nusername_prefix = \"G\"\n\
         password = \"DEMO\"\n[[account]]\nname = \"C00001\"\npassword_hash = \"{hash}\"\n[drop_copy]\n\
         listen = \"127.0.0.1:0\"\n[[drop_copy.firms]]\nname = \"FIRM\"\npassword_hash = \"{hash}\"\n\
         accounts = [\"C00001\"]\n"
    )
}

struct Gateway {
    process: Running,
    clients: String,
    firms: String,
}

fn start(path: &str) -> Gateway {
    let process = Running::weir(&["serve", "gateway", "--config", path, "--workers", "1"]);
    let line = process.next_line().unwrap_or_else(|| panic!("{}", process.rest_of_errors()));
    let clients = line.strip_prefix("listening on ").expect("it says where").to_owned();
    let line = process.error_line_with("drop copy on ");
    let firms = line.split(' ').next_back().expect("an address").to_owned();
    Gateway { process, clients, firms }
}

/// One connection, and everything that its user has received so far.
struct Reader {
    session: Session,
    messages: Vec<Vec<u8>>,
}

impl Reader {
    fn login(address: &str, name: &str, messages: Vec<Vec<u8>>) -> Self {
        let mut session = None;
        until("it is let in", || {
            session = Session::login(address, name, messages.len() as u64 + 1);
            session.is_some()
        });
        Self { session: session.expect("it is let in"), messages }
    }

    /// Reads until there are this many messages, or the last one fits.
    fn read_until(&mut self, holds: impl Fn(&[Vec<u8>]) -> bool) {
        while !holds(&self.messages) {
            let take = |kind: u8, payload: &[u8]| (kind == SEQUENCED).then(|| payload.to_vec());
            self.messages.extend(self.session.read(take).expect("the connection goes on"));
        }
    }
}

/// Orders that are refused: they have too many shares.
fn send(client: &mut Reader, numbers: std::ops::Range<u32>) {
    let order = |user_ref_num: u32| {
        let mut payload = Vec::new();
        let order = Enter {
            user_ref_num,
            side: b'B',
            quantity: 2_000,
            symbol: "WEIR".parse().expect("a symbol"),
            price: 10_000,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            intermarket_sweep: b'N',
            cross_type: b'N',
            client_order_id: format!("N{user_ref_num}").parse().expect("an id"),
        };
        Inbound::Enter(order, Appendage::EMPTY).encode(&mut payload);
        payload
    };
    client.session.send(numbers.map(order));
}

/// Whether a message refuses this order, or a later one.
fn refuses(message: &[u8], number: u32) -> bool {
    let decoded = Outbound::decode(message).map(|(message, _)| message);
    matches!(decoded, Ok(Outbound::Rejected(rejected)) if rejected.user_ref_num >= number)
}

#[test]
fn after_every_kill_a_firm_has_the_same_numbers_and_bytes_and_lacks_nothing() {
    let folder: Folder = folder("order-drop-copy");
    let path = folder.join("gateway.toml");
    let exchange = Running::weir(&["serve", "exchange", "--demo", "1", "--listen", "127.0.0.1:0"]);
    let line = exchange.next_line().expect("it starts");
    let upstream = line.strip_prefix("listening on ").expect("it says where").to_owned();
    fs::write(&path, file(&upstream, shown(&folder))).expect("the folder can be written");
    let said = weir(&["serve", "gateway", "--config", shown(&path), "--check"]);
    assert!(
        said.stdout.contains("drop copy: 127.0.0.1:0, 1 firms\njournal of the drop copy: "),
        "{}",
        said.stdout
    );
    let (mut of_client, mut of_firm) = (Vec::new(), Vec::new());
    for kill in 0..KILLS {
        let mut gateway = start(shown(&path));
        let mut client = Reader::login(&gateway.clients, "C00001", of_client);
        let mut firm = Reader::login(&gateway.firms, "FIRM", of_firm);
        let first = 1 + kill * ORDERS;
        send(&mut client, first..first + ORDERS);
        client.read_until(|messages| messages.iter().any(|message| refuses(message, first)));
        // Sometimes the firm has nothing of this start yet.
        let wanted = firm.messages.len() + (kill % 3 * 20) as usize;
        firm.read_until(|messages| messages.len() >= wanted);
        gateway.process.signal(Signal::KILL);
        assert_eq!(gateway.process.wait(PATIENCE), -9);
        (of_client, of_firm) = (client.messages, firm.messages);
    }
    let mut gateway = start(shown(&path));
    let mut client = Reader::login(&gateway.clients, "C00001", of_client);
    let last = 1 + KILLS * ORDERS;
    send(&mut client, last..last + 1);
    client.read_until(|messages| messages.last().is_some_and(|message| refuses(message, last)));
    let is_last = |copy: &[u8]| Copied::parse(copy).is_some_and(|copied| refuses(copied.message, last));
    let has_last = |copies: &[Vec<u8>]| copies.last().is_some_and(|copy| is_last(copy));
    let mut firm = Reader::login(&gateway.firms, "FIRM", of_firm);
    firm.read_until(has_last);
    let copies: Vec<Copied<'_>> =
        firm.messages.iter().map(|copy| Copied::parse(copy).expect("a copy")).collect();
    let expected: Vec<(u64, &[u8])> = (1..).zip(client.messages.iter().map(Vec::as_slice)).collect();
    let found: Vec<(u64, &[u8])> = copies.iter().map(|copied| (copied.number, copied.message)).collect();
    assert!(found == expected, "{} copies of {} messages", found.len(), expected.len());
    assert!(copies.iter().all(|copied| copied.account.as_str() == "C00001"));
    // Once more from the beginning: what was received between kills has the same numbers.
    let had = firm.messages;
    gateway.process.signal(Signal::TERM);
    assert_eq!(gateway.process.wait(PATIENCE), 0);
    let mut gateway = start(shown(&path));
    let mut firm = Reader::login(&gateway.firms, "FIRM", Vec::new());
    firm.read_until(has_last);
    assert!(firm.messages == had, "another stream");
    gateway.process.signal(Signal::TERM);
    assert_eq!(gateway.process.wait(PATIENCE), 0);
    drop(exchange);
}
