//! Orders: `weir serve exchange`, `weir serve gateway` and `weir load orders`.

mod arguments;
mod exchange;
mod gateway;
mod journal;
mod load;

pub(crate) use arguments::{LoadOrders, ServeExchange, ServeGateway};
pub(super) use exchange::run as serve_exchange;
pub(super) use gateway::run as serve_gateway;
