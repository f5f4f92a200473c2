//! `--server-host`, `--hosts` and the `--host` of a load through a real sshd on this machine: with a private
//! configuration, a private host key and a high port. A program `ssh` before the system's on the path adds a private
//! configuration of the client, so that the words that Weir says to `ssh` are those of a user.
//!
//! Skipped by name without `sshd`; `WEIR_REQUIRE_TOOLS=sshd` makes that a failure.

use std::{
    fs,
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use weir_record::load::LoadReport;

use super::{
    harness::{
        Folder, Running, Said, Server, TWO_ARMS, executable, expect_refusal, folder, shell, shown,
        study_file, study_head, until,
    },
    observe_tools::free_port,
};

/// Folder that sshd wants while it runs as root.
const SEPARATION: &str = "/run/sshd";

/// The daemon's program, which is in no folder of a user's path.
fn sshd() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = folders.map(|folder| folder.join("sshd")).find(|program| program.is_file());
    if found.is_none() {
        let required = std::env::var("WEIR_REQUIRE_TOOLS").unwrap_or_default();
        assert!(!required.split(',').any(|name| name == "sshd"), "sshd is required and not installed");
        println!("skipped: sshd is not installed");
    }
    found
}

fn key(place: &Path) {
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", shown(place)]).status();
    assert!(made.expect("ssh-keygen is installed with sshd").success());
}

fn write(place: &Path, text: &str, mode: u32) {
    fs::write(place, text).expect("a file can be written");
    fs::set_permissions(place, fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// A running daemon, and the folder with its files.
struct Daemon {
    _process: Running,
    folder: Folder,
    made_separation: bool,
}

impl Daemon {
    fn start(program: &Path, name: &str) -> Self {
        let folder = folder(name);
        ["host", "user", "stranger"].iter().for_each(|name| key(&folder.join(name)));
        fs::copy(folder.join("user.pub"), folder.join("authorized")).expect("it can be copied");
        let (port, of) = (free_port(), |name: &str| shown(&folder.join(name)).to_owned());
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             SetEnv XDG_CACHE_HOME={}\n",
            of("host"),
            of("authorized"),
            of("cache"),
        );
        write(&folder.join("server"), &server, 0o600);
        let host = |name: &str, key: &str| {
            format!(
                "Host {name}\nHostName 127.0.0.1\nPort {port}\nIdentityFile {}\nIdentitiesOnly yes\n\
                 UserKnownHostsFile {}\nStrictHostKeyChecking accept-new\nLogLevel ERROR\n",
                of(key),
                of("known"),
            )
        };
        write(&folder.join("client"), &(host("there", "user") + &host("closed", "stranger")), 0o600);
        fs::create_dir_all(folder.join("bin")).expect("a folder can be made");
        // The first `ssh` behind this folder on the path.
        let wrapper =
            format!("#!/bin/sh\nPATH=${{PATH#{}:}}\nexec ssh -F {} \"$@\"\n", of("bin"), of("client"));
        executable(&folder.join("bin/ssh"), &wrapper);
        // Only root may make it, and only root needs it.
        let made_separation = fs::create_dir(SEPARATION).is_ok();
        // The daemon starts itself again for each connection, so it needs its whole path.
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f", &of("server")]);
        let process = Running::start(&mut command);
        until("sshd", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { folder, _process: process, made_separation }
    }

    /// Runs a shell line in which `ssh` is the private one.
    fn beside(&self, line: &str) -> Said {
        shell(&format!("PATH={}:$PATH; export PATH; {line}", shown(&self.folder.join("bin"))))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.made_separation {
            // It stays if another daemon has begun to use it.
            let _ = fs::remove_dir(SEPARATION);
        }
    }
}

#[test]
fn a_study_runs_through_a_real_sshd() {
    let Some(program) = sshd() else { return };
    let daemon = Daemon::start(&program, "ssh");
    let (file, out) = study_file(&daemon.folder, &(study_head(6, "1min") + TWO_ARMS));
    let there = "--server-address 127.0.0.1 --server-host";
    let said = daemon.beside(&format!("\"$WEIR\" study {file} --out {} {there} there", shown(&out)));
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let told = "servers run on there and listen at 127.0.0.1; a question to it takes ";
    assert!(said.stderr.contains(told), "{}", said.stderr);
    // The whole study there, with the program that was copied before.
    let hosts = daemon.folder.join("hosts");
    write(&hosts, "there\n", 0o600);
    let fleet = daemon.folder.join("fleet");
    let study = format!("\"$WEIR\" study {file} --out {} --hosts {}", shown(&fleet), shown(&hosts));
    let said = daemon.beside(&study);
    assert_eq!(said.code, Some(11), "one run decides nothing: {}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("\nthere:     "), "{}", said.stderr);
    assert!(fleet.join("there/report.html").exists());
    // A load from there, by the same program.
    let server = Server::start(&["--driver", "epoll"]);
    let load = format!("\"$WEIR\" load echo --target {} -c 2 -n 500 --json --host", server.address);
    let said = daemon.beside(&format!("{load} there"));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let report: LoadReport = serde_json::from_str(&said.stdout).expect("one line of JSON");
    let parts = report.generators.expect("it is elsewhere").parts;
    assert_eq!((report.messages, parts.len(), parts[0].host.as_str()), (500, 1, "there"));
    let said = daemon.beside(&format!("{load} there,closed"));
    expect_refusal(&said, 13, &["closed: the way to it exited with status 255", "Permission denied"]);
    // A key that is not authorized.
    let nowhere = daemon.folder.join("nowhere");
    let said = daemon.beside(&format!("\"$WEIR\" study {file} --out {} {there} closed", shown(&nowhere)));
    expect_refusal(&said, 13, &["closed: the way to it exited with status 255", "Permission denied"]);
    let left: Vec<String> = fs::read_dir(daemon.folder.join("cache/weir"))
        .expect("the cache of the other side")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("run-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
