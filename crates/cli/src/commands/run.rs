//! `gristmill run`.

mod array;
mod checkpoint;
mod destination;
mod job;
mod printer;
mod variable;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use gristmill_kernel::catalog;
use gristmill_runtime::{Control, Outcome, RunError};

use crate::args::RunArgs;
use crate::config::Config;
use crate::error::{CliError, INTERRUPTED};
use crate::interrupt::{clear_on_signal, stop_on_signal};
use crate::progress::Watch;

use destination::ByteDestination;
use job::Job;
use printer::Printer;

/// Runs a kernel and prints its answer.
pub fn run(args: &RunArgs) -> Result<ExitCode, CliError> {
    let options = Config::load()?.options(&args.tuning);
    if let Some(name) = variable::find(args)? {
        return array::run(args, &name, options);
    }
    let input = job::input(&args.selection)?;
    if catalog::find(&args.kernel).is_err() && variable::is_operation(&args.kernel) {
        let plain = catalog::kernels_for_other_name(&args.kernel)
            .map_or(String::new(), |kernels| format!(", or for plain numbers use {kernels}"));
        return Err(CliError::Usage(format!(
            "'{}' works on a variable of a netCDF, HDF5, Zarr, .npy or .csv file; name it with --var{plain}",
            args.kernel
        )));
    }
    let params = job::params(args)?;
    let kernel = catalog::bind(&args.kernel, &params, &input)?;
    let spec = kernel.spec();
    let input = input.for_kernel(&spec);
    let to = ByteDestination::new(args, &spec)?;
    if let Some(path) = &args.checkpoint {
        checkpoint::check_writable(path)?;
    }
    let job = Job::open(args, params, kernel.clone(), input, options)?;
    variable::note_plain(args);
    variable::note_lines(args);
    if args.explain {
        crate::notice(format_args!("{}", job.explanation(to.stays(&job)?)));
    }
    let control = Arc::new(Control::new());
    if args.checkpoint.is_some() || to.is_file() {
        stop_on_signal(&control)?;
    } else {
        clear_on_signal(None)?;
    }
    let watch = Watch::start(control.clone(), args.tuning.no_progress);
    let mut printer = Printer::new(&*kernel, args.json, job.folds_locally());
    printer.taken = matches!(to, ByteDestination::Stdout);
    if args.checkpoint.is_some() {
        // Rows that were delivered are not printed again.
        printer.room = None;
    }
    let outcome = match &args.checkpoint {
        _ if to.is_file() => to.write(&args.path, job, &mut printer, &control),
        Some(path) if path.exists() => {
            let saved = checkpoint::read(path)?;
            // The rows before the stop and the rows from now on are one output.
            printer.begun = saved.delivered().is_some();
            job.resume(saved, &mut printer, &control).map_err(|error| match error {
                RunError::BadPartial { .. } | RunError::OtherRequest { .. } => {
                    CliError::for_request(path.display(), error)
                }
                other => CliError::for_request(&args.path, other),
            })
        }
        _ => job.run(&mut printer, &control).map_err(|e| CliError::for_request(&args.path, e)),
    };
    drop(watch);
    match outcome? {
        Outcome::Done(answer) => {
            printer.finish(&answer)?;
            if let Some(path) = args.checkpoint.as_ref().filter(|path| path.exists()) {
                let gone = std::fs::remove_file(path);
                gone.map_err(|source| CliError::File { verb: "remove", path: path.clone(), source })?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Outcome::Stopped(state) => {
            printer.out.flush().map_err(CliError::Output)?;
            if let Some(path) = &args.checkpoint {
                checkpoint::write(path, &state)?;
                crate::notice(format_args!(
                    "gristmill: stopped; the same command goes on from {}",
                    path.display()
                ));
            }
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}
