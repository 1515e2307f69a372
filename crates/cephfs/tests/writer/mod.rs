//! Another client of the file system, with the key of the administrator: it writes what the tests read.

#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::{Library, Symbol};

pub struct Writer {
    library: Library,
    mount: *mut c_void,
}

// SAFETY: all functions of the library may be called from every thread.
unsafe impl Send for Writer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Writer {}

const CREATE: c_int = 0o100 | 0o1;
const TRUNCATE: c_int = 0o1000;

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// A path from the root.
fn path(path: &str) -> CString {
    text(&format!("/{path}"))
}

#[track_caller]
fn checked(returned: c_int) -> c_int {
    assert!(returned >= 0, "{}", std::io::Error::from_raw_os_error(-returned));
    returned
}

/// Calls a function of the library with these types.
macro_rules! call {
    ($writer:expr, $name:ident($($value:expr => $argument:ty),*)) => {{
        // SAFETY: the types are those of the header, and the pointers are alive.
        unsafe {
            let name = concat!(stringify!($name), "\0").as_bytes();
            let function: Symbol<'_, unsafe extern "C" fn($($argument),*) -> c_int> = $writer.library.get(name).unwrap();
            checked(function($($value),*))
        }
    }};
}

impl Writer {
    /// The one of all tests. It is never unmounted.
    pub fn of_all_tests() -> &'static Writer {
        static WRITER: OnceLock<Writer> = OnceLock::new();
        WRITER.get_or_init(|| {
            assert!(std::env::var_os("CEPH_CONF").is_some(), "CEPH_CONF is not set; run the tests with 'make test-ceph'");
            // SAFETY: its initialisers ask nothing of the program.
            let library = unsafe { Library::new("libcephfs.so.2") }.unwrap();
            let mut writer = Writer { library, mount: std::ptr::null_mut() };
            let (id, nothing) = (text("admin"), std::ptr::null::<c_char>());
            let mut mount = std::ptr::null_mut();
            call!(writer, ceph_create(&raw mut mount => *mut *mut c_void, id.as_ptr() => *const c_char));
            writer.mount = mount;
            call!(writer, ceph_conf_read_file(mount => *mut c_void, nothing => *const c_char));
            for (name, value) in [("log_file", ""), ("client_permissions", "false")] {
                let (name, value) = (text(name), text(value));
                call!(writer, ceph_conf_set(mount => *mut c_void, name.as_ptr() => *const c_char, value.as_ptr() => *const c_char));
            }
            call!(writer, ceph_mount(mount => *mut c_void, text("/").as_ptr() => *const c_char));
            writer
        })
    }

    pub fn make_folders(&self, folder: &str) {
        call!(self, ceph_mkdirs(self.mount => *mut c_void, path(folder).as_ptr() => *const c_char, 0o755 => u32));
    }

    fn open_with(&self, file: &str, flags: c_int) -> c_int {
        call!(self, ceph_open(self.mount => *mut c_void, path(file).as_ptr() => *const c_char, flags => c_int, 0o644 => u32))
    }

    /// Opens a file to write to it.
    pub fn open(&self, file: &str) -> c_int {
        self.open_with(file, CREATE)
    }

    /// Writes to an open file, perhaps only to the memory of this client.
    pub fn write_open(&self, open: c_int, offset: i64, bytes: &[u8]) {
        // The library ends the process if it writes nothing.
        if bytes.is_empty() {
            return;
        }
        let (from, length) = (bytes.as_ptr().cast::<c_char>(), bytes.len() as i64);
        let written = call!(self, ceph_write(self.mount => *mut c_void, open => c_int, from => *const c_char, length => i64, offset => i64));
        assert_eq!(written as usize, bytes.len());
    }

    pub fn close(&self, open: c_int) {
        call!(self, ceph_close(self.mount => *mut c_void, open => c_int));
    }

    /// Writes at an offset of a file.
    pub fn write(&self, file: &str, offset: i64, bytes: &[u8]) {
        let open = self.open(file);
        self.write_open(open, offset, bytes);
        self.close(open);
    }

    /// Writes a file, or replaces its content.
    pub fn put(&self, file: &str, bytes: &[u8]) {
        let open = self.open_with(file, CREATE | TRUNCATE);
        self.write_open(open, 0, bytes);
        self.close(open);
    }

    /// Writes a new file in a layout.
    pub fn put_in_layout(&self, file: &str, unit: c_int, count: c_int, object: c_int, bytes: &[u8]) {
        let (file, pool) = (path(file), text("cephfs_data"));
        let open = call!(self, ceph_open_layout(
            self.mount => *mut c_void, file.as_ptr() => *const c_char, CREATE => c_int, 0o644 => u32,
            unit => c_int, count => c_int, object => c_int, pool.as_ptr() => *const c_char
        ));
        self.write_open(open, 0, bytes);
        self.close(open);
    }

    pub fn truncate(&self, file: &str, length: i64) {
        call!(self, ceph_truncate(self.mount => *mut c_void, path(file).as_ptr() => *const c_char, length => i64));
    }

    pub fn remove(&self, file: &str) {
        call!(self, ceph_unlink(self.mount => *mut c_void, path(file).as_ptr() => *const c_char));
    }

    pub fn remove_folder(&self, folder: &str) {
        call!(self, ceph_rmdir(self.mount => *mut c_void, path(folder).as_ptr() => *const c_char));
    }

    pub fn link(&self, target: &str, link: &str) {
        let (target, link) = (text(target), path(link));
        call!(self, ceph_symlink(self.mount => *mut c_void, target.as_ptr() => *const c_char, link.as_ptr() => *const c_char));
    }

    pub fn own(&self, file: &str, uid: c_int, gid: c_int) {
        call!(self, ceph_chown(self.mount => *mut c_void, path(file).as_ptr() => *const c_char, uid => c_int, gid => c_int));
    }

    pub fn set_mode(&self, file: &str, mode: u32) {
        call!(self, ceph_chmod(self.mount => *mut c_void, path(file).as_ptr() => *const c_char, mode => u32));
    }

    pub fn make_pipe(&self, file: &str) {
        call!(self, ceph_mknod(self.mount => *mut c_void, path(file).as_ptr() => *const c_char, 0o010_644 => u32, 0 => u64));
    }
}
