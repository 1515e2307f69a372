//! How far a request is, and giving it up, for whoever asked.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gristmill_runtime::Control;
use gristmill_wire::Place;
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::wait::{Confirm, confirming, looking, wait};

/// One request, seen from outside. It is given to the request, which then calls `look` now and then, on the thread that
/// waits; what that raises gives the request up.
#[pyclass(frozen, module = "gristmill._gristmill")]
pub struct Watch {
    control: Arc<Control>,
    told: Arc<Told>,
    look: Option<Py<PyAny>>,
}

/// What the work says about itself once it knows.
#[derive(Default)]
pub struct Told {
    place: OnceLock<&'static str>,
    bytes: OnceLock<u64>,
    /// Of a copy: bytes that are copied, and all of them.
    copied: AtomicU64,
    copies: OnceLock<u64>,
}

impl Told {
    /// Where it runs, and how many stored bytes all of it is.
    pub fn begins(&self, place: &'static str, bytes: u64) {
        let _ = self.place.set(place);
        let _ = self.bytes.set(bytes);
    }
}

impl Told {
    /// So many bytes are to be copied.
    pub fn copies(&self, bytes: u64) {
        let _ = self.copies.set(bytes);
    }

    /// So many are.
    pub fn copied(&self, bytes: u64) {
        self.copied.store(bytes, Ordering::Relaxed);
    }
}

/// How reports call a place.
pub fn named(place: Place) -> &'static str {
    if place == Place::Client { "client" } else { "storage" }
}

#[pymethods]
impl Watch {
    #[new]
    #[pyo3(signature = (look=None))]
    fn new(look: Option<Py<PyAny>>) -> Watch {
        Watch { control: Arc::new(Control::new()), told: Arc::default(), look }
    }

    /// Gives the request up: what waits for it fails soon.
    fn stop(&self) {
        self.control.stop();
    }

    /// Whether it was given up.
    #[getter]
    fn stopped(&self) -> bool {
        self.control.stopped()
    }

    /// Where it runs, once that is known; stored bytes that it is through with; all of them, 0 before that is known.
    #[getter]
    fn state(&self) -> (Option<&'static str>, u64, u64) {
        if let Some(all) = self.told.copies.get() {
            return (None, self.told.copied.load(Ordering::Relaxed).min(*all), *all);
        }
        let (done, total) = self.control.progress();
        // Positions are bytes, records or chunks; of a first pass. Those of later ones are shown from the beginning.
        let bytes = self.told.bytes.get().copied().unwrap_or(total);
        let part =
            |positions: u64| (u128::from(positions) * u128::from(bytes) / u128::from(total.max(1))) as u64;
        let place = self.told.place.get().copied();
        (place, part(done.min(total)), if total == 0 { 0 } else { bytes })
    }
}

/// What a request needs of whoever watches it, who may be nobody.
pub struct Watched<'a, 'py> {
    py: Python<'py>,
    look: Option<&'a Py<PyAny>>,
    /// What stops it and counts.
    pub control: Arc<Control>,
    /// What it says of itself.
    pub told: Arc<Told>,
}

impl<'a, 'py> Watched<'a, 'py> {
    pub fn by(py: Python<'py>, watch: Option<&'a Bound<'py, Watch>>) -> Watched<'a, 'py> {
        match watch.map(Bound::get) {
            None => Watched { py, look: None, control: Arc::new(Control::new()), told: Arc::default() },
            Some(watch) => Watched {
                py,
                look: watch.look.as_ref(),
                control: watch.control.clone(),
                told: watch.told.clone(),
            },
        }
    }

    /// Has work done that asks before it does what cannot be undone; see [`confirming`].
    pub fn wait_confirming<T: Send + 'static>(
        self,
        limit: Option<Duration>,
        work: impl FnOnce(&Confirm) -> Result<T, Failure> + Send + 'static,
    ) -> PyResult<T> {
        let Watched { py, look, control, .. } = self;
        let mut look = || look.map_or(Ok(()), |look| look.call0(py).map(|_| ()));
        confirming(py, &control, limit, &mut look, work)
    }

    /// Has the work done; see [`wait`].
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
