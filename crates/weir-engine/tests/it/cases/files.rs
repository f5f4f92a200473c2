//! Files: every byte in its place, whatever is dropped, full or missing.

use std::{
    cell::Cell,
    fs,
    future::Future,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use weir_engine::{
    fs::{self as files, File, Folder, OpenOptions, READ_BYTES_MAX},
    spawn, time,
};

use crate::{
    board::poll_once,
    kernel,
    random::{Pattern, Random},
    rig::Rig,
    scratch::Scratch,
};

const BOTH: OpenOptions = OpenOptions { read: true, write: true, create: true, truncate: false, mode: 0o600 };

/// Waits for all of them, as one task.
async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(value) => *output = Some(value),
                Poll::Pending => is_done = false,
            }
        }
        if is_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, output)| output).collect()
}

/// Random reads and writes, with and without the page cache, compared with a model in memory.
pub fn round_trip(rig: &mut Rig) {
    const LONGEST: usize = 300_000;
    let scratch = Scratch::new(&mut rig.random);
    let (steps, mut random, pattern) = (rig.size(150, 3000), rig.random.fork(), rig.pattern.clone());
    let runtime = rig.runtime();
    let model = runtime.block_on(async {
        let file = File::open_with(scratch.path(), BOTH).await.expect("it can be made");
        let mut model: Vec<u8> = Vec::new();
        for _ in 0..steps {
            let offset = random.between(0, model.len() + 1000);
            // Mostly short; some longer than any pool buffer, and than the limit for direct reads.
            let length = match random.between(0, 9) {
                0 => random.between(0, LONGEST),
                1 if model.len() > 1 << 20 => 2 << 20,
                _ => random.between(0, 9000),
            };
            match random.between(0, 9) {
                0 => scratch.forget_pages(),
                1 => file.sync_data().await.expect("it can be synced"),
                2 => file.sync_all().await.expect("it can be synced"),
                3..=5 => {
                    let bytes = pattern.bytes(random.between(0, 60_000), length);
                    let end = offset + length;
                    if length > 0 && model.len() < end {
                        model.resize(end, 0);
                    }
                    if length > 0 {
                        model[offset..end].copy_from_slice(&bytes);
                    }
                    let back = file.write_at(offset as u64, bytes).await.expect("there is room on the disk");
                    assert_eq!(back.len(), length, "the memory comes back");
                }
                _ => {
                    let bytes = file.read_at(offset as u64, length).await.expect("it can be read");
                    let start = offset.min(model.len());
                    let expected = &model[start..(offset + length).clamp(start, model.len())];
                    assert!(bytes[..] == *expected, "{length} bytes at {offset} of {}", model.len());
                }
            }
        }
        let metadata = file.metadata().await.expect("it is open");
        assert_eq!((metadata.len, metadata.is_file), (model.len() as u64, true));
        assert!(metadata.modified > std::time::SystemTime::UNIX_EPOCH);
        model
    });
    assert!(scratch.bytes() == model, "the file is what was written");
}

/// Reads at the end of a file, beyond it, and of no bytes.
pub fn past_the_end(rig: &mut Rig) {
    let scratch = Scratch::with(&mut rig.random, &rig.pattern.bytes(0, 10_000));
    let pattern = rig.pattern.clone();
    rig.runtime().block_on(async {
        let file = File::open(scratch.path()).await.expect("it is there");
        for (offset, length, expected) in [
            (0, 10_000, 10_000),
            (0, 10_001, 10_000),
            (9_999, 5_000, 1),
            (10_000, 5_000, 0),
            (1 << 40, 5_000, 0),
            (5_000, READ_BYTES_MAX, 5_000),
            (5_000, 0, 0),
        ] {
            let bytes = file.read_at(offset, length).await.expect("it can be read");
            assert_eq!(bytes.len(), expected, "{length} bytes at {offset}");
            pattern.check(offset as usize, &bytes);
        }
        scratch.truncate(0);
        assert!(file.read_at(0, 100).await.expect("it can be read").is_empty());
    });
}

/// A byte that is not in any mark.
const CANARY: u8 = 0xa5;
const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = 32;

/// A block whose every word names the write it comes from.
fn marked(mark: u64) -> Vec<u8> {
    mark.to_le_bytes().repeat(BLOCK_BYTES / 8)
}

/// The mark of a block; `None` when it comes from two writes.
fn mark_of(block: &[u8]) -> Option<u64> {
    let mut words = words(block);
    let first = words.next()?;
    words.all(|word| word == first).then_some(first)
}

fn words(block: &[u8]) -> impl Iterator<Item = u64> {
    block.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")))
}

/// Operations are dropped in flight. Their memory is not reused before they are over, a write that was begun is
/// complete, and later operations are answered.
pub fn dropped(rig: &mut Rig) {
    let scratch = Scratch::with(&mut rig.random, &vec![0; BLOCKS * BLOCK_BYTES]);
    let (rounds, mut random) = (rig.size(400, 20_000), rig.random.fork());
    // A low limit, so that some are dropped while they wait in line.
    rig.config.limits.file_operations_max = 8;
    let mut written = vec![vec![0]; BLOCKS];
    let runtime = rig.runtime();
    runtime.block_on(async {
        let file = File::open_with(scratch.path(), BOTH).await.expect("it is there");
        let mut canaries = Vec::new();
        for round in 1..=rounds as u64 {
            let block = random.between(0, BLOCKS - 1);
            let offset = (block * BLOCK_BYTES) as u64;
            match random.between(0, 4) {
                0 => {
                    written[block].push(round);
                    let _ = poll_once(file.write_at(offset, marked(round))).await;
                }
                1 => drop(poll_once(file.read_at(offset, BLOCK_BYTES)).await),
                2 => drop(poll_once(File::open(scratch.path())).await),
                3 => drop(poll_once(file.sync_data()).await),
                _ => {
                    // A read beside a write in flight may see both: the final contents are whole.
                    let bytes = file.read_at(offset, BLOCK_BYTES).await.expect("it can be read");
                    for mark in words(&bytes) {
                        assert!(written[block].contains(&mark), "nobody has written {mark} to block {block}");
                    }
                }
            }
            if round % 32 == 0 {
                if random.one_in(4) {
                    scratch.forget_pages();
                }
                time::yield_now().await;
            }
            canaries.push(vec![CANARY; BLOCK_BYTES]);
            if canaries.len() > 64 {
                check_canaries(&mut canaries);
            }
        }
        check_canaries(&mut canaries);
    });
    drop(runtime);
    for (number, block) in scratch.bytes().chunks_exact(BLOCK_BYTES).enumerate() {
        let mark = mark_of(block).unwrap_or_else(|| panic!("block {number} is of two writes"));
        assert!(written[number].contains(&mark), "nobody has written {mark} to block {number}");
    }
}

/// Memory that the allocator has handed out again: no other code writes to it.
fn check_canaries(canaries: &mut Vec<Vec<u8>>) {
    assert!(canaries.iter().flatten().all(|byte| *byte == CANARY), "freed memory was written to");
    canaries.clear();
}

/// One thread, two operations at a time: a hundred wait, none fails, and the line moves on when one leaves it.
pub fn at_the_maximum(rig: &mut Rig) {
    let scratch = Scratch::new(&mut rig.random);
    rig.config.limits.file_operations_max = 2;
    rig.config.limits.file_threads_max = 1;
    let (mut random, runtime) = (rig.random.fork(), rig.runtime());
    runtime.block_on(async {
        let file = File::open_with(scratch.path(), BOTH).await.expect("it can be made");
        let mut abandoned = Vec::new();
        for round in 0..5 {
            let writes = (0..100).map(|number| file.write_at(number * 4096, marked(number + round)));
            assert!(all(writes).await.iter().all(Result::is_ok));
            // Some begin, some wait in line, and all are given up, in another order than they came in. They are
            // behind the checked part of the file, because those that have begun may take effect late.
            for number in 100..120 {
                let mut write = Box::pin(file.write_at(number * 4096, marked(number)));
                if poll_once(write.as_mut()).await.is_none() {
                    abandoned.push(write);
                }
            }
            while !abandoned.is_empty() {
                drop(abandoned.swap_remove(random.between(0, abandoned.len() - 1)));
            }
            scratch.forget_pages();
            let reads = all((0..100).map(|number| file.read_at(number * 4096, 4096))).await;
            for (number, bytes) in reads.into_iter().enumerate() {
                let bytes = bytes.expect("it can be read");
                assert_eq!(mark_of(&bytes), Some(number as u64 + round), "block {number}");
            }
        }
    });
}

/// The caller gets the kernel's errors, the same on every driver.
pub fn errors(rig: &mut Rig) {
    let scratch = Scratch::with(&mut rig.random, b"something");
    let missing = Scratch::new(&mut rig.random);
    let number = |error: &std::io::Error| error.raw_os_error();
    rig.runtime().block_on(async {
        let error = File::open(missing.path()).await.expect_err("it is not there");
        assert_eq!(number(&error), Some(libc::ENOENT), "{error}");
        let error = File::open(scratch.path().join("below")).await.expect_err("a file is no folder");
        assert_eq!(number(&error), Some(libc::ENOTDIR), "{error}");
        let folder = std::env::temp_dir();
        let writing = OpenOptions { read: false, write: true, ..OpenOptions::default() };
        let error = File::open_with(&folder, writing).await.expect_err("a folder is no file");
        assert_eq!(number(&error), Some(libc::EISDIR), "{error}");
        let open_folder = File::open(&folder).await.expect("a folder can be opened");
        assert!(!open_folder.metadata().await.expect("it is open").is_file);
        let error = open_folder.read_at(0, 100).await.expect_err("it has no bytes");
        assert_eq!(number(&error), Some(libc::EISDIR), "{error}");
        let write_only = File::open_with(scratch.path(), writing).await.expect("it is there");
        let error = write_only.read_at(0, 100).await.expect_err("it was opened for writing");
        assert_eq!(number(&error), Some(libc::EBADF), "{error}");
        let read_only = File::open(scratch.path()).await.expect("it is there");
        let error = read_only.write_at(0, vec![1]).await.expect_err("it was opened for reading");
        assert_eq!(number(&error), Some(libc::EBADF), "{error}");
        for (offset, length) in [(u64::MAX, 1), (i64::MAX as u64, 1), (0, READ_BYTES_MAX + 1)] {
            let error = read_only.read_at(offset, length).await.expect_err("no file has these bytes");
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        }
        let error = File::open("zero\0byte").await.expect_err("no file is called that");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        assert_eq!(&read_only.read_at(4, 100).await.expect("nothing has changed")[..], b"thing");
    });
}

/// Space is reserved, and reads as zeros; a rename replaces another file, or has no effect.
pub fn room_and_name(rig: &mut Rig) {
    let (scratch, taken) = (Scratch::new(&mut rig.random), Scratch::with(&mut rig.random, b"former"));
    let number = |error: &std::io::Error| error.raw_os_error();
    rig.runtime().block_on(async {
        let file = File::open_with(scratch.path(), BOTH).await.expect("it can be made");
        match file.allocate(10_000).await {
            Ok(()) => assert_eq!(scratch.bytes(), vec![0; 10_000]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}"),
        }
        file.write_at(0, b"head".to_vec()).await.expect("there is room");
        for length in [0, u64::MAX] {
            let error = file.allocate(length).await.expect_err("there is no such room");
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{length}: {error}");
        }
        let no_disk = i64::MAX as u64;
        file.allocate(no_disk).await.expect_err("no disk has so much");
        let held = Arc::new(());
        let renamed = files::rename(scratch.path(), taken.path(), Arc::clone(&held) as _).await;
        renamed.expect("both are there");
        assert_eq!(Arc::strong_count(&held), 1, "it is over");
        let error = files::rename(scratch.path(), taken.path(), held).await.expect_err("it has another name");
        assert_eq!(number(&error), Some(libc::ENOENT), "{error}");
        assert_eq!(&file.read_at(0, 4).await.expect("it is open")[..], b"head");
    });
    assert!(taken.bytes().starts_with(b"head") && !scratch.path().exists());
}

/// When it is dropped, records the file's length at that moment.
struct Held {
    path: PathBuf,
    bytes_then: Arc<AtomicU64>,
}

/// The value until it is dropped.
const STILL_HELD: u64 = u64::MAX;

/// Zero if the file does not exist.
fn bytes_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

impl Drop for Held {
    fn drop(&mut self) {
        self.bytes_then.store(bytes_of(&self.path), Ordering::Relaxed);
    }
}

/// The value to hold, and the length that it records when it is dropped.
fn held(path: &Path) -> (Arc<Held>, Arc<AtomicU64>) {
    let bytes_then = Arc::new(AtomicU64::new(STILL_HELD));
    (Arc::new(Held { path: path.to_owned(), bytes_then: Arc::clone(&bytes_then) }), bytes_then)
}

/// The future of a rename is dropped, and its runtime ends: the held value is dropped when the rename has taken
/// effect, or when it is certain that it will not.
pub fn held_by_a_rename(rig: &mut Rig) {
    for round in 0..rig.size(20, 500) {
        let scratch = Scratch::with(&mut rig.random, b"x");
        let named = Scratch::new(&mut rig.random);
        let (held, bytes_then) = held(named.path());
        let runtime = rig.runtime();
        runtime.block_on(async {
            let mut rename = Box::pin(files::rename(scratch.path(), named.path(), held));
            drop(poll_once(&mut rename).await);
            for _ in 0..round % 3 {
                time::yield_now().await;
            }
        });
        drop(runtime);
        assert_eq!(bytes_then.load(Ordering::Relaxed), bytes_of(named.path()));
    }
}

/// As [`held_by_a_rename`], for a slow write: the held value is dropped when the bytes are written, or when it is
/// certain that they will not be.
pub fn held_by_a_write(rig: &mut Rig) {
    const LENGTH: usize = 1 << 20;
    for round in 0..rig.size(20, 500) {
        let scratch = Scratch::with(&mut rig.random, b"");
        let (held, bytes_then) = held(scratch.path());
        let runtime = rig.runtime();
        runtime.block_on(async {
            let file = File::open_with(scratch.path(), BOTH).await.expect("it is there");
            let mut write = Box::pin(file.write_at_holding(0, vec![7; LENGTH], held));
            drop(poll_once(&mut write).await);
            for _ in 0..round % 3 {
                time::yield_now().await;
            }
        });
        drop(runtime);
        assert_eq!(bytes_then.load(Ordering::Relaxed), bytes_of(scratch.path()));
    }
}

/// Only files below a folder can be opened through it, however the path is written.
pub fn below_folder(rig: &mut Rig) {
    let place = Scratch::new(&mut rig.random);
    let inside = place.path().join("inside");
    fs::create_dir_all(inside.join("deeper")).expect("a folder can be made");
    fs::write(place.path().join("secret"), b"secret").expect("a file can be made");
    fs::write(inside.join("file"), b"something").expect("a file can be made");
    for (target, link) in
        [("../file", "deeper/up"), ("../secret", "out"), ("/etc/passwd", "absolute"), ("loop", "loop")]
    {
        symlink(target, inside.join(link)).expect("a link can be made");
    }
    let folder = Folder::open(&inside).expect("it is there");
    assert!(Folder::open(&inside.join("file")).is_err() && Folder::open(&inside.join("nothing")).is_err());
    rig.runtime().block_on(async {
        for path in ["file", "deeper/up", "deeper/../file"] {
            let file = folder.open_file(path.as_bytes()).await.expect("it lies below");
            assert_eq!(&file.read_at(4, 100).await.expect("it is open")[..], b"thing", "{path}");
        }
        for (path, expected) in [
            ("nothing", libc::ENOENT),
            ("file/below", libc::ENOTDIR),
            ("../secret", libc::EXDEV),
            ("out", libc::EXDEV),
            ("absolute", libc::EXDEV),
            ("/etc/passwd", libc::EXDEV),
            ("loop", libc::ELOOP),
        ] {
            let error = folder.open_file(path.as_bytes()).await.expect_err(path);
            assert_eq!(error.raw_os_error(), Some(expected), "{path}: {error}");
        }
        let error = folder.open_file(b"zero\0byte").await.expect_err("no file is called that");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
        let deeper = folder.open_file(b"deeper").await.expect("a folder can be opened");
        let told = deeper.metadata().await.expect("it is open");
        assert!(told.is_folder && !told.is_file, "{told:?}");
        // The opened file is still the same file, and the folder the same folder, whatever their names are now.
        let file = folder.open_file(b"file").await.expect("it is there");
        fs::rename(&inside, place.path().join("moved")).expect("it is ours");
        let again = folder.open_file(b"file").await.expect("the folder is open");
        assert_eq!(file.metadata().await.expect("it is open"), again.metadata().await.expect("it is open"));
        let part = file.part(0, 9).expect("a part");
        drop(file);
        let same = File::of_part(&part).expect("a runtime");
        assert_eq!(&same.read_at(0, 9).await.expect("the part keeps it open")[..], b"something");
    });
    fs::remove_dir_all(place.path()).expect("it is ours");
}

/// A thousand reads at a time, by one task.
pub fn many_reads(rig: &mut Rig) {
    const READS: usize = 1000;
    let total = 4 << 20;
    let scratch = Scratch::with(&mut rig.random, &rig.pattern.bytes(0, total));
    let (pattern, mut random): (Pattern, Random) = (rig.pattern.clone(), rig.random.fork());
    let runtime = rig.runtime();
    runtime.block_on(async {
        let file = File::open(scratch.path()).await.expect("it is there");
        for cold in [true, false] {
            if cold {
                scratch.forget_pages();
            }
            let places: Vec<(usize, usize)> =
                (0..READS).map(|_| (random.between(0, total - 1), random.between(1, 8000))).collect();
            let reads =
                all(places.iter().map(|(offset, length)| file.read_at(*offset as u64, *length))).await;
            for ((offset, length), bytes) in places.into_iter().zip(reads) {
                let bytes = bytes.expect("it can be read");
                assert_eq!(bytes.len(), length.min(total - offset));
                pattern.check(offset, &bytes);
            }
        }
    });
}

/// A file in memory is read without waiting: a task that keeps reading must still let others run.
pub fn lets_others_run(rig: &mut Rig) {
    const READS_MAX: usize = 1000;
    const LENGTH: usize = 64 << 10;
    let scratch = Scratch::with(&mut rig.random, &rig.pattern.bytes(0, LENGTH));
    let runtime = rig.runtime();
    let reads = runtime.block_on(async {
        let file = File::open(scratch.path()).await.expect("it is there");
        let is_done = Rc::new(Cell::new(false));
        let done = Rc::clone(&is_done);
        let other = spawn(async move {
            for _ in 0..3 {
                time::yield_now().await;
            }
            done.set(true);
        });
        let mut reads = 0;
        while !is_done.get() && reads < READS_MAX {
            reads += 1;
            assert_eq!(file.read_at(0, LENGTH).await.expect("it can be read").len(), LENGTH);
        }
        other.await;
        reads
    });
    assert!(reads < READS_MAX, "the other has waited for all of them");
}

/// A runtime ends with operations of every kind in flight: nothing stays open, and every operation that has begun is
/// complete.
pub fn teardown(rig: &mut Rig) {
    let before = kernel::open_descriptors();
    let scratch = Scratch::with(&mut rig.random, &vec![0; BLOCKS * BLOCK_BYTES]);
    for round in 1..=rig.size(20, 500) as u64 {
        let runtime = rig.runtime();
        runtime.block_on(async {
            let file = File::open_with(scratch.path(), BOTH).await.expect("it is there");
            scratch.forget_pages();
            let file = std::rc::Rc::new(file);
            for block in 0..BLOCKS {
                let (file, path) = (std::rc::Rc::clone(&file), scratch.path().to_owned());
                let offset = (block * BLOCK_BYTES) as u64;
                spawn(async move {
                    let outcome = match block % 4 {
                        0 => file.write_at(offset, marked(round)).await.map(drop),
                        1 => file.read_at(offset, BLOCK_BYTES).await.map(drop),
                        2 => File::open(path).await.map(drop),
                        _ => file.sync_all().await,
                    };
                    outcome.expect("what ends before the runtime ends well");
                });
            }
            for _ in 0..round % 3 {
                time::yield_now().await;
            }
        });
        drop(runtime);
        for (number, block) in scratch.bytes().chunks_exact(BLOCK_BYTES).enumerate() {
            let mark = mark_of(block).unwrap_or_else(|| panic!("block {number} is of two writes"));
            assert!(mark <= round);
        }
    }
    assert_eq!(kernel::open_descriptors(), before, "descriptors are left open");
}

/// At a limit on threads neither a helper thread nor a kernel worker can be started, and their operations still
/// succeed.
pub fn without_threads(rig: &mut Rig) {
    const LENGTH: usize = 100_000;
    const PATIENCE: Duration = Duration::from_secs(10);
    let (scratch, renamed) = (Scratch::new(&mut rig.random), Scratch::new(&mut rig.random));
    let pattern = rig.pattern.clone();
    let runtime = rig.runtime();
    if let Err(why) = kernel::allow_no_more_threads() {
        return rig.skip(why);
    }
    let held = Arc::new(());
    let is_done = runtime.block_on(async {
        let opened = time::timeout(PATIENCE, File::open_with(scratch.path(), BOTH)).await;
        let Ok(file) = opened else { return false };
        let file = file.expect("it can be made");
        match file.allocate(LENGTH as u64).await {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}"),
        }
        file.write_at(0, pattern.bytes(0, LENGTH / 2)).await.expect("there is room");
        let rest = pattern.bytes(LENGTH / 2, LENGTH / 2);
        let written = file.write_at_holding(LENGTH as u64 / 2, rest, Arc::clone(&held) as _).await;
        written.expect("there is room");
        file.sync_data().await.expect("it can be synced");
        scratch.forget_pages();
        let bytes = file.read_at(0, LENGTH).await.expect("it can be read");
        assert_eq!(bytes.len(), LENGTH);
        pattern.check(0, &bytes);
        file.sync_all().await.expect("it can be synced");
        let moved = files::rename(scratch.path(), renamed.path(), Arc::clone(&held) as _).await;
        moved.expect("it is there");
        let missing = File::open(scratch.path()).await.expect_err("it has another name");
        assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
        true
    });
    if !is_done {
        assert!(rig.subject.is_uring(), "who has no helper does it himself");
        return rig.skip("this kernel tries forever to start a worker of io_uring".to_owned());
    }
    assert_eq!(Arc::strong_count(&held), 1, "what was held is let go");
    let stats = runtime.counters().snapshot();
    // With submission by a kernel thread, the workers belong to that thread, which was started before.
    if rig.subject.is_uring() && rig.config.uring.poll_idle_ms.is_none() {
        let all = "opening, reserving, a write that holds something, two syncs and renaming";
        assert!(stats.file_calls >= 6, "{all} were not all done here: {stats:?}");
    }
    drop(runtime);
    pattern.check(0, &renamed.bytes());
}
