//! AWS Signature Version 4 for the control API behind API Gateway: the caller is whoever their AWS credentials say.
//!
//! The credentials are those that every AWS tool takes: environment, profile, container or instance. The region is the one
//! in the host's name (`ID.execute-api.REGION.amazonaws.com`), else `AWS_REGION` or the profile's.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;

use crate::error::CliError;

/// The service name that API Gateway's IAM authorization is scoped to.
pub const API_GATEWAY: &str = "execute-api";

/// Who calls, and where.
pub struct Caller {
    credentials: Credentials,
    region: String,
}

impl Caller {
    /// The caller's credentials and the region of `host`.
    ///
    /// # Errors
    /// There are none, or no region is known.
    pub fn load(host: &str) -> Result<Self, CliError> {
        let executor = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| CliError::Failed(format!("cannot start the AWS client: {error}")))?;
        let config = executor.block_on(runtime::clients::caller_config());
        let provider = config.credentials_provider().ok_or_else(|| no_credentials("none are configured"))?;
        let credentials = executor.block_on(provider.provide_credentials());
        let credentials = credentials.map_err(|error| no_credentials(&error.to_string()))?;
        let region = region_of(host).map(str::to_owned).or_else(|| config.region().map(ToString::to_string));
        let region =
            region.ok_or_else(|| CliError::Misuse(format!("the AWS region of {host} is not known: set AWS_REGION")))?;
        Ok(Self { credentials, region })
    }
}

fn no_credentials(reason: &str) -> CliError {
    CliError::Misuse(format!(
        "this server is not on this machine, so calls are signed with your AWS identity, and no credentials were found ({reason}): set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; after an SSO log-in use `aws configure export-credentials --format env`"
    ))
}

/// The region in the name of an API Gateway host.
fn region_of(host: &str) -> Option<&str> {
    let mut labels = host.split('.').skip_while(|label| *label != API_GATEWAY);
    labels.nth(1).filter(|region| region.contains('-'))
}

/// The headers that sign one request: `authorization`, `x-amz-date` and, for temporary credentials, their token.
///
/// # Errors
/// The URL cannot be signed.
pub fn headers(
    caller: &Caller, service: &str, method: &str, url: &str, body: &[u8], now: SystemTime,
) -> Result<Vec<(String, String)>, CliError> {
    let failed = |error: &dyn std::error::Error| CliError::Failed(format!("the request cannot be signed: {error}"));
    let identity = caller.credentials.clone().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(&caller.region)
        .name(service)
        .time(now)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| failed(&error))?
        .into();
    let request = SignableRequest::new(method, url, std::iter::empty(), SignableBody::Bytes(body));
    let request = request.map_err(|error| failed(&error))?;
    let (instructions, _) = sign(request, &params).map_err(|error| failed(&error))?.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    /// The credentials of the AWS Signature Version 4 test suite.
    fn example(token: Option<&str>) -> Caller {
        let (id, key) = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        let credentials = Credentials::new(id, key, token.map(str::to_owned), None, "test");
        Caller { credentials, region: "us-east-1".to_owned() }
    }

    /// 2015-08-30T12:36:00Z, the suite's time.
    fn then() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_440_938_160)
    }

    fn header(headers: &[(String, String)], name: &str) -> Option<String> {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    #[test]
    fn the_suites_get_vanilla_has_its_published_signature() {
        let signed = headers(&example(None), "service", "GET", "https://example.amazonaws.com/", b"", then()).unwrap();
        assert_eq!(header(&signed, "x-amz-date").unwrap(), "20150830T123600Z");
        assert_eq!(
            header(&signed, "authorization").unwrap(),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
    }

    #[test]
    fn a_call_is_scoped_to_api_gateway_and_carries_the_session() {
        let url = "https://abc.execute-api.us-east-1.amazonaws.com/control/events/acme/a%2Fb";
        let signed = headers(&example(Some("session")), API_GATEWAY, "GET", url, b"", then()).unwrap();
        let authorization = header(&signed, "authorization").unwrap();
        assert!(authorization.contains("Credential=AKIDEXAMPLE/20150830/us-east-1/execute-api/aws4_request"));
        assert!(authorization.contains("SignedHeaders=host;x-amz-date;x-amz-security-token"));
        assert_eq!(header(&signed, "x-amz-security-token").unwrap(), "session");
    }

    #[test]
    fn the_region_is_read_from_the_host() {
        assert_eq!(region_of("abc.execute-api.eu-west-1.amazonaws.com"), Some("eu-west-1"));
        assert_eq!(region_of("hooks.example.com"), None);
        assert_eq!(region_of("abc.execute-api"), None);
    }
}
