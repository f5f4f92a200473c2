//! A running study, as other processes see it from its store.

use weir_judge::{progress::Progress, sample::study};
use weir_lab::{
    fake::{FakeStates, NEVER},
    follow::{FOLLOWED_TRIALS_MAX, Followed, Follower},
    run::{self, Callbacks},
};
use weir_record::{finding::Finding, study::MissingArm, trial::TrialRecord};
use weir_store::{BlockKey, NewStudy, Store, StoredBlock};

use crate::fixture::{fresh_folder, launcher, new_study};

#[test]
fn blocks_are_not_to_be_repeated_for_an_arm_that_the_session_does_without() {
    let spec = study(&["epoll", "uring", "poll"], 4, 6);
    let gone = MissingArm { name: "poll".to_owned(), reason: Finding::InstallProgram, unlock: None };
    let new = NewStudy { missing_arms: vec![gone], ..new_study(spec.clone()) };
    let ran = fresh_folder("follow-ran");
    let mut two_arms = launcher(6, FakeStates::Near, 0.8);
    let callbacks = Callbacks { launcher: &mut two_arms, interrupt: &NEVER, progress: &mut |_| {} };
    run::start(&ran, &new, callbacks).expect("a healthy study runs");
    let blocks = Store::open_read_only(&ran).and_then(|store| store.blocks()).expect("blocks");

    // The same blocks of a running session that refused the arm itself: it has stored no reason yet.
    let running = fresh_folder("follow-running");
    let mut store = Store::create(&running, &new_study(spec)).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    let mut follower = Follower::default();
    let first = follower.look(&running).expect("it can be read");
    assert!(first.progress.blocks_done == 0 && first.left_ns > 0, "{first:?}");
    for (number, block) in (1..).zip(&blocks) {
        store.append_block(session, block, 1_000_000_000).expect("a block is stored");
        let Followed { progress, left_ns, cells, .. } = follower.look(&running).expect("it can be read");
        assert_eq!(left_ns == 0, number == 4, "{left_ns}");
        assert_eq!((progress.blocks_done, progress.blocks_to_repeat), (number, 0));
        let [cell] = &cells[..] else { panic!("{cells:?}") };
        assert_eq!((cell.blocks_done, cell.blocks), (number, 4));
        let ratio = cell.ratio.map(|ratio| (ratio - 0.8).abs() < 0.1);
        assert_eq!(ratio, (number == 4).then_some(true), "a ratio when all blocks are done: {cell:?}");
    }
}

/// Trials of a block in the test below.
const LARGE: usize = 500;

#[test]
fn of_a_study_of_days_the_estimate_stops_where_it_is_stated_and_progress_goes_on() {
    let most = FOLLOWED_TRIALS_MAX / LARGE;
    let spec = study(&["epoll", "uring"], most as u32 + 4, 1);
    let cell_id = spec.cells[0].id.clone();
    let block = |block: u32| {
        let trial = |position: usize| TrialRecord {
            cell_id: cell_id.clone(),
            block,
            position: position as u32,
            arm: "epoll".to_owned(),
            ..TrialRecord::default()
        };
        let key = BlockKey { cell_id: cell_id.clone(), block, attempt: 0 };
        StoredBlock { key, trials: (0..LARGE).map(trial).collect() }
    };
    let running = fresh_folder("follow-long");
    let mut store = Store::create(&running, &new_study(spec)).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    let mut follower = Follower::default();
    let mut store_block = |number: usize, elapsed_ns: u64| {
        store.append_block(session, &block(number as u32), elapsed_ns).expect("a block is stored");
    };
    (0..most).for_each(|number| store_block(number, 1));
    let all = follower.look(&running).expect("it can be read");
    assert!(!all.is_in_part && all.progress.blocks_done == most as u32, "{all:?}");
    let mut left_ns = all.left_ns;
    for number in most..most + 4 {
        store_block(number, 2);
        let part = follower.look(&running).expect("it can be read");
        assert!(part.is_in_part && part.elapsed_ns == 2, "{part:?}");
        let expected = Progress { blocks_done: number as u32 + 1, ..all.progress };
        assert_eq!((part.progress, &part.estimate), (expected, &all.estimate));
        assert!(part.left_ns < left_ns && part.last_cell == cell_id, "{part:?}");
        left_ns = part.left_ns;
    }
    assert_eq!(left_ns, 0);
    // A new follower sees the same.
    let late = Follower::default().look(&running).expect("it can be read");
    assert_eq!((late.progress.blocks_done, late.left_ns), (most as u32 + 4, 0));
}
