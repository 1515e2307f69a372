//! Where the objects of a file lie.

use std::ffi::{CString, c_int};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr::null_mut;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::abi::{Address, CLayout};
use super::{Inode, Mounted, checked};

/// Most bytes of the place of a storage daemon in the map of the cluster.
const MAX_CRUSH: usize = 4_096;

/// Most copies of an object, or parts of one in an erasure-coded pool.
const MAX_COPIES: usize = 64;

/// `AF_INET` and `AF_INET6` of Linux.
const INET: u16 = 2;
const INET6: u16 = 10;

/// How a file lies in objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileLayout {
    /// Bytes of a stripe. Never 0.
    pub unit: u64,
    /// Stripes that lie side by side in different objects. Never 0.
    pub count: u64,
    /// Bytes of an object: some whole stripes.
    pub object: u64,
}

impl Inode {
    fn c_layout(&self) -> CLayout {
        let mut layout = CLayout::default();
        // SAFETY: the handles are alive, and the library writes one structure.
        let _ = self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_ll_file_layout)(mount, self.handle.as_ptr(), &raw mut layout)
        });
        layout
    }

    /// How this file lies in objects.
    pub fn layout(&self) -> FileLayout {
        let CLayout { stripe_unit, stripe_count, object_size, .. } = self.c_layout();
        let unit = u64::from(stripe_unit).max(1);
        let object = u64::from(object_size).next_multiple_of(unit).max(unit);
        FileLayout { unit, count: u64::from(stripe_count).max(1), object }
    }

    /// Whether this client knows the map of the pool of this file. It gets the map with the first object that it reads.
    pub fn has_map(&self) -> bool {
        let Ok(pool) = i32::try_from(self.c_layout().pool) else { return false };
        // SAFETY: the mount is alive.
        let found = self
            .mounted
            .call(|functions, mount| unsafe { (functions.ceph_get_pool_replication)(mount, pool) });
        found.and_then(checked).is_ok()
    }
}

/// A file that is opened by its path, to find its objects.
pub(crate) struct LocatedFile<'a> {
    mounted: &'a Mounted,
    number: c_int,
}

impl LocatedFile<'_> {
    /// The number of the storage daemon from which the byte at an offset is read. The map of the pool must be [known](Inode::has_map):
    /// without it the library ends the process.
    pub fn daemon_of(&self, offset: u64) -> Result<u32, Errno> {
        let offset = i64::try_from(offset).map_err(|_| Errno::OVERFLOW)?;
        let mut daemons = [0; MAX_COPIES];
        // SAFETY: the mount is alive, the file is open, and the library writes at most as many numbers as there is room for.
        let found = checked(self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_get_file_extent_osds)(
                mount,
                self.number,
                offset,
                null_mut(),
                daemons.as_mut_ptr(),
                MAX_COPIES as c_int,
            )
        })?)?;
        let first = daemons.first().filter(|_| found > 0);
        first.and_then(|number| u32::try_from(*number).ok()).ok_or(Errno::NOENT)
    }
}

impl Drop for LocatedFile<'_> {
    fn drop(&mut self) {
        // SAFETY: the library opened it, and nobody uses it any more.
        let _ = self.mounted.call(|functions, mount| unsafe { (functions.ceph_close)(mount, self.number) });
    }
}

impl Mounted {
    /// Opens a file by its path below the folder that is mounted, with the rights of this process. Only its objects are looked for.
    pub fn open_path(&self, path: &str) -> Result<LocatedFile<'_>, Errno> {
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        // SAFETY: the mount is alive, and the path ends with NUL.
        let number = checked(self.call(|functions, mount| unsafe {
            (functions.ceph_open)(mount, path.as_ptr(), OFlags::RDONLY.bits() as c_int, 0)
        })?)?;
        Ok(LocatedFile { mounted: self, number: number as c_int })
    }

    /// The address of a storage daemon.
    pub fn address_of(&self, daemon: u32) -> Result<IpAddr, Errno> {
        let daemon = i32::try_from(daemon).map_err(|_| Errno::INVAL)?;
        let mut address = Address { family: 0, bytes: [0; 126] };
        // SAFETY: the mount is alive, and the library writes one structure.
        checked(self.call(|functions, mount| unsafe {
            (functions.ceph_get_osd_addr)(mount, daemon, &raw mut address)
        })?)?;
        // Behind the family come the port, and for version 6 the label of the flow.
        match (address.family, &address.bytes) {
            (INET, [_, _, a, b, c, d, ..]) => Ok(Ipv4Addr::new(*a, *b, *c, *d).into()),
            (INET6, bytes) => {
                let octets = bytes.get(6..22).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
                octets.map(|octets| Ipv6Addr::from(octets).into()).ok_or(Errno::AFNOSUPPORT)
            }
            _ => Err(Errno::AFNOSUPPORT),
        }
    }

    /// The name of the host of a storage daemon in the map of the cluster; `None` if the map has none.
    pub fn host_of(&self, daemon: u32) -> Result<Option<String>, Errno> {
        let daemon = i32::try_from(daemon).map_err(|_| Errno::INVAL)?;
        let mut path = vec![0u8; MAX_CRUSH];
        // SAFETY: the mount is alive, and the library writes at most as many bytes as the buffer has.
        let written = checked(self.call(|functions, mount| unsafe {
            (functions.ceph_get_osd_crush_location)(mount, daemon, path.as_mut_ptr().cast(), path.len())
        })?)?;
        path.truncate(written as usize);
        let mut texts = path.split(|byte| *byte == 0);
        while let (Some(kind), Some(name)) = (texts.next(), texts.next()) {
            if kind == b"host" {
                return Ok(std::str::from_utf8(name).ok().map(str::to_owned));
            }
        }
        Ok(None)
    }
}
