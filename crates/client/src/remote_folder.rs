//! Copies of all files of a directory of a cluster, several at once.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};

use gristmill_runtime::{Control, RunError};
use gristmill_wire::action::{Opened, PathRequest, names};

use crate::remote_put::TICK;
use crate::remote_tree::join;
use crate::staged_folder::OWNER_WRITES;
use crate::{ClientError, Cluster, RemotePut};

/// Files that are copied at once.
const COPIES: usize = 8;

/// Files that one message opens.
const BATCH: usize = 64;

/// Totals of a copied directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Number of files.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
}

impl Cluster {
    /// Copies all files of a directory to a new folder of this machine, which gets its name when it is complete and
    /// durable. `progress` gets the bytes written so far.
    ///
    /// # Errors
    /// Returns [`ClientError::Usage`] if the name exists already, [`ClientError::Stopped`] if `stop` is stopped, and
    /// another error if a file cannot be read or written. Nothing of the folder is left then.
    pub fn get_folder(
        &self,
        path: &str,
        destination: &Path,
        stop: &Control,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Copied, ClientError> {
        let io = |source| ClientError::Io { verb: "write", path: destination.to_owned(), source };
        if std::fs::symlink_metadata(destination).is_ok() {
            let text = format!("{} is there already; remove it, or give another name", destination.display());
            return Err(ClientError::Usage(text));
        }
        let files = self.files_in(path)?;
        let parent = destination.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let name = destination.file_name().unwrap_or_default().to_string_lossy();
        let partial = parent.join(format!(".{name}.{:016x}.partial", fastrand::u64(..)));
        std::fs::create_dir(&partial).map_err(io)?;
        let made = self.fill(path, files, &partial, stop, progress).and_then(|copied| {
            if stop.stopped() {
                return Err(crate::copy::stopped(destination));
            }
            std::fs::rename(&partial, destination).map_err(io)?;
            File::open(parent).and_then(|dir| dir.sync_all()).map_err(io)?;
            Ok(copied)
        });
        made.map_err(|error| {
            // A folder that cannot be removed now stays under a name that tells what it is.
            let _ = std::fs::remove_dir_all(&partial);
            if stop.stopped() { crate::copy::stopped(destination) } else { error }
        })
    }

    fn fill(
        &self,
        path: &str,
        files: Vec<(String, u64)>,
        folder: &Path,
        stop: &Control,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Copied, ClientError> {
        let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
        for (name, _) in &files {
            // Names are in ascending order, so the files of a directory are consecutive.
            let below = folder.join(name).parent().map(Path::to_owned).unwrap_or_default();
            if folders.last() != Some(&below) {
                let failed = |source| ClientError::Io { verb: "make", path: below.clone(), source };
                std::fs::create_dir_all(&below).map_err(failed)?;
                folders.push(below);
            }
        }
        let copied = self.each_file(path, files, stop, progress, |opened, name, done| {
            self.write_new(opened, &folder.join(name), stop, done)
        })?;
        for folder in folders {
            let failed = |source| ClientError::Io { verb: "write", path: folder.clone(), source };
            File::open(&folder).and_then(|dir| dir.sync_all()).map_err(failed)?;
        }
        Ok(copied)
    }

    /// Copies an opened file to a new path.
    fn write_new(
        &self,
        opened: &Opened,
        path: &Path,
        stop: &Control,
        done: &AtomicU64,
    ) -> Result<(), ClientError> {
        let failed = |source| ClientError::Io { verb: "write", path: path.to_owned(), source };
        let mode = u32::from(opened.info.mode);
        let out = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
        let mut before = 0;
        self.download_to(opened, path, &out, stop, &mut |at| {
            done.fetch_add(at.saturating_sub(before), Ordering::Relaxed);
            before = at;
        })?;
        done.fetch_add(opened.info.file.length.saturating_sub(before), Ordering::Relaxed);
        out.sync_all().map_err(failed)
    }

    /// Copies a file to a path of this cluster or another one, with its stripe unit and its records. A new file also
    /// gets the permission bits of the old one. The bytes pass through this process in small pieces. `progress` gets
    /// the bytes so far.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, if the copy cannot be written, and if both are the same file.
    /// Nothing of the copy is left then.
    pub fn copy_file(
        &self,
        opened: &Opened,
        to: &Cluster,
        path: &str,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        let file = &opened.info.file;
        if self.entry == to.entry && file.path == path {
            return Err(ClientError::Usage(format!("{path} would be copied onto itself; give another name")));
        }
        let mode = if to.is_file(path)? { None } else { Some(opened.info.mode) };
        self.copy_as(opened, to, path, mode, progress)
    }

    /// Copies a file to one with these permission bits.
    fn copy_as(
        &self,
        opened: &Opened,
        to: &Cluster,
        path: &str,
        mode: Option<u16>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ClientError> {
        let file = &opened.info.file;
        // The stripes of a file of a mount can be those of its file system.
        let unit = match file.segments || file.attached.is_some() {
            true => crate::DEFAULT_UNIT,
            false => file.unit,
        };
        let how = RemotePut { unit, record: file.record, mode, ..RemotePut::default() };
        to.put_made(path, &how, |mut out| {
            // Reads block by block: the writer blocks, which a thread that drives connections must not do.
            let read = crate::read_to(&self.parts(opened)?, &mut out, progress);
            read.map_err(|error| match error {
                ClientError::Run(error) => ClientError::Run(self.explain(file, error)),
                other => other,
            })?;
            out.flush().map_err(|source| ClientError::Io { verb: "write", path: path.into(), source })
        })?;
        Ok(())
    }

    /// Copies all files of a directory to a directory of this cluster or another one. A new directory appears as a
    /// whole; see [`stage_folder`](Cluster::stage_folder).
    ///
    /// # Errors
    /// It fails as [`copy_file`](Cluster::copy_file) and [`stage_folder`](Cluster::stage_folder) do, and if a directory
    /// is copied into itself.
    pub fn copy_folder(
        &self,
        from: &str,
        to: &Cluster,
        path: &str,
        stop: &Control,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Copied, ClientError> {
        let (inside, outside) = (join(path, ""), join(from, ""));
        if self.entry == to.entry && inside.starts_with(&outside) {
            let text = format!("{from} would be copied into itself, to {path}; choose another directory");
            return Err(ClientError::Usage(text));
        }
        let files = self.files_in(from)?;
        let staged = to.stage_folder(path, files.iter().map(|(name, _)| name.as_str()), None)?;
        let closed = Mutex::new(Vec::new());
        let copied = self.each_file(from, files, stop, progress, |opened, name, done| {
            let (mut before, copy, mode) = (0, join(staged.path(), name), opened.info.mode);
            let mut each = |at: u64| {
                done.fetch_add(at.saturating_sub(before), Ordering::Relaxed);
                before = at;
            };
            if !staged.is_apart() || mode & OWNER_WRITES != 0 {
                return self.copy_file(opened, to, &copy, &mut each);
            }
            // The file gets its own permission bits when the folder has its name.
            self.copy_as(opened, to, &copy, Some(mode | OWNER_WRITES), &mut each)?;
            closed.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), mode));
            Ok(())
        });
        match copied {
            Ok(copied) if !stop.stopped() => {
                staged.publish(to)?;
                for (name, mode) in closed.into_inner().unwrap_or_else(PoisonError::into_inner) {
                    to.set_mode(&join(path, &name), mode)?;
                }
                Ok(copied)
            }
            ended => {
                staged.discard(to);
                Err(ended.err().filter(|_| !stop.stopped()).unwrap_or_else(|| staged.stopped()))
            }
        }
    }

    /// Opens files below a directory and calls `copy` for each, several at once on threads of their own. Ends at the
    /// first failure.
    fn each_file(
        &self,
        directory: &str,
        files: Vec<(String, u64)>,
        stop: &Control,
        progress: &mut dyn FnMut(u64),
        copy: impl Fn(&Opened, &str, &AtomicU64) -> Result<(), ClientError> + Sync,
    ) -> Result<Copied, ClientError> {
        let all = Copied {
            files: files.len() as u64,
            bytes: files.iter().fold(0, |sum: u64, (_, length)| sum.saturating_add(*length)),
        };
        let batches = Mutex::new(files.chunks(BATCH));
        let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let (results, finished) = channel::<Result<(), ClientError>>();
        std::thread::scope(|scope| {
            for _ in 0..COPIES {
                let results = results.clone();
                let work = || -> Result<(), ClientError> {
                    loop {
                        let next = batches.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
                        let Some(batch) = next else { return Ok(()) };
                        for (name, opened) in self.opened_each(directory, batch) {
                            if over.load(Ordering::Relaxed) || stop.stopped() {
                                return Ok(());
                            }
                            copy(&opened?, name, &done)?;
                        }
                    }
                };
                scope.spawn(move || {
                    // The receiver waits for every thread.
                    let _ = results.send(work());
                });
            }
            drop(results);
            let mut failed = None;
            loop {
                match finished.recv_timeout(TICK) {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        over.store(true, Ordering::Relaxed);
                        failed.get_or_insert(error);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                progress(done.load(Ordering::Relaxed));
            }
            match failed {
                Some(error) => Err(error),
                None if stop.stopped() => Err(crate::copy::stopped(Path::new(directory))),
                None => Ok(all),
            }
        })
    }

    fn opened_each<'a>(
        &self,
        directory: &str,
        batch: &'a [(String, u64)],
    ) -> Vec<(&'a str, Result<Opened, RunError>)> {
        let paths = batch.iter().map(|(name, _)| PathRequest { path: join(directory, name) }).collect();
        let opened = self.peers.wait(self.each_of(names::OPEN_MANY, paths));
        batch.iter().map(|(name, _)| name.as_str()).zip(opened).collect()
    }
}
