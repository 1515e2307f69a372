//! Questions put to storage nodes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use gristmill_client::{Cluster, ClusterOptions, RemotePut};
use gristmill_kernel::Value;
use gristmill_runtime::{Control, MAX_LANES, Options, Outcome};

use crate::answer::{Answer, RowDigest, json};
use crate::command::{Ask, Asked, Download, Entry, FoldMany, Ping, PutMany, Upload};
use crate::files::each_on_threads;
use crate::rows::Kept;

/// Clients of one command, at most.
const MAX_CLIENTS: usize = 256;

/// Connections, one cluster for each client.
#[derive(Default)]
pub struct Clusters(HashMap<Entry, Vec<Cluster>>);

impl Clusters {
    fn some(&mut self, entry: &Entry, count: usize) -> Result<&[Cluster], String> {
        if !(1..=MAX_CLIENTS).contains(&count) {
            return Err(format!("{count} clients are not 1 to {MAX_CLIENTS}"));
        }
        let kept = self.0.entry(entry.clone()).or_default();
        while kept.len() < count {
            let (ca, token) = (entry.ca.clone(), entry.token.clone());
            let entry = entry.address.clone();
            let options = ClusterOptions { entry, ca, token, ..ClusterOptions::default() };
            let cluster = Cluster::connect(options).map_err(text)?;
            cluster.ping().map_err(text)?;
            kept.push(cluster);
        }
        kept.get(..count).ok_or_else(|| "there are too few clients".to_owned())
    }

    pub fn one(&mut self, entry: &Entry) -> Result<&Cluster, String> {
        self.some(entry, 1)?.first().ok_or_else(|| "there is no client".to_owned())
    }
}

pub fn ping(clusters: &mut Clusters, ping: &Ping) -> Result<Answer, String> {
    let cluster = clusters.one(&ping.cluster)?;
    let begun = Instant::now();
    let each = (0..ping.count).map(|_| timed(|| cluster.ping().map_err(text)).map(|(seconds, ())| seconds));
    let each = each.collect::<Result<_, _>>()?;
    Ok(Answer { each, ..Answer::timed(begun.elapsed(), 0) })
}

pub fn ask(clusters: &mut Clusters, ask: &Ask) -> Result<Answer, String> {
    let clients = clusters.some(&ask.cluster, ask.clients)?;
    let ready = Barrier::new(clients.len());
    let client = |cluster: &Cluster| -> Result<Turn, String> {
        ready.wait();
        let begun = Instant::now();
        let asked = (0..ask.count).map(|_| timed(|| fold(cluster, &ask.file, &ask.what)));
        Ok((begun, asked.collect::<Result<_, _>>()?, Instant::now()))
    };
    // From when the first began until the last was done.
    let (mut first, mut last, mut all) = (None::<Instant>, None::<Instant>, Vec::new());
    thread::scope(|scope| {
        let running: Vec<_> = clients.iter().map(|cluster| scope.spawn(|| client(cluster))).collect();
        for client in running {
            let (begun, found, ended) = client.join().map_err(|_| "a client panicked".to_owned())??;
            first = Some(first.map_or(begun, |first| first.min(begun)));
            last = last.max(Some(ended));
            all.extend(found);
        }
        Ok::<_, String>(())
    })?;
    let (Some(first), Some(last)) = (first, last) else { return Err("nobody asked".into()) };
    let seconds = last.duration_since(first);
    let Some((_, Folded { said, .. })) = all.first() else { return Err("nothing was asked".into()) };
    if let Some((_, other)) = all.iter().find(|(_, other)| other.said != *said) {
        return Err(format!("answers differ: {said:?}, {:?}", other.said));
    }
    let bytes: Bytes = all.iter().map(|(_, folded)| folded.bytes).sum();
    let (each, result) = (all.iter().map(|(seconds, _)| *seconds).collect(), Some(json(&said.0)));
    let rows = all.into_iter().next().and_then(|(_, folded)| folded.said.1);
    Ok(Answer {
        result,
        rows,
        each,
        bytes_to_client: Some(bytes.to_client),
        bytes_between_nodes: Some(bytes.between_nodes),
        bytes_folded_here: Some(bytes.here),
        ..Answer::timed(seconds, bytes.read)
    })
}

pub fn upload(clusters: &mut Clusters, upload: &Upload) -> Result<Answer, String> {
    let cluster = clusters.one(&upload.cluster)?;
    let (targets, on) = (upload.targets, upload.on.clone());
    let how = RemotePut { unit: upload.stripe, targets, on, ..RemotePut::default() };
    let (seconds, info) =
        timed(|| cluster.put(&upload.source, &upload.file, &how, &mut |_| ()).map_err(text))?;
    Ok(Answer { seconds: Some(seconds), bytes_read: info.file.length, ..Answer::now() })
}

pub fn download(clusters: &mut Clusters, download: &Download) -> Result<Answer, String> {
    let cluster = clusters.one(&download.cluster)?;
    let (seconds, length) = timed(|| {
        let opened = cluster.open(&download.file).map_err(text)?;
        cluster.get(&opened, &download.destination, &mut |_| ()).map_err(text)?;
        Ok(opened.info.file.length)
    })?;
    Ok(Answer { seconds: Some(seconds), bytes_read: length, ..Answer::now() })
}

pub fn put_many(clusters: &mut Clusters, many: PutMany) -> Result<Answer, String> {
    let cluster = clusters.one(&many.cluster)?;
    let mut files = Vec::new();
    for name in crate::files::names(&many.source)? {
        let path = format!("{}/{name}", many.folder.trim_end_matches('/'));
        files.push((many.source.join(name), path));
    }
    let how = RemotePut { targets: Some(1), ..RemotePut::default() };
    let (mut bytes, mut failed) = (0, None);
    let mut each = |path: &Path, put: Result<gristmill_wire::action::FileInfo, _>| match put {
        Ok(info) => bytes += info.file.length,
        Err(error) => failed = Some(format!("{}: {}", path.display(), text(error))),
    };
    let begun = Instant::now();
    cluster.put_many(files, &how, &Control::new(), &mut each);
    let elapsed = begun.elapsed();
    failed.map_or_else(|| Ok(Answer::timed(elapsed, bytes)), Err)
}

pub fn fold_many(clusters: &mut Clusters, many: &FoldMany) -> Result<Answer, String> {
    let cluster = clusters.one(&many.cluster)?;
    let folder = many.folder.trim_end_matches('/');
    let entries = cluster.list(&format!("{folder}/")).map_err(text)?;
    let paths: Vec<String> = entries.iter().map(|entry| format!("{folder}/{}", entry.name)).collect();
    let begun = Instant::now();
    let folded = each_on_threads(&paths, many.threads, |path| timed(|| fold(cluster, path, &many.what)))?;
    let elapsed = begun.elapsed();
    Ok(Answer {
        result: Some(folded.iter().map(|(_, folded)| json(&folded.said.0)).collect()),
        each: folded.iter().map(|(seconds, _)| *seconds).collect(),
        ..Answer::timed(elapsed, folded.iter().map(|(_, folded)| folded.bytes.read).sum())
    })
}

/// When a client began, the seconds and answers of its requests, and when it was done.
type Turn = (Instant, Vec<(f64, Folded)>, Instant);

/// An answer, and what it took.
struct Folded {
    /// The value, and what is kept of rows.
    said: (Value, Option<RowDigest>),
    bytes: Bytes,
}

/// Bytes that one answer took.
#[derive(Clone, Copy, Default)]
struct Bytes {
    read: u64,
    to_client: u64,
    between_nodes: u64,
    /// Of what was read, what was folded here.
    here: u64,
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(each: I) -> Bytes {
        each.fold(Bytes::default(), |sum, one| Bytes {
            read: sum.read + one.read,
            to_client: sum.to_client + one.to_client,
            between_nodes: sum.between_nodes + one.between_nodes,
            here: sum.here + one.here,
        })
    }
}

fn fold(cluster: &Cluster, file: &str, what: &Asked) -> Result<Folded, String> {
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get());
    let lanes = what.lanes.unwrap_or_else(cores).clamp(1, MAX_LANES);
    let options = Options { lanes, ..Options::default() };
    let planned = cluster.plan(file, what.question(), what.place, &options).map_err(text)?;
    let mut kept = Kept::new(what.rows, 0);
    let outcome = cluster.run(&planned, options, &mut kept, &Control::new()).map_err(text)?;
    match outcome {
        Outcome::Done(answer) => {
            let report = &answer.report;
            let (read, to_client) = (report.bytes_read, report.bytes_to_client);
            let here =
                report.places.iter().filter(|place| place.place == "client").map(|place| place.bytes).sum();
            let bytes = Bytes { read, to_client, between_nodes: report.bytes_moved, here };
            Ok(Folded { said: (answer.value, kept.digest()), bytes })
        }
        Outcome::Stopped(_) => Err("the run stopped before its end".into()),
    }
}

/// How long it took, in seconds, and what came of it.
fn timed<T>(work: impl FnOnce() -> Result<T, String>) -> Result<(f64, T), String> {
    let begun = Instant::now();
    let made = work()?;
    Ok((begun.elapsed().as_secs_f64(), made))
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
