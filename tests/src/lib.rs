//! The one integration test crate: its scenarios are in `it/`, named after the promise or the case
//! that they check. The world they run in is `local::world`.
