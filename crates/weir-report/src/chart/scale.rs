//! Maps values to pixels, and chooses the ticks.

/// A linear or logarithmic axis. Values outside the domain land on its ends.
pub(super) struct Scale {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    logarithmic: bool,
}

/// Most ticks of an axis.
const TICKS_MAX: usize = 12;

impl Scale {
    /// From zero to a little above the largest value.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let largest = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high = if largest > 0.0 { largest * 1.02 } else { 1.0 };
        Scale { low: 0.0, high, start, end, logarithmic: false }
    }

    /// The same without what is above this value.
    pub(super) fn ending_at(self, most: f64) -> Self {
        Scale { high: self.high.min(most), ..self }
    }

    /// Around all ratios and 1, not symmetric, at least 5 % to each side; ratios beyond a factor of 100 are cut.
    pub(super) fn ratios(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (mut low, mut high) = (0.95_f64, 1.05_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        let margin = (high / low).powf(0.04);
        Scale {
            low: (low / margin).clamp(0.01, 1.0),
            high: (high * margin).clamp(1.0, 100.0),
            start,
            end,
            logarithmic: true,
        }
    }

    /// Around all differences and 0, with at least `least` to each side.
    pub(super) fn differences(values: impl Iterator<Item = f64>, least: f64, start: f64, end: f64) -> Self {
        let (mut low, mut high) = (-least, least);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        let margin = 0.04 * (high - low);
        Scale { low: low - margin, high: high + margin, start, end, logarithmic: false }
    }

    /// From the smallest to the largest positive value, widened to whole 1-2-5 steps.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        Scale { low: low / 1.25, high: high * 1.25, start, end, logarithmic: true }
    }

    /// A linear axis with given ends.
    pub(super) fn linear(low: f64, high: f64, start: f64, end: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Scale { low, high, start, end, logarithmic: false }
    }

    /// The pixel of a value; NaN stays NaN and is not drawn.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.start + share * (self.end - self.start)
    }

    pub(super) fn contains(&self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }

    /// Round values inside the domain: equal steps, or 1-2-5 when a logarithmic axis spans more than a factor of 4.
    /// About `count` of them.
    pub(super) fn ticks(&self, count: f64) -> Vec<f64> {
        let ticks =
            if self.logarithmic && self.high / self.low > 4.0 { self.decades() } else { self.steps(count) };
        ticks.into_iter().filter(|tick| self.contains(*tick)).take(TICKS_MAX).collect()
    }

    fn steps(&self, count: f64) -> Vec<f64> {
        let rough = (self.high - self.low) / count;
        let power = 10_f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
        let step = factor * power;
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first) as usize;
        (0..=count.min(TICKS_MAX)).map(|index| (first + index as f64) * step).collect()
    }

    fn decades(&self) -> Vec<f64> {
        let exponents = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let wide = self.high / self.low > 1e4;
        let factors: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        exponents
            .flat_map(|exponent| factors.iter().map(move |factor| factor * 10_f64.powi(exponent)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let scale = Scale::from_zero([195_432.0].into_iter(), 0.0, 100.0);
        assert_eq!(scale.ticks(5.0), [0.0, 50_000.0, 100_000.0, 150_000.0]);
        let narrow = Scale::ratios([0.97].into_iter(), 0.0, 100.0);
        assert!(narrow.ticks(7.0).iter().any(|tick| (tick - 1.0).abs() < 1e-9), "{:?}", narrow.ticks(7.0));
        let wide = Scale::ratios([0.05, 2.0].into_iter(), 0.0, 100.0);
        assert!(wide.ticks(7.0).contains(&1.0) && wide.ticks(7.0).contains(&0.1));
    }

    #[test]
    fn odd_input_gives_a_usable_axis() {
        for scale in [
            Scale::from_zero([f64::NAN, f64::INFINITY].into_iter(), 0.0, 100.0),
            Scale::ratios([0.0, -1.0, f64::NAN, 1e300].into_iter(), 0.0, 100.0),
            Scale::logarithmic(std::iter::empty(), 0.0, 100.0),
            Scale::linear(5.0, 5.0, 0.0, 100.0),
        ] {
            assert!((0.0..=100.0).contains(&scale.at(1.0)));
            assert!(!scale.ticks(7.0).is_empty());
            assert!(scale.at(f64::NAN).is_nan());
        }
    }
}
