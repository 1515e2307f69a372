//! Whole files: small ones made by hand, and the seeds of the fuzz targets with bytes changed.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use gristmill_format::{
    AttributeValue, Dataset, Decoder, Format, FormatError, Kind, MemoryTree, Storage, open, open_tree,
};
use gristmill_kernel::DType;
use proptest::prelude::*;

/// A builder of files of the classic format: big-endian words, names padded to 4 bytes.
#[derive(Default)]
struct Classic(Vec<u8>);

impl Classic {
    fn words(&mut self, words: &[u32]) -> &mut Classic {
        self.0.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        self
    }

    fn name(&mut self, name: &str) -> &mut Classic {
        self.words(&[name.len() as u32]);
        self.0.extend_from_slice(name.as_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// Three records of `a` (short, 3 of x) and `b` (float), and a fixed `c`. The header has the number of records.
fn classic(records: u32) -> Vec<u8> {
    let mut out = Classic::default();
    out.0.extend_from_slice(b"CDF\x01");
    out.words(&[records, 10, 2]).name("t").words(&[0]).name("x").words(&[3]);
    out.words(&[0, 0]);
    out.words(&[11, 3]);
    let begin = 256;
    out.name("a").words(&[2, 0, 1, 12, 1]).name("_FillValue").words(&[3, 1, 0x0007_0000]).words(&[
        3,
        8,
        begin + 8,
    ]);
    out.name("b").words(&[1, 0, 0, 0, 5, 4, begin + 16]);
    out.name("c").words(&[1, 1, 0, 0, 3, 8, begin]);
    out.0.resize(begin as usize, 0);
    for element in [1i16, 2, 3, 0] {
        out.0.extend_from_slice(&element.to_be_bytes());
    }
    for record in 0..3i16 {
        for element in 0..3 {
            out.0.extend_from_slice(&(10 * record + element).to_be_bytes());
        }
        out.0.extend_from_slice(&[0xff; 2]);
        out.0.extend_from_slice(&f32::from(record).to_be_bytes());
    }
    out.0
}

fn elements(dataset: &Dataset, name: &str) -> Vec<u8> {
    let table = dataset.table(name).unwrap();
    let (mut decoder, mut all, mut out) = (Decoder::new(&table.array).unwrap(), Vec::new(), Vec::new());
    for number in 0..table.array.chunks() {
        dataset.read_chunk(&table, number, &mut decoder, &mut out).unwrap();
        all.extend_from_slice(&out);
    }
    all
}

#[test]
fn records_of_classic_files_are_found_among_others() {
    for records in [3, u32::MAX] {
        let dataset = open(Arc::new(classic(records)), "a.nc").unwrap();
        assert_eq!(dataset.format, Format::Cdf1);
        let a = dataset.variable("a").unwrap();
        assert_eq!((a.shape.as_slice(), a.storage), ([3, 3].as_slice(), Storage::Records));
        assert_eq!(a.fill, Some(vec![7, 0]));
        assert_eq!(dataset.dimensions[0].length, 3);
        let shorts = |all: &[i16]| all.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        assert_eq!(elements(&dataset, "a"), shorts(&[0, 1, 2, 10, 11, 12, 20, 21, 22]));
        assert_eq!(elements(&dataset, "c"), shorts(&[1, 2, 3]));
        let floats: Vec<u8> = [0f32, 1.0, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(elements(&dataset, "b"), floats);
    }
}

#[test]
fn truncated_and_lying_files_are_refused() {
    let whole = classic(3);
    let cut = open(Arc::new(whole[..whole.len() - 1].to_vec()), "a.nc").unwrap();
    assert!(matches!(cut.table("b"), Err(FormatError::PastEnd { .. })));
    cut.table("c").unwrap();
    let many = open(Arc::new(classic(1 << 30)), "a.nc").unwrap();
    assert!(matches!(many.table("a"), Err(FormatError::PastEnd { .. })));
    assert!(open(Arc::new(whole[..100].to_vec()), "a.nc").is_err());
    assert!(matches!(open(Arc::new(Vec::new()), "a"), Err(FormatError::Unrecognised { .. })));
    let error = cut.table("temperature").unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("there are a, b, c"), "{error}");
}

fn zarr(documents: &[(&str, &str)]) -> Dataset {
    let mut files = MemoryTree::default();
    for (key, text) in documents {
        files.0.insert((*key).to_owned(), text.as_bytes().to_vec());
    }
    open_tree(Arc::new(files)).unwrap()
}

#[test]
fn zarr_arrays_that_cannot_be_read_are_listed_with_the_reason() {
    let array = |codecs: &str| {
        format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32", "fill_value": "NaN",
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [2]}}}},
            "chunk_key_encoding": {{"name": "default"}}, "codecs": {codecs},
            "attributes": {{"units": "K", "valid": [1, 2.5]}}, "dimension_names": ["x"]}}"#
        )
    };
    let good = array(r#"[{"name": "bytes", "configuration": {"endian": "big"}}]"#);
    let odd = array(r#"["bytes", {"name": "pcodec"}]"#);
    let dataset = zarr(&[
        ("zarr.json", r#"{"zarr_format": 3, "node_type": "group", "attributes": {"title": "a"}}"#),
        ("g/good/zarr.json", &good),
        ("g/good/c/1", "abcdefgh"),
        ("odd/zarr.json", &odd),
    ]);
    assert_eq!(dataset.format, Format::Zarr3);
    assert_eq!(dataset.attributes[0].value, AttributeValue::Text("a".to_owned()));
    assert_eq!((dataset.dimensions[0].name.as_str(), dataset.dimensions.len()), ("x", 1));
    let variable = dataset.variable("/g/good").unwrap();
    assert_eq!(variable.kind, Kind::Number(DType::F32));
    let nan = 0x7fc0_0000u32.to_le_bytes();
    assert_eq!(elements(&dataset, "g/good"), [nan, nan, *b"dcba", *b"hgfe"].concat());
    let error = dataset.table("odd").unwrap_err();
    assert!(error.to_string().contains("pcodec"), "{error}");
}

/// Opens a file of any format and all its tables, and reads some of their chunks.
fn everything(bytes: Vec<u8>) {
    let Ok(dataset) = open(Arc::new(bytes), "a.csv") else { return };
    for variable in dataset.variables.iter().take(20) {
        let Ok(table) = dataset.table(&variable.path) else { continue };
        if table.array.chunk_bytes() > 1 << 20 {
            continue;
        }
        let (mut decoder, mut out) = (Decoder::new(&table.array).unwrap(), Vec::new());
        for number in 0..table.array.chunks().min(5) {
            let _ = dataset.read_chunk(&table, number, &mut decoder, &mut out);
        }
    }
}

proptest! {
    #[test]
    fn changed_classic_files_never_panic(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..6)) {
        let mut bytes = classic(3);
        for (at, to) in changes {
            let at = at % bytes.len();
            bytes[at] = to;
        }
        everything(bytes);
    }

    #[test]
    fn junk_behind_a_signature_never_panics(junk in prop::collection::vec(any::<u8>(), 0..200), which in 0usize..4) {
        let magic: [&[u8]; 4] = [b"CDF\x01", b"CDF\x05", b"\x89HDF\r\n\x1a\n", b"\x93NUMPY\x01\x00"];
        let mut bytes = magic[which].to_vec();
        bytes.extend_from_slice(&junk);
        everything(bytes);
    }
}

#[test]
fn changed_seeds_never_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/format_open");
    let seeds: Vec<Vec<u8>> =
        fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    assert!(seeds.iter().any(|seed| seed.get(1..9) == Some(b"\x89HDF\r\n\x1a\n")), "no HDF5 among the seeds");
    let mut random = fastrand::Rng::with_seed(1);
    for seed in &seeds {
        // The first byte of a seed gives the kind of the rest.
        let bytes = &seed[1..];
        everything(bytes.to_vec());
        for _ in 0..150 {
            let mut changed = bytes.to_vec();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..changed.len().max(1));
                if let Some(byte) = changed.get_mut(at) {
                    *byte = random.u8(..);
                }
            }
            if random.u8(..8) == 0 {
                changed.truncate(random.usize(..=changed.len()));
            }
            everything(changed);
        }
    }
}
