//! Every control echoes byte for byte, whatever its peers do: the control runs as a separate process, the clients are
//! plain threads with blocking sockets. The tests wait by the receive and send timeouts of these sockets, never by
//! sleeping.

#![expect(clippy::print_stderr, reason = "the variant and the seed belong beside a failure")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use socket2::SockRef;

const SEED: u64 = 0x5eed_0002;
const PATIENCE: Duration = Duration::from_secs(30);
/// A send that moves nothing for this long has filled every buffer between the two programs.
const STALL: Duration = Duration::from_millis(300);

/// Exit code of a control when the kernel refuses io_uring: the environment cannot run this.
const EXIT_ENVIRONMENT: i32 = 13;

const VARIANTS: [&[&str]; 6] = [
    &["epoll"],
    &["epoll", "--calls", "functions"],
    &["uring"],
    &["uring", "--receive", "single"],
    &["uring", "--buffer-bytes", "512", "--buffer-count", "4"],
    &["uring", "--receive", "single", "--buffer-bytes", "100"],
];

/// A running control, killed at the end of the test.
struct Control {
    child: Child,
    address: SocketAddr,
}

impl Drop for Control {
    fn drop(&mut self) {
        // The control may have died before; a test that cares has already noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Control {
    /// Starts a variant; `None` when the kernel refuses it and it is not required.
    fn start(variant: &[&str], descriptors_max: u32) -> Option<Self> {
        let script = format!("ulimit -n {descriptors_max} && exec \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_weir-control")])
            .args(variant)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the control starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("its first line");
        if line.is_empty() {
            let status = child.wait().expect("it ended");
            let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
            let may_be_refused = variant[0] != "epoll" && !required.contains(variant[0]);
            assert!(may_be_refused && status.code() == Some(EXIT_ENVIRONMENT), "{variant:?} ended: {status}");
            eprintln!("not applicable: the kernel refuses {variant:?}");
            return None;
        }
        let address = line.trim_end().strip_prefix("listening on ").expect("the announcement");
        Some(Control { child, address: address.parse().expect("an address") })
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the control accepts");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Processor time of the control so far.
    fn cpu_ns(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }
}

/// Runs the scenario on every variant that the kernel allows.
fn on_every_control(scenario: impl Fn(&Control)) {
    for variant in VARIANTS {
        if let Some(control) = Control::start(variant, 1000) {
            eprintln!("{variant:?}, seed {SEED:#x}");
            scenario(&control);
        }
    }
}

/// A reproducible stream of bytes (splitmix64), and lengths to cut it with. Controls share no code with what they are
/// compared with, not even in tests.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn length(&mut self, max: usize) -> usize {
        1 + self.next() as usize % max
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            std::iter::repeat_with(|| self.next().to_le_bytes()).take(count.div_ceil(8)).flatten().collect();
        bytes.truncate(count);
        bytes
    }
}

/// One exchange: the sent bytes come back.
fn assert_echoes(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).expect("the control receives");
    let mut reply = vec![0; bytes.len()];
    stream.read_exact(&mut reply).expect("the control replies");
    assert!(reply == bytes, "the reply differs");
}

/// Reads at least one byte, unless the control ended the connection.
fn read_some(stream: &mut TcpStream, into: &mut [u8]) -> usize {
    loop {
        match stream.read(into) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.expect("the control replies"),
        }
    }
}

/// Resets the connection instead of closing it.
fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

#[test]
fn many_connections_each_get_their_own_bytes_back() {
    on_every_control(|control| {
        std::thread::scope(|scope| {
            for number in 0..8 {
                let stream = control.connect();
                scope.spawn(move || exchange_in_random_pieces(stream, SEED + number));
            }
        });
    });
}

/// One thread sends and this one receives, in pieces of independent sizes.
fn exchange_in_random_pieces(mut stream: TcpStream, seed: u64) {
    let mut random = Stream(seed);
    let bytes = random.bytes(1 << 20);
    let mut sender = stream.try_clone().unwrap();
    let mut reply = Vec::new();
    std::thread::scope(|scope| {
        let bytes = &bytes;
        scope.spawn(move || {
            let mut random = Stream(!seed);
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(random.length(20_000).min(rest.len()));
                sender.write_all(piece).expect("the control receives");
                rest = after;
            }
            sender.shutdown(Shutdown::Write).expect("half of the connection closes");
        });
        let mut piece = vec![0; 10_000];
        loop {
            let length = random.length(piece.len());
            let received = read_some(&mut stream, &mut piece[..length]);
            if received == 0 {
                break;
            }
            reply.extend_from_slice(&piece[..received]);
        }
    });
    assert!(reply == bytes, "{} bytes came back for {}, or they differ", reply.len(), bytes.len());
}

#[test]
fn a_peer_that_does_not_read_delays_nobody_and_loses_nothing() {
    on_every_control(|control| {
        let mut random = Stream(SEED);
        let block = random.bytes(64 << 10);
        let mut slow = control.connect();
        slow.set_write_timeout(Some(STALL)).unwrap();
        let mut sent = 0;
        loop {
            match slow.write(&block[sent % block.len()..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("the control receives: {error}"),
            }
            assert!(sent < 256 << 20, "the control takes everything and never waits for its peer");
        }

        for _ in 0..4 {
            let mut other = control.connect();
            (0..20).for_each(|_| assert_echoes(&mut other, &random.bytes(3000)));
        }

        // The waiting reply arrives whole, in order, followed by the end, although the sender closed its half first.
        slow.shutdown(Shutdown::Write).unwrap();
        let mut received = 0;
        let mut piece = [0; 3000];
        loop {
            let start = received % block.len();
            let length = piece.len().min(block.len() - start);
            match read_some(&mut slow, &mut piece[..length]) {
                0 => break,
                count => {
                    assert!(piece[..count] == block[start..start + count], "bytes differ after {received}");
                    received += count;
                }
            }
        }
        assert_eq!(received, sent);
    });
}

#[test]
fn a_half_closed_connection_gets_its_whole_reply_and_then_the_end() {
    on_every_control(|control| {
        for bytes_max in [1, 100, 5000, 200_000] {
            let mut random = Stream(SEED);
            let length = random.length(bytes_max);
            let bytes = random.bytes(length);
            let mut stream = control.connect();
            stream.write_all(&bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut reply = Vec::new();
            stream.read_to_end(&mut reply).expect("the reply, then the end");
            assert!(reply == bytes, "{} bytes came back for {length}, or they differ", reply.len());
        }
    });
}

#[test]
fn reset_connections_leave_the_others_alone_and_cost_nothing_afterwards() {
    on_every_control(|control| {
        let mut random = Stream(SEED);
        let mut survivor = control.connect();
        for _ in 0..200 {
            let mut stream = control.connect();
            let length = random.length(100_000);
            stream.write_all(&random.bytes(length)).expect("the control receives");
            reset(stream);
            assert_echoes(&mut survivor, &random.bytes(64));
        }
        reset(control.connect());
        assert_idles(control, &mut survivor);
    });
}

#[test]
fn connections_beyond_the_descriptor_limit_wait_without_costing_processor_time() {
    for variant in VARIANTS {
        let Some(control) = Control::start(variant, 32) else { continue };
        let mut random = Stream(SEED);
        let mut streams: Vec<TcpStream> = (0..64).map(|_| control.connect()).collect();
        let (first, last) = (0, streams.len() - 1);
        assert_echoes(&mut streams[first], &random.bytes(100));
        assert_idles(&control, &mut streams[last]);
        let late = streams.split_off(40);
        drop(streams);
        for mut stream in late {
            assert_echoes(&mut stream, &random.bytes(1000));
        }
    }
}

/// Nothing arrives on the quiet connection, and the control uses almost no CPU while the test waits.
fn assert_idles(control: &Control, quiet: &mut TcpStream) {
    // The first silence lets earlier work settle; the second one is measured.
    for is_measured in [false, true] {
        let before_ns = control.cpu_ns();
        quiet.set_read_timeout(Some(STALL)).unwrap();
        wait_for_timeout(quiet);
        let burnt = Duration::from_nanos(control.cpu_ns() - before_ns);
        assert!(!is_measured || burnt < STALL / 10, "an idle control burnt {burnt:?} of {STALL:?}");
    }
    quiet.set_read_timeout(Some(PATIENCE)).unwrap();
}

/// The kernel does not restart a receive that has a timeout, so the test restarts it after an interruption.
fn wait_for_timeout(quiet: &mut TcpStream) {
    loop {
        match quiet.read(&mut [0; 1]).expect_err("nothing arrives").kind() {
            ErrorKind::Interrupted => {}
            kind => return assert_eq!(kind, ErrorKind::WouldBlock),
        }
    }
}

#[test]
fn what_cannot_be_understood_is_refused_with_exit_code_2() {
    for words in [
        &["poll", "--listen", "127.0.0.1:0"][..],
        &["epoll"],
        &["epoll", "--listen", "here"],
        &["epoll", "--listen", "127.0.0.1:0", "--receive", "single"],
        &["uring", "--listen", "127.0.0.1:0", "--buffer-count", "100"],
        &["uring", "--listen", "127.0.0.1:0", "--buffer-bytes", "0"],
        &["uring", "--listen"],
        &["epoll", "--listen", "127.0.0.1:0", "--pin", "first"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_weir-control")).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{words:?}");
    }
}
