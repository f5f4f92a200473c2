//! Noise of the fixtures.

/// A small generator of reproducible jitter in -1..1.
pub struct Jitter(pub u64);

impl Jitter {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
    }

    pub fn around(&mut self, center: f64, spread: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| center * (1.0 + spread * self.next())).collect()
    }
}
