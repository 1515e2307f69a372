//! Reading a whole file back.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use gristmill_runtime::FileParts;

use crate::ClientError;

const COPY_BYTES: usize = 1 << 20;

/// Writes all bytes of a file to `out`, in order. `progress` gets the bytes written so far.
pub fn read_to(
    file: &FileParts,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
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
        progress(at);
    }
    for part in &file.parts {
        part.unchanged()?;
    }
    Ok(())
}

/// Copies a file to a new plain one, which appears under its name only when it is whole and durable. Replaces
/// what was there.
pub fn get(file: &FileParts, destination: &Path, progress: &mut dyn FnMut(u64)) -> Result<(), ClientError> {
    write_whole(destination, &mut |out| {
        read_to(file, &mut &*out, progress).map_err(|error| match error {
            ClientError::Io { verb: "write", source, .. } => {
                ClientError::Io { verb: "write", path: destination.to_owned(), source }
            }
            other => other,
        })
    })
}

/// Makes a file that appears under its name only when `write` has written all of it and it is durable.
pub(crate) fn write_whole(
    destination: &Path,
    write: &mut dyn FnMut(&File) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    let io = |source| ClientError::Io { verb: "write", path: destination.to_owned(), source };
    // A link stays, and what it leads to is replaced.
    let target = destination.canonicalize().unwrap_or_else(|_| destination.to_owned());
    let destination = &*target;
    if destination.exists() && !destination.is_file() && !destination.is_dir() {
        // A rename would put a plain file in the place of a device or a pipe.
        let why = format!("{} is no regular file; write to '-' and redirect that", destination.display());
        return Err(ClientError::Usage(why));
    }
    if destination.is_dir() {
        let why = format!("{} is a directory; give a file name", destination.display());
        return Err(ClientError::Usage(why));
    }
    let parent = destination.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let name = destination.file_name().unwrap_or_default().to_string_lossy();
    let partial = parent.join(format!(".{name}.{:016x}.partial", fastrand::u64(..)));
    let written = File::create_new(&partial).map_err(io).and_then(|out| {
        write(&out)?;
        out.sync_all().map_err(io)?;
        std::fs::rename(&partial, destination).map_err(io)?;
        File::open(parent).and_then(|dir| dir.sync_all()).map_err(io)
    });
    if written.is_err() {
        // Under its own name it may be gone already.
        let _ = std::fs::remove_file(&partial);
    }
    written
}
