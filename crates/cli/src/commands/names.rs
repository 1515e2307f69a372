//! `gristmill ls`, `rm` and `chmod`.

use std::process::ExitCode;

use gristmill_client::{
    ClientError, Location, OutsideContent as Content, OutsideEntry, SourceUrl, Url, list_outside,
};
use gristmill_runtime::ErrorKind;
use gristmill_wire::action::{Entry, FileInfo};
use serde_json::json;

use crate::args::{ChmodArgs, LsArgs, RmArgs};
use crate::commands::{connect, line};
use crate::error::CliError;
use crate::size::readable;
use crate::time::utc_text;

/// The URL of a cluster or of one of its files.
///
/// # Errors
/// Returns an error for a path of this machine.
pub(super) fn remote(location: &Location) -> Result<&Url, CliError> {
    location.cluster().ok_or_else(|| {
        CliError::Usage(format!("{location} is not a file of a cluster; write grist://HOST:PORT/PATH"))
    })
}

/// Lists a folder of an object store or of a web server.
fn ls_outside(url: &SourceUrl, args: &LsArgs) -> Result<ExitCode, CliError> {
    let found: Vec<OutsideEntry> = list_outside(url)?.entries.into_iter().map(|(_, entry)| entry).collect();
    if args.json {
        let entry = |OutsideEntry { name, content }: &OutsideEntry| match content {
            Content::Folder => json!({ "name": name, "kind": "directory" }),
            Content::File(found) => json!({ "name": name, "kind": "file", "length": found.length }),
            Content::Unreadable { why } => json!({ "name": name, "kind": "unreadable", "error": why }),
        };
        let entries: Vec<_> = found.iter().map(entry).collect();
        return line(&json!({ "path": url.to_string(), "entries": entries }).to_string());
    }
    for OutsideEntry { name, content } in &found {
        match content {
            Content::Folder if args.long => line(&format!("{:>10}  {name}/", ""))?,
            Content::Folder => line(&format!("{name}/"))?,
            Content::File(found) if args.long => line(&format!("{:>10}  {name}", readable(found.length)))?,
            Content::Unreadable { why } if args.long => line(&format!("{name}: {why}"))?,
            _ => line(name)?,
        };
    }
    Ok(ExitCode::SUCCESS)
}

/// The time when a file was made; `None` for a file of an attached tree.
pub(super) fn made(info: &FileInfo) -> Option<String> {
    (info.created > 0).then(|| utc_text(info.created))
}

/// Lists a directory, or one file.
pub fn ls(args: &LsArgs) -> Result<ExitCode, CliError> {
    if let Location::Outside(url) = &args.path {
        return ls_outside(url, args);
    }
    let url = remote(&args.path)?;
    let cluster = connect(url, args.reach)?;
    let found: Vec<Entry> = match cluster.list(&url.path) {
        Ok(entries) => entries,
        // It may be a file.
        Err(error) if matches!(&error, ClientError::Run(error) if error.kind() == ErrorKind::NotFound) => {
            match cluster.stat(&url.path) {
                Ok(info) => vec![Entry { name: info.file.path.clone(), info: Some(info), unreadable: None }],
                Err(_) => return Err(error.into()),
            }
        }
        Err(error) => return Err(error.into()),
    };
    if args.json {
        let entry = |Entry { name, info, unreadable }: &Entry| match info {
            None if let Some(why) = unreadable => json!({ "name": name, "kind": "unreadable", "error": why }),
            None => json!({ "name": name, "kind": "directory" }),
            Some(info) => json!({
                "name": name, "kind": "file", "length": info.file.length, "stripe_unit": info.file.unit,
                "targets": info.file.targets.len(), "owner": info.owner, "mode": format!("{:03o}", info.mode),
                "created": (info.created > 0).then_some(info.created),
            }),
        };
        let entries: Vec<_> = found.iter().map(entry).collect();
        return line(&json!({ "path": url.path, "entries": entries }).to_string());
    }
    let owners = found.iter().filter_map(|entry| entry.info.as_ref()).map(|info| info.owner.len()).max();
    for Entry { name, info, unreadable } in &found {
        match (info, args.long) {
            (None, false) if unreadable.is_some() => line(name)?,
            (None, true) if let Some(why) = unreadable => line(&format!("{name}: {why}"))?,
            (None, false) => line(&format!("{name}/"))?,
            (Some(_), false) => line(name)?,
            (None, true) => line(&format!(
                "{:>3}  {:width$}  {:>10}  {:>6}  {:23}  {name}/",
                "",
                "",
                "",
                "",
                "",
                width = owners.unwrap_or(0)
            ))?,
            (Some(info), true) => line(&format!(
                "{:>3o}  {:width$}  {:>10}  {:>6}  {:23}  {name}",
                info.mode,
                info.owner,
                readable(info.file.length),
                format!("x{}", info.file.targets.len()),
                made(info).unwrap_or_default(),
                width = owners.unwrap_or(0),
            ))?,
        };
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes files, and with `--recursive` directories.
pub fn rm(args: &RmArgs) -> Result<ExitCode, CliError> {
    let mut failed: Option<CliError> = None;
    for path in &args.paths {
        let removed = match path {
            Location::Local(path) => gristmill_client::remove(path).map_err(CliError::from),
            Location::Remote(url) => connect(url, args.reach).and_then(|cluster| match args.recursive {
                true => Ok(cluster.remove_all(&url.path).map(|_| ())?),
                false => Ok(cluster.remove(&url.path)?),
            }),
            Location::Outside(url) => Err(CliError::Usage(format!(
                "{url} is not stored by Gristmill, and is never removed by it; use the tools of its storage"
            ))),
        };
        // After a failure, the other files are still removed.
        if let Err(error) = removed
            && let Some(earlier) = failed.replace(error)
        {
            crate::notice(format_args!("gristmill: {earlier}"));
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Changes permission bits.
pub fn chmod(args: &ChmodArgs) -> Result<ExitCode, CliError> {
    let url = remote(&args.path)?;
    let cluster = connect(url, args.reach)?;
    match args.recursive {
        true => cluster.set_mode_all(&url.path, args.mode)?,
        false => cluster.set_mode(&url.path, args.mode)?,
    }
    Ok(ExitCode::SUCCESS)
}
