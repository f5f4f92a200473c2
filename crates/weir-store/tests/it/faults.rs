//! Each fault has its own error and message, and loses no finished block.

use std::{fs, process::Command};

use rusqlite::Connection;
use weir_store::{BYTES_MAX, FILE_NAME, STORE_VERSION, Store, StoreError};

use crate::fixture::{block, fresh_folder, study};

#[test]
fn an_empty_folder_is_not_a_study() {
    let folder = fresh_folder("empty");
    fs::create_dir_all(&folder).expect("a folder");
    for opened in [Store::open(&folder), Store::open_read_only(&folder)] {
        assert!(matches!(opened, Err(StoreError::NotFound { .. })), "{opened:?}");
    }
}

#[test]
fn a_store_is_never_overwritten() {
    let folder = fresh_folder("exists");
    Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let again = Store::create(&folder, &study());
    assert!(matches!(again, Err(StoreError::Exists { .. })), "{again:?}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = fresh_folder("in-the-way");
    fs::create_dir_all(folder.parent().expect("it has a parent")).expect("a folder");
    fs::write(&folder, "a file where the folder should be").expect("a file");
    let refused = Store::create(&folder.join("run"), &study()).expect_err("a file is no folder");
    assert!(matches!(refused, StoreError::CannotCreate { .. }), "{refused:?}");
    assert!(refused.to_string().ends_with("choose a writable folder with `--out`"), "{refused}");
    fs::remove_file(&folder).expect("the file can be removed");
}

#[test]
fn a_store_that_cannot_be_opened_is_named_and_no_other_folder_is_asked_for() {
    // Root cannot open them either.
    let (folder, looping) = (fresh_folder("no-file"), fresh_folder("looping"));
    fs::create_dir_all(folder.join(FILE_NAME)).expect("a folder");
    fs::create_dir_all(&looping).expect("a folder");
    std::os::unix::fs::symlink(FILE_NAME, looping.join(FILE_NAME)).expect("a link to itself");
    for folder in [&folder, &looping] {
        for opened in [Store::open(folder), Store::open_read_only(folder)] {
            let refused = opened.expect_err("it cannot be opened");
            assert!(matches!(refused, StoreError::Unreadable { .. }), "{refused:?}");
            let message = refused.to_string();
            assert!(message.contains("study.db cannot be opened") && !message.contains("--out"), "{message}");
        }
    }
}

#[test]
fn other_files_are_not_taken_for_a_store() {
    let folder = fresh_folder("other-files");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(FILE_NAME), "not a database at all, but long enough to be looked at")
        .expect("a file");
    let text = Store::open_read_only(&folder);
    assert!(matches!(text, Err(StoreError::NotAStore { .. })), "{text:?}");
    fs::remove_file(folder.join(FILE_NAME)).expect("the file can be removed");
    let foreign = Connection::open(folder.join(FILE_NAME)).expect("another database");
    foreign.execute_batch("CREATE TABLE study (id INTEGER)").expect("its table");
    drop(foreign);
    let foreign = Store::open(&folder);
    assert!(matches!(foreign, Err(StoreError::NotAStore { .. })), "{foreign:?}");
}

#[test]
fn a_store_of_a_later_version_is_refused_with_both_versions() {
    let folder = fresh_folder("newer");
    Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let later = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    later.pragma_update(None, "user_version", STORE_VERSION + 1).expect("the version is raised");
    drop(later);
    for opened in [Store::open(&folder), Store::open_read_only(&folder)] {
        let refused = opened.expect_err("a later version is not understood");
        assert!(matches!(refused, StoreError::Newer { found: 5, known: 4, .. }), "{refused:?}");
    }
}

#[test]
fn a_full_disk_is_named_and_keeps_the_finished_blocks() {
    let folder = fresh_folder("full");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    store.limit_bytes(400 << 10).expect("the limit is taken");
    let mut stored = 0;
    let full = loop {
        match store.append_block(session, &block(stored, 0), u64::from(stored)) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
        assert!(stored < 100, "the limit was never reached");
    };
    assert!(matches!(full, StoreError::Full { .. }), "{full:?}");
    assert!(stored > 0, "at least one block fits");
    drop(store);

    let mut store = Store::open(&folder).expect("the store opens again");
    assert_eq!(store.blocks().expect("blocks").len(), stored as usize);
    store.check_integrity().expect("nothing is damaged");
    store.limit_bytes(BYTES_MAX).expect("there is space again");
    let session = store.begin_session().expect("a session begins");
    store.append_block(session, &block(stored, 0), 1).expect("the block that failed goes in now");
}

#[test]
#[expect(clippy::print_stdout, reason = "says why the test was skipped")]
fn a_disk_too_full_for_a_study_is_named_with_what_is_free_and_a_remedy() {
    let disk = fresh_folder("small-disk");
    fs::create_dir_all(&disk).expect("a folder");
    let command = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).arg(&disk).output();
        output.is_ok_and(|output| output.status.success())
    };
    for kib in [4, 8, 16, 32, 40, 64] {
        if !command("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "none"]) {
            assert!(std::env::var_os("WEIR_REQUIRE_DISKS").is_none(), "WEIR_REQUIRE_DISKS: it needs root");
            println!("skipped: mounting a small disk needs root");
            return;
        }
        // Where the tables fit, the first block may still have no room.
        let stored = Store::create(&disk.join("run"), &study()).and_then(|mut store| {
            let session = store.begin_session()?;
            store.append_block(session, &block(0, 0), 1)
        });
        assert!(command("umount", &[]), "{kib} KiB stay mounted");
        let refused = stored.expect_err("it is too small");
        assert!(matches!(refused, StoreError::NoRoom { .. }), "{kib} KiB: {refused:?}");
        let said = refused.to_string();
        let parts = [&*disk.join("run/study.db").display().to_string(), "KiB free)", "nearly so", "`--out`"];
        assert!(parts.iter().all(|part| said.contains(part)), "{kib} KiB: {said}");
    }
}

#[test]
fn a_damaged_record_is_named() {
    let folder = fresh_folder("damaged");
    let mut store = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = store.begin_session().expect("a session begins");
    store.append_block(session, &block(0, 0), 1).expect("a block is stored");
    drop(store);
    let vandal = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
    vandal.execute("UPDATE trial SET record = substr(record, 1, 100)", []).expect("records are cut");
    drop(vandal);
    let store = Store::open_read_only(&folder).expect("the tables are whole");
    let error = store.blocks().expect_err("the records are not");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
}

#[test]
fn a_study_without_arms_or_cells_is_damaged() {
    for part in ["arms", "cells"] {
        let folder = fresh_folder(part);
        Store::create(&folder, &study()).expect("a fresh folder takes a store");
        let vandal = Connection::open(folder.join(FILE_NAME)).expect("the file opens");
        let emptied = format!("UPDATE study SET spec = json_set(spec, '$.{part}', json('[]'))");
        vandal.execute(&emptied, []).expect("the study is emptied");
        drop(vandal);
        let store = Store::open_read_only(&folder).expect("the tables are whole");
        let refusals =
            [store.study().map(drop), store.brief().map(drop)].map(|it| it.expect_err("it is empty"));
        for refused in refusals {
            let message = refused.to_string();
            assert!(
                matches!(refused, StoreError::Damaged { .. }) && message.contains("has no "),
                "{message}"
            );
        }
    }
}

#[test]
fn a_reader_reads_while_a_session_writes() {
    let folder = fresh_folder("reader");
    let mut writer = Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let session = writer.begin_session().expect("a session begins");
    let reader = Store::open_read_only(&folder).expect("a reader opens beside it");
    for number in 0..3 {
        writer.append_block(session, &block(number, 0), 1).expect("a block is stored");
        assert_eq!(reader.blocks().expect("blocks").len(), number as usize + 1);
    }
}

#[test]
fn a_reader_cannot_write() {
    let folder = fresh_folder("reader-writes");
    Store::create(&folder, &study()).expect("a fresh folder takes a store");
    let mut reader = Store::open_read_only(&folder).expect("a reader opens");
    let refused = reader.begin_session();
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
}
