//! The C library of Ceph (`libcephfs`), as safe functions. It is loaded when the first file system is mounted, so that a program runs
//! without it.
//!
//! All `unsafe` code of the crate is here. Its functions may be called by many threads at once with the same mounted file system, as
//! the library says. A handle of a file, of a folder or of an inode is used with the file system that gave it, which it keeps mounted.

#![allow(unsafe_code)]

mod abi;
mod at_exit;
mod mounted;
mod places;
mod user;

pub(crate) use abi::{Attributes, Time};
pub(crate) use at_exit::at_exit;
pub(crate) use mounted::{Inode, MountFailure, Mounted, OpenFile};
pub(crate) use places::{FileLayout, LocatedFile};
pub(crate) use user::User;

use gristmill_ceph::checked;
