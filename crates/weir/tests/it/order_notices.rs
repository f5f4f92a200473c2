//! Messages of a gateway and an exchange on standard error while they run.

use rustix::process::Signal;

use super::harness::{PATIENCE, Running, own_address};

/// An exchange or a gateway, and where it listens.
fn serve(words: &[&str]) -> (Running, String) {
    let process = Running::weir(&[&["serve"], words].concat());
    match process.next_line().as_deref().and_then(|line| line.strip_prefix("listening on ")) {
        Some(address) => (process, address.to_owned()),
        None => panic!("it does not start: {}", process.rest_of_errors()),
    }
}

#[test]
fn a_gateway_says_that_its_exchange_is_lost_and_that_it_is_back() {
    let (mut exchange, upstream) = serve(&["exchange", "--demo", "1", "--listen", &own_address()]);
    let gateway = ["gateway", "--demo", "1", "--workers", "1", "--upstream", &upstream];
    let (mut gateway, _) = serve(&[&gateway[..], &["--listen", "127.0.0.1:0"]].concat());
    exchange.signal(Signal::KILL);
    assert_eq!(exchange.wait(PATIENCE), -9);
    let line = gateway.error_line_with("lost");
    assert!(line.contains("venue DEMO, worker 0: the session is lost: "), "{line}");
    gateway.error_line_with("there is no session");
    let (exchange, _) = serve(&["exchange", "--demo", "1", "--listen", &upstream]);
    gateway.error_line_with("the session is back");
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(PATIENCE), 0);
    drop(exchange);
}
