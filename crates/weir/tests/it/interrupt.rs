//! Ctrl-C at any moment of a study: exit 130, finished blocks are kept, and `--resume` goes on.

use rustix::process::Signal;
use weir_store::Store;

use super::harness::{
    PATIENCE, Running, TWO_ARMS, expect_refusal, folder, shell, shown, study_file, study_head, weir,
};

#[test]
fn interrupted_studies_keep_their_blocks_and_go_on() {
    for (signal, lines) in [(Signal::INT, 1), (Signal::TERM, 2), (Signal::INT, 5)] {
        let folder = folder(&format!("interrupt-{lines}"));
        let (file, out) = study_file(&folder, &(study_head(400, "20s") + TWO_ARMS));
        let mut study = Running::weir(&["study", &file, "--out", shown(&out)]);
        for _ in 0..lines {
            study.next_error_line().expect("it shows progress");
        }
        study.signal(signal);
        assert_eq!(study.wait(PATIENCE), 130);
        let told = study.rest_of_errors();
        assert!(told.contains(&format!("weir study --resume {}", shown(&out))), "{told}");
        let blocks = Store::open_read_only(&out).and_then(|store| store.blocks()).expect("a store").len();
        let said: Vec<String> = std::iter::from_fn(|| study.next_line()).collect();
        assert_eq!(said.is_empty(), blocks == 0, "{blocks} blocks: {said:?}");
        // The first three lines are the study's name, its length and the finished blocks.
        assert!(blocks + 3 >= lines, "{blocks} blocks after {lines} lines");
        if lines == 5 {
            let resumed = weir(&["study", "--resume", shown(&out), "--quiet"]);
            assert!(matches!(resumed.code, Some(0 | 11 | 12)), "{:?} {}", resumed.code, resumed.stderr);
            let after = Store::open_read_only(&out).and_then(|store| store.blocks()).expect("a store").len();
            assert!(after > blocks, "{after}");
        }
    }
}

#[test]
fn a_second_session_on_the_same_folder_is_refused() {
    let folder = folder("busy");
    let (file, out) = study_file(&folder, &(study_head(400, "1h") + TWO_ARMS));
    let mut study = Running::weir(&["study", &file, "--out", shown(&out)]);
    for _ in 0..3 {
        study.next_error_line().expect("it shows progress");
    }
    expect_refusal(&weir(&["study", "--resume", shown(&out)]), 1, &["another session", shown(&out)]);
    let report = weir(&["report", shown(&out)]);
    assert_eq!(report.code, Some(0), "a running study can be read: {}", report.stderr);
    study.signal(Signal::INT);
    assert_eq!(study.wait(PATIENCE), 130);
}

#[test]
fn a_reader_that_leaves_does_not_change_the_outcome() {
    let folder = folder("reader-leaves");
    let (file, out) = study_file(&folder, &(study_head(8, "2s") + TWO_ARMS));
    let said = shell(&format!(
        "{{ \"$WEIR\" study '{file}' --out '{}' 2>&1; echo \"code $?\" >&3; }} 3>&2 | head -n 1",
        shown(&out)
    ));
    assert!(said.stdout.starts_with("study tiny"), "{}", said.stdout);
    assert!(["code 0\n", "code 11\n", "code 12\n"].contains(&said.stderr.as_str()), "{}", said.stderr);
    assert!(out.join("report.html").exists());
}
