//! A client's message: decoded once, and passed on with its bytes.

use weir_proto::ouch::{ClientOrderId, DecodeError, Inbound};

/// A client's message: the bytes, which are journaled and sent on, and what they say. Everything behind the session
/// asks it; no other code reads the bytes.
#[derive(Clone, Copy, Debug)]
pub struct ClientMessage<'a> {
    raw: &'a [u8],
    inbound: Inbound<'a>,
}

impl<'a> ClientMessage<'a> {
    /// Decodes one whole message.
    #[inline]
    pub fn decode(raw: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self { raw, inbound: Inbound::decode(raw)? })
    }

    /// Encodes a message; `raw` then has its bytes.
    pub fn encode(inbound: Inbound<'a>, raw: &'a mut Vec<u8>) -> Self {
        raw.clear();
        inbound.encode(raw);
        Self { raw, inbound }
    }

    /// All bytes, as received.
    #[inline]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// What it says.
    #[inline]
    pub fn inbound(&self) -> &Inbound<'a> {
        &self.inbound
    }

    /// The order that it is about: the new one of an enter and a replace. 0 for an account query.
    #[inline]
    pub fn user_ref_num(&self) -> u32 {
        self.inbound.user_ref_num().unwrap_or(0)
    }

    /// Whether it creates an order: an enter or a replace.
    #[inline]
    pub fn is_order(&self) -> bool {
        matches!(self.inbound, Inbound::Enter(..) | Inbound::Replace(..))
    }

    /// The number of the order that it creates.
    #[inline]
    pub fn new_number(&self) -> Option<u32> {
        self.inbound.user_ref_num().filter(|_| self.is_order())
    }

    /// The earlier order that it concerns: the original of a replace, or the order of a cancel or a modification.
    #[inline]
    pub fn earlier_order(&self) -> Option<u32> {
        match &self.inbound {
            Inbound::Replace(replace, _) => Some(replace.original_user_ref_num),
            Inbound::Cancel(cancel) => Some(cancel.user_ref_num),
            Inbound::Modify(modify) => Some(modify.user_ref_num),
            Inbound::Enter(..) | Inbound::AccountQuery => None,
        }
    }

    /// The client's name for the new order; blanks if there is none.
    pub fn client_order_id(&self) -> ClientOrderId {
        self.inbound.client_order_id().unwrap_or(ClientOrderId::BLANK)
    }
}
