//! What a connection sends: the batch of its replies, and content from where it lies, a window at a time.

use std::{rc::Rc, time::Duration};

use weir_engine::{
    fs::{File, FilePart},
    time,
};

use super::{Behind, CONTENT_WINDOW_BYTES, Connection, Form, Pause, Request};
use crate::http::{
    config::Body,
    counters::Refusal,
    files::{FileFault, FileIo, Unopened},
    replies::Replies,
    served::FileSlice,
};

/// What is read of a file at a time: the largest of the engine's buffers, which are warm and need no zeroing.
const FILE_READ_BYTES: u64 = 128 << 10;

/// What one connection may be sent before others get their turn, however fast it takes that.
const SHARE_BYTES_MAX: usize = 1 << 20;

impl Connection {
    /// Hands the batch, and what a pause adds to it, to the engine. False: the client is gone, or does not read.
    pub(super) async fn send(&mut self, pause: Pause, replies: &Replies) -> bool {
        let limit = self.worker.shared.config.timeouts.content;
        if !self.send_batch(limit).await {
            return false;
        }
        if let Some(form) = pause.rendered {
            let bytes = replies.bytes(form);
            self.queued_bytes += bytes.len() as u64;
            let sent = self.deadline.within(limit, self.stream.send_slice(bytes)).await;
            if !self.is_sent(&sent) {
                return false;
            }
        }
        match pause.content {
            Behind::None => {}
            Behind::Stored(content) => {
                let content_bytes = content.len();
                self.queued_bytes += content_bytes as u64;
                for offset in (0..content_bytes).step_by(CONTENT_WINDOW_BYTES) {
                    let piece = content.piece(offset, CONTENT_WINDOW_BYTES);
                    let sent = self.deadline.within(limit, self.stream.send(piece)).await;
                    if !self.is_sent(&sent) {
                        return false;
                    }
                    self.share((content_bytes - offset).min(CONTENT_WINDOW_BYTES)).await;
                }
            }
            // In a box, because few connections send files and all of them would have to have room for it.
            Behind::File(slice) => return Box::pin(self.send_file(slice, limit)).await,
            Behind::Unopened(request) => return Box::pin(self.open_and_send(*request, limit)).await,
        }
        true
    }

    async fn send_batch(&mut self, limit: Duration) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        let batch = std::mem::take(&mut self.batch);
        let sent = self.deadline.within(limit, self.stream.send_slice(&batch)).await;
        let batch_bytes = batch.len();
        self.queued_bytes += batch_bytes as u64;
        self.worker.give_back(batch);
        if !self.is_sent(&sent) {
            return false;
        }
        self.share(batch_bytes).await;
        true
    }

    /// Opens the file of a request, which may wait for a disk, and sends the reply.
    async fn open_and_send(&mut self, request: (Unopened, Request, Form), limit: Duration) -> bool {
        let (unopened, request, form) = request;
        let worker = Rc::clone(&self.worker);
        let answer = worker.open(&unopened).await;
        worker.tick();
        let content = self.answer_with_file(*answer, &request, form, &worker.replies());
        if !self.send_batch(limit).await {
            return false;
        }
        match content {
            Behind::File(slice) => self.send_file(slice, limit).await,
            _ => true,
        }
    }

    /// Sends bytes of a file from where they are.
    async fn send_file(&mut self, slice: FileSlice, limit: Duration) -> bool {
        self.queued_bytes += slice.length;
        let Some(part) = slice.part() else {
            let Some(bytes) = slice.to_outgoing() else { return false };
            let sent = self.deadline.within(limit, self.stream.send(bytes)).await;
            return self.is_sent(&sent);
        };
        self.send_part(part, slice.offset, slice.length, limit).await
    }

    /// Sends a part of an open file, one window after the other.
    async fn send_part(&mut self, part: &FilePart, mut offset: u64, length: u64, limit: Duration) -> bool {
        let end = offset + length;
        let Ok(file) = File::of_part(part) else { return false };
        let Body::Files { io, .. } = self.worker.shared.config.body else { return false };
        while offset < end {
            let most = match io {
                FileIo::Sendfile => CONTENT_WINDOW_BYTES as u64,
                FileIo::Read => FILE_READ_BYTES,
            };
            let window = (end - offset).min(most);
            let sent = match io {
                FileIo::Sendfile => {
                    self.deadline.within(limit, self.stream.send_file(&file, offset, window)).await
                }
                FileIo::Read => match file.read_at(offset, window as usize).await {
                    Ok(bytes) if bytes.len() as u64 == window => {
                        self.deadline.within(limit, self.stream.send(bytes)).await
                    }
                    // The head has promised more than there is: an early end is the only way to say so.
                    outcome => {
                        let fault = if outcome.is_ok() { FileFault::Shrunk } else { FileFault::Failed };
                        self.count_refusal(Refusal::File(fault));
                        self.worker.distrust_files();
                        return false;
                    }
                },
            };
            if !self.is_sent(&sent) {
                return false;
            }
            self.share(window as usize).await;
            offset += window;
        }
        true
    }

    /// Lets others have their turn, once in a while.
    #[inline]
    async fn share(&mut self, sent_bytes: usize) {
        self.share_bytes += sent_bytes;
        if self.share_bytes >= SHARE_BYTES_MAX {
            self.share_bytes = 0;
            time::yield_now().await;
        }
    }
}
