//! What a caller asks for through the control API, checked: a wallet, a funding, a job with its hold.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::{IdError, JobId, ModelId, Provider, ProviderRef, Reference, TenantId, WalletId};
use crate::job::{Job, Overage, Policies};
use crate::ledger::{Balance, BalanceDelta};
use crate::money::{Currency, MAX_MICROS, Micros, MoneyError};
use crate::operation::hex_sha256;
use crate::postpaid::{self, Postpaid};
use crate::price::PriceBook;
use crate::profile::Profiles;

/// Labels of a job at most.
pub const MAX_METADATA: usize = 10;
/// Bytes of a label's name or value at most.
pub const MAX_METADATA_BYTES: usize = 100;
/// Bytes of a key that an index sorts by (DynamoDB's limit of a sort key).
pub const MAX_KEY_BYTES: usize = 1_024;

/// Why a request is refused before anything is read or written; the text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// An id is empty or too long.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The request id is empty or too long.
    #[error("request_id: {0}")]
    RequestId(IdError),
    /// An amount or currency is malformed.
    #[error("{field}: {source}")]
    Money {
        /// The field.
        field: &'static str,
        /// What is wrong.
        source: MoneyError,
    },
    /// No profile of this name.
    #[error("provider {0:?} has no profile in providers.toml")]
    UnknownProvider(String),
    /// No price of this model.
    #[error("model {0:?} has no effective price in prices.toml")]
    UnknownModel(String),
    /// The profile does not serve the tenant.
    #[error("provider {provider:?} does not serve tenant {tenant:?}: see `tenants` in its profile")]
    TenantNotAllowed {
        /// The provider.
        provider: String,
        /// The tenant.
        tenant: String,
    },
    /// Tenant and job together are too long for a key, once escaped.
    #[error("tenant and job together have {0} bytes in their key, '%' and '|' counting three: at most {MAX_KEY_BYTES}")]
    KeyTooLong(usize),
    /// A postpaid wallet names a payment provider that the file does not have.
    #[error("postpaid.to: there is no table [charges.{0}] in providers.toml: add it, or correct the name")]
    UnknownCharges(String),
    /// A customer or payment method that no provider would know.
    #[error("postpaid.{0}: give the payment provider's id, 1 to {max} plain characters", max = postpaid::MAX_ID_BYTES)]
    PaymentId(&'static str),
    /// A job on a prepaid wallet without its hold.
    #[error("missing field `hold`: give what the wallet reserves for the job, such as \"5.00\"")]
    HoldMissing,
    /// A wallet that authorises, at a payment provider whose table does not say how.
    #[error("postpaid.authorise: [charges.{0}] in providers.toml has no `authorise`: add it, or leave it out here")]
    NoAuthorise(String),
    /// A job on a wallet that authorises, without an amount.
    #[error(
        "missing field `hold`: wallet {0:?} authorises each job at its payment provider: give the most that it may cost"
    )]
    AuthoriseMissing(String),
    /// Less is to be authorised than can be charged.
    #[error("hold: what is authorised has to be at least {0}, the least that this wallet is charged")]
    AuthoriseTooLittle(Micros),
    /// A hold on a postpaid wallet.
    #[error("hold: wallet {0:?} is postpaid, so nothing is reserved: leave `hold` out, or give \"0.00\"")]
    HoldOnPostpaid(String),
    /// Too many or too long labels.
    #[error("metadata: at most {MAX_METADATA} labels of 1 to {MAX_METADATA_BYTES} bytes each")]
    Metadata,
}

fn money(field: &'static str) -> impl Fn(MoneyError) -> RequestError {
    move |source| RequestError::Money { field, source }
}

/// Body of `PUT /control/tenants/{tenant}/wallets/{wallet}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateWallet {
    /// ISO 4217 code.
    pub currency: String,
    /// How far available may fall below zero; when absent "0.00", and of a postpaid wallet no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit_limit: Option<String>,
    /// Set where its jobs are charged afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postpaid: Option<AskedPostpaid>,
}

/// How a postpaid wallet is charged, as a caller says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedPostpaid {
    /// A table `[charges.NAME]` of providers.toml.
    pub to: String,
    /// The provider's id of the customer, `cus_...`.
    pub customer: String,
    /// The provider's id of what is charged, `pm_...`.
    pub payment_method: String,
    /// Nothing below it is charged; "0.00" when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_charge: Option<String>,
    /// True where each job's `hold` is authorised at the payment provider when it is submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub authorise: bool,
}

impl AskedPostpaid {
    fn checked(&self, currency: Currency, profiles: &Profiles) -> Result<Postpaid, RequestError> {
        let unknown = || RequestError::UnknownCharges(self.to.chars().take(40).collect());
        let charges = profiles.charges(&self.to).ok_or_else(unknown)?;
        for (field, id) in [("customer", &self.customer), ("payment_method", &self.payment_method)] {
            let plain = id.bytes().all(|b| b.is_ascii_graphic());
            if id.is_empty() || id.len() > postpaid::MAX_ID_BYTES || !plain {
                return Err(RequestError::PaymentId(field));
            }
        }
        if self.authorise && charges.authorise.is_none() {
            return Err(RequestError::NoAuthorise(charges.name.clone()));
        }
        let minimum = Micros::parse(self.minimum_charge.as_deref().unwrap_or("0")).and_then(Micros::non_negative);
        Ok(Postpaid {
            to: self.to.clone(),
            customer: self.customer.clone(),
            payment_method: self.payment_method.clone(),
            minor_digits: profiles.minor_digits(charges, currency),
            minimum: minimum.map_err(money("postpaid.minimum_charge"))?,
            authorise: self.authorise,
        })
    }
}

impl CreateWallet {
    /// The new wallet.
    ///
    /// # Errors
    /// [`RequestError`] naming the field.
    pub fn balance(&self, profiles: &Profiles, now_ms: i64) -> Result<Balance, RequestError> {
        let currency = Currency::parse(&self.currency).map_err(money("currency"))?;
        let limit = match (&self.credit_limit, &self.postpaid) {
            (Some(text), _) => Micros::parse(text).and_then(Micros::non_negative),
            (None, Some(_)) => Micros::new(MAX_MICROS),
            (None, None) => Ok(Micros::ZERO),
        };
        let postpaid = self.postpaid.as_ref().map(|asked| asked.checked(currency, profiles)).transpose()?;
        Ok(Balance { postpaid, ..Balance::new(currency, limit.map_err(money("credit_limit"))?, now_ms) })
    }
}

/// Body of `POST /control/tenants/{tenant}/wallets/{wallet}/fund`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fund {
    /// Decimal string in major units, more than zero.
    pub amount: String,
    /// The idempotency key.
    pub reference: String,
    /// True for the money that a wallet brings along from another system.
    #[serde(default)]
    pub opening_balance: bool,
}

impl Fund {
    /// The amount and its key.
    ///
    /// # Errors
    /// [`RequestError`] naming the field.
    pub fn check(&self) -> Result<(Micros, Reference), RequestError> {
        let amount = Micros::parse(&self.amount).and_then(Micros::positive).map_err(money("amount"))?;
        Ok((amount, Reference::new(self.reference.as_str())?))
    }
}

/// Body of `PUT /control/tenants/{tenant}/jobs/{job}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitJob {
    /// Slug of the provider that runs it.
    pub provider: String,
    /// The provider's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_job_ref: Option<String>,
    /// The priced model.
    pub model: String,
    /// Who pays.
    pub wallet: String,
    /// What is reserved, a decimal string in major units; left out where the wallet is postpaid, unless it authorises: then
    /// what is authorised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,
    /// One request that led to several jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Bounded labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl SubmitJob {
    /// The job with its pinned price and policies.
    ///
    /// # Errors
    /// [`RequestError`] naming the field.
    pub fn job(
        &self, tenant: TenantId, job: JobId, profiles: &Profiles, prices: &PriceBook, now_ms: i64,
    ) -> Result<Job, RequestError> {
        let key_bytes = crate::keys::job_pk(&tenant, &job).len();
        if key_bytes > MAX_KEY_BYTES {
            return Err(RequestError::KeyTooLong(key_bytes));
        }
        let hold = self.hold.as_deref().unwrap_or("0");
        let hold = Micros::parse(hold).and_then(Micros::non_negative).map_err(money("hold"))?;
        let unknown = || RequestError::UnknownProvider(self.provider.chars().take(40).collect());
        let profile = profiles.get(&self.provider).ok_or_else(unknown)?;
        if !profile.serves(&tenant) {
            let (provider, tenant) = (self.provider.clone(), tenant.to_string());
            return Err(RequestError::TenantNotAllowed { provider, tenant });
        }
        let model = ModelId::new(self.model.as_str())?;
        let price = prices.pin(&model, &tenant, now_ms).ok_or_else(|| RequestError::UnknownModel(model.to_string()))?;
        let label = |text: &String| (1..=MAX_METADATA_BYTES).contains(&text.len());
        if self.metadata.len() > MAX_METADATA || !self.metadata.iter().all(|(k, v)| label(k) && label(v)) {
            return Err(RequestError::Metadata);
        }
        let request_id = self.request_id.as_deref().map(Reference::new).transpose();
        let request_id = request_id.map_err(RequestError::RequestId)?;
        Ok(Job {
            tenant,
            job,
            provider: Provider::new(self.provider.as_str())?,
            provider_ref: self.provider_job_ref.as_deref().map(ProviderRef::new).transpose()?,
            wallet: WalletId::new(self.wallet.as_str())?,
            hold,
            authorised: Micros::ZERO, // the wallet says
            price: price.clone(),
            policies: profile.policies_for(&model),
            created_ms: now_ms,
            expires_ms: now_ms.saturating_add(profile.hold_life_ms),
            request_hash: self.request_hash(hold),
            request_id: request_id.map(String::from),
            metadata: self.metadata.clone(),
        })
    }

    /// The job as its wallet takes it: on a postpaid one without a hold and on the terms that follow from that. Where the
    /// wallet authorises, what was asked as the hold is rounded up to what its payment provider can hold.
    ///
    /// # Errors
    /// [`RequestError`] where the hold does not fit the wallet.
    pub fn on(&self, balance: &Balance, job: Job) -> Result<Job, RequestError> {
        match &balance.postpaid {
            None if self.hold.is_none() => Err(RequestError::HoldMissing),
            None => Ok(job),
            Some(terms) if terms.authorise => {
                if self.hold.is_none() {
                    return Err(RequestError::AuthoriseMissing(job.wallet.to_string()));
                }
                let authorised = terms.covering(job.hold).map_err(money("hold"))?;
                let least = terms.least_charge().map_err(money("hold"))?;
                if authorised < least {
                    return Err(RequestError::AuthoriseTooLittle(least));
                }
                let policies = Policies { overage: Overage::Available, extendable: false, ..job.policies };
                Ok(Job { hold: Micros::ZERO, authorised, policies, ..job })
            }
            Some(_) if job.hold != Micros::ZERO => Err(RequestError::HoldOnPostpaid(job.wallet.to_string())),
            Some(_) => {
                let policies = Policies { overage: Overage::Available, extendable: false, ..job.policies };
                Ok(Job { policies, ..job })
            }
        }
    }

    /// Same content, same hash: by the meaning of the hold ("5" and "5.00" are one), not its spelling.
    fn request_hash(&self, hold: Micros) -> String {
        let same = Self { hold: Some(hold.to_string()), ..self.clone() };
        hex_sha256(&serde_json::to_string(&same).unwrap_or_default()) // plain fields: cannot fail
    }
}

/// What a hold does to the wallet's balance. It needs no sequence condition: it is no entry.
pub fn hold_delta(job: &Job, balance: &Balance) -> BalanceDelta {
    BalanceDelta {
        available: job.hold.negated(),
        held: job.hold,
        carried: Micros::ZERO,
        need: job.hold,
        advance: None,
        currency: job.currency(),
        credit_limit: balance.credit_limit,
        low: Box::default(),
    }
}
