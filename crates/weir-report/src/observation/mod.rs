//! Views of an observed process: text for a terminal and one page. Both draw the same blocks.

mod advice;
mod blocks;
mod compared;
mod conclusion;
mod descriptors;
mod page;
mod picture;
mod selected;
mod sentences;
mod series;
mod tables;
mod text;

use maud::Markup;
use weir_record::observation::Observation;

use crate::language::Language;

/// The observation as text of at most `width_columns` columns.
pub fn terminal(observation: &Observation, language: Language, width_columns: usize, color: bool) -> String {
    text::document(&blocks::all(observation, language), language, width_columns, color)
}

/// The activity since the last look, as lines that fit a terminal of this size: tables with as many rows as fit,
/// those with most CPU first.
pub fn live(
    observation: &Observation,
    language: Language,
    width_columns: usize,
    height_rows: usize,
) -> String {
    text::live(blocks::live(observation, language), language, width_columns, height_rows)
}

/// One self-contained page.
pub fn html(observation: &Observation, language: Language) -> String {
    html_below(observation, language, &Markup::default())
}

/// The same page with a header, if it is one of several.
pub fn html_below(observation: &Observation, language: Language, above: &Markup) -> String {
    page::document(&blocks::all(observation, language), language, above)
}

/// What the page has below its head, for a page that adds to it.
pub fn content(observation: &Observation, language: Language) -> Markup {
    page::content(&blocks::all(observation, language), language)
}

#[cfg(test)]
mod tests {
    use weir_record::{
        SCHEMA_VERSION,
        machine::Fingerprint,
        observation::{
            Bound, CallFigures, Conclusion, DescriptorFigures, DescriptorTable, Descriptors, Ending,
            ErrorFigures, Found, Interval, IntervalCalls, IntervalKind, Note, Obstacle, ProbeCost, Purpose,
            Rung, RungState, Selected, SelectedProcess, Selection, Series, SoftirqFigures, StraceRow,
            StraceTable, ThreadFigures, Totals, Trace, Transfers, UringFigures, WakeFigures,
        },
    };

    use super::*;
    use crate::display::columns;

    fn call(name: &str, purpose: Purpose, count: u64, on_cpu_ns: u64) -> CallFigures {
        CallFigures {
            name: name.to_owned(),
            purpose,
            count,
            on_cpu_ns,
            returned: count * 64,
            buckets: vec![0, 0, 0, 0, 0, 0, 0, 0, 0, count / 2, count / 4, count / 8],
            ..CallFigures::default()
        }
    }

    fn trace() -> Trace {
        let mut wait = call("epoll_wait", Purpose::Readiness, 50_000, 40_000_000);
        (wait.blocked_ns, wait.returned, wait.in_flight, wait.in_flight_ns) =
            (1_500_000_000, 200_000, 1, 7_000);
        let mut receive = call("recvfrom", Purpose::Transfer, 200_000, 150_000_000);
        (receive.again, receive.again_ns, receive.errors) = (9_000, 3_000_000, 2);
        Trace {
            window_ns: 2_000_000_000,
            calls: vec![call("sendto", Purpose::Transfer, 191_000, 900_000_000), receive, wait],
            calls_cut: 1,
            is_split: true,
            wakes: vec![WakeFigures {
                sleeper_tid: 4242,
                waker_pid: 77,
                waker_tid: 78,
                waker_name: "wrk".to_owned(),
                context: Some("NET_RX".to_owned()),
                count: 30_000,
                blocked_ns: 1_400_000_000,
            }],
            wakes_left_out: 3,
            queued_ns: 0,
            ran_ns: 1_900_000_000,
            sleeps: 60_000,
            preemptions: 40,
            softirqs: vec![SoftirqFigures {
                kind: "NET_RX".to_owned(),
                count: 190_000,
                ns: 400_000_000,
                elsewhere_count: 1_000,
                elsewhere_ns: 5_000_000,
                ..SoftirqFigures::default()
            }],
            uring: vec![UringFigures { event: "submit_req".to_owned(), count: 12, elsewhere_count: 0 }],
            operations: Vec::new(),
            descriptors: None,
            opened_again: Vec::new(),
            files_opened_again: 0,
            opens_of_those: 0,
            switches_missed: 3,
            threads_lost: 0,
            wakes_lost: 4,
            misses: 0,
            cost: ProbeCost {
                untraced_ns: 161.0,
                traced_ns: 402.0,
                inside_ns: 90.0,
                run_ns: 0.0,
                added_ns: (231.0, 260.0),
            },
            probe_ns: 30_000_000,
            probe_runs: 60_000,
            softirqs_are_apart: Some(false),
        }
    }

    fn strace() -> StraceTable {
        let row = |name: &str, calls, time_ns| StraceRow { name: name.to_owned(), calls, errors: 0, time_ns };
        let rows = vec![row("epoll_wait", 9_000, 1_700_000_000), row("sendto", 9_000, 290_000_000)];
        StraceTable { window_ns: 2_000_000_000, rows }
    }

    fn observed(trace: Option<Trace>) -> Observation {
        let traced = trace.is_some();
        let bound = Bound {
            cpu_ns: 1_900_000_000,
            calls: 441_000,
            io_ns: 1.2e9,
            asking_ns: 0.1e9,
            entering_ns: 0.06e9,
            share_max: 0.63,
            busiest_share: 0.95,
            conclusion: Conclusion::AtMost,
        };
        Observation {
            schema_version: SCHEMA_VERSION,
            fingerprint: Fingerprint {
                host: "desk".to_owned(),
                kernel_release: "6.18.0".to_owned(),
                cpus_online: 2,
                ..Fingerprint::default()
            },
            began_unix_s: 1_790_000_000,
            pid: 4242,
            command: "nginx: worker process\u{1b}[2J".to_owned(),
            selection: None,
            window_ns: 2_000_000_000,
            ending: Ending::Time,
            rung: if traced { Rung::Programs } else { Rung::Process },
            ladder: vec![RungState {
                rung: Rung::Programs,
                obstacle: (!traced).then_some(Obstacle::NoPrivilege),
                unlock: (!traced).then(|| "sudo setcap cap_bpf,cap_perfmon=ep weir".to_owned()),
            }],
            notes: vec![Note::ThreadsEnded { count: 2, in_sums: true }],
            totals: Totals {
                cpu_ns: 1_900_000_000,
                system_ns: Some(1_500_000_000),
                run_delay_ns: 20_000_000,
                context_switches_voluntary: 60_000,
                context_switches_involuntary: 40,
                processes: 1,
                threads: 1,
                rss_anon_bytes: 9 << 20,
                ..Totals::default()
            },
            descriptors: Some(Descriptors { open: 120, sockets: 103, epolls: 1, rings: 0 }),
            threads: vec![ThreadFigures {
                pid: 4242,
                tid: 4242,
                name: "nginx".to_owned(),
                cpu_ns: 1_900_000_000,
                run_delay_ns: 20_000_000,
                context_switches_voluntary: 60_000,
                context_switches_involuntary: 40,
                calls: traced.then_some(441_000),
                blocked_ns: traced.then_some(90_000_000),
                has_ended: false,
            }],
            threads_left_out: 5,
            trace,
            bound: traced.then_some(bound),
            advice: Vec::new(),
            series: None,
            strace: traced.then(strace),
            observer_cpu_ns: Some(9_000_000),
            beside: None,
        }
    }

    /// The same with each number replaced by the largest one.
    fn forged(value: serde_json::Value) -> serde_json::Value {
        use serde_json::Value;
        match value {
            Value::Number(number) if number.is_u64() => u64::MAX.into(),
            Value::Array(all) => all.into_iter().map(forged).collect(),
            Value::Object(all) => all.into_iter().map(|(name, value)| forged_field(name, value)).collect(),
            other => other,
        }
    }

    /// Some fields are smaller, and a reader refuses larger numbers.
    fn forged_field(name: String, value: serde_json::Value) -> (String, serde_json::Value) {
        const NARROW: [&str; 11] = [
            "schema_version",
            "pid",
            "tid",
            "processes",
            "threads",
            "number",
            "descriptor",
            "sleeper_tid",
            "waker_pid",
            "waker_tid",
            "opcode",
        ];
        let value = match name.as_str() {
            "fingerprint" => value,
            narrow if NARROW.contains(&narrow) && value.is_u64() => u32::MAX.into(),
            _ => forged(value),
        };
        (name, value)
    }

    /// A forged record with the largest numbers, and several rows in each list.
    fn forgery() -> Observation {
        let kinds = || vec![IntervalKind { calls: 1, ..IntervalKind::default() }; 2];
        let traced = IntervalCalls { kinds: kinds(), ..IntervalCalls::default() };
        let interval = Interval { traced: Some(traced), ..Interval::default() };
        let descriptor = DescriptorFigures {
            read: Transfers { sizes: vec![1; 3], ..Transfers::default() },
            ..DescriptorFigures::default()
        };
        let mut seen = pair();
        seen.series = Some(Series {
            kinds: ["read", "write"].map(str::to_owned).to_vec(),
            intervals: vec![interval; 200],
            ..Series::default()
        });
        let trace = seen.trace.as_mut().expect("it was traced");
        trace.descriptors = Some(DescriptorTable { rows: vec![descriptor; 40], ..Default::default() });
        trace.softirqs.extend(trace.softirqs.clone());
        trace.wakes.extend(trace.wakes.clone());
        seen.threads.extend(seen.threads.clone());
        seen.selection = Some(Selection {
            found: Found { by: Selected::Name, text: "web".to_owned(), container: None },
            processes: vec![SelectedProcess::default(); 2],
            processes_left_out: 1,
            joined: 1,
            looked_every_ns: 1,
        });
        seen.notes.clear();
        seen.beside.as_mut().expect("there are two").notes.clear();
        let value = serde_json::to_value(&seen).expect("it is a record");
        serde_json::from_value(forged(value)).expect("it is a record")
    }

    #[test]
    fn a_record_of_the_largest_numbers_is_drawn_in_every_view() {
        let both = forgery();
        let alone = Observation { beside: None, ..both.clone() };
        for observation in [both, alone] {
            for language in Language::ALL {
                assert!(terminal(&observation, language, 120, false).contains("epoll_wait"));
                assert!(html(&observation, language).contains("epoll_wait"));
                assert!(!live(&observation, language, 120, 50).is_empty());
            }
        }
    }

    #[test]
    fn a_traced_process_in_a_terminal() {
        insta::assert_snapshot!(terminal(&observed(Some(trace())), Language::English, 110, false));
    }

    #[test]
    fn a_process_that_was_not_traced_is_told_the_next_rung() {
        insta::assert_snapshot!(terminal(&observed(None), Language::English, 80, false));
    }

    #[test]
    fn every_language_has_every_block_and_no_line_is_too_wide() {
        for language in Language::ALL {
            for observation in [observed(Some(trace())), observed(None)] {
                for width in [60, 80, 120] {
                    let text = terminal(&observation, language, width, false);
                    assert!(text.lines().all(|line| columns(line) <= width), "{width}\n{text}");
                    assert!(!text.contains('\u{1b}') && text.contains("4242"), "{text}");
                }
                let page = html(&observation, language);
                assert!(page.starts_with("<!DOCTYPE html>") && page.contains("4242"), "{page}");
                let has_picture = page.contains("epoll_wait · ");
                assert_eq!(has_picture, observation.trace.is_some(), "{page}");
                assert!(!page.contains("<script") && !page.contains('\u{1b}'));
            }
        }
    }

    #[test]
    fn calls_that_fail_are_told_in_a_column_and_a_sentence_at_every_width() {
        let mut seen = observed(Some(trace()));
        let opens = &mut seen.trace.as_mut().expect("it was traced").calls[1];
        (opens.name, opens.errors) = ("openat".to_owned(), 200_000);
        let kind = |number, name: &str, count| ErrorFigures { number, name: name.to_owned(), count };
        opens.errors_by_kind = vec![kind(2, "ENOENT", 199_997), kind(13, "EACCES", 3)];
        for width in [80, 100, 120] {
            let text = terminal(&seen, Language::English, width, false);
            assert!(text.contains("errors"), "{width}: {text}");
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let told = "Failed: 200,000 of 200,000 openat (ENOENT 199,997, EACCES 3).";
            assert!(line.contains(told), "{width}: {text}");
        }
        for language in Language::ALL {
            assert!(terminal(&seen, language, 80, false).contains("ENOENT"), "{language:?}");
        }
        let quiet = terminal(&observed(Some(trace())), Language::English, 80, false);
        assert!(!quiet.lines().any(|line| line.starts_with("call ") && line.contains("errors")), "{quiet}");
    }

    #[test]
    fn a_wide_terminal_has_room_for_every_column_and_sentences_stay_readable() {
        let text = terminal(&observed(Some(trace())), Language::English, 180, false);
        let heads = ["wall p50", "wall p99", "wall time", "errors", "queued"];
        assert!(heads.iter().all(|head| text.contains(head)), "{text}");
        assert!(text.lines().filter(|line| line.ends_with('.')).all(|line| columns(line) <= 120), "{text}");
    }

    fn pair() -> Observation {
        let mut other = observed(Some(trace()));
        (other.pid, other.command) = (77, "/usr/bin/redis-server *:6379".to_owned());
        other.threads[0].tid = 77;
        other.threads[0].name = "redis-server".to_owned();
        other.trace.as_mut().expect("it was traced").calls.remove(1);
        Observation { beside: Some(Box::new(other)), ..observed(Some(trace())) }
    }

    #[test]
    fn calls_softirqs_and_what_is_outside_of_both_are_the_whole_cpu() {
        let mut busy = observed(Some(trace()));
        let printed = |observation: &Observation| terminal(observation, Language::English, 120, false);
        let shares = |text: &str| -> f64 {
            let rows = text.lines().skip_while(|line| !line.starts_with("call ")).skip(1);
            let share = |line: &str| line.split(" % ").next()?.rsplit(' ').next()?.parse::<f64>().ok();
            rows.map_while(|line| line.contains(" % ").then(|| share(line).expect("a share"))).sum()
        };
        let text = printed(&busy);
        assert!((shares(&text) - 100.0).abs() < 0.5, "{} {text}", shares(&text));
        assert!(text.contains("outside of calls"), "{text}");
        assert!(html(&busy, Language::English).contains("are within that thread"));
        busy.trace.as_mut().expect("it was traced").softirqs_are_apart = Some(true);
        let text = printed(&busy);
        assert!((shares(&text) - 100.0).abs() < 0.5, "{text}");
        for language in Language::ALL {
            assert!(html(&busy, language).contains("CONFIG_IRQ_TIME_ACCOUNTING"), "{language:?}");
        }
    }

    #[test]
    fn two_processes_in_a_terminal() {
        insta::assert_snapshot!(terminal(&pair(), Language::English, 110, false));
    }

    #[test]
    fn two_processes_stand_side_by_side_in_every_language_and_neither_is_called_faster() {
        for language in Language::ALL {
            for width in [60, 80, 120] {
                let text = terminal(&pair(), language, width, false);
                assert!(text.lines().all(|line| columns(line) <= width), "{width}\n{text}");
                assert!(text.contains("4242 nginx") && text.contains("77 redis-server"), "{text}");
            }
            assert!(html(&pair(), language).contains("77 redis-server"));
        }
    }

    #[test]
    fn a_live_view_fits_every_terminal() {
        let mut busy = observed(Some(trace()));
        let thread = busy.threads[0].clone();
        busy.threads = (0..1_000).map(|tid| ThreadFigures { tid, ..thread.clone() }).collect();
        for observation in [busy, pair(), observed(None)] {
            for language in Language::ALL {
                for (width, height) in [(60, 10), (80, 24), (120, 50), (200, 4)] {
                    let text = live(&observation, language, width, height);
                    assert!(text.lines().count() <= height, "{height}\n{text}");
                    assert!(text.lines().all(|line| columns(line) <= width), "{width}\n{text}");
                }
            }
        }
        let text = live(&observed(Some(trace())), Language::English, 110, 40);
        for word in ["sendto", "epoll_wait", "nginx", "wrk", "q or Ctrl-C"] {
            assert!(text.contains(word), "{word}\n{text}");
        }
    }

    #[test]
    fn a_thread_that_ended_is_marked_in_each_language() {
        let mut observation = observed(None);
        observation.threads[0].has_ended = true;
        for (language, mark) in Language::ALL.into_iter().zip(["(ended)", "(종료됨)", "(已结束)"]) {
            let text = terminal(&observation, language, 120, false);
            assert!(text.contains(&format!("nginx {mark}")), "{text}");
        }
    }

    #[test]
    fn threads_that_did_nothing_are_told_together() {
        let mut pool = observed(None);
        let idle = ThreadFigures { tid: 7_001, name: "GC Thread".to_owned(), ..ThreadFigures::default() };
        pool.threads.push(idle.clone());
        let printed = |observation: &Observation| terminal(observation, Language::English, 120, false);
        assert!(printed(&pool).contains("7001  GC Thread"), "one has its row");
        pool.threads.push(ThreadFigures { tid: 7_002, ..idle.clone() });
        let timer = ThreadFigures { tid: 7_003, context_switches_voluntary: 40, ..idle };
        pool.threads.push(timer);
        let text = printed(&pool);
        assert!(text.contains("2 threads with hardly any CPU: GC Thread."), "{text}");
        assert!(!text.contains("7001"), "{text}");
        assert!(text.contains("7003"), "one that wakes has something to show: {text}");
        pool.threads.remove(0);
        pool.threads.pop();
        assert!(printed(&pool).contains("7001"), "where none did anything, all have rows");
    }

    #[test]
    fn rings_and_softirqs_of_others_have_no_rows() {
        let mut seen = observed(Some(trace()));
        let printed = |observation: &Observation| terminal(observation, Language::English, 120, false);
        let trace = seen.trace.as_mut().expect("it was traced");
        let elsewhere =
            SoftirqFigures { kind: "TASKLET".to_owned(), elsewhere_count: 9, ..Default::default() };
        trace.softirqs.push(elsewhere);
        let added = UringFigures { event: "task_add".to_owned(), count: 900, elsewhere_count: 5 };
        trace.uring = vec![added];
        let text = printed(&seen);
        assert!(!text.contains("task_add") && !text.contains("TASKLET"), "{text}");
        seen.descriptors = Some(Descriptors { rings: 1, ..Descriptors::default() });
        assert!(printed(&seen).contains("task_add"), "it has a ring");
        seen.descriptors = None;
        let submitted = UringFigures { event: "submit_req".to_owned(), count: 1, elsewhere_count: 0 };
        seen.trace.as_mut().expect("it was traced").uring.push(submitted);
        assert!(printed(&seen).contains("task_add"), "it used one");
    }

    #[test]
    fn what_columns_have_in_them_stands_below_their_table_and_nothing_of_those_that_are_left_out() {
        let seen = observed(Some(trace()));
        let [wide, narrow] = [110, 60].map(|width| terminal(&seen, Language::English, width, false));
        for (text, has_empty) in [(&wide, true), (&narrow, false)] {
            assert!(text.contains("queued: woken or preempted") && text.contains("nvcswch/s: "), "{text}");
            assert_eq!(text.contains("empty: "), has_empty, "{text}");
        }
        assert!(wide.contains("operation submitted"), "an event says what it is: {wide}");
        assert!(!live(&seen, Language::English, 120, 50).contains("queued: "), "there is no room for it");
    }

    #[test]
    fn of_threads_that_ended_it_is_told_what_the_sums_have_and_older_records_have_less() {
        let older: Note =
            serde_json::from_str(r#"{"code": "threads-ended", "count": 2}"#).expect("an older note");
        let newer = Note::ThreadsEnded { count: 2, in_sums: true };
        let unread = Note::EndedUnread { cpu_ns: 190_000_000, of_cpu_ns: 1_900_000_000 };
        let english = [&older, &newer, &unread].map(|note| sentences::note(note, Language::English));
        assert!(english[0].ends_with("their switches and waiting are not."), "{english:?}");
        assert!(english[1].ends_with("waiting up to the last reading of each."), "{english:?}");
        assert!(english[2].contains("had 10 % of its CPU after their last reading"), "{english:?}");
        for language in Language::ALL {
            let [older, newer] = [&older, &newer].map(|note| sentences::note(note, language));
            assert_ne!(older, newer);
            assert!(sentences::note(&unread, language).contains("10 %"), "{language:?}");
        }
    }

    #[test]
    fn a_range_whose_ends_are_equal_is_told_once() {
        let mut traced = observed(Some(trace()));
        traced.trace.as_mut().expect("it was traced").cost.added_ns = (412.2, 412.4);
        let text = terminal(&traced, Language::English, 120, false);
        assert!(text.contains("(412 ns more)"), "{text}");
        assert!(text.contains("In this window tracing was 7.2 % of its CPU at least"), "{text}");
    }

    #[test]
    fn what_was_never_seen_is_a_dash_and_no_division_by_nothing() {
        let mut nothing = observed(Some(Trace::default()));
        nothing.window_ns = 0;
        nothing.totals = Totals::default();
        nothing.bound = Some(Bound::default());
        nothing.threads.clear();
        for language in Language::ALL {
            let text = terminal(&nothing, language, 100, false);
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
