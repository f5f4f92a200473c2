//! The order of requests. Pure.
//!
//! URLs that are given one by one are requested in turn. Requests of a mix have weights. In a cycle each request
//! occurs as often as its weight, spread evenly, so that any stretch of the cycle is close to the mix. The seed
//! decides at which place of the cycle each connection starts.

use weir_stats::random::splitmix_at;

use super::spec::HttpSpec;

/// Longest cycle: the most that the weights of a mix may add up to.
pub const WEIGHTS_MAX: u32 = 10_000;

/// The cycle of a run.
#[derive(Clone, Debug)]
pub(crate) struct RequestOrder {
    cycle: Vec<u16>,
    /// Decides where connections start; absent if they start one after the other.
    seed: Option<u64>,
}

impl RequestOrder {
    pub(crate) fn new(spec: &HttpSpec, seed: u64) -> Self {
        let weights: Vec<u32> =
            spec.urls.iter().map(|url| url.own.as_ref().map_or(1, |own| own.weight)).collect();
        let is_mix = spec.urls.iter().any(|url| url.own.is_some());
        Self { cycle: cycle(&weights), seed: is_mix.then_some(seed) }
    }

    /// Index of request `number` of a connection.
    #[inline]
    pub(crate) fn at(&self, connection: u32, number: u64) -> usize {
        let length = self.cycle.len() as u64;
        if length <= 1 {
            return 0;
        }
        let begin = match self.seed {
            Some(seed) => splitmix_at(seed, connection.into()) % length,
            None => connection.into(),
        };
        usize::from(self.cycle[(begin.wrapping_add(number) % length) as usize])
    }
}

/// Each place goes to the request that is furthest behind its share.
fn cycle(weights: &[u32]) -> Vec<u16> {
    let all: u32 = weights.iter().fold(0_u32, |sum, weight| sum.saturating_add(*weight)).min(WEIGHTS_MAX);
    let mut behind: Vec<i64> = vec![0; weights.len()];
    let next = |_| {
        behind.iter_mut().zip(weights).for_each(|(behind, weight)| *behind += i64::from(*weight));
        // Take the first of several that are equally far behind.
        let most = behind.iter().enumerate().rev().max_by_key(|(_, behind)| **behind);
        let place = most.map_or(0, |(place, _)| place);
        behind[place] -= i64::from(all);
        u16::try_from(place).unwrap_or(0)
    };
    (0..all).map(next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_has_each_request_as_often_as_its_weight_and_evenly() {
        assert_eq!(cycle(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(cycle(&[5, 1, 1]), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(cycle(&[7]), [0; 7]);
        let weights = [70, 20, 9, 1];
        let cycle = cycle(&weights);
        for (place, weight) in weights.iter().enumerate() {
            let occurs = |part: &[u16]| part.iter().filter(|it| usize::from(**it) == place).count();
            assert_eq!(occurs(&cycle), *weight as usize);
            // In a stretch of ten each is within two of its share.
            let is_even = |part: &[u16]| (occurs(part) as f64 - f64::from(*weight) / 10.0).abs() < 2.0;
            assert!(cycle.windows(10).all(is_even), "{place}: {cycle:?}");
        }
    }

    #[test]
    fn connections_begin_where_the_seed_says_and_urls_in_turn() {
        let order = |seed| RequestOrder { cycle: cycle(&[3, 2, 1]), seed };
        let of =
            |order: &RequestOrder, connection| (0..6).map(|k| order.at(connection, k)).collect::<Vec<_>>();
        for connection in 0..8 {
            let mut own = of(&order(Some(7)), connection);
            assert_eq!(own, of(&order(Some(7)), connection), "the same with the same seed");
            own.sort_unstable();
            assert_eq!(own, [0, 0, 0, 1, 1, 2]);
        }
        let begins = |seed| (0..8).map(|connection| of(&order(Some(seed)), connection)).collect::<Vec<_>>();
        assert_ne!(begins(7), begins(8));
        let in_turn = RequestOrder { cycle: cycle(&[1, 1, 1]), seed: None };
        assert_eq!((of(&in_turn, 0), of(&in_turn, 2)), (vec![0, 1, 2, 0, 1, 2], vec![2, 0, 1, 2, 0, 1]));
    }
}
