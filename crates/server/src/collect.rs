//! Removal of the objects of files that were replaced, removed or never finished.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use gristmill_namespace::Garbage;
use gristmill_runtime::RunError;
use gristmill_store::ObjectId;
use gristmill_transport::Address;
use gristmill_wire::{FileMap, GRANT_HEADER, GRANT_SECONDS, Grant, Rights, TargetPlace};
use http::{Method, Request, StatusCode};
use tokio::sync::watch;

use crate::ServerError;
use crate::blocking::blocking;
use crate::error::{Answer, Refusal};
use crate::limits::{CLEAR_AT_ONCE, COLLECT_AT_ONCE, COLLECT_EVERY, JOIN_AGE};
use crate::shared::{Shared, now};

/// Time for which a grant to remove objects is valid, in seconds.
const GRANT_HOLDS: u64 = 300;

/// Time after the beginning of a put for which nodes accept its grant to write, including differences of clocks. Until
/// then a client with the grant can write removed objects again, so they are removed once more.
pub(crate) const WRITABLE: Duration = Duration::from_secs(GRANT_SECONDS + JOIN_AGE);

/// Removes objects until the node stops. If a node is down, its objects are tried again later.
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
        loop {
            let more = tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => return Ok(()),
                more = round(&shared, WRITABLE) => more,
            };
            // An error of the namespace is reported by the requests that use it.
            if !more.unwrap_or(false) {
                break;
            }
        }
    }
}

/// Removes garbage objects. Returns whether there may be more that can be removed. `writable`: time after the beginning
/// of a put for which its objects may be written.
async fn round(shared: &Arc<Shared>, writable: Duration) -> Answer<bool> {
    let state = shared.clone();
    let (garbage, targets) = blocking(move || {
        let namespace = state.namespace()?;
        state.reserve.mend();
        let garbage = state.reserve.freeing(|| Ok(namespace.garbage(COLLECT_AT_ONCE)?))?;
        Ok::<_, Refusal>((garbage, namespace.targets()?))
    })
    .await?;
    let all = garbage.len() == COLLECT_AT_ONCE;
    // Nodes that did not answer are asked again only in the next round.
    let silent = Mutex::new(HashSet::new());
    let (silent, targets) = (&silent, &targets);
    let clearing = garbage.into_iter().map(|file| async move {
        let places = file.targets.iter().filter_map(|number| {
            targets.iter().find(|target| target.number == *number).map(|target| TargetPlace {
                number: target.number,
                address: target.address.clone(),
                version: 0,
            })
        });
        let gone = clear(shared, &file, places.collect(), silent).await?;
        Ok::<_, Refusal>(gone.then_some(file.id))
    });
    let cleared: Vec<_> = stream::iter(clearing).buffer_unordered(CLEAR_AT_ONCE).collect().await;
    let cleared = cleared.into_iter().filter_map(Result::transpose).collect::<Answer<Vec<_>>>()?;
    let some = !cleared.is_empty();
    if some {
        let state = shared.clone();
        let forget =
            move || state.reserve.freeing(|| Ok(state.namespace()?.forget_collected(&cleared, writable)?));
        blocking(forget).await?;
    }
    Ok(all && some)
}

/// Principal in the grants of the entry node itself.
pub(crate) const ENTRY: &str = "entry";

/// File map of the objects of a put on some targets, for a grant.
pub(crate) fn objects_of(id: &str, targets: Vec<TargetPlace>) -> FileMap {
    FileMap {
        id: id.to_owned(),
        path: String::new(),
        length: 0,
        unit: 1,
        first: 0,
        record: None,
        segments: false,
        attached: None,
        targets,
    }
}

/// Removes the objects of a file from its targets. Returns whether all are removed.
pub(crate) async fn clear(
    shared: &Arc<Shared>,
    file: &Garbage,
    targets: Vec<TargetPlace>,
    silent: &Mutex<HashSet<u32>>,
) -> Answer<bool> {
    let map = objects_of(file.id.as_str(), targets);
    let object = map.object();
    let own = shared.number()?;
    let targets = map.targets.clone();
    let expires = now() + GRANT_HOLDS;
    let grant = Grant { principal: ENTRY.into(), rights: Rights::Manage, file: map, expires };
    let sealed = shared.key.seal(&grant)?;
    let mut all = true;
    for place in targets {
        let cleared = if place.number == own {
            let (state, id) =
                (shared.clone(), ObjectId::new(&object).map_err(gristmill_store::StoreError::from)?);
            blocking(move || state.remove_object(&id)).await
        } else if lock(silent).contains(&place.number) {
            all = false;
            continue;
        } else {
            ask(shared, &place, &object, &sealed).await
        };
        if cleared.is_err() {
            all = false;
            lock(silent).insert(place.number);
        }
    }
    Ok(all)
}

fn lock(silent: &Mutex<HashSet<u32>>) -> MutexGuard<'_, HashSet<u32>> {
    silent.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::Bytes;
    use gristmill_namespace::{FilePath, NewFile, Principal};
    use gristmill_store::CreateOptions;
    use gristmill_transport::RequestBody;
    use http_body_util::StreamBody;

    use super::*;
    use crate::test_node::{TestNode, with_node};

    /// Begins a put whose lease has expired already.
    async fn over(test: &TestNode) -> (FileMap, ObjectId) {
        let path = FilePath::parse("/over").unwrap();
        let new =
            NewFile { path, unit: 64, first: 0, targets: vec![0], record: None, segments: false, mode: None };
        let state = test.shared.clone();
        let begun = move || {
            let id = state.namespace()?.begin(&Principal::anonymous(), &new, Duration::ZERO)?;
            Ok::<_, Refusal>(id)
        };
        let id = blocking(begun).await.unwrap().to_string();
        let place = TargetPlace { number: 0, address: test.address.clone(), version: 0 };
        let (path, targets) = ("/over".to_owned(), vec![place]);
        let file = FileMap {
            id,
            path,
            length: 0,
            unit: 64,
            first: 0,
            record: None,
            segments: false,
            attached: None,
            targets,
        };
        let object = ObjectId::new(&file.object()).unwrap();
        (file, object)
    }

    /// Writes the object of a put with a grant.
    async fn write(test: &TestNode, file: &FileMap, body: impl Into<RequestBody>) -> (StatusCode, String) {
        let (principal, rights, expires) = ("anonymous".into(), Rights::Write, now() + GRANT_SECONDS);
        let grant = Grant { principal, rights, file: file.clone(), expires };
        let request = Request::put(format!("/objects/{}", file.object()))
            .header(GRANT_HEADER, test.shared.key.seal(&grant).unwrap())
            .body(body.into());
        let response = test.http().send(request.unwrap()).await.unwrap();
        let status = response.status();
        (status, String::from_utf8(response.bytes(10_000).await.unwrap().to_vec()).unwrap())
    }

    #[test]
    fn what_is_written_with_the_grant_of_a_put_that_is_over_goes_too() {
        with_node(async |test| {
            let (file, object) = over(&test).await;
            let (status, answer) = write(&test, &file, Bytes::from_static(b"12345678")).await;
            assert_eq!(status, StatusCode::CREATED, "{answer}");
            round(&test.shared, Duration::from_nanos(1)).await.unwrap();
            assert!(test.shared.store.stat(&object).is_err(), "the object is cleared away");
            // 200 MiB that were written again once stayed for twelve hours without any file.
            let (status, answer) = write(&test, &file, Bytes::from_static(b"12345678")).await;
            assert_eq!(status, StatusCode::CONFLICT, "{answer}");
            assert!(test.shared.store.stat(&object).is_err());
            // This is the state after a restart of the node, which forgets the list.
            test.shared.store.create(&object, &CreateOptions::default()).unwrap();
            round(&test.shared, Duration::from_nanos(1)).await.unwrap();
            assert!(test.shared.store.stat(&object).is_err(), "the object is cleared away");
        });
    }

    /// A full round reports that there is more. The node's own collector may have taken a part.
    #[test]
    fn rounds_go_on_until_all_is_cleared() {
        with_node(async |test| {
            for _ in 0..COLLECT_AT_ONCE + 10 {
                over(&test).await;
            }
            while round(&test.shared, Duration::from_nanos(1)).await.unwrap() {}
            let left = || test.shared.namespace().unwrap().garbage(COLLECT_AT_ONCE).unwrap().len();
            assert!(left() < COLLECT_AT_ONCE, "{} are left", left());
        });
    }

    #[test]
    fn an_upload_whose_put_is_over_ends_while_its_source_is_silent() {
        with_node(async |test| {
            let (file, object) = over(&test).await;
            let silent = StreamBody::new(futures_util::stream::pending::<
                Result<http_body::Frame<Bytes>, std::convert::Infallible>,
            >());
            let clearing = async {
                while !test.shared.active_uploads.is_under_way(&object) {
                    tokio::task::yield_now().await;
                }
                round(&test.shared, Duration::from_nanos(1)).await.unwrap();
            };
            let ((status, answer), ()) =
                tokio::join!(write(&test, &file, RequestBody::stream(silent)), clearing);
            assert_eq!(status, StatusCode::CONFLICT);
            assert!(answer.contains("the put is over"), "{answer}");
            assert!(!test.shared.active_uploads.is_under_way(&object));
        });
    }
}
