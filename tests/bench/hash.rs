//! Benchmark of what every delivery costs before anything is stored: verify, parse, canonical hash.
//!
//! ```text
//! cargo bench -p tests --bench hash    # release profile: the figures that count
//! cargo test  -p tests --bench hash    # dev profile: that it runs; our own crates are not optimised there
//! ```
//!
//! For bodies of 1, 16 and 256 KiB it takes the median of many rounds of: the signature (Standard Webhooks) over the
//! exact bytes; strict parsing; the payload hash; all three; and SHA-256 alone over the same bytes. The signature and
//! the payload hash are one pass of SHA-256 each, so the sum of all three is at least twice SHA-256 alone, less what the
//! canonical form is shorter than the body. The aim is a ratio of 2 for 16 KiB and above. A median of times is no
//! test: nothing fails here, except where a delivery is not taken.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use domain::json;
use serde_json::json;
use sha2::{Digest, Sha256};
use signature::{Headers, Recipe, Request, Secret, Verifier};

const SECRET: &str = "whsec_dGVzdHMtb25seS1zZWNyZXQtb2YtYS1wcm92aWRlcg==";
const NOW_MS: i64 = 1_764_000_000_000;
/// How long each figure is measured.
const EACH: Duration = Duration::from_millis(300);

/// An event like a model provider's: nested objects, texts, numbers, written indented as many senders do or compactly.
fn body(bytes: usize, indented: bool) -> Vec<u8> {
    let item = |n: usize| {
        json!({
            "id": format!("item_{n:06}"), "index": n, "object": "completion.part", "finish_reason": null, "score": 0.125,
            "text": "The quick brown fox jumps over the lazy dog, while a second sentence goes on for a while longer.",
            "usage": {"input_tokens": 1200 + n, "output_tokens": 340, "cached": false},
        })
    };
    let write = |count: usize| {
        let items: Vec<_> = (0..count).map(item).collect();
        let event = json!({"type": "job.completed", "timestamp": "2026-11-29T12:00:00Z", "data": {"items": items}});
        if indented { serde_json::to_vec_pretty(&event) } else { serde_json::to_vec(&event) }.unwrap()
    };
    let mut count = 1;
    while write(count + 1).len() <= bytes {
        count += 1;
    }
    let mut written = write(count);
    // JSON may end in blanks; so the size is exact.
    written.resize(bytes.max(written.len()), b' ');
    written
}

/// The median of one round, in nanoseconds.
fn median(mut round: impl FnMut()) -> u128 {
    let begun = Instant::now();
    let mut times = Vec::new();
    while begun.elapsed() < EACH || times.len() < 11 {
        let start = Instant::now();
        round();
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

fn ratio(part: u128, whole: u128) -> String {
    let hundredths = part * 100 / whole.max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn main() {
    println!(
        "{:>8} {:>9} {:>11} {:>11} {:>11} {:>11} {:>11} {:>7}",
        "body", "form", "sha256 ns", "verify ns", "parse ns", "hash ns", "all ns", "ratio"
    );
    for (bytes, name) in [(1024, "1 KiB"), (16 * 1024, "16 KiB"), (256 * 1024, "256 KiB")] {
        for indented in [false, true] {
            let body = body(bytes, indented);
            let recipe = Recipe::named("standard-webhooks").unwrap();
            let verifier = Verifier::new(recipe, vec![Secret::new("bench", SECRET)]).unwrap();
            let none = Headers::default();
            let unsigned = Request { method: "POST", url: None, headers: &none, body: &body };
            let headers = Headers::new(verifier.sign("msg_1", NOW_MS, &unsigned).unwrap());
            let request = Request { headers: &headers, ..unsigned };
            let verify = || assert!(black_box(verifier.verify(black_box(&request), NOW_MS)).is_ok());
            let hash = |value: &json::Value<'_>| drop(black_box(json::payload_hash(value, &[])));
            let value = json::parse(&body).unwrap();
            let alone = median(|| {
                black_box(Sha256::digest(black_box(&body)));
            });
            let verified = median(verify);
            let parsed = median(|| drop(black_box(json::parse(black_box(&body)).unwrap())));
            let hashed = median(|| hash(&value));
            let all = median(|| {
                verify();
                hash(&json::parse(black_box(&body)).unwrap());
            });
            let form = if indented { "indented" } else { "compact" };
            println!(
                "{name:>8} {form:>9} {alone:>11} {verified:>11} {parsed:>11} {hashed:>11} {all:>11} {:>7}",
                ratio(all, alone)
            );
        }
    }
}
