//! The laws of the fold contract, tested for any kernel.
//!
//! A kernel that passes gives the same answer for every way in which its records are cut into blocks, saved and
//! restored, merged, distributed over targets, folded by several lanes or by a crew whose members answer in any order,
//! interrupted and resumed. Only a [reference](Case::with_reference), a naive program over the whole input, shows that
//! the answer is right. Use both in the tests of your own kernels:
//! ```
//! use gristmill_conformance::{Case, check};
//! use gristmill_kernel::{DType, Input, Value, catalog};
//!
//! let input = Input::elements(DType::F64);
//! let data: Vec<u8> = (0..100).flat_map(|i| f64::from(i).to_le_bytes()).collect();
//! let kernel = catalog::bind("count", &[], &input)?;
//! let naive = |data: &[u8]| Value::Map(vec![("count", (data.len() as u64 / 8).into())]);
//! check(&Case::new(kernel, input, data).with_reference(naive), 1, 50)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! The error is a sentence. It names the broken law, the setup and the result.
//! ```
//! use gristmill_conformance::{Case, Law, check, samples::Forgetful};
//! use gristmill_kernel::{DType, Input};
//! use std::sync::Arc;
//!
//! let input = Input::elements(DType::F64);
//! let data: Vec<u8> = (0..100).flat_map(|i| f64::from(i).to_le_bytes()).collect();
//! let broken = check(&Case::new(Arc::new(Forgetful), input, data), 1, 50).unwrap_err();
//! assert_eq!(broken.law, Law::Save);
//! println!("{broken}");
//! ```
//!
//! [`samples`] has small kernels, one for each feature of the contract.

mod answer;
mod case;
mod crew;
mod fold_trial;
mod group;
mod kept;
mod law;
mod laws;
mod placement;
pub mod samples;

pub use answer::Answer;
pub use case::Case;
pub use law::{BrokenLaw, Law};
pub use laws::check;
