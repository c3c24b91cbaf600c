//! Each mistake in a price book has its line, its cause and its remedy.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde::Deserialize;

use super::{PriceBook, RawPrice, RawRate, SHAPE};
use crate::config::shape::{Kind, json_schema};

const BOOK: &str = "[[price]]
model = \"small-1\"
version = \"1\"
effective = \"2026-01-01T00:00:00Z\"
currency = \"USD\"
rates.a = { price = \"3.00\", per = 1000 }
rates.b = { price = \"1\" }
";

fn refused(text: &str) -> Vec<(usize, String)> {
    PriceBook::parse(text).unwrap_err().findings.into_iter().map(|f| (f.line, f.field)).collect()
}

#[test]
fn every_mistake_is_told_with_its_line() {
    assert!(PriceBook::parse(BOOK).is_ok());
    let text = BOOK.replace("\"3.00\"", "\"-1\"").replace("USD", "usd").replace("version", "versoin");
    assert_eq!(
        refused(&text),
        [(3, "price.0.versoin"), (5, "price.0.currency"), (6, "price.0.rates.a.price")]
            .map(|(line, field)| (line, field.to_owned()))
    );
    let text = format!("{}{BOOK}", BOOK.replace("1000", "300"));
    assert_eq!(refused(&text), [(6, "price.0.rates.a.per".to_owned()), (11, "price.1.effective".to_owned())]);
    assert_eq!(refused("[[price]]\nmodel = \n")[0].0, 2);
    assert_eq!(refused(&BOOK.replace("= { price = \"1\" }", "= 1")), [(7, "price.0.rates.b".to_owned())]);
}

/// The names that serde's own message lists are those of the shape.
#[test]
fn the_shape_has_the_fields_of_the_loader() {
    fn fields_of<T: for<'de> Deserialize<'de>>() -> Vec<String> {
        let error = toml::from_str::<T>("zzz = 1").err().unwrap();
        let mut names: Vec<String> = error.message().split('`').skip(3).step_by(2).map(str::to_owned).collect();
        names.sort();
        names
    }
    let shape_of = |kind: &Kind| -> Vec<String> {
        let schema = json_schema("", kind);
        let mut names: Vec<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(fields_of::<RawPrice>(), shape_of(&super::PRICE));
    assert_eq!(fields_of::<RawRate>(), shape_of(&super::RATE));
    assert_eq!(shape_of(&SHAPE), ["price"]);
}
