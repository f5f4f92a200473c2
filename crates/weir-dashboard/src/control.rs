//! Who may act, and which study runs: readers with the token start and stop studies from a page or a program. A
//! dashboard without a token has no address that does this ([`crate::actions`]).
//!
//! A browser gives the token once, in a form, and comes back with a cookie that no script can read and no other site
//! sends. A program gives the token with every request. Both are checked only after the dashboard knows that no foreign
//! page sent the request.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, StatusCode, header};
use tokio::time::sleep;

use crate::{
    auth::{Access, FAILURES_WINDOW, Refused, TURN_WAIT_MAX},
    folder::Listing,
    forms::{Last, Panel, Stopping},
    offered::Offered,
    origin::{Origin, Own, Sender},
    runner::{Runner, Stage},
    token::Token,
    words::{self, LocalizedText},
};

/// Settings of a dashboard that can act.
#[derive(Clone, Debug)]
pub struct ControlSettings {
    /// The secret that allows a reader to act.
    pub token: Token,
    /// The program that runs studies.
    pub program: PathBuf,
    /// A folder of study files that may be started, besides built-in studies.
    pub studies: Option<PathBuf>,
    /// Origins whose pages may act. If the dashboard listens on this machine alone, its own address is one too.
    pub origins: Vec<Origin>,
}

/// Who may act, and which study runs.
pub(crate) struct Control {
    pub access: Access,
    pub runner: Runner,
    pub studies: Option<PathBuf>,
    pub origins: Vec<Origin>,
    pub own: Own,
    /// Name of the cookie. It contains the port, because browsers send a host's cookies to all its ports.
    pub cookie: String,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub IpAddr);

impl Control {
    pub(crate) fn of(settings: ControlSettings, bound: SocketAddr) -> Self {
        let ControlSettings { token, program, studies, origins } = settings;
        Self {
            access: Access::with(token),
            runner: Runner::of(program),
            studies,
            origins,
            own: if bound.ip().is_loopback() { Own::NamedAndHost } else { Own::Named },
            cookie: format!("weir-session-{}", bound.port()),
        }
    }

    /// The secret in the browser's cookie.
    pub(crate) fn secret<'h>(&self, headers: &'h HeaderMap) -> Option<&'h str> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    /// Whether a browser is logged in.
    pub(crate) fn is_logged_in(&self, headers: &HeaderMap) -> bool {
        self.secret(headers).is_some_and(|secret| self.access.knows(secret, Instant::now()))
    }

    /// What a browser may do now.
    pub(crate) fn panel(&self, is_logged_in: bool, found: &Listing) -> Panel {
        if !is_logged_in {
            return Panel::LoggedOut;
        }
        let last = match self.runner.stage() {
            Stage::Running { of, is_ending, .. } => return Panel::Running { of, is_ending },
            Stage::Ended { of, how, said } => {
                let is_stored = found.studies.iter().any(|study| study.name == of.folder);
                Some(Last { of, how, said, is_stored })
            }
            Stage::Idle => None,
        };
        let other = found.studies.iter().find(|study| study.is_running);
        match other {
            Some(other) => Panel::Occupied { folder: other.name.clone() },
            None => Panel::Ready { offered: Offered::all(self.studies.as_deref()), last },
        }
    }

    /// Whether a browser may stop the study that runs.
    pub(crate) fn stopping(&self, is_logged_in: bool) -> Stopping {
        match self.runner.stage() {
            Stage::Running { .. } if !is_logged_in => Stopping::LoggedOut,
            Stage::Running { of, is_ending, .. } => Stopping::Of { started: of, is_ending },
            _ => Stopping::No,
        }
    }

    /// Waits until a token of this address is read. A request without one need not wait.
    pub(crate) async fn wait_for_turn(&self, peer: Peer) -> Result<(), Denied> {
        let wait = self.access.turn(peer.0, Instant::now()).map_err(Denied::Refused)?;
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Ok(())
    }

    /// Whether a request that only reads comes from a reader with the token.
    pub(crate) async fn has_token(&self, headers: &HeaderMap, peer: Peer) -> bool {
        match bearer(headers) {
            Some(token) => {
                self.wait_for_turn(peer).await.is_ok()
                    && self.access.check(token, peer.0, Instant::now()).is_ok()
            }
            None => self.is_logged_in(headers),
        }
    }

    /// Whether a request may act.
    pub(crate) async fn check(&self, headers: &HeaderMap, sender: Sender, peer: Peer) -> Result<(), Denied> {
        if let Some(token) = bearer(headers) {
            self.wait_for_turn(peer).await?;
            return self.access.check(token, peer.0, Instant::now()).map_err(Denied::Refused);
        }
        match sender {
            Sender::OwnPage { .. } if self.is_logged_in(headers) => Ok(()),
            _ => Err(Denied::NoToken),
        }
    }
}

/// The token in a program's request.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let given = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = given.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

/// Why an action was refused.
#[derive(Debug)]
pub(crate) enum Denied {
    Foreign,
    NoToken,
    Refused(Refused),
    NoForm,
    TooLong,
    TooSlow,
    NoSuchStudy,
    NoSuchLevels,
    Busy,
    NothingRuns,
    Ending,
    NotStarted(io::Error),
}

impl Denied {
    /// When to try again; absent where that would not help.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(Refused::TooMany) => Some(FAILURES_WINDOW),
            Self::Refused(Refused::Unread) => Some(TURN_WAIT_MAX),
            _ => None,
        }
    }

    /// The status of the answer, and its text.
    pub(crate) fn status_and_text(&self) -> (StatusCode, LocalizedText) {
        match self {
            Self::Foreign => (StatusCode::FORBIDDEN, words::FOREIGN_PAGE),
            Self::NoToken => (StatusCode::UNAUTHORIZED, words::NO_TOKEN),
            Self::Refused(Refused::WrongToken) => (StatusCode::UNAUTHORIZED, words::WRONG_TOKEN),
            Self::Refused(Refused::TooMany) => (StatusCode::TOO_MANY_REQUESTS, words::TOO_MANY_TOKENS),
            Self::Refused(Refused::Unread) => (StatusCode::TOO_MANY_REQUESTS, words::TOKEN_UNREAD),
            Self::Refused(Refused::NoSession(_)) | Self::NotStarted(_) => {
                (StatusCode::INTERNAL_SERVER_ERROR, words::NOT_STARTED)
            }
            Self::NoForm => (StatusCode::UNSUPPORTED_MEDIA_TYPE, words::NO_FORM),
            Self::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, words::NO_FORM),
            Self::TooSlow => (StatusCode::REQUEST_TIMEOUT, words::NO_FORM),
            Self::NoSuchStudy => (StatusCode::NOT_FOUND, words::NOT_OFFERED),
            Self::NoSuchLevels => (StatusCode::NOT_FOUND, words::NO_SUCH_LEVELS),
            Self::Busy => (StatusCode::CONFLICT, words::ANOTHER_RUNS),
            Self::NothingRuns => (StatusCode::CONFLICT, words::NOTHING_TO_STOP),
            Self::Ending => (StatusCode::SERVICE_UNAVAILABLE, words::DASHBOARD_ENDS),
        }
    }
}
