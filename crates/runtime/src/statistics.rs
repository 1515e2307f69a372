//! Statistics of chunks: summaries that are kept from one request to the next.

/// A store of summaries of the chunks of one variable. Folds of a kernel make the summaries
/// ([`gristmill_kernel::Fold::summary`]), and a store need not understand them. A summary of a chunk must be of the bytes that
/// its file has now, and of the [key](gristmill_kernel::Kernel::summary_key) of the kernel; see
/// [`Chunks::identity`](crate::Chunks::identity).
///
/// Lanes call both functions while they fold, so neither may wait for a disk.
pub trait Statistics: Send + Sync {
    /// The summary of a chunk, by its number in the table; `None` if it is not known.
    fn known(&self, number: u64) -> Option<Vec<u8>>;

    /// Keeps a new summary of a chunk, in place of the old one.
    fn learned(&self, number: u64, summary: Vec<u8>);
}
