//! The file of a Unix socket. One node at a time makes it, and removes it at its end.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::net::UnixListener;

use crate::{Address, Result, TransportError};

/// Mode of the socket. Every user may connect, and the server learns the user from `SO_PEERCRED`. The mode of the
/// directory can exclude users.
const MODE: u32 = 0o666;

/// Mode of the lock file: other users cannot open it.
const LOCK_MODE: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// Number of tries to lock the file, with pauses of [`LOCK_PAUSE`].
const LOCK_TRIES: u32 = 500;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Guard that removes the socket file when it is dropped, unless another node has made a new file.
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

/// Binds the socket. It replaces the file of a killed node.
pub(crate) async fn bind(path: &Path) -> Result<(UnixListener, SocketFile)> {
    let address = Address::Unix(path.to_owned());
    let failed = |source| TransportError::Listen { address: address.clone(), source };
    // Two nodes that start at once must not take each other's new socket for a stale one.
    let _lock = lock_socket_file(path, &address).await?;
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(failed(io::Error::other("the path is a file that is not a socket; remove it")));
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

/// Locks the lock file of the socket, in the same directory. The file belongs to this user, and other users cannot open
/// it, so they cannot lock it. It is never removed: otherwise two processes could lock two files of the same name.
async fn lock_socket_file(path: &Path, address: &Address) -> Result<File> {
    let failed = |source| TransportError::Listen { address: address.clone(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let lock_path = path.with_file_name(name);
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(LOCK_MODE);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let lock = options.open(&lock_path).map_err(failed)?;
    let meta = lock.metadata().map_err(failed)?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & OTHERS != 0 {
        let why = format!("other users may open {}; remove it", lock_path.display());
        return Err(failed(io::Error::other(why)));
    }
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(failed(io::Error::other("another node that is starting holds the lock of the socket; try again")))
}
