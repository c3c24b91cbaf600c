//! Keys that are fetched while the receiver runs: rotation, outages, mistakes, and how little a forger can make us do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use domain::profile::SecretPlace;
use local::world::{ACME_SECRET, World, WorldConfig, completed};
use receiver::fetch::{FetchError, FetchFuture, Fetched, KeyFetch, PREVIOUS};
use receiver::{DEFAULT_LIFE_MS, MAX_STALE_MS, REFRESH_MS};
use serde_json::Value;

use crate::sender::{LIKE_ACME, Sender, WHSEC, binary, config, deliver, explain, profile_of, said};

/// The network's edge: what each place holds now, and how often it was asked.
#[derive(Debug, Default)]
struct Vault {
    held: Mutex<BTreeMap<String, Result<Vec<Fetched>, FetchError>>>,
    asked: Mutex<usize>,
}

impl Vault {
    fn hold(&self, place: &str, values: &[(&'static str, &str)]) {
        let values = values.iter().map(|&(version, value)| Fetched { version, value: value.to_owned() }).collect();
        self.held.lock().unwrap().insert(place.to_owned(), Ok(values));
    }

    fn fail(&self, place: &str, error: FetchError) {
        self.held.lock().unwrap().insert(place.to_owned(), Err(error));
    }

    fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }
}

impl KeyFetch for Vault {
    fn fetch<'a>(&'a self, place: &'a SecretPlace) -> FetchFuture<'a> {
        Box::pin(async move {
            *self.asked.lock().unwrap() += 1;
            let held = self.held.lock().unwrap().get(&place.to_string()).cloned();
            held.unwrap_or(Err(FetchError::Refused("no such secret")))
        })
    }
}

const PLACE: &str = "secretsmanager:hooks/beta#KEY";
const CURRENT: &str = "AWSCURRENT";

/// A world whose provider `beta` has its secret in the vault.
async fn world(vault: &Arc<Vault>) -> World {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let beta = profile_of("beta", "standard-webhooks", r#"["*"]"#, &format!("[{PLACE:?}]"), &more);
    World::new(WorldConfig { keys: vault.clone(), ..config(&[beta], &[]) }).await.unwrap()
}

fn beta(secret: &str) -> Sender {
    Sender::new("beta", "standard-webhooks", secret)
}

#[tokio::test(start_paused = true)]
async fn sig_17_the_current_and_the_previous_version_are_both_live_and_told_apart() {
    let vault = Arc::new(Vault::default());
    vault.hold(PLACE, &[(CURRENT, WHSEC), (PREVIOUS, ACME_SECRET)]);
    let world = world(&vault).await;
    assert_eq!(beta(WHSEC).send(&world, "new", completed("j1")).await, said(202, "accepted"));
    assert_eq!(beta(ACME_SECRET).send(&world, "late", completed("j2")).await, said(202, "accepted"));
    assert_eq!(explain(&world, "beta", "new").await.1["key_id"], format!("{PLACE}@AWSCURRENT"));
    assert_eq!(explain(&world, "beta", "late").await.1["key_id"], format!("{PLACE}@AWSPREVIOUS"));
    assert_eq!(vault.asked(), 1, "cached");
}

#[tokio::test(start_paused = true)]
async fn a_rotation_is_noticed_with_the_first_delivery_that_it_signs() {
    let vault = Arc::new(Vault::default());
    vault.hold(PLACE, &[(CURRENT, ACME_SECRET)]);
    let world = world(&vault).await;
    assert_eq!(beta(ACME_SECRET).send(&world, "a", completed("j1")).await, said(202, "accepted"));
    vault.hold(PLACE, &[(CURRENT, WHSEC), (PREVIOUS, ACME_SECRET)]);
    world.clock.advance(REFRESH_MS);
    assert_eq!(beta(WHSEC).send(&world, "b", completed("j2")).await, said(202, "accepted"));
    assert_eq!(beta(ACME_SECRET).send(&world, "c", completed("j3")).await, said(202, "accepted"));
    assert_eq!(vault.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn forged_deliveries_cannot_hammer_the_source() {
    let vault = Arc::new(Vault::default());
    vault.hold(PLACE, &[(CURRENT, WHSEC)]);
    let world = world(&vault).await;
    for _ in 0..20 {
        assert_eq!(beta(ACME_SECRET).send(&world, "x", completed("j1")).await, said(401, "invalid-signature"));
    }
    assert_eq!(vault.asked(), 1);
    world.clock.advance(REFRESH_MS);
    for _ in 0..20 {
        assert_eq!(beta(ACME_SECRET).send(&world, "x", completed("j1")).await, said(401, "invalid-signature"));
    }
    assert_eq!(vault.asked(), 2);
    // Another kind of refusal is no matter of the keys.
    world.clock.advance(REFRESH_MS);
    assert_eq!(deliver(&world, &binary(&world, "beta", vec![], b"{}")).await, said(401, "invalid-signature"));
    assert_eq!(vault.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_that_were_good_serve_while_their_source_is_down_but_not_for_ever() {
    let vault = Arc::new(Vault::default());
    vault.fail(PLACE, FetchError::Unavailable("a test"));
    let world = world(&vault).await;
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(503, "unavailable"));
    vault.hold(PLACE, &[(CURRENT, WHSEC)]);
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(503, "unavailable"), "not asked so soon");
    world.clock.advance(REFRESH_MS);
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(202, "accepted"));
    vault.fail(PLACE, FetchError::Unavailable("a test"));
    world.clock.advance(DEFAULT_LIFE_MS);
    assert_eq!(beta(WHSEC).send(&world, "b", completed("j2")).await, said(202, "accepted"));
    // Nobody can say now that this one is forged.
    assert_eq!(beta(ACME_SECRET).send(&world, "c", completed("j2")).await, said(503, "unavailable"));
    world.clock.advance(MAX_STALE_MS);
    assert_eq!(beta(WHSEC).send(&world, "d", completed("j3")).await, said(503, "unavailable"));
}

#[tokio::test(start_paused = true)]
async fn a_bad_secret_is_500_for_its_own_provider_alone() {
    let vault = Arc::new(Vault::default());
    let world = world(&vault).await;
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(500, "not-configured"), "no such secret");
    world.clock.advance(REFRESH_MS);
    vault.hold(PLACE, &[(CURRENT, "whsec_with a blank")]);
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(500, "not-configured"));
    assert_eq!(world.send("m1", &completed("j1")).await, said(202, "accepted"), "acme is not concerned");
    // A version before the last rotation that cannot be used spoils nothing.
    world.clock.advance(REFRESH_MS);
    vault.hold(PLACE, &[(CURRENT, WHSEC), (PREVIOUS, "whsec_")]);
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(202, "accepted"));
}

#[tokio::test(start_paused = true)]
async fn a_variable_may_hold_a_reference_in_place_of_the_secret() {
    let vault = Arc::new(Vault::default());
    vault.hold(PLACE, &[(CURRENT, WHSEC)]);
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let beta_profile = crate::sender::profile("beta", "standard-webhooks", &more);
    let config = WorldConfig { keys: vault, ..config(&[beta_profile], &[("beta", PLACE)]) };
    let world = World::new(config).await.unwrap();
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(202, "accepted"));
    assert_eq!(explain(&world, "beta", "a").await.1["key_id"], "BETA_SECRET@AWSCURRENT");
}

/// A secret with a last moment is not tried after it.
#[tokio::test(start_paused = true)]
async fn sig_17_a_secret_ends_with_its_not_after() {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    // The world begins at 2026-11-29T12:00:00Z.
    let secrets = r#"["BETA_SECRET", { at = "OLD_SECRET", id = "old", not_after = "2026-11-29T13:00:00Z" }]"#;
    let rolled = profile_of("beta", "standard-webhooks", r#"["*"]"#, secrets, &more);
    let world = World::new(config(&[rolled], &[("beta", WHSEC), ("old", ACME_SECRET)])).await.unwrap();
    assert_eq!(beta(ACME_SECRET).send(&world, "a", completed("j1")).await, said(202, "accepted"));
    assert_eq!(explain(&world, "beta", "a").await.1["key_id"], "old");
    world.clock.advance(3_601_000);
    assert_eq!(beta(ACME_SECRET).send(&world, "b", completed("j2")).await, said(401, "invalid-signature"));
    assert_eq!(beta(WHSEC).send(&world, "c", completed("j3")).await, said(202, "accepted"));
}

/// fal's key set: the one that is cached does not know the key of fal-1, the one that is published now does.
#[tokio::test(start_paused = true)]
async fn a_key_set_is_fetched_again_where_no_key_matches() {
    const FAL: &str = include_str!("../../infra/profiles/fal.toml");
    const ADDRESS: &str = "jwks:https://rest.alpha.fal.ai/.well-known/jwks.json";
    let file: Value = serde_json::from_str(include_str!("../fixtures/signatures.json")).unwrap();
    let row = file["vectors"].as_array().unwrap().iter().find(|row| row["id"] == "fal-1").unwrap();
    let vault = Arc::new(Vault::default());
    // RFC 8032, section 7.1, TEST 2: another key.
    let other = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"}]}"#;
    vault.hold(ADDRESS, &[("", other)]);
    let mut config = WorldConfig { keys: vault.clone(), ..config(&[FAL.to_owned()], &[]) };
    config.judge_at_ms = row["now"].as_i64().map(|seconds| seconds * 1000);
    let world = World::new(config).await.unwrap();
    let headers = row["headers"].as_object().unwrap().iter();
    let headers: Vec<_> = headers.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect();
    let body = row["body"].as_str().unwrap().as_bytes();
    let sent = async || deliver(&world, &binary(&world, "fal", headers.clone(), body)).await;
    assert_eq!(sent().await, said(401, "invalid-signature"));
    vault.hold(ADDRESS, &[("", row["secret"].as_str().unwrap())]);
    assert_eq!(sent().await, said(401, "invalid-signature"), "asked too lately");
    world.clock.advance(REFRESH_MS);
    assert_eq!(sent().await, said(202, "accepted"));
    assert_eq!(vault.asked(), 2);
}

/// One of two secrets was forgotten: what it signs cannot be told from a forgery, so it is not refused for good.
#[tokio::test(start_paused = true)]
async fn where_one_of_several_secrets_is_missing_what_matches_none_is_500_and_the_others_serve() {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let profile = |secrets: &str| profile_of("beta", "standard-webhooks", r#"["*"]"#, secrets, &more);
    let both = profile(r#"["BETA_SECRET", "OTHER_SECRET"]"#);
    let world = World::new(config(&[both], &[("beta", WHSEC)])).await.unwrap();
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(202, "accepted"));
    assert_eq!(beta(ACME_SECRET).send(&world, "b", completed("j2")).await, said(500, "not-configured"));
    // What is refused for another reason is no matter of the keys.
    assert_eq!(deliver(&world, &binary(&world, "beta", vec![], b"{}")).await, said(401, "invalid-signature"));
    assert_eq!(world.send("m1", &completed("j1")).await, said(202, "accepted"), "acme is not concerned");
    // The same beside a secret that is fetched.
    let vault = Arc::new(Vault::default());
    vault.hold(PLACE, &[(CURRENT, WHSEC)]);
    let fetched = profile(&format!("[{PLACE:?}, \"OTHER_SECRET\"]"));
    let world = World::new(WorldConfig { keys: vault, ..config(&[fetched], &[]) }).await.unwrap();
    assert_eq!(beta(WHSEC).send(&world, "a", completed("j1")).await, said(202, "accepted"));
    assert_eq!(beta(ACME_SECRET).send(&world, "b", completed("j2")).await, said(500, "not-configured"));
}

/// The world begins at 2026-11-29T12:00:00Z.
#[tokio::test(start_paused = true)]
async fn a_missing_secret_is_missed_until_its_last_moment() {
    let more = format!("event_id = \"signed-id\"\n{LIKE_ACME}");
    let secrets = r#"["BETA_SECRET", { at = "OTHER_SECRET", id = "old", not_after = "2026-11-29T13:00:00Z" }]"#;
    let rolled = profile_of("beta", "standard-webhooks", r#"["*"]"#, secrets, &more);
    let world = World::new(config(&[rolled], &[("beta", WHSEC)])).await.unwrap();
    world.clock.advance(3_600_000);
    assert_eq!(beta(ACME_SECRET).send(&world, "a", completed("j1")).await, said(500, "not-configured"));
    world.clock.advance(1_000);
    assert_eq!(beta(ACME_SECRET).send(&world, "a", completed("j1")).await, said(401, "invalid-signature"));
    assert_eq!(beta(WHSEC).send(&world, "b", completed("j2")).await, said(202, "accepted"));
}
