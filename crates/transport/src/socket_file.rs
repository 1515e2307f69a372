//! The file of a Unix socket: made by one node at a time, and gone with it.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::net::UnixListener;

use crate::{Address, Result, TransportError};

/// Every user may connect: the server knows who it is by `SO_PEERCRED`. Who is to be kept out altogether is
/// kept out by the mode of the directory.
const MODE: u32 = 0o666;

/// Of the lock file: others cannot open it.
const LOCK_MODE: u32 = 0o600;
const OTHERS: u32 = 0o077;

/// How often, and with which pause, the lock is tried for.
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
    let _lock = lock_beside(path, &address).await?;
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

/// Takes the lock file beside the socket: one of this user that nobody else may open, so that nobody else can hold it. It
/// stays, as one that was removed could be held by two.
async fn lock_beside(path: &Path, address: &Address) -> Result<File> {
    let failed = |source| TransportError::Listen { address: address.clone(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let at = path.with_file_name(name);
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(LOCK_MODE);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let lock = options.open(&at).map_err(failed)?;
    let meta = lock.metadata().map_err(failed)?;
    if meta.uid() != rustix::process::geteuid().as_raw() || meta.mode() & OTHERS != 0 {
        let why = format!("others may open {}; remove it", at.display());
        return Err(failed(io::Error::other(why)));
    }
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(failed(io::Error::other("another node that starts keeps the socket's lock")))
}
