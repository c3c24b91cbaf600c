//! Reconciliation through the whole stack: each class of fact is planted behind the program's back, found as exactly one
//! case with the right action, applied, and not found again.

mod classes;
mod costs;
mod decided;
mod intents;
mod limits;
mod lists;
mod passes;
mod plant;
mod runs;
mod wallets;
