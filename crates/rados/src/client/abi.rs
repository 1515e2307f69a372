//! The types and the functions of the C library (`rados/librados.h`), for Linux with 64 bits.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `rados_t`: a connection to a cluster.
pub(super) type CCluster = c_void;
/// `rados_ioctx_t`: a namespace of a pool.
pub(super) type CPool = c_void;
/// `rados_completion_t`: an operation that was begun.
pub(super) type CCompletion = c_void;
/// `rados_write_op_t`: actions that change an object together.
pub(super) type CWrite = c_void;
/// `rados_read_op_t`: actions that read an object.
pub(super) type CRead = c_void;
/// `rados_omap_iter_t`: entries of an object.
pub(super) type CEntries = c_void;
/// `rados_list_ctx_t`: a list of objects.
pub(super) type CList = c_void;

/// `struct timeval`.
#[repr(C)]
pub(super) struct Duration {
    pub seconds: i64,
    pub microseconds: i64,
}

/// `LIBRADOS_CREATE_EXCLUSIVE`.
pub(super) const CREATE_EXCLUSIVE: c_int = 1;
/// `LIBRADOS_OPERATION_FULL_TRY`: the operation fails in a full pool. Without it, it waits.
pub(super) const FULL_TRY: c_int = 64;
/// `LIBRADOS_OPERATION_FULL_FORCE`: the operation is done also in a full pool.
pub(super) const FULL_FORCE: c_int = 128;
/// `LIBRADOS_LOCK_FLAG_MAY_RENEW`.
pub(super) const MAY_RENEW: u8 = 1;
/// `LIBRADOS_CMPXATTR_OP_EQ`.
pub(super) const EQUAL: u8 = 1;

// The number is that of the library's interface, which all releases of Ceph since 2012 have. The newest of these functions came in 2018
// (Ceph 14), and `rados_blocklist_add` in 2021 (Ceph 16).
gristmill_ceph::c_library! { "librados.so.2", Functions {
    rados_create(*mut *mut CCluster, *const c_char) -> c_int;
    rados_conf_read_file(*mut CCluster, *const c_char) -> c_int;
    rados_conf_parse_env(*mut CCluster, *const c_char) -> c_int;
    rados_conf_set(*mut CCluster, *const c_char, *const c_char) -> c_int;
    rados_connect(*mut CCluster) -> c_int;
    rados_shutdown(*mut CCluster) -> ();
    rados_getaddrs(*mut CCluster, *mut *mut c_char) -> c_int;
    rados_blocklist_add(*mut CCluster, *const c_char, c_uint) -> c_int;
    rados_wait_for_latest_osdmap(*mut CCluster) -> c_int;
    rados_mon_command(*mut CCluster, *const *const c_char, usize, *const c_char, usize, *mut *mut c_char, *mut usize, *mut *mut c_char, *mut usize) -> c_int;
    rados_buffer_free(*mut c_char) -> ();
    rados_ioctx_create(*mut CCluster, *const c_char, *mut *mut CPool) -> c_int;
    rados_ioctx_set_namespace(*mut CPool, *const c_char) -> ();
    rados_set_pool_full_try(*mut CPool) -> ();
    rados_ioctx_destroy(*mut CPool) -> ();
    rados_nobjects_list_open(*mut CPool, *mut *mut CList) -> c_int;
    rados_nobjects_list_next(*mut CList, *mut *const c_char, *mut *const c_char, *mut *const c_char) -> c_int;
    rados_nobjects_list_close(*mut CList) -> ();
    rados_getxattr(*mut CPool, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
    rados_lock_exclusive(*mut CPool, *const c_char, *const c_char, *const c_char, *const c_char, *mut Duration, u8) -> c_int;
    rados_lock_shared(*mut CPool, *const c_char, *const c_char, *const c_char, *const c_char, *const c_char, *mut Duration, u8) -> c_int;
    rados_unlock(*mut CPool, *const c_char, *const c_char, *const c_char) -> c_int;
    rados_break_lock(*mut CPool, *const c_char, *const c_char, *const c_char, *const c_char) -> c_int;
    rados_list_lockers(*mut CPool, *const c_char, *const c_char, *mut c_int, *mut c_char, *mut usize, *mut c_char, *mut usize, *mut c_char, *mut usize, *mut c_char, *mut usize) -> isize;
    rados_aio_create_completion2(*mut c_void, *mut c_void, *mut *mut CCompletion) -> c_int;
    rados_aio_wait_for_complete(*mut CCompletion) -> c_int;
    rados_aio_get_return_value(*mut CCompletion) -> c_int;
    rados_aio_release(*mut CCompletion) -> ();
    rados_aio_read(*mut CPool, *const c_char, *mut CCompletion, *mut c_char, usize, u64) -> c_int;
    rados_create_write_op() -> *mut CWrite;
    rados_release_write_op(*mut CWrite) -> ();
    rados_write_op_assert_exists(*mut CWrite) -> ();
    rados_write_op_cmpxattr(*mut CWrite, *const c_char, u8, *const c_char, usize) -> ();
    rados_write_op_create(*mut CWrite, c_int, *const c_char) -> ();
    rados_write_op_write(*mut CWrite, *const c_char, usize, u64) -> ();
    rados_write_op_write_full(*mut CWrite, *const c_char, usize) -> ();
    rados_write_op_truncate(*mut CWrite, u64) -> ();
    rados_write_op_zero(*mut CWrite, u64, u64) -> ();
    rados_write_op_remove(*mut CWrite) -> ();
    rados_write_op_setxattr(*mut CWrite, *const c_char, *const c_char, usize) -> ();
    rados_write_op_omap_set2(*mut CWrite, *const *const c_char, *const *const c_char, *const usize, *const usize, usize) -> ();
    rados_write_op_omap_rm_keys2(*mut CWrite, *const *const c_char, *const usize, usize) -> ();
    rados_aio_write_op_operate(*mut CWrite, *mut CPool, *mut CCompletion, *const c_char, *mut i64, c_int) -> c_int;
    rados_create_read_op() -> *mut CRead;
    rados_release_read_op(*mut CRead) -> ();
    rados_read_op_omap_get_keys2(*mut CRead, *const c_char, u64, *mut *mut CEntries, *mut u8, *mut c_int) -> ();
    rados_read_op_omap_get_vals_by_keys2(*mut CRead, *const *const c_char, usize, *const usize, *mut *mut CEntries, *mut c_int) -> ();
    rados_read_op_exec(*mut CRead, *const c_char, *const c_char, *const c_char, usize, *mut *mut c_char, *mut usize, *mut c_int) -> ();
    rados_aio_read_op_operate(*mut CRead, *mut CPool, *mut CCompletion, *const c_char, c_int) -> c_int;
    rados_read_op_operate(*mut CRead, *mut CPool, *const c_char, c_int) -> c_int;
    rados_omap_get_next2(*mut CEntries, *mut *mut c_char, *mut *mut c_char, *mut usize, *mut usize) -> c_int;
    rados_omap_get_end(*mut CEntries) -> ();
}}
