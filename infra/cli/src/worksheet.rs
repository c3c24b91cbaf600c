//! `worksheet`: the handoff worksheet of one provider, from its profile.

use std::process::ExitCode;

use serde_json::json;

use crate::args::WorksheetArgs;
use crate::error::CliError;
use crate::{files, output};

/// Prints it.
pub fn run(args: &WorksheetArgs) -> Result<ExitCode, CliError> {
    let profiles = files::profiles(args.profiles.providers.as_deref())?;
    let profile = profiles.get(&args.provider).ok_or_else(|| {
        let known: Vec<_> = profiles.iter().map(|profile| profile.slug.as_str()).collect();
        CliError::Misuse(format!("provider {:?} has no profile; there are {}", args.provider, known.join(", ")))
    })?;
    let sheet = profile.worksheet();
    let shown =
        if args.format.json { json!({"provider": args.provider, "markdown": sheet}).to_string() } else { sheet };
    output::print(&shown)?;
    Ok(ExitCode::SUCCESS)
}
