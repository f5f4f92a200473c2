//! Tests our formats and protocols against foreign programs: `cargo xtask interop`. It is outside the default tests,
//! because it installs foreign libraries into separate folders below `target`.
//!
//! 1. A client on Nasdaq's Python library places orders at our exchange, drops the connection, resumes, and compares
//!    replays; if Maven is installed, a client on the Java library nassau-core does the same.
//! 2. The same through our gateway.
//! 3. Our gateway logs in to an exchange on Nasdaq's library, and our generator places orders through it.
//! 4. fio-plot, which plots fio's output, plots the output of `weir storage run`.
//!
//! If tshark is installed, the exchange's side of the first two steps is captured, and its SoupBinTCP dissector must
//! find nothing malformed: in what we send, and in what a library sends that follows the specification.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

mod foreign;
mod plots;
mod tools;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
};

use foreign::{Client, Python};
use tools::Tool;
use weir_sys::child::spawn_bound;

const ORDERS: &str = "10000";

/// Orders that each session of our generator places at the foreign exchange, which is slow.
const ORDERS_PER_SESSION: &str = "500";
const SESSIONS: &str = "4";

/// Runs all steps.
pub fn run(root: &Path) -> ExitCode {
    match steps(root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("interop: {error}");
            ExitCode::FAILURE
        }
    }
}

fn steps(root: &Path) -> Result<(), String> {
    let target = root.join(env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from));
    let python = Python::install(root, &target)?;
    let environment = foreign::environment(&target);
    let tools = tools::find(&environment)?;
    let mut clients = vec![python.client()];
    if tools.contains(&Tool::Maven) {
        clients.push(foreign::nassau_client(root, &target)?);
    }
    run_to_end(Command::new("cargo").current_dir(root).args(["build", "--release", "--package", "weir"]))?;
    let scratch = target.join("interop-scratch");
    // The journals of an earlier run would be replayed to this one.
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch).map_err(|error| format!("cannot make {}: {error}", scratch.display()))?;
    let rooms =
        Rooms { weir: target.join("release/weir"), scratch, has_tshark: tools.contains(&Tool::Tshark) };
    for client in &clients {
        at_exchange(&rooms, client)?;
        at_gateway(&rooms, client)?;
    }
    before_foreign_exchange(&rooms, &python)?;
    if tools.contains(&Tool::FioPlot) {
        plots::draw(&rooms.weir, &environment.join("bin/fio-plot"), &rooms.scratch.join("plots"))?;
    }
    Ok(())
}

fn at_exchange(rooms: &Rooms, client: &Client) -> Result<(), String> {
    let exchange = rooms.exchange(&format!("{}-alone", client.library))?;
    let capture = rooms.capture(&exchange)?;
    client.run(exchange.port(), ORDERS)?;
    println!("ok: the client on {} at our exchange", client.library);
    let judged = if client.is_by_the_book { "tcp" } else { &format!("tcp.srcport == {}", exchange.port()) };
    capture.map_or(Ok(()), |capture| capture.judge(judged))
}

fn at_gateway(rooms: &Rooms, client: &Client) -> Result<(), String> {
    let exchange = rooms.exchange(&format!("{}-behind", client.library))?;
    let capture = rooms.capture(&exchange)?;
    let gateway = rooms.gateway(&format!("{}-gateway", client.library), &exchange)?;
    client.run(gateway.port(), ORDERS)?;
    println!("ok: the client on {} at our gateway", client.library);
    // Between gateway and exchange both directions are our own.
    capture.map_or(Ok(()), |capture| capture.judge("tcp"))
}

fn before_foreign_exchange(rooms: &Rooms, python: &Python) -> Result<(), String> {
    let foreign = Listening::start(&mut python.exchange())?;
    let gateway = rooms.gateway("foreign-exchange-gateway", &foreign)?;
    let mut load = Command::new(&rooms.weir);
    load.args(["load", "orders", "--target", &gateway.address, "--sessions", SESSIONS]);
    load.args(["--orders", ORDERS_PER_SESSION, "--in-flight", "4", "--duration", "60s"]);
    run_to_end(&mut load)?;
    println!("ok: our gateway at an exchange on nasdaq-protocols");
    Ok(())
}

/// What the steps share.
struct Rooms {
    weir: PathBuf,
    scratch: PathBuf,
    has_tshark: bool,
}

impl Rooms {
    /// An exchange of ours with a journal of this name.
    fn exchange(&self, name: &str) -> Result<Listening, String> {
        let mut command = Command::new(&self.weir);
        command.args([
            "serve",
            "exchange",
            "--demo",
            "8",
            "--mode",
            "echo-accept",
            "--listen",
            "127.0.0.1:0",
        ]);
        command.args(["--journal", "os", "--journal-dir"]).arg(self.scratch.join(name));
        Listening::start(&mut command)
    }

    /// A gateway of ours with a journal of this name.
    fn gateway(&self, name: &str, upstream: &Listening) -> Result<Listening, String> {
        let mut command = Command::new(&self.weir);
        command.args(["serve", "gateway", "--demo", "8", "--upstream", &upstream.address]);
        command.args(["--listen", "127.0.0.1:0", "--journal", "os", "--journal-dir"]);
        Listening::start(command.arg(self.scratch.join(name)))
    }

    /// `None` without tshark.
    fn capture(&self, server: &Listening) -> Result<Option<Capture>, String> {
        self.has_tshark.then(|| Capture::start(&self.scratch, server.port())).transpose()
    }
}

/// A child process that listens. It is killed on drop.
struct Listening {
    process: Child,
    address: String,
}

impl Listening {
    fn start(command: &mut Command) -> Result<Self, String> {
        let name = format!("{:?}", command.get_program());
        let mut process = spawn_bound(command.stdin(Stdio::null()).stdout(Stdio::piped()))
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut line = String::new();
        let said = process.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let address = line.trim().strip_prefix("listening on ").map(str::to_owned);
        match (said, address) {
            (Some(Ok(_)), Some(address)) => Ok(Self { process, address }),
            _ => {
                // It may have ended by itself.
                let _ = process.kill();
                let _ = process.wait();
                Err(format!("{name} does not listen; it said {:?}", line.trim()))
            }
        }
    }

    fn port(&self) -> u16 {
        self.address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_default()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run_to_end(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    let mut child =
        spawn_bound(command.stdin(Stdio::null())).map_err(|error| format!("cannot run {name}: {error}"))?;
    let status = child.wait().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} ended with {status}")) }
}

/// A capture of one port of the loopback interface.
struct Capture {
    process: Child,
    file: PathBuf,
    port: u16,
}

impl Capture {
    fn start(scratch: &Path, port: u16) -> Result<Self, String> {
        let file = scratch.join("orders.pcap");
        let mut command = Command::new("tshark");
        command.args(["-q", "-i", "lo", "-f", &format!("tcp port {port}"), "-w"]).arg(&file);
        let mut process = spawn_bound(command.stdin(Stdio::null()).stderr(Stdio::piped()))
            .map_err(|error| format!("cannot start tshark: {error}"))?;
        // Its output shows when it has begun; earlier packets are not captured.
        let stderr = process.stderr.take().ok_or("tshark has no standard error")?;
        let mut lines = BufReader::new(stderr).lines();
        if !lines.any(|line| line.is_ok_and(|line| line.contains("Capturing on"))) {
            return Err("tshark did not begin to capture; it needs root or the group wireshark".to_owned());
        }
        Ok(Self { process, file, port })
    }

    /// Ends the capture and runs the dissector on the matching segments.
    fn judge(mut self, ours: &str) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT)
            .map_err(|error| format!("cannot end tshark: {error}"))?;
        self.process.wait().map_err(|error| format!("tshark: {error}"))?;
        let frames = self.count(&format!("soupbintcp && {ours}"))?;
        let malformed = self.count(&format!("soupbintcp && _ws.malformed && {ours}"))?;
        if frames == 0 || malformed > 0 {
            return Err(format!(
                "tshark found {frames} segments of SoupBinTCP, {malformed} of them malformed"
            ));
        }
        println!("ok: tshark found {frames} segments of SoupBinTCP and none malformed");
        Ok(())
    }

    fn count(&self, filter: &str) -> Result<usize, String> {
        let output = Command::new("tshark")
            .arg("-r")
            .arg(&self.file)
            .args(["-d", &format!("tcp.port=={},soupbintcp", self.port), "-Y", filter])
            .args(["-T", "fields", "-e", "frame.number"])
            .output()
            .map_err(|error| format!("cannot run tshark: {error}"))?;
        if !output.status.success() {
            return Err(format!("tshark: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count())
    }
}
