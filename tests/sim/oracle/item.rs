//! A stored item in DynamoDB's own JSON, read without the product's types.

use serde_json::Value;

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub struct Item(pub Value);

impl Item {
    /// A string attribute; empty when it is absent.
    pub fn s(&self, name: &str) -> &str {
        self.0[name]["S"].as_str().unwrap_or_default()
    }

    /// A number attribute; `None` when it is absent.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.0[name]["N"].as_str()?.parse().ok()
    }

    /// A number attribute; 0 when it is absent.
    pub fn n(&self, name: &str) -> i64 {
        self.number(name).unwrap_or(0)
    }

    /// True when the attribute exists.
    pub fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// A map of texts, sorted by name.
    pub fn map(&self, name: &str) -> Vec<(String, String)> {
        let map = self.0[name]["M"].as_object();
        let mut pairs: Vec<_> = map
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value["S"].as_str().unwrap_or_default().to_owned()))
            .collect();
        pairs.sort();
        pairs
    }

    /// The debit and credit lines of a ledger entry: account and micros.
    pub fn lines(&self) -> Vec<(String, i64)> {
        let list = self.0["ln"]["L"].as_array();
        let line = |value: &Value| {
            let amount = value["M"]["am"]["N"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
            (value["M"]["ac"]["S"].as_str().unwrap_or_default().to_owned(), amount)
        };
        list.into_iter().flatten().map(line).collect()
    }

    /// Input and output tokens.
    pub fn usage(&self) -> Option<(i64, i64)> {
        let pairs = self.map("us");
        let of = |name: &str| pairs.iter().find(|(key, _)| key == name).and_then(|(_, text)| text.parse().ok());
        Some((of("input_tokens")?, of("output_tokens")?))
    }
}
