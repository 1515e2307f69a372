//! Ctrl-C and its like, for work that ends in order.

use std::sync::Arc;

use gristmill_runtime::Control;

use crate::error::{CliError, INTERRUPTED};

/// Has Ctrl-C, SIGTERM and SIGHUP tell `control` to stop. A second one ends the program at once: something does not
/// come to an end by itself then.
pub fn stop_on_signal(control: &Arc<Control>) -> Result<(), CliError> {
    let control = control.clone();
    let heard = ctrlc::set_handler(move || {
        if control.stopped() {
            std::process::exit(i32::from(INTERRUPTED));
        }
        control.stop();
    });
    heard.map_err(|error| CliError::Usage(format!("cannot listen for Ctrl-C: {error}")))
}
