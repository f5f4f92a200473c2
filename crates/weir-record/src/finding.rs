//! What the laboratory found, as codes with arguments: a report words them in its reader's language, a script reads
//! them as they are. A text of an older record stays what it was.
//!
//! Findings are listed by group, in a file for each kind of group, so that code that puts them into words does so
//! group by group, and the compiler names a finding that a group leaves out.

mod arguments;
#[macro_use]
mod checks;
#[macro_use]
mod machine;
#[macro_use]
mod verdicts;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use arguments::*;

use crate::{
    kernel::KernelVersion,
    observation::{Obstacle, Rung},
};

/// The enum with a stable code for each variant, so that nothing can be left out of [`Finding::CODES`], and an enum for
/// each group.
macro_rules! findings {
    ([] $(
        $(#[$about:meta])* $group:ident {
            $($(#[$doc:meta])* $name:ident = $code:literal $({ $($(#[$note:meta])* $field:ident: $kind:ty,)* })?)*
        }
    )*) => {
        /// One thing the laboratory found. Counts are of trials, unless the name says otherwise; shares and errors are
        /// fractions.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "code")]
        pub enum Finding {
            $($(
                $(#[$doc])* #[serde(rename = $code)] $name $({ $($(#[$note])* $field: $kind,)* })?,
            )*)*
            /// A sentence of an older record.
            #[serde(untagged)]
            Text(String),
        }

        impl Finding {
            /// Every code, in the order of the variants.
            pub const CODES: &[&str] = &[$($($code),*),*];

            /// The stable name; what a text says is its own.
            pub fn code(&self) -> &str {
                match self {
                    $($(Finding::$name { .. } => $code,)*)*
                    Finding::Text(text) => text,
                }
            }

            /// The same as one of its group.
            pub fn group(&self) -> Group<'_> {
                match self {
                    $($(
                        Finding::$name $({ $($field,)* })? => Group::$group($group::$name $({ $($field,)* })?),
                    )*)*
                    Finding::Text(text) => Group::Text(text),
                }
            }
        }

        /// A finding by its group.
        #[derive(Clone, Copy, Debug)]
        pub enum Group<'f> {
            $($(#[$about])* $group($group<'f>),)*
            /// A sentence of an older record.
            Text(&'f str),
        }

        $(
            $(#[$about])*
            #[derive(Clone, Copy, Debug, Serialize)]
            pub enum $group<'f> {
                $($(#[$doc])* $name $({ $($(#[$note])* $field: &'f $kind,)* })?,)*
            }
        )*
    };
}

findings_of_checks! { [findings_of_verdicts findings_of_machine findings] }

#[cfg(test)]
mod tests;
