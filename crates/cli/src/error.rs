//! Everything that ends a command badly, and its exit code.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use gristmill_client::ClientError;
use gristmill_kernel::KernelError;
use gristmill_runtime::RunError;
use gristmill_store::StoreError;

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write the answer: {0}")]
    Output(#[source] io::Error),
    #[error("cannot read {}: {why}", path.display())]
    Config { path: PathBuf, why: String },
    #[error("cannot {verb} {}: {source}", path.display())]
    File { verb: &'static str, path: PathBuf, source: io::Error },
    #[error("{0}")]
    Usage(String),
}

impl CliError {
    pub fn code(&self) -> ExitCode {
        let usage = match self {
            CliError::Kernel(error) => error.is_usage(),
            CliError::Run(error) => error.is_usage(),
            CliError::Client(error) => error.is_usage(),
            CliError::Usage(_) | CliError::Config { .. } => true,
            CliError::Store(_) | CliError::Output(_) | CliError::File { .. } => false,
        };
        ExitCode::from(if usage { 2 } else { 1 })
    }

    pub fn is_broken_pipe(&self) -> bool {
        matches!(
            self,
            CliError::Output(error) | CliError::Run(RunError::Rows(error))
                if error.kind() == io::ErrorKind::BrokenPipe
        )
    }
}
