//! Echo (RFC 862): every byte comes back, in order, until the peer ends its direction. No framing of ours.

use std::time::{Duration, Instant};

use weir_engine::net::Stream;

/// Serves one connection. Ends when the peer has sent its end and everything is sent back, or when the connection
/// fails: there is nobody to tell.
pub async fn echo(stream: Stream) {
    while let Ok(Some(bytes)) = stream.recv().await {
        if stream.send(bytes).await.is_err() {
            return;
        }
    }
    // A failure here means that the peer is gone.
    let _ = stream.shutdown().await;
}

/// Like [`echo`], but wastes CPU time for every receive: an effect of known size that the laboratory must find when it
/// is tested itself. The waste ends with the first reading of the clock that is late enough, so it is never shorter.
pub async fn echo_planted(stream: Stream, plant: Duration) {
    while let Ok(Some(bytes)) = stream.recv().await {
        let began = Instant::now();
        while began.elapsed() < plant {}
        if stream.send(bytes).await.is_err() {
            return;
        }
    }
    // A failure here means that the peer is gone.
    let _ = stream.shutdown().await;
}
