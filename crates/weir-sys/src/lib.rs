//! Thin safe wrappers over the kernel interfaces Weir uses.
pub mod affinity;
pub mod child;
pub mod clock;
pub mod readiness;
pub mod region;
pub mod ring;
