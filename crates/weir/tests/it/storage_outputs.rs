//! Outputs of `weir storage run`: never onto its measured or input files, nor onto a device.

use std::{fs, path::Path};

use super::{
    harness::{expect_refusal, folder, shown},
    storage::{data, job_file, run},
};

#[test]
fn no_output_overwrites_what_is_measured_or_says_what_to_do() {
    let folder = folder("storage-outputs");
    let file = data(&folder, 1 << 20);
    let before = fs::read(&file).expect("it is there");
    let link = folder.join("link");
    std::os::unix::fs::symlink(&file, &link).expect("a link can be made");
    let log = folder.join("log_clat.1.log");
    fs::hard_link(&file, &log).expect("a second name");
    let words = ["--file", &file, "-n", "1"];
    for (more, flag) in [
        (&["--csv", &file][..], "--csv"),
        (&["--csv", shown(&link)], "--csv"),
        (&["--log-prefix", shown(&folder.join("log"))], "--log-prefix"),
    ] {
        expect_refusal(
            &run(&[&words[..], more].concat()),
            2,
            &[flag, "the file of job", "name another file"],
        );
    }
    let new = folder.join("new");
    let made = ["--file", shown(&new), "--rw", "write", "--size", "64k", "--csv", shown(&new)];
    expect_refusal(&run(&made), 2, &["--csv", "the file of job"]);
    assert!(!new.exists(), "it is refused before anything is made");
    let text =
        format!("[a]\nfilename={file}\nrw=read\nnumber_ios=1\nwrite_bw_log={}\n", shown(&folder.join("log")));
    let jobs = job_file(&folder, &text);
    expect_refusal(&run(&[shown(&jobs)]), 2, &["write_lat_log", "the file of job a"]);
    fs::remove_file(&log).expect("a second name");
    expect_refusal(&run(&[shown(&jobs), "--csv", shown(&jobs)]), 2, &["--csv", "the job file"]);
    assert_eq!(fs::read_to_string(&jobs).expect("it is there"), text);
    let (inner, including) = (folder.join("inner.inc"), folder.join("including.fio"));
    fs::write(&inner, &text).expect("a file can be written");
    fs::write(&including, "include inner.inc\n").expect("a file can be written");
    let link_to_inner = folder.join("link-to-inner");
    std::os::unix::fs::symlink(&inner, &link_to_inner).expect("a link can be made");
    for output in [&inner, &link_to_inner] {
        expect_refusal(&run(&[shown(&including), "--csv", shown(output)]), 2, &["--csv", "the job file"]);
    }
    assert_eq!(fs::read_to_string(&inner).expect("it is there"), text);
    let prefix = folder.join("log");
    let both = ["--csv", shown(&log), "--log-prefix", shown(&prefix)];
    expect_refusal(&run(&[&words[..], &both].concat()), 2, &["--log-prefix", "written by --csv too"]);
    assert!(fs::read(&file).expect("it is there") == before);
}

#[test]
fn a_block_device_is_no_place_for_an_output() {
    let names = fs::read_dir("/sys/block").into_iter().flatten().filter_map(Result::ok);
    let devices = names.map(|entry| Path::new("/dev").join(entry.file_name()));
    let Some(device) = devices.into_iter().find(|device| device.exists()) else {
        println!("skipped: no block device can be named here");
        return;
    };
    let folder = folder("storage-output-device");
    let file = data(&folder, 8192);
    // Through a link, and in a run that cannot begin: even a defective program could write nothing there.
    let link = folder.join("link_lat.1.log");
    std::os::unix::fs::symlink(&device, &link).expect("a link can be made");
    let words = ["--file", &file, "--offset", "4096t"];
    for (more, flag) in
        [(["--csv", shown(&link)], "--csv"), (["--log-prefix", shown(&folder.join("link"))], "--log-prefix")]
    {
        expect_refusal(
            &run(&[&words[..], &more].concat()),
            2,
            &[flag, "is a block device", "name a regular file"],
        );
    }
}
