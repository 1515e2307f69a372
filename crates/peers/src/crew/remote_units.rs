//! The units that one node sends: rows, partials, and the end.

use std::collections::VecDeque;

use gristmill_runtime::{Control, RunError, Tally, UnitEvent, UnitSource};
use gristmill_wire::Frame;
use tokio::sync::mpsc;

use crate::answers::AbortOnDrop;
use crate::error::unavailable;

/// The units of one node.
pub(super) struct RemoteUnits<'o> {
    pub(super) frames: mpsc::Receiver<Result<Vec<(Frame, usize)>, RunError>>,
    /// Frames that arrived and wait to be decoded into events.
    pub(super) ready: VecDeque<(Frame, usize)>,
    pub(super) control: &'o Control,
    pub(super) node: String,
    pub(super) targets: usize,
    pub(super) movable: bool,
    pub(super) reported: u64,
    pub(super) received: u64,
    pub(super) _task: AbortOnDrop,
}

impl UnitSource for RemoteUnits<'_> {
    fn received(&self) -> u64 {
        self.received
    }

    fn next(&mut self) -> Result<UnitEvent, RunError> {
        loop {
            if self.control.stopped() {
                return Err(RunError::given_up());
            }
            let Some((frame, bytes)) = self.ready.pop_front() else {
                let Some(some) = self.frames.blocking_recv() else {
                    return Err(unavailable(&self.node, "it was cut off before its rows were complete"));
                };
                self.ready.extend(some?);
                continue;
            };
            self.received += bytes as u64;
            return Ok(match frame {
                Frame::Progress(done) => {
                    self.control.folded(done.saturating_sub(self.reported));
                    self.reported = self.reported.max(done);
                    continue;
                }
                Frame::Begin(at) => UnitEvent::Begin(at),
                Frame::Rows(batch) => UnitEvent::Rows(batch),
                Frame::End(end) => UnitEvent::End(end),
                Frame::Failed(_, error) => UnitEvent::Failed(error.into_error()),
                Frame::HandedBack(hand_back) if self.movable => UnitEvent::HandedBack(hand_back),
                Frame::Finished(tally) => {
                    // The stream is read to its end: otherwise it is reset.
                    while self.frames.blocking_recv().is_some() {}
                    let tally: Tally = tally.tally(self.targets);
                    UnitEvent::Finished(tally)
                }
                Frame::Partial(_) | Frame::Reached(..) | Frame::Written(..) | Frame::HandedBack(_) => {
                    return Err(unavailable(&self.node, "it sent a value instead of rows"));
                }
            });
        }
    }
}
