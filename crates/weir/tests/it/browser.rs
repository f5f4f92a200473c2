//! The dashboard as people use it, in a real browser: a study is started with the token, watched, stopped, compared and
//! kept as a file. Skipped where no browser is.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use rustix::process::Signal;
use weir_record::run_pair::RunPair;

use super::{
    devtools::Browser,
    harness::{PATIENCE, Running, TWO_ARMS, folder, shown, study_head, until},
};

pub const TOKEN: &str = "correct-horse-battery-staple";

/// A study file that is refused when it is started.
pub const WRONG: &str = "wrong.toml";

/// A dashboard over an empty results folder, with a token and study files: a short study, a long one and a wrong one.
pub fn start(root: &Path) -> (Running, String) {
    let (results, studies, token) = (root.join("results"), root.join("studies"), root.join("token"));
    for folder in [&results, &studies] {
        fs::create_dir(folder).expect("a folder can be made");
    }
    let files = [
        ("tiny.toml", study_head(12, "2min")),
        ("long.toml", study_head(400, "1h")),
        (WRONG, study_head(12, "soon")),
    ];
    for (name, head) in files {
        fs::write(studies.join(name), head + TWO_ARMS).expect("a file can be written");
    }
    fs::write(&token, TOKEN).expect("a file can be written");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("its mode can be set");
    let words = ["dashboard", shown(&results), "--listen", "127.0.0.1:0", "--lang", "en"];
    let control = ["--token-file", shown(&token), "--studies", shown(&studies)];
    let dashboard = Running::weir(&[&words[..], &control].concat());
    let line = dashboard.next_line().expect("it says where");
    let address = line.split_whitespace().next().unwrap_or_default().trim_end_matches('/').to_owned();
    (dashboard, address)
}

/// Gives a token on the list, which leads back to it where it is the right one.
pub fn give_token(browser: &mut Browser, address: &str, language: &str, token: &str) {
    browser.go(&format!("{address}/?lang={language}"));
    browser.fill("input[name=token]", token);
    browser.click("form[action^='/login'] button");
}

/// Starts a study from the list, which leads to the live view.
pub fn begin_study(browser: &mut Browser, address: &str, name: &str) {
    browser.go(&format!("{address}/?lang=en"));
    browser.choose("select[name=study]", name);
    browser.click("form[action^='/start'] button");
}

/// Starts a study and waits until it has stored something.
pub fn start_study(browser: &mut Browser, address: &str, name: &str) {
    begin_study(browser, address, name);
    browser.until("blocks are done");
}

/// Stops the study that runs.
pub fn stop_study(browser: &mut Browser, address: &str) {
    browser.go(&format!("{address}/?lang=en"));
    browser.click("form[action^='/stop'] button");
    list_until(browser, address, "it was stopped");
}

/// Reloads the list until it contains this text.
pub fn list_until(browser: &mut Browser, address: &str, words: &str) {
    until(words, || {
        browser.go(&format!("{address}/?lang=en"));
        browser.text().contains(words)
    });
}

#[test]
fn a_study_is_started_watched_compared_kept_and_stopped_in_a_browser() {
    let Some(mut browser) = Browser::start("study") else { return };
    let root = folder("browser");
    let (mut dashboard, address) = start(&root);

    browser.go(&format!("{address}/?lang=en"));
    assert!(!browser.text().contains("Log out"));
    give_token(&mut browser, &address, "en", TOKEN);
    assert!(browser.text().contains("Log out"), "{}", browser.text());
    // A page of another site cannot act, although its reader is logged in here.
    let hostile =
        format!("<form method=post action={address}/start><input name=study value=tiny.toml><button>");
    browser.go(&format!("data:text/html,{hostile}"));
    browser.click("button");
    assert!(browser.text().contains("does not come from a page of this dashboard"), "{}", browser.text());

    for _ in 0..2 {
        start_study(&mut browser, &address, "tiny.toml");
        browser.until("has ended");
        list_until(&mut browser, &address, "it has ended");
    }
    browser.click("form[action='/compare'] button");
    let text = browser.text();
    assert!(text.contains("Two runs side by side") && text.contains("poll / epoll"), "{text}");
    let record = browser.fetch("a[href^='/compare.json']");
    let pair: RunPair = serde_json::from_str(&record).expect("it is the record");
    assert_eq!((pair.one.name.as_str(), pair.other.name.as_str()), ("tiny", "tiny"));
    browser.click("nav a[href^='/study/']");
    assert!(browser.fetch("a[href$='/figures.csv']").starts_with("cell,arm,baseline,metric,"));
    assert!(browser.fetch("a[href$='/study.json']").contains("\"schema_version\""));

    start_study(&mut browser, &address, "long.toml");
    stop_study(&mut browser, &address);
    browser.click("form[action^='/logout'] button");
    assert!(!browser.text().contains("Log out"));
    dashboard.signal(Signal::INT);
    assert_eq!(dashboard.wait(PATIENCE), 0);
}
