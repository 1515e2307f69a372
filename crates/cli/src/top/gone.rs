//! A terminal that is gone.
//!
//! Reading keys from one never ends and uses a whole processor: the library tries again for as long as nothing is read.
//! So a thread of its own looks after the terminal, and ends the program; there is nothing to be given back then.

use std::io::{IsTerminal, stdin};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{CliError, INTERRUPTED};

/// How often the terminal is looked at where it never says anything.
const LOOK: Duration = Duration::from_millis(500);

/// Whether the other end of the terminal that keys come from was closed. Waits for it, but not long.
fn gone() -> bool {
    let input = stdin();
    let mut asked = [PollFd::new(&input, PollFlags::empty())];
    let wait = Timespec::try_from(LOOK).ok();
    // An interruption tells nothing.
    let told = poll(&mut asked, wait.as_ref()).is_ok();
    told && asked
        .iter()
        .any(|one| one.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}

/// Ends the program once the terminal that keys come from is gone.
pub fn end_with_the_terminal() -> Result<(), CliError> {
    if !stdin().is_terminal() {
        return Ok(());
    }
    let watch = || {
        while !gone() {}
        std::process::exit(i32::from(INTERRUPTED));
    };
    let begun = thread::Builder::new().name("terminal".into()).spawn(watch);
    begun.map(|_| ()).map_err(|error| CliError::Usage(format!("cannot start a thread: {error}")))
}
