//! Runs the program and talks to it.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The answers to these commands, from one process.
fn ask(commands: &[Value]) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gristmill-probe"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = Vec::new();
    for command in commands {
        writeln!(input, "{command}").unwrap();
        answers.push(serde_json::from_str(&output.next().unwrap().unwrap()).unwrap());
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    answers
}

/// 0, 1, 2, ... as f64.
fn counting(path: &Path, count: u32) -> f64 {
    let bytes: Vec<u8> = (0..count).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    std::fs::write(path, bytes).unwrap();
    f64::from(count) * f64::from(count - 1) / 2.0
}

#[test]
fn every_way_of_adding_up_gives_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data.f64");
    // More than two units, and a ragged end.
    let count = (9 << 20) / 8 + 5;
    let sum = counting(&data, count);
    let layout = dir.path().join("data.grist");
    let targets: Vec<_> = (0..3).map(|n| dir.path().join(format!("target{n}"))).collect();
    // Half of a unit, and a file that is empty.
    let (more, none) = (dir.path().join("more.f64"), dir.path().join("none.f64"));
    let further = counting(&more, (2 << 20) / 8);
    std::fs::write(&none, []).unwrap();
    let run = |path: &Path, lanes| json!({"op": "run", "kernel": "sum", "type": "f64", "path": path, "lanes": lanes});
    let answers = ask(&[
        json!({"op": "floor", "path": data, "lanes": 2}),
        json!({"op": "plain", "path": data, "lanes": 2}),
        run(&data, 1),
        json!({"op": "put", "source": data, "path": layout, "targets": targets, "stripe": 65536}),
        run(&layout, 2),
        json!({"op": "plain", "path": none, "also": [more, data, none], "lanes": 2}),
    ]);
    assert_eq!(answers[5]["result"]["sum"], json!(sum + further));
    assert_eq!(answers[5]["bytes_read"], json!(u64::from(count) * 8 + (2 << 20)));
    for answer in answers.iter().take(5) {
        assert_eq!(answer.get("error"), None);
        assert!(answer["seconds"].as_f64().unwrap() > 0.0);
        assert!(answer["peak_rss_bytes"].as_u64().unwrap() > 256 << 10);
        assert_eq!(answer["bytes_read"], json!(u64::from(count) * 8));
    }
    assert_eq!(answers[0].get("result"), None);
    for n in [1, 2, 4] {
        assert_eq!(answers[n]["result"]["sum"], json!(sum), "{n}");
    }
}

#[test]
fn collected_rows_are_the_matching_elements() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data.f64");
    counting(&data, 1000);
    let answers = ask(&[json!({
        "op": "run", "kernel": "lookup", "type": "f64", "path": data, "params": {"where": ">= 990"},
        "rows": "collect",
    })]);
    let pairs = (990u32..1000)
        .fold(0u64, |sum, i| sum.wrapping_add(u64::from(i).wrapping_mul(f64::from(i).to_bits())));
    let rows = json!({"count": 10, "ascending": true, "pairs": pairs.to_string()});
    assert_eq!(answers[0]["rows"], rows);
    assert_eq!(answers[0]["result"]["count"], json!(10));
}

#[test]
fn a_hash_tells_images_apart_however_they_were_made() {
    let dir = tempfile::tempdir().unwrap();
    let (flat, dotted) = (dir.path().join("flat.u8"), dir.path().join("dotted.u8"));
    // An odd number of pixels, so that the last word of the hash is not full.
    let (height, width) = (37, 13);
    let mut pixels = vec![100; height * width];
    std::fs::write(&flat, &pixels).unwrap();
    pixels[5 * width + 6] = 101;
    std::fs::write(&dotted, &pixels).unwrap();
    let run = |path: &Path, block: usize| {
        let params = json!({"shape": format!("{height},{width}"), "sigma": "0.01"});
        json!({"op": "run", "kernel": "gaussian", "type": "u8", "path": path, "params": params, "rows": "digest",
               "block": block, "lanes": 1})
    };
    let answers = ask(&[run(&flat, 1 << 18), run(&flat, 40), run(&dotted, 1 << 18)]);
    for answer in &answers {
        assert_eq!(answer["rows"]["bytes"], json!(height * width), "{answer}");
    }
    assert_eq!(answers[0]["rows"], answers[1]["rows"]);
    assert_ne!(answers[0]["rows"]["hash"], answers[2]["rows"]["hash"]);
}

#[test]
fn lines_and_parameters_reach_the_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    std::fs::write(&text, "one\ntwo\nthree\n").unwrap();
    let params = json!({"pattern": "^t", "count_only": "true"});
    let answers =
        ask(&[json!({"op": "run", "kernel": "grep", "lines": true, "path": text, "params": params})]);
    assert_eq!(answers[0]["result"]["count"], json!(2));
}

#[test]
fn a_command_that_fails_says_why_and_the_next_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (data, odd) = (dir.path().join("data.f64"), dir.path().join("odd"));
    let sum = counting(&data, 10);
    std::fs::write(&odd, [0; 9]).unwrap();
    let answers = ask(&[
        json!({"op": "melt"}),
        json!({"op": "floor", "path": data, "lanes": 0}),
        json!({"op": "floor", "path": data, "lanes": 1, "depth": 1}),
        json!({"op": "floor", "path": dir.path().join("none"), "lanes": 1}),
        json!({"op": "plain", "path": odd, "lanes": 1}),
        json!({"op": "run", "kernel": "sum", "path": data}),
        json!({"op": "plain", "path": data, "lanes": 1}),
    ]);
    for (answer, word) in answers.iter().zip(["melt", "lanes", "depth", "none", "whole number", "type"]) {
        assert!(answer["error"].as_str().unwrap().contains(word), "{answer}");
    }
    assert_eq!(answers[6]["result"]["sum"], json!(sum));
}

#[test]
fn copies_and_connections_move_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let (data, folder) = (dir.path().join("data"), dir.path().join("source"));
    // Not a multiple of the streams, nor of a block.
    let bytes: Vec<u8> = (0..(1u32 << 20) + 13).map(|i| (i % 251) as u8).collect();
    std::fs::write(&data, &bytes).unwrap();
    std::fs::create_dir(&folder).unwrap();
    for name in ["a", "b", "c"] {
        std::fs::write(folder.join(name), name.repeat(5)).unwrap();
    }
    let (parts, copied) = (dir.path().join("parts"), dir.path().join("copied"));
    let answers = ask(&[
        json!({"op": "tcp", "source": data, "folder": parts, "streams": 3}),
        json!({"op": "copies", "source": folder, "folder": copied, "threads": 2}),
        json!({"op": "echo", "count": 20}),
        json!({"op": "tcp", "source": data, "folder": parts, "streams": 0}),
        json!({"op": "copies", "source": folder, "folder": copied, "threads": 0}),
    ]);
    assert_eq!(answers[0]["bytes_read"], json!(bytes.len()));
    let together: Vec<u8> =
        (0..3).flat_map(|n| std::fs::read(parts.join(format!("part{n}"))).unwrap()).collect();
    assert_eq!(together, bytes);
    assert_eq!(answers[1]["bytes_read"], json!(15));
    assert_eq!(std::fs::read(copied.join("b")).unwrap(), b"bbbbb");
    assert_eq!(std::fs::read_dir(&copied).unwrap().count(), 3);
    assert_eq!(answers[2]["each"].as_array().unwrap().len(), 20);
    assert!(answers[3]["error"].as_str().unwrap().contains("streams"));
    assert!(answers[4]["error"].as_str().unwrap().contains("threads"));
}

#[test]
fn a_file_is_fed_to_who_connects() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::write(&data, vec![7; 1_000_003]).unwrap();
    // A port that was free just now.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let feeding = {
        let feed = json!({"op": "feed", "listen": address, "source": data});
        std::thread::spawn(move || ask(&[feed]))
    };
    let drained = ask(&[json!({"op": "drain", "from": address})]);
    assert_eq!(drained[0]["bytes_read"], json!(1_000_003), "{drained:?}");
    assert_eq!(feeding.join().unwrap()[0]["bytes_read"], json!(1_000_003));
}

#[test]
fn a_cluster_that_is_not_there_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = json!({"address": "127.0.0.1:1"});
    let what = json!({"kernel": "sum", "type": "f64", "place": "storage"});
    let answers = ask(&[
        json!({"op": "ping", "cluster": nowhere, "count": 1}),
        json!({"op": "ask", "cluster": nowhere, "file": "/x", "what": what, "clients": 0}),
        json!({"op": "putmany", "cluster": nowhere, "source": dir.path(), "folder": "/x"}),
        json!({"op": "program", "cluster": nowhere, "file": "/x", "what": what, "rank": 2, "ranks": 2, "root": ""}),
        json!({"op": "program", "cluster": nowhere, "file": "/x", "what": what, "rank": 0, "ranks": 2, "root": "nowhere"}),
        json!({"op": "program", "cluster": nowhere, "file": "/x", "what": what, "rank": 0, "ranks": 1, "root": ""}),
    ]);
    let words = ["127.0.0.1:1", "clients", "127.0.0.1:1", "rank 2 of 2", "nowhere", "127.0.0.1:1"];
    for (answer, word) in answers.iter().zip(words) {
        assert!(answer["error"].as_str().unwrap().contains(word), "{answer}");
    }
}
