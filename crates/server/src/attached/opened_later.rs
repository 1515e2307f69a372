//! A file that is opened when it is read for the first time: a request may have thousands of files, of which this node reads a few.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gristmill_backend::{Backend, BackendError, Found, Key, Object};

use crate::limits::MAX_EXPECTED_RANGES;

/// A file of a tree in a state, opened when it is needed.
pub(super) struct OpenedLater {
    tree: Arc<dyn Backend>,
    key: Key,
    found: Found,
    /// The path in the cluster.
    name: String,
    object: OnceLock<Arc<dyn Object>>,
    /// What will be read soon, while the file is not open.
    expected: Mutex<Vec<Range<u64>>>,
}

impl OpenedLater {
    /// A file of a tree. `name` is its path in the cluster. Nothing is opened.
    pub fn new(tree: Arc<dyn Backend>, key: Key, found: Found, name: String) -> OpenedLater {
        OpenedLater { tree, key, found, name, object: OnceLock::new(), expected: Mutex::default() }
    }

    fn object(&self) -> Result<&Arc<dyn Object>, BackendError> {
        if let Some(object) = self.object.get() {
            return Ok(object);
        }
        let opened = self.tree.open_at(&self.key, &self.found).map_err(|error| match error {
            // It was there when the entry node looked.
            BackendError::NotFound { name } | BackendError::WrongKind { name, .. } => {
                BackendError::Changed { name }
            }
            error => error,
        })?;
        // Another lane may have opened it meanwhile.
        let object = self.object.get_or_init(|| opened);
        let expected = std::mem::take(&mut *self.expected.lock().unwrap_or_else(PoisonError::into_inner));
        if !expected.is_empty() {
            object.expect(&expected);
        }
        Ok(object)
    }
}

impl Object for OpenedLater {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn found(&self) -> &Found {
        &self.found
    }

    fn read(&self, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), BackendError> {
        self.object()?.read(ranges, out)
    }

    fn fetches_ahead(&self) -> bool {
        self.object.get().map_or_else(|| self.tree.reads_ahead(), |object| object.fetches_ahead())
    }

    /// Opens nothing, because whoever says what it will read holds up others meanwhile.
    fn expect(&self, ranges: &[Range<u64>]) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        // It is looked at under the lock, so that nothing is added after it was opened.
        if let Some(object) = self.object.get() {
            drop(expected);
            return object.expect(ranges);
        }
        let room = MAX_EXPECTED_RANGES.saturating_sub(expected.len());
        expected.extend(ranges.iter().take(room).cloned());
    }

    fn unchanged(&self) -> Result<(), BackendError> {
        self.object.get().map_or(Ok(()), |object| object.unchanged())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

    use gristmill_backend::{Page, Result, Stamp};

    use super::*;

    type Ranges = Arc<Mutex<Vec<Range<u64>>>>;

    /// A tree with one file, which notes what is expected.
    struct Noting {
        noted: Ranges,
        opened: Mutex<u32>,
    }

    struct NotingFile {
        found: Found,
        noted: Ranges,
    }

    fn found() -> Found {
        Found { length: 100, stamp: Stamp::new("1").unwrap() }
    }

    impl Backend for Noting {
        fn name(&self) -> String {
            "noting".into()
        }

        fn list(&self, _folder: &Key, _from: Option<&str>, _limit: usize) -> Result<Page> {
            Ok(Page { entries: Vec::new(), next: None })
        }

        fn stat(&self, _key: &Key) -> Result<Found> {
            Ok(found())
        }

        fn open(&self, _key: &Key) -> Result<Arc<dyn Object>> {
            *self.opened.lock().unwrap() += 1;
            Ok(Arc::new(NotingFile { found: found(), noted: self.noted.clone() }))
        }

        fn reads_ahead(&self) -> bool {
            true
        }
    }

    impl Object for NotingFile {
        fn name(&self) -> String {
            "noting/file".into()
        }

        fn found(&self) -> &Found {
            &self.found
        }

        fn read(&self, _ranges: &[Range<u64>], out: &mut [u8]) -> Result<()> {
            out.fill(0);
            Ok(())
        }

        fn fetches_ahead(&self) -> bool {
            false
        }

        fn expect(&self, ranges: &[Range<u64>]) {
            self.noted.lock().unwrap().extend(ranges.iter().cloned());
        }

        fn unchanged(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_expected_before_the_file_is_open_is_expected_then() {
        let noted = Ranges::default();
        let tree = Arc::new(Noting { noted: noted.clone(), opened: Mutex::new(0) });
        let file = OpenedLater::new(tree.clone(), Key::new("file").unwrap(), found(), "/t/file".into());
        assert!(file.fetches_ahead(), "as the tree says");
        file.expect(&[0..10, 20..30]);
        file.expect(&[40..50]);
        assert_eq!(
            (*tree.opened.lock().unwrap(), noted.lock().unwrap().len()),
            (0, 0),
            "nothing is opened for that"
        );
        file.read_at(0, &mut [0; 10]).unwrap();
        assert_eq!(*noted.lock().unwrap(), [0..10, 20..30, 40..50]);
        assert!(!file.fetches_ahead(), "as the file says");
        file.expect(&[60..70]);
        file.read_at(20, &mut [0; 10]).unwrap();
        assert_eq!(*noted.lock().unwrap(), [0..10, 20..30, 40..50, 60..70]);
        assert_eq!(*tree.opened.lock().unwrap(), 1);
    }

    #[test]
    fn few_ranges_wait_for_a_file_that_is_not_open() {
        let noted = Ranges::default();
        let tree = Arc::new(Noting { noted: noted.clone(), opened: Mutex::new(0) });
        let file = OpenedLater::new(tree, Key::new("file").unwrap(), found(), "/t/file".into());
        for _ in 0..3 * MAX_EXPECTED_RANGES {
            file.expect(&[0..1, 2..3]);
        }
        file.read_at(0, &mut [0; 1]).unwrap();
        assert_eq!(noted.lock().unwrap().len(), MAX_EXPECTED_RANGES);
    }
}
