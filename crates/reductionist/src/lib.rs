//! The HTTP API of Reductionist 0.13: requests, reductions of one chunk, and answers. PyActiveStorage and cf-python speak it.
//!
//! A [`Request`] is the JSON body of `POST /v2/{operation}/`. It names the bytes of one chunk in an object, and how they are stored.
//! The caller reads [`stored_range`](Request::stored_range) of the object, and [`reduce`] undoes compression and filters, selects
//! elements and reduces them. [`Reduced::to_cbor`] is the body of the answer.
//!
//! Results are those of NumPy's masked arrays. Integers keep their type, and their sums wrap. Sums of floats are rounded once to the
//! type of the elements, from an exact sum or, if there are several cells, from a binned one
//! ([`BinnedCells`](gristmill_exact::BinnedCells)). A NaN that is not missing makes a sum, a minimum and a maximum NaN. (Reductionist
//! adds `f32` in `f32`, and fails for the minimum of NaNs.)
//!
//! ```
//! use gristmill_reductionist::{Operation, Request, reduce};
//!
//! let request = Request::parse(
//!     br#"{"interface_type": "s3", "url": "http://host/bucket/x", "dtype": "int32", "byte_order": "big", "shape": [2, 3],
//!          "axis": 1, "missing": {"missing_value": -1}}"#,
//! )?;
//! let stored: Vec<u8> = [1i32, -1, 3, 10, 20, 30].iter().flat_map(|x| x.to_be_bytes()).collect();
//! let sums = reduce(&request, Operation::Sum, &stored)?;
//! assert_eq!((sums.shape, sums.count), (vec![2], vec![2, 3]));
//! assert_eq!(sums.bytes, [4i32, 60].map(i32::to_le_bytes).concat());
//! # Ok::<(), gristmill_reductionist::RequestError>(())
//! ```

mod answer;
mod cells;
mod element;
mod error;
mod missing;
mod reduce;
mod request;
mod selection;

pub use answer::Reduced;
pub use error::RequestError;
pub use reduce::reduce;
pub use request::{Compression, DataType, Filter, Interface, MAX_AXES, Operation, Order, Request};
pub use selection::Slice;
