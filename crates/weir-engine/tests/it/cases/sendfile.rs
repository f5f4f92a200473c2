//! Files on connections: in order with everything else, complete or not at all.

use weir_engine::{fs::File, net::Stream};

use super::handlers::{SMALL, with_send_buffer};
use crate::{
    board::Board,
    peer::Ending,
    random::{Pattern, Random},
    rig::Rig,
    scratch::Scratch,
};

/// The handler's output: some bytes of one pattern, then a part of a file with another one, repeated.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: usize,
    offset: usize,
    length: usize,
}

fn pieces(random: &mut Random, file_bytes: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut offset = 0;
    while offset < file_bytes {
        let longest = if random.one_in(4) { 1 << 20 } else { 70_000 };
        let length = random.between(0, longest).min(file_bytes - offset);
        let bytes = if random.one_in(3) { 0 } else { random.between(1, 20_000) };
        pieces.push(Piece { bytes, offset, length });
        offset += length;
    }
    pieces
}

async fn send_pieces(
    stream: &Stream,
    file: &File,
    pieces: &[Piece],
    pattern: &Pattern,
) -> std::io::Result<()> {
    for (number, piece) in pieces.iter().enumerate() {
        if number % 2 == 0 {
            stream.send(pattern.bytes(number, piece.bytes)).await?;
        } else {
            stream.send_slice(&pattern.bytes(number, piece.bytes)).await?;
        }
        stream.send_file(file, piece.offset as u64, piece.length as u64).await?;
    }
    stream.flush().await
}

/// A 3 MB file in parts between other sends, to a reader that is slow at first, over TCP and a Unix socket.
pub fn interleaved(rig: &mut Rig) {
    for address in [rig.listen.clone(), rig.abstract_address()] {
        rig.listen = address;
        interleaved_on(rig);
    }
}

fn interleaved_on(rig: &mut Rig) {
    const FILE_BYTES: usize = 3 << 20;
    let contents = Pattern::new(rig.seed ^ 1);
    let file = contents.bytes(0, FILE_BYTES);
    let scratch = Scratch::with(&mut rig.random, &file);
    let (pattern, is_sim) = (rig.pattern.clone(), rig.subject.is_sim());
    let pieces = pieces(&mut rig.random, FILE_BYTES);
    let mut expected = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        expected.extend(pattern.bytes(number, piece.bytes));
        expected.extend_from_slice(&file[piece.offset..piece.offset + piece.length]);
    }
    let path = scratch.path().to_owned();
    let handler = move |stream: Stream| {
        let (path, pieces, pattern) = (path.clone(), pieces.clone(), pattern.clone());
        async move {
            let stream = if is_sim { stream } else { with_send_buffer(stream, 64 << 10) };
            let file = File::open(path).await.expect("it is there");
            // An error comes from the peer, and the script sees it.
            let _ = send_pieces(&stream, &file, &pieces, &pattern).await;
        }
    };
    let mut random = rig.random.fork();
    let served = rig.serve(handler, async |network| {
        for slow_bytes in [100_000, 0] {
            let mut peer = network.connect_with(SMALL).await;
            let mut received = Vec::new();
            while received.len() < slow_bytes {
                received.extend(peer.read_some(random.between(1, 2000)).await.expect("it goes on"));
                network.let_others_run().await;
            }
            let ending = peer.read_pieces(|bytes| received.extend_from_slice(bytes)).await;
            assert_eq!((received.len(), ending), (expected.len(), Ending::End));
            let wrong = received.iter().zip(&expected).position(|(got, wanted)| got != wanted);
            assert_eq!(wrong, None, "the first wrong byte of {}", expected.len());
        }
    });
    served.expect_clean();
    assert!(served.stats.bytes_sent >= 2 * FILE_BYTES as u64, "{:?}", served.stats);
}

/// A file is truncated between the promise and the send: the connection ends with a reset, and no wrong bytes are
/// sent.
pub fn truncated(rig: &mut Rig) {
    const FILE_BYTES: usize = 3 << 20;
    const LEFT_BYTES: usize = (1 << 20) + 123;
    let scratch = Scratch::with(&mut rig.random, &rig.pattern.bytes(0, FILE_BYTES));
    let (path, told) = (scratch.path().to_owned(), Board::new());
    let board = told.clone();
    let handler = move |stream: Stream| {
        let (path, board) = (path.clone(), board.clone());
        async move {
            let file = File::open(path).await.expect("it is there");
            // The peer answers when the file has been truncated.
            let _ = stream.send(b"open").await;
            let Ok(Some(_)) = stream.recv().await else { return };
            let outcome = match stream.send_file(&file, 0, FILE_BYTES as u64).await {
                Ok(()) => stream.flush().await,
                failed => failed,
            };
            board.post(outcome.map_or_else(|error| format!("{:?}", error.kind()), |()| "sent".into()));
            let later = stream.send(b"and more").await;
            board.post(later.map_or_else(|error| format!("{:?}", error.kind()), |()| "sent".into()));
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let mut peer = network.connect().await;
        assert_eq!(peer.read_exact(4).await.expect("the file is open"), b"open");
        scratch.truncate(LEFT_BYTES as u64);
        peer.write(b"go").await.expect("the server listens");
        let (received, ending) = peer.read_to_end().await;
        assert_eq!(ending, Ending::Reset, "after {} bytes", received.len());
        assert!(received.len() <= LEFT_BYTES, "{} bytes of {LEFT_BYTES}", received.len());
        pattern.check(0, &received);
        told.reached(2).await;
        assert_eq!(told.lines(), ["UnexpectedEof", "UnexpectedEof"]);
    });
    assert_eq!(served.connections_cut, 0, "{:?}", served.stats);
}

/// A drain begins while a file is being sent: all of it still arrives, and then the end.
pub fn drained(rig: &mut Rig) {
    const FILE_BYTES: usize = 3 << 20;
    let scratch = Scratch::with(&mut rig.random, &rig.pattern.bytes(0, FILE_BYTES));
    let path = scratch.path().to_owned();
    let handler = move |stream: Stream| {
        let path = path.clone();
        async move {
            let stream = with_send_buffer(stream, 64 << 10);
            let file = File::open(path).await.expect("it is there");
            // Dropped with most of it queued: it is sent before the connection closes.
            let _ = stream.send_file(&file, 0, FILE_BYTES as u64).await;
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        let mut peer = network.connect_with(SMALL).await;
        let first = peer.read_exact(1000).await.expect("it begins");
        pattern.check(0, &first);
        network.drain();
        let mut offset = first.len();
        let ending = peer
            .read_pieces(|bytes| {
                pattern.check(offset, bytes);
                offset += bytes.len();
            })
            .await;
        assert_eq!((offset, ending), (FILE_BYTES, Ending::End));
    });
    served.expect_clean();
}

/// A peer that leaves in the middle of a file, and one that never reads: nothing is left behind.
pub fn given_up(rig: &mut Rig) {
    const FILE_BYTES: usize = 3 << 20;
    let scratch = Scratch::with(&mut rig.random, &rig.pattern.bytes(0, FILE_BYTES));
    rig.config.limits.linger = std::time::Duration::from_millis(20);
    let (path, ended) = (scratch.path().to_owned(), Board::new());
    let board = ended.clone();
    let handler = move |stream: Stream| {
        let (path, board) = (path.clone(), board.clone());
        async move {
            let file = File::open(path).await.expect("it is there");
            for _ in 0..4 {
                if stream.send_file(&file, 0, FILE_BYTES as u64).await.is_err() {
                    break;
                }
            }
            let outcome = stream.flush().await;
            board.post(if outcome.is_err() { "failed" } else { "sent" });
        }
    };
    let pattern = rig.pattern.clone();
    let served = rig.serve(handler, async |network| {
        for round in 1..=3 {
            let mut peer = network.connect_with(SMALL).await;
            let bytes = peer.read_exact(5000).await.expect("it begins");
            pattern.check(0, &bytes);
            peer.reset();
            ended.reached(round).await;
        }
        assert_eq!(ended.lines(), ["failed"; 3]);
        let mut peer = network.connect().await;
        assert_eq!(peer.read_exact(4 * FILE_BYTES).await.expect("the server goes on").len(), 4 * FILE_BYTES);
    });
    served.expect_clean();
}
