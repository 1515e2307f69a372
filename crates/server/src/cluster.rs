//! Status of all nodes, for monitoring: `GET /cluster` on the entry node, with authentication.
//!
//! The entry node asks all nodes at once and remembers the answer for a moment, so that many monitors do not multiply
//! the requests. Administrators see the names of all users, and others only their own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use futures_util::stream::iter;
use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_wire::action::Node;
use gristmill_wire::{ClusterStatus, FIRST_ID, Grant, MAX_CLUSTER_BYTES, NodeStatus, Rights, TargetPlace};
use http::header;
use tokio::sync::Mutex;

use crate::blocking::blocking;
use crate::collect::{ENTRY, objects_of};
use crate::door::request_principal;
use crate::error::{Answer, Refusal};
use crate::limits::{ASK_ALL_TIME, ASK_TIME, ASKED_AT_ONCE, JOIN_AGE, REMEMBER_CLUSTER};
use crate::shared::{Shared, now};
use crate::status;

/// Most texts that are kept of one answer: one for each user that asked.
const MAX_TEXTS: usize = 64;

/// The last answer. A request that finds it too old makes a new one, and all others wait for it.
pub(crate) type LastAnswer = Mutex<Option<Answered>>;

/// The status of all nodes at one time.
pub(crate) struct Answered {
    at: Instant,
    status: ClusterStatus,
    /// The text for each user that asked; that for administrators is under `None`.
    texts: HashMap<Option<Principal>, Bytes>,
}

impl Answered {
    /// The status as a user sees it, or as an administrator does.
    fn text(&mut self, user: Option<Principal>) -> Answer<Bytes> {
        if let Some(text) = self.texts.get(&user) {
            return Ok(text.clone());
        }
        let text = match &user {
            None => encode(&self.status)?,
            Some(user) => encode(&self.status.clone().seen_by(user.as_str()))?,
        };
        if self.texts.len() < MAX_TEXTS {
            self.texts.insert(user, text.clone());
        }
        Ok(text)
    }
}

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/cluster", get(cluster))
}

async fn cluster(State(shared): State<Arc<Shared>>, request: Request) -> Answer<Response> {
    let principal = request_principal(request.extensions())?;
    let user = if shared.namespace()?.is_administrator(&principal) { None } else { Some(principal) };
    let mut last = shared.last_cluster.lock().await;
    let answered = match last.take() {
        Some(answered) if answered.at.elapsed() < REMEMBER_CLUSTER => answered,
        _ => {
            let status = ask_all(&shared).await?;
            Answered { at: Instant::now(), status, texts: HashMap::new() }
        }
    };
    let text = last.insert(answered).text(user)?;
    drop(last);
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from(text)).into_response())
}

fn encode(status: &ClusterStatus) -> Answer<Bytes> {
    let failed = |text: String| Refusal::new(ErrorKind::Failed, text);
    let text = serde_json::to_vec(status).map_err(|error| failed(error.to_string()))?;
    if text.len() > MAX_CLUSTER_BYTES {
        let text = format!("the status of all nodes has {} bytes, more than {MAX_CLUSTER_BYTES}", text.len());
        return Err(failed(format!("{text}; read /metrics of each node")));
    }
    Ok(text.into())
}

async fn ask_all(shared: &Arc<Shared>) -> Answer<ClusterStatus> {
    let state = shared.clone();
    let nodes = blocking(move || state.nodes()).await?.nodes;
    let grant = &grant(shared)?;
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let (begun, listed) = (Instant::now(), ClusterStatus::listed_per_node(nodes.len()));
    let asked = iter(nodes).map(|node| async move {
        let status = match begun.elapsed() < ASK_ALL_TIME {
            true => ask(shared, &node, grant).await,
            false => Err("not asked: too many other nodes do not answer".to_owned()),
        };
        let silent_seconds = shared.silent(node.number).map(|silent| silent.as_secs_f64());
        let status = status.unwrap_or_else(|why| NodeStatus { error: Some(why), ..NodeStatus::default() });
        NodeStatus { target: node.number, address: node.address, silent_seconds, ..status }
            .limit_lists(listed)
    });
    Ok(ClusterStatus { at, nodes: asked.buffered(ASKED_AT_ONCE).collect().await })
}

/// The status of a node, or the reason without one.
async fn ask(shared: &Shared, node: &Node, grant: &str) -> Result<NodeStatus, String> {
    if shared.number().is_ok_and(|own| own == node.number) {
        return status::node_status(shared).map_err(|refusal| refusal.0.message);
    }
    let asked = tokio::time::timeout(ASK_TIME, shared.peers.status(&node.address, grant)).await;
    let status = asked.map_err(|_| format!("no answer in {} s", ASK_TIME.as_secs()))?;
    let status = status.map_err(|error| error.to_string())?;
    if status.target != node.number {
        return Err(format!("the node of target {} answers at {} now", status.target, node.address));
    }
    Ok(status)
}

/// The entry node's authentication at other nodes: a grant for a file that does not exist, valid for as long as clocks
/// may differ.
fn grant(shared: &Shared) -> Answer<String> {
    let target = TargetPlace { number: shared.number()?, address: shared.address.clone(), version: 0 };
    let file = objects_of(FIRST_ID, vec![target]);
    let expires = now() + 2 * JOIN_AGE;
    Ok(shared.key.seal(&Grant { principal: ENTRY.into(), rights: Rights::Read, file, expires })?)
}
