//! Starting where the kernel, or a sandbox around it, offers less than the driver would use.

use std::time::Duration;

use weir_engine::{Config, Driver, Refusal, Runtime, StartError, time::sleep};
use weir_engine_types::kernel::{FEATURES, FeatureRow, KernelFeature};

use super::handlers::echo;
use crate::{kernel, rig::Rig};

/// Case 21: io_uring is forbidden. `auto` takes epoll, `uring` reports the reason, the others are unaffected.
pub fn sandbox(rig: &mut Rig) {
    for (error, word) in [(libc::EPERM, "EPERM"), (libc::ENOSYS, "ENOSYS")] {
        // A filter applies to a thread and the threads that it starts: the first subject must not affect the second.
        let config = rig.config.clone();
        let check = std::thread::spawn(move || {
            kernel::deny(libc::SYS_io_uring_setup, error);
            check_denied(&config, word);
        });
        check.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
    if !rig.subject.is_uring() {
        kernel::deny(libc::SYS_io_uring_setup, libc::EPERM);
        let served = rig.serve(echo, async |network| {
            let mut peer = network.connect().await;
            assert_eq!(peer.exchange(b"sandboxed").await.expect("an echo"), b"sandboxed");
        });
        served.expect_clean();
    }
}

fn check_denied(config: &Config, word: &str) {
    let automatic = Runtime::new(&Config { driver: Default::default(), ..config.clone() });
    assert_eq!(automatic.expect("epoll is left").driver(), Driver::Epoll);
    let denied =
        weir_engine::Config { driver: weir_engine::DriverChoice::Named(Driver::Uring), ..config.clone() };
    let Err(StartError::Refused { driver, refusal }) = Runtime::new(&denied) else {
        panic!("the sandbox forbids io_uring");
    };
    assert_eq!(driver, Driver::Uring);
    let reason = refusal.to_string();
    assert!(reason.contains("seccomp") && reason.contains(word), "{reason}");
    let unlock = refusal.remedy().expect("there is a remedy");
    assert!(unlock.contains("seccomp"), "{unlock}");
    let reports = weir_engine::probe(config);
    let report =
        reports.iter().find(|report| report.driver == Driver::Uring).expect("every driver is probed");
    assert!(!report.is_available() && report.detail().contains(word), "{report}");
}

/// Case 21b: a sandbox forbids `epoll_pwait2`, because its list is older than the call. Timers still fire.
pub fn without_precise_waits(rig: &mut Rig) {
    for error in [libc::EPERM, libc::ENOSYS] {
        let config = rig.config.clone();
        let check = std::thread::spawn(move || {
            kernel::deny(libc::SYS_epoll_pwait2, error);
            let runtime = Runtime::new(&config).expect("epoll is left");
            runtime.block_on(sleep(Duration::from_millis(5)));
        });
        check.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

/// Case 22: one feature at a time is missing. The ladder, step by step, is among the subjects of all cases.
pub fn masked_one_by_one(rig: &mut Rig) {
    let own = rig.config.masked;
    let is_optional =
        |row: &&FeatureRow| row.driver == Driver::Uring.name() && row.feature != KernelFeature::WaitArguments;
    for row in FEATURES.iter().filter(is_optional) {
        rig.config.masked = own.with(row.feature);
        if let Some(option) = row.option {
            // A configuration that needs the feature is refused, and no other uses it.
            match Runtime::new(&rig.config) {
                Err(StartError::Refused { refusal: Refusal::OptionLacks(missing), .. }) => {
                    assert_eq!(missing.option, option);
                }
                other => drop(other.expect("it is not asked for")),
            }
            continue;
        }
        let pattern = rig.pattern.clone();
        let served = rig.serve(echo, async |network| {
            for peer in &mut network.connect_many(4).await {
                for size in [1, 100, 5000, 60_000] {
                    let reply = peer.exchange(&pattern.bytes(0, size)).await.expect("an echo");
                    pattern.check(0, &reply);
                }
            }
        });
        served.expect_clean();
    }
}
