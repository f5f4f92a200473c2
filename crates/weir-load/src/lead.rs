//! Who decides when a load starts and when its window opens: this process, or the coordinator of several generators.

use std::time::Duration;

use weir_record::load::parts::{PartAnswer, PartOrder, PartPhase};

use crate::progress::Ticker;

/// The coordinator of several generators, as one of them sees it.
pub trait PartControl {
    /// The next order, after a wait of at most this long. The end of the orders is [`PartOrder::Stop`].
    fn next(&mut self, longest: Duration) -> Option<PartOrder>;

    /// Answers the last order.
    fn answer(&mut self, answer: PartAnswer);
}

/// Who decides.
pub(crate) enum Lead<'a> {
    /// This process, which shows its progress.
    Own(Ticker<'a>),
    /// A coordinator.
    Other(Led<'a>),
}

impl Lead<'_> {
    /// The state of a led generator.
    pub(crate) fn led(&mut self) -> Option<&mut LedState> {
        match self {
            Self::Own(_) => None,
            Self::Other(led) => Some(&mut led.state),
        }
    }

    /// Whether a coordinator ended the load.
    pub(crate) fn has_stopped(&self) -> bool {
        matches!(self, Self::Other(Led { state: LedState { is_stopped: true, .. }, .. }))
    }

    /// Waits for at most this long. Orders are taken meanwhile; `answer` makes the answer of those that need no work.
    pub(crate) fn pause(&mut self, longest: Duration, answer: impl FnOnce(&LedState) -> PartAnswer) {
        let Self::Other(Led { control, state }) = self else {
            std::thread::sleep(longest);
            return;
        };
        match control.next(longest) {
            None => {}
            Some(order @ (PartOrder::Start | PartOrder::Open)) => state.ordered = Some(order),
            Some(order @ (PartOrder::Look | PartOrder::Stop)) => {
                state.is_stopped |= order == PartOrder::Stop;
                control.answer(answer(state));
            }
        }
    }

    /// Takes an order that is to be carried out now.
    pub(crate) fn take(&mut self, order: PartOrder) -> bool {
        let Self::Other(Led { state, .. }) = self else { return false };
        let is_it = state.ordered == Some(order);
        if is_it {
            state.ordered = None;
        }
        is_it
    }

    /// Says that an order was carried out.
    pub(crate) fn carried_out(&mut self, phase: PartPhase) {
        if let Self::Other(Led { control, state }) = self {
            state.phase = phase;
            control.answer(PartAnswer { phase, ..PartAnswer::default() });
        }
    }
}

/// A generator under a coordinator.
pub(crate) struct Led<'a> {
    control: &'a mut dyn PartControl,
    state: LedState,
}

impl<'a> Led<'a> {
    pub(crate) fn by(control: &'a mut dyn PartControl) -> Self {
        Self { control, state: LedState::default() }
    }
}

/// What the coordinator may ask for at any moment.
#[derive(Debug, Default)]
pub(crate) struct LedState {
    pub(crate) phase: PartPhase,
    pub(crate) is_steady: bool,
    /// An order that is not carried out yet.
    pub(crate) ordered: Option<PartOrder>,
    is_stopped: bool,
}
