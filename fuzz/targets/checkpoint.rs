//! Checkpoints of interrupted requests.
#![no_main]

use std::sync::OnceLock;

use gristmill_fuzz as _;
use gristmill_kernel::{Input, catalog};
use gristmill_runtime::{Checkpoint, Control, Discard, FileParts, Outcome, Request, run};
use libfuzzer_sys::fuzz_target;

/// Length of what every checkpoint begins with.
const MAGIC: usize = 8;

/// Length of the checksum behind it.
const SUM: usize = 4;

/// A checkpoint that a request made, as the version without a checksum has it: with one, nothing that is changed is read.
fn real() -> &'static [u8] {
    static REAL: OnceLock<Vec<u8>> = OnceLock::new();
    REAL.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("text");
        std::fs::write(&path, "a b\n".repeat(1000)).expect("a file");
        let kernel = catalog::bind("wc", &[], &Input::lines()).expect("a kernel");
        let mut request = Request::new(kernel, Input::lines(), FileParts::plain(&path).expect("its parts"));
        (request.options.lanes, request.options.block_bytes) = (1, 400);
        match run(request, &mut Discard, &Control::stop_after(1)) {
            Ok(Outcome::Stopped(checkpoint)) => {
                [&b"gristck\x03"[..], &checkpoint.encode()[MAGIC + SUM..]].concat()
            }
            other => panic!("it did not stop: {:?}", other.map(|_| ())),
        }
    })
}

fuzz_target!(|bytes: &[u8]| {
    // The first byte says how much stays as it was; less than the mark at the start is not worth trying often.
    let Some((kept, rest)) = bytes.split_first() else { return };
    let kept = (MAGIC + usize::from(*kept)).min(real().len());
    let end = real().get(kept + rest.len()..).unwrap_or_default();
    for changed in [[&real()[..kept], rest].concat(), [&real()[..kept], rest, end].concat()] {
        let Ok(checkpoint) = Checkpoint::decode(&changed) else { continue };
        let encoded = checkpoint.encode();
        let again = Checkpoint::decode(&encoded).expect("what was encoded can be decoded");
        assert_eq!(again.encode(), encoded);
    }
    let _ = Checkpoint::decode(bytes);
});
