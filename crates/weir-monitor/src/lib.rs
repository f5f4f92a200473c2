//! The live monitor of running processes.
