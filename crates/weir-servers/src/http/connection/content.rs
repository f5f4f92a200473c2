//! Content of requests: discarded, or sent back while it arrives.

use weir_proto::http1::{BodyLength, Method, encode::Framing};

use super::{Body, CONTENT_WINDOW_BYTES, Connection, Head, Purpose, Replies, Request, Stage, encode};

impl Connection {
    /// Handles content of the request.
    pub(super) fn take_content(&mut self, bytes: &[u8], replies: &Replies) {
        self.waiting.content_bytes += bytes.len();
        if self.waiting.content_bytes >= CONTENT_WINDOW_BYTES {
            // The next window has a new time limit.
            self.waiting.stage = Stage::Request;
        }
        let Some(mut request) = self.request else { return };
        let is_echo = matches!(self.worker.shared.config.body, Body::Echo);
        if !is_echo || request.purpose != Purpose::Page {
            return;
        }
        if !request.is_replied {
            self.reply_early(&mut request, replies);
        }
        if request.method != Method::Head {
            self.echo(&mut request, bytes);
        }
        self.request = Some(request);
    }

    /// Sends content back, in the framing in which it came.
    fn echo(&mut self, request: &mut Request, bytes: &[u8]) {
        request.echoed_bytes += bytes.len() as u64;
        let is_chunked = request.body == BodyLength::Chunked;
        let batch = self.batch();
        if is_chunked {
            // `chunk_start` refuses only an empty piece, and pieces of content are never empty.
            let _ = encode::chunk_start(batch, bytes.len() as u64);
        }
        batch.extend_from_slice(bytes);
        if is_chunked {
            batch.extend_from_slice(encode::CHUNK_END);
        }
    }

    /// An echo replies when the first content arrives: it sends content back as it arrives.
    pub(super) fn reply_early(&mut self, request: &mut Request, replies: &Replies) {
        let framing = match request.body {
            BodyLength::Length(bytes) => Framing::Length(bytes),
            BodyLength::Chunked => Framing::Chunked,
            BodyLength::None | BodyLength::UntilClose => Framing::Length(0),
        };
        let after = self.after(request);
        let fields = &[("Content-Type", &b"application/octet-stream"[..])];
        self.write_head(&Head { status: 200, date: replies.date(), fields, framing, after });
        request.is_replied = true;
    }
}
