//! What people read first: help and version.

use super::harness::weir;

const FIRST_SCREEN: &str = "\
Measures which way of waiting for I/O is faster on this machine, by how much, why, and whether the number may be believed

Usage: weir <COMMAND>

Commands:
  study    Run a study: plan, run, observe, judge, report
  doctor   What this machine can run and measure, what it cannot, and what would unlock it
  serve    Run a server on any driver
  load     Load a server and check every byte
  storage  Wait for a disk in every way, on a file or in a simulator
  top      Watch running servers: message rates, switches and CPU of each thread, hand-off, sessions
  ctl      Change a running gateway: limits, kill switches, drain
  report   Write a study's report again
  export   Print a study's data

Options:
  -h, --help     Print help
  -V, --version  Print version

Begin with:
  weir study quick                       epoll against io_uring on this machine, in about three minutes
  weir doctor                            what can run here, and what would unlock the rest
  weir serve echo --driver epoll         a server by hand, and in another terminal
  weir load echo --connections 100       its load, with every byte checked

Exit codes: 0 done, 1 failed while running, 2 wrong command line or study file, 11 inconclusive,
12 not comparable or too noisy, 13 this environment cannot run it, 130 interrupted (finished blocks are kept);
10 threshold not met and 14 no baseline are reserved: no command ends with them yet
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
        &["storage", "run"],
        &["storage", "simulate"],
        &["storage", "sweep"],
        &["storage", "capture"],
        &["report"],
        &["export"],
    ] {
        let said = weir(&[command, &["--help"]].concat());
        assert_eq!(said.code, Some(0), "{command:?}");
        assert!(said.stdout.contains("Usage: weir ") && said.stderr.is_empty(), "{command:?}");
        assert!(!said.stdout.contains("plant") && !said.stdout.contains("upervise"), "{}", said.stdout);
    }
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
