//! Tests of a node with the largest number of requests of a kind.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use gristmill_array::{Meaning, Op, Reduction, Request, Selection};
use gristmill_flight::{FlightData, Ticket};
use gristmill_format::{ChunkLocations, FileRef, open_raw};
use gristmill_kernel::{ByteOrder, DType};
use gristmill_runtime::ErrorKind;
use gristmill_wire::action::{FileInfo, Opened, PathRequest, names};
use gristmill_wire::{ArraySpec, ErrorBody, FoldRequest, Grant, InputSpec, MAX_ASKED_CHUNKS, Rights, grid};
use http::StatusCode;
use tonic::{Status, Streaming};

use crate::limits::{MAX_FOLDS, REQUEST_MEMORY};
use crate::test_node::{NUMBERS, THREADS, TestNode, with_node};

impl TestNode {
    async fn stat(&self) -> FileInfo {
        let path = PathRequest { path: "/numbers".into() };
        self.shared.peers.action(&self.address, names::STAT, &path).await.unwrap()
    }

    async fn get(&self, ticket: Vec<u8>) -> Result<Streaming<FlightData>, Status> {
        let mut flight = self.shared.peers.flight(&self.address).unwrap();
        Ok(flight.do_get(tonic::Request::new(Ticket { ticket: ticket.into() })).await?.into_inner())
    }

    /// Ticket for the sum of the file.
    async fn fold(&self) -> Vec<u8> {
        let path = PathRequest { path: "/numbers".into() };
        let opened: Opened = self.shared.peers.action(&self.address, names::OPEN, &path).await.unwrap();
        let input = InputSpec { dtype: Some("f64".into()), ..InputSpec::default() };
        let mut fold = FoldRequest::new(opened.grant, "sum".into(), vec![], input);
        fold.targets = vec![0];
        fold.select = (0, NUMBERS);
        fold.encode().unwrap()
    }

    /// Ticket for a histogram of the file, whose partial is so large that it needs room.
    async fn large_fold(&self) -> Vec<u8> {
        let mut fold = FoldRequest::decode(&self.fold().await).unwrap().unwrap();
        fold.kernel = "histogram".into();
        fold.params = [("bins", "65536"), ("range", "0:1000")].map(|(k, v)| (k.into(), v.into())).into();
        fold.encode().unwrap()
    }

    /// Ticket for the sum of an array of this many chunks, all of them missing. It has a few hundred bytes for any
    /// number.
    async fn fold_of_chunks(&self, chunks: u64) -> Vec<u8> {
        let source = Arc::new(vec![0u8; 8]);
        let mut table =
            open_raw(source, DType::F64, ByteOrder::Little, &[1], 0).unwrap().table("data").unwrap();
        (table.array.shape, table.array.stored) = (vec![chunks], vec![chunks]);
        table.array.chunk = vec![1];
        table.locations = ChunkLocations::Listed(Vec::new());
        table.files = vec![FileRef { name: String::new(), length: 8 * NUMBERS }];
        let request = Request {
            grid: grid(&table.array).unwrap(),
            meaning: Meaning::plain(DType::F64),
            others: Vec::new(),
            constants: Vec::new(),
            selection: Selection::default(),
            expr: None,
            reduction: Reduction::new(Op::Sum),
        };
        let mut fold = FoldRequest::decode(&self.fold().await).unwrap().unwrap();
        fold.array = Some(Arc::new(ArraySpec::new(&table, std::iter::empty(), &request).unwrap()));
        fold.select = (0, chunks);
        fold.encode().unwrap()
    }

    /// Folds that wait for their turn and have sent a sign of life.
    async fn waiting(&self) -> Vec<Streaming<FlightData>> {
        let ticket = self.fold().await;
        let mut folds = Vec::new();
        for _ in 0..3 * THREADS {
            folds.push(self.get(ticket.clone()).await.unwrap());
        }
        for fold in &mut folds {
            // The schema comes first, and then the sign of life.
            for _ in 0..2 {
                assert!(fold.message().await.unwrap().is_some());
            }
        }
        folds
    }
}

#[test]
fn folds_that_wait_keep_nobody_else_from_being_answered() {
    with_node(async |test| {
        let turns = test.shared.folds.all().await;
        let folds = test.waiting().await;
        assert_eq!(test.stat().await.file.length, 8 * NUMBERS);
        drop(turns);
        for mut fold in folds {
            let mut last = None;
            while let Some(message) = fold.message().await.unwrap() {
                last = Some(message);
            }
            assert!(last.is_some(), "signs of life, and then the answer");
        }
    });
}

#[test]
fn a_flood_of_one_principal_lets_another_s_request_pass() {
    with_node(async |test| {
        let mut turns = test.shared.folds.all().await;
        let flood = test.waiting().await;
        let mut fold = FoldRequest::decode(&test.fold().await).unwrap().unwrap();
        let grant = test.shared.grant(&fold.grant, Rights::Read).unwrap();
        fold.grant = test.shared.key.seal(&Grant { principal: "other".into(), ..grant }).unwrap();
        let other = test.get(fold.encode().unwrap()).await.unwrap();
        while test.shared.folds.waiting() < flood.len() + 1 {
            tokio::task::yield_now().await;
        }
        // This one comes last, and keeps the only turn once it has it.
        let (shared, last) = (test.shared.clone(), "last".into());
        let last = tokio::spawn(async move { shared.folds.turn(&last).await });
        while test.shared.folds.waiting() < flood.len() + 2 {
            tokio::task::yield_now().await;
        }
        drop(turns.pop());
        let last = last.await.unwrap().unwrap();
        assert!(frames(other).await > 0);
        assert_eq!(test.shared.folds.waiting(), flood.len() - 1, "one of the flood was before it");
        drop(last);
        for fold in flood {
            assert!(frames(fold).await > 0);
        }
    });
}

async fn frames(mut fold: Streaming<FlightData>) -> usize {
    let mut frames = 0;
    while fold.message().await.unwrap().is_some() {
        frames += 1;
    }
    frames
}

#[test]
fn large_answers_wait_for_room_with_their_turns_and_small_ones_do_not() {
    with_node(async |test| {
        let room = test.shared.answers.all().await;
        let mut large = test.get(test.large_fold().await).await.unwrap();
        // The schema comes first, and then a sign of life: without room there is no answer.
        for _ in 0..2 {
            assert!(large.message().await.unwrap().is_some());
        }
        while test.shared.folds.free() == MAX_FOLDS {
            tokio::task::yield_now().await;
        }
        assert!(frames(test.get(test.fold().await).await.unwrap()).await > 1);
        assert_eq!(test.shared.folds.free(), MAX_FOLDS - 1);
        drop(room);
        assert!(frames(large).await > 0);
        drop(test.shared.answers.all().await);
        // A fold that is cancelled while it waits returns its turn.
        let _room = test.shared.answers.all().await;
        let large = test.get(test.large_fold().await).await.unwrap();
        while test.shared.folds.free() == MAX_FOLDS {
            tokio::task::yield_now().await;
        }
        drop(large);
        drop(test.shared.folds.all().await);
    });
}

#[test]
fn a_client_that_goes_gives_up_its_place_among_those_that_wait() {
    with_node(async |test| {
        let _turns = test.shared.folds.all().await;
        let folds = test.waiting().await;
        drop(folds);
        drop(test.shared.value_folds.all().await);

        let _turns = test.shared.runs.all().await;
        let ticket = br#"{"gristmill": 1, "kernel": "grep", "path": "/numbers", "params": {"pattern": "x"}}"#;
        let run = test.get(ticket.to_vec()).await.unwrap();
        drop(run);
        drop(test.shared.waiting_runs.all().await);
    });
}

/// 400 KiB of such requests once needed eight gigabytes before any of them had a turn.
#[test]
fn few_bytes_that_ask_for_millions_of_chunks_take_memory_of_whoever_asks() {
    with_node(async |test| {
        let memory = &test.shared.requests;
        let turns = test.shared.folds.all().await;
        let ticket = test.fold_of_chunks(MAX_ASKED_CHUNKS as u64).await;
        assert!(ticket.len() < 2000, "{}", ticket.len());
        let first = test.get(ticket.clone()).await.unwrap();
        for _ in 0..20 {
            busy(&test.get(ticket.clone()).await.unwrap_err(), "no memory for more requests of anonymous");
        }
        // Short requests are still answered.
        assert_eq!(test.stat().await.file.length, 8 * NUMBERS);
        let short = test.get(test.fold().await).await.unwrap();
        drop(first);
        drop(turns);
        assert!(frames(short).await > 0);
        for again in [true, false] {
            // The memory is returned a little after the streams have ended.
            while memory.free() < REQUEST_MEMORY as u64 {
                tokio::task::yield_now().await;
            }
            if again {
                assert!(frames(test.get(ticket.clone()).await.unwrap()).await > 0);
            }
        }
    });
}

fn busy(error: &Status, of: &str) {
    let body: ErrorBody = serde_json::from_slice(error.details()).unwrap();
    assert_eq!(ErrorKind::named(&body.kind), ErrorKind::Busy, "{body:?}");
    let seconds = body.retry_after.unwrap();
    let again = format!("try again in {seconds} s");
    assert!(body.message.contains(of) && body.message.ends_with(&again), "{body:?}");
}

#[test]
fn requests_beyond_the_bound_are_refused_as_busy() {
    with_node(async |test| {
        let fold = test.fold().await;
        let run = br#"{"gristmill": 1, "kernel": "sum", "path": "/numbers", "type": "f64"}"#.to_vec();
        let places = test.shared.value_folds.all().await;
        busy(&test.get(fold.clone()).await.unwrap_err(), "folds for values");
        drop(places);
        assert!(test.get(fold).await.is_ok());

        let places = test.shared.waiting_runs.all().await;
        busy(&test.get(run.clone()).await.unwrap_err(), "requests by path");
        drop(places);
        assert!(test.get(run).await.is_ok());
    });
}

#[test]
fn uploads_beyond_the_bound_are_refused_as_busy() {
    with_node(async |test| {
        for (permits, of) in
            [(&test.shared.uploads, "uploads of objects"), (&test.shared.file_uploads, "uploads of files")]
        {
            let places = permits.all().await;
            let (status, body) = test.put("/files/more", b"12345678".to_vec()).await;
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{body}");
            let body: ErrorBody = serde_json::from_str(&body).unwrap();
            assert!(body.message.contains(of) && body.retry_after.is_some(), "{body:?}");
            let request = http::Request::put("/files/more").body(bytes::Bytes::from("12345678")).unwrap();
            let refused = test.http().send(request).await.unwrap();
            assert_eq!(refused.headers()["retry-after"], body.retry_after.unwrap().to_string());
            drop(places);
            assert_eq!(test.put("/files/more", b"12345678".to_vec()).await.0, StatusCode::CREATED);
        }
    });
}
