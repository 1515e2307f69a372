//! `gristmill get`.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use gristmill_client::{ClientError, Cluster, EXTENSION, Location, Url};
use gristmill_runtime::Control;

use crate::args::GetArgs;
use crate::commands::{DASH, connect_to_read, get_variable};
use crate::error::CliError;
use crate::interrupt::stop_on_signal;
use crate::progress::bytes_bar;

/// Permission bits of a copy of a file that has none, before the umask.
const NEW_FILE: u32 = 0o666;

/// Copies a file out of its targets.
pub fn get(args: &GetArgs) -> Result<ExitCode, CliError> {
    let named = args.destination.to_str().map(str::parse::<Location>);
    if let Some(Ok(Location::Remote(url))) = named {
        return Err(CliError::Usage(match &args.path {
            Location::Remote(_) => format!("{url} is on a cluster; copy it there with 'gristmill cp'"),
            Location::Local(_) => format!("{url} is on a cluster; copy it there with 'gristmill put'"),
            Location::Outside(outside) => {
                format!("{outside} is not copied to a cluster directly; get it first, and put the copy")
            }
        }));
    }
    match (args.path.cluster(), &args.var) {
        (None, None) => get_here(args)?,
        (None, Some(name)) => {
            let path = args.path.path();
            let stem = path.file_stem().map(|stem| Path::new(stem).with_extension("npy"));
            let destination = destination(args, stem.as_deref().map(Path::as_os_str))?;
            get_variable::get(&args.path, name, &destination, args.check.verify, &*stop_on_ctrl_c()?)?;
        }
        (Some(url), None) => get_remote(args, url)?,
        (Some(url), Some(name)) => {
            let cluster = connect_to_read(url, args.reach, args.check.verify)?;
            let path = Path::new(&url.path);
            let stem = path.file_stem().map(|stem| Path::new(stem).with_extension("npy"));
            let destination = destination(args, stem.as_deref().map(Path::as_os_str))?;
            let remote = cluster.dataset(&url.path).map_err(|error| match error {
                ClientError::Format(error) => get_variable::no_variables(path, error),
                error => error.into(),
            })?;
            get_variable::get_from(&remote.dataset, path, name, &destination, &*stop_on_ctrl_c()?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn get_here(args: &GetArgs) -> Result<(), CliError> {
    let path = args.path.path();
    let file = gristmill_client::open_file(&args.path, args.check.verify)?;
    let bar = bytes_bar(file.length, args.tuning.no_progress);
    let mut progress = |at| bar.set_position(at);
    if args.destination == Path::new(DASH) {
        let mut out = io::stdout().lock();
        gristmill_client::read_to(&file, &mut out, &mut progress)?;
        out.flush().map_err(CliError::Output)?;
    } else {
        // The copy is a plain file, so its name loses the extension of a layout file.
        let striped =
            args.path.local().is_some() && path.extension().is_some_and(|extension| extension == EXTENSION);
        let destination = destination(args, if striped { path.file_stem() } else { path.file_name() })?;
        let mode = args.path.local().map_or(Ok(NEW_FILE), |path| {
            let mode = std::fs::metadata(path).map(|meta| meta.permissions().mode());
            mode.map_err(|source| CliError::File { verb: "read", path: path.to_owned(), source })
        })?;
        let stop = stop_on_ctrl_c()?;
        gristmill_client::get(&file, mode, &destination, &stop, &mut progress)?;
    }
    bar.finish_and_clear();
    Ok(())
}

fn get_remote(args: &GetArgs, url: &Url) -> Result<(), CliError> {
    let cluster = connect_to_read(url, args.reach, args.check.verify)?;
    let opened = match cluster.open(&url.path) {
        Ok(opened) => opened,
        Err(error) if error.is_missing() => match cluster.usage(&url.path) {
            Ok(amount) if amount.directory => return get_folder(args, &cluster, url, amount.bytes),
            _ => return Err(error.into()),
        },
        Err(error) => return Err(error.into()),
    };
    let bar = bytes_bar(opened.info.file.length, args.tuning.no_progress);
    let mut progress = |at| bar.set_position(at);
    if args.destination == Path::new(DASH) {
        let mut out = io::stdout().lock();
        cluster.read_to(&opened, &mut out, &mut progress)?;
        out.flush().map_err(CliError::Output)?;
    } else {
        let destination = destination(args, Path::new(&url.path).file_name())?;
        let stop = stop_on_ctrl_c()?;
        cluster.get_unless(&opened, &destination, &stop, &mut progress)?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Copies all files of a directory.
fn get_folder(args: &GetArgs, cluster: &Cluster, url: &Url, bytes: u64) -> Result<(), CliError> {
    if args.destination == Path::new(DASH) {
        return Err(CliError::Usage(format!("{url} is a directory; name a folder for its files")));
    }
    let mut destination = args.destination.clone();
    if destination.is_dir() {
        let name = Path::new(&url.path).file_name();
        let why = || CliError::Usage(format!("{url} has no name; give one for the copy"));
        destination.push(name.ok_or_else(why)?);
    }
    let bar = bytes_bar(bytes, args.tuning.no_progress);
    let stop = stop_on_ctrl_c()?;
    cluster.get_folder(&url.path, &destination, &stop, &mut |at| bar.set_position(at))?;
    bar.finish_and_clear();
    Ok(())
}

/// A control that Ctrl-C stops, so that a stopped copy leaves no partial file.
fn stop_on_ctrl_c() -> Result<Arc<Control>, CliError> {
    let stop = Arc::new(Control::new());
    stop_on_signal(&stop)?;
    Ok(stop)
}

/// The path of the copy: `name` in the destination if that is a directory, else the destination.
fn destination(args: &GetArgs, name: Option<&OsStr>) -> Result<PathBuf, CliError> {
    let given = &args.destination;
    if given.is_dir() {
        let name = name.ok_or_else(|| {
            ClientError::Usage(format!("{} has no file name; give one for the copy", args.path))
        })?;
        return Ok(given.join(name));
    }
    if given.as_os_str().as_encoded_bytes().ends_with(b"/") {
        let given = given.display();
        return Err(CliError::Usage(format!("there is no directory {given}; make it, or name a file")));
    }
    Ok(given.clone())
}
