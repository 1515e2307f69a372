//! The C library of RADOS (`librados`), as safe functions. It is loaded when the first pool is opened, so that a program runs without it.
//!
//! All `unsafe` code of the crate is here. Its functions may be called by many threads at once, as the library says. The buffers of an
//! operation live until it has ended, because each function here waits for the operations that it began.

#![allow(unsafe_code)]

mod abi;
mod action;
mod begun;
mod call;
mod locker;
mod monitor;
mod names;
mod pool;
mod reading;

pub(crate) use action::{Action, Change};
pub use begun::MAX_IN_FLIGHT;
pub(crate) use call::Call;
pub(crate) use locker::{OWNED, SHARED};
pub use pool::{ANSWER_PATIENCE, MONITOR_PATIENCE};
pub(crate) use pool::{ConnectFailure, Pool};
pub(crate) use reading::Reading;
