//! The consumers: one effect per business key, deferral instead of redelivery, groups in order.

mod batches;
mod deferral;
mod faults;
mod limits;
mod outcomes;
mod owners;
