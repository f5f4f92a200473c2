//! The engine as a client, and as the side that ends first.

use weir_engine::{
    net::{Address, Listener, Stream},
    spawn, time,
};

use super::handlers::{Lines, SMALL, echo, with_send_buffer};
use crate::{
    board::{Board, poll_once},
    peer::Ending,
    rig::Rig,
};

/// Case 4, in the other direction: the server ends its direction behind a long reply, and continues to receive.
pub fn server_ends_first(rig: &mut Rig) {
    let (length, is_sim, board) = (300_000, rig.subject.is_sim(), Board::new());
    let (pattern, notes) = (rig.pattern.clone(), board.clone());
    let handler = move |stream: Stream| {
        let (pattern, notes) = (pattern.clone(), notes.clone());
        async move {
            let stream = if is_sim { stream } else { with_send_buffer(stream, 16 << 10) };
            stream.send(pattern.bytes(0, length)).await.expect("it stands");
            stream.shutdown().await.expect("it stands");
            notes.post("ended");
            let mut received = 0;
            while let Ok(Some(lease)) = stream.recv().await {
                pattern.check(received, &lease);
                received += lease.len();
            }
            notes.post(received.to_string());
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let mut peer = network.connect_with(SMALL).await;
        let (reply, ending) = peer.read_to_end().await;
        pattern.check(0, &reply);
        assert_eq!((reply.len(), ending), (length, Ending::End));
        board.reached(1).await;
        peer.write(&pattern.bytes(0, length)).await.expect("the server still reads");
        peer.shutdown().await.expect("half of the connection ends");
        board.reached(2).await;
        assert_eq!(board.lines(), ["ended".to_owned(), length.to_string()]);
    });
    served.expect_clean();
}

/// Connects to the address in the first line and relays one message and its reply; reports an error.
async fn relay(stream: Stream) {
    let mut lines = Lines::default();
    let Ok(Some(first)) = lines.next(&stream).await else { return };
    let Some(target) = first.strip_prefix("relay ") else {
        if stream.send(format!("{first}\n").into_bytes()).await.is_ok() {
            echo(stream).await;
        }
        return;
    };
    let address: Address = target.parse().expect("an address");
    let answer = match Stream::connect(&address).await {
        Ok(upstream) => {
            upstream.send(b"upstream\n").await.expect("it stands");
            Lines::default().next(&upstream).await.expect("it stands").unwrap_or_default()
        }
        Err(error) => format!("{:?}", error.kind()),
    };
    // An error comes from the peer, and the script sees it.
    let _ = stream.send(format!("{answer}\n").into_bytes()).await;
}

/// The engine connects: to a server that listens, and to an unused port.
pub fn connects(rig: &mut Rig) {
    let served = rig.serve(relay, async |network| {
        // No server listens on a privileged port without a service.
        for (target, expected) in
            [(network.address.to_string(), "upstream"), ("127.0.0.1:2".into(), "ConnectionRefused")]
        {
            for _ in 0..5 {
                let mut peer = network.connect().await;
                peer.write(format!("relay {target}\n").as_bytes()).await.expect("the server listens");
                let (reply, ending) = peer.read_to_end().await;
                assert_eq!((String::from_utf8_lossy(&reply).trim_end(), ending), (expected, Ending::End));
            }
        }
    });
    assert_eq!(served.connections_cut, 0, "{:?}", served.stats);
    assert_eq!(served.stats.connections_open, 0, "{:?}", served.stats);
    assert!(served.stats.connects >= 5, "{:?}", served.stats);
}

/// Answers with the peer's address; or, after `from LOCAL TARGET`, with the answer to a connection from there.
async fn tell_who_is_there(stream: Stream) {
    let mut lines = Lines::default();
    let Ok(Some(first)) = lines.next(&stream).await else { return };
    let answer = match first.strip_prefix("from ") {
        Some(addresses) => ask_from(addresses).await,
        None => stream.peer_address().expect("it stands").to_string(),
    };
    // An error comes from the peer, and the script sees it.
    let _ = stream.send(format!("{answer}\n").into_bytes()).await;
}

async fn ask_from(addresses: &str) -> String {
    let (local, target) = addresses.split_once(' ').expect("two addresses");
    let target: Address = target.parse().expect("an address");
    match Stream::connect_from(&target, local.parse().expect("an address of TCP's")).await {
        Ok(upstream) => {
            upstream.send(b"who\n").await.expect("it stands");
            Lines::default().next(&upstream).await.expect("it stands").unwrap_or_default()
        }
        Err(error) => format!("{:?}", error.kind()),
    }
}

/// Case A14e: the engine connects from a given local address, or reports why it cannot.
pub fn connects_from(rig: &mut Rig) {
    let served = rig.serve(tell_who_is_there, async |network| {
        let target = network.address.to_string();
        for (local, expected) in
            [("127.0.0.3:0", "127.0.0.3:"), (&*target, "AddrInUse"), ("[::1]:0", "InvalidInput")]
        {
            for _ in 0..3 {
                let mut peer = network.connect().await;
                peer.write(format!("from {local} {target}\n").as_bytes()).await.expect("the server listens");
                let (reply, ending) = peer.read_to_end().await;
                let reply = String::from_utf8_lossy(&reply);
                assert!(reply.starts_with(expected), "from {local}: {reply}");
                assert_eq!(ending, Ending::End);
            }
        }
    });
    assert_eq!(served.connections_cut, 0, "{:?}", served.stats);
    assert_eq!(served.stats.connections_open, 0, "{:?}", served.stats);
    assert!(served.stats.connects >= 3, "{:?}", served.stats);
}

/// Connects that are dropped at once leave nothing behind, and none of their results reach the next one.
pub fn dropped_connects(rig: &mut Rig) {
    let body = async move |listener: Listener, _stop: Board| {
        let address = listener.local_address().expect("a listener has an address");
        let acceptor = spawn(async move {
            while let Ok(stream) = listener.accept().await {
                spawn(echo(stream));
            }
        });
        for round in 0..100u32 {
            let given_up = poll_once(Stream::connect(&address)).await;
            drop(given_up);
            if round % 3 == 0 {
                time::yield_now().await;
            }
            let stream = Stream::connect(&address).await.expect("the server accepts");
            let message = round.to_be_bytes();
            stream.send_slice(&message).await.expect("it stands");
            let mut reply = Vec::new();
            while reply.len() < message.len() {
                reply.extend_from_slice(&stream.recv().await.expect("no reset").expect("no end"));
            }
            assert_eq!(reply, message);
        }
        acceptor.abort();
    };
    let served = rig.run(body, async |_network| ());
    assert_eq!(served.connections_cut, 0, "{:?}", served.stats);
    assert_eq!(served.stats.connections_open, 0, "{:?}", served.stats);
}
