//! Random blocks with unequal probabilities: Zipf's law and Pareto's, with the numbers of fio 3.33. Pure.
//!
//! The n-th likeliest block follows from the formula of Gray and others (SIGMOD 1994), or for Pareto from a power of
//! a uniform number. Ranks are scattered over the file by multiplication with a prime, so that several may share one
//! block, and rotated by a start that is drawn once or lies at the requested share of the file. Seeds are those of
//! fio: with `randrepeat` the name of the file, hashed, times the thread's number.

use weir_record::storage::Skew;

use super::tausworthe::Tausworthe;

/// Terms of the sum that Zipf's law needs, at most: about a second's work.
const TERMS_MAX: u64 = 10_000_000;
/// Derived from the golden ratio, in 64 and 32 bits.
const SCATTER: u64 = 0x61c8_8646_80b5_83eb;
const HASH_START: u32 = 0x61c8_8647;
const UNIFORM_MAX: f64 = 4_294_967_295.0;

/// Draws blocks.
#[derive(Clone, Debug)]
pub(super) struct Skewed {
    lot: Tausworthe,
    blocks: u64,
    turn: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Zipf {
        half: f64,
        sum: f64,
        eta: f64,
        power: f64,
    },
    Pareto {
        power: f64,
    },
    /// How many blocks a further uniform number scatters it over.
    Normal {
        deviation: u64,
    },
}

/// Number of uniform numbers whose sum approximates a normal one.
const NORMAL_SUMMANDS: u64 = 12;

impl Skewed {
    /// The blocks of a distribution; `None` for the uniform one.
    pub(super) fn new(skew: Skew, blocks: u64, seed: u64) -> Option<Self> {
        let (law, center) = match skew {
            Skew::None => return None,
            Skew::Zipf { theta, center } => (zipf(theta, blocks), center),
            Skew::Pareto { share, center } => {
                (Law::Pareto { power: share.ln() / (1.0 - share).ln() }, center)
            }
            Skew::Normal { percent, center } => return Some(normal(percent, center, blocks, seed)),
        };
        let mut lot = Tausworthe::new(seed);
        let drawn = u64::from(lot.next());
        let turn = center.map_or(drawn, |center| (blocks as f64 * center) as u64);
        Some(Self { lot, blocks, turn, law })
    }

    pub(super) fn next(&mut self) -> u64 {
        self.rank().wrapping_mul(SCATTER).wrapping_add(self.turn) % self.blocks
    }

    /// Rank of the next block, from 0 for the likeliest.
    fn rank(&mut self) -> u64 {
        let blocks = self.blocks as f64;
        let mut uniform = || f64::from(self.lot.next()) / UNIFORM_MAX;
        match self.law {
            Law::Normal { deviation } => self.normal_rank(deviation),
            Law::Pareto { power } => ((self.blocks - 1) as f64 * uniform().powf(power)) as u64,
            Law::Zipf { half, sum, eta, power } => match uniform() {
                uniform if uniform * sum < 1.0 => 0,
                uniform if uniform * sum < 1.0 + half => 1,
                uniform => (blocks * (eta * uniform - eta + 1.0).powf(power)) as u64,
            },
        }
    }

    /// fio's method: a mean of uniform numbers, and a uniform deviation that is halved until the block lies in the
    /// file.
    fn normal_rank(&mut self, deviation: u64) -> u64 {
        let mut uniform = || u64::from(self.lot.next());
        let sum: u64 = (0..NORMAL_SUMMANDS).map(|_| uniform() % (self.blocks + 1)).sum();
        let mean = sum.div_ceil(NORMAL_SUMMANDS);
        if deviation == 0 {
            return mean;
        }
        let drawn = (deviation as f64 * (uniform() as f64 / 4_294_967_296.0)) as i64;
        let mut off = drawn - (deviation / 2) as i64;
        let moved = |off: i64| mean.checked_add_signed(off).filter(|rank| *rank < self.blocks);
        loop {
            match moved(off) {
                Some(rank) => return rank,
                None if off == 0 => return mean,
                None => off /= 2,
            }
        }
    }
}

/// It draws no start: its middle is that of the file, or the requested position.
fn normal(percent: f64, center: Option<f64>, blocks: u64, seed: u64) -> Skewed {
    let deviation = ((blocks as f64 * percent / 100.0).ceil() as u64).min(blocks / 2);
    let turn = center.map_or(0, |center| (blocks as f64 * (center - 0.5)) as i64 as u64);
    Skewed { lot: Tausworthe::new(seed), blocks, turn, law: Law::Normal { deviation } }
}

fn zipf(theta: f64, blocks: u64) -> Law {
    let sum: f64 = (1..=blocks.min(TERMS_MAX)).map(|rank| (1.0 / rank as f64).powf(theta)).sum();
    let half = 0.5_f64.powf(theta);
    let eta = (1.0 - (2.0 / blocks as f64).powf(1.0 - theta)) / (1.0 - (1.0 + half) / sum);
    Law::Zipf { half, sum, eta, power: 1.0 / (1.0 - theta) }
}

/// Jenkins' hash of a file's name (lookup3), in which all but the last twelve bytes count by every fourth.
pub(super) fn name_hash(name: &str) -> u32 {
    let mut rest = name.as_bytes();
    let [mut a, mut b, mut c] = [HASH_START.wrapping_add(rest.len() as u32); 3];
    while rest.len() > 12 {
        (a, b, c) =
            (a.wrapping_add(rest[0].into()), b.wrapping_add(rest[4].into()), c.wrapping_add(rest[8].into()));
        for turns in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(turns[0]);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(turns[1]);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(turns[2]);
            b = b.wrapping_add(a);
        }
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    let word = |place: usize| {
        let bytes = rest.iter().skip(place).take(4).enumerate();
        bytes.fold(0_u32, |word, (index, byte)| word | u32::from(*byte) << (8 * index))
    };
    (a, b, c) = (a.wrapping_add(word(0)), b.wrapping_add(word(4)), c.wrapping_add(word(8)));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By rank.
    fn shares(skew: Skew) -> Vec<f64> {
        let mut counts = vec![0_u32; 1000];
        let mut skewed = Skewed::new(skew, 1000, 7).expect("it is skewed");
        (0..100_000).for_each(|_| counts[skewed.rank() as usize] += 1);
        counts.into_iter().map(|count| f64::from(count) / 1e5).collect()
    }

    #[test]
    fn the_likeliest_blocks_of_zipf_are_as_likely_as_its_law_says() {
        let shares = shares(Skew::Zipf { theta: 1.2, center: None });
        let sum: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-1.2)).sum();
        for (index, expected) in [(0, 1.0 / sum), (1, 0.5_f64.powf(1.2) / sum)] {
            assert!((shares[index] - expected).abs() < 0.005, "{}: {} for {expected}", index, shares[index]);
        }
    }

    #[test]
    fn a_fifth_of_the_blocks_has_four_fifths_of_pareto() {
        let first: f64 = shares(Skew::Pareto { share: 0.2, center: None })[..200].iter().sum();
        assert!((first - 0.8).abs() < 0.02, "{first}");
    }

    #[test]
    fn a_normal_law_has_its_middle_where_it_was_asked_for_and_scatters_as_far() {
        let blocks = |percent, center| {
            let mut skewed = Skewed::new(Skew::Normal { percent, center }, 1000, 3).expect("it is skewed");
            let ranks: Vec<u64> = (0..20_000).map(|_| skewed.rank()).collect();
            let mean = ranks.iter().sum::<u64>() as f64 / 20_000.0;
            let spread = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum::<f64>() / 20_000.0;
            assert!(ranks.iter().all(|rank| *rank <= 1000));
            (mean, spread.sqrt())
        };
        // The mean of twelve uniform numbers: sqrt(1/12/12) of the file.
        let (mean, spread) = blocks(0.0, None);
        assert!((mean - 500.0).abs() < 5.0 && (spread - 83.0).abs() < 5.0, "{mean} {spread}");
        assert!(blocks(40.0, None).1 > 1.2 * spread);
        let mut turned =
            Skewed::new(Skew::Normal { percent: 0.0, center: Some(0.2) }, 1000, 3).expect("skewed");
        assert_eq!(turned.turn, (-300_i64) as u64);
        assert!((0..1000).all(|_| turned.next() < 1000));
    }

    #[test]
    fn the_likeliest_block_lies_where_it_was_asked_for() {
        let mut skewed = Skewed::new(Skew::Zipf { theta: 3.0, center: Some(0.25) }, 1000, 1).expect("skewed");
        assert!((0..100).filter(|_| skewed.next() == 250).count() > 60);
    }
}
