//! Operations on a device that is idle, busy and saturated in turn, as a predictor sees them.

use weir_storage::predict::{Costs, Direction, Issued, Outcome, Plan, Predictor};

/// The machine of source document 003, as the simulator has it.
pub const COSTS: Costs = Costs {
    submit_ns: 1_000,
    sleep_cpu_ns: 1_500,
    interrupt_cpu_ns: 2_500,
    interrupt_lag_ns: 2_100,
    wake_lag_ns: 1_950,
};

/// Times that repeat; each state lasts a third of them.
pub const OPERATIONS: usize = 12_288;

/// Draws the times.
pub fn device_times() -> Vec<u64> {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    };
    let spreads_ns = [5_000, 20_000, 300_000];
    (0..OPERATIONS).map(|index| 12_000 + next() % spreads_ns[index * 3 / OPERATIONS]).collect()
}

/// One operation: a plan and its outcome. Returns the time after it.
pub fn step(predictor: &mut dyn Predictor, now_ns: u64, device_ns: u64) -> u64 {
    let plan = predictor.plan(&Issued {
        now_ns,
        bytes: 4096,
        direction: Direction::Read,
        in_flight: 1,
        in_flight_others: Some((device_ns / 4_096) as u32),
    });
    let wake_ns = match plan {
        Plan::Poll => 0,
        Plan::Sleep { ns } => ns + COSTS.wake_lag_ns,
        Plan::Interrupt => device_ns + COSTS.interrupt_lag_ns,
    };
    let elapsed_ns = device_ns.max(wake_ns);
    predictor.observe(&Outcome {
        now_ns: now_ns + elapsed_ns,
        bytes: 4096,
        direction: Direction::Read,
        plan,
        elapsed_ns,
        complete_at_wake: device_ns <= wake_ns && matches!(plan, Plan::Sleep { .. }),
        woken_early: false,
        wake_lag_ns: COSTS.wake_lag_ns,
        cpu_ns: 0,
    });
    now_ns + elapsed_ns
}
