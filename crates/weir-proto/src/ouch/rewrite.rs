//! Order numbers in messages, read and changed in place: the fields that a gateway needs in order to forward a
//! message.
//!
//! Nothing else in the message is checked, not even its length beyond the number. Setting a number returns whether
//! the message has a place for it, and changes nothing if it has none.

use super::{
    Accepted, AiqCanceled, BrokenTrade, Cancel, CancelPending, CancelReject, Canceled, Enter, Executed,
    Modified, Modify, PriorityUpdate, Rejected, Replace, Replaced, Restated,
};

const NUMBER_BYTES: usize = 4;

/// The order that an inbound message is about: the new one of an enter and a replace.
pub fn inbound_user_ref_num(message: &[u8]) -> Option<u32> {
    number(message, inbound_place(message)?)
}

/// Changes the number that [`inbound_user_ref_num`] reads.
pub fn set_inbound_user_ref_num(message: &mut [u8], user_ref_num: u32) -> bool {
    set(message, inbound_place(message), user_ref_num)
}

/// The order that an inbound replace replaces.
pub fn original_user_ref_num(message: &[u8]) -> Option<u32> {
    number(message, original_place(message, Replace::KIND, 1)?)
}

/// Changes the number that [`original_user_ref_num`] reads.
pub fn set_original_user_ref_num(message: &mut [u8], user_ref_num: u32) -> bool {
    set(message, original_place(message, Replace::KIND, 1), user_ref_num)
}

/// The order that an outbound message is about: the new one of a replaced.
pub fn outbound_user_ref_num(message: &[u8]) -> Option<u32> {
    number(message, outbound_place(message)?)
}

/// Changes the number that [`outbound_user_ref_num`] reads.
pub fn set_outbound_user_ref_num(message: &mut [u8], user_ref_num: u32) -> bool {
    set(message, outbound_place(message), user_ref_num)
}

/// The order that an outbound replaced message ends.
pub fn outbound_original_user_ref_num(message: &[u8]) -> Option<u32> {
    number(message, original_place(message, Replaced::KIND, 9)?)
}

/// Changes the number that [`outbound_original_user_ref_num`] reads.
pub fn set_outbound_original_user_ref_num(message: &mut [u8], user_ref_num: u32) -> bool {
    set(message, original_place(message, Replaced::KIND, 9), user_ref_num)
}

fn inbound_place(message: &[u8]) -> Option<usize> {
    match *message.first()? {
        Enter::KIND | Cancel::KIND | Modify::KIND => Some(1),
        Replace::KIND => Some(5),
        _ => None,
    }
}

fn outbound_place(message: &[u8]) -> Option<usize> {
    match *message.first()? {
        Accepted::KIND
        | Canceled::KIND
        | AiqCanceled::KIND
        | Executed::KIND
        | BrokenTrade::KIND
        | Rejected::KIND
        | CancelPending::KIND
        | CancelReject::KIND
        | PriorityUpdate::KIND
        | Modified::KIND
        | Restated::KIND => Some(9),
        Replaced::KIND => Some(13),
        _ => None,
    }
}

fn original_place(message: &[u8], kind: u8, place: usize) -> Option<usize> {
    (message.first() == Some(&kind)).then_some(place)
}

fn number(message: &[u8], place: usize) -> Option<u32> {
    message.get(place..)?.first_chunk::<NUMBER_BYTES>().map(|number| u32::from_be_bytes(*number))
}

fn set(message: &mut [u8], place: Option<usize>, number: u32) -> bool {
    let field = place
        .and_then(|place| message.get_mut(place..))
        .and_then(|rest| rest.first_chunk_mut::<NUMBER_BYTES>());
    match field {
        Some(field) => {
            *field = number.to_be_bytes();
            true
        }
        None => false,
    }
}
