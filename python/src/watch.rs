//! The progress of a request, and giving it up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gristmill_runtime::Control;
use gristmill_wire::FoldPlace;
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::wait::{Confirm, confirming, looking, wait};

/// A handle on a request. The waiting thread calls `look` every 50 milliseconds; an exception of `look` gives the
/// request up.
#[pyclass(frozen, module = "gristmill._gristmill")]
pub struct Watch {
    control: Arc<Control>,
    progress: Arc<Progress>,
    look: Option<Py<PyAny>>,
}

/// The progress that running work reports.
#[derive(Default)]
pub struct Progress {
    place: OnceLock<&'static str>,
    bytes: OnceLock<u64>,
    /// Copied bytes, and all bytes of a copy.
    copied: AtomicU64,
    copies: OnceLock<u64>,
}

impl Progress {
    /// Sets the place where the work runs, and its number of stored bytes.
    pub fn begins(&self, place: &'static str, bytes: u64) {
        let _ = self.place.set(place);
        let _ = self.bytes.set(bytes);
    }
}

impl Progress {
    /// Sets the number of bytes to copy.
    pub fn copies(&self, bytes: u64) {
        let _ = self.copies.set(bytes);
    }

    /// Sets the number of copied bytes.
    pub fn copied(&self, bytes: u64) {
        self.copied.store(bytes, Ordering::Relaxed);
    }
}

/// The name of a place in reports.
pub fn named(place: FoldPlace) -> &'static str {
    if place == FoldPlace::Client { "client" } else { "storage" }
}

#[pymethods]
impl Watch {
    #[new]
    #[pyo3(signature = (look=None))]
    fn new(look: Option<Py<PyAny>>) -> Watch {
        Watch { control: Arc::new(Control::new()), progress: Arc::default(), look }
    }

    /// Gives the request up. The thread that waits for it then fails soon.
    fn stop(&self) {
        self.control.stop();
    }

    /// Whether the request was given up.
    #[getter]
    fn stopped(&self) -> bool {
        self.control.stopped()
    }

    /// The place, if it is known; the finished stored bytes; and all stored bytes, 0 if they are not known yet.
    #[getter]
    fn state(&self) -> (Option<&'static str>, u64, u64) {
        if let Some(all) = self.progress.copies.get() {
            return (None, self.progress.copied.load(Ordering::Relaxed).min(*all), *all);
        }
        let (done, total) = self.control.progress();
        // Positions are bytes, records or chunks. Each pass starts again from 0.
        let bytes = self.progress.bytes.get().copied().unwrap_or(total);
        let part =
            |positions: u64| (u128::from(positions) * u128::from(bytes) / u128::from(total.max(1))) as u64;
        let place = self.progress.place.get().copied();
        (place, part(done.min(total)), if total == 0 { 0 } else { bytes })
    }
}

/// The parts of a watch that a request needs, with or without a watch.
pub struct Watched<'a, 'py> {
    py: Python<'py>,
    look: Option<&'a Py<PyAny>>,
    /// Stops the work and counts its positions.
    pub control: Arc<Control>,
    /// The progress that the work reports.
    pub progress: Arc<Progress>,
}

impl<'a, 'py> Watched<'a, 'py> {
    pub fn by(py: Python<'py>, watch: Option<&'a Bound<'py, Watch>>) -> Watched<'a, 'py> {
        match watch.map(Bound::get) {
            None => Watched { py, look: None, control: Arc::new(Control::new()), progress: Arc::default() },
            Some(watch) => Watched {
                py,
                look: watch.look.as_ref(),
                control: watch.control.clone(),
                progress: watch.progress.clone(),
            },
        }
    }

    /// Runs work that asks before it does something that cannot be undone; see [`confirming`].
    pub fn wait_confirming<T: Send + 'static>(
        self,
        limit: Option<Duration>,
        work: impl FnOnce(&Confirm) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let Watched { py, look, control, .. } = self;
        let mut look = || look.map_or(Ok(()), |look| look.call0(py).map(|_| ()));
        confirming(py, &control, limit, &mut look, work)
    }

    /// Runs work; see [`wait`].
    pub fn wait<T: Send + 'static>(
        self,
        limit: Option<Duration>,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let Watched { py, look, control, .. } = self;
        match look {
            None => wait(py, &control, limit, work),
            Some(look) => looking(py, &control, limit, &mut || look.call0(py).map(|_| ()), work),
        }
    }
}
