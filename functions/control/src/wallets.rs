//! Wallets: create, fund, show. A reference is the idempotency key: the first time 201, again 200.

use domain::decide::fund::Funding;
use domain::ids::{Reference, TenantId, WalletId};
use domain::ledger::{Balance, Entry, EntryKind};
use domain::limits::DECIDE_AGAIN_LIMIT;
use domain::money::Micros;
use domain::submit::{CreateWallet, Fund};
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use runtime::retry::Again;
use serde_json::{Value, json};
use store::{Commit, WalletCreated};

use crate::{body, id, refused, unavailable};

fn wallet_json(tenant: &TenantId, wallet: &WalletId, balance: &Balance) -> Value {
    let mut shown = json!({
        "tenant": tenant, "wallet": wallet, "currency": balance.currency,
        "available": balance.available, "held": balance.held, "credit_limit": balance.credit_limit,
        "sequence": balance.sequence, "head": balance.head, "rev": balance.rev,
    });
    if let Some(postpaid) = &balance.postpaid {
        shown["postpaid"] = json!({
            "to": postpaid.to, "customer": postpaid.customer, "payment_method": postpaid.payment_method,
            "minimum_charge": postpaid.minimum,
        });
        if postpaid.authorise {
            shown["postpaid"]["authorise"] = json!(true);
        }
        shown["carried"] = json!(balance.carried);
    }
    shown
}

fn same_terms(stands: &Balance, asked: &Balance) -> bool {
    match (&stands.postpaid, &asked.postpaid) {
        (None, None) => true,
        (Some(stands), Some(asked)) => stands.same_terms(asked),
        _ => false,
    }
}

pub(crate) fn unknown_wallet(wallet: &WalletId) -> Problem {
    Problem::not_found(format!(
        "wallet {:?} does not exist: create it with PUT .../wallets/{{wallet}}",
        wallet.as_str()
    ))
}

pub(crate) async fn create(
    app: &App, event: &GatewayEvent, tenant: &str, wallet: &str,
) -> Result<GatewayResponse, Problem> {
    let (tenant, wallet): (TenantId, WalletId) = (id(tenant)?, id(wallet)?);
    let asked = body::<CreateWallet>(event)?.balance(&app.profiles, app.clock.now_ms()).map_err(refused)?;
    match app.store.create_wallet(&tenant, &wallet, &asked).await.map_err(unavailable)? {
        WalletCreated::Created => Ok(GatewayResponse::json(201, &wallet_json(&tenant, &wallet, &asked))),
        WalletCreated::Exists(stands)
            if (stands.currency, stands.credit_limit) == (asked.currency, asked.credit_limit)
                && same_terms(&stands, &asked) =>
        {
            Ok(GatewayResponse::json(200, &wallet_json(&tenant, &wallet, &stands)))
        }
        WalletCreated::Exists(stands) => Err(Problem::conflict(format!(
            "wallet {:?} exists with currency {} and credit limit {}, {}; a wallet's terms never change: ask with its own (GET shows \
             them), or use another wallet",
            wallet.as_str(),
            stands.currency,
            stands.credit_limit,
            if stands.postpaid.is_some() { "postpaid" } else { "paid in advance" }
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

fn funded_before(entry: &Entry, amount: Micros, kind: EntryKind) -> Result<GatewayResponse, Problem> {
    if entry.amount == amount && entry.kind == kind {
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
    let request = body::<Fund>(event)?;
    let (amount, reference) = request.check().map_err(refused)?;
    let kind = if request.opening_balance { EntryKind::OpeningBalance } else { EntryKind::Fund };
    let by = event.actor();
    let mut again = Again::new(app);
    let mut answer_lost = false;
    for _ in 0..DECIDE_AGAIN_LIMIT {
        let balance = app.store.get_balance(&tenant, &wallet).await.map_err(unavailable)?;
        let balance = balance.ok_or_else(|| unknown_wallet(&wallet))?;
        if let Some(entry) = app.store.get_funding(&tenant, &wallet, &reference).await.map_err(unavailable)? {
            // Our own commit whose answer was lost is found here in a later round.
            let answer = funded_before(&entry, amount, kind)?;
            let ours = answer_lost && entry.by == by;
            return Ok(if ours { GatewayResponse { status_code: 201, ..answer } } else { answer });
        }
        if kind == EntryKind::OpeningBalance && balance.sequence > 0 {
            let detail = "the wallet has entries: an opening balance comes before every other one";
            return Err(Problem::new(409, "not-possible", "The wallet does not allow this now", detail));
        }
        let request = Funding { kind, amount, reference: &reference };
        let posting = request.post(&tenant, &wallet, by.clone(), &balance, app.clock.now_ms());
        let posting = posting.map_err(|error| Problem::invalid(format!("amount: {error}")))?;
        match app.store.commit(&posting).await {
            Ok(Commit::Committed) => return Ok(GatewayResponse::json(201, &funding_json(&posting.entry))),
            Ok(Commit::ConditionFailed(_) | Commit::Conflict) => app.pause().await,
            Err(error) => {
                again.after(error).await.map_err(unavailable)?;
                answer_lost = true;
            }
        }
    }
    Err(Problem::unavailable())
}

/// `GET .../wallets/{wallet}/fundings/{reference}`: one funding and its reversals, each with the event or
/// the caller that asked.
pub(crate) async fn funding(
    app: &App, tenant: &str, wallet: &str, reference: &str,
) -> Result<GatewayResponse, Problem> {
    let (tenant, wallet, reference): (TenantId, WalletId, Reference) = (id(tenant)?, id(wallet)?, id(reference)?);
    let found = app.store.get_funding(&tenant, &wallet, &reference).await.map_err(unavailable)?;
    let found = found.ok_or_else(|| {
        Problem::not_found(format!("nothing funded wallet {:?} under this reference", wallet.as_str()))
    })?;
    let reversals = app.store.load_funding_reversals(&tenant, &wallet, &reference).await.map_err(unavailable)?;
    let one = |entry: &Entry| {
        let mut shown = funding_json(entry);
        shown["kind"] = json!(entry.kind);
        shown["by"] = json!(entry.by);
        shown["at"] = json!(domain::time::rfc3339(entry.created_ms));
        shown
    };
    let mut shown = one(&found);
    shown["tenant"] = json!(tenant);
    shown["wallet"] = json!(wallet);
    shown["reversals"] = reversals.iter().map(one).collect();
    Ok(GatewayResponse::json(200, &shown))
}
