//! The pure core: what an event is, what it asks for, and what may happen because of it.
//!
//! Nothing here does I/O or knows AWS, a clock or randomness: those are passed in as values. The
//! functions in `functions/` read records through `store`, call one of the `decide` functions here,
//! and write what it answers. So every rule of money and order can be tested without a database.

pub mod audit;
pub mod authorisation;
pub mod board;
pub mod booking;
pub mod charge;
pub mod config;
pub mod decide;
pub mod envelope;
pub mod event;
pub mod fetch;
pub mod ids;
pub mod intent;
pub mod job;
pub mod json;
pub mod keys;
pub mod ledger;
pub mod limits;
pub mod message;
pub mod money;
pub mod operation;
pub mod outcome;
pub mod own;
pub mod pause;
pub mod planted;
pub mod postpaid;
pub mod price;
mod price_book;
pub mod profile;
pub mod receipt;
pub mod reconcile;
pub mod rejected;
pub mod replay;
pub mod review;
pub mod status;
pub mod submit;
pub mod time;
pub mod told;

/// Version of the stored records; every item carries it as `sv`.
pub const SCHEMA_VERSION: u32 = 1;
