//! Where the pages of a study say when it was made, on which machine, and in which folder.

use std::path::Path;

use weir_record::{finding::Finding, run_pool::Period, study::StudyResult, verdict::Verdict};
use weir_report::{Language, html, html_of_run, markdown, markdown_of_run, plain_name, shell_word};

use crate::{fixture, map};

const MADE: u64 = 1_795_936_205;

fn made() -> StudyResult {
    let mut result = fixture::quick();
    result.created_unix_s = Some(MADE);
    result.fingerprint.host = "lab-<7>".to_owned();
    result
}

fn title(page: &str) -> &str {
    page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).expect("it has a title")
}

#[test]
fn date_and_host_stand_at_the_top_in_every_language() {
    let hosts = ["host lab-&lt;7&gt;", "호스트 lab-&lt;7&gt;", "主机 lab-&lt;7&gt;"];
    for (language, host) in Language::ALL.into_iter().zip(hosts) {
        let page = html(&made(), language);
        assert!(
            page.contains("<time datetime=\"2026-11-29T07:10:05Z\">2026-11-29 07:10 UTC</time>"),
            "{page}"
        );
        assert!(page.contains("<bdi>lab-&lt;7&gt;</bdi>") && title(&page).contains("2026-11-29 07:10 UTC"));
        let text = markdown(&made(), language);
        assert!(text.contains("2026-11-29 07:10 UTC") && text.contains(host), "{text}");
        let mut mapped = map::mapped();
        (mapped.created_unix_s, mapped.fingerprint.host) = (Some(MADE), "lab-<7>".to_owned());
        let guidance = weir_report::guidance(&mapped, language).expect("there is a map");
        let printed = weir_report::guidance_html(&mapped, language).expect("there is a map");
        for text in [guidance, printed] {
            assert!(text.contains("2026-11-29 07:10 UTC") && text.contains(host), "{language:?}: {text}");
        }
    }
}

#[test]
fn what_was_not_noted_is_left_out_and_the_first_session_stands_for_the_date() {
    let mut plain = fixture::quick();
    plain.fingerprint.host.clear();
    let page = html(&plain, Language::English);
    assert!(!page.contains("<time") && !page.contains("<bdi>"), "{page}");
    let period = Period { began_unix_s: MADE + 60, ended_unix_s: MADE + 120, sessions: 1 };
    let mut older = fixture::quick();
    older.period = Some(period);
    assert!(html(&older, Language::English).contains(">2026-11-29 07:11 UTC</time>"));
    older.created_unix_s = Some(MADE);
    assert!(html(&older, Language::English).contains(">2026-11-29 07:10 UTC</time>"));
}

#[test]
fn the_title_names_the_folder_so_that_two_runs_differ() {
    let of = |folder: &str| html_of_run(&made(), Language::English, Path::new(folder));
    let own = of("results/quick-2");
    assert_eq!(title(&own), "Weir study quick: less CPU · 2026-11-29 07:10 UTC · quick-2");
    assert_ne!(title(&own), title(&of("results/quick-3")));
    assert!(title(&of("results/a\u{202e}b\n<c>")).ends_with(" · ab &lt;c&gt;"));
    let long = of(&"x".repeat(4_000));
    assert!(title(&long).len() < 200 && title(&long).ends_with('…'), "{}", title(&long));
}

#[test]
fn how_to_go_on_names_the_folder_in_use() {
    let mut result = fixture::with_verdict(Verdict::Inconclusive);
    result.effects.rows[0].reasons = vec![Finding::Unfinished { blocks_done: 3, blocks: 9 }];
    for language in Language::ALL {
        let plain = markdown_of_run(&result, language, Path::new("results/quick-2"));
        assert!(plain.contains("weir study --resume results/quick-2"), "{plain}");
        let odd = html_of_run(&result, language, Path::new("it's <here>"));
        assert!(odd.contains("weir study --resume 'it'\\''s &lt;here&gt;'"), "{odd}");
        assert!(markdown(&result, language).contains("weir study --resume"), "without a folder it is short");
    }
}

#[test]
fn an_unfinished_study_has_no_verdict() {
    let mut result = fixture::with_verdict(Verdict::Better);
    result.complete = false;
    for check in &mut result.checks {
        if let Finding::Schedule { blocks_done, blocks, .. } = &mut check.detail {
            (*blocks_done, *blocks) = (3, 9);
        }
    }
    for (language, word) in Language::ALL.into_iter().zip(["unfinished", "미완료", "未完成"]) {
        let page = html(&result, language);
        let card = page.split("<section class=\"card ").nth(1).expect("it has a card");
        assert!(card.starts_with("doubt\"") && title(&page).contains(word), "{card}");
        let badge = card.split("</p>").next().expect("it has a badge");
        assert!(badge.contains(word) && !badge.contains('✓'), "{badge}");
        assert_eq!(weir_report::verdict(&result, language), (word, "doubt"));
    }
    assert!(html(&fixture::with_verdict(Verdict::Better), Language::English).contains("card good"));
}

#[test]
fn a_name_stays_on_its_line_and_a_path_is_one_word() {
    assert_eq!(plain_name("quick\u{2067}\n\u{1b}[1m", 80), "quick  [1m");
    assert_eq!(plain_name("가나다라", 5), "가나…");
    assert_eq!(plain_name(&"x".repeat(100_000), 3), "xx…");
    for (text, word) in [
        ("weir-results/quick-1", "weir-results/quick-1"),
        ("", "''"),
        ("a b", "'a b'"),
        ("$(x)", "'$(x)'"),
        ("한글", "한글"),
    ] {
        assert_eq!(shell_word(text), word);
    }
}
