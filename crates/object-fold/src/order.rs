//! The message that asks for a fold over an object.

use std::ops::Range;
use std::sync::Arc;

use gristmill_kernel::{
    Ctx, KernelError,
    state::{StateReader, StateWriter},
};

use crate::{Binding, FoldError, Span};

/// The form of both messages and of the states of kernels. It grows when one of them changes, because both sides must compute the same.
pub const FORM: u64 = 1;

/// Most spans in a message.
pub const MAX_SPANS: usize = 4_096;

/// Longest message, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;

/// Largest position of a record, and largest offset in an object. No file is longer.
pub const MAX_POSITION: u64 = 1 << 56;

/// Bytes of a span in a message.
const SPAN_BYTES: usize = 24;

/// A fold over parts of objects: the kernel, and the pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldOrder {
    /// The kernel.
    pub binding: Binding,
    /// Number of the pass.
    pub round: u32,
    /// The broadcast of the pass before.
    pub shared: Arc<[u8]>,
    /// Whether the pass is the last of several.
    pub last: bool,
    /// The positions of all records of the request.
    pub extent: Range<u64>,
}

impl FoldOrder {
    /// The context of the folds.
    pub fn ctx(&self) -> Ctx {
        Ctx {
            round: self.round,
            shared: self.shared.clone(),
            last: self.last,
            extent: self.extent.clone(),
            side: Vec::new(),
        }
    }

    /// The message for these spans of an object, which are in the order of their records.
    ///
    /// # Errors
    /// The error is [`FoldError::TooLong`] if the message has more than [`MAX_MESSAGE`] bytes or [`MAX_SPANS`] spans.
    pub fn encode(&self, spans: &[Span]) -> Result<Vec<u8>, FoldError> {
        let mut out = Vec::new();
        out.put_u64(FORM);
        self.binding.write(&mut out);
        out.put_u64(u64::from(self.round));
        out.put_blob(&self.shared);
        out.put_flag(self.last);
        out.put_u64(self.extent.start);
        out.put_u64(self.extent.end);
        out.put_u64(spans.len() as u64);
        for span in spans {
            out.put_u64(span.offset);
            out.put_u64(span.records.start);
            out.put_u64(span.records.end);
        }
        let too_long = |what, bytes, max| Err(FoldError::TooLong { what, bytes, max });
        if spans.len() > MAX_SPANS {
            return too_long(
                "the list of records of a fold",
                spans.len() * SPAN_BYTES,
                MAX_SPANS * SPAN_BYTES,
            );
        }
        if out.len() > MAX_MESSAGE {
            return too_long("the request for a fold in the storage daemons", out.len(), MAX_MESSAGE);
        }
        Ok(out)
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The error is [`FoldError::OtherForm`] if the sender is of another version, and [`FoldError::Malformed`] or [`FoldError::Kernel`] if the
    /// bytes are no such message, or if the spans are not in order or not in the extent.
    pub fn decode(message: &[u8]) -> Result<(FoldOrder, Vec<Span>), FoldError> {
        if message.len() > MAX_MESSAGE {
            return Err(FoldError::TooLong {
                what: "a request for a fold",
                bytes: message.len(),
                max: MAX_MESSAGE,
            });
        }
        let mut from = StateReader::new("fold over an object", message);
        let got = from.u64()?;
        if got != FORM {
            return Err(FoldError::OtherForm { got, want: FORM });
        }
        let binding = Binding::read(&mut from)?;
        let round =
            u32::try_from(from.u64()?).map_err(|_| from.bad("the number of the pass is too large"))?;
        let shared = from.blob()?.into();
        let last = from.flag()?;
        let extent = position(&mut from)?..position(&mut from)?;
        let spans = read_spans(&mut from, &extent)?;
        from.end()?;
        Ok((FoldOrder { binding, round, shared, last, extent }, spans))
    }
}

fn position(from: &mut StateReader<'_>) -> Result<u64, KernelError> {
    let at = from.u64()?;
    if at > MAX_POSITION {
        return Err(from.bad(format!("position {at} is more than {MAX_POSITION}")));
    }
    Ok(at)
}

fn read_spans(from: &mut StateReader<'_>, extent: &Range<u64>) -> Result<Vec<Span>, FoldError> {
    let count = from.u64()?;
    if count > MAX_SPANS as u64 {
        return Err(FoldError::Malformed(format!("it has {count} spans; at most {MAX_SPANS} are possible")));
    }
    let mut spans = Vec::new();
    let mut after = extent.start;
    for _ in 0..count {
        let span = Span { offset: position(from)?, records: position(from)?..position(from)? };
        if span.records.start < after || span.records.is_empty() || span.records.end > extent.end {
            let why = format!("records {} to {} are out of place", span.records.start, span.records.end);
            return Err(FoldError::Malformed(why));
        }
        after = span.records.end;
        spans.push(span);
    }
    Ok(spans)
}
