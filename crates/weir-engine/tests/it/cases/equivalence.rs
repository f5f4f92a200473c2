//! Case 29: a random script gives every driver the same transcript: the one that a model without a driver writes.

use weir_engine::net::Stream;

use super::handlers::Lines;
use crate::{
    peer::{Ending, Network, Peer},
    random::{Pattern, Random},
    rig::Rig,
};

/// A client's request. The server receives it as a line.
#[derive(Clone, Copy, Debug)]
enum Request {
    /// The server sends this many bytes of the pattern.
    Give(usize),
    /// This many bytes follow; the answer is their checksum.
    Take(usize),
    /// The answer is a line.
    Say(u64),
}

/// How a connection ends.
#[derive(Clone, Copy, Debug)]
enum Farewell {
    /// The client ends its direction and reads to the end.
    HalfClose,
    /// The server ends the connection.
    Quit,
    /// The client resets.
    Reset,
}

/// The whole script of one connection: batches of requests; each batch is sent as one piece before its replies are
/// read.
#[derive(Clone, Debug)]
struct Script {
    batches: Vec<Vec<Request>>,
    farewell: Farewell,
}

impl Script {
    fn random(random: &mut Random) -> Self {
        let request = |random: &mut Random| match random.between(0, 2) {
            0 => Request::Give(random.between(0, 20_000)),
            1 => Request::Take(random.between(0, 9000)),
            _ => Request::Say(random.next()),
        };
        let batch = |random: &mut Random| (0..random.between(1, 6)).map(|_| request(random)).collect();
        let batches = (0..random.between(1, 8)).map(|_| batch(random)).collect();
        let farewell = match random.between(0, 2) {
            0 => Farewell::HalfClose,
            1 => Farewell::Quit,
            _ => Farewell::Reset,
        };
        Self { batches, farewell }
    }

    /// The client's expected observations.
    fn transcript(&self, pattern: &Pattern) -> Vec<String> {
        let requests = self.batches.iter().flatten();
        let mut lines: Vec<String> = requests.map(|request| describe(&reply(*request, pattern))).collect();
        lines.push(
            match self.farewell {
                Farewell::HalfClose | Farewell::Quit => "End",
                Farewell::Reset => "gone",
            }
            .into(),
        );
        lines
    }
}

fn sum(bytes: &[u8]) -> u64 {
    // FNV-1a: order matters, unlike in a plain sum.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The reply to a request, the same in the model and in the server.
fn reply(request: Request, pattern: &Pattern) -> Vec<u8> {
    match request {
        Request::Give(count) => pattern.bytes(count, count),
        Request::Take(count) => format!("{:016x}\n", sum(&pattern.bytes(0, count))).into_bytes(),
        Request::Say(number) => format!("you said {number:016x}\n").into_bytes(),
    }
}

fn encode(request: Request, pattern: &Pattern) -> Vec<u8> {
    match request {
        Request::Give(count) => format!("give {count}\n").into_bytes(),
        Request::Take(count) => {
            let mut bytes = format!("take {count}\n").into_bytes();
            bytes.extend(pattern.bytes(0, count));
            bytes
        }
        Request::Say(number) => format!("say {number}\n").into_bytes(),
    }
}

fn describe(reply: &[u8]) -> String {
    format!("{} bytes {:016x}", reply.len(), sum(reply))
}

/// The server's side: it reads the requests only from their lines.
async fn answer_script(stream: Stream, pattern: Pattern) {
    let mut lines = Lines::default();
    while let Ok(Some(line)) = lines.next(&stream).await {
        let (word, number) = line.split_once(' ').unwrap_or((&line, "0"));
        let outcome = match (word, number.parse::<u64>()) {
            ("give", Ok(count)) => stream.send(pattern.bytes(count as usize, count as usize)).await,
            ("take", Ok(count)) => match lines.bytes(&stream, count as usize).await {
                Ok(bytes) => stream.send_slice(format!("{:016x}\n", sum(&bytes)).as_bytes()).await,
                Err(error) => Err(error),
            },
            ("say", Ok(number)) => stream.send_slice(format!("you said {number:016x}\n").as_bytes()).await,
            _ => return,
        };
        if outcome.is_err() {
            return;
        }
    }
}

/// The client's side; returns its observations.
async fn play(network: Network, script: Script, pattern: Pattern) -> Vec<String> {
    let mut peer = network.connect().await;
    let mut transcript = Vec::new();
    for batch in &script.batches {
        let piece: Vec<u8> = batch.iter().flat_map(|request| encode(*request, &pattern)).collect();
        peer.write(&piece).await.expect("the server reads");
        for request in batch {
            let length = reply(*request, &pattern).len();
            let bytes = peer.read_exact(length).await.expect("the server answers");
            transcript.push(describe(&bytes));
        }
    }
    transcript.push(say_farewell(peer, script.farewell).await);
    transcript
}

async fn say_farewell(mut peer: Peer, farewell: Farewell) -> String {
    match farewell {
        Farewell::HalfClose => peer.shutdown().await.expect("half of the connection ends"),
        Farewell::Quit => peer.write(b"quit\n").await.expect("the server reads"),
        Farewell::Reset => {
            peer.reset();
            return "gone".into();
        }
    }
    let (rest, ending) = peer.read_to_end().await;
    assert_eq!((rest.len(), ending), (0, Ending::End), "nothing was asked for any more");
    format!("{ending:?}")
}

/// Several connections at a time, each with its own script.
pub fn random_scripts(rig: &mut Rig) {
    const CONNECTIONS: usize = 6;
    for _ in 0..rig.size(4, 200) {
        let scripts: Vec<Script> = (0..CONNECTIONS).map(|_| Script::random(&mut rig.random)).collect();
        let pattern = rig.pattern.clone();
        let handler = move |stream: Stream| answer_script(stream, pattern.clone());
        let pattern = rig.pattern.clone();
        let served = rig.serve(handler, async |network| {
            let running: Vec<_> = scripts
                .iter()
                .map(|script| {
                    let (script, pattern) = (script.clone(), pattern.clone());
                    network.spawn(move |network| play(network, script, pattern))
                })
                .collect();
            for (script, running) in scripts.iter().zip(running) {
                assert_eq!(running.join().await, script.transcript(&pattern), "{script:?}");
            }
        });
        served.expect_clean();
    }
}
