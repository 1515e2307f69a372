//! Guard that stops abandoned requests.

use std::sync::Arc;

use gristmill_runtime::Control;

/// Stops a request when dropped, together with the stream of its answer: the client is gone or has enough.
pub(crate) struct StopOnDrop(pub Arc<Control>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}
