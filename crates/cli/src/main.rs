//! The `gristmill` command: `run` a kernel where the data is, list `kernels`, stripe files with `put` and read
//! them back with `get`.
//!
//! Answers go to standard output, everything else to standard error. The exit code is 0 for an answer, 1 for a
//! failure of the data or the machine, 2 for a request that makes no sense, 130 after Ctrl-C.

mod args;
mod commands;
mod config;
mod error;
mod human;
mod json;
mod progress;
mod size;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::error::CliError;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli) {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // One line, also where a library's message has more.
            eprintln!("gristmill: {}", error.to_string().split_whitespace().collect::<Vec<_>>().join(" "));
            error.code()
        }
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, CliError> {
    match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Kernels(args) => commands::kernels::kernels(&args),
        Command::Put(args) => commands::files::put(&args),
        Command::Get(args) => commands::files::get(&args),
        Command::Stat(args) => commands::files::stat(&args),
        Command::Rm(args) => commands::files::rm(&args),
        Command::Bench(args) => commands::bench::bench(&args),
        Command::Completions { shell } => commands::completions(shell),
    }
}
