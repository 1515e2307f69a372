//! `gristmill stat`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{EXTENSION, Here, Location, Url, is_zarr, read_dataset};
use gristmill_format::{Dataset, FormatError, is_self_describing, open_path};
use gristmill_layout::Layout;
use gristmill_runtime::FileParts;
use serde_json::{Map, Value as Json, json};

use crate::args::StatArgs;
use crate::commands::file_location::FileLocation;
use crate::commands::names::made;
use crate::commands::variables::{self, open_here};
use crate::commands::{connect, line, stat_folder};
use crate::error::CliError;
use crate::size::readable;

/// Shows the layout of a file on its targets, and its variables.
pub fn stat(args: &StatArgs) -> Result<ExitCode, CliError> {
    match &args.path {
        Location::Local(path) if is_zarr(path) => stat_zarr(args, Contents::local(args, path)),
        Location::Local(path) => stat_file(args, &gristmill_client::open(path)?, Contents::local(args, path)),
        Location::Outside(_) => stat_outside(args),
        Location::Remote(url) => stat_remote(args, url),
    }
}

fn stat_remote(args: &StatArgs, url: &Url) -> Result<ExitCode, CliError> {
    let cluster = connect(url, args.reach)?;
    let opened = match cluster.open(&url.path) {
        Ok(opened) => opened,
        Err(error) if error.is_missing() => match cluster.usage(&url.path) {
            Ok(amount) if amount.directory => return stat_folder::stat(args, &cluster, url, &amount),
            _ => return Err(error.into()),
        },
        Err(error) => return Err(error.into()),
    };
    let layout = cluster.layout(&opened)?;
    let info = &opened.info;
    let file = &info.file;
    let pieces = match &layout {
        Layout::Striped(_) => None,
        Layout::Segments(segments) => Some(segments.pieces()),
    };
    let targets: Vec<_> = (0u32..)
        .zip(&file.targets)
        .map(|(place, target)| (target, layout.bytes_on(place, 0..file.length)))
        .collect();
    // Only files with a scientific extension are read.
    let scientific = args.var.is_some() || is_self_describing(Path::new(&file.path));
    let dataset = if scientific {
        let parts = cluster.parts(&opened)?;
        // Delimited text must be read to its end, so only if a variable is asked for.
        let name = if args.var.is_some() { &*parts.name } else { "" };
        known_format(args, read_dataset(&parts, name).map(Arc::new))
    } else {
        Ok(None)
    };
    let contents = Contents {
        dataset,
        location: Some(FileLocation {
            layout: &layout,
            targets: file.targets.iter().map(|target| (target.number, target.address.clone())).collect(),
        }),
        path: Path::new(&file.path),
    };
    if args.json {
        let targets: Vec<_> = targets
            .iter()
            .map(|(target, bytes)| json!({ "target": target.number, "node": target.address, "bytes": bytes }))
            .collect();
        let mut text = json!({
            "path": file.path, "length": file.length, "pieces": pieces,
            "stripe_unit": pieces.is_none().then_some(file.unit), "first": pieces.is_none().then_some(file.first),
            "record": file.record, "owner": info.owner, "mode": format!("{:03o}", info.mode),
            "created": (info.created > 0).then_some(info.created), "id": file.id, "targets": targets,
            "attached": file.attached.as_ref().map(|file| format!("{}/{}", file.tree.url, file.key)),
        });
        if let Json::Object(text) = &mut text {
            text.extend(contents.json(args)?);
        }
        return line(&text.to_string());
    }
    let stripes = match pieces {
        None => format!("stripes of {}", readable(file.unit)),
        Some(pieces) if file.attached.is_some() => format!("{pieces} pieces dealt to the nodes near them"),
        Some(pieces) => format!("{pieces} pieces on the nodes that made them"),
    };
    let mut text = format!(
        "{url}: {} ({} bytes), {stripes} on {} targets",
        readable(file.length),
        file.length,
        targets.len()
    );
    if let Some(record) = file.record {
        text.push_str(&format!(", whole records of {record} bytes"));
    }
    text.push_str(&format!(
        "\n  owner {}, mode {:03o}{}",
        info.owner,
        info.mode,
        made(info).map_or_else(String::new, |time| format!(", made {time}"))
    ));
    if let Some(attached) = &file.attached {
        text.push_str(&format!(
            "\n  it lies at {}/{}, and each node reads it there",
            attached.tree.url, attached.key
        ));
    }
    for (place, (target, bytes)) in (0u32..).zip(&targets) {
        let first = if place == file.first && pieces.is_none() { ", the first stripe" } else { "" };
        text.push_str(&format!(
            "\n  target {} ({}): {}{first}",
            target.number,
            target.address,
            readable(*bytes)
        ));
    }
    text.push_str(&contents.text(args)?);
    line(&text)
}

/// The dataset; `None` for a file of an unknown format, which is an error if a variable is asked for.
fn known_format(
    args: &StatArgs,
    opened: Result<Arc<Dataset>, FormatError>,
) -> Result<Option<Arc<Dataset>>, FormatError> {
    match opened {
        Err(FormatError::Unrecognised { .. }) if args.var.is_none() => Ok(None),
        opened => opened.map(Some),
    }
}

fn stat_outside(args: &StatArgs) -> Result<ExitCode, CliError> {
    let here = open_here(&args.path, false)?;
    let shown = PathBuf::from(args.path.to_string());
    // Only files with a scientific extension are read.
    let scientific =
        args.var.is_some() || is_self_describing(args.path.path()) || matches!(here, Here::Folder(_));
    let dataset = if scientific { known_format(args, here.dataset()) } else { Ok(None) };
    let contents = Contents { dataset, location: None, path: &shown };
    match &here {
        Here::File(file) => stat_file(args, file, contents),
        Here::Folder(_) => stat_zarr(args, contents),
    }
}

fn stat_file(args: &StatArgs, file: &FileParts, contents: Contents<'_>) -> Result<ExitCode, CliError> {
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
        let mut text = Map::new();
        text.insert("path".to_owned(), json!(args.path.to_string()));
        text.insert("length".to_owned(), json!(file.length));
        text.insert("stripe_unit".to_owned(), json!(unit));
        text.insert("targets".to_owned(), json!(targets));
        text.extend(contents.json(args)?);
        return line(&Json::Object(text).to_string());
    }
    let mut text = format!("{}: {} ({} bytes)", args.path, readable(file.length), file.length);
    match unit {
        None => text.push_str(", in one piece"),
        Some(unit) => text.push_str(&format!(", stripes of {} on {} targets", readable(unit), targets.len())),
    }
    for (node, bytes) in targets.iter().filter(|_| unit.is_some()) {
        text.push_str(&format!("\n  {node}: {}", readable(*bytes)));
    }
    text.push_str(&contents.text(args)?);
    line(&text)
}

fn stat_zarr(args: &StatArgs, contents: Contents<'_>) -> Result<ExitCode, CliError> {
    if args.json {
        let mut text = Map::new();
        text.insert("path".to_owned(), json!(args.path.to_string()));
        text.extend(contents.json(args)?);
        return line(&Json::Object(text).to_string());
    }
    line(&format!("{}: a folder{}", args.path, contents.text(args)?))
}

/// The variables of a file of a known format. If the file cannot be read, that is shown instead; it is an error if a
/// variable is asked for.
struct Contents<'a> {
    dataset: Result<Option<Arc<Dataset>>, FormatError>,
    /// The targets of the file, if it is on a cluster.
    location: Option<FileLocation<'a>>,
    path: &'a Path,
}

impl<'a> Contents<'a> {
    fn local(args: &StatArgs, path: &'a Path) -> Contents<'a> {
        Contents { dataset: open_dataset(args, path).map(|found| found.map(Arc::new)), location: None, path }
    }

    fn json(self, args: &StatArgs) -> Result<Map<String, Json>, CliError> {
        let shown = self.dataset.and_then(|dataset| match dataset {
            Some(dataset) => {
                variables::to_json(&dataset, args.var.as_deref(), args.chunks, self.location.as_ref())
            }
            None => Ok(Map::new()),
        });
        match shown {
            Ok(shown) => Ok(shown),
            Err(error) if args.var.is_none() => {
                Ok(Map::from_iter([("unreadable".to_owned(), json!(error.to_string()))]))
            }
            Err(error) => Err(variables::failed(&self.path.display())(error)),
        }
    }

    fn text(self, args: &StatArgs) -> Result<String, CliError> {
        let shown = self.dataset.and_then(|dataset| match dataset {
            Some(dataset) => {
                variables::to_text(&dataset, args.var.as_deref(), args.chunks, self.location.as_ref())
            }
            None => Ok(String::new()),
        });
        match shown {
            Ok(shown) => Ok(shown),
            Err(error) if args.var.is_none() => Ok(format!("\n  its contents cannot be shown: {error}")),
            Err(error) => Err(variables::failed(&self.path.display())(error)),
        }
    }
}

/// Opens a plain file, or a folder with Zarr. `None` for other files, unless a variable is asked for.
fn open_dataset(args: &StatArgs, path: &Path) -> Result<Option<Dataset>, FormatError> {
    let striped = path.extension().is_some_and(|extension| extension == EXTENSION);
    match variables::open(path) {
        _ if striped && args.var.is_none() => Ok(None),
        _ if striped => {
            Err(FormatError::Unrecognised { why: "it is striped; get the file first".to_owned() })
        }
        Ok(None) if args.var.is_some() => open_path(path).map(Some),
        other => other,
    }
}
