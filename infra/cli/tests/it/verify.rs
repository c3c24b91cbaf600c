//! Every published row through the program `verify`, as one would pipe it.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::PROGRAM;

const FILE: &str = include_str!("../../../../tests/fixtures/signatures.json");

#[test]
fn every_row_is_judged_as_published() {
    let file: Value = serde_json::from_str(FILE).unwrap();
    let rows = file["vectors"].as_array().unwrap();
    assert_eq!(rows.len(), 67);
    for row in rows {
        let mut program = Command::new(PROGRAM);
        let mut child = program.arg("verify").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(row.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(verdict["result"], row["expect"], "{}", row["id"]);
        let valid = row["expect"] == "valid";
        assert_eq!(output.status.code(), Some(i32::from(!valid)), "{}", row["id"]);
        assert_eq!(verdict["reason"].is_null(), valid, "{}", row["id"]);
    }
}
