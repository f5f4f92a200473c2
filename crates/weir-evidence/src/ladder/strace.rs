//! Rung L3: `strace -c -f -w` on a running process, to show its effect on a process. It stops each call twice, so its
//! times are those of a slowed program, and waiting counts as work. Its counts are right.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use weir_record::observation::StraceRow;
use weir_sys::child::spawn_bound;

use crate::{files, parse, process::family_of};

/// Longest wait until every thread is attached.
const ATTACH_MAX: Duration = Duration::from_secs(5);
/// Kinds of calls that are read.
const ROWS_MAX: usize = 1024;
/// Longest table that is read.
const TABLE_BYTES_MAX: u64 = 1 << 20;

/// Message to a supervisor: end strace, and let it print its counts.
const END: &[u8] = b"end\n";

/// `strace` attached to a process and its children.
#[derive(Debug)]
pub struct Strace {
    /// The supervisor, or strace itself.
    child: Child,
    /// The supervisor's standard input.
    input: Option<ChildStdin>,
}

impl Strace {
    /// Starts it and waits until it is attached to every thread.
    ///
    /// `supervisor` is a program with its arguments. It runs the words after them, ends the program it runs when its
    /// input says something, and kills it and everything it started when its input closes. strace first tests the
    /// kernel's features on its own children: if it is killed meanwhile, a child stays stopped forever. Without a
    /// supervisor strace dies with the calling thread, and such a child may be left.
    pub fn attach(pid: u32, supervisor: &[OsString]) -> io::Result<Self> {
        let members = family_of(pid)?;
        let mut command = command(supervisor);
        command.args(["-c", "-f", "-w", "-qq"]).env("LC_ALL", "C");
        for member in members {
            command.args(["-p", &member.to_string()]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = match supervisor {
            [] => spawn_bound(command.stdin(Stdio::null()))?,
            _ => command.stdin(Stdio::piped()).process_group(0).spawn()?,
        };
        let input = child.stdin.take();
        let mut strace = Self { child, input };
        let begun = Instant::now();
        while !is_held(pid) {
            if strace.has_ended()? {
                let text = strace.rest()?;
                return Err(io::Error::other(text.lines().last().unwrap_or("strace ended").to_owned()));
            }
            if begun.elapsed() > ATTACH_MAX {
                return Err(io::Error::other("strace could not attach to it; only one tracer can at a time"));
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(strace)
    }

    /// Whether it has ended by itself, together with the traced process.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// Detaches from the process, unless it has ended, and returns the table.
    pub fn finish(mut self) -> io::Result<Vec<StraceRow>> {
        // Its number may be reused once it was reaped, and a supervisor that has ended reads no input.
        if !self.has_ended()? {
            // This fails if strace ends at this moment, together with its process; its counts can still be read.
            let _ = match &mut self.input {
                Some(input) => input.write_all(END),
                None => kill_process(Pid::from_child(&self.child), Signal::TERM).map_err(io::Error::from),
            };
        }
        let text = self.rest()?;
        self.child.wait()?;
        if !text.lines().any(is_rule) {
            let last = text.lines().last().unwrap_or("nothing");
            return Err(io::Error::other(format!("strace gave no table: {last}")));
        }
        Ok(table(&text))
    }

    /// Its output up to the end.
    fn rest(&mut self) -> io::Result<String> {
        let mut text = String::new();
        let stderr = self.child.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?;
        stderr.take(TABLE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        // The traced process continues. Killing fails only when strace has ended; a supervisor finishes by itself.
        if self.input.take().is_none() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// The command that runs strace.
fn command(supervisor: &[OsString]) -> Command {
    let Some((program, words)) = supervisor.split_first() else { return Command::new("strace") };
    let mut command = Command::new(program);
    command.args(words).arg("strace");
    command
}

/// Whether every thread of a process has a tracer.
fn is_held(pid: u32) -> bool {
    let is_traced = |tid: u32| {
        let status = files::read_text(format!("/proc/{pid}/task/{tid}/status")).unwrap_or_default();
        // A thread that ended meanwhile needs none.
        parse::number_field(&status, "TracerPid") != Some(0)
    };
    files::numbered_entries(format!("/proc/{pid}/task")).into_iter().all(is_traced)
}

/// Whether a line is a rule above or below the table's rows.
fn is_rule(line: &str) -> bool {
    line.starts_with("------")
}

/// The rows of `strace -c`: share, seconds, microseconds a call, calls, errors if any, name.
fn table(text: &str) -> Vec<StraceRow> {
    let body = text.lines().skip_while(|line| !is_rule(line)).skip(1);
    let rows = body.take_while(|line| !is_rule(line)).filter_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (errors, name) = match fields[..] {
            [_, _, _, _, name] => (0, name),
            [_, _, _, _, errors, name] => (errors.parse().ok()?, name),
            _ => return None,
        };
        let seconds: f64 = fields[1].parse().ok()?;
        Some(StraceRow {
            name: name.to_owned(),
            calls: fields[3].parse().ok()?,
            errors,
            time_ns: (seconds * 1e9) as u64,
        })
    });
    rows.take(ROWS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_with_and_without_errors() {
        let text = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.90    0.284321          14     20000           writev
 34.89    0.160268           7     20050        50 recvfrom
------ ----------- ----------- --------- --------- ----------------
100.00    0.459334          11     40893           total
";
        let row =
            |name: &str, calls, errors, time_ns| StraceRow { name: name.to_owned(), calls, errors, time_ns };
        let expected = [row("writev", 20_000, 0, 284_321_000), row("recvfrom", 20_050, 50, 160_268_000)];
        assert_eq!(table(text), expected);
        for cut in 0..text.len() {
            assert!(table(&text[..cut]).len() <= 2);
        }
    }

    #[test]
    fn this_process_is_held_by_nobody_or_by_a_debugger() {
        let status = files::read_text("/proc/self/status").expect("it lives");
        assert_eq!(is_held(std::process::id()), parse::number_field(&status, "TracerPid") != Some(0));
    }
}
