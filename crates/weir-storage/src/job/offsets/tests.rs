//! Orders recorded from fio 3.33, and properties of every order.

use proptest::prelude::*;
use weir_record::storage::{AccessPattern, Skew};

use super::*;

fn job(pattern: AccessPattern) -> StorageJob {
    StorageJob { pattern, ..StorageJob::default() }
}

fn all(job: &StorageJob, used_bytes: u64) -> Vec<Step> {
    let mut offsets = Offsets::new(job, 0, used_bytes);
    std::iter::from_fn(|| offsets.next()).collect()
}

fn blocks_of(steps: &[Step]) -> Vec<u64> {
    steps.iter().map(|step| step.offset_bytes / 4096).collect()
}

#[test]
fn random_blocks_are_those_of_fio() {
    // Recorded from fio 3.33: write_iolog of psync jobs with bs=4k over 2 MiB.
    let of = |job: StorageJob| all(&job, 512 * 4096);
    let repeated = |thread_first| {
        let repeated = StorageJob { random_repeat: true, thread_first, ..job(AccessPattern::RandRead) };
        blocks_of(&of(repeated))
    };
    let first = repeated(1);
    assert_eq!(first[..10], [30, 379, 431, 240, 205, 430, 194, 181, 467, 34]);
    assert_eq!(first[509..], [9, 156, 157], "the last free blocks, found around the end");
    let second = repeated(2);
    assert_eq!(second[..10], [130, 93, 307, 20, 231, 315, 356, 145, 147, 43]);
    assert_eq!(second[509..], [196, 219, 220]);
    let third = StorageJob { seed: 42, thread_first: 3, ..job(AccessPattern::RandRead) };
    let seeded = blocks_of(&of(third));
    assert_eq!(seeded[..10], [404, 27, 448, 336, 349, 70, 165, 445, 182, 245]);
    let fourth = StorageJob { seed: 7, read_percent: 70, thread_first: 4, ..job(AccessPattern::RandRw) };
    let mixed = of(fourth);
    assert_eq!(blocks_of(&mixed)[..10], [495, 281, 115, 393, 385, 168, 246, 105, 106, 255]);
    let reads: Vec<bool> = mixed[..10].iter().map(|step| step.reads).collect();
    assert_eq!(reads, [true, true, true, true, false, false, true, false, true, true]);
}

/// Offsets in kilobytes and lengths, prefixed by the direction where it matters: `r4+8`.
fn shown(steps: &[Step]) -> String {
    let one = |step: &Step| {
        let direction = if step.reads { 'r' } else { 'w' };
        format!("{direction}{}+{}", step.offset_bytes / 1024, step.bytes / 1024)
    };
    steps.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn repeating(pattern: AccessPattern) -> StorageJob {
    StorageJob { random_repeat: true, seed: 0x89, ..job(pattern) }
}

#[test]
fn operations_of_several_lengths_are_those_of_fio() {
    // As above, over 128 KiB.
    let range = StorageJob {
        block_bytes: 16_384,
        block_sizes: BlockSizes::Range { bytes_min: 4096 },
        ..repeating(AccessPattern::RandRead)
    };
    let of = |job: &StorageJob| shown(&all(job, 128 << 10));
    assert_eq!(
        of(&range),
        "r4+4 r92+12 r104+16 r60+8 r48+12 r120+4 r68+16 r44+4 r124+4 r8+4 r0+4 r84+8 r12+4 r28+4 r16+4 r20+8 r32+12"
    );
    let without_map = StorageJob { no_random_map: true, ..range.clone() };
    assert!(of(&without_map).starts_with("r4+4 r92+12 r104+16 r60+8 r48+16 r104+4 r48+16"));
    let mixed = StorageJob { pattern: AccessPattern::RandRw, ..range };
    assert!(of(&mixed).starts_with("r4+4 r92+12 r104+16 w60+4 r48+8 r120+4 w56+4 w44+4 w124+4 r8+16 w0+4"));
    let shares = [(4096, 10), (16_384, 60), (8192, 30)].map(|(bytes, percent)| BlockShare { bytes, percent });
    let split = StorageJob {
        block_bytes: 16_384,
        block_sizes: BlockSizes::Split(shares.to_vec()),
        ..repeating(AccessPattern::RandRead)
    };
    assert_eq!(
        of(&split),
        "r4+8 r92+16 r108+16 r60+8 r48+12 r124+4 r68+4 r44+4 r0+4 r12+16 r28+16 r80+12 r72+8"
    );
    let written = StorageJob { pattern: AccessPattern::Write, ..split };
    assert_eq!(of(&written), "w0+8 w8+4 w12+8 w20+16 w36+16 w52+8 w60+16 w76+8 w84+16 w100+16 w116+8 w124+4");
}

#[test]
fn a_job_that_is_done_twice_begins_again_as_fio_does() {
    let twice = |job: StorageJob| shown(&all(&StorageJob { loops: 2, ..job }, 64 << 10));
    let once = "r0+4 r44+4 r52+4 r28+4 r24+4 r56+4 r32+4 r20+4 r60+4 r4+4 r8+4 r40+4 r12+4 r16+4 r36+4 r48+4";
    assert_eq!(twice(repeating(AccessPattern::RandRead)), format!("{once} {once}"));
    let seeded = StorageJob { seed: 7, ..job(AccessPattern::RandRead) };
    assert_eq!(
        twice(seeded.clone()),
        "r32+4 r36+4 r48+4 r60+4 r0+4 r28+4 r4+4 r52+4 r8+4 r40+4 r44+4 r56+4 r12+4 r16+4 r20+4 r24+4 \
         r16+4 r24+4 r0+4 r36+4 r28+4 r48+4 r40+4 r44+4 r52+4 r56+4 r60+4 r32+4 r4+4 r8+4 r12+4 r20+4"
    );
    assert_eq!(
        twice(StorageJob { pattern: AccessPattern::RandRw, ..seeded.clone() }),
        "w32+4 w36+4 r48+4 r60+4 r0+4 w28+4 w4+4 w52+4 r8+4 w40+4 r44+4 w56+4 r12+4 r16+4 r20+4 w24+4 \
         w16+4 w24+4 r0+4 w36+4 r28+4 w48+4 w40+4 w44+4 r52+4 r56+4 w60+4 r32+4 w4+4 r8+4 w12+4 w20+4"
    );
    let lengths =
        StorageJob { block_bytes: 16_384, block_sizes: BlockSizes::Range { bytes_min: 4096 }, ..seeded };
    assert_eq!(
        twice(lengths),
        "r32+16 r48+4 r52+8 r60+4 r0+16 r28+4 r16+12 r60+4 r40+12 r36+4 r52+8 r0+12 r12+8 r20+8 r28+4 r32+4"
    );
    let thrice = StorageJob { loops: 3, ..job(AccessPattern::Read) };
    assert_eq!(shown(&all(&thrice, 8192)), "r0+4 r4+4 r0+4 r4+4 r0+4 r4+4");
    assert_eq!(Offsets::new(&thrice, 0, 8192).left(), 6);
}

#[test]
fn skewed_blocks_are_those_of_fio() {
    // As above, over 2 MiB, of a file with the name `data`.
    let first = |skew, job: StorageJob, used_bytes: u64| {
        let skewed = StorageJob { skew, file: "data".into(), operations_max: Some(12), ..job };
        let offsets: Vec<u64> =
            all(&skewed, used_bytes).iter().map(|step| step.offset_bytes / 1024).collect();
        offsets
    };
    assert_eq!(
        first(Skew::Zipf { theta: 1.2, center: None }, repeating(AccessPattern::RandRead), 2 << 20),
        [408, 460, 628, 440, 460, 1920, 124, 1528, 492, 1976, 124, 460]
    );
    assert_eq!(
        first(Skew::Pareto { share: 0.3, center: None }, repeating(AccessPattern::RandRead), 2 << 20),
        [1220, 1164, 628, 1988, 1500, 840, 1396, 60, 1472, 468, 976, 1080]
    );
    let seeded = StorageJob { seed: 42, ..job(AccessPattern::RandRead) };
    assert_eq!(
        first(Skew::Zipf { theta: 0.8, center: Some(0.25) }, seeded, 2 << 20),
        [384, 428, 344, 8, 1552, 1440, 8, 748, 1876, 428, 1292, 1048]
    );
    assert_eq!(
        first(Skew::Normal { percent: 10.0, center: None }, repeating(AccessPattern::RandRead), 64 << 10),
        [28, 52, 52, 8, 56, 32, 12, 16, 32, 12, 12, 12]
    );
    assert_eq!(
        first(Skew::Normal { percent: 0.0, center: None }, repeating(AccessPattern::RandRead), 64 << 10),
        [8, 32, 32, 12, 32, 12, 12, 36, 56, 12, 32, 12]
    );
    let seeded = StorageJob { seed: 5, ..job(AccessPattern::RandRead) };
    assert_eq!(
        first(Skew::Normal { percent: 30.0, center: Some(0.2) }, seeded, 64 << 10),
        [40, 56, 60, 16, 0, 36, 16, 16, 36, 40, 60, 60]
    );
}

#[test]
fn sequential_blocks_follow_each_other_from_the_offset_on() {
    let job = StorageJob { offset_bytes: 8192, ..job(AccessPattern::Write) };
    let steps = all(&job, 4 * 4096 + 100);
    assert_eq!(blocks_of(&steps), [2, 3, 4, 5]);
    assert!(steps.iter().all(|step| !step.reads));
}

#[test]
fn operations_that_follow_a_random_block_are_those_of_fio() {
    // As above, over 64 KiB.
    let of = |job: &StorageJob| shown(&all(job, 64 << 10));
    let every = |random_every, job: StorageJob| StorageJob { random_every, ..job };
    let read = every(4, repeating(AccessPattern::RandRead));
    let expected =
        "r0+4 r4+4 r8+4 r12+4 r44+4 r48+4 r52+4 r56+4 r52+4 r56+4 r60+4 r28+4 r24+4 r28+4 r32+4 r36+4";
    assert_eq!(of(&read), expected);
    let without_map = StorageJob { no_random_map: true, ..read };
    assert_eq!(of(&without_map), expected, "what follows is not in the map");
    assert_eq!(
        of(&every(3, repeating(AccessPattern::RandRw))),
        "r0+4 r4+4 r8+4 w44+4 r12+4 r16+4 w52+4 w56+4 w60+4 r28+4 w24+4 r32+4 w56+4 r36+4 r40+4 r24+4"
    );
    let identical =
        StorageJob { sequencer: Sequencer::Identical, pattern: AccessPattern::RandWrite, ..without_map };
    assert_eq!(
        of(&identical),
        "w0+4 w0+4 w0+4 w0+4 w44+4 w44+4 w44+4 w44+4 w52+4 w52+4 w52+4 w52+4 w28+4 w28+4 w28+4 w28+4"
    );
}

#[test]
fn sequences_with_a_stride_are_those_of_fio() {
    let of = |pattern, stride_bytes, offset_bytes, used_bytes| {
        let job = StorageJob { stride_bytes, offset_bytes, file_bytes: Some(64 << 10), ..repeating(pattern) };
        shown(&all(&job, used_bytes))
    };
    let round = "r0+4 r8+4 r16+4 r24+4 r32+4 r40+4 r48+4 r56+4";
    assert_eq!(of(AccessPattern::Read, 4096, 0, 64 << 10), format!("{round} {round}"));
    assert_eq!(of(AccessPattern::Read, 8192, 0, 64 << 10), "r0+4 r12+4 r24+4 r36+4 r48+4 r60+4");
    assert_eq!(
        of(AccessPattern::Write, -8192, 0, 64 << 10),
        "w0+4 w56+4 w52+4 w48+4 w44+4 w40+4 w36+4 w32+4 w28+4 w24+4 w20+4 w16+4 w12+4 w8+4 w4+4 w0+4"
    );
    assert_eq!(of(AccessPattern::Read, 4096, 16 << 10, 32 << 10), "r16+4 r24+4 r32+4 r40+4");
    assert_eq!(
        of(AccessPattern::ReadWrite, 4096, 0, 64 << 10),
        "r0+4 r8+4 r16+4 w0+4 r24+4 r32+4 w8+4 w16+4 w24+4 r40+4 w32+4 r48+4 w40+4 r56+4 r0+4 r8+4"
    );
    let timed = StorageJob {
        stride_bytes: 8192,
        time_based: true,
        operations_max: Some(8),
        ..repeating(AccessPattern::Read)
    };
    assert_eq!(
        shown(&all(&timed, 64 << 10)),
        "r0+4 r12+4 r24+4 r36+4 r48+4 r60+4 r0+4 r12+4",
        "only the time ends it"
    );
}

#[test]
fn reads_and_writes_of_lengths_of_their_own_are_those_of_fio() {
    let of = |pattern, (reads, writes): (u32, u32), no_random_map| {
        let job = StorageJob {
            block_bytes: reads.max(writes),
            block_sizes: BlockSizes::ByDirection { reads, writes },
            no_random_map,
            ..repeating(pattern)
        };
        shown(&all(&job, 64 << 10))
    };
    let (small, large) = (4096, 16_384);
    for (pattern, lengths, no_map, expected) in [
        (AccessPattern::RandRw, (small, large), true, "r0+4 r44+4 r52+4 w16+16 r24+4 r52+4 w16+16 w16+16"),
        (AccessPattern::RandRw, (large, small), true, "r0+16 r32+16 r48+16 w28+4 r16+16"),
        (AccessPattern::RandRw, (small, large), false, "r0+4 r44+4 r52+4 w16+16 r24+4 r56+4 w32+16 w48+16"),
        (AccessPattern::ReadWrite, (small, large), false, "r0+4 r4+4 r8+4 w0+16 r12+4 r16+4 w16+16 w32+16"),
        (AccessPattern::RandRead, (large, small), false, "r0+16 r32+16 r48+16 r16+16"),
        (AccessPattern::Write, (small, large), false, "w0+16 w16+16 w32+16 w48+16"),
        (AccessPattern::RandWrite, (small, large), false, "w0+16 w32+16 w48+16 w16+16"),
    ] {
        assert_eq!(of(pattern, lengths, no_map), expected, "{pattern} {lengths:?}");
    }
}

/// A job whose reads and writes have these lengths.
fn of_lengths(job: StorageJob, (reads, writes): (u32, u32)) -> StorageJob {
    StorageJob {
        block_bytes: reads.max(writes),
        block_sizes: BlockSizes::ByDirection { reads, writes },
        ..job
    }
}

#[test]
fn a_run_that_is_bound_by_time_goes_on_where_reads_and_writes_have_lengths_of_their_own() {
    // The last size is not a multiple of the longer length.
    for (lengths, used_bytes) in
        [((4096, 16_384), 64 << 10), ((16_384, 4096), 64 << 10), ((4096, 16_384), 68 << 10)]
    {
        for pattern in AccessPattern::ALL {
            for random_repeat in [false, true] {
                let timed = StorageJob {
                    time_based: true,
                    operations_max: Some(2000),
                    random_repeat,
                    ..job(pattern)
                };
                let steps = all(&of_lengths(timed, lengths), used_bytes);
                assert_eq!(steps.len(), 2000, "{pattern} {lengths:?} over {used_bytes}");
                let ends = steps.iter().map(|step| step.offset_bytes + u64::from(step.bytes));
                assert!(ends.max() <= Some(used_bytes), "{pattern} {lengths:?} over {used_bytes}");
            }
        }
    }
}

#[test]
fn nothing_is_done_behind_a_used_part_that_is_no_multiple_of_the_longer_length() {
    let write = |loops| of_lengths(StorageJob { loops, ..job(AccessPattern::Write) }, (4096, 16_384));
    assert_eq!(shown(&all(&write(1), 20 << 10)), "w0+16");
    assert_eq!(shown(&all(&write(2), 20 << 10)), "w0+16 w0+16");
    let mut offsets = Offsets::new(&write(1), 0, 20 << 10);
    while offsets.next().is_some() {}
    assert_eq!(offsets.left(), 0, "what cannot be done is not left");
}

#[test]
fn a_round_that_ends_early_is_followed_by_the_next_one() {
    // Every round is the same, whatever its random choices.
    for thread_first in 1..=50 {
        let rounds = |loops| {
            let repeated = StorageJob { loops, thread_first, ..repeating(AccessPattern::RandRw) };
            all(&of_lengths(repeated, (4096, 16_384)), 64 << 10)
        };
        assert_eq!(rounds(3), [rounds(1), rounds(1), rounds(1)].concat(), "{thread_first}");
    }
}

#[test]
fn more_bytes_than_the_used_part_begin_it_again_as_fio_does() {
    let of = |job: StorageJob| shown(&all(&StorageJob { done_bytes: Some(40 << 10), ..job }, 16 << 10));
    let random = "0+4 r8+4 r12+4 r4+4 r0+4 r8+4 r12+4 r4+4 r0+4 r8+4";
    assert_eq!(of(repeating(AccessPattern::RandRead)), format!("r{random}"));
    assert_eq!(
        of(StorageJob { seed: 3, ..job(AccessPattern::RandRead) }),
        "r8+4 r12+4 r4+4 r0+4 r12+4 r0+4 r4+4 r8+4 r4+4 r0+4"
    );
    assert_eq!(of(repeating(AccessPattern::Write)), "w0+4 w4+4 w8+4 w12+4 w0+4 w4+4 w8+4 w12+4 w0+4 w4+4");
    assert_eq!(of(repeating(AccessPattern::RandRw)), "r0+4 r8+4 r12+4 w4+4 r0+4 r8+4 r12+4 w4+4 r0+4 r8+4");
}

#[test]
fn a_run_that_is_bound_by_time_begins_again() {
    for pattern in AccessPattern::ALL {
        let job = StorageJob { time_based: true, operations_max: Some(1000), ..job(pattern) };
        let steps = all(&job, 7 * 4096);
        assert_eq!(steps.len(), 1000, "{pattern}");
        assert!(steps.iter().all(|step| step.offset_bytes < 7 * 4096), "{pattern}");
    }
}

#[test]
fn with_the_map_every_round_touches_every_block_once() {
    let rounds = StorageJob { time_based: true, operations_max: Some(3000), ..job(AccessPattern::RandRead) };
    for round in blocks_of(&all(&rounds, 1000 * 4096)).chunks(1000) {
        let mut sorted = round.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_ne!(sorted, round);
    }
}

#[test]
fn without_the_map_blocks_repeat() {
    let free = StorageJob { no_random_map: true, ..job(AccessPattern::RandWrite) };
    let mut blocks = blocks_of(&all(&free, 1000 * 4096));
    assert_eq!(blocks.len(), 1000);
    blocks.sort_unstable();
    blocks.dedup();
    // 1 - 1/e of them, approximately.
    assert!((580..690).contains(&blocks.len()), "{}", blocks.len());
}

#[test]
fn threads_and_seeds_differ_unless_they_shall_repeat() {
    let base = job(AccessPattern::RandRead);
    let of = |job: &StorageJob, thread| {
        let mut offsets = Offsets::new(job, thread, 1 << 30);
        (0..50).filter_map(|_| offsets.next()).collect::<Vec<_>>()
    };
    let seeded = StorageJob { seed: 2, ..base.clone() };
    assert_ne!(of(&base, 0), of(&base, 1));
    assert_ne!(of(&base, 0), of(&seeded, 0));
    let repeat = |seed| StorageJob { random_repeat: true, seed, ..base.clone() };
    assert_eq!(of(&repeat(1), 0), of(&repeat(2), 0));
    let second = StorageJob { thread_first: 2, ..repeat(1) };
    assert_eq!(of(&second, 0), of(&repeat(1), 1), "a thread is known by its number in the run");
}

#[test]
fn mixed_jobs_keep_their_share() {
    for (percent, pattern) in [(70, AccessPattern::RandRw), (20, AccessPattern::ReadWrite)] {
        let mixed = StorageJob { read_percent: percent, ..job(pattern) };
        let steps = all(&mixed, 20_000 * 4096);
        let reads = steps.iter().filter(|step| step.reads).count();
        let expected = 200 * usize::from(percent);
        assert!(reads.abs_diff(expected) < 500, "{reads} of {} at {percent} %", steps.len());
    }
    for (percent, reads) in [(0, false), (100, true)] {
        let whole = StorageJob { read_percent: percent, ..job(AccessPattern::RandRw) };
        assert!(all(&whole, 100 * 4096)[1..].iter().all(|step| step.reads == reads), "{percent}");
    }
}

#[test]
fn each_direction_of_a_sequential_mix_has_its_own_place() {
    let steps = all(&job(AccessPattern::ReadWrite), 1000 * 4096);
    for reads in [true, false] {
        let of: Vec<Step> = steps.iter().copied().filter(|step| step.reads == reads).collect();
        assert_eq!(blocks_of(&of), (0..of.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn fewer_bytes_than_a_block_are_no_operation() {
    assert_eq!(all(&job(AccessPattern::RandRead), 4095), []);
    assert_eq!(all(&StorageJob { time_based: true, ..job(AccessPattern::Read) }, 0), []);
}

proptest! {
    #[test]
    fn the_map_finds_what_a_plain_list_finds(
        blocks in 1_u64..9000,
        draws in prop::collection::vec(any::<u64>(), 1..100),
    ) {
        let mut map = Map::new(blocks);
        let mut plain = vec![false; blocks as usize];
        for draw in draws {
            let from = draw % blocks;
            // Long runs of used blocks, so that searches must ascend.
            for _ in 0..draw % 200 {
                let expected = (from..blocks).find(|block| !plain[*block as usize]);
                prop_assert_eq!(map.free_from(from), expected);
                let Some(block) = expected else { break };
                plain[block as usize] = true;
                map.take(block, 1);
            }
            prop_assert_eq!(map.free as usize, plain.iter().filter(|taken| !**taken).count());
        }
        map.clear();
        prop_assert_eq!(map.free_from(0), Some(0));
    }

    #[test]
    fn every_block_is_touched_exactly_once(blocks in 1_u64..3000, seed in any::<u64>()) {
        let seeded = StorageJob { seed, ..job(AccessPattern::RandRead) };
        let mut touched = blocks_of(&all(&seeded, blocks * 4096));
        touched.sort_unstable();
        prop_assert_eq!(touched, (0..blocks).collect::<Vec<_>>());
    }
}
