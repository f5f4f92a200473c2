//! `cargo xtask pictures`: the pictures of the documents, taken from the pages of real results by a headless Chromium.
//!
//! Reports are made by `weir report`, the other pages by `weir dashboard` over copies of the stores. `/top` shows three
//! servers under load, and `/live` a study that runs meanwhile. The list of the pictures is in `list.rs`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]

mod list;
mod process;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{chromium, chromium::Chromium, site::gallery, weir_program::WeirProgram, words::Words};
use list::{PICTURES, Picture, Source, Subject};
use process::{Child, run_study};

const MISSING: &str = "no Chromium is on the path; install one, or name it with WEIR_BROWSER";

/// Quality of a picture, of 100: letters have no visible edges around them from here on.
const QUALITY: u32 = 82;

/// Most bytes of a picture: pages of documents load several of them.
pub const BYTES_MAX: u64 = 150_000;

/// Pixels around a part of a page.
const MARGIN_PX: f64 = 16.0;

/// How often a page that changes is looked at, and how many times at most.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const LOOKS_MAX: u32 = 300;

struct Options {
    results: Option<PathBuf>,
    weir: Option<PathBuf>,
    out: PathBuf,
    only: Vec<String>,
}

/// Takes the pictures; exit code 13 where no browser is installed.
pub fn run(root: &Path, words: &[&str]) -> ExitCode {
    let options = match options(root, words) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("pictures: {error}");
            return ExitCode::from(2);
        }
    };
    let Some(browser) = chromium::installed() else {
        eprintln!("pictures: {MISSING}");
        return ExitCode::from(13);
    };
    match take_all(root, &options, &browser) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pictures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options(root: &Path, words: &[&str]) -> Result<Options, String> {
    let out = root.join("docs/images");
    let mut options = Options { results: None, weir: None, out, only: Vec::new() };
    let mut words = Words::new(words);
    while let Some(flag) = words.next() {
        match flag {
            "--results" => options.results = Some(words.value(flag)?.into()),
            "--weir" => options.weir = Some(words.value(flag)?.into()),
            "--out" => options.out = words.value(flag)?.into(),
            "--only" => options.only = words.value(flag)?.split(',').map(str::to_owned).collect(),
            _ => {
                return Err(format!("{flag}: not an option; it takes --results, --weir, --out and --only"));
            }
        }
    }
    let unknown = options.only.iter().find(|name| !PICTURES.iter().any(|picture| picture.name == **name));
    match unknown {
        Some(name) => {
            let known: Vec<&str> = PICTURES.iter().map(|picture| picture.name).collect();
            Err(format!("--only {name}: not a picture; there are {}", known.join(", ")))
        }
        None => Ok(options),
    }
}

/// What the pictures are taken with.
struct Studio {
    weir: WeirProgram,
    browser: Chromium,
    /// A folder for what is made on the way.
    work: PathBuf,
    /// Copies of the runs.
    runs: Vec<PathBuf>,
    dashboard: Child,
    /// Servers and loads of `/top`.
    servers: Vec<Child>,
}

fn take_all(root: &Path, options: &Options, browser: &Path) -> Result<(), String> {
    let weir = WeirProgram::prepare(root, options.weir.as_deref())?;
    let work = root.join("target/pictures");
    let shown = work.join("shown");
    emptied(&shown)?;
    let results = match &options.results {
        Some(results) => results.clone(),
        None => measured(&weir, &work)?,
    };
    let runs =
        gallery::runs(&results)?.iter().map(|run| copied(run, &shown)).collect::<Result<Vec<_>, _>>()?;
    let name = format!("@weir-pictures-{}", std::process::id());
    let sockets = ["uring", "epoll", "http"].map(|server| format!("{name}-{server}"));
    let mut command = Command::new(&weir.path);
    command.arg("dashboard").arg(&shown).args(["--listen", "127.0.0.1:0", "--lang", "en"]);
    command.args(sockets.iter().flat_map(|socket| ["--stats", socket]));
    let dashboard = Child::start(&mut command)?;
    let profile = work.join("profile");
    emptied(&profile)?;
    let browser = Chromium::start(browser, &profile)?;
    let mut studio = Studio { weir, browser, work, runs, dashboard, servers: Vec::new() };
    studio.browser.call("Emulation.setScrollbarsHidden", &json!({ "hidden": true }))?;
    fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    let is_wanted =
        |picture: &&Picture| options.only.is_empty() || options.only.iter().any(|it| it == picture.name);
    for picture in PICTURES.iter().filter(is_wanted) {
        let image = studio.take(picture, &sockets)?;
        let file = options.out.join(picture.file());
        fs::write(&file, &image).map_err(|error| format!("{}: {error}", file.display()))?;
        println!("{}: {} kB", file.display(), image.len() / 1000);
        if image.len() as u64 > BYTES_MAX {
            return Err(format!("{}: more than {BYTES_MAX} bytes; lower its height", picture.name));
        }
    }
    Ok(())
}

/// An empty folder in the place of whatever is there.
fn emptied(folder: &Path) -> Result<(), String> {
    let removed = match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir_all(folder),
    };
    removed.map_err(|error| format!("{}: {error}", folder.display()))
}

/// Runs short plans of the studies that the pictures show, unless their results are there from an earlier call.
fn measured(weir: &WeirProgram, work: &Path) -> Result<PathBuf, String> {
    let results = work.join("results");
    let plans: [(&str, &[&str]); 4] = [
        ("quick-1", &["quick"]),
        ("quick-2", &["quick"]),
        ("tps-1", &["tps", "--levels", "quick"]),
        ("gateway-1", &["gateway"]),
    ];
    for (name, plan) in plans {
        let run = results.join(name);
        if !run.join("comment.md").is_file() {
            emptied(&run)?;
            println!("weir study {} ...", plan.join(" "));
            run_study(Command::new(&weir.path).arg("study").args(plan).arg("--out").arg(&run))?;
        }
    }
    Ok(results)
}

/// The store of a run in another folder: pictures leave results as they are.
fn copied(run: &Path, to: &Path) -> Result<PathBuf, String> {
    let name = run.file_name().ok_or_else(|| format!("{}: it has no name", run.display()))?;
    let copy = to.join(name);
    emptied(&copy)?;
    for file in ["study.db", "study.db-wal"] {
        let from = run.join(file);
        if from.is_file() {
            fs::copy(&from, copy.join(file)).map_err(|error| format!("{}: {error}", from.display()))?;
        }
    }
    Ok(copy)
}

impl Studio {
    fn take(&mut self, picture: &Picture, sockets: &[String]) -> Result<Vec<u8>, String> {
        self.browser.prefer(picture.scheme)?;
        self.browser.resize(picture.size_px)?;
        if picture.source == Source::Servers && self.servers.is_empty() {
            self.servers = process::servers_under_load(&self.weir, sockets)?;
        }
        let is_running = picture.source == Source::Running;
        if is_running {
            // A study beside a load would be one of a busy machine.
            self.servers.clear();
        }
        let folder = self.work.join("shown/running");
        let running = is_running.then(|| process::RunningStudy::start(&self.weir, &folder)).transpose()?;
        let address = self.address(picture)?;
        self.browser.go(&address)?;
        if let Some(condition) = picture.source.is_ready() {
            self.wait_for(condition)?;
        }
        let image = self.shot(picture);
        drop(running);
        image
    }

    /// Where the page is.
    fn address(&self, picture: &Picture) -> Result<String, String> {
        let own = |path: &str| format!("{}{path}lang={}", self.dashboard.address, picture.language);
        Ok(match picture.source {
            Source::Report(study) => {
                let run = self.runs_of(study)?[0];
                let pages = self.work.join("pages").join(picture.name);
                let words = ["--quiet", "--lang", picture.language];
                let (run, out) = (run.to_string_lossy(), pages.to_string_lossy());
                self.weir.output(&[&["report", &run, "--out", &out][..], &words[..]].concat())?;
                format!("file://{}", pages.join("report.html").display())
            }
            Source::Compared(study) => {
                let runs = self.runs_of(study)?;
                let [one, other, ..] = &runs[..] else {
                    return Err(format!("{}: it needs two runs of {study}", picture.name));
                };
                let name = |run: &Path| run.file_name().unwrap_or_default().to_string_lossy().into_owned();
                own(&format!("compare?a={}&b={}&", name(one), name(other)))
            }
            Source::List => own("?"),
            Source::Servers => own("top?"),
            Source::Running => own("live?"),
        })
    }

    /// Runs whose folders begin with the name of a study, by name.
    fn runs_of(&self, study: &str) -> Result<Vec<&Path>, String> {
        let is_of =
            |run: &&PathBuf| run.file_name().is_some_and(|name| name.to_string_lossy().starts_with(study));
        let runs: Vec<&Path> = self.runs.iter().filter(is_of).map(PathBuf::as_path).collect();
        if runs.is_empty() {
            return Err(format!(
                "--results: no folder begins with {study}; without --results it is measured"
            ));
        }
        Ok(runs)
    }

    fn wait_for(&mut self, condition: &str) -> Result<(), String> {
        for _ in 0..LOOKS_MAX {
            if self.browser.eval(condition)?.as_bool() == Some(true) {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        Err(format!("the page did not become ready: {condition}"))
    }

    /// The picture of the page, or of a part of it, at most as high as its window.
    fn shot(&mut self, picture: &Picture) -> Result<Vec<u8>, String> {
        let place = match picture.subject {
            Subject::Top => "document.documentElement".to_owned(),
            Subject::Part(selector) => format!("document.querySelector({})", json!(selector)),
        };
        let box_of = format!(
            "(() => {{ const it = {place}.getBoundingClientRect(); return [it.left + scrollX, it.top + scrollY, \
             it.width, it.height] }})()"
        );
        let found = self.browser.eval(&box_of)?;
        let side = |place: usize| found[place].as_f64().unwrap_or_default();
        let (page_width, most) = (f64::from(picture.size_px.0), f64::from(picture.size_px.1));
        let margin = if picture.subject == Subject::Top { 0.0 } else { MARGIN_PX };
        let left = (side(0) - margin).max(0.0);
        let top = (side(1) - margin).max(0.0);
        let width = (side(2) + 2.0 * margin).min(page_width - left);
        let height = (side(3) + 2.0 * margin).min(most);
        let clip = json!({ "x": left, "y": top, "width": width, "height": height, "scale": 1 });
        let asked =
            json!({ "format": "webp", "quality": QUALITY, "clip": clip, "captureBeyondViewport": true });
        let taken = self.browser.call("Page.captureScreenshot", &asked)?;
        let text = taken.get("data").and_then(Value::as_str).unwrap_or_default();
        bytes_of_base64(text).ok_or_else(|| format!("{}: the browser sent no image", picture.name))
    }
}

/// The bytes of a text in base64; `None` for another text, and for an empty one.
fn bytes_of_base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for group in text.chunks(4) {
        let mut bits = 0_u32;
        for place in 0..4 {
            let digit = match group.get(place) {
                Some(letter) => ALPHABET.iter().position(|it| it == letter)?,
                None => 0,
            };
            bits = (bits << 6) | u32::try_from(digit).ok()?;
        }
        let whole = bits.to_be_bytes();
        bytes.extend(whole.get(1..group.len())?);
    }
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_its_padding() {
        let text = |it: &str| bytes_of_base64(it).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(text("V2Vpcg==").as_deref(), Some("Weir"));
        assert_eq!(text("V2VpcnM=").as_deref(), Some("Weirs"));
        assert_eq!(text("V2VpcnMh").as_deref(), Some("Weirs!"));
        assert_eq!([text(""), text("V2*p")], [None, None]);
    }

    #[test]
    fn an_unknown_option_or_picture_is_named_with_those_there_are() {
        let refused = |words: &[&str]| options(Path::new("/"), words).err().unwrap_or_default();
        assert!(refused(&["--result", "x"]).contains("it takes --results"), "{}", refused(&["--result"]));
        let unknown = refused(&["--only", "quick,nothing"]);
        assert!(unknown.starts_with("--only nothing: not a picture; there are quick, "), "{unknown}");
    }
}
