//! The tests that every backend passes, over a real Ceph, and what only its file system has: users, links, holes, snapshots, writers. `make
//! test-ceph` starts a cluster and names it in the environment; `cargo test` leaves these tests out.

#![allow(clippy::unwrap_used, missing_docs)]

mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_backend::suite::Fixture;
use gristmill_backend::{Backend, BackendError, Content, Key, Kind, Reader, UnixUser, WholeRecords};
use gristmill_cephfs::{CephFs, CephOptions};
use writer::Writer;

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A folder that no other test uses. Another client writes to it, and this one reads with a key that may only read.
struct Folder {
    path: String,
    writer: &'static Writer,
    backend: Arc<CephFs>,
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}

impl Folder {
    fn new() -> Folder {
        let path = format!("{}/folder-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let writer = Writer::of_all_tests();
        writer.make_folders(&path);
        let backend = Arc::new(Folder::open(&path, Reader::Process));
        Folder { path, writer, backend }
    }

    fn open(path: &str, reader: Reader) -> CephFs {
        CephFs::new(&CephOptions { id: "reader".into(), ..CephOptions::of_environment("", path) }, reader)
            .unwrap()
    }

    fn as_reader(&self, reader: Reader) -> CephFs {
        Folder::open(&self.path, reader)
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

impl Fixture for Folder {
    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        let path = self.path_of(key.as_str());
        self.writer.make_folders(path.rsplit_once('/').unwrap().0);
        self.writer.put(&path, bytes);
    }

    fn remove(&self, key: &Key) {
        self.writer.remove(&self.path_of(key.as_str()));
    }
}

gristmill_backend::backend_suite!(cephfs, Folder::new());

fn user(uid: u32, gid: u32, groups: Vec<u32>) -> Reader {
    Reader::User(Arc::new(UnixUser::new(uid, gid, groups).unwrap()))
}

fn is_denied<T>(result: &gristmill_backend::Result<T>) -> bool {
    matches!(result, Err(BackendError::Denied { .. }))
}

#[test]
fn every_user_reads_what_the_mode_allows() {
    let folder = Folder::new();
    folder.put(&key("open"), b"1");
    folder.put(&key("closed/file"), b"2");
    folder.put(&key("group"), b"3");
    for (name, mode, uid, gid) in [
        ("open", 0o644, 7, 7),
        ("closed", 0o711, 1000, 100),
        ("closed/file", 0o600, 1000, 100),
        ("group", 0o640, 7, 200),
    ] {
        folder.writer.own(&folder.path_of(name), uid, gid);
        folder.writer.set_mode(&folder.path_of(name), mode);
    }
    let read = |reader: Reader, name: &str| folder.as_reader(reader).read_now(&key(name), 0, &mut [0]);
    let owner = user(1000, 100, vec![]);
    let member = user(1001, 101, vec![200]);
    read(owner.clone(), "open").unwrap();
    read(owner.clone(), "closed/file").unwrap();
    read(member.clone(), "group").unwrap();
    assert!(is_denied(&read(owner.clone(), "group")));
    for reader in [member.clone(), Reader::Everybody] {
        assert!(is_denied(&read(reader.clone(), "closed/file")), "{reader:?}");
        assert!(is_denied(&folder.as_reader(reader.clone()).stat(&key("closed/file"))), "{reader:?}");
        assert!(is_denied(&folder.as_reader(reader).list(&key("closed"), None, 10)));
    }
    read(Reader::Everybody, "open").unwrap();
    assert!(is_denied(&read(Reader::Everybody, "group")));
    let listed = folder.as_reader(owner).list_all(&Key::ROOT, 10).unwrap();
    let group = listed.iter().find(|entry| entry.name == "group").unwrap();
    assert!(matches!(group.content, Content::Unreadable { .. }), "{group:?}");
    // Who may not search a folder does not learn what is in it.
    folder.writer.set_mode(&folder.path_of("closed"), 0o700);
    for name in ["closed/file", "closed/missing"] {
        assert!(is_denied(&read(member.clone(), name)), "{name}");
        assert!(is_denied(&read(Reader::Everybody, name)), "{name}");
    }
}

#[test]
fn links_do_not_lead_out_of_the_tree() {
    let folder = Folder::new();
    folder.put(&key("a/file"), b"12");
    let outside = format!("{}-outside", folder.path);
    folder.writer.put(&outside, b"secret");
    let name = outside.rsplit_once('/').unwrap().1;
    for (link, target) in [
        ("inside", "a/file"),
        ("a/up", "../a/./file"),
        ("folder", "a"),
        ("out", &format!("../{name}")),
        ("out-and-in", "../a/../a/file"),
        ("absolute", &format!("/{outside}")),
        ("circle", "circle"),
        ("nowhere", "missing"),
        ("a/above", "../.."),
    ] {
        folder.writer.link(target, &folder.path_of(link));
    }
    let tree = &folder.backend;
    for name in ["inside", "a/up", "folder/file", "folder/up"] {
        assert_eq!(tree.stat(&key(name)).unwrap(), tree.stat(&key("a/file")).unwrap(), "{name}");
    }
    for name in ["out", "out-and-in", "absolute", "circle", "a/above"] {
        assert!(is_denied(&tree.open(&key(name))), "{name}");
    }
    assert!(matches!(tree.stat(&key("nowhere")), Err(BackendError::NotFound { .. })));
    let listed = tree.list_all(&Key::ROOT, 20).unwrap();
    let unreadable: Vec<_> =
        listed.iter().filter(|entry| matches!(entry.content, Content::Unreadable { .. })).collect();
    let names: Vec<_> = unreadable.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["absolute", "circle", "nowhere", "out", "out-and-in"]);
}

#[test]
fn holes_are_zeros_and_cut_files_are_short() {
    let folder = Folder::new();
    let path = folder.path_of("holes");
    folder.writer.write(&path, 9 << 20, b"end");
    let tree = &folder.backend;
    let object = tree.open(&key("holes")).unwrap();
    let mut out = vec![1; (9 << 20) + 3];
    object.read_at(0, &mut out).unwrap();
    object.unchanged().unwrap();
    assert!(out.iter().take(9 << 20).all(|byte| *byte == 0) && out.ends_with(b"end"));
    // What was cut off and written again has no old bytes.
    folder.put(&key("cut"), &[7; 100]);
    folder.writer.truncate(&folder.path_of("cut"), 10);
    folder.writer.truncate(&folder.path_of("cut"), 50);
    let mut out = [1; 50];
    tree.open(&key("cut")).unwrap().read_at(0, &mut out).unwrap();
    assert_eq!(out.map(usize::from).iter().sum::<usize>(), 70);
    folder.put(&key("short"), &[7; 100]);
    let object = tree.open(&key("short")).unwrap();
    folder.writer.truncate(&folder.path_of("short"), 10);
    let read = object.read_at(0, &mut [0; 100]).and_then(|()| object.unchanged());
    assert!(matches!(read, Err(BackendError::Short { .. } | BackendError::Changed { .. })), "{read:?}");
}

#[test]
fn stripes_of_every_layout_are_read() {
    let folder = Folder::new();
    for (name, unit, count, object) in
        [("plain", 4 << 20, 1, 4 << 20), ("striped", 64 << 10, 3, 256 << 10), ("wide", 1 << 20, 5, 1 << 20)]
    {
        let path = folder.path_of(name);
        let bytes: Vec<u8> = (0..5_000_003u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
        folder.writer.put_in_layout(&path, unit, count, object, &bytes);
        let mut out = vec![0; bytes.len()];
        folder.backend.open(&key(name)).unwrap().read_at(0, &mut out).unwrap();
        assert!(out == bytes, "{name}");
    }
}

#[test]
fn what_a_writer_holds_is_read() {
    let folder = Folder::new();
    let path = folder.path_of("file");
    folder.put(&key("file"), &[1; 1000]);
    let open = folder.writer.open(&path);
    folder.writer.write_open(open, 0, &[2; 1000]);
    // Nobody flushed it. The cluster asks the writer for it.
    let mut out = [0; 1000];
    let object = folder.backend.open(&key("file")).unwrap();
    object.read_at(0, &mut out).unwrap();
    object.unchanged().unwrap();
    assert_eq!(out, [2; 1000]);
    folder.writer.write_open(open, 500, &[3; 10]);
    assert!(matches!(object.unchanged(), Err(BackendError::Changed { .. })));
    folder.writer.close(open);
    let now = folder.backend.open(&key("file")).unwrap();
    now.read_at(0, &mut out).unwrap();
    assert_eq!((out.get(499), out.get(500)), (Some(&2), Some(&3)));
    assert_eq!(*now.found(), folder.backend.stat(&key("file")).unwrap());
}

#[test]
fn a_file_that_grows_is_read_up_to_its_last_whole_record() {
    let folder = Folder::new();
    folder.put(&key("log"), b"one\ntwo\nthr");
    let tree = &folder.backend;
    let lines = tree.stat_growing(&key("log"), WholeRecords::Lines).unwrap();
    assert_eq!(lines.length, 8);
    let object = tree.open_at(&key("log"), &lines).unwrap();
    folder.writer.write(&folder.path_of("log"), 11, b"ee\n");
    let mut out = [0; 8];
    object.read_at(0, &mut out).unwrap();
    object.unchanged().unwrap();
    assert_eq!(&out, b"one\ntwo\n");
    tree.open_at(&key("log"), &lines).unwrap();
    folder.remove(&key("log"));
    folder.put(&key("log"), b"one\ntwo\nthree\n");
    assert!(matches!(tree.open_at(&key("log"), &lines), Err(BackendError::Changed { .. })), "another file");
}

#[test]
fn a_snapshot_keeps_its_bytes() {
    let folder = Folder::new();
    folder.put(&key("file"), b"before");
    folder.writer.make_folders(&folder.path_of(".snap/first"));
    folder.put(&key("file"), b"after!");
    let snapshot = folder.backend.open(&key(".snap/first/file")).unwrap();
    let mut out = [0; 6];
    snapshot.read_at(0, &mut out).unwrap();
    snapshot.unchanged().unwrap();
    assert_eq!(&out, b"before");
    assert_ne!(*snapshot.found(), folder.backend.stat(&key("file")).unwrap());
    let listed = folder.backend.list_all(&Key::ROOT, 10).unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    // A folder of a snapshot is a tree, and links do not lead out of it.
    folder.writer.link("../../file", &folder.path_of("up"));
    folder.writer.make_folders(&folder.path_of(".snap/second"));
    let tree = Folder::open(&folder.path_of(".snap/second"), Reader::Process);
    assert_eq!(tree.stat(&key("file")).unwrap().length, 6);
    assert!(is_denied(&tree.stat(&key("up"))));
    folder.writer.remove_folder(&folder.path_of(".snap/second"));
    folder.writer.remove_folder(&folder.path_of(".snap/first"));
}

#[test]
fn what_is_no_file_is_told() {
    let folder = Folder::new();
    folder.writer.make_pipe(&folder.path_of("pipe"));
    let error = folder.backend.open(&key("pipe")).err().unwrap();
    assert!(matches!(error, BackendError::WrongKind { kind: Kind::Pipe, .. }), "{error:?}");
    let listed =
        |options: &CephOptions| CephFs::new(options, Reader::Process).unwrap().list(&Key::ROOT, None, 1);
    let options = CephOptions { id: "reader".into(), ..CephOptions::of_environment("", "no/such/folder") };
    let missing = listed(&options).unwrap_err();
    assert!(missing.to_string().contains("no such folder"), "{missing}");
    let options = CephOptions { id: "nobody".into(), ..CephOptions::of_environment("", "") };
    let unknown = listed(&options).unwrap_err();
    assert!(unknown.to_string().contains("client.nobody"), "{unknown}");
    let options = CephOptions { id: "reader".into(), ..CephOptions::of_environment("other", "") };
    let unknown = listed(&options).unwrap_err();
    assert!(unknown.to_string().contains("cephfs://other/"), "{unknown}");
}

#[test]
fn the_hosts_of_all_stripes_are_told() {
    let folder = Folder::new();
    let names = |hosts: &[String]| hosts.iter().any(|name| name.starts_with("127.0.0."));
    for (name, unit, count, object, components) in [
        ("plain", 4 << 20, 1, 4 << 20, &[(None, 4 << 20, 2)][..]),
        ("striped", 64 << 10, 2, 2 << 20, &[(Some(4 << 20), 64 << 10, 2), (None, 64 << 10, 2)]),
    ] {
        folder.writer.put_in_layout(&folder.path_of(name), unit, count, object, &[7; 5_000_000]);
        let located = folder.backend.locate(&key(name), 5_000_000).unwrap();
        let found: Vec<_> = located.iter().map(|one| (one.end, one.unit, one.hosts.len())).collect();
        assert_eq!(found, components, "{name}");
        assert!(located.iter().all(|one| one.hosts.iter().all(|hosts| names(hosts))), "{located:?}");
    }
    // The places of a very long file are not told.
    assert_eq!(folder.backend.locate(&key("plain"), 1 << 50).unwrap(), []);
}

#[test]
fn more_files_than_stay_open_are_read() {
    let folder = Folder::new();
    let count = gristmill_cephfs::MAX_HELD_FILES + 20;
    for number in 0..count {
        folder.writer.put(&folder.path_of(&number.to_string()), &[number as u8; 10]);
    }
    let open = |number: usize| folder.backend.open(&key(&number.to_string())).unwrap();
    let objects: Vec<_> = (0..count).map(open).collect();
    for (number, object) in objects.iter().enumerate() {
        let mut out = [0; 10];
        object.read_at(0, &mut out).unwrap();
        object.unchanged().unwrap();
        assert_eq!(out, [number as u8; 10]);
    }
    folder.put(&key(&(count - 1).to_string()), b"another");
    let last = objects.last().unwrap();
    assert!(last.read_at(0, &mut [0; 10]).and_then(|()| last.unchanged()).is_err());
}
