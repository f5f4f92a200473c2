//! Tokens: the owner of a completion, as one number that the kernel hands back.
//!
//! The upper eight bits are the kind, the next 24 the generation of the slot, the lower 32 its index. Pure.

use crate::slab::SlotId;

/// The owner of a completion; the upper eight bits of its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With the buffer size it was armed with.
    Receive(u8),
    /// Data has arrived for a receive that takes its buffer only then.
    Readable,
    Send,
    /// A send that reads the bytes in place; its slot is one of the zero-copy sends.
    ZeroCopy,
    Accept,
    Connect,
    Cancel,
    Wake,
    /// A socket has room for more of a file.
    Room,
    /// A file operation.
    File,
    /// A file is closed.
    CloseFile,
    /// A message to another ring.
    Message,
    /// A message from another ring: its arrival was its effect.
    Woken,
}

impl Kind {
    pub(super) fn token(self, id: SlotId) -> u64 {
        let kind: u64 = match self {
            Kind::Receive(class) => 0x10 | u64::from(class),
            Kind::Send => 1,
            Kind::Accept => 2,
            Kind::Connect => 3,
            Kind::Cancel => 4,
            Kind::Wake => 5,
            Kind::Readable => 6,
            Kind::Room => 7,
            Kind::File => 8,
            Kind::CloseFile => 9,
            Kind::Message => 10,
            Kind::Woken => 11,
            Kind::ZeroCopy => 12,
        };
        kind << 56 | u64::from(id.generation) << 32 | u64::from(id.index)
    }

    #[inline]
    pub(super) fn split(token: u64) -> (Option<Kind>, SlotId) {
        let kind = match (token >> 56) as u8 {
            1 => Some(Kind::Send),
            2 => Some(Kind::Accept),
            3 => Some(Kind::Connect),
            4 => Some(Kind::Cancel),
            5 => Some(Kind::Wake),
            6 => Some(Kind::Readable),
            7 => Some(Kind::Room),
            8 => Some(Kind::File),
            9 => Some(Kind::CloseFile),
            10 => Some(Kind::Message),
            11 => Some(Kind::Woken),
            12 => Some(Kind::ZeroCopy),
            class @ 0x10..=0x1f => Some(Kind::Receive(class & 0xf)),
            _ => None,
        };
        (kind, SlotId { index: token as u32, generation: (token >> 32) as u32 & 0xff_ffff })
    }
}
