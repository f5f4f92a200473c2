//! Whether a pacer may spin on the clock instead of sleeping. Pure.
//!
//! Spinning makes starts punctual and costs nothing while the CPU is otherwise idle. If another thread needs the CPU,
//! first of all the server under test on a shared core, spinning takes its time. The kernel's scheduling delay shows
//! which is the case: a ready thread that waits for its CPU shares it.

/// A thread that waits for more than this share of the time does not have its CPU for itself.
const DELAY_SHARE_MAX: f64 = 0.02;
/// Checks to skip before spinning is tried again.
const REST_LOOKS: u32 = 10;

/// Decides anew at every check, ten times a second.
#[derive(Debug, Default)]
pub(crate) struct SpinGate {
    last: Option<(u64, u64)>,
    rest: u32,
}

impl SpinGate {
    /// Takes the total time `delay_ns` that the thread had waited for its CPU by `now_ns`. Returns whether it may
    /// spin until the next check.
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
