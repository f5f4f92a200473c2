//! The kernel's sixteen classes of operations: eight sizes in each direction.

use super::Direction;

/// Number of classes.
pub const CLASSES: usize = 16;

/// Power of two of the sectors, from 1 to 128 and more, and the direction. The kernel has no class for less than one
/// sector, the smallest request of a block device; here it counts as one.
pub fn size_class(bytes: u32, direction: Direction) -> usize {
    let power = (bytes >> 9).checked_ilog2().unwrap_or(0).min(7) as usize;
    let way = match direction {
        Direction::Read => 0,
        Direction::Write => 1,
    };
    2 * power + way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_the_kernel() {
        assert_eq!(size_class(4096, Direction::Read), 6);
        assert_eq!(size_class(1 << 20, Direction::Write), 15);
        assert_eq!(size_class(512, Direction::Read), 0);
        assert_eq!(size_class(3 * 512, Direction::Write), 3);
        assert_eq!(size_class(64 << 10, Direction::Read), 14);
        assert_eq!(size_class(0, Direction::Write), 1);
        assert_eq!(size_class(u32::MAX, Direction::Read), 14);
    }
}
