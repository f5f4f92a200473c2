//! The report of `weir load http` for people.

use weir_record::{
    http::{BadResponse, HttpLoadReport, LoadRows, RequestOutcome},
    load::LoadReport,
};
use weir_report::{Language, localized, pad_start};

use crate::load_text::{
    Unit, byte_rate, failure_rows, failures_of, fit, fit_sentences, generator, histogram, latency, none,
    paced, row, scaled, scaled_or_none, server, target, time, unreached,
};

/// Seconds that are shown; `--csv` has all of them.
const SECONDS_SHOWN: usize = 60;
/// Requests of a mix that are shown.
const REQUESTS_SHOWN: usize = 20;
/// Lines of a bad response that are shown; `--json` has all that was kept of it.
const BAD_LINES_SHOWN: usize = 16;

const UNIT: Unit = Unit::Response;

pub(super) fn table(report: &LoadReport, columns: usize, language: Language) -> String {
    let http = report.http.clone().unwrap_or_default();
    let mut rows = head(report, &http, language);
    rows.push(String::new());
    rows.extend(aggregate(&http, language));
    let bars = histogram(&report.response, UNIT, columns, language);
    if !bars.is_empty() {
        rows.push(String::new());
        rows.extend(bars);
    }
    rows.push(String::new());
    rows.push(row(language, ["first byte", "첫 바이트", "首字节"], latency(&http.first_byte, language)));
    rows.push(row(language, ["connect", "연결 시간", "建立连接"], latency(&http.connect, language)));
    rows.extend(paced(report, language));
    rows.push(row(language, ["statuses", "상태 코드", "状态码"], statuses(&http, language)));
    rows.extend(failure_rows(report, language));
    rows.extend(requests(&http, language));
    rows.push(row(language, ["connections", "연결", "连接"], connections(&http, language)));
    rows.push(generator(report, UNIT, language));
    rows.extend(server(report, UNIT, language));
    rows.extend(seconds(report, language));
    let mut lines = fit(rows, columns);
    lines.extend(http.bad_response.iter().flat_map(|bad| bad_response(bad, columns, language)));
    lines.extend(fit_sentences(remarks(report, &http, language), columns));
    lines.join("\n")
}

fn head(report: &LoadReport, http: &HttpLoadReport, language: Language) -> Vec<String> {
    let first = http.urls.first().map_or(report.target.as_str(), String::as_str);
    let loaded = match http.urls.len() {
        0 | 1 => first.to_owned(),
        urls => {
            let more = urls - 1;
            localized!(
                language,
                "{first} and {more} more in turn",
                "{first} 외 {more}개를 차례로",
                "{first} 与另外 {more} 个轮流"
            )
        }
    };
    let (connections, depth) = (report.connections, report.depth);
    let mix = language.choose(["mix", "혼합 요청", "混合请求"]);
    let method = if http.requests.is_empty() { http.method.as_str() } else { mix };
    let each = match http.connection_per_request {
        true => language
            .choose(["a connection for each request", "요청마다 새 연결", "每个请求新建连接"])
            .to_owned(),
        false => localized!(language, "{depth} in flight", "동시 {depth}건", "在途 {depth} 个"),
    };
    let content = match report.message_bytes {
        0 => String::new(),
        bytes => localized!(language, ", {bytes} B of content", ", 본문 {bytes} B", "，内容 {bytes} B"),
    };
    let load = localized!(
        language,
        "{method} {connections} connections x {each}{content}",
        "{method} 연결 {connections}개 x {each}{content}",
        "{method} {connections} 个连接 x {each}{content}",
    );
    vec![
        target(report, &loaded, language),
        row(language, ["load", "부하", "负载"], load),
        time(report, language),
        row(language, ["checked", "검사", "检查"], checked(report, http, language)),
    ]
}

/// What was looked at of the responses that were right.
fn checked(report: &LoadReport, http: &HttpLoadReport, language: Language) -> String {
    let (messages, bytes) = (report.messages, report.bytes_verified);
    if messages > 0 && http.responses_compared == messages {
        return localized!(
            language,
            "every byte of {messages} responses ({bytes} bytes of content)",
            "응답 {messages}개의 모든 바이트(본문 {bytes}바이트)",
            "{messages} 个响应的每个字节（内容 {bytes} 字节）",
        );
    }
    let (compared, percent) = (http.responses_compared, http.compared_share * 100.0);
    localized!(
        language,
        "framing and length of {messages} responses ({bytes} bytes of content); every byte of {compared} ({percent:.1} %)",
        "응답 {messages}개의 프레이밍과 길이(본문 {bytes}바이트), 그중 {compared}개({percent:.1} %)는 모든 바이트",
        "{messages} 个响应的分帧与长度（内容 {bytes} 字节），其中 {compared} 个（{percent:.1} %）逐字节比较",
    )
}

fn aggregate(http: &HttpLoadReport, language: Language) -> Vec<String> {
    let rows: &LoadRows = &http.rows;
    let scarce = language.choose(["too few samples", "표본 부족", "样本不足"]);
    let time = |value: Option<u64>| {
        value.map_or_else(|| scarce.to_owned(), |nanoseconds| scaled(nanoseconds as f64))
    };
    let rate = UNIT.rate(language);
    let (mean, best) = (rows.throughput_per_second, rows.throughput_peak_per_second);
    let mean = localized!(
        language,
        "{mean:.0} {rate} over the steady window",
        "{mean:.0} {rate}(안정 구간)",
        "{mean:.0} {rate}（稳态窗口）",
    );
    let best = localized!(
        language,
        "{best:.0} {rate} in the best second",
        "{best:.0} {rate}(가장 높은 1초)",
        "{best:.0} {rate}（最高的一秒）",
    );
    let line = |name: [&'static str; 3], text: String| row(language, name, text);
    vec![
        line(["samples", "표본 수", "样本数"], rows.samples.to_string()),
        line(["mean", "평균", "平均值"], scaled(rows.mean_ns)),
        line(["median", "중앙값", "中位数"], time(rows.median_ns)),
        line(["90 %"; 3], time(rows.p90_ns)),
        line(["95 %"; 3], time(rows.p95_ns)),
        line(["99 %"; 3], time(rows.p99_ns)),
        line(["99.9 %"; 3], time(rows.p999_ns)),
        line(["max", "최대", "最大值"], scaled(rows.max_ns as f64)),
        line(["errors", "오류", "错误数"], rows.errors.to_string()),
        line(["deviation", "표준편차", "标准差"], scaled(rows.stddev_ns)),
        line(["throughput", "처리량", "吞吐量"], mean),
        line(["peak", "최고(Peak)", "峰值"], best),
        line(["content", "본문", "内容"], byte_rate(http.content_bytes_per_second)),
    ]
}

fn statuses(http: &HttpLoadReport, language: Language) -> String {
    let list: Vec<String> =
        http.responses_by_status.iter().map(|entry| format!("{} x {}", entry.count, entry.status)).collect();
    if list.is_empty() { none(language).to_owned() } else { list.join(language.list()) }
}

/// What became of each request of a mix; those with failures come first.
fn requests(http: &HttpLoadReport, language: Language) -> Vec<String> {
    let mut requests: Vec<&RequestOutcome> = http.requests.iter().collect();
    requests.sort_by_key(|request| std::cmp::Reverse(request.failures.errors()));
    let all = requests.len();
    let one = |request: &&RequestOutcome| {
        let RequestOutcome { name, weight, right, failures, .. } = request;
        let failed = failures_of(failures, 0, language);
        let text = localized!(
            language,
            "{name} (weight {weight}): {right} right, failures: {failed}",
            "{name}(가중치 {weight}): 올바름 {right}건, 실패: {failed}",
            "{name}（权重 {weight}）：正确 {right} 个，失败：{failed}",
        );
        row(language, ["request", "요청", "请求"], text)
    };
    let mut rows: Vec<String> = requests.iter().take(REQUESTS_SHOWN).map(one).collect();
    if all > REQUESTS_SHOWN {
        rows.push(localized!(
            language,
            "     ... {all} requests in all; --json has them",
            "     ... 모두 {all}개. 전체는 --json",
            "     …… 共 {all} 个请求；全部数据用 --json",
        ));
    }
    rows
}

fn connections(http: &HttpLoadReport, language: Language) -> String {
    let opened = http.connections_opened;
    let closed = [
        (
            http.connections_closed_as_said,
            ["closed by the server as said", "서버가 응답에서 알린 대로 닫음", "服务器按声明关闭"],
        ),
        (
            http.connections_closed_between,
            ["closed by the server between requests", "요청 사이에 서버가 닫음", "服务器在两个请求之间关闭"],
        ),
        (
            http.connections_kept_open,
            ["kept open although they should close", "닫아야 하는데 닫지 않음", "本应关闭却保持打开"],
        ),
    ];
    let seen = closed.iter().filter(|(count, _)| *count > 0).map(|(count, what)| {
        let what = language.choose(*what);
        localized!(language, ", {count} {what}", ", {what} {count}개", "，{what} {count} 个")
    });
    let seen = seen.collect::<String>();
    localized!(language, "{opened} opened{seen}", "{opened}개 연결함{seen}", "建立 {opened} 个{seen}")
}

fn seconds(report: &LoadReport, language: Language) -> Vec<String> {
    if report.seconds.is_empty() {
        return Vec::new();
    }
    let head = [
        (["second", "초", "秒"], 8),
        (["responses", "응답", "响应"], 12),
        (["errors", "오류", "错误"], 8),
        (["median", "중앙값", "中位数"], 12),
        (["99 %"; 3], 12),
    ];
    let head = head.map(|(name, columns)| pad_start(language.choose(name), columns));
    let mut rows = vec![String::new()];
    if report.rate_per_second.is_some() {
        let times = [
            "times by second are response times, from the intended start:",
            "초별 시간은 예정된 시작 시각부터 잰 응답 시간:",
            "各秒的时间为自计划开始时刻起的响应时间：",
        ];
        rows.push(language.choose(times).to_owned());
    }
    rows.push(head.join(" "));
    for (second, row) in report.seconds.iter().enumerate().take(SECONDS_SHOWN) {
        rows.push(format!(
            "{:>8} {:>12} {:>8} {:>12} {:>12}",
            second + 1,
            row.messages,
            row.errors,
            scaled_or_none(row.p50_ns),
            scaled_or_none(row.p99_ns)
        ));
    }
    let all = report.seconds.len();
    if all > SECONDS_SHOWN {
        rows.push(localized!(
            language,
            "     ... {all} seconds in all; --csv FILE has them",
            "     ... 모두 {all}초. 전체는 --csv FILE",
            "     …… 共 {all} 秒；全部数据用 --csv FILE",
        ));
    }
    rows
}

/// The first response that was bad, as it came. It is escaped already.
fn bad_response(bad: &BadResponse, columns: usize, language: Language) -> Vec<String> {
    let text = bad.start.replace("\\r\\n", "\n").replace("\\n", "\n");
    let (url, bytes) = (&bad.url, bad.bytes);
    let begins = localized!(
        language,
        "the first bad response, from {url}, begins ({bytes} bytes in all):",
        "처음으로 잘못된 응답({url}, 모두 {bytes}바이트)의 앞부분:",
        "第一个有误的响应（来自 {url}，共 {bytes} 字节）开头为：",
    );
    let mut rows = fit_sentences(vec![String::new(), begins], columns);
    for line in text.lines().take(BAD_LINES_SHOWN) {
        let shown: String = line.chars().take(columns - 2).collect();
        rows.push(format!("| {shown}").trim_end().to_owned());
    }
    rows
}

/// How many redirects of which kind, and where the first one points to.
fn redirects(http: &HttpLoadReport, language: Language) -> String {
    let statuses = http.responses_by_status.iter().map(|entry| entry.status);
    let kinds: Vec<String> =
        statuses.filter(|status| (300..400).contains(status)).map(|status| status.to_string()).collect();
    let to = http.redirect_location.as_ref().map(|location| {
        localized!(
            language,
            ", the first to {location}: give the URL it leads to if that is what is to be loaded",
            ". 첫 리다이렉트의 대상은 {location}: 그 URL에 부하를 주려면 그 URL을 지정하십시오",
            "，第一个指向 {location}：若要对其施加负载，请直接指定该 URL",
        )
    });
    let (count, kinds, to) = (http.redirects, kinds.join(", "), to.unwrap_or_default());
    localized!(
        language,
        "{count} redirects ({kinds}) were not followed{to}",
        "리다이렉트 {count}건({kinds})을 따라가지 않음{to}",
        "有 {count} 次重定向（{kinds}）未跟随{to}",
    )
}

/// What a reader must know before he believes the numbers.
fn remarks(report: &LoadReport, http: &HttpLoadReport, language: Language) -> Vec<String> {
    let mut remarks: Vec<String> = unreached(report, UNIT, language).into_iter().collect();
    if let Some(reason) = &http.too_short {
        remarks.push(localized!(
            language,
            "the run is too short to conclude: {reason}",
            "실행이 너무 짧아 결론을 낼 수 없습니다: {reason}",
            "运行时间太短，无法得出结论：{reason}",
        ));
    }
    let when = |is_so: bool, texts: [&'static str; 3]| is_so.then(|| language.choose(texts).to_owned());
    remarks.extend(when(report.generator_bound, GENERATOR_BOUND));
    remarks.extend(when(!report.generator_bound && report.failed_starts > 0, SERVER_BOUND));
    if http.redirects > 0 {
        remarks.push(redirects(http, language));
    }
    remarks.extend(when(report.failures.local_limit > 0, LOCAL_LIMIT));
    remarks.extend(when(http.connections_kept_open > 0, KEPT_OPEN));
    if http.requests_withdrawn > 0 {
        let count = http.requests_withdrawn;
        remarks.push(localized!(
            language,
            "{count} requests were sent again: the server closed before it answered them, as said",
            "요청 {count}건을 다시 보냄: 서버가 알린 대로, 응답하기 전에 연결을 닫았음",
            "有 {count} 个请求重新发送：服务器按声明在应答之前关闭了连接",
        ));
    }
    if http.jtl_rows_dropped > 0 {
        let (rows, dropped) = (http.jtl_rows, http.jtl_rows_dropped);
        remarks.push(localized!(
            language,
            "the JTL file has {rows} rows; {dropped} were dropped: its disk was too slow, or full",
            "JTL 파일은 {rows}행이며 {dropped}행을 버렸습니다. 디스크가 너무 느리거나 가득 찼습니다",
            "JTL 文件共 {rows} 行，丢弃 {dropped} 行：磁盘太慢或已满",
        ));
    }
    if !remarks.is_empty() {
        remarks.insert(0, String::new());
    }
    remarks
}

const GENERATOR_BOUND: [&str; 3] = [
    "the generator was the limit: the throughput is a lower bound",
    "부하 생성기가 한계였으므로 처리량은 하한값입니다",
    "瓶颈在负载生成器：吞吐量仅为下限",
];

/// What to do about a page that is another one each time.
pub(super) const DYNAMIC: [&str; 3] = [
    "most contents differ from the first; if the page is another one each time, load it with --expect-content any",
    "대부분의 본문이 첫 응답과 다릅니다. 내용이 매번 달라지는 페이지라면 --expect-content any를 쓰십시오",
    "多数内容与第一个响应不同；若页面每次都不同，请使用 --expect-content any",
];

pub(super) fn dynamic(columns: usize, language: Language) -> String {
    let rows = fit_sentences(vec![String::new(), language.choose(DYNAMIC).to_owned()], columns);
    rows.iter().map(|row| format!("\n{row}")).collect()
}

const SERVER_BOUND: [&str; 3] = [
    "the server was the limit: it did not keep the rate with these connections",
    "서버가 한계였습니다: 이 연결 수로는 요청률에 도달하지 못했습니다",
    "瓶颈在服务器：以这些连接数未达到请求速率",
];

const LOCAL_LIMIT: [&str; 3] = [
    "local ports, descriptors or memory ran out here; with few ports, spread connections over more local addresses with \
     --source-addresses",
    "이 머신의 포트, 디스크립터 또는 메모리가 부족했습니다. 포트가 부족하면 --source-addresses로 연결을 더 많은 로컬 주소에 분산하십시오",
    "本机的端口、描述符或内存已用尽；若端口不足，可用 --source-addresses 把连接分散到更多本地地址",
];

const KEPT_OPEN: [&str; 3] = [
    "the server keeps connections open that it should close; the generator closed them",
    "서버가 닫아야 할 연결을 닫지 않아 부하 생성기가 닫았습니다",
    "服务器没有关闭应关闭的连接，由负载生成器关闭",
];

#[cfg(test)]
mod tests {
    use weir_record::{failure::FailureSample, http::StatusCount, load::SecondRow};

    use super::*;

    fn report() -> LoadReport {
        LoadReport {
            mode: "closed".into(),
            driver: "epoll".into(),
            connections: 4,
            depth: 1,
            message_bytes: 64,
            messages: 120,
            seconds: vec![SecondRow { messages: 60, errors: 1, p50_ns: 1500, p99_ns: 9000 }],
            http: Some(HttpLoadReport {
                urls: vec!["http://h/a".into(), "http://h/b".into()],
                method: "GET".into(),
                responses_by_status: vec![StatusCount { status: 200, count: 120 }],
                ..HttpLoadReport::default()
            }),
            ..LoadReport::default()
        }
    }

    #[test]
    fn all_eleven_rows_are_there_and_those_without_samples_say_so() {
        let text = table(&report(), 80, Language::English);
        for name in [
            "samples",
            "mean",
            "median",
            "90 %",
            "95 %",
            "99 %",
            "max",
            "errors",
            "deviation",
            "throughput",
            "peak",
        ] {
            assert!(text.lines().any(|line| line.starts_with(name)), "{name} is missing:\n{text}");
        }
        assert!(text.contains("median        too few samples") && text.contains("120 x 200"), "{text}");
        assert!(text.contains("http://h/a and 1 more in turn"), "{text}");
    }

    #[test]
    fn a_frozen_second_has_no_time_and_seconds_of_an_open_loop_say_which_time_they_show() {
        let mut frozen = report();
        frozen.seconds.push(SecondRow::default());
        let text = seconds(&frozen, Language::English).join("\n");
        assert!(text.ends_with("       2            0        0            -            -"), "{text}");
        assert!(!text.contains("intended"), "{text}");
        frozen.rate_per_second = Some(10.0);
        let text = seconds(&frozen, Language::English).join("\n");
        assert!(text.contains("response times, from the intended start"), "{text}");
    }

    #[test]
    fn what_limits_the_numbers_is_said() {
        let mut doubtful = report();
        doubtful.failed_starts = 900;
        let told = remarks(&doubtful, &HttpLoadReport::default(), Language::English).join("\n");
        assert!(told.contains("the server was the limit"), "{told}");
        doubtful.generator_bound = true;
        doubtful.failures.local_limit = 1;
        let plain = HttpLoadReport::default();
        assert_eq!(remarks(&report(), &plain, Language::English), [] as [String; 0]);
        let http = HttpLoadReport {
            too_short: Some("it has 1 second".into()),
            redirects: 3,
            redirect_location: Some("/elsewhere".into()),
            responses_by_status: vec![StatusCount { status: 301, count: 3 }],
            connections_kept_open: 2,
            requests_withdrawn: 5,
            jtl_rows_dropped: 7,
            ..plain
        };
        let text = remarks(&doubtful, &http, Language::English).join("\n");
        for words in [
            "too short",
            "lower bound",
            "3 redirects (301) were not followed, the first to /elsewhere",
            "--source-addresses",
            "keeps",
            "sent again",
            "7 were dropped",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn a_report_fits_the_terminal_whatever_a_server_sent() {
        let mut bad = report();
        let text = "x".repeat(20) + &" and more".repeat(20);
        bad.failure_first = Some(FailureSample { class: "malformed".into(), text });
        if let Some(http) = &mut bad.http {
            http.bad_response = Some(BadResponse {
                url: "http://h/a".into(),
                bytes: 5000,
                start: format!(
                    r"HTTP/1.1 500 No\r\nX: \x1b[2J\r\n\r\n{}{}",
                    "y".repeat(300),
                    r"\n".repeat(50)
                ),
                ..BadResponse::default()
            });
        }
        for columns in [60, 80] {
            for language in Language::ALL {
                let text = table(&bad, columns, language);
                assert!(text.lines().all(|line| weir_report::columns(line) <= columns), "{text}");
            }
            let text = table(&bad, columns, Language::English);
            for words in ["begins (5000", "| HTTP/1.1 500 No\n| X: \\x1b[2J\n|\n| yyy", "first failure x"] {
                assert!(text.contains(words), "{words}: {text}");
            }
            assert!(text.lines().count() < 70, "{text}");
        }
    }
}
