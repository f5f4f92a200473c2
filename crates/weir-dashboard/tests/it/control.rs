//! Starting and stopping a study: who may, what a hostile page cannot do, and that nothing outlives the dashboard. The
//! program that is started stands in for `weir study`: it writes down its arguments, and ends on request.

use std::{
    fs::{self, File},
    io::Write,
    net::TcpStream,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::OnceLock,
    thread,
};

use weir_dashboard::{ControlSettings, Dashboard, FAILURES_MAX, FORM_BYTES_MAX, Origin, Settings, Token};
use weir_report::Language;

use crate::{
    client::{Answer, Running, until},
    results::{folder, session_on, study},
};

const TOKEN: &str = "correct-horse-battery-staple";

/// Called as `study --quiet --lang LANGUAGE --out FOLDER [--levels=PLAN] -- STUDY`.
const PROGRAM: &str = "#!/bin/sh
case \"$8\" in
  quick) echo 'weir: no <room> on this disk' >&2; exit 1 ;;
  survey) trap '' INT TERM ;;
  why) trap 'echo asked >> \"$6/asked\"' INT TERM ;;
  *) trap 'echo asked > \"$6/asked\"; exit 130' INT TERM ;;
esac
mkdir -p \"$6\"
mkfifo \"$6/held\"
tr '\\0' ' ' < /proc/$$/environ > \"$6/environment\"
echo $$ > \"$6/pid\"
echo \"$@\" > \"$6/said\"
mv \"$6/said\" \"$6/arguments\"
until read -r line <> \"$6/held\"; do :; done
";

/// A results folder, study files, and a dashboard that can act.
struct Lab {
    results: PathBuf,
    studies: PathBuf,
    dashboard: Running,
}

fn control(root: &Path, origins: &[&str]) -> ControlSettings {
    let studies = root.join("studies");
    fs::create_dir(&studies).expect("a folder can be made");
    fs::write(studies.join("tiny.toml"), "").expect("a file can be written");
    fs::write(root.join("outside.toml"), "").expect("a file can be written");
    symlink(root.join("outside.toml"), studies.join("link.toml")).expect("a link can be made");
    let token = root.join("token");
    write(&token, TOKEN, 0o600);
    let token = Token::read(&token).unwrap_or_else(|error| panic!("{error}"));
    let origins = origins.iter().map(|text| Origin::parse(text).expect("an origin")).collect();
    ControlSettings { token, program: program(), studies: Some(studies), origins }
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode can be set");
}

/// The program of all tests. It is written before any of them starts a process: a process that another thread starts
/// while a file is open for writing keeps it open for a moment, and then the file cannot be run.
fn program() -> PathBuf {
    static WRITTEN: OnceLock<PathBuf> = OnceLock::new();
    let write_it = || {
        let path = folder("control-program").join("program");
        write(&path, PROGRAM, 0o700);
        path
    };
    WRITTEN.get_or_init(write_it).clone()
}

impl Lab {
    fn new(name: &str) -> Self {
        Self::on(name, "127.0.0.1:0", &[])
    }

    fn on(name: &str, listen: &str, origins: &[&str]) -> Self {
        let root = folder(name);
        let results = root.join("results");
        fs::create_dir(&results).expect("a folder can be made");
        let control = control(&root, origins);
        let dashboard = Running::with(&results, listen, Some(control));
        Self { results, studies: root.join("studies"), dashboard }
    }

    fn host(&self) -> String {
        format!("Host: {}", self.dashboard.address)
    }

    fn origin(&self) -> String {
        format!("Origin: http://{}", self.dashboard.address)
    }

    /// Sends a form as a page of the dashboard's own does.
    fn act(&self, path: &str, cookie: &str, form: &str) -> Answer {
        let (host, origin, cookie) = (self.host(), self.origin(), format!("Cookie: {cookie}"));
        self.dashboard.post(path, &[&host, &origin, "Sec-Fetch-Site: same-origin", &cookie], form)
    }

    /// Logs in, and returns the browser's cookie.
    fn log_in(&self) -> String {
        let answer = self.act("/login", "other=1", &format!("token={TOKEN}"));
        assert_eq!((answer.status, answer.header("location")), (303, "/"), "{}", answer.body);
        let cookie = answer.header("set-cookie");
        let (pair, attributes) = cookie.split_once("; ").expect("attributes");
        assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Strict; Max-Age=43200");
        assert!(!cookie.contains(TOKEN));
        pair.to_owned()
    }

    fn list(&self, cookie: &str) -> String {
        let page = self.dashboard.ask(&["GET / HTTP/1.1", &self.host(), &format!("Cookie: {cookie}")]);
        assert!(page.header("content-security-policy").contains("frame-ancestors 'none'"));
        assert_eq!(page.header("cache-control"), "no-store");
        assert!(!page.body.contains(TOKEN), "the token is nowhere");
        page.body
    }

    /// The folder of the started study, when its program waits.
    fn started(&self) -> PathBuf {
        let folders = || fs::read_dir(&self.results).expect("a folder").flatten().map(|entry| entry.path());
        until("a study", || folders().any(|folder| folder.join("arguments").exists()));
        folders().find(|folder| folder.join("arguments").exists()).expect("it is there")
    }

    /// Nothing was started.
    fn expect_nothing(&self) {
        assert_eq!(fs::read_dir(&self.results).expect("a folder").count(), 0);
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn process(folder: &Path) -> PathBuf {
    Path::new("/proc").join(text(&folder.join("pid")).trim())
}

#[test]
fn whoever_gives_the_token_starts_a_study_sees_it_and_stops_it() {
    let lab = Lab::new("control");
    let before = lab.list("");
    assert!(before.contains("action=\"/login\"") && !before.contains("action=\"/start\""), "{before}");
    let cookie = lab.log_in();
    let ready = lab.list(&format!("theme=dark; {cookie}"));
    assert!(ready.contains("<option value=\"quick\">") && ready.contains("<option value=\"tiny.toml\">"));
    assert!(!ready.contains("link.toml") && !ready.contains("/login"), "{ready}");

    let answer = lab.act("/start?lang=ko", &cookie, "study=tiny.toml");
    assert_eq!((answer.status, answer.header("location")), (303, "/live?lang=ko"), "{}", answer.body);
    let out = lab.started();
    let name = out.file_name().and_then(|name| name.to_str()).expect("plain text");
    assert!(name.starts_with("tiny-20"), "{name}");
    let file = lab.studies.canonicalize().expect("a folder").join("tiny.toml");
    let asked = format!("study --quiet --lang ko --out {} -- {}\n", out.display(), file.display());
    assert_eq!(text(&out.join("arguments")), asked);
    assert!(!text(&out.join("environment")).contains(TOKEN), "a child knows nothing of the token");
    let process = process(&out);
    assert!(process.exists());

    let runs = lab.list(&cookie);
    assert!(runs.contains("tiny.toml runs.") && runs.contains("action=\"/stop\""), "{runs}");
    assert!(runs.contains(&format!("weir study --resume {}", out.display())), "{runs}");
    let second = lab.act("/start", &cookie, "study=tiny.toml");
    assert_eq!(second.status, 409, "{}", second.body);
    assert_eq!(lab.act("/stop", &cookie, "").status, 303);
    // It stored nothing that another session could resume.
    until("the end", || lab.list(&cookie).contains("exit code 130"));
    assert_eq!(text(&out.join("asked")), "asked\n");
    assert!(!process.exists(), "it was reaped");
    assert_eq!(lab.act("/stop", &cookie, "").status, 409, "nothing runs any more");

    assert_eq!(lab.act("/logout", &cookie, "").status, 303);
    assert!(lab.list(&cookie).contains("action=\"/login\""));
    assert_eq!(lab.act("/start", &cookie, "study=tiny.toml").status, 401);
    let metrics = lab.dashboard.get("/metrics").body;
    assert!(metrics.contains("weir_dashboard_studies_started_total 1"), "{metrics}");
    assert!(
        metrics.contains("weir_dashboard_actions_refused_total 3") && !metrics.contains(TOKEN),
        "{metrics}"
    );
}

#[test]
fn a_wrong_token_is_told_of_by_its_field_and_asked_for_again() {
    let lab = Lab::new("wrong-token");
    for (language, words) in
        [("en", "This is not the token."), ("ko", "토큰이 올바르지 않습니다."), ("zh", "令牌不正确。")]
    {
        let answer = lab.act(&format!("/login?lang={language}"), "", "token=a%20guess");
        assert_eq!(answer.status, 401, "{}", answer.body);
        let field = "aria-invalid=\"true\" aria-describedby=\"wrong-token\"";
        let form = format!("<form method=\"post\" action=\"/login?lang={language}\">");
        for expected in [words, field, &form, "id=\"wrong-token\" role=\"alert\""] {
            assert!(answer.body.contains(expected), "no {expected}: {}", answer.body);
        }
        assert!(!answer.body.contains("a guess"), "what was given is not shown: {}", answer.body);
    }
    assert!(!lab.list("").contains("aria-invalid"), "nothing is wrong yet");
    lab.expect_nothing();
}

#[test]
fn a_hostile_page_cannot_start_or_stop_anything() {
    let lab = Lab::new("hostile");
    let cookie = format!("Cookie: {}", lab.log_in());
    let (host, origin) = (lab.host(), lab.origin());
    let (token, form) = (format!("Authorization: Bearer {TOKEN}"), "study=tiny.toml");
    let port = lab.dashboard.address.port();
    let other_port = format!("Origin: http://127.0.0.1:{}", port ^ 1);
    for (status, lines) in [
        (403, vec![&*host, "Origin: http://evil.example", &cookie]),
        (403, vec![&*host, "Origin: null", &cookie]),
        (403, vec![&*host, &other_port, &cookie]),
        (403, vec![&*host, &origin, "Sec-Fetch-Site: cross-site", &cookie]),
        (403, vec![&*host, &origin, "Sec-Fetch-Site: same-site", &cookie]),
        (403, vec![&*host, "Origin: http://evil.example", &token]),
        (401, vec![&*host, &origin]),
        (401, vec![&*host, &cookie]),
        (401, vec![&*host, &origin, "Cookie: weir-session-1=x"]),
        // A name that was made to resolve to this address, with its own page and cookie.
        (421, vec!["Host: evil.example", "Origin: http://evil.example", &cookie]),
        (421, vec!["Host: evil.example", &token]),
    ] {
        for path in ["/start", "/stop", "/logout"] {
            let answer = lab.dashboard.post(path, &lines, form);
            assert_eq!(answer.status, status, "{path} {lines:?}: {}", answer.body);
        }
    }
    for lines in [vec![&*host], vec![&*host, "Origin: http://evil.example"]] {
        let answer = lab.dashboard.post("/login", &lines, &format!("token={TOKEN}"));
        assert_eq!((answer.status, answer.header("set-cookie")), (403, ""), "{lines:?}");
    }
    for path in ["/start", "/stop", "/login", "/logout"] {
        let link = lab.dashboard.ask(&[&format!("GET {path}?study=tiny.toml HTTP/1.1"), &host, &cookie]);
        assert_eq!(link.status, 405, "a link does nothing: {path}");
    }
    lab.expect_nothing();
}

#[test]
fn a_program_gives_the_token_with_each_request_and_guessing_has_a_limit() {
    let lab = Lab::new("program");
    let cookie = lab.log_in();
    let host = lab.host();
    let ask = |token: &str, path: &str, form: &str| {
        lab.dashboard.post(path, &[&host, &format!("authorization: bearer {token}")], form)
    };
    assert_eq!(ask(TOKEN, "/stop", "").status, 409, "it may, and nothing runs");
    let guess = || ask("correct-horse-battery-stapl3", "/start", "study=tiny.toml");
    for _ in 0..FAILURES_MAX {
        let answer = guess();
        assert_eq!((answer.status, answer.header("www-authenticate")), (401, "Bearer"), "{}", answer.body);
    }
    // A guess counts for a minute: on a machine that stood still so long, more of them are read.
    let mut answer = guess();
    until("the limit of guesses", || {
        let is_refused = answer.status == 429;
        if !is_refused {
            answer = guess();
        }
        is_refused
    });
    assert_eq!(answer.header("retry-after"), "60", "{}", answer.body);
    for (language, words) in [
        ("en", "The right one still works."),
        ("ko", "올바른 토큰은 계속 쓸 수 있습니다."),
        ("zh", "正确的令牌仍可使用。"),
    ] {
        let path = format!("/login?lang={language}");
        let answer = lab.act(&path, "", "token=correct-horse-battery-stapl3");
        assert_eq!(answer.status, 429, "{}", answer.body);
        assert!(answer.body.contains(words), "{}", answer.body);
    }
    lab.expect_nothing();
    // Wrong guesses do not lock out readers who know the token or are logged in.
    assert_eq!(ask(TOKEN, "/stop", "").status, 409);
    lab.log_in();
    assert_eq!(lab.act("/start", &cookie, "study=tiny.toml").status, 303);
    lab.started();
    assert_eq!(lab.act("/stop", &cookie, "").status, 303);
}

#[test]
fn only_what_is_offered_can_be_started_and_one_at_a_time() {
    let lab = Lab::new("offered");
    let cookie = lab.log_in();
    for name in [
        "",
        "../outside.toml",
        "link.toml",
        "/etc/passwd",
        "--help",
        "tiny",
        "%2e%2e%2foutside.toml",
        "quick%00",
    ] {
        let answer = lab.act("/start", &cookie, &format!("study={name}"));
        assert_eq!(answer.status, 404, "{name}: {}", answer.body);
    }
    let other = study(&lab.results, ("other", "quick"), 10);
    let session = session_on(&other);
    assert_eq!(lab.act("/start", &cookie, "study=tiny.toml").status, 409, "a session of a terminal runs");
    assert!(lab.list(&cookie).contains("was not started here works on other"));
    drop(session);
    let start = || lab.act("/start", &cookie, "study=tiny.toml").status;
    let mut answers: Vec<u16> = thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        all.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    answers.sort_unstable();
    assert_eq!(answers, [&[303][..], &[409; 7]].concat());
    lab.started();
    assert_eq!(lab.act("/stop", &cookie, "").status, 303);
}

#[test]
fn a_study_is_started_with_a_plan_that_it_has_and_no_other() {
    let lab = Lab::new("levels");
    let cookie = lab.log_in();
    let list = lab.list(&cookie);
    for levels in ["quick", "standard", "full"] {
        let option = format!("<option value=\"tps/{levels}\">tps --levels {levels}, about ");
        assert!(list.contains(&option), "{list}");
    }
    let question = "<dt>quick</dt><dd>Is epoll or io_uring cheaper for an echo server on this machine?</dd>";
    assert!(
        list.contains(question) && list.matches("<dt>tps").count() == 2,
        "once each, not by plan: {list}"
    );
    for name in ["tps/huge", "tps%2F", "quick/full", "tps/--help", "tps/quick%20--seed"] {
        let answer = lab.act("/start", &cookie, &format!("study={name}"));
        assert_eq!(answer.status, 404, "{name}: {}", answer.body);
        assert!(answer.body.contains("no plan of that name"), "{name}: {}", answer.body);
    }
    lab.expect_nothing();
    assert_eq!(lab.act("/start", &cookie, "study=tps%2Fquick").status, 303);
    let out = lab.started();
    let asked = format!("study --quiet --lang en --out {} --levels=quick -- tps\n", out.display());
    assert_eq!(text(&out.join("arguments")), asked);
    assert!(lab.list(&cookie).contains("tps --levels quick runs."));
    assert_eq!(lab.act("/stop", &cookie, "").status, 303);
}

#[test]
fn a_form_that_is_too_long_or_none_is_refused() {
    let lab = Lab::new("forms");
    let cookie = lab.log_in();
    let whole = |length: usize| format!("study={}", "x".repeat(length - "study=".len()));
    assert_eq!(lab.act("/start", &cookie, &whole(FORM_BYTES_MAX)).status, 404, "it was read");
    assert_eq!(lab.act("/start", &cookie, &whole(FORM_BYTES_MAX + 1)).status, 413);
    let (host, origin, cookie) = (lab.host(), lab.origin(), format!("Cookie: {cookie}"));
    for kind in ["Content-Type: text/plain", "Content-Type: application/json", "Accept: */*"] {
        let lines = ["POST /start HTTP/1.1", &host, &origin, &cookie, kind, "Content-Length: 15"];
        assert_eq!(lab.dashboard.send(&lines, "study=tiny.toml").status, 415, "{kind}");
    }
    lab.expect_nothing();
}

#[test]
fn a_study_that_fails_says_why_on_the_list() {
    let lab = Lab::new("failing");
    let cookie = lab.log_in();
    for _ in 0..2 {
        assert_eq!(lab.act("/start", &cookie, "study=quick").status, 303);
        until("the end", || lab.list(&cookie).contains("exit code 1"));
        assert!(
            lab.list(&cookie).contains("weir: no &lt;room&gt; on this disk"),
            "escaped, and again possible"
        );
    }
}

#[test]
fn a_dashboard_that_ends_leaves_no_process() {
    let mut lab = Lab::new("ending-study");
    let cookie = lab.log_in();
    assert_eq!(lab.act("/start", &cookie, "study=tiny.toml").status, 303);
    let out = lab.started();
    let process = process(&out);
    lab.dashboard.end();
    assert!(!process.exists(), "it was asked, and reaped");
    assert!(out.join("asked").exists());
}

#[test]
fn a_study_that_does_not_end_when_it_is_asked_is_killed_at_once_if_somebody_asks_again() {
    let mut lab = Lab::new("stubborn-study");
    let cookie = lab.log_in();
    assert_eq!(lab.act("/start", &cookie, "study=survey").status, 303);
    let process = process(&lab.started());
    for _ in 0..2 {
        assert_eq!(lab.act("/stop", &cookie, "").status, 303);
    }
    assert!(lab.list(&cookie).contains("It is ending.") && process.exists());
    until("the end", || {
        lab.dashboard.stop.stop();
        lab.dashboard.has_ended()
    });
    lab.dashboard.end();
    assert!(!process.exists());
}

#[test]
fn a_study_that_a_reader_has_stopped_is_not_asked_again_when_the_dashboard_ends() {
    let mut lab = Lab::new("stopped-before");
    let cookie = lab.log_in();
    assert_eq!(lab.act("/start", &cookie, "study=why").status, 303);
    let out = lab.started();
    assert_eq!(lab.act("/stop", &cookie, "").status, 303);
    until("the request", || out.join("asked").exists());
    lab.dashboard.stop.stop();
    until("the end of the listener", || TcpStream::connect(lab.dashboard.address).is_err());
    // It has written its report.
    let held = File::options().write(true).open(out.join("held")).expect("it reads");
    (&held).write_all(b"on\n").expect("it reads");
    // `end` would ask the dashboard a second time. Then it does not wait for the report.
    until("the end of the dashboard", || lab.dashboard.has_ended());
    lab.dashboard.end();
    assert_eq!(text(&out.join("asked")), "asked\n", "once");
}

#[test]
fn on_an_address_that_others_reach_only_named_origins_may_act() {
    let root = folder("beyond-refused");
    let settings = |origins: &[&str]| Settings {
        folder: root.clone(),
        listen: "0.0.0.0:0".parse().expect("an address"),
        hosts: Vec::new(),
        language: Language::English,
        control: Some(ControlSettings {
            origins: origins.iter().filter_map(|text| Origin::parse(text)).collect(),
            studies: Some(root.join("nowhere")),
            ..control(&folder("beyond-token"), &[])
        }),
        records: None,
        stats: Vec::new(),
        finds_servers: false,
    };
    let told = |origins: &[&str]| {
        let refused = Dashboard::bind(settings(origins)).err().expect("it does not start");
        refused.to_string()
    };
    assert!(told(&[]).contains("add --origin"), "{}", told(&[]));
    assert!(told(&["http://own.example"]).starts_with("--studies "), "{}", told(&["http://own.example"]));

    let lab = Lab::on("beyond", "0.0.0.0:0", &["http://own.example:3000", "https://own.example"]);
    let form = format!("token={TOKEN}");
    let port = lab.dashboard.address.port();
    let (address, named) = (format!("127.0.0.1:{port}"), "Host: own.example:3000");
    let by_address = lab.dashboard.post(
        "/login",
        &[&format!("Host: {address}"), &format!("Origin: http://{address}")],
        &form,
    );
    assert_eq!(by_address.status, 403, "the same host is not enough here: {}", by_address.body);
    let plain = lab.dashboard.post("/login", &[named, "Origin: http://own.example:3000"], &form);
    assert_eq!(plain.status, 303, "its name is one that requests may be for: {}", plain.body);
    assert!(!plain.header("set-cookie").contains("Secure"));
    let secure = lab.dashboard.post("/login", &["Host: own.example", "Origin: https://own.example"], &form);
    assert!(secure.header("set-cookie").ends_with("; Secure"), "{}", secure.head);
}
