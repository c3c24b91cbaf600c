//! The money tests: every phase of a job's money through the whole stack, against numbers that were
//! worked out by hand and against an independent model.
//!
//! [`model`] and [`rules`] say what must happen, [`books`] reads the stores as an auditor would and checks
//! every promise about money, [`bench`] runs a world beside the model. On them stand the table of all
//! ordered [`pairs`] and the random [`walk`]. The other files name one situation per test, in a [`scene`].

mod batches;
mod bench;
mod books;
mod fund_wallet;
mod model;
mod pairs;
mod phases;
mod races;
mod rules;
pub mod scene;
mod values;
mod walk;
