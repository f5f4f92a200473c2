//! Terminal, Markdown, CSV and the sentence.

use std::str::FromStr;

use weir_record::{
    check::Check,
    effect::{Effect, EffectScale, Question},
    finding::{ExclusionKind, Finding, MessageKind, UnitKind, Witness, WitnessBearing, WitnessFigure},
    goal::{ComparisonSpec, Goal, Outcome, Side},
    metric::Metric,
    study::StudyResult,
    verdict::Verdict,
};
use weir_report::{
    ANSWER_LINES_MAX, COMMENT_LINES_MAX, Language, comment, csv, markdown, sentence, terminal,
    terminal_answer,
};

use crate::every_study;
use crate::fixture;

#[test]
fn the_verdict_table_fits_sixty_columns_with_every_figure() {
    let columns = |line: &str| {
        line.chars().map(|it| if it >= '\u{1100}' && !"≥✗✓…→".contains(it) { 2 } else { 1 }).sum::<usize>()
    };
    for (language, name) in [(Language::English, "en"), (Language::Korean, "ko"), (Language::Chinese, "zh")] {
        let text = terminal(&fixture::quick(), language, 60, false);
        assert!(text.lines().all(|line| columns(line) <= 60), "{name}: {text}");
        // The same words as on a wide terminal, in any lines.
        let words = |text: &str| -> Vec<String> {
            let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            words.sort();
            words
        };
        let wide = terminal(&fixture::quick(), language, 120, false);
        if language == Language::English {
            assert_eq!(words(&text), words(&wide));
        }
    }
}

#[test]
fn terminal_at_80_columns_reads_well_in_every_language() {
    for language in Language::ALL {
        let name = format!("terminal-{}", language.code());
        insta::assert_snapshot!(name, terminal(&fixture::quick(), language, 80, false));
    }
}

#[test]
fn the_answer_reads_well_in_every_language() {
    for language in Language::ALL {
        let name = format!("answer-{}", language.code());
        insta::assert_snapshot!(name, terminal_answer(&fixture::quick(), language, 80, false));
    }
}

#[test]
fn the_answer_of_every_study_fits_one_screen() {
    for (name, result) in every_study::all().into_iter().filter(|(name, _)| *name != "hostile names") {
        for language in Language::ALL {
            for width in [80, 100, 120] {
                let text = terminal_answer(&result, language, width, false);
                let lines = text.lines().count();
                assert!(lines <= ANSWER_LINES_MAX, "{name}, {language:?}, {width}: {lines} lines\n{text}");
                assert!(
                    text.lines().all(|line| columns(line) <= width),
                    "{name}, {language:?}, {width}: {text}"
                );
            }
        }
    }
}

#[test]
fn a_comment_of_any_study_is_short() {
    for (name, result) in every_study::all() {
        for language in Language::ALL {
            let text = comment(&result, language);
            assert!(text.lines().count() <= COMMENT_LINES_MAX, "{name}, {language:?}: {text}");
            assert!(text.chars().count() <= 8_000 && text.starts_with("**"), "{name}, {language:?}: {text}");
        }
    }
    insta::assert_snapshot!("comment-en", comment(&fixture::quick(), Language::English));
    let limited = comment(&fixture::one_arm_missing(), Language::English);
    assert!(limited.contains("Arms that could not run"), "{limited}");
    let mut failed = fixture::quick();
    failed.checks = vec![Check { passed: false, ..failed.checks[0].clone() }; 6];
    let text = comment(&failed, Language::English);
    assert!(
        text.contains("✗") && text.contains("report.html"),
        "those that are left out are counted: {text}"
    );
}

#[test]
fn the_answer_names_what_limits_it() {
    let missing = fixture::one_arm_missing();
    let [arm] = &missing.missing_arms[..] else { panic!("{:?}", missing.missing_arms) };
    let text = terminal_answer(&missing, Language::English, 80, false);
    assert!(text.contains(&format!("Arms that could not run: {}", arm.name)), "{text}");
    let mut failed = fixture::quick();
    failed.checks[0].passed = false;
    let text = terminal_answer(&failed, Language::English, 80, false);
    assert!(text.contains("✗ Failed check: "), "{text}");
}

#[test]
fn markdown_reads_well_in_every_language() {
    for language in Language::ALL {
        insta::assert_snapshot!(
            format!("markdown-{}", language.code()),
            markdown(&fixture::quick(), language)
        );
    }
}

#[test]
fn an_http_study_speaks_of_requests_in_every_language() {
    for (language, messages) in
        [(Language::English, "essage"), (Language::Korean, "메시지"), (Language::Chinese, "消息")]
    {
        let result = fixture::http();
        for text in [terminal(&result, language, 120, false), markdown(&result, language)] {
            let found = text.lines().find(|line| line.contains(messages));
            assert_eq!(found, None, "{language:?}");
        }
    }
    let text = markdown(&fixture::http(), Language::English);
    assert!(text.contains("100 connections · HTML page 592 B · new connection each"), "{text}");
    assert!(text.contains("1,000 connections · image 148 KiB"), "{text}");
}

#[test]
fn published_figures_stand_beside_the_measured_ones_in_every_language() {
    let english = terminal(&fixture::http(), Language::English, 120, false);
    let from = english.find("Published beside measured").expect("the section is there");
    let until = english.find("Run it again").expect("the end is there");
    insta::assert_snapshot!("published-terminal", &english[from..until]);
    for (language, claim, why, ladder) in [
        (Language::Korean, "문서 002: HTML 페이지", "원인별 기여도", "1, 2, 3, 4, 5, 7, 11초"),
        (Language::Chinese, "文档 002：HTML 页面", "各原因的贡献", "1, 2, 3, 4, 5, 7, 11 秒"),
    ] {
        let text = markdown(&fixture::http(), language);
        let steps =
            if language == Language::Chinese { "1 s：4,800 · 3 s：12" } else { "1 s: 4,800 · 3 s: 12" };
        let shares = ["| 37 % [31 %, 43 %] |", "| 52.4 % |"];
        for told in [claim, why, ladder, "1.200", "5,231", steps].into_iter().chain(shares) {
            assert!(text.contains(told), "{language:?}: {told} in {text}");
        }
        assert!(!text.contains("Document 00") && !text.contains("bottleneck"), "{text}");
        let page = weir_report::html(&fixture::http(), language);
        assert!(page.contains(claim) && page.contains(why) && page.contains("4,800"));
    }
}

#[test]
fn io_models_stand_in_a_table_of_what_was_found_and_what_they_are_in_every_language() {
    let result = fixture::survey();
    let english = markdown(&result, Language::English);
    let from = english.find("## I/O models").expect("the section is there");
    let until = english.find("## Throughput").expect("the next one is there");
    insta::assert_snapshot!("ways-markdown", &english[from..until]);
    for (language, told) in [
        (
            Language::Korean,
            [
                "가능: 에지 트리거, 한 번만 등록",
                "제한적: 머신 전체 요청 65,536개 중 65,536개 사용 중",
                "소켓 쌍으로 1바이트",
                "호출 한 번에 버퍼",
            ],
        ),
        (
            Language::Chinese,
            [
                "可用：边沿触发、只注册一次",
                "受限：整机 65,536 个请求中已占用 65,536 个",
                "经套接字对发送一个字节",
                "一次调用写入两个",
            ],
        ),
    ] {
        let views = [
            markdown(&result, language),
            weir_report::html(&result, language),
            terminal(&result, language, 120, false),
        ];
        for (view, shown) in views.iter().zip([told.as_slice(), &told, &told[..2]]) {
            for text in shown {
                assert!(view.contains(text), "{language:?}: {text} in {view}");
            }
            // The page also contains the record itself.
            if view.starts_with("<!DOCTYPE") {
                continue;
            }
            for untold in ["triggered", "thread a connection", "socket pair", "are taken", "one call"] {
                assert!(!view.contains(untold), "{language:?}: {untold} in {view}");
            }
        }
    }
    let features = ["deferred-task-run", "single-issuer", "multishot-receive", "no-index-array", "no-iowait"];
    let mut result = result;
    result.spec.io_models[5].detail =
        Finding::DriverGranted { features: features.map(str::to_owned).to_vec() };
    assert!(!markdown(&result, Language::Korean).contains("issuer"));
    assert!(csv(&result).contains("\n,aio,,io-model,state,limited,\n"));
}

#[test]
fn chinese_has_one_kind_of_colon_and_korean_says_no_word_twice() {
    for result in [fixture::quick(), fixture::http()] {
        let chinese =
            [terminal(&result, Language::Chinese, 100, false), markdown(&result, Language::Chinese)];
        for line in chinese.iter().flat_map(|text| text.lines()) {
            // Names of fields and output of programs are not translated.
            let own = line.replace("Connection: close", "").replace("Connection: Keep-Alive", "");
            let is_table = own.trim_start().starts_with("| ---");
            assert!(is_table || !own.contains(": "), "{line}");
        }
        let korean = terminal(&result, Language::Korean, 100, false);
        assert!(!korean.contains("판정: 판정") && !korean.contains("판정을 보류"), "{korean}");
    }
}

#[test]
fn the_ladder_is_told_for_old_and_new_kernels() {
    let mut result = fixture::http();
    assert!(
        markdown(&result, Language::English)
            .contains("after 1, 2, 3, 4, 5, 7, 11 s (tcp_syn_linear_timeouts = 4)")
    );
    result.syn_ladder_s = vec![1, 3, 7, 15, 31, 63];
    result.fingerprint.limits.clear();
    let text = markdown(&result, Language::English);
    assert!(text.contains("after 1, 3, 7, 15, 31, 63 s; from 6.5 on"), "{text}");
    result.syn_ladder_s.clear();
    assert!(!markdown(&result, Language::English).contains("unanswered SYN"));
}

#[test]
fn an_echo_study_without_claims_has_no_section_about_them() {
    let text = markdown(&fixture::quick(), Language::English);
    for section in ["Published", "How much each cause", "How connections came about", "I/O models"] {
        assert!(!text.contains(section), "{section}");
    }
}

#[test]
fn a_study_cut_before_its_first_pair_is_not_called_incomparable() {
    let mut result = fixture::with_verdict(Verdict::Inconclusive);
    let primary = &mut result.effects.rows[0];
    (primary.estimate, primary.interval) = (None, None);
    for (language, told, wrong) in [
        (Language::English, "No pair of trials was finished", "cannot be compared"),
        (Language::Korean, "시행 쌍이 없습니다", "비교할 수 없습니다"),
        (Language::Chinese, "没有一对试验完成", "不可比较"),
    ] {
        let said = sentence(&result, language);
        assert!(said.contains(told) && !said.contains(wrong), "{said}");
    }
}

#[test]
fn the_reason_of_a_missing_arm_is_told_where_it_is_known_and_stays_as_a_program_said_it_where_not() {
    let mut result = fixture::one_arm_missing();
    result.missing_arms[0].reason = Finding::IoUringDisabled { level: 2 };
    assert!(terminal(&result, Language::Korean, 80, false).contains("kernel.io_uring_disabled 값이 2임"));
    assert!(markdown(&result, Language::Chinese).contains("kernel.io_uring_disabled 为 2"));
    let said = "exited with status 3: no luck at 7000".to_owned();
    result.missing_arms[0].reason = Finding::NeverServed { trials: 2, said };
    for language in Language::ALL {
        assert!(markdown(&result, language).contains("exited with status 3: no luck at 7000"));
    }
}

#[test]
fn the_sentence_respects_the_verdict_in_every_language() {
    let verdicts =
        [Verdict::Better, Verdict::Worse, Verdict::Equivalent, Verdict::Inconclusive, Verdict::NotComparable];
    let mut text = String::new();
    for language in Language::ALL {
        for verdict in verdicts {
            text.push_str(&format!("{verdict:?}: {}\n", sentence(&fixture::with_verdict(verdict), language)));
        }
        text.push_str(&format!("nothing done: {}\n", sentence(&fixture::empty(), language)));
        text.push_str(&format!("arm missing: {}\n\n", sentence(&fixture::one_arm_missing(), language)));
    }
    insta::assert_snapshot!("sentences", text);
}

#[test]
fn inconclusive_says_which_hurdle_was_not_taken() {
    let mut result = fixture::with_verdict(Verdict::Inconclusive);
    assert!(sentence(&result, Language::English).contains("the interval includes 1"));
    result.effects.rows[0].reasons = vec![Finding::NotSignificant { p_value: 0.062 }];
    assert!(sentence(&result, Language::English).contains("finds no difference (p = 0.062)"));
    let seen = WitnessFigure { ratio: 1.0, interval: (0.95, 1.04), units: 44 };
    let bearing = WitnessBearing::Uncertain;
    result.effects.rows[0].reasons = vec![Finding::Witness { witness: Witness::MachineCpu, seen, bearing }];
    let expected =
        "CPU of both sides: ratio 1.000 [0.950, 1.040] from 44 units, which is too uncertain to confirm this";
    assert!(sentence(&result, Language::English).contains(expected));
    assert!(sentence(&result, Language::Chinese).contains("无法确认判定"));
}

#[test]
fn the_ratio_at_one_rate_for_both_stands_beside_the_verdict() {
    let mut result = fixture::quick();
    let seen = WitnessFigure { ratio: 0.924, interval: (0.913, 0.934), units: 12 };
    let witness = Witness::EqualRate { per_second: 84_639.0 };
    let bearing = WitnessBearing::Supports;
    result.effects.rows[0].notes.push(Finding::Witness { witness, seen, bearing });
    let text = |language| markdown(&result, language);
    let english = "At one rate for both, 84,639/s, uring uses 7.6 % less (99 % interval 6.6 to 8.7 % less).";
    assert!(text(Language::English).contains(english));
    assert!(text(Language::Korean).contains("같은 요청률(84,639/s)에서 uring: 7.6 % 적게 씁니다"));
    assert!(text(Language::Chinese).contains("在相同请求速率（84,639/s）下，uring 少 7.6 %"));
}

#[test]
fn not_comparable_names_every_cause() {
    let mut result = fixture::with_verdict(Verdict::NotComparable);
    result.effects.rows[0].reasons =
        vec![Finding::Text("a cause of tomorrow".to_owned()), Finding::NoPairLeft];
    let text = sentence(&result, Language::Chinese);
    assert!(text.starts_with("a cause of tomorrow。没有剩余的配对。"), "{text}");
    result.effects.rows[0].reasons.clear();
    assert!(
        sentence(&result, Language::English).starts_with("The generator was the limit in 54 of 72"),
        "then the failed check is the cause"
    );
}

/// Comparisons of one cell lack two units, and have no other notes. `with_noise` returns by index the ratio including
/// these.
fn lacking_units(result: &mut StudyResult, with_noise: impl Fn(usize, &Effect) -> Option<f64>) {
    result.effects.rows.retain(|row| matches!(row.question, Question::Comparison | Question::Itself));
    let mut noisy: Vec<Effect> = Vec::new();
    for (index, comparison) in result.effects.comparisons_mut().enumerate() {
        comparison.reasons.clear();
        comparison.notes.clear();
        comparison.excluded.clear();
        if comparison.cell_id == "c100-d1-m64-closed" {
            comparison.excluded = vec![Finding::Excluded { reason: ExclusionKind::ForeignCpu, count: 2 }];
            let ratio = with_noise(index, comparison);
            noisy.extend(ratio.map(|ratio| fixture::beside(comparison, Question::WithNoise, ratio)));
        }
    }
    result.effects.rows.extend(noisy);
}

#[test]
fn a_note_of_several_metrics_is_said_once() {
    let mut result = fixture::quick();
    lacking_units(&mut result, |index, _| Some(0.9 + index as f64 / 100.0));
    let bound = Finding::LagUnknown { arm: "uring".to_owned(), kind: MessageKind::Message };
    result.effects.rows[0].notes = vec![bound.clone()];
    result.effects.rows[1].notes = vec![bound];
    let text = terminal(&result, Language::English, 120, false);
    let notes: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("- ")).take(2).collect();
    insta::assert_snapshot!(notes.join("\n"), @r"
    - uring · CPU/msg, CPU of both sides: too few messages to know the generator's lag against uring
    - uring: pairs kept out: other processes busy (2); ratio with all pairs: CPU/msg 0.900, throughput 0.920
    ");
}

/// A third arm, compared like the second.
fn with_third_arm() -> StudyResult {
    let mut result = fixture::quick();
    result.spec.arms.push(fixture::arm("poll"));
    let own = result.effects.rows.iter().filter(|row| row.arm == "uring");
    let of_third: Vec<Effect> = own.map(|row| Effect { arm: "poll".to_owned(), ..row.clone() }).collect();
    let (compared, beside): (Vec<Effect>, Vec<Effect>) =
        of_third.into_iter().partition(Effect::is_comparison);
    compared.into_iter().for_each(|row| fixture::compare(&mut result, row));
    result.effects.rows.extend(beside);
    result
}

#[test]
fn pairs_that_several_arms_lack_are_told_once_with_the_ratios_that_they_would_change() {
    let mut result = with_third_arm();
    lacking_units(&mut result, |_, comparison| comparison.estimate);
    let noted = |result: &StudyResult| -> Vec<String> {
        let text = terminal(result, Language::English, 120, false);
        let notes = text.lines().filter(|line| line.contains("pairs kept out"));
        notes.map(str::to_owned).collect()
    };
    let expected = "- uring, poll: pairs kept out: other processes busy (2)";
    assert_eq!(noted(&result), [expected], "the ratios are those of the pairs that are left");
    let of_third = |it: &&mut Effect| {
        (it.question, it.metric) == (Question::WithNoise, Metric::ServerCpuPerMessage) && it.arm == "poll"
    };
    let changed = result.effects.rows.iter_mut().find(of_third).expect("it lacks some");
    changed.estimate = Some(0.5);
    assert_eq!(noted(&result), [format!("{expected}; ratio with all pairs: poll CPU/msg 0.500")]);
    result.verdict = Verdict::NotComparable;
    for comparison in result.effects.comparisons_mut() {
        (comparison.estimate, comparison.interval, comparison.verdict) = (None, None, Verdict::NotComparable);
    }
    assert_eq!(noted(&result), [expected], "no pair is left that they could change");
}

#[test]
fn a_cell_without_a_figure_says_so_in_one_line_for_all_arms() {
    let mut result = with_third_arm();
    let cell = result.spec.cells[0].id.clone();
    let mut metrics = 0;
    for comparison in result.effects.comparisons_mut().filter(|it| it.cell_id == cell) {
        (comparison.estimate, comparison.interval, comparison.verdict) = (None, None, Verdict::NotComparable);
        metrics += usize::from(comparison.arm == "poll");
    }
    for (language, told) in [
        (Language::English, "not comparable: uring, poll"),
        (Language::Korean, "비교 불가: uring, poll"),
        (Language::Chinese, "不可比较：uring、poll"),
    ] {
        let page = weir_report::html(&result, language);
        assert_eq!(page.matches(told).count(), metrics, "{language:?}: a line in each plot");
        let text = terminal(&result, language, 120, false);
        assert_eq!(text.matches(told).count(), 1, "{language:?}: {text}");
    }
    // The table after the plots contains every row.
    let text = markdown(&result, Language::English);
    let rows = text.lines().filter(|line| line.contains("/ epoll | not comparable | – |"));
    assert_eq!(rows.count(), 2 * metrics, "{text}");
    let text = terminal(&result, Language::English, 120, false);
    let of_cell = text.split("\n\n").find(|part| part.contains("not comparable: uring, poll"));
    assert!(of_cell.is_some_and(|it| !it.contains("CPU of both sides") && it.contains("uring")), "{text}");
}

#[test]
fn what_else_differs_is_told_where_the_judge_noted_it() {
    let mut result = fixture::quick();
    let printed = |result: &StudyResult| markdown(result, Language::English);
    assert!(printed(&result).contains("\n\nIt also enters the kernel"));
    result.effects.rows[0].notes.clear();
    assert!(!printed(&result).contains("enters the kernel"));
}

#[test]
fn no_terminal_line_is_wider_than_the_terminal() {
    for (name, result) in every_study::all() {
        for language in Language::ALL {
            for width in [80, 100, 120] {
                for line in terminal(&result, language, width, false).lines() {
                    assert!(columns(line) <= width, "{name}, {language:?}, {width}: {line:?}");
                }
            }
        }
    }
}

/// Columns counted in another way than by the crate: everything from Hangul Jamo up is wide here.
fn columns(line: &str) -> usize {
    line.chars().map(|letter| if letter >= '\u{2e80}' { 2 } else { 1 }).sum()
}

#[test]
fn colour_adds_escapes_and_nothing_else() {
    for (name, result) in every_study::all() {
        let plain = terminal(&result, Language::Korean, 80, false);
        assert!(!plain.contains('\u{1b}'), "{name}");
        let painted = terminal(&result, Language::Korean, 80, true);
        let mut stripped = String::new();
        for part in painted.split('\u{1b}') {
            stripped.push_str(if stripped.is_empty() && !painted.starts_with('\u{1b}') {
                part
            } else {
                part.split_once('m').map_or(part, |(_, text)| text)
            });
        }
        let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        assert_eq!(trimmed(&stripped), trimmed(&plain), "{name}");
    }
}

#[test]
fn a_generator_bound_throughput_is_printed_as_a_lower_bound() {
    let result = fixture::quick();
    assert!(terminal(&result, Language::English, 80, false).contains("≥ 121,"));
    assert!(markdown(&result, Language::English).contains("≥ 121,"));
    assert!(csv(&result).contains("c100-d1-m64-closed,epoll,,throughput,is-lower-bound,1,bool\n"));
}

#[test]
fn no_text_shows_a_number_that_is_not_one() {
    for (name, result) in every_study::all() {
        for language in Language::ALL {
            for text in [terminal(&result, language, 80, false), markdown(&result, language), csv(&result)] {
                assert!(!text.contains("NaN") && !text.contains("inf,"), "{name}");
            }
        }
    }
}

#[test]
fn every_csv_line_has_seven_fields() {
    for (name, result) in every_study::all() {
        for record in records(&csv(&result)) {
            assert_eq!(record.len(), 7, "{name}: {record:?}");
        }
    }
    let hostile = csv(&fixture::hostile_names());
    assert!(records(&hostile).iter().any(|record| record[1] == fixture::HOSTILE), "names survive quoting");
}

/// A strict reader of RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            other => field.push(other),
        }
    }
    assert!(!quoted && field.is_empty() && record.is_empty(), "the last line must end");
    records
}

#[test]
fn the_csv_has_every_figure_of_a_comparison() {
    let text = csv(&fixture::quick());
    for line in [
        "c100-d1-m64-closed,uring,epoll,server-cpu-per-message,verdict,better,\n",
        "c100-d1-m64-closed,uring,epoll,server-cpu-per-message,ratio,0.781,ratio\n",
        "c100-d1-m64-closed,uring,epoll,server-cpu-per-message,pairs,12,count\n",
        "c100-d1-m64-open,uring,epoll,latency-p99,verdict,inconclusive,\n",
        "c100-d1-m64-closed,uring,,engine-enters-per-message,value,0.0312,count\n",
    ] {
        assert!(text.contains(line), "{line}");
    }
    let text = csv(&fixture::http());
    for line in [
        "c100-d1-m64-closed,uring,epoll,published-throughput,S2-08 page,1.2,ratio\n",
        "c100-d1-m64-closed,uring,epoll-log-lines,cause-of-S2-08 page-throughput,share,0.37,fraction\n",
        "c100-d1-m64-closed,uring,epoll-log-lines,cause-of-S2-08 page-throughput,share-interval-low,0.31,fraction\n",
        "c100-d1-m64-closed,uring,,listen-overflows,all-trials,5231,count\n",
        "c100-d1-m64-closed,uring,,connect-stalled,step-1-s,4800,count\n",
    ] {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn an_http_cell_gives_the_times_to_the_first_and_the_last_byte_side_by_side() {
    let result = fixture::http();
    let text = terminal(&result, Language::English, 100, false);
    assert!(text.contains("\n  first byte 414 µs, last byte 441 µs\n"), "{text}");
    let page = weir_report::html(&result, Language::Korean);
    let first = page.find("첫 바이트까지의 시간").expect("it is drawn");
    let last = page.find("마지막 바이트까지의 시간").expect("it is drawn");
    assert!(!page[first..last].contains("<section"), "they stand in one section");
    let figures = csv(&result);
    assert!(figures.contains(",first-byte-p50,mean,") && figures.contains(",last-byte-p50,mean,"));
}

#[test]
fn the_effect_in_each_state_of_the_machine_stands_beside() {
    let result = fixture::quick();
    for (language, told) in [
        (Language::English, "near state 0.781 [0.765, 0.797] (8 units), far state 0.851"),
        (Language::Korean, "긴 상태(far) 0.851"),
        (Language::Chinese, "较长的状态（far）0.851"),
    ] {
        assert!(markdown(&result, language).contains(told), "{language:?}");
    }
    assert!(csv(&result).contains(",server-cpu-per-message,far-units,4,count\n"));
}

#[test]
fn a_difference_is_told_in_its_unit_and_not_as_a_ratio() {
    let mut result = fixture::quick();
    let switches = &mut result.effects.rows[1];
    (switches.metric, switches.scale) = (Metric::SwitchesPerMessage, EffectScale::Difference);
    (switches.estimate, switches.interval) = (Some(0.31), Some((0.28, 0.34)));
    (switches.detectable, switches.verdict) = (Some(0.04), Verdict::Worse);
    switches.values = vec![0.3, 0.32];
    let itself = fixture::itself(&switches.cell_id, Metric::SwitchesPerMessage, 0.02);
    let ratio = fixture::beside(switches, Question::Ratio, 1.9);
    result.effects.rows.extend([Effect { interval: Some((-0.02, 0.01)), ..itself }, ratio]);
    let text = markdown(&result, Language::English);
    assert!(text.contains("| more | +0.310 [+0.280, +0.340] | 95 % | 0.040 | 0.020 |"), "{text}");
    assert!(csv(&result).contains(",switches-per-message,difference,0.31,count\n"));
    assert!(csv(&result).contains(",switches-per-message,difference-1,0.32,count\n"));
    assert!(csv(&result).contains(",switches-per-message,ratio,1.9,ratio\n"), "which has no interval");
    assert!(!csv(&result).contains(",switches-per-message,interval-low,"));
    assert!(weir_report::html(&result, Language::English).contains("✗ more"));
}

#[test]
fn one_pair_has_a_ratio_and_no_interval_and_says_what_to_do_next() {
    let mut result = fixture::with_verdict(Verdict::Inconclusive);
    let primary = &mut result.effects.rows[0];
    (primary.interval, primary.p_value, primary.units) = (None, None, 1);
    primary.reasons = vec![Finding::OneUnit { unit: UnitKind::Round }];
    result.effects.rows.retain(|row| !matches!(row.question, Question::NearState | Question::FarState));
    for (language, cause, next) in [
        (Language::English, "1 round alone has no interval. At 100 connections", "Next: weir study --resume"),
        (
            Language::Korean,
            "라운드 1회뿐이라 신뢰구간이 없음. 이 머신에서",
            "다음 할 일: weir study --resume",
        ),
        (Language::Chinese, "只有 1 轮，没有置信区间。在本机上", "下一步：用 weir study --resume"),
    ] {
        let said = sentence(&result, language);
        assert!(said.starts_with(cause) && !said.contains('['), "{said}");
        assert!(markdown(&result, language).contains(next));
    }
}

fn side(arm: &str, cell: &str, metric: Metric) -> Side {
    Side { arm: arm.to_owned(), cell_id: cell.to_owned(), metric }
}

/// One answer of each kind.
fn answers() -> Vec<(ComparisonSpec, Effect)> {
    const SMALL: &str = "c100-d1-m64-closed";
    const LARGE: &str = "c1000-d1-m64-closed";
    let cpu = Metric::ServerCpuPerMessage;
    let answer = |of: Side, to: Vec<Side>, goal, interval: (f64, f64), outcome| {
        let found = Effect {
            cell_id: of.cell_id.clone(),
            arm: of.arm.clone(),
            metric: of.metric,
            estimate: Some(0.5 * (interval.0 + interval.1)),
            interval: Some(interval),
            level: 0.99,
            units: 12,
            is_paired: true,
            outcome: Some(outcome),
            ..Effect::default()
        };
        (ComparisonSpec { of, to, goal: Some(goal), is_threshold: false }, found)
    };
    let grown = vec![side("epoll", SMALL, cpu)];
    let (grown_asked, grown) =
        answer(side("epoll", LARGE, cpu), grown, Goal::AtMost(1.2), (1.1, 1.14), Outcome::Met);
    let other = vec![side("uring", SMALL, cpu)];
    let generator = side("uring", SMALL, Metric::GeneratorCpuPerMessage);
    let (open_asked, open) = answer(generator, other, Goal::Within(0.9, 1.1), (0.8, 1.0), Outcome::Open);
    let best = vec![side("epoll", SMALL, cpu), side("poll", SMALL, cpu)];
    let best = answer(side("uring", SMALL, cpu), best, Goal::AtMost(1.05), (1.06, 1.2), Outcome::Missed);
    let memory = |to| side("uring", to, Metric::ServerMemory);
    let bytes = (9.0 * 1_048_576.0, 10.0 * 1_048_576.0);
    let (memory_asked, memory) =
        answer(memory(LARGE), vec![memory(SMALL)], Goal::AtMost(10_240_000.0), bytes, Outcome::Met);
    let alone = side("epoll", SMALL, Metric::LatencyP99);
    let (alone_asked, alone) =
        answer(alone, Vec::new(), Goal::AtMost(100_000.0), (40_000.0, 60_000.0), Outcome::Met);
    let gone = Effect {
        estimate: None,
        interval: None,
        outcome: Some(Outcome::Open),
        reasons: vec![Finding::ArmMissing { arm: "epoll".to_owned() }],
        units: 0,
        ..grown.clone()
    };
    vec![
        (grown_asked.clone(), grown),
        (open_asked, Effect { reasons: vec![Finding::IncludesBound { bound: 0.9 }], ..open }),
        best,
        (memory_asked, Effect { scale: EffectScale::Difference, ..memory }),
        (alone_asked, Effect { scale: EffectScale::Figure, ..alone }),
        (grown_asked, gone),
    ]
}

#[test]
fn goals_are_told_with_figure_outcome_and_reason_in_every_language() {
    let mut result = fixture::quick();
    for (place, (asked, found)) in (0..).zip(answers()) {
        result.spec.comparisons.push(asked);
        result.effects.rows.push(Effect { question: Question::Asked(place), ..found });
    }
    let document = markdown(&result, Language::English);
    let from = document.find("## Goals").expect("it has a section");
    let until = from + 3 + document[from + 3..].find("\n## ").expect("another follows");
    insta::assert_snapshot!("goals-markdown", &document[from..until]);
    for (language, title, words) in [
        (Language::English, "Goals and further comparisons", ["met", "missed", "open"]),
        (Language::Korean, "목표와 추가 비교", ["달성", "미달성", "미정"]),
        (Language::Chinese, "目标与附加比较", ["达成", "未达成", "未定"]),
    ] {
        for text in [
            markdown(&result, language),
            terminal(&result, language, 100, false),
            weir_report::html(&result, language),
        ] {
            assert!(text.contains(title) && words.iter().all(|word| text.contains(word)), "{text}");
        }
        assert!(!markdown(&fixture::quick(), language).contains(title), "without goals there is no section");
    }
    let text = terminal(&result, Language::English, 100, false);
    let from = text.find("Goals and").expect("it has them");
    insta::assert_snapshot!(
        "goals-terminal",
        &text[from..from + text[from..].find("\n\n").expect("it ends")]
    );
}

#[test]
fn languages_are_named_by_their_code() {
    for language in Language::ALL {
        assert_eq!(Language::from_str(language.code()), Ok(language));
    }
    let error = Language::from_str("fr").expect_err("French is not there yet");
    assert_eq!(error.to_string(), "unknown language \"fr\": use en, ko or zh");
}
