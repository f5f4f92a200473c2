//! `weir load-slices` (hidden): the generator of the laboratory for servers that are loaded in turn. It speaks
//! [`weir_record::slices`] on standard input and output, and ends with its input.

use std::{
    io::{self, BufRead, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::Result;
use serde::de::DeserializeOwned;
use weir_load::{Control, LoadSpec};
use weir_record::slices::{SliceAnswer, SliceCommand, SliceSetup};

use crate::{
    args::Arguments,
    exit::{Exit, UsageError},
    load,
    protocol::LoadProtocol,
    signals,
};

pub(crate) fn run() -> Result<Exit> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    signals::on_stop(move |_| flag.store(true, Ordering::Relaxed))?;
    let mut lines = Lines { input: io::stdin().lock(), output: io::stdout().lock(), wrong: None };
    let Some(setup) = lines.read::<SliceSetup>() else {
        return Err(usage(lines.wrong.unwrap_or_else(|| "no setup on standard input".to_owned())));
    };
    let loads = setup.loads.iter().map(|words| Arguments::load_of_setup(words));
    let loads = loads.collect::<Result<Vec<_>, _>>()?;
    let specs = specs(&loads)?;
    weir_load::run_slices(&specs, &mut lines, &stop).map_err(|error| match loads.first() {
        // All are of one protocol.
        Some(load) => load::refused(load.command(), error),
        None => error.into(),
    })?;
    match lines.wrong {
        Some(reason) => Err(usage(reason)),
        None if stop.load(Ordering::Relaxed) => Ok(Exit::Interrupted),
        None => Ok(Exit::Ok),
    }
}

fn usage(reason: String) -> anyhow::Error {
    UsageError(reason).into()
}

/// One load for each target. They share a driver, which is settled once.
fn specs(loads: &[LoadProtocol]) -> Result<Vec<LoadSpec>> {
    let mut specs: Vec<LoadSpec> = Vec::with_capacity(loads.len());
    for load in loads {
        let load = load.command();
        let mut spec = load.spec(load::Place::Here)?;
        match specs.first() {
            Some(first) => spec.engine.clone_from(&first.engine),
            None => load::check(&mut spec, load.shared())?,
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// JSON values, one a line.
struct Lines<R, W> {
    input: R,
    output: W,
    /// The error in a line.
    wrong: Option<String>,
}

impl<R: BufRead, W> Lines<R, W> {
    /// The next value; `None` at the end of the input or if a line is not JSON.
    fn read<T: DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = String::new();
        if self.input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match serde_json::from_str(&line) {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong = Some(format!("a line of standard input is no command: {error}"));
                None
            }
        }
    }
}

impl<R: BufRead, W: Write> Control for Lines<R, W> {
    fn next(&mut self) -> Option<SliceCommand> {
        self.read()
    }

    fn answer(&mut self, answer: &SliceAnswer) -> bool {
        let Ok(mut line) = serde_json::to_vec(answer) else { return false };
        line.push(b'\n');
        self.output.write_all(&line).and_then(|()| self.output.flush()).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_command_ends_the_session_with_a_reason() {
        let input =
            b"{\"run\":{\"target\":0,\"length_ns\":5,\"is_timed\":true,\"arrivals_seed\":9}}\n\"sing\"\n";
        let mut lines = Lines { input: &input[..], output: Vec::new(), wrong: None };
        let run = SliceCommand::Run { target: 0, length_ns: 5, is_timed: true, arrivals_seed: 9 };
        assert_eq!(lines.next(), Some(run));
        assert_eq!(lines.next(), None);
        assert!(lines.wrong.as_deref().is_some_and(|text| text.contains("sing")), "{:?}", lines.wrong);
    }

    #[test]
    fn an_answer_is_one_line() {
        let mut lines = Lines { input: &b""[..], output: Vec::new(), wrong: None };
        assert!(lines.answer(&SliceAnswer::Ready { opened: vec![3], failures: vec![None] }));
        assert_eq!(
            String::from_utf8_lossy(&lines.output),
            "{\"ready\":{\"opened\":[3],\"failures\":[null]}}\n"
        );
        assert_eq!((lines.next(), lines.wrong), (None, None));
    }
}
