//! The generator against real sockets: right servers pass, and each kind of broken server gets the right failure
//! class. Servers are plain threads on loopback; nothing sleeps, broken servers react to what they receive.

mod broken;
mod http_broken;
mod http_right;
mod http_servers;
mod orders_broken;
mod orders_host;
mod orders_right;
mod orders_servers;
mod parts;
mod right;
mod servers;
mod slices;
