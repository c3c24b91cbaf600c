//! What the tests of the program share: `hookledger dev` as a process of its own, and the verbs against it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_hookledger");

/// A running `hookledger dev`; killed, not asked to stop, when it is dropped.
pub struct Dev {
    child: Child,
    /// Where it listens.
    pub url: String,
}

impl Dev {
    /// Starts it over a folder and waits until it says that it is ready.
    pub fn start(data: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["dev", "--port", "0", "--data", data.to_str().unwrap()])
            .args(more)
            .env("HOOKLEDGER_LOG", "error")
            .env_remove("ACME_WEBHOOK_SECRET")
            .env("GITHUB_WEBHOOK_SECRET", "It's a Secret to Everybody")
            .env("STRIPE_WEBHOOK_SECRET", "webhook_secret")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("ready ").expect("the first line says ready").to_owned();
        Self { child, url }
    }

    /// Runs a verb against it.
    pub fn run(&self, args: &[&str]) -> Output {
        Command::new(PROGRAM)
            .args(args)
            .env("HOOKLEDGER_URL", &self.url)
            .env_remove("ACME_WEBHOOK_SECRET")
            .output()
            .unwrap()
    }

    /// Runs a verb with `--json`; its exit code and answer.
    pub fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let output = self.run(&[args, &["--json"]].concat());
        (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill(); // a test that fails has said why already
        let _ = self.child.wait();
    }
}
