//! Tests of clients with a busy node.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::thread::JoinHandle;

use gristmill_client::{Cluster, ClusterOptions};
use gristmill_kernel::RowBatch;
use gristmill_peers::Question;
use gristmill_runtime::{Control, ErrorKind, Options, Outcome, RunError};
use gristmill_wire::{FoldPlace, InputSpec};

use crate::permit::Permits;
use crate::test_node::{NUMBERS, TestNode, with_node};

/// Sends a request on its own thread. Returns the number of rows.
fn ask(test: &TestNode, kernel: &str, control: &Arc<Control>) -> JoinHandle<Result<usize, RunError>> {
    let options = ClusterOptions { entry: test.address.clone(), ..ClusterOptions::default() };
    let params = match kernel {
        "lookup" => vec![("where".into(), ">= 0".into())],
        "kmeans" => vec![("k".into(), "2".into()), ("dims".into(), "1".into())],
        _ => vec![],
    };
    let input = InputSpec { dtype: Some("f64".into()), ..InputSpec::default() };
    let question = Question { kernel: kernel.into(), params, input, range: None, array: None };
    let control = control.clone();
    std::thread::spawn(move || {
        let cluster = Cluster::connect(options).unwrap();
        let options = Options::default();
        let planned = cluster.plan("/numbers", question, FoldPlace::Storage, &options).unwrap();
        let mut rows = RowBatch::default();
        match cluster.run(&planned, options, &mut rows, &control)? {
            Outcome::Done(_) => Ok(rows.len()),
            Outcome::Stopped(_) => unreachable!("nobody stopped it"),
        }
    })
}

async fn until_refused(permits: &Permits, times: u64) {
    while permits.refused() < times {
        tokio::task::yield_now().await;
    }
}

async fn ended<T: Send + 'static>(thread: JoinHandle<T>) -> T {
    while !thread.is_finished() {
        tokio::task::yield_now().await;
    }
    thread.join().unwrap()
}

#[test]
fn what_was_refused_is_asked_again_and_done() {
    with_node(async |test| {
        let shared = test.shared.clone();
        for (kernel, permits, rows) in [
            ("sum", &shared.value_folds, 0),
            ("lookup", &shared.row_folds, NUMBERS as usize),
            ("kmeans", &shared.group_permits, 0),
        ] {
            let places = permits.all().await;
            let asked = ask(&test, kernel, &Arc::default());
            until_refused(permits, 1).await;
            drop(places);
            assert_eq!(ended(asked).await.unwrap(), rows, "{kernel}");
            assert_eq!(permits.refused(), 1, "{kernel}");
        }
    });
}

#[test]
fn a_request_that_is_given_up_waits_for_no_busy_node() {
    with_node(async |test| {
        for (kernel, permits) in [("sum", &test.shared.value_folds), ("lookup", &test.shared.row_folds)] {
            let _places = permits.all().await;
            let control = Arc::new(Control::new());
            let asked = ask(&test, kernel, &control);
            until_refused(permits, 1).await;
            control.stop();
            let error = ended(asked).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
            assert!(error.to_string().contains("given up"), "{error}");
        }
    });
}

#[test]
fn a_node_that_stays_busy_is_told_of_with_when_to_try_again() {
    with_node(async |test| {
        let permits = &test.shared.row_folds;
        let _places = permits.all().await;
        let error = ended(ask(&test, "lookup", &Arc::default())).await.unwrap_err();
        assert_eq!(permits.refused(), 1 + u64::from(gristmill_peers::MAX_BUSY_RETRIES));
        assert_eq!((error.kind(), error.retry_after()), (ErrorKind::Busy, Some(1)));
        assert!(error.to_string().ends_with("try again in 1 s"), "{error}");
    });
}
