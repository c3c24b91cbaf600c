//! An auditor's look at the books: promises 2, 4, 5 and 7, computed from the stored items alone.
//!
//! The chain's hashes are computed here anew, by the rule of `shared/domain/src/ledger.rs`: an entry's
//! content hash is the SHA-256 of its content as compact JSON, in the record's order and without its
//! place in the chain; a link's is that of `1|sequence|previous hash|content hash`.

use std::collections::BTreeMap;

use local::world::World;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::harness::items;

/// The content of an entry in the record's order; all else in an item is keys, index and chain.
pub const CONTENT: [&str; 18] =
    ["kd", "tn", "wl", "jb", "vn", "rn", "sq", "rs", "am", "rl", "uc", "cu", "ln", "us", "pv", "ch", "by", "cr"];
/// Table keys, schema version, statement index, and the three chain fields.
const BESIDE: [&str; 7] = ["pk", "sk", "sv", "w", "seq", "ph", "hh"];

/// Stops the test when the books do not add up.
pub fn audit(world: &World) {
    if let Err(problem) = checked(world) {
        panic!("the books do not add up: {problem}");
    }
}

/// The first thing that is wrong, if anything is.
pub fn checked(world: &World) -> Result<(), String> {
    let (mut ledger, balances, jobs) = (items(world, "ledger"), items(world, "balances"), items(world, "jobs"));
    ledger.retain(|item| !text(item, "sk").starts_with("n|")); // a place taken, no entry
    let mut per_currency: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in &ledger {
        let lines = lines(entry);
        *per_currency.entry(text(entry, "cu")).or_default() += lines.iter().map(|(_, amount)| amount).sum::<i64>();
    }
    if let Some((currency, sum)) = per_currency.iter().find(|(_, sum)| **sum != 0) {
        return Err(format!("all accounts in {currency} sum to {sum}"));
    }
    for balance in &balances {
        check_wallet(balance, &ledger, &jobs)?;
    }
    // Closes and late captures of an event; what a person or the schedule closes names no version.
    let settled = |entry: &&Value| text(entry, "sk") == "c" || text(entry, "sk").starts_with("l|");
    for entry in ledger.iter().filter(settled).filter(|entry| entry.get("vn").is_some()) {
        check_settlement(entry, &jobs)?;
    }
    Ok(())
}

/// One wallet: its chain has no gap and every hash is right; its balance is what the entries say.
fn check_wallet(balance: &Value, ledger: &[Value], jobs: &[Value]) -> Result<(), String> {
    let wallet = text(balance, "pk");
    let mut chain: Vec<&Value> = ledger.iter().filter(|entry| text(entry, "w") == wallet).collect();
    chain.sort_by_key(|entry| number(entry, "seq"));
    let (mut head, mut total, mut rounding) = (String::new(), 0, 0);
    for (place, entry) in (1..).zip(&chain) {
        if number(entry, "seq") != place {
            return Err(format!("{wallet}: entry {} stands at place {place}", number(entry, "seq")));
        }
        if text(entry, "ph") != head {
            return Err(format!("{wallet}: entry {place} does not name the hash before it"));
        }
        let content = sha256(&content(entry)?);
        head = sha256(&format!("1|{place}|{head}|{content}"));
        if text(entry, "hh") != head {
            return Err(format!("{wallet}: entry {place} has another hash"));
        }
        let own = if balance.get("pp").is_some() { "receivable" } else { "wallet" };
        let sum =
            |of: &str| lines(entry).iter().filter(|(account, _)| *account == of).map(|(_, amount)| amount).sum::<i64>();
        total += sum(own);
        rounding += sum("rounding");
    }
    let (available, held) = (number(balance, "av"), number(balance, "he"));
    if number(balance, "seq") != i64::try_from(chain.len()).unwrap() || text(balance, "hd") != head {
        return Err(format!("{wallet}: the balance does not stand at the chain's end"));
    }
    if available + held != total {
        return Err(format!("{wallet}: available {available} + held {held} is not {total}, the sum of its entries"));
    }
    if number(balance, "ca") != -rounding {
        return Err(format!("{wallet}: carried {} and the rounding account says {rounding}", number(balance, "ca")));
    }
    if available < -number(balance, "cl") {
        return Err(format!("{wallet}: available {available} is below the credit limit"));
    }
    let closed = |job: &Value| ledger.iter().any(|e| text(e, "pk") == text(job, "pk") && text(e, "sk") == "c");
    let of_wallet = |job: &&Value| text(job, "sk") == "j" && text(job, "w") == wallet;
    let open: i64 = jobs.iter().filter(of_wallet).filter(|job| !closed(job)).map(|job| number(job, "hd")).sum();
    if held != open {
        return Err(format!("{wallet}: held {held} is not {open}, the sum of the open holds"));
    }
    Ok(())
}

/// One settlement: it splits the hold, and it is by the event that decided the version it settles.
fn check_settlement(entry: &Value, jobs: &[Value]) -> Result<(), String> {
    let pk = text(entry, "pk");
    let item = |sk: &str| jobs.iter().find(|item| text(item, "pk") == pk && text(item, "sk") == sk);
    let job = item("j").ok_or_else(|| format!("{pk}: a settlement without its job"))?;
    let (captured, released) = (number(entry, "am"), number(entry, "rl"));
    if captured < 0 || released < 0 {
        return Err(format!("{pk}: captured {captured}, released {released}"));
    }
    if text(entry, "sk") == "c" && captured.min(number(job, "hd")) + released != number(job, "hd") {
        return Err(format!("{pk}: captured {captured} and released {released} are not the hold"));
    }
    let transition = item(&format!("t|{:06}", number(entry, "vn")));
    let decided = transition.map_or("", |transition| text(transition, "by"));
    if decided != text(entry, "by") {
        return Err(format!("{pk}: settled by {}, decided by {decided:?}", text(entry, "by")));
    }
    Ok(())
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// The text of a string attribute; empty when it is absent.
pub fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name]["S"].as_str().unwrap_or_default()
}

/// A number attribute; zero when it is absent.
pub fn number(item: &Value, name: &str) -> i64 {
    item[name]["N"].as_str().map_or(0, |digits| digits.parse().unwrap())
}

/// The accounts and amounts of an entry.
fn lines(entry: &Value) -> Vec<(&str, i64)> {
    let list = entry["ln"]["L"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|line| (text(&line["M"], "ac"), number(&line["M"], "am"))).collect()
}

fn content(entry: &Value) -> Result<String, String> {
    let members = entry.as_object().unwrap();
    if let Some(unknown) = members.keys().find(|k| !CONTENT.contains(&k.as_str()) && !BESIDE.contains(&k.as_str())) {
        return Err(format!("member {unknown:?} is in no list: is it content that the hash covers?"));
    }
    let known = CONTENT.iter().filter_map(|name| Some(format!("\"{name}\":{}", plain(members.get(*name)?))));
    Ok(format!("{{{}}}", known.collect::<Vec<_>>().join(",")))
}

/// An attribute as compact JSON.
fn plain(attribute: &Value) -> String {
    let (kind, value) = attribute.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "N" => value.as_str().unwrap().to_owned(),
        "L" => format!("[{}]", value.as_array().unwrap().iter().map(plain).collect::<Vec<_>>().join(",")),
        "M" => {
            let sorted: BTreeMap<&String, &Value> = value.as_object().unwrap().iter().collect();
            let member =
                |(name, value): (&&String, &&Value)| format!("{}:{}", Value::from(name.as_str()), plain(value));
            format!("{{{}}}", sorted.iter().map(member).collect::<Vec<_>>().join(","))
        }
        _ => value.to_string(),
    }
}
