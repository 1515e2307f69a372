//! Objects of buckets in one state.

use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use gristmill_backend::{BackendError, Found, Result};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStoreExt};

use super::{Store, found};
use crate::SourceUrl;
use crate::object::{Fetch, TakeBytes};
use crate::store_error::explain;

/// An object in one state.
pub(super) struct StoredObject {
    pub url: SourceUrl,
    pub path: Path,
    pub found: Found,
    pub store: Arc<dyn Store>,
}

impl StoredObject {
    fn changed(&self) -> BackendError {
        BackendError::Changed { name: self.url.to_string() }
    }

    async fn get(&self, start: u64, len: u64, take: TakeBytes<'_>) -> Result<()> {
        let range = start..start + len;
        let options = GetOptions {
            range: Some(GetRange::Bounded(range.clone())),
            if_match: Some(format!("\"{}\"", self.found.stamp)),
            ..GetOptions::default()
        };
        let got =
            self.store.get_opts(&self.path, options).await.map_err(|error| explain(&self.url, error))?;
        if found(&self.url, &got.meta)? != self.found {
            return Err(self.changed());
        }
        read_answer(&self.url, got, range, take).await
    }
}

/// Gives the body of an answer, which must have this range of the object.
pub(super) async fn read_answer(
    url: &SourceUrl,
    got: GetResult,
    range: Range<u64>,
    take: TakeBytes<'_>,
) -> Result<()> {
    let (cut_off, len) =
        (|why: String| BackendError::Unavailable { name: url.to_string(), why }, range.end - range.start);
    if got.range != range {
        return Err(cut_off(format!("it answered with bytes {:?} instead of {range:?}", got.range)));
    }
    let (mut stream, mut left) = (got.into_stream(), len);
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(|error| explain(url, error))?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| cut_off("it sent more bytes than it announced".to_owned()))?;
        take(bytes);
    }
    if left > 0 {
        return Err(cut_off(format!("it sent {} of {len} bytes", len - left)));
    }
    Ok(())
}

impl Fetch for StoredObject {
    fn name(&self) -> String {
        self.url.to_string()
    }

    fn fetch_once<'a>(&'a self, start: u64, len: u64, take: TakeBytes<'a>) -> BoxFuture<'a, Result<()>> {
        self.get(start, len, take).boxed()
    }

    fn has_changed(&self) -> BoxFuture<'_, bool> {
        async move {
            match self.store.head(&self.path).await {
                Ok(meta) => found(&self.url, &meta).is_ok_and(|found| found != self.found),
                Err(error) => matches!(error, object_store::Error::NotFound { .. }),
            }
        }
        .boxed()
    }
}
