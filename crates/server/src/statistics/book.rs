//! A book: the summaries of the chunks of one object, and the format of its file.
//!
//! ```text
//! head       8 bytes: `grstats` and the version of the format
//! object     its name: length u8, bytes; its version, u64
//! entries    each: key 16 bytes, length u16, summary
//! digest     SHA-256 of all bytes before it
//! ```
//! Everything is little-endian.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use gristmill_kernel::MAX_SUMMARY_BYTES;
use gristmill_store::ObjectId;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use crate::limits::MAX_BOOK_BYTES;
use crate::statistics::read_bounded;

/// Key of a summary.
pub(crate) type Key = [u8; 16];

const HEAD: [u8; 8] = *b"grstats\x01";

/// Approximate bytes of memory of an entry in addition to its summary.
const ENTRY_BYTES: usize = 96;

/// Largest length of a file: the entries, which take no more than in memory, the head and the digest.
const MAX_FILE_BYTES: usize = MAX_BOOK_BYTES + 512;

/// Object of a book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub object: ObjectId,
    pub version: u64,
}

/// Summaries by their keys. Beyond [`MAX_BOOK_BYTES`] the oldest are removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Book {
    entries: HashMap<Key, Box<[u8]>>,
    /// Keys in the order of their insertion.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Book {
    pub fn get(&self, key: &Key) -> Option<&[u8]> {
        self.entries.get(key).map(|summary| &**summary)
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Inserts or replaces a summary. Returns whether the book changed.
    pub fn put(&mut self, key: Key, summary: Vec<u8>) -> bool {
        if summary.len() > MAX_SUMMARY_BYTES || self.get(&key) == Some(&summary) {
            return false;
        }
        self.bytes += summary.len();
        match self.entries.insert(key, summary.into()) {
            Some(old) => self.bytes -= old.len(),
            None => {
                self.bytes += ENTRY_BYTES;
                self.order.push_back(key);
            }
        }
        while self.bytes > MAX_BOOK_BYTES
            && let Some(first) = self.order.pop_front()
        {
            let old = self.entries.remove(&first).unwrap_or_default();
            self.bytes -= ENTRY_BYTES + old.len();
        }
        true
    }

    pub fn encode(&self, owner: &Owner) -> Vec<u8> {
        let mut out = head(owner);
        for key in &self.order {
            if let Some(summary) = self.entries.get(key) {
                out.extend_from_slice(key);
                out.extend((summary.len() as u16).to_le_bytes());
                out.extend_from_slice(summary);
            }
        }
        let digest = digest(&SHA256, &out);
        out.extend_from_slice(digest.as_ref());
        out
    }

    /// Decodes the bytes that [`encode`](Book::encode) made for this object. `None` for any other bytes.
    pub fn decode(bytes: &[u8], owner: &Owner) -> Option<Book> {
        let (content, found) = bytes.split_last_chunk::<SHA256_OUTPUT_LEN>()?;
        if digest(&SHA256, content).as_ref() != found {
            return None;
        }
        let mut book = Book::default();
        let mut rest = content.strip_prefix(&head(owner)[..])?;
        while !rest.is_empty() {
            let (key, behind) = rest.split_first_chunk()?;
            let (length, behind) = behind.split_first_chunk()?;
            let (summary, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            book.put(*key, summary.to_vec());
            rest = behind;
        }
        Some(book)
    }

    /// Reads the book of this object from a file. `None` if there is none.
    pub fn read(path: &Path, owner: &Owner) -> Option<Book> {
        Book::decode(&read_bounded(path, MAX_FILE_BYTES).ok()??, owner)
    }
}

fn head(owner: &Owner) -> Vec<u8> {
    let mut out = HEAD.to_vec();
    let name = owner.object.as_str().as_bytes();
    // At most 200.
    out.push(name.len() as u8);
    out.extend_from_slice(name);
    out.extend(owner.version.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn owner(version: u64) -> Owner {
        Owner { object: ObjectId::new("file-0123").unwrap(), version }
    }

    fn book(entries: Vec<(Key, Vec<u8>)>) -> Book {
        let mut book = Book::default();
        for (key, summary) in entries {
            book.put(key, summary);
        }
        book
    }

    fn entries() -> impl Strategy<Value = Vec<(Key, Vec<u8>)>> {
        prop::collection::vec((any::<Key>(), prop::collection::vec(any::<u8>(), 0..90)), 0..9)
    }

    proptest! {
        #[test]
        fn a_book_comes_back_for_its_object_alone(entries in entries()) {
            let book = book(entries);
            let bytes = book.encode(&owner(3));
            prop_assert_eq!(Book::decode(&bytes, &owner(3)).unwrap(), book);
            prop_assert!(Book::decode(&bytes, &owner(4)).is_none());
            let other = Owner { object: ObjectId::new("file-0124").unwrap(), version: 3 };
            prop_assert!(Book::decode(&bytes, &other).is_none());
        }

        #[test]
        fn a_damaged_one_is_none(entries in entries(), at: usize, bit in 0u32..8, cut: usize) {
            let mut bytes = book(entries).encode(&owner(3));
            let whole = bytes.clone();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert!(Book::decode(&bytes, &owner(3)).is_none());
            prop_assert!(Book::decode(&whole[..cut % whole.len()], &owner(3)).is_none());
        }

        #[test]
        fn random_bytes_are_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Book::decode(&bytes, &owner(3)).is_none());
        }
    }

    #[test]
    fn the_first_entries_go_when_it_is_full() {
        let mut book = Book::default();
        let key = |n: u32| {
            let mut key = [0; 16];
            key[..4].copy_from_slice(&n.to_le_bytes());
            key
        };
        let most = (MAX_BOOK_BYTES / (ENTRY_BYTES + 100)) as u32;
        for n in 0..most + 5 {
            assert!(book.put(key(n), vec![7; 100]));
        }
        assert!(book.bytes() <= MAX_BOOK_BYTES);
        assert!(
            book.get(&key(4)).is_none() && book.get(&key(5)).is_some() && book.get(&key(most + 4)).is_some()
        );
        assert!(book.encode(&owner(1)).len() <= MAX_FILE_BYTES);
        assert!(!book.put(key(9), vec![7; 100]), "it is there already");
        assert!(!book.put(key(9), vec![7; MAX_SUMMARY_BYTES + 1]), "it is too long");
    }
}
