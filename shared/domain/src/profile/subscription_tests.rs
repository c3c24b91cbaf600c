//! Each mistake in a subscription has its line, its cause and its remedy.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::super::Profiles;
use crate::ids::TenantId;
use crate::money::{Currency, Micros};

const GOOD: &str = "[subscriptions.books]\nto = \"sqs:BOOKS\"\ntypes = [\"job.settled\", \"wallet.low-balance\"]\n\
                    tenants = [\"t1\"]\nordered = true\nlow_balance = { USD = \"10.00\" }\n";

fn found(text: &str) -> Vec<(usize, String)> {
    let all = Profiles::check(text);
    assert!(all.iter().all(|finding| !finding.cause.is_empty() && !finding.remedy.is_empty()), "{all:?}");
    all.into_iter().map(|finding| (finding.line, finding.field)).collect()
}

#[test]
fn a_good_one_says_who_hears_what() {
    assert_eq!(found(GOOD), []);
    let profiles = Profiles::parse(GOOD).unwrap();
    let (usd, eur) = (Currency::parse("USD").unwrap(), Currency::parse("EUR").unwrap());
    let watched = |tenant: &str, currency| profiles.thresholds(&TenantId::new(tenant).unwrap(), currency);
    assert_eq!(watched("t1", usd), [Micros::parse("10").unwrap()].into());
    assert!(watched("t1", eur).is_empty() && watched("t2", usd).is_empty());
}

#[test]
fn every_mistake_has_its_line_and_field() {
    let at = |line: usize, field: &str| vec![(line, format!("subscriptions.{field}"))];
    let with = |from: &str, to: &str| {
        assert!(GOOD.contains(from));
        found(&GOOD.replacen(from, to, 1))
    };
    assert_eq!(with("sqs:BOOKS", "mail:books"), at(2, "books.to"));
    assert_eq!(with("job.settled", "job.setled"), at(3, "books.types.0"));
    assert_eq!(with("types = [\"job.settled\", \"wallet.low-balance\"]", "types = []"), at(3, "books.types"));
    assert_eq!(with("tenants = [\"t1\"]\n", ""), at(1, "books.tenants"));
    assert_eq!(with("ordered = true", "ordered = \"yes\""), at(5, "books.ordered"));
    assert_eq!(with("\"10.00\"", "\"-1\""), at(6, "books.low_balance.USD"));
    assert_eq!(with("USD", "QQQ"), at(6, "books.low_balance.QQQ"));
    assert_eq!(with("low_balance = { USD = \"10.00\" }\n", ""), at(3, "books.types"));
    assert_eq!(with(", \"wallet.low-balance\"", ""), at(6, "books.low_balance"));
    assert_eq!(with(".books]", ".-]"), at(1, "-"));
    assert_eq!(with(".books]", ".\"a|b\"]"), at(1, "a|b"));
    assert_eq!(with("ordered", "orderd"), at(5, "books.orderd"));
    let many: String = (0..21).map(|n| GOOD.replace("books", &format!("s{n}"))).collect();
    assert_eq!(found(&many), vec![(1, "subscriptions".to_owned())]);
}

#[test]
fn no_endpoint_has_the_slug_of_our_own_events() {
    let text = "[providers.own]\nowner = \"t\"\nsignature = { scheme = \"stripe\" }\nsecrets = [\"A\"]\n\
                retry_window_hours = 1\nretention_days = 0\ntenants = [\"*\"]\nevent_id = \"body:/id\"\n\
                event_type = \"body:/type\"\n";
    assert_eq!(found(text), [(1, "providers.own".to_owned())]);
}

/// The names that serde's own message lists are those of the shape.
#[test]
fn the_shape_has_the_fields_of_the_loader() {
    let error = toml::from_str::<super::Raw>("zzz = 1").err().unwrap();
    let mut loader: Vec<&str> = error.message().split('`').skip(3).step_by(2).collect();
    loader.sort_unstable();
    let schema = crate::config::shape::json_schema("", &super::super::shape::SUBSCRIPTION);
    let mut shape: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    shape.sort_unstable();
    assert_eq!(loader, shape);
}
