//! `gristmill put`.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use gristmill_client::{
    ClientError, Cluster, DEFAULT_UNIT, Location, PutOptions, RemotePut, Url, chunk_unit, files_below,
};
use gristmill_runtime::{Control, ErrorKind, RunError};
use gristmill_wire::action::FileInfo;
use serde_json::json;

use crate::args::PutArgs;
use crate::commands::{DASH, connect, line};
use crate::error::CliError;
use crate::interrupt::{clear_on_signal, stop_on_signal};
use crate::progress::bytes_bar;
use crate::size::readable;

/// The message after Ctrl-C during a put.
const STOPPED: &str = "stopped; an incomplete file is not stored";

/// Copies files to a cluster, or stripes one over directories.
pub fn put(args: &PutArgs) -> Result<ExitCode, CliError> {
    let Some((destination, sources)) = args.paths.split_last() else {
        return Err(CliError::Usage("name a source and a destination".into()));
    };
    match (Location::parse(destination)?, sources) {
        (Location::Remote(url), sources) if sources.iter().any(|source| Path::new(source).is_dir()) => {
            put_folders(args, sources, &url)
        }
        (Location::Remote(url), sources) => {
            clear_on_signal(Some(STOPPED))?;
            put_remote(args, sources, &url, &Control::new())
        }
        (Location::Outside(url), _) => Err(CliError::Usage(format!(
            "{url}: nothing is written to object stores and web servers; name a file of a cluster or of this machine"
        ))),
        (Location::Local(path), [source]) => put_local(args, Path::new(source), &path),
        (Location::Local(path), _) => Err(CliError::Usage(format!(
            "{}: several files go to a directory of a cluster only",
            path.display()
        ))),
    }
}

fn put_local(args: &PutArgs, source: &Path, path: &Path) -> Result<ExitCode, CliError> {
    if args.on.is_empty() {
        return Err(CliError::Usage(format!(
            "name the directories to stripe {} over: --on DIR,DIR,...; or name a cluster: grist://HOST:PORT/PATH",
            path.display()
        )));
    }
    if args.targets.is_some() || args.mode.is_some() {
        return Err(CliError::Usage("--targets and --mode are for files of a cluster".into()));
    }
    clear_on_signal(Some(STOPPED))?;
    let begun = Instant::now();
    let total = std::fs::metadata(source).map_or(0, |meta| meta.len());
    let bar = bytes_bar(total, args.tuning.no_progress);
    let options = PutOptions {
        targets: args.on.iter().map(PathBuf::from).collect(),
        unit: unit(args, source, args.on.len() as u64),
        record: args.record.map(|record| record.0),
    };
    let made = gristmill_client::put(source, path, &options, &mut |at| bar.set_position(at))?;
    bar.finish_and_clear();
    let text = if args.json {
        json!({
            "path": path, "length": made.length, "stripe_unit": made.unit, "targets": made.targets,
            "elapsed_seconds": begun.elapsed().as_secs_f64(),
        })
        .to_string()
    } else {
        let (length, unit) = (readable(made.length), readable(made.unit));
        format!("{}: {length} in stripes of {unit} on {} targets", path.display(), made.targets.len())
    };
    line(&text)
}

/// The options of a put to a cluster, from the arguments.
fn remote_options(args: &PutArgs) -> Result<RemotePut, CliError> {
    let on = args.on.iter().map(|number| {
        number.parse::<u32>().map_err(|_| {
            CliError::Usage(format!("--on {number}: targets of a cluster are numbers, as in --on 0,2,3; 'gristmill nodes' lists them"))
        })
    });
    let on = on.collect::<Result<Vec<u32>, _>>()?;
    Ok(RemotePut {
        unit: args.stripe.map_or(DEFAULT_UNIT, |unit| unit.0),
        record: args.record.map(|record| record.0),
        targets: args.targets,
        on: (!on.is_empty()).then_some(on),
        mode: args.mode,
    })
}

fn put_remote(args: &PutArgs, sources: &[String], url: &Url, stop: &Control) -> Result<ExitCode, CliError> {
    let how = remote_options(args)?;
    let cluster = connect(url, args.reach)?;
    if let ([source], false) = (sources, url.path.ends_with('/')) {
        let begun = Instant::now();
        let how = RemotePut { unit: unit(args, Path::new(source), targets(&cluster, &how)), ..how };
        let info = put_one(args, &cluster, source, &url.path, &how)
            .map_err(|error| explain_directory(&cluster, source, url, error))?;
        return line(&made_text(args.json, url.entry.as_deref(), &info, begun.elapsed().as_secs_f64()));
    }
    let files = destinations(url, sources)?;
    let begun = Instant::now();
    let (mut failed, mut out) = (None, Ok(ExitCode::SUCCESS));
    let on = targets(&cluster, &how);
    let mut by_unit: BTreeMap<u64, Vec<(PathBuf, String)>> = BTreeMap::new();
    for (source, path) in files {
        by_unit.entry(unit(args, &source, on)).or_default().push((source, path));
    }
    for (unit, files) in by_unit {
        let how = RemotePut { unit, ..how.clone() };
        cluster.put_many(files, &how, stop, &mut |source, result| match result {
            Ok(info) => {
                if out.is_ok() {
                    out = line(&made_text(
                        args.json,
                        url.entry.as_deref(),
                        &info,
                        begun.elapsed().as_secs_f64(),
                    ));
                }
            }
            Err(error) => {
                crate::notice(format_args!("gristmill: {}: {error}", source.display()));
                failed = Some(error);
            }
        });
    }
    match failed {
        None => out,
        Some(error) => Ok(ExitCode::from(if error.is_usage() { 2 } else { 1 })),
    }
}

/// Copies the folders, and then the files. A folder that cannot be stored whole is not stored at all.
fn put_folders(args: &PutArgs, sources: &[String], url: &Url) -> Result<ExitCode, CliError> {
    if sources.len() > 1 {
        destinations(url, sources)?;
    }
    let stop = Arc::new(Control::new());
    stop_on_signal(&stop)?;
    let (folders, files): (Vec<String>, Vec<String>) =
        sources.iter().cloned().partition(|source| Path::new(source).is_dir());
    let mut ended = Ok(ExitCode::SUCCESS);
    for folder in &folders {
        if !stop.stopped() {
            ended = combine(ended, put_folder(args, Path::new(folder), url, &stop));
        }
    }
    if !files.is_empty() && !stop.stopped() {
        ended = combine(ended, put_remote(args, &files, url, &stop));
    }
    match ended {
        // Nothing failed, so a signal stopped it.
        Ok(code) if code == ExitCode::SUCCESS && stop.stopped() => {
            Err(ClientError::StoppedAmong { path: url.path.clone() }.into())
        }
        ended => ended,
    }
}

/// Combines the results of two parts of a put. Of two failures it prints the earlier and returns the later.
fn combine(
    earlier: Result<ExitCode, CliError>,
    later: Result<ExitCode, CliError>,
) -> Result<ExitCode, CliError> {
    match (earlier, later) {
        (Err(earlier), Err(error)) => {
            crate::notice(format_args!("gristmill: {earlier}"));
            Err(error)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Ok(earlier), Ok(later)) => Ok(if later == ExitCode::SUCCESS { earlier } else { later }),
    }
}

/// Copies all files below a folder into a directory: the destination, or the folder's name in it if it ends with `/`.
fn put_folder(args: &PutArgs, folder: &Path, url: &Url, stop: &Control) -> Result<ExitCode, CliError> {
    let how = remote_options(args)?;
    let cluster = connect(url, args.reach)?;
    let into =
        match (url.path.strip_suffix('/'), folder.canonicalize().ok().as_deref().and_then(Path::file_name)) {
            (Some(directory), Some(name)) => format!("{directory}/{}", name.to_string_lossy()),
            _ => url.path.clone(),
        };
    let names = files_below(folder)?;
    let staged = cluster.stage_folder(&into, names.iter().map(|(_, name)| name.as_str()), how.mode)?;
    let files = names.into_iter().map(|(source, name)| (source, format!("{}/{name}", staged.path())));
    let files: Vec<(PathBuf, String)> = files.collect();
    let begun = Instant::now();
    let total = files.iter().filter_map(|(source, _)| source.metadata().ok()).map(|meta| meta.len()).sum();
    let bar = bytes_bar(total, args.tuning.no_progress);
    let (mut failed, mut count, mut bytes) = (None, 0u64, 0u64);
    cluster.put_many(files, &how, stop, &mut |source, result| match result {
        Ok(info) => {
            (count, bytes) = (count + 1, bytes + info.file.length);
            bar.set_position(bytes);
        }
        Err(error) => {
            bar.suspend(|| crate::notice(format_args!("gristmill: {}: {error}", source.display())));
            failed = Some(error);
            if staged.is_apart() {
                // The folder will not be whole.
                stop.stop();
            }
        }
    });
    bar.finish_and_clear();
    if failed.is_some() || stop.stopped() {
        staged.discard(&cluster);
    }
    if let Some(error) = failed {
        if staged.is_apart() {
            crate::notice(format_args!("gristmill: nothing of {} was stored", folder.display()));
        }
        return Ok(ExitCode::from(if error.is_usage() { 2 } else { 1 }));
    }
    if stop.stopped() {
        return Err(staged.stopped().into());
    }
    let whole = Url { path: staged.destination().to_owned(), ..url.clone() };
    staged.publish(&cluster)?;
    let seconds = begun.elapsed().as_secs_f64();
    line(&if args.json {
        json!({ "path": whole.to_string(), "files": count, "bytes": bytes, "seconds": seconds }).to_string()
    } else {
        format!("{whole}: {count} files, {}", readable(bytes))
    })
}

/// The stripe unit in bytes for a file on `targets` targets.
fn unit(args: &PutArgs, source: &Path, targets: u64) -> u64 {
    match (args.stripe, args.record) {
        (Some(unit), _) => unit.0,
        (None, Some(_)) => DEFAULT_UNIT,
        (None, None) => chunk_unit(source, targets).unwrap_or(DEFAULT_UNIT),
    }
}

/// Number of targets of a file. If the cluster cannot be asked, this is 1, and the put itself will fail with a message.
fn targets(cluster: &Cluster, how: &RemotePut) -> u64 {
    match (how.targets, &how.on) {
        (Some(targets), _) => u64::from(targets),
        (None, Some(on)) => on.len() as u64,
        (None, None) => cluster
            .nodes()
            .map_or(1, |nodes| nodes.iter().filter(|node| !node.without_store).count().max(1) as u64),
    }
}

/// The error of a put. If the destination is a directory, it says how to put the file into the directory.
fn explain_directory(cluster: &Cluster, source: &str, url: &Url, error: ClientError) -> CliError {
    let refused = matches!(&error, ClientError::Run(RunError::Remote { kind: ErrorKind::Usage, .. }));
    let is_directory = refused && cluster.list(&format!("{}/", url.path)).is_ok();
    if !is_directory {
        return error.into();
    }
    let name = if source == DASH { "NAME" } else { "" };
    CliError::Usage(format!(
        "{url} is a directory: write {url}/{name} to put the file in it, or another name"
    ))
}

fn put_one(
    args: &PutArgs,
    cluster: &Cluster,
    source: &str,
    path: &str,
    how: &RemotePut,
) -> Result<FileInfo, ClientError> {
    if source == DASH {
        return cluster.put_from(io::stdin(), path, how, &mut |_| (), &|| true);
    }
    let total = std::fs::metadata(source).map_or(0, |meta| meta.len());
    let bar = bytes_bar(total, args.tuning.no_progress);
    let put = cluster.put(Path::new(source), path, how, &mut |at| bar.set_position(at));
    bar.finish_and_clear();
    put
}

fn made_text(as_json: bool, entry: Option<&str>, info: &FileInfo, elapsed: f64) -> String {
    let file = &info.file;
    if as_json {
        let numbers: Vec<u32> = file.targets.iter().map(|target| target.number).collect();
        return json!({
            "path": file.path, "length": file.length, "stripe_unit": file.unit, "targets": numbers,
            "elapsed_seconds": elapsed,
        })
        .to_string();
    }
    let url = Url { entry: entry.map(str::to_owned), path: file.path.clone() };
    let (length, unit, targets) = (readable(file.length), readable(file.unit), file.targets.len());
    format!("{url}: {length} in stripes of {unit} on {targets} target{}", if targets == 1 { "" } else { "s" })
}

/// The source files, and their paths in the directory of a cluster, under their own names.
fn destinations(url: &Url, sources: &[String]) -> Result<Vec<(PathBuf, String)>, CliError> {
    if !url.path.ends_with('/') {
        return Err(CliError::Usage(format!("{url}: several files go to a directory; write {url}/")));
    }
    let mut taken: HashMap<&str, &str> = HashMap::with_capacity(sources.len());
    let mut files = Vec::with_capacity(sources.len());
    for source in sources {
        if source == DASH {
            return Err(CliError::Usage(format!("standard input has no name; write {url}NAME")));
        }
        let name = Path::new(source).file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| CliError::Usage(format!("{source} has no file name")))?;
        let to = format!("{}{name}", url.path);
        if let Some(other) = taken.insert(name, source) {
            return Err(CliError::Usage(format!(
                "{other} and {source} would both become {to}; put one into another directory"
            )));
        }
        files.push((PathBuf::from(source), to));
    }
    Ok(files)
}
