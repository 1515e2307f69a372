//! The end of the program when its terminal is closed.
//!
//! Reading keys from a closed terminal never ends and uses a whole processor, because the library tries again until it
//! reads something. So a thread watches the terminal and ends the program. A closed terminal needs no restoring.

use std::io::{IsTerminal, stdin};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{CliError, INTERRUPTED};

/// Longest wait in one poll of the terminal.
const POLL_TIMEOUT: Duration = Duration::from_millis(500);

/// Whether the terminal of standard input is closed. Waits up to [`POLL_TIMEOUT`] for that.
fn is_closed() -> bool {
    let input = stdin();
    let mut inputs = [PollFd::new(&input, PollFlags::empty())];
    let wait = Timespec::try_from(POLL_TIMEOUT).ok();
    // After an interruption nothing is known.
    let polled = poll(&mut inputs, wait.as_ref()).is_ok();
    polled
        && inputs
            .iter()
            .any(|one| one.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}

/// Ends the program once the terminal of standard input is closed.
///
/// # Errors
/// Returns an error if no thread can be started.
pub fn end_with_terminal() -> Result<(), CliError> {
    if !stdin().is_terminal() {
        return Ok(());
    }
    let watch = || {
        while !is_closed() {}
        std::process::exit(i32::from(INTERRUPTED));
    };
    let begun = thread::Builder::new().name("terminal".into()).spawn(watch);
    begun.map(|_| ()).map_err(|error| CliError::Usage(format!("cannot start a thread: {error}")))
}
