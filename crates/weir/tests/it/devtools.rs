//! A browser that is driven through two pipes by its DevTools protocol: the part of it that the tests need. Only
//! Chromium supports this; without it the tests print that they are skipped.

use std::{
    env,
    ffi::OsString,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use serde_json::{Value, json};

use super::harness::{Folder, PATIENCE, folder};

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

/// A browser with one page.
pub struct Browser {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    /// Events that no test has waited for yet.
    events: Vec<String>,
    last_id: u64,
    session: Option<String>,
    _profile: Folder,
}

/// The browser of this machine: `WEIR_BROWSER`, or the first that is on the path.
fn installed() -> Option<PathBuf> {
    if let Some(named) = env::var_os("WEIR_BROWSER") {
        return Some(PathBuf::from(named));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let places = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.into_iter().find(|place| place.is_file())
}

impl Browser {
    /// Starts one for a test of this name. `None`, and a line that says so, if none is installed; a failure when
    /// `WEIR_REQUIRE_BROWSER` is set.
    pub fn start(name: &str) -> Option<Self> {
        let Some(program) = installed() else {
            let missing = "no Chromium is on the path, and WEIR_BROWSER names none";
            assert!(env::var_os("WEIR_REQUIRE_BROWSER").is_none(), "a browser is required: {missing}");
            println!("skipped: {missing}");
            return None;
        };
        let profile = folder(&format!("browser-profile-{name}"));
        let mut browser = Self::of(&program, profile);
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", json!({}));
        Some(browser)
    }

    fn of(program: &Path, profile: Folder) -> Self {
        let mut data = OsString::from("--user-data-dir=");
        data.push(&*profile);
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
            .expect("a shell starts");
        let requests = child.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(child.stdout.take().expect("a pipe"));
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
        Self { child, requests, messages, events: Vec::new(), last_id: 0, session: None, _profile: profile }
    }

    fn next(&mut self, what: &str) -> Value {
        let wait = 4 * PATIENCE;
        self.messages
            .recv_timeout(wait)
            .unwrap_or_else(|error| panic!("{what}: the browser is gone: {error}"))
    }

    /// Sends a command, and returns the answer.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let mut request = json!({ "id": self.last_id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        write!(self.requests, "{request}\0").expect("the browser listens");
        self.requests.flush().expect("the browser listens");
        loop {
            let mut message = self.next(method);
            if message["id"] == self.last_id {
                assert!(message.get("error").is_none(), "{method} {parameters}: {message}");
                return message["result"].take();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, message: &Value) {
        self.events.extend(message["method"].as_str().map(str::to_owned));
    }

    /// Performs an action that leads to another page, and waits for that page.
    fn and_load(&mut self, lead: impl FnOnce(&mut Self)) {
        self.events.clear();
        lead(self);
        while !self.events.iter().any(|event| event == "Page.loadEventFired") {
            let message = self.next("a page");
            self.note(&message);
        }
    }

    /// Goes to an address.
    pub fn go(&mut self, url: &str) {
        self.and_load(|browser| {
            let went = browser.call("Page.navigate", json!({ "url": url }));
            assert!(went.get("errorText").is_none(), "{url}: {went}");
        });
    }

    /// Clicks on a link to another page.
    pub fn click(&mut self, selector: &str) {
        self.and_load(|browser| {
            browser.eval(&format!("document.querySelector({}).click()", json!(selector)));
        });
    }

    /// Types a text into a field.
    pub fn fill(&mut self, selector: &str, text: &str) {
        self.eval(&format!("document.querySelector({}).focus()", json!(selector)));
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Chooses a value of a list.
    pub fn choose(&mut self, selector: &str, value: &str) {
        let chosen = self.eval(&format!(
            "(() => {{ const list = document.querySelector({}); list.value = {}; return list.value }})()",
            json!(selector),
            json!(value)
        ));
        assert_eq!(chosen, value, "{selector} offers it");
    }

    /// The value of an expression; of a promise, when it is resolved.
    pub fn eval(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    /// The visible text of the page.
    pub fn text(&mut self) -> String {
        self.eval("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until this text is visible on the page, which changes by itself.
    pub fn until(&mut self, words: &str) {
        self.eval(&format!(
            "new Promise(done => {{ const look = () => document.body.innerText.includes({}) ? done(true) \
             : setTimeout(look, 50); look() }})",
            json!(words)
        ));
    }

    /// The target of a link, as the page itself would fetch it.
    pub fn fetch(&mut self, selector: &str) -> String {
        let get = format!("fetch(document.querySelector({}).href).then(it => it.text())", json!(selector));
        self.eval(&get).as_str().unwrap_or_default().to_owned()
    }

    /// Sets the width of the window.
    pub fn resize(&mut self, width: u32) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Fails only if it has ended. Its own children end when its pipes do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
