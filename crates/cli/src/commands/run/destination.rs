//! Where the bytes of a kernel go: standard output, a file of this machine, or a file of a cluster.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use gristmill_client::{ClientError, Cluster, Location, RemotePut, Url, write_whole};
use gristmill_kernel::{Output, Spec};
use gristmill_runtime::{Control, Outcome, RunError};

use super::job::Job;
use super::printer::Printer;
use crate::args::RunArgs;
use crate::commands::connect;
use crate::error::CliError;
use crate::size::readable;

/// Permission bits of a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// Size in bytes of the buffer before a file.
const BUFFER: usize = 1 << 20;

/// The destination of a kernel's bytes.
pub(super) enum ByteDestination {
    /// The kernel gives no bytes.
    NoBytes,
    Stdout,
    File(PathBuf),
    /// A file of a cluster.
    Remote(Url, Box<Cluster>),
}

impl ByteDestination {
    pub fn new(args: &RunArgs, spec: &Spec) -> Result<ByteDestination, CliError> {
        let usage = |text: String| Err(CliError::Usage(text));
        let name = spec.name;
        match (spec.output, &args.output) {
            (Output::Bytes, _) if args.checkpoint.is_some() => usage(format!(
                "'{name}' gives bytes, which cannot resume from a checkpoint; omit --checkpoint"
            )),
            (Output::Bytes, Some(Location::Local(path))) => Ok(ByteDestination::File(path.clone())),
            (Output::Bytes, Some(Location::Remote(url))) => {
                Ok(ByteDestination::Remote(url.clone(), Box::new(connect(url, args.reach)?)))
            }
            (Output::Bytes, Some(Location::Outside(url))) => usage(nothing_is_written(url)),
            (Output::Bytes, None) if args.json => {
                usage(format!("with --json the bytes of '{name}' need a file; name one with --output"))
            }
            (Output::Bytes, None) if io::stdout().is_terminal() => usage(format!(
                "'{name}' gives bytes; name a file for them with --output, or redirect standard output"
            )),
            (Output::Bytes, None) => Ok(ByteDestination::Stdout),
            (_, Some(_)) => usage(format!("with these parameters '{name}' gives no bytes; omit --output")),
            (_, None) => Ok(ByteDestination::NoBytes),
        }
    }

    /// Whether the bytes become a file. It appears when it is complete.
    pub fn is_file(&self) -> bool {
        matches!(self, ByteDestination::File(_) | ByteDestination::Remote(..))
    }

    /// Whether the bytes stay on the nodes that make them.
    pub fn stays(&self, job: &Job) -> Result<bool, CliError> {
        match (self, job) {
            (ByteDestination::Remote(_, to), Job::Cluster { cluster, planned, .. }) => {
                Ok(cluster.entry() == to.entry() && planned.keeps_bytes()?)
            }
            _ => Ok(false),
        }
    }

    /// Runs a job whose bytes go to a file.
    pub fn write(
        &self,
        input: &Location,
        job: Job,
        printer: &mut Printer,
        control: &Control,
    ) -> Result<Outcome, CliError> {
        let path = match self {
            ByteDestination::File(path) => path,
            ByteDestination::Remote(url, cluster) => return to_cluster(url, cluster, job, printer, control),
            ByteDestination::NoBytes | ByteDestination::Stdout => return Ok(job.run(printer, control)?),
        };
        let (mut job, mut outcome, mut failed) = (Some(job), None, None);
        let written = write_whole(path, NEW_FILE, control, &mut |file| {
            let io = |source| ClientError::Io { verb: "write", path: path.clone(), source };
            let Some(job) = job.take() else { return Ok(()) };
            printer.bytes = Some(Box::new(BufWriter::with_capacity(BUFFER, file.try_clone().map_err(io)?)));
            let ran = job.run(printer, control);
            if let Some(mut out) = printer.bytes.take() {
                out.flush().map_err(io)?;
            }
            match ran {
                Ok(done) => outcome = Some(done),
                // The error of the write has no file name.
                Err(RunError::Rows(source)) => return Err(io(source)),
                Err(error) => {
                    let text = error.to_string();
                    failed = Some(error);
                    return Err(ClientError::Usage(text));
                }
            }
            Ok(())
        });
        match (failed, written, outcome) {
            (Some(error), ..) if !control.stopped() => Err(CliError::for_request(input, error)),
            (Some(_), ..) => Err(ClientError::Stopped { path: path.clone() }.into()),
            (None, Err(error), _) => Err(error.into()),
            (None, Ok(()), Some(outcome)) => Ok(outcome),
            (None, Ok(()), None) => Err(ClientError::Stopped { path: path.clone() }.into()),
        }
    }
}

/// Runs a job whose bytes become a file of a cluster: on the nodes that make them, if possible.
fn to_cluster(
    url: &Url,
    cluster: &Cluster,
    job: Job,
    printer: &mut Printer,
    control: &Control,
) -> Result<Outcome, CliError> {
    let made = match job {
        Job::Cluster { cluster: own, planned, options, .. }
            if own.entry() == cluster.entry() && planned.keeps_bytes()? =>
        {
            own.run_kept(&planned, *options, &url.path, control)
        }
        job => cluster.put_made(&url.path, &RemotePut::default(), |out| {
            printer.bytes = Some(out);
            let ran = job.run(printer, control);
            let flushed = printer.bytes.take().map_or(Ok(()), |mut out| out.flush());
            match (ran?, flushed) {
                (Outcome::Stopped(_), _) => Err(ClientError::Stopped { path: url.path.clone().into() }),
                (done, flushed) => flushed.map(|()| done).map_err(|e| RunError::Rows(e).into()),
            }
        }),
    };
    let (outcome, info) = made.map_err(|error| match control.stopped() {
        true => ClientError::Stopped { path: url.path.clone().into() },
        false => error,
    })?;
    let (made, nodes) = (info.file.length, info.file.targets.len());
    if !printer.json {
        crate::notice(format_args!("{url}: {} ({made} bytes) on {nodes} targets", readable(made)));
    }
    Ok(outcome)
}

/// The message for an output that is not a file of a cluster or of this machine.
pub(super) fn nothing_is_written(url: &impl Display) -> String {
    format!(
        "{url}: nothing is written to object stores and web servers; name a file of a cluster or of this machine"
    )
}
