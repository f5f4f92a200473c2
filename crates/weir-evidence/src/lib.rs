//! What the kernel did: counters, noise, machine readings, fingerprint.
