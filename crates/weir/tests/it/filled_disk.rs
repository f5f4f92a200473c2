//! A disk that is full: finished blocks are kept, and the study goes on when there is space again.

use std::{path::Path, process::Command};

use weir_store::Store;

use super::harness::{
    TWO_ARMS, expect_refusal, folder, shown, skip_without_disk, study_file, study_head, weir,
};

/// A small file system in memory, unmounted when dropped.
pub struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    pub fn mount(at: &'a Path, options: &str) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none", shown(at)]).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at))
    }

    pub fn resize(&self, options: &str) {
        let resized = Command::new("mount").args(["-o", options, shown(self.0)]).status();
        assert!(resized.expect("mount starts").success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // If it fails, it stays until the system's next start.
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_keeps_finished_blocks_and_the_study_goes_on_later() {
    let folder = folder("full-disk");
    let (file, disk) = study_file(&folder, &(study_head(8, "1min") + TWO_ARMS));
    std::fs::create_dir(&disk).expect("a folder can be made");
    let Some(mounted) = SmallDisk::mount(&disk, "size=256k") else {
        skip_without_disk("mounting a small disk needs root");
        return;
    };
    let out = disk.join("run");
    let said = weir(&["study", &file, "--out", shown(&out)]);
    expect_refusal(&said, 1, &["no space left", "free some space", "--resume", "finished blocks are kept"]);
    let blocks =
        |out: &Path| Store::open_read_only(out).and_then(|store| store.blocks()).map(|all| all.len());
    let kept = blocks(&out).expect("the store is readable");
    assert!(kept > 0, "{}", said.stderr);
    let stored =
        if kept == 1 { "(1 block is stored)".to_owned() } else { format!("({kept} blocks are stored)") };
    assert!(said.stderr.contains(&stored), "{kept}: {}", said.stderr);

    let no_room = weir(&["report", shown(&out)]);
    expect_refusal(&no_room, 1, &["report", "free some space", "--out"]);
    let elsewhere = weir(&["report", shown(&out), "--out", shown(&folder.join("pages"))]);
    assert_eq!(elsewhere.code, Some(0), "{}", elsewhere.stderr);

    mounted.resize("remount,size=64m");
    let resumed = weir(&["study", "--resume", shown(&out)]);
    assert!(matches!(resumed.code, Some(0 | 11 | 12)), "{:?} {}", resumed.code, resumed.stderr);
    assert!(blocks(&out).expect("the store is readable") > kept);
}
