//! Two workers, each a thread with its own runtime: one asks, the other computes and answers.
//! `cargo run --release -p weir-engine --example two_cores -- uring`

#![allow(clippy::print_stdout, reason = "a program with a terminal")]

use std::{error::Error, sync::mpsc, thread};

use weir_engine::{
    Config, Runtime, StartError,
    handoff::{self, Options, Port, Priority},
};

/// Questions and answers of this program: one type for both directions.
enum Message {
    Square(u64),
    Result(u64),
    /// No more questions.
    End,
}

const ASKER: usize = 0;
const WORKER: usize = 1;
const QUESTIONS: u64 = 100_000;

/// Answers until the other side sends `End`.
async fn work(port: &Port<Message>) {
    loop {
        port.ready().await;
        while let Some((from, message)) = port.take() {
            let mut answer = match message {
                Message::Square(number) => Message::Result(number * number),
                Message::Result(_) | Message::End => return,
            };
            // A full queue returns the message: this is the backpressure.
            while let Err(back) = port.push(from, Priority::Response, answer) {
                answer = back;
                if port.room(from).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Sends all questions, takes the answers as they arrive, and adds them up.
async fn ask(port: &Port<Message>) -> Result<u64, Box<dyn Error>> {
    let (mut asked, mut answered, mut sum) = (0, 0, 0);
    while answered < QUESTIONS {
        while asked < QUESTIONS && port.push(WORKER, Priority::Request, Message::Square(asked)).is_ok() {
            asked += 1;
        }
        port.ready().await;
        while let Some((_, message)) = port.take() {
            let Message::Result(square) = message else { return Err("an answer was expected".into()) };
            sum += square;
            answered += 1;
        }
    }
    port.push(WORKER, Priority::Request, Message::End).map_err(|_| "the worker takes nothing any more")?;
    Ok(sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let driver = std::env::args().nth(1).unwrap_or_else(|| "auto".into()).parse()?;
    let config = Config { driver, ..Config::default() };
    let mut ports = handoff::group(2, &Options::default());
    let (worker, asker) = (ports.remove(WORKER), ports.remove(ASKER));
    let of_worker = config.clone();
    let (started, has_started) = mpsc::channel();
    let thread = thread::spawn(move || -> Result<(), StartError> {
        Runtime::new(&of_worker)?.block_on(async {
            worker.attach()?;
            let _ = started.send(());
            work(&worker).await;
            Ok(())
        })
    });
    if has_started.recv().is_err() {
        thread.join().map_err(|_| "the worker panicked")??;
        return Err("the worker ended before its work began".into());
    }
    let sum = Runtime::new(&config)?.block_on(async {
        asker.attach()?;
        ask(&asker).await
    })?;
    thread.join().map_err(|_| "the worker panicked")??;
    println!("the squares below {QUESTIONS} add up to {sum}");
    Ok(())
}
