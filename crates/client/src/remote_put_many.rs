//! Copies of many files. Small files share messages to the entry node, which are most of their cost.

use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt};
use gristmill_peers::WrittenFile;
use gristmill_runtime::{Control, RunError};
use gristmill_wire::FAN_IN;
use gristmill_wire::action::{Attempt, Batch, Commit, Created, FileInfo, Outcome, names};

use crate::remote_put::{RemotePut, Source};
use crate::{ClientError, Cluster};

/// Longest file in bytes that is put in a batch, so that a batch ends long before its lease.
const SMALL: u64 = 128 << 10;

/// Most files of a batch.
const BATCH: usize = 64;

/// Batches at once: one is written while another begins or ends.
const BATCHES: usize = 2;

/// A file of this machine, and its path in the cluster.
type Item = (PathBuf, String);

impl Cluster {
    /// Copies many files, several at once. `each` gets the result of every file, in any order. Each file becomes
    /// visible by itself, as with [`put`](Cluster::put). After `stop` is stopped no more files are begun, and `each`
    /// gets no results of them.
    pub fn put_many(
        &self,
        files: Vec<Item>,
        how: &RemotePut,
        stop: &Control,
        each: &mut dyn FnMut(&Path, Result<FileInfo, ClientError>),
    ) {
        let small = |(source, _): &Item| std::fs::metadata(source).is_ok_and(|meta| meta.len() <= SMALL);
        let (small, large): (Vec<Item>, Vec<Item>) = files.into_iter().partition(small);
        let mut batches = Vec::new();
        let mut rest = small.into_iter().peekable();
        while rest.peek().is_some() {
            batches.push(rest.by_ref().take(BATCH).collect::<Vec<_>>());
        }
        self.peers.wait(async {
            let batches = batches.into_iter().take_while(|_| !stop.stopped());
            let batches = batches.map(|batch| self.put_batch(batch, how));
            let mut batches = stream::iter(batches).buffer_unordered(BATCHES);
            while let Some(results) = batches.next().await {
                results.into_iter().for_each(|(source, result)| each(&source, result));
            }
        });
        for (source, path) in large {
            if stop.stopped() {
                return;
            }
            let result = self.put(&source, &path, how, &mut |_| ());
            each(&source, result);
        }
    }

    /// Copies a batch of small files.
    async fn put_batch(
        &self,
        batch: Vec<Item>,
        how: &RemotePut,
    ) -> Vec<(PathBuf, Result<FileInfo, ClientError>)> {
        let mut results = Vec::with_capacity(batch.len());
        let mut sources = Vec::new();
        let mut creates = Vec::new();
        for (path, to) in batch {
            match Source::open(&path) {
                Ok(source) => {
                    creates.push(how.create(&to));
                    sources.push(source);
                }
                Err(error) => results.push((path, Err(error))),
            }
        }
        let created = self.each_of(names::CREATE_MANY, creates).await;
        let writes = sources.into_iter().zip(created).map(|(source, created)| async move {
            let written = match created {
                Ok(created) => self.write_small(&source, &created).await,
                Err(error) => Err(error),
            };
            (source.path, written)
        });
        let written: Vec<_> = stream::iter(writes).buffer_unordered(FAN_IN).collect().await;
        let (mut paths, mut commits) = (Vec::new(), Vec::new());
        for (path, written) in written {
            match written {
                Ok(commit) => {
                    paths.push(path);
                    commits.push(commit);
                }
                Err(error) => results.push((path, Err(error.into()))),
            }
        }
        let committed = self.each_of(names::COMMIT_MANY, commits).await;
        results.extend(paths.into_iter().zip(committed).map(|(path, info)| (path, info.map_err(Into::into))));
        results
    }

    async fn write_small(&self, source: &Source, created: &Created) -> Result<Commit, RunError> {
        let written =
            self.peers.put_file(created, source.file.clone(), source.state.0, Default::default()).await;
        match source.unchanged().and(written) {
            Ok(WrittenFile { length, receipts }) => {
                Ok(Commit { id: created.file.id.clone(), length, receipts })
            }
            Err(error) => {
                // A put that cannot be abandoned now expires.
                let attempt = Attempt { id: created.file.id.clone() };
                let _ = self.ask::<_, ()>(names::ABANDON, &attempt).await;
                Err(error)
            }
        }
    }

    /// Sends many requests in one message. If the message fails, every request gets its failure.
    pub(crate) async fn each_of<Q, R>(&self, name: &str, requests: Vec<Q>) -> Vec<Result<R, RunError>>
    where
        Q: serde::Serialize,
        R: serde::de::DeserializeOwned,
    {
        let count = requests.len();
        if count == 0 {
            return Vec::new();
        }
        let failed = |kind, message: &str| RunError::Remote { kind, message: message.to_owned() };
        let answer: Result<Batch<Outcome<R>>, RunError> = self.ask(name, &Batch { each: requests }).await;
        match answer {
            Ok(many) if many.each.len() == count => many
                .each
                .into_iter()
                .map(|outcome| match outcome {
                    Outcome::Done(done) => Ok(done),
                    Outcome::Error(error) => Err(error.into_error()),
                })
                .collect(),
            Ok(_) => {
                let kind = gristmill_runtime::ErrorKind::Failed;
                (0..count)
                    .map(|_| Err(failed(kind, "the entry node left answers out; repeat the request")))
                    .collect()
            }
            Err(error) => {
                let (kind, message) = (error.kind(), error.to_string());
                (0..count).map(|_| Err(failed(kind, &message))).collect()
            }
        }
    }
}
