//! The billing consumer: each posting is ONE transaction over the entry, the balance and, where none
//! exists yet, the transition.
//!
//! Read the balance FIRST, then the ledger, then the job: the transaction's condition on the balance's
//! sequence then covers everything that was read after it. Between its reads and its commit it talks
//! to DynamoDB only. A batch for one wallet commits as one transaction, decided in `batch.rs`.

mod batch;
mod board;
mod create;
mod round;

use domain::decide::NoEffect;
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::operation::{Class, Consumer, OperationName};
use runtime::App;
use runtime::consumer::{Operate, Work, handle_batch};
use runtime::retry::Again;
use runtime::sqs::{BatchResponse, SqsEvent};
use store::StoreError;

use crate::round::Round;

/// Handles one batch of the billing queue.
pub async fn handle(app: &App, event: SqsEvent) -> BatchResponse {
    handle_batch(app, &event, &BillingConsumer).await
}

struct BillingConsumer;

impl Operate for BillingConsumer {
    const BATCHES: bool = true;

    async fn operate(&self, app: &App, work: &Work) -> Result<NoEffect, StoreError> {
        if work.key.name.consumer() != Consumer::Billing {
            let note = "this operation belongs to another consumer".to_owned();
            return Ok(NoEffect::Review(Class::Unreadable, note));
        }
        let mut again = Again::new(app);
        for _ in 0..DECIDE_AGAIN_LIMIT {
            let tried = match work.key.name {
                OperationName::FundWallet | OperationName::ReverseFunding => round::wallet(app, work).await,
                OperationName::PaymentFailed => round::payment_failed(app, work).await,
                OperationName::CreateJob => create::job(app, work).await,
                _ => round::job(app, work).await,
            };
            match tried {
                Ok(Round::Verdict(verdict)) => return Ok(verdict),
                Ok(Round::DecideAgain) => {}
                Ok(Round::Conflict) => again.conflict("post").await?,
                Err(_) if domain::planted::on("any-error-taken-for-done") => return Ok(NoEffect::Done), // PLANTED
                Err(error) => again.after(error).await?,
            }
        }
        Ok(NoEffect::Wait(Class::Transient, "other writers won every time".to_owned()))
    }

    async fn together(&self, app: &App, works: &[Work]) -> Vec<usize> {
        batch::commit(app, works).await
    }
}
