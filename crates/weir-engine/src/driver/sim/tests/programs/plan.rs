//! The program of a seed: the kernel's behaviour, the limits, and the actions of each connection's two ends.

use std::time::Duration;

use super::super::{MICROSECOND, MILLISECOND};
use crate::{BufferOptions, Config, Driver, Limits, SimOptions, driver::sim::random::Random};

/// How one end reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    /// A receive is given up after this time and started again.
    pub(super) patience: Option<Duration>,
    /// Waits this long after each receive.
    pub(super) pause: Option<Duration>,
    /// Keeps the buffer while it waits.
    pub(super) holds: bool,
}

/// A client's actions besides sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// Reads all the time, ends its direction when everything is sent, and reads to the end.
    Reads,
    /// As `Reads`, a piece at a time: the next one when the last has come back.
    Asks,
    /// Closes when everything is queued, and reads nothing.
    Leaves,
    /// Resets the connection after this many pieces.
    Aborts { pieces: usize },
}

/// A server's actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// Sends every buffer back as it is, or copied.
    Echoes { copies: bool },
    /// Reads to the end and then sends everything back in pieces.
    Collects,
    /// Sends this many bytes, ends its direction, and then reads to the end.
    Pushes { bytes: usize },
    /// As `Pushes`, with a part of a file.
    SendsFile { bytes: usize },
    /// Reads to the end.
    Swallows,
    /// Resets the connection after this many bytes.
    Aborts { bytes: usize },
    /// Closes after this many bytes.
    Leaves { bytes: usize },
}

/// One connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    pub(super) number: u16,
    pub(super) start: Duration,
    /// Bytes that the client sends.
    pub(super) bytes: usize,
    pub(super) piece: usize,
    pub(super) pause: Option<Duration>,
    pub(super) client: Client,
    pub(super) client_reader: Reader,
    pub(super) server: Server,
    pub(super) server_reader: Reader,
    /// The server's end is handed over once, with the bytes that it has received.
    pub(super) moves: bool,
    /// Sends the end of its direction itself instead of leaving it to the close.
    pub(super) shuts_down: bool,
}

/// One program.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) config: Config,
    pub(super) backlog: u32,
    pub(super) scripts: Vec<Script>,
    /// The runtime begins to drain at this time, at any point of the program.
    pub(super) drains_after: Option<Duration>,
    /// How often the driver's state is checked.
    pub(super) look: Duration,
}

/// One of a few values.
fn one_of<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len())]
}

/// A number below one of a few limits.
fn below(random: &mut Random, limits: &[usize]) -> usize {
    let limit = one_of(random, limits);
    random.below(limit)
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        // A different stream from the one that the kernel draws from.
        let mut random = Random::new(seed ^ 0x5eed_9106_7a3d_0001);
        let random = &mut random;
        let connections = 1 + below(random, &[10, 10, 10, 10, 10, 10, 10, 40]);
        let socket_buffer_bytes = one_of(random, &[8, 100, 4096, 64 << 10]);
        // Eight bytes at a time take long.
        let bytes_max = if socket_buffer_bytes < 100 { 2000 } else { 60_000 };
        let scripts = (0..connections).map(|number| Script::new(number as u16, bytes_max, random)).collect();
        // Enough for every client, the listener and one server.
        let enough = connections + 2 + random.below(connections + 1);
        let sim = SimOptions {
            seed,
            latency_min: MICROSECOND * one_of(random, &[0, 5, 100]),
            latency_max: MICROSECOND * one_of(random, &[5, 50, 3000]),
            short_per_mille: one_of(random, &[0, 50, 300, 800]),
            reset_per_mille: one_of(random, &[0, 0, 0, 5]),
            spurious_per_mille: one_of(random, &[0, 10, 300]),
            error_per_mille: one_of(random, &[0, 20, 200]),
            socket_buffer_bytes,
            descriptors_max: if random.chance(250) { enough as u32 } else { 1 << 20 },
            edge: random.chance(500),
        };
        let high = one_of(random, &[1, 1000, 256 << 10]);
        let limits = Limits {
            sockets_max: if random.chance(150) { enough } else { 1 << 17 },
            output_high_water_bytes: high,
            output_low_water_bytes: high / one_of(random, &[2, 4]),
            turn_bytes_max: one_of(random, &[64, 4096, 1 << 20]),
            linger: if random.chance(150) { MILLISECOND * 20 } else { Duration::from_secs(36_000) },
            file_operations_max: one_of(random, &[1, 1024]),
            ..Limits::default()
        };
        let buffers = BufferOptions {
            bytes: one_of(random, &[None, Some(64), Some(512)]),
            count: one_of(random, &[None, None, Some(1), Some(3)]),
        };
        Self {
            seed,
            config: Config { sim, limits, buffers, ..Config::for_test(Driver::Sim) },
            backlog: one_of(random, &[1, 3, 4096]),
            scripts,
            drains_after: random.chance(120).then(|| MICROSECOND * random.below(5000) as u32),
            look: MICROSECOND * (20 + random.below(2000) as u32),
        }
    }

    /// Whether a limit of the program may refuse a connection.
    pub(super) fn may_refuse(&self) -> bool {
        let Config { sim, limits, .. } = &self.config;
        limits.sockets_max < 1000 || sim.descriptors_max < 1000 || self.backlog < 1000
    }

    /// Whether closing gives a slow peer enough time.
    pub(super) fn is_patient(&self) -> bool {
        self.config.limits.linger > Duration::from_secs(1)
    }
}

impl Reader {
    fn new(random: &mut Random) -> Self {
        let pause = random.chance(300).then(|| MICROSECOND * (1 + random.below(300) as u32));
        let patience = random.chance(300).then(|| MICROSECOND * (1 + random.below(100) as u32));
        Self { patience, pause, holds: random.chance(500) }
    }
}

impl Script {
    fn new(number: u16, bytes_max: usize, random: &mut Random) -> Self {
        let bytes = below(random, &[10, 1000, 10_000, 60_000]).min(bytes_max);
        let own = below(random, &[10, 1000, 60_000]).min(bytes_max);
        let server = match random.below(10) {
            0..=2 => Server::Echoes { copies: random.chance(500) },
            3 => Server::Collects,
            4 => Server::Pushes { bytes: own },
            5 => Server::SendsFile { bytes: own },
            6 | 7 => Server::Swallows,
            8 => Server::Aborts { bytes: own },
            _ => Server::Leaves { bytes: own },
        };
        let client = match (server, random.below(10)) {
            (_, 0) => Client::Aborts { pieces: random.below(5) },
            (Server::Swallows, 1..=5) => Client::Leaves,
            (Server::Echoes { .. }, 1..=3) => Client::Asks,
            _ => Client::Reads,
        };
        Self {
            number,
            start: MICROSECOND * below(random, &[1, 100, 3000]) as u32,
            bytes,
            // Few pieces, so that a program ends soon.
            piece: (1 + below(random, &[100, 5000, 60_000])).max(bytes / 50),
            pause: random.chance(300).then(|| MICROSECOND * random.below(200) as u32),
            client,
            client_reader: Reader::new(random),
            server,
            server_reader: Reader::new(random),
            moves: random.chance(200),
            shuts_down: random.chance(500),
        }
    }
}
