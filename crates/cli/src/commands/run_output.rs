//! The output of `gristmill run`: the value, rows as text, bytes unchanged.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use gristmill_client::{ClientError, Cluster, Location, RemotePut, Url, write_whole};
use gristmill_kernel::{Kernel, Numerics, Output, RowBatch, RowShape, Spec, Value};
use gristmill_runtime::{Answer, Control, Outcome, RowOutput, RunError};

use crate::args::RunArgs;
use crate::commands::connect;
use crate::commands::run::Job;
use crate::error::CliError;
use crate::size::readable;
use crate::{human, json};

/// Permission bits of a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// Size in bytes of the buffer before a file.
const BUFFER: usize = 1 << 20;

/// Most rows that a terminal shows.
const SHOWN_ROWS: u64 = 200;

/// Columns of a terminal of unknown width.
const COLUMNS: usize = 80;

/// Columns of standard output or error, if it is a terminal.
fn columns(terminal: bool) -> Option<usize> {
    let size = || ratatui::crossterm::terminal::size().map_or(COLUMNS, |(columns, _)| usize::from(columns));
    terminal.then(size).map(|columns| if columns == 0 { COLUMNS } else { columns })
}

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

/// Prints rows as they come and then the value.
pub(super) struct Printer {
    pub out: BufWriter<io::Stdout>,
    /// Where bytes go, if not to standard output.
    bytes: Option<Box<dyn Write>>,
    pub kernel: &'static str,
    numerics: Numerics,
    json: bool,
    shape: Option<RowShape>,
    /// The kernel gives bytes.
    gives_bytes: bool,
    /// Standard output is taken by the bytes; the value goes elsewhere.
    pub taken: bool,
    /// A row has been printed.
    pub begun: bool,
    /// Rows that a terminal still shows, and then rows that were cut.
    pub room: Option<u64>,
    cut: u64,
    /// Lanes of this process folded, not lanes of storage nodes.
    folded_locally: bool,
    /// The type that sums were rounded to at their end, if that lost digits.
    pub rounded: Option<&'static str>,
}

impl Printer {
    pub fn new(kernel: &dyn Kernel, json: bool, folded_locally: bool) -> Printer {
        let Spec { name: kernel, numerics, output, .. } = kernel.spec();
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        let shape = match output {
            Output::Rows(shape) => Some(shape),
            _ => None,
        };
        let gives_bytes = output == Output::Bytes;
        let taken = false;
        Printer {
            out,
            bytes: None,
            kernel,
            numerics,
            json,
            shape,
            gives_bytes,
            taken,
            begun: false,
            room: (!json && io::stdout().is_terminal()).then_some(SHOWN_ROWS),
            cut: 0,
            folded_locally,
            rounded: None,
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let (kernel, numerics) = (self.kernel, self.numerics);
        write!(self.out, "{{\"kernel\":\"{kernel}\",\"numerics\":\"{numerics}\",\"result\":{{\"rows\":[")
    }

    pub fn finish(mut self, answer: &Answer) -> Result<(), CliError> {
        self.answer(answer).and_then(|()| self.out.flush()).map_err(CliError::Output)?;
        if !self.json {
            crate::notice(format_args!(
                "{}",
                human::report(&answer.report, self.folded_locally, self.numerics, self.rounded)
            ));
        }
        Ok(())
    }

    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let report = json::report(&answer.report, self.folded_locally);
        match (self.json, self.shape, &answer.value) {
            (false, None, value) if !self.taken => {
                human::value(&mut self.out, value, columns(io::stdout().is_terminal()))
            }
            (false, _, value) => {
                // Rows are the answer. The value goes to standard error, so that it does not mix with them.
                self.out.flush()?;
                if self.cut > 0 {
                    let what = format!(
                        "... and {} more rows; a pipe (| less), a file (> FILE) or --json gives all",
                        self.cut
                    );
                    crate::notice(format_args!("{what}"));
                }
                human::value(&mut io::stderr(), value, columns(io::stderr().is_terminal()))
            }
            (true, None, value) => {
                let (kernel, numerics) = (self.kernel, self.numerics);
                let rounded = self.rounded.map_or(String::new(), |to| format!("\"rounded\":\"{to}\","));
                let result = json::value(value);
                writeln!(
                    self.out,
                    "{{\"kernel\":\"{kernel}\",\"numerics\":\"{numerics}\",{rounded}\"result\":{result},\"report\":{report}}}"
                )
            }
            (true, Some(_), value) => {
                if !self.begun {
                    self.begin()?;
                }
                write!(self.out, "]")?;
                if let Value::Map(entries) = value {
                    for (key, value) in entries {
                        write!(self.out, ",\"{key}\":{}", json::value(value))?;
                    }
                }
                writeln!(self.out, "}},\"report\":{report}}}")
            }
        }
    }
}

impl RowOutput for Printer {
    fn rows(&mut self, batch: &RowBatch) -> io::Result<()> {
        if self.gives_bytes {
            return match &mut self.bytes {
                Some(file) => file.write_all(batch.bytes()),
                None => self.out.write_all(batch.bytes()),
            };
        }
        let Some(shape) = self.shape else { return Ok(()) };
        for (at, row) in batch.iter() {
            if self.room == Some(0) {
                self.cut += 1;
            } else if !self.json {
                self.room = self.room.map(|room| room - 1);
                human::row(&mut self.out, &shape, at, row)?;
            } else {
                if self.begun {
                    write!(self.out, ",")?;
                } else {
                    self.begin()?;
                }
                write!(self.out, "{}", json::row(&shape, at, row))?;
            }
            self.begun = true;
        }
        Ok(())
    }
}
