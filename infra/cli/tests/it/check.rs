//! The program `check` on files with one mistake each, and on every file that ships.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use signature::Recipe;

use crate::harness::PROGRAM;

/// File, line, field, and words of the remedy.
const BROKEN: [(&str, u64, &str, &str); 15] = [
    ("syntax", 3, "file", "write valid TOML"),
    ("unknown-field", 3, "providers.mine.ovner", "did you mean `owner`?"),
    ("unknown-operation", 15, "providers.mine.events.job.completed.operations.1", "did you mean \"settle-usage\"?"),
    ("unknown-scheme", 4, "providers.mine.signature.scheme", "did you mean \"stripe\"?"),
    ("secret-in-the-file", 5, "providers.mine.secrets.0", "roll it"),
    ("bad-pointer", 9, "providers.mine.event_id", "\"body:/json/pointer\""),
    ("unfilled-owner", 3, "providers.mine.owner", "name the team"),
    ("missing-retry-window", 2, "providers.mine.retry_window_hours", "how long the provider tries again"),
    ("completion-without-settlement", 15, "providers.mine.events.job.completed.operations", "add \"settle-usage\""),
    ("hold-too-short", 7, "providers.mine.hold_hours", "give at least 73"),
    ("unsigned-id", 9, "providers.mine.event_id", "id_signed = false"),
    ("duplicate-slug", 17, "file", "give each name once"),
    ("provisional-and-partial", 17, "providers.mine.policies", "keep one of"),
    ("price-negative", 7, "price.0.rates.input_tokens.price", "zero or more"),
    ("price-per", 7, "price.0.rates.input_tokens.per", "1, 10, 100"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn broken(name: &str) -> PathBuf {
    root().join(format!("tests/fixtures/broken/{name}.toml"))
}

fn check(args: &[&Path], json: bool) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("check").args(args);
    if json {
        command.arg("--json");
    }
    command.output().unwrap()
}

fn findings(output: &Output) -> Vec<Value> {
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    shown["files"].as_array().unwrap().iter().flat_map(|f| f["findings"].as_array().unwrap().clone()).collect()
}

#[test]
fn each_broken_file_has_one_finding_with_its_line_and_remedy() {
    for (name, line, field, remedy) in BROKEN {
        let output = check(&[&broken(name)], true);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let found = findings(&output);
        // Bad TOML may have an echo further on: the first finding is the mistake.
        let echoes = name == "syntax" || name == "duplicate-slug";
        assert!(found.len() == 1 || echoes, "{name}: {found:?}");
        assert_eq!((found[0]["line"].as_u64(), found[0]["field"].as_str()), (Some(line), Some(field)), "{name}");
        assert!(found[0]["remedy"].as_str().unwrap().contains(remedy), "{name}: {found:?}");
        assert!(!found[0]["cause"].as_str().unwrap().is_empty(), "{name}");
        let text = String::from_utf8(check(&[&broken(name)], false).stdout).unwrap();
        assert!(text.contains(&format!("{name}.toml:{line}:")), "{name}: {text}");
    }
}

#[test]
fn a_secret_in_a_file_is_not_repeated() {
    for json in [false, true] {
        let output = check(&[&broken("secret-in-the-file")], json);
        let all = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8(all).unwrap().contains("bm90LWEtcmVhbC1zZWNyZXQ"));
    }
}

#[test]
fn every_mistake_of_every_file_is_told() {
    let files: Vec<PathBuf> = BROKEN.iter().map(|(name, ..)| broken(name)).collect();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let shown: Value = serde_json::from_slice(&check(&files, true).stdout).unwrap();
    let shown = shown["files"].as_array().unwrap();
    assert_eq!(shown.len(), BROKEN.len());
    assert!(shown.iter().all(|file| !file["findings"].as_array().unwrap().is_empty()), "{shown:?}");
}

#[test]
fn every_file_that_ships_is_clean_and_its_settings_are_shown() {
    let profiles = std::fs::read_dir(root().join("infra/profiles")).unwrap();
    let mut files: Vec<PathBuf> = profiles.map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 17);
    files.extend(["infra/providers.toml", "infra/prices.toml"].map(|file| root().join(file)));
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let output = check(&files, true);
    assert_eq!((output.status.code(), findings(&output)), (Some(0), vec![]));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["settings"]["backoff_cap"], "900 s");
    assert_eq!(shown["settings"]["max_body"], "262144 bytes");
}

/// Each scheme that is known by name has a profile to copy, and each profile its worksheet.
#[test]
fn there_is_a_profile_for_every_scheme_and_a_worksheet_for_every_profile() {
    let mut schemes = Vec::new();
    let mut files = vec![root().join("infra/providers.toml")];
    files.extend(std::fs::read_dir(root().join("infra/profiles")).unwrap().map(|entry| entry.unwrap().path()));
    for file in files {
        let shown: Value = serde_json::from_slice(&check(&[&file], true).stdout).unwrap();
        for profile in shown["files"][0]["profiles"].as_array().unwrap() {
            schemes.push(profile["scheme"].as_str().unwrap().to_owned());
            let slug = profile["provider"].as_str().unwrap();
            let mut command = Command::new(PROGRAM);
            let sheet = command.args(["worksheet", slug, "--providers"]).arg(&file).output().unwrap();
            let sheet = String::from_utf8(sheet.stdout).unwrap();
            assert!(sheet.starts_with(&format!("# Handoff worksheet: {slug}\n")), "{sheet}");
            for part in ["owner", &format!("`POST /webhooks/{slug}`"), "retention", "event id", "## Replay worksheet"] {
                assert!(sheet.contains(part), "{slug} lacks {part}");
            }
        }
    }
    for scheme in Recipe::names().chain(["hmac"]) {
        assert!(schemes.iter().any(|known| known == scheme), "{scheme} has no profile");
    }
}

#[test]
fn an_unreadable_file_is_misuse() {
    assert_eq!(check(&[Path::new("no-such-file.toml")], true).status.code(), Some(2));
}
