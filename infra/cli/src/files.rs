//! The two files that a person writes: those that the program was built with, or others.

use std::path::Path;

use domain::config::FileError;
use domain::price::PriceBook;
use domain::profile::Profiles;
use runtime::lambda::{PRICES_TOML, PROVIDERS_TOML};

use crate::error::CliError;

/// The text of a file.
pub fn text(file: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(file)
        .map_err(|error| CliError::Misuse(format!("{} cannot be read as text: {error}", file.display())))
}

/// The profiles of a file, or the built-in ones.
pub fn profiles(file: Option<&Path>) -> Result<Profiles, CliError> {
    loaded(file, PROVIDERS_TOML, Profiles::parse)
}

/// The prices of a file, or the built-in ones.
pub fn prices(file: Option<&Path>) -> Result<PriceBook, CliError> {
    loaded(file, PRICES_TOML, PriceBook::parse)
}

fn loaded<T>(file: Option<&Path>, built_in: &str, parse: impl Fn(&str) -> Result<T, FileError>) -> Result<T, CliError> {
    let Some(file) = file else { return parse(built_in).map_err(|error| CliError::Failed(error.to_string())) };
    parse(&text(file)?).map_err(|error| {
        let lines = error.findings.iter().map(|finding| format!("{}:{finding}", file.display()));
        CliError::Failed(lines.collect::<Vec<_>>().join("\n"))
    })
}
