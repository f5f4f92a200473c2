//! Addresses, listeners and streams.

mod listener;
mod stream;

pub use listener::Listener;
pub use stream::Stream;

pub use crate::{
    address::{Address, AddressError, ResolveError},
    driver::ListenOptions,
};
