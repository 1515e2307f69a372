//! Tables from the network: what is read is what was meant, and every place of one that is checked lies in its file.
#![no_main]

use gristmill_format::wire::{self, Head, Page};
use gristmill_format::{ChunkLocations, FoundChunk};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let (part, behind) = behind.split_at(usize::from(u16::from_le_bytes(*length)).min(behind.len()));
        parts.push(part);
        rest = behind;
    }
    let Some((head, pages)) = parts.split_first() else { return };
    // A sum that does not agree would end every try at once.
    let Ok(head) = Head::decode(&wire::with_sum(head.to_vec())) else { return };
    let pages: Vec<Page> = pages.iter().filter_map(|page| Page::decode(&head, &wire::with_sum(page.to_vec())).ok()).collect();
    for page in &pages {
        let _ = (page.find(page.chunks.start), page.find(page.chunks.end));
    }
    let Ok(table) = head.table(pages) else { return };
    let lengths: Vec<u64> = table.files.iter().map(|file| file.length).collect();
    if table.check(&lengths).is_err() {
        return;
    }
    let same = Head::decode(&wire::head(&table)).expect("what was encoded can be decoded");
    if same.pages_end() > 0 {
        let page = wire::page(&table, 0).expect("there is a page");
        let page = Page::decode(&same, &page).expect("what was encoded can be decoded");
        for number in page.chunks.clone().take(16) {
            assert_eq!(page.find(number), table.find(number));
        }
    }
    let listed = match &table.locations {
        ChunkLocations::Listed(places) => places.iter().map(|place| place.chunk).take(16).collect(),
        _ => (0..table.array.chunks().min(16)).collect::<Vec<u64>>(),
    };
    for number in listed.into_iter().chain(table.array.chunks().checked_sub(1)) {
        if let Some(FoundChunk::At(place)) = table.find(number) {
            let length = lengths[place.file as usize];
            assert!(place.offset.checked_add(place.bytes).is_some_and(|end| end <= length), "chunk {number}");
        }
    }
});
