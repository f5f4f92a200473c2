//! The report of `weir storage run` for people.

use weir_record::{
    latency::LatencySummary,
    storage::{
        DeviceClock, DirectionReport, NeverBegun, StorageJob, StorageJobReport, StorageReport, StorageRow,
        WaitingReport,
    },
};
use weir_report::{Language, localized, pad_start};
use weir_storage::job::units::{shown_bytes, shown_sizes};

use crate::load_text::{latency, row};

/// Most intervals that are shown; `--csv` has all of them.
const INTERVALS_SHOWN: usize = 20;

pub(super) fn table(report: &StorageReport, width_columns: usize, language: Language) -> String {
    let mut rows = Vec::new();
    let line = "-".repeat(width_columns.min(72));
    for (place, count, job) in report.told() {
        if !rows.is_empty() {
            rows.push(line.clone());
        }
        rows.extend(one_job(job, language));
        let ends_here = |row: &&StorageRow| !row.replaces_jobs && row.first + row.count == place + count;
        for total in report.rows.iter().filter(ends_here) {
            rows.push(line.clone());
            rows.extend(together(total, language));
        }
    }
    if !report.notes.is_empty() {
        rows.push(String::new());
        rows.extend(report.notes.iter().cloned());
    }
    rows.join("\n")
}

/// The totals of jobs that ran side by side.
fn together(total: &StorageRow, language: Language) -> Vec<String> {
    let count = total.count;
    let jobs = localized!(
        language,
        "{count} that ran side by side, together",
        "동시에 실행한 {count}개의 합계",
        "并行运行的 {count} 个任务合计",
    );
    let mut rows = vec![row(language, ["jobs", "작업", "任务"], jobs)];
    rows.extend(directions(&total.report, language));
    rows
}

fn directions(report: &StorageJobReport, language: Language) -> Vec<String> {
    let mut rows = Vec::new();
    for (name, direction) in
        [(["reads", "읽기", "读"], &report.reads), (["writes", "쓰기", "写"], &report.writes)]
    {
        if direction.operations > 0 {
            rows.extend(one_direction(name, direction, report.elapsed_ns, language));
        }
    }
    rows
}

fn one_job(report: &StorageJobReport, language: Language) -> Vec<String> {
    let mut rows = report.job.as_ref().map(|job| head(job, language)).unwrap_or_default();
    if report.job.as_ref().is_some_and(|job| job.verify_only) {
        return checked(rows, report, language);
    }
    let (seconds, state) = (report.elapsed_ns as f64 / 1e9, failed(report, language));
    let ramp = [", all of it in the ramp", ", 모두 예열 시간", "，全部在预热期内"];
    let ramp = if report.ended_in_ramp { language.choose(ramp) } else { "" };
    let window = localized!(
        language,
        "{seconds:.2} s{ramp}{state}",
        "{seconds:.2}초{ramp}{state}",
        "{seconds:.2} 秒{ramp}{state}",
    );
    rows.push(row(language, ["window", "측정 구간", "测量窗口"], window));
    rows.extend(directions(report, language));
    if report.reads.operations + report.writes.operations == 0 {
        let none = [
            "none was completed in the window",
            "측정 구간에 완료된 I/O가 없음",
            "测量窗口内没有完成任何 I/O",
        ];
        rows.push(row(language, OPERATIONS, language.choose(none)));
    }
    rows.extend(never_begun(&report.never_begun, language));
    rows.extend(cpu(report, language));
    if let Some(waiting) = &report.waiting {
        rows.extend(waits(waiting, language));
        rows.extend(intervals(report, language));
    }
    rows.extend(trouble(report, language));
    rows
}

const OPERATIONS: [&str; 3] = ["operations", "I/O", "I/O"];

/// The text after the first error of a failed job.
fn failed(report: &StorageJobReport, language: Language) -> &'static str {
    let texts = [" (FAILED: see below)", " (실패: 아래 참조)", "（失败：见下文）"];
    if report.failed { language.choose(texts) } else { "" }
}

fn head(job: &StorageJob, language: Language) -> Vec<String> {
    let direct = language.choose(match job.direct {
        true => ["direct", "다이렉트 I/O", "直接 I/O"],
        false => ["buffered", "버퍼드 I/O", "缓冲 I/O"],
    });
    let all = ["all", "전체", "全部"];
    let size = job.size_bytes.map(shown_bytes).unwrap_or_else(|| language.choose(all).to_owned());
    let several = ["separate files", "각자의 파일", "各自的文件"];
    let file = if job.file.is_empty() { language.choose(several) } else { &job.file };
    let name = &job.name;
    let what = localized!(
        language,
        "{name}: {size} of {file}, {direct}",
        "{name}: {file} 중 {size}, {direct}",
        "{name}：{file} 的 {size}，{direct}",
    );
    let armed = [", armed", ", 완료 시 웨이크업", "，完成时唤醒"];
    let armed = if job.completion.armed { language.choose(armed) } else { "" };
    let (engine, predictor) = (job.engine, &job.completion.predictor);
    let engine = localized!(
        language,
        "{engine}, waiting by {predictor}{armed}",
        "{engine}, 대기 방식 {predictor}{armed}",
        "{engine}，等待方式 {predictor}{armed}",
    );
    vec![
        row(language, ["job", "작업", "任务"], what),
        row(language, OPERATIONS, workload(job, language)),
        row(language, ["engine", "엔진", "引擎"], engine),
    ]
}

/// The specification of a job.
fn workload(job: &StorageJob, language: Language) -> String {
    let percent = job.read_percent;
    let mix = match job.pattern.reads() && job.pattern.writes() {
        true => localized!(language, " ({percent} % reads)", "(읽기 {percent} %)", "（读 {percent} %）"),
        false => String::new(),
    };
    let threads = match job.threads {
        1 => String::new(),
        threads => {
            localized!(language, "{threads} threads x ", "스레드 {threads}개 x ", "{threads} 个线程 x ")
        }
    };
    let rate = job.rate_iops.map(|rate| match job.rate_writes_iops {
        None => localized!(
            language,
            ", {rate} a second each",
            ", 스레드당 초당 {rate}회",
            "，每线程每秒 {rate} 次"
        ),
        Some(writes) => localized!(
            language,
            ", {rate} reads and {writes} writes a second each",
            ", 스레드당 초당 읽기 {rate}회와 쓰기 {writes}회",
            "，每线程每秒读 {rate} 次、写 {writes} 次",
        ),
    });
    let rate = rate.unwrap_or_default();
    let (pattern, (_, block), depth) = (job.pattern, shown_sizes(job), job.depth);
    localized!(
        language,
        "{pattern}{mix} of {block}, {threads}{depth} in flight{rate}",
        "{pattern}{mix} {block}, {threads}동시 {depth}건{rate}",
        "{pattern}{mix} {block}，{threads}在途 {depth} 个{rate}",
    )
}

fn one_direction(
    name: [&'static str; 3],
    report: &DirectionReport,
    elapsed_ns: u64,
    language: Language,
) -> Vec<String> {
    let bandwidth = report.bytes as f64 / 1048.576 / (elapsed_ns.max(1) as f64 / 1e6);
    let (iops, operations) = (report.iops, report.operations);
    let reached = localized!(
        language,
        "{iops:.0} IOPS, {bandwidth:.1} MiB/s ({operations} operations)",
        "{iops:.0} IOPS, {bandwidth:.1} MiB/s({operations}회)",
        "{iops:.0} IOPS，{bandwidth:.1} MiB/s（{operations} 次）",
    );
    let mut rows = vec![
        row(language, name, reached),
        row(language, ["  latency", "  지연 시간", "  延迟"], latency(&report.total, language)),
    ];
    if has_parts(&report.submission) {
        let [submission, completion] =
            [&report.submission, &report.completion].map(|it| latency(it, language));
        rows.push(row(language, ["  submission", "  제출", "  提交"], submission));
        rows.push(row(language, ["  completion", "  완료", "  完成"], completion));
    }
    rows
}

/// An engine that is inside the system call until the end has no separate submission.
fn has_parts(submission: &LatencySummary) -> bool {
    submission.count > 0 && submission.ns_max > 0
}

/// Latencies of completed operations say too little if the requested rate was higher.
fn never_begun(report: &NeverBegun, language: Language) -> Vec<String> {
    let operations = report.operations;
    if operations == 0 {
        return Vec::new();
    }
    let due = localized!(
        language,
        "{operations} operations that were due by the rate when the time was over; latencies above are without them",
        "지정한 요청률대로라면 시작했어야 할 I/O {operations}회를 끝까지 시작하지 못함. 위의 지연 시간에는 들어 있지 않음",
        "按目标请求速率本应开始的 {operations} 次 I/O 直到结束也没有开始；以上延迟不含这些",
    );
    let least = latency(&report.total_at_least, language);
    let least = localized!(
        language,
        "of all that were due, at least: {least}",
        "시작했어야 할 모든 I/O의 지연 시간, 최소: {least}",
        "所有应开始的 I/O 的延迟，至少：{least}",
    );
    vec![
        row(language, ["never begun", "시작하지 못함", "未能开始"], due),
        row(language, ["  waited", "  대기", "  等待"], latency(&report.waited, language)),
        row(language, ["  latency", "  지연 시간", "  延迟"], least),
    ]
}

fn cpu(report: &StorageJobReport, language: Language) -> Vec<String> {
    let operations = (report.reads.operations + report.writes.operations).max(1) as f64;
    let elapsed_ns = report.elapsed_ns.max(1) as f64;
    let cpu = &report.cpu;
    let percent = |ns: f64| ns * 100.0 / elapsed_ns;
    let own_ns = (cpu.user_ns + cpu.system_ns) as f64;
    let each = (own_ns + cpu.kernel_threads_ns as f64) / 1e3 / operations;
    let [all, user, kernel] = [own_ns, cpu.user_ns as f64, cpu.system_ns as f64].map(percent);
    let threads = percent(cpu.kernel_threads_ns as f64);
    let by_threads = match cpu.kernel_threads_ns {
        0 => String::new(),
        _ => localized!(
            language,
            ", and {threads:.1} % by kernel threads for it",
            ", 이 작업을 위한 커널 스레드가 {threads:.1} %",
            "，另有为其工作的内核线程 {threads:.1} %",
        ),
    };
    let used = localized!(
        language,
        "{each:.2} µs an operation; {all:.1} % of a CPU ({user:.1} user, {kernel:.1} kernel){by_threads}",
        "I/O당 {each:.2} µs. CPU 하나의 {all:.1} %(사용자 {user:.1}, 커널 {kernel:.1}){by_threads}",
        "每次 I/O {each:.2} µs；占一个 CPU 的 {all:.1} %（用户态 {user:.1}，内核态 {kernel:.1}）{by_threads}",
    );
    let (voluntary, involuntary) = (cpu.context_switches_voluntary, cpu.context_switches_involuntary);
    let switches = (voluntary + involuntary) as f64 / operations;
    let switches = localized!(
        language,
        "{switches:.4} an operation ({voluntary} voluntary, {involuntary} not)",
        "I/O당 {switches:.4}회(자발적 {voluntary}, 비자발적 {involuntary})",
        "每次 I/O {switches:.4} 次（自愿 {voluntary}，非自愿 {involuntary}）",
    );
    let mut rows = vec![
        row(language, ["CPU"; 3], used),
        row(language, ["switches", "컨텍스트 스위치", "上下文切换"], switches),
    ];
    if cpu.machine_busy_ns > 0 {
        let busy = percent(cpu.machine_busy_ns as f64);
        let busy = localized!(
            language,
            "{busy:.1} % of a CPU busy in all",
            "모두 합쳐 CPU 하나의 {busy:.1} % 사용",
            "合计占用一个 CPU 的 {busy:.1} %",
        );
        rows.push(row(language, ["machine", "머신 전체", "整机"], busy));
    }
    rows
}

/// The measurement points.
fn waits(waiting: &WaitingReport, language: Language) -> Vec<String> {
    if waiting.operations == 0 {
        return Vec::new();
    }
    let share = |part: u64| part as f64 * 100.0 / waiting.operations as f64;
    let [slept, polled, interrupted] = [waiting.slept, waiting.polled, waiting.interrupted].map(share);
    let how = localized!(
        language,
        "{slept:.1} % slept, {polled:.1} % polled at once, {interrupted:.1} % left to the interrupt",
        "sleep {slept:.1} %, 바로 폴링 {polled:.1} %, 인터럽트에 맡김 {interrupted:.1} %",
        "睡眠 {slept:.1} %，直接轮询 {polled:.1} %，交给中断 {interrupted:.1} %",
    );
    let mut rows = vec![row(language, ["waits", "대기", "等待"], how)];
    if waiting.slept > 0 {
        rows.extend(sleeps(waiting, language));
    }
    rows.push(row(language, ["  time", "  시간", "  时间"], parts(waiting, language)));
    if waiting.added.count > 0 {
        let added = latency(&waiting.added, language);
        rows.push(row(language, ["  added", "  추가 지연", "  附加延迟"], added));
    }
    rows
}

/// Statistics of the engines that slept.
fn sleeps(waiting: &WaitingReport, language: Language) -> [String; 2] {
    let WaitingReport { operations, slept, .. } = *waiting;
    let share = |part: u64| part as f64 * 100.0 / operations.max(1) as f64;
    let [misses, harmful, early] = [waiting.misses, waiting.misses_harmful, waiting.woken_early].map(share);
    let misses = localized!(
        language,
        "{misses:.2} % of all operations ({harmful:.2} % later than the interrupt); {early:.2} % woken by the completion",
        "전체 I/O의 {misses:.2} %(인터럽트보다 늦은 것 {harmful:.2} %). 완료가 깨운 것 {early:.2} %",
        "全部 I/O 的 {misses:.2} %（晚于中断的占 {harmful:.2} %）；由完成事件唤醒 {early:.2} %",
    );
    let asked = mean(waiting.sleep_requested_ns, slept);
    let actual = mean(waiting.sleep_actual_ns, slept);
    let effective = mean(waiting.sleep_requested_ns, operations);
    let lengths = localized!(
        language,
        "{asked} asked, {actual} in fact; effective {effective}",
        "요청 {asked}, 실제 {actual}, 전체 I/O당 유효 {effective}",
        "请求 {asked}，实际 {actual}；按全部 I/O 折算 {effective}",
    );
    [
        row(language, ["  misses", "  miss", "  miss"], misses),
        row(language, ["  sleeps", "  sleep", "  睡眠"], lengths),
    ]
}

/// The parts of a time.
fn parts(waiting: &WaitingReport, language: Language) -> String {
    let whose = language.choose(match waiting.device_clock {
        DeviceClock::Observed => ["as seen", "관측", "观测"],
        DeviceClock::Tracepoint => ["tracepoints", "트레이스포인트", "跟踪点"],
        DeviceClock::Simulated => ["model", "모델", "模型"],
    });
    let operations = waiting.operations;
    let [device, oversleep, wake, notice, total] =
        [waiting.device_ns, waiting.oversleep_ns, waiting.wake_ns, waiting.notice_ns, waiting.total_ns]
            .map(|sum_ns| mean(sum_ns, operations));
    localized!(
        language,
        "{device} device ({whose}) + {oversleep} overslept + {wake} waking + {notice} noticing = {total}",
        "장치({whose}) {device} + 초과 sleep {oversleep} + 깨어남 {wake} + 완료 확인 {notice} = {total}",
        "设备（{whose}）{device} + 睡过头 {oversleep} + 唤醒 {wake} + 得知完成 {notice} = {total}",
    )
}

fn mean(sum_ns: u64, count: u64) -> String {
    micros(sum_ns as f64 / count.max(1) as f64)
}

fn intervals(report: &StorageJobReport, language: Language) -> Vec<String> {
    if report.intervals.len() < 2 {
        return Vec::new();
    }
    let head = [
        (["second", "초", "秒"], 10),
        (["IOPS"; 3], 10),
        (["misses", "miss", "miss"], 10),
        (["eff. sleep", "유효 sleep", "有效睡眠"], 12),
        (["CPU"; 3], 8),
    ];
    let head = head.map(|(name, columns)| pad_start(language.choose(name), columns));
    let mut rows = vec![String::new(), head.join(" ")];
    for interval in report.intervals.iter().take(INTERVALS_SHOWN) {
        let elapsed_ns = interval.elapsed_ns.max(1) as f64;
        let operations = interval.operations.max(1) as f64;
        rows.push(format!(
            "{:>10.2} {:>10.0} {:>8.2} % {:>12} {:>6.1} %",
            interval.start_ns as f64 / 1e9,
            interval.operations as f64 * 1e9 / elapsed_ns,
            interval.misses as f64 * 100.0 / operations,
            micros(interval.sleep_requested_ns as f64 / operations),
            interval.cpu_ns as f64 * 100.0 / elapsed_ns
        ));
    }
    let all = report.intervals.len();
    if all > INTERVALS_SHOWN {
        rows.push(localized!(
            language,
            "     ... {all} intervals in all; --csv FILE has them",
            "     ... 모두 {all}행. 전체는 --csv FILE",
            "     …… 共 {all} 行；全部数据用 --csv FILE",
        ));
    }
    rows
}

/// The comparison with an earlier run.
fn checked(mut rows: Vec<String>, report: &StorageJobReport, language: Language) -> Vec<String> {
    rows.truncate(2);
    rows.push(verified(report, failed(report, language), language));
    let (unacknowledged, never) = (report.unacknowledged_blocks, report.never_written_blocks);
    let apart = localized!(
        language,
        "{unacknowledged} that were being written when it ended, never acknowledged",
        "{unacknowledged}개: 끝날 때 쓰는 중이었고 완료를 확인하지 못함",
        "{unacknowledged} 个在结束时正在写入，未得到确认",
    );
    let never = localized!(language, "{never} never written", "{never}개: 쓰지 않음", "{never} 个从未写入");
    rows.push(row(language, ["  apart from", "  제외", "  不含"], apart));
    rows.push(row(language, [""; 3], never));
    rows
}

fn verified(report: &StorageJobReport, state: &str, language: Language) -> String {
    let (blocks, wrong) = (report.verified_blocks, report.verify_failures);
    let text = localized!(
        language,
        "{blocks} blocks read back, {wrong} wrong{state}",
        "블록 {blocks}개를 다시 읽음, 틀린 블록 {wrong}개{state}",
        "读回 {blocks} 个块，{wrong} 个有误{state}",
    );
    row(language, ["verified", "검증", "校验"], text)
}

/// The failures of a run, and the result of its check.
fn trouble(report: &StorageJobReport, language: Language) -> Vec<String> {
    let mut rows = Vec::new();
    if report.fsyncs > 0 {
        rows.push(row(language, ["fsyncs", "fsync", "fsync"], report.fsyncs));
        let took = latency(&report.fsync_latency, language);
        rows.push(row(language, ["  latency", "  지연 시간", "  延迟"], took));
    }
    if report.verified_blocks > 0 {
        rows.push(verified(report, "", language));
    }
    if !report.errors.is_empty() {
        let list: Vec<String> = report.errors.iter().map(|(name, count)| format!("{count} {name}")).collect();
        rows.push(row(language, ["errors", "오류", "错误"], list.join(language.list())));
    }
    rows
}

/// Parts of one time have one unit, so that they can be added up.
fn micros(nanoseconds: f64) -> String {
    format!("{:.1} µs", nanoseconds / 1000.0)
}

#[cfg(test)]
mod tests {
    use weir_record::{
        latency::empty_histogram,
        storage::{BlockSizes, StorageCpu, WaitingInterval},
    };

    use super::*;

    fn summary() -> LatencySummary {
        let mut histogram = empty_histogram();
        (1..=2000_u64).for_each(|step| histogram.saturating_record(step * 50));
        LatencySummary::from_histogram(&histogram)
    }

    fn report() -> StorageReport {
        let job = StorageJob {
            name: "one".into(),
            file: "data".into(),
            size_bytes: Some(1 << 30),
            ..StorageJob::default()
        };
        let waiting = WaitingReport {
            operations: 2000,
            slept: 1000,
            polled: 1000,
            misses: 50,
            sleep_requested_ns: 20_000_000,
            sleep_actual_ns: 30_000_000,
            device_ns: 80_000_000,
            oversleep_ns: 1_000_000,
            wake_ns: 2_000_000,
            notice_ns: 1_000_000,
            total_ns: 84_000_000,
            ..WaitingReport::default()
        };
        let reads = DirectionReport {
            operations: 2000,
            bytes: 2000 * 4096,
            iops: 1000.0,
            submission: summary(),
            completion: summary(),
            total: summary(),
            ..DirectionReport::default()
        };
        StorageReport {
            jobs: vec![StorageJobReport {
                job: Some(job),
                elapsed_ns: 2_000_000_000,
                reads,
                cpu: StorageCpu { user_ns: 200_000_000, system_ns: 400_000_000, ..StorageCpu::default() },
                waiting: Some(waiting),
                intervals: vec![
                    WaitingInterval { operations: 20, slept: 10, misses: 1, ..Default::default() };
                    30
                ],
                ..StorageJobReport::default()
            }],
            notes: vec!["what a reader must know".into()],
            ..StorageReport::default()
        }
    }

    #[test]
    fn a_job_is_told_from_what_it_was_to_what_it_cost() {
        let text = table(&report(), 100, Language::English);
        for line in [
            "job           one: 1g of data, direct",
            "operations    randread of 4k, 1 in flight",
            "engine        io_uring, waiting by interrupt",
            "window        2.00 s",
            "reads         1000 IOPS, 3.9 MiB/s (2000 operations)",
            "CPU           300.00 µs an operation; 30.0 % of a CPU (10.0 user, 20.0 kernel)",
            "waits         50.0 % slept, 50.0 % polled at once, 0.0 % left to the interrupt",
            "  misses      2.50 % of all operations (0.00 % later than the interrupt); 0.00 % woken by the completion",
            "  sleeps      20.0 µs asked, 30.0 µs in fact; effective 10.0 µs",
            "  time        40.0 µs device (as seen) + 0.5 µs overslept + 1.0 µs waking + 0.5 µs noticing = 42.0 µs",
            "     ... 30 intervals in all; --csv FILE has them",
            "what a reader must know",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line:?} is not in:\n{text}");
        }
        assert!(!text.contains("writes ") && !text.contains("FAILED"), "{text}");
    }

    #[test]
    fn a_job_of_several_lengths_says_all_of_them() {
        let mut report = report();
        let job = report.jobs[0].job.as_mut().expect("it was asked");
        (job.block_bytes, job.block_sizes) =
            (65_536, BlockSizes::ByDirection { reads: 4_096, writes: 65_536 });
        let text = table(&report, 100, Language::English);
        assert!(text.contains("randread of 4k,64k, 1 in flight"), "{text}");
    }

    #[test]
    fn what_was_never_begun_is_told_beside_the_latencies_that_lack_it() {
        let mut late = report();
        assert!(!table(&late, 100, Language::English).contains("never begun"));
        let waited = summary();
        late.jobs[0].never_begun = NeverBegun { operations: 2000, total_at_least: waited.clone(), waited };
        let text = table(&late, 100, Language::English);
        let rows: Vec<&str> =
            text.lines().skip_while(|line| !line.starts_with("never begun")).take(3).collect();
        assert!(rows[0].starts_with("never begun   2000 operations that were due"), "{text}");
        assert!(rows[1].starts_with("  waited      mean ") && rows[2].contains("at least: mean "), "{text}");
    }

    #[test]
    fn a_failed_run_says_what_failed_and_keeps_its_numbers() {
        let mut failed = report();
        failed.jobs[0].failed = true;
        failed.jobs[0].errors = vec![("EIO".into(), 3), ("ENOSPC".into(), 1)];
        (failed.jobs[0].verified_blocks, failed.jobs[0].verify_failures) = (100, 2);
        let text = table(&failed, 100, Language::English);
        for words in ["FAILED", "3 EIO, 1 ENOSPC", "100 blocks read back, 2 wrong", "1000 IOPS"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn every_language_has_the_same_rows_and_the_same_numbers() {
        let mut whole = report();
        whole.jobs[0].errors = vec![("EIO".into(), 3)];
        (whole.jobs[0].verified_blocks, whole.jobs[0].verify_failures) = (100, 2);
        whole.jobs[0].never_begun =
            NeverBegun { operations: 7, total_at_least: summary(), waited: summary() };
        let texts = Language::ALL.map(|language| table(&whole, 100, language));
        let numbers = |line: &str| {
            let split = line.split(|letter: char| !letter.is_ascii_digit());
            let mut all: Vec<String> = split.filter(|it| !it.is_empty()).map(str::to_owned).collect();
            all.sort_unstable();
            all
        };
        for text in &texts {
            assert_eq!(text.lines().count(), texts[0].lines().count(), "{text}");
            for (line, english) in text.lines().zip(texts[0].lines()) {
                assert_eq!(numbers(line), numbers(english), "{line}");
            }
        }
    }

    #[test]
    fn a_run_without_operations_says_so() {
        let report = StorageReport { jobs: vec![StorageJobReport::default()], ..StorageReport::default() };
        let text = table(&report, 100, Language::English);
        assert!(text.contains("none was completed") && !text.contains("NaN"), "{text}");
    }
}
