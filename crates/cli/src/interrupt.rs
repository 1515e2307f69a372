//! Ctrl-C and its like, for work that ends in order, and for a terminal that is left as it was.

use std::io::IsTerminal;
use std::sync::Arc;

use gristmill_runtime::Control;

use crate::error::{CliError, INTERRUPTED};
use crate::progress;

/// Has Ctrl-C, SIGTERM and SIGHUP tell `control` to stop. A second one ends the program at once: something does not
/// come to an end by itself then.
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

/// Has Ctrl-C, SIGTERM and SIGHUP end the program at once. A terminal is left without half a progress bar, and with `said`.
pub fn clear_on_signal(said: Option<&'static str>) -> Result<(), CliError> {
    if !std::io::stderr().is_terminal() {
        return Ok(());
    }
    on_signal(move || {
        progress::clear();
        if let Some(said) = said {
            crate::notice(format_args!("gristmill: {said}"));
        }
        std::process::exit(i32::from(INTERRUPTED));
    })
}

fn on_signal(heard: impl FnMut() + Send + 'static) -> Result<(), CliError> {
    ctrlc::set_handler(heard).map_err(|error| CliError::Usage(format!("cannot listen for Ctrl-C: {error}")))
}
