//! Unix paths: leftovers are recognised as dead and replaced, everything else is left alone.

use std::{fs, os::unix::net::UnixStream};

use rustix::process::Signal;

use super::harness::{PATIENCE, Server, bytes, echo_exactly, expect_refusal, socket_folder, weir};

#[test]
fn a_dead_path_is_replaced_a_live_one_and_a_file_are_refused() {
    let folder = socket_folder("unix");
    let path = folder.join("server.sock");
    let listen = format!("unix:{}", path.display());
    let mut killed = Server::start_on(&listen, &["--driver", "epoll"]).expect("it starts");
    killed.process.signal(Signal::KILL);
    assert_eq!(killed.process.wait(PATIENCE), -9);
    assert!(path.exists(), "a killed server leaves its path");

    let server = Server::start_on(&listen, &["--driver", "epoll"]).expect("a dead path is replaced");
    let live = weir(&["serve", "echo", "--driver", "epoll", "--listen", &listen]);
    expect_refusal(&live, 1, &[&listen, "another process listens"]);
    let stream = UnixStream::connect(&path).expect("the first server still listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let twin = stream.try_clone().expect("a second handle");
    echo_exactly(stream, twin, bytes(1 << 20, 6), |end| {
        end.shutdown(std::net::Shutdown::Write).expect("open");
    });
    assert_eq!(server.terminate(), 0);
    assert!(!path.exists(), "a server that ends in order removes its path");

    fs::write(&path, "letters").expect("a file can be written");
    let file = weir(&["serve", "echo", "--driver", "epoll", "--listen", &listen]);
    expect_refusal(&file, 1, &[&listen, "no socket"]);
    assert_eq!(fs::read_to_string(&path).expect("it is untouched"), "letters");
}
