//! An exchange that ends its session and begins the next one, behind a gateway that goes on.

use std::path::Path;

use rustix::process::Signal;
use weir_servers::orders::demo_accounts;

use super::{
    harness::{folder, shown, socket_folder, until, weir},
    order_client::Client,
    order_kill::{Node, journal, taken_by_exchange},
};

/// Writes a gateway's configuration with one account: the account of `--demo` forgets orders that an exchange has
/// taken.
fn configured(folder: &Path, directory: &str, exchange: &str) -> String {
    let [account] = &demo_accounts(1)[..] else { panic!("one account") };
    let text = format!(
        "[journal]\ndirectory = \"{directory}\"\nlevel = \"os\"\n\
         [[venue]]\nname = \"A\"\naddress = \"{exchange}\"\nusername_prefix = \"G\"\npassword = \"DEMO\"\n\
         [[account]]\nname = \"{}\"\npassword_hash = \"{}\"\n",
        account.name, account.password_hash
    );
    let file = folder.join("gateway.toml");
    std::fs::write(&file, text).expect("a file can be written");
    shown(&file).to_owned()
}

#[test]
fn in_the_next_session_of_an_exchange_numbers_of_orders_begin_again_and_those_of_clients_go_on() {
    let (folder, sockets) = (folder("order-new-session"), socket_folder("order-new-session"));
    let (ours, theirs) = (journal(&folder, "gateway"), journal(&folder, "exchange"));
    let socket = shown(&sockets.join("control")).to_owned();
    let common = ["--demo", "1", "--listen", "127.0.0.1:0", "--driver", "epoll", "--workers", "1"];
    let of_exchange = ["--mode", "match", "--journal", "os", "--journal-dir", &theirs];
    let mut exchange = Node::start(&[&["serve", "exchange"], &common[..], &of_exchange[..]].concat());
    let file = configured(&folder, &ours, &exchange.address);
    let of_gateway = ["serve", "gateway", "--config", &file, "--control", &socket];
    let mut gateway = Node::start(&[&of_gateway[..], &common[2..]].concat());
    // The gateway learns at the login which session has ended; soon after it knows the next number.
    let is_back = || {
        let said = weir(&["ctl", "--socket", &socket, "sessions"]);
        said.code == Some(0) && !said.stdout.contains(": closed")
    };
    let mut client = Client::login(&gateway.address, "C00001");
    client.send(1..=3);
    client.hear_until("they are taken", |client| client.numbers(b'A').len() == 3);

    exchange.end(Signal::TERM);
    exchange.start_once_with("epoll", &["--new-session"]);
    client.hear_until("they expire", |client| client.numbers(b'C').len() == 3);
    until("the gateway is back", is_back);
    client.send(4..=5);
    client.hear_until("they are taken", |client| client.numbers(b'A').len() == 5);

    // A crash of the gateway, which afterwards knows which of the reused numbers belong to this session.
    gateway.end(Signal::KILL);
    gateway.start_again("epoll");
    until("the gateway is back", is_back);
    let mut client = Client::login(&gateway.address, "C00001");
    client.hear_until("all of it comes again", |client| client.numbers(b'A') == [1, 2, 3, 4, 5]);
    client.send(6..=6);
    client.hear_until("it is taken", |client| client.numbers(b'A').len() == 6);
    assert_eq!(client.numbers(b'C').len(), 3, "nothing else has ended");

    // A crash of the exchange ends nothing: its session goes on, and so do the numbers in it.
    exchange.end(Signal::KILL);
    exchange.start_again("epoll");
    client.hear_until("its book is lost", |client| client.numbers(b'C').len() == 6);
    until("the gateway is back", is_back);
    client.send(7..=7);
    client.hear_until("it is taken", |client| client.numbers(b'A') == [1, 2, 3, 4, 5, 6, 7]);
    gateway.end(Signal::KILL);
    let taken = taken_by_exchange(&exchange.address, "G00001");
    assert_eq!(taken, [(1, 4), (2, 5), (3, 6), (4, 7)].map(|(number, order)| (number, client.id(order))));
}
