//! Copying files to a cluster.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use gristmill_peers::Written;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{Attempt, Commit, Create, Created, FileInfo, names};
use tokio::sync::mpsc;

use crate::remote_keep::given_up;
use crate::{ClientError, Cluster};

/// Bytes read at once from a source that is no file.
const STREAM_BYTES: usize = 256 << 10;

/// Chunks of such a source that are read ahead.
const CHUNKS_AHEAD: usize = 4;

/// How often progress is told.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// How a file is to lie on the targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePut {
    /// Stripe unit in bytes, before rounding to records.
    pub unit: u64,
    /// Round the unit up to whole records of this size.
    pub record: Option<u64>,
    /// So many targets, chosen by the entry node; all where nothing is said.
    pub targets: Option<u32>,
    /// These targets, in this order.
    pub on: Option<Vec<u32>>,
    /// Permission bits; of the file that is replaced, or 644 (octal).
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

/// A source file, and what tells one state of it from another.
pub(crate) struct Source {
    pub file: Arc<File>,
    pub path: PathBuf,
    /// Length, and time of the last change.
    pub state: (u64, i64, i64),
}

impl Source {
    pub fn open(path: &Path) -> Result<Source, ClientError> {
        // Says what is wrong with a path that is no regular file.
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

/// How long a put may go on without saying so.
pub(crate) fn lease_of(created: &Created) -> Duration {
    Duration::from_secs(created.lease_seconds.max(3))
}

impl Cluster {
    /// Copies a file of this machine to the cluster. It becomes visible, or replaces what was there, when all of it is
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
            // A source that changed meanwhile would leave a mixture; it is the reason, too, why reading it failed.
            source.unchanged()?;
            written
        })
        .await
    }

    /// Copies what a reader gives, for example standard input. When all of it is on the nodes, `confirm` is asked whether the file
    /// may become visible. It may block for a moment.
    ///
    /// # Errors
    /// The reader fails, the cluster refuses, or `confirm` says no.
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
        // It may wait for its reader for ever, so it is not waited for.
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
                if confirm() { Ok(written) } else { Err(given_up()) }
            }
            None => Err(RunError::Panicked),
        });
        Ok(self.peers.wait(put)?)
    }

    /// Says again and again that a put goes on, until it is over, and gives the reason.
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

    /// Begins a put, writes, and makes the file visible; says meanwhile that it goes on, and gives it up if it fails.
    pub(crate) async fn putting(
        &self,
        create: &Create,
        tick: &mut dyn FnMut(),
        write: impl AsyncFnOnce(&Created) -> Result<Written, RunError>,
    ) -> Result<FileInfo, RunError> {
        let created: Created = self.ask(names::CREATE, create).await?;
        let attempt = Attempt { id: created.file.id.clone() };
        let written = {
            // The bytes go on while it is asked: an entry node that is away for a while does not stop them.
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
            Ok(Written { length, receipts }) => {
                // Asked again where the answer is lost: a commit that was made answers the same.
                self.ask(names::COMMIT, &Commit { id: attempt.id, length, receipts }).await
            }
            Err(error) => {
                // What cannot be given up now runs out by itself.
                let _ = self.ask::<_, ()>(names::ABANDON, &attempt).await;
                Err(error)
            }
        }
    }
}
