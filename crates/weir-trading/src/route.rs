//! Chooses the worker whose upstream session carries a client's orders. The choice is sticky, so a client's orders
//! stay in order.

use std::{fmt, str::FromStr};

/// How a client's worker finds the worker that sends its orders upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// The client's own worker: nothing is handed off.
    #[default]
    Own,
    /// Always the next worker: everything is handed off when there are two or more.
    Other,
    /// By the session's number: with N workers about (N - 1) / N are handed off.
    Modulo,
}

impl Route {
    /// The worker for a client on worker `home` of `workers`.
    pub fn worker(self, home: usize, session: u32, workers: usize) -> usize {
        let workers = workers.max(1);
        match self {
            Self::Own => home,
            Self::Other => (home + 1) % workers,
            Self::Modulo => session as usize % workers,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Other => "other",
            Self::Modulo => "modulo",
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Own, Self::Other, Self::Modulo]
            .into_iter()
            .find(|route| route.name() == text)
            .ok_or_else(|| format!("unknown route '{text}': own, other or modulo"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_sticky_and_stays_inside_the_workers() {
        assert_eq!(Route::Own.worker(1, 7, 2), 1);
        assert_eq!(Route::Other.worker(1, 7, 2), 0);
        assert_eq!(Route::Other.worker(0, 7, 1), 0);
        assert_eq!(Route::Modulo.worker(0, 7, 2), 1);
        assert_eq!(Route::Modulo.worker(0, 8, 2), 0);
    }

    #[test]
    fn names_are_read_back() {
        for route in [Route::Own, Route::Other, Route::Modulo] {
            assert_eq!(route.to_string().parse(), Ok(route));
        }
        assert!("elsewhere".parse::<Route>().is_err());
    }
}
