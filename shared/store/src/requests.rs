//! Control requests: what was asked, by whom and why. Inserted in the transaction of what they asked
//! for, and never changed: the reference is the idempotency key.

use aws_sdk_dynamodb::types::TransactWriteItem;
use domain::ids::{Reference, TenantId};
use domain::keys;
use serde::{Deserialize, Serialize};

use crate::item::{decode, encode};
use crate::{Store, StoreError};

/// One request (`Q·kind·tenant·subject·reference`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// `cancel`, `extend`, `adjust`, `reverse`.
    #[serde(rename = "kd")]
    pub kind: String,
    /// Whose job.
    #[serde(rename = "tn")]
    pub tenant: TenantId,
    /// The job.
    #[serde(rename = "sj")]
    pub subject: String,
    /// The caller's key.
    #[serde(rename = "rn")]
    pub reference: Reference,
    /// The caller's identity from the request context.
    #[serde(rename = "ac")]
    pub actor: String,
    /// Why.
    #[serde(rename = "rs")]
    pub reason: String,
    /// Tells the same request from another one.
    #[serde(rename = "hs")]
    pub content_hash: String,
    /// When, Unix milliseconds.
    #[serde(rename = "cr")]
    pub created_ms: i64,
}

impl ControlRequest {
    fn pk(&self) -> String {
        keys::request_pk(&self.kind, &self.tenant, &self.subject, &self.reference)
    }
}

impl Store {
    /// The recorded request of the same kind, subject and reference, strongly consistent.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn get_request(&self, like: &ControlRequest) -> Result<Option<ControlRequest>, StoreError> {
        let item = self.get(&self.names.events, &like.pk(), keys::REQUEST).await?;
        item.map(|item| decode("control request", item)).transpose()
    }

    pub(crate) fn request_action(&self, request: &ControlRequest) -> Result<TransactWriteItem, StoreError> {
        let item = encode("control request", request, &request.pk(), keys::REQUEST)?;
        self.put_action(&self.names.events, item)
    }
}
