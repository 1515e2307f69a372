//! Where the units of a fold for rows go: to the network, or to be put in order with those of other nodes.

use gristmill_kernel::RowBatch;
use gristmill_runtime::{ErrorKind, RunError, UnitEnd, UnitEvent, UnitOutput, UnitSource};
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

/// Hands units to a thread that puts them in order with those of other nodes.
pub(crate) struct EventOutput<'a> {
    pub out: &'a std::sync::mpsc::SyncSender<UnitEvent>,
}

impl EventOutput<'_> {
    fn send(&self, event: UnitEvent) -> Result<(), RunError> {
        self.out.send(event).map_err(|_| gone())
    }
}

impl UnitOutput for EventOutput<'_> {
    fn begin(&mut self, at: u64) -> Result<(), RunError> {
        self.send(UnitEvent::Begin(at))
    }

    fn rows(&mut self, batch: RowBatch) -> Result<(), RunError> {
        self.send(UnitEvent::Rows(batch))
    }

    fn end(&mut self, end: UnitEnd) -> Result<(), RunError> {
        self.send(UnitEvent::End(end))
    }
}

/// The other end of an [`EventOutput`].
pub(crate) struct EventSource {
    pub events: std::sync::mpsc::Receiver<UnitEvent>,
}

impl UnitSource for EventSource {
    fn next(&mut self) -> Result<UnitEvent, RunError> {
        self.events.recv().map_err(|_| RunError::Panicked)
    }
}
