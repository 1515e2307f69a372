//! Servers that fail: a read gives the bytes of the version that was opened, or an error that names the object.

#![allow(clippy::unwrap_used, missing_docs)]

mod server;

use std::sync::Arc;

use gristmill_backend::suite::Fixture;
use gristmill_backend::{Backend, BackendError, Content, Key, Object};
use gristmill_sources::{AddressPolicy, Sources, SourcesOptions};
use server::{Fault, S3, Server, Web};

const LENGTH: usize = 100_000;

fn content() -> Vec<u8> {
    (0..LENGTH).map(|n| ((n * 7919) >> 3) as u8).collect()
}

/// Opens a file on each kind of server.
fn opened() -> Vec<(Box<dyn Fixture>, Arc<dyn Object>)> {
    let fixtures: Vec<Box<dyn Fixture>> = vec![Box::new(S3::start()), Box::new(Web::start())];
    let each = fixtures.into_iter().map(|fixture| {
        let key = Key::new("file").unwrap();
        fixture.put(&key, &content());
        let object = fixture.backend().open(&key).unwrap();
        (fixture, object)
    });
    each.collect()
}

/// One of each kind of server, and its files.
fn servers() -> [(Box<dyn Fixture>, server::Shared); 2] {
    let (s3, web) = (S3::start(), Web::start());
    let (one, two) = (s3.0.files.clone(), web.0.files.clone());
    [(Box::new(s3), one), (Box::new(web), two)]
}

fn on_each(faults: &[Fault], check: impl Fn(Result<Vec<u8>, BackendError>)) {
    for (fixture, files) in servers() {
        let key = Key::new("file").unwrap();
        fixture.put(&key, &content());
        let object = fixture.backend().open(&key).unwrap();
        files.fail(faults);
        let mut out = vec![0; 50_000];
        let read = object.read_at(1000, &mut out).and_then(|()| object.unchanged());
        assert_eq!(files.faults_left(), 0);
        if let Err(error) = &read {
            assert!(error.to_string().contains("/file"), "{error}");
        }
        check(read.map(|()| out));
    }
}

#[test]
fn what_may_pass_is_asked_for_again() {
    let again = [Fault::Status(503), Fault::CutBody, Fault::Status(500), Fault::CutBody];
    on_each(&again, |read| assert!(read.unwrap() == content()[1000..51_000]));
    on_each(&[Fault::ShortBody], |read| assert!(read.unwrap() == content()[1000..51_000]));
}

#[test]
fn what_does_not_pass_is_an_error() {
    on_each(&[Fault::Status(403)], |read| {
        assert!(matches!(read.unwrap_err(), BackendError::Denied { .. }));
    });
}

#[test]
fn a_file_that_changes_is_an_error() {
    for fault in [Fault::Replace, Fault::ReplaceAndIgnoreConditions, Fault::Shrink, Fault::Remove] {
        on_each(&[fault], |read| {
            let error = read.unwrap_err();
            assert!(matches!(error, BackendError::Changed { .. }), "{fault:?}: {error}");
        });
    }
}

#[test]
fn pieces_of_two_states_are_never_mixed() {
    // Each is longer than one request.
    let before: Vec<u8> = content().repeat(100);
    for (fixture, files) in servers() {
        let key = Key::new("file").unwrap();
        fixture.put(&key, &before);
        let backend = fixture.backend();
        let mut out = vec![0; before.len()];
        backend.read_now(&key, 0, &mut out).unwrap();
        assert!(out == before);
        assert!(files.requests().iter().all(|request| !request.starts_with("HEAD")));
        files.fail(&[Fault::Nothing, Fault::Replace]);
        backend.read_now(&key, 0, &mut out).unwrap();
        assert_eq!(files.faults_left(), 0);
        assert!(out.iter().all(|byte| *byte == out[0]) && out[0] != before[0]);
    }
}

#[test]
fn a_piece_that_fails_is_asked_for_again_by_itself() {
    // One request and a part of a second one.
    let content = content().repeat(100);
    for (fixture, files) in servers() {
        let key = Key::new("file").unwrap();
        fixture.put(&key, &content);
        let backend = fixture.backend();
        files.fail(&[Fault::Nothing, Fault::Status(503), Fault::CutBody]);
        files.requests();
        let mut out = vec![0; content.len()];
        backend.read_now(&key, 0, &mut out).unwrap();
        assert!(out == content);
        assert_eq!(files.faults_left(), 0);
        let requests = files.requests();
        assert_eq!(requests.len(), 4, "{requests:?}");
        assert!(requests.iter().all(|request| request.starts_with("GET")), "{requests:?}");
    }
}

#[test]
fn other_bytes_than_asked_for_are_an_error() {
    on_each(&[Fault::OtherRange; 5], |read| {
        let error = read.unwrap_err().to_string();
        assert!(error.contains("1001..51000"), "{error}");
    });
    on_each(&[Fault::WholeFile], |read| assert!(read.is_err() || read.unwrap() == content()[1000..51_000]));
}

#[test]
fn bytes_that_were_fetched_ahead_and_failed_are_fetched_again() {
    let server = Server::start();
    server.files.put("pre/file", &content());
    let backend = server.sources().open(&format!("http://{}/pre", server.address).parse().unwrap()).unwrap();
    let object = backend.open(&Key::new("file").unwrap()).unwrap();
    server.files.fail(&[Fault::Status(404)]);
    object.expect(&[0..5000, 5000..10_000]);
    let mut out = vec![0; 10_000];
    object.read_at(0, &mut out).unwrap();
    assert!(out == content()[..10_000]);
    assert_eq!(server.files.faults_left(), 0);
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_says_so() {
    // Nobody listens on port 1.
    let options = SourcesOptions {
        endpoint: Some("http://127.0.0.1:1".into()),
        anonymous: true,
        ..SourcesOptions::default()
    };
    let sources = Sources::start(options).unwrap();
    for url in ["http://127.0.0.1:1/x", "s3://bucket/x"] {
        let folder = sources.open(&url.parse().unwrap()).unwrap();
        let error = folder.stat(&Key::new("file").unwrap()).unwrap_err();
        assert!(matches!(error, BackendError::Unavailable { .. }), "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
    }
}

#[test]
fn addresses_of_this_machine_can_be_refused() {
    let fixture = Web::start();
    let port = fixture.0.address.port();
    let options = SourcesOptions {
        endpoint: Some(format!("http://localhost:{port}")),
        anonymous: true,
        addresses: AddressPolicy::NotLocal,
        ..SourcesOptions::default()
    };
    let sources = Sources::start(options).unwrap();
    for url in
        [format!("http://127.0.0.1:{port}/x"), format!("http://localhost:{port}/x"), "s3://bucket/x".into()]
    {
        let folder = sources.open(&url.parse().unwrap()).unwrap();
        let error = folder.stat(&Key::new("file").unwrap()).unwrap_err();
        assert!(matches!(error, BackendError::Denied { .. }), "{error}");
        assert!(error.to_string().contains("is an address of this machine"), "{error}");
    }
    assert!(fixture.0.files.requests().is_empty());
}

#[test]
fn many_reads_are_few_requests() {
    for (fixture, object) in opened() {
        let ranges: Vec<_> = (0..100u64).map(|n| n * 1000..n * 1000 + 900).collect();
        let mut out = vec![0; 90_000];
        object.read(&ranges, &mut out).unwrap();
        let wanted: Vec<u8> =
            ranges.iter().flat_map(|one| content()[one.start as usize..one.end as usize].to_vec()).collect();
        assert!(out == wanted);
        drop(fixture);
    }
    let server = Server::start();
    server.files.put("pre/file", &content());
    let backend = server.sources().open(&format!("http://{}/pre", server.address).parse().unwrap()).unwrap();
    let object = backend.open(&Key::new("file").unwrap()).unwrap();
    server.files.requests();
    object.read(&[0..100, 200..300, 90_000..90_100], &mut [0; 300]).unwrap();
    assert_eq!(server.files.requests().len(), 2);
}

/// The keys of all levels below a folder in order, from pages with at most `limit` names.
fn names_in_pages(backend: &dyn Backend, folder: &Key, limit: usize) -> Vec<String> {
    let (mut found, mut from) = (Vec::new(), None::<String>);
    loop {
        let page = backend.list_below(folder, from.as_deref(), limit).unwrap();
        found.extend(page.entries.into_iter().map(|entry| format!("{folder}/{}", entry.name)));
        from = page.next;
        if from.is_none() {
            found.sort();
            return found;
        }
    }
}

#[test]
fn lists_are_whole_whatever_pages_a_server_gives() {
    for (most, tokens) in [(1, true), (2, false), (7, true), (1000, false), (1000, true)] {
        let server = S3::with_pages(most, tokens);
        let mut names: Vec<String> = (0..25).map(|n| format!("x.zarr/c/{}/{}", n / 5, n % 5)).collect();
        let more = ["c/1-x/0", "c/1.x", "c/empty", "c/empty/below", "c/z-a", "c/z/a-b/c", "z-a", "z.b"];
        names.extend(more.map(|name| format!("x.zarr/{name}")));
        names.sort();
        for name in &names {
            server.put(&Key::new(name.as_str()).unwrap(), if name.ends_with("empty") { b"" } else { b"1" });
        }
        // Markers of folders, which some programs make.
        for marker in ["", "c/", "c/1/", "c/7/", "c/empty-too/"] {
            server.0.files.put(&format!("pre/fix/x.zarr/{marker}"), b"");
        }
        // A marker seems to come after the names with a letter below '/', also at the end of a list. Some have content.
        for marker in ["c/1-/", "c/z/", "c/z/a/", "z/"] {
            server
                .0
                .files
                .put(&format!("pre/fix/x.zarr/{marker}"), if marker.contains("c/z/") { b"7" } else { b"" });
        }
        let (backend, folder) = (server.backend(), Key::new("x.zarr").unwrap());
        let files = backend.files_below(&folder, 1000).unwrap();
        let found: Vec<String> = files.iter().map(|(key, _)| key.to_string()).collect();
        assert_eq!(found, names, "{most} {tokens}");
        for limit in 1..30 {
            let found = names_in_pages(&*backend, &folder, limit);
            assert_eq!(found, names, "{most} {tokens} {limit}");
        }
        let level = backend.list_all(&Key::new("x.zarr/c").unwrap(), 100).unwrap();
        let level: Vec<&str> = level.iter().map(|one| one.name.as_str()).collect();
        let wanted =
            ["0", "1", "1-", "1-x", "1.x", "2", "3", "4", "7", "empty", "empty", "empty-too", "z", "z-a"];
        assert_eq!(level, wanted);
    }
}

#[test]
fn a_marker_at_the_end_of_a_list_ends_it() {
    for (most, tokens) in [(1, true), (1, false), (1000, true), (1000, false)] {
        let server = S3::with_pages(most, tokens);
        for (name, bytes) in [("p/a-b", b"1" as &[u8]), ("p/a/", b""), ("q-/a-", b"1"), ("q-/a/", b"")] {
            server.0.files.put(&format!("pre/fix/{name}"), bytes);
        }
        for (folder, name) in [("p", "p/a-b"), ("q-", "q-/a-")] {
            server.0.files.requests();
            let found = server.backend().files_below(&Key::new(folder).unwrap(), 10).unwrap();
            assert_eq!(
                found.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(),
                [name],
                "{most} {tokens}"
            );
            let requests = server.0.files.requests();
            assert!(requests.len() < 10, "{requests:?}");
        }
    }
}

#[test]
fn an_object_and_a_marker_may_have_one_name() {
    for (most, tokens) in [(1, true), (2, false), (1000, true), (1000, false)] {
        let server = S3::with_pages(most, tokens);
        let objects = ["d/a", "d/a-b", "d/a/aa", "d/b", "d/c/x"];
        for (name, bytes) in objects.map(|name| (name, b"1" as &[u8])).into_iter().chain([
            ("d/a/", b"" as &[u8]),
            ("d/b/", b"7"),
            ("d/c/", b""),
        ]) {
            server.0.files.put(&format!("pre/fix/{name}"), bytes);
        }
        for limit in 1..7 {
            let found = names_in_pages(&*server.backend(), &Key::new("d").unwrap(), limit);
            assert_eq!(found, objects, "{most} {tokens} {limit}");
        }
    }
}

#[test]
fn a_name_that_begins_with_a_slash_is_an_error_that_says_so() {
    for name in ["/x", "//x"] {
        let server = Server::start();
        server.files.put(name, b"1");
        server.files.put("a", b"1");
        let bucket = server.sources().open(&"s3://bucket".parse().unwrap()).unwrap();
        for error in
            [bucket.files_below(&Key::ROOT, 10).unwrap_err(), bucket.list(&Key::ROOT, None, 10).unwrap_err()]
        {
            assert!(error.to_string().contains("begins with '/'"), "{error}");
        }
    }
}

#[test]
fn names_that_are_no_paths_do_not_hide_others() {
    for most in [1, 3, 1000] {
        let server = S3::with_pages(most, true);
        let names: Vec<String> = (0..40).map(|n| format!("d/{n:02}")).collect();
        for name in &names {
            server.put(&Key::new(name.as_str()).unwrap(), b"1");
        }
        for odd in [
            "d//x", "d//y", "d/07//x", "d/20/\n", "d/../z", "d/39\n", "d/.", "d/..", "d/12/..", "d//",
            "d/08//",
        ] {
            server.0.files.put(&format!("pre/fix/{odd}"), b"1");
        }
        let backend = server.backend();
        let sorted = |entries: Vec<(String, Content)>| {
            let (mut files, mut odd) = (Vec::new(), Vec::new());
            for (name, content) in entries {
                match content {
                    Content::Unreadable { why } => odd.push(why),
                    Content::File(_) => files.push(name),
                    Content::Folder => {}
                }
            }
            (files, odd)
        };
        let all = backend.files_below(&Key::ROOT, 1000).unwrap();
        let (files, odd) = sorted(all.into_iter().map(|(key, content)| (key.to_string(), content)).collect());
        assert_eq!(files, names, "{most}");
        assert_eq!(odd.len(), 11, "{odd:?}");
        assert!(odd.iter().any(|why| why.contains("s3://bucket/pre/fix/d//x is the name")), "{odd:?}");
        assert!(odd.iter().any(|why| why.contains("d/20/\\n")), "{odd:?}");
        let level = backend.list_all(&Key::new("d").unwrap(), 1000).unwrap();
        let (files, odd) =
            sorted(level.into_iter().map(|entry| (format!("d/{}", entry.name), entry.content)).collect());
        assert_eq!(files, names);
        assert_eq!(odd.len(), 5, "{odd:?}");
        for from in [None, Some("19")] {
            let page = backend.list(&Key::new("d").unwrap(), from, 2).unwrap();
            assert_eq!(page.entries.len(), 2);
        }
    }
}

#[test]
fn many_names_that_are_no_paths_take_few_requests() {
    let server = S3::start();
    for n in 0..200 {
        server.0.files.put(&format!("pre/fix/d//{n}"), b"1");
        server.0.files.put(&format!("pre/fix/d/{n}"), b"1");
    }
    server.0.files.requests();
    let found = server.backend().files_below(&Key::new("d").unwrap(), 1000).unwrap();
    let odd = found.iter().filter(|(_, content)| matches!(content, Content::Unreadable { .. })).count();
    assert_eq!((found.len(), odd), (400, 200));
    let requests = server.0.files.requests().len();
    assert!(requests < 2 * 200 + 50, "{requests}");
}

#[test]
fn a_list_takes_one_request_for_each_page_of_the_server() {
    let server = S3::with_pages(1000, true);
    for n in 0..3_500 {
        server.put(&Key::new(format!("x/{}/{}/{}", n % 7, n % 11, n)).unwrap(), b"1");
    }
    server.0.files.requests();
    assert_eq!(server.backend().files_below(&Key::new("x").unwrap(), 10_000).unwrap().len(), 3_500);
    let requests = server.0.files.requests();
    // The last one finds that nothing follows.
    assert_eq!(requests.len(), 5, "{requests:?}");
}

#[test]
fn what_was_read_once_needs_no_request() {
    for fixture in [Box::new(S3(Server::cached())) as Box<dyn Both>, Box::new(Web(Server::cached()))] {
        let key = Key::new("file").unwrap();
        fixture.put(&key, &content());
        let read = |ranges: &[std::ops::Range<u64>]| {
            let object = fixture.backend().open(&key).unwrap();
            fixture.files().requests();
            object.expect(ranges);
            let mut out = vec![0; ranges.iter().map(|range| (range.end - range.start) as usize).sum()];
            object.read(ranges, &mut out).unwrap();
            let wanted =
                ranges.iter().flat_map(|range| content()[range.start as usize..range.end as usize].to_vec());
            assert!(out == wanted.collect::<Vec<u8>>());
            fixture.files().requests().len()
        };
        assert!(read(&[0..1_000, 50_000..60_000]) > 0);
        // The cache is written after the read.
        while read(&[0..1_000, 50_000..60_000]) > 0 {
            std::thread::yield_now();
        }
        assert_eq!(read(&[10..20, 59_000..60_000, 50_000..50_001]), 0);
        assert_eq!(read(&[10..20, 60_000..60_001]), 1);
    }
}

#[test]
fn a_file_of_a_web_server_that_changed_just_now_is_not_kept() {
    let web = Web(Server::cached());
    let key = Key::new("file").unwrap();
    web.put(&key, &content());
    assert!(web.backend().stat_settled(&key).unwrap().1);
    // Another change in this second may have the same version.
    web.0.files.changed_now();
    assert!(!web.backend().stat_settled(&key).unwrap().1);
    for _ in 0..3 {
        let object = web.backend().open(&key).unwrap();
        web.0.files.requests();
        object.read_at(0, &mut [0; 100]).unwrap();
        assert_eq!(web.0.files.requests().len(), 1);
    }
    assert_eq!(web.0.cache_counts().ranges, 0);
}

/// A server with its files.
trait Both: Fixture {
    fn files(&self) -> &server::Shared;
}

impl Both for S3 {
    fn files(&self) -> &server::Shared {
        &self.0.files
    }
}

impl Both for Web {
    fn files(&self) -> &server::Shared {
        &self.0.files
    }
}

#[test]
fn a_server_that_tells_no_length_is_not_believed() {
    let web = Web::start();
    let (file, empty) = (Key::new("file").unwrap(), Key::new("empty").unwrap());
    web.put(&file, b"12345678");
    web.put(&empty, b"");
    web.0.files.empty_heads();
    let error = web.backend().stat(&file).unwrap_err().to_string();
    assert!(error.contains("length 0") && error.contains("/file"), "{error}");
    assert_eq!(web.backend().stat(&empty).unwrap().length, 0);
}

#[test]
fn weak_tags_are_not_versions_by_themselves() {
    let (web, s3) = (Web::start(), S3::start());
    let file = Key::new("file").unwrap();
    web.0.files.weak_tags();
    s3.0.files.weak_tags();
    web.put(&file, &content());
    s3.put(&file, &content());
    // The web server also tells the time of the last change.
    let object = web.backend().open(&file).unwrap();
    let mut out = vec![0; 1000];
    object.read_at(5, &mut out).unwrap();
    assert!(out == content()[5..1005]);
    web.0.files.fail(&[Fault::Replace]);
    assert!(matches!(object.read_at(5, &mut out), Err(BackendError::Changed { .. })));
    let error = s3.backend().stat(&file).unwrap_err().to_string();
    assert!(error.contains("strong ETag"), "{error}");
}
