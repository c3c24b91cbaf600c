//! The table `fields`: where the business fields stand, in the file's form and checked.

use serde::Deserialize;

use super::{Fields, Source};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFields {
    tenant: Option<String>,
    job: Option<String>,
    #[serde(rename = "ref")]
    provider_ref: Option<String>,
    model: Option<String>,
    wallet: Option<String>,
    currency: Option<String>,
    sequence: Option<String>,
    reference: Option<String>,
    usage: Option<String>,
    amount: Option<String>,
    minor_amount: Option<String>,
    minor_authorised: Option<String>,
    minor_captured: Option<String>,
    booking: Option<String>,
    version: Option<String>,
}

/// The fields of a table, with `base` where it names none.
pub(super) fn fields(raw: &RawFields, base: &Fields) -> Result<Fields, String> {
    let source = |text: &Option<String>, base: &Option<Source>| match text {
        Some(text) => text.parse().map(Some),
        None => Ok(base.clone()),
    };
    let usage = match &raw.usage {
        Some(text) => match text.parse()? {
            Source::Header(_) => return Err("usage is an object of the body".to_owned()),
            source => Some(source),
        },
        None => base.usage.clone(),
    };
    Ok(Fields {
        tenant: source(&raw.tenant, &base.tenant)?,
        job: source(&raw.job, &base.job)?,
        provider_ref: source(&raw.provider_ref, &base.provider_ref)?,
        model: source(&raw.model, &base.model)?,
        wallet: source(&raw.wallet, &base.wallet)?,
        currency: source(&raw.currency, &base.currency)?,
        sequence: source(&raw.sequence, &base.sequence)?,
        reference: source(&raw.reference, &base.reference)?,
        amount: source(&raw.amount, &base.amount)?,
        minor_amount: source(&raw.minor_amount, &base.minor_amount)?,
        minor_authorised: source(&raw.minor_authorised, &base.minor_authorised)?,
        minor_captured: source(&raw.minor_captured, &base.minor_captured)?,
        booking: source(&raw.booking, &base.booking)?,
        version: source(&raw.version, &base.version)?,
        usage,
    })
}

impl Fields {
    /// True where a delivery can lead to a job by them.
    pub(super) fn names_job(&self) -> bool {
        self.provider_ref.is_some() || (self.tenant.is_some() && self.job.is_some())
    }

    /// Those that are named, with their names in a profile.
    pub(super) fn named(&self) -> Vec<(&'static str, &Source)> {
        let all = [
            ("tenant", &self.tenant),
            ("job", &self.job),
            ("ref", &self.provider_ref),
            ("model", &self.model),
            ("wallet", &self.wallet),
            ("currency", &self.currency),
            ("sequence", &self.sequence),
            ("reference", &self.reference),
            ("usage", &self.usage),
            ("amount", &self.amount),
            ("minor_amount", &self.minor_amount),
            ("minor_authorised", &self.minor_authorised),
            ("minor_captured", &self.minor_captured),
            ("booking", &self.booking),
            ("version", &self.version),
        ];
        all.into_iter().filter_map(|(name, source)| Some((name, source.as_ref()?))).collect()
    }

    /// With the sources of another where it has none.
    #[must_use]
    pub(super) fn or(self, other: &Self) -> Self {
        let or = |own: Option<Source>, other: &Option<Source>| own.or_else(|| other.clone());
        Self {
            tenant: or(self.tenant, &other.tenant),
            job: or(self.job, &other.job),
            provider_ref: or(self.provider_ref, &other.provider_ref),
            model: or(self.model, &other.model),
            wallet: or(self.wallet, &other.wallet),
            currency: or(self.currency, &other.currency),
            sequence: or(self.sequence, &other.sequence),
            reference: or(self.reference, &other.reference),
            usage: or(self.usage, &other.usage),
            amount: or(self.amount, &other.amount),
            minor_amount: or(self.minor_amount, &other.minor_amount),
            minor_authorised: or(self.minor_authorised, &other.minor_authorised),
            minor_captured: or(self.minor_captured, &other.minor_captured),
            booking: or(self.booking, &other.booking),
            version: or(self.version, &other.version),
        }
    }
}
