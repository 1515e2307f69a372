//! Encoding of tables: encoded tables are decoded, and all other bytes are refused.
#![allow(clippy::unwrap_used)]

use gristmill_format::wire::{self, Head, Page};
use gristmill_format::{
    Array, ChunkLocation, ChunkLocations, ChunkTable, Column, Edges, FileRef, Filter, FormatError,
    MAX_STORED_BYTES, Rows,
};
use gristmill_kernel::{ByteOrder, DType};
use proptest::prelude::*;

fn filter() -> impl Strategy<Value = Filter> {
    prop_oneof![
        Just(Filter::Zlib),
        Just(Filter::Gzip),
        Just(Filter::Zstd),
        Just(Filter::Lz4Hdf5),
        Just(Filter::Lz4Numcodecs),
        Just(Filter::Lzf),
        Just(Filter::Blosc),
        Just(Filter::Blosc2),
        Just(Filter::Fletcher32),
        Just(Filter::Crc32c),
        (1u32..9).prop_map(|size| Filter::Shuffle { size }),
        prop::collection::vec(any::<u32>(), 0..6).prop_map(Filter::Szip),
    ]
}

fn array() -> impl Strategy<Value = Array> {
    let axes = prop::collection::vec((1u64..60, 1u64..9), 1..4);
    (0usize..10, any::<bool>(), axes, prop::collection::vec(filter(), 0..4), any::<[u8; 8]>(), any::<bool>())
        .prop_map(|(dtype, big, axes, filters, fill, less)| {
            let dtype = DType::ALL[dtype];
            let (shape, chunk): (Vec<u64>, Vec<u64>) = axes.into_iter().unzip();
            Array {
                dtype,
                order: if big { ByteOrder::Big } else { ByteOrder::Little },
                stored: shape.iter().map(|length| if less { length / 2 } else { *length }).collect(),
                shape,
                chunk,
                edges: Edges::Whole,
                filters,
                fill: fill[..dtype.size()].to_vec(),
            }
        })
}

fn table() -> impl Strategy<Value = ChunkTable> {
    let location = (any::<u64>(), 0u64..1 << 50, 0..MAX_STORED_BYTES, 0u32..4, any::<u32>());
    (array(), prop::collection::vec(location, 0..300), 1u32..5).prop_map(|(array, locations, files)| {
        let mut locations: Vec<ChunkLocation> = locations
            .into_iter()
            .map(|(chunk, offset, bytes, mask, file)| ChunkLocation {
                chunk: chunk % array.chunks(),
                file: file % files,
                offset,
                bytes,
                mask,
            })
            .collect();
        locations.sort_by_key(|location| location.chunk);
        locations.dedup_by_key(|location| location.chunk);
        // Every file has a chunk, as in tables that are made from files.
        let used = locations.iter().map(|location| location.file).max().map_or(1, |last| last + 1);
        for (location, file) in locations.iter_mut().zip(0..used) {
            location.file = file;
        }
        let files = locations.iter().map(|location| location.file).max().map_or(1, |last| last + 1);
        let files = (0..files).map(|n| FileRef { name: format!("c/{n}"), length: 1 << 60 }).collect();
        ChunkTable { array, files, locations: ChunkLocations::Listed(locations) }
    })
}

fn pages(table: &ChunkTable) -> Vec<Vec<u8>> {
    let end = Head::decode(&wire::head(table)).unwrap().pages_end();
    let (mut pages, mut next) = (Vec::new(), 0);
    while next < end {
        let bytes = wire::page(table, next).unwrap();
        next = Page::decode(&Head::decode(&wire::head(table)).unwrap(), &bytes).unwrap().chunks.end;
        pages.push(bytes);
    }
    pages
}

fn read(head: &[u8], pages: &[Vec<u8>]) -> Result<ChunkTable, FormatError> {
    let head = Head::decode(head)?;
    let pages = pages.iter().map(|page| Page::decode(&head, page)).collect::<Result<Vec<_>, _>>()?;
    head.table(pages)
}

proptest! {
    #[test]
    fn a_table_comes_back(table in table()) {
        let (head, pages) = (wire::head(&table), pages(&table));
        let back = read(&head, &pages).unwrap();
        prop_assert_eq!(&back, &table);
        back.check(&vec![1 << 60; table.files.len()]).unwrap();
        let head = Head::decode(&head).unwrap();
        let page = Page::decode(&head, &pages[0]).unwrap();
        for number in page.chunks.clone().take(1000) {
            prop_assert_eq!(page.find(number), table.find(number));
        }
        prop_assert_eq!(page.find(page.chunks.end), None);
    }

    /// A table that was changed in transit is refused.
    #[test]
    fn changed_bytes_are_refused(table in table(), at in any::<usize>(), to in any::<u8>()) {
        let mut all = vec![wire::head(&table)];
        all.extend(pages(&table));
        let which = at % all.len();
        let location = at / all.len() % all[which].len();
        prop_assume!(all[which][location] != to);
        all[which][location] = to;
        prop_assert!(read(&all[0], &all[1..]).is_err());
    }

    /// A forged table is refused, or is another table whose chunks are inside its files.
    #[test]
    fn lies_are_refused_or_checked(table in table(), at in any::<usize>(), to in any::<u8>(), cut in any::<bool>()) {
        let mut all = vec![wire::head(&table)];
        all.extend(pages(&table));
        let which = at % all.len();
        let location = at / all.len() % all[which].len();
        if cut {
            all[which].truncate(location);
            prop_assert!(read(&all[0], &all[1..]).is_err());
            return Ok(());
        }
        let kept = all[which].len() - 4;
        let mut forged = all[which][..kept].to_vec();
        forged[location % kept] = to;
        all[which] = wire::with_sum(forged);
        if let Ok(other) = read(&all[0], &all[1..]) {
            let lengths = vec![1 << 40; other.files.len()];
            if other.check(&lengths).is_ok() {
                for number in (0..other.array.chunks()).take(50) {
                    if let Some(gristmill_format::FoundChunk::At(location)) = other.find(number) {
                        prop_assert!(location.offset + location.bytes <= lengths[location.file as usize]);
                    }
                }
            }
        }
    }

    #[test]
    fn junk_is_refused_and_nothing_worse(junk in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Head::decode(&junk).is_err());
        let mut begun = b"grtb\x02".to_vec();
        begun.extend_from_slice(&junk);
        let _ = Head::decode(&wire::with_sum(begun));
    }
}

fn one(locations: ChunkLocations) -> ChunkTable {
    let array = Array {
        dtype: DType::F64,
        order: ByteOrder::Big,
        shape: vec![100, 10],
        stored: vec![100, 10],
        chunk: vec![10, 10],
        edges: Edges::Clipped,
        filters: Vec::new(),
        fill: vec![0; 8],
    };
    ChunkTable { array, files: vec![FileRef { name: String::new(), length: 8100 }], locations }
}

#[test]
fn tables_without_pages_are_their_head() {
    let rows = one(ChunkLocations::Rows(Rows { begin: 100, stride: 80 }));
    assert!(pages(&rows).is_empty());
    assert_eq!(read(&wire::head(&rows), &[]).unwrap(), rows);
    rows.check(&[8100]).unwrap();
    assert!(matches!(rows.check(&[8099]), Err(FormatError::PastEnd { .. })));

    let mut inline = one(ChunkLocations::Inline(vec![7; 8000]));
    inline.array.chunk = vec![100, 10];
    assert_eq!(read(&wire::head(&inline), &[]).unwrap(), inline);
    inline.check(&[0]).unwrap();

    let mut text = one(ChunkLocations::Listed(Vec::new()));
    text.array.shape = vec![100];
    text.array.stored = vec![100];
    text.array.chunk = vec![10];
    text.array.filters = vec![Filter::Column(Column { index: 3, delimiter: b';' })];
    assert_eq!(read(&wire::head(&text), &pages(&text)).unwrap(), text);
}

#[test]
fn large_tables_come_in_pages_and_each_is_needed() {
    let mut table = one(ChunkLocations::Listed(Vec::new()));
    table.array.shape = vec![2_000_000, 10];
    table.array.stored = table.array.shape.clone();
    let location = |chunk| ChunkLocation { chunk, file: 0, offset: 4096 + chunk * 700, bytes: 700, mask: 0 };
    table.locations = ChunkLocations::Listed((0..200_000).map(location).collect());
    let (head, mut all) = (wire::head(&table), pages(&table));
    assert!(all.len() > 2 && all.iter().all(|page| page.len() <= wire::MAX_PAGE_BYTES), "{}", all.len());
    assert!(all.iter().map(Vec::len).sum::<usize>() < 6 * 200_000);
    assert_eq!(read(&head, &all).unwrap(), table);
    all.swap(0, 1);
    assert!(read(&head, &all).is_err());
    all.swap(0, 1);
    all.remove(1);
    assert!(read(&head, &all).is_err());
}

#[test]
fn lies_about_places_are_refused() {
    let location = |chunk, offset, bytes| ChunkLocation { chunk, file: 0, offset, bytes, mask: 0 };
    let cases = [
        vec![location(0, 8000, 101)],
        vec![location(0, u64::MAX, 2)],
        vec![location(10, 0, 1)],
        vec![location(1, 0, 1), location(1, 0, 1)],
        vec![location(2, 0, 1), location(1, 0, 1)],
        vec![ChunkLocation { file: 1, ..location(0, 0, 1) }],
        vec![location(0, 0, MAX_STORED_BYTES + 1)],
    ];
    for locations in cases {
        assert!(one(ChunkLocations::Listed(locations.clone())).check(&[8100]).is_err(), "{locations:?}");
    }
    one(ChunkLocations::Listed(vec![location(0, 8000, 100)])).check(&[8100]).unwrap();
    assert!(one(ChunkLocations::Listed(Vec::new())).check(&[]).is_err());
}
