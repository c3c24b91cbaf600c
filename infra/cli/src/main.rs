//! `hookledger`: the program that runs, tries and explains the system.
//!
//! Each verb is one module. Exit codes: 0 done, 1 found something wrong or refused by the server, 2 misuse.

mod action;
mod api;
mod args;
mod audit;
mod bench;
mod check;
mod dev;
mod drill;
mod error;
mod explain;
mod export;
mod files;
mod import;
mod job;
mod output;
mod pages;
mod pause;
mod reconcile;
mod rejected;
mod replay;
mod reviews;
mod secrets;
mod send;
mod sign;
mod statement;
mod status;
mod verify;
mod volley;
mod wallet;
mod worksheet;

use std::io::Write;
use std::process::ExitCode;

use args::{Cli, JobVerb, Verb, WalletVerb};
use clap::Parser;
use error::CliError;

fn main() -> ExitCode {
    match run(Cli::parse().verb) {
        Ok(code) => code,
        Err(error) => {
            // Nothing is left to tell it to when stderr is closed too.
            let _ = writeln!(std::io::stderr(), "hookledger: {error}");
            error.exit_code()
        }
    }
}

fn run(verb: Verb) -> Result<ExitCode, CliError> {
    match verb {
        Verb::Dev(args) => dev::run(&args),
        Verb::Drill(args) => drill::run(&args),
        Verb::Send(args) => send::run(args),
        Verb::Verify(args) => verify::run(args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Status(args) => status::run(&args),
        Verb::Reviews(args) => reviews::run(args),
        Verb::Replay(args) => replay::run(&args),
        Verb::Pause(args) => pause::run(&args, true),
        Verb::Resume(args) => pause::run(&args, false),
        Verb::Rejected(args) => rejected::run(&args),
        Verb::Check(args) => check::run(&args),
        Verb::Worksheet(args) => worksheet::run(&args),
        Verb::Reconcile(args) => reconcile::run(args),
        Verb::Wallet(WalletVerb::Create(args)) => wallet::create(args),
        Verb::Wallet(WalletVerb::Fund(args)) => wallet::fund(args),
        Verb::Wallet(WalletVerb::Show(args)) => wallet::show(args),
        Verb::Wallet(WalletVerb::Statement(args)) => statement::run(&args),
        Verb::Job(JobVerb::Submit(args)) => job::submit(args),
        Verb::Job(JobVerb::Show(args)) => job::show(args),
        Verb::Job(JobVerb::Cancel(args)) => action::cancel(args),
        Verb::Job(JobVerb::Extend(args)) => action::run("extend", args),
        Verb::Job(JobVerb::Adjust(args)) => action::run("adjust", args),
        Verb::Job(JobVerb::Reverse(args)) => action::run("reverse", args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Export(args) => export::run(&args),
        Verb::Import(args) => import::run(&args),
        Verb::Bench(args) => bench::run(&args),
    }
}
