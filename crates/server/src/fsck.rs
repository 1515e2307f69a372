//! Comparison of the namespace with the objects of a storage node, page by page: `POST /fsck` on the entry node.
//!
//! Files are put and removed meanwhile, so each difference is checked twice. A put is in the namespace before its
//! objects are created and until they are removed. So an object that no put names, and that still exists in the second
//! check, belongs to no file. A file that still exists after its object was missing twice has lost the object.

mod suspects;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use gristmill_namespace::{FileId, Garbage, MAX_NAMED_PAGE, NamedPut};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_store::{ObjectId, StoreError};
use gristmill_wire::{
    FsckResult, FsckStep, Grant, MAX_FSCK_BYTES, MAX_FSCK_STEP_BYTES, OBJECT_PREFIX, ObjectEntry, ObjectPage,
    Rights, TargetPlace, UnnamedObject,
};
use http::header;
use suspects::Suspects;

use crate::blocking::blocking;
use crate::collect;
use crate::door::request_principal;
use crate::error::{Answer, Refusal};
use crate::limits::{BODY_TIME, JOIN_AGE};
use crate::object_page;
use crate::shared::{Shared, now};

/// Longest time for a node to list a page of its objects.
const PAGE_TIME: Duration = Duration::from_secs(10);

/// Largest number of pages that are listed to check one page again. New objects appear between the objects of the page.
const MAX_PAGES_AGAIN: usize = 4;

/// Most bytes of lost objects in an answer. If there are more, the page ends before them.
const MAX_LOST_BYTES: usize = MAX_FSCK_BYTES / 2;

/// The route.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/fsck", post(fsck))
}

async fn fsck(State(shared): State<Arc<Shared>>, request: Request) -> Answer<Response> {
    let principal = request_principal(request.extensions())?;
    shared.namespace()?;
    let _permit = shared.permit(&shared.fscks, &principal.as_str().into())?;
    let step = body(request.into_body()).await?;
    if step.remove {
        shared.namespace()?.check_administrator(&principal, "remove objects that no file has")?;
    }
    let _turn = shared.comparing.lock().await;
    let text = serde_json::to_vec(&compare(&shared, &step).await?);
    let text = text.map_err(|error| Refusal::new(ErrorKind::Failed, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(text)).into_response())
}

async fn body(body: Body) -> Answer<FsckStep> {
    let refuse = |text: String| Refusal::new(ErrorKind::Usage, text);
    let bytes = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_FSCK_STEP_BYTES)).await;
    let bytes = bytes.map_err(|_| refuse(format!("send the request within {} s", BODY_TIME.as_secs())))?;
    let bytes =
        bytes.map_err(|_| refuse(format!("the request has more than {MAX_FSCK_STEP_BYTES} bytes")))?;
    Ok(FsckStep::decode(&bytes)?)
}

/// Compares one page.
async fn compare(shared: &Arc<Shared>, step: &FsckStep) -> Answer<FsckResult> {
    let after = step.after.parse::<FileId>()?;
    let state = shared.clone();
    let targets = blocking(move || Ok::<_, Refusal>(state.namespace()?.targets()?)).await?;
    let Some(target) = targets.into_iter().find(|target| target.number == step.number) else {
        let text = format!("there is no storage node {}; 'nodes' lists all", step.number);
        return Err(Refusal::new(ErrorKind::Usage, text));
    };
    let place = TargetPlace { number: target.number, address: target.address, version: 0 };
    let mut page = objects_behind(shared, &place, after.as_str()).await?;
    let named = list_named(shared, &after, page.end.as_deref()).await?;
    if let Some(last) = named.last().filter(|_| named.len() == MAX_NAMED_PAGE) {
        let last = last.id.to_string();
        page.objects.retain(|object| object.id <= last);
        page.end = Some(last);
    }
    let mut suspects = Suspects::find(step.number, &page.objects, &named);
    if !suspects.is_empty() {
        let again = objects_to(shared, &place, after.as_str(), page.end.as_deref()).await?;
        let named = list_named(shared, &after, page.end.as_deref()).await?;
        suspects = Suspects::find(step.number, &again, &named).also_in(&suspects);
    }
    if let Some(last) = suspects.cut(MAX_LOST_BYTES) {
        page.objects.retain(|object| object.id <= last);
        page.end = Some(last);
    }
    let mut found = FsckResult {
        objects: page.objects.len() as u64,
        bytes: page.objects.iter().fold(0, |sum: u64, one| sum.saturating_add(one.state.length())),
        lost: suspects.lost,
        unnamed: Vec::new(),
        next: page.end,
    };
    for entry in suspects.unnamed {
        let removed = step.remove && remove_object(shared, &entry.id, &place).await?;
        let bytes = entry.state.length();
        found.unnamed.push(UnnamedObject { object: format!("{OBJECT_PREFIX}{}", entry.id), bytes, removed });
    }
    Ok(found)
}

/// The puts in the namespace after one id, up to another one.
async fn list_named(shared: &Arc<Shared>, after: &FileId, end: Option<&str>) -> Answer<Vec<NamedPut>> {
    let (state, after) = (shared.clone(), after.clone());
    let end = end.map(str::parse::<FileId>).transpose()?;
    blocking(move || Ok(state.namespace()?.named_puts(Some(&after), end.as_ref(), MAX_NAMED_PAGE)?)).await
}

/// The objects of a node with ids after that of a file.
async fn objects_behind(shared: &Arc<Shared>, place: &TargetPlace, after: &str) -> Answer<ObjectPage> {
    let object = format!("{OBJECT_PREFIX}{after}");
    if shared.number()? == place.number {
        let (state, id) = (shared.clone(), ObjectId::new(&object).map_err(StoreError::from)?);
        return blocking(move || object_page::page(&state, &id)).await;
    }
    let expires = now() + 2 * JOIN_AGE;
    let file = collect::objects_of(after, vec![place.clone()]);
    let grant = Grant { principal: collect::ENTRY.into(), rights: Rights::Manage, file, expires };
    let grant = shared.key.seal(&grant)?;
    let asked = shared.peers.objects_after(&place.address, &object, &grant);
    let page = tokio::time::timeout(PAGE_TIME, asked).await.map_err(|_| {
        let message = format!(
            "storage node {} ({}) gave no answer in {} s",
            place.number,
            place.address,
            PAGE_TIME.as_secs()
        );
        Refusal::from(RunError::Remote { kind: ErrorKind::Unavailable, message })
    })??;
    let ids = page.objects.iter().map(|object| &object.id).chain(&page.end);
    if !ids.clone().is_sorted() || ids.clone().any(|id| id.as_str() <= after || id.parse::<FileId>().is_err())
    {
        let text = format!("storage node {} lists its objects in disorder; report it", place.number);
        return Err(Refusal::new(ErrorKind::Failed, text));
    }
    Ok(page)
}

/// The objects of a node with ids after that of a file, up to another id.
///
/// # Errors
/// Returns an error if they fill more than [`MAX_PAGES_AGAIN`] pages.
async fn objects_to(
    shared: &Arc<Shared>,
    place: &TargetPlace,
    after: &str,
    end: Option<&str>,
) -> Answer<Vec<ObjectEntry>> {
    let (mut objects, mut after) = (Vec::new(), after.to_owned());
    for _ in 0..MAX_PAGES_AGAIN {
        let page = objects_behind(shared, place, &after).await?;
        objects.extend(page.objects);
        match page.end {
            Some(next) if end.is_none_or(|end| next.as_str() < end) => after = next,
            _ => {
                objects.retain(|object| end.is_none_or(|end| object.id.as_str() <= end));
                return Ok(objects);
            }
        }
    }
    let text = format!("the objects of storage node {} change too fast; check it again", place.number);
    Err(Refusal::new(ErrorKind::Conflict, text))
}

async fn remove_object(shared: &Arc<Shared>, id: &str, place: &TargetPlace) -> Answer<bool> {
    let nobody = Garbage { id: id.parse()?, targets: vec![place.number] };
    collect::clear(shared, &nobody, vec![place.clone()], &std::sync::Mutex::default()).await
}
