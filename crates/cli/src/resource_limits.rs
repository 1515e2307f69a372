//! Limits of the system on this process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;

/// Takes as many open files as there may be, since a node has one for each connection and each object in use; and has a write
/// beyond the largest file that there may be fail, instead of ending the process. Where the system refuses either, things stay
/// as they are.
pub fn prepare() {
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    // Nobody looks at the flag: that there is a handler is enough.
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
