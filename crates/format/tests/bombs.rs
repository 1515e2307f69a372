//! Chunks of a few bytes that decode to gigabytes, or claim to, in every codec. Decoding returns an error and takes no
//! more memory than the chunk may have. The file has one test in its own process, because it measures the memory of the
//! process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use gristmill_format::{Array, Decoder, Edges, Filter};
use gristmill_kernel::{ByteOrder, DType};

/// Bytes that each decoded chunk should have.
const CHUNK: u32 = 4096;
/// Bytes of memory that the windows and tables of a codec may take.
const MOST: u64 = 24 << 20;
const ZEROS: usize = 256 << 20;

/// The most memory that this process had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn zeros(mut into: impl Write) {
    let block = [0; 1 << 16];
    (0..ZEROS / block.len()).for_each(|_| into.write_all(&block).unwrap());
}

fn zlib() -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    zeros(&mut encoder);
    encoder.finish().unwrap()
}

fn gzip() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    zeros(&mut encoder);
    encoder.finish().unwrap()
}

/// A frame of blocks that repeat one byte 131,072 times, 4 bytes each (RFC 8878, section 3.1.1.2). `window` is its
/// descriptor.
fn zstd(window: u8) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window];
    let blocks = ZEROS >> 17;
    for number in 0..blocks {
        let header = u32::from(number + 1 == blocks) | 1 << 1 | (1 << 17) << 3;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// A frame in one segment that says that it has 2^62 bytes.
fn zstd_of_lies() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1110_0000];
    frame.extend_from_slice(&(1u64 << 62).to_le_bytes());
    frame.extend_from_slice(&[1, 0, 0]);
    frame
}

/// One literal, then a copy of it that goes on for as long as there are bytes of 255.
fn lz4() -> Vec<u8> {
    let mut block = vec![0x1f, 0, 1, 0];
    block.resize(ZEROS / 255, 255);
    block.push(0);
    block
}

fn lz4_hdf5(total: u64, block: u32) -> Vec<u8> {
    let stored = lz4();
    let mut framed =
        [&total.to_be_bytes()[..], &block.to_be_bytes(), &(stored.len() as u32).to_be_bytes()].concat();
    framed.extend_from_slice(&stored);
    framed
}

fn lz4_numcodecs(total: u32) -> Vec<u8> {
    [&total.to_le_bytes()[..], &lz4()].concat()
}

/// A literal, and copies of 264 bytes of it.
fn lzf() -> Vec<u8> {
    let mut block = vec![0, 0];
    (0..ZEROS / 264).for_each(|_| block.extend_from_slice(&[7 << 5, 255, 0]));
    block
}

/// One block with one stream of a codec, which claims a number of bytes.
fn blosc(codec: u8, bytes: u32, stream: &[u8]) -> Vec<u8> {
    let all = 16 + 4 + 4 + stream.len() as u32;
    let mut buffer = vec![2, 1, codec << 5 | 16, 1];
    [bytes, bytes, all, 20, stream.len() as u32]
        .iter()
        .for_each(|x| buffer.extend_from_slice(&x.to_le_bytes()));
    buffer.extend_from_slice(stream);
    buffer
}

/// The same as a chunk of Blosc 2.
fn blosc2(codec: u8, bytes: u32, stream: &[u8]) -> Vec<u8> {
    let all = 32 + 4 + 4 + stream.len() as u32;
    let mut chunk = vec![5, 1, codec << 5 | 16 | 5, 1];
    [bytes, bytes, all].iter().for_each(|x| chunk.extend_from_slice(&x.to_le_bytes()));
    chunk.resize(32, 0);
    [36, stream.len() as u32].iter().for_each(|x| chunk.extend_from_slice(&x.to_le_bytes()));
    chunk.extend_from_slice(stream);
    chunk
}

#[test]
fn bombs_in_every_codec_give_errors_and_take_no_memory() {
    let szip = Filter::Szip(vec![4, 32, 32, u32::MAX]);
    let bombs = [
        ("zlib", Filter::Zlib, zlib()),
        ("gzip", Filter::Gzip, gzip()),
        ("zstd", Filter::Zstd, zstd(0x50)),
        ("zstd with the largest window", Filter::Zstd, zstd(0xff)),
        ("zstd of 2^62 bytes", Filter::Zstd, zstd_of_lies()),
        ("lz4 of HDF5", Filter::Lz4Hdf5, lz4_hdf5(u64::from(CHUNK), CHUNK)),
        ("lz4 of HDF5 of 2^63 bytes", Filter::Lz4Hdf5, lz4_hdf5(1 << 63, u32::MAX)),
        ("lz4 of numcodecs", Filter::Lz4Numcodecs, lz4_numcodecs(CHUNK)),
        ("lz4 of numcodecs of 4 GiB", Filter::Lz4Numcodecs, lz4_numcodecs(u32::MAX)),
        ("lzf", Filter::Lzf, lzf()),
        ("blosc of 4 GiB", Filter::Blosc, blosc(1, u32::MAX, &lz4())),
        ("blosc with blosclz", Filter::Blosc, blosc(0, CHUNK, &[255; 1 << 16])),
        ("blosc with lz4", Filter::Blosc, blosc(1, CHUNK, &lz4())),
        ("blosc with zlib", Filter::Blosc, blosc(3, CHUNK, &zlib())),
        ("blosc with zstd", Filter::Blosc, blosc(4, CHUNK, &zstd(0x50))),
        ("blosc2 of 4 GiB", Filter::Blosc2, blosc2(1, u32::MAX, &lz4())),
        ("blosc2 with blosclz", Filter::Blosc2, blosc2(0, CHUNK, &[255; 1 << 16])),
        ("blosc2 with lz4", Filter::Blosc2, blosc2(1, CHUNK, &lz4())),
        ("blosc2 with zlib", Filter::Blosc2, blosc2(3, CHUNK, &zlib())),
        ("blosc2 with zstd", Filter::Blosc2, blosc2(4, CHUNK, &zstd(0x50))),
        ("szip with lines of 4 GiB", szip, vec![0; 1 << 16]),
    ];
    for (name, filter, stored) in bombs {
        let array = Array {
            dtype: DType::U8,
            order: ByteOrder::Little,
            shape: vec![u64::from(CHUNK)],
            stored: vec![u64::from(CHUNK)],
            chunk: vec![u64::from(CHUNK)],
            edges: Edges::Whole,
            filters: vec![filter],
            fill: vec![0],
        };
        // Sets the peak to the present memory.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before, mut out) = (peak(), Vec::new());
        let error = Decoder::new(&array).unwrap().decode(0, &stored, 0, &mut out);
        assert!(error.is_err(), "{name}: {} bytes of {}", out.len(), stored.len());
        assert!(out.capacity() as u64 <= MOST, "{name}");
        let grown = peak().saturating_sub(before);
        assert!(grown <= MOST, "{name}: {grown} bytes of memory");
    }
}
