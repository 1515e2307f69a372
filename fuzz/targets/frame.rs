//! What a node sends while it folds.
#![no_main]

use gristmill_fuzz as _;
use gristmill_wire::Frame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(frame) = Frame::decode(bytes) else { return };
    let again = Frame::decode(&frame.encode()).expect("what was encoded can be decoded");
    assert_eq!(frame, again);
    match frame {
        Frame::Finished(tally) => drop(tally.tally(4)),
        Frame::Failed(_, error) => drop(error.into_error()),
        _ => {}
    }
});
