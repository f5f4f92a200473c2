//! Random programs on a ring whose completions a seed reorders: every connection delivers every byte, nothing hangs
//! and nothing stays open.
//!
//! The kernel below is the real one, so a seed decides the programs' actions and the faults of their requests, but
//! not their timing. `WEIR_PROGRAMS=100000` runs that many programs, from seed `WEIR_TEST_SEED` on; that variable
//! alone runs one.

use std::{io, os::fd::OwnedFd, os::unix::net::UnixStream, rc::Rc, time::Duration};

use super::super::fault_injection::{self, Done, Plant};
use crate::{
    BufferOptions, Config, Driver, KernelMask, Limits, ReceiveMode, Runtime, UringOptions,
    driver::sim::random::Random,
    net::{Address, ListenOptions, Listener, Stream},
    spawn,
    time::{sleep, timeout, yield_now},
};

/// Programs in an ordinary run.
const PROGRAMS: u64 = 200;
/// A program that takes longer hangs.
const HANGS_AFTER: Duration = Duration::from_secs(30);

/// One connection.
#[derive(Clone, Copy, Debug)]
struct Script {
    number: usize,
    bytes: usize,
    piece: usize,
    /// Over a Unix socket pair with small buffers; over TCP otherwise.
    is_pair: bool,
    /// Each piece waits for the answer to the last.
    asks: bool,
    /// The reader yields after each arrival.
    is_slow: bool,
    /// The server answers from copies.
    copies: bool,
    /// The client resets the connection in the middle.
    aborts: bool,
}

#[derive(Debug)]
struct Plan {
    config: Config,
    scripts: Vec<Script>,
}

fn one_of<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len())]
}

/// Options that a ring uses only on request, on an unmasked kernel; one that lacks it refuses the program.
fn ask_for_more(options: &mut UringOptions, random: &mut Random) {
    match random.below(10) {
        0 => options.zero_copy_bytes_min = Some(1),
        1 => options.receive = ReceiveMode::Bundle,
        2 => options.fixed_files = true,
        3 => options.minimum_wait = Duration::from_micros(50),
        4 => options.poll_idle_ms = Some(1),
        _ => {}
    }
}

impl Plan {
    fn new(seed: u64) -> Self {
        // A different stream from the one that the disorder draws from.
        let mut random = Random::new(seed ^ 0x0c0f_fee0_d150_4de4);
        let random = &mut random;
        let mut config = Config::for_test(Driver::Uring);
        config.uring.entries = one_of(random, &[2, 8, 1024]);
        config.uring.receive = one_of(random, &[ReceiveMode::Auto, ReceiveMode::Single]);
        config.uring.defer_taskrun = random.chance(800);
        config.uring.submit_each = random.chance(100);
        let older = one_of(random, &[None, None, Some("6.0"), Some("5.18"), Some("5.15"), Some("5.11")]);
        if let Some(version) = older {
            config.masked = KernelMask::as_on(version.parse().expect("a version"));
        } else {
            ask_for_more(&mut config.uring, random);
        }
        let high = one_of(random, &[1, 4000, 256 << 10]);
        config.limits = Limits {
            output_high_water_bytes: high,
            output_low_water_bytes: high / 2,
            input_high_water_bytes: one_of(random, &[1, 4096, 256 << 10]),
            ..Limits::default()
        };
        config.buffers = BufferOptions {
            bytes: one_of(random, &[None, Some(64), Some(4096)]),
            count: one_of(random, &[None, Some(3), Some(64)]),
        };
        let connections = 1 + random.below(12);
        let scripts = (0..connections).map(|number| Script::new(number, random)).collect();
        Self { config, scripts }
    }
}

impl Script {
    fn new(number: usize, random: &mut Random) -> Self {
        let limit = one_of(random, &[1, 3000, 60_000]);
        let bytes = 1 + random.below(limit);
        // Few pieces, so that a program whose sends are all refused memory still ends soon.
        let piece = bytes.div_ceil(1 + random.below(20));
        Self {
            number,
            bytes,
            piece,
            is_pair: random.chance(400),
            asks: random.chance(400),
            is_slow: random.chance(300),
            copies: random.chance(500),
            aborts: random.chance(80),
        }
    }

    fn content(&self) -> Vec<u8> {
        (0..self.bytes).map(|place| (place.wrapping_mul(31) ^ place >> 8 ^ self.number) as u8).collect()
    }
}

/// Sends back everything that arrives, including the end.
async fn serve(script: Script, stream: Stream) -> io::Result<()> {
    while let Some(lease) = stream.recv().await? {
        if script.is_slow {
            yield_now().await;
        }
        if script.copies {
            // A task that waits for room with a lease in hand would keep its buffer from the client that would make
            // room.
            let bytes = lease.to_vec();
            drop(lease);
            stream.send_slice(&bytes).await?;
        } else {
            stream.send(lease).await?;
        }
    }
    stream.shutdown().await
}

/// Sends everything and reads as much; returns the error in words.
async fn visit(script: Script, stream: Stream) -> Result<(), String> {
    let (content, stream) = (script.content(), Rc::new(stream));
    if script.aborts {
        let _ = stream.send_slice(&content[..script.bytes.div_ceil(2)]).await;
        let _ = stream.recv().await;
        Rc::into_inner(stream).expect("nobody else has it").abort();
        return Ok(());
    }
    let writer = spawn({
        let (content, stream) = (content.clone(), Rc::clone(&stream));
        async move {
            if !script.asks {
                for piece in content.chunks(script.piece) {
                    stream.send_slice(piece).await?;
                    yield_now().await;
                }
                stream.shutdown().await?;
            }
            io::Result::Ok(())
        }
    });
    let mut received = Vec::new();
    let mut asked = 0;
    loop {
        if script.asks && received.len() == asked {
            let piece = &content[asked..(asked + script.piece).min(content.len())];
            asked += piece.len();
            let sent =
                if piece.is_empty() { stream.shutdown().await } else { stream.send_slice(piece).await };
            sent.map_err(|error| format!("sending: {error}"))?;
        }
        if script.is_slow {
            sleep(Duration::from_micros(100)).await;
        }
        match stream.recv().await.map_err(|error| format!("receiving: {error}"))? {
            Some(lease) => received.extend_from_slice(&lease),
            None => break,
        }
    }
    writer.await.map_err(|error| format!("sending: {error}"))?;
    if received == content { Ok(()) } else { Err(format!("{} other bytes came back", received.len())) }
}

/// Both ends of a connection with small buffers.
fn pair() -> io::Result<(Stream, Stream)> {
    let (ours, theirs) = UnixStream::pair()?;
    for end in [&ours, &theirs] {
        rustix::net::sockopt::set_socket_send_buffer_size(end, 4096)?;
    }
    Ok((Stream::from_descriptor(OwnedFd::from(ours))?, Stream::from_descriptor(OwnedFd::from(theirs))?))
}

/// Both ends of a connection over TCP. They match in order only if no other connection is made meanwhile.
async fn connect(listener: &Listener, bound: &Address) -> io::Result<(Stream, Stream)> {
    let client = Stream::connect(bound).await?;
    Ok((client, listener.accept().await?))
}

async fn work(scripts: Vec<Script>) -> Result<(), String> {
    let setting_up = |error: io::Error| format!("setting up: {error}");
    let address = "127.0.0.1:0".parse().expect("an address");
    let listener = Listener::bind(&address, ListenOptions::default()).map_err(setting_up)?;
    let bound = listener.local_address().map_err(setting_up)?;
    let mut running = Vec::new();
    for script in scripts {
        let ends = if script.is_pair { pair() } else { connect(&listener, &bound).await };
        let (client, server) = ends.map_err(setting_up)?;
        running.push((script, spawn(visit(script, client)), spawn(serve(script, server))));
    }
    for (script, client, server) in running {
        client.await.map_err(|wrong| format!("{script:?}: {wrong}"))?;
        let served = server.await;
        if let (Err(error), false) = (served, script.aborts) {
            return Err(format!("{script:?}: serving: {error}"));
        }
    }
    Ok(())
}

/// Runs a program: returns whether it could run, or the error in words.
fn run(seed: u64, hangs_after: Duration) -> Result<bool, String> {
    let Plan { config, scripts } = Plan::new(seed);
    fault_injection::install(Some(seed));
    let runtime = Runtime::new(&config);
    fault_injection::install(None);
    let Ok(runtime) = runtime else { return Ok(false) };
    let open = || runtime.counters().snapshot().connections_open;
    let outcome = runtime.block_on(async {
        timeout(hangs_after, work(scripts.clone())).await.map_err(|_| "it hangs".to_owned())??;
        let closed = async {
            while open() > 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(hangs_after, closed).await.map_err(|_| format!("{} connections stay open", open()))
    });
    outcome.map(|()| true).map_err(|wrong| format!("{wrong} ({config:?} {scripts:?})"))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Whether io_uring is available. The conformance tests report what is skipped without it, or fail where it is
/// required.
fn is_there() -> bool {
    Runtime::new(&Config::for_test(Driver::Uring)).is_ok()
}

#[test]
fn programs_get_every_byte_whatever_order_completions_come_in() {
    if !is_there() {
        return;
    }
    let (first, count) = (number("WEIR_TEST_SEED"), number("WEIR_PROGRAMS"));
    let count = count.unwrap_or(if first.is_some() { 1 } else { PROGRAMS });
    let first = first.unwrap_or(0);
    let (mut seen, mut ran) = (Done::default(), 0);
    for seed in first..first + count {
        ran += u64::from(
            run(seed, HANGS_AFTER).unwrap_or_else(|wrong| panic!("WEIR_TEST_SEED={seed}: {wrong}")),
        );
        let done = fault_injection::take_done();
        seen.late += done.late;
        seen.swapped += done.swapped;
        seen.refused += done.refused;
        seen.cancelled += done.cancelled;
        seen.shortened += done.shortened;
    }
    // Programs that cover nothing would pass as well.
    let Done { late, swapped, refused, cancelled, shortened } = seen;
    let met = [late, swapped, refused, cancelled, shortened];
    assert!(
        count < PROGRAMS || ran > count / 2 && met.iter().all(|count| *count > 20),
        "{ran} ran: {seen:?}"
    );
}

#[test]
fn programs_find_faults_that_are_planted_in_the_driver() {
    if !is_there() {
        return;
    }
    for fault in [Plant::RestFromWrongPlace, Plant::EndedReceiveStaysArmed, Plant::RefusedSendIsLost] {
        fault_injection::plant(Some(fault));
        let found =
            (0..PROGRAMS).find_map(|seed| run(seed, Duration::from_secs(2)).err().map(|wrong| (seed, wrong)));
        fault_injection::plant(None);
        let Some((seed, wrong)) = found else { panic!("{fault:?} stays hidden in {PROGRAMS} programs") };
        assert!(
            run(seed, HANGS_AFTER).is_ok(),
            "seed {seed} fails without {fault:?} too, which gave: {wrong}"
        );
    }
}
