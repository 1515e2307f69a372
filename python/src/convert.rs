//! Answers and reports as Python values.

use gristmill_kernel::Value;
use gristmill_runtime::Report;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// A value: `int` of any size, `float`, `str`, `bytes`, `list`, `dict`.
pub fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Int(n) => n.into_bound_py_any(py),
        Value::Float(x) => x.into_bound_py_any(py),
        Value::Text(text) => text.into_bound_py_any(py),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_bound_py_any(py),
        Value::List(values) => {
            let list = PyList::empty(py);
            for item in values {
                list.append(self::value(py, item)?)?;
            }
            list.into_bound_py_any(py)
        }
        Value::Array(array) => {
            let dict = PyDict::new(py);
            dict.set_item("type", array.dtype.name())?;
            dict.set_item("shape", array.shape.clone())?;
            dict.set_item("data", PyBytes::new(py, &array.data))?;
            dict.into_bound_py_any(py)
        }
        Value::Map(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                dict.set_item(*key, self::value(py, item)?)?;
            }
            dict.into_bound_py_any(py)
        }
    }
}

/// The report of a request, under the names of `gristmill run --json`. It has lanes only if this process folded,
/// because storage nodes have their own.
pub fn report<'py>(py: Python<'py>, report: &Report, folded_here: bool) -> PyResult<Bound<'py, PyDict>> {
    let places = PyList::empty(py);
    for place in &report.places {
        let one = PyDict::new(py);
        one.set_item("place", place.place)?;
        one.set_item("node", &place.node)?;
        one.set_item("records", place.records)?;
        one.set_item("bytes", place.bytes)?;
        one.set_item("why", &place.why)?;
        places.append(one)?;
    }
    let revisions = PyList::empty(py);
    for revision in &report.revisions {
        let one = PyDict::new(py);
        one.set_item("nodes", &revision.nodes)?;
        one.set_item("place", revision.place)?;
        one.set_item("after_seconds", revision.after.as_secs_f64())?;
        one.set_item("why", &revision.why)?;
        revisions.append(one)?;
    }
    let shortages = PyList::empty(py);
    for shortage in &report.shortages {
        let one = PyDict::new(py);
        one.set_item("node", &shortage.node)?;
        one.set_item("others", shortage.others)?;
        shortages.append(one)?;
    }
    let dict = PyDict::new(py);
    dict.set_item("elapsed_seconds", report.elapsed.as_secs_f64())?;
    dict.set_item("rounds", report.rounds)?;
    dict.set_item("lanes", folded_here.then_some(report.lanes))?;
    dict.set_item("bytes_read", report.bytes_read)?;
    dict.set_item("bytes_folded_in_storage", report.bytes_folded_in_storage)?;
    dict.set_item("bytes_moved", report.bytes_moved)?;
    dict.set_item("messages", report.messages)?;
    dict.set_item("bytes_to_client", report.bytes_to_client)?;
    dict.set_item("bytes_not_moved", report.bytes_not_moved)?;
    dict.set_item("chunks_settled", report.chunks_settled)?;
    dict.set_item("places", places)?;
    dict.set_item("revisions", revisions)?;
    dict.set_item("shortages", shortages)?;
    Ok(dict)
}
