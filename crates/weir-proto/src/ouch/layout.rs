//! Layouts as tables: a message is its fields with their offsets, and reading and writing follow from it.

use super::{Appendage, ClientOrderId, DecodeError, DecodeErrorKind, Symbol};

/// A field at a fixed offset. Offsets are checked against the length of their message at compile time.
pub(super) trait Field: Copy {
    const BYTES: usize;

    fn read(message: &[u8], at: usize) -> Self;

    fn write(self, message: &mut [u8], at: usize);
}

macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl Field for $number {
            const BYTES: usize = size_of::<$number>();

            #[inline]
            fn read(message: &[u8], at: usize) -> Self {
                Self::from_be_bytes(take(message, at))
            }

            #[inline]
            fn write(self, message: &mut [u8], at: usize) {
                put(message, at, self.to_be_bytes());
            }
        })+
    };
}

macro_rules! texts {
    ($($text:ident),+) => {
        $(impl Field for $text {
            const BYTES: usize = size_of::<$text>();

            #[inline]
            fn read(message: &[u8], at: usize) -> Self {
                Self(take(message, at))
            }

            #[inline]
            fn write(self, message: &mut [u8], at: usize) {
                put(message, at, self.0);
            }
        })+
    };
}

numbers!(u8, u16, u32, u64);
texts!(Symbol, ClientOrderId);

#[inline]
fn take<const N: usize>(message: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&message[at..at + N]);
    field
}

#[inline]
fn put<const N: usize>(message: &mut [u8], at: usize, field: [u8; N]) {
    message[at..at + N].copy_from_slice(&field);
}

/// The part behind the fields of a message.
#[derive(Clone, Copy)]
pub(super) enum Tail {
    Nothing,
    Appendage,
}

impl Tail {
    /// Bytes it adds to the fixed part.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Appendage => 2,
        }
    }

    /// The fixed part and the checked appendage of a whole message.
    #[inline]
    pub fn split<const N: usize>(self, message: &[u8]) -> Result<(&[u8; N], Appendage<'_>), DecodeError> {
        let Some((fixed, rest)) = message.split_first_chunk::<N>() else {
            return Err(DecodeErrorKind::Length.of(message));
        };
        let declared = match self {
            Self::Nothing => 0,
            Self::Appendage => usize::from(u16::read(fixed, N - self.bytes())),
        };
        if declared < rest.len() {
            return Err(DecodeErrorKind::Length.of(message));
        }
        if declared > rest.len() {
            return Err(DecodeErrorKind::Appendage.of(message));
        }
        match Appendage::parse(rest) {
            Ok(appendage) => Ok((fixed, appendage)),
            Err(error) => Err(error.kind.of(message)),
        }
    }

    /// Appends a whole message; the length of its appendage is filled in here.
    #[inline]
    pub fn append<const N: usize>(self, mut fixed: [u8; N], appendage: Appendage<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => out.extend_from_slice(&fixed),
            Self::Appendage => {
                appendage.declared().write(&mut fixed, N - self.bytes());
                out.extend_from_slice(&fixed);
                out.extend_from_slice(appendage.bytes());
            }
        }
    }
}

/// Declares a message: its type, the length of its fixed part, the part that follows, and `field: type = offset`.
macro_rules! layout {
    ($(#[$meta:meta])* $visibility:vis struct $name:ident ($kind:literal, $bytes:literal, $tail:ident) {
        $($(#[$about:meta])* $field:ident: $type:ty = $at:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visibility struct $name {
            $($(#[$about])* pub $field: $type,)+
        }

        impl $name {
            /// The first byte of the message.
            pub const KIND: u8 = $kind;
            /// Bytes of the message without an appendage, including the appendage's length field.
            pub const BYTES: usize = $bytes;

            pub(super) fn decode(
                message: &[u8],
            ) -> Result<(Self, $crate::ouch::Appendage<'_>), $crate::ouch::DecodeError> {
                use $crate::ouch::layout::{Field, Tail};
                let (fixed, appendage) = Tail::$tail.split::<{ Self::BYTES }>(message)?;
                Ok((Self { $($field: <$type as Field>::read(fixed, $at),)+ }, appendage))
            }

            pub(super) fn encode(&self, appendage: $crate::ouch::Appendage<'_>, out: &mut Vec<u8>) {
                use $crate::ouch::layout::{Field, Tail};
                let mut fixed = [0; Self::BYTES];
                Field::write(Self::KIND, &mut fixed, 0);
                $(Field::write(self.$field, &mut fixed, $at);)+
                Tail::$tail.append(fixed, appendage, out);
            }
        }

        // Each field starts where the one before it ends, and the last one ends the message.
        const _: () = {
            use $crate::ouch::layout::{Field, Tail};
            let mut end = 1;
            $(
                assert!(end == $at, "a field begins where the one before it ends");
                end += <$type as Field>::BYTES;
            )+
            assert!(end + Tail::$tail.bytes() == $bytes, "the fields fill the message");
        };
    };
}

pub(super) use layout;
