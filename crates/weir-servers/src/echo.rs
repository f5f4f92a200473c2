//! Echo (RFC 862): every byte comes back, in order, until the peer ends its direction. There is no framing.

use weir_engine::net::Stream;

/// Serves one connection. Ends when the peer has sent its end and everything is sent back, or when the connection
/// fails; a failure is not reported.
pub async fn echo(stream: Stream) {
    while let Ok(Some(bytes)) = stream.recv().await {
        if stream.send(bytes).await.is_err() {
            return;
        }
    }
    // A failure here means that the peer is gone.
    let _ = stream.shutdown().await;
}
