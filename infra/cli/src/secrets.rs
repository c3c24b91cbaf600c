//! Which secret a verb signs with.

/// The secret that `dev` gives the sample provider `acme` where `ACME_WEBHOOK_SECRET` is not set, and that `send` signs
/// with. It is public: the base64 of `hookledger-development-only-not-a-secret`. Never configure it on a server that
/// others reach.
pub const DEV_ACME_SECRET: &str = "whsec_aG9va2xlZGdlci1kZXZlbG9wbWVudC1vbmx5LW5vdC1hLXNlY3JldA==";

/// The provider that has [`DEV_ACME_SECRET`].
pub const DEV_PROVIDER: &str = "acme";

/// The name and value of the first of a profile's environment variables that is set; for `acme` the development default.
pub fn configured(
    provider: &str, names: &[&str], variable: impl Fn(&str) -> Option<String>,
) -> Option<(String, String)> {
    let set = names.iter().find_map(|name| variable(name).map(|value| ((*name).to_owned(), value)));
    let default = (provider == DEV_PROVIDER).then(|| ("development default".to_owned(), DEV_ACME_SECRET.to_owned()));
    set.or(default)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    #[test]
    fn the_default_says_what_it_is_for() {
        let bytes = STANDARD.decode(DEV_ACME_SECRET.strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(bytes, b"hookledger-development-only-not-a-secret");
    }

    #[test]
    fn a_set_variable_wins_and_only_acme_has_a_default() {
        let names = ["A", "B"];
        let only_b = |name: &str| (name == "B").then(|| "value".to_owned());
        assert_eq!(configured("acme", &names, only_b), Some(("B".to_owned(), "value".to_owned())));
        assert_eq!(configured("acme", &names, |_| None).unwrap().1, DEV_ACME_SECRET);
        assert_eq!(configured("stripe", &names, |_| None), None);
    }
}
