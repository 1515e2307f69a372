//! Tests of work that is handed back while it runs and continued by the client: the answer is the same to the last bit.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use gristmill_array::{Meaning, Op, Reduction, Selection};
use gristmill_format::{ChunkLocation, ChunkLocations, open_raw};
use gristmill_kernel::{ByteOrder, DType, RowBatch, Value};
use gristmill_peers::{AT_CLIENT, ArrayWork, Files, ON_STORAGE, Question};
use gristmill_runtime::{Chunks, ClientShare, Control, Options, Outcome, run, run_on};
use gristmill_wire::action::{Opened, PathRequest, names};
use gristmill_wire::{InputSpec, grid};

use crate::test_node::{TestNode, with_share};

/// A share so small that a test finds the request running. A block takes far less than a millisecond of processor time.
const SHARE: f64 = 0.0005;

/// The share for nodes that finish their pass before the hand-back.
const SHARE_OF_PASSES: f64 = 0.005;

/// Bytes of the file: several blocks, and too few for a hand-back without an order.
const BYTES: u64 = 127 * 1024 * 8;

fn ask(kernel: &str, dtype: Option<&str>, params: &[(&str, &str)]) -> Question {
    Question {
        kernel: kernel.into(),
        params: params.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        input: InputSpec { dtype: dtype.map(Into::into), ..InputSpec::default() },
        range: None,
        array: None,
    }
}

impl TestNode {
    async fn opened(&self, path: &str) -> Files {
        let path = PathRequest { path: path.into() };
        let opened: Opened = self.shared.peers.action(&self.address, names::OPEN, &path).await.unwrap();
        Files::from(&opened)
    }

    /// Runs a request, and lets the node hand it back as soon as it has folded something.
    async fn caught(&self, question: &Question, opened: &Files) -> (Value, RowBatch, ClientShare) {
        let (peers, own, file) = (self.shared.peers.clone(), question.clone(), opened.clone());
        let running = tokio::task::spawn_blocking(move || {
            let options = Options { lanes: 2, ..Options::default() };
            let request = own.request(&peers, &file, ON_STORAGE, options.clone()).unwrap();
            let crew = own.crew(&peers, &file, options.max_record, None).unwrap();
            let crew = crew.accepting_hand_backs(peers.asker(2, None), options);
            let mut rows = RowBatch::default();
            let done = run_on(request, &crew, &mut rows, &Control::new()).unwrap();
            let Outcome::Done(answer) = done else { panic!("nobody stopped it") };
            assert_eq!(answer.report.revisions.len(), 1);
            (answer.value, rows, gristmill_runtime::Crew::client_share(&crew))
        });
        loop {
            let active = self.shared.contention.active.all();
            let begun = active.iter().find(|one| one.hand_off.own.progress().0 > 0);
            if let Some(active) = begun {
                active.hand_off.hand_back("for a test".into());
                break;
            }
            assert!(!running.is_finished(), "it was not caught at work");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.await.unwrap()
    }

    async fn plainly(&self, question: &Question, opened: &Files) -> (Value, RowBatch) {
        let (peers, own, file) = (self.shared.peers.clone(), question.clone(), opened.clone());
        let running = tokio::task::spawn_blocking(move || {
            let mut rows = RowBatch::default();
            let request = own.request(&peers, &file, AT_CLIENT, Options::default()).unwrap();
            match run(request, &mut rows, &Control::new()).unwrap() {
                Outcome::Done(answer) => (answer.value, rows),
                Outcome::Stopped(_) => panic!("nobody stopped it"),
            }
        });
        running.await.unwrap()
    }
}

/// Reduction of the numbers as an array in chunks of 1,024.
fn of_array(op: Op, axes: &[i64]) -> Question {
    let numbers = Arc::new(vec![0u8; BYTES as usize]);
    let raw = open_raw(numbers, DType::F64, ByteOrder::Little, &[127, 1024], 0).unwrap();
    let mut table = raw.table("data").unwrap();
    table.array.chunk = vec![1, 1024];
    let place = |chunk| ChunkLocation { chunk, file: 0, offset: chunk * 8192, bytes: 8192, mask: 0 };
    table.locations = ChunkLocations::Listed((0..127).map(place).collect());
    let chunks = Chunks::new(Arc::new(table.clone()), (0..127).collect()).unwrap();
    let request = gristmill_array::Request {
        grid: grid(&table.array).unwrap(),
        meaning: Meaning::plain(DType::F64),
        others: Vec::new(),
        constants: Vec::new(),
        selection: Selection::default(),
        expr: None,
        reduction: Reduction::new(op).over(axes),
    };
    Question::for_array(Arc::new(ArrayWork::new(chunks, request).unwrap()))
}

fn is_the_same(questions: Vec<Question>, content: Vec<u8>) {
    with_share(SHARE, async |test| {
        assert_eq!(test.put("/files/data", content).await.0, http::StatusCode::CREATED);
        let opened = test.opened("/data").await;
        for question in questions {
            let name = question.kernel.clone();
            let (value, rows, here) = test.caught(&question, &opened).await;
            let (expected, expected_rows) = test.plainly(&question, &opened).await;
            assert_eq!((value, rows), (expected, expected_rows), "{name}");
            let read: u64 = here.tally.read.iter().sum();
            assert!(0 < read && read < BYTES, "{name}: {read} bytes were folded by the client");
            assert_eq!(here.revisions[0].why, "for a test");
        }
    });
}

#[test]
fn numbers_go_on_elsewhere() {
    let mut rng = fastrand::Rng::with_seed(3);
    let content: Vec<u8> =
        (0..BYTES / 8).flat_map(|_| (rng.f64() * 10f64.powi(rng.i32(-30..30))).to_le_bytes()).collect();
    let dtype = Some("f64");
    let shape = [("shape", "127,1024"), ("sigma", "1.5")];
    is_the_same(
        vec![
            ask("sum", dtype, &[]),
            ask("var", dtype, &[]),
            ask("last", dtype, &[]),
            ask("lookup", dtype, &[("where", "> 0")]),
            ask("gaussian", dtype, &shape),
            of_array(Op::Var, &[0]),
            of_array(Op::Sum, &[0, 1]),
        ],
        content,
    );
}

#[test]
fn passes_go_on_elsewhere() {
    let mut rng = fastrand::Rng::with_seed(5);
    let content: Vec<u8> = (0..BYTES / 8).flat_map(|_| (rng.f64() * 1e3 - 500.0).to_le_bytes()).collect();
    with_share(SHARE_OF_PASSES, async |test| {
        assert_eq!(test.put("/files/data", content).await.0, http::StatusCode::CREATED);
        let opened = test.opened("/data").await;
        let clusters = [("dims", "2"), ("k", "3"), ("seed", "1"), ("max_iter", "6"), ("tol", "0")];
        let questions = [
            ask("median", Some("f64"), &[]),
            ask("kmeans", Some("f64"), &clusters),
            of_array(Op::Quantile(vec![0.5]), &[0, 1]),
        ];
        for question in questions {
            let name = question.kernel.clone();
            let (value, _, here) = test.caught(&question, &opened).await;
            assert_eq!(value, test.plainly(&question, &opened).await.0, "{name}");
            // At least one pass was folded by the node, and at least one by the client.
            let read: u64 = here.tally.read.iter().sum();
            assert!(read >= BYTES && read.is_multiple_of(BYTES), "{name}: {read}");
        }
    });
}

#[test]
fn text_goes_on_elsewhere() {
    let lines = (0..).map(|n| format!("line {n} has {} words\n", ["some", "many", "few"][n % 3]));
    let mut content: Vec<u8> = lines.flat_map(String::into_bytes).take(BYTES as usize).collect();
    content[BYTES as usize - 1] = b'\n';
    is_the_same(
        vec![ask("wc", None, &[]), ask("grep", None, &[("pattern", "many")]), ask("last", None, &[])],
        content,
    );
}

#[test]
fn a_node_that_takes_nothing_says_so_or_hands_it_back() {
    with_share(0.0, async |test| {
        let content: Vec<u8> = (0..BYTES / 8).flat_map(|n| (n as f64).to_le_bytes()).collect();
        assert_eq!(test.put("/files/data", content).await.0, http::StatusCode::CREATED);
        let opened = test.opened("/data").await;
        let question = ask("sum", Some("f64"), &[]);
        let expected = test.plainly(&question, &opened).await.0;
        let peers = test.shared.peers.clone();
        let running = tokio::task::spawn_blocking(move || {
            let options = Options::default();
            let crew = |movable: bool| {
                let crew = question.crew(&peers, &opened, options.max_record, None).unwrap();
                if movable { crew.accepting_hand_backs(peers.asker(1, None), options.clone()) } else { crew }
            };
            let ask = |movable| {
                let request = question.request(&peers, &opened, ON_STORAGE, options.clone()).unwrap();
                run_on(request, &crew(movable), &mut RowBatch::default(), &Control::new())
            };
            let Ok(Outcome::Done(answer)) = ask(true) else { panic!("the client folds it") };
            assert_eq!(answer.value, expected);
            assert!(answer.report.places.iter().any(|place| place.place == "client" && place.bytes == BYTES));
            let refused = ask(false).unwrap_err();
            assert_eq!(refused.kind(), gristmill_runtime::ErrorKind::Busy);
            assert!(refused.to_string().contains("--active-share 0"), "{refused}");
        });
        running.await.unwrap();
    });
}
