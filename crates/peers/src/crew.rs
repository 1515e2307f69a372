//! Passes folded on the storage nodes of a file.

mod remote_units;
mod values;

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock, PoisonError};

use gristmill_kernel::Passes;
use gristmill_runtime::{
    ClientShare, Crew, GroupEnd, HandBack, Options, PassOrder, RowCut, RunError, TakeShard, UnitSource,
};
use gristmill_wire::action::Receipt;
use gristmill_wire::{Asker, FAN_IN, FoldPlace, FoldRequest, GroupSpec, NodeShard};
use tokio::sync::mpsc;

use self::remote_units::RemoteUnits;
use crate::answers::{AbortOnDrop, NodeRequest};
use crate::bytes::node_name;
use crate::client_folds::ClientFolds;
use crate::error::unavailable;
use crate::{Files, Peers, groups};

/// Batches of frames that are read ahead from a node.
const FRAMES_AHEAD: usize = 2;

/// A crew that folds passes on the storage nodes of a file.
pub struct StorageCrew {
    pub(crate) peers: Peers,
    pub(crate) files: Files,
    /// The fields that are the same in every request.
    pub(crate) request: FoldRequest,
    nodes: Vec<NodeShard>,
    /// Receipts for the bytes that nodes keep, from the pass that gives these bytes.
    written: Mutex<Vec<(u32, Receipt)>>,
    client_folds: Option<ClientFolds>,
    /// The targets that the client folds from the beginning, and the reason.
    at_client: Option<HandBack>,
    /// The hand-back between two passes. It covers all targets in all later passes.
    moved_to_client: OnceLock<HandBack>,
    /// Whether requests to busy nodes are repeated.
    retries_busy: bool,
}

impl StorageCrew {
    /// Creates a crew of these nodes. `request` has everything except the targets and the pass. Its depth is the client's.
    pub fn new(peers: Peers, files: Files, request: FoldRequest, nodes: Vec<NodeShard>) -> StorageCrew {
        StorageCrew {
            peers,
            files,
            request,
            nodes,
            written: Mutex::default(),
            client_folds: None,
            at_client: None,
            moved_to_client: OnceLock::new(),
            retries_busy: false,
        }
    }

    /// Repeats a request for a part of a value that a node refuses as busy, at the time that the node gives. The other nodes
    /// go on meanwhile. Not for parts that wait for each other: nodes with a place would keep it during the wait.
    pub fn with_busy_retries(mut self) -> StorageCrew {
        self.retries_busy = true;
        self
    }

    /// Lets nodes hand back their parts. This process then folds them with these options. If the output of a request
    /// stays on the nodes, the request is folded there in any case.
    pub fn accepting_hand_backs(mut self, asker: Asker, options: Options) -> StorageCrew {
        if self.request.output.is_none() {
            self.request.asker = Some(asker);
            self.client_folds = Some(ClientFolds::new(options, self.files.map().targets.len()));
        }
        self
    }

    /// Sets whether nodes may use and keep statistics of chunks.
    pub fn with_statistics(mut self, statistics: bool) -> StorageCrew {
        self.request.statistics = statistics;
        self
    }

    /// Sets whether storage daemons behind the nodes fold.
    pub fn with_place(mut self, place: FoldPlace) -> StorageCrew {
        self.request.place = place;
        self
    }

    /// Folds the records of these targets at the client from the beginning. Does nothing unless the crew accepts
    /// hand-backs.
    pub fn folding_at_client(mut self, targets: Vec<u32>, why: String) -> StorageCrew {
        if self.client_folds.is_none() || targets.is_empty() {
            return self;
        }
        for node in &mut self.nodes {
            node.targets.retain(|target| !targets.contains(target));
        }
        self.nodes.retain(|node| !node.targets.is_empty());
        self.at_client = Some(HandBack { targets, row_cut: RowCut::default(), why });
        self
    }

    /// The receipts for the bytes that the nodes keep, with the targets' places in the layout. There are none before
    /// the pass that gives these bytes is done.
    pub fn written(&self) -> Vec<(u32, Receipt)> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The receipts in the order of the layout.
    ///
    /// # Errors
    /// Returns an error if a node gave no receipt: its bytes would be missing.
    pub fn receipts(&self) -> Result<Vec<Option<Receipt>>, RunError> {
        let mut receipts = vec![None; self.files.map().targets.len()];
        for (target, receipt) in self.written() {
            if let Some(slot) = receipts.get_mut(target as usize) {
                *slot = Some(receipt);
            }
        }
        for node in &self.nodes {
            if node.targets.iter().any(|target| !matches!(receipts.get(*target as usize), Some(Some(_)))) {
                return Err(unavailable(&node.address, "it gave no receipt for the bytes that it made"));
            }
        }
        Ok(receipts)
    }

    /// The targets that the client folds in a whole pass.
    fn client_part(&self) -> Option<&HandBack> {
        self.moved_to_client.get().or(self.at_client.as_ref())
    }

    fn requests(&self, order: &PassOrder<'_>) -> Vec<NodeRequest> {
        if self.moved_to_client.get().is_some() {
            return Vec::new();
        }
        self.node_requests(self.request.clone(), order, FAN_IN)
    }

    pub(crate) fn node_requests(
        &self,
        mut request: FoldRequest,
        order: &PassOrder<'_>,
        fan_in: usize,
    ) -> Vec<NodeRequest> {
        request.round = order.ctx.round;
        request.set_shared(&order.ctx.shared);
        request.last = order.ctx.last;
        // Only the pass that gives the bytes has an output. All others are for values.
        if !(order.ctx.last || order.kernel.spec().passes == Passes::One) {
            request.output = None;
        }
        request.select = (order.ctx.extent.start, order.ctx.extent.end);
        request.depth += 1;
        let ask = |(node, rest): (NodeShard, Vec<NodeShard>)| {
            let number =
                node.targets.first().and_then(|target| self.files.map().targets.get(*target as usize));
            let name = node_name(number.map_or(0, |target| target.number), &node.address);
            let mut request = request.clone();
            (request.targets, request.rest) = (node.targets, rest);
            NodeRequest { address: node.address, node: name, request }
        };
        groups(self.nodes.clone(), fan_in).into_iter().map(ask).collect()
    }
}

impl Crew for StorageCrew {
    fn values(&self, order: &PassOrder<'_>, take: &mut TakeShard<'_>) -> Result<(), RunError> {
        self.fold_values(order, take)
    }

    fn finish_as_group(&self, order: &PassOrder<'_>) -> Result<Option<GroupEnd>, RunError> {
        if self.nodes.is_empty() {
            return Ok(None);
        }
        let together = GroupSpec { job: String::new(), members: self.nodes.clone() };
        let (end, tally) = self.finish_passes(order, together, 1)?;
        let end = end.ok_or_else(|| {
            unavailable(&self.nodes[0].address, "it did not report the pass that it reached")
        })?;
        if let (Some(folds), Some(first)) = (&self.client_folds, end.handed_back.first()) {
            let targets = self.nodes.iter().flat_map(|node| node.targets.iter().copied()).collect();
            let moved = HandBack { targets, row_cut: RowCut::default(), why: first.why.clone() };
            folds.note_revision(&moved);
            // Only one node reports the end, and only once.
            let _ = self.moved_to_client.set(moved);
        }
        Ok(Some(GroupEnd { tally, ..end }))
    }

    fn keeps(&self) -> bool {
        self.request.output.is_some()
    }

    fn rows<'o>(&'o self, order: &'o PassOrder<'_>) -> Result<Vec<Box<dyn UnitSource + 'o>>, RunError> {
        let targets = self.files.map().targets.len();
        let mut sources: Vec<Box<dyn UnitSource + 'o>> = Vec::new();
        for node_request in self.requests(order) {
            let (sender, frames) = mpsc::channel(FRAMES_AHEAD);
            let (peers, node, movable) =
                (self.peers.clone(), node_request.node.clone(), node_request.request.asker.is_some());
            let task = self.peers.runtime().spawn(async move {
                let mut stream = match peers.fold_rows(&node_request).await {
                    Ok(stream) => stream,
                    Err(error) => return drop(sender.send(Err(error)).await),
                };
                loop {
                    let next = stream.next_some().await;
                    if next.as_ref().is_ok_and(Vec::is_empty) {
                        return;
                    }
                    let last = next.is_err();
                    if sender.send(next).await.is_err() || last {
                        return;
                    }
                }
            });
            sources.push(Box::new(RemoteUnits {
                frames,
                ready: VecDeque::new(),
                control: order.control,
                node,
                targets,
                movable,
                reported: 0,
                received: 0,
                _task: AbortOnDrop(vec![task]),
            }));
        }
        if let (Some(folds), Some(part)) = (&self.client_folds, self.client_part()) {
            let row_cut = RowCut { from: order.ctx.extent.start, begun: None };
            sources.push(Box::new(self.client_rows(folds, order, HandBack { row_cut, ..part.clone() })?));
        }
        Ok(sources)
    }

    fn take_over<'o>(
        &'o self,
        order: &'o PassOrder<'_>,
        hand_back: HandBack,
    ) -> Result<Option<Box<dyn UnitSource + 'o>>, RunError> {
        match &self.client_folds {
            Some(folds) => Ok(Some(Box::new(self.client_rows(folds, order, hand_back)?))),
            None => {
                let why = "a node handed back work although it may not".into();
                Err(RunError::BadPartial { why })
            }
        }
    }

    fn client_share(&self) -> ClientShare {
        self.client_folds.as_ref().map(ClientFolds::share).unwrap_or_default()
    }
}
