//! `hookledger audit` as an accountant runs it: exit code 0 over sound books, and 1 once somebody has
//! changed an entry behind the program's back.

use std::path::Path;
use std::sync::Arc;

use local::{EmbeddedAws, SystemClock, dynamo_api};
use serde_json::{Value, json};

use crate::harness::Dev;

/// The exit code and what was printed.
fn run(dev: &Dev, line: &str) -> (Option<i32>, String) {
    let output = dev.run(&line.split(' ').collect::<Vec<_>>());
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// Rewrites the amount of a stored funding, with nothing of the program running.
fn tamper(data: &Path, reference: &str) {
    let aws = EmbeddedAws::open(data, Arc::new(SystemClock)).unwrap();
    let call = |operation: &str, request: Value| -> Value {
        let answer = dynamo_api::call(aws.database(), operation, request.to_string().as_bytes());
        assert_eq!(answer.status, 200);
        serde_json::from_slice(&answer.body).unwrap()
    };
    let key = json!({"pk": {"S": "W|t1|w1"}, "sk": {"S": format!("f|{reference}")}});
    let mut item = call("GetItem", json!({"TableName": "hookledger-ledger", "Key": key}))["Item"].clone();
    assert_eq!(item["am"], json!({"N": "2000000"}));
    item["am"] = json!({"N": "2000001"});
    call("PutItem", json!({"TableName": "hookledger-ledger", "Item": item}));
}

#[test]
fn audit_exits_0_over_sound_books_and_1_over_a_tampered_entry_which_it_names() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &[]);
    for wallet in ["w1", "w2"] {
        assert_eq!(run(&dev, &format!("wallet create t1 {wallet} --currency USD")).0, Some(0));
        for (amount, reference) in [("1.00", "inv-1"), ("2.00", "inv-2"), ("3.00", "inv-3")] {
            assert_eq!(run(&dev, &format!("wallet fund t1 {wallet} {amount} --reference {reference}")).0, Some(0));
        }
    }
    let (code, said) = run(&dev, "audit t1 w1 w2");
    assert_eq!((code, said.matches("clean ").count()), (Some(0), 2), "{said}");
    drop(dev);
    tamper(data.path(), "inv-2");
    let dev = Dev::start(data.path(), &[]);
    let (code, said) = run(&dev, "audit t1 w1 w2");
    let broken = "BROKEN  wallet w1 of tenant t1, entry 2: its content does not give its hash: it was changed after it was written\nclean   wallet w2 ";
    assert!(code == Some(1) && said.starts_with(broken), "{said}");
    assert_eq!(run(&dev, "audit t1 w2").0, Some(0));
}

#[test]
fn an_import_can_be_repeated_and_its_balances_are_in_the_books() {
    let data = tempfile::tempdir().unwrap();
    let dev = Dev::start(data.path(), &[]);
    let file = data.path().join("wallets.jsonl");
    let line = |wallet: &str, currency: &str| {
        let line = json!({"tenant": "t1", "wallet": wallet, "currency": currency, "opening_balance": "25.00", "reference": "o-1"});
        format!("{line}\n")
    };
    std::fs::write(&file, line("w1", "USD") + &line("w2", "JPY")).unwrap();
    let import = format!("import {}", file.display());
    let first = "line 1: t1/w1 opened\nline 2: t1/w2 opened\n2 opened, 0 unchanged, 0 refused\n";
    assert_eq!(run(&dev, &import), (Some(0), first.to_owned()));
    let again = "line 1: t1/w1 unchanged\nline 2: t1/w2 unchanged\n0 opened, 2 unchanged, 0 refused\n";
    assert_eq!(run(&dev, &import), (Some(0), again.to_owned()));
    std::fs::write(&file, line("w1", "EUR") + &line("w3", "USD")).unwrap();
    let (code, said) = run(&dev, &import);
    assert!(
        code == Some(1) && said.contains("line 1: t1/w1 REFUSED") && said.contains("line 2: t1/w3 opened"),
        "{said}"
    );
    let (_, statement) = run(&dev, "wallet statement t1 w1 --csv");
    assert!(statement.contains(",opening-balance,,o-1,25.000000,25.000000,USD,"), "{statement}");
    assert_eq!(run(&dev, "audit t1 w1 w2 w3").0, Some(0));
}
