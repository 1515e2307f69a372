//! Results that become files of a cluster. They stay on the nodes that made them, or the client sends them.

use std::io::{self, Write};

use bytes::Bytes;
use futures_util::stream;
use gristmill_kernel::DEFAULT_MAX_RECORD;
use gristmill_peers::ON_STORAGE;
use gristmill_runtime::{Control, Discard, Options, Outcome, RunError, keeps_bytes, run_on};
use gristmill_wire::FoldPlace;
use gristmill_wire::action::{Attempt, Commit, Create, Created, FileInfo, names};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::{ClientError, Cluster, Planned, RemotePut};

/// Bytes of a chunk that the client sends.
const CHUNK: usize = 256 << 10;

/// Chunks that may wait for the network.
const CHUNKS_AHEAD: usize = 4;

/// A task that renews the lease of a put until it is dropped.
struct Renewal(JoinHandle<()>);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A message from the writer of a file to the task that sends it.
enum Chunk {
    Bytes(Bytes),
    /// The file is complete.
    End,
}

/// The writer of a file that the client makes and sends in chunks.
struct ChunkWriter {
    chunks: mpsc::Sender<Chunk>,
    buffer: Vec<u8>,
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let chunk = Chunk::Bytes(std::mem::take(&mut self.buffer).into());
        // The task that sends the chunks reports its own failure.
        self.chunks.blocking_send(chunk).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Planned {
    /// Returns whether the kernel's output can stay on the nodes that make it.
    ///
    /// # Errors
    /// The error is [`ClientError::Run`] if the kernel cannot be bound.
    pub fn keeps_bytes(&self) -> Result<bool, ClientError> {
        let kernel = self.question.bind().map_err(RunError::from)?;
        Ok(self.plan.place == FoldPlace::Storage && keeps_bytes(&kernel.spec()))
    }
}

impl Cluster {
    /// Runs a planned request and leaves the kernel's output on the nodes that make it, as the file at `path` of the
    /// same cluster. It becomes visible, or replaces the file at `path`, when every node's bytes are durable.
    ///
    /// # Errors
    /// Returns an error if the request fails, or if the file at `path` cannot be made; then nothing is left of it.
    /// Returns [`RunError::CannotKeep`] unless [`Planned::keeps_bytes`].
    pub fn run_kept(
        &self,
        planned: &Planned,
        options: Options,
        path: &str,
        control: &Control,
    ) -> Result<(Outcome, FileInfo), ClientError> {
        let input = planned.files.map();
        let create = Create {
            path: path.to_owned(),
            unit: input.unit,
            on: Some(input.targets.iter().map(|target| target.number).collect()),
            segments: true,
            ..Create::default()
        };
        let created: Created = self.peers.wait(self.ask(names::CREATE, &create))?;
        let attempt = Attempt { id: created.file.id.clone() };
        let renewal = self.renewal(&created);
        let made = self.make(planned, options, &created, control);
        let done = made
            .and_then(|(outcome, commit)| Ok((outcome, self.peers.wait(self.ask(names::COMMIT, &commit))?)));
        drop(renewal);
        done.map_err(|error| {
            // A put that cannot be abandoned now expires.
            let _ = self.peers.wait(self.ask::<_, ()>(names::ABANDON, &attempt));
            ClientError::Run(self.explain(planned.files.first(), error))
        })
    }

    fn make(
        &self,
        planned: &Planned,
        options: Options,
        created: &Created,
        control: &Control,
    ) -> Result<(Outcome, Commit), RunError> {
        let Planned { question, files, .. } = planned;
        let max_record = if options.max_record == 0 { DEFAULT_MAX_RECORD } else { options.max_record };
        let request = question.request(&self.peers, files, ON_STORAGE, options)?;
        let crew = question.crew(&self.peers, files, max_record, Some(created.grant.clone()))?;
        let outcome = run_on(request, &crew, &mut Discard, control)?;
        if let Outcome::Stopped(_) = outcome {
            return Err(RunError::given_up());
        }
        let receipts = crew.receipts()?;
        let length = receipts.iter().flatten().map(|receipt| receipt.data.unwrap_or(0)).sum();
        Ok((outcome, Commit { id: created.file.id.clone(), length, receipts }))
    }

    fn renewal(&self, created: &Created) -> Renewal {
        let (cluster, created) = (self.clone(), created.clone());
        // If the lease is over, the nodes remove their output and report it.
        Renewal(self.peers.runtime().spawn(async move { drop(cluster.renewing(&created).await) }))
    }

    /// Makes a file at `path` from the output of `make`. The file becomes visible when it is durable. If `make` fails,
    /// there is no file.
    ///
    /// # Errors
    /// The error is that of `make`, or [`ClientError::Run`] if the cluster refuses the file, cannot be asked, or fails
    /// to store it.
    pub fn put_made<T>(
        &self,
        path: &str,
        how: &RemotePut,
        make: impl FnOnce(Box<dyn Write>) -> Result<T, ClientError>,
    ) -> Result<(T, FileInfo), ClientError> {
        let (chunks, receiver) = mpsc::channel(CHUNKS_AHEAD);
        let create = how.create(path);
        std::thread::scope(|scope| {
            let put = scope.spawn(|| {
                let mut receiver = Some(receiver);
                self.peers.wait(self.putting(&create, &mut || (), async |created: &Created| {
                    let source = stream::unfold(receiver.take(), |receiver| async move {
                        let mut receiver = receiver?;
                        match receiver.recv().await {
                            Some(Chunk::Bytes(bytes)) => Some((Ok(bytes), Some(receiver))),
                            Some(Chunk::End) => None,
                            None => Some((Err(RunError::given_up()), None)),
                        }
                    });
                    self.peers.put_stream(created, source).await
                }))
            });
            let made = make(Box::new(ChunkWriter { chunks: chunks.clone(), buffer: Vec::new() }));
            if made.is_ok() {
                // If the receiver is gone, the put reports its own failure.
                let _ = chunks.blocking_send(Chunk::End);
            }
            drop(chunks);
            let put = put.join().unwrap_or(Err(RunError::Panicked));
            match (made, put) {
                (Ok(made), put) => Ok((made, put?)),
                // A broken pipe means that the put failed first.
                (Err(error), Err(put)) if broken_pipe(&error) => Err(ClientError::Run(put)),
                (Err(error), _) => Err(error),
            }
        })
    }
}

fn broken_pipe(error: &ClientError) -> bool {
    match error {
        ClientError::Run(RunError::Rows(source)) | ClientError::Io { source, .. } => {
            source.kind() == io::ErrorKind::BrokenPipe
        }
        _ => false,
    }
}
