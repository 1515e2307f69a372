//! Decoding of chunks: elements come back, and wrong stored bytes give an error.
#![allow(clippy::unwrap_used)]

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use gristmill_format::{Array, Decoder, Edges, Filter, FormatError};
use gristmill_kernel::{ByteOrder, DType};
use proptest::prelude::*;

fn array(dtype: DType, length: u64, filters: Vec<Filter>) -> Array {
    Array {
        dtype,
        order: ByteOrder::Little,
        shape: vec![length],
        stored: vec![length],
        chunk: vec![length.max(1)],
        edges: Edges::Whole,
        filters,
        fill: vec![0; dtype.size()],
    }
}

fn decode(array: &Array, stored: &[u8], mask: u32) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    Decoder::new(array)?.decode(0, stored, mask, &mut out)?;
    Ok(out)
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn shuffled(bytes: &[u8], size: usize) -> Vec<u8> {
    (0..size).flat_map(|byte| bytes.iter().skip(byte).step_by(size)).copied().collect()
}

proptest! {
    #[test]
    fn filters_are_undone_in_reverse(elements in prop::collection::vec(any::<u32>(), 1..500)) {
        let bytes: Vec<u8> = elements.iter().flat_map(|x| x.to_le_bytes()).collect();
        let array = array(DType::U32, elements.len() as u64, vec![
            Filter::Shuffle { size: 4 },
            Filter::Zlib,
            Filter::Gzip,
        ]);
        let stored = gzip(&zlib(&shuffled(&bytes, 4)));
        prop_assert_eq!(decode(&array, &stored, 0).unwrap(), bytes.clone());
        // Filters that the writer left out: the first, all except the last, all.
        prop_assert_eq!(decode(&array, &gzip(&zlib(&bytes)), 0b1).unwrap(), bytes.clone());
        prop_assert_eq!(decode(&array, &gzip(&bytes), 0b11).unwrap(), bytes.clone());
        prop_assert_eq!(decode(&array, &bytes, 0b111).unwrap(), bytes);
    }

    /// No stored bytes make a decoder panic, or return another number of bytes than the chunk has.
    #[test]
    fn stored_junk_gives_whole_chunks_or_errors(
        junk in prop::collection::vec(any::<u8>(), 0..300),
        which in 0usize..13,
        length in 1u64..200,
        plausible in any::<bool>(),
    ) {
        let filter = [
            Filter::Zlib, Filter::Gzip, Filter::Zstd, Filter::Lz4Hdf5, Filter::Lz4Numcodecs, Filter::Lzf, Filter::Blosc,
            Filter::Szip(vec![4, 16, 8, 32]), Filter::Fletcher32, Filter::Crc32c, Filter::Shuffle { size: 3 },
            Filter::Transpose(vec![0]), Filter::Blosc2,
        ][which].clone();
        let mut junk = junk;
        if plausible {
            // A header with the right length, so that the bytes after it are decoded.
            let bytes = (length * 4) as u32;
            let mut begun = match filter {
                Filter::Blosc => [[2, 1, junk.first().copied().unwrap_or(0), 4]].concat(),
                Filter::Blosc2 => vec![5, 1, 5 | junk.first().copied().unwrap_or(0), 4],
                Filter::Lz4Hdf5 => [0u32.to_be_bytes(), bytes.to_be_bytes(), 16u32.to_be_bytes()].concat(),
                Filter::Zstd => vec![0x28, 0xb5, 0x2f, 0xfd],
                _ => bytes.to_le_bytes().to_vec(),
            };
            if let Filter::Blosc | Filter::Blosc2 = filter {
                let all = 16 + junk.len() as u32;
                begun.extend([bytes, 32, all].iter().flat_map(|x| x.to_le_bytes()));
            }
            if filter == Filter::Blosc2 {
                // Known filters, and flags that are supported.
                junk.iter_mut().take(14).for_each(|byte| *byte %= 5);
                junk.iter_mut().skip(15).take(1).for_each(|byte| *byte &= 0x70);
            }
            begun.extend_from_slice(&junk);
            junk = begun;
        }
        if let Ok(out) = decode(&array(DType::F32, length, vec![filter]), &junk, 0) {
            prop_assert_eq!(out.len() as u64, length * 4);
        }
    }

    /// Elements that the file does not have read as the fill value, for any bytes in its chunks.
    #[test]
    fn what_is_not_stored_is_filled(shape in 1u64..20, stored in 0u64..20, chunk in 1u64..7) {
        let mut array = array(DType::I16, shape, Vec::new());
        array.stored = vec![stored.min(shape)];
        array.chunk = vec![chunk];
        array.fill = vec![9, 9];
        let mut decoder = Decoder::new(&array).unwrap();
        let mut out = Vec::new();
        for number in 0..array.chunks() {
            decoder.decode(number, &vec![1; 2 * chunk as usize], 0, &mut out).unwrap();
            for (element, at) in out.chunks(2).zip(number * chunk..) {
                // Elements outside the array have no meaning.
                if at < shape {
                    prop_assert_eq!(element[0], if at < array.stored[0] { 1 } else { 9 });
                }
            }
        }
    }
}

#[test]
fn a_bomb_gives_an_error_and_no_more_than_a_chunk() {
    let bomb = zlib(&vec![0; 50 << 20]);
    assert!(bomb.len() < 1 << 20);
    let small = array(DType::U8, 1000, vec![Filter::Zlib]);
    let error = decode(&small, &bomb, 0).unwrap_err();
    assert!(error.to_string().contains("more than the 1000 bytes"), "{error}");
    let nested = array(DType::U8, 1000, vec![Filter::Zlib, Filter::Zlib]);
    assert!(decode(&nested, &zlib(&bomb), 0).is_err());
    assert!(decode(&array(DType::U8, 1000, vec![Filter::Gzip]), &gzip(&vec![0; 1 << 20]), 0).is_err());
}

#[test]
fn damage_is_seen() {
    let bytes: Vec<u8> = (0..200u8).collect();
    let stored = zlib(&bytes);
    let zlibbed = array(DType::U8, 200, vec![Filter::Zlib]);
    assert!(decode(&zlibbed, &stored[..stored.len() - 5], 0).is_err());
    assert!(decode(&array(DType::U8, 201, vec![Filter::Zlib]), &stored, 0).is_err());
    assert!(decode(&zlibbed, &[], 0).is_err());
    let mut summed = bytes.clone();
    summed.extend_from_slice(&[0; 4]);
    for sum in [Filter::Fletcher32, Filter::Crc32c] {
        let error = decode(&array(DType::U8, 200, vec![sum]), &summed, 0).unwrap_err();
        assert!(error.to_string().contains("checksum"), "{error}");
    }
}

#[test]
fn known_bytes_of_small_codecs() {
    // LZF: three bytes as they are, then six more from three back.
    let lzf = [2, b'a', b'b', b'c', 4 << 5, 2];
    assert_eq!(decode(&array(DType::U8, 9, vec![Filter::Lzf]), &lzf, 0).unwrap(), b"abcabcabc");
    // CRC32C of "123456789" is 0xe3069283.
    let mut sum = b"123456789".to_vec();
    sum.extend_from_slice(&0xe306_9283u32.to_le_bytes());
    assert_eq!(decode(&array(DType::U8, 9, vec![Filter::Crc32c]), &sum, 0).unwrap(), b"123456789");
    // Big-endian elements come out little-endian.
    let mut big = array(DType::U16, 2, Vec::new());
    big.order = ByteOrder::Big;
    assert_eq!(decode(&big, &[1, 2, 3, 4], 0).unwrap(), [2, 1, 4, 3]);
}
