//! Outputs of the tools, as they print them.

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn of_stdout(tool: Tool, stdout: &str) -> Option<(u64, u64)> {
    let words = words("redis-benchmark -n 2000");
    let said = Said { words: &words, stdout, ..Said::default() };
    tool.read(&said).map(|work| (work.count, work.errors))
}

fn of_file(tool: Tool, file: &str) -> Option<(u64, u64)> {
    tool.read(&Said { file, stdout: "progress", ..Said::default() }).map(|work| (work.count, work.errors))
}

#[test]
fn a_tool_is_known_by_its_program_also_behind_one_that_pins_it() {
    for (text, tool) in [
        ("redis-benchmark -p 1", Some(Tool::Redis)),
        ("/usr/bin/wrk -d1s http://127.0.0.1:1/", Some(Tool::Wrk)),
        ("taskset -c 1 pgbench -p 1", Some(Tool::Pgbench)),
        ("env A=1 nice -n 5 ./k6 run a.js", Some(Tool::K6)),
        ("target/release/weir load echo --json 127.0.0.1:1", Some(Tool::Weir)),
        ("weir doctor", None),
        ("./client --like wrk", None),
        ("python3 load.py", None),
        ("sh -c 'wrk'", None),
        ("", None),
    ] {
        assert_eq!(Tool::of(&words(text)), tool, "{text}");
    }
}

/// pgbench (PostgreSQL) 15.
const PGBENCH: &str = "\
pgbench (15.14 (Debian 15.14-0+deb12u1))
transaction type: <builtin: select only>
scaling factor: 1
query mode: simple
number of clients: 4
number of threads: 1
maximum number of tries: 1
duration: 1 s
number of transactions actually processed: 20341
number of failed transactions: 3 (0.015%)
latency average = 0.195 ms
initial connection time = 9.187 ms
tps = 20475.634286 (without initial connection time)
";

#[test]
fn transactions_of_pgbench() {
    assert_eq!(of_stdout(Tool::Pgbench, PGBENCH), Some((20_341, 3)));
    // Before version 15, with a number of transactions.
    let counted = "number of transactions actually processed: 9990/10000\nlatency average = 0.2 ms\n";
    assert_eq!(of_stdout(Tool::Pgbench, counted), Some((9_990, 0)));
    assert_eq!(of_stdout(Tool::Pgbench, "pgbench: error: connection to server failed"), None);
}

/// redis-benchmark 7.0, with the carriage returns of its progress.
const REDIS: &str = "                                  \rSET: rps=0.0 (overall: -nan) avg_msec=-nan (overall: -nan)\r\
====== SET ======                                     \n  2000 requests completed in 0.06 seconds\n  50 parallel clients\n\
  3 bytes payload\n\nSummary:\n  throughput summary: 31746.03 requests per second\n\r====== GET ======\n\
  1500 requests completed in 0.05 seconds\n  50 parallel clients\n";

const REDIS_QUIET: &str = "         \rSET: rps=0.0 (overall: -nan) avg_msec=-nan (overall: -nan)\r          \r\
SET: 28169.01 requests per second, p50=0.471 msec\n\rGET: 55555.56 requests per second, p50=0.335 msec\n\n";

const REDIS_CSV: &str = "\
\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\"
\"SET\",\"60606.06\",\"0.458\",\"0.096\",\"0.351\",\"0.783\"
\"GET\",\"71428.57\",\"0.482\",\"0.096\",\"0.311\",\"1.759\"
";

#[test]
fn requests_of_each_test_of_redis_benchmark() {
    assert_eq!(of_stdout(Tool::Redis, REDIS), Some((3_500, 0)));
    assert_eq!(of_stdout(Tool::Redis, REDIS_QUIET), Some((4_000, 0)), "two tests of -n 2000");
    assert_eq!(of_stdout(Tool::Redis, REDIS_CSV), Some((4_000, 0)));
    let words = words("redis-benchmark -q -t ping");
    let ping = Said { words: &words, stdout: "PING: 99800.40 requests per second\n", ..Said::default() };
    assert_eq!(Tool::Redis.read(&ping).map(|work| work.count), Some(REDIS_REQUESTS));
    // A wrapper's `-n` is not its number, and a line for a shell does not show it.
    let quiet = |line: &str| {
        let words = super::tests::words(line);
        Tool::Redis
            .read(&Said { words: &words, stdout: REDIS_QUIET, ..Said::default() })
            .map(|work| work.count)
    };
    assert_eq!(quiet("nice -n 5 redis-benchmark -q -n 1000 -n 2000"), Some(4_000));
    assert_eq!(quiet("sh -c 'redis-benchmark -q -n 1000'"), None);
    let refused = "Error from server: NOAUTH Authentication required.\n";
    assert_eq!(of_stdout(Tool::Redis, refused), Some((0, 1)), "no work");
}

/// wrk 4.1.
const WRK: &str = "\
Running 2m test @ http://localhost:80
  2 threads and 500 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    14.01ms   45.76ms   1.71s    97.88%
    Req/Sec    11.72k     6.42k   35.48k    73.02%
  2784758 requests in 2.00m, 332.47MB read
  Socket errors: connect 270, read 1, write 0, timeout 20
  Non-2xx or 3xx responses: 2556
Requests/sec:  23191.27
Transfer/sec:      2.77MB
";

#[test]
fn requests_of_wrk_and_its_errors() {
    assert_eq!(of_stdout(Tool::Wrk, WRK), Some((2_784_758, 270 + 1 + 20 + 2_556)));
    let right = "  88689 requests in 1.01s, 12.60MB read\nRequests/sec:  88023.19\n";
    assert_eq!(of_stdout(Tool::Wrk, right), Some((88_689, 0)));
    assert_eq!(of_stdout(Tool::Wrk, "unable to connect to 127.0.0.1:80 Connection refused\n"), None);
}

/// ApacheBench 2.3.
const AB: &str = "\
Concurrency Level:      4
Time taken for tests:   0.020 seconds
Complete requests:      500
Failed requests:        20
   (Connect: 0, Receive: 0, Length: 20, Exceptions: 0)
Non-2xx responses:      500
Requests per second:    24523.03 [#/sec] (mean)
";

#[test]
fn requests_of_ab_and_the_larger_number_of_its_failures() {
    assert_eq!(of_stdout(Tool::Ab, AB), Some((500, 500)));
    let right = "Complete requests:      100000\nFailed requests:        0\n";
    assert_eq!(of_stdout(Tool::Ab, right), Some((100_000, 0)));
}

/// k6 0.4x. Its sign before a rate says whether the metric was true: here that a request failed.
const K6_OLD: &str = "\
     data_received..................: 5.9 kB 9.0 kB/s
     http_req_failed................: 0.17%  ✓ 2        ✗ 1198
     http_req_waiting...............: avg=130.19ms min=130.19ms
     http_reqs......................: 1200   299.525116/s
     iterations.....................: 600    149.7/s
";

/// k6 1.x.
const K6: &str = "\
  █ TOTAL RESULTS

    HTTP
    http_req_duration..............: avg=5.33ms min=1.1ms
      { expected_response:true }...: avg=5.33ms min=1.1ms
    http_req_failed................: 0.08%  1 out of 1200
    http_reqs......................: 1200   118.02/s
";

const K6_EXPORT: &str = r#"{"metrics": {"http_reqs": {"count": 1200, "rate": 118.02}, "iterations": {"count": 600},
    "http_req_failed": {"passes": 2, "fails": 1198, "value": 0.0016}}}"#;

const K6_HANDLED: &str = r#"{"metrics": {"http_reqs": {"type": "counter", "values": {"count": 1200, "rate": 118.02}},
    "http_req_failed": {"type": "rate", "values": {"rate": 0, "passes": 0, "fails": 1200}}}}"#;

#[test]
fn requests_of_k6_in_each_form_of_its_summary() {
    assert_eq!(of_stdout(Tool::K6, K6_OLD), Some((1_200, 2)));
    assert_eq!(of_stdout(Tool::K6, K6), Some((1_200, 1)));
    assert_eq!(of_file(Tool::K6, K6_EXPORT), Some((1_200, 2)));
    assert_eq!(of_file(Tool::K6, K6_HANDLED), Some((1_200, 0)));
    assert_eq!(of_stdout(Tool::K6, "    iterations.....................: 40 3.9/s\n"), Some((40, 0)));
}

/// memtier_benchmark 2.x: progress on standard error, and its JSON.
const MEMTIER: &str = "Writing results to stdout\n[RUN #1] Preparing benchmark client...\n\
[RUN #1 50%,   1 secs]  2 threads:      9876 ops,    9876 (avg:    9876) ops/sec, 0.41MB/sec\r\
[RUN #1 100%,   2 secs]  0 threads:     20000 ops,   10120 (avg:   10007) ops/sec, 0.42MB/sec\n";

const MEMTIER_JSON: &str = r#"{"configuration": {"server": "localhost"}, "ALL STATS": {"Sets": {"Count": 1818},
    "Gets": {"Count": 18182}, "Totals": {"Count": 20000, "Ops/sec": 10007.0}}}"#;

#[test]
fn operations_of_memtier_from_its_file_or_the_end_of_its_progress() {
    assert_eq!(of_file(Tool::Memtier, MEMTIER_JSON), Some((20_000, 0)));
    let said = Said { stderr: MEMTIER, stdout: "ALL STATS\nTotals  10007.00 ---\n", ..Said::default() };
    assert_eq!(Tool::Memtier.read(&said).map(|work| work.count), Some(20_000));
}

/// ghz 0.1xx, from its documentation (docs/output.md).
const GHZ: &str = "\
Summary:
  Count:\t\t200
  Total:\t\t181.57 ms
  Requests/sec:\t1101.53

Status code distribution:
  [Unavailable]        3 responses
  [PermissionDenied]   3 responses
  [OK]                 186 responses
  [Internal]           8 responses
Error distribution:
  [8]\trpc error: code = Internal desc = Internal error.
";

#[test]
fn requests_of_ghz() {
    assert_eq!(of_stdout(Tool::Ghz, GHZ), Some((200, 14)));
    let json = r#"{"date": "2020", "endReason": "normal", "count": 200, "total": 181570000,
        "errorDistribution": {"rpc error: code = Internal": 8}, "statusCodeDistribution": {"Internal": 8, "OK": 192}}"#;
    assert_eq!(of_stdout(Tool::Ghz, json), Some((200, 8)));
}

const HEY: &str = "\
Summary:
  Total:\t2.0127 secs
  Requests/sec:\t9936.8610

Status code distribution:
  [200]\t19990 responses
  [500]\t4 responses

Error distribution:
  [6]\tGet \"http://127.0.0.1:1\": dial tcp 127.0.0.1:1: connect: connection refused
";

const OHA: &str = "\
Summary:
  Success rate:\t100.00%
  Requests/sec:\t4472.2547

Status code distribution:
  [200] 20000 responses

Error distribution:
  [50] aborted due to deadline
  [2] connection closed
";

#[test]
fn responses_of_hey_and_oha_without_what_the_end_cut_off() {
    assert_eq!(of_stdout(Tool::Hey, HEY), Some((19_994, 10)));
    assert_eq!(of_stdout(Tool::Oha, OHA), Some((20_000, 2)));
    let json = r#"{"summary": {"successRate": 1.0}, "statusCodeDistribution": {"200": 900, "503": 5},
        "errorDistribution": {"aborted due to deadline": 50, "connection closed": 1}}"#;
    assert_eq!(of_stdout(Tool::Oha, json), Some((905, 6)));
    assert_eq!(of_stdout(Tool::Hey, "Get \"http://127.0.0.1:1\": refused\n"), None);
}

#[test]
fn messages_of_weir_load_of_its_whole_run() {
    let json = r#"{"schema_version": 3, "messages": 900, "messages_whole_run": 1000, "failed_starts": 2,
        "failures": {"refused": 1, "cut_off_at_end": 4}}"#;
    assert_eq!(of_stdout(Tool::Weir, json), Some((1_000, 3)));
    assert_eq!(of_stdout(Tool::Weir, "1000 messages"), None, "--json was left out");
}

#[test]
fn what_no_tool_prints_is_no_count() {
    for (_, tool) in PROGRAMS {
        for text in
            ["", "\n\n", "{", "[]", "Status code distribution:\n[x", "requests in ", "Count:\n", "12 ops,"]
        {
            let found = of_stdout(tool, text).filter(|(count, _)| *count > 0);
            assert!(found.is_none() || tool == Tool::Memtier, "{tool:?} {text:?}: {found:?}");
        }
    }
}
