//! Stored data is read back unchanged and in the order in which it was written.

use std::path::Path;

use proptest::prelude::*;
use rusqlite::{Connection, types::Value};
use weir_record::{
    SCHEMA_VERSION,
    effect::{Effect, EffectScale, Effects, IntervalMethod, Question},
    finding::Finding,
    goal::Outcome,
    grid::Difference,
    load::LoadReport,
    machine::CrossCoreReading,
    metric::Metric,
    run_pool::Period,
    spec::{CellRole, LoadMode},
    study::{MachineStates, MissingArm, StudyResult},
    trial::{Exclusion, TrialRecord},
    verdict::Verdict,
};
use weir_store::{BlockKey, FILE_NAME, ResultBrief, STORE_VERSION, Store, StoreError, StoredBlock};

use crate::fixture::{block, fresh_folder, study};

#[test]
fn a_new_store_gives_back_the_study() {
    let folder = fresh_folder("header");
    let store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let header = store.study().expect("the study was stored");
    assert_eq!(header.spec, study().spec);
    assert_eq!(header.spec_asked, study().spec);
    assert_eq!(header.fingerprint, study().fingerprint);
    assert_eq!(header.reproduce, study().reproduce);
    assert_eq!(header.elapsed_ns, 0);
    assert!(store.blocks().expect("no block is not an error").is_empty());
    assert_eq!(store.result().expect("no result is not an error"), None);
    assert_eq!(store.result_brief().expect("no result is not an error"), None);
}

#[test]
fn what_a_run_is_of_is_stored_and_a_store_from_before_it_was_opens() {
    let folder = fresh_folder("origin");
    let mut asked = study();
    asked.spec.origin.commit = Some("0123abc".to_owned());
    asked.spec.origin.labels.insert("runner".to_owned(), "lab".to_owned());
    let store = Store::create(&folder, &asked).expect("a fresh folder takes a store");
    assert_eq!(store.study().expect("the study was stored").spec.origin, asked.spec.origin);
    drop(store);
    let stored = Connection::open(folder.join(FILE_NAME)).expect("it is an SQLite file");
    let commit: String = stored
        .query_row("SELECT json_extract(spec, '$.origin.commit') FROM study", [], |row| row.get(0))
        .expect("others can read it");
    assert_eq!(commit, "0123abc");
    stored
        .execute("UPDATE study SET spec = json_remove(spec, '$.origin')", [])
        .expect("it is as it was before");
    drop(stored);
    let store = Store::open_read_only(&folder).expect("the store opens");
    assert!(store.study().expect("the study is there").spec.origin.is_empty());
}

#[test]
fn pilots_change_the_rate_and_keep_what_was_asked() {
    let folder = fresh_folder("pilots");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    let mut fixed = study().spec;
    fixed.cells[0].load = LoadMode::Open { rate_per_second: 57_600.0, poisson: true, share: None };
    let mut pilot = block(0, 0);
    pilot.key.cell_id = "c1-d1-m64-closed-pilot".to_owned();
    store.append_pilots(session, std::slice::from_ref(&pilot), &fixed, 7).expect("pilots are stored");
    drop(store);

    let store = Store::open_read_only(&folder).expect("the store opens again");
    let header = store.study().expect("the study is there");
    assert_eq!((header.spec, header.spec_asked), (fixed, study().spec));
    assert_eq!(header.elapsed_ns, 7);
    assert_eq!(store.blocks().expect("blocks are there"), vec![pilot]);
}

#[test]
fn sessions_add_up_and_a_later_result_replaces_the_earlier() {
    let folder = fresh_folder("sessions");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let first = store.begin_session().expect("a session begins");
    store.append_block(first, &block(0, 0), 100).expect("a block is stored");
    store.append_block(first, &block(1, 0), 200).expect("a block is stored");
    drop(store);
    let mut store = Store::open(&folder).expect("the store opens again");
    let second = store.begin_session().expect("another session begins");
    store.append_block(second, &block(0, 1), 50).expect("another attempt is stored");
    store.save_result(second, &result(false), 60).expect("a result is stored");
    store.save_result(second, &result(true), 70).expect("a later result is stored");
    assert_eq!(store.study().expect("the study is there").elapsed_ns, 270);
    assert_eq!(store.result().expect("the result is there"), Some(result(true)));
    let missing_arms = vec![MissingArm {
        name: "uring".to_owned(),
        reason: Finding::Said { text: "not here".to_owned() },
        unlock: None,
    }];
    let without = StudyResult { missing_arms: missing_arms.clone(), ..result(true) };
    store.save_result(second, &without, 70).expect("a later result is stored");
    let brief = ResultBrief { schema_version: SCHEMA_VERSION, missing_arms, complete: true };
    assert_eq!(store.result_brief().expect("the result is there"), Some(brief));
    let keys: Vec<_> = store
        .blocks()
        .expect("blocks")
        .into_iter()
        .map(|block| (block.key.block, block.key.attempt))
        .collect();
    assert_eq!(keys, [(0, 0), (1, 0), (0, 1)]);
}

#[test]
fn a_store_knows_when_its_sessions_ran_and_counts_those_that_stored_something() {
    let folder = fresh_folder("period");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let first = store.begin_session().expect("a session begins");
    assert_eq!(store.period(Some((first, 9))).expect("nothing ran is not an error"), None);
    store.append_block(first, &block(0, 0), 90_000_000_000).expect("a block is stored");
    let _idle = store.begin_session().expect("a session begins");
    let third = store.begin_session().expect("a session begins");
    store.append_block(third, &block(1, 0), 30_000_000_000).expect("a block is stored");
    let connection = Connection::open(folder.join(FILE_NAME)).expect("it is SQLite");
    for (id, at) in [(first, "2026-11-29 07:10:00"), (third, "2026-11-29 09:00:30")] {
        let change = "UPDATE session SET started_at = ?1 WHERE id = ?2";
        connection.execute(change, (at, id)).expect("it can be written");
    }
    let began_unix_s = 1_795_936_200;
    let ended = |minutes: u64| began_unix_s + 60 * minutes;
    let period = store.period(None).expect("it is there").expect("blocks are stored");
    assert_eq!(period, Period { began_unix_s, ended_unix_s: ended(111), sessions: 2 });
    let running =
        store.period(Some((third, 90_000_000_000))).expect("it is there").expect("blocks are stored");
    assert_eq!(running.ended_unix_s, ended(112));
}

#[test]
fn a_study_in_brief_has_its_blocks_by_cell_without_further_attempts() {
    let folder = fresh_folder("brief");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    let mut pilot = block(0, 0);
    pilot.key.cell_id = "c1-d1-m64-closed-pilot".to_owned();
    for (block, elapsed_ns) in [(pilot, 5), (block(0, 0), 6), (block(1, 0), 7), (block(1, 1), 8)] {
        store.append_block(session, &block, elapsed_ns).expect("a block is stored");
    }
    let brief = store.brief().expect("it is there");
    let blocks: Vec<(&str, u32)> = brief.blocks.iter().map(|(cell, count)| (cell.as_str(), *count)).collect();
    assert_eq!(blocks, [("c1-d1-m64-closed", 2), ("c1-d1-m64-closed-pilot", 1)]);
    assert_eq!((brief.spec, brief.fingerprint, brief.elapsed_ns), (study().spec, study().fingerprint, 8));
    assert_eq!(brief.created_unix_s, store.created_unix_s().expect("it is there"));
}

#[test]
fn a_store_knows_when_it_was_made_and_a_text_that_is_no_date_is_none() {
    let folder = fresh_folder("created");
    let store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let made = || store.created_unix_s().expect("it can be asked");
    assert!(made().is_some(), "a new store has the date of today");
    let connection = Connection::open(folder.join(FILE_NAME)).expect("it is SQLite");
    for (text, unix_s) in [
        ("2026-11-29 07:10:00", Some(1_795_936_200)),
        ("1969-12-31 23:59:59", None),
        ("<b>yesterday</b>", None),
        ("", None),
    ] {
        connection.execute("UPDATE study SET created_at = ?1", [text]).expect("it can be written");
        assert_eq!(made(), unix_s, "{text}");
    }
}

#[test]
fn blocks_are_read_on_from_where_somebody_was() {
    let folder = fresh_folder("onward");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    let reader = Store::open_read_only(&folder).expect("it can be read while it is written");
    assert!(reader.blocks_after(0, 9).expect("none yet").is_empty());
    let mut last = 0;
    for number in 0..3 {
        store.append_block(session, &block(number, 0), 1).expect("a block is stored");
        let new = reader.blocks_after(last, 9).expect("blocks");
        assert_eq!(new.iter().map(|(_, block)| block.key.block).collect::<Vec<_>>(), [number]);
        last = new[0].0;
    }
    assert!(reader.blocks_after(last, 9).expect("nothing new").is_empty());
}

#[test]
fn the_same_block_twice_is_refused_and_changes_nothing() {
    let folder = fresh_folder("twice");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    store.append_block(session, &block(0, 0), 1).expect("a block is stored");
    let again = store.append_block(session, &block(0, 0), 2);
    assert!(matches!(again, Err(StoreError::Other { .. })), "{again:?}");
    assert_eq!(store.study().expect("the study is there").elapsed_ns, 1);
    assert_eq!(store.blocks().expect("blocks").len(), 1);
}

#[test]
fn a_number_that_json_cannot_hold_is_refused_before_it_is_written() {
    let folder = fresh_folder("nan");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    let mut bad = block(0, 0);
    bad.trials[1].reading_after.canary_ns = f64::NAN;
    let refused = store.append_block(session, &bad, 1).expect_err("it could never be read back");
    assert!(matches!(refused, StoreError::Unstorable { .. }), "{refused}");
    assert!(refused.to_string().starts_with("the trial of uring in c1-d1-m64-closed cannot be stored"));
    assert!(store.blocks().expect("blocks").is_empty());
}

/// Metric and value of every figure, in the order of the trials.
fn figures(folder: &Path) -> Vec<(String, f64)> {
    let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    let mut statement = connection
        .prepare("SELECT metric, value FROM figure ORDER BY trial_id, metric")
        .expect("the table is there");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("it can be read");
    rows.map(|row| row.expect("a row")).collect()
}

#[test]
fn every_figure_of_a_trial_is_a_row_and_an_older_store_becomes_one_of_this_version() {
    let folder = fresh_folder("figures");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    store.append_block(session, &block(0, 0), 1).expect("a block is stored");
    drop(store);
    let found = figures(&folder);
    let cpu: Vec<f64> = found
        .iter()
        .filter(|(metric, _)| metric == "server-cpu-per-message")
        .map(|(_, value)| *value)
        .collect();
    assert_eq!(cpu, [5.0; 3], "5 ms for 1000 messages: {found:?}");
    let without_effects = "DROP TABLE effect";
    let renamed = format!(
        "ALTER TABLE trial RENAME COLUMN exclusions TO taints; DROP TABLE reading; {without_effects}"
    );
    let olders = [format!("DROP TABLE figure; {renamed}"), renamed, without_effects.to_owned()];
    for (version, older) in (1..).zip(olders) {
        let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
        connection
            .execute_batch(&format!("{older}; PRAGMA user_version = {version};"))
            .expect("as that version had it");
        drop(connection);
        let blocks = |store: Store| store.blocks().expect("blocks").len();
        assert_eq!(blocks(Store::open_read_only(&folder).expect("it is read")), version);
        let mut store = Store::open(&folder).expect("a session goes on");
        assert_eq!(figures(&folder).len(), version * found.len());
        assert_eq!(version_of(&folder), STORE_VERSION);
        let number = u32::try_from(version).expect("it is small");
        store.append_block(session, &block(number, 0), 1).expect("a block is stored");
        assert_eq!(figures(&folder).len(), (version + 1) * found.len());
        store.save_result(session, &with_effects(vec![full_row()]), 1).expect("a result is stored");
        assert_eq!(effects(&folder).len(), 1, "version {version} has the table now");
    }
}

fn version_of(folder: &Path) -> u32 {
    let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("it has a version")
}

/// A result with this table of effects.
fn with_effects(rows: Vec<Effect>) -> StudyResult {
    StudyResult { effects: Effects { rows }, ..result(true) }
}

/// A row that has a value in every column.
fn full_row() -> Effect {
    Effect {
        question: Question::PublishedShare(2, 1),
        cell_id: "c1-d1-m64-closed".to_owned(),
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric: Metric::Throughput,
        scale: EffectScale::Share,
        estimate: Some(0.1 + 0.2),
        interval: Some((0.25, 0.35)),
        level: 0.99,
        method: IntervalMethod::StudentTLongRun,
        units: 12,
        is_paired: true,
        degrees_of_freedom: Some(11),
        p_value: Some(1e-12),
        p_value_holm: Some(2e-12),
        detectable: Some(0.02),
        role: CellRole::Confirmatory,
        verdict: Verdict::NoClaim,
        outcome: Some(Outcome::Open),
        difference: Some(Difference::NotBorneOut),
        reasons: vec![Finding::NoUnitLeft],
        notes: vec![Finding::IncludesBound { bound: 1.5 }],
        ..Effect::default()
    }
}

/// The table of effects, each row as one text with columns apart and `~` where there is no value.
fn effects(folder: &Path) -> Vec<String> {
    let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    let mut statement =
        connection.prepare("SELECT * FROM effect ORDER BY place").expect("the table is there");
    let columns = statement.column_count();
    let told = |value: Value| match value {
        Value::Null => "~".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Real(value) => format!("{value:?}"),
        Value::Text(value) => value,
        Value::Blob(_) => panic!("it has none"),
    };
    let rows = statement.query_map([], |row| {
        let values: rusqlite::Result<Vec<Value>> = (0..columns).map(|index| row.get(index)).collect();
        Ok(values?.into_iter().map(told).collect::<Vec<_>>().join("|"))
    });
    rows.expect("it can be read").map(|row| row.expect("a row")).collect()
}

#[test]
fn every_effect_of_a_result_is_a_row_and_a_later_result_replaces_them() {
    let folder = fresh_folder("effects");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    assert!(effects(&folder).is_empty());
    let bare = Effect { arm: "uring".to_owned(), detectable: Some(f64::INFINITY), ..Effect::default() };
    let rows = vec![bare, full_row()];
    let judged = with_effects(rows);
    store.save_result(session, &judged, 1).expect("a result is stored");
    let found = effects(&folder);
    assert_eq!(
        found,
        [
            "0|comparison|~|~||uring||server-cpu-per-message|ratio|~|~|~|0.0|none|0|~|~|~|~|exploratory|no-claim|\
             ~|~|[]",
            "1|published-share|2|1|c1-d1-m64-closed|uring|epoll|throughput|share|0.30000000000000004|0.25|0.35|\
             0.99|student-t-long-run|12|11|1e-12|2e-12|0.02|confirmatory|no-claim|open|not-borne-out|\
             [{\"code\":\"no-unit-left\"},{\"code\":\"includes-bound\",\"bound\":1.5}]",
        ]
    );
    let rows = store.result().expect("it is readable").expect("it is there").effects.rows;
    assert_eq!((rows.len(), &rows[1]), (2, &judged.effects.rows[1]), "the record has the same rows");
    store.save_result(session, &with_effects(vec![full_row()]), 2).expect("a later result is stored");
    assert_eq!(effects(&folder), [found[1].replacen('1', "0", 1)]);
    store.save_result(session, &with_effects(Vec::new()), 3).expect("a later result is stored");
    assert!(effects(&folder).is_empty());
}

#[test]
fn a_result_that_cannot_be_stored_leaves_the_table_of_effects_as_it_was() {
    let folder = fresh_folder("effects-kept");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    store.save_result(session, &with_effects(vec![full_row()]), 1).expect("a result is stored");
    let bad = Effect { level: f64::NAN, ..full_row() };
    let refused = store.save_result(session, &with_effects(vec![bad]), 2).expect_err("it has no number");
    assert!(matches!(refused, StoreError::Unstorable { .. }), "{refused}");
    assert_eq!(effects(&folder).len(), 1);
}

/// A result as stored by programs older than the table of effects, with the fields they had instead.
const OLDER_RESULT: &str = r#"{"schema_version":2,"primary":0,"verdict":"better","comparisons":[{"cell_id":
    "c1-d1-m64-closed","arm":"uring","baseline":"epoll","metric":"server-cpu-per-message","ratio":0.8}],
    "missing_arms":[{"name":"poll","reason":{"code":"no-unit-left"},"unlock":null}],"complete":true}"#;

#[test]
fn a_result_with_older_records_is_known_by_its_version_and_left_to_whoever_judges_again() {
    let folder = fresh_folder("older-result");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    connection
        .execute("INSERT INTO result (id, result) VALUES (1, ?1)", [OLDER_RESULT])
        .expect("it can be written");
    assert_eq!(store.result().expect("it is no error"), None);
    let brief = store.result_brief().expect("it can be read").expect("it is there");
    assert_eq!((brief.schema_version, brief.complete), (2, true));
    assert_eq!(brief.missing_arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["poll"]);
    store.save_result(session, &result(true), 1).expect("a result of this version is stored");
    assert_eq!(store.result().expect("it is readable"), Some(result(true)));
}

#[test]
fn every_reading_of_a_slice_of_evidence_is_a_row() {
    let folder = fresh_folder("readings");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    store.append_block(session, &block(0, 0), 1).expect("a block is stored");
    drop(store);
    let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    let query =
        "SELECT count(*), sum(value) FROM reading WHERE source = 'call read' AND key = 'count' AND slice = 0";
    let found = connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(found.expect("the table is there"), (3, 3_000.0));
}

fn result(complete: bool) -> StudyResult {
    StudyResult {
        schema_version: SCHEMA_VERSION,
        spec: study().spec,
        fingerprint: study().fingerprint,
        primary: None,
        verdict: Verdict::Inconclusive,
        effects: Effects::default(),
        arms: Vec::new(),
        checks: Vec::new(),
        states: MachineStates::default(),
        timeline: Vec::new(),
        missing_arms: Vec::new(),
        complete,
        elapsed_ns: 5,
        reproduce: String::new(),
        listening: Vec::new(),
        evidence: Vec::new(),
        cpu_differences: Vec::new(),
        syn_ladder_s: Vec::new(),
        strace: Vec::new(),
        threads: Vec::new(),
        oversubscribed: Vec::new(),
        grids: Vec::new(),
        overviews: Vec::new(),
        latency_ladders: Vec::new(),
        connection_costs: None,
        aggregates: Vec::new(),
        guidance: None,
        frontier: Vec::new(),
        frontier_answers: Vec::new(),
        wait_series: Vec::new(),
        period: None,
        created_unix_s: None,
        among_runs: None,
    }
}

/// Any normal number or zero; every bit of it must come back.
fn fraction() -> impl Strategy<Value = f64> {
    prop::num::f64::NORMAL | prop::num::f64::ZERO
}

fn any_trial() -> impl Strategy<Value = TrialRecord> {
    let exclusion = prop_oneof![
        Just(Exclusion::Steal),
        any::<u64>().prop_map(|count| Exclusion::Errors { count }),
        ".{0,40}".prop_map(|reason| Exclusion::ServerFailed { reason }),
    ];
    let load =
        (any::<u64>(), fraction(), any::<bool>()).prop_map(|(messages, throughput_per_second, bound)| {
            LoadReport { messages, throughput_per_second, generator_bound: bound, ..LoadReport::default() }
        });
    let reading = fraction()
        .prop_map(|round_trip_ns| CrossCoreReading { round_trip_ns, ..CrossCoreReading::default() });
    (
        ".{0,20}",
        any::<bool>(),
        any::<u64>(),
        reading,
        prop::option::of(load),
        prop::collection::vec(exclusion, 0..3),
    )
        .prop_map(|(arm, repeat, started_ns, reading_before, load, exclusions)| TrialRecord {
            arm,
            repeat,
            started_ns,
            reading_before,
            load,
            exclusions,
            ..TrialRecord::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn any_trials_come_back_as_they_were(trials in prop::collection::vec(any_trial(), 1..6), number: u32) {
        let folder = fresh_folder("property");
        let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
        let session = store.begin_session().expect("a session begins");
        let mut trials = trials;
        for (position, trial) in (0..).zip(&mut trials) {
            trial.position = position;
        }
        let key = BlockKey { cell_id: "cell".to_owned(), block: number, attempt: 0 };
        let block = StoredBlock { key, trials };
        store.append_block(session, &block, 1).expect("a block is stored");
        drop(store);
        let store = Store::open_read_only(&folder).expect("the store opens again");
        prop_assert_eq!(store.blocks().expect("blocks"), vec![block]);
    }
}
