//! Methods that can be simulated: each predictor, armed or not, and two oracles that know more than a thread can.

use std::fmt;

use crate::predict::PredictorSpec;

/// Names of the two oracles.
const CLAIRVOYANT: &str = "clairvoyant";
const CONSTANT: &str = "constant:";

/// A way to wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Method {
    /// The plans of a predictor, including interrupts and polling.
    Predicted {
        /// See [`PredictorSpec`].
        predictor: PredictorSpec,
        /// A sleep ends at the completion or at its time, whichever is first.
        armed: bool,
        /// The predictor receives the device's time even after a miss, which no thread can observe: this shows how
        /// much of a method's error comes from learning its own oversleep.
        true_times: bool,
    },
    /// Knows when the device will complete and how long waking takes: no method that sleeps and polls adds less
    /// latency or needs less CPU. The interrupt, which does not poll, can need less.
    Clairvoyant,
    /// The longest sleep, the same for all operations of a phase, that misses at most this share of the operations
    /// under polling with the same seed: the best possible without knowledge of single operations.
    ConstantSleep {
        /// Share of operations from 0 to 1.
        miss_share: f64,
        /// Whether sleeps end at the completion too.
        armed: bool,
    },
}

impl Method {
    /// Parses a predictor's name, `clairvoyant`, or `constant:SHARE`.
    pub fn parse(text: &str, armed: bool) -> Result<Self, String> {
        if text == CLAIRVOYANT {
            return Ok(Self::Clairvoyant);
        }
        if let Some(share) = text.strip_prefix(CONSTANT) {
            let share = share.parse().ok().filter(|share: &f64| (0.0..=0.5).contains(share));
            let miss_share = share.ok_or_else(|| {
                format!("{text}: the share of misses must be a number from 0 to 0.5, as in {CONSTANT}0.01")
            })?;
            return Ok(Self::ConstantSleep { miss_share, armed });
        }
        let predictor = text.parse::<PredictorSpec>().map_err(|error| error.to_string())?;
        if armed && !predictor.has_sleeps() {
            return Err(format!(
                "{text} has no timed sleep that a completion could end, so it cannot be armed"
            ));
        }
        Ok(Self::Predicted { predictor, armed, true_times: false })
    }

    /// Whether it is supposed to sleep.
    pub fn has_sleeps(&self) -> bool {
        match self {
            Self::Predicted { predictor, .. } => predictor.has_sleeps(),
            Self::Clairvoyant | Self::ConstantSleep { .. } => true,
        }
    }

    /// Whether sleeps end at the completion too.
    pub fn armed(&self) -> bool {
        match self {
            Self::Predicted { armed, .. } | Self::ConstantSleep { armed, .. } => *armed,
            Self::Clairvoyant => false,
        }
    }

    /// Whether a predictor receives the device's own times.
    pub fn true_times(&self) -> bool {
        matches!(self, Self::Predicted { true_times: true, .. })
    }
}

/// In the form that [`Method::parse`] reads, with ` armed` and ` true-times` appended where they apply.
impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Predicted { predictor, .. } => write!(formatter, "{predictor}")?,
            Self::Clairvoyant => formatter.write_str(CLAIRVOYANT)?,
            Self::ConstantSleep { miss_share, .. } => write!(formatter, "{CONSTANT}{miss_share}")?,
        }
        if self.armed() {
            formatter.write_str(" armed")?;
        }
        if self.true_times() { formatter.write_str(" true-times") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_written_alike() {
        for text in ["clairvoyant", "constant:0.01", "poll", "interrupt"] {
            let method = Method::parse(text, false).expect(text);
            assert_eq!(method.to_string(), text);
        }
        let armed = Method::parse("constant:0.2", true).expect("a share");
        assert_eq!(armed.to_string(), "constant:0.2 armed");
        assert_eq!(Method::parse("clairvoyant", true), Ok(Method::Clairvoyant));
    }

    #[test]
    fn what_is_no_method_is_told() {
        for text in ["constant:", "constant:x", "constant:-0.1", "constant:0.6", "constant:NaN"] {
            assert!(Method::parse(text, false).expect_err(text).contains("from 0 to 0.5"), "{text}");
        }
        for text in ["poll", "interrupt"] {
            assert!(Method::parse(text, true).expect_err(text).contains("no timed sleep"), "{text}");
        }
        assert!(Method::parse("purple", false).expect_err("no predictor").contains("purple"));
    }
}
