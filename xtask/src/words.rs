//! The words behind a command: flags with their values, and what is wrong with them by name.

use std::{fmt::Display, str::FromStr};

/// Words that are taken one after another.
pub struct Words<'a> {
    left: std::slice::Iter<'a, &'a str>,
}

impl<'a> Words<'a> {
    pub fn new(words: &'a [&'a str]) -> Self {
        Self { left: words.iter() }
    }

    /// The next word.
    pub fn next(&mut self) -> Option<&'a str> {
        self.left.next().copied()
    }

    /// The word behind a flag.
    pub fn value(&mut self, flag: &str) -> Result<&'a str, String> {
        self.next().ok_or_else(|| format!("{flag} needs a value"))
    }

    /// The number behind a flag.
    pub fn number<T: FromStr<Err: Display>>(&mut self, flag: &str) -> Result<T, String> {
        let value = self.value(flag)?;
        value.parse().map_err(|error| format!("{flag} {value}: {error}"))
    }

    /// The number behind a flag, from the smallest to the largest that it may be.
    pub fn number_within<T>(&mut self, flag: &str, (smallest, largest): (T, T)) -> Result<T, String>
    where
        T: FromStr<Err: Display> + PartialOrd + Display,
    {
        let number = self.number(flag)?;
        // What is not a number lies between nothing.
        if !(smallest <= number && number <= largest) {
            return Err(format!("{flag} is from {smallest} to {largest}"));
        }
        Ok(number)
    }
}
