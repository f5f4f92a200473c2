//! What can be served and loaded: a line for each here, everything else of a protocol in its own file or folder.

mod echo;
mod http;
mod orders;

use anyhow::Result;
use clap::Subcommand;

use crate::{exit::Exit, load::LoadCommand};
use echo::{LoadEcho, ServeEcho};
use http::{LoadHttp, ServeHttp};
use orders::{LoadOrders, ServeExchange, ServeGateway};

#[derive(Debug, Subcommand)]
pub(crate) enum ServeProtocol {
    /// Send every byte back (RFC 862)
    Echo(Box<ServeEcho>),
    /// Answer HTTP/1.1 requests
    Http(Box<ServeHttp>),
    /// Take orders as an exchange does (SoupBinTCP with OUCH)
    Exchange(Box<ServeExchange>),
    /// Take orders of clients and send them to exchanges
    Gateway(Box<ServeGateway>),
}

impl ServeProtocol {
    /// Serves until a signal ends it.
    pub(crate) fn run(&self) -> Result<Exit> {
        match self {
            Self::Echo(arguments) => echo::serve(arguments),
            Self::Http(arguments) => http::serve(arguments),
            Self::Exchange(arguments) => orders::serve_exchange(arguments),
            Self::Gateway(arguments) => orders::serve_gateway(arguments),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoadProtocol {
    /// Send messages to an echo server and check every byte that comes back
    Echo(Box<LoadEcho>),
    /// Send requests of HTTP/1.1 to a server and check every response
    Http(Box<LoadHttp>),
    /// Send orders to a gateway or an exchange and check every answer
    Orders(Box<LoadOrders>),
}

impl LoadProtocol {
    /// What was typed, of whichever protocol.
    pub(crate) fn command(&self) -> &dyn LoadCommand {
        match self {
            Self::Echo(arguments) => &**arguments,
            Self::Http(arguments) => &**arguments,
            Self::Orders(arguments) => &**arguments,
        }
    }
}
