//! The source of a put, read piece by piece until it is stopped.

use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_runtime::{Control, FileParts};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::connection::here;
use crate::errors::Failure;
use crate::files::given_up;

/// A source, and the reason if reading it failed.
pub struct Source {
    from: From,
    stop: Arc<Control>,
    why: Why,
}

/// The failure of a source, for the function that started the put.
pub type Why = Arc<Mutex<Option<Failure>>>;

enum From {
    /// A plain file or one striped over directories, as one state of it, and how far it is read.
    File(Box<FileParts>, u64),
    /// A Python object with `read(n)`, which gives bytes.
    Object(Py<PyAny>),
}

impl Source {
    pub fn file(path: &Path, stop: &Arc<Control>) -> Result<Source, Failure> {
        let file = gristmill_client::open_file(&here(path)?, false)?;
        Ok(Source { from: From::File(Box::new(file), 0), stop: stop.clone(), why: Why::default() })
    }

    pub fn object(object: Py<PyAny>, stop: &Arc<Control>) -> Source {
        Source { from: From::Object(object), stop: stop.clone(), why: Why::default() }
    }

    pub fn why(&self) -> Why {
        self.why.clone()
    }

    fn next(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        if self.stop.stopped() {
            return Err(given_up());
        }
        match &mut self.from {
            From::File(file, at) => {
                let size =
                    usize::try_from(file.length - *at).map_or(buffer.len(), |left| left.min(buffer.len()));
                let Some(buffer) = buffer.get_mut(..size) else { return Ok(0) };
                file.read(*at..*at + size as u64, buffer)?;
                *at += size as u64;
                if *at == file.length {
                    // A source that changed meanwhile would leave a mixture.
                    file.parts.iter().try_for_each(|part| part.unchanged())?;
                }
                Ok(size)
            }
            From::Object(object) => {
                let read = Python::try_attach(|py| -> Result<usize, Failure> {
                    let given = object.bind(py).call_method1("read", (buffer.len(),))?;
                    let bytes = given.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
                    let room = buffer
                        .get_mut(..bytes.len())
                        .ok_or_else(|| Failure::usage("read(n) of the source gave more than n bytes"))?;
                    room.copy_from_slice(bytes);
                    Ok(bytes.len())
                });
                // No interpreter: the program ends.
                read.unwrap_or_else(|| Err(given_up()))
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.next(buffer).map_err(|failure| {
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
            io::Error::other("it cannot be read")
        })
    }
}
