//! Figures that were published about such servers, and why they came out as they did. The source documents are named by
//! number; items such as S2-08 are those of the project's list of what they hold.
//!
//! Every sentence here has its translations in `weir-report`; a test finds one that has not.

use weir_record::{
    spec::{Cause, PublishedClaim},
    verdict::Metric,
};

use crate::http::{Asked, IMAGE_RECONNECT, LARGE_FILE, LARGEST, PAGE, PAGE_RECONNECT, closed_id};

/// What document 002 says, beside the cells of `http`.
pub(crate) fn of_http(other: &str) -> Vec<PublishedClaim> {
    let pair = (other, "epoll");
    vec![page(other), image(other), larger_gains_more(pair), rates_from_times(pair)]
}

/// What documents 002 and 004 say, with the arms in which their causes are switched on.
pub(crate) fn of_confounders() -> Vec<PublishedClaim> {
    let submits = cause("uring-submit-each", "epoll");
    let logs = cause("uring", "epoll-log-lines");
    vec![
        PublishedClaim { causes: vec![logs.clone(), submits.clone()], ..page("uring") },
        PublishedClaim {
            causes: vec![cause("uring", "epoll-write-blocking"), logs, submits],
            ..image("uring")
        },
        PublishedClaim {
            causes: vec![cause("epoll-say-close", "epoll")],
            ..claim(
                "S2-04",
                "Document 002: every reply says Connection: close, and the server keeps the socket open",
                None,
                (PAGE, ("epoll-say-close", "epoll")),
                "A client that does as it is told opens a connection for each request: the ratio is what that costs.",
            )
        },
        PublishedClaim {
            causes: vec![cause("uring-1ms-backlog-10", "epoll-1ms-backlog-10")],
            ..static_value("uring")
        },
        PublishedClaim {
            causes: vec![
                cause("epoll", "epoll-backlog-10"),
                cause("epoll", "epoll-1ms"),
                cause("epoll-1ms", "epoll-1ms-backlog-10"),
            ],
            explanation: "Go is not an arm here. The same server with a long queue stands above the line, with a queue \
                          of 10 below it."
                .to_owned(),
            ..go("epoll")
        },
    ]
}

/// What document 004 says, beside the cells of `survey`.
pub(crate) fn of_survey() -> Vec<PublishedClaim> {
    vec![
        claim(
            "S4-04",
            "Document 004: epoll server, 100 users: page from a file 592.8 requests/s, static value 717.7",
            Some(592.8 / 717.7),
            (PAGE_RECONNECT, ("epoll-read", "epoll")),
            "Looking up, opening and reading the page for every request costs CPU in any way of waiting; the published \
             rates hold the stalls of a full queue as well.",
        ),
        claim(
            "S4-06",
            "Document 004: page from a file, 100 users: uring 615 requests/s, epoll 592.8; mean 113 and 118 ms",
            Some(615.0 / 592.8),
            (PAGE_RECONNECT, ("uring-read", "epoll-read")),
            "Both rates are samples over the time to the last straggler; before the stragglers the two show no \
             difference.",
        ),
        static_value("uring"),
        go("go"),
        claim(
            "S4-09",
            "Document 004: the bottleneck is not the network",
            None,
            (PAGE, ("uring", "epoll")),
            "True, and it was not the way of waiting either, but the listener's queue of 10: http-confounders \
             switches it on.",
        ),
        claim(
            "S4-11 sendfile",
            "Document 004, later version: nginx, 300 KB pages, 300 users: sendfile 346 requests/s, plain reads 310",
            Some(346.0 / 310.0),
            (LARGE_FILE, ("epoll-sendfile", "epoll-read")),
            "Sendfile spares a copy of every byte through the server's memory, which is a gain of the copy and not of \
             the way of waiting.",
        ),
        claim(
            "S4-11 uring",
            "Document 004, later version: nginx, 300 KB pages, 300 users: uring 322 requests/s, aio with threads 321, \
             plain reads 310, aio alone 294",
            Some(322.0 / 310.0),
            (LARGE_FILE, ("uring-read", "epoll-read")),
            "A file that is in the page cache leaves nothing to wait for; nginx gave its reads alone to uring, here \
             sockets and reads are both uring's.",
        ),
    ]
}

/// What document 001 says, beside the cell with one order in flight and the one with one in each session.
pub(crate) fn of_gateway(closed: &str, each: &str) -> Vec<PublishedClaim> {
    let claim =
        |id: &str, told: &str, ratio, metric, (cell_id, arm, baseline): (&str, &str, &str), why: &str| {
            PublishedClaim {
                id: id.to_owned(),
                claim: told.to_owned(),
                ratio,
                metric,
                cell_id: cell_id.to_owned(),
                arm: arm.to_owned(),
                baseline: baseline.to_owned(),
                explanation: why.to_owned(),
                causes: Vec::new(),
            }
        };
    vec![
        claim(
            "S1-08",
            "Document 001: one worker 43,729 switches/s, two workers 43,722 in all, 10 clients",
            Some(1.0),
            Metric::SwitchesPerMessage,
            (closed, "one-worker", "owner"),
            "One request was in flight in the whole process: every order wakes one worker twice, whoever it is.",
        ),
        claim(
            "S1-09",
            "Document 001: orders put on another worker's TaskQueue: 59,692 switches/s instead of 43,722",
            Some(3.13 / 2.0),
            Metric::SwitchesPerMessage,
            (closed, "naive-modulo", "owner"),
            "The rates of requests differed; for each order it is about 3.1 against 2.0, because some of the orders \
             cross to the other worker and back, and each crossing is a wake.",
        ),
        claim(
            "S1-05",
            "Document 001: S3 hands every packet to another worker",
            None,
            Metric::SwitchesPerMessage,
            (closed, "naive", "owner"),
            "Its source takes the session's number modulo the workers, which is not every packet; here every order is \
             handed over, and its reply back.",
        ),
        claim(
            "S1-16",
            "Document 001, its source: median round trip 41.1 us with the TaskQueue, 32.1 without",
            Some(41.1 / 32.1),
            Metric::LatencyP50,
            (closed, "naive-modulo", "owner"),
            "A wake of a sleeping thread on the way out and one on the way back.",
        ),
        claim(
            "S1-13",
            "Document 001: TPS run: 69 k orders/s with one worker, 125 k with two (1.83 times)",
            Some(69.0 / 125.0),
            Metric::Throughput,
            (each, "one-worker", "owner"),
            "There each worker had a CPU of its own, of 16; where gateway, exchange and clients share two, a second \
             worker has none to gain.",
        ),
        claim(
            "S1-10",
            "Document 001: handing tasks to the TaskQueue should be optimised",
            None,
            Metric::ServerCpuPerMessage,
            (closed, "mesh", "naive"),
            "The sentence at the top answers it: the ratio here is of the whole CPU of an order, of which handing over \
             is a part.",
        ),
    ]
}

fn page(arm: &str) -> PublishedClaim {
    claim(
        "S2-08 page",
        "Document 002: HTML page, 100 connections: uring 4800+ requests/s at 20 ms, epoll 4000+ at 23 ms",
        Some(1.2),
        (PAGE_RECONNECT, (arm, "epoll")),
        "A connection for every request, and a log line flushed for every connection by the epoll server alone; the \
         tool stopped its clock at the head.",
    )
}

fn image(arm: &str) -> PublishedClaim {
    claim(
        "S2-08 image",
        "Document 002: 148 KB image, 50 connections: uring 1300+ requests/s at 37 ms, epoll 520+ at 93 ms",
        Some(2.5),
        (IMAGE_RECONNECT, (arm, "epoll")),
        "The epoll server sent each image with one blocking call, so that a slow reader held up all; and a clock that \
         stops at the head favours the server that sends heads first.",
    )
}

fn larger_gains_more(pair: (&str, &str)) -> PublishedClaim {
    claim(
        "S2-10",
        "Document 002: the larger the content, the larger the gain of uring",
        None,
        (LARGEST, pair),
        "A way of waiting saves something once a request, while copying grows with the content: compare the rows from \
         64 B to 1 MiB.",
    )
}

fn rates_from_times(pair: (&str, &str)) -> PublishedClaim {
    claim(
        "S2-07",
        "Document 002: requests/s are connections over the mean time to the head (100 over 20 ms, 50 over 93 ms)",
        None,
        (PAGE, pair),
        "Here a rate is what came back whole in a window over its length, and head and last byte are timed apart.",
    )
}

fn static_value(arm: &str) -> PublishedClaim {
    claim(
        "S4-07",
        "Document 004: static value, 100 users: uring 713.7 requests/s, epoll 717.7; median 18 ms, 99 % 3 s",
        Some(713.7 / 717.7),
        (PAGE_RECONNECT, (arm, "epoll")),
        "Both listened with a queue of 10: most of the 100 users waited for the SYN timer, and none for a way of \
         waiting.",
    )
}

fn go(arm: &str) -> PublishedClaim {
    claim(
        "S4-08",
        "Document 004: static value, 100 users: Go net/http 1878.5 requests/s, epoll 717.7",
        Some(1878.5 / 717.7),
        (PAGE_RECONNECT, (arm, "epoll")),
        "Go asks for the longest queue the system has, so no user waited for the SYN timer; with equal queues only \
         the cost of a request is left.",
    )
}

fn claim(
    id: &str,
    claim: &str,
    ratio: Option<f64>,
    (asked, (arm, baseline)): (Asked, (&str, &str)),
    explanation: &str,
) -> PublishedClaim {
    PublishedClaim {
        id: id.to_owned(),
        claim: claim.to_owned(),
        ratio,
        metric: Metric::Throughput,
        cell_id: closed_id(asked),
        arm: arm.to_owned(),
        baseline: baseline.to_owned(),
        explanation: explanation.to_owned(),
        causes: Vec::new(),
    }
}

fn cause(arm: &str, baseline: &str) -> Cause {
    Cause { arm: arm.to_owned(), baseline: baseline.to_owned() }
}
