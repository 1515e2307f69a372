//! Copies of whole files to this machine.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gristmill_runtime::{Control, FileParts};

use crate::ClientError;

const COPY_BYTES: usize = 1 << 20;

/// Writes all bytes of a file to `out`, in order. `progress` gets the bytes written so far.
///
/// # Errors
/// The error is [`ClientError::Run`] if the file cannot be read or was changed meanwhile, and [`ClientError::Io`] if
/// `out` cannot be written.
pub fn read_to(
    file: &FileParts,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ClientError> {
    copy(file, out, &mut |at| {
        progress(at);
        Ok(())
    })
}

/// Writes all bytes to `out`. `each` gets the bytes written so far, and ends the copy if it returns an error.
fn copy(
    file: &FileParts,
    out: &mut dyn Write,
    each: &mut dyn FnMut(u64) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < file.length {
        let n = (file.length - at).min(COPY_BYTES as u64);
        let bytes = &mut buffer[..n as usize];
        file.read(at..at + n, bytes)?;
        out.write_all(bytes).map_err(|source| ClientError::Io {
            verb: "write",
            path: PathBuf::from("standard output"),
            source,
        })?;
        at += n;
        each(at)?;
    }
    for part in &file.parts {
        part.unchanged()?;
    }
    Ok(())
}

/// Copies a file to a new plain file, which gets its name only when it is complete and durable. An existing file is
/// replaced. The new file has the permission bits `mode` without those of the umask. `progress` gets the bytes written
/// so far.
///
/// # Errors
/// Returns [`ClientError::Stopped`] if `stop` is stopped, and the errors of [`read_to`] and [`write_whole`]. Nothing of
/// the new file is left then.
pub fn get(
    file: &FileParts,
    mode: u32,
    destination: &Path,
    stop: &Control,
    progress: &mut dyn FnMut(u64),
) -> Result<(), ClientError> {
    write_whole(destination, mode, stop, &mut |out| {
        copy(file, &mut &*out, &mut |at| {
            progress(at);
            if stop.stopped() { Err(stopped(destination)) } else { Ok(()) }
        })
        .map_err(|error| match error {
            ClientError::Io { verb: "write", source, .. } => {
                ClientError::Io { verb: "write", path: destination.to_owned(), source }
            }
            other => other,
        })
    })
}

/// Returns the error of a copy that was stopped.
pub(crate) fn stopped(destination: &Path) -> ClientError {
    ClientError::Stopped { path: destination.to_owned() }
}

/// Makes a file that gets its name only when `write` has written all of it and it is durable. If anything ends it
/// before, `stop` included, nothing is left.
///
/// # Errors
/// The error is [`ClientError::Usage`] if something other than a regular file is at `destination`,
/// [`ClientError::Stopped`] if `stop` is stopped, [`ClientError::Io`] if the file cannot be made, synced or renamed, or
/// that of `write`. If only the last step fails, the sync of the directory, the new file is in place but perhaps not
/// durable.
pub fn write_whole(
    destination: &Path,
    mode: u32,
    stop: &Control,
    write: &mut dyn FnMut(&File) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    let io = |source| ClientError::Io { verb: "write", path: destination.to_owned(), source };
    // A symbolic link stays, and its destination is replaced.
    let target = destination.canonicalize().unwrap_or_else(|_| destination.to_owned());
    if target.is_dir() {
        let why = format!("{} is a directory; give a file name", target.display());
        return Err(ClientError::Usage(why));
    }
    if target.exists() && !target.is_file() {
        // A rename would replace a device or a pipe by a plain file.
        let why = format!("{} is not a regular file; write to '-' and redirect that", target.display());
        return Err(ClientError::Usage(why));
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let partial = parent.join(format!(".{name}.{:016x}.partial", fastrand::u64(..)));
    // The file has its permission bits from the first byte on, so it is never open to more principals than the whole
    // file.
    let made = OpenOptions::new().write(true).create_new(true).mode(mode & 0o777).open(&partial);
    let written = made.map_err(io).and_then(|out| {
        write(&out)?;
        out.sync_all().map_err(io)?;
        if stop.stopped() {
            return Err(stopped(destination));
        }
        std::fs::rename(&partial, &target).map_err(io)?;
        File::open(parent).and_then(|dir| dir.sync_all()).map_err(io)
    });
    if written.is_err() {
        // After a rename its temporary name is gone already.
        let _ = std::fs::remove_file(&partial);
    }
    written
}
