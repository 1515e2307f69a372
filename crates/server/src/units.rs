//! Output of a fold for rows: its units as frames.

use gristmill_kernel::RowBatch;
use gristmill_runtime::{RunError, UnitEnd, UnitOutput};
use gristmill_wire::Frame;

use tokio::runtime::Handle;

use crate::frames::FrameSender;

/// Sends units as frames.
pub(crate) struct FrameOutput<'a> {
    pub out: &'a FrameSender,
    pub runtime: &'a Handle,
}

impl FrameOutput<'_> {
    /// Sends a frame. Returns an error if no client listens.
    pub fn send(&self, frame: Frame) -> Result<(), RunError> {
        self.out.send_on_thread(frame, self.runtime)
    }
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
