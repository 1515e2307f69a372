//! The units of a fold for rows on their way to the network.

use gristmill_kernel::RowBatch;
use gristmill_runtime::{ErrorKind, RunError, UnitEnd, UnitOutput};
use gristmill_wire::Frame;

use crate::fold::Frames;

/// Sends units as frames.
pub(crate) struct FrameOutput<'a> {
    pub out: &'a Frames,
}

impl FrameOutput<'_> {
    /// Sends a frame; an error if nobody listens any more.
    pub fn send(&self, frame: Frame) -> Result<(), RunError> {
        self.out.blocking_send(Ok(frame)).map_err(|_| gone())
    }
}

fn gone() -> RunError {
    RunError::Remote { kind: ErrorKind::Failed, message: "the client is gone".into() }
}

impl UnitOutput for FrameOutput<'_> {
    fn begin(&mut self, at: u64) -> Result<(), RunError> {
        self.send(Frame::Begin(at))
    }

    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.send(Frame::Rows(batch))
    }

    fn end(&mut self, end: UnitEnd) -> Result<(), RunError> {
        self.send(Frame::End(end))
    }
}
