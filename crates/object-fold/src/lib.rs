//! Folds over a part of one object, as a device or a storage daemon runs them.
//!
//! A storage node asks for such a fold: it sends a [`FoldOrder`] with [`Span`]s, the records that lie in the object. The other side reads
//! the object, folds these records with a built-in kernel ([`fold_object`]) and sends the states back ([`Folded`]). The object class of
//! Ceph is the first such side. The node joins the states as it joins those of its own folds, so the bits of the answer are the same.
//!
//! The messages say everything: the kernel with its parameters, the pass, the records. The other side keeps nothing between two of them.
//! It may fold only a part, because an object ends early, a kernel fails, or the time is over. The node folds the rest itself, so errors have
//! the same text and place as without it. [`split_spans`] cuts records at the ends of objects.
//!
//! # Example
//! ```
//! use gristmill_kernel::{ByteOrder, DType, Input, catalog};
//! use gristmill_object_fold::{Binding, FoldOrder, Folded, Span, fold_object};
//!
//! let binding = Binding::new("sum", &[], Input::elements(DType::F64), ByteOrder::Little);
//! let order = FoldOrder { binding, round: 0, shared: [].into(), last: false, extent: 0..100 };
//! // Records 10 to 12 of a file are the first three of this object.
//! let object: Vec<u8> = [1.0, 2.0, 4.0].iter().flat_map(|x: &f64| x.to_le_bytes()).collect();
//! let spans = [Span { offset: 0, records: 10..13 }];
//! let message = order.encode(&spans)?;
//!
//! // The other side:
//! let (order, asked) = FoldOrder::decode(&message)?;
//! let read = &mut |offset: u64, length: usize| {
//!     let bytes = object.get(offset as usize..).unwrap_or(&[]);
//!     Some(bytes[..bytes.len().min(length)].to_vec())
//! };
//! let answer = fold_object(&order, &asked, read, &mut || false)?.encode()?;
//!
//! let folded = Folded::decode(&answer, &spans)?;
//! assert_eq!(folded.states[0].records, [10..13]);
//! # Ok::<(), gristmill_object_fold::FoldError>(())
//! ```

mod binding;
mod error;
mod fold;
mod folded;
mod folder;
mod order;
mod read_time;
mod reading;
mod span;

pub use binding::{Binding, MAX_PARAMS, MAX_RECORD, MAX_STATE, check_foldable};
pub use error::FoldError;
pub use fold::{FIRST_BLOCK, LARGEST_BLOCK, fold_object};
pub use folded::{Folded, FoldedState, MAX_ANSWER};
pub use folder::{FoldPolicy, FoldRefusal, ObjectFolder};
pub use order::{FORM, FoldOrder, MAX_MESSAGE, MAX_POSITION, MAX_SPANS};
pub use read_time::ReadTimes;
pub use reading::{LONGEST_READ, ReadObject};
pub use span::{PieceSpans, Span, split_spans};
