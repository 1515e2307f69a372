//! The types and the functions of the C library (`cephfs/libcephfs.h`, `cephfs/ceph_ll_client.h`), for Linux with 64 bits.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A mounted file system.
pub(super) type CMount = c_void;
/// A file or folder.
pub(super) type CInode = c_void;
/// An opened file.
pub(super) type COpen = c_void;
/// An opened folder.
pub(super) type CFolder = c_void;
/// A user with groups.
pub(super) type CUser = c_void;

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time {
    pub seconds: i64,
    pub nanoseconds: i64,
}

/// `struct ceph_statx`: the attributes of a file or folder.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    pub mask: u32,
    pub block: u32,
    pub links: u32,
    pub uid: u32,
    pub gid: u32,
    pub mode: u16,
    pub inode: u64,
    pub size: u64,
    pub blocks: u64,
    /// The number of the snapshot.
    pub device: u64,
    pub special: u64,
    pub accessed: Time,
    pub changed: Time,
    pub modified: Time,
    pub made: Time,
    /// It grows with each change of the content or of the attributes.
    pub version: u64,
}

/// `CEPH_STATX_BASIC_STATS`, `CEPH_STATX_BTIME` and `CEPH_STATX_VERSION`.
pub(super) const ALL_ATTRIBUTES: c_uint = 0x1fff;

/// `struct dirent` of Linux.
#[repr(C)]
pub(super) struct Name {
    inode: u64,
    offset: i64,
    length: u16,
    kind: u8,
    pub name: [c_char; 256],
}

/// `struct ceph_file_layout`.
#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub(super) struct CLayout {
    pub stripe_unit: u32,
    pub stripe_count: u32,
    pub object_size: u32,
    hash: u32,
    object_stripe_unit: u32,
    preferred: u32,
    pub pool: u32,
}

/// `struct sockaddr_storage`.
#[repr(C, align(8))]
pub(super) struct Address {
    pub family: u16,
    pub bytes: [u8; 126],
}

// The number is that of the library's interface, which all releases of Ceph since 2016 have.
gristmill_ceph::c_library! { "libcephfs.so.2", Functions {
    ceph_create(*mut *mut CMount, *const c_char) -> c_int;
    ceph_conf_read_file(*mut CMount, *const c_char) -> c_int;
    ceph_conf_parse_env(*mut CMount, *const c_char) -> c_int;
    ceph_conf_set(*mut CMount, *const c_char, *const c_char) -> c_int;
    ceph_select_filesystem(*mut CMount, *const c_char) -> c_int;
    ceph_mount(*mut CMount, *const c_char) -> c_int;
    ceph_unmount(*mut CMount) -> c_int;
    ceph_release(*mut CMount) -> c_int;
    ceph_userperm_new(c_uint, c_uint, c_int, *const c_uint) -> *mut CUser;
    ceph_userperm_destroy(*mut CUser) -> ();
    ceph_ll_lookup_root(*mut CMount, *mut *mut CInode) -> c_int;
    ceph_ll_lookup(*mut CMount, *mut CInode, *const c_char, *mut *mut CInode, *mut Attributes, c_uint, c_uint, *const CUser) -> c_int;
    ceph_ll_put(*mut CMount, *mut CInode) -> c_int;
    ceph_ll_getattr(*mut CMount, *mut CInode, *mut Attributes, c_uint, c_uint, *const CUser) -> c_int;
    ceph_ll_readlink(*mut CMount, *mut CInode, *mut c_char, usize, *const CUser) -> c_int;
    ceph_ll_open(*mut CMount, *mut CInode, c_int, *mut *mut COpen, *const CUser) -> c_int;
    ceph_ll_read(*mut CMount, *mut COpen, i64, u64, *mut c_char) -> c_int;
    ceph_ll_close(*mut CMount, *mut COpen) -> c_int;
    ceph_ll_opendir(*mut CMount, *mut CInode, *mut *mut CFolder, *const CUser) -> c_int;
    ceph_ll_releasedir(*mut CMount, *mut CFolder) -> c_int;
    ceph_readdir_r(*mut CMount, *mut CFolder, *mut Name) -> c_int;
    ceph_ll_file_layout(*mut CMount, *mut CInode, *mut CLayout) -> c_uint;
    ceph_open(*mut CMount, *const c_char, c_int, c_uint) -> c_int;
    ceph_close(*mut CMount, c_int) -> c_int;
    ceph_get_file_extent_osds(*mut CMount, c_int, i64, *mut i64, *mut c_int, c_int) -> c_int;
    ceph_get_pool_replication(*mut CMount, c_int) -> c_int;
    ceph_get_osd_addr(*mut CMount, c_int, *mut Address) -> c_int;
    ceph_get_osd_crush_location(*mut CMount, c_int, *mut c_char, usize) -> c_int;
}}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_sizes_of_the_header() {
        assert_eq!(size_of::<Attributes>(), 24 + 5 * 8 + 4 * 16 + 8);
        assert_eq!(std::mem::offset_of!(Attributes, inode), 24);
        assert_eq!(std::mem::offset_of!(Name, name), 19);
        assert_eq!((size_of::<CLayout>(), size_of::<Address>()), (28, 128));
    }
}
