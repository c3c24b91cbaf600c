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
