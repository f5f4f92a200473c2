//! The arguments of a command: flags with their values, and errors that name the flag.

use std::{fmt::Display, str::FromStr};

/// Arguments, taken one after another.
pub struct Words<'a> {
    left: std::slice::Iter<'a, &'a str>,
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [&'a str]) -> Self {
        Self { left: words.iter() }
    }

    /// The next argument.
    pub fn next(&mut self) -> Option<&'a str> {
        self.left.next().copied()
    }

    /// The value after a flag.
    pub fn value(&mut self, flag: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("{flag} needs a value"))
    }

    /// The number after a flag.
    pub fn number<T: FromStr<Err: Display>>(&mut self, flag: &str) -> Result<T, String> {
        let value = self.value(flag)?;
        value.parse().map_err(|error| format!("{flag} {value}: {error}"))
    }

    /// The number after a flag, between the smallest and the largest allowed value.
    pub fn number_within<T>(&mut self, flag: &str, (smallest, largest): (T, T)) -> Result<T, String>
    where
        T: FromStr<Err: Display> + PartialOrd + Display,
    {
        let number = self.number(flag)?;
        // This also refuses NaN.
        if !(smallest <= number && number <= largest) {
            return Err(format!("{flag} is from {smallest} to {largest}"));
        }
        Ok(number)
    }
}
