//! The rate at which the primary comparison decides: the highest that every arm keeps.

use weir_lab::{
    fake::{FakeStates, NEVER},
    run::{self, Callbacks, Event},
};
use weir_record::{
    spec::{CellRole, CellSpec, StudySpec},
    trial::TrialRecord,
    verdict::Verdict,
};

use crate::fixture::{built_in, fresh_folder, launcher, new_study};

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
    // A message costs more at a rate than the pilot's closed loop says, so that no arm can do 75 % of its capacity.
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
    let decided = &outcome.result.comparisons[outcome.result.primary.expect("it was measured")];
    assert_eq!((decided.cell_id.as_str(), decided.verdict), (RUNGS[1], Verdict::Better));
}
