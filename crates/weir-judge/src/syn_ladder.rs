//! When a kernel retransmits an unanswered SYN. Pure.
//!
//! A SYN that finds the accept queue full is silently dropped, and the client retransmits it after a while. These
//! times are the same for every connection of a kernel, so the duration of a connection attempt reveals a
//! retransmission.

use std::collections::BTreeMap;

use weir_record::machine::{SYN_LINEAR_TIMEOUTS, SYN_RETRIES};

/// First wait for an answer to a SYN, of every kernel (RFC 6298).
const FIRST_WAIT_S: u32 = 1;

/// Number of SYN retransmissions if the kernel does not report it.
const SYN_RETRIES_DEFAULT: u32 = 6;

/// Most steps of a ladder; both sysctls end at 127.
const STEPS_MAX: u32 = 254;

/// Latest step: the longest wait between two (`TCP_RTO_MAX`) is two minutes, and clients do not wait for two of them.
const STEP_S_MAX: u32 = 120;

/// Seconds after which an unanswered SYN is retransmitted, counted from the first SYN, according to the fingerprint's
/// limits.
///
/// From Linux 6.5 on, [`SYN_LINEAR_TIMEOUTS`] (4 by default) waits of a second precede the doubling waits: 1, 2, 3,
/// 4, 5, 7, 11 s. An older kernel doubles at once: 1, 3, 7, 15 s (`Documentation/networking/ip-sysctl.rst`). Empty if
/// the limits were not read from a kernel.
pub(crate) fn syn_ladder_s(limits: &BTreeMap<String, String>) -> Vec<u32> {
    let number = |name: &str| limits.get(name).and_then(|text| text.parse::<u32>().ok());
    let (linear, doubling) = (number(SYN_LINEAR_TIMEOUTS), number(SYN_RETRIES));
    if linear.is_none() && doubling.is_none() {
        return Vec::new();
    }
    let linear = linear.unwrap_or(0);
    let retries = linear.saturating_add(doubling.unwrap_or(SYN_RETRIES_DEFAULT)).min(STEPS_MAX);
    let mut ladder = Vec::new();
    let (mut at, mut wait) = (0_u32, FIRST_WAIT_S);
    for retry in 0..retries {
        at = at.saturating_add(wait);
        if at > STEP_S_MAX {
            break;
        }
        ladder.push(at);
        if retry >= linear {
            wait = wait.saturating_mul(2);
        }
    }
    ladder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn both_ladders_are_known() {
        let new = limits(&[(SYN_LINEAR_TIMEOUTS, "4"), (SYN_RETRIES, "6")]);
        assert_eq!(syn_ladder_s(&new), [1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
        let old = limits(&[(SYN_RETRIES, "6")]);
        assert_eq!(syn_ladder_s(&old), [1, 3, 7, 15, 31, 63]);
        assert_eq!(syn_ladder_s(&limits(&[(SYN_LINEAR_TIMEOUTS, "0"), (SYN_RETRIES, "3")])), [1, 3, 7]);
    }

    #[test]
    fn odd_limits_give_short_ladders_or_none() {
        assert_eq!(syn_ladder_s(&BTreeMap::new()), [0; 0]);
        assert_eq!(syn_ladder_s(&limits(&[(SYN_LINEAR_TIMEOUTS, "many"), (SYN_RETRIES, "")])), [0; 0]);
        assert_eq!(syn_ladder_s(&limits(&[(SYN_RETRIES, "0")])), [0; 0]);
        let most = syn_ladder_s(&limits(&[(SYN_LINEAR_TIMEOUTS, "4294967295"), (SYN_RETRIES, "4294967295")]));
        assert_eq!((most.len(), most.last()), (120, Some(&120)));
    }
}
