//! Tables: their keys and indexes are what the store expects, no more and no less, and each is kept,
//! encrypted, backed up and guarded against deletion.
//!
//! The expected shapes are plain values, so that a test can make them from the store's own definitions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::document::{Finding, Resource, listed, of_kind};

/// An attribute of a key, with its DynamoDB type: `S` or `N`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) kind: String,
}

/// A global secondary index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct IndexShape {
    pub(super) name: String,
    pub(super) hash: Key,
    pub(super) range: Option<Key>,
    /// `KEYS_ONLY` or `ALL`.
    pub(super) projection: String,
}

/// A table as the store expects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableShape {
    /// The design's name: `events` is the resource `EventsTable`.
    pub(super) name: String,
    pub(super) pk: Key,
    pub(super) sk: Option<Key>,
    pub(super) indexes: Vec<IndexShape>,
    /// The attribute by which items expire, where any do.
    pub(super) ttl: Option<String>,
}

impl TableShape {
    /// The logical id of the table's resource.
    pub(super) fn resource_id(&self) -> String {
        let mut letters = self.name.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        format!("{first}{}Table", letters.as_str())
    }
}

/// Compares every table with its expected shape, and its safeguards with the rules above.
pub(super) fn check_tables(template: &Value, expected: &[TableShape]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let found = of_kind(template, "AWS::DynamoDB::Table");
    for table in &found {
        check_safeguards(table, &mut findings);
        match expected.iter().find(|shape| shape.resource_id() == table.id) {
            Some(shape) => check_shape(table, shape, &mut findings),
            None => findings.push(Finding::new("table-unknown", table.id, "the store knows no such table")),
        }
    }
    for shape in expected {
        if !found.iter().any(|table| table.id == shape.resource_id()) {
            findings.push(Finding::new("table-missing", shape.resource_id(), "the store needs it"));
        }
    }
    findings
}

fn check_safeguards(table: &Resource<'_>, findings: &mut Vec<Finding>) {
    let yes = Value::Bool(true);
    let wanted = [
        ("DeletionPolicy", &table.whole["DeletionPolicy"], Value::from("Retain")),
        ("UpdateReplacePolicy", &table.whole["UpdateReplacePolicy"], Value::from("Retain")),
        ("DeletionProtectionEnabled", table.property("DeletionProtectionEnabled"), yes.clone()),
        ("BillingMode", table.property("BillingMode"), Value::from("PAY_PER_REQUEST")),
        (
            "PointInTimeRecoveryEnabled",
            &table.property("PointInTimeRecoverySpecification")["PointInTimeRecoveryEnabled"],
            yes.clone(),
        ),
        ("SSEEnabled", &table.property("SSESpecification")["SSEEnabled"], yes),
        (
            "KMSMasterKeyId",
            &table.property("SSESpecification")["KMSMasterKeyId"],
            json!({"Fn::If": ["HasKmsKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]}),
        ),
    ];
    for (name, value, right) in wanted {
        if value != &right {
            findings.push(Finding::new("table-safeguard", table.id, format!("{name} must be {right}")));
        }
    }
}

fn check_shape(table: &Resource<'_>, shape: &TableShape, findings: &mut Vec<Finding>) {
    let mut find = |rule, says: String| findings.push(Finding::new(rule, table.id, says));
    let kinds = attribute_kinds(table);
    let (pk, sk) = keys(table.property("KeySchema"), &kinds);
    if pk.as_ref() != Some(&shape.pk) || sk != shape.sk {
        find("table-keys", format!("{pk:?}, {sk:?}; expected {:?}, {:?}", shape.pk, shape.sk));
    }
    let found: BTreeSet<Option<IndexShape>> =
        listed(table.property("GlobalSecondaryIndexes")).into_iter().map(|index| read_index(index, &kinds)).collect();
    let wanted: BTreeSet<Option<IndexShape>> = shape.indexes.iter().cloned().map(Some).collect();
    for index in found.symmetric_difference(&wanted) {
        let side = if found.contains(index) { "not expected" } else { "missing" };
        find("table-index", format!("{side}: {index:?}"));
    }
    let ttl = table.property("TimeToLiveSpecification");
    let ttl_on = (ttl["Enabled"] == true).then(|| ttl["AttributeName"].as_str()).flatten();
    if ttl_on != shape.ttl.as_deref() {
        find("table-ttl", format!("{ttl_on:?}; expected {:?}", shape.ttl));
    }
}

fn attribute_kinds(table: &Resource<'_>) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    listed(table.property("AttributeDefinitions"))
        .into_iter()
        .map(|definition| (text(&definition["AttributeName"]), text(&definition["AttributeType"])))
        .collect()
}

fn keys(schema: &Value, kinds: &BTreeMap<String, String>) -> (Option<Key>, Option<Key>) {
    let key = |role: &str| {
        let part = listed(schema).into_iter().find(|part| part["KeyType"] == role)?;
        let name = part["AttributeName"].as_str()?;
        Some(Key { name: name.to_owned(), kind: kinds.get(name)?.clone() })
    };
    (key("HASH"), key("RANGE"))
}

/// `None` where the index cannot be read, which equals no expected index.
fn read_index(index: &Value, kinds: &BTreeMap<String, String>) -> Option<IndexShape> {
    let (hash, range) = keys(&index["KeySchema"], kinds);
    Some(IndexShape {
        name: index["IndexName"].as_str()?.to_owned(),
        hash: hash?,
        range,
        projection: index["Projection"]["ProjectionType"].as_str()?.to_owned(),
    })
}
