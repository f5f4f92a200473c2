//! Addresses, listeners and streams.

mod address;
mod listener;
mod stream;

pub use address::{Address, AddressError, ResolveError};
pub use listener::Listener;
pub use stream::Stream;

pub use crate::driver::ListenOptions;
