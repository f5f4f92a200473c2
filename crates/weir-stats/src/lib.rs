//! Statistics for paired experiments; pure.
