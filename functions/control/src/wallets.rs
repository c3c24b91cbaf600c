//! Wallets: create, fund, show. A reference is the idempotency key: the first time 201, again 200.

use domain::ids::{TenantId, WalletId};
use domain::ledger::{Balance, Entry};
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::money::Micros;
use domain::submit::{CreateWallet, Fund, fund_entry};
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::retry::Again;
use serde_json::{Value, json};
use store::{Funded, WalletCreated};

use crate::{body, id, refused, unavailable};

fn wallet_json(tenant: &TenantId, wallet: &WalletId, balance: &Balance) -> Value {
    json!({
        "tenant": tenant, "wallet": wallet, "currency": balance.currency,
        "available": balance.available, "held": balance.held, "credit_limit": balance.credit_limit,
        "sequence": balance.sequence,
    })
}

fn unknown_wallet(wallet: &WalletId) -> Problem {
    Problem::not_found(format!(
        "wallet {:?} does not exist: create it with PUT .../wallets/{{wallet}}",
        wallet.as_str()
    ))
}

pub(crate) async fn create(
    app: &App, event: &GatewayEvent, tenant: &str, wallet: &str,
) -> Result<GatewayResponse, Problem> {
    let (tenant, wallet): (TenantId, WalletId) = (id(tenant)?, id(wallet)?);
    let asked = body::<CreateWallet>(event)?.balance(app.clock.now_ms()).map_err(refused)?;
    match app.store.create_wallet(&tenant, &wallet, &asked).await.map_err(unavailable)? {
        WalletCreated::Created => Ok(GatewayResponse::json(201, &wallet_json(&tenant, &wallet, &asked))),
        WalletCreated::Exists(stands)
            if (stands.currency, stands.credit_limit) == (asked.currency, asked.credit_limit) =>
        {
            Ok(GatewayResponse::json(200, &wallet_json(&tenant, &wallet, &stands)))
        }
        WalletCreated::Exists(stands) => Err(Problem::conflict(format!(
            "wallet {:?} exists with currency {} and credit limit {}",
            wallet.as_str(),
            stands.currency,
            stands.credit_limit
        ))),
    }
}

pub(crate) async fn show(app: &App, tenant: &str, wallet: &str) -> Result<GatewayResponse, Problem> {
    let (tenant, wallet): (TenantId, WalletId) = (id(tenant)?, id(wallet)?);
    let balance = app.store.get_balance(&tenant, &wallet).await.map_err(unavailable)?;
    let balance = balance.ok_or_else(|| unknown_wallet(&wallet))?;
    Ok(GatewayResponse::json(200, &wallet_json(&tenant, &wallet, &balance)))
}

fn funding_json(entry: &Entry) -> Value {
    json!({
        "reference": entry.reference, "amount": entry.amount, "currency": entry.currency,
        "sequence": entry.link.as_ref().map(|l| l.sequence), "hash": entry.link.as_ref().map(|l| &l.hash),
    })
}

fn funded_before(entry: &Entry, amount: Micros) -> Result<GatewayResponse, Problem> {
    if entry.amount == amount {
        return Ok(GatewayResponse::json(200, &funding_json(entry)));
    }
    let detail = format!("this reference funded {} {}: use another reference", entry.amount, entry.currency);
    Err(Problem::conflict(detail))
}

/// Reads the balance and the reference, writes both in one transaction, and begins anew when another
/// writer came between.
pub(crate) async fn fund(
    app: &App, event: &GatewayEvent, tenant: &str, wallet: &str,
) -> Result<GatewayResponse, Problem> {
    let (tenant, wallet): (TenantId, WalletId) = (id(tenant)?, id(wallet)?);
    let (amount, reference) = body::<Fund>(event)?.check().map_err(refused)?;
    let by = event.actor();
    let mut again = Again::new(app);
    for round in 0..DECIDE_AGAIN_LIMIT {
        let balance = app.store.get_balance(&tenant, &wallet).await.map_err(unavailable)?;
        let balance = balance.ok_or_else(|| unknown_wallet(&wallet))?;
        if let Some(entry) = app.store.get_funding(&tenant, &wallet, &reference).await.map_err(unavailable)? {
            // Our own commit whose answer was lost is found here in a later round.
            let answer = funded_before(&entry, amount)?;
            let ours = round > 0 && entry.by == by;
            return Ok(if ours { GatewayResponse { status_code: 201, ..answer } } else { answer });
        }
        let now_ms = app.clock.now_ms();
        let (entry, delta) =
            fund_entry(&tenant, &wallet, amount, &reference, &by, &balance, now_ms).map_err(refused)?;
        match app.store.commit_funding(&reference, &entry, &delta).await {
            Ok(Funded::Committed) => return Ok(GatewayResponse::json(201, &funding_json(&entry))),
            Ok(Funded::Again) => app.pause().await,
            Err(error) => again.after(error).await.map_err(unavailable)?,
        }
    }
    Err(Problem::unavailable())
}
