//! Listings page by page, so that a listing of a large directory needs the memory of only one page.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::stream::{self, Stream};
use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_wire::SourceAccess;
use gristmill_wire::action::{Entry, List};

use crate::blocking::blocking;
use crate::error::{Answer, Refusal};
use crate::limits::PAGE_BYTES;
use crate::memory::Room;
use crate::requester::Requester;
use crate::shared::Shared;

/// Levels of a directory that a list names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Levels {
    /// The names in the directory.
    One,
    /// The files below it, as far as one list gives them.
    All,
}

/// Pages of the names of a directory, up to the bound of a listing.
pub(crate) struct Pages {
    shared: Arc<Shared>,
    principal: Principal,
    access: Option<SourceAccess>,
    list: List,
    /// Number of names that may still follow.
    left: usize,
    /// Whether the directory has more names.
    more: bool,
    /// Memory for a page, until the listing is read to its end.
    _room: Room,
}

impl Pages {
    /// Lists about the first `most` names of a directory, with memory of a principal and the credentials that came with the
    /// request.
    ///
    /// # Errors
    /// Returns an error if there is no memory for a page.
    pub fn new(
        shared: Arc<Shared>,
        account: &Arc<str>,
        access: Option<SourceAccess>,
        path: String,
        most: usize,
    ) -> Answer<Pages> {
        let principal = account.parse()?;
        let mut room = shared.requests.room(account);
        room.grow(PAGE_BYTES)?;
        let list = List { path, ..List::default() };
        Ok(Pages { shared, principal, access, list, left: most, more: true, _room: room })
    }

    /// The next names. `None` after the last.
    ///
    /// # Errors
    /// Returns the errors of [`Shared::list`].
    pub async fn next(&mut self) -> Answer<Option<Vec<Entry>>> {
        if !self.more || self.left == 0 {
            return Ok(None);
        }
        let (shared, principal, list) = (self.shared.clone(), self.principal.clone(), self.list.clone());
        let access = self.access.clone();
        let page = blocking(move || {
            let requester = Requester { principal: &principal, access: access.as_ref() };
            shared.list(requester, &list, Levels::One)
        });
        let page = page.await?;
        self.list.after = page.entries.last().map(|entry| entry.name.clone());
        self.list.from = page.next;
        self.left = self.left.saturating_sub(page.entries.len());
        self.more = page.more;
        Ok(Some(page.entries))
    }

    /// All pages, one after the other.
    pub fn stream(self) -> impl Stream<Item = Answer<Vec<Entry>>> + Send {
        stream::try_unfold(self, |mut pages| async move { Ok(pages.next().await?.map(|page| (page, pages))) })
    }

    /// The names as JSON in the form of [`Listing`](gristmill_wire::action::Listing). Each page is made after the page
    /// before was read.
    ///
    /// # Errors
    /// Returns the errors of the first page. An error of a later page cuts the body.
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

/// Encodes names as elements of a JSON list, after the text `before`.
fn json_of(entries: Vec<Entry>, before: &str) -> Answer<Bytes> {
    let text = serde_json::to_vec(&entries).map_err(|e| Refusal::new(ErrorKind::Failed, e.to_string()))?;
    let elements = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    Ok([before.as_bytes(), elements].concat().into())
}
