//! Limits of the system on this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;

/// Raises the limit on open files to its maximum, because a node has one for each connection and each object in use.
/// Also makes a write beyond the limit on file sizes fail instead of ending the process. Failures of either are
/// ignored.
pub fn prepare() {
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    // The flag is not read: a handler is enough.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_that_there_may_be_are_taken() {
        prepare();
        let files = getrlimit(Resource::Nofile);
        assert_eq!(files.current, files.maximum);
    }
}
