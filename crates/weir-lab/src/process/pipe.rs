//! Output of a child, read as it arrives and kept up to a limit.

use std::{io::Read, os::fd::AsFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    pipe::fcntl_setpipe_size,
};

/// Room for what a child prints between two readings: a server may print a line for each request. The most that the
/// kernel grants to everybody by default.
const PIPE_BYTES: usize = 1 << 20;

/// Which part is kept if there is too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The beginning.
    First,
    /// The end.
    Last,
}

/// One end of a pipe and the output that came through it.
pub(crate) struct Pipe<S> {
    source: Option<S>,
    kept: Vec<u8>,
    keep: Keep,
    bytes_max: usize,
    /// A text that a line is awaited to contain, and whether one did.
    awaited: Option<(String, bool)>,
}

impl<S: Read + AsFd> Pipe<S> {
    /// Takes the reading end, and makes it non-blocking.
    pub(crate) fn new(source: S, keep: Keep, bytes_max: usize) -> std::io::Result<Self> {
        fcntl_setfl(&source, fcntl_getfl(&source)? | OFlags::NONBLOCK)?;
        // Where the user has too many pipes, it stays as it is.
        let _ = fcntl_setpipe_size(&source, PIPE_BYTES);
        Ok(Self { source: Some(source), kept: Vec::new(), keep, bytes_max, awaited: None })
    }

    /// Reads the available output.
    pub(crate) fn drain(&mut self) {
        let mut chunk = [0; 16 << 10];
        while let Some(source) = &mut self.source {
            match source.read(&mut chunk) {
                Ok(length @ 1..) => self.take(length, &chunk),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => self.source = None,
            }
        }
    }

    fn take(&mut self, length: usize, chunk: &[u8]) {
        // Start of the line that began before this piece and has not ended yet.
        let open = self.kept.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        match self.keep {
            Keep::First => {
                let space = self.bytes_max - self.kept.len();
                self.kept.extend(&chunk[..length.min(space)]);
                self.look_from(open);
            }
            Keep::Last => {
                self.kept.extend(&chunk[..length]);
                self.look_from(open);
                let surplus = self.kept.len().saturating_sub(self.bytes_max);
                self.kept.drain(..surplus);
            }
        }
    }

    /// Searches the complete lines from here on for the awaited text.
    fn look_from(&mut self, open: usize) {
        let Some((text, has_come)) = &mut self.awaited else { return };
        let Some(end) = self.kept.iter().rposition(|byte| *byte == b'\n').filter(|end| *end >= open) else {
            return;
        };
        let lines = String::from_utf8_lossy(&self.kept[open..end]);
        *has_come |= lines.lines().any(|line| line.contains(text.as_str()));
    }

    /// Begins to watch for a complete line with this text, however much output follows it.
    pub(crate) fn await_line(&mut self, text: &str) {
        self.awaited = Some((text.to_owned(), false));
    }

    /// Whether the awaited line has arrived.
    pub(crate) fn line_has_come(&self) -> bool {
        self.awaited.as_ref().is_some_and(|(_, has_come)| *has_come)
    }

    /// Removes and returns the first complete line of the kept output.
    pub(crate) fn take_line(&mut self) -> Option<String> {
        let length = self.kept.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&self.kept[..length]).into_owned();
        self.kept.drain(..=length);
        Some(line)
    }

    /// Whether only the beginning of the output is kept, and it has reached its limit.
    pub(crate) fn is_full(&self) -> bool {
        self.keep == Keep::First && self.kept.len() >= self.bytes_max
    }

    /// The kept output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }

    /// The rest of the first complete line that begins with the prefix.
    pub(crate) fn line_after(&self, prefix: &str) -> Option<String> {
        let text = self.text();
        let complete = &text[..text.rfind('\n')?];
        complete.lines().find_map(|line| line.strip_prefix(prefix)).map(|rest| rest.trim().to_owned())
    }
}

/// Waits until one of two pipes has output, or the time is over. Signals end the wait early.
pub(crate) fn wait_readable<A: AsFd, B: AsFd>(one: &Pipe<A>, other: &Pipe<B>, longest: Duration) {
    let mut ends = Vec::with_capacity(2);
    ends.extend(one.source.as_ref().map(|source| PollFd::new(source, PollFlags::IN)));
    ends.extend(other.source.as_ref().map(|source| PollFd::new(source, PollFlags::IN)));
    // A time too long for the kernel's type would wait without limit; the times here are at most a tick.
    let timeout = Timespec::try_from(longest).ok();
    match poll(&mut ends, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        // Both ends are closed or the kernel is out of memory, so only the time can be waited for.
        Err(_) => std::thread::park_timeout(longest),
    }
}

/// Waits until one of several pipes has output, or the time is over. Signals end the wait early.
pub(crate) fn wait_any<S: AsFd>(pipes: &[&Pipe<S>], longest: Duration) {
    let sources = pipes.iter().filter_map(|pipe| pipe.source.as_ref());
    let mut ends: Vec<PollFd<'_>> = sources.map(|source| PollFd::new(source, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(longest).ok();
    if !matches!(poll(&mut ends, timeout.as_ref()), Ok(_) | Err(Errno::INTR)) {
        // The kernel is out of memory, so only the time can be waited for.
        std::thread::park_timeout(longest);
    }
}

/// Waits until a pipe accepts bytes, or the time is over. Signals end the wait early.
pub(crate) fn wait_writable(end: &impl AsFd, longest: Duration) {
    let mut ends = [PollFd::new(end, PollFlags::OUT)];
    let timeout = Timespec::try_from(longest).ok();
    if !matches!(poll(&mut ends, timeout.as_ref()), Ok(_) | Err(Errno::INTR)) {
        // The kernel is out of memory, so only the time can be waited for.
        std::thread::park_timeout(longest);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn pipe(keep: Keep, bytes_max: usize) -> (Pipe<std::io::PipeReader>, std::io::PipeWriter) {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        (Pipe::new(reader, keep, bytes_max).expect("it can be made non-blocking"), writer)
    }

    #[test]
    fn only_the_wanted_end_is_kept() {
        for (keep, kept) in [(Keep::First, "abcd"), (Keep::Last, "efgh")] {
            let (mut pipe, mut writer) = pipe(keep, 4);
            writer.write_all(b"abc").expect("it is open");
            pipe.drain();
            writer.write_all(b"defgh").expect("it is open");
            pipe.drain();
            assert_eq!(pipe.text(), kept);
        }
    }

    #[test]
    fn an_awaited_line_is_noted_in_pieces_and_when_it_is_no_longer_kept() {
        for keep in [Keep::First, Keep::Last] {
            let (mut pipe, mut writer) = pipe(keep, 40);
            pipe.await_line("is ready");
            for (piece, has_come) in [("not\nserver is re", false), ("ady", false), (" now\n", true)] {
                writer.write_all(piece.as_bytes()).expect("it is open");
                pipe.drain();
                assert_eq!(pipe.line_has_come(), has_come, "{keep:?}: {piece}");
            }
        }
        let (mut pipe, mut writer) = pipe(Keep::Last, 8);
        pipe.await_line("is ready");
        writer.write_all(b"it is ready\nand says\nmuch more\n").expect("it is open");
        pipe.drain();
        assert!(pipe.line_has_come() && !pipe.text().contains("ready"), "{}", pipe.text());
    }

    #[test]
    fn a_line_counts_when_it_is_complete() {
        let (mut pipe, mut writer) = pipe(Keep::First, 100);
        writer.write_all(b"hello\nlistening on 127.0.0.1:70").expect("it is open");
        pipe.drain();
        assert_eq!(pipe.line_after("listening on "), None);
        writer.write_all(b"07\n").expect("it is open");
        pipe.drain();
        assert_eq!(pipe.line_after("listening on ").as_deref(), Some("127.0.0.1:7007"));
        assert_eq!(pipe.take_line().as_deref(), Some("hello"));
        assert_eq!(pipe.take_line().as_deref(), Some("listening on 127.0.0.1:7007"));
        assert_eq!(pipe.take_line(), None);
    }
}
