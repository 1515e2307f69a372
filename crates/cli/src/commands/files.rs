//! `gristmill put`, `get` and `stat`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use gristmill_client::{ClientError, Cluster, ClusterOptions, Location, PutOptions, RemotePut, Url};
use gristmill_layout::Layout;
use gristmill_wire::action::FileInfo;
use serde_json::json;

use crate::args::{GetArgs, PutArgs, StatArgs};
use crate::error::CliError;
use crate::progress::bytes_bar;
use crate::size::readable;

/// Where standard input, or output, is meant.
const DASH: &str = "-";

/// A connection to the cluster of a URL.
pub fn connect(url: &Url) -> Result<Cluster, CliError> {
    Ok(Cluster::connect(ClusterOptions::from_env(url.entry.as_deref())?)?)
}

/// Copies files to a cluster, or stripes one over directories.
pub fn put(args: &PutArgs) -> Result<ExitCode, CliError> {
    let Some((destination, sources)) = args.paths.split_last() else {
        return Err(CliError::Usage("name a source and a destination".into()));
    };
    match (Location::parse(destination)?, sources) {
        (Location::Remote(url), sources) => put_remote(args, sources, &url),
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
            "say which directories {} is to be striped over: --on DIR,DIR,...; or name a cluster: grist://HOST:PORT/PATH",
            path.display()
        )));
    }
    if args.targets.is_some() || args.mode.is_some() {
        return Err(CliError::Usage("--targets and --mode are for files of a cluster".into()));
    }
    let begun = Instant::now();
    let total = std::fs::metadata(source).map_or(0, |meta| meta.len());
    let bar = bytes_bar(total, args.tuning.no_progress);
    let options = PutOptions {
        targets: args.on.iter().map(PathBuf::from).collect(),
        unit: args.stripe.0,
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

fn put_remote(args: &PutArgs, sources: &[String], url: &Url) -> Result<ExitCode, CliError> {
    let on = args.on.iter().map(|number| {
        number.parse::<u32>().map_err(|_| {
            CliError::Usage(format!("--on {number}: targets of a cluster are numbers, as in --on 0,2,3; 'gristmill nodes' lists them"))
        })
    });
    let on = on.collect::<Result<Vec<u32>, _>>()?;
    let how = RemotePut {
        unit: args.stripe.0,
        record: args.record.map(|record| record.0),
        targets: args.targets,
        on: (!on.is_empty()).then_some(on),
        mode: args.mode,
    };
    let cluster = connect(url)?;
    if let ([source], false) = (sources, url.path.ends_with('/')) {
        let begun = Instant::now();
        let info = put_one(args, &cluster, source, &url.path, &how)?;
        return line(&made(args.json, url.entry.as_deref(), &info, begun.elapsed().as_secs_f64()));
    }
    if !url.path.ends_with('/') {
        return Err(CliError::Usage(format!("{url}: several files go to a directory; write {url}/")));
    }
    let mut files = Vec::new();
    for source in sources {
        if source == DASH {
            return Err(CliError::Usage(format!("standard input has no name; write {url}NAME")));
        }
        let name = Path::new(source).file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| CliError::Usage(format!("{source} has no file name")))?;
        let to = format!("{}{name}", url.path);
        if let Some((other, _)) = files.iter().find(|(_, path)| *path == to) {
            let other: &PathBuf = other;
            return Err(CliError::Usage(format!(
                "{} and {source} would both be {to}; put one elsewhere",
                other.display()
            )));
        }
        files.push((PathBuf::from(source), to));
    }
    let begun = Instant::now();
    let (mut failed, mut out) = (None, Ok(ExitCode::SUCCESS));
    cluster.put_many(files, &how, &mut |source, result| match result {
        Ok(info) => {
            if out.is_ok() {
                out = line(&made(args.json, url.entry.as_deref(), &info, begun.elapsed().as_secs_f64()));
            }
        }
        Err(error) => {
            eprintln!("gristmill: {}: {error}", source.display());
            failed = Some(error);
        }
    });
    match failed {
        None => out,
        Some(error) => Ok(ExitCode::from(if error.is_usage() { 2 } else { 1 })),
    }
}

fn put_one(
    args: &PutArgs,
    cluster: &Cluster,
    source: &str,
    path: &str,
    how: &RemotePut,
) -> Result<FileInfo, ClientError> {
    if source == DASH {
        return cluster.put_from(io::stdin(), path, how, &mut |_| ());
    }
    let total = std::fs::metadata(source).map_or(0, |meta| meta.len());
    let bar = bytes_bar(total, args.tuning.no_progress);
    let put = cluster.put(Path::new(source), path, how, &mut |at| bar.set_position(at));
    bar.finish_and_clear();
    put
}

fn made(as_json: bool, entry: Option<&str>, info: &FileInfo, elapsed: f64) -> String {
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

/// Copies a file out of its targets.
pub fn get(args: &GetArgs) -> Result<ExitCode, CliError> {
    let to_output = args.destination == Path::new(DASH);
    match &args.path {
        Location::Local(path) => {
            let file = gristmill_client::open(path)?;
            let bar = bytes_bar(file.length, args.tuning.no_progress);
            let mut progress = |at| bar.set_position(at);
            if to_output {
                let mut out = io::stdout().lock();
                gristmill_client::read_to(&file, &mut out, &mut progress)?;
                out.flush().map_err(CliError::Output)?;
            } else {
                gristmill_client::get(&file, &args.destination, &mut progress)?;
            }
            bar.finish_and_clear();
        }
        Location::Remote(url) => {
            let cluster = connect(url)?;
            let opened = cluster.open(&url.path)?;
            let bar = bytes_bar(opened.info.file.length, args.tuning.no_progress);
            let mut progress = |at| bar.set_position(at);
            if to_output {
                let mut out = io::stdout().lock();
                cluster.read_to(&opened, &mut out, &mut progress)?;
                out.flush().map_err(CliError::Output)?;
            } else {
                cluster.get(&opened, &args.destination, &mut progress)?;
            }
            bar.finish_and_clear();
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows how a file lies on its targets.
pub fn stat(args: &StatArgs) -> Result<ExitCode, CliError> {
    match &args.path {
        Location::Local(path) => stat_local(args, path),
        Location::Remote(url) => stat_remote(args, url),
    }
}

fn stat_remote(args: &StatArgs, url: &Url) -> Result<ExitCode, CliError> {
    let info = connect(url)?.stat(&url.path)?;
    let file = &info.file;
    let layout = file.layout().map_err(ClientError::from)?;
    let targets: Vec<_> = (0u32..)
        .zip(&file.targets)
        .map(|(place, target)| (target, layout.bytes_on(place, 0..file.length)))
        .collect();
    if args.json {
        let targets: Vec<_> = targets
            .iter()
            .map(|(target, bytes)| json!({ "target": target.number, "node": target.address, "bytes": bytes }))
            .collect();
        let text = json!({
            "path": file.path, "length": file.length, "stripe_unit": file.unit, "first": file.first,
            "record": file.record, "owner": info.owner, "mode": format!("{:o}", info.mode),
            "created": info.created, "id": file.id, "targets": targets,
        });
        return line(&text.to_string());
    }
    let mut text = format!(
        "{url}: {} ({} bytes), stripes of {} on {} targets",
        readable(file.length),
        file.length,
        readable(file.unit),
        targets.len()
    );
    if let Some(record) = file.record {
        text.push_str(&format!(", whole records of {record} bytes"));
    }
    text.push_str(&format!("\n  owner {}, mode {:o}, made {}", info.owner, info.mode, time(info.created)));
    for (place, (target, bytes)) in (0u32..).zip(&targets) {
        let first = if place == file.first { ", the first stripe" } else { "" };
        text.push_str(&format!(
            "\n  target {} ({}): {}{first}",
            target.number,
            target.address,
            readable(*bytes)
        ));
    }
    line(&text)
}

/// Seconds since 1970 as a date and time, UTC.
pub fn time(seconds: u64) -> String {
    let days = i64::try_from(seconds / 86_400).unwrap_or(0);
    let (hours, minutes, rest) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Civil date of a day number (proleptic Gregorian calendar; eras of 400 years from 1 March of year 0).
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{rest:02} UTC")
}

fn stat_local(args: &StatArgs, path: &Path) -> Result<ExitCode, CliError> {
    let file = gristmill_client::open(path)?;
    let unit = match &file.layout {
        Layout::Striped(striped) if file.parts.len() > 1 => Some(striped.unit()),
        _ => None,
    };
    let targets: Vec<_> = (0..file.layout.targets())
        .zip(&file.parts)
        .map(|(target, part)| (part.describe(), file.layout.bytes_on(target, 0..file.length)))
        .collect();
    if args.json {
        let targets: Vec<_> =
            targets.iter().map(|(node, bytes)| json!({ "node": node, "bytes": bytes })).collect();
        let text = json!({ "path": path, "length": file.length, "stripe_unit": unit, "targets": targets });
        return line(&text.to_string());
    }
    let mut text = format!("{}: {} ({} bytes)", path.display(), readable(file.length), file.length);
    match unit {
        None => text.push_str(", in one piece"),
        Some(unit) => text.push_str(&format!(", stripes of {} on {} targets", readable(unit), targets.len())),
    }
    for (node, bytes) in targets.iter().filter(|_| unit.is_some()) {
        text.push_str(&format!("\n  {node}: {}", readable(*bytes)));
    }
    line(&text)
}

/// Prints a line of an answer.
pub fn line(text: &str) -> Result<ExitCode, CliError> {
    writeln!(io::stdout(), "{text}").map_err(CliError::Output)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(time(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(time(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(time(4_102_444_799), "2099-12-31 23:59:59 UTC");
    }
}
