//! Tests with more nodes than one node may ask at once: they ask each other, and the answers are the same.
#![allow(clippy::unwrap_used)]

mod cluster;

use cluster::{Nodes, mixed, numbers, stripes, text};
use gristmill_kernel::Value;
use gristmill_peers::Question;
use gristmill_runtime::Control;
use gristmill_server::NodeOptions;
use gristmill_server::limits::MAX_RELAYS;
use gristmill_wire::{FAN_IN, FoldPlace};

const NODES: usize = FAN_IN + 5;

/// Stores numbers with three NaN, of which element 12345 is the first. Returns a request that fails on them.
fn put_nans(nodes: &Nodes) -> Question {
    let mut bytes = mixed(50_000);
    for index in [40_000usize, 12_345, 33_333] {
        bytes[8 * index..8 * index + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    }
    nodes.put("/numbers", &bytes, &stripes(512));
    Question { params: vec![("nan".into(), "error".into())], ..numbers("min") }
}

#[test]
fn answers_are_those_of_one_process() {
    let nodes = Nodes::start(NODES);
    nodes.put("/numbers", &mixed(50_000), &stripes(4096));
    let lines: Vec<u8> = (0..20_000u32)
        .flat_map(|n| format!("{n} {}\n", n.wrapping_mul(2_654_435_761)).into_bytes())
        .collect();
    nodes.put("/text", &lines, &stripes(1000));
    let questions = [
        ("/numbers", numbers("sum")),
        ("/numbers", numbers("var")),
        ("/numbers", numbers("minmax")),
        ("/text", text("wc", &[])),
        ("/text", text("last", &[])),
        ("/text", text("grep", &[("pattern", "99")])),
        ("/text", text("grep", &[("pattern", "7777"), ("count_only", "true")])),
    ];
    for (path, question) in questions {
        let name = format!("{} {path}", question.kernel);
        let (value, rows, report) = nodes.ask(path, question.clone(), FoldPlace::Storage).unwrap();
        let (expected, expected_rows, _) = nodes.ask(path, question, FoldPlace::Client).unwrap();
        assert_eq!(value, expected, "{name}");
        assert_eq!(rows, expected_rows, "{name}");
        assert_eq!(report.places.len(), NODES, "{name}");
        assert!(report.places.iter().all(|place| place.bytes > 0), "{name}: every node took part");
    }
}

#[test]
fn what_nodes_behind_nodes_hand_back_comes_to_whoever_asked() {
    let nodes = Nodes::started(NODES, |options| NodeOptions { active_share: 0.0, ..options });
    nodes.put("/numbers", &mixed(50_000), &stripes(4096));
    let lines: Vec<u8> = (0..20_000u32).flat_map(|n| format!("{n} {}\n", n % 977).into_bytes()).collect();
    nodes.put("/text", &lines, &stripes(1000));
    nodes.put("/image", &lines[..300 * 200], &stripes(700));
    let mut image = text("gaussian", &[("shape", "300,200"), ("result", "summary")]);
    image.input.dtype = Some("u8".into());
    let questions = [
        ("/numbers", numbers("sum")),
        ("/numbers", numbers("last")),
        ("/image", image),
        ("/text", text("wc", &[])),
        ("/text", text("grep", &[("pattern", "99")])),
    ];
    for (path, question) in questions {
        let name = format!("{} {path}", question.kernel);
        let (value, rows, report) = nodes.ask_movable(path, &question);
        let (expected, expected_rows, plain) = nodes.ask(path, question, FoldPlace::Client).unwrap();
        assert_eq!((value, rows), (expected, expected_rows), "{name}");
        let here = || report.places.iter().filter(|place| place.place == "client");
        assert_eq!(here().count(), NODES, "{name}");
        let read: u64 = here().map(|place| place.bytes).sum();
        assert!(read >= plain.bytes_read && report.bytes_read == read, "{name}: {report:?}");
    }
}

#[test]
fn records_of_parts_that_were_handed_back_count_once() {
    let nodes = Nodes::started(NODES, |options| NodeOptions { active_share: 0.0, ..options });
    nodes.put("/numbers", &mixed(50_000), &stripes(4096));
    let control = Control::new();
    nodes.try_movable_with("/numbers", &numbers("sum"), &control).unwrap();
    assert_eq!(control.progress(), (50_000, 50_000));
}

#[test]
fn a_failure_in_a_part_that_was_handed_back_is_the_first_of_the_file() {
    let nodes = Nodes::started(NODES, |options| NodeOptions { active_share: 0.0, ..options });
    let question = put_nans(&nodes);
    let error = nodes.try_movable("/numbers", &question).unwrap_err();
    assert!(error.to_string().contains("element 12345 is NaN"), "{error}");
}

#[test]
fn passes_of_busy_nodes_go_on_with_whoever_asked() {
    // A hundredth of a core is so little that every node wants to hand its passes back.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let nodes = Nodes::started(3, |options| NodeOptions { active_share: 0.01 / cores as f64, ..options });
    nodes.put("/numbers", &mixed(450_000), &stripes(64 << 10));
    let mut points = numbers("kmeans");
    points.params = [("dims", "3"), ("k", "4"), ("seed", "2"), ("max_iter", "8"), ("tol", "0")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    for question in [numbers("median"), points] {
        let name = question.kernel.clone();
        let (value, _, report) = nodes.ask_movable("/numbers", &question);
        let (expected, _, plain) = nodes.ask("/numbers", question, FoldPlace::Client).unwrap();
        assert_eq!(value, expected, "{name}");
        assert_eq!(report.rounds, plain.rounds, "{name}");
        // All nodes stop after the same pass, whichever node decided it.
        let bytes = |place: &str| -> Vec<u64> {
            report.places.iter().filter(|one| one.place == place).map(|one| one.bytes).collect()
        };
        let (there, here) = (bytes("storage"), bytes("client"));
        assert!(there.iter().chain(&here).all(|bytes| *bytes > 0) && here.len() == 3, "{name}: {report:?}");
        assert_eq!(report.revisions.len(), 1, "{name}: {report:?}");
    }
}

#[test]
fn passes_on_nodes_that_take_no_work_are_refused() {
    // Passes are handed back at their end, which would never come.
    let nodes = Nodes::started(3, |options| NodeOptions { active_share: 0.0, ..options });
    nodes.put("/numbers", &mixed(5_000), &stripes(512));
    let error = nodes.try_movable("/numbers", &numbers("median")).unwrap_err();
    assert!(error.to_string().contains("--place client"), "{error}");
}

#[test]
fn more_requests_than_a_node_passes_on_at_once_are_all_answered() {
    let nodes = Nodes::start(NODES);
    nodes.put("/numbers", &mixed(5_000), &stripes(512));
    let (expected, _, _) = nodes.ask("/numbers", numbers("sum"), FoldPlace::Client).unwrap();
    let ask = || nodes.ask("/numbers", numbers("sum"), FoldPlace::Storage).unwrap().0;
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..MAX_RELAYS + 8).map(|_| scope.spawn(ask)).collect();
        for asked in asking {
            assert_eq!(asked.join().unwrap(), expected);
        }
    });
}

#[test]
fn an_early_answer_ends_the_others() {
    let nodes = Nodes::start(NODES);
    let lines: Vec<u8> = (0..200_000u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    nodes.put("/text", &lines, &stripes(1000));
    let (value, _, _) = nodes.ask("/text", text("first", &[]), FoldPlace::Storage).unwrap();
    assert_eq!(value.get("first"), Some(&Value::Text("0".into())));
}

#[test]
fn a_failure_is_the_first_of_the_file_whoever_met_it() {
    let nodes = Nodes::start(NODES);
    let question = put_nans(&nodes);
    let error = nodes.ask("/numbers", question, FoldPlace::Storage).unwrap_err();
    assert!(error.to_string().contains("element 12345 is NaN"), "{error}");
}

#[test]
fn a_node_that_is_down_is_named() {
    let mut nodes = Nodes::start(3);
    nodes.put("/numbers", &mixed(5_000), &stripes(4096));
    let address = nodes.nodes[2].as_ref().unwrap().address().to_string();
    nodes.stop(2);
    let error = nodes.ask("/numbers", numbers("sum"), FoldPlace::Storage).unwrap_err();
    assert!(error.to_string().contains(&address), "{error}");
    assert!(error.to_string().contains("start it again"), "{error}");
    // A file without parts on the stopped node is still answered.
    nodes
        .cluster
        .put(
            &nodes.file("s", b"x\n"),
            "/small",
            &gristmill_client::RemotePut { on: Some(vec![0, 1]), ..stripes(64) },
            &mut |_| (),
        )
        .unwrap();
    assert!(nodes.ask("/small", text("wc", &[]), FoldPlace::Storage).is_ok());
}

#[test]
fn thousands_of_requests_share_a_connection() {
    let nodes = Nodes::start(1);
    nodes.put("/one", &1f64.to_le_bytes(), &stripes(64));
    for _ in 0..3000 {
        nodes.cluster.ping().unwrap();
    }
    let rows = Question { params: vec![("where".into(), "> 0".into())], ..numbers("lookup") };
    for _ in 0..1500 {
        nodes.ask("/one", numbers("sum"), FoldPlace::Storage).unwrap();
        nodes.ask("/one", rows.clone(), FoldPlace::Storage).unwrap();
    }
}

#[test]
fn many_small_files_are_put_each_by_itself() {
    let nodes = Nodes::start(3);
    let content = |n: u64| mixed(n % 700);
    let mut files = Vec::new();
    for n in 0..150 {
        files.push((nodes.file(&format!("s{n}"), &content(n)), format!("/many/{n:03}")));
    }
    // An invalid path or a missing source does not prevent the other files from arriving.
    files.insert(40, (nodes.file("bad", b"x"), "/many/../x".into()));
    files.insert(70, (nodes.dir.path().join("missing"), "/many/missing".into()));
    let (mut done, mut failed) = (0, Vec::new());
    nodes.cluster.put_many(files, &stripes(4096), &Control::new(), &mut |source, result| match result {
        Ok(_) => done += 1,
        Err(error) => failed.push((source.to_owned(), error.to_string())),
    });
    failed.sort();
    assert_eq!(done, 150);
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed[0].0.ends_with("bad") && failed[1].0.ends_with("missing"), "{failed:?}");
    let listed = nodes.cluster.list("/many").unwrap();
    assert_eq!(listed.len(), 150);
    for n in [0u64, 1, 77, 149] {
        let mut back = Vec::new();
        let opened = nodes.cluster.open(&format!("/many/{n:03}")).unwrap();
        nodes.cluster.read_to(&opened, &mut back, &mut |_| ()).unwrap();
        assert_eq!(back, content(n), "{n}");
    }
}
