//! A gateway between two exchanges that trade, through operator actions and crashes: killed, ended in good order,
//! drained by `weir ctl`, started with another route, with a symbol at another exchange, and with a change that it has
//! to refuse; and exchanges that begin another session. Buyers and sellers continue their streams.
//!
//! At the end every client has all of its stream and nothing else, the journals of the gateway agree, and the
//! exchanges' journals show that each order was taken once and executed as its client knows.
//!
//! `WEIR_SLOW_TESTS=1` has 200 cycles, `WEIR_SEED=n` repeats those of a seed.

mod journals;
mod trader;

use std::{fs, time::Instant};

use rustix::process::Signal;
use weir_servers::orders::demo_accounts;
use weir_stats::random::splitmix;

use super::{
    harness::{Folder, folder, shown, socket_folder, until, weir},
    order_kill::{Node, drivers, journal},
};
use journals::{Exchanges, check_gateway};
use trader::{MOVING, SYMBOLS, Trader};

const VENUES: [&str; 2] = ["EAST", "WEST"];
const ROUTES: [&str; 3] = ["own", "other", "modulo"];
/// Most orders of each client that are taken before an event.
const ORDERS_MAX: u64 = 40;

/// An event for the gateway and its exchanges.
#[derive(Clone, Copy, Debug)]
enum Act {
    KillGateway,
    EndGateway,
    /// `weir ctl drain`.
    Drain,
    KillExchange(usize),
    EndExchange(usize),
    /// An exchange begins its next session.
    NewSession(usize),
    /// The gateway restarts with another way of handing orders to its workers.
    OtherRoute,
    /// It should restart with a symbol at another exchange, while the first has open orders in it.
    MoveSymbol,
    /// It restarts with a symbol at another exchange, without open orders in it; so that symbol is traded next.
    MoveSettled,
}

/// Each comes once in this many cycles.
const ACTS: [Act; 13] = [
    Act::KillGateway,
    Act::KillGateway,
    Act::EndGateway,
    Act::Drain,
    Act::KillExchange(0),
    Act::KillExchange(1),
    Act::EndExchange(0),
    Act::EndExchange(1),
    Act::NewSession(0),
    Act::NewSession(1),
    Act::OtherRoute,
    Act::MoveSymbol,
    Act::MoveSettled,
];

struct World {
    folder: Folder,
    /// The folder of the control socket, whose path has to be short.
    sockets: Folder,
    exchanges: [Node; 2],
    gateway: Node,
    route: usize,
    /// The exchange of the symbol that moves.
    has_moving: usize,
    /// Orders in that symbol, and its exchanges at the time.
    crossed: Vec<(String, usize)>,
    traders: Vec<Trader>,
    drivers: Vec<&'static str>,
    cycle: usize,
    state: u64,
}

/// Writes the gateway's configuration: the exchange of each symbol, also of the one that moves, and the route.
fn configure(folder: &Folder, addresses: [&str; 2], venues: [usize; 2], has_moving: usize, route: &str) {
    let mut text = format!(
        "route = \"{route}\"\n[journal]\ndirectory = \"{}\"\nlevel = \"os\"\n",
        journal(folder, "gateway")
    );
    for (name, address) in VENUES.iter().zip(addresses) {
        text.push_str(&format!(
            "[[venue]]\nname = \"{name}\"\naddress = \"{address}\"\nusername_prefix = \"G\"\npassword = \"DEMO\"\n"
        ));
    }
    for (symbol, venue) in SYMBOLS.iter().zip(venues).chain([(&MOVING, has_moving)]) {
        text.push_str(&format!("[[symbols]]\nvenue = \"{}\"\nnames = [\"{symbol}\"]\n", VENUES[venue]));
    }
    for account in demo_accounts(4) {
        let (name, hash) = (account.name, account.password_hash);
        text.push_str(&format!(
            "[[account]]\nname = \"{name}\"\npassword_hash = \"{hash}\"\ntakeover = true\n"
        ));
    }
    fs::write(folder.join("gateway.toml"), text).expect("a file can be written");
}

impl World {
    fn start(state: u64) -> Self {
        let (folder, sockets) = (folder("order-cycles"), socket_folder("order-cycles"));
        let common = ["--listen", "127.0.0.1:0", "--driver", "epoll", "--workers", "2"];
        let exchange = |number: usize| {
            let own = journal(&folder, VENUES[number]);
            let kind = ["serve", "exchange", "--demo", "1", "--mode", "match", "--journal", "os"];
            Node::start(&[&kind[..], &common, &["--journal-dir", &own]].concat())
        };
        let exchanges = [exchange(0), exchange(1)];
        configure(&folder, [0, 1].map(|number| exchanges[number].address.as_str()), [0, 1], 0, ROUTES[0]);
        let (file, socket) = (journal(&folder, "gateway.toml"), journal(&sockets, "control"));
        let own = ["serve", "gateway", "--config", &file, "--control", &socket];
        let gateway = Node::start(&[&own[..], &common].concat());
        // A buyer and a seller on each worker.
        let traders = [("C00001", b'B'), ("C00002", b'B'), ("C00003", b'S'), ("C00004", b'S')];
        Self {
            exchanges,
            gateway,
            route: 0,
            has_moving: 0,
            crossed: Vec::new(),
            traders: traders.map(|(name, side)| Trader::new(name, side)).into(),
            drivers: drivers(),
            cycle: 0,
            state,
            folder,
            sockets,
        }
    }

    fn configure(&self, venues: [usize; 2], route: usize) {
        let addresses = [0, 1].map(|number| self.exchanges[number].address.as_str());
        configure(&self.folder, addresses, venues, self.has_moving, ROUTES[route]);
    }

    fn driver(&self) -> &'static str {
        self.drivers[self.cycle % self.drivers.len()]
    }

    fn ctl(&self, words: &[&str]) -> String {
        let said = weir(&[&["ctl", "--socket", shown(&self.sockets.join("control"))], words].concat());
        assert_eq!(said.code, Some(0), "{words:?}: {}", said.stderr);
        said.stdout
    }

    /// Some orders are taken, and some more are in flight.
    fn trade(&mut self) {
        let Self { traders, gateway, state, .. } = self;
        for trader in &mut *traders {
            let orders = splitmix(state) % ORDERS_MAX;
            trader.work(&gateway.address, orders as usize, state);
        }
        traders.iter_mut().for_each(|trader| trader.fill(state));
    }

    fn run(&mut self, act: Act) {
        let driver = self.driver();
        match act {
            Act::KillGateway => self.gateway.end(Signal::KILL),
            Act::EndGateway => self.gateway.end(Signal::TERM),
            Act::Drain => {
                assert!(self.ctl(&["drain"]).contains("draining"));
                self.gateway.expect_end(0);
            }
            Act::KillExchange(number) => self.exchanges[number].end(Signal::KILL),
            Act::EndExchange(number) => self.exchanges[number].end(Signal::TERM),
            Act::NewSession(number) => {
                // Messages of a session that is over cannot be requested again, so all are read before.
                for trader in &mut self.traders {
                    trader.settle(&self.gateway.address);
                }
                self.exchanges[number].end(Signal::TERM);
                self.exchanges[number].start_once_with(driver, &["--new-session"]);
            }
            Act::OtherRoute => {
                self.gateway.end(Signal::TERM);
                self.route = (self.route + 1) % ROUTES.len();
                self.configure([0, 1], self.route);
            }
            Act::MoveSymbol => self.move_symbol(),
            Act::MoveSettled => {
                self.cross();
                self.gateway.end(Signal::KILL);
                self.has_moving = 1 - self.has_moving;
                self.configure([0, 1], self.route);
            }
        }
        match act {
            Act::KillExchange(number) | Act::EndExchange(number) => {
                self.exchanges[number].start_again(driver);
            }
            Act::NewSession(_) => {}
            _ => self.gateway.start_again(driver),
        }
        until("every exchange is there", || !self.ctl(&["sessions"]).contains(": closed"));
        if matches!(act, Act::MoveSettled) {
            self.cross();
        }
    }

    /// A buyer and a seller trade in the symbol that moves, and leave nothing open in it.
    fn cross(&mut self) {
        let Self { traders, gateway, .. } = self;
        for (place, number) in [0, 2].map(|place| (place, traders[place].cross(&gateway.address, MOVING))) {
            traders[place].wait_for_end(&gateway.address, number);
            self.crossed.push((traders[place].id(number), self.has_moving));
        }
    }

    /// The gateway does not start if it would not reach an open order, and says so; with its former configuration it
    /// starts.
    fn move_symbol(&mut self) {
        let number = splitmix(&mut self.state) as usize % SYMBOLS.len();
        self.traders[0].rest(&self.gateway.address, SYMBOLS[number]);
        self.gateway.end(Signal::KILL);
        let mut venues = [0, 1];
        venues[number] = 1 - number;
        self.configure(venues, self.route);
        let refusal = self.gateway.refused_start();
        let listed = format!("at {} ({} has another route)", VENUES[number], SYMBOLS[number]);
        for part in ["the journal has open orders", "order ", " of C0000", &listed, "--expire-unreachable"] {
            assert!(refusal.contains(part), "no {part:?} in {refusal}");
        }
        self.configure([0, 1], self.route);
    }

    /// Stops all processes, and compares the clients' messages with the journals.
    fn end(mut self) {
        let stopped = self.ctl(&["kill", "all"]);
        assert!(stopped.contains("kill switch is on for: everybody"), "{stopped}");
        for trader in &mut self.traders {
            trader.end(&self.gateway.address);
            trader.ask_again(&self.gateway.address);
        }
        self.gateway.end(Signal::TERM);
        let mut exchanges = Exchanges::default();
        for (number, exchange) in self.exchanges.iter_mut().enumerate() {
            exchange.end(Signal::TERM);
            exchanges.read(number, &journal(&self.folder, VENUES[number]));
        }
        check_gateway(&journal(&self.folder, "gateway"), &self.traders);
        exchanges.compare(&self.traders);
        assert!(!self.crossed.is_empty(), "no symbol has moved");
        for (name, number) in &self.crossed {
            assert_eq!(exchanges.that_has(name), Some(*number), "order {name}");
        }
        let outcomes = || self.traders.iter().flat_map(|trader| trader.orders.values());
        let taken = outcomes().filter(|outcome| outcome.is_taken()).count();
        let expired = outcomes().filter(|outcome| outcome.has_expired).count();
        println!("{taken} orders taken, {} executions, {expired} orders expired", exchanges.fills());
        assert!(taken > 0 && exchanges.fills() > 0, "nothing was traded");
    }
}

#[test]
fn nothing_is_lost_and_nothing_is_executed_twice_whatever_comes_over_gateway_and_exchanges() {
    let cycles = if std::env::var_os("WEIR_SLOW_TESTS").is_some() { 200 } else { ACTS.len() };
    let seed = std::env::var("WEIR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(11);
    println!("seed {seed} (WEIR_SEED takes another), {cycles} cycles");
    let began = Instant::now();
    let mut world = World::start(seed);
    let mut left: Vec<Act> = Vec::new();
    for cycle in 0..cycles {
        if left.is_empty() {
            left.extend(ACTS);
        }
        let act = left.swap_remove(splitmix(&mut world.state) as usize % left.len());
        println!("cycle {cycle}: {act:?}");
        world.cycle = cycle;
        world.trade();
        world.run(act);
    }
    world.trade();
    for trader in &mut world.traders {
        trader.settle(&world.gateway.address);
    }
    world.end();
    println!("{cycles} cycles in {:.1} s", began.elapsed().as_secs_f64());
}
