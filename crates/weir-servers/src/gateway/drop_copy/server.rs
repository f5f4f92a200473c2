//! Starts and ends a drop copy, and shows it to other threads.

use std::{
    io,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use weir_engine::{
    net::Address,
    serve::{AcceptMode, ServeError, ServerConfig},
};
use weir_record::orders::NodeStats;

use super::{
    DropCopyConfig, JournalEnds,
    copier::{Begin, Copier},
    firms::Firms,
    place::LastCopies,
};
use crate::{
    gateway::{GatewayConfig, GatewayControl, server::GatewayState},
    journal::Level,
    orders::{
        AccountConfig, Application, Events, OrdersConfig, OrdersControl, OrdersServer, RecordKind,
        SessionStore, recover_with_removed,
    },
};

/// Most connections that have not logged in, and most of them from one address.
const UNAUTHENTICATED_MAX: usize = 256;
const UNAUTHENTICATED_PER_ADDRESS_MAX: usize = 64;

/// A running drop copy.
#[derive(Debug)]
pub struct DropCopyServer {
    orders: OrdersServer,
}

/// A drop copy, for any thread.
#[derive(Debug)]
pub(in crate::gateway) struct DropCopyControl {
    orders: OrdersControl,
    ends: Arc<JournalEnds>,
}

impl DropCopyControl {
    /// The counts of the sessions with firms.
    pub(in crate::gateway) fn node_stats(&self) -> NodeStats {
        self.orders.node_stats()
    }

    /// Durable records of the gateway that were not looked at yet.
    pub(in crate::gateway) fn behind(&self) -> u64 {
        self.ends.behind()
    }

    /// Whether nothing is copied: a journal of the gateway cannot be read, or its own has failed.
    pub(in crate::gateway) fn is_stopped(&self) -> bool {
        self.ends.is_stuck() || self.orders.has_failed()
    }
}

impl GatewayControl {
    /// The sessions with firms, if there is a drop copy.
    pub(in crate::gateway) fn firms(&self) -> Option<&OrdersControl> {
        self.shared.drop_copy.get().map(|drop_copy| &drop_copy.orders)
    }
}

impl DropCopyServer {
    /// Starts the drop copy of a gateway, if it has one, on the engine of its workers, which have not started.
    ///
    /// # Errors
    /// The errors of [`OrdersServer::start`].
    pub(in crate::gateway) fn start(
        server: &ServerConfig,
        gateway: &GatewayState,
    ) -> Result<Option<Self>, ServeError> {
        let (config, events) = (&gateway.config, gateway.common.notices.events());
        let (Some(copy), Some((journal, level)), Some(ends)) =
            (&config.drop_copy, &config.journal, &gateway.journal_ends)
        else {
            return Ok(None);
        };
        let orders = orders_config(config, copy, (copy.folder(journal), *level), events);
        let wrong = |source| ServeError::Worker { worker: 0, source };
        let mut copies = LastCopies::default();
        // Those of firms that have been removed count as well: the others go on behind them.
        let recovery = recover_with_removed(&orders, &mut |record| {
            if let RecordKind::Sequenced { account, upstream_sequence: place @ 1.., .. } = record.kind {
                copies.restore(account, place);
            }
        });
        let recovery = recovery.map_err(|error| wrong(io::Error::other(error)))?;
        let begin = Begin {
            ends: Arc::clone(ends),
            firms: Firms::new(&copy.firms),
            copies,
            session: config.session,
            events: events.clone(),
        };
        let server = ServerConfig {
            listen: copy.listen.clone(),
            workers: 1,
            accept: AcceptMode::default(),
            // The gateway's workers have these.
            cpus: Vec::new(),
            ..server.clone()
        };
        let orders = OrdersServer::start_recovered(server, orders, recovery, application(journal, begin))?;
        // It is set once.
        let _ = gateway.drop_copy.set(DropCopyControl { orders: orders.control(), ends: Arc::clone(ends) });
        Ok(Some(Self { orders }))
    }

    /// The address for firms, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        self.orders.address()
    }

    /// Copies what is left, disconnects the firms, and ends. Call it when the gateway's workers have ended.
    /// `ends_session`: their session with clients is over, and so is that with firms.
    ///
    /// # Panics
    /// When its worker panicked: with its message.
    pub fn end(self, ends_session: bool) {
        let control = self.orders.control();
        if !ends_session || control.end_session(control.session().as_str()).is_err() {
            control.drain();
        }
        self.orders.join();
    }
}

fn orders_config(
    config: &GatewayConfig,
    copy: &DropCopyConfig,
    journal: (PathBuf, Level),
    events: &Events,
) -> OrdersConfig {
    let firms = copy.firms.iter().map(|firm| AccountConfig {
        name: firm.name,
        password_hash: Arc::clone(&firm.password_hash),
        cancel_after: Duration::ZERO,
        cancel_on_disconnect: false,
        takeover: firm.takeover,
    });
    OrdersConfig {
        is_read_only: true,
        session: copy.session,
        logins: config.logins,
        unauthenticated_max: UNAUTHENTICATED_MAX,
        unauthenticated_per_address_max: UNAUTHENTICATED_PER_ADDRESS_MAX,
        journal: Some(journal),
        journal_segment_bytes: config.journal_segment_bytes,
        // Orders go on without it; its end says that it panicked.
        on_panic: None,
        events: events.clone(),
        node: "DROPCOPY",
        ..OrdersConfig::new(firms.collect())
    }
}

/// Makes the application, once.
fn application(
    journal: &Path,
    begin: Begin,
) -> impl Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>> + Clone + Send + 'static {
    let (journal, begin) = (journal.to_owned(), Arc::new(Mutex::new(Some(begin))));
    move |store| {
        let begin = begin.lock().unwrap_or_else(PoisonError::into_inner).take();
        let begin = begin.ok_or_else(|| io::Error::other("the worker has begun before"))?;
        Ok(Copier::start(store, &journal, begin)? as Rc<dyn Application>)
    }
}
