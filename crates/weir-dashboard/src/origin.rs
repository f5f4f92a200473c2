//! The origin of a request, as the browser reports it. A page of another origin may send a form to any address, and
//! fetch resources that it cannot read; it cannot pretend to come from here.

use axum::http::{HeaderMap, header};

/// A header that only browsers set, and none of their scripts.
const FETCH_SITE: &str = "sec-fetch-site";

/// Likewise; `navigate` where a page is opened or framed.
const FETCH_MODE: &str = "sec-fetch-mode";

/// Likewise; the kind of resource.
const FETCH_DEST: &str = "sec-fetch-dest";

/// An origin whose pages may act: `http://lab.example:3000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    text: String,
    host: String,
}

impl Origin {
    /// The origin as a browser writes it; absent where the text is no origin: it has a path, or a scheme that browsers
    /// do not use here.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let (scheme, authority) = lower.split_once("://")?;
        let usual = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        let authority = authority.strip_suffix(usual).unwrap_or(authority);
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
        let is_origin = !host.is_empty() && is_port && authority.bytes().all(is_plain);
        is_origin.then(|| Self { text: format!("{scheme}://{authority}"), host: host.to_owned() })
    }

    /// Its name or address.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
}

/// Who sent a request that acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// A page of the dashboard itself, over TLS or without it.
    OwnPage { is_secure: bool },
    /// No page: a program, which sends no origin.
    Program,
    /// A page of another site, or one that hides its origin.
    Foreign,
}

/// Which origins are the dashboard's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// The named ones, and the origin of the host that the request is for.
    NamedAndHost,
    /// The named ones.
    Named,
}

impl Sender {
    /// The sender, by the headers.
    pub(crate) fn of(headers: &HeaderMap, named: &[Origin], own: Own) -> Self {
        let mut sites = headers.get_all(FETCH_SITE).iter();
        if sites.any(|site| site != "same-origin") {
            return Self::Foreign;
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let origin = match (origins.next(), origins.next()) {
            (None, _) => return Self::Program,
            (Some(one), None) => one.to_str().unwrap_or_default(),
            (Some(_), Some(_)) => return Self::Foreign,
        };
        let is_named = named.iter().any(|known| known.text.eq_ignore_ascii_case(origin));
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let is_of_host = own == Own::NamedAndHost
            && !host.is_empty()
            && origin.strip_prefix("http://").is_some_and(|of| of.eq_ignore_ascii_case(host));
        match is_named || is_of_host {
            true => Self::OwnPage { is_secure: origin.starts_with("https://") },
            false => Self::Foreign,
        }
    }
}

/// Whether a page of another site fetches a resource in the background, such as a picture, a script or an event stream,
/// or opens it as a kind of resource that is not in `opened_as`. Such a page could read nothing, but cause work beside
/// a measurement or take a reader's place. Programs, and browsers on a plain address of a network, do not send their
/// origin.
pub(crate) fn is_foreign_fetch(headers: &HeaderMap, opened_as: &[&str]) -> bool {
    let is_foreign =
        headers.get_all(FETCH_SITE).iter().any(|site| site == "cross-site" || site == "same-site");
    let is_such = headers.get(FETCH_DEST).is_none_or(|what| opened_as.iter().any(|it| what == *it));
    let is_opened = is_such && headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
    is_foreign && !is_opened
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for (text, said, host) in [
            ("http://lab.example:3000", "http://lab.example:3000", "lab.example"),
            ("HTTPS://Lab.Example", "https://lab.example", "lab.example"),
            ("http://lab:80", "http://lab", "lab"),
            ("https://lab:443", "https://lab", "lab"),
            ("http://[::1]:3000", "http://[::1]:3000", "[::1]"),
            ("http://[::1]", "http://[::1]", "[::1]"),
            ("http://192.168.1.4:3000", "http://192.168.1.4:3000", "192.168.1.4"),
        ] {
            let origin = Origin::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((origin.text.as_str(), origin.host()), (said, host));
        }
        for no in [
            "lab.example",
            "http://",
            "http://lab/",
            "http://lab/x",
            "ftp://lab",
            "null",
            "*",
            "http://a b",
            "http://*.lab",
            "http://lab:x",
            "http://u@lab",
            "http://:80",
            "file://x",
            "",
        ] {
            assert_eq!(Origin::parse(no), None, "{no}");
        }
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    fn sender(lines: &[(&str, &str)], own: Own) -> Sender {
        let named = [Origin::parse("https://lab.example").expect("an origin")];
        Sender::of(&headers(lines), &named, own)
    }

    #[test]
    fn what_a_page_of_another_site_fetches_is_told_from_links_frames_and_programs() {
        let of = |lines: &[(&str, &str)]| is_foreign_fetch(&headers(lines), &["document", "iframe"]);
        let navigates = ("sec-fetch-mode", "navigate");
        for site in ["cross-site", "same-site"] {
            let site = ("sec-fetch-site", site);
            for mode in ["no-cors", "cors", "websocket", ""] {
                assert!(of(&[site, ("sec-fetch-mode", mode)]), "{site:?} {mode}");
                assert!(of(&[site, ("sec-fetch-mode", mode), ("sec-fetch-dest", "document")]), "{mode}");
            }
            for (what, is_refused) in [("document", false), ("iframe", false), ("object", true)] {
                assert_eq!(of(&[site, navigates, ("sec-fetch-dest", what)]), is_refused, "{site:?} {what}");
            }
            assert!(of(&[site]) && !of(&[site, navigates]), "{site:?}");
        }
        for own in ["same-origin", "none"] {
            let site = ("sec-fetch-site", own);
            assert!(!of(&[site, ("sec-fetch-mode", "cors")]) && !of(&[site, navigates]), "{own}");
            assert!(!of(&[site, navigates, ("sec-fetch-dest", "object")]), "{own}");
        }
        assert!(!of(&[]) && !of(&[("origin", "http://evil.example")]), "who says nothing is no such page");
    }

    #[test]
    fn a_page_is_own_by_its_origin_and_by_what_the_browser_says_of_the_request() {
        let plain = Sender::OwnPage { is_secure: false };
        let secure = Sender::OwnPage { is_secure: true };
        let (host, origin) = (("host", "127.0.0.1:3000"), ("origin", "http://127.0.0.1:3000"));
        let of = |lines: &[(&str, &str)]| sender(lines, Own::NamedAndHost);
        assert_eq!(of(&[host, origin]), plain);
        assert_eq!(of(&[host, origin, ("sec-fetch-site", "same-origin")]), plain);
        assert_eq!(of(&[host, ("origin", "https://lab.example")]), secure);
        assert_eq!(of(&[host]), Sender::Program);
        for foreign in [
            &[host, ("origin", "http://evil.example")][..],
            &[host, ("origin", "null")],
            &[host, ("origin", "http://127.0.0.1:3001")],
            &[host, ("origin", "https://127.0.0.1:3000")],
            &[host, ("origin", "http://127.0.0.1")],
            &[host, ("origin", "http://127.0.0.1:3000.evil.example")],
            &[host, ("origin", "http://lab.example")],
            &[host, ("origin", "http://")],
            &[host, ("origin", "")],
            &[("origin", "http://")],
            &[host, origin, origin],
            &[host, origin, ("sec-fetch-site", "cross-site")],
            &[host, origin, ("sec-fetch-site", "same-site")],
            &[host, origin, ("sec-fetch-site", "none")],
            &[host, ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(of(foreign), Sender::Foreign, "{foreign:?}");
        }
        assert_eq!(sender(&[host, origin], Own::Named), Sender::Foreign, "beyond loopback it must be named");
        assert_eq!(sender(&[host, ("origin", "https://lab.example")], Own::Named), secure);
    }
}
