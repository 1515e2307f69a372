//! Changes of objects. All actions of one change happen together or not at all.

use std::collections::VecDeque;
use std::ffi::CString;
use std::ptr::{null, null_mut};

use rustix::io::Errno;

use super::Pool;
use super::abi::{CREATE_EXCLUSIVE, CWrite, EQUAL, FULL_FORCE, FULL_TRY};
use super::begun::{Begun, MAX_IN_FLIGHT};

/// One action of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'a> {
    /// Fails with `EEXIST` if there is an object.
    MakeNew,
    /// Fails with `ENOENT` if there is no object.
    MustExist,
    /// Fails with `ECANCELED` if the attribute has another value. An attribute that is missing counts as empty.
    MustHave {
        name: &'a CString,
        value: &'a [u8],
    },
    Write {
        offset: u64,
        bytes: &'a [u8],
    },
    /// Replaces all bytes.
    WriteWhole(&'a [u8]),
    Truncate(u64),
    Zero {
        offset: u64,
        bytes: u64,
    },
    Remove,
    SetAttribute {
        name: &'a CString,
        value: &'a [u8],
    },
    /// Sets (`Some`) or removes an entry.
    Entry {
        key: &'a str,
        value: Option<&'a [u8]>,
    },
}

/// Actions on one object.
pub(crate) struct Change<'a> {
    pub name: CString,
    pub actions: Vec<Action<'a>>,
}

impl Change<'_> {
    /// A change that frees space is done in a full pool, too. Others fail there.
    fn flags(&self) -> i32 {
        let frees = |action: &Action<'_>| {
            matches!(action, Action::Remove | Action::Truncate(_) | Action::Zero { .. })
        };
        if self.actions.iter().any(frees) { FULL_FORCE } else { FULL_TRY }
    }
}

impl Pool {
    /// Changes one object. When it returns, the change is on the disks of all copies.
    pub fn change(&self, name: &CString, actions: Vec<Action<'_>>) -> Result<(), Errno> {
        self.begin(&Change { name: name.clone(), actions })?.end().map(drop)
    }

    /// Changes one object, also in a full pool.
    pub fn change_in_full_pool(&self, name: &CString, actions: Vec<Action<'_>>) -> Result<(), Errno> {
        self.begin_with(&Change { name: name.clone(), actions }, FULL_FORCE)?.end().map(drop)
    }

    /// Changes objects, [`MAX_IN_FLIGHT`] at once and those of one object in order, and waits for all. The error is the first one.
    pub fn change_all<'a>(&self, changes: impl IntoIterator<Item = Change<'a>>) -> Result<(), Errno> {
        self.change_some(changes, None)
    }

    /// Does the same, and takes `done` for a success.
    pub fn change_each<'a>(
        &self,
        changes: impl IntoIterator<Item = Change<'a>>,
        done: Errno,
    ) -> Result<(), Errno> {
        self.change_some(changes, Some(done))
    }

    fn change_some<'a>(
        &self,
        changes: impl IntoIterator<Item = Change<'a>>,
        done: Option<Errno>,
    ) -> Result<(), Errno> {
        let mut failed = None;
        let end = |begun: Option<Begun>, failed: &mut Option<Errno>| {
            let ended = begun.map_or(Ok(0), Begun::end);
            *failed = failed.or(ended.err().filter(|errno| Some(*errno) != done));
        };
        let mut begun = VecDeque::new();
        for change in changes {
            if begun.len() >= MAX_IN_FLIGHT {
                end(begun.pop_front(), &mut failed);
            }
            if failed.is_some() {
                break;
            }
            match self.begin(&change) {
                Ok(operation) => begun.push_back(operation),
                Err(errno) => failed = Some(errno),
            }
        }
        while !begun.is_empty() {
            end(begun.pop_front(), &mut failed);
        }
        failed.map_or(Ok(()), Err)
    }

    fn begin(&self, change: &Change<'_>) -> Result<Begun, Errno> {
        self.begin_with(change, change.flags())
    }

    fn begin_with(&self, change: &Change<'_>, flags: i32) -> Result<Begun, Errno> {
        // SAFETY: the operation is released below.
        let operation = unsafe { (self.functions.rados_create_write_op)() };
        for action in &change.actions {
            self.add(operation, *action);
        }
        let begun = Begun::new(self.functions, |completion| {
            // SAFETY: the operation has its own copy of all bytes, and the name ends with NUL and is copied.
            unsafe {
                (self.functions.rados_aio_write_op_operate)(
                    operation,
                    self.io(),
                    completion,
                    change.name.as_ptr(),
                    null_mut(),
                    flags,
                )
            }
        });
        // SAFETY: the library has taken the actions out of the operation.
        unsafe { (self.functions.rados_release_write_op)(operation) };
        begun
    }

    /// Adds an action to an operation, which copies its bytes.
    fn add(&self, operation: *mut CWrite, action: Action<'_>) {
        let functions = self.functions;
        // SAFETY: the operation is alive, the lengths are those of the slices, and names end with NUL.
        unsafe {
            match action {
                Action::MakeNew => {
                    (functions.rados_write_op_create)(operation, CREATE_EXCLUSIVE, null());
                }
                Action::MustExist => (functions.rados_write_op_assert_exists)(operation),
                Action::MustHave { name, value } => {
                    (functions.rados_write_op_cmpxattr)(
                        operation,
                        name.as_ptr(),
                        EQUAL,
                        value.as_ptr().cast(),
                        value.len(),
                    );
                }
                Action::Write { offset, bytes } => {
                    (functions.rados_write_op_write)(operation, bytes.as_ptr().cast(), bytes.len(), offset);
                }
                Action::WriteWhole(bytes) => {
                    (functions.rados_write_op_write_full)(operation, bytes.as_ptr().cast(), bytes.len());
                }
                Action::Truncate(length) => (functions.rados_write_op_truncate)(operation, length),
                Action::Zero { offset, bytes } => {
                    (functions.rados_write_op_zero)(operation, offset, bytes);
                }
                Action::Remove => (functions.rados_write_op_remove)(operation),
                Action::SetAttribute { name, value } => {
                    (functions.rados_write_op_setxattr)(
                        operation,
                        name.as_ptr(),
                        value.as_ptr().cast(),
                        value.len(),
                    );
                }
                Action::Entry { key, value } => {
                    let (keys, key_bytes) = ([key.as_ptr().cast()], [key.len()]);
                    match value {
                        Some(value) => {
                            let (values, value_bytes) = ([value.as_ptr().cast()], [value.len()]);
                            (functions.rados_write_op_omap_set2)(
                                operation,
                                keys.as_ptr(),
                                values.as_ptr(),
                                key_bytes.as_ptr(),
                                value_bytes.as_ptr(),
                                1,
                            );
                        }
                        None => {
                            (functions.rados_write_op_omap_rm_keys2)(
                                operation,
                                keys.as_ptr(),
                                key_bytes.as_ptr(),
                                1,
                            );
                        }
                    }
                }
            }
        }
    }
}
