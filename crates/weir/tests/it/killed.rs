//! A server that is killed and started again at once, on every kind of address. The kernel removes an io_uring instance
//! after its process is gone, and the listener with it.

use rustix::process::Signal;
use weir_engine::{
    Config, Driver,
    serve::{Server as EngineServer, ServerConfig},
};

use super::harness::{PATIENCE, Server, own_address, socket_folder};

/// Restarts on each address. Without the wait for the address, every third was refused.
const RESTARTS: usize = 20;

/// Kills a server on `driver` and takes its address at once, from this process: loading a program mostly takes longer
/// than the kernel needs.
fn kill_and_restart(driver: &str) {
    let Some(tried) = Server::on_driver(driver, &[]) else { return };
    assert_eq!(tried.terminate(), 0);
    let server = Server::start_on(&own_address(), &["--driver", driver]).expect("it can run here");
    let port = server.address.clone();
    assert_eq!(server.terminate(), 0);
    let folder = socket_folder(&format!("killed-{driver}"));
    let path = format!("unix:{}", folder.join("server.sock").display());
    let name = format!("@weir-it-{}-killed-{driver}", std::process::id());
    for listen in [&port, &path, &name] {
        for restart in 0..RESTARTS {
            let mut killed = Server::start_on(listen, &["--driver", driver])
                .unwrap_or_else(|errors| panic!("restart {restart} on {listen}: {errors}"));
            killed.process.signal(Signal::KILL);
            assert_eq!(killed.process.wait(PATIENCE), -9);
            let address = listen.parse().expect("an address");
            let config = ServerConfig::new(Config::with_driver(Driver::Poll), address);
            let server = EngineServer::start(config, |_| async {})
                .unwrap_or_else(|error| panic!("restart {restart} on {listen}: {error}"));
            server.drain();
            server.join();
        }
    }
}

#[test]
fn the_address_of_a_server_killed_on_io_uring_can_be_taken_at_once() {
    kill_and_restart("uring");
}

#[test]
fn the_address_of_a_server_killed_on_epoll_can_be_taken_at_once() {
    kill_and_restart("epoll");
}
