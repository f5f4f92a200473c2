//! Predictors by name, such as `quantile:0.01`, as users write them and results store them.

use std::{fmt, ops::RangeInclusive, str::FromStr};

use thiserror::Error;

use super::{
    Costs, Plan, Predictor, SLEEP_NS_MAX, control::Control, dpas::Dpas, ehp::Ehp, ewma::Ewma,
    hybrid_iopoll::HybridIopoll, linux_mean::LinuxMean, lmd::Lmd, load_aware::LoadAware, pas::Pas,
    quantile::Quantile, regime::Regime,
};

/// Every predictor with its defaults, in the order of the table in [`super`].
pub const ALL_DEFAULTS: &[&str] = &[
    "poll",
    "interrupt",
    "fixed:5us",
    "linux-mean:0.5",
    "lmd",
    "ehp",
    "hybrid-iopoll",
    "pas",
    "dpas",
    "ewma:0.125",
    "quantile:0.01",
    "regime:0.003",
    "load-aware:0.003",
];

const RATIO: f64 = 0.5;
const PERIOD_MS: u64 = 100;
const WEIGHT: f64 = 0.125;
const DEVIATIONS: f64 = 4.0;
const QUANTILE: f64 = 0.01;
const QUANTILE_PRICED: f64 = 0.003;
const PRICE: f64 = 16.0;

const QUANTILES: RangeInclusive<f64> = 0.0001..=0.5;
const PRICES: RangeInclusive<f64> = 0.0..=1_000_000.0;

/// A predictor with all its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PredictorSpec {
    /// Poll at once.
    Poll,
    /// Never poll.
    Interrupt,
    /// The same sleep for every operation.
    Fixed {
        /// Requested sleep.
        sleep_ns: u64,
    },
    /// Linux 4.10 to 6.3.
    LinuxMean {
        /// Sleep as a share of the mean; one half in the kernel.
        ratio: f64,
        /// Length of an epoch; 100 in the kernel.
        period_ms: u64,
    },
    /// Begunkov's proposal of 2019.
    Lmd,
    /// The minimum of 10 ms.
    Ehp,
    /// io_uring's hybrid, Linux 6.13 and later.
    HybridIopoll,
    /// Prompt, accurate and safe.
    Pas,
    /// PAS with modes.
    Dpas {
        /// Whether polling is one of the modes.
        polls: bool,
    },
    /// Mean less deviations, as moving averages.
    Ewma {
        /// Weight of the newest time.
        weight: f64,
        /// Deviations below the mean.
        deviations: f64,
    },
    /// The sleep with a given probability of a miss.
    Quantile {
        /// Share of operations that may be missed.
        quantile: f64,
    },
    /// The quantile, or the interrupt where it is worth its lag.
    Regime {
        /// Share of operations that may be missed.
        quantile: f64,
        /// CPU time paid for a unit of latency.
        price: f64,
    },
    /// Like `Regime`, for each load.
    LoadAware {
        /// Share of operations that may be missed.
        quantile: f64,
        /// CPU time paid for a unit of latency.
        price: f64,
    },
}

/// An error in a predictor's name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// There is no such predictor.
    #[error("there is no predictor `{0}`; use one of {names}", names = family_names())]
    Unknown(String),
    /// A parameter is out of its range, or not a number.
    #[error("{family}: the {parameter} must be {allowed}, not `{given}`")]
    Parameter {
        /// The predictor.
        family: String,
        /// Its parameter.
        parameter: &'static str,
        /// Its allowed values.
        allowed: String,
        /// The given value.
        given: String,
    },
    /// More parameters than it has.
    #[error("{family}: the parameter `{given}` is one too many")]
    TooMany {
        /// The predictor.
        family: String,
        /// The first extra parameter.
        given: String,
    },
}

impl PredictorSpec {
    /// Creates the predictor; all its memory is allocated here.
    pub fn build(&self, costs: &Costs) -> Box<dyn Predictor> {
        match *self {
            Self::Poll => Box::new(Control(Plan::Poll)),
            Self::Interrupt => Box::new(Control(Plan::Interrupt)),
            Self::Fixed { sleep_ns } => Box::new(Control(Plan::sleep_or_poll(sleep_ns))),
            Self::LinuxMean { ratio, period_ms } => Box::new(LinuxMean::new(ratio, period_ms)),
            Self::Lmd => Box::new(Lmd::new()),
            Self::Ehp => Box::new(Ehp::new(costs)),
            Self::HybridIopoll => Box::new(HybridIopoll::new()),
            Self::Pas => Box::new(Pas::new()),
            Self::Dpas { polls } => Box::new(Dpas::new(polls)),
            Self::Ewma { weight, deviations } => Box::new(Ewma::new(weight, deviations, costs)),
            Self::Quantile { quantile } => Box::new(Quantile::new(quantile, costs)),
            Self::Regime { quantile, price } => Box::new(Regime::new(quantile, price, costs)),
            Self::LoadAware { quantile, price } => Box::new(LoadAware::new(quantile, price, costs)),
        }
    }

    /// Whether it ever sleeps for a chosen time: only such a sleep can be armed.
    pub fn has_sleeps(&self) -> bool {
        !matches!(self, Self::Poll | Self::Interrupt)
    }

    /// The name before the colon.
    pub fn family(&self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Interrupt => "interrupt",
            Self::Fixed { .. } => "fixed",
            Self::LinuxMean { .. } => "linux-mean",
            Self::Lmd => "lmd",
            Self::Ehp => "ehp",
            Self::HybridIopoll => "hybrid-iopoll",
            Self::Pas => "pas",
            Self::Dpas { .. } => "dpas",
            Self::Ewma { .. } => "ewma",
            Self::Quantile { .. } => "quantile",
            Self::Regime { .. } => "regime",
            Self::LoadAware { .. } => "load-aware",
        }
    }
}

/// The first parameter is always written, later ones only if they differ from the default.
impl fmt::Display for PredictorSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family();
        match *self {
            Self::Poll | Self::Interrupt | Self::Lmd | Self::Ehp | Self::HybridIopoll | Self::Pas => {
                formatter.write_str(family)
            }
            Self::Fixed { sleep_ns } if sleep_ns % 1_000_000 == 0 => {
                write!(formatter, "{family}:{}ms", sleep_ns / 1_000_000)
            }
            Self::Fixed { sleep_ns } if sleep_ns % 1_000 == 0 => {
                write!(formatter, "{family}:{}us", sleep_ns / 1_000)
            }
            Self::Fixed { sleep_ns } => write!(formatter, "{family}:{sleep_ns}ns"),
            Self::Dpas { polls: true } => formatter.write_str(family),
            Self::Dpas { polls: false } => write!(formatter, "{family}:no-poll"),
            Self::LinuxMean { ratio, period_ms } if period_ms == PERIOD_MS => {
                write!(formatter, "{family}:{ratio}")
            }
            Self::LinuxMean { ratio, period_ms } => write!(formatter, "{family}:{ratio},{period_ms}"),
            Self::Ewma { weight, deviations } if deviations == DEVIATIONS => {
                write!(formatter, "{family}:{weight}")
            }
            Self::Ewma { weight, deviations } => write!(formatter, "{family}:{weight},{deviations}"),
            Self::Quantile { quantile } => write!(formatter, "{family}:{quantile}"),
            Self::Regime { quantile, price } | Self::LoadAware { quantile, price } if price == PRICE => {
                write!(formatter, "{family}:{quantile}")
            }
            Self::Regime { quantile, price } | Self::LoadAware { quantile, price } => {
                write!(formatter, "{family}:{quantile},{price}")
            }
        }
    }
}

impl FromStr for PredictorSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (family, parameters) = match text.split_once(':') {
            Some((family, rest)) => (family, Some(rest)),
            None => (text, None),
        };
        let mut given = Parameters { family, rest: parameters };
        let spec = match family {
            "poll" => Self::Poll,
            "interrupt" => Self::Interrupt,
            "fixed" => Self::Fixed { sleep_ns: given.sleep_ns()? },
            "linux-mean" => Self::LinuxMean {
                ratio: given.number("ratio", RATIO, 0.001..=1.0)?,
                period_ms: given.number("period in ms", PERIOD_MS, 1..=60_000)?,
            },
            "lmd" => Self::Lmd,
            "ehp" => Self::Ehp,
            "hybrid-iopoll" => Self::HybridIopoll,
            "pas" => Self::Pas,
            "dpas" => Self::Dpas { polls: given.polls()? },
            "ewma" => Self::Ewma {
                weight: given.number("weight", WEIGHT, 0.001..=1.0)?,
                deviations: given.number("number of deviations", DEVIATIONS, 0.0..=100.0)?,
            },
            "quantile" => Self::Quantile { quantile: given.number("share of misses", QUANTILE, QUANTILES)? },
            "regime" => Self::Regime { quantile: given.quantile_priced()?, price: given.price()? },
            "load-aware" => Self::LoadAware { quantile: given.quantile_priced()?, price: given.price()? },
            _ => return Err(SpecError::Unknown(family.to_owned())),
        };
        match given.next() {
            None => Ok(spec),
            Some(more) => Err(SpecError::TooMany { family: family.to_owned(), given: more.to_owned() }),
        }
    }
}

/// The parameters after the colon, taken one by one.
struct Parameters<'a> {
    family: &'a str,
    rest: Option<&'a str>,
}

impl<'a> Parameters<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest?;
        let (first, rest) = match text.split_once(',') {
            Some((first, rest)) => (first, Some(rest)),
            None => (text, None),
        };
        self.rest = rest;
        Some(first)
    }

    fn number<T>(
        &mut self,
        parameter: &'static str,
        default: T,
        range: RangeInclusive<T>,
    ) -> Result<T, SpecError>
    where
        T: FromStr + PartialOrd + fmt::Display,
    {
        let Some(text) = self.next() else { return Ok(default) };
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let allowed = format!("a number from {} to {}", range.start(), range.end());
            self.wrong(parameter, allowed, text)
        })
    }

    fn quantile_priced(&mut self) -> Result<f64, SpecError> {
        self.number("share of misses", QUANTILE_PRICED, QUANTILES)
    }

    fn price(&mut self) -> Result<f64, SpecError> {
        self.number("price", PRICE, PRICES)
    }

    fn polls(&mut self) -> Result<bool, SpecError> {
        match self.next() {
            None => Ok(true),
            Some("no-poll") => Ok(false),
            Some(text) => Err(self.wrong("mode", "`no-poll` or absent".to_owned(), text)),
        }
    }

    fn sleep_ns(&mut self) -> Result<u64, SpecError> {
        let text = self.next().unwrap_or_default();
        let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000)];
        let sleep_ns = units.into_iter().find_map(|(unit, unit_ns)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(unit_ns)
        });
        sleep_ns
            .filter(|ns| (1..=SLEEP_NS_MAX).contains(ns))
            .ok_or_else(|| self.wrong("sleep", "from 1ns to 1000ms, in whole ns, us or ms".to_owned(), text))
    }

    fn wrong(&self, parameter: &'static str, allowed: String, given: &str) -> SpecError {
        SpecError::Parameter { family: self.family.to_owned(), parameter, allowed, given: given.to_owned() }
    }
}

fn family_names() -> String {
    let names: Vec<&str> =
        ALL_DEFAULTS.iter().map(|spec| spec.split_once(':').map_or(*spec, |(family, _)| family)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> PredictorSpec {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn complaint(text: &str) -> String {
        text.parse::<PredictorSpec>().expect_err("wrong").to_string()
    }

    #[test]
    fn every_default_is_what_its_bare_name_means_and_reads_back() {
        for text in ALL_DEFAULTS {
            let spec = parse(text);
            assert_eq!(spec.to_string(), *text);
            assert_eq!(text.split(':').next(), Some(spec.family()));
            if spec.family() != "fixed" {
                assert_eq!(parse(spec.family()), spec);
            }
        }
    }

    #[test]
    fn parameters_read_back() {
        for text in [
            "fixed:1500ns",
            "fixed:2ms",
            "fixed:1000ms",
            "linux-mean:0.03",
            "linux-mean:0.5,10",
            "dpas:no-poll",
            "ewma:0.2,3.5",
            "quantile:0.0001",
            "regime:0.005,4",
            "load-aware:0.5,0",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_right() {
        assert_eq!(
            complaint("quantile:0.7"),
            "quantile: the share of misses must be a number from 0.0001 to 0.5, not `0.7`"
        );
        assert_eq!(
            complaint("linux-mean:0.5,0"),
            "linux-mean: the period in ms must be a number from 1 to 60000, not `0`"
        );
        assert_eq!(complaint("pas:3"), "pas: the parameter `3` is one too many");
        assert_eq!(
            complaint("fixed"),
            "fixed: the sleep must be from 1ns to 1000ms, in whole ns, us or ms, not ``"
        );
        assert_eq!(complaint("dpas:poll"), "dpas: the mode must be `no-poll` or absent, not `poll`");
        assert!(
            complaint("lhp").starts_with("there is no predictor `lhp`; use one of poll, interrupt, fixed, ")
        );
        for text in [
            "regime:nan",
            "regime:0.01,inf",
            "ewma:",
            "quantile:-1",
            "fixed:5",
            "fixed:0us",
            "fixed:2000ms",
            "",
        ] {
            complaint(text);
        }
    }
}
