//! Waiting for work without holding the interpreter, and giving it up on Ctrl-C.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use gristmill_runtime::{Control, ErrorKind};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::files::given_up;

/// How long a signal may wait to be heard.
const LOOK: Duration = Duration::from_millis(50);

/// How long work that was given up may take to put away what it began, a half of a file for example. If the program
/// ends after that, it may stay.
const GRACE: Duration = Duration::from_secs(1);

/// Has `work` done on a thread of its own and waits for it.
///
/// On a signal whose handler raises, and once `limit` is over, `stop` is told; after a signal there is a moment's grace,
/// and then the work is left to end by itself: it looks at `stop` and everything it waits for has a bound.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<Control>,
    limit: Option<Duration>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    looking(py, stop, limit, &mut || Ok(()), work)
}

/// As [`wait`], where the caller looks at the work every [`LOOK`] and what that raises gives it up too.
pub fn looking<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<Control>,
    limit: Option<Duration>,
    look: &mut dyn FnMut() -> PyResult<()>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let begun = Instant::now();
    let (done, mut waiting) = sync_channel(1);
    let thread = std::thread::Builder::new().name("gristmill".into());
    let started = thread.spawn(move || {
        // Nobody listens any more once the work was given up.
        let _ = done.send(work());
    });
    if let Err(error) = started {
        let text = format!("cannot start a thread: {error}; raise the limit on threads");
        return Err(Failure::new(ErrorKind::Failed, text).into());
    }
    loop {
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let (channel, heard) = py.detach(move || {
            let heard = waiting.recv_timeout(left.map_or(LOOK, |left| left.min(LOOK)));
            (waiting, heard)
        });
        waiting = channel;
        match heard {
            Ok(result) => return result.map_err(PyErr::from),
            Err(RecvTimeoutError::Disconnected) => {
                let text = "a thread panicked; this is a fault of Gristmill, please report it";
                return Err(Failure::new(ErrorKind::Failed, text).into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(raised) = py.check_signals().and_then(|()| look()) {
            stop.stop();
            // Whatever it says: what is raised is the signal, or what looking at it raised.
            let _ = py.detach(move || waiting.recv_timeout(GRACE));
            return Err(raised);
        }
        if stop.stopped() {
            // Somebody else gave it up: another thread, for whom Ctrl-C was.
            let (_, heard) = py.detach(move || {
                let heard = waiting.recv_timeout(GRACE);
                (waiting, heard)
            });
            return heard.unwrap_or_else(|_| Err(given_up())).map_err(PyErr::from);
        }
        if let Some(limit) = limit.filter(|limit| begun.elapsed() >= *limit) {
            stop.stop();
            let text = format!("no answer within {} s; the request was given up", limit.as_secs_f64());
            return Err(Failure::timed_out(text).into());
        }
    }
}
