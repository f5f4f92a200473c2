//! Flags that servers and loads of all protocols have, and values that are refused in words that say what to
//! write.

use std::str::FromStr;

mod load;
mod serve;
mod settings;

pub(crate) use load::{Arrivals, LoadShared, MaxErrors};
pub(crate) use serve::{Accept, ServeShared};
pub(crate) use settings::{Settings, of as settings_of};

/// What is said of a value that is no whole number.
pub(crate) const NO_WHOLE_NUMBER: &str = "write a whole number, 0 or more";

/// What is said of a value that is no number.
pub(crate) const NO_NUMBER: &str = "write a number such as 2 or 0.5";

/// A whole number, refused in words that say what to write.
pub(crate) fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| NO_WHOLE_NUMBER)
}

/// A number that need not be whole.
fn fraction(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| NO_NUMBER)
}
