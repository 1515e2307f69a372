//! A mounted file system, and what is opened in it.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{NonNull, null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, getpid};

use super::abi::{ALL_ATTRIBUTES, Attributes, CFolder, CInode, CMount, COpen, Functions, Name, functions};
use super::{User, checked};

/// Pause between two looks whether calls still run.
const UNMOUNT_AGAIN: Duration = Duration::from_millis(1);

/// Wait for calls of a session that nobody uses any more. There are none.
const NO_CALL_RUNS: Duration = Duration::from_secs(1);

/// Most bytes of a symbolic link.
const MAX_LINK: usize = 4_096;

/// A connection to the servers of a file system.
pub(crate) struct Mounted {
    pub(super) mount: NonNull<CMount>,
    pub(super) functions: &'static Functions,
    /// The process whose threads serve it.
    process: Pid,
    /// Calls that run hold it. Who unmounts waits for them: the library frees what they use.
    running: RwLock<()>,
    ended: AtomicBool,
}

// SAFETY: every function of the library may be called from every thread, with the same mount at once.
unsafe impl Send for Mounted {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mounted {}

/// Why a file system is not mounted.
#[derive(Clone, Debug)]
pub(crate) enum MountFailure {
    /// The library cannot be loaded.
    NoLibrary(String),
    /// An option, or the file with the configuration.
    Configuration(String, Errno),
    /// The servers.
    Mount(Errno),
}

impl Mounted {
    /// Connects as a user of Ceph (`id`), and mounts a folder of a file system.
    ///
    /// # Errors
    /// It fails if the library is missing, if the configuration cannot be read, and if the servers do not answer or refuse.
    pub fn mount(
        id: &CStr,
        configuration: Option<&CStr>,
        options: &[(&CStr, &CStr)],
        file_system: Option<&CStr>,
        folder: &CStr,
    ) -> Result<Mounted, MountFailure> {
        let functions = functions().map_err(MountFailure::NoLibrary)?;
        let mut mount = null_mut();
        // SAFETY: the texts end with NUL, and the library writes one pointer.
        let created = unsafe { (functions.ceph_create)(&raw mut mount, id.as_ptr()) };
        checked(created).map_err(MountFailure::Mount)?;
        let mount = NonNull::new(mount).ok_or(MountFailure::Mount(Errno::NOMEM))?;
        // From here on dropping releases it.
        let mounted = Mounted {
            mount,
            functions,
            process: getpid(),
            running: RwLock::new(()),
            ended: AtomicBool::new(false),
        };
        let at = mount.as_ptr();
        let configured = |what: &str, returned| {
            checked(returned).map_err(|errno| MountFailure::Configuration(what.to_owned(), errno)).map(drop)
        };
        let path = configuration.map_or(null(), CStr::as_ptr);
        // SAFETY: the mount was created and is not mounted yet; the texts end with NUL.
        unsafe {
            let shown = configuration.map_or_else(|| "ceph.conf".into(), CStr::to_string_lossy);
            configured(&shown, (functions.ceph_conf_read_file)(at, path))?;
            configured("CEPH_ARGS", (functions.ceph_conf_parse_env)(at, null()))?;
            for (name, value) in options {
                let shown = name.to_string_lossy();
                configured(&shown, (functions.ceph_conf_set)(at, name.as_ptr(), value.as_ptr()))?;
            }
            if let Some(name) = file_system {
                let selected = (functions.ceph_select_filesystem)(at, name.as_ptr());
                checked(selected).map_err(MountFailure::Mount)?;
            }
            checked((functions.ceph_mount)(at, folder.as_ptr())).map_err(MountFailure::Mount)?;
        }
        Ok(mounted)
    }

    /// Whether it is of this process, and not of the one from which this was forked, whose threads are missing here.
    pub fn is_of_this_process(&self) -> bool {
        self.process == getpid()
    }

    /// Calls the library, unless the session has ended or belongs to another process.
    pub(super) fn call<T>(
        &self,
        call: impl FnOnce(&'static Functions, *mut CMount) -> T,
    ) -> Result<T, Errno> {
        let ended = || self.ended.load(Ordering::SeqCst) || !self.is_of_this_process();
        if ended() {
            return Err(Errno::NOTCONN);
        }
        let _running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        if ended() {
            return Err(Errno::NOTCONN);
        }
        Ok(call(self.functions, self.mount.as_ptr()))
    }

    /// Ends the session with the servers, so that other clients need not wait for this one. Later calls fail. Calls that run are waited
    /// for; if one runs longer than `patience`, the session is left as it is.
    pub fn unmount(&self, patience: Duration) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
        let last = Instant::now() + patience;
        while Instant::now() < last {
            if let Ok(_alone) = self.running.try_write() {
                // SAFETY: the mount is alive, and no call runs or begins.
                unsafe { (self.functions.ceph_unmount)(self.mount.as_ptr()) };
                return;
            }
            std::thread::sleep(UNMOUNT_AGAIN);
        }
    }

    /// The folder that is mounted.
    pub fn root(self: &Arc<Mounted>) -> Result<Inode, Errno> {
        let mut inode = null_mut();
        // SAFETY: the library writes one pointer.
        let looked_up =
            self.call(|functions, mount| unsafe { (functions.ceph_ll_lookup_root)(mount, &raw mut inode) })?;
        checked(looked_up)?;
        Inode::new(self, inode)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_of_this_process() {
            self.unmount(NO_CALL_RUNS);
            // SAFETY: everything that was opened keeps the mount, so nothing is open any more.
            unsafe { (self.functions.ceph_release)(self.mount.as_ptr()) };
        }
    }
}

/// A file, folder or link.
pub(crate) struct Inode {
    pub(super) mounted: Arc<Mounted>,
    pub(super) handle: NonNull<CInode>,
}

// SAFETY: the library counts its users, and locks it for each call.
unsafe impl Send for Inode {}
// SAFETY: as for `Send`.
unsafe impl Sync for Inode {}

impl Inode {
    fn new(mounted: &Arc<Mounted>, handle: *mut CInode) -> Result<Inode, Errno> {
        let handle = NonNull::new(handle).ok_or(Errno::IO)?;
        Ok(Inode { mounted: mounted.clone(), handle })
    }

    /// Looks up a name in this folder, which the user must be allowed to search.
    pub fn look_up(&self, name: &str, user: &User) -> Result<(Inode, Attributes), Errno> {
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let (mut inode, mut found) = (null_mut(), Attributes::default());
        // SAFETY: the handles are alive, the name ends with NUL, and the library writes one pointer and one structure.
        checked(self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_ll_lookup)(
                mount,
                self.handle.as_ptr(),
                name.as_ptr(),
                &raw mut inode,
                &raw mut found,
                ALL_ATTRIBUTES,
                0,
                user.handle(),
            )
        })?)?;
        Ok((Inode::new(&self.mounted, inode)?, found))
    }

    /// The attributes now. A program that writes to the file is asked for them.
    pub fn attributes(&self, user: &User) -> Result<Attributes, Errno> {
        let mut found = Attributes::default();
        // SAFETY: the handles are alive, and the library writes one structure.
        checked(self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_ll_getattr)(
                mount,
                self.handle.as_ptr(),
                &raw mut found,
                ALL_ATTRIBUTES,
                0,
                user.handle(),
            )
        })?)?;
        Ok(found)
    }

    /// The target of this symbolic link.
    pub fn target(&self, user: &User) -> Result<String, Errno> {
        let mut target = vec![0u8; MAX_LINK];
        // SAFETY: the handles are alive, and the library writes at most as many bytes as the buffer has.
        let written = checked(self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_ll_readlink)(
                mount,
                self.handle.as_ptr(),
                target.as_mut_ptr().cast::<c_char>(),
                target.len(),
                user.handle(),
            )
        })?)?;
        target.truncate(written as usize);
        String::from_utf8(target).map_err(|_| Errno::ILSEQ)
    }

    /// Opens this file to read it, which the user must be allowed to. Programs that write to it give what they hold to the cluster.
    pub fn open(&self, user: &User) -> Result<OpenFile, Errno> {
        let mut file = null_mut();
        // SAFETY: the handles are alive, and the library writes one pointer.
        checked(self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_ll_open)(
                mount,
                self.handle.as_ptr(),
                rustix::fs::OFlags::RDONLY.bits() as i32,
                &raw mut file,
                user.handle(),
            )
        })?)?;
        let handle = NonNull::new(file).ok_or(Errno::IO)?;
        Ok(OpenFile { mounted: self.mounted.clone(), handle })
    }

    /// Calls `each` with all names of this folder, also `.` and `..`. The user must be allowed to read it. Names that are not UTF-8 are left out.
    pub fn names(&self, user: &User, mut each: impl FnMut(&str)) -> Result<(), Errno> {
        let mut opened = null_mut();
        // SAFETY: the handles are alive, and the library writes one pointer.
        checked(self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_ll_opendir)(mount, self.handle.as_ptr(), &raw mut opened, user.handle())
        })?)?;
        let folder = OpenFolder { mounted: &self.mounted, handle: NonNull::new(opened).ok_or(Errno::IO)? };
        loop {
            // SAFETY: all bytes of the structure may be zero.
            let mut name: Name = unsafe { std::mem::zeroed() };
            // SAFETY: the handles are alive, and the library writes one structure.
            let read = self.mounted.call(|functions, mount| unsafe {
                (functions.ceph_readdir_r)(mount, folder.handle.as_ptr(), &raw mut name)
            })?;
            if checked(read)? == 0 {
                return Ok(());
            }
            let bytes = name.name.map(|byte| byte as u8);
            let text = CStr::from_bytes_until_nul(&bytes).ok().and_then(|text| text.to_str().ok());
            text.into_iter().for_each(&mut each);
        }
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        // SAFETY: the library counted this user of the inode once.
        let _ = self
            .mounted
            .call(|functions, mount| unsafe { (functions.ceph_ll_put)(mount, self.handle.as_ptr()) });
    }
}

/// An opened folder.
struct OpenFolder<'a> {
    mounted: &'a Mounted,
    handle: NonNull<CFolder>,
}

impl Drop for OpenFolder<'_> {
    fn drop(&mut self) {
        // SAFETY: the library opened it, and nobody uses it any more.
        let _ = self
            .mounted
            .call(|functions, mount| unsafe { (functions.ceph_ll_releasedir)(mount, self.handle.as_ptr()) });
    }
}

/// An opened file.
pub(crate) struct OpenFile {
    mounted: Arc<Mounted>,
    handle: NonNull<COpen>,
}

// SAFETY: every function of the library may be called from every thread, with the same file at once. Reads name their offset.
unsafe impl Send for OpenFile {}
// SAFETY: as for `Send`.
unsafe impl Sync for OpenFile {}

impl OpenFile {
    /// Reads bytes from an offset. Returns their number, which is less than asked for at the end of the file. Holes are zeros.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<usize, Errno> {
        // The library ends the process if it must compute the objects of no bytes.
        if out.is_empty() {
            return Ok(0);
        }
        // SAFETY: the buffer has as many bytes.
        unsafe { self.read_to(offset, out.as_mut_ptr(), out.len()) }
    }

    /// Appends at most `len` bytes from an offset. Returns their number, as [`OpenFile::read`] does.
    pub fn append(&self, offset: u64, out: &mut Vec<u8>, len: usize) -> Result<usize, Errno> {
        out.reserve(len);
        if len == 0 {
            return Ok(0);
        }
        let filled = out.len();
        // SAFETY: there is room for `len` bytes behind those that are filled.
        let read = unsafe { self.read_to(offset, out.as_mut_ptr().add(filled), len)? };
        // SAFETY: the library has written that many bytes there, which are no more than `len`.
        unsafe { out.set_len(filled + read.min(len)) };
        Ok(read)
    }

    /// Reads at most `len` bytes. `len` is not 0.
    ///
    /// # Safety
    /// There is room for `len` bytes at `to`, which nobody else uses.
    unsafe fn read_to(&self, offset: u64, to: *mut u8, len: usize) -> Result<usize, Errno> {
        let offset = i64::try_from(offset).map_err(|_| Errno::OVERFLOW)?;
        // SAFETY: the handles are alive, and the library writes at most as many bytes as it is told.
        let read = checked(self.mounted.call(|functions, mount| unsafe {
            (functions.ceph_ll_read)(mount, self.handle.as_ptr(), offset, len as u64, to.cast::<c_char>())
        })?)?;
        Ok(read as usize)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: the library opened it, and nobody uses it any more.
        let _ = self
            .mounted
            .call(|functions, mount| unsafe { (functions.ceph_ll_close)(mount, self.handle.as_ptr()) });
    }
}
