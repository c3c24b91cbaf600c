//! What keeps handlers simulable is enforced by clippy, from one list for the functions and the shared rooms.

use std::fs;
use std::path::Path;

fn list(room: &str) -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(room).join("clippy.toml");
    fs::read_to_string(path).unwrap().parse().unwrap()
}

#[test]
fn functions_and_shared_rooms_forbid_the_same() {
    let functions = list("functions");
    assert_eq!(functions, list("shared"));
    let forbidden = |kind: &str, path: &str| {
        let entries = functions[kind].as_array().unwrap();
        assert!(entries.iter().any(|entry| entry["path"].as_str() == Some(path)), "{path} is not forbidden");
    };
    // Spawning, blocking, the wall clock, an unbiased select, HashMap's order.
    forbidden("disallowed-methods", "tokio::spawn");
    forbidden("disallowed-methods", "tokio::task::spawn_blocking");
    forbidden("disallowed-methods", "std::time::SystemTime::now");
    forbidden("disallowed-macros", "tokio::select");
    forbidden("disallowed-types", "std::collections::HashMap");
}

#[test]
fn every_room_of_handlers_has_the_workspace_lints() {
    for room in ["functions", "shared"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(room);
        let crates = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        for path in crates {
            let manifest: toml::Table = fs::read_to_string(path.join("Cargo.toml")).unwrap().parse().unwrap();
            assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{}", path.display());
            assert!(!path.join("clippy.toml").exists(), "{} has a list of its own", path.display());
        }
    }
}
