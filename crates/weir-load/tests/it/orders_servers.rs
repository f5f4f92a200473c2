//! The tests' exchange on real sockets, and the base specification of the orders tests.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use weir_load::{LoadSpec, OrdersSpec};
use weir_record::{load::LoadReport, orders::OrdersLoadReport};

use crate::{
    orders_host::{Connection, Habits, Host, Next},
    servers,
};

/// An exchange that several connections talk to.
pub type Shared = Arc<Mutex<Host>>;

/// Serves an exchange with these habits; its threads end with the test process.
pub fn exchange(habits: Habits) -> (SocketAddr, Shared) {
    exchange_of(Host::new(habits))
}

/// Serves this exchange.
pub fn exchange_of(host: Host) -> (SocketAddr, Shared) {
    let host = Arc::new(Mutex::new(host));
    let shared = Arc::clone(&host);
    let address = servers::serve(move |_, mut stream| {
        let mut connection = Connection::default();
        let mut bytes = [0; 1 << 14];
        let mut out = Vec::new();
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            out.clear();
            let next = lock(&shared).receive(&mut connection, &bytes[..count], &mut out);
            if stream.write_all(&out).is_err() {
                break;
            }
            if next == Next::Close {
                // Reads on until the client has closed: with unread bytes the kernel would send a reset.
                let _ = stream.shutdown(Shutdown::Write);
                while matches!(stream.read(&mut bytes), Ok(1..)) {}
                break;
            }
        }
        lock(&shared).ended(&connection);
    });
    (address, host)
}

pub fn lock(host: &Shared) -> std::sync::MutexGuard<'_, Host> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A counted run of `each` orders per session, without warm-up.
pub fn spec(target: SocketAddr, sessions: u32, each: u64) -> LoadSpec {
    LoadSpec {
        connections: sessions,
        messages: Some(u64::from(sessions) * each),
        protocol: OrdersSpec { orders_each: Some(each), ..OrdersSpec::demo() }.into(),
        ..servers::spec(target)
    }
}

/// Changes what is special to orders.
pub fn with(spec: LoadSpec, change: impl FnOnce(&mut OrdersSpec)) -> LoadSpec {
    let mut orders = spec.protocol.spec::<OrdersSpec>().expect("orders").clone();
    change(&mut orders);
    LoadSpec { protocol: orders.into(), ..spec }
}

/// Runs, expects a report, and checks what must hold for every report whatever the exchange does.
pub fn report(spec: &LoadSpec) -> (LoadReport, OrdersLoadReport) {
    let report = servers::run(spec).expect("a report");
    assert_eq!(report.failures.unexplained, 0, "{:?}", report.failures);
    assert_eq!(report.service.count, report.messages);
    let orders = report.orders.clone().expect("it was a load of orders");
    assert_eq!(orders.entered + orders.replaces + orders.cancels, report.messages_started);
    (report, orders)
}
