//! Mounts of CephFS on this machine, as the kernel lists them (`proc_pid_mountinfo(5)`).

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::CephOptions;

/// Most bytes of the list of mounts that are read. Mounts behind them are not found.
pub const MAX_MOUNT_TABLE: u64 = 4 << 20;

/// The number of the root of a file system of Ceph.
const ROOT: u64 = 1;

/// The folder of a file system of Ceph that is mounted at a path, or has it below its mount. `None` if the path lies elsewhere, or if the
/// mount does not tell its folder.
///
/// A mount of the kernel tells its folder. One of `ceph-fuse` does so only if the whole file system is mounted. The cluster is that of the
/// environment, as for [`CephOptions::of_environment`]; whether it is the cluster of the mount is not known.
pub fn folder_of_mount(path: &Path) -> Option<CephOptions> {
    let path = path.canonicalize().ok()?;
    let mut table = Vec::new();
    File::open("/proc/self/mountinfo").ok()?.take(MAX_MOUNT_TABLE).read_to_end(&mut table).ok()?;
    let is_root = |point: &Path| point.metadata().is_ok_and(|found| found.ino() == ROOT);
    let (file_system, folder) = find(&table, &path, is_root)?;
    Some(CephOptions::of_environment(&file_system, &folder))
}

/// The file system (empty: the default one) and the folder of a path. `is_root` says whether a mount point is the root of a file system.
fn find(table: &[u8], path: &Path, is_root: impl Fn(&Path) -> bool) -> Option<(String, String)> {
    let mounts = table.split(|byte| *byte == b'\n').filter_map(Mount::parse);
    // Of mounts at one point the last one is seen.
    let mount = mounts
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())?;
    let (file_system, folder) = match mount.kind {
        b"ceph" => folder_of_kernel(&mount)?,
        b"fuse.ceph-fuse" if mount.root == b"/" && is_root(&mount.point) => (String::new(), String::new()),
        _ => return None,
    };
    let below = path.strip_prefix(&mount.point).ok()?.to_str()?;
    let parts = [folder.trim_matches('/'), below].into_iter().filter(|part| !part.is_empty());
    Some((file_system, parts.collect::<Vec<_>>().join("/")))
}

/// A line of the list.
struct Mount<'a> {
    point: PathBuf,
    /// The folder of the file system of this mount that is seen there.
    root: Vec<u8>,
    kind: &'a [u8],
    source: Vec<u8>,
    options: &'a [u8],
}

impl Mount<'_> {
    fn parse(line: &[u8]) -> Option<Mount<'_>> {
        let mut words = line.split(|byte| *byte == b' ');
        let (root, point) = (words.nth(3)?, words.next()?);
        // Further words end with a hyphen.
        let mut words = words.skip_while(|word| *word != b"-").skip(1);
        let (kind, source, options) = (words.next()?, words.next()?, words.next()?);
        let point = PathBuf::from(OsString::from_vec(unescape(point)));
        Some(Mount { point, root: unescape(root), kind, source: unescape(source), options })
    }
}

/// A word as it was before blanks and others were written as `\` and three octal digits.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind
            .get(..3)
            .filter(|digits| *first == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        let byte = digits
            .map(|digits| digits.iter().fold(0u32, |number, digit| number * 8 + u32::from(digit - b'0')));
        match byte.and_then(|byte| u8::try_from(byte).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = behind.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = behind;
            }
        }
    }
    plain
}

/// File system and folder of a mount of the kernel: `MONITORS:/FOLDER` with the file system among the options, or, since Ceph 17,
/// `USER@CLUSTER.FILESYSTEM=/FOLDER`.
fn folder_of_kernel(mount: &Mount<'_>) -> Option<(String, String)> {
    let source = std::str::from_utf8(&mount.source).ok()?;
    let root = std::str::from_utf8(&mount.root).ok()?;
    let (file_system, folder) = match source.split_once("=/") {
        Some((device, folder)) if device.contains('@') => (device.rsplit_once('.')?.1.to_owned(), folder),
        _ => {
            let (_, folder) = source.split_once(":/")?;
            let options = std::str::from_utf8(mount.options).ok()?;
            let named = |option: &str| {
                ["mds_namespace=", "fs="].iter().find_map(|name| option.strip_prefix(name).map(str::to_owned))
            };
            (options.split(',').find_map(named).unwrap_or_default(), folder)
        }
    };
    Some((file_system, format!("{}{root}", folder.trim_end_matches('/'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:50 / /old rw,relatime shared:9 - ceph 10.0.0.1:6789,10.0.0.2:6789:/projects rw,name=reader,secret=<hidden>,mds_namespace=archive,acl
31 22 0:51 / /new rw,relatime - ceph reader@7a6f2b10-0000-4000-8000-000000000000.scratch=/ rw,name=reader,ms_mode=crc
32 31 0:52 / /new/other rw - nfs4 server:/export rw
33 22 0:50 /era5/a\\040b /bound rw,relatime shared:9 - ceph 10.0.0.1:6789,10.0.0.2:6789:/projects rw
34 22 0:53 / /fuse rw,nosuid,nodev,relatime - fuse.ceph-fuse ceph-fuse rw,user_id=0
35 22 0:54 / /fuse-of-folder rw,nosuid - fuse.ceph-fuse ceph-fuse rw,user_id=0
36 22 0:55 / /v6 rw - ceph [fd00::1]:3300,[fd00::2]:3300:/ rw
37 22 0:56 / /twice rw - ceph 10.0.0.1:6789:/first rw
38 22 0:57 / /twice rw - ext4 /dev/sdb rw
";

    fn folder(path: &str) -> Option<String> {
        let (file_system, folder) = find(TABLE, Path::new(path), |point| point == Path::new("/fuse"))?;
        Some(format!("{file_system}:{folder}"))
    }

    #[test]
    fn folders_of_mounts_are_found() {
        for (path, wanted) in [
            ("/old", Some("archive:projects")),
            ("/old/era5/t.nc", Some("archive:projects/era5/t.nc")),
            ("/older/era5", None),
            ("/new/a", Some("scratch:a")),
            ("/new/other/a", None),
            ("/bound/c", Some(":projects/era5/a b/c")),
            ("/fuse/x", Some(":x")),
            ("/fuse-of-folder/x", None),
            ("/v6/x/y", Some(":x/y")),
            ("/twice/x", None),
            ("/", None),
        ] {
            assert_eq!(folder(path).as_deref(), wanted, "{path}");
        }
    }

    #[test]
    fn lines_that_mean_nothing_are_left_out() {
        for table in [
            &b""[..],
            b"\n\n",
            b"1 2 3 4 5",
            b"1 2 0:1 / /old rw - ceph",
            b"1 2 0:1 / /old rw - ceph nothing rw\n",
        ] {
            assert_eq!(find(table, Path::new("/old/x"), |_| true), None);
        }
        assert_eq!(unescape(b"a\\040b\\\\777\\12"), b"a b\\\\777\\12");
    }
}
