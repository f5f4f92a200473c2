//! The report of `weir load http` as people read it.

use weir_record::{
    http::{HttpLoadReport, LoadRows},
    load::LoadReport,
};

use super::load::{failures, generator, latency, micros, server};

/// Seconds that are shown; `--csv` has all of them.
const SECONDS_SHOWN: usize = 60;

pub(crate) fn table(report: &LoadReport) -> String {
    let http = report.http.clone().unwrap_or_default();
    let mut rows = head(report, &http);
    rows.push(String::new());
    rows.extend(aggregate(&http.rows));
    rows.push(String::new());
    rows.push(format!("first byte    {}", latency(&http.first_byte)));
    rows.push(format!("connect       {}", latency(&http.connect)));
    if report.rate_per_second.is_some() {
        rows.push(format!("service time  {}", latency(&report.service)));
        rows.push(format!("send lag      {}", latency(&report.send_lag)));
        rows.push(format!("missed starts {}", report.missed_starts));
    }
    rows.push(format!("statuses      {}", statuses(&http)));
    rows.push(format!("failures      {}", failures(report)));
    rows.push(format!("connections   {}", connections(&http)));
    rows.push(generator(report, "response"));
    rows.extend(server(report, "response"));
    rows.extend(seconds(report));
    rows.extend(remarks(report, &http));
    rows.join("\n")
}

fn head(report: &LoadReport, http: &HttpLoadReport) -> Vec<String> {
    let steady = if report.warmup_steady { "" } else { ", not steady when it ended" };
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
        format!(
            "window        {:.2} s after {:.2} s warm-up{steady}",
            report.window_ns as f64 / 1e9,
            report.warmup_ns as f64 / 1e9
        ),
        format!(
            "checked       framing and length of {} responses ({} bytes); content of {} compared ({:.1} %)",
            report.messages,
            report.bytes_verified,
            http.responses_compared,
            http.compared_share * 100.0
        ),
    ]
}

fn aggregate(rows: &LoadRows) -> Vec<String> {
    let time = |value: Option<u64>| {
        value.map_or_else(|| "too few samples".into(), |nanoseconds| micros(nanoseconds as f64))
    };
    vec![
        format!("samples       {}", rows.samples),
        format!("mean          {}", micros(rows.mean_ns)),
        format!("median        {}", time(rows.median_ns)),
        format!("90 %          {}", time(rows.p90_ns)),
        format!("95 %          {}", time(rows.p95_ns)),
        format!("99 %          {}", time(rows.p99_ns)),
        format!("99.9 %        {}", time(rows.p999_ns)),
        format!("max           {}", micros(rows.max_ns as f64)),
        format!("errors        {}", rows.errors),
        format!("deviation     {}", micros(rows.stddev_ns)),
        format!("throughput    {:.0} responses/s over the steady window", rows.throughput_per_second),
        format!("peak          {:.0} responses/s in the best second", rows.throughput_peak_per_second),
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
            micros(row.p50_ns as f64),
            micros(row.p99_ns as f64)
        ));
    }
    if report.seconds.len() > SECONDS_SHOWN {
        rows.push(format!("     ... {} seconds in all; --csv FILE has them", report.seconds.len()));
    }
    rows
}

/// What a reader must know before he believes the numbers.
fn remarks(report: &LoadReport, http: &HttpLoadReport) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(reason) = &http.too_short {
        remarks.push(format!("the run is too short to conclude: {reason}"));
    }
    if report.generator_bound {
        remarks.push("the generator was the limit: the throughput is a lower bound".into());
    }
    if http.redirects > 0 {
        let to = http.redirect_location.as_ref().map(|location| format!(", the first to {location}"));
        let count = http.redirects;
        remarks.push(format!("{count} redirects were not followed{}", to.unwrap_or_default()));
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
    use weir_record::{http::StatusCount, load::SecondRow};

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
        let text = table(&report());
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
            connections_kept_open: 2,
            requests_withdrawn: 5,
            jtl_rows_dropped: 7,
            ..plain
        };
        let text = remarks(&doubtful, &http).join("\n");
        for words in [
            "too short",
            "lower bound",
            "3 redirects were not followed, the first to /elsewhere",
            "--source-addresses",
            "keeps",
            "sent again",
            "7 were dropped",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
