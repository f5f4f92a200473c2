//! The sending side of a connection: the batch of its replies, and content sent from where it is stored, a window at
//! a time.

use std::{rc::Rc, time::Duration};

use weir_engine::{SendBuf, fs::File, time};

use super::{CONTENT_WINDOW_BYTES, Connection, ContentSource, Form, Pause};
use crate::http::{
    config::Body,
    counters::Refusal,
    file_body::FileSlice,
    file_lookup::{FileError, FileIo, Unopened},
    response_encoder::Replies,
};

/// Bytes read from a file at a time: the largest of the engine's buffers, which are in the cache and need no zeroing.
const FILE_READ_BYTES: u64 = 128 << 10;

/// Bytes that one connection may be sent before others are served, however fast it takes them.
const SHARE_BYTES_MAX: usize = 1 << 20;

impl Connection {
    /// Hands the batch, and the parts that a pause adds, to the engine. False: the client is gone, or does not read.
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
            ContentSource::None => {}
            ContentSource::Stored(content) => {
                let content_bytes = content.len();
                self.queued_bytes += content_bytes as u64;
                for offset in (0..content_bytes).step_by(CONTENT_WINDOW_BYTES) {
                    let piece = content.piece(offset, CONTENT_WINDOW_BYTES);
                    let piece_bytes = (content_bytes - offset).min(CONTENT_WINDOW_BYTES);
                    if !self.send_piece(piece, piece_bytes, limit).await {
                        return false;
                    }
                }
            }
            ContentSource::File(slice) => {
                self.queued_bytes += slice.length;
                let Some(whole) = self.at_once(&slice) else {
                    // In a box, because few connections send long files, and it would otherwise enlarge all of them.
                    return Box::pin(self.send_part(slice, limit)).await;
                };
                return self.send_piece(whole, slice.length as usize, limit).await;
            }
            ContentSource::Unopened(request) => return Box::pin(self.open_and_send(*request, limit)).await,
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

    /// Queues a piece of content of `piece_bytes` bytes.
    async fn send_piece(&mut self, piece: SendBuf, piece_bytes: usize, limit: Duration) -> bool {
        let sent = self.deadline.within(limit, self.stream.send(piece)).await;
        if !self.is_sent(&sent) {
            return false;
        }
        self.log_sent(piece_bytes);
        self.share(piece_bytes).await;
        true
    }

    /// Opens the file of a request, which may wait for a disk, and sends the reply.
    async fn open_and_send(&mut self, request: (Unopened, Form), limit: Duration) -> bool {
        let (unopened, form) = request;
        let worker = Rc::clone(&self.worker);
        let answer = worker.open(&unopened).await;
        worker.tick();
        let content = self.answer_with_file(*answer, form, &worker.replies());
        if !self.send_batch(limit).await {
            return false;
        }
        let ContentSource::File(slice) = content else { return true };
        self.queued_bytes += slice.length;
        match self.at_once(&slice) {
            Some(whole) => self.send_piece(whole, slice.length as usize, limit).await,
            None => self.send_part(slice, limit).await,
        }
    }

    /// The bytes that can be sent from a file in one piece: bytes in memory, or at most a window of an open file.
    fn at_once(&self, slice: &FileSlice) -> Option<SendBuf> {
        let sends_pages = matches!(self.worker.shared.config.body, Body::Files { io: FileIo::Sendfile, .. });
        match slice.part() {
            None => slice.to_send_buf(),
            Some(part) if sends_pages && slice.length <= CONTENT_WINDOW_BYTES as u64 => {
                Some(part.slice(slice.offset as usize, slice.length as usize).into())
            }
            Some(_) => None,
        }
    }

    /// Sends a part of an open file, one window after the other.
    async fn send_part(&mut self, slice: FileSlice, limit: Duration) -> bool {
        let (Some(part), mut offset) = (slice.part(), slice.offset) else { return false };
        let end = offset + slice.length;
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
                    // The head has promised more than the file contains: an early end is the only way to signal that.
                    outcome => {
                        let error = if outcome.is_ok() { FileError::Shrunk } else { FileError::Failed };
                        self.count_refusal(Refusal::File(error));
                        self.worker.distrust_files();
                        return false;
                    }
                },
            };
            if !self.is_sent(&sent) {
                return false;
            }
            self.log_sent(window as usize);
            self.share(window as usize).await;
            offset += window;
        }
        true
    }

    /// Logs content behind a head that was handed over.
    #[inline]
    fn log_sent(&mut self, bytes: usize) {
        if let Some(log) = &mut self.log {
            log.add_sent(bytes as u64);
        }
    }

    /// Lets other connections be served, at intervals.
    #[inline]
    async fn share(&mut self, sent_bytes: usize) {
        self.share_bytes += sent_bytes;
        if self.share_bytes >= SHARE_BYTES_MAX {
            self.share_bytes = 0;
            time::yield_now().await;
        }
    }
}
