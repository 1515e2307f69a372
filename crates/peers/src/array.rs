//! A reduction of an array over the chunks of a file, as it is asked for and as a node binds it.

use std::sync::Arc;

use gristmill_array::{ArrayReduce, Request};
use gristmill_format::{ChunkTable, Filter, MAX_CHUNKS, Places};
use gristmill_runtime::{Chunks, ErrorKind, RunError};
use gristmill_wire::{ArraySpec, InputSpec};

/// A request over an array, bound, with the chunks that it needs.
#[derive(Clone, Debug)]
pub struct ArrayWork {
    /// The kernel.
    pub kernel: Arc<ArrayReduce>,
    /// The chunks, by their table.
    pub chunks: Chunks,
    /// What crosses the network.
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
    /// Binds a request to the array with this table.
    ///
    /// # Errors
    /// What the kernel refuses, and more chunks than a request takes.
    pub fn new(table: Arc<ChunkTable>, request: Request) -> Result<ArrayWork, RunError> {
        let name = name(&table, &request);
        let kernel = Arc::new(ArrayReduce::bind(request.clone()).map_err(usage)?);
        let numbers = numbers(&kernel);
        let needed = only(&table, &numbers);
        let spec = ArraySpec::new(needed.as_ref().unwrap_or(&table), &request).map_err(usage)?;
        let chunks = Chunks::new(table, numbers)?;
        Ok(ArrayWork { kernel, chunks, spec: Arc::new(spec), name })
    }

    /// Binds what came over the network.
    ///
    /// # Errors
    /// What is malformed, and what [`new`](ArrayWork::new) refuses.
    pub fn decode(spec: &Arc<ArraySpec>) -> Result<ArrayWork, RunError> {
        let (table, request) = spec.decode().map_err(usage)?;
        let name = name(&table, &request);
        let kernel = Arc::new(ArrayReduce::bind(request).map_err(usage)?);
        let chunks = Chunks::new(Arc::new(table), numbers(&kernel))?;
        Ok(ArrayWork { kernel, chunks, spec: spec.clone(), name })
    }

    /// What the operation is called where its speed is measured: with the codec of the chunks, which mostly decides it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the elements, as requests say it.
    pub fn input(&self) -> InputSpec {
        let dtype = self.chunks.table().array.dtype;
        InputSpec { dtype: Some(dtype.name().to_owned()), ..InputSpec::default() }
    }
}

fn usage(error: impl ToString) -> RunError {
    RunError::Remote { kind: ErrorKind::Usage, message: error.to_string() }
}

/// A file may say that it has any number of chunks.
fn numbers(kernel: &ArrayReduce) -> Vec<u64> {
    kernel.chunks().take(MAX_CHUNKS + 1).collect()
}

/// The table with the places of these chunks alone, where it lists others too: nobody asks for those.
fn only(table: &ChunkTable, numbers: &[u64]) -> Option<ChunkTable> {
    let Places::Listed(places) = &table.places else { return None };
    if numbers.len() as u64 >= table.array.chunks() {
        return None;
    }
    let asked = places.iter().filter(|place| numbers.binary_search(&place.chunk).is_ok());
    let places = Places::Listed(asked.copied().collect());
    Some(ChunkTable { array: table.array.clone(), files: table.files.clone(), places })
}

fn name(table: &ChunkTable, request: &Request) -> String {
    let codec = table.array.filters.iter().find_map(|filter| {
        Some(match filter {
            Filter::Zlib | Filter::Gzip => "zlib",
            Filter::Zstd => "zstd",
            Filter::Lz4Hdf5 | Filter::Lz4Numcodecs => "lz4",
            Filter::Lzf => "lzf",
            Filter::Blosc => "blosc",
            Filter::Szip(_) => "szip",
            Filter::Column(_) => "text",
            _ => return None,
        })
    });
    let op = request.reduction.op.name();
    format!("{op}:{}", codec.unwrap_or("plain"))
}
