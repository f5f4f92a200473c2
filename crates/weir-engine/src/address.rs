//! Where to listen or connect: TCP, a Unix path, or a name in Linux's abstract Unix namespace.

use std::{
    fmt, io,
    net::{SocketAddr, ToSocketAddrs},
    path::{Path, PathBuf},
    str::FromStr,
};

use socket2::SockAddr;

/// An address. Text forms: `IPV4:PORT`, `[IPV6]:PORT`, `unix:/path`, `@name` (abstract). Parsing makes no lookup;
/// [`Address::resolve`] also accepts host names.
///
/// ```
/// use weir_engine::net::Address;
///
/// for text in ["127.0.0.1:80", "[::1]:80", "unix:/run/weir.sock", "@weir"] {
///     let address: Address = text.parse().unwrap();
///     assert_eq!(address.to_string(), text);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A path in the file system.
    Unix(PathBuf),
    /// A name in the abstract namespace (no file, gone with its last socket).
    Abstract(String),
}

/// The error for a text that is not an address.
///
/// ```
/// use weir_engine::net::{Address, AddressError};
///
/// // A name needs a lookup, and parsing makes none.
/// assert_eq!("localhost:80".parse::<Address>(), Err(AddressError("localhost:80".into())));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address; use IP:PORT, [IPV6]:PORT, unix:/path or @name")]
pub struct AddressError(pub String);

/// The error of [`Address::resolve`]: the text gave no address.
///
/// ```
/// use weir_engine::net::{Address, ResolveError};
///
/// assert!(matches!(Address::resolve("80"), Err(ResolveError::NotAnAddress(_))));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Neither an address nor a host with a port.
    #[error("{0:?} is not an address; use HOST:PORT, [IPV6]:PORT, unix:/path or @name")]
    NotAnAddress(String),
    /// The system's resolver knows no address for the host, or the lookup failed.
    #[error("{text:?}: no address is known for this host ({source}); write the address itself")]
    Unknown {
        /// The text to resolve.
        text: String,
        /// The resolver's error.
        source: io::Error,
    },
}

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
        text.parse().map(Address::Tcp).map_err(|_| wrong())
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
    /// Parses the text, but the host may be a name (`localhost:80`). The result is the first address that the
    /// system's resolver returns for it.
    ///
    /// The call may query name servers and blocks until they answer, for seconds if they are silent. Call it when the
    /// program starts, not on a runtime's thread.
    pub fn resolve(text: &str) -> Result<Self, ResolveError> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        // Do not ask name servers about a text that is not a host and a port.
        let is_host = text.rsplit_once(':').is_some_and(|(host, port)| {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            let is_address = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            !is_address && host.bytes().all(is_name) && port.parse::<u16>().is_ok()
        });
        if !is_host {
            return Err(ResolveError::NotAnAddress(text.into()));
        }
        let unknown = |source| ResolveError::Unknown { text: text.into(), source };
        let mut addresses = text.to_socket_addrs().map_err(unknown)?;
        let nothing = || unknown(io::Error::new(io::ErrorKind::NotFound, "the resolver has none"));
        addresses.next().map(Address::Tcp).ok_or_else(nothing)
    }

    /// The path in the file system, if the address has one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Address::Unix(path) => Some(path),
            Address::Tcp(_) | Address::Abstract(_) => None,
        }
    }

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
            assert!(matches!(Address::resolve(text), Err(ResolveError::NotAnAddress(_))), "{text}");
        }
    }

    #[test]
    fn parsing_asks_nobody_for_the_address_of_a_name() {
        // Every system has `localhost`, so a lookup would succeed.
        assert!("localhost:80".parse::<Address>().is_err());
        let Ok(Address::Tcp(address)) = Address::resolve("localhost:80") else {
            panic!("the system knows it")
        };
        assert!(address.ip().is_loopback() && address.port() == 80, "{address}");
        assert_eq!(Address::resolve("@weir").ok(), Some(Address::Abstract("weir".into())));
    }

    #[test]
    fn a_host_without_an_address_is_told_from_a_text_that_is_none() {
        // The name ends with a dot and is too long for a resolver to send a query.
        let text = format!("{}.:80", "x".repeat(64));
        let error = Address::resolve(&text).expect_err("no host has this name");
        assert!(matches!(error, ResolveError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains("write the address itself"), "{error}");
        for text in ["10.0.0:80", "a b:80", ":80", "host:"] {
            let error = Address::resolve(text).expect_err(text);
            assert!(matches!(error, ResolveError::NotAnAddress(_)), "{text}: {error}");
        }
    }
}
