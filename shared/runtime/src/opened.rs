//! An HTTP destination with its address and what authorises, as whoever calls it needs them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::profile::{AuthForm, HttpDestination, SecretPlace};

use crate::call::is_allowed;
use crate::destinations::Destinations;

/// What opens a destination. It has no `Debug`: the header is a secret.
pub struct Opened<'a> {
    /// The base address, without a slash at its end.
    pub base: &'a str,
    /// The header that authorises.
    pub auth: Option<(String, String)>,
}

impl Opened<'_> {
    /// The headers of a request that changes nothing: the table's own, and what authorises.
    pub fn reading(&self, table: &HttpDestination) -> Vec<(String, String)> {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        let named = table.headers.iter().filter(|(name, _)| *name != "accept");
        headers.extend(named.map(|(name, value)| (name.clone(), value.clone())));
        headers.extend(self.auth.clone());
        headers
    }
}

impl Destinations {
    /// What a variable of a destination holds.
    ///
    /// # Errors
    /// Which variable of `function` is to be set to what; never its value.
    pub fn needed(&self, variable: &str, function: &str) -> Result<&str, String> {
        match self.value(variable) {
            None => Err(format!("set the environment variable {variable} of the {function} function")),
            Some(value) if SecretPlace::refers(value) => Err(format!(
                "the environment variable {variable} holds a reference, which is not resolved here: put the value itself there"
            )),
            Some(value) => Ok(value),
        }
    }

    /// Reads what the table names.
    ///
    /// # Errors
    /// As [`Destinations::needed`].
    pub fn open(&self, table: &HttpDestination, function: &str) -> Result<Opened<'_>, String> {
        let base = self.needed(&table.url, function)?.trim_end_matches('/');
        if !is_allowed(base) {
            return Err(format!("the environment variable {} must hold an https address", table.url));
        }
        let auth = table.auth.as_ref().map(|auth| {
            let secret = self.needed(&auth.variable, function)?;
            Ok::<_, String>(match &auth.form {
                AuthForm::Bearer => ("authorization".to_owned(), format!("Bearer {secret}")),
                AuthForm::Basic => ("authorization".to_owned(), format!("Basic {}", STANDARD.encode(secret))),
                AuthForm::Header(name) => (name.clone(), secret.to_owned()),
            })
        });
        Ok(Opened { base, auth: auth.transpose()? })
    }
}
