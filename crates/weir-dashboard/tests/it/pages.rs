//! What readers see: the list, a report, the charts, and each in three languages.

use std::fs;

use weir_report::ChartPage;

use crate::{
    client::Running,
    results::{charted_study, folder, make_old, session_on, sql, study},
};

/// The text of a page without its style.
fn told(page: &str) -> String {
    let from = page.find("<nav").expect("every page of several says where one can go");
    page[from..].replace("><", ">\n<")
}

#[test]
fn the_list_has_the_newest_first_with_what_each_came_to() {
    let results = folder("list");
    study(&results, ("older", "quick"), 200);
    study(&results, ("newer & <b>", "quick"), 100);
    fs::create_dir(results.join("no-study")).expect("a folder can be made");
    let dashboard = Running::over(&results);
    let list = dashboard.get("/");
    assert_eq!((list.status, list.header("content-type")), (200, "text/html; charset=utf-8"));
    insta::assert_snapshot!("list", told(&list.body));
    for (query, words) in [("?lang=ko", ["실험", "CPU 덜 씀"]), ("?lang=zh", ["实验", "更省 CPU"])] {
        let list = dashboard.get(&format!("/{query}"));
        assert!(words.iter().all(|word| list.body.contains(word)), "{}", told(&list.body));
        assert!(list.body.contains(&format!("/study/older{query}")), "links keep the language");
    }
}

#[test]
fn a_study_is_its_report_and_changes_when_its_store_does() {
    let results = folder("report");
    let path = study(&results, ("one", "quick"), 100);
    let dashboard = Running::over(&results);
    let page = dashboard.get("/study/one");
    assert_eq!(page.status, 200);
    let (result, _) = weir_lab::stored::read(&path).expect("it can be judged");
    let report = weir_report::html(&result, weir_report::Language::English);
    let body = report.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>"));
    let (body, _) = body.expect("a report has a body");
    assert!(page.body.contains(body), "what stands below the navigation is the report");
    sql(&path, "DELETE FROM result; UPDATE study SET reproduce = 'weir study other'");
    make_old(&path, 50);
    assert!(dashboard.get("/study/one").body.contains("weir study other"));
    assert!(dashboard.get("/").body.contains("not judged yet"), "there is no result any more");
    sql(&path, "UPDATE study SET spec = json_set(spec, '$.cells[0].blocks', 1000)");
    make_old(&path, 40);
    assert!(dashboard.get("/").body.contains("unfinished"), "nor all of its blocks");
}

#[test]
fn a_reader_gets_the_language_of_the_address_before_that_of_the_browser() {
    let results = folder("languages");
    let dashboard = Running::over(&results);
    let host = format!("Host: {}", dashboard.address);
    let asked = |line: &str, preferred: &str| {
        let answer = dashboard.ask(&[line, &host, &format!("Accept-Language: {preferred}")]);
        let (_, rest) = answer.body.split_once("lang=\"").expect("a page says its language");
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    assert_eq!(asked("GET / HTTP/1.1", "ko-KR,en;q=0.5"), "ko");
    assert_eq!(asked("GET /?lang=zh HTTP/1.1", "ko-KR,en;q=0.5"), "zh-Hans");
    assert_eq!(asked("GET /?lang=xx HTTP/1.1", "ko"), "ko");
    assert_eq!(asked("GET / HTTP/1.1", "fr"), "en");
}

#[test]
fn charts_are_of_the_study_that_is_named_or_of_the_newest_that_is_whole_and_may_be_framed() {
    let results = folder("charts");
    study(&results, ("map-1", "tps"), 300);
    study(&results, ("quick-1", "quick"), 200);
    let unfinished = study(&results, ("map-2", "tps"), 100);
    sql(&unfinished, "DELETE FROM result");
    make_old(&unfinished, 100);
    let dashboard = Running::over(&results);
    for page in ChartPage::ALL {
        let chart = dashboard.get(&format!("/{}", page.path()));
        assert_eq!(chart.status, 200, "{}", page.path());
        assert!(chart.body.contains("/study/map-1"), "{}", page.path());
        assert!(!chart.header("content-security-policy").contains("frame-ancestors"));
        let named = dashboard.get(&format!("/{}?lang=ko&study=map%2D2", page.path()));
        assert!(named.body.contains("/study/map-2?lang=ko"), "{}", page.path());
        assert!(named.body.contains(page.title(weir_report::Language::Korean)));
    }
    let drawn = dashboard.get("/connection-chart").body;
    assert!(drawn.contains("<svg") && drawn.contains(WHISKER) && drawn.contains("<table"), "{drawn}");
    assert_eq!(dashboard.get("/connection-chart?study=nothing").status, 404);
    let all = dashboard.get("/charts?study=map-1");
    let element =
        format!("src=&quot;http://{}/thread-chart?study=map-1&amp;amp;lang=en&quot;", dashboard.address);
    assert!(all.body.contains(&element), "{}", told(&all.body));
    assert!(all.header("content-security-policy").contains("frame-ancestors 'none'"));
}

/// A result with lists in place of the table of effects, as in version 2 of the records.
const OLDER_RESULT: &str = r#"{"schema_version":2,"primary":0,"verdict":"better","comparisons":[{"cell_id":"c100",
    "arm":"uring","baseline":"epoll","metric":"server-cpu-per-message","ratio":0.8}],"missing_arms":[],
    "complete":true}"#;

#[test]
fn a_study_that_an_earlier_version_judged_is_listed_charted_and_judged_again_where_it_is_shown() {
    let results = folder("older-records");
    let path = study(&results, ("map-1", "tps"), 300);
    let unfinished = study(&results, ("map-2", "tps"), 100);
    sql(&unfinished, "DELETE FROM result");
    make_old(&unfinished, 100);
    let (result, _) = weir_lab::stored::read(&path).expect("it can be judged");
    let older =
        format!("UPDATE result SET result = '{OLDER_RESULT}'; DROP TABLE effect; PRAGMA user_version = 3");
    sql(&path, &older);
    make_old(&path, 300);
    let dashboard = Running::over(&results);
    for (query, words) in [
        ("", "judged by another version of Weir"),
        ("?lang=ko", "다른 버전의 Weir가 판정함"),
        ("?lang=zh", "由其他版本的 Weir 判定"),
    ] {
        let list = dashboard.get(&format!("/{query}")).body;
        assert!(list.contains(words) && list.contains("/study/map-1"), "{}", told(&list));
    }
    let page = dashboard.get("/study/map-1").body;
    let report = weir_report::html(&result, weir_report::Language::English);
    let body = report.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>"));
    let (body, _) = body.expect("a report has a body");
    assert!(page.contains(body), "the report is that of the trials");
    assert!(page.contains("<script src=\"/picture.js\" ") && !page.contains("use strict"), "{}", told(&page));
    assert!(
        dashboard.get("/thread-chart").body.contains("/study/map-1"),
        "it is finished, and the other is not"
    );
}

/// An interval that is drawn, and not the style of one.
const WHISKER: &str = " whisker\"";

#[test]
fn each_of_the_eight_charts_draws_its_intervals() {
    let results = folder("intervals");
    charted_study(&results.join("map"));
    let dashboard = Running::over(&results);
    for page in ChartPage::ALL {
        let chart = dashboard.get(&format!("/{}?study=map", page.path())).body;
        assert!(chart.contains(WHISKER), "{}: {chart}", page.path());
    }
}

#[test]
fn each_chart_is_an_image_too_in_the_colours_that_are_asked_for() {
    let results = folder("images");
    charted_study(&results.join("map"));
    study(&results, ("quick-1", "quick"), 200);
    let dashboard = Running::over(&results);
    for page in ChartPage::ALL {
        let path = page.path();
        let image = dashboard.get(&format!("/{path}.svg?study=map&theme=dark"));
        assert_eq!((image.status, image.header("content-type")), (200, "image/svg+xml"), "{path}");
        assert!(
            image.body.starts_with("<svg xmlns=") && image.body.contains(" UTC"),
            "{path}: {}",
            image.body
        );
        assert!(!image.body.contains("prefers-color-scheme") && image.body.contains("@media all{"), "{path}");
        let light = dashboard.get(&format!("/{path}?study=map&theme=light")).body;
        assert!(light.contains("@media not all{") && light.contains("content=\"light\""), "{path}");
        let other = dashboard.get(&format!("/{path}?study=map&theme=blue")).body;
        assert!(other.contains("prefers-color-scheme:dark"), "{path}");
    }
    let none = dashboard.get("/thread-chart.svg?study=quick-1&lang=zh");
    assert!(none.status == 404 && none.body.contains("没有可绘制的内容"), "{}", none.body);
    let all = dashboard.get("/charts?study=map&theme=dark");
    for part in [
        "href=\"/thread-chart.svg?study=map&amp;theme=dark\" download=\"thread-chart.svg\"",
        "<script src=\"/picture.js\" data-save=\"Save as PNG\"",
        "thread-chart?study=map&amp;amp;theme=dark&amp;amp;lang=en&quot;",
        "<button class=\"copy\" type=\"button\" hidden data-copies=\"element-thread-chart\"",
        "<code id=\"element-thread-chart\">",
        "<script src=\"/copy.js\"></script>",
        "aria-current=\"true\">dark</a>",
    ] {
        assert!(all.body.contains(part), "no {part} in {}", told(&all.body));
    }
    assert!(all.header("content-security-policy").contains("script-src 'self'"));
    assert_eq!(all.body.matches("<iframe src").count(), ChartPage::ALL.len());
    assert!(!all.body.contains("<script>") && !all.body.contains("onclick"));
    for script in ["/copy.js", "/picture.js"] {
        assert_eq!(dashboard.get(script).header("content-type"), "text/javascript; charset=utf-8");
    }
    let policy = all.header("content-security-policy");
    assert!(policy.contains("img-src data:;"), "a chart is drawn as an image: {policy}");
}

#[test]
fn without_a_study_to_chart_the_page_says_which_one_is_missing() {
    let results = folder("no-charts");
    study(&results, ("quick-1", "quick"), 200);
    let dashboard = Running::over(&results);
    let answer = dashboard.get("/thread-chart");
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("No study tps"), "{}", told(&answer.body));
    let all = dashboard.get("/charts");
    assert_eq!((all.status, all.body.matches("No study tps").count()), (200, 1), "it is said once");
    let offered = "<option value=\"quick-1\">quick-1 · quick</option>";
    assert!(
        all.body.contains(offered) && !all.body.contains("<iframe"),
        "another can be chosen: {}",
        told(&all.body)
    );
    assert_eq!(dashboard.get("/charts?study=").body, all.body, "as the form names the newest tps");
    let nothing = dashboard.get("/charts?study=quick-1&theme=dark&lang=ko").body;
    let chosen = "<option value=\"quick-1\" selected>quick-1 · quick</option>";
    for part in [chosen, "가장 최근의 tps", "name=\"theme\" value=\"dark\"", "name=\"lang\" value=\"ko\""]
    {
        assert!(nothing.contains(part), "{part}: {}", told(&nothing));
    }
    let nothing = dashboard.get("/charts?study=quick-1").body;
    let (framed, bare) =
        (nothing.matches("<iframe src").count(), nothing.matches("nothing to draw here").count());
    assert_eq!(framed + bare, ChartPage::ALL.len(), "{}", told(&nothing));
    assert!(bare > 0 && !nothing.contains("<iframe src=\"/thread-chart"), "{}", told(&nothing));
    assert!(!nothing.contains("href=\"/thread-chart.svg"), "{}", told(&nothing));
    let named = dashboard.get("/thread-chart?study=quick-1");
    assert_eq!(named.status, 200);
    assert!(named.body.contains("nothing to draw here"), "{}", named.body);
}

#[test]
fn a_study_that_a_session_works_on_is_marked_and_can_be_seen() {
    let results = folder("running");
    let path = study(&results, ("one", "quick"), 100);
    let session = session_on(&path);
    let dashboard = Running::over(&results);
    let list = dashboard.get("/").body;
    assert!(list.contains("running") && list.contains("blocks stored"), "{}", told(&list));
    assert_eq!(dashboard.get("/study/one").status, 200);
    drop(session);
    assert!(!dashboard.get("/").body.contains(">running<"));
}

#[test]
fn figures_and_the_whole_study_can_be_kept_as_files() {
    let results = folder("export");
    let path = study(&results, ("one \"quick\"", "quick"), 100);
    let dashboard = Running::over(&results);
    let page = dashboard.get("/study/one%20%22quick%22").body;
    let (result, trials) = weir_lab::stored::read(&path).expect("it can be judged");
    for (file, kind, end, text) in [
        ("figures.csv", "text/csv; charset=utf-8", "csv", weir_report::csv(&result)),
        ("study.json", "application/json", "json", weir_lab::export::json(&result, &trials).expect("JSON")),
    ] {
        let href = format!("/study/one%20%22quick%22/{file}");
        assert!(page.contains(&format!("href=\"{href}\" download")), "{}", told(&page));
        let kept = dashboard.get(&href);
        assert_eq!((kept.status, kept.header("content-type")), (200, kind));
        let disposition = format!("attachment; filename=\"one__quick_.{end}\"");
        assert_eq!(kept.header("content-disposition"), disposition);
        assert!(kept.body == text, "{file} is what weir export prints");
        assert_eq!(dashboard.get(&format!("/study/nothing/{file}")).status, 404);
        assert_eq!(dashboard.get(&format!("/study/../{file}")).status, 404);
    }
}

#[test]
fn the_dashboard_counts_itself_and_says_that_it_is_there() {
    let results = folder("metrics");
    let dashboard = Running::over(&results);
    assert_eq!(dashboard.get("/healthz").body, "ok\n");
    assert_eq!(dashboard.get("/nowhere").status, 404);
    let metrics = dashboard.get("/metrics");
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for line in [
        "# TYPE weir_dashboard_answers_total counter",
        "weir_dashboard_answers_total{status=\"2xx\"} 1",
        "weir_dashboard_answers_total{status=\"4xx\"} 1",
        "weir_dashboard_connections_total 3",
        "weir_dashboard_connections 1",
    ] {
        assert!(metrics.body.lines().any(|own| own == line), "no {line} in\n{}", metrics.body);
    }
}
