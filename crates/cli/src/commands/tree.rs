//! `gristmill mv`, `cp` and `du`.

use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{Cluster, Location, Url};
use gristmill_runtime::Control;
use serde_json::json;

use crate::args::{CpArgs, DuArgs, MvArgs};
use crate::commands::names::remote;
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::interrupt::stop_on_signal;
use crate::progress::bytes_bar;
use crate::size::readable;

/// The sources and the destination.
///
/// # Errors
/// Returns an error if there are several sources and the destination does not end with `/`.
fn split_paths(paths: &[Location]) -> Result<(Vec<&Url>, &Url), CliError> {
    let Some((destination, sources)) = paths.split_last() else {
        return Err(CliError::Usage("name a source and a destination".into()));
    };
    let destination = remote(destination)?;
    let sources: Vec<&Url> = sources.iter().map(remote).collect::<Result<_, _>>()?;
    if sources.len() > 1 && !destination.path.ends_with('/') {
        let text = format!("{destination}: several sources need a directory; write {destination}/");
        return Err(CliError::Usage(text));
    }
    Ok((sources, destination))
}

/// Does `work` for each URL, also after failures. Earlier failures are printed, and the last is returned.
fn for_each_url<'a>(
    urls: impl IntoIterator<Item = &'a Url>,
    mut work: impl FnMut(&'a Url) -> Result<(), CliError>,
) -> Result<ExitCode, CliError> {
    let mut failed: Option<CliError> = None;
    for url in urls {
        if let Err(error) = work(url)
            && let Some(earlier) = failed.replace(error)
        {
            crate::notice(format_args!("gristmill: {earlier}"));
        }
    }
    failed.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// Renames or moves files and directories.
pub fn mv(args: &MvArgs) -> Result<ExitCode, CliError> {
    let (sources, destination) = split_paths(&args.paths)?;
    let to = connect(destination, args.reach)?;
    for_each_url(sources, |source| {
        let from = connect(source, args.reach)?;
        if from.entry() != to.entry() {
            return Err(CliError::Usage(format!(
                "{source} is on another cluster than {destination}: copy it with cp -r, then remove it with rm -r"
            )));
        }
        from.rename(&source.path, &destination.path)?;
        Ok(())
    })
}

/// Copies files and directories.
pub fn cp(args: &CpArgs) -> Result<ExitCode, CliError> {
    let (sources, destination) = split_paths(&args.paths)?;
    let to = connect(destination, args.reach)?;
    let stop = Arc::new(Control::new());
    stop_on_signal(&stop)?;
    for_each_url(sources, |source| {
        let from = connect(source, args.reach)?;
        copy(args, &from, source, &to, destination, &stop)
    })
}

fn copy(
    args: &CpArgs,
    from: &Cluster,
    source: &Url,
    to: &Cluster,
    destination: &Url,
    stop: &Control,
) -> Result<(), CliError> {
    let path = to.copy_goes_to(&destination.path, &source.path)?;
    let opened = match from.open(&source.path) {
        Ok(opened) => Some(opened),
        Err(error) if error.is_missing() && from.is_directory(&source.path)? => None,
        Err(error) => return Err(error.into()),
    };
    let Some(opened) = opened else {
        if !args.recursive {
            return Err(CliError::Usage(format!("{source} is a directory; copy it with -r")));
        }
        let bar = bytes_bar(from.usage(&source.path)?.bytes, args.tuning.no_progress);
        from.copy_folder(&source.path, to, &path, stop, &mut |at| bar.set_position(at))?;
        bar.finish_and_clear();
        return Ok(());
    };
    let bar = bytes_bar(opened.info.file.length, args.tuning.no_progress);
    from.copy_file(&opened, to, &path, &mut |at| bar.set_position(at))?;
    bar.finish_and_clear();
    Ok(())
}

/// Prints the number and size of the files of directories.
pub fn du(args: &DuArgs) -> Result<ExitCode, CliError> {
    let urls: Vec<&Url> = args.paths.iter().map(remote).collect::<Result<_, _>>()?;
    for_each_url(urls, |url| {
        let amount = connect(url, args.reach)?.usage(&url.path)?;
        let text = if args.json {
            json!({ "path": url.path, "files": amount.files, "bytes": amount.bytes, "directory": amount.directory,
                    "unread": amount.unread })
                .to_string()
        } else {
            let unread = unread(amount.unread);
            format!(
                "{:>10}  {:>8} {}  {url}{unread}",
                readable(amount.bytes),
                amount.files,
                plural(amount.files)
            )
        };
        line(&text).map(|_| ())
    })
}

/// Says how many files a size leaves out.
pub fn unread(count: u64) -> String {
    if count == 0 { String::new() } else { format!("  (without {count} that may not be read)") }
}

/// `file ` or `files`, of equal width.
pub fn plural(files: u64) -> &'static str {
    if files == 1 { "file " } else { "files" }
}
