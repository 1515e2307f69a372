//! A parallel program of ranks, as the clients of the papers are: each rank reads its part of a file into memory, once,
//! and all of them finish the kernel's passes over what they hold.
//!
//! After each pass rank 0 joins what all have made and sends the whole to all, over a TCP connection with each.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gristmill_kernel::{Ctx, Next, Output, RecordRule};
use gristmill_layout::{Layout, Striped};
use gristmill_peers::Question;
use gristmill_runtime::{
    Control, ErrorKind, FileParts, Group, GroupJob, JoinEnds, MAX_LANES, Options, Part, Partial, Placement,
    Request, RunError, ShardEnd,
};
use gristmill_wire::{FoldPlace, MAX_PARTIAL_BYTES};

use crate::answer::{Answer, json};
use crate::command::Program;
use crate::nodes::Clusters;
use crate::socket::connected;

/// Ranks of one program, at most.
const MAX_RANKS: u32 = 256;

/// Bytes that are asked for at once while a rank reads its part.
const READ: u64 = 16 << 20;

/// How long a rank waits for another.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often rank 0 looks whether another has come.
const PAUSE: Duration = Duration::from_millis(1);

const IN_MEMORY: Placement = Placement {
    place: "client",
    why: "a rank of a parallel program folds what it has read into memory",
    remote: false,
};

/// One rank's share of a program. Seconds count from the beginning of the command.
pub fn program(clusters: &mut Clusters, program: &Program) -> Result<Answer, String> {
    let Program { cluster, file, what, rank, ranks, root } = program;
    let (rank, ranks) = (*rank, *ranks);
    if !(1..=MAX_RANKS).contains(&ranks) || rank >= ranks {
        return Err(format!("rank {rank} of {ranks} is none of 1 to {MAX_RANKS} ranks"));
    }
    let begun = Instant::now();
    // Before anything is read, so that those who are sooner done with it find somebody listening.
    let listener = match rank {
        0 if ranks > 1 => Some(TcpListener::bind(root).map_err(|e| format!("{root}: {e}"))?),
        _ => None,
    };
    let cluster = clusters.one(cluster)?;
    let question = what.question();
    let planned =
        cluster.plan(file, question.clone(), FoldPlace::Client, &Options::default()).map_err(text)?;
    let remote = cluster.parts_of(&planned.files).map_err(text)?;
    let (held, request, records) = read(&question, &remote, rank, ranks)?;
    let read_seconds = begun.elapsed().as_secs_f64();
    let lanes = what.lanes.unwrap_or(1).clamp(1, MAX_LANES);
    let options = Options { lanes, ..Options::default() };
    let together = GroupJob::new(Request { options, ..request }, vec![rank], 0..records).map_err(text)?;
    let ranks = Ranks::meet(listener, rank, ranks, root).map_err(|e| format!("{root}: {e}"))?;
    let end = together.run(&ranks, &Control::new()).map_err(text)?;
    let ctx = Ctx { round: end.round, shared: end.shared, ..together.ctx().clone() };
    match together.kernel().advance(&ctx, &end.whole).map_err(text)? {
        Next::Done(value) => Ok(Answer {
            read_seconds: Some(read_seconds),
            result: Some(json(&value)),
            ..Answer::timed(begun.elapsed(), held)
        }),
        Next::Again(_) | Next::Last(_) => Err("the kernel wants rows or bytes in a last pass".into()),
    }
}

/// Reads a rank's part, and makes a file of it whose other parts are elsewhere: the bytes read, the request over it, and
/// how many records the whole has.
fn read(
    question: &Question,
    remote: &FileParts,
    rank: u32,
    ranks: u32,
) -> Result<(u64, Request, u64), String> {
    let kernel = question.bind().map_err(text)?;
    let spec = kernel.spec();
    let (input, byte_order) = question.input.input().map_err(text)?;
    let input = input.for_kernel(&spec);
    let (RecordRule::Fixed(size), Output::Value) = (input.record, spec.output) else {
        return Err(format!(
            "a program folds records of a fixed size for a value, and {} does not",
            spec.name
        ));
    };
    let (length, records) = (remote.length, remote.length / size);
    // No record lies on two ranks.
    let unit = records.div_ceil(u64::from(ranks)).max(1) * size;
    let start = (u64::from(rank) * unit).min(length);
    let end = (start + unit).min(length);
    let mut bytes = vec![0; (end - start) as usize];
    let mut at = start;
    for stretch in bytes.chunks_mut(READ as usize) {
        let next = at + stretch.len() as u64;
        remote.read(at..next, stretch).map_err(text)?;
        at = next;
    }
    let mut own = Some(bytes);
    let part = |n: u32| -> Arc<dyn Part> {
        let bytes = if n == rank { own.take().unwrap_or_default() } else { Vec::new() };
        Arc::new(Memory { rank: n, bytes })
    };
    let file = FileParts {
        name: remote.name.clone(),
        length,
        layout: Layout::from(Striped::new(unit, ranks, 0).map_err(text)?),
        parts: (0..ranks).map(part).collect(),
        place: IN_MEMORY,
    };
    let request = Request { byte_order, ..Request::new(kernel, input, file) };
    Ok((end - start, request, records))
}

/// What one rank holds of the file; of the others nothing is known here.
struct Memory {
    rank: u32,
    bytes: Vec<u8>,
}

impl Part for Memory {
    fn read(&self, _: Option<&str>, offset: u64, buffer: &mut [u8]) -> Result<(), RunError> {
        let at = offset as usize;
        let held = at.checked_add(buffer.len()).and_then(|end| self.bytes.get(at..end));
        let Some(held) = held else {
            let (name, length) = (self.describe(), self.bytes.len() as u64);
            return Err(RunError::Truncated { name, offset, length });
        };
        buffer.copy_from_slice(held);
        Ok(())
    }

    fn unchanged(&self) -> Result<(), RunError> {
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }

    fn describe(&self) -> String {
        format!("what rank {} has in memory", self.rank)
    }
}

/// Connections: of rank 0 with all others, of another with rank 0.
struct Ranks {
    root: bool,
    others: Vec<TcpStream>,
}

impl Ranks {
    fn meet(listener: Option<TcpListener>, rank: u32, ranks: u32, root: &str) -> io::Result<Ranks> {
        let others = match listener {
            Some(listener) => accepted(&listener, ranks - 1)?,
            None if ranks == 1 => Vec::new(),
            None => vec![connected(root)?],
        };
        for other in &others {
            other.set_nonblocking(false)?;
            other.set_nodelay(true)?;
            other.set_read_timeout(Some(PATIENCE))?;
            other.set_write_timeout(Some(PATIENCE))?;
        }
        Ok(Ranks { root: rank == 0, others })
    }

    fn exchange(&self, end: ShardEnd, join: &mut JoinEnds<'_>) -> Result<ShardEnd, RunError> {
        // Others hear of it when the connection ends.
        if let Some((_, error)) = end.failure {
            return Err(error);
        }
        let round = end.partial.round;
        if !self.root {
            let mut whole = end;
            for root in &self.others {
                send(root, &whole.partial).map_err(lost)?;
                whole = receive(root, round)?;
            }
            return Ok(whole);
        }
        let mut whole = end;
        for other in &self.others {
            whole = join(whole, receive(other, round)?)?;
        }
        for other in &self.others {
            send(other, &whole.partial).map_err(lost)?;
        }
        Ok(whole)
    }
}

impl Group for Ranks {
    fn allreduce(&self, end: ShardEnd, join: &mut JoinEnds<'_>) -> Result<ShardEnd, RunError> {
        self.exchange(end, join)
    }
}

/// Connections with so many others.
fn accepted(listener: &TcpListener, others: u32) -> io::Result<Vec<TcpStream>> {
    listener.set_nonblocking(true)?;
    let (begun, mut all) = (Instant::now(), Vec::new());
    while all.len() < others as usize {
        match listener.accept() {
            Ok((other, _)) => all.push(other),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < PATIENCE => {
                thread::sleep(PAUSE);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(all)
}

/// Sends a partial behind its length.
fn send(mut to: &TcpStream, partial: &Partial) -> io::Result<()> {
    let mut message = vec![0; 8];
    partial.encode(&mut message);
    let length = (message.len() - 8) as u64;
    for (place, byte) in message.iter_mut().zip(length.to_le_bytes()) {
        *place = byte;
    }
    to.write_all(&message)
}

fn receive(mut from: &TcpStream, round: u32) -> Result<ShardEnd, RunError> {
    let mut bytes = || -> io::Result<Vec<u8>> {
        let mut length = [0; 8];
        from.read_exact(&mut length)?;
        let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > MAX_PARTIAL_BYTES {
            return Err(io::Error::other(format!("a partial of {length} bytes is too long")));
        }
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    let partial = Partial::decode(&bytes().map_err(lost)?)?;
    Ok(ShardEnd { partial, ..ShardEnd::new(round, 0) })
}

fn lost(error: io::Error) -> RunError {
    RunError::Remote { kind: ErrorKind::Failed, message: format!("another rank of the program: {error}") }
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}
