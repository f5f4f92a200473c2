//! A kernel that refuses io_uring, as containers do. A small C program with a seccomp filter simulates it, because the
//! filter needs calls that no safe wrapper has. A C compiler exists, or this program could not have been built.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::harness::{
    Folder, PATIENCE, Running, Said, WEIR, expect_refusal, folder, shown, study_file, study_head,
};

/// Flags with which a container allows io_uring, and otherwise nothing that containers refuse.
const OPENED: &str = "seccomp=packaging/seccomp.json";

/// Builds the wrapper in the test's folder.
fn wrapper(test: &str) -> (Folder, PathBuf) {
    let folder = folder(test);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/without_io_uring.c");
    let program = folder.join("without_io_uring");
    let built = Command::new("cc").arg("-o").arg(&program).arg(source).status().expect("cc starts");
    assert!(built.success(), "cc builds {source}");
    (folder, program)
}

fn weir(wrapper: &PathBuf, words: &[&str]) -> Said {
    let output = assert_cmd::Command::new(wrapper)
        .arg(WEIR)
        .args(words)
        .timeout(12 * PATIENCE)
        .output()
        .expect("the wrapper starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints UTF-8");
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

#[test]
fn a_refused_driver_is_named_with_its_reason_and_a_remedy() {
    let (folder, wrapper) = wrapper("refused");
    for words in [
        &["serve", "echo", "--driver", "uring", "--listen", "127.0.0.1:0"][..],
        &["load", "echo", "--driver", "uring", "--target", "127.0.0.1:1"],
    ] {
        expect_refusal(&weir(&wrapper, words), 13, &["uring", "EPERM", OPENED]);
    }
    let doctor = weir(&wrapper, &["doctor"]);
    let unlock = format!("unlock: run the container with --security-opt {OPENED}");
    assert!(doctor.stdout.contains("uring") && doctor.stdout.contains(&unlock), "{}", doctor.stdout);
    let (_, profile) = OPENED.split_once('=').expect("a flag and what it is given");
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(profile);
    assert!(profile.is_file(), "{} is named to users", profile.display());

    let automatic = ["serve", "echo", "--listen", "127.0.0.1:0"];
    let mut server = Running::start(Command::new(&wrapper).arg(WEIR).args(automatic));
    let told = server.next_error_line().expect("it says what it chose");
    assert!(
        told.starts_with("driver auto: epoll (uring does not run here: ") && told.contains("EPERM"),
        "{told}"
    );
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.wait(PATIENCE), 0);

    let arms = super::harness::TWO_ARMS.to_owned() + "[[arm]]\nname = \"uring\"\ndriver = \"uring\"\n";
    let (file, out) = study_file(&folder, &(study_head(8, "10min") + &arms));
    let study = weir(&wrapper, &["study", &file, "--out", shown(&out)]);
    assert_eq!(study.code, Some(13), "{}", study.stderr);
    assert!(study.stdout.contains("poll") && study.stdout.contains("EPERM"), "{}", study.stdout);
    assert!(fs::read_to_string(out.join("report.md")).expect("it is written").contains("seccomp"));
}

#[test]
fn the_quick_study_goes_on_with_epoll_and_poll() {
    if std::env::var_os("WEIR_SLOW_TESTS").is_none() {
        println!("skipped: it takes minutes; WEIR_SLOW_TESTS=1 runs it");
        return;
    }
    let (folder, wrapper) = wrapper("refused-quick");
    let out = folder.join("out");
    let said = weir(&wrapper, &["study", "quick", "--out", shown(&out)]);
    assert_eq!(said.code, Some(13), "{}", said.stderr);
    assert!(said.stderr.contains("arm uring is missing: a sandbox forbids io_uring"), "{}", said.stderr);
    for word in ["poll", "Arms that could not run", "EPERM", "To unlock: run the container with"] {
        assert!(said.stdout.contains(word), "no {word:?} in: {}", said.stdout);
    }
    assert!(out.join("report.html").exists() && out.join("report.md").exists());
}
