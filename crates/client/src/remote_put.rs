//! Copies of files to a cluster.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use gristmill_peers::WrittenFile;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{Attempt, Commit, Create, Created, FileInfo, names};
use tokio::sync::mpsc;

use crate::{ClientError, Cluster};

/// Bytes that are read at once from a source that is not a file.
const STREAM_BYTES: usize = 256 << 10;

/// Chunks of such a source that are read ahead.
const CHUNKS_AHEAD: usize = 4;

/// Time between two reports of progress.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// Options for the layout of a file on the targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePut {
    /// Stripe unit in bytes, before rounding to records.
    pub unit: u64,
    /// Size of a record in bytes. The unit is rounded up to whole records.
    pub record: Option<u64>,
    /// Number of targets, which the entry node chooses; all by default.
    pub targets: Option<u32>,
    /// Numbers of the targets to use, in this order.
    pub on: Option<Vec<u32>>,
    /// Permission bits. The default is those of the replaced file, or 644 (octal) for a new file.
    pub mode: Option<u16>,
}

impl Default for RemotePut {
    fn default() -> RemotePut {
        RemotePut { unit: crate::DEFAULT_UNIT, record: None, targets: None, on: None, mode: None }
    }
}

impl RemotePut {
    pub(crate) fn create(&self, path: &str) -> Create {
        Create {
            path: path.to_owned(),
            unit: self.unit,
            record: self.record,
            targets: self.targets,
            on: self.on.clone(),
            mode: self.mode,
            segments: false,
        }
    }
}

/// A source file and its state when it was opened.
pub(crate) struct Source {
    pub file: Arc<File>,
    pub path: PathBuf,
    /// Length in bytes, and time of the last change in seconds and nanoseconds.
    pub state: (u64, i64, i64),
}

impl Source {
    pub fn open(path: &Path) -> Result<Source, ClientError> {
        // Gives a clear error for a path that is not a regular file.
        gristmill_runtime::FileParts::plain(path)?;
        let io = |source| ClientError::Io { verb: "read", path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let state = state(&file).map_err(io)?;
        Ok(Source { file: Arc::new(file), path: path.to_owned(), state })
    }

    pub fn unchanged(&self) -> Result<(), RunError> {
        match state(&self.file) {
            Ok(now) if now == self.state => Ok(()),
            _ => Err(RunError::Changed { name: self.path.display().to_string() }),
        }
    }
}

fn state(file: &File) -> std::io::Result<(u64, i64, i64)> {
    let meta = file.metadata()?;
    Ok((meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// Lease of a put: the longest time without a renewal.
pub(crate) fn lease_of(created: &Created) -> Duration {
    Duration::from_secs(created.lease_seconds.max(3))
}

impl Cluster {
    /// Copies a file of this machine to the cluster. It becomes visible, or replaces another file, when all of it is
    /// durable. `progress` gets the bytes sent so far.
    ///
    /// # Errors
    /// The error is [`ClientError::Run`] or [`ClientError::Io`] if `source` cannot be opened. It is
    /// [`ClientError::Run`] if `source` is changed meanwhile, and if the cluster refuses the file, cannot be asked, or
    /// fails to store it.
    pub fn put(
        &self,
        source: &Path,
        path: &str,
        how: &RemotePut,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FileInfo, ClientError> {
        let source = Source::open(source)?;
        let create = how.create(path);
        Ok(self.peers.wait(self.put_source(&source, &create, progress))?)
    }

    async fn put_source(
        &self,
        source: &Source,
        create: &Create,
        progress: &mut dyn FnMut(u64),
    ) -> Result<FileInfo, RunError> {
        let done = Arc::new(AtomicU64::new(0));
        self.putting(create, &mut || progress(done.load(Ordering::Relaxed)), async |created: &Created| {
            let written =
                self.peers.put_file(created, source.file.clone(), source.state.0, done.clone()).await;
            // A source that changed meanwhile would give a mixture of states. It may also be why reading failed.
            source.unchanged()?;
            written
        })
        .await
    }

    /// Copies all bytes of a reader, for example standard input. When all of them are on the nodes, `confirm` decides
    /// whether the file may become visible. `confirm` may block for a moment.
    ///
    /// # Errors
    /// Returns an error if the reader fails, if the cluster refuses, or if `confirm` returns one.
    pub fn put_from(
        &self,
        mut reader: impl Read + Send + 'static,
        path: &str,
        how: &RemotePut,
        progress: &mut dyn FnMut(u64),
        confirm: &dyn Fn() -> bool,
    ) -> Result<FileInfo, ClientError> {
        let (sender, receiver) = mpsc::channel::<Result<Bytes, RunError>>(CHUNKS_AHEAD);
        let done = Arc::new(AtomicU64::new(0));
        let counted = done.clone();
        // The thread is not joined, because its reader may block for ever.
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; STREAM_BYTES];
                let next = match reader.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(read) => {
                        chunk.truncate(read);
                        counted.fetch_add(read as u64, Ordering::Relaxed);
                        Ok(Bytes::from(chunk))
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(source) => Err(RunError::Read { name: "the source".into(), offset: 0, source }),
                };
                let last = next.is_err();
                if sender.blocking_send(next).is_err() || last {
                    return;
                }
            }
        });
        let source = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        let mut source = Some(source);
        let create = how.create(path);
        let mut tick = || progress(done.load(Ordering::Relaxed));
        let put = self.putting(&create, &mut tick, async |created: &Created| match source.take() {
            Some(source) => {
                let written = self.peers.put_stream(created, source).await?;
                if confirm() { Ok(written) } else { Err(RunError::given_up()) }
            }
            None => Err(RunError::Internal { what: "the source of a put was asked for twice" }),
        });
        Ok(self.peers.wait(put)?)
    }

    /// Renews the lease of a put until that fails, and returns the failure.
    pub(crate) async fn renewing(&self, created: &Created) -> RunError {
        let attempt = Attempt { id: created.file.id.clone() };
        loop {
            tokio::time::sleep(lease_of(created) / 3).await;
            if let Err(error) = self.ask::<_, ()>(names::RENEW, &attempt).await
                && error.kind() != ErrorKind::Unavailable
            {
                return error;
            }
        }
    }

    /// Begins a put, writes, and makes the file visible. Meanwhile it renews the lease. If it fails, it abandons the
    /// put.
    pub(crate) async fn putting(
        &self,
        create: &Create,
        tick: &mut dyn FnMut(),
        write: impl AsyncFnOnce(&Created) -> Result<WrittenFile, RunError>,
    ) -> Result<FileInfo, RunError> {
        let created: Created = self.ask(names::CREATE, create).await?;
        let attempt = Attempt { id: created.file.id.clone() };
        let written = {
            // Bytes are sent while the lease is renewed, so an entry node that is away for a while does not stop them.
            let mut renewing = std::pin::pin!(self.renewing(&created));
            let mut write = std::pin::pin!(write(&created));
            loop {
                tokio::select! {
                    written = &mut write => break written,
                    error = &mut renewing => break Err(error),
                    () = tokio::time::sleep(TICK) => tick(),
                }
            }
        };
        tick();
        match written {
            Ok(WrittenFile { length, receipts }) => {
                // A commit is repeated if its answer is lost, because a repeated commit gives the same answer.
                self.ask(names::COMMIT, &Commit { id: attempt.id, length, receipts }).await
            }
            Err(error) => {
                // A put that cannot be abandoned now expires.
                let _ = self.ask::<_, ()>(names::ABANDON, &attempt).await;
                Err(error)
            }
        }
    }
}
