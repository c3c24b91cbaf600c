//! `infra/openapi.yaml` against itself and against the program: every example, and an event as it is really shown, has
//! what its schema requires, and nothing that the schema does not name where it names all.

use local::world::completed;
use serde_json::Value;

use super::document;
use crate::harness::{accepted, submitted};

const OPENAPI: &str = include_str!("../../../infra/openapi.yaml");

fn resolved<'a>(openapi: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(place) => {
            openapi.pointer(place.trim_start_matches('#')).unwrap_or_else(|| panic!("{place} leads nowhere"))
        }
        None => schema,
    }
}

/// The members that a value lacks by a schema, each with its place.
fn lacks(openapi: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let schema = resolved(openapi, schema);
    let mut found = Vec::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            found.push(format!("{at}/{name}"));
        }
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        found.extend(lacks(openapi, &schema["properties"][name], member, &format!("{at}/{name}")));
    }
    for (place, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(lacks(openapi, &schema["items"], item, &format!("{at}/{place}")));
    }
    found
}

/// Every example beside its schema, wherever they stand.
fn examples<'a>(node: &'a Value, at: String, found: &mut Vec<(String, &'a Value, &'a Value)>) {
    if let (Some(schema), Some(example)) = (node.get("schema"), node.get("example")) {
        found.push((at.clone(), schema, example));
    }
    for (name, child) in node.as_object().into_iter().flatten() {
        examples(child, format!("{at}/{name}"), found);
    }
}

#[test]
fn every_example_has_what_its_schema_requires() {
    let openapi = document::parse(OPENAPI).unwrap();
    let mut all = Vec::new();
    examples(&openapi["paths"], String::new(), &mut all);
    assert!(all.len() > 20, "{}", all.len());
    let wrong: Vec<String> =
        all.into_iter().flat_map(|(at, schema, example)| lacks(&openapi, schema, example, &at)).collect();
    assert_eq!(wrong, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_shown_as_the_interface_says() {
    let openapi = document::parse(OPENAPI).unwrap();
    let world = submitted().await;
    accepted(&world, "msg_1", &completed("j1")).await;
    world.drain().await.unwrap();
    let (shown, schema) = (world.explain("msg_1").await, &openapi["components"]["schemas"]["Event"]);
    assert_eq!(lacks(&openapi, schema, &shown, ""), [""; 0]);
    let known = schema["properties"].as_object().unwrap();
    let unknown: Vec<&String> = shown.as_object().unwrap().keys().filter(|name| !known.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
