//! Stores numbers on storage nodes, and has the nodes add them: `sum_on_nodes grist://HOST:PORT/`
//!
//! `cargo run -p gristmill-client --example sum_on_nodes -- grist://127.0.0.1:7440/`
//!
//! Without an argument the cluster is that of `GRISTMILL_CLUSTER`. The file is `/sum_on_nodes.f64`, and is removed at
//! the end.
//!
//! It prints:
//!
//!     800000 bytes in stripes of 65536 bytes on 2 nodes
//!     place: storage (asked for)
//!     sum 5000050000
//!     ... bytes came here, ... did not

use std::error::Error;

use gristmill_client::{Cluster, ClusterOptions, RemotePut};
use gristmill_kernel::{ByteOrder, DType, Input, Value};
use gristmill_peers::Question;
use gristmill_runtime::{Control, Discard, Options, Outcome};
use gristmill_wire::{FoldPlace, InputSpec};

const PATH: &str = "/sum_on_nodes.f64";

fn main() -> Result<(), Box<dyn Error>> {
    let named = std::env::args().nth(1);
    let cluster = Cluster::connect(ClusterOptions::from_env(named.as_deref())?)?;

    let dir = tempfile::tempdir()?;
    let source = dir.path().join("numbers.f64");
    let bytes: Vec<u8> = (1..=100_000).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    std::fs::write(&source, bytes)?;
    // Stripes of whole records: no number is cut in two.
    let how = RemotePut { unit: 64 << 10, record: Some(8), ..RemotePut::default() };
    let file = cluster.put(&source, PATH, &how, &mut |_| ())?.file;
    println!("{} bytes in stripes of {} bytes on {} nodes", file.length, file.unit, file.targets.len());
    let added = add(&cluster);
    cluster.remove(PATH)?;
    added
}

/// Has the nodes add the numbers of the file, and prints their sum.
fn add(cluster: &Cluster) -> Result<(), Box<dyn Error>> {
    let question = Question {
        kernel: "sum".into(),
        input: InputSpec::new(&Input::elements(DType::F64), ByteOrder::Little),
        ..Question::default()
    };
    let options = Options::default();
    // `FoldPlace::Auto` leaves the place to the bytes that would move and to the load of the nodes.
    let planned = cluster.plan(PATH, question, FoldPlace::Storage, &options)?;
    println!("place: storage ({})", planned.plan.why);
    // `sum` gives no rows, so there is nothing to keep of them.
    let Outcome::Done(answer) = cluster.run(&planned, options, &mut Discard, &Control::new())? else {
        return Ok(());
    };
    if let Some(Value::Float(sum)) = answer.value.get("sum") {
        println!("sum {sum}");
    }
    let report = &answer.report;
    println!("{} bytes came here, {} did not", report.bytes_to_client, report.bytes_not_moved);
    Ok(())
}
