//! Recovery: what the relay, the dead-letter consumer and the books make of crashes, outages and races.

mod books_hold;
mod dead_letters;
mod matrix;
mod poison;
mod relay_finds;
mod relay_sends;
