//! Where the answer of `gristmill run` goes: the value, rows as text, bytes as they are.

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

/// Bytes that are held back on their way to a file.
const BUFFER: usize = 1 << 20;

/// Rows that a terminal shows of more.
const SHOWN_ROWS: u64 = 200;

/// Columns of a terminal that does not say how many it has.
const COLUMNS: usize = 80;

/// Columns of standard output or error, if that is a terminal.
fn columns(terminal: bool) -> Option<usize> {
    let size = || ratatui::crossterm::terminal::size().map_or(COLUMNS, |(columns, _)| usize::from(columns));
    terminal.then(size).map(|columns| if columns == 0 { COLUMNS } else { columns })
}

/// Where bytes go that a kernel gives.
pub(super) enum BytesTo {
    /// It gives none.
    Nowhere,
    Stdout,
    File(PathBuf),
    /// A file of a cluster.
    Remote(Url, Box<Cluster>),
}

impl BytesTo {
    pub fn of(args: &RunArgs, spec: &Spec) -> Result<BytesTo, CliError> {
        let usage = |text: String| Err(CliError::Usage(text));
        let name = spec.name;
        match (spec.output, &args.output) {
            (Output::Bytes, _) if args.checkpoint.is_some() => usage(format!(
                "'{name}' gives bytes, which cannot go on from a checkpoint; leave --checkpoint out"
            )),
            (Output::Bytes, Some(Location::Local(path))) => Ok(BytesTo::File(path.clone())),
            (Output::Bytes, Some(Location::Remote(url))) => {
                Ok(BytesTo::Remote(url.clone(), Box::new(connect(url, args.reach)?)))
            }
            (Output::Bytes, None) if args.json => usage(format!(
                "--json prints what '{name}' says beside the bytes it gives; name a file for these with --output"
            )),
            (Output::Bytes, None) if io::stdout().is_terminal() => usage(format!(
                "'{name}' gives bytes; name a file for them with --output, or redirect standard output"
            )),
            (Output::Bytes, None) => Ok(BytesTo::Stdout),
            (_, Some(_)) => usage(format!("as it is asked, '{name}' gives no bytes; leave --output out")),
            (_, None) => Ok(BytesTo::Nowhere),
        }
    }

    /// Whether the bytes become a file, which appears when it is whole.
    pub fn is_file(&self) -> bool {
        matches!(self, BytesTo::File(_) | BytesTo::Remote(..))
    }

    /// Whether what is made stays on the nodes that make it.
    pub fn stays(&self, job: &Job) -> Result<bool, CliError> {
        match (self, job) {
            (BytesTo::Remote(_, to), Job::Cluster { cluster, planned, .. }) => {
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
            BytesTo::File(path) => path,
            BytesTo::Remote(url, cluster) => return to_cluster(url, cluster, job, printer, control),
            BytesTo::Nowhere | BytesTo::Stdout => return Ok(job.run(printer, control)?),
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
                // What failed to be written says so itself, without a name.
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
            (Some(error), ..) if !control.stopped() => Err(CliError::of_request(input, error)),
            (Some(_), ..) => Err(ClientError::Stopped { path: path.clone() }.into()),
            (None, Err(error), _) => Err(error.into()),
            (None, Ok(()), Some(outcome)) => Ok(outcome),
            (None, Ok(()), None) => Err(ClientError::Stopped { path: path.clone() }.into()),
        }
    }
}

/// Runs a job whose bytes become a file of a cluster: on the nodes that make them, where that can be.
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
    /// They go to standard output, so that nothing else may.
    pub taken: bool,
    /// A row has been printed.
    pub begun: bool,
    /// Rows that a terminal shows yet, and those that it did not show.
    pub room: Option<u64>,
    cut: u64,
    /// Lanes of this process folded, and not those of storage nodes.
    folded_here: bool,
    /// The type that sums were rounded to at their end, where that loses digits.
    pub rounded: Option<&'static str>,
}

impl Printer {
    pub fn new(kernel: &dyn Kernel, json: bool, folded_here: bool) -> Printer {
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
            folded_here,
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
                human::report(&answer.report, self.folded_here, self.numerics, self.rounded)
            ));
        }
        Ok(())
    }

    fn answer(&mut self, answer: &Answer) -> io::Result<()> {
        let report = json::report(&answer.report, self.folded_here);
        match (self.json, self.shape, &answer.value) {
            (false, None, value) if !self.taken => {
                human::value(&mut self.out, value, columns(io::stdout().is_terminal()))
            }
            (false, _, value) => {
                // Rows are the answer; what there is beside them goes where it does not mix with them.
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
