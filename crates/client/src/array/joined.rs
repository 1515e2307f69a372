//! The bytes of several files as one, in the order in which a joined table names them ([`gristmill_format::join`]).

use gristmill_format::FileRef;
use gristmill_layout::TargetIndex;
use gristmill_peers::Files;
use gristmill_runtime::{FileParts, Placement, RunError};
use gristmill_wire::action::Opened;

use crate::ClientError;

/// Placement of requests over several files of this machine.
const CLIENT: Placement =
    Placement { place: "client", why: "files of this machine are folded by the client", remote: false };

/// Returns the files of this machine that a joined table names, as one file.
///
/// # Errors
/// Returns [`RunError::Internal`] if a name is not the number of a file, and an error if the layouts cannot be joined.
pub fn joined_parts(files: &[FileParts], names: &[FileRef]) -> Result<FileParts, ClientError> {
    let named = numbered(files, names)?;
    let targets = named.iter().map(|file| file.parts.len()).max().unwrap_or(0).max(1);
    let targets = TargetIndex::try_from(targets).unwrap_or(TargetIndex::MAX);
    let each = named.iter().map(|file| ((*file).clone(), (0..file.layout.targets()).collect())).collect();
    Ok(FileParts::joined(
        title(named.first().map_or("", |file| &file.name), named.len()),
        each,
        targets,
        CLIENT,
    )?)
}

/// Returns the files of a cluster that a joined table names; `None` if it names no file.
///
/// # Errors
/// Returns [`RunError::Internal`] if a name is not the number of a file, and an error if there are more files than a request takes.
pub fn joined_files(files: &[Opened], names: &[FileRef]) -> Result<Option<Files>, ClientError> {
    let named = numbered(files, names)?;
    let each = named.iter().map(|opened| (opened.info.file.clone(), opened.grant.as_str().into()));
    Ok(if named.is_empty() { None } else { Some(Files::several(each.collect())?) })
}

/// The files with these numbers as names.
fn numbered<'a, T>(files: &'a [T], names: &[FileRef]) -> Result<Vec<&'a T>, ClientError> {
    let file = |name: &FileRef| name.name.parse::<usize>().ok().and_then(|number| files.get(number));
    let found: Option<Vec<&T>> = names.iter().map(file).collect();
    found.ok_or_else(|| RunError::Internal { what: "a joined table names a file that was not joined" }.into())
}

/// The name of several files in messages.
fn title(first: &str, count: usize) -> String {
    match count {
        0 | 1 => first.to_owned(),
        _ => format!("{first} and {} more", count - 1),
    }
}
