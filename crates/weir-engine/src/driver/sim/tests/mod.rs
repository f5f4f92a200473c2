//! Tests of the simulated kernel through the public interface. Every time here is virtual; a failure prints its seed.

use std::{future::Future, time::Duration};

use crate::{
    Config, Driver, Runtime, SimOptions,
    net::{Address, Listener, Stream},
};

mod endings;
mod limits;
mod programs;
mod time;
mod transfer;

const MICROSECOND: Duration = Duration::from_micros(1);
const MILLISECOND: Duration = Duration::from_millis(1);

fn options(seed: u64) -> SimOptions {
    SimOptions { seed, ..SimOptions::default() }
}

fn config(sim: SimOptions) -> Config {
    Config { sim, ..Config::for_test(Driver::Sim) }
}

/// Runs a future in a separate simulation.
fn simulate<F: Future>(sim: SimOptions, future: F) -> F::Output {
    Runtime::new(&config(sim)).expect("the simulator starts anywhere").block_on(future)
}

fn address(text: &str) -> Address {
    text.parse().expect("a test's address is one")
}

/// A listener on a free port, and its address.
fn listen() -> (Listener, Address) {
    let listener = Listener::bind(&address("127.0.0.1:0"), Default::default()).expect("the port is free");
    let bound = listener.local_address().expect("it is bound");
    (listener, bound)
}

/// Both ends of a connection.
async fn pair() -> (Stream, Stream) {
    let (listener, bound) = listen();
    let client = Stream::connect(&bound).await.expect("somebody listens");
    let server = listener.accept().await.expect("the connection stands");
    (client, server)
}

/// The byte at `position` in the stream of `seed`.
fn pattern(seed: u64, position: usize) -> u8 {
    (seed as usize).wrapping_mul(31).wrapping_add(position).wrapping_mul(0x9e37_79b9).to_le_bytes()[3]
}

fn pattern_bytes(seed: u64, length: usize) -> Vec<u8> {
    (0..length).map(|position| pattern(seed, position)).collect()
}

/// Sends everything back, including the end of the stream.
async fn echo(stream: Stream) -> std::io::Result<()> {
    while let Some(bytes) = stream.recv().await? {
        stream.send(bytes).await?;
    }
    stream.shutdown().await
}

/// All bytes up to the end of the stream.
async fn read_all(stream: &Stream) -> std::io::Result<Vec<u8>> {
    let mut received = Vec::new();
    while let Some(bytes) = stream.recv().await? {
        assert!(!bytes.is_empty(), "a lease without bytes");
        received.extend_from_slice(&bytes);
    }
    Ok(received)
}
