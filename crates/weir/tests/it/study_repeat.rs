//! `weir study NAME --repeat N`: a folder for each run, the pooled result, how it ends, and refusals.

use std::{fs, path::Path};

use rustix::process::Signal;
use weir_store::Store;

use super::harness::{
    PATIENCE, Running, TWO_ARMS, expect_refusal, folder, shown, study_file, study_head, weir,
};

/// Folders of runs below one.
fn runs(parent: &Path) -> Vec<String> {
    let entries = fs::read_dir(parent).map(|all| all.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let names = entries.into_iter().filter(|it| it.path().join("study.db").exists());
    let mut names: Vec<String> = names.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_study_runs_so_often_in_folders_of_its_own_and_ends_with_what_the_runs_have_in_common() {
    let folder = folder("repeat");
    let (file, out) = study_file(&folder, &(study_head(6, "1min") + TWO_ARMS));
    let words = ["study", &file, "--out", shown(&out), "--repeat", "3", "--every", "50ms", "--seed", "7"];
    let said = weir(&words);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let names = runs(&out);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("tiny-20")), "{names:?}");
    for number in 1..=3 {
        assert!(said.stderr.contains(&format!("run {number} of 3\n")), "{}", said.stderr);
        assert!(said.stderr.contains(&format!("(seed {})", 6 + number)), "{}", said.stderr);
    }
    assert!(said.stdout.starts_with("Several runs, pooled\n"), "{}", said.stdout);
    let page = out.join(format!("{}-pool.html", names[0]));
    assert!(fs::read_to_string(&page).is_ok_and(|page| page.contains("<!DOCTYPE html>")), "{}", said.stderr);
    assert!(names.iter().all(|name| out.join(name).join("report.html").exists()));
    // The same folders can be pooled again.
    assert!(matches!(weir(&["study", "pool", shown(&out)]).code, Some(0 | 11 | 12)));
    expect_refusal(&weir(&words), 2, &["is there already", "leave --out out", "weir study pool DIR DIR"]);
}

#[test]
fn an_interrupt_during_the_wait_keeps_what_was_measured() {
    let folder = folder("repeat-interrupt");
    let (file, out) = study_file(&folder, &(study_head(6, "1min") + TWO_ARMS));
    let study = Running::weir(&["study", &file, "--out", shown(&out), "--repeat", "9", "--every", "1h"]);
    let line = study.error_line_with("run 2 of 9 begins in");
    assert!(line.contains(" UTC") && line.contains("Ctrl-C ends here and keeps"), "{line}");
    study.signal(Signal::INT);
    let mut study = study;
    assert_eq!(study.wait(PATIENCE), 130);
    let [name] = &runs(&out)[..] else { panic!("one run: {:?}", runs(&out)) };
    let blocks = Store::open_read_only(&out.join(name)).and_then(|store| store.blocks()).expect("a store");
    assert!(!blocks.is_empty());
    let said: Vec<String> = std::iter::from_fn(|| study.next_line()).collect();
    assert!(said.iter().any(|line| line.contains("this machine")), "the one run is shown: {said:?}");
}

#[test]
fn an_interrupt_during_a_run_says_how_that_one_goes_on_and_pools_those_before() {
    let folder = folder("repeat-during");
    let (file, out) = study_file(&folder, &(study_head(20, "1min") + TWO_ARMS));
    let mut study = Running::weir(&["study", &file, "--out", shown(&out), "--repeat", "9"]);
    study.error_line_with("run 2 of 9");
    study.error_line_with("blocks: c4-");
    study.signal(Signal::INT);
    assert_eq!(study.wait(PATIENCE), 130);
    let errors = study.rest_of_errors();
    let names = runs(&out);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(errors.contains(&format!("weir study --resume {}", shown(&out.join(&names[1])))), "{errors}");
    let said: Vec<String> = std::iter::from_fn(|| study.next_line()).collect();
    assert!(said.iter().any(|line| line.starts_with("Several runs, pooled")), "{said:?}");
    assert!(said.iter().any(|line| line.contains("it is not finished")), "{said:?}");
}

#[test]
fn what_makes_no_sense_together_is_refused_with_the_way_out() {
    let folder = folder("repeat-refused");
    let (file, out) = study_file(&folder, &(study_head(6, "1min") + TWO_ARMS));
    let repeat = |words: &[&str]| weir(&[&["study", &file, "--repeat", "3"], words].concat());
    let resumed = weir(&["study", "--resume", shown(&out), "--repeat", "3"]);
    expect_refusal(&resumed, 2, &["--resume goes on with one", "finish that one with `weir study --resume"]);
    let threshold = ["--fail-if", "cpu_per_message ratio > 1.05"];
    expect_refusal(&repeat(&threshold), 2, &["thresholds are of single runs", "leave --fail-if out"]);
    for every in ["10", "soon", "2000h"] {
        expect_refusal(&repeat(&["--every", every]), 2, &["--every", every, "write 10min, 90s or 1h"]);
    }
    expect_refusal(&repeat(&["--every", "soon", "--lang", "zh"]), 2, &["10min、90s 或 1h"]);
    for words in [&["--dry-run"][..], &["--print"]] {
        assert_eq!(repeat(words).code, Some(2), "{words:?}");
    }
    for times in ["0", "1", "1001", "many"] {
        assert_eq!(weir(&["study", &file, "--repeat", times]).code, Some(2), "{times}");
    }
    assert_eq!(weir(&["study", &file, "--every", "10min"]).code, Some(2), "there is nothing to repeat");
    assert!(!out.exists());
}
