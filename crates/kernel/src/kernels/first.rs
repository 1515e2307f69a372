//! `first` and `last`: the first or last element, record or line, and its place.

use std::sync::Arc;

use memchr::{memchr, memrchr};

use crate::catalog::{Accepts, Declaration};
use crate::state::{StateReader, StateWriter};
use crate::{
    Block, Ctx, Fold, Input, Kernel, KernelError, Next, Numerics, Params, RecordRule, Sink, Spec, Step, Value,
};

pub(crate) const FIRST: Declaration = Declaration {
    name: "first",
    summary: "the first value, record or line",
    details: "A line or text record is shown without its newline. Reading ends when the answer is known. An empty \
              selection is an error.",
    accepts: &[Accepts::Elements, Accepts::Records, Accepts::Lines],
    params: &[],
    result: &[
        ("first", "value, record or line"),
        ("index", "element or record number; 'offset' of a line in bytes"),
    ],
    rows: None,
    numerics: Numerics::Exact,
    bind: |params, input| bind(End::First, params, input),
};

pub(crate) const LAST: Declaration = Declaration {
    name: "last",
    summary: "the last value, record or line",
    details: "A line or text record is shown without its newline. An empty selection is an error.",
    result: &[
        ("last", "value, record or line"),
        ("index", "element or record number; 'offset' of a line in bytes"),
    ],
    bind: |params, input| bind(End::Last, params, input),
    ..FIRST
};

#[derive(Clone, Copy, PartialEq)]
enum End {
    First,
    Last,
}

impl End {
    const fn name(self) -> &'static str {
        match self {
            End::First => "first",
            End::Last => "last",
        }
    }
}

fn bind(end: End, _: &Params, input: &Input) -> Result<Arc<dyn Kernel>, KernelError> {
    Ok(Arc::new(FirstOrLast { end, input: *input }))
}

struct FirstOrLast {
    end: End,
    input: Input,
}

impl Kernel for FirstOrLast {
    fn spec(&self) -> Spec {
        match self.input.record {
            RecordRule::Lines => Spec::lines(self.end.name()),
            RecordRule::Fixed(bytes) => Spec::fixed(self.end.name(), bytes),
        }
    }

    fn begin(&self, _: &Ctx) -> Result<Box<dyn Fold>, KernelError> {
        Ok(Box::new(FirstOrLastFold { end: self.end, input: self.input, found: None }))
    }

    fn advance(&self, _: &Ctx, whole: &[u8]) -> Result<Next, KernelError> {
        let Some((at, bytes)) = decode(self.end, whole)? else {
            return Err(KernelError::Empty { kernel: self.end.name(), why: "there are no records" });
        };
        let value = match self.input.element {
            Some(dtype) if bytes.len() == dtype.size() => dtype.value(bytes),
            Some(_) => {
                let why = "the element has another size".into();
                return Err(KernelError::BadState { kernel: self.end.name(), why });
            }
            None => Value::text_or_bytes(bytes.strip_suffix(b"\n").unwrap_or(bytes)),
        };
        let place = if self.input.record == RecordRule::Lines { "offset" } else { "index" };
        Ok(Next::Done(Value::Map(vec![(self.end.name(), value), (place, at.into())])))
    }
}

type Found<'a> = Option<(u64, &'a [u8])>;

fn decode(end: End, state: &[u8]) -> Result<Found<'_>, KernelError> {
    let mut read = StateReader::new(end.name(), state);
    let found = if read.flag()? { Some((read.u64()?, read.blob()?)) } else { None };
    read.end()?;
    Ok(found)
}

struct FirstOrLastFold {
    end: End,
    input: Input,
    found: Option<(u64, Vec<u8>)>,
}

impl FirstOrLastFold {
    /// The place and the bytes of the first or last element, record or line of a block that is not empty.
    fn pick<'a>(&self, block: &Block<'a>) -> (u64, &'a [u8]) {
        let data = block.data();
        match (self.input.record, self.end) {
            (RecordRule::Lines, End::First) => {
                (block.first(), &data[..memchr(b'\n', data).map_or(data.len(), |nl| nl + 1)])
            }
            (RecordRule::Lines, End::Last) => {
                let body = data.strip_suffix(b"\n").unwrap_or(data);
                let start = memrchr(b'\n', body).map_or(0, |nl| nl + 1);
                (block.first() + start as u64, &data[start..])
            }
            (RecordRule::Fixed(bytes), end) => {
                let size = self.input.element.map_or(bytes as usize, |dtype| dtype.size());
                let per_record = self.input.per_record();
                match end {
                    End::First => (block.first() * per_record, &data[..size.min(data.len())]),
                    End::Last => (block.end() * per_record - 1, &data[data.len().saturating_sub(size)..]),
                }
            }
        }
    }
}

impl Fold for FirstOrLastFold {
    fn update(&mut self, block: &Block<'_>, _: &mut dyn Sink) -> Result<Step, KernelError> {
        if block.count() > 0 && (self.found.is_none() || self.end == End::Last) {
            let (at, bytes) = self.pick(block);
            self.found = Some((at, bytes.to_vec()));
        }
        match self.end {
            End::First if self.found.is_some() => Ok(Step::Enough),
            _ => Ok(Step::Took(block.count())),
        }
    }

    fn save(&self, out: &mut Vec<u8>) {
        out.put_flag(self.found.is_some());
        if let Some((at, bytes)) = &self.found {
            out.put_u64(*at);
            out.put_blob(bytes);
        }
    }

    fn merge(&mut self, later: &[u8], _: &mut dyn Sink) -> Result<(), KernelError> {
        let later = decode(self.end, later)?.map(|(at, bytes)| (at, bytes.to_vec()));
        self.found = match self.end {
            End::First => self.found.take().or(later),
            End::Last => later.or(self.found.take()),
        };
        Ok(())
    }
}
