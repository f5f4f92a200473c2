//! io_uring as an older kernel would allow it: a server that leaves features unused, one that is refused, and the arms
//! of a study.

use std::io::{Read, Write};

use weir_record::kernel::KernelVersion;

use super::{
    harness::{Running, Server, expect_refusal, stats, until, weir},
    serve::stats_name,
};

/// Whether this kernel is at least this new; prints the skipped test if it is not.
fn is_at_least(version: &str) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let wanted: KernelVersion = version.parse().expect("a version");
    let is_newer = KernelVersion::of_release(&release).is_some_and(|running| running >= wanted);
    if !is_newer {
        println!("skipped: Linux {release}, and it takes {version}");
    }
    is_newer
}

#[test]
fn a_server_runs_as_on_an_older_kernel_and_hears_of_every_send() {
    const MESSAGES: u64 = 200;
    if !is_at_least("5.17") {
        return;
    }
    let echoed = |options: &[&str], test: &str| {
        let name = stats_name(test);
        let words = [&["--stats-socket", &name], options].concat();
        let server = Server::on_driver("uring", &words)?;
        let mut client = server.connect();
        for _ in 0..MESSAGES {
            client.write_all(b"k").expect("it is open");
            client.read_exact(&mut [0]).expect("it is answered");
        }
        drop(client);
        until("the end of the connection", || stats(&name).total.closes == 1);
        let total = stats(&name).total;
        assert_eq!((total.bytes_received, server.terminate()), (MESSAGES, 0));
        Some((total.completions, total.receives + total.sends))
    };
    let Some((completions, operations)) = echoed(&[], "as-here") else { return };
    assert!(completions < operations, "{completions} completions of {operations} operations");
    let as_on_5_15 = ["--option", "as-on-kernel=5.15"];
    let (completions, operations) = echoed(&as_on_5_15, "as-on-5-15").expect("it runs here");
    assert!(completions >= operations, "{completions} completions of {operations} operations");
}

#[test]
fn what_an_older_kernel_refuses_is_refused_with_what_it_lacks() {
    let serve = ["serve", "echo", "--listen", "127.0.0.1:0", "--driver"];
    if Server::on_driver("uring", &[]).is_none() {
        return;
    }
    let older = weir(&[&serve[..], &["uring", "--option", "as-on-kernel=5.7"]].concat());
    expect_refusal(&older, 13, &["uring", "5.11", "IORING_ENTER_EXT_ARG"]);
    let automatic =
        Running::weir(&["serve", "echo", "--listen", "127.0.0.1:0", "--option", "as-on-kernel=5.7"]);
    let told = automatic.next_error_line().expect("it says what it chose");
    assert!(
        told.starts_with("driver auto: epoll (uring does not run here: ") && told.contains("5.11"),
        "{told}"
    );
}

#[test]
fn older_kernels_are_arms_of_a_study_and_one_that_cannot_run_is_missing_by_name() {
    // The last lines name a kernel in which nothing was left to mask.
    if !is_at_least("6.15") || Server::on_driver("uring", &[]).is_none() {
        return;
    }
    let words = ["study", "tps", "--levels", "quick", "--kernels", "5.19,5.7", "--dry-run"];
    let plan = weir(&words);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    assert!(
        plan.stdout.contains("uring-as-on-5.19") && plan.stdout.contains("as-on-kernel"),
        "{}",
        plan.stdout
    );
    let (_, missing) = plan.stdout.split_once("missing here").expect("one is");
    let missing = missing.split("\n\n").next().unwrap_or_default();
    assert!(missing.contains("uring-as-on-5.7: ") && missing.contains("5.11"), "{missing}");
    assert!(!missing.contains("5.19"), "{missing}");
    assert!(plan.stdout.contains("epoll-as-on-5.7") && !missing.contains("epoll"), "{}", plan.stdout);
    let same = weir(&["study", "tps", "--kernels", "6.15", "--dry-run"]);
    expect_refusal(&same, 2, &["uring-as-on-6.15", "after 6.15", "name an older kernel"]);
}
