//! Run folders that an earlier version of Weir wrote: reading one judges its trials again.

use rusqlite::Connection;
use weir_judge::sample::study;
use weir_lab::{
    fake::{FakeStates, NEVER},
    run::{self, Callbacks},
    stored::{self, StoredRun},
};
use weir_record::{finding::Finding, study::MissingArm};
use weir_store::{FILE_NAME, Store};

use crate::fixture::{fresh_folder, launcher, new_study, resume};

/// A result with lists in place of the table of effects, as in version 2 of the records; one arm was missing.
const OLDER_RESULT: &str = r#"{"schema_version":2,"primary":0,"verdict":"better","comparisons":[{"cell_id":
    "c100-d1-m64-closed","arm":"uring","baseline":"epoll","metric":"server-cpu-per-message","ratio":0.8,
    "interval":[0.79,0.81],"confidence":0.99,"interval_method":"student-t","pairs":6,"pairs_excluded":[],"notes":[]}],
    "missing_arms":[{"name":"poll","reason":{"code":"no-unit-left"},"unlock":null}],"complete":true}"#;

#[test]
fn a_folder_of_an_earlier_version_is_judged_again_and_can_be_gone_on_with() {
    let folder = fresh_folder("older-records");
    let spec = study(&["epoll", "uring"], 6, 3);
    let mut machine = launcher(3, FakeStates::Near, 0.8);
    let callbacks = Callbacks { launcher: &mut machine, interrupt: &NEVER, progress: &mut |_| {} };
    let outcome = run::start(&folder, &new_study(spec), callbacks).expect("a healthy study runs");
    let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    connection.execute("UPDATE result SET result = ?1", [OLDER_RESULT]).expect("it can be written");
    connection.execute_batch("DROP TABLE effect; PRAGMA user_version = 3").expect("as that version had it");
    drop(connection);

    let (result, trials) = stored::read(&folder).expect("it is judged again");
    assert_eq!((&result.effects, &trials), (&outcome.result.effects, &outcome.trials));
    let gone = MissingArm { name: "poll".to_owned(), reason: Finding::NoUnitLeft, unlock: None };
    assert_eq!(result.missing_arms, [gone], "only the older result names it");
    let run = StoredRun::read(&folder).expect("it is judged again");
    let pair = run.against(&run, &[]);
    assert!(pair.obstacles.is_empty() && !pair.changes.is_empty(), "{pair:?}");

    let again =
        resume(&folder, &mut launcher(3, FakeStates::Near, 0.8), &NEVER).expect("it can be gone on with");
    assert_eq!(again.trials, outcome.trials, "nothing is left to run");
    let store = Store::open_read_only(&folder).expect("the store is readable");
    assert_eq!(store.result().expect("it is readable"), Some(again.result.clone()), "in the form of today");
    let connection = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    let rows = connection.query_row("SELECT count(*) FROM effect", [], |row| row.get::<_, i64>(0));
    assert_eq!(rows.expect("the table is there") as usize, again.result.effects.rows.len());
}
