//! Clients and an exchange on foreign libraries. All installed and built files lie below `target`.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use weir_sys::child::spawn_bound;

use super::run_to_end;

/// Version of the library the Python steps were written against.
const NASDAQ_PROTOCOLS: &str = "nasdaq-protocols==1.3.0";

/// Plots reports of storage runs. Only one step needs it, so it is installed separately from the library.
const FIO_PLOT: &str = "fio-plot==1.1.21";

/// A program that places orders, drops the connection, resumes and compares; all take the same arguments.
pub struct Client {
    pub library: &'static str,
    /// Whether a dissector may also check what the library sends.
    pub is_by_the_book: bool,
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Client {
    /// Runs it to its end against the server on this port of the loopback interface.
    pub fn run(&self, port: u16, orders: &str) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["--orders", orders, "--port", &port.to_string()]);
        run_to_end(&mut command)
    }
}

/// Folder of the Python environment.
pub fn environment(target: &Path) -> PathBuf {
    target.join("interop-python")
}

/// Programs that use Nasdaq's Python library.
pub struct Python {
    interpreter: PathBuf,
    script: PathBuf,
}

impl Python {
    /// Creates a separate environment with the library.
    pub fn install(root: &Path, target: &Path) -> Result<Self, String> {
        let environment = environment(target);
        let interpreter = environment.join("bin/python");
        if !interpreter.exists() {
            run_to_end(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        }
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", NASDAQ_PROTOCOLS];
        run_to_end(Command::new(&interpreter).args(pip))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", FIO_PLOT];
        // Whether it is installed is checked afterwards, and reported.
        let _ = run_to_end(Command::new(&interpreter).args(pip));
        Ok(Self { interpreter, script: root.join("interop/orders.py") })
    }

    pub fn client(&self) -> Client {
        Client {
            library: "nasdaq-protocols",
            // The library pads the sequence number of a login on the right, the specification on the left.
            is_by_the_book: false,
            program: self.interpreter.clone(),
            arguments: vec![self.script.clone().into(), "client".into()],
        }
    }

    /// The command that starts an exchange.
    pub fn exchange(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.arg(&self.script).arg("server");
        command
    }
}

/// Builds the client on nassau-core. The first time, Maven downloads what it needs into a separate repository.
pub fn nassau_client(root: &Path, target: &Path) -> Result<Client, String> {
    let folder = target.join("interop-java");
    let build = folder.join("build");
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "--file"]).arg(root.join("interop/java/pom.xml"));
    maven.arg(property("weir.build", &build));
    maven.arg(property("maven.repo.local", &folder.join("repository")));
    run_silently(maven.arg("process-classes"))?;

    let list = build.join("class-path");
    let libraries =
        fs::read_to_string(&list).map_err(|error| format!("cannot read {}: {error}", list.display()))?;
    let mut class_path = build.join("classes").into_os_string();
    class_path.push(":");
    class_path.push(libraries.trim());
    Ok(Client {
        library: "nassau-core",
        is_by_the_book: true,
        program: java(),
        arguments: vec!["-cp".into(), class_path, "Orders".into()],
    })
}

/// Like [`run_to_end`], but shows the output only on failure: Maven prints escape sequences even in quiet mode.
fn run_silently(command: &mut Command) -> Result<(), String> {
    let name = format!("{command:?}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = spawn_bound(command);
    let output =
        child.and_then(Child::wait_with_output).map_err(|error| format!("cannot run {name}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{name} ended with {}\n{}", output.status, String::from_utf8_lossy(&said).trim_end()))
}

/// `-Dname=path`
fn property(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(format!("-D{name}="));
    argument.push(path);
    argument
}

/// The Java that Maven uses: both check this variable first.
fn java() -> PathBuf {
    env::var_os("JAVA_HOME").map_or_else(|| "java".into(), |home| Path::new(&home).join("bin/java"))
}
