//! Tests of mounted file systems: links, pipes, and files that are written in place.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use gristmill_backend::{
    Backend, BackendError, Content, Key, Kind, MAX_HELD_FILES, Mount, MountOptions, Object, Reader, UnixUser,
    WholeRecords, open_file, open_growing_file,
};

const BY_MODIFICATION: MountOptions =
    MountOptions { without_change_time: true, follows_links_out: false, reader: Reader::Process };

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

fn bytes(object: &Arc<dyn Object>) -> Vec<u8> {
    let mut out = vec![0; object.found().length as usize];
    object.read(&[0..out.len() as u64], &mut out).unwrap();
    object.unchanged().unwrap();
    out
}

#[test]
fn links_stay_within_the_tree() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("a")).unwrap();
    fs::write(at("a/file"), b"inside").unwrap();
    symlink("file", at("a/link")).unwrap();
    symlink("../a", at("a/up")).unwrap();
    symlink(outside.path().join("secret"), at("absolute")).unwrap();
    symlink(outside.path(), at("folder")).unwrap();
    symlink("../../etc/passwd", at("a/above")).unwrap();
    symlink("circle", at("circle")).unwrap();
    symlink("nothing", at("broken")).unwrap();
    symlink("/proc/self/fd/0", at("magic")).unwrap();
    let mount = Mount::open(folder.path()).unwrap();
    for name in ["a/file", "a/link", "a/up/file"] {
        assert_eq!(bytes(&mount.open(&key(name)).unwrap()), b"inside", "{name}");
    }
    for name in ["absolute", "folder/secret", "a/above", "circle", "magic"] {
        for error in [mount.open(&key(name)).err().unwrap(), mount.stat(&key(name)).unwrap_err()] {
            assert!(matches!(error, BackendError::Denied { .. }), "{name}: {error:?}");
            assert!(error.to_string().contains("symbolic link"), "{error}");
        }
    }
    assert!(matches!(mount.open(&key("broken")), Err(BackendError::NotFound { .. })));
    // Folders of the user who runs the process have links that lead anywhere.
    let options = MountOptions { follows_links_out: true, ..MountOptions::default() };
    let own = Mount::open_with(folder.path(), options).unwrap();
    for name in ["absolute", "folder/secret"] {
        assert_eq!(bytes(&own.open(&key(name)).unwrap()), b"secret");
    }
    let list = own.list(&Key::ROOT, None, 100).unwrap().entries;
    let unreadable = list.iter().filter(|entry| matches!(entry.content, Content::Unreadable { .. }));
    let unreadable: Vec<&str> = unreadable.map(|entry| entry.name.as_str()).collect();
    assert!(unreadable.starts_with(&["broken", "circle"]), "{list:?}");
    // A list says what cannot be read, so that nobody takes it for missing.
    let list = mount.list(&Key::ROOT, None, 100).unwrap().entries;
    let readable: Vec<bool> =
        list.iter().map(|entry| !matches!(entry.content, Content::Unreadable { .. })).collect();
    let names: Vec<&str> = list.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a", "absolute", "broken", "circle", "folder", "magic"]);
    assert_eq!(readable, [true, false, false, false, false, false]);
    assert_eq!(mount.list_all(&Key::ROOT, 6).unwrap(), list);
    let Content::Unreadable { why } = &list[2].content else { panic!("{list:?}") };
    assert!(why.contains("broken is a symbolic link to a file that does not exist"), "{why}");
}

#[test]
fn a_folder_that_is_made_anew_is_read_anew() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), b"old").unwrap();
    let mount = Mount::open(&folder).unwrap();
    let found = mount.stat(&key("file")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(mount.list(&Key::ROOT, None, 10), Err(BackendError::NotFound { .. })));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), b"newer").unwrap();
    assert_eq!(bytes(&mount.open(&key("file")).unwrap()), b"newer");
    assert!(matches!(mount.open_at(&key("file"), &found), Err(BackendError::Changed { .. })));
    assert_eq!(mount.list(&Key::ROOT, None, 10).unwrap().entries.len(), 1);
}

#[test]
fn pipes_and_devices_are_no_files() {
    let folder = tempfile::tempdir().unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), 0o600.into()).unwrap();
    let mount = Mount::open(folder.path()).unwrap();
    for error in [mount.open(&key("pipe")).err().unwrap(), mount.stat(&key("pipe")).unwrap_err()] {
        assert!(matches!(error, BackendError::WrongKind { kind: Kind::Pipe, .. }), "{error:?}");
    }
    let list = mount.list(&Key::ROOT, None, 10).unwrap().entries;
    assert!(matches!(&list[0].content, Content::Unreadable { why } if why.contains("is a pipe")), "{list:?}");
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = open_file(&socket).err().unwrap();
    assert!(matches!(error, BackendError::WrongKind { kind: Kind::Socket, .. }), "{error:?}");
    let error = open_file(Path::new("/dev/null")).err().unwrap();
    assert!(matches!(error, BackendError::WrongKind { kind: Kind::Device, .. }), "{error:?}");
}

#[test]
fn a_mount_is_a_folder_that_exists() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), b"").unwrap();
    assert!(matches!(Mount::open(folder.path().join("file")), Err(BackendError::WrongKind { .. })));
    assert!(matches!(Mount::open(folder.path().join("nothing")), Err(BackendError::NotFound { .. })));
}

#[test]
fn a_file_that_is_written_in_place_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mount = Mount::open(folder.path()).unwrap();
    for open in
        [&|| mount.open(&key("file")) as gristmill_backend::Result<Arc<dyn Object>>, &|| open_file(&path)]
            as [&dyn Fn() -> gristmill_backend::Result<Arc<dyn Object>>; 2]
    {
        fs::write(&path, vec![1; 1000]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let old = fs::metadata(&path).unwrap().modified().unwrap() - std::time::Duration::from_secs(60);
        file.set_modified(old).unwrap();
        let object = open().unwrap();
        file.write_at(&[2; 10], 500).unwrap();
        assert!(matches!(object.unchanged(), Err(BackendError::Changed { .. })));
        let object = open().unwrap();
        file.set_len(700).unwrap();
        let error = object.read(&[600..900], &mut [0; 300]).unwrap_err();
        assert!(matches!(error, BackendError::Short { length: 700, .. }), "{error:?}");
    }
}

#[test]
fn a_time_that_a_program_set_back_does_not_hide_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"old").unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let (mount, coarse) =
        (Mount::open(folder.path()).unwrap(), Mount::open_with(folder.path(), BY_MODIFICATION).unwrap());
    let (found, coarsely) = (mount.stat(&key("file")).unwrap(), coarse.stat(&key("file")).unwrap());
    fs::write(&path, b"new").unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    // The clock of the file system may stand still for some milliseconds.
    while mount.stat(&key("file")).unwrap() == found {
        file.set_modified(time).unwrap();
    }
    file.set_modified(time).unwrap();
    assert!(matches!(mount.open_at(&key("file"), &found), Err(BackendError::Changed { .. })));
    // The documented limit of the coarse version.
    assert!(coarse.open_at(&key("file"), &coarsely).is_ok());
}

#[test]
fn more_files_than_stay_open_are_read_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mount = Mount::open(folder.path()).unwrap();
    let count = MAX_HELD_FILES + 40;
    let mut objects = Vec::new();
    for n in 0..count {
        fs::write(folder.path().join(format!("{n}")), n.to_string()).unwrap();
        objects.push(mount.open(&key(&n.to_string())).unwrap());
    }
    for (n, object) in objects.iter().enumerate() {
        assert_eq!(bytes(object), n.to_string().as_bytes());
    }
    // A file that does not stay open is opened by its name again, so another file of this name is noticed. Which files stay open
    // is not certain: all mounts of the process share the limit, and other tests run beside this one.
    for n in 0..count {
        fs::write(folder.path().join("other"), b"another").unwrap();
        fs::rename(folder.path().join("other"), folder.path().join(format!("{n}"))).unwrap();
    }
    let mut noticed = 0;
    for (n, object) in objects.iter().enumerate() {
        let mut byte = [0];
        match object.read(&[0..1], &mut byte) {
            Ok(()) => assert_eq!(byte[0], n.to_string().as_bytes()[0]),
            Err(BackendError::Changed { .. }) => noticed += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(noticed >= count - MAX_HELD_FILES, "{noticed} of {count}");
    // Files that are dropped make room for others.
    objects.clear();
    let first = mount.open(&key("0")).unwrap();
    fs::remove_file(folder.path().join("0")).unwrap();
    assert_eq!(bytes(&first), b"another");
}

#[test]
fn names_that_are_not_utf_8_are_left_out() {
    use std::os::unix::ffi::OsStrExt;

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xff")), b"").unwrap();
    fs::write(folder.path().join("a"), b"").unwrap();
    let list = Mount::open(folder.path()).unwrap().list(&Key::ROOT, None, 10).unwrap().entries;
    assert_eq!(list.len(), 1);
}

#[test]
fn only_what_everybody_may_read_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let allow = |name: &str, mode| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    allow("", 0o755);
    for dir in ["open", "open/deep", "closed", "closed/deep", "listed"] {
        fs::create_dir(at(dir)).unwrap();
        allow(dir, 0o755);
    }
    for (file, mode) in [
        ("open/file", 0o644),
        ("open/deep/file", 0o444),
        ("open/private", 0o600),
        ("open/of_the_group", 0o640),
        ("open/not_for_the_group", 0o604),
        ("closed/deep/file", 0o644),
        ("listed/file", 0o644),
    ] {
        fs::write(at(file), b"bytes").unwrap();
        allow(file, mode);
    }
    allow("closed", 0o700);
    // Names can be read, but nothing in the folder can be opened.
    allow("listed", 0o744);
    symlink("../closed/deep/file", at("open/link_to_closed")).unwrap();
    symlink("../closed/deep", at("open/folder_in_closed")).unwrap();
    symlink("deep/file", at("open/link")).unwrap();
    fs::hard_link(at("open/file"), at("closed/deep/also_open")).unwrap();
    let options = MountOptions { reader: Reader::Everybody, ..MountOptions::default() };
    let mount = Mount::open_with(folder.path(), options).unwrap();
    for name in ["open/file", "open/deep/file", "open/link"] {
        assert_eq!(bytes(&mount.open(&key(name)).unwrap()), b"bytes", "{name}");
    }
    for name in [
        "open/private",
        "open/of_the_group",
        "open/not_for_the_group",
        "closed/deep/file",
        "closed/deep/also_open",
        "listed/file",
        "open/link_to_closed",
        "open/folder_in_closed/file",
    ] {
        for error in [mount.open(&key(name)).err().unwrap(), mount.stat(&key(name)).unwrap_err()] {
            assert!(matches!(error, BackendError::Denied { .. }), "{name}: {error:?}");
            assert!(error.to_string().contains("chmod go+r"), "{error}");
        }
    }
    // Nobody learns which names a closed folder has, not by its folders, pipes or links to it either.
    fs::create_dir(at("closed/searchable")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("closed/pipe"), rustix::fs::FileType::Fifo, 0o644.into(), 0)
        .unwrap();
    symlink("../closed/nothing", at("open/to_nothing")).unwrap();
    symlink("../closed/deep/file", at("open/to_something")).unwrap();
    let said: std::collections::BTreeSet<String> = [
        "closed/nothing",
        "closed/searchable",
        "closed/pipe",
        "closed/searchable/nothing",
        "open/to_nothing",
        "open/to_something",
    ]
    .into_iter()
    .map(|name| mount.stat(&key(name)).unwrap_err().to_string().replace(name, "NAME"))
    .collect();
    assert_eq!(said.len(), 1, "{said:?}");
    for name in ["to_nothing", "to_something"] {
        fs::remove_file(at("open").join(name)).unwrap();
    }
    for name in ["closed/nothing", "closed/nothing/deep", "listed/nothing", "open/folder_in_closed/nothing"] {
        for error in [mount.open(&key(name)).err().unwrap(), mount.stat(&key(name)).unwrap_err()] {
            assert!(matches!(error, BackendError::Denied { .. }), "{name}: {error:?}");
        }
    }
    for name in ["open/nothing", "open/nothing/deep", "open/file/deep"] {
        let error = mount.stat(&key(name)).unwrap_err();
        assert!(
            matches!(error, BackendError::NotFound { .. } | BackendError::WrongKind { .. }),
            "{name}: {error:?}"
        );
    }
    for name in ["closed", "closed/deep", "listed", "open/folder_in_closed"] {
        let error = mount.list(&key(name), None, 10).unwrap_err();
        assert!(matches!(error, BackendError::Denied { .. }), "{name}: {error:?}");
    }
    let listed: Vec<(String, bool)> = mount
        .list(&key("open"), None, 10)
        .unwrap()
        .entries
        .into_iter()
        .map(|entry| (entry.name, !matches!(entry.content, Content::Unreadable { .. })))
        .collect();
    let readable = listed.iter().filter(|(_, readable)| *readable).map(|(name, _)| name.as_str());
    assert_eq!(readable.collect::<Vec<_>>(), ["deep", "file", "link"]);
    assert_eq!(listed.len(), 8);
    // The root counts, too.
    allow("", 0o700);
    assert!(matches!(mount.open(&key("open/file")), Err(BackendError::Denied { .. })));
    allow("", 0o755);
}

#[test]
fn a_file_that_is_closed_to_others_while_it_is_open_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().join("file");
    fs::write(&path, b"bytes").unwrap();
    let options =
        MountOptions { reader: Reader::Everybody, without_change_time: true, ..MountOptions::default() };
    let mount = Mount::open_with(folder.path(), options).unwrap();
    let object = mount.open(&key("file")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(bytes(&object), b"bytes");
    assert!(matches!(mount.open(&key("file")), Err(BackendError::Denied { .. })));
}

/// A mount that is read with the rights of a user, and the folder with its files.
#[cfg(target_os = "linux")]
fn read_by(uid: u32, gid: u32, groups: &[u32]) -> Option<(tempfile::TempDir, Mount)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can take on the identity of other users");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let user = UnixUser::new(uid, gid, groups.to_vec()).unwrap();
    let options = MountOptions { reader: Reader::User(Arc::new(user)), ..MountOptions::default() };
    let mount = Mount::open_with(folder.path(), options).unwrap();
    Some((folder, mount))
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_reads_what_the_user_may_read() {
    use std::os::unix::fs::chown;

    let Some((folder, mount)) = read_by(54_321, 54_322, &[54_323]) else { return };
    let at = |name: &str| folder.path().join(name);
    let own = |name: &str, mode: u32, uid: u32, gid: u32| {
        chown(at(name), Some(uid), Some(gid)).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir(at("home")).unwrap();
    fs::create_dir(at("other")).unwrap();
    for (name, mode, uid, gid) in [
        ("home/own", 0o600, 54_321, 0),
        ("home/of_the_group", 0o040, 0, 54_322),
        ("home/of_another_group", 0o640, 0, 54_323),
        ("home/public", 0o644, 0, 0),
        ("home/of_root", 0o600, 0, 0),
        ("home/own_but_closed", 0o044, 54_321, 0),
        ("home/of_no_group", 0o640, 0, 54_324),
        ("other/public", 0o644, 0, 0),
    ] {
        fs::write(at(name), b"bytes").unwrap();
        own(name, mode, uid, gid);
    }
    own("home", 0o700, 54_321, 0);
    own("other", 0o700, 0, 0);
    symlink("../other/public", at("home/link_to_other")).unwrap();
    let readable = ["of_another_group", "of_the_group", "own", "public"];
    for name in readable {
        let object = mount.open(&key(&format!("home/{name}"))).unwrap();
        assert_eq!(bytes(&object), b"bytes", "{name}");
        object.unchanged().unwrap();
    }
    for name in [
        "home/of_root",
        "home/own_but_closed",
        "home/of_no_group",
        "home/link_to_other",
        "other/public",
        // Nobody learns which names a closed folder has.
        "other/nothing",
    ] {
        for error in [mount.open(&key(name)).err().unwrap(), mount.stat(&key(name)).unwrap_err()] {
            assert!(matches!(error, BackendError::Denied { .. }), "{name}: {error:?}");
            assert!(error.to_string().contains("as user 54321"), "{error}");
        }
    }
    let listed = mount.list_all(&key("home"), 100).unwrap();
    let names = listed.iter().filter(|entry| matches!(entry.content, Content::File(_)));
    assert_eq!(names.map(|entry| entry.name.as_str()).collect::<Vec<_>>(), readable);
    assert_eq!(listed.len(), 8);
    assert!(matches!(mount.list(&key("other"), None, 10), Err(BackendError::Denied { .. })));
    // This thread still is root.
    assert_eq!(fs::read(at("other/public")).unwrap(), b"bytes");
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_without_a_way_to_the_root_is_refused() {
    let Some((folder, mount)) = read_by(54_321, 54_321, &[]) else { return };
    fs::write(folder.path().join("file"), b"bytes").unwrap();
    let object = mount.open(&key("file")).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(mount.open(&key("file")), Err(BackendError::Denied { .. })));
    // An opened file stays readable, as for every program.
    assert_eq!(bytes(&object), b"bytes");
}

const BYTES: WholeRecords = WholeRecords::Fixed { header: 0, bytes: 1 };

/// Appends to a file.
fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    fs::File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

#[test]
fn the_first_bytes_of_a_file_that_grows_are_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    for options in [MountOptions::default(), BY_MODIFICATION] {
        fs::write(&path, b"0123456789").unwrap();
        let mount = Mount::open_with(folder.path(), options).unwrap();
        let found = mount.stat_growing(&key("log"), WholeRecords::Fixed { header: 0, bytes: 4 }).unwrap();
        assert_eq!(found.length, 8);
        let before = mount.open_at(&key("log"), &found).unwrap();
        append(&path, b"abc");
        let after = mount.open_at(&key("log"), &found).unwrap();
        for object in [&before, &after] {
            assert_eq!((bytes(object), object.found()), (b"01234567".to_vec(), &found));
            let beyond = object.read_at(7, &mut [0; 2]);
            assert!(matches!(beyond, Err(BackendError::Short { length: 8, .. })), "{beyond:?}");
        }
        // A longer prefix is another state, and a state that is not growing has changed.
        assert_eq!(mount.stat_growing(&key("log"), BYTES).unwrap().length, 13);
        let whole = mount.stat(&key("log")).unwrap();
        append(&path, b"d");
        assert!(matches!(mount.open_at(&key("log"), &whole), Err(BackendError::Changed { .. })));
        // A file that became shorter has lost a part of the state.
        fs::File::options().write(true).open(&path).unwrap().set_len(7).unwrap();
        assert!(matches!(before.unchanged(), Err(BackendError::Changed { .. })));
        assert!(matches!(mount.open_at(&key("log"), &found), Err(BackendError::Changed { .. })));
    }
}

#[test]
fn another_file_is_not_the_one_that_grew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, b"0123456789").unwrap();
    let mount = Mount::open(folder.path()).unwrap();
    let found = mount.stat_growing(&key("log"), BYTES).unwrap();
    let opened = mount.open_at(&key("log"), &found).unwrap();
    fs::write(folder.path().join("new"), b"abcdefghijklm").unwrap();
    fs::rename(folder.path().join("new"), &path).unwrap();
    assert!(matches!(mount.open_at(&key("log"), &found), Err(BackendError::Changed { .. })));
    // Who has it open still reads the old one.
    assert_eq!(bytes(&opened), b"0123456789");
    for missing in [key("nothing"), key("")] {
        assert!(mount.stat_growing(&missing, BYTES).is_err());
    }
}

#[test]
fn a_plain_file_that_grows_has_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    fs::write(&path, b"0123456789").unwrap();
    let (closed, growing) = (
        open_file(&path).unwrap(),
        open_growing_file(&path, WholeRecords::Fixed { header: 0, bytes: 7 }).unwrap(),
    );
    append(&path, b"abc");
    assert!(matches!(closed.unchanged(), Err(BackendError::Changed { .. })));
    assert_eq!(bytes(&growing), b"0123456");
    fs::write(&path, b"0").unwrap();
    assert!(matches!(growing.unchanged(), Err(BackendError::Changed { .. })));
}
