//! Two tasks and a time limit: one ticks, one waits for it with a time limit.
//! `cargo run -p weir-engine --example timer -- sim` ends at once, because the simulator's time is virtual; on any
//! other driver it takes a second.

#![allow(clippy::print_stdout, reason = "a program with a terminal")]

use std::{cell::Cell, error::Error, rc::Rc, time::Duration};

use weir_engine::{
    Config, Runtime, spawn,
    time::{now, sleep_until, timeout},
};

const INTERVAL: Duration = Duration::from_millis(100);

fn main() -> Result<(), Box<dyn Error>> {
    let driver = std::env::args().nth(1).unwrap_or_else(|| "auto".into()).parse()?;
    let runtime = Runtime::new(&Config { driver, ..Config::default() })?;
    runtime.block_on(async {
        let begin = now();
        let ticks = Rc::new(Cell::new(0_u32));
        let counted = Rc::clone(&ticks);
        let ticker = spawn(async move {
            // From deadline to deadline: a late tick does not delay the next one.
            let mut deadline = begin;
            loop {
                deadline = deadline + INTERVAL;
                sleep_until(deadline).await;
                counted.set(counted.get() + 1);
                println!("{:>4} ms  tick {}", now().since(begin).as_millis(), counted.get());
            }
        });
        let limit = timeout(Duration::from_millis(1050), ticker).await;
        println!(
            "{:>4} ms  {} after {} ticks",
            now().since(begin).as_millis(),
            limit.unwrap_err(),
            ticks.get()
        );
    });
    Ok(())
}
