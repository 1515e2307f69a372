//! What is kept about chunks from one request to the next, by whoever has a place for it.

/// Summaries of the chunks of one variable, as the folds of a kernel tell them ([`gristmill_kernel::Fold::summary`]): whoever
/// keeps them need not understand them. What is told of a chunk must be of the bytes that its file has now, and of
/// the [key](gristmill_kernel::Kernel::summary_key) of the kernel; see [`Chunks::identity`](crate::Chunks::identity).
///
/// Lanes call both while they fold, so neither may wait for a disk.
pub trait Statistics: Send + Sync {
    /// What is known of a chunk, by its number in the table.
    fn known(&self, number: u64) -> Option<Vec<u8>>;

    /// Keeps what was found out about a chunk, in place of what was known.
    fn learned(&self, number: u64, summary: Vec<u8>);
}
