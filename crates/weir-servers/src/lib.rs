//! Protocol cores driven by the engine.
