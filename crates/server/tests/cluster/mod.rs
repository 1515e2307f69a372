//! Nodes and a client in the process of the test.
#![allow(clippy::unwrap_used, dead_code)]

use std::path::{Path, PathBuf};

use gristmill_client::{Cluster, ClusterOptions, RemotePut};
use gristmill_kernel::{RowBatch, Value};
use gristmill_peers::{Files, ON_STORAGE, Peers, PeersOptions, Question};
use gristmill_runtime::{Control, Options, Outcome, Report, RunError, run_on};
use gristmill_server::{ActivePriority, Node, NodeOptions};
use gristmill_transport::{Dialer, DialerOptions};
use gristmill_wire::{FoldPlace, InputSpec};
use tokio::runtime::Runtime;

/// Nodes that stop at the end of the test.
pub struct Nodes {
    pub dir: tempfile::TempDir,
    pub nodes: Vec<Option<Node>>,
    pub cluster: Cluster,
    runtime: Option<Runtime>,
}

impl Nodes {
    pub fn start(count: usize) -> Nodes {
        Nodes::started(count, |options| options)
    }

    /// Starts nodes with options of their own.
    pub fn started(count: usize, how: impl Fn(NodeOptions) -> NodeOptions) -> Nodes {
        let dir = tempfile::tempdir().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let mut nodes = Vec::new();
        for number in 0..count {
            // Other tests run at the same time, and idle lanes would get only the processor time that they leave.
            let options = options(dir.path(), number, nodes.first());
            let options = how(NodeOptions { active_priority: ActivePriority::Low, ..options });
            nodes.push(runtime.block_on(Node::start(options)).unwrap());
        }
        let entry = nodes[0].address().to_string();
        let cluster = Cluster::connect(ClusterOptions { entry, ..ClusterOptions::default() }).unwrap();
        Nodes { dir, nodes: nodes.into_iter().map(Some).collect(), cluster, runtime: Some(runtime) }
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub fn put(&self, path: &str, bytes: &[u8], how: &RemotePut) {
        let source = self.file("source", bytes);
        self.cluster.put(&source, path, how, &mut |_| ()).unwrap();
    }

    pub fn ask(
        &self,
        path: &str,
        question: Question,
        place: FoldPlace,
    ) -> Result<(Value, RowBatch, Report), RunError> {
        let planned =
            self.cluster.plan(path, question, place, &Options::default()).map_err(|error| match error {
                gristmill_client::ClientError::Run(error) => error,
                other => panic!("{other}"),
            })?;
        let mut rows = RowBatch::default();
        match self.cluster.run(&planned, Options::default(), &mut rows, &Control::new())? {
            Outcome::Done(answer) => Ok((answer.value, rows, answer.report)),
            Outcome::Stopped(_) => panic!("nobody stopped it"),
        }
    }

    /// Folds on the nodes of a file, which may hand work back.
    pub fn ask_movable(&self, path: &str, question: &Question) -> (Value, RowBatch, Report) {
        self.try_movable(path, question).unwrap()
    }

    pub fn try_movable(
        &self,
        path: &str,
        question: &Question,
    ) -> Result<(Value, RowBatch, Report), RunError> {
        self.try_movable_with(path, question, &Control::new())
    }

    pub fn try_movable_with(
        &self,
        path: &str,
        question: &Question,
        control: &Control,
    ) -> Result<(Value, RowBatch, Report), RunError> {
        let runtime = self.runtime.as_ref().unwrap();
        let inside = runtime.enter();
        let dialer = Dialer::new(DialerOptions::default());
        let peers = Peers::new(dialer, runtime.handle().clone(), PeersOptions::default()).unwrap();
        drop(inside);
        let (opened, options) = (Files::from(&self.cluster.open(path).unwrap()), Options::default());
        let request = question.request(&peers, &opened, ON_STORAGE, options.clone()).unwrap();
        let crew = question.crew(&peers, &opened, options.max_record, None).unwrap();
        let crew = crew.accepting_hand_backs(peers.asker(2, None), options);
        let mut rows = RowBatch::default();
        match run_on(request, &crew, &mut rows, control)? {
            Outcome::Done(answer) => Ok((answer.value, rows, answer.report)),
            Outcome::Stopped(_) => panic!("nobody stopped it"),
        }
    }

    pub fn stop(&mut self, number: usize) {
        let node = self.nodes[number].take().unwrap();
        self.runtime.as_ref().unwrap().block_on(node.stop()).unwrap();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.nodes.clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn options(dir: &Path, number: usize, entry: Option<&Node>) -> NodeOptions {
    let target = dir.join(format!("node{number}"));
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = match entry {
        None => NodeOptions::entry(&target, listen),
        Some(entry) => {
            NodeOptions::storage(&target, listen, entry.address().to_string(), dir.join("node0/cluster.key"))
        }
    };
    NodeOptions { lanes: Some(2), ..options }
}

pub fn stripes(unit: u64) -> RemotePut {
    RemotePut { unit, ..RemotePut::default() }
}

pub fn numbers(kernel: &str) -> Question {
    let input = InputSpec { dtype: Some("f64".into()), ..InputSpec::default() };
    Question { kernel: kernel.into(), input, ..Question::default() }
}

pub fn text(kernel: &str, params: &[(&str, &str)]) -> Question {
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Question { kernel: kernel.into(), params, ..Question::default() }
}

/// Numbers whose plain sum depends on their division into parts.
pub fn mixed(count: u64) -> Vec<u8> {
    let value = |n: u64| {
        let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11;
        (n as f64 - (1u64 << 52) as f64) * 2f64.powi((n % 90) as i32 - 45)
    };
    (0..count).flat_map(|n| value(n).to_le_bytes()).collect()
}
