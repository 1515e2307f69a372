//! Sends the units of a fold from its thread to another thread.

use std::sync::mpsc::{Receiver, SyncSender};

use gristmill_kernel::RowBatch;

use crate::crew::{UnitEvent, UnitOutput, UnitSource};
use crate::rows::UnitEnd;
use crate::{ErrorKind, RunError};

/// Sends units to another thread.
pub struct EventOutput<'a>(pub &'a SyncSender<UnitEvent>);

impl EventOutput<'_> {
    fn send(&self, event: UnitEvent) -> Result<(), RunError> {
        let gone = || RunError::Remote {
            kind: ErrorKind::Failed,
            message: "the receiver of the units has stopped".into(),
        };
        self.0.send(event).map_err(|_| gone())
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

/// The receiving end of an [`EventOutput`].
pub struct EventSource(pub Receiver<UnitEvent>);

impl UnitSource for EventSource {
    fn next(&mut self) -> Result<UnitEvent, RunError> {
        self.0
            .recv()
            .map_err(|_| RunError::Internal { what: "the events of a shard ended before its last unit" })
    }
}
