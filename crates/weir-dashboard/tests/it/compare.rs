//! Two studies side by side: the page, the record, and the form that leads there.

use std::fs;

use weir_lab::stored::StoredRun;
use weir_record::run_pair::RunPair;

use crate::{
    client::Running,
    results::{folder, make_old, sql, study},
};

#[test]
fn two_studies_of_the_list_stand_side_by_side_as_the_command_compares_them() {
    let results = folder("compare");
    let earlier = study(&results, ("earlier & 1", "quick"), 200);
    let later = study(&results, ("later", "quick"), 100);
    for (path, release, age_s) in [(&earlier, "6.88.1", 200), (&later, "6.99.1", 100)] {
        let fingerprint = format!("json_set(fingerprint, '$.kernel_release', '{release}')");
        sql(path, &format!("UPDATE study SET fingerprint = {fingerprint}"));
        make_old(path, age_s);
    }
    let dashboard = Running::over(&results);
    let list = dashboard.get("/").body;
    assert!(list.contains("<form action=\"/compare\">"), "{list}");
    let form = dashboard.get("/compare").body;
    for page in [&list, &form] {
        assert!(page.contains("<option value=\"earlier &amp; 1\" selected>"), "A is the earlier one: {page}");
        assert!(!page.contains("No study has two finished runs"), "{page}");
    }

    // As a browser sends the form.
    let page = dashboard.get("/compare?a=earlier+%26+1&b=later");
    assert_eq!(page.status, 200, "{}", page.body);
    for words in ["Two runs side by side", "<figure", "kernel_release", "6.99.1", "uring / epoll"] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    assert!(page.body.contains("href=\"/compare?a=later&amp;b=earlier%20%26%201\""), "the other way round");
    assert!(page.header("content-security-policy").ends_with("frame-ancestors 'none'"));
    for (query, words) in [("&lang=ko", "두 실행 비교"), ("&lang=zh", "两次运行对照")] {
        let page = dashboard.get(&format!("/compare?a=earlier%20%26%201&b=later{query}")).body;
        assert!(page.contains(words), "{page}");
    }

    let json = dashboard.get("/compare.json?a=earlier+%26+1&b=later");
    assert_eq!(json.header("content-type"), "application/json");
    assert_eq!(json.header("content-disposition"), "attachment; filename=\"earlier___1-later.json\"");
    let pair: RunPair = serde_json::from_str(&json.body).expect("it is the record");
    let [one, other] = [&earlier, &later].map(|path| StoredRun::read(path).expect("it can be judged"));
    let printed = serde_json::to_string_pretty(&other.against(&one, &[])).expect("JSON");
    assert!(json.body == printed, "what weir study diff prints");
    assert_eq!(pair.machine[0].name, "kernel_release");
}

#[test]
fn of_more_studies_than_a_page_has_two_are_named_and_a_part_of_a_name_is_enough() {
    let results = folder("compare-many");
    study(&results, ("Early-20261101", "quick"), 2_000);
    study(&results, ("late-20261123", "quick"), 1_000);
    for number in 0..100 {
        let path = results.join(format!("other-{number:03}"));
        fs::create_dir(&path).expect("a folder can be made");
        fs::write(path.join("study.db"), "").expect("a file can be written");
    }
    let dashboard = Running::over(&results);
    let list = dashboard.get("/").body;
    assert!(!list.contains("<select name=\"a\">"), "a choice of those on the page would lack the others");
    for field in [
        "<input name=\"a\" list=\"names\" required autocomplete=\"off\" value=\"Early-20261101\">",
        "<input name=\"b\" list=\"names\" required autocomplete=\"off\" value=\"late-20261123\">",
    ] {
        assert!(list.contains(field), "{field}: {list}");
    }
    let (_, suggested) = list.split_once("<datalist id=\"names\">").expect("names are suggested");
    assert_eq!(suggested.matches("<option value=").count(), 102, "all of them are");
    assert!(list.contains("<option value=\"Early-20261101\">"), "also one of the next page");

    let named = dashboard.get("/compare?a=early&b=+late-20261123+");
    assert_eq!(named.status, 200, "{}", named.body);
    assert!(named.body.contains("href=\"/compare?a=late-20261123&amp;b=Early-20261101\""), "{}", named.body);
    for (query, words, link) in [
        (
            "a=other-00&b=late",
            "10 studies have this in their names; write more of it: other-00",
            "/?find=other-00",
        ),
        ("a=other-00&b=late&lang=ko", "이름에 다음이 들어 있는 실험이 10개", "/?find=other-00&amp;lang=ko"),
        ("a=other-00&b=late&lang=zh", "有 10 个实验的名称包含", "/?find=other-00&amp;lang=zh"),
        ("a=early&b=%3Cb%3E", "No study has this in its name: &lt;b&gt;", "href=\"/\""),
        ("a=early&b=no&lang=ko", "이름에 다음이 들어 있는 실험이 없습니다: no", "href=\"/?lang=ko\""),
        ("a=early&b=no&lang=zh", "没有名称包含以下内容的实验：no", "href=\"/?lang=zh\""),
        ("a=early&b=", "name both", "href=\"/\""),
    ] {
        let answer = dashboard.get(&format!("/compare?{query}"));
        assert_eq!(answer.status, 404, "{query}");
        assert!(answer.body.contains(words) && answer.body.contains(link), "{query}: {}", answer.body);
    }
}

#[test]
fn what_cannot_be_compared_says_why_and_what_is_not_listed_is_not_found() {
    let results = folder("compare-not");
    study(&results, ("whole", "quick"), 200);
    let cut = study(&results, ("cut", "quick"), 100);
    sql(&cut, "UPDATE study SET spec = json_set(spec, '$.cells[0].blocks', 1000)");
    make_old(&cut, 100);
    let dashboard = Running::over(&results);
    let page = dashboard.get("/compare?a=whole&b=cut");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("B is not finished") && !page.body.contains("<figure"), "{}", page.body);
    let form = dashboard.get("/compare");
    assert!(form.status == 200 && form.body.contains("No study has two finished runs here"), "{}", form.body);
    assert_eq!(dashboard.get("/compare.json").status, 404);
    for query in ["?a=whole", "?b=whole", "?a=whole&b=../outside", "?a=whole&b=%", "?a=&b="] {
        for path in ["/compare", "/compare.json"] {
            let answer = dashboard.get(&format!("{path}{query}"));
            assert_eq!(answer.status, 404, "{path}{query}: {}", answer.body);
        }
    }
    sql(&cut, "PRAGMA user_version = 9999");
    make_old(&cut, 50);
    let page = dashboard.get("/compare?a=whole&b=cut");
    assert!(page.status == 500 && page.body.contains("version 9999"), "{}", page.body);
    assert!(
        !dashboard.get("/").body.contains("action=\"/compare\""),
        "one that can be read is none to choose from"
    );
}
