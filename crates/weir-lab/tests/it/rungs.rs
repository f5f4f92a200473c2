//! The rate at which the primary comparison decides: the highest that every arm keeps.

use weir_lab::{
    fake::{FakeStates, NEVER},
    run::{self, Callbacks, Event},
};
use weir_record::{
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
    trial::TrialRecord,
    verdict::Verdict,
};

use crate::{
    fixture::{built_in, fresh_folder, launcher, new_study},
    study_file::{DOCUMENTED, read},
};

const RUNGS: [&str; 3] = ["c100-d1-m64-open75pct", "c100-d1-m64-open50pct", "c100-d1-m64-open25pct"];

fn primary(spec: &StudySpec) -> &CellSpec {
    spec.cells.iter().find(|cell| cell.role == CellRole::Primary).expect("there is one")
}

fn rounds(trials: &[TrialRecord], cell_id: &str) -> usize {
    trials.iter().filter(|trial| trial.cell_id == cell_id && trial.arm == "uring").count()
}

#[test]
fn the_highest_rate_decides_where_every_arm_keeps_it() {
    let mut launcher = launcher(3, FakeStates::Near, 0.8);
    let mut descended = 0;
    let mut progress = |event: &Event| descended += u32::from(matches!(event, Event::Descended { .. }));
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut progress };
    let outcome =
        run::start(&fresh_folder("rung-kept"), &new_study(built_in("quick")), callbacks).expect("quick runs");
    assert_eq!((descended, primary(&outcome.result.spec).id.as_str()), (0, RUNGS[0]));
    assert_eq!(outcome.result.verdict, Verdict::Better);
    assert_eq!(RUNGS.map(|cell| rounds(&outcome.trials, cell)), [34, 10, 10]);
}

#[test]
fn a_rate_that_an_arm_misses_gives_its_rounds_to_the_next_lower_one() {
    // A message costs more at a rate than in the pilot's closed loop, so no arm can do 75 % of its capacity.
    let mut launcher = launcher(3, FakeStates::Near, 0.8);
    launcher.arms.get_mut("epoll").expect("it is there").open_factor = 1.6;
    let (mut moves, mut progress_done) = (Vec::new(), (0, 0));
    let mut progress = |event: &Event| match event {
        Event::Descended { from, to, least_kept } => {
            moves.push((from.clone(), to.clone(), least_kept.arm.clone(), least_kept.kept));
        }
        Event::BlockStored { blocks_done, blocks, .. } => progress_done = (*blocks_done, *blocks),
        _ => {}
    };
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut progress };
    let outcome = run::start(&fresh_folder("rung-missed"), &new_study(built_in("quick")), callbacks)
        .expect("quick runs");
    let [(from, to, arm, 0)] = &moves[..] else { panic!("{moves:?}") };
    assert_eq!([from, to, arm], [RUNGS[0], RUNGS[1], "epoll"]);
    let spec = &outcome.result.spec;
    assert_eq!(primary(spec).id, RUNGS[1]);
    let ran = RUNGS.map(|cell| rounds(&outcome.trials, cell));
    assert!(
        ran[1] as f64 >= 0.6 * ran.iter().sum::<usize>() as f64 && ran[0] == 10 && ran[2] == 10,
        "{ran:?}"
    );
    assert_eq!(progress_done.0, progress_done.1, "the schedule is finished");
    assert!(outcome.result.complete);
    let decided = outcome.result.primary().expect("it was measured");
    assert_eq!((decided.cell_id.as_str(), decided.verdict), (RUNGS[1], Verdict::Better));
}

#[test]
fn a_primary_comparison_is_at_three_rates_of_which_the_highest_has_most_rounds() {
    let spec = read(DOCUMENTED).expect("the example is right");
    let cells: Vec<_> =
        spec.cells.iter().map(|cell| (cell.id.as_str(), cell.role, cell.blocks, cell.is_rung)).collect();
    let (primary, looked_at) = (CellRole::Primary, CellRole::Exploratory);
    assert_eq!(
        cells,
        [
            ("c100-d16-m64-open75pct", primary, 18, true),
            ("c100-d16-m64-open50pct", looked_at, 6, true),
            ("c100-d16-m64-open25pct", looked_at, 6, true),
            ("c100-d1-m64-closed", looked_at, 8, false),
            ("c100-d16-m64-closed", looked_at, 8, false),
        ]
    );
    assert_eq!(spec.cells[0].load, LoadMode::OpenShare { share: 0.75, poisson: true });
    assert!(spec.cells.iter().all(|cell| cell.alternation.is_some()));
}

#[test]
fn another_claim_is_at_one_rate_and_what_is_written_out_there_is_the_same_cell() {
    let text = DOCUMENTED.replace("[factors]", "confirmatory = [{ depth = 1 }]\n[factors]");
    let further = "\n[[cell]]\nconnections = 100\ndepth = 16\nshare = [0.5, 0.9]\nrounds = 12\n";
    let spec = read(&format!("{text}{further}")).expect("it is right");
    let cells: Vec<_> = spec.cells.iter().map(|cell| (cell.id.as_str(), cell.role, cell.blocks)).collect();
    assert_eq!(
        cells,
        [
            ("c100-d1-m64-open50pct", CellRole::Confirmatory, 30),
            ("c100-d16-m64-open75pct", CellRole::Primary, 18),
            ("c100-d16-m64-open50pct", CellRole::Exploratory, 12),
            ("c100-d16-m64-open25pct", CellRole::Exploratory, 6),
            ("c100-d1-m64-closed", CellRole::Exploratory, 8),
            ("c100-d16-m64-closed", CellRole::Exploratory, 8),
            ("c100-d16-m64-open90pct", CellRole::Exploratory, 12),
        ]
    );
}

#[test]
fn what_is_asked_of_a_claim_is_asked_at_its_rate_and_throughput_in_closed_loop() {
    let asked = |metric: &str| {
        let table = format!("\n[[comparison]]\nof = {{ arm = \"uring-16k\" }}\nmetric = \"{metric}\"\n");
        let spec = read(&format!("{DOCUMENTED}{table}")).expect("it is right");
        spec.comparisons.iter().map(|it| it.of.cell_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(asked("server-cpu-per-message"), ["c100-d16-m64-open75pct", "c100-d1-m64-closed"]);
    assert_eq!(asked("throughput"), ["c100-d1-m64-closed", "c100-d16-m64-closed"]);
}
