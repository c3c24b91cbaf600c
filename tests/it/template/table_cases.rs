//! The template has the design's tables, and each planted difference is found.

use serde_json::{Value, json};

use super::tables::{self, IndexShape, Key, TableShape};
use super::{template, with};

fn key(name: &str, kind: &str) -> Key {
    Key { name: name.to_owned(), kind: kind.to_owned() }
}

fn index(name: &str, hash: &str, range: Key, projection: &str) -> IndexShape {
    IndexShape { name: name.to_owned(), hash: key(hash, "S"), range: Some(range), projection: projection.to_owned() }
}

fn table(name: &str, sk: Option<&str>, ttl: Option<&str>, indexes: Vec<IndexShape>) -> TableShape {
    TableShape {
        name: name.to_owned(),
        pk: key("pk", "S"),
        sk: sk.map(|sk| key(sk, "S")),
        indexes,
        ttl: ttl.map(str::to_owned),
    }
}

/// The design's four tables.
fn expected_tables() -> Vec<TableShape> {
    let events = vec![
        index("by-bucket", "rb", key("pk", "S"), "KEYS_ONLY"),
        index("by-due", "ds", key("due", "N"), "KEYS_ONLY"),
        index("by-review", "rs", key("rt", "N"), "KEYS_ONLY"),
    ];
    let jobs = vec![
        index("by-wallet", "w", key("pk", "S"), "KEYS_ONLY"),
        index("by-request", "q", key("pk", "S"), "KEYS_ONLY"),
        index("by-expiry", "xb", key("pk", "S"), "KEYS_ONLY"),
    ];
    let ledger = vec![index("by-wallet", "w", key("seq", "N"), "ALL")];
    vec![
        table("events", Some("sk"), Some("ttl"), events),
        table("jobs", Some("sk"), None, jobs),
        table("ledger", Some("sk"), None, ledger),
        table("balances", None, None, Vec::new()),
    ]
}

#[test]
fn tables_have_the_keys_and_indexes_that_the_store_expects() {
    assert_eq!(tables::check_tables(&template(), &expected_tables()), []);
}

#[test]
fn a_table_that_differs_is_found() {
    let found = |template: &Value| {
        let findings = tables::check_tables(template, &expected_tables());
        findings.iter().map(|one| (one.rule, one.place.clone())).collect::<Vec<_>>()
    };
    let at = |rule, place: &str| (rule, place.to_owned());

    let ledger_index = "/Resources/LedgerTable/Properties/GlobalSecondaryIndexes/0";
    let keys_only = with(ledger_index, "Projection", json!({"ProjectionType": "KEYS_ONLY"}));
    // The index as it is was not expected, and the expected one is missing.
    assert_eq!(found(&keys_only), [at("table-index", "LedgerTable"), at("table-index", "LedgerTable")]);

    let events = "/Resources/EventsTable/Properties";
    let text_due = with(&format!("{events}/AttributeDefinitions/4"), "AttributeType", json!("S"));
    assert_eq!(found(&text_due), [at("table-index", "EventsTable"), at("table-index", "EventsTable")]);
    let other_key = with(&format!("{events}/KeySchema/1"), "AttributeName", json!("due"));
    assert_eq!(found(&other_key), [at("table-keys", "EventsTable")]);
    let expiring = json!({"AttributeName": "ttl", "Enabled": true});
    let expiring = with("/Resources/LedgerTable/Properties", "TimeToLiveSpecification", expiring);
    assert_eq!(found(&expiring), [at("table-ttl", "LedgerTable")]);

    let unguarded = with("/Resources/BalancesTable", "DeletionPolicy", json!("Delete"));
    assert_eq!(found(&unguarded), [at("table-safeguard", "BalancesTable")]);
    let no_backup = with("/Resources/JobsTable/Properties", "PointInTimeRecoverySpecification", Value::Null);
    assert_eq!(found(&no_backup), [at("table-safeguard", "JobsTable")]);

    let gone = with("/Resources", "JobsTable", json!({"Type": "AWS::SNS::Topic"}));
    assert_eq!(found(&gone), [at("table-missing", "JobsTable")]);
}
