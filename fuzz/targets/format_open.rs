//! Files of every format: never a panic, and every table lies inside its file and comes back from its bytes.
#![no_main]

use std::sync::Arc;

use gristmill_format::wire::{self, Head, Page};
use gristmill_format::{ChunkTable, Decoder, FormatError, MemoryTree, open, open_tree};
use libfuzzer_sys::fuzz_target;

/// Most bytes of a chunk that is decoded, and most chunks of a variable.
const MAX_CHUNK: u64 = 1 << 20;
const CHUNKS: u64 = 3;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let dataset = match kind {
        0 => open(Arc::new(rest.to_vec()), "a"),
        1 => open(Arc::new(rest.to_vec()), "a.csv"),
        // A document, and what is behind a zero byte is all its chunks.
        _ => {
            let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            let (document, chunk) = rest.split_at(end);
            let mut tree = MemoryTree::default();
            let name = if *kind == 2 { ".zarray" } else { "zarr.json" };
            tree.0.insert(name.to_owned(), document.to_vec());
            for key in ["0", "0.0", "0.1", "c/0", "c/0/0"] {
                tree.0.insert(key.to_owned(), chunk.get(1..).unwrap_or_default().to_vec());
            }
            open_tree(Arc::new(tree))
        }
    };
    let Ok(dataset) = dataset else { return };
    for variable in dataset.variables.iter().take(8) {
        let Ok(table) = dataset.table(&variable.path) else { continue };
        assert!(comes_back(&table).expect("its bytes can be read") == table);
        if table.array.chunk_bytes() > MAX_CHUNK {
            continue;
        }
        let mut decoder = Decoder::new(&table.array).expect("a table that was checked can be decoded");
        let mut out = Vec::new();
        for number in 0..table.array.chunks().min(CHUNKS) {
            let _ = dataset.read_chunk(&table, number, &mut decoder, &mut out);
        }
    }
});

fn comes_back(table: &ChunkTable) -> Result<ChunkTable, FormatError> {
    let head = Head::decode(&wire::head(table))?;
    let (mut pages, mut next) = (Vec::new(), 0);
    while next < head.pages_end() {
        let page = Page::decode(&head, &wire::page(table, next)?)?;
        assert!(page.chunks.start == next && page.chunks.end > next);
        next = page.chunks.end;
        pages.push(page);
    }
    head.table(pages)
}
