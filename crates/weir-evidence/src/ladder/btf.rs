//! The kernel's type information (`Documentation/bpf/btf.rst`), as far as needed to find a member of a structure and
//! the arguments of a tracepoint. Pure; invalid bytes only cause lookups to find nothing.

const MAGIC: u16 = 0xeb9f;
/// Length of a type's header.
const HEAD_BYTES: usize = 12;

const POINTER: u32 = 2;
const STRUCTURE: u32 = 4;
const TYPEDEF: u32 = 8;
const MODIFIERS: [u32; 4] = [9, 10, 11, 18];
const PROTOTYPE: u32 = 13;

/// Types by their numbers.
#[derive(Debug)]
pub(super) struct Types<'b> {
    strings: &'b [u8],
    /// Each from its header on; the first one has number 1.
    types: Vec<&'b [u8]>,
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// Bytes after the header of a type of this kind.
fn rest_bytes(kind: u32, members: usize) -> Option<usize> {
    Some(match kind {
        1 | 14 | 17 => 4,
        2 | 7..=12 | 16 | 18 => 0,
        3 => 12,
        4 | 5 | 15 | 19 => 12 * members,
        6 | 13 => 8 * members,
        _ => return None,
    })
}

impl<'b> Types<'b> {
    pub(super) fn parse(bytes: &'b [u8]) -> Option<Self> {
        if bytes.get(..2)? != MAGIC.to_ne_bytes() {
            return None;
        }
        let field = |at| word(bytes, at).map(|value| value as usize);
        let (head, types_at, types_bytes) = (field(4)?, field(8)?, field(12)?);
        let (strings_at, strings_bytes) = (field(16)?, field(20)?);
        let part = |at: usize, length: usize| {
            let begin = head.checked_add(at)?;
            bytes.get(begin..begin.checked_add(length)?)
        };
        let mut left = part(types_at, types_bytes)?;
        let mut types = Vec::new();
        while !left.is_empty() {
            let (kind, members) = (kind(left)?, members(left)?);
            let length = HEAD_BYTES + rest_bytes(kind, members)?;
            types.push(left.get(..length)?);
            left = &left[length..];
        }
        Some(Self { strings: part(strings_at, strings_bytes)?, types })
    }

    /// Offset of a structure's member, in bytes.
    pub(super) fn member_offset(&self, structure: &str, member: &str) -> Option<u32> {
        let found = self.named(STRUCTURE, structure)?;
        let bits = found[HEAD_BYTES..].chunks_exact(12).find_map(|one| {
            let is_it = self.text(word(one, 0)?) == Some(member);
            word(one, 8).filter(|_| is_it)
        })?;
        // The offset is in the lower part if the upper part holds the length of a bit field.
        let bits = if word(found, 4)? >> 31 == 1 { bits & 0x00ff_ffff } else { bits };
        (bits % 8 == 0).then_some(bits / 8)
    }

    /// The structure that an argument points to, for the function type with this name.
    pub(super) fn parameter_structure(&self, name: &str, index: usize) -> Option<&'b str> {
        let pointer = self.aimed(word(self.named(TYPEDEF, name)?, 8)?, POINTER)?;
        let prototype = self.aimed(word(pointer, 8)?, PROTOTYPE)?;
        let parameter = prototype[HEAD_BYTES..].chunks_exact(8).nth(index)?;
        let pointer = self.aimed(word(parameter, 4)?, POINTER)?;
        let structure = self.aimed(word(pointer, 8)?, STRUCTURE)?;
        self.text(word(structure, 0)?)
    }

    /// The type with this number after removing its modifiers, if it is of this kind.
    fn aimed(&self, number: u32, wanted: u32) -> Option<&'b [u8]> {
        let mut number = number;
        // Bounded, because invalid types could form a cycle.
        for _ in 0..self.types.len() {
            let found = *self.types.get((number as usize).checked_sub(1)?)?;
            match kind(found)? {
                it if it == wanted => return Some(found),
                it if MODIFIERS.contains(&it) => number = word(found, 8)?,
                _ => return None,
            }
        }
        None
    }

    fn named(&self, wanted: u32, name: &str) -> Option<&'b [u8]> {
        let is_it = |found: &&&[u8]| {
            kind(found) == Some(wanted) && word(found, 0).and_then(|at| self.text(at)) == Some(name)
        };
        self.types.iter().find(is_it).copied()
    }

    fn text(&self, at: u32) -> Option<&'b str> {
        let rest = self.strings.get(at as usize..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

fn kind(head: &[u8]) -> Option<u32> {
    Some(word(head, 4)? >> 24 & 0x1f)
}

fn members(head: &[u8]) -> Option<usize> {
    Some((word(head, 4)? & 0xffff) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, a structure with two members, a `const` pointer to it, and a function with that argument.
    fn described() -> Vec<u8> {
        let strings = b"\0int\0request\0flags\0opcode\0event\0";
        let at = |name: &str| {
            let mut whole = name.as_bytes().to_vec();
            whole.push(0);
            strings.windows(whole.len()).position(|part| part == whole).expect("it is there") as u32
        };
        let head = |name: u32, kind: u32, members: u32, value: u32| [name, kind << 24 | members, value];
        let mut types: Vec<u32> = Vec::new();
        types.extend(head(at("int"), 1, 0, 4));
        types.push(32);
        types.extend(head(at("request"), STRUCTURE, 2, 16));
        types.extend([at("flags"), 1, 0, at("opcode"), 1, 8 * 12]);
        types.extend(head(0, 10, 0, 2));
        types.extend(head(0, POINTER, 0, 3));
        types.extend(head(0, PROTOTYPE, 2, 0));
        types.extend([0, 1, 0, 4]);
        types.extend(head(0, POINTER, 0, 5));
        types.extend(head(at("event"), TYPEDEF, 0, 6));
        let types_bytes = types.len() as u32 * 4;
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in [24, 0, types_bytes, types_bytes, strings.len() as u32] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(types.into_iter().flat_map(u32::to_ne_bytes));
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn a_member_and_what_an_event_is_given_are_found_by_their_names() {
        let bytes = described();
        let types = Types::parse(&bytes).expect("it is whole");
        assert_eq!(types.member_offset("request", "opcode"), Some(12));
        assert_eq!(types.member_offset("request", "flags"), Some(0));
        assert_eq!((types.member_offset("request", "x"), types.member_offset("int", "flags")), (None, None));
        assert_eq!(types.parameter_structure("event", 1), Some("request"));
        assert_eq!(
            (types.parameter_structure("event", 0), types.parameter_structure("event", 2)),
            (None, None)
        );
        assert_eq!(types.parameter_structure("request", 1), None);
    }

    #[test]
    fn no_bytes_do_harm() {
        let bytes = described();
        for cut in 0..bytes.len() {
            if let Some(types) = Types::parse(&bytes[..cut]) {
                let _ = (types.member_offset("request", "opcode"), types.parameter_structure("event", 1));
            }
        }
        for at in 0..bytes.len() {
            let mut odd = bytes.clone();
            odd[at] ^= 0xff;
            if let Some(types) = Types::parse(&odd) {
                let _ = (types.member_offset("request", "opcode"), types.parameter_structure("event", 1));
            }
        }
    }
}
