//! The stored chunks of a variable.

use gristmill_format::{ChunkTable, FormatError, FoundChunk};

/// Most chunks that are listed for one variable.
const MAX_LISTED: u64 = 1 << 20;

pub fn for_each_stored(
    table: &ChunkTable,
    each: &mut dyn FnMut(u64, &[u64], FoundChunk<'_>),
) -> Result<(), FormatError> {
    if table.stored_chunks() > MAX_LISTED {
        return Err(FormatError::Limit {
            what: "chunks to list".to_owned(),
            found: table.stored_chunks(),
            max: MAX_LISTED,
        });
    }
    let numbers: Box<dyn Iterator<Item = u64>> = match &table.locations {
        gristmill_format::ChunkLocations::Listed(places) => Box::new(places.iter().map(|place| place.chunk)),
        _ => Box::new(0..table.array.chunks()),
    };
    for number in numbers {
        if let (Some(found), Some(extent)) = (table.find(number), table.array.extent(number)) {
            each(number, &extent.origin, found);
        }
    }
    Ok(())
}
