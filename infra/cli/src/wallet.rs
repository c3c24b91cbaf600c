//! `wallet create`, `fund` and `show`.

use std::process::ExitCode;

use domain::submit::{AskedPostpaid, CreateWallet, Fund};
use serde_json::Value;

use crate::api::{Answer, Api};
use crate::args::{WalletCreateArgs, WalletFundArgs, WalletShowArgs};
use crate::error::CliError;
use crate::output::{self, amount, cell, plain, table};

/// Creates a wallet.
pub fn create(args: WalletCreateArgs) -> Result<ExitCode, CliError> {
    let postpaid = args.postpaid.map(|to| AskedPostpaid {
        to,
        customer: args.customer.unwrap_or_default(), // required beside it
        payment_method: args.payment_method.unwrap_or_default(),
        minimum_charge: args.minimum_charge,
        authorise: args.authorise,
    });
    let body = CreateWallet { currency: args.currency, credit_limit: args.credit_limit, postpaid };
    let path = ["tenants", &args.tenant, "wallets", &args.wallet];
    let answer = Api::new(&args.common.server.url)?.control("PUT", &path, Some(&body))?;
    output::answer(&answer, args.common.format.json, |answer| {
        let again = "the wallet exists already with this content; nothing changed";
        format!("{}\n{}", wallet(&answer.body), first_time(answer, "wallet created", again))
    })
}

/// Adds money to a wallet.
pub fn fund(args: WalletFundArgs) -> Result<ExitCode, CliError> {
    let body = Fund { amount: args.amount, reference: args.reference, opening_balance: false };
    let path = ["tenants", &args.tenant, "wallets", &args.wallet, "fund"];
    let answer = Api::new(&args.common.server.url)?.control("POST", &path, Some(&body))?;
    output::answer(&answer, args.common.format.json, |answer| {
        let again = "this reference funded the wallet before; nothing changed";
        let added = format!("wallet {} of tenant {} funded", plain(&args.wallet), plain(&args.tenant));
        format!("{}\n{}", funding(&answer.body), first_time(answer, &added, again))
    })
}

/// Shows a wallet.
pub fn show(args: WalletShowArgs) -> Result<ExitCode, CliError> {
    let answer = Api::new(&args.common.server.url)?.get(&["tenants", &args.tenant, "wallets", &args.wallet])?;
    output::answer(&answer, args.common.format.json, |answer| wallet(&answer.body))
}

/// The server answers 201 the first time and 200 when the same was asked before.
pub fn first_time<'a>(answer: &Answer, first: &'a str, again: &'a str) -> &'a str {
    if answer.status == 201 { first } else { again }
}

fn wallet(body: &Value) -> String {
    let header = ["tenant", "wallet", "currency", "available", "held", "credit limit", "entries"];
    let [tenant, wallet, currency, entries] =
        ["tenant", "wallet", "currency", "sequence"].map(|name| cell(&body[name]));
    let [available, held, limit] = ["available", "held", "credit_limit"].map(|name| amount(&body[name]));
    table(header, [[tenant, wallet, currency, available, held, limit, entries]])
}

fn funding(body: &Value) -> String {
    let header = ["reference", "amount", "currency", "entry"];
    let [reference, currency, entry] = ["reference", "currency", "sequence"].map(|name| cell(&body[name]));
    table(header, [[reference, amount(&body["amount"]), currency, entry]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wallet_is_one_row() {
        let body = json!({
            "tenant": "t1", "wallet": "w1", "currency": "USD", "available": "95.000000", "held": "5.000000",
            "credit_limit": "0.000000", "sequence": 1
        });
        let by_hand = "\
┌────────┬────────┬──────────┬───────────┬──────┬──────────────┬─────────┐
│ tenant ┆ wallet ┆ currency ┆ available ┆ held ┆ credit limit ┆ entries │
╞════════╪════════╪══════════╪═══════════╪══════╪══════════════╪═════════╡
│ t1     ┆ w1     ┆ USD      ┆ 95.00     ┆ 5.00 ┆ 0.00         ┆ 1       │
└────────┴────────┴──────────┴───────────┴──────┴──────────────┴─────────┘";
        assert_eq!(wallet(&body), by_hand);
    }

    #[test]
    fn a_repeated_funding_says_that_nothing_changed() {
        let answer = |status| Answer { status, body: Value::Null };
        assert_eq!(first_time(&answer(201), "new", "again"), "new");
        assert_eq!(first_time(&answer(200), "new", "again"), "again");
    }
}
