//! The generator against real sockets: right servers are called right, and each kind of broken server is called
//! what it is. Servers are plain threads on loopback; nothing sleeps, broken servers act on what they receive.

mod broken;
mod right;
mod servers;
