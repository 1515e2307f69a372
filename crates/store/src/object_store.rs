//! The store trait.

use std::ops::Range;
use std::time::Duration;

use crate::{
    CasOutcome, CreateOptions, Extent, ObjectId, ReadOptions, Result, Scrubbed, Stat, Version, WriteOptions,
};

/// A store of named byte objects with versions and attributes.
///
/// Every method may be called from many threads at once. A read sees all of a write or none of it, and a
/// write that returned is seen by every later read of the same process.
///
/// *Bytes* that were never written, or were punched, read as zeros. *Attributes* are not part of the version.
///
/// *After an error* from a method that changes bytes, the bytes in the range of that call are unspecified
/// until they are written again; the version has moved on, so nobody takes them for the old ones. Bytes
/// outside the range, the length and the attributes are as before.
///
/// *Durable* is what survives loss of power. Changes of bytes, length and attributes become durable
/// together when `flush` returns, or earlier. `remove`, `close`, `compare_and_swap` and `fetch_add` are
/// durable when they return. After a crash the bytes changed since the last flush are each old or new;
/// length, attributes and written intervals are those of the last flush (or of a shorter `truncate` since).
pub trait ObjectStore: Send + Sync {
    /// Creates an empty object.
    ///
    /// # Errors
    /// The error is [`Exists`](crate::StoreError::Exists) if there is one of this name,
    /// [`TooLarge`](crate::StoreError::TooLarge) for a lease above [`MAX_LEASE`](crate::MAX_LEASE), for more attributes
    /// than [`MAX_ATTRIBUTES`](crate::MAX_ATTRIBUTES) or for a value above
    /// [`MAX_ATTRIBUTE_BYTES`](crate::MAX_ATTRIBUTE_BYTES), [`InvalidAttribute`](crate::StoreError::InvalidAttribute)
    /// for the name of an attribute that breaks the rule, and [`ReadOnly`](crate::StoreError::ReadOnly) if the store is
    /// open for reading only. It also fails if the system fails or the store is damaged.
    fn create(&self, id: &ObjectId, options: &CreateOptions) -> Result<Stat>;

    /// Removes an object, its attributes included.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn remove(&self, id: &ObjectId) -> Result<()>;

    /// Reads from `offset` into `buffer` and returns how many bytes it read: all of `buffer`, or fewer only
    /// where the object ends; 0 at and behind the end.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`Stale`](crate::StoreError::Stale) if it is at another version than `options` name, and
    /// [`Corrupt`](crate::StoreError::Corrupt) if its bytes are not those that were written. A store that is open for
    /// reading only answers [`Unflushed`](crate::StoreError::Unflushed) if `options` name a version and the writing
    /// process has unflushed changes. It also fails if the system fails or the store is damaged.
    fn read_at(&self, id: &ObjectId, offset: u64, buffer: &mut [u8], options: ReadOptions) -> Result<usize>;

    /// Checks the bytes of `range` that lie within the object, as a read of them would. For who must know before the
    /// first byte is given out; what was compared with its checksums within the last hour costs nothing.
    ///
    /// # Errors
    /// It fails as a read of these bytes would: the object is at another version, or its bytes are not those that were
    /// written.
    fn verify(&self, id: &ObjectId, range: Range<u64>, options: ReadOptions) -> Result<()> {
        let _ = range;
        self.read_at(id, 0, &mut [], options).map(|_| ())
    }

    /// Gathers `extents`, in their order and packed, into `buffer`, whose length must be their sum. All come
    /// from one state of the object. At most [`MAX_EXTENTS`](crate::MAX_EXTENTS).
    ///
    /// # Errors
    /// The error is [`OutOfRange`](crate::StoreError::OutOfRange) if an extent ends behind the end of the object,
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

    /// Writes `data` at `offset`, growing the object where needed, and returns its new version. Empty `data`
    /// changes neither bytes nor version, but does change the attributes in `options`.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`Stale`](crate::StoreError::Stale) if it is at another version than `options` name,
    /// [`TooLarge`](crate::StoreError::TooLarge) if it would pass [`MAX_OBJECT_BYTES`](crate::MAX_OBJECT_BYTES),
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS) or [`MAX_ATTRIBUTES`](crate::MAX_ATTRIBUTES) or a value is above
    /// [`MAX_ATTRIBUTE_BYTES`](crate::MAX_ATTRIBUTE_BYTES), [`InvalidAttribute`](crate::StoreError::InvalidAttribute)
    /// for the name of an attribute that breaks the rule, [`NoSpace`](crate::StoreError::NoSpace) if the store is full,
    /// and [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn write_at(&self, id: &ObjectId, offset: u64, data: &[u8], options: WriteOptions<'_>)
    -> Result<Version>;

    /// Scatters packed `data` over `extents` as one write, in their order (the later wins where they
    /// overlap). Bounds as in [`read_extents`](Self::read_extents), but the object grows where needed.
    ///
    /// # Errors
    /// It fails as [`write_at`](Self::write_at) does. The error is also [`TooLarge`](crate::StoreError::TooLarge) if
    /// there are more extents than [`MAX_EXTENTS`](crate::MAX_EXTENTS), and [`Invalid`](crate::StoreError::Invalid) if
    /// `data` has another length than they have together.
    fn write_extents(
        &self,
        id: &ObjectId,
        extents: &[Extent],
        data: &[u8],
        options: WriteOptions<'_>,
    ) -> Result<Version>;

    /// Writes `data` at the end and returns where that was, and the new version.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`TooLarge`](crate::StoreError::TooLarge) if it would be longer than
    /// [`MAX_OBJECT_BYTES`](crate::MAX_OBJECT_BYTES) or, in a local store, have more written intervals than
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS), [`NoSpace`](crate::StoreError::NoSpace) if the store is full, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn append(&self, id: &ObjectId, data: &[u8]) -> Result<(u64, Version)>;

    /// Turns the bytes of `range` that lie within the object into zeros and gives their space back where the
    /// backend can. The length stays. A range without such bytes changes nothing, the version included.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`TooLarge`](crate::StoreError::TooLarge) if in a local store it would have more written intervals than
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS), and [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for
    /// reading only. It also fails if the system fails or the store is damaged.
    fn punch(&self, id: &ObjectId, range: Range<u64>) -> Result<Version>;

    /// Sets the length; new bytes are zeros. The length it already has changes nothing.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`TooLarge`](crate::StoreError::TooLarge) if `length` is above [`MAX_OBJECT_BYTES`](crate::MAX_OBJECT_BYTES),
    /// [`NoSpace`](crate::StoreError::NoSpace) if the store is full, and [`ReadOnly`](crate::StoreError::ReadOnly) if
    /// the store is open for reading only. It also fails if the system fails or the store is damaged.
    fn truncate(&self, id: &ObjectId, length: u64) -> Result<Version>;

    /// Returns when everything done to this object before the call is durable.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object, and
    /// [`Unsynced`](crate::StoreError::Unsynced) if the system failed to store bytes of it before. It also fails if the
    /// system fails or the store is damaged.
    fn flush(&self, id: &ObjectId) -> Result<()>;

    /// Length, version, arrival state and time of the last change.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn stat(&self, id: &ObjectId) -> Result<Stat>;

    /// As [`stat`](Self::stat), after looking whether the backend has the bytes that it should have, without reading them.
    ///
    /// # Errors
    /// The error is [`Damaged`](crate::StoreError::Damaged) if the bytes are gone or cut off. It also fails as
    /// [`stat`](Self::stat) does.
    fn examine(&self, id: &ObjectId) -> Result<Stat> {
        self.stat(id)
    }

    /// Names that start with `prefix` and come behind `after`, in bytewise order, at most `limit` and at
    /// most [`MAX_LIST_PAGE`](crate::MAX_LIST_PAGE). Ask again from the last name until the answer is empty.
    ///
    /// # Errors
    /// It fails if the system fails or the store is damaged.
    fn list(&self, prefix: &str, after: Option<&ObjectId>, limit: usize) -> Result<Vec<ObjectId>>;

    /// The value of an attribute, `None` if the object has no such attribute.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object, and
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name breaks the rule. It also fails if the
    /// system fails or the store is damaged.
    fn get_attribute(&self, id: &ObjectId, name: &str) -> Result<Option<Vec<u8>>>;

    /// Sets an attribute: at most [`MAX_ATTRIBUTE_BYTES`](crate::MAX_ATTRIBUTE_BYTES) of value and
    /// [`MAX_ATTRIBUTES`](crate::MAX_ATTRIBUTES) on an object.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name breaks the rule,
    /// [`TooLarge`](crate::StoreError::TooLarge) if the value is too long or there are too many attributes, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn set_attribute(&self, id: &ObjectId, name: &str, value: &[u8]) -> Result<()>;

    /// Removes an attribute and says whether there was one.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name breaks the rule, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn remove_attribute(&self, id: &ObjectId, name: &str) -> Result<bool>;

    /// The names of all attributes, in bytewise order.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn list_attributes(&self, id: &ObjectId) -> Result<Vec<String>>;

    /// Gives the attribute the value `new` (`None`: removes it) if it has the value `expected` (`None`: if
    /// there is none), as one step. Durable on return, ahead of other unflushed changes of the object.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name breaks the rule,
    /// [`TooLarge`](crate::StoreError::TooLarge) if the new value is too long or there are too many attributes, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged. Another value than `expected` is no error.
    fn compare_and_swap(
        &self,
        id: &ObjectId,
        name: &str,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<CasOutcome>;

    /// Adds `add` to an attribute of 8 bytes, a little-endian `i64`, and returns the value before, as one
    /// step. A missing attribute counts as 0; the sum wraps around in two's complement. Durable on return.
    ///
    /// # Errors
    /// The error is [`Invalid`](crate::StoreError::Invalid) if the attribute has another size,
    /// [`NotFound`](crate::StoreError::NotFound) if there is no such object,
    /// [`InvalidAttribute`](crate::StoreError::InvalidAttribute) if the name breaks the rule,
    /// [`TooLarge`](crate::StoreError::TooLarge) if there are too many attributes, and
    /// [`ReadOnly`](crate::StoreError::ReadOnly) if the store is open for reading only. It also fails if the system
    /// fails or the store is damaged.
    fn fetch_add(&self, id: &ObjectId, name: &str, add: i64) -> Result<i64>;

    /// The intervals within `range` that were ever written and not punched or cut off since: disjoint, in
    /// order, cut to `range`, at most [`MAX_WRITTEN_PAGE`](crate::MAX_WRITTEN_PAGE). Ask again from the end
    /// of the last until the answer is empty. A write that would leave an object with more than
    /// [`MAX_INTERVALS`](crate::MAX_INTERVALS) is refused as [`TooLarge`](crate::StoreError::TooLarge).
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn written(&self, id: &ObjectId, range: Range<u64>) -> Result<Vec<Range<u64>>>;

    /// Sets the end of the lease of an open object to now plus `lease`, also if it has run out already.
    ///
    /// The arrival state informs readers and refuses nothing: closed objects and objects whose lease has run
    /// out can still be written, and get a new version as always. A write does not open an object again.
    /// The passing of time is not a change, so neither renewing nor running out moves the version.
    ///
    /// # Errors
    /// The error is [`NotOpen`](crate::StoreError::NotOpen) if the object is closed,
    /// [`NotFound`](crate::StoreError::NotFound) if there is no such object, [`TooLarge`](crate::StoreError::TooLarge)
    /// if `lease` is above [`MAX_LEASE`](crate::MAX_LEASE), and [`ReadOnly`](crate::StoreError::ReadOnly) if the store
    /// is open for reading only. It also fails if the system fails or the store is damaged.
    fn renew_lease(&self, id: &ObjectId, lease: Duration) -> Result<()>;

    /// Flushes the object and says it is complete. Closing again changes nothing but flushes too.
    ///
    /// # Errors
    /// It fails as [`flush`](Self::flush) does. The error is [`ReadOnly`](crate::StoreError::ReadOnly) if the store is
    /// open for reading only.
    fn close(&self, id: &ObjectId) -> Result<Version>;

    /// Reads the object from byte `from` on and compares it with its checksums, for some MiB; ask again from
    /// [`next`](Scrubbed::next) until there is none. What was changed since the last flush is left out. A backend without
    /// checksums has nothing to compare.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged. Damaged bytes are told in the answer, and are no error.
    fn scrub(&self, id: &ObjectId, from: u64) -> Result<Scrubbed> {
        let _ = from;
        self.stat(id).map(|_| Scrubbed::default())
    }

    /// Tells the backend that the object will be read from start to end. Does nothing where it cannot help.
    ///
    /// # Errors
    /// The error is [`NotFound`](crate::StoreError::NotFound) if there is no such object. It also fails if the system
    /// fails or the store is damaged.
    fn advise_sequential(&self, id: &ObjectId) -> Result<()> {
        self.stat(id).map(|_| ())
    }
}
