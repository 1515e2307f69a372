//! Reductions of arrays over the chunks of files, as a client requests them and as a node binds them.

use std::sync::Arc;

use gristmill_array::{ArrayReduce, Request};
use gristmill_format::Filter;
use gristmill_runtime::{Chunks, ErrorKind, RunError};
use gristmill_wire::{ArraySpec, InputSpec, MAX_ASKED_CHUNKS};

/// Reserves a number of bytes of memory for a request before they are used. Returns an error if there is not enough memory.
pub type ReserveMemory<'a> = &'a mut dyn FnMut(usize) -> Result<(), RunError>;

/// Bytes of memory for each chunk of a request: its number, its number again while the list grows, and its state during the
/// fold.
const BYTES_PER_CHUNK: usize = 64;

/// A bound request over an array, with the chunks that it needs.
#[derive(Clone, Debug)]
pub struct ArrayWork {
    /// The kernel.
    pub kernel: Arc<ArrayReduce>,
    /// The chunks, with their table.
    pub chunks: Chunks,
    /// The request as it crosses the network.
    pub spec: Arc<ArraySpec>,
    name: String,
}

impl PartialEq for ArrayWork {
    fn eq(&self, other: &ArrayWork) -> bool {
        self.spec == other.spec
    }
}

impl Eq for ArrayWork {}

impl ArrayWork {
    /// Binds a request to the array that has these chunks.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the request, and if it needs more chunks than are allowed.
    pub fn new(chunks: Chunks, request: Request) -> Result<ArrayWork, RunError> {
        check_count(chunks.len())?;
        let name = name(&chunks, request.reduction.op.name());
        let others = chunks.other_tables().map(|table| &**table);
        let spec = Arc::new(ArraySpec::new(chunks.table(), others, &request).map_err(usage)?);
        let kernel = Arc::new(ArrayReduce::bind(request).map_err(usage)?);
        Ok(ArrayWork { kernel, chunks, spec, name })
    }

    /// Binds a request that came over the network. `reserve` reserves the memory, because a few bytes can ask for
    /// millions of chunks.
    ///
    /// # Errors
    /// Returns an error if the request is malformed or [`new`](ArrayWork::new) refuses it, and the errors of `reserve`.
    pub fn decode(spec: &Arc<ArraySpec>, reserve: ReserveMemory<'_>) -> Result<ArrayWork, RunError> {
        let (table, others, request) = spec.decode().map_err(usage)?;
        let op = request.reduction.op.name();
        let kernel = Arc::new(ArrayReduce::bind(request).map_err(usage)?);
        // A table may claim any number of chunks.
        let asked = kernel.chunks().take(MAX_ASKED_CHUNKS + 1).count();
        check_count(asked as u64)?;
        reserve(asked.saturating_mul(BYTES_PER_CHUNK))?;
        let numbers: Vec<u64> = kernel.chunks().collect();
        let others = others.into_iter().map(Arc::new).collect();
        let chunks = Chunks::with_others(Arc::new(table), others, numbers)?;
        let name = name(&chunks, op);
        Ok(ArrayWork { kernel, chunks, spec: spec.clone(), name })
    }

    /// The name under which the speed of the operation is measured. It has the codec of the chunks, which mostly decides the
    /// speed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements, as it is in requests.
    pub fn input(&self) -> InputSpec {
        let dtype = self.chunks.table().array.dtype;
        InputSpec { dtype: Some(dtype.name().to_owned()), ..InputSpec::default() }
    }
}

/// Checks the number of chunks. Chunks that are not stored take no memory in a request, but they do on the node.
fn check_count(chunks: u64) -> Result<(), RunError> {
    if chunks <= MAX_ASKED_CHUNKS as u64 {
        return Ok(());
    }
    Err(usage(format!(
        "the request needs more than {MAX_ASKED_CHUNKS} chunks; ask for a part of the array at a time, or use --place client"
    )))
}

fn usage(error: impl ToString) -> RunError {
    RunError::Remote { kind: ErrorKind::Usage, message: error.to_string() }
}

fn name(chunks: &Chunks, op: &str) -> String {
    let tables = [chunks.table()].into_iter().chain(chunks.other_tables());
    let codec = tables.flat_map(|table| &table.array.filters).find_map(|filter| {
        Some(match filter {
            Filter::Zlib | Filter::Gzip => "zlib",
            Filter::Zstd => "zstd",
            Filter::Lz4Hdf5 | Filter::Lz4Numcodecs => "lz4",
            Filter::Lzf => "lzf",
            Filter::Blosc | Filter::Blosc2 => "blosc",
            Filter::Szip(_) => "szip",
            Filter::Column(_) => "text",
            _ => return None,
        })
    });
    format!("{op}:{}", codec.unwrap_or("plain"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_array::{Expr, Meaning, Op, Reduction, Selection};
    use gristmill_format::{ChunkTable, open_raw};
    use gristmill_kernel::{ByteOrder, DType};
    use gristmill_wire::grid;

    use super::*;

    fn table(shape: &[u64]) -> ChunkTable {
        let bytes = vec![0u8; shape.iter().product::<u64>() as usize * 8];
        open_raw(Arc::new(bytes), DType::F64, ByteOrder::Little, shape, 0).unwrap().table("data").unwrap()
    }

    /// A request over two variables, as a node decodes it.
    fn decode_request(lead: &ChunkTable, other: &ChunkTable) -> Result<ArrayWork, RunError> {
        let request = Request {
            grid: grid(&lead.array).unwrap(),
            meaning: Meaning::plain(DType::F64),
            others: vec![Meaning::plain(DType::F64)],
            constants: Vec::new(),
            selection: Selection::default(),
            expr: Some(Expr::parse("x * y", &["x", "y"]).unwrap()),
            reduction: Reduction::new(Op::Sum),
        };
        let spec = ArraySpec::new(lead, [other].into_iter(), &request).map_err(usage)?;
        ArrayWork::decode(&Arc::new(spec), &mut |_| Ok(()))
    }

    #[test]
    fn memory_is_reserved_before_the_chunks_are_listed() {
        let lead = table(&[6, 4]);
        let request = Request {
            grid: grid(&lead.array).unwrap(),
            meaning: Meaning::plain(DType::F64),
            others: Vec::new(),
            constants: Vec::new(),
            selection: Selection::default(),
            expr: None,
            reduction: Reduction::new(Op::Sum),
        };
        let spec = Arc::new(ArraySpec::new(&lead, std::iter::empty(), &request).unwrap());
        let mut reserved = 0;
        let work = ArrayWork::decode(&spec, &mut |bytes| {
            reserved += bytes;
            Ok(())
        });
        assert_eq!(reserved as u64, work.unwrap().chunks.len() * BYTES_PER_CHUNK as u64);
        let full = |_| Err(usage("no memory"));
        assert!(ArrayWork::decode(&spec, &mut { full }).unwrap_err().to_string().contains("no memory"));
    }

    #[test]
    fn variables_that_cannot_be_read_side_by_side_are_refused() {
        let work = decode_request(&table(&[6, 4]), &table(&[6, 4])).unwrap();
        assert_eq!((work.chunks.other_tables().count(), work.name()), (1, "sum:plain"));
        let error = decode_request(&table(&[6, 4]), &table(&[4, 6])).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("[4, 6]"), "{error}");
        // Chunks of length 0, and chunks with another number of axes than the array.
        for chunk in [vec![0, 4], vec![4]] {
            let mut other = table(&[6, 4]);
            other.array.chunk = chunk;
            assert!(decode_request(&table(&[6, 4]), &other).is_err());
        }
    }
}
