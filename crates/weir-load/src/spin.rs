//! Whether a pacer may watch the clock instead of sleeping. Pure.
//!
//! Watching the clock makes starts punctual and costs nothing while the CPU has nothing else to do. When somebody
//! else wants the CPU, first of all the server under test on a shared core, it would take its time. The kernel
//! says which is the case: a thread that waits for its CPU although it is ready shares it.

/// Waiting more than this share of the time means that the CPU is not free.
const DELAY_SHARE_MAX: f64 = 0.02;
/// Looks to let pass before it is tried again.
const REST_LOOKS: u32 = 10;

/// Decides anew at every look, ten times a second.
#[derive(Debug, Default)]
pub(crate) struct SpinGate {
    last: Option<(u64, u64)>,
    rest: u32,
}

impl SpinGate {
    /// The thread had waited `delay_ns` for its CPU by `now_ns`. Says whether it may spin until the next look.
    pub(crate) fn poll(&mut self, now_ns: u64, delay_ns: u64) -> bool {
        let Some((then_ns, delay_then_ns)) = self.last.replace((now_ns, delay_ns)) else { return false };
        let share =
            delay_ns.saturating_sub(delay_then_ns) as f64 / now_ns.saturating_sub(then_ns).max(1) as f64;
        self.rest = if share > DELAY_SHARE_MAX { REST_LOOKS } else { self.rest.saturating_sub(1) };
        self.rest == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_cpu_is_spun_on_from_the_second_look() {
        let mut gate = SpinGate::default();
        let looks: Vec<bool> = (0..4).map(|step| gate.poll(step * 100, 5 + step)).collect();
        assert_eq!(looks, [false, true, true, true]);
    }

    #[test]
    fn a_shared_cpu_is_left_alone_for_a_while() {
        let mut gate = SpinGate::default();
        gate.poll(0, 0);
        assert!(!gate.poll(1000, 21));
        let looks: Vec<bool> = (2..13).map(|step| gate.poll(step * 1000, 21)).collect();
        assert_eq!(looks.iter().position(|may_spin| *may_spin), Some(9));
    }
}
