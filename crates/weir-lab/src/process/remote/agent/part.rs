//! A generator of a load that comes from several hosts: `weir load-part` as the agent's child. The agent hands each
//! order to it and returns its answer. One generator in a connection.

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use weir_record::load::parts::{PartAnswer, PartOrder, PartSetup};

use super::{AgentError, Session};
use crate::process::{
    group::{Bond, Group},
    remote::codec::{Answer, LINE_BYTES_MAX, PartEnded, Question, Refused},
};

/// Longest time of an answer of the generator. It answers within milliseconds; the coordinator waits longer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Runs a generator until the coordinator closes the connection, which ends it.
pub(super) fn run(
    session: &mut Session<'_>,
    weir: &Path,
    setup: &PartSetup,
    interrupt: &AtomicBool,
) -> Result<(), AgentError> {
    let begun = Generator::begin(weir, setup);
    let mut generator = match begun {
        Ok(generator) => {
            session.answer(Ok(Answer::Nothing))?;
            Some(generator)
        }
        Err(reason) => {
            session.refuse(&format!("cannot start the generator: {reason}"))?;
            None
        }
    };
    while let Some(question) = session.next()? {
        let answer = match (&mut generator, question) {
            (Some(generator), Question::Part(order)) => {
                Ok(Answer::Part(Box::new(generator.carry_out(order, interrupt))))
            }
            (_, Question::Nothing) => Ok(Answer::Nothing),
            (Some(_), _) => Err(Refused::Environment("a generator runs here".to_owned())),
            (None, _) => Err(Refused::Environment("no load has begun".to_owned())),
        };
        session.answer(answer)?;
    }
    Ok(())
}

/// The child. Dropping it kills it.
struct Generator {
    child: Group,
}

impl Generator {
    fn begin(weir: &Path, setup: &PartSetup) -> Result<Self, String> {
        let mut command = Command::new(weir);
        command.arg("load-part");
        let child = Group::start(&mut command, Bond::Commanded).map_err(|error| error.to_string())?;
        let mut generator = Self { child };
        generator.say(setup)?;
        Ok(generator)
    }

    fn say(&mut self, value: &impl serde::Serialize) -> Result<(), String> {
        let mut line = serde_json::to_vec(value).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let deadline = Instant::now() + ANSWER_MAX;
        let said = self.child.say_unless(&line, || Instant::now() >= deadline);
        match said {
            // The wait for its answer finds out why it ended.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            said => said.map_err(|error| error.to_string()),
        }
    }

    /// Hands an order to it, and waits for the answer.
    fn carry_out(&mut self, order: PartOrder, interrupt: &AtomicBool) -> Result<PartAnswer, PartEnded> {
        if let Err(how) = self.say(&order) {
            return Err(PartEnded { code: None, how });
        }
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            // Looked at first: its last output may come before its end.
            let has_ended = self.child.has_ended();
            if let Some(line) = self.child.next_line() {
                return serde_json::from_str(&line).map_err(|error| PartEnded {
                    code: None,
                    how: format!("its generator's answer cannot be read: {error}"),
                });
            }
            if has_ended {
                return Err(self.ended());
            }
            if self.child.stdout.is_full() {
                let how = format!("its generator's answer has more than {LINE_BYTES_MAX} bytes");
                return Err(PartEnded { code: None, how });
            }
            if interrupt.load(Ordering::Relaxed) || Instant::now() >= deadline {
                let how = format!("its generator gave no answer within {} s", ANSWER_MAX.as_secs());
                return Err(PartEnded { code: None, how });
            }
        }
    }

    fn ended(&mut self) -> PartEnded {
        let how = self.child.exit_reason();
        let code = self.child.end().ok().and_then(|status| status.code());
        // Its own message says everything, if there is one.
        let said = self.child.said();
        let how = if code.is_some() && !said.is_empty() { said } else { format!("its generator {how}") };
        PartEnded { code, how }
    }
}
