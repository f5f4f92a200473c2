//! Chromium, driven through two pipes by its DevTools protocol: the part of it that pictures and the tests of
//! `crates/weir` need. No other browser supports it.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

/// Names under which it is installed.
const NAMES: [&str; 7] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chrome-headless-shell",
    "headless_shell",
];

/// Gives the program its pipes at the descriptors that it expects.
const WITH_PIPES: &str = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";

/// Longest wait for an answer or for a page. A busy machine may stop a process for seconds.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Chromium {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    /// Events that nothing has waited for yet.
    events: Vec<String>,
    last_id: u64,
    session: Option<String>,
}

/// The browser of this machine: `WEIR_BROWSER`, or the first that is on the path.
pub fn installed() -> Option<PathBuf> {
    if let Some(named) = env::var_os("WEIR_BROWSER") {
        return Some(PathBuf::from(named));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let places = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}

impl Chromium {
    /// Starts the program with a profile in this folder, and opens an empty page.
    pub fn start(program: &Path, profile: &Path) -> Result<Self, String> {
        let mut browser = Self::of(program, profile)?;
        let page = browser.call("Target.createTarget", &json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", &attach)?;
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", &json!({}))?;
        Ok(browser)
    }

    fn of(program: &Path, profile: &Path) -> Result<Self, String> {
        let mut data = OsString::from("--user-data-dir=");
        data.push(profile);
        let mut child = Command::new("sh")
            .args(["-c", WITH_PIPES, "sh"])
            .arg(program)
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--disable-extensions", "--window-size=1280,900"])
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start a shell: {error}"))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child without its pipes".to_owned());
        };
        let mut answers = BufReader::new(answers);
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                let text = message.strip_suffix(&[0]).unwrap_or(&message);
                let Ok(value) = serde_json::from_slice(text) else { return };
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        Ok(Self { child, requests, messages, events: Vec::new(), last_id: 0, session: None })
    }

    fn next(&mut self, what: &str) -> Result<Value, String> {
        let message = self.messages.recv_timeout(WAIT_MAX);
        message.map_err(|error| format!("{what}: the browser is gone: {error}"))
    }

    /// Sends a command, and returns the answer.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Result<Value, String> {
        self.last_id += 1;
        let mut request = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        let sent = write!(self.requests, "{request}\0").and_then(|()| self.requests.flush());
        sent.map_err(|error| format!("{method}: the browser does not listen: {error}"))?;
        loop {
            let mut message = self.next(method)?;
            if message["id"] == self.last_id {
                if message.get("error").is_some() {
                    return Err(format!("{method} {parameters}: {message}"));
                }
                return Ok(message["result"].take());
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Value) {
        self.events.extend(message["method"].as_str().map(str::to_owned));
    }

    /// Performs an action that leads to another page, and waits for that page.
    pub fn and_load(&mut self, lead: impl FnOnce(&mut Self) -> Result<(), String>) -> Result<(), String> {
        self.events.clear();
        lead(self)?;
        while !self.events.iter().any(|event| event == "Page.loadEventFired") {
            let message = self.next("a page")?;
            self.note(&message);
        }
        Ok(())
    }

    /// Goes to an address.
    pub fn go(&mut self, url: &str) -> Result<(), String> {
        self.and_load(|browser| {
            let went = browser.call("Page.navigate", &json!({ "url": url }))?;
            if went.get("errorText").is_some() { Err(format!("{url}: {went}")) } else { Ok(()) }
        })
    }

    /// The value of an expression; of a promise, when it is resolved.
    pub fn eval(&mut self, expression: &str) -> Result<Value, String> {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", &parameters)?;
        if answer.get("exceptionDetails").is_some() {
            return Err(format!("{expression}: {answer}"));
        }
        Ok(answer["result"]["value"].take())
    }

    /// Sets the size of the window.
    pub fn resize(&mut self, (width, height): (u32, u32)) -> Result<(), String> {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics).map(drop)
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) -> Result<(), String> {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "features": [feature] })).map(drop)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Fails only if it has ended. Its children end when its pipes do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
