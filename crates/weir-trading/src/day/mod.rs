//! The trading day: the sessions in which orders are taken, and what is due at a time.
//!
//! A [`Schedule`] says when sessions begin and end. A [`Standing`] says which one was begun or ended last; a journal
//! keeps it. [`due`] compares both with a time. What is due is carried out and recorded one step at a time, so a
//! program that ends in between goes on with the next step, and none is carried out twice.
//!
//! A clock may be set forward or back. A step is due when its time has come, however late. A session that was begun or
//! ended is not begun again when its time comes again.

mod schedule;
mod standing;

pub use schedule::{HOLIDAYS_MAX, OpenOrders, SESSIONS_MAX, Schedule, ScheduleError, SessionTimes, Slot};
pub use standing::{Due, Phase, Standing, due, takes_orders};
