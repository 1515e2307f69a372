//! Uploads under way. Removing an object ends its uploads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_store::ObjectId;
use tokio::sync::watch;

/// Uploads under way. Permits bound their number: [`MAX_UPLOADS`](crate::limits::MAX_UPLOADS).
#[derive(Default)]
pub(crate) struct ActiveUploads(Mutex<HashMap<ObjectId, watch::Sender<bool>>>);

impl ActiveUploads {
    /// Begins an upload of this object. There can be several: a client sends again after its connection broke.
    pub fn begin(self: &Arc<ActiveUploads>, id: &ObjectId) -> ActiveUpload {
        let mut all = self.all();
        let ended = all.entry(id.clone()).or_insert_with(|| watch::channel(false).0).subscribe();
        ActiveUpload { all: self.clone(), id: id.clone(), ended: Some(ended) }
    }

    /// Ends the uploads of this object that are under way. Later uploads are not affected.
    pub fn end(&self, id: &ObjectId) {
        if let Some(under_way) = self.all().remove(id) {
            under_way.send_replace(true);
        }
    }

    #[cfg(test)]
    pub fn is_under_way(&self, id: &ObjectId) -> bool {
        self.all().contains_key(id)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ObjectId, watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One upload under way, until dropped.
pub(crate) struct ActiveUpload {
    all: Arc<ActiveUploads>,
    id: ObjectId,
    /// Until it is dropped, under the lock.
    ended: Option<watch::Receiver<bool>>,
}

impl ActiveUpload {
    /// Ready once the object is removed.
    pub async fn ended(&self) {
        // An error means that the sender is gone. It is dropped only after it sent the end, or with the last upload.
        if let Some(mut ended) = self.ended.clone() {
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

impl Drop for ActiveUpload {
    fn drop(&mut self) {
        let mut all = self.all.all();
        let was_ended = self.ended.take().is_none_or(|ended| *ended.borrow());
        // An ended upload is no longer in the map. An entry with this name belongs to later uploads.
        if !was_ended && all.get(&self.id).is_some_and(|one| one.receiver_count() == 0) {
            all.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn the_end_of_an_object_ends_its_uploads_and_no_others() {
        let all = Arc::new(ActiveUploads::default());
        let (a, b) = (ObjectId::new("a").unwrap(), ObjectId::new("b").unwrap());
        let (one, again, other) = (all.begin(&a), all.begin(&a), all.begin(&b));
        all.end(&a);
        one.ended().await;
        let later = all.begin(&a);
        again.ended().await;
        drop((one, again));
        for goes_on in [&later, &other] {
            assert!(!*goes_on.ended.as_ref().unwrap().borrow());
        }
        all.end(&a);
        later.ended().await;
        drop(other);
        assert!(!all.is_under_way(&a) && !all.is_under_way(&b));
    }
}
