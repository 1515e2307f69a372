//! The file of a Unix socket: made by one node at a time, and gone with it.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixListener;

use crate::{Address, Result, TransportError};

/// Every user may connect: the server knows who it is by `SO_PEERCRED`. Who is to be kept out altogether is
/// kept out by the mode of the directory.
const MODE: u32 = 0o666;

/// How often, and with which pause, the lock of the directory is tried for.
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Removes the socket's file when dropped, unless another node has put its own there.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Ok(now) = std::fs::symlink_metadata(&self.path)
            && (now.dev(), now.ino()) == (self.device, self.inode)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Binds the socket, in place of a file that a killed node left.
pub(crate) async fn bind(path: &Path) -> Result<(UnixListener, SocketFile)> {
    let address = Address::Unix(path.to_owned());
    let failed = |source| TransportError::Listen { address: address.clone(), source };
    // Two nodes that start at once must not take each other's fresh socket for a stale one.
    let _lock = lock_directory(path, &address).await?;
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(failed(io::Error::other("a file that is no socket is in the way; remove it")));
        }
        Ok(_) => match StdUnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(failed)?;
            }
            _ => return Err(TransportError::InUse { address: address.clone() }),
        },
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let made = std::fs::symlink_metadata(path).map_err(failed)?;
    let file = SocketFile { path: path.to_owned(), device: made.dev(), inode: made.ino() };
    std::fs::set_permissions(path, Permissions::from_mode(MODE)).map_err(failed)?;
    Ok((listener, file))
}

async fn lock_directory(path: &Path, address: &Address) -> Result<File> {
    let failed = |source| TransportError::Listen { address: address.clone(), source };
    let directory = File::open(path.parent().unwrap_or(Path::new("/"))).map_err(failed)?;
    for _ in 0..LOCK_TRIES {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(failed(io::Error::other("another process keeps the socket's directory locked")))
}
