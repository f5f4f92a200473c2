//! Thin safe wrappers over the kernel interfaces Weir uses.
