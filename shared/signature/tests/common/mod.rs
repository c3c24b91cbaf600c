//! What the tests share: rows of the vectors file, and short forms.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookledger_signature::{Headers, Recipe, Rejection, Request, Secret, Verified, Verifier};
use serde_json::Value;

const FILE: &str = include_str!("../../../../tests/fixtures/signatures.json");

/// One vector's parts.
#[derive(Clone)]
pub struct Row {
    pub scheme: String,
    pub secret: String,
    pub url: Option<String>,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub now_ms: i64,
}

impl Row {
    /// The vector of that id.
    pub fn of(id: &str) -> Self {
        let file: Value = serde_json::from_str(FILE).unwrap();
        let row = file["vectors"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        let headers = row["headers"].as_object().unwrap().iter();
        Self {
            scheme: text("scheme"),
            secret: text("secret"),
            url: row["url"].as_str().map(str::to_owned),
            headers: headers.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect(),
            body: STANDARD.decode(text("body_b64")).unwrap(),
            now_ms: row["now"].as_i64().unwrap_or_default() * 1000,
        }
    }

    /// With another value of one header.
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub fn verify(&self) -> Result<Verified, Rejection> {
        let verifier = verifier(&self.scheme, &[&self.secret]);
        self.verify_by(&verifier)
    }

    pub fn verify_by(&self, verifier: &Verifier) -> Result<Verified, Rejection> {
        let headers = Headers::new(self.headers.iter().map(|(name, value)| (name, value)));
        verifier.verify(&self.request(&headers), self.now_ms)
    }

    pub fn request<'a>(&'a self, headers: &'a Headers) -> Request<'a> {
        Request { method: "POST", url: self.url.as_deref(), headers, body: &self.body }
    }
}

/// A verifier with secrets named k0, k1 and so on.
pub fn verifier(scheme: &str, secrets: &[&str]) -> Verifier {
    let secrets = secrets.iter().enumerate().map(|(n, value)| Secret::new(format!("k{n}"), *value)).collect();
    Verifier::new(Recipe::named(scheme).unwrap(), secrets).unwrap()
}

/// Verifies a body under one header.
pub fn one(scheme: &str, secret: &str, header: (&str, &str), body: &[u8], now_s: i64) -> Result<(), Rejection> {
    let headers = Headers::new([header]);
    let req = Request { method: "POST", url: None, headers: &headers, body };
    verifier(scheme, &[secret]).verify(&req, now_s * 1000).map(|_| ())
}
