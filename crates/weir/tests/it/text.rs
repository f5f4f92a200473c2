//! The first texts that people read: help and version.

use super::harness::{expect_refusal, folder, shell, shown, weir};

const FIRST_SCREEN: &str = "\
Measures which I/O model is faster on this machine, by how much, why, and whether the number may be
believed

Usage: weir <COMMAND>

Commands:
  study        Run a study: plan, run, observe, judge, report
  compare      Compare commands that end: which costs less CPU time, by how much, and whether that
               may be believed
  doctor       Show what this machine can run and measure, what it cannot, and what would unlock it
  serve        Run a server on any driver
  load         Load a server and check every byte
  storage      Wait for a disk in every way, on a file or in a simulator
  top          Watch running servers: message rates, switches and CPU of each thread, hand-off,
               sessions
  observe      Observe any process: its threads, and with --trace every system call, where time
               goes, and what calls for I/O cost
  ctl          Change a running gateway: limits, kill switches, drain
  journal      Read, check and repair the journals of a gateway or an exchange
  report       Write the report of a study, or of an observation, again
  export       Print a study's data
  history      Show the results of stored runs by commit: effects with intervals against a fixed
               reference
  dashboard    Show stored studies in a browser: a list, reports, and charts that other pages may
               frame
  completions  Print a script that completes commands in a shell
  man          Print a manual page, or write all of them
  help         Print this message or the help of the given subcommand(s)

Options:
  -h, --help     Print help
  -V, --version  Print version

Begin with:
  weir study quick                  epoll against io_uring, in 90 seconds
  weir compare 'old x' 'new x'      two programs of yours, by CPU time
  weir doctor                       what can run here, what would unlock the rest
  weir serve echo --driver epoll    a server, and in another terminal
  weir load echo -c 100             its load, with every byte checked
  weir top                          what it does, thread by thread
  weir dashboard                    all studies in a browser, on port 3000
  weir observe -p PID --trace       where the time of any process goes, call by call
  weir help serve gateway           about a command

Exit codes: 0 done, 1 failed while running, 2 wrong command line or study file, 11 inconclusive, 12
not comparable or too noisy, 13 this environment cannot run it, 130 interrupted (finished blocks are
kept); 10 a threshold is not met (--max-errors, --fail-if); 14 there is no baseline to compare with;
15 a server hung when it was asked to end
";

#[test]
fn the_first_screen_says_where_to_begin() {
    let asked = weir(&["--help"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), FIRST_SCREEN));
    let bare = weir(&[]);
    assert_eq!((bare.code, bare.stderr.as_str()), (Some(2), FIRST_SCREEN));
}

#[test]
fn every_command_explains_itself_and_hidden_ones_stay_hidden() {
    for command in [
        &["study"][..],
        &["doctor"],
        &["serve", "echo"],
        &["serve", "http"],
        &["load", "echo"],
        &["observe"],
        &["storage", "run"],
        &["storage", "simulate"],
        &["storage", "capture"],
        &["report"],
        &["export"],
        &["dashboard"],
    ] {
        let said = weir(&[command, &["--help"]].concat());
        assert_eq!(said.code, Some(0), "{command:?}");
        assert!(said.stdout.contains("Usage: weir ") && said.stderr.is_empty(), "{command:?}");
        assert!(!said.stdout.contains("plant") && !said.stdout.contains("upervise"), "{}", said.stdout);
    }
}

#[test]
fn help_is_a_command_too_and_fits_a_terminal() {
    for words in [&[][..], &["serve"], &["serve", "gateway"], &["storage", "run"]] {
        let asked = weir(&[&["help"], words].concat());
        let flag = weir(&[words, &["--help"]].concat());
        assert_eq!((asked.code, asked.stdout.as_str()), (Some(0), flag.stdout.as_str()), "{words:?}");
        let widest = asked.stdout.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|columns| columns <= 100), "{words:?}: {}", asked.stdout);
    }
}

#[test]
fn every_shell_completes_every_command_and_no_hidden_one() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = weir(&["completions", shell]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{shell}");
        for word in ["study", "gateway", "stats-socket", "completions"] {
            assert!(said.stdout.contains(word), "no {word} for {shell}");
        }
        assert!(!said.stdout.contains("supervise") && !said.stdout.contains("plant"), "{shell}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let said = weir(&["completions", shell]);
        for word in ["quick", "http-confounders", "uring-bundle", "blocking", "libaio"] {
            assert!(said.stdout.contains(word), "no {word} for {shell}");
        }
    }
    let folder = folder("completions");
    let bash = folder.join("weir.bash");
    std::fs::write(&bash, weir(&["completions", "bash"]).stdout).expect("it is written");
    let line = "COMP_WORDS=(weir study htt); COMP_CWORD=2; _weir weir htt study; echo \"${COMPREPLY[*]}\"";
    let said = shell(&format!("command -v bash >/dev/null || exit 9; bash -c '. {}; {line}'", shown(&bash)));
    match said.code {
        Some(9) => println!("skipped: there is no bash"),
        _ => assert_eq!(said.stdout, "http http-confounders\n", "{}", said.stderr),
    }
}

#[test]
fn there_is_a_manual_page_of_every_command() {
    let root = weir(&["man"]);
    assert!(root.code == Some(0) && root.stdout.contains(".TH weir 1"), "{}", root.stdout);
    assert!(root.stdout.contains("weir\\-serve(1)") && !root.stdout.contains("supervise"), "{}", root.stdout);
    let one = weir(&["man", "serve", "http"]);
    assert!(
        one.stdout.contains(".TH weir-serve-http 1") && one.stdout.contains("access\\-log"),
        "{}",
        one.stdout
    );
    let compare = weir(&["man", "compare"]).stdout;
    assert!(compare.contains(&format!("\"weir {}\" Weir\n", env!("CARGO_PKG_VERSION"))), "{compare}");
    let (_, below) = compare.split_once(".SH SYNOPSIS\n").expect("it has one");
    let synopsis = below.lines().next().unwrap_or_default();
    assert!(synopsis.contains("[OPTIONS] [COMMAND]..."), "{synopsis}");
    for heading in ["DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS"] {
        assert!(compare.contains(&format!("\n.SH {heading}\n")), "{compare}");
    }
    let folder = folder("man");
    let all = weir(&["man", "--out", shown(&folder)]);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    for name in ["weir", "weir-study", "weir-storage-run", "weir-serve-gateway"] {
        assert!(folder.join(format!("{name}.1")).exists(), "{name}");
    }
    expect_refusal(&weir(&["man", "serve", "smtp"]), 2, &["smtp", "echo, http, exchange, gateway"]);
}

#[test]
fn the_version_is_the_packages() {
    let said = weir(&["--version"]);
    assert_eq!(said.stdout, format!("weir {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn the_doctor_answers_in_both_forms() {
    let table = weir(&["doctor"]);
    assert_eq!(table.code, Some(0));
    for driver in ["uring", "epoll", "poll", "select", "blocking"] {
        assert!(table.stdout.contains(&format!("\n  {driver} ")), "{}", table.stdout);
    }
    let findings: serde_json::Value =
        serde_json::from_str(&weir(&["doctor", "--json"]).stdout).expect("it is JSON");
    assert!(findings.as_array().is_some_and(|findings| findings.len() > 5));
}
