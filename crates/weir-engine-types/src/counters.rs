//! Counters an engine runtime keeps about itself (evidence rung L0: free, always on).

/// Counters of one runtime or the sum over several. All count from the start of the runtime.
///
/// System calls are counted by kind, each with all that a runtime makes of it from when it runs: not what starts and
/// ends a server or gives it memory and buffers, nor what threads do to wait for each other (`futex`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "records",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default)
)]
pub struct EngineStats {
    /// Turns of the event loop that entered the kernel to look for events.
    pub turns: u64,
    /// Turns that were allowed to sleep.
    pub waits: u64,
    /// Events delivered by the kernel (ready descriptors, completion queue entries).
    pub completions: u64,
    /// Largest number of events in one turn.
    pub completions_per_turn_max: u64,
    /// Submission queue entries handed to the kernel (io_uring only).
    pub submissions: u64,
    /// Calls of `io_uring_enter` (io_uring only).
    pub enters: u64,
    /// Wait calls: `epoll_wait`, `poll`, `select`.
    pub wait_calls: u64,
    /// `recv` system calls (zero on io_uring).
    pub recv_calls: u64,
    /// `send` and `sendfile` system calls (on io_uring only those for files).
    pub send_calls: u64,
    /// Calls that change the kernel's interest list (`epoll_ctl`; poll and select have no such list).
    pub interest_calls: u64,
    /// `ppoll` calls beside the waits, that ask about single descriptors: a blocking connection that was silent, a
    /// socket that a file is sent to.
    pub poll_calls: u64,
    /// `accept4` calls (zero on io_uring).
    pub accept_calls: u64,
    /// Further calls on sockets: those that open them, set them up, connect, ask for their state and shut them down, or
    /// enter them into a ring's table of files and clear it. Closing is in `closes`.
    pub setup_calls: u64,
    /// Reads and writes of the runtime's wake-up descriptor, by whichever thread.
    pub wake_calls: u64,
    /// Calls on files, by the runtime's thread and its helpers, without `sendfile` and `close` (on io_uring only those
    /// that are not submissions).
    pub file_calls: u64,
    /// Connections accepted.
    pub accepts: u64,
    /// Times accepting paused because descriptors or memory ran out, or were left to files.
    pub accepts_starved: u64,
    /// Accepted connections that were closed at once because a limit was reached.
    pub accepts_refused: u64,
    /// Accepts that failed for a reason that says nothing about one connection.
    pub accepts_failed: u64,
    /// Connections opened by `connect`.
    pub connects: u64,
    /// Connections closed.
    pub closes: u64,
    /// Receives that found data.
    pub receives: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Sends that the kernel took at least partly.
    pub sends: u64,
    /// Bytes the kernel took for sending.
    pub bytes_sent: u64,
    /// Sends of which the kernel took only a part.
    pub sends_short: u64,
    /// Receives and sends that found nothing to do (`EAGAIN`).
    pub would_block: u64,
    /// Receives that filled their buffer to the last byte.
    pub receives_full: u64,
    /// Receives that ended because no buffer was free (`ENOBUFS`), or waited for one.
    pub buffers_exhausted: u64,
    /// Multishot operations started again after the kernel ended them.
    pub rearms: u64,
    /// Completion queue overflows reported by the kernel.
    pub completion_overflows: u64,
    /// Times a connection moved to another receive buffer size.
    pub buffer_resizes: u64,
    /// Times the receive pool grew.
    pub pool_growths: u64,
    /// Receives stopped because the handler was slower than the peer (back-pressure).
    pub receive_pauses: u64,
    /// Wake-ups from other threads that needed a system call.
    pub wakes_sent: u64,
    /// Wake-ups from other threads that found the runtime awake.
    pub wakes_suppressed: u64,
    /// Times a stale event was recognised by its generation and dropped.
    pub events_stale: u64,
    /// Tasks polled.
    pub task_polls: u64,
    /// Tasks that a panic has ended.
    pub tasks_panicked: u64,
    /// Timers that fired.
    pub timers_fired: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Time between calls of the kernel, in nanoseconds, while the clock for it was on: what the server does itself.
    pub outside_calls_ns: u64,
    /// Stretches of such time. Reading the clock is in each of them about once.
    pub outside_calls_spans: u64,
}

impl EngineStats {
    /// Adds another runtime's counters; the maximum stays a maximum.
    pub fn merge(&mut self, other: &Self) {
        let maximum = self.completions_per_turn_max.max(other.completions_per_turn_max);
        self.zip(other, u64::wrapping_add);
        self.completions_per_turn_max = maximum;
    }

    /// What happened since `earlier`; `connections_open` and the maximum are the later values.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut delta = *self;
        delta.zip(earlier, u64::wrapping_sub);
        delta.connections_open = self.connections_open;
        delta.completions_per_turn_max = self.completions_per_turn_max;
        delta
    }

    fn zip(&mut self, other: &Self, combine: impl Fn(u64, u64) -> u64) {
        macro_rules! each {
            ($($field:ident)*) => { $(self.$field = combine(self.$field, other.$field);)* };
        }
        each!(turns waits completions completions_per_turn_max submissions enters wait_calls recv_calls
              send_calls interest_calls poll_calls accept_calls setup_calls wake_calls file_calls
              accepts accepts_starved accepts_refused accepts_failed connects closes
              receives bytes_received sends bytes_sent sends_short would_block receives_full buffers_exhausted
              rearms completion_overflows buffer_resizes pool_growths receive_pauses wakes_sent wakes_suppressed
              events_stale task_polls tasks_panicked timers_fired connections_open outside_calls_ns
              outside_calls_spans);
    }
}
