//! Load that cannot lie: pacers, clients, workers, recorder.
