//! What is left of the engine in a build without some of its features. `cargo xtask ci` runs this without any.

use std::io;

use weir_engine::{
    Config, Runtime,
    net::{Listener, Stream},
    spawn,
};
#[cfg(not(all(feature = "sim", feature = "uring")))]
use weir_engine::{Driver, Refusal, StartError};

#[test]
fn auto_runs_a_program_on_what_is_built() {
    let runtime = Runtime::new(&Config::default()).expect("poll is always built, and runs everywhere");
    let answer = runtime.block_on(async {
        let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), Default::default())?;
        let address = listener.local_address()?;
        spawn(async move {
            let stream = listener.accept().await?;
            while let Some(bytes) = stream.recv().await? {
                stream.send(bytes).await?;
            }
            io::Result::Ok(())
        });
        let client = Stream::connect(&address).await?;
        client.send(&b"hello"[..]).await?;
        let answer = client.recv().await?.expect("the other side is open");
        io::Result::Ok(answer.to_vec())
    });
    assert_eq!(answer.expect("an echo"), b"hello");
}

#[cfg(not(all(feature = "sim", feature = "uring")))]
#[test]
fn a_driver_that_is_left_out_is_refused_by_name() {
    let is_left_out = |driver: &Driver| match driver {
        Driver::Uring => cfg!(not(feature = "uring")),
        Driver::Sim => cfg!(not(feature = "sim")),
        _ => false,
    };
    for driver in Driver::ALL.into_iter().filter(is_left_out) {
        let error = Runtime::new(&Config::with_driver(driver)).expect_err("it is not there");
        let StartError::Refused { refusal, .. } = &error else { panic!("{error}") };
        assert_eq!(*refusal, Refusal::NotBuilt(driver));
        assert!(error.to_string().contains(&format!("`{driver}` is off")), "{error}");
    }
}
