//! Values as bytes, one behind the other, for the files that are derived from a journal. Numbers have seven bits in
//! each byte, the low ones first; the highest bit says that another byte follows. Pure.

/// Longest encoded number.
const NUMBER_BYTES_MAX: u32 = 10;

/// Appends values.
#[derive(Debug, Default)]
pub(crate) struct FieldWriter(Vec<u8>);

impl FieldWriter {
    pub(crate) fn number(&mut self, value: impl Into<u64>) {
        let mut value = value.into();
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// How many values follow, or bytes.
    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    /// Bytes whose number the reader knows.
    pub(crate) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Bytes with their number.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.fixed(bytes);
    }

    /// Whether a value follows.
    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(flag.into());
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads values. Each is `None` if the bytes are not one.
#[derive(Debug)]
pub(crate) struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// `None` also if it does not fit into the type.
    pub(crate) fn number<T: TryFrom<u64>>(&mut self) -> Option<T> {
        let mut value = 0_u64;
        for place in 0..NUMBER_BYTES_MAX {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * place);
            if shifted >> (7 * place) != bits {
                return None;
            }
            value |= shifted;
            if byte & 0x80 == 0 {
                return T::try_from(value).ok();
            }
        }
        None
    }

    /// A number of values, each of at least this many bytes: never more than there can be.
    pub(crate) fn count(&mut self, bytes_each: usize) -> Option<usize> {
        let count = self.number()?;
        (count <= self.0.len() / bytes_each.max(1)).then_some(count)
    }

    pub(crate) fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count(1)?;
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.fixed()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_read_back(numbers in prop::collection::vec(any::<u64>(), 0..20), flag: bool, text: Vec<u8>) {
            let mut writer = FieldWriter::default();
            writer.count(numbers.len());
            numbers.iter().for_each(|number| writer.number(*number));
            writer.flag(flag);
            writer.bytes(&text);
            writer.fixed(b"end");
            let bytes = writer.into_bytes();
            let mut reader = FieldReader::new(&bytes);
            let count = reader.count(1).expect("that many");
            let found: Vec<u64> = (0..count).map(|_| reader.number().expect("a number")).collect();
            prop_assert_eq!(found, numbers);
            prop_assert_eq!((reader.flag(), reader.bytes()), (Some(flag), Some(&text[..])));
            prop_assert_eq!((reader.fixed(), reader.rest()), (Some(*b"end"), &b""[..]));
        }

        #[test]
        fn any_bytes_are_values_or_none(bytes: Vec<u8>) {
            let mut reader = FieldReader::new(&bytes);
            while reader.number::<u64>().is_some() {}
            let mut reader = FieldReader::new(&bytes);
            while reader.bytes().is_some() {}
        }
    }

    #[test]
    fn a_number_that_is_too_large_and_a_count_of_more_than_there_is_are_refused() {
        let mut writer = FieldWriter::default();
        writer.number(65_536_u32);
        let bytes = writer.into_bytes();
        assert_eq!(FieldReader::new(&bytes).number::<u16>(), None);
        assert_eq!(FieldReader::new(&bytes).number::<u32>(), Some(65_536));
        assert_eq!(FieldReader::new(&bytes).count(1), None);
        assert_eq!(FieldReader::new(&[0xff; 10]).number::<u64>(), None, "it has more than 64 bits");
        assert_eq!(FieldReader::new(&[2]).flag(), None);
    }
}
