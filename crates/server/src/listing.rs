//! Listings page by page, so that one of a large directory that nobody reads takes the memory of a page.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::stream::{self, Stream};
use gristmill_runtime::ErrorKind;
use gristmill_wire::action::{Entry, List};

use crate::error::{Answer, Refusal};
use crate::limits::PAGE_BYTES;
use crate::memory::Room;
use crate::node::{Shared, blocking};

/// The names of a directory, as many as a listing has.
pub(crate) struct Pages {
    shared: Arc<Shared>,
    path: String,
    after: Option<String>,
    /// Names that it may have yet.
    left: usize,
    /// Whether there are more.
    more: bool,
    /// Memory for a page, as long as the listing is not read to its end.
    _room: Room,
}

impl Pages {
    /// Of the names of a directory the first so many, about, for a principal.
    ///
    /// # Errors
    /// There is no memory for a page.
    pub fn of(shared: Arc<Shared>, who: &Arc<str>, path: String, most: usize) -> Answer<Pages> {
        let mut room = shared.requests.room(who);
        room.grow(PAGE_BYTES)?;
        Ok(Pages { shared, path, after: None, left: most, more: true, _room: room })
    }

    /// The next names; `None` after the last.
    ///
    /// # Errors
    /// Those of [`Shared::list`].
    pub async fn next(&mut self) -> Answer<Option<Vec<Entry>>> {
        if !self.more || self.left == 0 {
            return Ok(None);
        }
        let (shared, list) =
            (self.shared.clone(), List { path: self.path.clone(), after: self.after.take() });
        let page = blocking(move || shared.list(&list)).await?;
        self.after = page.entries.last().map(|entry| entry.name.clone());
        self.left = self.left.saturating_sub(page.entries.len());
        self.more = page.more;
        Ok(Some(page.entries))
    }

    /// All pages, one after the other.
    pub fn stream(self) -> impl Stream<Item = Answer<Vec<Entry>>> + Send {
        stream::try_unfold(self, |mut pages| async move { Ok(pages.next().await?.map(|page| (page, pages))) })
    }

    /// The names as JSON, as [`Listing`](gristmill_wire::action::Listing) has them. A page is made when the one before was
    /// taken.
    ///
    /// # Errors
    /// Those of the first page. One of a later page cuts the body.
    pub async fn json(mut self) -> Answer<Body> {
        let begun = json_of(self.next().await?.unwrap_or_default(), "{\"entries\":[")?;
        let first = stream::iter([Ok::<_, Refusal>(begun)]);
        let rest = stream::try_unfold(Some(self), |pages| async move {
            let Some(mut pages) = pages else { return Ok(None) };
            match pages.next().await? {
                Some(page) if page.is_empty() => Ok(Some((Bytes::new(), Some(pages)))),
                Some(page) => Ok(Some((json_of(page, ",")?, Some(pages)))),
                None => Ok(Some((Bytes::from(format!("],\"more\":{}}}\n", pages.more)), None))),
            }
        });
        let all = futures_util::StreamExt::chain(first, rest);
        let all =
            futures_util::TryStreamExt::map_err(all, |refusal| std::io::Error::other(refusal.0.message));
        Ok(Body::from_stream(all))
    }
}

/// Names as the elements of a JSON list, behind what is written before them.
fn json_of(entries: Vec<Entry>, before: &str) -> Answer<Bytes> {
    let text = serde_json::to_vec(&entries).map_err(|e| Refusal::new(ErrorKind::Failed, e.to_string()))?;
    let elements = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    Ok([before.as_bytes(), elements].concat().into())
}
