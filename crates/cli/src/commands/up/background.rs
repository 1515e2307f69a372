//! `gristmill up --wait`: starts a supervisor in the background, and returns as soon as its nodes are ready.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use crate::args::UpArgs;
use crate::commands::up::self_command;
use crate::error::CliError;

/// The log of the supervisor and its nodes.
const LOG_FILE: &str = "up.log";

/// Most bytes of the log that are printed if the nodes do not start.
const MAX_LOG_TAIL: u64 = 8 << 10;

/// Starts the command again without `--wait`, and returns when all its nodes listen. That command bounds the time of
/// their start.
pub(super) fn up(args: &UpArgs, words: &[OsString]) -> Result<ExitCode, CliError> {
    let log = args.dir.join(LOG_FILE);
    let failed = |verb, path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { verb, path, source }
    };
    gristmill_store::make_directory(&args.dir).map_err(failed("make", &args.dir))?;
    let log_file = OpenOptions::new().create(true).append(true).open(&log).map_err(failed("write", &log))?;
    let before = log_file.metadata().map_err(failed("read", &log))?.len();
    let (program, mut command) = self_command()?;
    // The first word is the name of the program.
    command.args(words.iter().skip(1).filter(|word| *word != "--wait"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log_file);
    let mut child = command.spawn().map_err(failed("start", &PathBuf::from(program)))?;
    let mut lines = child.stdout.take().map(|out| BufReader::new(out).lines().map_while(Result::ok));
    let mut next = || lines.as_mut().and_then(Iterator::next);
    let Some(first) = next() else {
        let ended = child.wait().map_err(failed("start", &PathBuf::from(program)))?;
        let why = tail(&log, before).map_err(failed("read", &log))?;
        // Repeat its messages and its exit code.
        let _ = std::io::stderr().write_all(&why);
        return Ok(ended
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from));
    };
    let socket = args.shared.socket.as_ref().and_then(|_| next());
    let mut out = std::io::stdout();
    for line in [Some(first), socket].into_iter().flatten() {
        writeln!(out, "{line}").map_err(CliError::Output)?;
    }
    writeln!(out, "in the background; to stop them: kill {}", child.id()).map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}

/// The bytes that were written to a log since its length was `since`, at most the last [`MAX_LOG_TAIL`].
fn tail(log: &Path, since: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(since.max(length.saturating_sub(MAX_LOG_TAIL))))?;
    let mut text = Vec::new();
    file.take(MAX_LOG_TAIL).read_to_end(&mut text)?;
    Ok(text)
}
