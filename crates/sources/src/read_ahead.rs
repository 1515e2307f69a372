//! Bytes that are fetched ahead by tasks of the driver.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use gristmill_backend::{AheadBudget, AheadLimits, Arriving, Buffer, Buffers, ReadAhead};
use tokio::task::AbortHandle;

use crate::driver::Driver;
use crate::object::Fetch;
use crate::pieces::{MAX_GAP, MAX_PIECE};

/// Most bytes of all objects that are being fetched ahead, or are kept afterwards.
pub const MAX_AHEAD: u64 = 256 << 20;

/// Bytes of one request ahead.
const AHEAD_PIECE: u64 = MAX_PIECE / 4;

const LIMITS: AheadLimits = AheadLimits { bytes: MAX_AHEAD, piece: AHEAD_PIECE, gap: MAX_GAP, kept: 16 };

/// A segment that a task fetches.
#[derive(Clone)]
pub(crate) struct FetchedSegment {
    /// The bytes, or `None` if they could not be fetched. Whoever needs them fetches them again, and gets the error.
    bytes: Shared<BoxFuture<'static, Option<Arc<Buffer>>>>,
    task: AbortHandle,
}

impl Arriving for FetchedSegment {
    fn give_up(&self) {
        self.task.abort();
    }
}

/// The bytes that all objects of a process fetch ahead.
pub(crate) struct ProcessAhead {
    budget: Arc<AheadBudget<FetchedSegment>>,
    buffers: Arc<Buffers>,
}

impl Default for ProcessAhead {
    fn default() -> ProcessAhead {
        ProcessAhead { budget: Arc::new(AheadBudget::new(LIMITS)), buffers: Arc::default() }
    }
}

/// The bytes of one object that are fetched ahead.
pub(crate) struct ObjectAhead {
    fetch: Arc<dyn Fetch>,
    driver: Driver,
    ahead: ReadAhead<FetchedSegment>,
}

impl ObjectAhead {
    pub fn new(fetch: Arc<dyn Fetch>, driver: Driver, length: u64) -> ObjectAhead {
        let ahead = ReadAhead::new(driver.ahead().budget.clone(), length);
        ObjectAhead { fetch, driver, ahead }
    }

    /// Begins to fetch ranges that will be read soon, in ascending order, as far as there is room.
    pub fn expect(&self, ranges: &[Range<u64>]) {
        self.ahead.expect(ranges, |range| Some(self.begin(range)));
    }

    fn begin(&self, range: Range<u64>) -> FetchedSegment {
        let (fetch, start, len) = (self.fetch.clone(), range.start, range.end - range.start);
        let buffers = self.driver.ahead().buffers.clone();
        let task = self.driver.spawn(async move {
            // Pieces are copied, because a short one would keep the whole buffer into which it was read.
            let mut buffer = buffers.take(len as usize);
            let mut take = |piece: Bytes| buffer.bytes.extend_from_slice(&piece);
            fetch.fetch_once(start, len, &mut take).await.ok().map(|()| Arc::new(buffer))
        });
        let abort = task.abort_handle();
        FetchedSegment { bytes: task.map(|done| done.ok().flatten()).boxed().shared(), task: abort }
    }

    /// Fills buffers from what was fetched ahead. Returns the rest.
    pub async fn take<'a>(&self, reads: Vec<(u64, &'a mut [u8])>) -> Vec<(u64, &'a mut [u8])> {
        let (parts, mut left) = self.ahead.take(reads);
        for part in parts {
            let arrived = part.segment.bytes.clone().await;
            part.fill(arrived.as_ref().map(|arrived| &*arrived.bytes), &mut left);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use gristmill_backend::Result;

    use super::*;
    use crate::object::TakeBytes;

    /// An object whose bytes tell their offsets, and which cannot be read at some of them.
    struct Numbers {
        fails_at: Option<u64>,
    }

    fn byte(at: u64) -> u8 {
        (at / 1000) as u8
    }

    impl Fetch for Numbers {
        fn name(&self) -> String {
            "numbers".to_owned()
        }

        fn fetch_once<'a>(&'a self, start: u64, len: u64, take: TakeBytes<'a>) -> BoxFuture<'a, Result<()>> {
            let range = start..start + len;
            let fails = self.fails_at.is_some_and(|at| range.contains(&at));
            let why = gristmill_backend::BackendError::Internal { what: "a test" };
            let bytes: Bytes = range.map(byte).collect();
            // They arrive in pieces.
            (0..bytes.len())
                .step_by(70_001)
                .for_each(|at| take(bytes.slice(at..bytes.len().min(at + 70_001))));
            std::future::ready(if fails { Err(why) } else { Ok(()) }).boxed()
        }

        fn has_changed(&self) -> BoxFuture<'_, bool> {
            std::future::ready(false).boxed()
        }
    }

    #[test]
    fn what_is_fetched_ahead_is_read() {
        let driver = Driver::start().unwrap();
        let length = 24 << 20;
        let ahead = ObjectAhead::new(Arc::new(Numbers { fails_at: None }), driver.clone(), length);
        ahead.expect(&[0..length / 2, length / 2..length]);
        for start in (0..length).step_by(1 << 20) {
            let mut buffer = vec![0; 1 << 20];
            let left = driver.wait(ahead.take(vec![(start, &mut buffer)]));
            assert!(left.is_empty(), "{start}");
            assert!(buffer.iter().zip(start..).all(|(found, at)| *found == byte(at)));
        }
        drop(ahead);
        assert_eq!(driver.ahead().budget.used(), 0);
    }

    #[test]
    fn what_could_not_be_fetched_is_left_to_the_reader() {
        let driver = Driver::start().unwrap();
        let object = Arc::new(Numbers { fails_at: Some(AHEAD_PIECE + 7) });
        let ahead = ObjectAhead::new(object, driver.clone(), 1 << 24);
        ahead.expect(&[0..AHEAD_PIECE, AHEAD_PIECE..3 * AHEAD_PIECE]);
        let mut buffer = vec![0; 3 * AHEAD_PIECE as usize];
        let left = driver.wait(ahead.take(vec![(0, &mut buffer)]));
        let left: Vec<(u64, usize)> = left.iter().map(|(start, buffer)| (*start, buffer.len())).collect();
        assert_eq!(left, [(AHEAD_PIECE, AHEAD_PIECE as usize)]);
    }
}
