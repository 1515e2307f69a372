//! The answer of `gristmill run` on standard output: rows as text, and then the value.

use std::io::{self, BufWriter, IsTerminal, Write};

use gristmill_kernel::{Kernel, Numerics, Output, RowBatch, RowShape, Spec, Value};
use gristmill_runtime::{Answer, RowOutput};

use crate::error::CliError;
use crate::{human, json};

/// Most rows that a terminal shows.
const SHOWN_ROWS: u64 = 200;

/// Columns of a terminal of unknown width.
const COLUMNS: usize = 80;

/// Columns of standard output or error, if it is a terminal.
fn columns(terminal: bool) -> Option<usize> {
    let size = || ratatui::crossterm::terminal::size().map_or(COLUMNS, |(columns, _)| usize::from(columns));
    terminal.then(size).map(|columns| if columns == 0 { COLUMNS } else { columns })
}

/// Prints rows as they come and then the value.
pub(super) struct Printer {
    pub out: BufWriter<io::Stdout>,
    /// Where bytes go, if not to standard output.
    pub bytes: Option<Box<dyn Write>>,
    pub kernel: &'static str,
    numerics: Numerics,
    pub json: bool,
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
