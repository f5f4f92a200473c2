//! The exchange of bytes in the guide for authors of clients, played against a gateway.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use weir_engine::net::Address;
use weir_proto::soup::{SEQUENCED, SERVER_HEARTBEAT_FRAME};
use weir_servers::{
    exchange::Mode,
    gateway::{GatewayConfig, GatewayServer, Limits},
};

use super::rig::{PATIENCE, drivers, end_exchange, end_gateway, eventually, exchange_in, gateway, loopback};

const PAGE: &str = include_str!("../../../../../docs/guide/gateway-clients.md");
/// Before the exchange of bytes.
const HEADING: &str = "## A whole exchange of bytes\n";
/// The time in a frame with a sequenced message.
const TIME: std::ops::Range<usize> = 4..12;

/// One line of the page, with the lines that continue it.
#[derive(Debug)]
enum Step {
    Send(Vec<u8>),
    Expect(Vec<u8>),
    ConnectAgain,
}

fn bytes(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("a byte")).collect()
}

fn steps() -> Vec<Step> {
    let (_, rest) = PAGE.split_once(HEADING).expect("the page has the exchange");
    let (_, rest) = rest.split_once("```text\n").expect("it is a block");
    let (block, _) = rest.split_once("\n```").expect("the block ends");
    let mut steps = Vec::new();
    for line in block.lines() {
        let (mark, rest) = line.split_at(2);
        match mark {
            "# " => {}
            "- " => steps.push(Step::ConnectAgain),
            "> " => steps.push(Step::Send(bytes(rest))),
            "< " => steps.push(Step::Expect(bytes(rest))),
            "  " => match steps.last_mut() {
                Some(Step::Send(whole) | Step::Expect(whole)) => whole.extend(bytes(rest)),
                _ => panic!("{line:?} continues nothing"),
            },
            _ => panic!("{line:?} has no mark"),
        }
    }
    steps
}

/// The same frame without its time.
fn timeless(mut frame: Vec<u8>) -> Vec<u8> {
    if frame.get(2) == Some(&SEQUENCED) {
        frame[TIME].fill(0);
    }
    frame
}

fn connect(gateway: &GatewayServer) -> TcpStream {
    let Address::Tcp(address) = gateway.address() else { panic!("it listens on TCP") };
    let socket = TcpStream::connect(address).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket
}

/// The next frame that is no heartbeat.
fn frame(socket: &mut TcpStream) -> Vec<u8> {
    loop {
        let mut frame = vec![0; 2];
        socket.read_exact(&mut frame).expect("a frame");
        let length = usize::from(u16::from_be_bytes([frame[0], frame[1]]));
        frame.resize(2 + length, 0);
        socket.read_exact(&mut frame[2..]).expect("the rest of it");
        if frame != SERVER_HEARTBEAT_FRAME {
            return frame;
        }
    }
}

#[test]
fn the_bytes_of_the_clients_guide_are_what_a_gateway_takes_and_answers() {
    let driver = drivers()[0];
    let venue = exchange_in(Mode::Match, driver, loopback());
    let limits = Limits { shares_max: Some(1_000), ..Limits::default() };
    let gateway =
        gateway(driver, 1, GatewayConfig { limits, ..GatewayConfig::demo(1, venue.address().clone()) });
    let mut socket = connect(&gateway);
    let (mut sent, mut expected) = (0, 0);
    for step in steps() {
        match step {
            Step::Send(frame) => {
                sent += 1;
                socket.write_all(&frame).expect("the gateway listens");
            }
            Step::Expect(wanted) => {
                expected += 1;
                let found = timeless(frame(&mut socket));
                assert_eq!(found, timeless(wanted), "frame {expected} of the gateway");
            }
            Step::ConnectAgain => {
                drop(socket);
                eventually("it has gone", || gateway.control().node_stats().sessions_open == 0);
                socket = connect(&gateway);
            }
        }
    }
    assert_eq!((sent, expected), (9, 7), "frames on the page");
    assert_eq!(socket.read(&mut [0]).expect("an end"), 0, "the last frame is a logout");
    assert_eq!(gateway.control().node_stats().duplicates_ignored, 1);
    end_gateway(gateway);
    end_exchange(venue);
}
