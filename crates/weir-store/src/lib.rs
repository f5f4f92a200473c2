//! Results store: every block on disk before the next starts.
