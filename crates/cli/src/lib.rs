//! The `gristmill` command. It starts storage nodes (`up`), copies files to them (`put`) and back (`get`), and runs
//! kernels where the data is (`run`).
//!
//! It is a library, so that the Python package installs the same command. The binary only calls [`main`].
//!
//! Answers go to standard output, everything else to standard error. The exit code is 0 for an answer, 1 for a
//! failure of the data or the machine, 2 for a request that makes no sense, 130 after Ctrl-C.

mod args;
mod commands;
mod completion;
mod config;
mod error;
mod human;
mod interrupt;
mod json;
mod notice;
mod plot;
mod progress;
mod resource_limits;
mod size;
mod time;
mod top;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use gristmill_array::Op;
use gristmill_kernel::catalog;

use crate::args::{Cli, Command};
use crate::error::CliError;
pub(crate) use crate::notice::notice;

/// The words that start this program again, without arguments.
static SELF_COMMAND: OnceLock<Vec<OsString>> = OnceLock::new();

/// The words of the command line. The first is the command's name.
static COMMAND_LINE: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the command with these arguments. The first is its name.
///
/// `program` starts the command again for the nodes of `up`: the binary, or an interpreter and its module.
pub fn main(args: Vec<OsString>, program: Vec<OsString>) -> ExitCode {
    let _ = SELF_COMMAND.set(program);
    let _ = COMMAND_LINE.set(args.clone());
    if let Some(code) = completion::complete(&args) {
        return code;
    }
    let cli = match Cli::try_parse_from(args.clone()) {
        Ok(cli) => cli,
        Err(error) => return print_usage_error(&without_secrets(with_kernel_tip(error))),
    };
    resource_limits::prepare();
    match dispatch(cli, &args) {
        Ok(code) => code,
        // The reader of the output closed it.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            progress::clear();
            // One line, even if a library's message has several.
            notice(format_args!(
                "gristmill: {}",
                error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
            ));
            error.code()
        }
    }
}

/// Leaves a URL out of the error about it, because it may hold a password or a signature. The reason names the URL without them.
fn without_secrets(mut error: clap::Error) -> clap::Error {
    let is_url = matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.contains("://"));
    if is_url {
        error.insert(ContextKind::InvalidValue, ContextValue::String("the URL".to_owned()));
    }
    error
}

/// Adds a tip to the error about an unknown command if it is a kernel, as in `gristmill sum FILE`.
fn with_kernel_tip(mut error: clap::Error) -> clap::Error {
    let tip = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if catalog::find(word).is_ok() || Op::named(word).is_some() => {
            format!("did you mean 'gristmill run {word} FILE'?")
        }
        _ => return error,
    };
    // Its own suggestion for 'min' would be 'man'.
    error.remove(ContextKind::SuggestedSubcommand);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// Prints an error of the flags with the prefix of all our messages, or the help, which goes to standard output.
/// Failures to print the help are ignored.
fn print_usage_error(error: &clap::Error) -> ExitCode {
    match error.render().to_string().strip_prefix("error: ") {
        Some(mistake) => notice(format_args!("gristmill: {}", mistake.trim_end())),
        None => drop(error.print()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn dispatch(cli: Cli, words: &[OsString]) -> Result<ExitCode, CliError> {
    match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Kernels(args) => commands::kernels::kernels(&args),
        Command::Put(args) => commands::put::put(&args),
        Command::Get(args) => commands::get::get(&args),
        Command::Mv(args) => commands::tree::mv(&args),
        Command::Cp(args) => commands::tree::cp(&args),
        Command::Du(args) => commands::tree::du(&args),
        Command::Stat(args) => commands::stat::stat(&args),
        Command::Ls(args) => commands::names::ls(&args),
        Command::Rm(args) => commands::names::rm(&args),
        Command::Attach(args) => commands::attach::attach(&args),
        Command::Detach(args) => commands::attach::detach(&args),
        Command::Scrub(args) => commands::scrub::scrub(&args),
        Command::Fsck(args) => commands::fsck::fsck(&args),
        Command::Chmod(args) => commands::names::chmod(&args),
        Command::Nodes(args) => commands::nodes::nodes(&args),
        Command::Top(args) => commands::top::top(&args),
        Command::Up(args) => commands::up::up(&args, words),
        Command::Serve(args) => commands::serve::serve(&args),
        Command::Cert(args) => commands::cert::cert(&args),
        Command::Bench(args) => commands::bench::bench(&args),
        Command::Completions { shell } => completion::script(shell),
        Command::Man { folder } => commands::man::man(&folder),
    }
}
