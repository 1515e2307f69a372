//! Batches of rows, as one kind of frame carries them.
#![no_main]

use gristmill_fuzz as _;
use gristmill_wire::Frame;
use libfuzzer_sys::fuzz_target;

/// Number of the frames that carry rows.
const ROWS: u8 = 3;

fuzz_target!(|bytes: &[u8]| {
    let framed = [&[ROWS], bytes].concat();
    let Ok(frame) = Frame::decode(&framed) else { return };
    let Frame::Rows(batch) = &frame else { panic!("rows became another frame") };
    let total: usize = batch.iter().map(|(_, row)| row.len()).sum();
    assert_eq!(total, batch.bytes().len(), "rows are the bytes, each once");
    assert_eq!(batch.iter().count(), batch.len());
    assert_eq!(Frame::decode(&frame.encode()).expect("what was encoded can be decoded"), frame);
});
