//! Clearing away objects of files that were replaced, removed or never finished.

use std::collections::HashSet;
use std::sync::Arc;

use gristmill_namespace::Garbage;
use gristmill_runtime::RunError;
use gristmill_store::ObjectId;
use gristmill_transport::Address;
use gristmill_wire::{FileMap, GRANT_HEADER, Grant, Rights, TargetPlace};
use http::{Method, Request, StatusCode};
use tokio::sync::watch;

use crate::error::{Answer, Refusal};
use crate::limits::{COLLECT_AT_ONCE, COLLECT_EVERY};
use crate::node::{Shared, blocking, now};
use crate::{ServerError, target};

/// How long a grant to clear away holds, in seconds.
const GRANT_HOLDS: u64 = 300;

/// Clears away until the node stops. What cannot be cleared now, because a node is down, is tried again.
pub(crate) async fn collect(
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), ServerError> {
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return Ok(()),
            () = shared.garbage.notified() => {}
            () = tokio::time::sleep(COLLECT_EVERY) => {}
        }
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return Ok(()),
            // A namespace that fails says so to whoever uses it.
            _ = round(&shared) => {}
        }
    }
}

async fn round(shared: &Arc<Shared>) -> Answer<()> {
    let state = shared.clone();
    let (garbage, targets) = blocking(move || {
        let namespace = state.namespace()?;
        Ok::<_, Refusal>((namespace.garbage(COLLECT_AT_ONCE)?, namespace.targets()?))
    })
    .await?;
    // Nodes that did not answer are asked again in the next round only.
    let mut silent = HashSet::new();
    for file in garbage {
        let places = file.targets.iter().filter_map(|number| {
            targets.iter().find(|target| target.number == *number).map(|target| TargetPlace {
                number: target.number,
                address: target.address.clone(),
                version: 0,
            })
        });
        if clear(shared, &file, places.collect(), &mut silent).await? {
            let state = shared.clone();
            blocking(move || Ok::<_, Refusal>(state.namespace()?.collected(&[file.id])?)).await?;
        }
    }
    Ok(())
}

/// Removes the objects of a file from its targets, and says whether all are gone.
async fn clear(
    shared: &Arc<Shared>,
    file: &Garbage,
    targets: Vec<TargetPlace>,
    silent: &mut HashSet<u32>,
) -> Answer<bool> {
    let map = FileMap {
        id: file.id.to_string(),
        path: String::new(),
        length: 0,
        unit: 1,
        first: 0,
        record: None,
        targets,
    };
    let object = map.object();
    let own = shared.number()?;
    let targets = map.targets.clone();
    let expires = now() + GRANT_HOLDS;
    let grant = Grant { principal: "entry".into(), rights: Rights::Manage, file: map, expires };
    let sealed = shared.key.seal(&grant)?;
    let mut all = true;
    for place in targets {
        let cleared = if place.number == own {
            let (state, id) =
                (shared.clone(), ObjectId::new(&object).map_err(gristmill_store::StoreError::from)?);
            blocking(move || Ok::<_, Refusal>(target::remove(&state.store, &id)?)).await
        } else if silent.contains(&place.number) {
            all = false;
            continue;
        } else {
            ask(shared, &place, &object, &sealed).await
        };
        if cleared.is_err() {
            all = false;
            silent.insert(place.number);
        }
    }
    Ok(all)
}

async fn ask(shared: &Shared, place: &TargetPlace, object: &str, sealed: &str) -> Answer<()> {
    let request = Request::builder()
        .method(Method::DELETE)
        .uri(format!("/objects/{object}"))
        .header(GRANT_HEADER, sealed)
        .body(());
    let request = request.map_err(|e| failed(&e))?;
    let address: Address = place.address.parse().map_err(|e| failed(&e))?;
    let response = shared.peers.dialer().http(&address).send(request).await.map_err(|e| failed(&e))?;
    if response.status() != StatusCode::NO_CONTENT {
        return Err(failed(&response.status()));
    }
    Ok(())
}

fn failed(why: &dyn std::fmt::Display) -> Refusal {
    RunError::Remote { kind: gristmill_runtime::ErrorKind::Unavailable, message: why.to_string() }.into()
}
