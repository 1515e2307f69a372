//! The store trait.

use std::ops::Range;
use std::time::Duration;

use crate::{
    CasOutcome, CreateOptions, Extent, ObjectId, ReadOptions, Result, ScrubResult, Stat, Version,
    WriteOptions,
};

/// A store of named byte objects with versions and attributes.
///
/// Every method may be called from many threads at once. A read sees all of a write or none of it. After a write has
/// returned, every later read of the same process sees it.
///
/// *Bytes* that were never written, or were punched, read as zeros. *Attributes* are not part of the version.
///
/// *After an error* from a method that changes bytes, the bytes in the range of that call are unspecified until they
/// are written again. The object has a new version, so these bytes cannot be confused with the old ones. Bytes outside
/// the range, the length and the attributes are as before.
///
/// *Durable* changes survive loss of power. Changes of bytes, length and attributes become durable together when
/// `flush` returns, or earlier. `remove`, `close`, `compare_and_swap` and `fetch_add` are durable when they return.
/// After a crash, each byte that changed since the last flush is old or new. Length, attributes and written intervals
/// are as at the last flush, or as after a shorter `truncate` since then.
pub trait ObjectStore: Send + Sync {
    /// Creates an empty object.
    ///
    /// # Errors
    /// The error is [`Exists`](crate::StoreError::Exists) if there is an object of this name,
    /// [`TooLarge`](crate::StoreError::TooLarge) for a lease above [`MAX_LEASE`](crate::MAX_LEASE), for more attributes
    /// than [`MAX_ATTRIBUTES`](crate::MAX_ATTRIBUTES) or for a value above
    /// [`MAX_ATTRIBUTE_BYTES`](crate::MAX_ATTRIBUTE_BYTES), [`InvalidAttribute`](crate::StoreError::InvalidAttribute)
    /// for an invalid name of an attribute, and [`ReadOnly`](crate::StoreError::ReadOnly) if the store is
    /// open for reading only. It also fails if the system fails or the store is damaged.
    fn create(&self, id: &ObjectId, options: &CreateOptions) -> Result<Stat>;

    /// Removes an object and its attributes.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn remove(&self, id: &ObjectId) -> Result<()>;

    /// Reads from `offset` into `buffer` and returns the number of bytes: the length of `buffer`, or less if the object
    /// ends before; 0 at and after the end.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`Stale`](crate::StoreError::Stale) if it has another version than `options` name, and
    /// [`Corrupt`](crate::StoreError::Corrupt) if its bytes differ from the written bytes. A store that is open for
    /// reading only returns [`Unflushed`](crate::StoreError::Unflushed) if `options` name a version and the writing
    /// process has unflushed changes. It also fails if the system fails or the store is damaged.
    fn read_at(&self, id: &ObjectId, offset: u64, buffer: &mut [u8], options: ReadOptions) -> Result<usize>;

    /// Checks the bytes of `range` that lie within the object, like a read. It is for callers that must know of damage
    /// before they send the first byte. Bytes that were compared with their checksums within the last hour cost
    /// nothing.
    ///
    /// # Errors
    /// It fails like a read of these bytes: if the object has another version, or if its bytes differ from the written
    /// bytes.
    fn verify(&self, id: &ObjectId, range: Range<u64>, options: ReadOptions) -> Result<()> {
        let _ = range;
        self.read_at(id, 0, &mut [], options).map(|_| ())
    }

    /// Gathers `extents` into `buffer`, in order and without gaps. The length of `buffer` must be their total length.
    /// All bytes come from one state of the object. There may be at most [`MAX_EXTENTS`](crate::MAX_EXTENTS) extents.
    ///
    /// # Errors
    /// The error is [`OutOfRange`](crate::StoreError::OutOfRange) if an extent ends after the end of the object,
    /// [`TooLarge`](crate::StoreError::TooLarge) if there are too many or one ends above
    /// [`MAX_OBJECT_BYTES`](crate::MAX_OBJECT_BYTES), and [`Invalid`](crate::StoreError::Invalid) if `buffer` has
    /// another length. It also fails as [`read_at`](Self::read_at) does.
    fn read_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        buffer: &mut [u8],
        options: ReadOptions,
    ) -> Result<()>;

    /// Writes `data` at `offset`, extends the object if necessary, and returns its new version. Empty `data` changes
    /// neither bytes nor version, but the attributes in `options` are changed.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`Stale`](crate::StoreError::Stale) if it has another version than `options` name,
    /// [`TooLarge`](crate::StoreError::TooLarge) if it would exceed [`MAX_OBJECT_BYTES`](crate::MAX_OBJECT_BYTES),
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS) or [`MAX_ATTRIBUTES`](crate::MAX_ATTRIBUTES) or a value is above
    /// [`MAX_ATTRIBUTE_BYTES`](crate::MAX_ATTRIBUTE_BYTES), [`InvalidAttribute`](crate::StoreError::InvalidAttribute)
    /// for an invalid name of an attribute, [`NoSpace`](crate::StoreError::NoSpace) if the store is full,
    /// and [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn write_at(&self, id: &ObjectId, offset: u64, data: &[u8], options: WriteOptions<'_>)
    -> Result<Version>;

    /// Scatters `data` over `extents` in order, as one write. If extents overlap, the later one wins. The bounds are as
    /// in [`read_extents`](Self::read_extents), but the object is extended if necessary.
    ///
    /// # Errors
    /// It fails as [`write_at`](Self::write_at) does. The error is also [`TooLarge`](crate::StoreError::TooLarge) if
    /// there are more extents than [`MAX_EXTENTS`](crate::MAX_EXTENTS), and [`Invalid`](crate::StoreError::Invalid) if
    /// the length of `data` is not their total length.
    fn write_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        data: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Version>;

    /// Writes `data` at the end, and returns its offset and the new version.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`TooLarge`](crate::StoreError::TooLarge) if it would be longer than
    /// [`MAX_OBJECT_BYTES`](crate::MAX_OBJECT_BYTES) or, in a local store, have more written intervals than
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS), [`NoSpace`](crate::StoreError::NoSpace) if the store is full, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn append(&self, id: &ObjectId, data: &[u8]) -> Result<(u64, Version)>;

    /// Makes the bytes of `range` that lie within the object zeros, and frees their space if the backend can. The
    /// length stays. A range without such bytes changes nothing, not even the version.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`TooLarge`](crate::StoreError::TooLarge) if in a local store it would have more written intervals than
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS), and [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for
    /// reading only. It also fails if the system fails or the store is damaged.
    fn punch(&self, id: &ObjectId, range: Range<u64>) -> Result<Version>;

    /// Sets the length. New bytes are zeros. If the object has this length already, nothing changes.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`TooLarge`](crate::StoreError::TooLarge) if `length` is above [`MAX_OBJECT_BYTES`](crate::MAX_OBJECT_BYTES),
    /// [`NoSpace`](crate::StoreError::NoSpace) if the store is full, and [`ReadOnly`](crate::StoreError::ReadOnly) if
    /// the store is open for reading only. It also fails if the system fails or the store is damaged.
    fn truncate(&self, id: &ObjectId, length: u64) -> Result<Version>;

    /// Makes all earlier changes of this object durable.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object, and
    /// [`Unsynced`](crate::StoreError::Unsynced) if the system failed to store bytes of it before. It also fails if the
    /// system fails or the store is damaged.
    fn flush(&self, id: &ObjectId) -> Result<()>;

    /// Returns the length, version, arrival state and time of the last change.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn stat(&self, id: &ObjectId) -> Result<Stat>;

    /// Checks that the backend has all bytes of the object, without reading them. Then does the same as
    /// [`stat`](Self::stat).
    ///
    /// # Errors
    /// The error is [`Damaged`](crate::StoreError::Damaged) if the bytes are missing or cut off. It also fails as
    /// [`stat`](Self::stat) does.
    fn examine(&self, id: &ObjectId) -> Result<Stat> {
        self.stat(id)
    }

    /// Returns names that start with `prefix` and come after `after`, in bytewise order, at most `limit` and at most
    /// [`MAX_LIST_PAGE`](crate::MAX_LIST_PAGE). To list all, repeat the call with the last name until the answer is
    /// empty.
    ///
    /// # Errors
    /// It fails if the system fails or the store is damaged.
    fn list(&self, prefix: &str, after: Option<&ObjectId>, limit: usize) -> Result<Vec<ObjectId>>;

    /// Returns the value of an attribute, or `None` if the object has no such attribute.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object, and
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name is invalid. It also fails if the
    /// system fails or the store is damaged.
    fn get_attribute(&self, id: &ObjectId, name: &str) -> Result<Option<Vec<u8>>>;

    /// Sets an attribute. Its value has at most [`MAX_ATTRIBUTE_BYTES`](crate::MAX_ATTRIBUTE_BYTES), and an object has
    /// at most [`MAX_ATTRIBUTES`](crate::MAX_ATTRIBUTES).
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name is invalid,
    /// [`TooLarge`](crate::StoreError::TooLarge) if the value is too long or there are too many attributes, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn set_attribute(&self, id: &ObjectId, name: &str, value: &[u8]) -> Result<()>;

    /// Removes an attribute, and returns whether the object had it.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name is invalid, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn remove_attribute(&self, id: &ObjectId, name: &str) -> Result<bool>;

    /// Returns the names of all attributes, in bytewise order.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn list_attributes(&self, id: &ObjectId) -> Result<Vec<String>>;

    /// Sets the attribute to `new` (`None`: removes it) if its value is `expected` (`None`: if the object does not have
    /// it), as one step. The change is durable on return, before other unflushed changes of the object.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name is invalid,
    /// [`TooLarge`](crate::StoreError::TooLarge) if the new value is too long or there are too many attributes, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged. Another value than `expected` is not an error.
    fn compare_and_swap(
        &self,
        id: &ObjectId,
        name: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<CasOutcome>;

    /// Adds `add` to an attribute of 8 bytes, a little-endian `i64`, and returns the value before, as one step. A
    /// missing attribute counts as 0. The sum wraps around in two's complement. The change is durable on return.
    ///
    /// # Errors
    /// The error is [`Invalid`](crate::StoreError::Invalid) if the attribute has another size,
    /// [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name is invalid,
    /// [`TooLarge`](crate::StoreError::TooLarge) if there are too many attributes, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn fetch_add(&self, id: &ObjectId, name: &str, add: i64) -> Result<i64>;

    /// Returns the intervals within `range` that were written, and not punched or cut off since then. They are
    /// disjoint, in order and cut to `range`, at most [`MAX_WRITTEN_PAGE`](crate::MAX_WRITTEN_PAGE). To list all,
    /// repeat the call from the end of the last one until the answer is empty. A write that would leave more than
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS) intervals in an object is refused with
    /// [`TooLarge`](crate::StoreError::TooLarge).
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn written(&self, id: &ObjectId, range: Range<u64>) -> Result<Vec<Range<u64>>>;

    /// Sets the end of the lease of an open object to now plus `lease`, even if the lease has expired.
    ///
    /// The arrival state is information for readers and prevents nothing. Closed objects, and objects with an expired
    /// lease, can be written and get a new version as always. A write does not open an object again. The passage of
    /// time is not a change, so the version stays the same when a lease is renewed or expires.
    ///
    /// # Errors
    /// The error is [`NotOpen`](crate::StoreError::NotOpen) if the object is closed,
    /// [`NotFound`](crate::StoreError::NotFound) if there is no such object, [`TooLarge`](crate::StoreError::TooLarge)
    /// if `lease` is above [`MAX_LEASE`](crate::MAX_LEASE), and [`ReadOnly`](crate::StoreError::ReadOnly) if the store
    /// is open for reading only. It also fails if the system fails or the store is damaged.
    fn renew_lease(&self, id: &ObjectId, lease: Duration) -> Result<()>;

    /// Flushes the object and marks it as complete. A second call only flushes.
    ///
    /// # Errors
    /// It fails as [`flush`](Self::flush) does. The error is [`ReadOnly`](crate::StoreError::ReadOnly) if the store is
    /// open for reading only.
    fn close(&self, id: &ObjectId) -> Result<Version>;

    /// Reads some MiB of the object from byte `from` on, and compares them with their checksums. To check the whole
    /// object, repeat the call from [`next`](ScrubResult::next) until that is `None`. Bytes that changed since the last
    /// flush are skipped. A backend without checksums compares nothing.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged. Damaged bytes are part of the result, and not an error.
    fn scrub(&self, id: &ObjectId, from: u64) -> Result<ScrubResult> {
        let _ = from;
        self.stat(id).map(|_| ScrubResult::default())
    }

    /// Whether each read waits for another machine or process. Then it pays to read bytes before they are needed.
    fn is_distant(&self) -> bool {
        false
    }

    /// Tells the backend that the object will be read from start to end. A backend may ignore this.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn advise_sequential(&self, id: &ObjectId) -> Result<()> {
        self.stat(id).map(|_| ())
    }
}
