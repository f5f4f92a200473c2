//! Factors, matrix, plan, launcher, collector, judge.
