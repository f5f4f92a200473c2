//! What runs while pictures are taken: servers with their loads, a dashboard, and a study.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{self, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use weir_sys::child::spawn_bound;

use crate::weir_program::WeirProgram;

/// Requests a second of each load: enough for a curve, and little enough for a small machine.
const RATE: &str = "5k";

/// How long a load lasts: longer than the pictures of the servers take.
const LOAD: &str = "10min";

/// A child process. It is killed on drop.
pub struct Child {
    process: process::Child,
    /// The last word of its first line that is an address.
    pub address: String,
}

impl Child {
    /// Starts one that says in its first line where it listens.
    pub fn start(command: &mut Command) -> Result<Self, String> {
        let name = format!("{command:?}");
        let mut own = Self::start_silent(command.stdout(Stdio::piped()))?;
        let mut line = String::new();
        let stdout = own.process.stdout.take().ok_or_else(|| format!("{name}: no standard output"))?;
        BufReader::new(stdout).read_line(&mut line).map_err(|error| format!("{name}: {error}"))?;
        let address = line.split_whitespace().find(|word| word.contains(':'));
        own.address =
            address.ok_or_else(|| format!("{name} does not listen; it said {:?}", line.trim()))?.to_owned();
        Ok(own)
    }

    fn start_silent(command: &mut Command) -> Result<Self, String> {
        let process = spawn_bound(command.stdin(Stdio::null()).stderr(Stdio::null()));
        let process = process.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        Ok(Self { process, address: String::new() })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only if it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two echo servers and one of HTTP with these statistics sockets, each under a load.
pub fn servers_under_load(weir: &WeirProgram, sockets: &[String]) -> Result<Vec<Child>, String> {
    let kinds: [&[&str]; 3] =
        [&["echo", "--driver", "uring"], &["echo", "--driver", "epoll"], &["http", "--body", "1000"]];
    let mut children = Vec::new();
    for (kind, socket) in kinds.into_iter().zip(sockets) {
        let mut serve = Command::new(&weir.path);
        serve.arg("serve").args(kind).args(["--listen", "127.0.0.1:0", "--stats-socket", socket]);
        let server = Child::start(&mut serve)?;
        let mut load = Command::new(&weir.path);
        match kind[0] {
            "http" => load.args(["load", "http", &format!("http://{}/", server.address)]),
            _ => load.args(["load", "echo", "--target", &server.address]),
        };
        load.args(["-c", "20", "--rate", RATE, "-d", LOAD]).stdout(Stdio::null());
        children.push(server);
        children.push(Child::start_silent(&mut load)?);
    }
    Ok(children)
}

/// A study that runs to its end. A verdict has an exit code, and every verdict will do.
pub fn run_study(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    let child = spawn_bound(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    let status = child.and_then(|mut child| child.wait()).map_err(|error| format!("{name}: {error}"))?;
    match status.code() {
        Some(0 | 10..=12) => Ok(()),
        _ => Err(format!("{name} ended with {status}")),
    }
}

/// A study that runs while it is looked at. On drop it is asked to end, and it stores its round.
pub struct RunningStudy(process::Child);

impl RunningStudy {
    pub fn start(weir: &WeirProgram, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new(&weir.path);
        command.args(["study", "tps", "--levels", "quick", "--out"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        spawn_bound(&mut command).map(Self).map_err(|error| format!("cannot start weir study: {error}"))
    }
}

impl Drop for RunningStudy {
    fn drop(&mut self) {
        // It has ended if either fails.
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        let _ = self.0.wait();
    }
}
