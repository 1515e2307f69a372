//! Checkpoints: an interrupted request as bytes.

use std::ops::Range;

use gristmill_kernel::state::{StateReader, StateWriter};
use gristmill_kernel::{KernelError, Position};

use crate::{Partial, RunError};

/// First bytes of an encoded checkpoint. The last of them is the version of the format. The CRC-32C of the rest follows, in
/// four bytes.
const MAGIC: &[u8; 8] = b"gristck\x04";

/// First bytes of a checkpoint of the version before, which has no checksum.
const MAGIC_WITHOUT_SUM: &[u8; 8] = b"gristck\x03";

/// The saved state of a request that stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub(crate) kernel: String,
    pub(crate) extent: Range<u64>,
    /// Text that the request gave to identify itself.
    pub(crate) identity: String,
    /// States of the file's parts.
    pub(crate) versions: Vec<u64>,
    /// The broadcast of the last finished pass.
    pub(crate) shared: Vec<u8>,
    /// Whether the request stopped in the last of several passes.
    pub(crate) last: bool,
    pub(crate) partial: Partial,
    /// Position of the last row that was delivered. Later rows come after resuming.
    pub(crate) delivered: Option<Position>,
}

impl Checkpoint {
    /// The folded part of the interrupted pass.
    pub const fn partial(&self) -> &Partial {
        &self.partial
    }

    /// Position of the last row that was delivered.
    pub const fn delivered(&self) -> Option<Position> {
        self.delivered
    }

    /// Encodes the checkpoint, little-endian: a magic number with the version of the format; the CRC-32C of what follows; kernel
    /// name, extent, identity, versions, broadcast, whether the pass is the last, delivered position; the partial.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_blob(self.kernel.as_bytes());
        out.put_u64(self.extent.start);
        out.put_u64(self.extent.end);
        out.put_blob(self.identity.as_bytes());
        out.put_u64(self.versions.len() as u64);
        self.versions.iter().for_each(|version| out.put_u64(*version));
        out.put_blob(&self.shared);
        out.put_flag(self.last);
        out.put_flag(self.delivered.is_some());
        if let Some(at) = self.delivered {
            out.put_u64(at.record);
            out.put_u64(at.part);
        }
        self.partial.encode(&mut out);
        [&MAGIC[..], &crc32c::crc32c(&out).to_le_bytes(), &out].concat()
    }

    /// Reads the bytes that [`encode`](Checkpoint::encode) of this version or of the version before wrote. Never panics.
    ///
    /// # Errors
    /// The error is [`RunError::BadPartial`] for any other bytes, also if a single bit differs.
    pub fn decode(bytes: &[u8]) -> Result<Checkpoint, RunError> {
        let body = body(bytes).map_err(|why| RunError::BadPartial { why: why.into() })?;
        let mut read = StateReader::new("checkpoint", body);
        let mut fields = || -> Result<Checkpoint, KernelError> {
            let kernel = String::from_utf8_lossy(read.blob()?).into_owned();
            let extent = read.u64()?..read.u64()?;
            let identity = String::from_utf8_lossy(read.blob()?).into_owned();
            let count = read.u64()?;
            if count > u64::from(gristmill_layout::MAX_TARGETS) {
                return Err(read.bad(format!("{count} targets")));
            }
            let versions = (0..count).map(|_| read.u64()).collect::<Result<_, _>>()?;
            let shared = read.blob()?.to_vec();
            let last = read.flag()?;
            let delivered =
                if read.flag()? { Some(Position { record: read.u64()?, part: read.u64()? }) } else { None };
            Ok(Checkpoint {
                kernel,
                extent,
                identity,
                versions,
                shared,
                last,
                partial: Partial::default(),
                delivered,
            })
        };
        let checkpoint = fields().map_err(|e| RunError::BadPartial { why: e.to_string() })?;
        Ok(Checkpoint { partial: Partial::decode(read.rest())?, ..checkpoint })
    }
}

/// The bytes behind the checksum, if they have this checksum.
fn body(bytes: &[u8]) -> Result<&[u8], &'static str> {
    if let Some(body) = bytes.strip_prefix(MAGIC_WITHOUT_SUM) {
        return Ok(body);
    }
    let summed = bytes.strip_prefix(MAGIC).and_then(|rest| rest.split_first_chunk::<4>());
    let (sum, body) = summed.ok_or("it is not a checkpoint of this version of Gristmill")?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
        return Err("its bytes have changed since they were written (their checksum differs)");
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            kernel: "sum".into(),
            extent: 3..90,
            identity: "sum of /a".into(),
            versions: vec![1, 2],
            shared: vec![7; 20],
            last: false,
            partial: Partial::empty(0),
            delivered: Some(Position { record: 5, part: 0 }),
        }
    }

    #[test]
    fn every_changed_bit_is_detected() {
        let bytes = checkpoint().encode();
        assert_eq!(Checkpoint::decode(&bytes).unwrap(), checkpoint());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let error = Checkpoint::decode(&changed).unwrap_err();
                assert!(matches!(error, RunError::BadPartial { .. }), "byte {at}: {error}");
            }
            assert!(Checkpoint::decode(&bytes[..at]).is_err());
        }
    }

    #[test]
    fn a_checkpoint_of_the_version_before_is_read() {
        let bytes = checkpoint().encode();
        let older = [&MAGIC_WITHOUT_SUM[..], &bytes[MAGIC.len() + 4..]].concat();
        assert_eq!(Checkpoint::decode(&older).unwrap(), checkpoint());
    }
}
