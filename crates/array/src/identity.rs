//! The identity of chunk statistics, as bytes.

use gristmill_kernel::ArrayType;
use gristmill_kernel::state::StateWriter;

use crate::grid::EdgeChunks;
use crate::meaning::{Exact, Factor, FactorType};
use crate::plan::Plan;

/// Version of the statistics. It changes when their meaning changes.
const VERSION: u64 = 1;

impl Plan {
    /// Returns bytes that name everything on which the statistics of a chunk depend besides its stored bytes: the
    /// shape, the chunks, the types and the attributes by which values are decoded. The reduction is not part of them.
    pub(crate) fn identity(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_u64(VERSION);
        out.put_u64(self.grid.shape().len() as u64);
        self.grid.shape().iter().chain(self.grid.chunk()).for_each(|length| out.put_u64(*length));
        out.put_flag(self.grid.edges() == EdgeChunks::Clipped);
        let meaning = &self.meaning;
        for dtype in [ArrayType::Number(meaning.raw), ArrayType::Number(meaning.stored()), meaning.decoded()]
        {
            out.put_blob(dtype.name().as_bytes());
        }
        out.put_u64(meaning.missing.len() as u64);
        meaning.missing.iter().for_each(|one| number(&mut out, Some(*one)));
        factor(&mut out, meaning.scale);
        factor(&mut out, meaning.offset);
        number(&mut out, meaning.valid.0);
        number(&mut out, meaning.valid.1);
        out
    }
}

fn number(out: &mut Vec<u8>, number: Option<Exact>) {
    match number {
        None => out.put_u64(0),
        Some(Exact::Int(n)) => {
            out.put_u64(1);
            out.put_i128(n);
        }
        Some(Exact::Float(x)) => {
            out.put_u64(2);
            out.put_u64(x.to_bits());
        }
    }
}

fn factor(out: &mut Vec<u8>, factor: Option<Factor>) {
    match factor {
        None => out.put_u64(0),
        Some(factor) => {
            out.put_u64(match factor.dtype {
                FactorType::F64 => 1,
                FactorType::F32 => 2,
                FactorType::Untyped => 3,
                FactorType::Integer { bytes, signed } => 4 + u64::from(bytes) + 16 * u64::from(signed),
            });
            out.put_u64(factor.value.to_bits());
        }
    }
}
