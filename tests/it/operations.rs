//! The operator's side: reviews and what is decided on them, replays, pause switches, status.

mod decisions;
mod overage;
mod pauses;
mod replays;
mod reviews;
pub mod scene;
mod status;
