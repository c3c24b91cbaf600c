//! Statements, open holds and the export: a wallet's story, a page at a time, oldest first.

use domain::ids::{JobId, TenantId, WalletId};
use domain::job::JobRecords;
use domain::ledger::{Account, Entry};
use domain::money::Micros;
use runtime::App;
use runtime::gateway::{GatewayEvent, GatewayResponse};
use runtime::problem::Problem;
use serde_json::{Value, json};

use crate::jobs::timestamp;
use crate::wallets::unknown_wallet;
use crate::{id, unavailable};

/// Entries of one page, unless the caller asks for fewer.
const PAGE: usize = 200;
/// Jobs of one page of holds or exported lines: each is read again one by one.
const JOBS_PAGE: usize = 50;

pub(crate) fn limit(event: &GatewayEvent, most: usize) -> Result<usize, Problem> {
    match event.query("limit") {
        None => Ok(most),
        Some(text) => match text.parse() {
            Ok(asked) if (1..=most).contains(&asked) => Ok(asked),
            _ => Err(Problem::invalid(format!("limit: give 1 to {most}"))),
        },
    }
}

fn after(event: &GatewayEvent) -> Result<u64, Problem> {
    let refused = |_| Problem::invalid("after: give the sequence of the last entry that you have");
    event.query("after").map_or(Ok(0), |text| text.parse().map_err(refused))
}

/// 404 for a wallet that does not exist, where a page would only be empty.
async fn known(app: &App, tenant: &TenantId, wallet: &WalletId) -> Result<(), Problem> {
    let balance = app.store.get_balance(tenant, wallet).await.map_err(unavailable)?;
    balance.map(|_| ()).ok_or_else(|| unknown_wallet(wallet))
}

/// What the entry does to the wallet, by its lines.
fn wallet_line(entry: &Entry) -> Micros {
    let own = [Account::Wallet, Account::Receivable]; // of a postpaid wallet the latter
    let lines = entry.lines.iter().filter(|line| own.contains(&line.account));
    lines.map(|line| line.amount).next().unwrap_or(Micros::ZERO)
}

fn entry_json(entry: &Entry) -> Value {
    let link = entry.link.as_ref();
    json!({
        "sequence": link.map(|l| l.sequence), "kind": entry.kind, "amount": wallet_line(entry),
        "currency": entry.currency, "job": entry.job, "reference": entry.reference, "at": timestamp(entry.created_ms),
        "by": entry.by, "reason": entry.reason, "price_version": entry.price_version, "usage": entry.usage,
        "previous": link.map(|l| &l.previous), "hash": link.map(|l| &l.hash),
        "record": entry, // as it is hashed, so that anyone can recompute the chain
    })
}

/// `GET .../wallets/{wallet}/statement?after=SEQUENCE&limit=N`.
pub(crate) async fn statement(
    app: &App, event: &GatewayEvent, tenant: &str, wallet: &str,
) -> Result<GatewayResponse, Problem> {
    let (tenant, wallet): (TenantId, WalletId) = (id(tenant)?, id(wallet)?);
    let (after, limit) = (after(event)?, limit(event, PAGE)?);
    known(app, &tenant, &wallet).await?;
    let page = app.store.statement(&tenant, &wallet, after, limit).await.map_err(unavailable)?;
    let last = page.entries.last().and_then(|entry| entry.link.as_ref()).map(|link| link.sequence);
    let entries: Vec<Value> = page.entries.iter().map(entry_json).collect();
    Ok(GatewayResponse::json(200, &json!({ "entries": entries, "next": last.filter(|_| page.more) })))
}

/// `GET .../wallets/{wallet}/holds?after=JOB`: the open holds, each read again from its own records.
pub(crate) async fn holds(
    app: &App, event: &GatewayEvent, tenant: &str, wallet: &str,
) -> Result<GatewayResponse, Problem> {
    let (tenant, wallet): (TenantId, WalletId) = (id(tenant)?, id(wallet)?);
    let after: Option<JobId> = event.query("after").map(|text| id(&text)).transpose()?;
    let limit = limit(event, JOBS_PAGE)?;
    known(app, &tenant, &wallet).await?;
    let jobs = app.store.jobs_of_wallet(&tenant, &wallet, after.as_ref(), limit).await.map_err(unavailable)?;
    let mut open = Vec::new();
    for job in &jobs {
        let ledger = app.store.load_ledger(&tenant, job).await.map_err(unavailable)?;
        if ledger.close.is_some() {
            continue;
        }
        if let Some(records) = app.store.load_job(&tenant, job).await.map_err(unavailable)? {
            let hold = records.hold().map_err(|error| Problem::invalid(error.to_string()))?;
            open.push(json!({ "job": job, "hold": hold, "expires_at": timestamp(records.expires_ms()) }));
        }
    }
    let next = jobs.last().filter(|_| jobs.len() == limit);
    Ok(GatewayResponse::json(200, &json!({ "holds": open, "next": next })))
}

fn export_json(entry: &Entry, job: Option<&JobRecords>) -> Value {
    let mut line = entry_json(entry);
    line["tenant"] = json!(entry.tenant);
    line["wallet"] = json!(entry.wallet);
    line["model"] = json!(job.map(|j| j.job.model()));
    line["request_id"] = json!(job.and_then(|j| j.job.request_id.as_ref()));
    line["metadata"] = json!(job.map(|j| &j.job.metadata));
    line
}

/// `GET /control/export?tenant=T&wallet=W[&after=SEQUENCE][&request_id=R]`: entries with what their
/// jobs were asked for. The program writes one line for each.
pub(crate) async fn export(app: &App, event: &GatewayEvent) -> Result<GatewayResponse, Problem> {
    let name =
        |name: &str| event.query(name).ok_or_else(|| Problem::bad_request(format!("missing parameter `{name}`")));
    let (tenant, wallet): (TenantId, WalletId) = (id(&name("tenant")?)?, id(&name("wallet")?)?);
    let (after, limit, request) = (after(event)?, limit(event, JOBS_PAGE)?, event.query("request_id"));
    known(app, &tenant, &wallet).await?;
    let page = app.store.statement(&tenant, &wallet, after, limit).await.map_err(unavailable)?;
    let mut lines = Vec::new();
    for entry in &page.entries {
        let job = match &entry.job {
            Some(job) => app.store.load_job(&tenant, job).await.map_err(unavailable)?,
            None => None,
        };
        let asked = job.as_ref().and_then(|j| j.job.request_id.as_deref());
        if request.is_none() || request.as_deref() == asked {
            lines.push(export_json(entry, job.as_ref()));
        }
    }
    let last = page.entries.last().and_then(|entry| entry.link.as_ref()).map(|link| link.sequence);
    Ok(GatewayResponse::json(200, &json!({ "lines": lines, "next": last.filter(|_| page.more) })))
}
