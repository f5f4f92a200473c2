//! What job files mean, and which lines are refused.

use weir_record::storage::{AccessPattern, Sequencer};

use super::*;

fn read(text: &str) -> JobFile {
    JobFile::parse("jobs.fio", text, false).expect("it can be read")
}

fn refused(text: &str) -> String {
    let file = match JobFile::parse("jobs.fio", text, false) {
        Ok(file) => file,
        Err(error) => return error.to_string(),
    };
    file.validate().expect_err("it is refused").to_string()
}

#[test]
fn a_job_without_keys_is_fios_default() {
    let file = read("[job]\nfilename=data\n");
    let expected = StorageJob {
        name: "job".into(),
        file: "data".into(),
        file_given: true,
        pattern: AccessPattern::Read,
        direct: false,
        drops_cache: true,
        advises_order: true,
        engine: StorageEngine::Pread,
        seed: 0x89,
        random_repeat: true,
        syncs_as_fio: true,
        ..StorageJob::default()
    };
    assert_eq!(file.jobs, [expected]);
    assert_eq!(file.validate(), Ok(()));
}

#[test]
fn globals_hold_for_the_jobs_after_them() {
    let file = read(
        "; a comment\n[global]\nbs=8k   # and another\nfilename=data\n\n[first]\nrw = randread\n\
         [global]\nbs=16k\n[second]\niodepth=4\nioengine=libaio\n[third]\nbs=512\nstonewall\n",
    );
    let blocks: Vec<u32> = file.jobs.iter().map(|job| job.block_bytes).collect();
    assert_eq!(blocks, [8192, 16_384, 512]);
    assert_eq!(file.jobs[0].pattern, AccessPattern::RandRead);
    assert_eq!((file.jobs[1].depth, file.jobs[1].engine), (4, StorageEngine::Libaio));
    let walls: Vec<bool> = file.jobs.iter().map(|job| job.stonewall).collect();
    assert_eq!(walls, [false, false, true]);
}

#[test]
fn every_key_arrives() {
    let file = read(
        "[all]\nfilename=data\ndirectory=/d/\nsize=64m\noffset=4k\nbs=4k,4k\nrw=randrw\nrwmixread=70\ndirect=1\n\
         ioengine=io_uring\nhipri\nsqthread_poll=1\nfixedbufs\nregisterfiles=1\niodepth=32\nnumjobs=2\nruntime=5\n\
         time_based\nramp_time=500ms\nstartdelay=1\nrate_iops=100\ncpus_allowed=0-1\nrandseed=0x2a\nrandrepeat=0\n\
         norandommap\npercentile_list=50:99.9\nwrite_lat_log=log\nwrite_iops_log=log\nlog_avg_msec=100\n\
         verify=crc32c\nfsync=8\nnumber_ios=1000\ngroup_reporting\nthread\nweir_interval=250\n\
         weir_ring_mode=coop\nweir_hybrid_iopoll=1\nweir_device_clock=tracepoint\nweir_sleep=timerfd\n\
         weir_predictor=linux-mean:0.5\nweir_armed=1\n",
    );
    let [job] = &file.jobs[..] else { panic!("{} jobs", file.jobs.len()) };
    assert_eq!((job.file.as_str(), job.size_bytes, job.offset_bytes), ("/d/data", Some(64 << 20), 4096));
    assert_eq!((job.pattern, job.read_percent, job.direct), (AccessPattern::RandRw, 70, true));
    let options = job.options;
    assert!(options.iopoll && options.sqpoll && options.fixed_buffers && options.fixed_files);
    assert!(options.hybrid_iopoll && !options.high_priority);
    assert_eq!((job.depth, job.threads), (32, 2));
    assert_eq!((job.runtime_ns, job.time_based), (Some(5_000_000_000), true));
    assert_eq!((job.ramp_ns, job.start_delay_ns), (500_000_000, 1_000_000_000));
    assert_eq!((job.rate_iops, job.operations_max, job.fsync_every), (Some(100), None, 8));
    assert_eq!(job.rate_writes_iops, Some(100));
    assert_eq!((job.cpus.as_slice(), job.seed, job.random_repeat), (&[0, 1][..], 42, false));
    assert_eq!((job.percentiles.as_slice(), job.log_average_ms), (&[50.0, 99.9][..], 100));
    assert_eq!((job.log_prefix.as_deref(), job.verify_crc32c), (Some("log"), true));
    assert_eq!((job.completion.predictor.as_str(), job.completion.armed), ("linux-mean:0.5", true));
    assert_eq!(job.interval_ns, 250_000_000);
}

#[test]
fn the_keys_that_job_files_have_most_arrive() {
    let file = read(
        "[global]\nioengine=sync\nverify=0\nloops=3\n[a]\nname=first\nfilename=data\nsize=50%\nrw=write\n\
         rate=2m,1m\nfdatasync=4\nbsrange=4k-16k\n[b]\nname=second\nsize=1m\nrw=randread\n\
         random_distribution=zipf:1.2:0.5\nbssplit=4k/10:64k/90\n",
    );
    let [first, second] = &file.jobs[..] else { panic!("{} jobs", file.jobs.len()) };
    assert_eq!((first.engine, first.verify_crc32c, first.loops), (StorageEngine::Pread, false, 3));
    assert_eq!((first.size_bytes, first.size_percent), (None, Some(50)));
    assert_eq!((first.rate_bytes, first.fdatasync_every), (Some(1 << 20), 4));
    assert_eq!((first.block_bytes, &first.block_sizes), (16_384, &BlockSizes::Range { bytes_min: 4096 }));
    // As in fio, a job's own file is named after its section.
    assert_eq!((second.name.as_str(), second.file.as_str()), ("second", "b.0.0"));
    assert_eq!(second.skew, Skew::Zipf { theta: 1.2, center: Some(0.5) });
    assert!(matches!(&second.block_sizes, BlockSizes::Split(shares) if shares.len() == 2));
    assert_eq!(file.validate(), Ok(()));
    let last = read("[a]\nfilename=f\nsize=50%\nsize=1m\nbsrange=4k-8k\nbs=4k\n");
    assert_eq!((last.jobs[0].size_percent, &last.jobs[0].block_sizes), (None, &BlockSizes::Same));
}

#[test]
fn the_page_cache_forgets_the_file_unless_that_is_unwanted() {
    let of = |keys: &str| {
        let job = read(&format!("[j]\nfilename=f\n{keys}")).jobs.remove(0);
        (job.drops_cache, job.advises_order)
    };
    assert_eq!(of(""), (true, true));
    assert_eq!(of("invalidate=0\n"), (false, true));
    assert_eq!(of("invalidate\nfadvise_hint=0\n"), (true, false));
}

#[test]
fn each_direction_of_a_mixed_job_has_its_rate() {
    let of = |rw: &str, rate: &str| {
        let job = read(&format!("[j]\nfilename=f\nrw={rw}\n{rate}\n")).jobs.remove(0);
        ((job.rate_iops, job.rate_writes_iops), (job.rate_bytes, job.rate_writes_bytes))
    };
    assert_eq!(of("randrw", "rate_iops=200").0, (Some(200), Some(200)));
    assert_eq!(of("rw", "rate_iops=200,100").0, (Some(200), Some(100)));
    assert_eq!(of("randread", "rate_iops=200,100").0, (Some(200), None));
    assert_eq!(of("write", "rate_iops=200,100,7").0, (Some(100), None));
    assert_eq!(of("randrw", "rate=4k,8k").1, (Some(4096), Some(8192)));
}

#[test]
fn a_part_of_a_size_or_of_a_file_is_so_many_operations() {
    let of = |keys: &str| {
        let job = read(&format!("[j]\nfilename=f\n{keys}\n")).jobs.remove(0);
        (job.size_bytes, job.operations_max)
    };
    assert_eq!(of("size=1m\nio_size=258k"), (Some(1 << 20), Some(65)));
    assert_eq!(of("size=1m\nio_limit=1m"), (Some(1 << 20), None));
    assert_eq!(of("filesize=1m"), (Some(1 << 20), None));
    assert_eq!(of("filesize=1m\nsize=256k"), (Some(1 << 20), Some(64)));
    assert_eq!(of("size=1m\nio_size=256k\nnumber_ios=9"), (Some(1 << 20), Some(9)));
}

#[test]
fn what_is_more_than_a_size_and_what_time_alone_ends() {
    let of = |keys: &str| read(&format!("[j]\nfilename=f\n{keys}\n")).jobs.remove(0);
    let more = of("size=1m\nio_size=3m");
    assert_eq!((more.size_bytes, more.done_bytes, more.operations_max), (Some(1 << 20), Some(3 << 20), None));
    for limit in
        ["size=1m\nio_size=64k", "size=1m\nio_size=3m", "size=1m\nnumber_ios=5", "filesize=1m\nsize=64k"]
    {
        let timed = of(&format!("{limit}\ntime_based\nruntime=1"));
        assert_eq!((timed.operations_max, timed.done_bytes), (None, None), "{limit}");
    }
}

#[test]
fn keys_of_how_operations_follow_each_other_arrive() {
    let of = |keys: &str| read(&format!("[j]\nfilename=f\n{keys}\n")).jobs.remove(0);
    let random = of("rw=randread:8\nrw_sequencer=identical\nrandom_generator=tausworthe64");
    assert_eq!((random.random_every, random.sequencer), (8, Sequencer::Identical));
    assert!(random.random_wide);
    assert_eq!((of("rw=read:64k").stride_bytes, of("rw=write:-8k").stride_bytes), (65_536, -8192));
    let lengths = of("rw=randrw\nbs=4k,64k");
    assert_eq!(lengths.block_bytes, 65_536);
    assert_eq!(lengths.block_sizes, BlockSizes::ByDirection { reads: 4096, writes: 65_536 });
    let normal = of("rw=randread\nrandom_distribution=normal:10");
    assert_eq!(normal.skew, Skew::Normal { percent: 10.0, center: None });
}

#[test]
fn each_thread_begins_further_where_that_is_asked_for() {
    let offsets = |text: &str| -> Vec<(u64, u32)> {
        read(text).jobs.iter().map(|job| (job.offset_bytes, job.threads)).collect()
    };
    let keys = "numjobs=3\noffset=4k\noffset_increment=1m\nsize=1m\n";
    let expected = [(4096, 1), (4096 + (1 << 20), 1), (4096 + (2 << 20), 1)];
    assert_eq!(offsets(&format!("[j]\nfilename=f\n{keys}")), expected);
    assert_eq!(offsets(&format!("[j]\n{keys}")), expected);
}

#[test]
fn groups_waits_and_ends_arrive() {
    let file = read(
        "[global]\nfilename=f\nrw=write\nend_fsync=1\nexitall\n[a]\n[b]\nwait_for=a\nnew_group\n[c]\nwait_for=a\nrw=read\n",
    );
    let [a, b, c] = &file.jobs[..] else { panic!("{} jobs", file.jobs.len()) };
    assert_eq!([a.stonewall, b.stonewall, c.stonewall], [false, true, false]);
    assert_eq!([a.new_group, b.new_group, c.new_group], [false, true, false]);
    assert_eq!([a.end_fsync, b.end_fsync, c.end_fsync], [true, true, false], "it is about writes");
    assert!(a.exit_all && c.exit_all);
}

#[test]
fn a_job_can_undo_what_is_said_for_all() {
    let file = read(
        "[global]\nfilename=f\nrw=write\nend_fsync=1\nwrite_lat_log=all\n[a]\n[b]\nend_fsync=0\n\
         write_lat_log=own\n[c]\nend_fsync=0\nfsync_on_close=1\n[d]\nfsync_on_close=0\n",
    );
    let at_end: Vec<bool> = file.jobs.iter().map(|job| job.end_fsync).collect();
    assert_eq!(at_end, [true, false, true, true]);
    let prefixes: Vec<_> = file.jobs.iter().filter_map(|job| job.log_prefix.as_deref()).collect();
    assert_eq!(prefixes, ["all", "own", "all", "all"]);
}

#[test]
fn overlaps_are_refused_wherever_two_operations_in_flight_can_touch_one_block() {
    let of = |keys: &str| {
        let head = "[j]\nfilename=f\nioengine=libaio\niodepth=4\nserialize_overlap=1\n";
        JobFile::parse("jobs.fio", &format!("{head}{keys}"), false).is_ok()
    };
    for keys in [
        "rw=rw\n",
        "rw=randrw\nbs=4k,16k\n",
        "rw=read:4k\n",
        "rw=write:-4k\n",
        "rw=randread:4\n",
        "rw=randwrite\nrandom_distribution=zipf\n",
        "rw=write\nloops=2\n",
        "rw=read\ntime_based\nruntime=1\n",
    ] {
        assert!(!of(keys), "{keys}");
    }
    for keys in ["rw=write\n", "rw=randrw\n", "rw=randrw\nbsrange=4k-16k\n", "rw=write\nbs=4k,16k\n"] {
        assert!(of(keys), "{keys}");
    }
    assert!(of("rw=rw\niodepth=1\n"), "one at a time");
}

#[test]
fn another_checksum_is_told_to_be_ours() {
    let file = read("[j]\nfilename=f\nrw=write\nverify=md5\n");
    assert!(file.jobs[0].verify_crc32c);
    assert_eq!(
        file.warnings,
        ["jobs.fio:4: verify: blocks carry a CRC-32C in place of md5, and are verified by it"]
    );
    let same = read("[j]\nfilename=f\nrw=write\nverify=crc32c-intel\n");
    assert!(same.jobs[0].verify_crc32c && same.warnings.is_empty());
}

#[test]
fn keys_without_effect_are_told_once_and_those_that_say_what_is_so_are_not() {
    let file = read(
        "[global]\nfilename=f\ngtod_reduce=1\niodepth_batch_complete_max=256\nkb_base=1024\noverwrite=0\n\
         do_verify=1\nverify_dump\nserialize_overlap=0\ndisable_lat=0\n[a]\n[b]\n",
    );
    let starts = [
        "jobs.fio:3: gtod_reduce: ",
        "jobs.fio:4: iodepth_batch_complete_max: ",
        "jobs.fio:8: verify_dump: ",
    ];
    assert_eq!(file.warnings.len(), 3, "{:?}", file.warnings);
    for (warning, start) in file.warnings.iter().zip(starts) {
        assert!(warning.starts_with(start) && warning.contains("without effect"), "{warning}");
    }
}

#[test]
fn variables_have_their_values_outside_of_comments() {
    let value = |name: &str| (name == "SIZE").then(|| "64m".to_owned());
    let with = |text: &str| with_variables("jobs.fio", text, value);
    let text = "[a] # ${NONE}\nsize=${SIZE}\nname=x-${SIZE}-${SIZE};${\n$ncpus\n";
    let expected = "[a] # ${NONE}\nsize=64m\nname=x-64m-64m;${\n$ncpus\n";
    assert_eq!(with(text), Ok(expected.to_owned()));
    for (text, words) in [
        ("[a]\nsize=${NONE}\n", "jobs.fio:2: the variable NONE is not set"),
        ("size=${SIZE\n", "jobs.fio:1: \"SIZE\" has no end"),
    ] {
        let said = with(text).expect_err("it is refused").to_string();
        assert!(said.starts_with(words), "{said}");
    }
    let lines = with_variables("jobs.fio", "${X}\n", |_| Some("a\nb".to_owned()));
    assert!(lines.is_err(), "a value is no second line");
    let long = with_variables("jobs.fio", &"${X}".repeat(100), |_| Some("x".repeat(TEXT_BYTES_MAX / 50)));
    assert!(long.expect_err("it is too long").to_string().contains("too long"));
}

#[test]
fn what_is_said_for_all_jobs_is_known_with_its_last_value() {
    let text = "[global]\nbs=4k\ntime_based\nlockmem=1g\n[a]\nfilename=f\nrw=read\n[global]\nbs=8k\n";
    let file = JobFile::parse("jobs.fio", text, true).expect("it is lenient");
    let said = [("bs", "8k"), ("time_based", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(file.global_options, said);
}

#[test]
fn a_name_for_all_is_that_of_none() {
    let file = read("[global]\nname=suite\nfilename=f\n[a]\n[b]\nname=own\n");
    let names: Vec<&str> = file.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["a", "own"]);
}

#[test]
fn engines_of_fio_have_ours_behind_them() {
    for (name, engine) in [
        ("psync", StorageEngine::Pread),
        ("pvsync", StorageEngine::Pwritev),
        ("pvsync2", StorageEngine::Pwritev),
        ("libaio", StorageEngine::Libaio),
        ("posixaio", StorageEngine::Posixaio),
        ("io_uring", StorageEngine::IoUring),
    ] {
        assert_eq!(read(&format!("[j]\nfilename=f\nioengine={name}\n")).jobs[0].engine, engine);
    }
    let polled = read("[j]\nfilename=f\nioengine=pvsync2\nhipri=1\n");
    assert!(polled.jobs[0].options.high_priority);
    let pool = read("[j]\nfilename=f\nweir_engine=threads\n");
    assert_eq!(pool.jobs[0].engine, StorageEngine::Threads);
}

#[test]
fn threads_without_a_file_name_have_files_of_their_own() {
    let file = read(
        "[a b]\nsize=1m\ndirectory=d\nnumjobs=2\nstonewall\n[c]\nfilename=x\nnumjobs=3\n[d]\nfilename=y\n",
    );
    let files: Vec<&str> = file.jobs.iter().map(|job| job.file.as_str()).collect();
    assert_eq!(files, ["d/a b.0.0", "d/a b.1.0", "x", "y"]);
    let numbers: Vec<(u32, u32)> = file.jobs.iter().map(|job| (job.thread_first, job.threads)).collect();
    assert_eq!(numbers, [(1, 1), (2, 1), (3, 3), (6, 1)]);
    assert!(file.jobs[0].stonewall && !file.jobs[1].stonewall);
    let named = read("[j]\nsize=1m\nfilename_format=data.$jobnum\n");
    assert_eq!((named.jobs[0].file.as_str(), named.jobs[0].file_given), ("data.0", false));
}

#[test]
fn a_mistake_is_told_with_its_line() {
    for (text, line, words) in [
        ("", 1, "no job"),
        ("bs=4k\n", 1, "no section"),
        ("[j]\nfilename=f\n\n# x\ncolour=red\n", 5, "no key \"colour\""),
        ("[j\nfilename=f\n", 1, "begins no section"),
        ("[j]\nfilename=f\nbs=4KiB\n", 3, "write 4k"),
        ("[j]\nfilename=f\nbs=4k,6k\nrw=rw\n", 3, "multiple"),
        ("[j]\nfilename=f\nbs=8k,\n", 3, "leaves out"),
        ("[j]\nfilename=f\nio_size=1m\n", 3, "give that too"),
        ("[j]\nfilename=f\nsize=1m\nio_size=2m\nrw=rw\n", 4, "use randrw"),
        ("[j]\nfilename=f\nsize=1m\nio_size=2m\nloops=2\n", 4, "leave one of both out"),
        ("[j]\nfilename=f\nfilesize=2m\nsize=1m\nbsrange=4k-8k\n", 3, "one length"),
        ("[j]\nfilename=f\noverwrite=1\n", 3, "only 0"),
        ("[j]\nfilename=f\nrw=randtrim\n", 3, "trims are not made"),
        ("[j]\nfilename=f\nrw=randread:0\n", 3, "none"),
        ("[j]\nfilename=f\nrw=read:1k\n", 3, "no multiple"),
        ("[j]\nfilename=f\nrw=write:-8k\noffset=8k\n", 3, "leave the offset out"),
        ("[j]\nfilename=f\nrw=randread:4\nsize=1m\nloops=2\n", 3, "goes on where it was"),
        ("[j]\nfilename=f\nrw_sequencer=identical\n", 3, "rw=randread:8"),
        ("[j]\nfilename=f\nbs=4k,6k\nrw=randrw\n", 3, "no multiple of 4096"),
        ("[a]\nfilename=f\n[b]\nfilename=f\nwait_for=c\n", 5, "no job c above"),
        ("[j]\nfilename=f\nbs=4k,16k\nrw=randrw\nrandom_distribution=zipf\n", 3, "one length"),
        ("[j]\nfilename=f\nbs=16k,4k\nrw=randread\nrandom_distribution=normal\n", 3, "one length"),
        ("[j]\nfilename=f\nzonemode=zbd\n", 3, "only none"),
        ("[j]\nfilename=f\nsync=1\n", 3, "fsync=1"),
        ("[j]\nfilename=f\nio_submit_mode=offload\n", 3, "only inline"),
        ("[j]\nfilename=f\nfallocate=much\n", 3, "use one of none"),
        (
            "[j]\nfilename=f\nioengine=libaio\niodepth=4\nrw=randread\nnorandommap\nserialize_overlap=1\n",
            7,
            "iodepth=1",
        ),
        ("[j]\nfilename=f\nrandom_generator=lfsr\n", 3, "tausworthe64"),
        ("[j]\nfilename=f\nrandom_generator=tausworthe64\nbsrange=4k-8k\n", 3, "leave it out"),
        ("[j]\nfilename=f\nkb_base=1000\n", 3, "only 1024"),
        ("[j]\nfilename=f\niodepth_batch_complete_min=0\n", 3, "only 1"),
        ("[j]\nfilename=f\nrw=randrw\nrate_iops=,200\n", 4, "leaves out"),
        ("[j]\nfilename=f\nrate=1m,1m,1m,1m\n", 3, "more values"),
        ("[j]\nfilename=f\nrw=randrw\nrate_iops=200,0\n", 4, "1 operation"),
        ("[j]\nfilename=f\nrw=sideways\n", 3, "randread"),
        ("[j]\nfilename=f\nioengine=mmap\n", 3, "io_uring"),
        ("[j]\nfilename=f:g\n", 2, "several files"),
        ("[j]\nfilename=${F}\n", 2, "variables"),
        ("[j]\nfilename=\n", 2, "no value"),
        ("[j]\nrw=read\n", 1, "no size"),
        ("[a]\nfilename=f\n[b]\nsize=1m\nnumjobs=0\n", 5, "1 to 1024"),
        ("[j]\nfilename=f\nrw=write\nverify=pattern\n", 4, "use crc32c"),
        ("[j]\nfilename=f\nrw=write\nverify=luck\n", 4, "use one of"),
        ("[j]\nfilename=f\nhipri\n", 3, "hipri"),
        ("[j]\nfilename=f\nwrite_lat_log=a\nwrite_bw_log=b\n", 3, "one prefix"),
        ("[j]\nfilename=f\niodepth=0x\n", 3, "whole number"),
        ("[j]\nfilename=f\nsize=0%\n", 3, "1% to 100%"),
        ("[j]\nfilename=f\nbsrange=16k-4k\n", 3, "4k-16k"),
        ("[j]\nfilename=f\nbssplit=4k/60:8k/60\n", 3, "together 100"),
        ("[j]\nfilename=f\nbssplit=4k/50:8k/50,8k/100\n", 3, "reads and writes"),
        ("[j]\nfilename=f\nrandom_distribution=zipf:1\n", 3, "neither 0 nor 1"),
        ("[j]\nfilename=f\nrandom_distribution=zoned:50/5\n", 3, "zipf:THETA"),
        ("[j]\nfilename=f\nloops=0\n", 3, "1 or more"),
        ("[j]\nrw=read\nsize=50%\n", 3, "which file"),
        // Errors that only the complete job shows.
        ("[j]\nfilename=f\niodepth=8\n", 3, "one operation in flight"),
        ("[global]\ndirect=1\nbs=1000\n[j]\nfilename=f\n", 3, "multiple of 512"),
        ("[j]\nfilename=f\ntime_based\n", 3, "needs an end"),
        ("[j]\nfilename=f\nweir_completion=magic\n", 3, "weir_completion"),
    ] {
        let said = refused(text);
        assert!(said.starts_with(&format!("jobs.fio:{line}: ")) && said.contains(words), "{said}");
    }
}

#[test]
fn what_is_unknown_can_be_left_out() {
    let text = "[global]\nunlink=1\n[a]\nfilename=f\n[b]\nfilename=f\nlockmem=1g\n";
    let file = JobFile::parse("jobs.fio", text, true).expect("it is lenient");
    assert_eq!(file.jobs.len(), 2);
    assert_eq!(file.warnings.len(), 2, "{:?}", file.warnings);
    assert!(file.warnings[0].starts_with("jobs.fio:2: ") && file.warnings[1].starts_with("jobs.fio:7: "));
    let wrong = JobFile::parse("jobs.fio", "[a]\nfilename=f\nbs=much\n", true);
    assert!(wrong.is_err(), "a wrong value is not an unknown key");
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let text = "#".repeat(TEXT_BYTES_MAX + 1);
    assert!(refused(&text).contains("too long"));
    assert!(refused(&text[1..]).contains("no job"));
}

#[test]
fn a_short_file_cannot_ask_for_millions_of_jobs() {
    let head = "[global]\nsize=1m\nnumjobs=1000\n";
    assert_eq!(read(&format!("{head}[a]\n")).jobs.len(), 1000);
    let many = format!("{head}{}", "[a]\n".repeat(100_000));
    assert_eq!(refused(&many), "jobs.fio:5: 2000 jobs in all are too many; at most 1024");
}
