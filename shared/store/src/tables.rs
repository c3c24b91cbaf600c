//! The four tables, defined once: the local stack and `--endpoint` create them from here, and a test
//! compares the template with them.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType,
};

use crate::error::classify;
use crate::{Store, StoreError, TableNames};

/// A key attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// True for a number, false for a string.
    pub number: bool,
}

/// A global secondary index: for sweeps and search, never for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: &'static str,
    /// Its partition key.
    pub hash: Attribute,
    /// Its sort key.
    pub range: Attribute,
    /// True when it projects whole items, false for keys only.
    pub all: bool,
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// `events`, `jobs`, `ledger`, `balances`.
    pub name: &'static str,
    /// True when it has the sort key `sk` beside the partition key `pk`.
    pub sorted: bool,
    /// Its indexes.
    pub indexes: &'static [Index],
}

const fn text(name: &'static str) -> Attribute {
    Attribute { name, number: false }
}

const fn number(name: &'static str) -> Attribute {
    Attribute { name, number: true }
}

const fn keys_only(name: &'static str, hash: Attribute, range: Attribute) -> Index {
    Index { name, hash, range, all: false }
}

/// Index of receipts by minute and shard.
pub const BY_BUCKET: &str = "by-bucket";
/// Sparse index of waiting operations by due time.
pub const BY_DUE: &str = "by-due";
/// Sparse index of open reviews by age.
pub const BY_REVIEW: &str = "by-review";
/// Index by wallet: jobs, and chain entries by sequence.
pub const BY_WALLET: &str = "by-wallet";
/// Index of jobs by the caller's request id.
pub const BY_REQUEST: &str = "by-request";
/// Index of jobs by expiry bucket.
pub const BY_EXPIRY: &str = "by-expiry";

/// All tables.
pub const TABLES: [Table; 4] = [
    Table {
        name: "events",
        sorted: true,
        indexes: &[
            keys_only(BY_BUCKET, text("rb"), text("pk")),
            keys_only(BY_DUE, text("ds"), number("due")),
            keys_only(BY_REVIEW, text("rs"), number("rt")),
        ],
    },
    Table {
        name: "jobs",
        sorted: true,
        indexes: &[
            keys_only(BY_WALLET, text("w"), text("pk")),
            keys_only(BY_REQUEST, text("q"), text("pk")),
            keys_only(BY_EXPIRY, text("xb"), text("pk")),
        ],
    },
    Table {
        name: "ledger",
        sorted: true,
        indexes: &[Index { name: BY_WALLET, hash: text("w"), range: number("seq"), all: true }],
    },
    Table { name: "balances", sorted: false, indexes: &[] },
];

impl TableNames {
    /// The deployed name of a table of [`TABLES`].
    pub fn of(&self, table: &Table) -> &str {
        match table.name {
            "events" => &self.events,
            "jobs" => &self.jobs,
            "ledger" => &self.ledger,
            _ => &self.balances,
        }
    }
}

impl Store {
    /// Creates the tables that do not exist, for local stacks. A deployment's template creates its own.
    ///
    /// # Errors
    /// [`StoreError`] when a table cannot be created.
    pub async fn create_tables(&self) -> Result<(), StoreError> {
        for table in &TABLES {
            self.create_table(table).await?;
        }
        Ok(())
    }

    async fn create_table(&self, table: &Table) -> Result<(), StoreError> {
        let built = |_| StoreError::Permanent { operation: "create table", code: "construction".to_owned() };
        let mut attributes = vec![text("pk")];
        let mut request =
            self.client.create_table().table_name(self.names.of(table)).billing_mode(BillingMode::PayPerRequest);
        request = request.key_schema(key("pk", KeyType::Hash).map_err(built)?);
        if table.sorted {
            attributes.push(text("sk"));
            request = request.key_schema(key("sk", KeyType::Range).map_err(built)?);
        }
        for index in table.indexes {
            attributes.extend([index.hash, index.range]);
            let kind = if index.all { ProjectionType::All } else { ProjectionType::KeysOnly };
            let gsi = GlobalSecondaryIndex::builder()
                .index_name(index.name)
                .key_schema(key(index.hash.name, KeyType::Hash).map_err(built)?)
                .key_schema(key(index.range.name, KeyType::Range).map_err(built)?)
                .projection(Projection::builder().projection_type(kind).build());
            request = request.global_secondary_indexes(gsi.build().map_err(built)?);
        }
        attributes.sort_by_key(|a| a.name);
        attributes.dedup();
        for attribute in attributes {
            let kind = if attribute.number { ScalarAttributeType::N } else { ScalarAttributeType::S };
            let definition = AttributeDefinition::builder().attribute_name(attribute.name).attribute_type(kind);
            request = request.attribute_definitions(definition.build().map_err(built)?);
        }
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_resource_in_use_exception()) => Ok(()),
            Err(error) => Err(classify("create table", &error)),
        }
    }
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, aws_sdk_dynamodb::error::BuildError> {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build()
}
