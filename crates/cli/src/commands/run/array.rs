//! `gristmill run` of a variable of a scientific file.

mod answer;
mod picture;
mod question;

use std::io::Cursor;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gristmill_client::{ArrayFile, ArrayPlan, ArrayQuestion, Location, RemotePut, empty_file};
use gristmill_runtime::{Control, Options, Outcome, Request};
use gristmill_store::write_atomic;

use super::destination::nothing_is_written;
use super::job::{Job, refuse_storage};
use super::printer::Printer;
use super::variable::MEDIAN;
use crate::COMMAND_LINE;
use crate::args::RunArgs;

use crate::commands::variables::open_here;
use crate::commands::{connect, connect_to_read};
use crate::error::{CliError, INTERRUPTED};
use crate::interrupt::stop_on_signal;
use crate::progress::Watch;
use crate::time::utc_text;

use question::{histogram_between, question, range_questions};

/// Runs an operation on a variable and prints, or writes, its answer.
pub(super) fn run(args: &RunArgs, variable: &str, options: Options) -> Result<ExitCode, CliError> {
    let options = Options { statistics: !args.array.no_statistics, ..options };
    let usage = |text: String| Err(CliError::Usage(text));
    let selection = &args.selection;
    if selection.dtype.is_some()
        || selection.record.is_some()
        || selection.range.is_some()
        || selection.skip.0 > 0
    {
        return usage(
            "--var takes types and offsets from the file; omit --type, --record, --skip and --range".into(),
        );
    }
    if args.growing {
        return usage("a variable is not read while its file grows; omit --growing".into());
    }
    if args.checkpoint.is_some() {
        return usage("a request about a variable keeps no checkpoint; omit --checkpoint".into());
    }
    let to = match &args.output {
        None => None,
        Some(output) => match ArrayFile::from_path(output.path()) {
            Some(format) => Some((output, format)),
            None => {
                return usage(format!(
                    "{output}: an answer is written as .nc or .npy; name a file with one of these endings"
                ));
            }
        },
    };
    if let Some((output, _)) = to
        && is_one_file(&args.path, output, args)?
    {
        let text = "--output names the input file, which the answer would replace; name another file";
        return usage(text.into());
    }
    let (mut question, pending) = question(args, variable)?;
    let control = Arc::new(Control::new());
    stop_on_signal(&control)?;
    if let Some(bins) = pending {
        let mut found = Vec::new();
        for asked in range_questions(&question) {
            let (plan, job) = planned(args, &options, &asked)?;
            let watch = Watch::start(control.clone(), args.tuning.no_progress);
            let mut unseen = Printer::new(&*plan.kernel, args.json, job.folds_locally());
            let outcome =
                job.run(&mut unseen, &control).map_err(|error| CliError::for_request(&args.path, error));
            drop(watch);
            let Outcome::Done(answer) = outcome? else { return Ok(ExitCode::from(INTERRUPTED)) };
            found.push(answer.value);
        }
        question.op = histogram_between(bins, &found)?;
    }
    let (plan, job) = planned(args, &options, &question)?;
    if let Some((_, format)) = to {
        plan.fits(format)?;
    }
    let drawn = match &args.array.plot {
        Some(path) => Some((path, picture::dimensions(&plan, path)?)),
        None => None,
    };
    if args.explain {
        crate::notice(format_args!("{}\n{}", answer::explanation(&plan), job.explanation(false)));
    }
    let watch = Watch::start(control.clone(), args.tuning.no_progress);
    let mut printer = Printer::new(&*plan.kernel, args.json, job.folds_locally());
    printer.kernel = if args.kernel == MEDIAN { MEDIAN } else { question.op.name() };
    let outcome = job.run(&mut printer, &control).map_err(|error| CliError::for_request(&args.path, error));
    drop(watch);
    let Outcome::Done(mut answer) = outcome? else { return Ok(ExitCode::from(INTERRUPTED)) };
    if args.array.var.is_none() && !args.json {
        crate::notice(format_args!("variable {variable}"));
    }
    answer.value = plan.with_missing_bins(answer.value);
    if args.kernel == MEDIAN {
        answer.value = answer::median(answer.value);
    }
    printer.rounded = answer::rounded(&answer.value, &question.op);
    let reduced =
        args.array.expr.as_ref().map_or(variable.to_owned(), |expr| format!("{expr} (x = {variable})"));
    if let Some((path, format)) = to {
        let bytes = plan.file(&answer.value, format, &args.kernel, &history())?;
        match path {
            Location::Local(path) => write_atomic(path, &bytes)?,
            Location::Outside(url) => return usage(nothing_is_written(url)),
            Location::Remote(url) => {
                let how = RemotePut::default();
                connect(url, args.reach)?.put_from(
                    Cursor::new(bytes),
                    &url.path,
                    &how,
                    &mut |_| (),
                    &|| true,
                )?;
            }
        }
        crate::notice(format_args!("{path}: {} of {reduced}, {}", args.kernel, answer::shape(&plan)));
    }
    let printed = (to.is_none() && drawn.is_none()) || args.json;
    if let Some((path, dimensions)) = drawn {
        write_atomic(path, &picture::png(&plan, dimensions, &answer.value, &args.kernel)?)?;
        crate::notice(format_args!(
            "{}: {} of {reduced}, {}",
            path.display(),
            args.kernel,
            answer::shape(&plan)
        ));
    }
    if printed {
        answer.value = answer::with_dimensions(answer.value, &plan, args.json);
        printer.finish(&answer)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The plan of a question, and its job.
fn planned(
    args: &RunArgs,
    options: &Options,
    question: &ArrayQuestion,
) -> Result<(ArrayPlan, Job), CliError> {
    let options = options.clone();
    Ok(match args.path.cluster() {
        None => {
            refuse_storage(args)?;
            let (plan, file) = open_here(&args.path, args.check.verify)?.plan(question)?;
            let request = Request { options, ..plan.request(file) };
            (plan, Job::Local(Box::new(request)))
        }
        Some(url) => {
            let cluster = connect_to_read(url, args.reach, args.check.verify)?;
            let remote = cluster.dataset(&url.path)?;
            let plan = remote.plan(question)?;
            let job = match remote.files(plan.files())? {
                Some(files) => {
                    let planned = cluster.plan_files(files, plan.question()?, args.place, &options)?;
                    let (planned, options) = (Box::new(planned), Box::new(options));
                    Job::Cluster { cluster: Box::new(cluster), planned, options }
                }
                None => Job::Local(Box::new(Request { options, ..plan.request(empty_file(&url.path)?) })),
            };
            (plan, job)
        }
    })
}

/// Whether both names are of the same file.
fn is_one_file(one: &Location, other: &Location, args: &RunArgs) -> Result<bool, CliError> {
    Ok(match (one, other) {
        (Location::Local(one), Location::Local(other)) => {
            let file = |path: &Path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
            file(one).is_some_and(|one| file(other) == Some(one))
        }
        (Location::Remote(one), Location::Remote(other)) if one.path == other.path => {
            connect(one, args.reach)?.entry() == connect(other, args.reach)?.entry()
        }
        _ => false,
    })
}

/// The line for the `history` attribute: the time and the command.
fn history() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let when = utc_text(now).replacen(' ', "T", 1).replace(" UTC", "Z");
    let words = COMMAND_LINE.get().map(Vec::as_slice).unwrap_or_default();
    let words = words.iter().skip(1).map(|word| quoted(&word.to_string_lossy()));
    format!("{when}: gristmill {}", words.collect::<Vec<_>>().join(" "))
}

/// Quotes a word for a shell, on one line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=:/.,+@%".contains(c);
    let word: String = word.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
