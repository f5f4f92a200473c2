//! `weir load-part` (hidden): one of several generators of a load. It speaks [`weir_record::load::parts`] on standard
//! input and output, and ends with its input.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use weir_lab::study_file::hex_bytes;
use weir_load::{LoadError, LoadSpec, PartControl};
use weir_record::load::parts::{
    LoadPart, PartAnswer, PartOrder, PartPhase, PartSetup, SECONDS_MAX, SecondPart, WorkerShare,
};

use crate::{
    args::Arguments,
    exit::{Exit, UsageError},
    load::{self, LoadCommand, Place},
    shipped, signals,
};

/// Longest line of its input.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Longest wait between two looks for a signal, after the load.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn run() -> Result<Exit> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    signals::on_stop(move |_| flag.store(true, Ordering::Relaxed))?;
    let mut input = BufReader::new(io::stdin());
    let line = next_line(&mut input).context("standard input cannot be read")?;
    let line = line.ok_or_else(|| usage("no setup on standard input".to_owned()))?;
    let setup: PartSetup =
        serde_json::from_str(&line).map_err(|error| usage(format!("this is no setup: {error}")))?;
    let files = setup.files.iter().filter_map(|(path, digits)| Some((path.clone(), hex_bytes(digits)?)));
    shipped::set(files.collect());
    let load = Arguments::load_of_setup(&setup.words)?;
    let load = load.command();
    let mut control = Orders { came: listen(input)?, output: io::stdout().lock(), has_reader: true };
    let Some(spec) = control.meanwhile(|| prepare(load, setup.share), &stop)? else {
        return Err(LoadError::Interrupted.into());
    };
    let outcome = weir_load::run_part(&spec, setup.share, &mut control, &stop);
    let (part, seconds) = outcome.map_err(|error| load::refused(load, error))?;
    if control.hand_over(part, seconds, &stop) { Ok(Exit::Ok) } else { Err(LoadError::Interrupted.into()) }
}

/// The specification of the whole load. Names are resolved here, which may take long.
fn prepare(load: &dyn LoadCommand, share: WorkerShare) -> Result<LoadSpec> {
    let mut spec = load.spec(Place::Here)?;
    // Limits of a process concern the connections of this one, not those of all hosts.
    let [active, idle] =
        [spec.connections, spec.idle_connections].map(|total| u64::from(share.part_of(total)));
    load::check_process(&mut spec, load.shared(), active + idle)?;
    spec.workers = share.all;
    Ok(spec)
}

fn usage(reason: String) -> anyhow::Error {
    UsageError(reason).into()
}

/// The next line of bounded length; `None` at the end.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = input.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
    Ok((length > 0).then_some(line))
}

/// Reads orders on a separate thread, so that the load never waits for them. The channel closes at the end of the
/// input, and at a line that is no order.
fn listen(mut input: impl BufRead + Send + 'static) -> io::Result<Receiver<PartOrder>> {
    let (send, came) = mpsc::channel();
    let read = move || {
        while let Ok(Some(line)) = next_line(&mut input) {
            let Ok(order) = serde_json::from_str(&line) else { return };
            if send.send(order).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("weir-orders".to_owned()).spawn(read)?;
    Ok(came)
}

/// The coordinator.
struct Orders<W> {
    came: Receiver<PartOrder>,
    output: W,
    /// The answers are read.
    has_reader: bool,
}

impl<W: Write> PartControl for Orders<W> {
    fn next(&mut self, longest: Duration) -> Option<PartOrder> {
        match self.came.recv_timeout(longest) {
            Ok(order) => Some(order),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.has_reader = false;
                Some(PartOrder::Stop)
            }
        }
    }

    fn answer(&mut self, answer: PartAnswer) {
        if !self.has_reader {
            return;
        }
        let line = serde_json::to_vec(&answer).map(|mut line| {
            line.push(b'\n');
            line
        });
        let line = line.map_err(io::Error::from);
        let said = line.and_then(|line| self.output.write_all(&line).and_then(|()| self.output.flush()));
        self.has_reader = said.is_ok();
    }
}

impl<W: Write> Orders<W> {
    /// Does some work on another thread, and answers meanwhile. `None` if the load was ended.
    fn meanwhile<T: Send>(
        &mut self,
        work: impl FnOnce() -> Result<T> + Send,
        stop: &AtomicBool,
    ) -> Result<Option<T>> {
        let mut is_ended = false;
        let done = thread::scope(|scope| {
            let work = scope.spawn(work);
            while !work.is_finished() {
                if let Some(order) = self.next(LOOK) {
                    is_ended |= order == PartOrder::Stop;
                    self.answer(PartAnswer::default());
                }
                if !self.has_reader {
                    thread::sleep(LOOK);
                }
            }
            work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        Ok((!is_ended && !stop.load(Ordering::Relaxed)).then_some(done))
    }

    /// Answers until everything was taken; `false` if the coordinator left before.
    fn hand_over(&mut self, part: LoadPart, seconds: Vec<SecondPart>, stop: &AtomicBool) -> bool {
        let (messages, errors) = (part.report.messages_whole_run, part.report.failures.errors());
        let (mut seconds, mut part) = (seconds.into_iter(), Some(Box::new(part)));
        while self.has_reader && !stop.load(Ordering::Relaxed) {
            if self.next(LOOK).is_none() {
                continue;
            }
            let next: Vec<SecondPart> = seconds.by_ref().take(SECONDS_MAX).collect();
            let ended = if next.is_empty() { part.take() } else { None };
            let is_last = ended.is_some();
            let counts = PartAnswer { phase: PartPhase::Ended, messages, errors, ..PartAnswer::default() };
            self.answer(PartAnswer { seconds: next, ended, ..counts.clone() });
            if is_last {
                self.stay(&counts);
                return self.has_reader;
            }
        }
        false
    }

    /// Answers with these counts until the coordinator closes the connection: other generators may take longer, and
    /// the sum of all counts that it shows must not fall.
    fn stay(&mut self, counts: &PartAnswer) {
        while let Ok(_order) = self.came.recv() {
            self.answer(counts.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(lines: &'static [u8]) -> Orders<Vec<u8>> {
        Orders { came: listen(lines).expect("a thread"), output: Vec::new(), has_reader: true }
    }

    /// The answers that were given.
    fn answers(control: &Orders<Vec<u8>>) -> Vec<PartAnswer> {
        let lines = String::from_utf8(control.output.clone()).expect("it is text");
        lines.lines().map(|line| serde_json::from_str(line).expect("it is an answer")).collect()
    }

    #[test]
    fn the_end_of_the_orders_and_a_line_that_is_none_are_the_order_to_stop() {
        for lines in [&b"\"look\"\n"[..], b"\"look\"\n\"sing\"\n\"look\"\n"] {
            let mut control = orders(lines);
            assert_eq!(control.next(Duration::from_secs(9)), Some(PartOrder::Look));
            assert_eq!(control.next(Duration::from_secs(9)), Some(PartOrder::Stop));
            control.answer(PartAnswer::default());
            assert!(control.output.is_empty(), "there is no reader");
        }
    }

    #[test]
    fn seconds_are_handed_over_some_at_a_time_and_the_result_comes_last() {
        let mut control = orders(b"\"look\"\n\"look\"\n\"look\"\n\"look\"\n");
        let seconds = vec![SecondPart::default(); SECONDS_MAX + 1];
        let mut part = LoadPart::default();
        part.report.messages_whole_run = 7;
        assert!(control.hand_over(part, seconds, &AtomicBool::new(false)));
        let answers = answers(&control);
        let counts: Vec<(usize, bool)> =
            answers.iter().map(|it| (it.seconds.len(), it.ended.is_some())).collect();
        assert_eq!(counts, [(SECONDS_MAX, false), (1, false), (0, true), (0, false)]);
        assert!(answers.iter().all(|it| it.messages == 7 && it.phase == PartPhase::Ended), "it stays so");
    }
}
