//! Waiting for work without holding the interpreter, and giving it up on Ctrl-C.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
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
    confirming(py, stop, limit, look, move |_| work())
}

/// What work asks before it does what cannot be undone; `false` once it was given up.
pub type Confirm = dyn Fn() -> bool;

/// What work tells whoever waits for it.
enum Told<T> {
    Done(Result<T, Failure>),
    /// It is about to do what cannot be undone, and waits for an answer.
    Asks(SyncSender<()>),
}

/// As [`looking`], for work that asks before it does what cannot be undone: signals that came before are heard first, so that what is given up by
/// Ctrl-C is not done all the same.
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
            // No answer comes from somebody who waits no more.
            let heard = asks.send(Told::Asks(answer)).is_ok() && answered.recv().is_ok();
            heard && !stopped.stopped()
        };
        let done = work(&confirm);
        // Nobody listens any more once the work was given up.
        let _ = tell.send(Told::Done(done));
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
            Ok(Told::Done(result)) => return result.map_err(PyErr::from),
            Ok(Told::Asks(answer)) => asks = Some(answer),
            Err(RecvTimeoutError::Disconnected) => {
                let text = "a thread panicked; this is a fault of Gristmill, please report it";
                return Err(Failure::new(ErrorKind::Failed, text).into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(raised) = py.check_signals().and_then(|()| look()) {
            stop.stop();
            drop(asks);
            // Whatever it says: what is raised is the signal, or what looking at it raised.
            let _ = py.detach(move || ended(&waiting));
            return Err(raised);
        }
        if stop.stopped() {
            // Somebody else gave it up: another thread, for whom Ctrl-C was.
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
            // It has room for the answer.
            let _ = answer.send(());
        }
    }
}

/// What work that was given up came to, if that is known soon. What it asks is not answered any more.
fn ended<T>(waiting: &Receiver<Told<T>>) -> Option<Result<T, Failure>> {
    let until = Instant::now() + GRACE;
    loop {
        match waiting.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Told::Done(done)) => return Some(done),
            Ok(Told::Asks(_)) => {}
            Err(_) => return None,
        }
    }
}
