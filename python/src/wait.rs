//! Waiting for work without holding the interpreter, and giving it up on Ctrl-C.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use gristmill_runtime::{Control, ErrorKind};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::files::given_up;

/// Longest delay of a signal.
const LOOK: Duration = Duration::from_millis(50);

/// Time for work that was given up to clean up, for example half of a file. If the program ends after that, the
/// rest may stay.
const GRACE: Duration = Duration::from_secs(1);

/// Runs `work` on its own thread and waits for it.
///
/// A signal whose handler raises, and the end of `limit`, set `stop`. After a signal the work has [`GRACE`] to end.
/// Then it is left alone: it checks `stop`, and everything that it waits for has a bound.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<Control>,
    limit: Option<Duration>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    looking(py, stop, limit, &mut || Ok(()), work)
}

/// As [`wait`], but calls `look` every [`LOOK`]. An exception of `look` gives the work up, too.
pub fn looking<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<Control>,
    limit: Option<Duration>,
    look: &mut dyn FnMut() -> PyResult<()>,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    confirming(py, stop, limit, look, move |_| work())
}

/// A function that work calls before it does something that cannot be undone. Returns `false` if the work was given up.
pub type Confirm = dyn Fn() -> bool;

/// A message from the work to the waiting thread.
enum Message<T> {
    Done(Result<T, Failure>),
    /// The work is about to do something that cannot be undone, and waits for an answer.
    Asks(SyncSender<()>),
}

/// As [`looking`], for work that asks before it does something that cannot be undone. Earlier signals are handled
/// first, so that Ctrl-C prevents it.
pub fn confirming<T: Send + 'static>(
    py: Python<'_>,
    stop: &Arc<Control>,
    limit: Option<Duration>,
    look: &mut dyn FnMut() -> PyResult<()>,
    work: impl FnOnce(&Confirm) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let begun = Instant::now();
    let (tell, mut waiting) = sync_channel(1);
    let thread = std::thread::Builder::new().name("gristmill".into());
    let (asks, stopped) = (tell.clone(), stop.clone());
    let started = thread.spawn(move || {
        let confirm = move || {
            let (answer, answered) = sync_channel(1);
            // A thread that no longer waits does not answer.
            let heard = asks.send(Message::Asks(answer)).is_ok() && answered.recv().is_ok();
            heard && !stopped.stopped()
        };
        let done = work(&confirm);
        // The receiver is gone if the work was given up.
        let _ = tell.send(Message::Done(done));
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
        let mut asks = None;
        match heard {
            Ok(Message::Done(result)) => return result.map_err(PyErr::from),
            Ok(Message::Asks(answer)) => asks = Some(answer),
            Err(RecvTimeoutError::Disconnected) => {
                let text = "a thread panicked; this is a fault of Gristmill, please report it";
                return Err(Failure::new(ErrorKind::Failed, text).into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(raised) = py.check_signals().and_then(|()| look()) {
            stop.stop();
            drop(asks);
            // The result does not matter: the exception of the signal or of `look` is raised.
            let _ = py.detach(move || ended(&waiting));
            return Err(raised);
        }
        if stop.stopped() {
            // Another thread gave the work up, because Ctrl-C was pressed.
            drop(asks);
            let heard = py.detach(move || ended(&waiting));
            return heard.unwrap_or_else(|| Err(given_up())).map_err(PyErr::from);
        }
        if let Some(limit) = limit.filter(|limit| begun.elapsed() >= *limit) {
            stop.stop();
            let text = format!("no answer within {} s; the request was given up", limit.as_secs_f64());
            return Err(Failure::timed_out(text).into());
        }
        if let Some(answer) = asks {
            // The channel has room for the answer.
            let _ = answer.send(());
        }
    }
}

/// The result of work that was given up, if it comes within [`GRACE`]. Questions of the work are not answered.
fn ended<T>(waiting: &Receiver<Message<T>>) -> Option<Result<T, Failure>> {
    let until = Instant::now() + GRACE;
    loop {
        match waiting.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Message::Done(done)) => return Some(done),
            Ok(Message::Asks(_)) => {}
            Err(_) => return None,
        }
    }
}
