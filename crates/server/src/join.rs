//! Registration of a node with the entry node, and heartbeats.

use std::sync::{Arc, PoisonError};
use std::time::Instant as Moment;

use gristmill_namespace::TargetId;
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::action::{Join, Joined, names};
use gristmill_wire::{GRANT_SECONDS, Pass};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::ServerError;
use crate::blocking::blocking;
use crate::entry_node::EntryNode;
use crate::error::{Answer, Refusal};
use crate::limits::{HEARTBEAT, JOIN_AGE, JOIN_TIMEOUT};
use crate::shared::{Shared, now};

/// Principal in the pass of a node that joins, and of the entry node that asks nodes. No user has this name: names of users
/// have no blanks.
pub(crate) const NODE: &str = "a storage node";

/// Joins for the first time. The entry node may still be starting.
pub(crate) async fn first(shared: &Arc<Shared>, id: &str) -> Result<(), ServerError> {
    let Some(entry) = &shared.entry else {
        let (state, id) = (shared.clone(), id.to_owned());
        let taken = blocking(move || take_in(&state, &id, &state.address, state.holds_files)).await;
        let number = taken.map_err(|refusal| ServerError::Join(refusal.0.into_error()))?;
        shared.set_number(number);
        return Ok(());
    };
    let begun = Instant::now();
    loop {
        match join(shared, entry, id).await {
            Err(error) if error.kind() == ErrorKind::Unavailable && begun.elapsed() < JOIN_TIMEOUT => {
                sleep(HEARTBEAT / 20).await;
            }
            joined => return joined.map_err(ServerError::Join),
        }
    }
}

/// Joins repeatedly, so that the entry node knows this node and its address after a restart of either.
pub(crate) async fn keep(
    shared: Arc<Shared>,
    id: String,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), ServerError> {
    let Some(entry) = &shared.entry else { return Ok(()) };
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return Ok(()),
            () = sleep(HEARTBEAT) => {}
        }
        let state = shared.clone();
        blocking(move || {
            state.reserve.mend();
            Ok::<_, ServerError>(())
        })
        .await?;
        // If the entry node is down, the next heartbeat tries again.
        let _ = join(&shared, entry, &id).await;
    }
}

/// Tells the entry node that this node is there. If that fails, the next attempt looks for the entry node again.
async fn join(shared: &Shared, entry: &EntryNode, id: &str) -> Result<(), RunError> {
    let joined = join_at(shared, &entry.address().await?, id).await;
    if joined.is_err() {
        entry.forget();
    }
    joined
}

async fn join_at(shared: &Shared, entry: &str, id: &str) -> Result<(), RunError> {
    let (target, address) = (id.to_owned(), shared.address.clone());
    let without_store = !shared.holds_files;
    let mut join = Join { target, address, without_store, at: now(), seal: String::new() };
    join.seal = shared.key.sign(join.signed_text().as_bytes());
    let pass = shared.key.seal_pass(&Pass { principal: NODE.into(), expires: now() + GRANT_SECONDS })?;
    let joined: Joined = shared.peers.action_with_pass(entry, names::JOIN, &join, &pass).await?;
    shared.set_number(joined.number);
    Ok(())
}

/// Registers a node on the entry node, if the node has the key of the cluster.
pub(crate) fn admit(shared: &Shared, join: &Join) -> Answer<Joined> {
    let denied = |text: &str| Err(Refusal::new(ErrorKind::Denied, text));
    if !shared.key.verify(join.signed_text().as_bytes(), &join.seal) {
        return denied("the node has another key than this cluster; give it the key file of the entry node");
    }
    if now().abs_diff(join.at) > JOIN_AGE {
        return denied("the clocks of the node and of the entry node differ by minutes; set them");
    }
    let number = take_in(shared, &join.target, &join.address, !join.without_store)?;
    shared.heard.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Moment::now());
    Ok(Joined { number })
}

fn take_in(shared: &Shared, id: &str, address: &str, holds_files: bool) -> Answer<u32> {
    let Some(namespace) = &shared.namespace else {
        return Err(Refusal::new(ErrorKind::Usage, "this node is not the entry node; join the entry node"));
    };
    Ok(namespace.join(&id.parse::<TargetId>()?, address, holds_files)?)
}
