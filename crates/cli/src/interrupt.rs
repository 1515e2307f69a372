//! Ctrl-C and similar signals: work ends in order, and the terminal is left clean.

use std::io::IsTerminal;
use std::sync::Arc;

use gristmill_runtime::Control;

use crate::error::{CliError, INTERRUPTED};
use crate::progress;

/// Makes Ctrl-C, SIGTERM and SIGHUP stop `control`. A second signal ends the program at once, for work that does not
/// stop by itself.
pub fn stop_on_signal(control: &Arc<Control>) -> Result<(), CliError> {
    let control = control.clone();
    on_signal(move || {
        if control.stopped() {
            progress::clear();
            std::process::exit(i32::from(INTERRUPTED));
        }
        control.stop();
    })
}

/// Makes Ctrl-C, SIGTERM and SIGHUP end the program at once. On a terminal, the progress bar is removed and `message`
/// is printed.
pub fn clear_on_signal(message: Option<&'static str>) -> Result<(), CliError> {
    if !std::io::stderr().is_terminal() {
        return Ok(());
    }
    on_signal(move || {
        progress::clear();
        if let Some(message) = message {
            crate::notice(format_args!("gristmill: {message}"));
        }
        std::process::exit(i32::from(INTERRUPTED));
    })
}

fn on_signal(handler: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    ctrlc::set_handler(handler)
        .map_err(|error| CliError::System(format!("cannot listen for Ctrl-C: {error}")))
}
