//! The rule of `UserRefNum`: strictly increasing within an account, all day and over all its connections. One integer
//! distinguishes a new order from a retransmission; no search is needed.

/// The meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberVerdict {
    /// Above every earlier number: process the message.
    New,
    /// Not above the last one: a retransmission, to be ignored. Zero always is one; no message may carry it.
    Retransmission,
    /// The last number, `0xFFFF_FFFF`, is used up, and this one suggests that the client has started again at the
    /// bottom: reject it, because numbers do not wrap.
    Exhausted,
}

/// The numbers of one account. `0xFFFF_FFFF` is the last one; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserRefNums {
    last: u32,
    before: u32,
}

impl UserRefNums {
    /// Continues after `last`; 0 at the start of a day.
    pub fn new(last: u32) -> Self {
        Self { last, before: last }
    }

    /// The highest number processed, 0 if there is none.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// The answer to `Account Query`: the lowest number that would be new; 0 when none is left.
    pub fn next(&self) -> u32 {
        self.last.wrapping_add(1)
    }

    /// Judges a number without changing anything.
    pub fn peek(&self, number: u32) -> NumberVerdict {
        if number > self.last {
            return NumberVerdict::New;
        }
        // A client that resends messages in flight sends high numbers, one that has wrapped sends low ones. Splitting
        // the range in half keeps a resent order from being rejected while it is live.
        if self.last == u32::MAX && number < u32::MAX / 2 {
            NumberVerdict::Exhausted
        } else {
            NumberVerdict::Retransmission
        }
    }

    /// Judges a number; a new one is used up by the call.
    pub fn judge(&mut self, number: u32) -> NumberVerdict {
        let verdict = self.peek(number);
        if verdict == NumberVerdict::New {
            self.before = self.last;
            self.last = number;
        }
        verdict
    }

    /// The message with `number` was ignored in a way that does not use the number up. Only the number judged last
    /// can be released.
    pub fn release_number(&mut self, number: u32) {
        if self.last == number {
            self.last = self.before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise_and_may_leave_gaps() {
        let mut numbers = UserRefNums::new(0);
        assert_eq!(numbers.next(), 1);
        assert_eq!(numbers.judge(1), NumberVerdict::New);
        assert_eq!(numbers.judge(1), NumberVerdict::Retransmission, "the same again");
        assert_eq!(numbers.judge(9), NumberVerdict::New, "a gap upward");
        assert_eq!(numbers.judge(8), NumberVerdict::Retransmission, "lower after higher");
        assert_eq!((numbers.last(), numbers.next()), (9, 10));
    }

    #[test]
    fn zero_is_never_a_number() {
        assert_eq!(UserRefNums::new(0).judge(0), NumberVerdict::Retransmission);
        assert_eq!(UserRefNums::new(5).judge(0), NumberVerdict::Retransmission);
    }

    #[test]
    fn the_last_number_is_used_once_and_nothing_wraps() {
        let mut numbers = UserRefNums::new(u32::MAX - 1);
        assert_eq!(numbers.judge(u32::MAX), NumberVerdict::New);
        assert_eq!(numbers.next(), 0, "none is left");
        assert_eq!(numbers.judge(u32::MAX), NumberVerdict::Retransmission);
        assert_eq!(numbers.judge(u32::MAX - 3), NumberVerdict::Retransmission, "resent after a reconnect");
        for wrapped in [0, 1, 2, 1_000_000] {
            assert_eq!(numbers.judge(wrapped), NumberVerdict::Exhausted);
        }
        assert_eq!(numbers.last(), u32::MAX);
    }

    #[test]
    fn a_number_given_back_is_new_again_and_older_ones_are_not() {
        let mut numbers = UserRefNums::new(3);
        assert_eq!(numbers.judge(7), NumberVerdict::New);
        numbers.release_number(7);
        assert_eq!(numbers.last(), 3);
        assert_eq!(numbers.judge(5), NumberVerdict::New);
        numbers.release_number(3);
        assert_eq!(numbers.last(), 5, "only the last one");
    }
}
