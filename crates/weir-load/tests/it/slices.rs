//! A generator that loads several servers in turn.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use socket2::{Domain, Socket, Type};
use weir_engine::{Config, Driver, probe};
use weir_load::{Arrivals, Control, LoadError, LoadSpec, run_slices};
use weir_record::{
    load::LoadReport,
    slices::{SliceAnswer, SliceCommand, SliceCounts},
};

use crate::{
    http_servers::{self, page},
    servers::{echo, serve, serve_messages, spec},
};

/// Issues prepared commands, and keeps the answers.
#[derive(Default)]
struct Script {
    commands: VecDeque<SliceCommand>,
    answers: Vec<SliceAnswer>,
}

impl Control for Script {
    fn next(&mut self) -> Option<SliceCommand> {
        self.commands.pop_front()
    }

    fn answer(&mut self, answer: &SliceAnswer) -> bool {
        self.answers.push(answer.clone());
        true
    }
}

fn play(specs: &[LoadSpec], commands: &[SliceCommand]) -> Result<Script, LoadError> {
    let mut script = Script { commands: commands.iter().copied().collect(), ..Script::default() };
    run_slices(specs, &mut script, &AtomicBool::new(false))?;
    Ok(script)
}

impl Script {
    fn counts(&self) -> Vec<&SliceCounts> {
        let mut found = Vec::new();
        for answer in &self.answers {
            if let SliceAnswer::Done(counts) = answer {
                found.push(counts);
            }
        }
        found
    }

    fn reports(&self) -> &[LoadReport] {
        match self.answers.last() {
            Some(SliceAnswer::Finished(reports)) => reports,
            other => panic!("the session was not finished: {other:?}"),
        }
    }
}

fn sliced(target: SocketAddr) -> LoadSpec {
    LoadSpec { messages: None, connections: 5, depth: 2, ..spec(target) }
}

const fn prime(target: u32) -> SliceCommand {
    SliceCommand::Prime { target, messages_each: 3 }
}

/// Long enough for several messages on each connection, also on a busy machine.
const SLICE_NS: u64 = 200_000_000;

const fn run(target: u32) -> SliceCommand {
    SliceCommand::Run { target, length_ns: SLICE_NS, is_timed: true, arrivals_seed: 7 }
}

#[test]
fn each_server_is_loaded_in_its_own_slices_alone_on_every_driver() {
    let counters = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let server = |index: usize| {
        let counter = Arc::clone(&counters[index]);
        serve_messages(64, move |_, _, _| {
            counter.fetch_add(1, Ordering::Relaxed);
        })
    };
    let addresses = [server(0), server(1)];
    let seen = || [0, 1].map(|index: usize| counters[index].swap(0, Ordering::Relaxed) as u64);
    let drivers = probe(&Config::default()).into_iter().filter(|found| found.is_available());
    for driver in drivers.map(|found| found.driver) {
        if matches!(driver, Driver::Blocking | Driver::Sim) {
            continue;
        }
        let spec = |address| LoadSpec { engine: Config::with_driver(driver), workers: 2, ..sliced(address) };
        let commands = [prime(0), run(0), prime(1), run(1), run(0), SliceCommand::Finish];
        let script = play(&addresses.map(spec), &commands).expect("a session");
        let opened = vec![5, 5];
        assert_eq!(script.answers[0], SliceAnswer::Ready { opened, failures: vec![None, None] }, "{driver}");
        let counts = script.counts();
        let errors: u64 = counts.iter().map(|counts| counts.failures.errors()).sum();
        assert_eq!(errors, 0, "{driver}");
        assert_eq!([counts[0].messages, counts[2].messages], [15, 15], "{driver}: primes are counted out");
        let timed = [counts[1].messages + counts[4].messages, counts[3].messages];
        assert!(timed.iter().all(|messages| *messages > 0), "{driver}");
        assert_eq!(seen(), [timed[0] + 15, timed[1] + 15], "{driver}: the servers agree");
        for (report, messages) in script.reports().iter().zip(timed) {
            assert_eq!((report.messages, report.messages_started), (messages, messages), "{driver}");
            assert_eq!(report.bytes_verified, messages * 64, "{driver}");
            assert_eq!(report.service.count, messages, "{driver}");
            assert!(report.littles_law.in_flight_mean > 0.0, "{driver}");
        }
    }
}

#[test]
fn a_paced_slice_keeps_its_rate_and_ends_although_connections_are_idle() {
    let rate = Arrivals::Open { rate_per_second: 2000.0, poisson: false, spin: Duration::ZERO };
    let specs = [echo(), echo()].map(|address| LoadSpec { arrivals: rate, ..sliced(address) });
    let run = SliceCommand::Run { target: 1, length_ns: 1_000_000_000, is_timed: true, arrivals_seed: 7 };
    let script = play(&specs, &[prime(1), run, run, SliceCommand::Finish]).expect("a session");
    let counts = script.counts();
    for slice in &counts[1..] {
        // A machine that is busy with other tests stops late, and then more starts were due.
        assert!(slice.messages >= 1500, "{slice:?}");
        assert_eq!((slice.failures.errors(), slice.reopened), (0, 0));
    }
    assert_eq!(script.reports()[1].response.count, counts[1].messages + counts[2].messages);
    assert_eq!(script.reports()[0].messages, 0);
}

#[test]
fn a_slice_of_evidence_is_carried_out_and_in_no_report() {
    let evidence = SliceCommand::Run { target: 0, length_ns: SLICE_NS, is_timed: false, arrivals_seed: 7 };
    let commands = [prime(0), evidence, run(0), evidence, SliceCommand::Finish];
    let script = play(&[sliced(echo())], &commands).expect("a session");
    let messages: Vec<u64> = script.counts()[1..].iter().map(|counts| counts.messages).collect();
    assert!(messages.iter().all(|messages| *messages > 0), "{messages:?}");
    let report = &script.reports()[0];
    assert_eq!((report.messages, report.service.count), (messages[1], messages[1]));
}

#[test]
fn http_is_loaded_in_slices_too() {
    let (one, other) = (page(b"a page"), page(b"another"));
    let spec = |address| LoadSpec { messages: None, connections: 4, ..http_servers::spec(address) };
    let script = play(&[spec(one), spec(other)], &[prime(1), run(1), run(0), SliceCommand::Finish])
        .expect("a session");
    for report in script.reports() {
        let http = report.http.as_ref().expect("it is HTTP");
        assert!(report.messages > 0);
        assert_eq!(http.first_byte.count, report.messages);
        assert_eq!(report.failures.errors(), 0);
    }
}

#[test]
fn connections_that_a_server_closed_are_opened_again_by_the_prime() {
    // Every connection ends after ten messages.
    let address = serve(|_, mut stream| {
        let mut message = [0; 64];
        for _ in 0..10 {
            if stream.read_exact(&mut message).and_then(|()| stream.write_all(&message)).is_err() {
                return;
            }
        }
    });
    let spec = LoadSpec { depth: 1, ..sliced(address) };
    let prime = |messages_each| SliceCommand::Prime { target: 0, messages_each };
    let script = play(&[spec], &[prime(10), prime(1), prime(1), SliceCommand::Finish]).expect("a session");
    let counts = script.counts();
    assert_eq!((counts[0].messages, counts[0].reopened), (50, 0));
    // A message may be in flight when the server closes; the prime after that finds all connections open.
    let cut = counts[1].failures.errors();
    assert_eq!(counts[1].messages + cut, 5, "{:?}", counts[1]);
    assert!(cut + u64::from(counts[1].reopened) > 0);
    assert_eq!((counts[2].messages, counts[2].failures.errors()), (5, 0), "{:?}", counts[2]);
}

#[test]
fn an_answer_that_never_comes_is_a_failure_of_its_slice_and_of_no_other() {
    // The fourth message of the first connection is swallowed.
    let address = serve(|connection, mut stream| {
        let mut message = [0; 64];
        for number in 0.. {
            if stream.read_exact(&mut message).is_err() {
                return;
            }
            if (connection, number) != (0, 3) && stream.write_all(&message).is_err() {
                return;
            }
        }
    });
    let spec = LoadSpec { depth: 1, ..sliced(address) };
    let script =
        play(&[spec], &[prime(0), run(0), prime(0), run(0), SliceCommand::Finish]).expect("a session");
    let counts = script.counts();
    assert_eq!(counts[1].failures.errors(), 1, "{:?}", counts[1]);
    assert_eq!(counts[2].reopened, 1);
    assert_eq!((counts[3].failures.errors(), counts[3].reopened), (0, 0));
}

#[test]
fn an_answer_that_comes_after_its_slice_counts_in_no_other() {
    // The fourth message of the first connection is answered after that connection has been given up and reopened.
    let (again, given_up) = mpsc::channel();
    let given_up = Arc::new(Mutex::new(given_up));
    let address = serve(move |connection, mut stream| {
        if connection == 5 {
            again.send(()).expect("somebody waits");
        }
        let mut message = [0; 64];
        for number in 0.. {
            if stream.read_exact(&mut message).is_err() {
                return;
            }
            if (connection, number) == (0, 3) {
                given_up.lock().expect("nobody panicked").recv().expect("it is opened again");
            }
            if stream.write_all(&message).is_err() {
                return;
            }
        }
    });
    let spec = LoadSpec { depth: 1, ..sliced(address) };
    let script =
        play(&[spec], &[prime(0), run(0), prime(0), run(0), SliceCommand::Finish]).expect("a session");
    let counts = script.counts();
    assert_eq!((counts[1].failures.errors(), counts[2].reopened), (1, 1), "{:?}", counts[1]);
    assert_eq!((counts[3].failures.errors(), counts[3].reopened), (0, 0), "{:?}", counts[3]);
}

/// A server that listens but never accepts: the kernel completes connections until its queue is full.
fn deaf() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    socket.listen(1).expect("it listens");
    let address = socket.local_addr().expect("bound").as_socket().expect("of TCP");
    (socket, address)
}

#[test]
fn a_server_that_takes_no_connection_costs_the_time_limit_of_one() {
    let (_listener, address) = deaf();
    // Ten times as many as are opened at once.
    let spec = LoadSpec { connections: 640, connect_timeout: Duration::from_secs(1), ..sliced(address) };
    let began = Instant::now();
    let script = play(&[spec, sliced(echo())], &[prime(1), SliceCommand::Finish]).expect("a session");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let SliceAnswer::Ready { opened, failures } = &script.answers[0] else { panic!("it is ready first") };
    assert!(opened[0] < 640 && opened[1] == 5, "{opened:?}");
    assert_eq!(failures, &[Some("no connection within 1s".to_owned()), None]);
    assert_eq!(script.counts()[0].messages, 15, "the other server is loaded");
}

#[test]
fn wrong_bytes_are_found_in_a_slice() {
    let address = serve_messages(64, |connection, number, reply| {
        if (connection, number) == (2, 7) {
            reply[60] ^= 1;
        }
    });
    let script = play(&[sliced(address)], &[prime(0), run(0), SliceCommand::Finish]).expect("a session");
    assert!(script.counts()[1].failures.wrong_bytes > 0);
    assert!(script.counts()[1].failure_last.as_deref().is_some_and(|text| text.contains("byte")));
}

#[test]
fn what_cannot_be_loaded_in_slices_is_refused_by_name() {
    let refusal = |specs: &[LoadSpec], commands: &[SliceCommand]| match play(specs, commands) {
        Err(LoadError::Invalid { field, .. }) => field,
        _ => panic!("it must be refused"),
    };
    let address = echo();
    assert_eq!(refusal(&[], &[]), "targets");
    let counted = LoadSpec { messages: Some(5), ..sliced(address) };
    assert_eq!(refusal(&[counted], &[]), "targets");
    let close = LoadSpec {
        messages: None,
        ..http_servers::with(http_servers::spec(address), |http| http.connection_per_request = true)
    };
    assert_eq!(refusal(&[close], &[]), "targets");
    let other = LoadSpec { messages: None, ..http_servers::spec(address) };
    assert_eq!(refusal(&[sliced(address), other], &[]), "targets");
    assert_eq!(refusal(&[sliced(address)], &[run(1)]), "target");
    let long = SliceCommand::Run { target: 0, length_ns: u64::MAX, is_timed: true, arrivals_seed: 7 };
    assert_eq!(refusal(&[sliced(address)], &[long]), "length_ns");
    let many = SliceCommand::Prime { target: 0, messages_each: u32::MAX };
    assert_eq!(refusal(&[sliced(address)], &[many]), "messages_each");
}
