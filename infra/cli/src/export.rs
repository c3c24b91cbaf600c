//! `export`: a wallet's entries as JSON lines, each with what its job was asked for.

use std::process::ExitCode;

use crate::api::Api;
use crate::args::ExportArgs;
use crate::error::CliError;
use crate::output;
use crate::pages;

/// Prints the lines, page by page.
pub fn run(args: &ExportArgs) -> Result<ExitCode, CliError> {
    let api = Api::new(&args.server.url)?;
    // Of a wallet that does not exist the export would be empty.
    pages::read(&api, &["tenants", &args.tenant, "wallets", &args.wallet], &[])?;
    let mut query = vec![("tenant", args.tenant.as_str()), ("wallet", args.wallet.as_str())];
    query.extend(args.request_id.as_deref().map(|id| ("request_id", id)));
    pages::each(&api, &["export"], &query, "lines", |line| output::print(&line.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
