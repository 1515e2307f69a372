//! `gristmill up --wait`: a supervisor in the background, which is left as soon as its nodes can be asked.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use crate::args::UpArgs;
use crate::commands::up::myself;
use crate::error::CliError;

/// What the supervisor and its nodes say.
const LOG_FILE: &str = "up.log";

/// Most of it that is repeated where they did not start, in bytes.
const MAX_SAID: u64 = 8 << 10;

/// Starts the command again without `--wait`, and returns when all its nodes listen. How long they may take is bounded
/// there.
pub(super) fn up(args: &UpArgs, words: &[OsString]) -> Result<ExitCode, CliError> {
    let log = args.dir.join(LOG_FILE);
    let failed = |verb, path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { verb, path, source }
    };
    gristmill_store::make_directory(&args.dir).map_err(failed("make", &args.dir))?;
    let said = OpenOptions::new().create(true).append(true).open(&log).map_err(failed("write", &log))?;
    let before = said.metadata().map_err(failed("read", &log))?.len();
    let (program, mut command) = myself()?;
    // The first word is the name of the program.
    command.args(words.iter().skip(1).filter(|word| *word != "--wait"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said);
    let mut child = command.spawn().map_err(failed("start", &PathBuf::from(program)))?;
    let mut lines = child.stdout.take().map(|out| BufReader::new(out).lines().map_while(Result::ok));
    let mut next = || lines.as_mut().and_then(Iterator::next);
    let Some(first) = next() else {
        let ended = child.wait().map_err(failed("start", &PathBuf::from(program)))?;
        let why = tail(&log, before).map_err(failed("read", &log))?;
        // Its own words, and its own exit code.
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

/// What was written to a log since it was so long.
fn tail(log: &Path, since: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(since.max(length.saturating_sub(MAX_SAID))))?;
    let mut said = Vec::new();
    file.take(MAX_SAID).read_to_end(&mut said)?;
    Ok(said)
}
