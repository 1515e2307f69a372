//! Frames, which a node sends while it folds. They are little-endian and have at most [`MAX_FRAME_BYTES`] bytes.

use std::ops::Range;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{KernelError, RowBatch};
use gristmill_runtime::{HandBack, RowCut, Tally, UnitEnd};

use crate::action::Receipt;
use crate::{ErrorBody, MAX_FILE_TARGETS, WireError};

/// Longest frame, in bytes: a batch of rows, or one row of the longest record.
pub const MAX_FRAME_BYTES: usize = 32 << 20;

/// A message of a node about its part of a pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// Number of positions that are folded. It is sent at least every second.
    Progress(u64),
    /// A unit begins at this byte.
    Begin(u64),
    /// Some rows of the unit.
    Rows(RowBatch),
    /// The unit has ended.
    End(UnitEnd),
    /// A part of an encoded partial. All parts, in their order, are the partial.
    Partial(Vec<u8>),
    /// The group of nodes finished its passes. The parts of [`Frame::Partial`] before this frame are the state of all
    /// records after the pass of this number. These bytes were the broadcast to that pass.
    Reached(u32, Vec<u8>),
    /// The bytes that the target at this index of the layout made are durable. The frame has their receipt.
    Written(u32, Receipt),
    /// The node does not fold the records of these targets any further. For a value, the partial tells which records
    /// are folded. For rows, the rest of the records is in the frame.
    HandedBack(HandBack),
    /// A failure at this position. The records before it are in the partial. For rows it is the position of the unit,
    /// and no frame follows.
    Failed(u64, ErrorBody),
    /// The end, with the counts of the work.
    Finished(TallyFrame),
}

/// Counts of the work of a shard. Targets are indices in the layout of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TallyFrame {
    /// Target, bytes read and records folded, for each target with a count above 0.
    pub targets: Vec<(u32, u64, u64)>,
    /// Bytes that one target pulled from another.
    pub moved: u64,
    /// Messages between targets that this needed.
    pub messages: u64,
    /// Chunks that were answered from their statistics and not read.
    pub settled: u64,
    /// Bytes that the storage of targets folded itself.
    pub in_storage: u64,
}

impl TallyFrame {
    /// Makes the frame of a tally.
    pub fn new(tally: &Tally) -> TallyFrame {
        let targets = (0u32..).zip(tally.read.iter().zip(&tally.records));
        let targets = targets.filter(|(_, (read, records))| **read > 0 || **records > 0);
        TallyFrame {
            targets: targets.map(|(target, (read, records))| (target, *read, *records)).collect(),
            moved: tally.moved,
            messages: tally.messages,
            settled: tally.settled,
            in_storage: tally.in_storage,
        }
    }

    /// Converts it to the tally of a file with this number of targets. Counts of other targets are dropped.
    pub fn tally(&self, targets: usize) -> Tally {
        let mut tally = Tally::new(targets);
        for (target, read, records) in &self.targets {
            let at = *target as usize;
            if let (Some(r), Some(n)) = (tally.read.get_mut(at), tally.records.get_mut(at)) {
                *r = r.saturating_add(*read);
                *n = n.saturating_add(*records);
            }
        }
        (tally.moved, tally.messages, tally.settled) = (self.moved, self.messages, self.settled);
        tally.in_storage = self.in_storage;
        tally
    }
}

const PROGRESS: u8 = 1;
const BEGIN: u8 = 2;
const ROWS: u8 = 3;
const END: u8 = 4;
const PARTIAL: u8 = 5;
const FAILED: u8 = 6;
const FINISHED: u8 = 7;
const REACHED: u8 = 8;
const WRITTEN: u8 = 9;
const HANDED_BACK: u8 = 10;

impl Frame {
    /// Encodes the frame: a byte for the kind, then the fields.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Frame::Progress(done) => {
                out.push(PROGRESS);
                out.put_u64(*done);
            }
            Frame::Begin(at) => {
                out.push(BEGIN);
                out.put_u64(*at);
            }
            Frame::Rows(batch) => {
                out.push(ROWS);
                crate::rows::encode(batch, &mut out);
            }
            Frame::End(end) => {
                out.push(END);
                out.put_flag(end.enough);
                out.put_flag(end.cut);
                out.put_flag(end.piece.is_some());
                if let Some((range, state)) = &end.piece {
                    put_piece(&mut out, range, state);
                }
            }
            Frame::Partial(bytes) => {
                out.push(PARTIAL);
                out.put_blob(bytes);
            }
            Frame::Reached(round, shared) => {
                out.push(REACHED);
                out.put_u64(u64::from(*round));
                out.put_blob(shared);
            }
            Frame::Written(target, receipt) => {
                out.push(WRITTEN);
                out.put_u64(u64::from(*target));
                out.put_u64(receipt.length);
                out.put_u64(receipt.data.unwrap_or(receipt.length));
                out.put_u64(receipt.version);
                out.put_blob(receipt.seal.as_bytes());
            }
            Frame::HandedBack(HandBack { targets, row_cut, why }) => {
                out.push(HANDED_BACK);
                out.put_u64(targets.len() as u64);
                targets.iter().for_each(|target| out.put_u64(u64::from(*target)));
                out.put_u64(row_cut.from);
                out.put_flag(row_cut.begun.is_some());
                if let Some((range, state)) = &row_cut.begun {
                    put_piece(&mut out, range, state);
                }
                out.put_blob(why.as_bytes());
            }
            Frame::Failed(at, error) => {
                out.push(FAILED);
                out.put_u64(*at);
                out.put_blob(error.kind.as_bytes());
                out.put_blob(error.message.as_bytes());
            }
            Frame::Finished(tally) => {
                out.push(FINISHED);
                out.put_u64(tally.targets.len() as u64);
                for (target, read, records) in &tally.targets {
                    out.put_u64(u64::from(*target));
                    out.put_u64(*read);
                    out.put_u64(*records);
                }
                out.put_u64(tally.moved);
                out.put_u64(tally.messages);
                out.put_u64(tally.settled);
                out.put_u64(tally.in_storage);
            }
        }
        out
    }

    /// Decodes the output of [`encode`](Frame::encode). It never panics.
    ///
    /// # Errors
    /// The error is [`WireError::TooLong`] if the bytes are more than [`MAX_FRAME_BYTES`], and [`WireError::Malformed`]
    /// if they are not a frame.
    pub fn decode(bytes: &[u8]) -> Result<Frame, WireError> {
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(WireError::TooLong { what: "frame", bytes: bytes.len(), max: MAX_FRAME_BYTES });
        }
        let (kind, body) = bytes.split_first().ok_or_else(|| malformed("it is empty"))?;
        let mut read = StateReader::new("frame", body);
        let frame = fields(*kind, &mut read).map_err(|e| malformed(&e.to_string()))?;
        if *kind == ROWS {
            return Ok(frame);
        }
        read.end().map_err(|e| malformed(&e.to_string()))?;
        Ok(frame)
    }
}

fn fields(kind: u8, read: &mut StateReader<'_>) -> Result<Frame, KernelError> {
    match kind {
        PROGRESS => Ok(Frame::Progress(read.u64()?)),
        BEGIN => Ok(Frame::Begin(read.u64()?)),
        ROWS => {
            crate::rows::decode(read.rest()).map(Frame::Rows).ok_or_else(|| read.bad("the rows do not fit"))
        }
        END => {
            let (enough, cut) = (read.flag()?, read.flag()?);
            let piece = if read.flag()? { Some(piece(read)?) } else { None };
            Ok(Frame::End(UnitEnd { piece, enough, cut }))
        }
        PARTIAL => Ok(Frame::Partial(read.blob()?.to_vec())),
        REACHED => {
            let round = u32::try_from(read.u64()?).map_err(|_| read.bad("the pass number is impossible"))?;
            Ok(Frame::Reached(round, read.blob()?.to_vec()))
        }
        WRITTEN => {
            let target = target(read)?;
            let (length, data, version) = (read.u64()?, Some(read.u64()?), read.u64()?);
            let seal = String::from_utf8_lossy(read.blob()?).into_owned();
            Ok(Frame::Written(target, Receipt { length, data, version, sum: None, seal }))
        }
        HANDED_BACK => {
            let count = read.u64()?;
            if count > MAX_FILE_TARGETS as u64 {
                return Err(read.bad(format!("{count} targets are too many")));
            }
            let mut targets = Vec::new();
            for _ in 0..count {
                targets.push(target(read)?);
            }
            let from = read.u64()?;
            let begun = if read.flag()? { Some(piece(read)?) } else { None };
            if begun.as_ref().is_some_and(|(range, _)| range.end != from) {
                return Err(read.bad("the unit does not end where the rest begins"));
            }
            let why = String::from_utf8_lossy(read.blob()?).into_owned();
            Ok(Frame::HandedBack(HandBack { targets, row_cut: RowCut { from, begun }, why }))
        }
        FAILED => {
            let at = read.u64()?;
            let kind = String::from_utf8_lossy(read.blob()?).into_owned();
            let message = String::from_utf8_lossy(read.blob()?).into_owned();
            // A failure at a record is not a refusal, so it has no time for another try.
            Ok(Frame::Failed(at, ErrorBody { kind, message, retry_after: None }))
        }
        FINISHED => {
            let count = read.u64()?;
            if count > MAX_FILE_TARGETS as u64 {
                return Err(read.bad(format!("counts for {count} targets are too many")));
            }
            let mut tally = TallyFrame::default();
            for _ in 0..count {
                let target = target(read)?;
                tally.targets.push((target, read.u64()?, read.u64()?));
            }
            (tally.moved, tally.messages, tally.settled) = (read.u64()?, read.u64()?, read.u64()?);
            tally.in_storage = read.u64()?;
            Ok(Frame::Finished(tally))
        }
        other => Err(read.bad(format!("there is no frame of kind {other}"))),
    }
}

fn target(read: &mut StateReader<'_>) -> Result<u32, KernelError> {
    u32::try_from(read.u64()?).map_err(|_| read.bad("the target number is impossible"))
}

fn put_piece(out: &mut Vec<u8>, range: &Range<u64>, state: &[u8]) {
    out.put_u64(range.start);
    out.put_u64(range.end);
    out.put_blob(state);
}

fn piece(read: &mut StateReader<'_>) -> Result<(Range<u64>, Vec<u8>), KernelError> {
    let range = read.u64()?..read.u64()?;
    if range.start > range.end {
        return Err(read.bad("a range is reversed"));
    }
    Ok((range, read.blob()?.to_vec()))
}

fn malformed(why: &str) -> WireError {
    WireError::Malformed { what: "frame", why: why.to_owned() }
}
