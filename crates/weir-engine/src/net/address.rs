//! Where to listen or connect: TCP, a Unix path, or a name in Linux's abstract Unix namespace.

use std::{fmt, io, net::SocketAddr, net::ToSocketAddrs, path::PathBuf, str::FromStr};

use socket2::SockAddr;

/// An address. Text forms: `HOST:PORT`, `[::1]:PORT`, `unix:/path`, `@name` (abstract).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A path in the file system.
    Unix(PathBuf),
    /// A name in the abstract namespace (no file, gone with its last socket).
    Abstract(String),
}

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address; use HOST:PORT, [IPV6]:PORT, unix:/path or @name")]
pub struct AddressError(pub String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.into());
        if let Some(name) = text.strip_prefix('@') {
            return if name.is_empty() || name.len() > 107 {
                Err(wrong())
            } else {
                Ok(Address::Abstract(name.into()))
            };
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() || path.len() > 107 {
                Err(wrong())
            } else {
                Ok(Address::Unix(path.into()))
            };
        }
        if let Ok(address) = text.parse() {
            return Ok(Address::Tcp(address));
        }
        let resolved = text.to_socket_addrs().ok().and_then(|mut all| all.next());
        resolved.map(Address::Tcp).ok_or_else(wrong)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(formatter),
            Address::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Address::Abstract(name) => write!(formatter, "@{name}"),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

impl Address {
    pub(crate) fn to_socket_address(&self) -> io::Result<SockAddr> {
        match self {
            Address::Tcp(address) => Ok(SockAddr::from(*address)),
            Address::Unix(path) => SockAddr::unix(path),
            Address::Abstract(name) => SockAddr::unix(format!("\0{name}")),
        }
    }

    pub(crate) fn from_socket_address(address: &SockAddr) -> io::Result<Self> {
        if let Some(address) = address.as_socket() {
            return Ok(Address::Tcp(address));
        }
        if let Some(path) = address.as_pathname() {
            return Ok(Address::Unix(path.into()));
        }
        if let Some(name) = address.as_abstract_namespace() {
            return Ok(Address::Abstract(String::from_utf8_lossy(name).into_owned()));
        }
        Err(io::Error::new(io::ErrorKind::Unsupported, "the socket has no name"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_round_trip() {
        for text in ["127.0.0.1:80", "[::1]:8080", "unix:/tmp/a.sock", "@weir"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "80", "127.0.0.1", "@", "unix:", "127.0.0.1:99999"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
