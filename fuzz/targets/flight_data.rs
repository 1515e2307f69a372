//! Messages of Flight with a schema and record batches: each is its header and its body, after their lengths (u16,
//! little-endian).
#![no_main]

use bytes::Bytes;
use gristmill_flight::{BatchDecoder, FlightData};
use gristmill_fuzz as _;
use libfuzzer_sys::fuzz_target;

/// Splits off the first part, which has its length in front.
fn part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    *bytes = rest;
    Some(part)
}

// The decoder catches panics of Arrow's reader, so a panic is no failure here. One that nobody catches ends the run
// without a message.
fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |bytes: &[u8]| {
    let (mut decoder, mut bytes) = (BatchDecoder::default(), bytes);
    while let (Some(header), Some(body)) = (part(&mut bytes), part(&mut bytes)) {
        let mut data = FlightData::default();
        (data.data_header, data.data_body) = (Bytes::copy_from_slice(header), Bytes::copy_from_slice(body));
        if let Ok(Some(batch)) = decoder.decode(data) {
            // Reading all values shows whether they lie in the body.
            let _ = format!("{batch:?}");
        }
    }
});
