//! The published JSON Schemas agree with the loader: what ships is valid by both, and a file whose form is wrong by
//! neither. The validator here knows the few keywords that the schemas use, and fails on any other.

use domain::price::PriceBook;
use domain::profile::Profiles;
use regex_lite::Regex;
use runtime::lambda::{PRICES_TOML, PROVIDERS_TOML};
use serde_json::Value;

const PROVIDERS: &str = include_str!("../../infra/schema/providers.schema.json");
const PRICES: &str = include_str!("../../infra/schema/prices.schema.json");
const NOT_CHECKED: [&str; 3] = ["$schema", "title", "description"];

/// Broken files whose form is wrong; the others are well-formed and say something that makes no sense.
const BAD_FORM: [(&str, &str, &str); 7] = [
    ("unknown-field", PROVIDERS, include_str!("../fixtures/broken/unknown-field.toml")),
    ("unknown-operation", PROVIDERS, include_str!("../fixtures/broken/unknown-operation.toml")),
    ("unknown-scheme", PROVIDERS, include_str!("../fixtures/broken/unknown-scheme.toml")),
    ("secret-in-the-file", PROVIDERS, include_str!("../fixtures/broken/secret-in-the-file.toml")),
    ("bad-pointer", PROVIDERS, include_str!("../fixtures/broken/bad-pointer.toml")),
    ("missing-retry-window", PROVIDERS, include_str!("../fixtures/broken/missing-retry-window.toml")),
    ("price-negative", PRICES, include_str!("../fixtures/broken/price-negative.toml")),
];

/// Whether a value is valid by a schema of our few keywords (JSON Schema 2020-12).
fn valid(schema: &Value, value: &Value) -> bool {
    schema.as_object().unwrap().iter().all(|(keyword, rule)| match keyword.as_str() {
        "type" => match rule.as_str().unwrap() {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("type {other}"),
        },
        "minLength" => value.as_str().is_none_or(|text| text.len() as u64 >= rule.as_u64().unwrap()),
        "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
        "minimum" => value.as_i64().is_none_or(|number| number >= rule.as_i64().unwrap()),
        "maximum" => value.as_i64().is_none_or(|number| number <= rule.as_i64().unwrap()),
        "pattern" => value.as_str().is_none_or(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)),
        "enum" => rule.as_array().unwrap().contains(value),
        "anyOf" => rule.as_array().unwrap().iter().any(|one| valid(one, value)),
        "items" => value.as_array().is_none_or(|items| items.iter().all(|item| valid(rule, item))),
        "required" => {
            let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
            !value.is_object() || rule.as_array().unwrap().iter().all(has)
        }
        "properties" => {
            let rules = rule.as_object().unwrap();
            value.as_object().is_none_or(|object| {
                object.iter().all(|(name, value)| rules.get(name).is_none_or(|rule| valid(rule, value)))
            })
        }
        "additionalProperties" => {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = value.as_object().into_iter().flatten();
            let mut others = others.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
            if rule == false { others.next().is_none() } else { others.all(|(_, value)| valid(rule, value)) }
        }
        other => NOT_CHECKED.contains(&other) || panic!("keyword {other}"),
    })
}

fn by_schema(schema: &str, toml: &str) -> bool {
    let value: Value = toml::from_str(toml).unwrap();
    valid(&serde_json::from_str(schema).unwrap(), &value)
}

#[test]
fn what_ships_is_valid() {
    assert!(by_schema(PROVIDERS, PROVIDERS_TOML) && by_schema(PRICES, PRICES_TOML));
    for (slug, file) in crate::profiles::FILES {
        assert!(by_schema(PROVIDERS, file), "{slug}");
    }
}

#[test]
fn a_wrong_form_is_refused_by_schema_and_loader_alike() {
    for (name, schema, text) in BAD_FORM {
        assert!(!by_schema(schema, text), "{name} by the schema");
        let loads = if schema == PRICES { PriceBook::parse(text).is_ok() } else { Profiles::parse(text).is_ok() };
        assert!(!loads, "{name} by the loader");
    }
}

/// What each form of text takes, and what it does not, by the pattern and by the loader.
#[test]
fn patterns_and_loader_judge_alike() {
    let base = "[providers.mine]\nowner = \"t\"\nsignature = { scheme = \"stripe\" }\nsecrets = [SECRET]\n\
                retry_window_hours = 1\ntenants = [\"*\"]\nevent_id = EVENT_ID\nevent_type = \"body:/type\"\n";
    let judge = |secret: &str, id: &str| {
        let text = base.replace("SECRET", secret).replace("EVENT_ID", id);
        let both = (by_schema(PROVIDERS, &text), Profiles::parse(&text).is_ok());
        assert_eq!(both.0, both.1, "{secret} {id}");
        both.0
    };
    for id in ["\"body:/id\"", "\"body:\"", "\"header:x\"", "[\"body:/a\", \"body:/b~1c\"]"] {
        assert!(judge("\"A_1\"", id), "{id}");
    }
    for id in ["\"body:id\"", "\"body:/a~2\"", "\"header:\"", "\"id\"", "[]", "7", "\"\""] {
        assert!(!judge("\"A_1\"", id), "{id}");
    }
    for secret in
        ["\"secretsmanager:a/b#K\"", "{ at = \"A\", not_after = \"2027-01-01T00:00:00Z\" }", "\"jwks:https://x/y\""]
    {
        assert!(judge(secret, "\"body:/id\""), "{secret}");
    }
    for secret in [
        "\"whsec_x\"",
        "\"a\"",
        "\"secretsmanager:\"",
        "\"jwks:http://x\"",
        "{ id = \"x\" }",
        "{ at = \"A\", not_after = \"soon\" }",
    ] {
        assert!(!judge(secret, "\"body:/id\""), "{secret}");
    }
}

/// The same for the paths that something is fetched by.
#[test]
fn paths_of_a_fetch_are_judged_alike() {
    let base = "[destinations.api]\nurl = \"env:A\"\n[providers.mine]\nowner = \"t\"\nsignature = { scheme = \"stripe\" }\n\
                secrets = [\"S\"]\nretry_window_hours = 1\ntenants = [\"*\"]\nevent_id = \"body:/id\"\nevent_type = \"body:/t\"\n\
                [providers.mine.events.done]\noutcome = \"success\"\noperations = [\"complete-job\", \"settle-usage\"]\n\
                fields = { tenant = \"body:/a\", job = \"body:/b\" }\ndata = { \"x y\" = \"body:/c\" }\n\
                fetch = { from = \"http:api\", path = PATH, when = \"usage-missing\", fields = { usage = \"body:/u\" } }\n";
    let judge = |path: &str| {
        let text = base.replace("PATH", &format!("{path:?}"));
        let both = (by_schema(PROVIDERS, &text), Profiles::parse(&text).is_ok());
        assert_eq!(both.0, both.1, "{path}");
        both.0
    };
    for path in ["/v1/{ref}", "/{data.x y}", "/a/{job}?t={tenant}&full=1", "/{job}{wallet}{model}"] {
        assert!(judge(path), "{path}");
    }
    for path in
        ["/v1", "v1/{ref}", "/{id}", "/{key}", "/{ref", "/{ref}}", "/{ref}/a b", "/{ref}#a", "/{data.}", "/}{ref}", ""]
    {
        assert!(!judge(path), "{path}");
    }
}
