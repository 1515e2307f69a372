//! Requests of Reductionist's API over stored bytes of any kind: a result of the shape that it says, or an error.
#![no_main]

use gristmill_fuzz as _;
use gristmill_reductionist::{Operation, Request, reduce};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let (body, stored) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let Ok(request) = Request::parse(body) else { return };
    // A short request may ask for a chunk of the largest size.
    if request.memory(Operation::Select, stored.len() as u64) > 16 << 20 {
        return;
    }
    for name in ["count", "max", "min", "select", "sum"] {
        let operation = Operation::named(name).expect("an operation of the API");
        let Ok(reduced) = reduce(&request, operation, stored) else { continue };
        let elements = reduced.shape.iter().product::<u64>();
        assert_eq!(reduced.bytes.len() as u64 % elements.max(1), 0);
        assert_eq!(reduced.count.len() as u64, if operation == Operation::Select { 1 } else { elements });
        assert!(!reduced.to_cbor().is_empty());
    }
});
