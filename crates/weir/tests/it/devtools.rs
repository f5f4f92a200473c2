//! A browser for tests. Only Chromium supports DevTools; without it the tests print that they are skipped.

use std::env;

use serde_json::{Value, json};

use super::{
    chromium::{self, Chromium},
    harness::{Folder, folder},
};

/// A browser with one page.
pub struct Browser {
    chromium: Chromium,
    _profile: Folder,
}

/// What the browser did; a failure of the test if it could not.
fn done<T>(outcome: Result<T, String>) -> T {
    outcome.unwrap_or_else(|error| panic!("{error}"))
}

impl Browser {
    /// Starts one for a test of this name. `None`, and a line that says so, if none is installed; a failure when
    /// `WEIR_REQUIRE_BROWSER` is set.
    pub fn start(name: &str) -> Option<Self> {
        let Some(program) = chromium::installed() else {
            let missing = "no Chromium is on the path, and WEIR_BROWSER names none";
            assert!(env::var_os("WEIR_REQUIRE_BROWSER").is_none(), "a browser is required: {missing}");
            println!("skipped: {missing}");
            return None;
        };
        let profile = folder(&format!("browser-profile-{name}"));
        Some(Self { chromium: done(Chromium::start(&program, &profile)), _profile: profile })
    }

    /// Goes to an address.
    pub fn go(&mut self, url: &str) {
        done(self.chromium.go(url));
    }

    /// Clicks on a link to another page.
    pub fn click(&mut self, selector: &str) {
        let click = format!("document.querySelector({}).click()", json!(selector));
        done(self.chromium.and_load(|browser| browser.eval(&click).map(drop)));
    }

    /// Types a text into a field.
    pub fn fill(&mut self, selector: &str, text: &str) {
        self.eval(&format!("document.querySelector({}).focus()", json!(selector)));
        done(self.chromium.call("Input.insertText", &json!({ "text": text })));
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
        done(self.chromium.eval(expression))
    }

    /// The visible text of the page.
    pub fn text(&mut self) -> String {
        self.eval("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until this text is visible on the page, which changes by itself.
    pub fn until(&mut self, words: &str) {
        self.until_holds(&format!("document.body.innerText.includes({})", json!(words)));
    }

    /// Waits until an expression is true on the page.
    pub fn until_holds(&mut self, expression: &str) {
        self.eval(&format!(
            "new Promise(done => {{ const look = () => {expression} ? done(true) : setTimeout(look, 50); look() }})"
        ));
    }

    /// The target of a link, as the page itself would fetch it.
    pub fn fetch(&mut self, selector: &str) -> String {
        let get = format!("fetch(document.querySelector({}).href).then(it => it.text())", json!(selector));
        self.eval(&get).as_str().unwrap_or_default().to_owned()
    }

    /// Sets the width of the window.
    pub fn resize(&mut self, width: u32) {
        done(self.chromium.resize((width, 900)));
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) {
        done(self.chromium.prefer(scheme));
    }
}
