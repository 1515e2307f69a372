//! Errors of commands, and their exit codes.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use gristmill_array::ArrayError;
use gristmill_client::ClientError;
use gristmill_format::FormatError;
use gristmill_kernel::KernelError;
use gristmill_runtime::RunError;
use gristmill_server::ServerError;
use gristmill_store::StoreError;
use gristmill_transport::TransportError;

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
    #[error(transparent)]
    Array(#[from] ArrayError),
    #[error("cannot write the answer: {0}")]
    Output(#[source] io::Error),
    #[error("cannot read {}: {why}", path.display())]
    Config { path: PathBuf, why: String },
    #[error("cannot {verb} {}: {source}", path.display())]
    File { verb: &'static str, path: PathBuf, source: io::Error },
    /// A request failed. The message names its file, or the checkpoint that cannot be resumed.
    #[error("{name}: {source}")]
    Request { name: String, source: RunError },
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The terminal cannot be drawn on, or its keys cannot be read.
    #[error("cannot use the terminal: {0}; --once prints one picture without it")]
    Terminal(#[source] io::Error),
    /// A scientific file cannot be read; the message says which.
    #[error("{}: {source}", path.display())]
    Format { path: PathBuf, source: FormatError },
    /// The system refused something, such as a thread; the message says what and why.
    #[error("{0}")]
    System(String),
    /// Something that cannot happen did.
    #[error("internal error: {what}; this is a defect of Gristmill, please report it")]
    Internal {
        /// A clause that says what happened.
        what: &'static str,
    },
    #[error("{0}")]
    Usage(String),
}

/// Exit code after Ctrl-C, as in shells.
pub const INTERRUPTED: u8 = 130;

impl CliError {
    /// The exit code: 2 for a request that makes no sense, 130 after Ctrl-C, else 1.
    pub fn code(&self) -> ExitCode {
        if matches!(self, CliError::Client(ClientError::Stopped { .. } | ClientError::StoppedAmong { .. })) {
            return ExitCode::from(INTERRUPTED);
        }
        let usage = match self {
            CliError::Kernel(error) => error.is_usage(),
            CliError::Run(error) | CliError::Request { source: error, .. } => error.is_usage(),
            CliError::Client(error) => error.is_usage(),
            CliError::Server(error) => error.is_usage(),
            CliError::Format { source, .. } => source.is_usage(),
            CliError::Usage(_) | CliError::Array(_) | CliError::Config { .. } => true,
            CliError::Transport(_)
            | CliError::Store(_)
            | CliError::Output(_)
            | CliError::Terminal(_)
            | CliError::System(_)
            | CliError::Internal { .. }
            | CliError::File { .. } => false,
        };
        ExitCode::from(if usage { 2 } else { 1 })
    }

    /// Makes the error of a request about the file `name`. The name is added unless the message contains it.
    pub fn for_request(name: impl std::fmt::Display, source: RunError) -> CliError {
        let name = name.to_string();
        // Messages name a path of a cluster without its address.
        let path = name
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once('/'))
            .map_or(&*name, |(_, path)| path);
        if matches!(source, RunError::Rows(_)) || source.to_string().contains(path) {
            return CliError::Run(source);
        }
        CliError::Request { name, source }
    }

    /// Whether the reader of the output closed it.
    pub fn is_broken_pipe(&self) -> bool {
        if let CliError::Client(ClientError::Io { verb: "write", source, .. }) = self {
            return source.kind() == io::ErrorKind::BrokenPipe;
        }
        matches!(
            self,
            CliError::Output(error) | CliError::Run(RunError::Rows(error))
                if error.kind() == io::ErrorKind::BrokenPipe
        )
    }
}
