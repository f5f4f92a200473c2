//! The report of `weir load http` as people read it.

use weir_record::{
    http::{BadResponse, HttpLoadReport, LoadRows},
    load::LoadReport,
};

use crate::command::load_text::{
    byte_rate, failure_first, failures, fit, fit_sentences, generator, histogram, latency, paced, scaled,
    server, time, unreached,
};

/// Seconds that are shown; `--csv` has all of them.
const SECONDS_SHOWN: usize = 60;
/// Lines of a bad response that are shown; `--json` has all that was kept of it.
const BAD_LINES_SHOWN: usize = 16;

pub(super) fn table(report: &LoadReport, columns: usize) -> String {
    let http = report.http.clone().unwrap_or_default();
    let mut rows = head(report, &http);
    rows.push(String::new());
    rows.extend(aggregate(&http));
    let bars = histogram(&report.response, "responses", columns);
    if !bars.is_empty() {
        rows.push(String::new());
        rows.extend(bars);
    }
    rows.push(String::new());
    rows.push(format!("first byte    {}", latency(&http.first_byte)));
    rows.push(format!("connect       {}", latency(&http.connect)));
    rows.extend(paced(report));
    rows.push(format!("statuses      {}", statuses(&http)));
    rows.push(format!("failures      {}", failures(report)));
    rows.extend(failure_first(report));
    rows.push(format!("connections   {}", connections(&http)));
    rows.push(generator(report, "response"));
    rows.extend(server(report, "response"));
    rows.extend(seconds(report));
    let mut lines = fit(rows, columns);
    lines.extend(http.bad_response.iter().flat_map(|bad| bad_response(bad, columns)));
    lines.extend(fit_sentences(remarks(report, &http), columns));
    lines.join("\n")
}

fn head(report: &LoadReport, http: &HttpLoadReport) -> Vec<String> {
    let more = match http.urls.len() {
        0 | 1 => String::new(),
        urls => format!(" and {} more in turn", urls - 1),
    };
    let each = if http.connection_per_request {
        "a connection for each request".into()
    } else {
        format!("{} in flight", report.depth)
    };
    let content = match report.message_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} B of content"),
    };
    vec![
        format!(
            "target        {}{more} ({} loop, generator on {})",
            http.urls.first().map_or(report.target.as_str(), String::as_str),
            report.mode,
            report.driver
        ),
        format!("load          {} {} connections x {each}{content}", http.method, report.connections),
        time(report),
        format!("checked       {}", checked(report, http)),
    ]
}

/// What was looked at of the responses that were right.
fn checked(report: &LoadReport, http: &HttpLoadReport) -> String {
    let (messages, bytes) = (report.messages, report.bytes_verified);
    if messages > 0 && http.responses_compared == messages {
        return format!("every byte of {messages} responses ({bytes} bytes of content)");
    }
    let (compared, percent) = (http.responses_compared, http.compared_share * 100.0);
    format!(
        "framing and length of {messages} responses ({bytes} bytes of content); every byte of {compared} \
         ({percent:.1} %)"
    )
}

fn aggregate(http: &HttpLoadReport) -> Vec<String> {
    let rows: &LoadRows = &http.rows;
    let time = |value: Option<u64>| {
        value.map_or_else(|| "too few samples".into(), |nanoseconds| scaled(nanoseconds as f64))
    };
    vec![
        format!("samples       {}", rows.samples),
        format!("mean          {}", scaled(rows.mean_ns)),
        format!("median        {}", time(rows.median_ns)),
        format!("90 %          {}", time(rows.p90_ns)),
        format!("95 %          {}", time(rows.p95_ns)),
        format!("99 %          {}", time(rows.p99_ns)),
        format!("99.9 %        {}", time(rows.p999_ns)),
        format!("max           {}", scaled(rows.max_ns as f64)),
        format!("errors        {}", rows.errors),
        format!("deviation     {}", scaled(rows.stddev_ns)),
        format!("throughput    {:.0} responses/s over the steady window", rows.throughput_per_second),
        format!("peak          {:.0} responses/s in the best second", rows.throughput_peak_per_second),
        format!("content       {}", byte_rate(http.content_bytes_per_second)),
    ]
}

fn statuses(http: &HttpLoadReport) -> String {
    let list: Vec<String> =
        http.responses_by_status.iter().map(|entry| format!("{} x {}", entry.count, entry.status)).collect();
    if list.is_empty() { "none".into() } else { list.join(", ") }
}

fn connections(http: &HttpLoadReport) -> String {
    let counts = [
        (http.connections_closed_as_said, "closed by the server as said"),
        (http.connections_closed_between, "closed by the server between requests"),
        (http.connections_kept_open, "kept open although they should close"),
    ];
    let seen = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
    format!("{} opened{}", http.connections_opened, seen.collect::<String>())
}

fn seconds(report: &LoadReport) -> Vec<String> {
    if report.seconds.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![
        String::new(),
        format!("{:>8} {:>12} {:>8} {:>12} {:>12}", "second", "responses", "errors", "median", "99 %"),
    ];
    for (second, row) in report.seconds.iter().enumerate().take(SECONDS_SHOWN) {
        rows.push(format!(
            "{:>8} {:>12} {:>8} {:>12} {:>12}",
            second + 1,
            row.messages,
            row.errors,
            scaled(row.p50_ns as f64),
            scaled(row.p99_ns as f64)
        ));
    }
    if report.seconds.len() > SECONDS_SHOWN {
        rows.push(format!("     ... {} seconds in all; --csv FILE has them", report.seconds.len()));
    }
    rows
}

/// The first response that was bad, as it came. It is escaped already.
fn bad_response(bad: &BadResponse, columns: usize) -> Vec<String> {
    let text = bad.start.replace("\\r\\n", "\n").replace("\\n", "\n");
    let begins = format!("the first bad response, from {}, begins ({} bytes in all):", bad.url, bad.bytes);
    let mut rows = fit_sentences(vec![String::new(), begins], columns);
    for line in text.lines().take(BAD_LINES_SHOWN) {
        let shown: String = line.chars().take(columns - 2).collect();
        rows.push(format!("| {shown}").trim_end().to_owned());
    }
    rows
}

/// How many redirects of which kind, and where the first one points to.
fn redirects(http: &HttpLoadReport) -> String {
    let statuses = http.responses_by_status.iter().map(|entry| entry.status);
    let kinds: Vec<String> =
        statuses.filter(|status| (300..400).contains(status)).map(|status| status.to_string()).collect();
    let to = http.redirect_location.as_ref().map(|location| {
        format!(", the first to {location}: give the URL it leads to if that is what is to be loaded")
    });
    let (count, kinds) = (http.redirects, kinds.join(", "));
    format!("{count} redirects ({kinds}) were not followed{}", to.unwrap_or_default())
}

/// What a reader must know before he believes the numbers.
fn remarks(report: &LoadReport, http: &HttpLoadReport) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(unreached(report, "responses"));
    if let Some(reason) = &http.too_short {
        remarks.push(format!("the run is too short to conclude: {reason}"));
    }
    if report.generator_bound {
        remarks.push("the generator was the limit: the throughput is a lower bound".into());
    }
    if http.redirects > 0 {
        remarks.push(redirects(http));
    }
    if report.failures.local_limit > 0 {
        remarks.push(
            "local ports, descriptors or memory ran out here; with few ports, spread connections over more local \
             addresses with --source-addresses"
                .into(),
        );
    }
    if http.connections_kept_open > 0 {
        remarks
            .push("the server keeps connections open that it should close; the generator closed them".into());
    }
    if http.requests_withdrawn > 0 {
        let count = http.requests_withdrawn;
        remarks.push(format!(
            "{count} requests were sent again: the server closed before it answered them, as said"
        ));
    }
    if http.jtl_rows_dropped > 0 {
        let (rows, dropped) = (http.jtl_rows, http.jtl_rows_dropped);
        remarks.push(format!(
            "the JTL file has {rows} rows; {dropped} were dropped: its disk was too slow, or full"
        ));
    }
    if !remarks.is_empty() {
        remarks.insert(0, String::new());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use weir_record::{
        http::StatusCount,
        load::{FailureSample, SecondRow},
    };

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
        let text = table(&report(), 80);
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
    fn what_limits_the_numbers_is_said() {
        let mut doubtful = report();
        doubtful.generator_bound = true;
        doubtful.failures.local_limit = 1;
        let plain = HttpLoadReport::default();
        assert_eq!(remarks(&report(), &plain), [] as [String; 0]);
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
        let text = remarks(&doubtful, &http).join("\n");
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
            let text = table(&bad, columns);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
            for words in ["begins (5000", "| HTTP/1.1 500 No\n| X: \\x1b[2J\n|\n| yyy", "first failure x"] {
                assert!(text.contains(words), "{words}: {text}");
            }
            assert!(text.lines().count() < 70, "{text}");
        }
    }
}
