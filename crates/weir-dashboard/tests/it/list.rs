//! The list of studies: its order, its search and its filters, and that no text of a store spoils it.

use std::path::Path;

use crate::{
    client::Running,
    results::{folder, make_old, session_on, sql, study},
};

/// A study of which the store says this date and this machine.
fn dated(results: &Path, (name, of): (&str, &str), date: &str, host: &str, age_s: u64) {
    let path = study(results, (name, of), age_s);
    let fingerprint = format!("json_set(fingerprint, '$.host', '{host}')");
    sql(&path, &format!("UPDATE study SET created_at = '{date}', fingerprint = {fingerprint}"));
    make_old(&path, age_s);
}

/// The names of the listed studies in their order.
fn names(dashboard: &Running, query: &str) -> Vec<String> {
    let list = dashboard.get(&format!("/{query}"));
    assert_eq!(list.status, 200, "{query}");
    let parts = list.body.split("class=\"name\"").skip(1);
    let named = parts.filter_map(|part| part.split("<bdi>").nth(1)?.split("</bdi>").next());
    named.map(str::to_owned).collect()
}

/// Three studies whose files are as old as if they had been copied in the wrong order.
fn copied(name: &str) -> Running {
    let results = folder(name);
    dated(&results, ("last", "tps"), "2026-11-03 08:00:00", "lab-a", 900);
    dated(&results, ("first", "tps"), "2026-11-01 08:00:00", "lab-b", 300);
    dated(&results, ("middle", "quick"), "2026-11-02 08:00:00", "lab-b", 100);
    Running::over(&results)
}

#[test]
fn studies_are_in_the_order_of_their_stores_dates_and_not_of_their_files() {
    let dashboard = copied("dates");
    assert_eq!(names(&dashboard, ""), ["last", "middle", "first"]);
    assert_eq!(names(&dashboard, "?sort=-date"), ["first", "middle", "last"]);
    assert!(dashboard.get("/thread-chart").body.contains("/study/last"), "so is the study of the charts");
    let list = dashboard.get("/").body;
    assert!(list.contains("<th scope=\"col\" aria-sort=\"descending\"><a href=\"/?sort=-date\">"), "{list}");
    let made = "<span class=\"whole\">2026-11-03</span> <span class=\"whole\">08:00</span>";
    assert!(list.contains(made), "{list}");
}

#[test]
fn a_list_is_sorted_by_any_column_and_keeps_its_choice_in_every_link() {
    let dashboard = copied("sorts");
    for (query, expected) in [
        ("?sort=name", ["first", "last", "middle"]),
        ("?sort=-name", ["middle", "last", "first"]),
        ("?sort=machine", ["last", "middle", "first"]),
        ("?sort=nonsense", ["last", "middle", "first"]),
    ] {
        assert_eq!(names(&dashboard, query), expected, "{query}");
    }
    for query in ["?sort=effect", "?sort=verdict", "?sort=duration", "?sort=-duration"] {
        assert_eq!(names(&dashboard, query).len(), 3, "{query}");
    }
    let list = dashboard.get("/?find=lab&machine=lab-b&sort=name&lang=ko").body;
    assert!(list.contains("href=\"/?find=lab&amp;machine=lab-b&amp;sort=-name&amp;lang=ko\""), "{list}");
    assert!(list.contains("<input type=\"hidden\" name=\"sort\" value=\"name\">"), "{list}");
}

#[test]
fn a_list_is_narrowed_by_verdict_machine_and_arm_and_searched_in_all_of_its_texts() {
    let dashboard = copied("filters");
    let cases: [(&str, &[&str]); 12] = [
        ("?machine=lab-b", &["middle", "first"]),
        ("?machine=lab", &[]),
        ("?arm=uring", &["last", "middle", "first"]),
        ("?arm=nothing", &[]),
        ("?verdict=better&machine=lab-b&find=quick", &["middle"]),
        ("?verdict=worse", &[]),
        ("?verdict=running", &[]),
        ("?find=LAB-A", &["last"]),
        ("?find=URING", &["last", "middle", "first"]),
        ("?find=2026-11-02", &["middle"]),
        ("?find=less+cpu+middle", &["middle"]),
        ("?find=cheaper+echo+lab-b+quick", &["middle"]),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&dashboard, query), expected, "{query}");
    }
    let list = dashboard.get("/?machine=lab-b").body;
    assert!(list.contains("<option value=\"lab-b\" selected>") && list.contains("<option value=\"lab-a\">"));
    for (language, words) in [
        ("en", "No study matches this choice."),
        ("ko", "선택한 조건에 맞는 실험이 없습니다."),
        ("zh", "没有符合所选条件的实验。"),
    ] {
        let none = dashboard.get(&format!("/?verdict=worse&lang={language}")).body;
        assert!(none.contains(words) && !none.contains("class=\"name\""), "{none}");
    }
}

#[test]
fn a_running_or_unfinished_study_has_no_verdict_in_the_list() {
    let results = folder("no-verdict");
    let running = study(&results, ("running", "quick"), 100);
    let unfinished = study(&results, ("unfinished", "quick"), 200);
    let more = "json_set(spec, '$.cells[0].blocks', 1000)";
    let open = "json_set(result, '$.complete', json('false'))";
    sql(&unfinished, &format!("UPDATE study SET spec = {more}; UPDATE result SET result = {open}"));
    make_old(&unfinished, 200);
    let _session = session_on(&running);
    let dashboard = Running::over(&results);
    let list = dashboard.get("/").body;
    let (_, rows) = list.split_once("<tbody>").expect("it has rows");
    let (rows, _) = rows.split_once("</tbody>").expect("they end");
    assert!(!rows.contains("less CPU") && !rows.contains("\"good\"") && !rows.contains('✓'), "{rows}");
    assert!(rows.contains("<span class=\"badge\">unfinished</span>") && rows.contains(">running</a>"));
    assert_eq!(names(&dashboard, "?verdict=better"), [""; 0]);
    assert_eq!(names(&dashboard, "?verdict=unfinished"), ["unfinished"]);
}

#[test]
fn no_text_of_a_store_makes_the_list_wide_or_moves_what_stands_beside_it() {
    let results = folder("wide");
    let path = study(&results, ("a\u{202e}b", "quick"), 100);
    let long = "w".repeat(40_000);
    let spec = format!("json_set(spec, '$.title', '{long}', '$.name', '{long}', '$.arms[1].name', '{long}')");
    let fingerprint = format!("json_set(fingerprint, '$.host', '{long}', '$.kernel_release', '{long}')");
    sql(
        &path,
        &format!("UPDATE study SET spec = {spec}, fingerprint = {fingerprint}, created_at = '{long}'"),
    );
    make_old(&path, 100);
    study(&results, ("other", "quick"), 200);
    let dashboard = Running::over(&results);
    let list = dashboard.get("/").body;
    // A form sends the name as it is, and shows it in its own direction.
    let seen = list.replace("<option value=\"a\u{202e}b\"", "");
    assert!(!seen.contains('\u{202e}') && list.contains("<bdi>ab</bdi>"), "{list}");
    let (_, rows) = list.split_once("<tbody>").expect("it has rows");
    let text = rows.split(['<', '>', '"', '=']).map(str::len).max();
    assert!(text.is_some_and(|longest| longest < 1_000), "{text:?}");
    assert!(list.contains('…'), "a text that is cut says so");
}

#[test]
fn advice_is_a_command_with_the_folder_in_use_for_readers_on_this_machine() {
    let results = folder("qqfolder's own");
    let dashboard = Running::over(&results);
    let quoted = results.join("quick").display().to_string().replace('\'', "'\\''");
    let empty = dashboard.get("/").body;
    assert!(empty.contains(&format!("<code>weir study quick --out '{quoted}'</code>")), "{empty}");
    let cut = study(&results, ("cut", "quick"), 100);
    sql(&cut, "UPDATE study SET spec = json_set(spec, '$.cells[0].blocks', 1000)");
    make_old(&cut, 100);
    let quoted = cut.display().to_string().replace('\'', "'\\''");
    let (first, host) = ("GET /study/cut HTTP/1.1", format!("Host: {}", dashboard.address));
    let here = dashboard.ask(&[first, &host]).body;
    assert!(here.contains(&format!("weir study --resume '{quoted}'")), "{here}");
    assert!(here.contains("· cut</title>"), "the title names it too");
    for proxy in ["X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1"] {
        let elsewhere = dashboard.ask(&[first, &host, proxy]).body;
        assert!(elsewhere.contains("weir study --resume cut "), "{elsewhere}");
        assert!(!elsewhere.contains("qqfolder"), "where it is on this machine is nobody else's concern");
    }
}
