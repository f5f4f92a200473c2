//! `weir study gateway` until its first block is on disk: three processes a trial, and their counts.

use rustix::process::Signal;
use weir_record::{check::CheckName, effect::Question, study::StudyResult, trial::TrialRecord};

use super::harness::{PATIENCE, Running, folder, shown, weir};

#[test]
fn an_interrupted_study_keeps_trials_whose_orders_all_came_back() {
    if std::env::var_os("WEIR_SLOW_TESTS").is_none() {
        println!("skipped: WEIR_SLOW_TESTS is not set");
        return;
    }
    let own = folder("study-gateway");
    let run = own.join("run");
    let mut study = Running::weir(&["study", "gateway", "--seed", "6", "--out", shown(&run)]);
    while let Some(line) = study.next_error_line() {
        if line.contains("1/52 blocks") {
            break;
        }
    }
    study.signal(Signal::INT);
    assert_eq!(study.wait(2 * PATIENCE), 130);
    let said = weir(&["export", shown(&run)]);
    let exported: serde_json::Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let trials: Vec<TrialRecord> =
        serde_json::from_value(exported["trials"].clone()).expect("they are trials");
    let result: StudyResult = serde_json::from_value(exported["result"].clone()).expect("it is judged");
    assert!(trials.len() >= 6, "two pilots and a block: {}", trials.len());
    for trial in &trials {
        let TrialRecord { cell_id, arm, load, chain, exclusions, .. } = trial;
        let load = load.as_ref().unwrap_or_else(|| panic!("{arm} in {cell_id}: {exclusions:?}"));
        assert!(chain.is_some_and(|chain| chain.is_whole()), "{arm} in {cell_id}: {chain:?}");
        let orders = load.orders.as_ref().expect("it is of orders");
        assert_eq!((orders.inversions, orders.shares.is_conserved()), (0, true), "{arm} in {cell_id}");
        assert!(load.messages > 0 && load.observed.as_ref().is_some_and(|seen| seen.node.is_some()));
    }
    let rows = weir(&["export", shown(&run), "--format", "pidstat"]).stdout;
    let readings = rows.lines().filter(|line| line.ends_with("cswch/s nvcswch/s  Command")).count();
    assert_eq!(readings, trials.len(), "one for each trial");
    assert!(result.threads.iter().any(|it| it.node == "exchange"), "{:?}", result.threads);
    assert!(result.spec.published_runs.iter().any(|run| run.name == "s3-modulo"));
    for place in (0..).take(result.spec.added_costs.len()) {
        assert!(result.effects.of(Question::Added(place)).next().is_some(), "{place}: {:?}", result.effects);
    }
    assert!(result.checks.iter().any(|check| check.name == CheckName::ChainWhole && check.passed));
}
