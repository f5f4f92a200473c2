//! A dashboard over a results folder, with browsers that show its live view: the load on a study while somebody
//! watches.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use weir_sys::child::spawn_bound;

/// Most browsers: a dashboard limits the watchers from one address to this.
pub(crate) const WATCHERS_MAX: u32 = 8;

/// Longest wait for an event: the dashboard sends a keep-alive every fifteen seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Starts `PROGRAM dashboard RESULTS` and `watchers` browsers on its live view. Returns a description of the end when
/// one of them is disconnected or the dashboard ends.
pub(crate) fn look_on(
    program: &Path,
    results: &Path,
    watchers: u32,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command.arg("dashboard").arg(results).args(["--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let child = spawn_bound(&mut command).map_err(|error| format!("cannot start {program:?}: {error}"))?;
    let mut dashboard = Dashboard(child);
    let mut output = BufReader::new(dashboard.output()?);
    let mut line = String::new();
    output.read_line(&mut line).map_err(|error| format!("the dashboard says nothing: {error}"))?;
    let address =
        address_in(&line).ok_or_else(|| format!("the dashboard does not say where it is: {line:?}"))?;
    let (sender, ends) = mpsc::channel();
    for number in 0..watchers {
        let stream = watch(address).map_err(|error| format!("browser {number}: {error}"))?;
        let sender = sender.clone();
        thread::spawn(move || sender.send(format!("browser {number} was let go: {}", end_of(stream))));
    }
    thread::spawn(move || sender.send(format!("the dashboard ended: {}", end_of(output))));
    ready().map_err(|error| format!("no server listens: {error}"))?;
    ends.recv().map_err(|error| error.to_string())
}

/// A dashboard process, killed on drop.
struct Dashboard(Child);

impl Dashboard {
    fn output(&mut self) -> Result<ChildStdout, String> {
        self.0.stdout.take().ok_or_else(|| "the dashboard has no output".to_owned())
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // Fails only if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Address in its first line: `http://127.0.0.1:3000/ shows the studies in weir-results`.
fn address_in(line: &str) -> Option<SocketAddr> {
    line.strip_prefix("http://")?.split('/').next()?.parse().ok()
}

/// Connects a browser and waits until it has received the state of the study, or that none runs.
fn watch(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    write!(stream, "GET /live/events HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    if !line.starts_with("HTTP/1.1 200 ") {
        return Err(io::Error::other(format!("it is answered {line:?}")));
    }
    while !line.starts_with("data: ") {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(stream)
}

/// Reads until the end, and describes how the stream ended.
fn end_of(mut stream: impl BufRead) -> String {
    io::copy(&mut stream, &mut io::sink())
        .map_or_else(|error| error.to_string(), |_| "nothing more".to_owned())
}

#[cfg(test)]
mod tests {
    use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, sync::mpsc};

    use super::*;

    /// A program that prints where this test listens, and keeps running.
    fn program(address: SocketAddr) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("weir-neighbour-dashboard-{}", std::process::id()));
        let text = format!(
            "#!/bin/sh\necho \"http://{address}/ shows the studies in $2\"\nexec tail -f /dev/null\n"
        );
        fs::write(&path, text).expect("a file can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("its mode can be set");
        path
    }

    /// Answers one browser with the beginning of a stream.
    fn answered(listener: &TcpListener) -> TcpStream {
        let (stream, _) = listener.accept().expect("a browser comes");
        let mut request = BufReader::new(stream.try_clone().expect("a descriptor"));
        let mut line = String::new();
        while request.read_line(&mut line).expect("a request") > 2 {}
        assert!(line.starts_with("GET /live/events HTTP/1.1\r\nHost: 127.0.0.1:"), "{line}");
        let mut answer = stream;
        answer.write_all(b"HTTP/1.1 200 OK\r\n\r\n14\r\ndata: <p>1 of 9</p>\n").expect("it is read");
        answer
    }

    #[test]
    fn browsers_watch_until_one_is_let_go_and_what_is_no_dashboard_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let program = program(listener.local_addr().expect("it is bound"));
        let (said, is_ready) = mpsc::channel();
        let own = program.clone();
        let looked_on = thread::spawn(move || {
            look_on(&own, Path::new("results"), 2, || {
                said.send(()).expect("the test listens");
                Ok(())
            })
        });
        let mut streams: Vec<TcpStream> = (0..2).map(|_| answered(&listener)).collect();
        is_ready.recv().expect("both watch");
        drop(streams.pop());
        let message = looked_on.join().expect("no panic").expect("it ends");
        assert_eq!(message, "browser 1 was let go: nothing more");
        fs::remove_file(&program).expect("it can be removed");

        // Started here, because a program file that is being written while another process starts cannot be executed.
        let look_on = |program: &str| look_on(Path::new(program), Path::new("results"), 0, || Ok(()));
        assert!(look_on("/nowhere/weir").expect_err("it is not there").starts_with("cannot start"));
        let message = look_on("echo").expect_err("it is no dashboard");
        assert!(
            message.starts_with("the dashboard does not say where it is: \"dashboard results"),
            "{message}"
        );
    }

    #[test]
    fn the_address_is_in_the_first_line() {
        assert_eq!(address_in("http://127.0.0.1:80/ shows"), "127.0.0.1:80".parse().ok());
        assert_eq!([address_in("127.0.0.1:80/"), address_in("http://x/"), address_in("")], [None; 3]);
    }
}
