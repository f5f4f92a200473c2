//! `--earlier`: effects that a schedule can be expected to find, from stored results.

use std::path::Path;

use weir_evidence::fingerprint::fingerprint;
use weir_lab::{
    fake::{FakeArm, FakeLauncher, FakeStates, NEVER},
    host_defaults::HostDefaults,
    run::{self, Callbacks, Event},
    study_file,
};
use weir_store::NewStudy;

use super::harness::{Said, TWO_ARMS, expect_refusal, folder, shown, study_file, study_head, weir};

const ROUNDS: u32 = 12;

/// Stores a run of the study on a simulated machine with this one's fingerprint: the scatter of its rounds follows from
/// the seed, whatever this machine does meanwhile.
pub fn store_run(out: &Path, text: &str, seed: u64, poll_us: f64) {
    let host = HostDefaults { seed, ..HostDefaults::default() };
    let study =
        study_file::parse(Path::new("tiny.toml"), text, &host).unwrap_or_else(|error| panic!("{error}"));
    let asked = NewStudy {
        spec: study.spec,
        fingerprint: fingerprint(),
        missing_arms: study.missing_arms,
        reproduce: format!("weir study tiny.toml --seed {seed}"),
    };
    let arms = [("epoll", FakeArm::costing(5.0)), ("poll", FakeArm::costing(poll_us))];
    let mut launcher = FakeLauncher::new(seed, FakeStates::Near, &arms);
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut |_: &Event| {} };
    run::start(out, &asked, callbacks).unwrap_or_else(|error| panic!("{error}"));
}

fn plan(file: &str, further: &[&str]) -> Said {
    weir(&[&["study", file, "--dry-run", "--seed", "7"], further].concat())
}

#[test]
fn earlier_results_tell_what_a_schedule_can_find_and_without_its_cells_that_is_said() {
    let folder = folder("study-earlier");
    let text = study_head(ROUNDS, "2min") + TWO_ARMS;
    let (file, out) = study_file(&folder, &text);
    store_run(&out, &text, 3, 4.0);
    let unknown = "What this schedule can find is not known";

    let known = format!("{ROUNDS} rounds or blocks of poll against epoll are expected to find ");
    // A folder of one run, and one of several.
    for earlier in [&*out, &*folder] {
        let said = plan(&file, &["--earlier", shown(earlier)]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let line = said.stdout.lines().find(|line| line.contains(&known));
        let line = line.unwrap_or_else(|| panic!("{}", said.stdout));
        assert!(line.starts_with("c4-") && line.contains(" % in server CPU four times of five"), "{line}");
        assert!(line.ends_with(" earlier ones of these arms)"), "{line}");
        assert!(!said.stdout.contains(unknown), "{}", said.stdout);
    }

    let (others, _) = study_file(&folder, &text.replace("[4]", "[5]"));
    let said = plan(&others, &["--earlier", shown(&out)]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let why = format!("{} has no rounds of these cells and arms on a machine like this", out.display());
    assert!(said.stdout.contains(unknown) && said.stdout.contains(&why), "{}", said.stdout);
    let said = plan(&others, &[]);
    assert!(
        said.stdout.contains(unknown) && said.stdout.contains("--earlier DIR takes them"),
        "{}",
        said.stdout
    );

    let nowhere = folder.join("nowhere");
    let refused = ["--earlier", "nowhere", "name a folder that `weir study` wrote"];
    expect_refusal(&plan(&file, &["--earlier", shown(&nowhere)]), 2, &refused);
}
