//! Stopping what nobody waits for any more.

use std::sync::Arc;

use gristmill_runtime::Control;

/// Stops a request when dropped: with the stream of its answer, when the client is gone or has all it wanted.
pub(crate) struct StopOnDrop(pub Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
