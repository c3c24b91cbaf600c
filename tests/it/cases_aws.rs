//! Cases A4, A6 and A7 of the field, as they reach the whole stack; each test carries its case's id.
//! A5 is with the consumers and the dead letters, A10 with the relay.

mod dynamodb;
mod lambda;
mod reasons;
