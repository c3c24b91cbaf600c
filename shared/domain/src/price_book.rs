//! The price book, `prices.toml`: versions of prices, of which a submission pins one for good.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::de::ValueDeserializer;

use crate::config::shape::{self, Field, Form, Kind, TIME_TEXT};
use crate::config::{Document, FileError, Finding, Problem};
use crate::ids::{ModelId, TenantId};
use crate::money::{Currency, Micros};
use crate::price::{MAX_PER_ZEROS, MAX_UNITS, Price, Quantity, Rate, Snapshot};

/// One version of one price in `infra/prices.toml`.
#[derive(Debug, Clone)]
pub struct PriceVersion {
    /// From when on submissions pin it.
    pub effective: jiff::Timestamp,
    /// Only for this tenant; a tenant's own terms go before the general ones.
    pub tenant: Option<TenantId>,
    /// The price.
    pub snapshot: Snapshot,
}

/// The file's form: one flat table. [`SHAPE`] says the same as data.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrice {
    effective: jiff::Timestamp,
    tenant: Option<TenantId>,
    model: ModelId,
    version: String,
    currency: Currency,
    rates: BTreeMap<String, RawRate>,
    #[serde(default)]
    ignore: Vec<String>,
    minimum: Option<Micros>,
    ceiling: Option<Micros>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRate {
    price: Price,
    #[serde(default = "one")]
    per: i64,
    max: Option<Quantity>,
}

fn one() -> i64 {
    1
}

impl From<RawPrice> for PriceVersion {
    fn from(raw: RawPrice) -> Self {
        let RawPrice { effective, tenant, model, version, currency, rates, ignore, minimum, ceiling } = raw;
        let rates =
            rates.into_iter().map(|(unit, r)| (unit, Rate { price: r.price, per: r.per, max: r.max })).collect();
        Self { effective, tenant, snapshot: Snapshot { model, version, currency, rates, ignore, minimum, ceiling } }
    }
}

/// `prices.toml` as data.
pub static SHAPE: Kind = Kind::Table(&[Field::may("price", Kind::List(&PRICE, 0), "one version of one price each")]);

static PRICE: Kind = Kind::Table(&[
    Field::must("model", Kind::Text, "the model, as jobs name it"),
    Field::must("version", Kind::Text, "the version's name, shown beside every charge; at most 64 bytes"),
    Field::must("effective", Kind::Form(&TIME_TEXT), "from when on submissions pin it, as 2026-01-01T00:00:00Z"),
    Field::may("tenant", Kind::Text, "for this tenant only; its own terms go before the general ones"),
    Field::must("currency", Kind::Form(&CURRENCY), "the ISO 4217 code of the wallets that pay"),
    Field::must("rates", Kind::Names(&RATE), "by unit name: `rates.seconds = { price = \"0.0002\" }`"),
    Field::may("ignore", Kind::List(&Kind::Text, 0), "units that are reported and cost nothing"),
    Field::may("minimum", Kind::Form(&AMOUNT), "the least that a success costs"),
    Field::may("ceiling", Kind::Form(&AMOUNT), "the charge above which a person looks"),
]);

static RATE: Kind = Kind::Table(&[
    Field::must("price", Kind::Form(&PRICE_TEXT), "major units of the currency, at most 9 decimals, in quotes"),
    Field::may("per", Kind::Integer(1, 1_000_000_000), "for how many of the unit: 1, 10, 100 ... 1000000000"),
    Field::may("max", Kind::Form(&QUANTITY), "the most of one event; above it a person looks"),
]);

static CURRENCY: Form = Form {
    is: "an ISO 4217 currency code",
    pattern: "^[A-Z]{3}$",
    check: |text| {
        let told = |error: crate::money::MoneyError| (error.to_string(), "write a code such as USD".to_owned());
        Currency::parse(text).map(|_| ()).map_err(told)
    },
};
static AMOUNT: Form = Form {
    is: "an amount of at most 6 decimals",
    pattern: r"^\d+(\.\d{1,6})?$",
    check: |text| decimal(Micros::parse(text).map(Micros::get), "a decimal such as 0.01, zero or more, in quotes"),
};
static PRICE_TEXT: Form = Form {
    is: "a price of at most 9 decimals",
    pattern: r"^\d+(\.\d{1,9})?$",
    check: |text| decimal(Price::parse(text).map(Price::scaled), "a decimal such as 3.00, zero or more, in quotes"),
};
static QUANTITY: Form = Form {
    is: "a quantity of at most 3 decimals",
    pattern: r"^\d+(\.\d{1,3})?$",
    check: |text| decimal(Quantity::parse(text).map(Quantity::scaled), "a decimal such as 5000000, in quotes"),
};

fn decimal(read: Result<i64, crate::money::MoneyError>, remedy: &str) -> Result<(), (String, String)> {
    match read {
        Ok(number) if number < 0 => Err(("the number is negative".to_owned(), format!("write {remedy}"))),
        Ok(_) => Ok(()),
        Err(error) => Err((error.to_string(), format!("write {remedy}"))),
    }
}

/// All prices; new versions are added, old ones never touched.
#[derive(Debug, Clone, Default)]
pub struct PriceBook {
    /// In the file's order.
    pub prices: Vec<PriceVersion>,
}

impl PriceBook {
    /// Reads and checks `prices.toml`.
    ///
    /// # Errors
    /// [`FileError`] with every mistake, its place and the remedy.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        let (document, mut findings) = Document::parse(text);
        if findings.is_empty() {
            let mut problems = Vec::new();
            shape::check(&SHAPE, document.root(), &mut Vec::new(), &mut problems);
            findings = problems.into_iter().map(|problem| document.finding(problem)).collect();
        }
        let mut book = Self::default();
        if findings.is_empty() {
            findings = book.fill(&document);
        }
        findings.sort();
        if findings.is_empty() { Ok(book) } else { Err(FileError { file: "prices.toml", findings }) }
    }

    fn fill(&mut self, document: &Document<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let list = document.root().get_ref().get("price").and_then(|list| list.get_ref().as_array());
        for (index, value) in list.into_iter().flatten().enumerate() {
            let index = index.to_string();
            match RawPrice::deserialize(ValueDeserializer::from(value.clone())) {
                Ok(raw) => {
                    let price = PriceVersion::from(raw);
                    let problems = problems_of(&price, &self.prices);
                    findings.extend(problems.into_iter().map(|p| document.finding(p.below(&["price", &index]))));
                    self.prices.push(price);
                }
                Err(error) => {
                    let remedy = "correct the value; README.md has an example of every field".to_owned();
                    let place = error.span().unwrap_or_else(|| value.span());
                    findings.push(document.at(place, &format!("price.{index}"), error.message().to_owned(), remedy));
                }
            }
        }
        findings
    }

    /// The snapshot that a submission at `at_ms` pins: the newest effective one, the tenant's own first.
    pub fn pin(&self, model: &ModelId, tenant: &TenantId, at_ms: i64) -> Option<&Snapshot> {
        let newest = |own: bool| {
            self.prices
                .iter()
                .filter(|p| p.snapshot.model == *model && p.effective.as_millisecond() <= at_ms)
                .filter(|p| if own { p.tenant.as_ref() == Some(tenant) } else { p.tenant.is_none() })
                .max_by_key(|p| p.effective)
        };
        newest(true).or_else(|| newest(false)).map(|p| &p.snapshot)
    }
}

/// What a version says that makes no sense, alone or beside the earlier ones.
fn problems_of(price: &PriceVersion, earlier: &[PriceVersion]) -> Vec<Problem> {
    let snapshot = &price.snapshot;
    let mut found = Vec::new();
    let mut add = |path: &[&str], cause: String, remedy: &str| found.push(Problem::new(path, cause, remedy));
    let twin = |other: &PriceVersion| {
        (&other.snapshot.model, &other.tenant, other.effective) == (&snapshot.model, &price.tenant, price.effective)
    };
    if earlier.iter().any(twin) {
        let cause = "another version has the same model, tenant and effective time".to_owned();
        add(&["effective"], cause, "give each version a time of its own");
    }
    if snapshot.version.len() > 64 {
        add(&["version"], format!("it has {} bytes", snapshot.version.len()), "give it 1 to 64 bytes");
    }
    if snapshot.rates.is_empty() || snapshot.rates.len() > MAX_UNITS {
        add(&["rates"], format!("there are {} rates", snapshot.rates.len()), "give 1 to 16 rates");
    }
    for (unit, rate) in &snapshot.rates {
        if !(0..=MAX_PER_ZEROS).any(|zeros| 10_i64.pow(zeros) == rate.per) {
            let cause = format!("{} is no power of ten", rate.per);
            add(&["rates", unit, "per"], cause, "write 1, 10, 100 ... 1000000000");
        }
    }
    if let (Some(minimum), Some(ceiling)) = (snapshot.minimum, snapshot.ceiling)
        && minimum > ceiling
    {
        add(&["minimum"], "it is above `ceiling`".to_owned(), "lower it, or raise `ceiling`");
    }
    found
}

#[cfg(test)]
#[path = "price_book_tests.rs"]
mod tests;
