//! Objects that are read by requests over the network.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, try_join_all};
use futures_util::{StreamExt, TryStreamExt, stream};
use gristmill_backend::{
    Backend, BackendError, Found, Key, Object, Result, check_ranges, read_opened, split_buffer,
};

use crate::driver::{Driver, too_slow};
use crate::http_client::MAX_REQUESTS_AT_ONCE;
use crate::pieces::{Piece, cut};
use crate::range_cache::CachedObject;
use crate::read_ahead::ObjectAhead;
use crate::retry::Retries;

/// Takes bytes as they arrive.
pub(crate) type TakeBytes<'a> = &'a mut (dyn FnMut(Bytes) + Send);

/// One object in one state, which single requests read.
pub(crate) trait Fetch: Send + Sync + 'static {
    /// The name of the object in messages.
    fn name(&self) -> String;

    /// Gives `len` bytes from an offset to `take`, as they arrive, with one request. All are of the state in which the object was
    /// opened. There are never more, and fewer only with an error.
    fn fetch_once<'a>(&'a self, start: u64, len: u64, take: TakeBytes<'a>) -> BoxFuture<'a, Result<()>>;

    /// Whether a later change of the object must have another version, as far as its answers tell. Only then its bytes are kept.
    fn is_settled(&self) -> bool {
        true
    }

    /// Whether the object has another state now, as far as one request can tell. It is asked after a failure.
    fn has_changed(&self) -> BoxFuture<'_, bool>;
}

/// A folder of an object store or of a web server.
pub(crate) trait Folder: Backend {
    /// Gives the bytes of a range of a file to `take`, with one request. The range is not empty. Returns the state of the file if the
    /// answer tells it.
    async fn get_now(&self, key: &Key, range: Range<u64>, take: TakeBytes<'_>) -> Result<Option<Found>>;

    fn driver(&self) -> &Driver;

    /// [`Backend::read_now`].
    fn read_once_or_opened(&self, key: &Key, offset: u64, out: &mut [u8]) -> Result<()> {
        match self.driver().wait(read_once(self, key, offset, out))? {
            true => Ok(()),
            false => read_opened(self, key, offset, out),
        }
    }
}

/// Fills `out` from an offset. Nothing is asked before its bytes. Returns `false` if the file must be opened to know more: if a request
/// failed, because it is not known then in which state the file is, and if the answers are not known to be of one state.
pub(crate) async fn read_once<F: Folder + ?Sized>(
    folder: &F,
    key: &Key,
    offset: u64,
    out: &mut [u8],
) -> Result<bool> {
    let is_range = !out.is_empty() && offset.checked_add(out.len() as u64).is_some();
    if !is_range || key.is_root() {
        return Ok(false);
    }
    let read = read_pieces(folder, key, offset, out);
    let read = match folder.driver().patience() {
        None => read.await,
        Some(patience) => match tokio::time::timeout(patience, read).await {
            Ok(read) => read,
            Err(_) => return Err(too_slow(format!("{}/{key}", folder.name()), patience)),
        },
    };
    match read {
        Err(BackendError::Unavailable { .. } | BackendError::Io { .. } | BackendError::Changed { .. }) => {
            Ok(false)
        }
        read => read,
    }
}

/// Reads a range in requests of at most [`MAX_PIECE`](crate::pieces::MAX_PIECE) bytes, all at once. Of several, one that failed for a reason
/// that may pass is repeated by itself. Returns whether all answers are of one state.
async fn read_pieces<F: Folder + ?Sized>(folder: &F, key: &Key, offset: u64, out: &mut [u8]) -> Result<bool> {
    let pieces = cut(vec![(offset, out)]);
    // A single one is repeated by whoever opens the file for it.
    let repeats = pieces.len() > 1;
    let reads = pieces.into_iter().map(|piece| read_piece_now(folder, key, piece, repeats));
    let states = try_join_all(reads).await?;
    // One answer has one state, also if it does not tell it.
    Ok(states.len() == 1 || states.windows(2).all(|two| two[0].is_some() && two[0] == two[1]))
}

async fn read_piece_now<F: Folder + ?Sized>(
    folder: &F,
    key: &Key,
    mut piece: Piece<'_>,
    repeats: bool,
) -> Result<Option<Found>> {
    let range = piece.range.clone();
    let split = BackendError::Internal { what: "a piece of one range has several buffers" };
    let out = piece.whole().ok_or(split)?;
    let mut retries = Retries::begin();
    loop {
        let mut filled = 0;
        let mut take = |bytes: Bytes| copy(&bytes, out, &mut filled);
        match folder.get_now(key, range.clone(), &mut take).await {
            Err(error) if repeats && retries.again(&error).await => {}
            read => return read,
        }
    }
}

/// Copies bytes behind those that are filled. There are never more than `out` has room for.
fn copy(bytes: &[u8], out: &mut [u8], filled: &mut usize) {
    if let Some(room) = out.get_mut(*filled..*filled + bytes.len()) {
        room.copy_from_slice(bytes);
    }
    *filled += bytes.len();
}

/// Fills `out` from an offset. A request that failed for a reason that may pass is repeated.
async fn fetch(object: &dyn Fetch, start: u64, out: &mut [u8]) -> Result<()> {
    let mut retries = Retries::begin();
    loop {
        let mut filled = 0;
        let len = out.len() as u64;
        let mut take = |bytes: Bytes| copy(&bytes, out, &mut filled);
        match object.fetch_once(start, len, &mut take).await {
            Ok(()) => return Ok(()),
            Err(error) if retries.again(&error).await => {}
            // It was there when it was opened.
            Err(BackendError::NotFound { name }) => return Err(BackendError::Changed { name }),
            // A server that does not know conditions fails in other ways if the object is another one.
            Err(BackendError::Unavailable { .. } | BackendError::Io { .. }) if object.has_changed().await => {
                return Err(BackendError::Changed { name: object.name() });
            }
            Err(error) => return Err(error),
        }
    }
}

/// An opened object.
pub(crate) struct RemoteObject {
    fetch: Arc<dyn Fetch>,
    found: Found,
    driver: Driver,
    ahead: ObjectAhead,
    cached: Option<CachedObject>,
}

impl RemoteObject {
    pub fn new(fetch: Arc<dyn Fetch>, found: Found, driver: Driver) -> RemoteObject {
        let ahead = ObjectAhead::new(fetch.clone(), driver.clone(), found.length);
        let cached = driver.cache().map(|place| CachedObject::new(place, &fetch.name(), &found));
        RemoteObject { fetch, found, driver, ahead, cached }
    }

    /// Reads over the network.
    fn fetch_all(&self, reads: Vec<(u64, &mut [u8])>) -> Result<()> {
        self.driver.wait_for_read(|| self.name(), async {
            let left = self.ahead.take(reads).await;
            let reads = cut(left).into_iter().map(|piece| self.read_piece(piece));
            stream::iter(reads).buffer_unordered(MAX_REQUESTS_AT_ONCE).try_collect().await
        })
    }

    async fn read_piece(&self, mut piece: Piece<'_>) -> Result<()> {
        let start = piece.range.start;
        if let Some(buffer) = piece.whole() {
            return fetch(&*self.fetch, start, buffer).await;
        }
        let mut bytes = vec![0; (piece.range.end - start) as usize];
        fetch(&*self.fetch, start, &mut bytes).await?;
        piece.fill(&bytes);
        Ok(())
    }
}

impl Object for RemoteObject {
    fn name(&self) -> String {
        self.fetch.name()
    }

    fn found(&self) -> &Found {
        &self.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<()> {
        check_ranges(|| self.name(), self.found.length, ranges, out.len())?;
        let reads = split_buffer(ranges, out);
        let Some(cached) = &self.cached else { return self.fetch_all(reads) };
        let mut missing = cached.take(reads);
        if missing.is_empty() {
            return Ok(());
        }
        self.fetch_all(missing.iter_mut().map(|(start, buffer)| (*start, &mut **buffer)).collect())?;
        if self.fetch.is_settled() {
            missing.iter().for_each(|(start, buffer)| cached.keep(*start, buffer));
        }
        Ok(())
    }

    fn fetches_ahead(&self) -> bool {
        true
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        let Some(cached) = &self.cached else { return self.ahead.expect(ranges) };
        self.ahead.expect(&cached.gaps(ranges));
    }

    /// Needs no request: each read names its version, and compares it with that of the answer.
    fn unchanged(&self) -> Result<()> {
        Ok(())
    }
}
