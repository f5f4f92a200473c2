//! An echo server with a planted effect, to test the laboratory: an effect of known size and place must be found. It is
//! no part of a product, and stands behind the feature `lab`.

use std::{
    io,
    os::fd::OwnedFd,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
};
use weir_engine::{net::Stream, time::yield_now};
use weir_sys::affinity::{allowed_cpus, pin_current_thread};

/// A fault that a server adds to every receive, or a lost answer.
#[derive(Clone, Debug)]
pub enum PlantedEffect {
    /// CPU time of the server. The loop ends at the first clock reading that is late enough, so the time is never
    /// shorter.
    Time(Duration),
    /// A system call without effect, `getppid`.
    Call,
    /// A write that wakes a sleeping thread.
    Wake(Sleeper),
    /// Two sends instead of one.
    SplitWrite,
    /// A connection that ends without answering its receive with this number.
    Lose(u32),
}

/// A thread that sleeps until it is woken, and sleeps again.
#[derive(Clone, Debug)]
pub struct Sleeper {
    eventfd: Arc<OwnedFd>,
}

impl Sleeper {
    /// Starts the thread, on other CPUs than `workers` if there are any, so that it takes no worker's; it lives as
    /// long as the process.
    ///
    /// # Errors
    /// When no descriptor or no thread is available.
    pub fn start(workers: &[usize]) -> io::Result<Self> {
        let mut others = allowed_cpus()?;
        others.retain(|cpu| !workers.contains(cpu));
        let eventfd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let own = Arc::clone(&eventfd);
        let sleep = move || {
            if !others.is_empty() {
                // If that is not allowed, it shares a CPU, and the effect shows that.
                let _ = pin_current_thread(&others);
            }
            let mut wakes = [0; 8];
            while matches!(rustix::io::read(&own, &mut wakes), Ok(_) | Err(Errno::INTR)) {}
        };
        thread::Builder::new().name("weir-sleeper".into()).spawn(sleep)?;
        Ok(Self { eventfd })
    }

    fn wake(&self) {
        // It fails only if the thread has not slept for 2^64 wakes.
        let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
    }
}

/// Like [`echo`](crate::echo::echo), with a planted effect.
pub async fn echo_planted(stream: Stream, effect: PlantedEffect) {
    let mut received = 0_u32;
    while let Ok(Some(mut bytes)) = stream.recv().await {
        received = received.wrapping_add(1);
        match &effect {
            PlantedEffect::Lose(number) if received == *number => return,
            PlantedEffect::Lose(_) => {}
            PlantedEffect::Time(time) => {
                let began = Instant::now();
                while began.elapsed() < *time {}
            }
            PlantedEffect::Call => {
                let _ = rustix::process::getppid();
            }
            PlantedEffect::Wake(sleeper) => sleeper.wake(),
            PlantedEffect::SplitWrite => {
                let half = bytes.len() / 2;
                if stream.send_slice(&bytes[..half]).await.is_err() {
                    return;
                }
                bytes.advance(half);
                // Queued bytes leave when the task yields.
                yield_now().await;
            }
        }
        if stream.send(bytes).await.is_err() {
            return;
        }
    }
    // A failure here means that the peer is gone.
    let _ = stream.shutdown().await;
}
