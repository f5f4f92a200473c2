//! Request methods (RFC 9110, 9 and RFC 5789) and sets of them. The server decides what a method does.

use std::fmt;

/// A method that Weir knows by name. Names are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Transfer the target's representation.
    Get,
    /// As `Get`, without the content.
    Head,
    /// Process the content.
    Post,
    /// Replace the target by the content.
    Put,
    /// Remove the target.
    Delete,
    /// Make a tunnel.
    Connect,
    /// Describe the options of communication.
    Options,
    /// Send the request back.
    Trace,
    /// Change the target in part.
    Patch,
}

impl Method {
    /// Every method, in the order of the enum.
    pub const ALL: [Self; 9] = [
        Self::Get,
        Self::Head,
        Self::Post,
        Self::Put,
        Self::Delete,
        Self::Connect,
        Self::Options,
        Self::Trace,
        Self::Patch,
    ];

    /// The method with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Patch => "PATCH",
        }
    }
}

/// A set of methods. Its `Display` is the value of an `Allow` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodSet(u16);

impl MethodSet {
    /// No method.
    pub const NONE: Self = Self(0);

    /// These methods.
    pub const fn of(methods: &[Method]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < methods.len() {
            bits |= 1 << methods[index] as u16;
            index += 1;
        }
        Self(bits)
    }

    /// Whether the set contains the method.
    pub const fn contains(self, method: Method) -> bool {
        self.0 & (1 << method as u16) != 0
    }
}

impl fmt::Display for MethodSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = Method::ALL.into_iter().filter(|method| self.contains(*method));
        members.enumerate().try_for_each(|(index, method)| {
            formatter.write_str(if index == 0 { "" } else { ", " })?;
            formatter.write_str(method.name())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_methods_correspond() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name()), Some(method));
        }
        assert_eq!(Method::from_name("get"), None);
    }

    #[test]
    fn a_set_holds_its_members_only_and_prints_as_allow() {
        let set = MethodSet::of(&[Method::Patch, Method::Get]);
        let held: Vec<Method> = Method::ALL.into_iter().filter(|method| set.contains(*method)).collect();
        assert_eq!(held, [Method::Get, Method::Patch]);
        assert_eq!(set.to_string(), "GET, PATCH");
        assert_eq!(MethodSet::NONE.to_string(), "");
    }
}
