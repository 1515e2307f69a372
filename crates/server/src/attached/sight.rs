//! Which nodes reach an attached tree.
//!
//! The entry node lists the root of the tree and asks all nodes whether they find the same names. A node that does not is
//! not asked to fold files of the tree. The check is only for convenience: each node compares the version of each file
//! before it reads it.
//!
//! One request at a time asks about a tree. Others use the last answer, or wait for the first one. A failure is remembered
//! for a moment, so storage that is down is not asked by each request again.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::iter;
use gristmill_backend::{BackendError, Key};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{MAX_SEEN_NAMES, Node, SeeTree, SeenTree, names};
use gristmill_wire::{FileReader, GRANT_SECONDS, Pass, TreeSource};

use super::open_trees::OpenTrees;
use crate::error::{Answer, Refusal};
use crate::join::NODE;
use crate::limits::{ASKED_AT_ONCE, JOIN_AGE, SEE_AGAIN, SEE_FAILED, SEE_PATIENCE, SEE_TIME};
use crate::shared::{Shared, now};

/// The targets whose nodes reach a tree, or why the entry node does not.
type Seen = Result<Arc<[u32]>, Refusal>;

/// The last answer about one tree.
#[derive(Default)]
struct Known {
    last: Option<(Instant, Seen)>,
    /// Whether a request asks now.
    asking: bool,
}

#[derive(Default)]
struct OfTree {
    known: Mutex<Known>,
    answered: Condvar,
}

impl OfTree {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes the answer, also if asking panics.
struct Asking<'a> {
    tree: &'a OfTree,
    seen: Option<Seen>,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut known = self.tree.lock();
        known.asking = false;
        if let Some(seen) = self.seen.take() {
            known.last = Some((Instant::now(), seen));
        }
        self.tree.answered.notify_all();
    }
}

/// The nodes that reach each tree, as the entry node knows them.
#[derive(Default)]
pub(crate) struct Sight(Mutex<HashMap<TreeSource, Arc<OfTree>>>);

impl Sight {
    fn of(&self, source: &TreeSource) -> Arc<OfTree> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(source.clone()).or_default().clone()
    }

    /// Forgets what is known about a tree that is attached or detached. A request that asks goes on, and others wait for it.
    pub fn forget(&self, source: &TreeSource) {
        let mut trees = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tree) = trees.get(source) else { return };
        let mut known = tree.lock();
        known.last = None;
        let is_asking = known.asking;
        drop(known);
        if !is_asking {
            trees.remove(source);
        }
    }
}

impl Shared {
    /// Numbers of the targets whose nodes reach a tree and are alive. Blocks.
    ///
    /// # Errors
    /// It fails if the entry node does not reach the tree itself.
    pub fn seeing(&self, source: &TreeSource) -> Answer<Vec<u32>> {
        let tree = self.sight.of(source);
        let seen = self.seen(&tree, source)?;
        Ok(seen.iter().copied().filter(|number| self.alive(*number)).collect())
    }

    fn seen(&self, tree: &OfTree, source: &TreeSource) -> Seen {
        let begun = Instant::now();
        let mut known = tree.lock();
        loop {
            let asking = known.asking;
            if let Some((at, seen)) = &known.last {
                let age = if seen.is_ok() { SEE_AGAIN } else { SEE_FAILED };
                // An old success serves while another request asks again, but not an old failure.
                if at.elapsed() < age || asking && seen.is_ok() {
                    return seen.clone();
                }
            }
            if !asking {
                break;
            }
            let Some(left) = SEE_PATIENCE.checked_sub(begun.elapsed()) else {
                let text = format!("{} does not answer; try again later", source.url);
                return Err(Refusal::new(ErrorKind::Unavailable, text));
            };
            let waited = tree.answered.wait_timeout(known, left);
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        known.asking = true;
        drop(known);
        let mut asking = Asking { tree, seen: None };
        let seen = self.ask_who_sees(source).map(Arc::from);
        asking.seen = Some(seen.clone());
        seen
    }

    fn ask_who_sees(&self, source: &TreeSource) -> Answer<Vec<u32>> {
        let own = self.number()?;
        let names = root_names(&self.trees, source)?;
        let nodes = self.nodes()?.nodes.into_iter();
        let nodes = nodes.filter(|node| node.number != own && self.alive(node.number));
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

/// Some names in the root of a tree. Web servers need not list their folders: they only must answer.
fn root_names(trees: &OpenTrees, source: &TreeSource) -> Result<Vec<String>, RunError> {
    // Nodes have no credentials for it. Each read finds out whether they reach it.
    if source.user_credentials {
        return OpenTrees::check(source).map(|()| Vec::new());
    }
    let tree = trees.open(source, &FileReader::Node)?;
    if !tree.lists_everything() {
        return match tree.stat(&Key::ROOT) {
            Err(error @ BackendError::Unavailable { .. }) => Err(error.into()),
            _ => Ok(Vec::new()),
        };
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
    let Some(_look) = shared.trees.look(&question.source) else {
        return Ok(SeenTree { why_not: Some("its storage has not answered an earlier question".to_owned()) });
    };
    let names = root_names(&shared.trees, &question.source);
    let why_not = match names {
        Ok(names) if names == question.names => None,
        Ok(_) => Some("it has other names there than the entry node".to_owned()),
        Err(error) => Some(error.to_string()),
    };
    Ok(SeenTree { why_not })
}
