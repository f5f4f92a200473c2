//! Small servers as targets, and the base specification of the tests.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::atomic::AtomicBool,
    time::Duration,
};

use weir_engine::{Config, Driver};
use weir_load::{Arrivals, EchoSpec, LoadError, LoadSpec};
use weir_record::load::LoadReport;

/// A loopback address on which no server of another test listens: a port that was given up there stays free.
pub const NOBODY_ELSE: Ipv4Addr = Ipv4Addr::new(127, 0, 77, 1);

/// Starts a server that calls `handle` for each connection, with the number of the connection. Its threads end with
/// the test process.
pub fn serve(handle: impl Fn(usize, TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { return };
            stream.set_nodelay(true).expect("a TCP socket");
            let handle = handle.clone();
            std::thread::spawn(move || handle(number, stream));
        }
    });
    address
}

/// A correct echo server.
pub fn echo() -> SocketAddr {
    serve(|_, stream| echo_stream(stream))
}

/// Echoes until the client ends.
pub fn echo_stream(mut stream: TcpStream) {
    let mut bytes = [0; 1 << 16];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

/// A server that knows the message size: `answer` gets the numbers of the connection and of the message, and the
/// message, and returns the bytes to send.
pub fn serve_messages(
    message_bytes: usize,
    answer: impl Fn(usize, usize, &mut Vec<u8>) + Clone + Send + 'static,
) -> SocketAddr {
    serve(move |connection, mut stream| {
        let mut message = vec![0; message_bytes];
        let mut number = 0;
        while stream.read_exact(&mut message).is_ok() {
            let mut reply = message.clone();
            answer(connection, number, &mut reply);
            number += 1;
            if stream.write_all(&reply).is_err() {
                return;
            }
        }
    })
}

/// A counted run of 64-byte messages over one connection, without warm-up.
pub fn spec(target: SocketAddr) -> LoadSpec {
    LoadSpec {
        target: target.to_string(),
        connections: 1,
        idle_connections: 0,
        depth: 1,
        arrivals: Arrivals::Closed { think: Duration::ZERO },
        workers: 1,
        pin: Vec::new(),
        seed: 20_261_121,
        duration: Duration::from_secs(20),
        messages: Some(100),
        warmup_max: Duration::ZERO,
        ramp_up: Duration::ZERO,
        connect_timeout: Duration::from_secs(5),
        response_timeout: Duration::from_secs(5),
        engine: Config::with_driver(Driver::Epoll),
        observe_pid: None,
        observe_beside: Vec::new(),
        observe_stats: None,
        protocol: EchoSpec { message_bytes: 64, connection_per_message: false }.into(),
    }
}

/// Runs without progress reports.
pub fn run(spec: &LoadSpec) -> Result<LoadReport, LoadError> {
    weir_load::run(spec, &mut |_| {}, &AtomicBool::new(false))
}

/// Runs, expects a report, and checks what must hold for every report whatever the server does.
pub fn report(spec: &LoadSpec) -> LoadReport {
    let report = run(spec).expect("a report");
    assert_eq!(report.failures.unexplained, 0, "{:?}", report.failures);
    assert_eq!(report.bytes_verified, report.messages * u64::from(report.message_bytes));
    assert_eq!(report.service.count, report.messages);
    report
}

/// Checks the report of an open loop with this many connections whose server stopped after this many answers: none of
/// the stall is lost, and the generator is not blamed for it.
pub fn assert_stall_is_told(report: &LoadReport, answers: u64, connections: u64) {
    assert_eq!(report.messages, answers);
    let unanswered = report.failures.response_timeout;
    assert!(unanswered >= connections, "{:?}", report.failures);
    assert_eq!(report.failures.errors(), unanswered, "{:?}", report.failures);
    assert_eq!(report.response_at_least, unanswered + report.missed_starts);
    assert_eq!(report.response.count, answers + report.response_at_least);
    assert!(report.response.ns_max >= report.window_ns / 2, "{}", report.response.ns_max);
    assert!(report.failed_starts > 0 && report.failed_starts <= report.missed_starts);
    assert_eq!(report.errors(), unanswered + report.failed_starts);
    let share = report.errors() as f64 / (report.errors() + answers) as f64;
    assert!((report.error_share - share).abs() < 1e-9, "{}", report.error_share);
    assert!(!report.generator_bound && report.missed_starts_free == 0);
}
