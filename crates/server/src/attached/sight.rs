//! Which nodes reach an attached tree.
//!
//! The entry node lists the root of the tree and asks all nodes whether they find the same names. A node that does not is
//! not asked to fold files of the tree. The check is only for convenience: each node compares the version of each file
//! before it reads it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::iter;
use gristmill_backend::{Backend, Key};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{MAX_SEEN_NAMES, Node, SeeTree, SeenTree, names};
use gristmill_wire::{GRANT_SECONDS, Pass, TreeSource};

use crate::error::{Answer, Refusal};
use crate::join::NODE;
use crate::limits::{ASKED_AT_ONCE, JOIN_AGE, SEE_AGAIN, SEE_TIME};
use crate::shared::{Shared, now};

/// The nodes that reach a tree, and the time when they were asked.
type Seen = Arc<Mutex<Option<(Instant, Arc<[u32]>)>>>;

/// What the entry node knows about the nodes that reach trees.
#[derive(Default)]
pub(crate) struct Sight(Mutex<HashMap<TreeSource, Seen>>);

impl Sight {
    /// The entry of a tree. One request asks the nodes, and others of the same tree wait for it.
    fn of(&self, source: &TreeSource) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(source.clone()).or_default().clone()
    }

    /// Forgets a tree that was detached.
    pub fn forget(&self, source: &TreeSource) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(source);
    }
}

impl Shared {
    /// Numbers of the targets whose nodes reach a tree and are alive. Blocks.
    ///
    /// # Errors
    /// It fails if the entry node does not reach the tree itself.
    pub fn seeing(&self, source: &TreeSource) -> Answer<Vec<u32>> {
        let seen = self.sight.of(source);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            seen.as_ref().filter(|(at, _)| at.elapsed() < SEE_AGAIN).map(|(_, numbers)| numbers.clone());
        let numbers = match known {
            Some(numbers) => numbers,
            None => {
                let numbers: Arc<[u32]> = self.ask_who_sees(source)?.into();
                *seen = Some((Instant::now(), numbers.clone()));
                numbers
            }
        };
        Ok(numbers.iter().copied().filter(|number| self.alive(*number)).collect())
    }

    fn ask_who_sees(&self, source: &TreeSource) -> Answer<Vec<u32>> {
        let own = self.number()?;
        let names = root_names(&*self.trees.open(source, true)?)?;
        let nodes =
            self.nodes()?.nodes.into_iter().filter(|node| node.number != own && self.alive(node.number));
        let mut question = SeeTree { source: source.clone(), names, at: now(), seal: String::new() };
        question.seal = self.key.sign(&question.signed_text()?);
        let pass = self.key.seal_pass(&Pass { principal: NODE.into(), expires: now() + GRANT_SECONDS })?;
        let (question, pass) = (&question, &*pass);
        let asked = iter(nodes).map(|node: Node| async move {
            let answer = self.peers.action_with_pass(&node.address, names::SEE_TREE, question, pass);
            let answer: Result<Result<SeenTree, RunError>, _> = tokio::time::timeout(SEE_TIME, answer).await;
            matches!(answer, Ok(Ok(SeenTree { why_not: None }))).then_some(node.number)
        });
        let asked = asked.buffer_unordered(ASKED_AT_ONCE).filter_map(std::future::ready).collect();
        let mut numbers: Vec<u32> = self.peers.wait(asked);
        numbers.push(own);
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Some names in the root of a tree. Web servers need not list their folders, so nothing is compared there.
fn root_names(tree: &dyn Backend) -> Result<Vec<String>, RunError> {
    if !tree.lists_everything() {
        return Ok(Vec::new());
    }
    let page = tree.list(&Key::ROOT, None, MAX_SEEN_NAMES)?;
    Ok(page.entries.into_iter().map(|entry| entry.name).take(MAX_SEEN_NAMES).collect())
}

/// Answers the entry node whether this node reaches a tree. Blocks.
///
/// # Errors
/// It fails if the question does not have the seal of the cluster, or if it is old.
pub(crate) fn see(shared: &Shared, question: &SeeTree) -> Answer<SeenTree> {
    let denied = |text: &str| Err(Refusal::new(ErrorKind::Denied, text));
    if !shared.key.verify(&question.signed_text()?, &question.seal) {
        return denied("only the entry node of this cluster asks which nodes reach a tree");
    }
    if now().abs_diff(question.at) > JOIN_AGE {
        return denied("the clocks of the node and of the entry node differ by minutes; set them");
    }
    let names = shared.trees.open(&question.source, true).and_then(|tree| root_names(&*tree));
    let why_not = match names {
        Ok(names) if names == question.names => None,
        Ok(_) => Some("it has other names there than the entry node".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    Ok(SeenTree { why_not })
}
